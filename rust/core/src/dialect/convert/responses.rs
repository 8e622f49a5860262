//! Writes items of the Responses API. They carry no ids of their own, so that none needs another.

use serde_json::{Value as Json, json};

use super::Sink;
use super::loss::LossKind;
use super::media::Written;
use super::pair::Block;
use super::turn::{Arguments, Outcome, Piece, Turn};
use crate::message::Role;

/// Writes the items; the system argument stays one, as `instructions` is a string.
pub(super) fn write(system: Option<Turn>, blocks: Vec<Block>, sink: &mut Sink) -> Option<Json> {
    let mut texts = Vec::new();
    for piece in system.into_iter().flat_map(|system| system.pieces) {
        texts.extend(sink.text(piece, None));
    }
    for mut block in blocks {
        sink.lose_name(&mut block);
        if block.role == Role::Assistant {
            assistant(block, sink);
            continue;
        }
        let takes_media = block.role == Role::User;
        let mut parts = Vec::with_capacity(block.pieces.len());
        for piece in block.pieces {
            parts.extend(part(piece, block.index, takes_media, sink));
        }
        let Some(content) = content(parts) else {
            let detail = "a message without content went";
            sink.losses.add(block.index, LossKind::EmptyMessage, detail);
            continue;
        };
        sink.messages
            .push(json!({"role": block.role.name(), "content": content}));
    }
    (!texts.is_empty()).then(|| json!(texts.join("\n\n")))
}

fn text_part(text: &str) -> Json {
    json!({"type": "input_text", "text": text})
}

fn part(piece: Piece, index: Option<usize>, takes_media: bool, sink: &mut Sink) -> Option<Json> {
    match piece {
        Piece::Media(media) if takes_media => Some(match sink.medium(&media, false, index) {
            Written::Block(block) => block,
            Written::Text(text) => text_part(&text),
            Written::Nothing => text_part(&media.note()),
        }),
        other => sink.text(other, index).map(|text| text_part(&text)),
    }
}

/// One text as a string, anything else as the list; `None` if there is nothing.
fn content(mut parts: Vec<Json>) -> Option<Json> {
    if let [only] = &mut parts[..]
        && only.get("type").is_some_and(|kind| kind == "input_text")
    {
        return only.get_mut("text").map(Json::take);
    }
    (!parts.is_empty()).then_some(Json::Array(parts))
}

fn assistant(block: Block, sink: &mut Sink) {
    let index = block.index;
    let mut parts = Vec::with_capacity(block.pieces.len());
    for piece in block.pieces {
        match piece {
            Piece::Refusal(text) => parts.push(json!({"type": "refusal", "refusal": text})),
            other => parts.extend(
                sink.text(other, index)
                    .filter(|text| !text.is_empty())
                    .map(|text| json!({"type": "output_text", "text": text})),
            ),
        }
    }
    if parts.is_empty() && block.calls.is_empty() {
        let detail = "a message without content went";
        sink.losses.add(index, LossKind::EmptyMessage, detail);
        return;
    }
    if !parts.is_empty() {
        sink.messages
            .push(json!({"type": "message", "role": "assistant", "content": parts}));
    }
    let mut outputs = Vec::with_capacity(block.calls.len());
    for (call, outcome) in block.calls {
        let (item, kind) = match call.arguments {
            Arguments::Free(input) => (
                json!({"type": "custom_tool_call", "call_id": call.id,
                    "name": call.name, "input": input}),
                "custom_tool_call_output",
            ),
            arguments => {
                let arguments = Sink::string(arguments);
                (
                    json!({"type": "function_call", "call_id": call.id,
                        "name": call.name, "arguments": arguments}),
                    "function_call_output",
                )
            }
        };
        sink.messages.push(item);
        outputs.push((outcome, kind));
    }
    for (outcome, kind) in outputs {
        let output = output(outcome, kind, sink);
        sink.messages.push(output);
    }
}

fn output(outcome: Outcome, kind: &str, sink: &mut Sink) -> Json {
    let index = outcome.index;
    if outcome.is_error {
        let detail = "outputs have no such flag";
        sink.losses.add(index, LossKind::ErrorFlag, detail);
    }
    let mut parts = Vec::with_capacity(outcome.content.len());
    for piece in outcome.content {
        parts.extend(part(piece, index, true, sink));
    }
    let output = content(parts).unwrap_or_else(|| json!(""));
    json!({"type": kind, "call_id": outcome.id, "output": output})
}
