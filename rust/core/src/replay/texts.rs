//! What of a message can be read: the texts that a window shows, and those an agent acted with.

use serde_json::{Map, Value as Serde};

use crate::message::{Body, Message, Part, PartKind};
use crate::node::{Text, Value};
use crate::readers::json::{Json, parse};
use crate::shrink::with_text;

/// Keys whose strings are encoded data, which nobody reads.
const ENCODED: [&str; 6] = [
    "data",
    "encrypted_content",
    "signature",
    "thoughtSignature",
    "thought_signature",
    "redactedContent",
];

/// Calls `take` with every text of a message: texts, results, reasoning, and the strings and
/// numbers of call arguments, decoded, without their keys.
pub(super) fn read_texts<T: Text>(message: &Message<T>, take: &mut impl FnMut(&str)) {
    for part in &message.parts {
        read_part(part, take);
    }
}

/// Calls `take` with the texts of one part.
pub(super) fn read_part<T: Text>(part: &Part<T>, take: &mut impl FnMut(&str)) {
    match part.kind {
        PartKind::Image | PartKind::Audio | PartKind::File => {}
        PartKind::Result => with_text(&part.body, take),
        PartKind::Call => match &part.body {
            Body::Text(text) => text.with(|text| match parse(text) {
                Ok(arguments @ (Json::Map(_) | Json::List(_))) => json_leaves(&arguments, take),
                _ => take(text),
            }),
            body => read_body(body, take),
        },
        PartKind::Text | PartKind::Reasoning | PartKind::Opaque => read_body(&part.body, take),
    }
}

/// Calls `take` with what the agent did in this message: call arguments or, where the run has no
/// calls at all, what stands in fenced blocks of its text.
pub(super) fn read_actions<T: Text>(
    message: &Message<T>,
    has_calls: bool,
    take: &mut impl FnMut(&str),
) {
    for part in &message.parts {
        match part.kind {
            PartKind::Call => read_part(part, take),
            PartKind::Text if !has_calls => read_part(part, &mut |text| fenced(text, take)),
            _ => {}
        }
    }
}

/// The lines between fences of backticks.
fn fenced(text: &str, take: &mut impl FnMut(&str)) {
    let mut is_inside = false;
    for line in text.split('\n') {
        if line.trim_start().starts_with("```") {
            is_inside = !is_inside;
        } else if is_inside {
            take(line);
        }
    }
}

fn read_body<T: Text>(body: &Body<T>, take: &mut impl FnMut(&str)) {
    match body {
        Body::Text(text) => text.with(take),
        Body::Value(value) => value_leaves(value, take),
        Body::Empty => {}
    }
}

fn value_leaves<T: Text>(value: &Value<T>, take: &mut impl FnMut(&str)) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => take(number),
        Value::Text(text) => text.with(take),
        Value::List(items) => {
            for item in items {
                value_leaves(item, take);
            }
        }
        Value::Map(entries) => {
            for (key, value) in entries {
                if !key.with(|key| ENCODED.contains(&key)) {
                    value_leaves(value, take);
                }
            }
        }
    }
}

fn json_leaves(value: &Json, take: &mut impl FnMut(&str)) {
    match value {
        Json::Null | Json::Bool(_) => {}
        Json::Int(number) => take(&number.to_string()),
        Json::Number(number) => take(number),
        Json::Text(text) => text.with(take),
        Json::List(items) => {
            for item in items {
                json_leaves(item, take);
            }
        }
        Json::Map(entries) => {
            for (key, value) in entries {
                if !ENCODED.contains(&&**key) {
                    json_leaves(value, take);
                }
            }
        }
    }
}

/// The same value for the renderer; halves of surrogate pairs become U+FFFD, and what is no number
/// becomes null.
pub(super) fn to_serde(value: &Json) -> Serde {
    match value {
        Json::Null => Serde::Null,
        Json::Bool(value) => Serde::Bool(*value),
        Json::Int(number) => Serde::from(*number),
        Json::Number(number) => serde_json::from_str(number).unwrap_or(Serde::Null),
        Json::Text(text) => Serde::String(text.with(str::to_owned)),
        Json::List(items) => Serde::Array(items.iter().map(to_serde).collect()),
        Json::Map(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, value)| (key.to_string(), to_serde(value)));
            Serde::Object(entries.collect::<Map<_, _>>())
        }
    }
}

/// The canonical JSON of a message without its cache marks.
pub(super) fn unmarked_json(message: &Json) -> String {
    if has_marks(message) {
        without_marks(message).to_json()
    } else {
        message.to_json()
    }
}

fn is_mark(key: &str) -> bool {
    matches!(key, "cache_control" | "cachePoint")
}

fn has_marks(value: &Json) -> bool {
    match value {
        Json::List(items) => items.iter().any(has_marks),
        Json::Map(entries) => entries
            .iter()
            .any(|(key, value)| is_mark(key) || has_marks(value)),
        _ => false,
    }
}

fn without_marks(value: &Json) -> Json {
    match value {
        Json::List(items) => {
            let is_block = |item: &&Json| !matches!(item, Json::Map(entries) if entries.iter().any(|(key, _)| key.as_ref() == "cachePoint"));
            Json::List(items.iter().filter(is_block).map(without_marks).collect())
        }
        Json::Map(entries) => {
            let entries = entries.iter().filter(|(key, _)| !is_mark(key));
            let entries = entries.map(|(key, value)| (key.clone(), without_marks(value)));
            Json::Map(entries.collect())
        }
        other => other.clone(),
    }
}
