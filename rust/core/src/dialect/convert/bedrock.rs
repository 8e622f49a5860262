//! Writes Bedrock Converse messages; bytes are base64 strings here.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::Sink;
use super::alternate::{Exchange, exchanges, system_texts};
use super::media::Written;
use super::pair::Block;
use super::turn::{Outcome, Piece, Turn};
use crate::message::Role;

pub(super) fn write(system: Option<Turn>, blocks: Vec<Block>, sink: &mut Sink) -> Option<Json> {
    let (texts, blocks) = system_texts(system, blocks, sink);
    let system = (!texts.is_empty()).then(|| texts.iter().map(|text| text_block(text)).collect());
    let mut names = BTreeSet::new();
    for exchange in exchanges(blocks, sink) {
        let message = message(exchange, &mut names, sink);
        sink.messages.push(message);
    }
    system
}

/// The content of a result that says nothing: an empty list is refused, and so is a blank text.
pub(super) fn nothing() -> Json {
    json!({"json": {}})
}

fn text_block(text: &str) -> Json {
    json!({"text": text})
}

fn message(exchange: Exchange, names: &mut BTreeSet<String>, sink: &mut Sink) -> Json {
    let role = exchange.role;
    let mut content = Vec::new();
    for outcome in exchange.outcomes {
        content.push(result(outcome, names, sink));
    }
    for (index, piece) in exchange.pieces {
        content.extend(block(piece, role == Role::User, false, index, names, sink));
    }
    for (call, index) in exchange.calls {
        let input = sink.object(call.arguments, index);
        let call = json!({"toolUseId": call.id, "name": call.name, "input": input});
        content.push(json!({"toolUse": call}));
    }
    // A document needs a text beside it.
    let has = |key: &str| content.iter().any(|block| block.get(key).is_some());
    if has("document") && !has("text") {
        let place = content
            .iter()
            .position(|block| block.get("document").is_some());
        content.insert(place.unwrap_or(0), text_block("[document]"));
    }
    json!({"role": role.name(), "content": content})
}

fn block(
    piece: Piece,
    takes_media: bool,
    is_result: bool,
    index: Option<usize>,
    names: &mut BTreeSet<String>,
    sink: &mut Sink,
) -> Option<Json> {
    match piece {
        Piece::Media(media) if takes_media => match sink.medium(&media, is_result, index) {
            Written::Block(mut block) => {
                name_apart(&mut block, names);
                Some(block)
            }
            Written::Text(text) => Some(text_block(&text)),
            Written::Nothing => Some(text_block(&media.note())),
        },
        other => sink.text(other, index).map(|text| text_block(&text)),
    }
}

/// No two documents of a request may have one name.
fn name_apart(block: &mut Json, names: &mut BTreeSet<String>) {
    let Some(Json::String(name)) = block.pointer_mut("/document/name") else {
        return;
    };
    let first = name.clone();
    let mut number = 2;
    while !names.insert(name.clone()) {
        *name = format!("{first} {number}");
        number += 1;
    }
}

fn result(outcome: Outcome, names: &mut BTreeSet<String>, sink: &mut Sink) -> Json {
    let index = outcome.index;
    let content = sink.without_blanks(outcome.content, index);
    let mut content: Vec<Json> = content
        .into_iter()
        .filter_map(|piece| block(piece, true, true, index, names, sink))
        .collect();
    if content.is_empty() {
        content.push(nothing());
    }
    let mut result = json!({"toolUseId": outcome.id, "content": content});
    if outcome.is_error {
        result["status"] = json!("error");
    }
    json!({"toolResult": result})
}
