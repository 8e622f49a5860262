//! Writes Chat Completions messages.

use serde_json::{Value as Json, json};

use super::Sink;
use super::loss::LossKind;
use super::media::Written;
use super::pair::Block;
use super::turn::{Arguments, Outcome, Piece, Turn};
use crate::message::Role;

pub(super) fn write(system: Option<Turn>, blocks: Vec<Block>, sink: &mut Sink) {
    if let Some(system) = system {
        let parts = parts(system.pieces, None, false, sink);
        if let Some(content) = content(parts) {
            sink.messages
                .push(json!({"role": "system", "content": content}));
        }
    }
    for mut block in blocks {
        if block.role == Role::Assistant {
            assistant(block, sink);
            continue;
        }
        let parts = parts(
            std::mem::take(&mut block.pieces),
            block.index,
            block.role == Role::User,
            sink,
        );
        let Some(content) = content(parts) else {
            let detail = "a message without content went";
            sink.losses.add(block.index, LossKind::EmptyMessage, detail);
            continue;
        };
        let mut message = json!({"role": block.role.name()});
        if let Some(name) = block.name.filter(|name| !name.is_empty()) {
            message["name"] = json!(name);
        }
        message["content"] = content;
        sink.messages.push(message);
    }
}

fn text_part(text: &str) -> Json {
    json!({"type": "text", "text": text})
}

fn parts(
    pieces: Vec<Piece>,
    index: Option<usize>,
    takes_media: bool,
    sink: &mut Sink,
) -> Vec<Json> {
    let mut parts = Vec::with_capacity(pieces.len());
    for piece in pieces {
        parts.extend(part(piece, index, takes_media, sink));
    }
    parts
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
        && only.get("type").is_some_and(|kind| kind == "text")
    {
        return only.get_mut("text").map(Json::take);
    }
    (!parts.is_empty()).then_some(Json::Array(parts))
}

fn assistant(block: Block, sink: &mut Sink) {
    let index = block.index;
    let mut refusals = Vec::new();
    let mut pieces = Vec::new();
    for piece in block.pieces {
        match piece {
            Piece::Refusal(text) => refusals.push(text),
            // An empty text beside calls is no content.
            Piece::Text(text) if text.is_empty() => {}
            other => pieces.push(other),
        }
    }
    let content = content(parts(pieces, index, false, sink));
    if content.is_none() && refusals.is_empty() && block.calls.is_empty() {
        let detail = "a message without content went";
        sink.losses.add(index, LossKind::EmptyMessage, detail);
        return;
    }
    let mut message = json!({"role": "assistant"});
    if let Some(name) = block.name.filter(|name| !name.is_empty()) {
        message["name"] = json!(name);
    }
    message["content"] = content.unwrap_or(Json::Null);
    if !refusals.is_empty() {
        message["refusal"] = json!(refusals.join("\n"));
    }
    let mut outcomes = Vec::with_capacity(block.calls.len());
    let mut calls = Vec::with_capacity(block.calls.len());
    for (call, outcome) in block.calls {
        outcomes.push(outcome);
        calls.push(match call.arguments {
            Arguments::Free(input) => json!({"id": call.id, "type": "custom",
                "custom": {"name": call.name, "input": input}}),
            arguments => {
                let arguments = Sink::string(arguments);
                json!({"id": call.id, "type": "function",
                    "function": {"name": call.name, "arguments": arguments}})
            }
        });
    }
    if !calls.is_empty() {
        message["tool_calls"] = Json::Array(calls);
    }
    sink.messages.push(message);
    results(outcomes, sink);
}

/// The results; their media follow as a user's message, because tool messages hold text only.
fn results(outcomes: Vec<Outcome>, sink: &mut Sink) {
    let mut moved = Vec::new();
    for outcome in outcomes {
        let index = outcome.index;
        let mut parts = Vec::new();
        let mut count = 0;
        for piece in outcome.content {
            match piece {
                Piece::Media(media) => {
                    let part = match sink.medium(&media, false, index) {
                        Written::Block(block) => block,
                        Written::Text(text) => {
                            parts.push(text_part(&text));
                            continue;
                        }
                        Written::Nothing => {
                            parts.push(text_part(&media.note()));
                            continue;
                        }
                    };
                    let detail = "moved out of the result into a user's message";
                    sink.losses.add(index, media.medium.loss(), detail);
                    if count == 0 {
                        let of = outcome.name.as_deref().unwrap_or_default();
                        moved.push(text_part(&format!("[from the result of {of}]")));
                    }
                    count += 1;
                    moved.push(part);
                }
                other => parts.extend(part(other, index, false, sink)),
            }
        }
        if outcome.is_error {
            let detail = "tool messages have no such flag";
            sink.losses.add(index, LossKind::ErrorFlag, detail);
        }
        let content = content(parts).unwrap_or_else(|| json!(""));
        sink.messages
            .push(json!({"role": "tool", "tool_call_id": outcome.id, "content": content}));
    }
    if !moved.is_empty() {
        sink.messages
            .push(json!({"role": "user", "content": moved}));
    }
}
