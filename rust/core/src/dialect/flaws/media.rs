//! Whether a block holds what its kind promises.

use crate::dialect::Dialect;
use crate::node::{Text, Value};

/// Whether a block of content has its data: an image its source, a part of Gemini anything at all.
/// Kinds that are not known have what they have.
pub(super) fn is_there<T: Text>(dialect: Dialect, block: &Value<T>) -> bool {
    let Value::Map(fields) = block else {
        return true;
    };
    match dialect {
        Dialect::OpenAi => of_type(block, |kind| match kind {
            "image_url" => is_said(block.get("image_url")) || has(block, "image_url", &["url"]),
            "input_audio" => has(block, "input_audio", &["data"]),
            "file" => has(block, "file", &["file_data", "file_id", "file_url"]),
            _ => true,
        }),
        Dialect::Responses => of_type(block, |kind| match kind {
            "input_image" | "computer_screenshot" => any(block, &["image_url", "file_id"]),
            "input_file" => any(block, &["file_id", "file_data", "file_url"]),
            "input_audio" => has(block, "input_audio", &["data"]) || is_said(block.get("data")),
            _ => true,
        }),
        Dialect::Anthropic => of_type(block, |kind| match kind {
            "image" | "document" => block.get("source").is_some_and(is_source),
            _ => true,
        }),
        Dialect::Gemini => {
            let is_data = |name: &str| !is_beside(name);
            let media = ["inlineData", "inline_data", "fileData", "file_data"];
            let media = media.iter().find_map(|name| present(block.get(name)));
            let mut fields = fields.iter().filter(|(_, value)| !is_null(value));
            fields.any(|(name, _)| name.with(is_data))
                && media.is_none_or(|media| any(media, &["data", "fileUri", "file_uri"]))
        }
        Dialect::Bedrock => {
            let media = ["image", "document", "video", "audio"];
            let media = media.iter().find_map(|name| present(block.get(name)));
            fields.iter().any(|(_, value)| !is_null(value))
                && media.is_none_or(|media| {
                    let source = present(media.get("source"));
                    source.is_some_and(|source| match source {
                        Value::Map(fields) => fields.iter().any(|(_, value)| !is_null(value)),
                        _ => false,
                    })
                })
        }
    }
}

/// Whether a part of Gemini without data has a signature.
pub(super) fn is_signature<T: Text>(part: &Value<T>) -> bool {
    let names = ["thoughtSignature", "thought_signature"];
    names.iter().any(|name| present(part.get(name)).is_some())
        && ["inlineData", "inline_data", "fileData", "file_data"]
            .iter()
            .all(|name| present(part.get(name)).is_none())
}

/// Whether a part of Chat Completions is of a type that its own reference has; the many servers
/// that speak the dialect know others.
pub(super) fn is_known<T: Text>(block: &Value<T>) -> bool {
    of_type(block, |kind| {
        matches!(
            kind,
            "text" | "image_url" | "input_audio" | "file" | "refusal"
        )
    })
}

/// What stands beside the data of a part.
fn is_beside(name: &str) -> bool {
    matches!(
        name,
        "thought"
            | "thoughtSignature"
            | "thought_signature"
            | "videoMetadata"
            | "video_metadata"
            | "mediaResolution"
            | "media_resolution"
            | "partMetadata"
            | "part_metadata"
    )
}

fn is_source<T: Text>(source: &Value<T>) -> bool {
    let Value::Map(fields) = source else {
        return false;
    };
    let has_type = source.get("type").and_then(Value::as_text).is_some();
    has_type
        && of_type(source, |kind| match kind {
            "base64" | "text" => any(source, &["data"]),
            "url" => any(source, &["url"]),
            "file" => any(source, &["file_id"]),
            "content" => any(source, &["content"]),
            _ => fields.len() > 1,
        })
}

/// What `is` says of the type; true without one.
fn of_type<T: Text>(block: &Value<T>, is: impl FnOnce(&str) -> bool) -> bool {
    let kind = block.get("type").and_then(Value::as_text);
    kind.is_none_or(|kind| kind.with(is))
}

fn is_null<T>(value: &Value<T>) -> bool {
    matches!(value, Value::Null)
}

fn present<T>(value: Option<&Value<T>>) -> Option<&Value<T>> {
    value.filter(|value| !is_null(value))
}

/// Whether this is a string with something in it.
fn is_said<T: Text>(value: Option<&Value<T>>) -> bool {
    let text = value.and_then(Value::as_text);
    text.is_some_and(|text| !text.is_empty())
}

/// Whether one of these fields is there; a string has something in it.
fn any<T: Text>(block: &Value<T>, names: &[&str]) -> bool {
    let is_there = |value: &Value<T>| match value {
        Value::Text(text) => !text.is_empty(),
        other => !is_null(other),
    };
    names
        .iter()
        .any(|name| block.get(name).is_some_and(is_there))
}

/// Whether the object `name` has one of these fields.
fn has<T: Text>(block: &Value<T>, name: &str, fields: &[&str]) -> bool {
    block.get(name).is_some_and(|inner| any(inner, fields))
}
