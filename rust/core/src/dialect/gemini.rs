//! Reader of the `gemini` dialect: the contents of `generateContent`.
//!
//! One part per Gemini part, in order; keys in camel case (the wire) and in snake case (the Python
//! client) read alike. A part with a thought signature is never edited. Calls that the server
//! makes itself (`executableCode`, `toolCall`, …) are opaque.

use super::{Dialect, foreign, optional_text, part, shape_of, whole, wrong};
use crate::error::Result;
use crate::message::{Body, CallKey, Message, Part, PartKind, Place, Role};
use crate::node::{Node, Shape};

const ROLES: &str = "user, model or function";

pub(super) fn read<N: Node>(node: &N) -> Result<Message<N::Text>> {
    if node.shape() != Shape::Map {
        return Err(wrong("the content", "an object", node.shape()));
    }
    let role = match present(node, "role") {
        // A lone prompt needs no role.
        None => Role::User,
        Some(role) => match role.with_str(role_of) {
            Some(Some(role)) => role,
            Some(None) if role.is_str("assistant") || role.is_str("system") => {
                return Err(foreign("the message", Dialect::OpenAi));
            }
            Some(None) => return Err(wrong("role", ROLES, Shape::Text)),
            None => return Err(wrong("role", ROLES, role.shape())),
        },
    };
    let mut parts = Vec::new();
    match present(node, "parts") {
        None if present(node, "content").is_some() => {
            return Err(wrong("parts", "a list", Shape::Null));
        }
        None => {}
        Some(list) if list.shape() == Shape::List => {
            parts.reserve_exact(list.len());
            for at in 0..list.len() {
                let Some(part) = list.item(at) else { break };
                parts.push(read_part(&part, at)?);
            }
        }
        Some(other) => return Err(wrong("parts", "a list or null", other.shape())),
    }
    Ok(Message {
        role,
        parts,
        name: None,
    })
}

fn role_of(role: &str) -> Option<Role> {
    match role {
        "user" => Some(Role::User),
        "model" => Some(Role::Assistant),
        "function" | "tool" => Some(Role::Tool),
        _ => None,
    }
}

/// The field `key`, where it is there and not null: the client's models carry every field.
fn present<N: Node>(node: &N, key: &'static str) -> Option<N> {
    node.get(key).filter(|value| !value.is_null())
}

/// The field in either spelling, and whether it was the one with underscores.
fn either<N: Node>(node: &N, camel: &'static str, snake: &'static str) -> Option<(N, bool)> {
    present(node, camel)
        .map(|value| (value, false))
        .or_else(|| present(node, snake).map(|value| (value, true)))
}

fn read_part<N: Node>(node: &N, at: usize) -> Result<Part<N::Text>> {
    if node.shape() != Shape::Map {
        return match node.capture_below(2) {
            Err(error) if error.kind() == crate::error::ErrorKind::TooDeep => Err(error),
            _ => Err(wrong(&format!("parts[{at}]"), "an object", node.shape())),
        };
    }
    let is_signed = either(node, "thoughtSignature", "thought_signature").is_some();
    let index = at as u32;
    if let Some(text) = present(node, "text") {
        let Some(text) = text.text() else {
            let path = format!("parts[{at}].text");
            return Err(wrong(&path, "a string", text.shape()));
        };
        if present(node, "thought").and_then(|thought| thought.bool()) == Some(true) {
            return whole(PartKind::Reasoning, Place::SignedPart(index), node, 2);
        }
        let place = if is_signed {
            Place::SignedPart(index)
        } else {
            Place::PartText(index)
        };
        return Ok(part(PartKind::Text, place, Body::Text(text)));
    }
    if let Some((call, is_snake)) = either(node, "functionCall", "function_call") {
        let place = match (is_signed, is_snake) {
            (true, _) => Place::SignedPart(index),
            (false, false) => Place::PartArgs(index),
            (false, true) => Place::PartArgsSnake(index),
        };
        return read_call(&call, place, at);
    }
    if let Some((response, is_snake)) = either(node, "functionResponse", "function_response") {
        let place = match (is_signed, is_snake) {
            (true, _) => Place::SignedPart(index),
            (false, false) => Place::PartResponse(index),
            (false, true) => Place::PartResponseSnake(index),
        };
        return read_response(&response, place, at);
    }
    let media =
        either(node, "inlineData", "inline_data").or_else(|| either(node, "fileData", "file_data"));
    if let Some((media, _)) = media {
        let kind = either(&media, "mimeType", "mime_type").and_then(|(kind, _)| {
            kind.with_str(|kind| {
                if kind.starts_with("image/") {
                    PartKind::Image
                } else if kind.starts_with("audio/") {
                    PartKind::Audio
                } else {
                    PartKind::File
                }
            })
        });
        let place = if is_signed {
            Place::SignedPart(index)
        } else {
            Place::Part(index)
        };
        return whole(kind.unwrap_or(PartKind::File), place, node, 2);
    }
    whole(PartKind::Opaque, Place::SignedPart(index), node, 2)
}

fn read_call<N: Node>(call: &N, place: Place, at: usize) -> Result<Part<N::Text>> {
    let path = |field: &str| format!("parts[{at}].functionCall{field}");
    if call.shape() != Shape::Map {
        return Err(wrong(&path(""), "an object", call.shape()));
    }
    let id = optional_text(call, "id", || path(".id"))?;
    let name = optional_text(call, "name", || path(".name"))?;
    let body = match present(call, "args") {
        None => Body::Empty,
        Some(arguments) if arguments.shape() == Shape::Map => {
            Body::Value(arguments.capture_below(4)?)
        }
        Some(other) => return Err(wrong(&path(".args"), "an object", other.shape())),
    };
    let mut call = part(PartKind::Call, place, body);
    call.key = Some(Box::new(CallKey { id, name }));
    Ok(call)
}

fn read_response<N: Node>(response: &N, place: Place, at: usize) -> Result<Part<N::Text>> {
    let path = |field: &str| format!("parts[{at}].functionResponse{field}");
    if response.shape() != Shape::Map {
        return Err(wrong(&path(""), "an object", response.shape()));
    }
    let id = optional_text(response, "id", || path(".id"))?;
    let name = optional_text(response, "name", || path(".name"))?;
    let content = present(response, "response");
    let shape = shape_of(content.as_ref());
    if !matches!(shape, Shape::Null | Shape::Map) {
        return Err(wrong(&path(".response"), "an object", shape));
    }
    let is_error = content
        .as_ref()
        .is_some_and(|content| present(content, "error").is_some());
    // Media of a result stand beside its response; such a result stays whole.
    let has_media = present(response, "parts").is_some_and(|parts| !parts.is_empty());
    let (place, body) = match content {
        _ if has_media => (
            Place::SignedPart(at as u32),
            Body::Value(response.capture_below(3)?),
        ),
        Some(content) => (place, Body::Value(content.capture_below(4)?)),
        None => (place, Body::Empty),
    };
    let mut result = part(PartKind::Result, place, body);
    result.key = Some(Box::new(CallKey { id, name }));
    result.is_error = is_error;
    Ok(result)
}
