//! Writes Anthropic messages.

use serde_json::{Value as Json, json};

use super::Sink;
use super::alternate::{Exchange, exchanges, system_texts};
use super::media::Written;
use super::pair::Block;
use super::turn::{Outcome, Piece, Turn};
use crate::message::Role;

pub(super) fn write(system: Option<Turn>, blocks: Vec<Block>, sink: &mut Sink) -> Option<Json> {
    let (texts, blocks) = system_texts(system, blocks, sink);
    let system = match &texts[..] {
        [] => None,
        [only] => Some(json!(only)),
        _ => Some(texts.iter().map(|text| text_block(text)).collect()),
    };
    let mut exchanges = exchanges(blocks, sink);
    if let Some(last) = exchanges.last_mut() {
        trim_end(last, sink);
    }
    for exchange in exchanges {
        let message = message(exchange, sink);
        sink.messages.push(message);
    }
    system
}

/// A last text of the assistant must not end in white space.
fn trim_end(last: &mut Exchange, sink: &mut Sink) {
    if last.role == Role::Assistant
        && let Some((index, Piece::Text(text))) = last.pieces.last_mut()
    {
        let length = text.trim_end().len();
        if length < text.len() {
            text.truncate(length);
            sink.lose_blank(*index);
        }
    }
}

fn text_block(text: &str) -> Json {
    json!({"type": "text", "text": text})
}

fn message(exchange: Exchange, sink: &mut Sink) -> Json {
    let role = exchange.role;
    if let Some(text) = exchange.only_text() {
        return json!({"role": role.name(), "content": text});
    }
    let mut blocks = Vec::new();
    for outcome in exchange.outcomes {
        blocks.push(result(outcome, sink));
    }
    for (index, piece) in exchange.pieces {
        blocks.extend(block(piece, role == Role::User, false, index, sink));
    }
    for (call, index) in exchange.calls {
        let input = sink.object(call.arguments, index);
        let call = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input});
        blocks.push(call);
    }
    json!({"role": role.name(), "content": blocks})
}

fn block(
    piece: Piece,
    takes_media: bool,
    is_result: bool,
    index: Option<usize>,
    sink: &mut Sink,
) -> Option<Json> {
    match piece {
        Piece::Media(media) if takes_media => match sink.medium(&media, is_result, index) {
            Written::Block(block) => Some(block),
            Written::Text(text) => Some(text_block(&text)),
            Written::Nothing => Some(text_block(&media.note())),
        },
        other => sink.text(other, index).map(|text| text_block(&text)),
    }
}

fn result(outcome: Outcome, sink: &mut Sink) -> Json {
    let mut result = json!({"type": "tool_result", "tool_use_id": outcome.id});
    let index = outcome.index;
    let content = sink.without_blanks(outcome.content, index);
    if let [Piece::Text(text)] = &content[..] {
        result["content"] = json!(text);
    } else if !content.is_empty() {
        let blocks = content.into_iter();
        let blocks = blocks.filter_map(|piece| block(piece, true, true, index, sink));
        result["content"] = blocks.collect();
    }
    if outcome.is_error {
        result["is_error"] = json!(true);
    }
    result
}
