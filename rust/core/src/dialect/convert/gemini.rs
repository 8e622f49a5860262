//! Writes Gemini contents.

use serde_json::{Value as Json, json};

use super::Sink;
use super::alternate::{Exchange, exchanges, system_texts};
use super::media::Written;
use super::pair::Block;
use super::turn::{Outcome, Piece, Turn};
use crate::message::Role;

/// Stands for the signature of a call that another provider's model made.
///
/// # Source
/// Gemini API documentation, thought signatures: the first call of each step must have one in
/// Gemini 3 and later; this value is for histories of other models.
pub(super) const DUMMY_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn write(system: Option<Turn>, blocks: Vec<Block>, sink: &mut Sink) -> Option<Json> {
    let (texts, blocks) = system_texts(system, blocks, sink);
    let system = (!texts.is_empty()).then(|| {
        let parts: Vec<Json> = texts.iter().map(|text| json!({"text": text})).collect();
        json!({"parts": parts})
    });
    for exchange in exchanges(blocks, sink) {
        let content = content(exchange, sink);
        sink.messages.push(content);
    }
    system
}

fn content(exchange: Exchange, sink: &mut Sink) -> Json {
    let mut parts = Vec::new();
    let mut media = Vec::new();
    for outcome in exchange.outcomes {
        let id = outcome.id.clone();
        let name = outcome.name.clone();
        let (response, moved) = response(outcome);
        parts.push(json!({"functionResponse": {"id": id, "name": name, "response": response}}));
        media.extend(moved);
    }
    // Media beside a response are for the newest models only: they follow all responses.
    for (index, piece) in media {
        if let Piece::Media(medium) = &piece {
            let detail = "moved behind the result";
            sink.losses.add(index, medium.medium.loss(), detail);
        }
        parts.extend(part(piece, index, sink));
    }
    for (index, piece) in exchange.pieces {
        parts.extend(part(piece, index, sink));
    }
    for (number, (call, index)) in exchange.calls.into_iter().enumerate() {
        let arguments = sink.object(call.arguments, index);
        let mut part = json!({"functionCall": {
            "id": call.id, "name": call.name, "args": arguments}});
        if number == 0 {
            part["thoughtSignature"] = json!(DUMMY_SIGNATURE);
        }
        parts.push(part);
    }
    let role = if exchange.role == Role::Assistant {
        "model"
    } else {
        "user"
    };
    json!({"role": role, "parts": parts})
}

fn part(piece: Piece, index: Option<usize>, sink: &mut Sink) -> Option<Json> {
    let text = match piece {
        Piece::Media(media) => match sink.medium(&media, false, index) {
            Written::Block(block) => return Some(block),
            Written::Text(text) => text,
            Written::Nothing => media.note(),
        },
        other => sink.text(other, index)?,
    };
    Some(json!({"text": text}))
}

/// The response of a result, and the media that stand beside it.
///
/// `output` and `error` are the documented keys. A text that is the compact JSON of another object
/// is that object: what came from a response becomes it again.
fn response(outcome: Outcome) -> (Json, Vec<(Option<usize>, Piece)>) {
    let texts: Vec<&str> = outcome.texts().collect();
    let key = if outcome.is_error { "error" } else { "output" };
    let response = match texts[..] {
        [text] => object_of(text, outcome.is_error).unwrap_or_else(|| {
            let mut wrapped = serde_json::Map::new();
            wrapped.insert(key.to_owned(), json!(text));
            Json::Object(wrapped)
        }),
        // An error must say something to count as one.
        [] if outcome.is_error => json!({"error": ""}),
        [] => json!({}),
        _ => {
            let mut wrapped = serde_json::Map::new();
            wrapped.insert(key.to_owned(), json!(texts));
            Json::Object(wrapped)
        }
    };
    let index = outcome.index;
    let media = outcome.content.into_iter();
    let media = media.filter(|piece| matches!(piece, Piece::Media(_)));
    (response, media.map(|piece| (index, piece)).collect())
}

fn object_of(text: &str, is_error: bool) -> Option<Json> {
    if !text.starts_with('{') {
        return None;
    }
    let json: Json = serde_json::from_str(text).ok()?;
    let object = json.as_object()?;
    let says_error = object.get("error").is_some_and(|error| !error.is_null());
    let is_same = says_error == is_error && wrapped_texts(&json).is_none() && !object.is_empty();
    let compact = json.to_string();
    (is_same && compact == text).then_some(json)
}

/// The texts of a response with nothing but `output` or `error`.
fn wrapped_texts(response: &Json) -> Option<Vec<&str>> {
    let object = response.as_object()?;
    let (key, value) = object.iter().next()?;
    if object.len() != 1 || (key != "output" && key != "error") {
        return None;
    }
    match value {
        Json::String(text) => Some(vec![text]),
        Json::Array(items) if items.len() > 1 => items.iter().map(Json::as_str).collect(),
        _ => None,
    }
}

/// What a response says, as texts.
pub(super) fn texts_of_response(response: &Json, is_error: bool) -> Vec<Piece> {
    let is_bare = response.as_object().is_some_and(serde_json::Map::is_empty);
    if response.is_null() || is_bare {
        return Vec::new();
    }
    let texts = match wrapped_texts(response) {
        Some(texts) if is_error && texts == [""] => return Vec::new(),
        Some(texts) => texts.into_iter().map(str::to_owned).collect(),
        None => vec![response.to_string()],
    };
    texts.into_iter().map(Piece::Text).collect()
}
