//! Reader of the `bedrock` dialect: Converse messages.
//!
//! One part per content block, in order; a block's kind is its one key. Blocks of unknown kind are
//! opaque.

use super::{Dialect, foreign, no_block, optional_text, part, shape_of, text_part, whole, wrong};
use crate::error::Result;
use crate::message::{Body, CallKey, Message, Part, PartKind, Place, Role};
use crate::node::{Node, Shape};

const ROLES: &str = "user or assistant";

pub(super) fn read<N: Node>(node: &N) -> Result<Message<N::Text>> {
    if node.shape() != Shape::Map {
        return Err(wrong("the message", "an object", node.shape()));
    }
    let role = node.get("role");
    let known = role.as_ref().and_then(|role| {
        role.with_str(|role| match role {
            "user" => Some(Role::User),
            "assistant" => Some(Role::Assistant),
            _ => None,
        })
    });
    let role = match known {
        Some(Some(role)) => role,
        Some(None) if role.as_ref().is_some_and(|role| role.is_str("tool")) => {
            return Err(foreign("the message", Dialect::OpenAi));
        }
        Some(None) => return Err(wrong("role", ROLES, Shape::Text)),
        None => return Err(wrong("role", ROLES, shape_of(role.as_ref()))),
    };
    let mut parts = Vec::new();
    if let Some(content) = node.get("content") {
        match content.shape() {
            Shape::Null => {}
            Shape::List => {
                parts.reserve_exact(content.len());
                for at in 0..content.len() {
                    let Some(block) = content.item(at) else { break };
                    parts.push(read_block(&block, at)?);
                }
            }
            other => return Err(wrong("content", "a list", other)),
        }
    }
    Ok(Message {
        role,
        parts,
        name: None,
    })
}

fn read_block<N: Node>(block: &N, at: usize) -> Result<Part<N::Text>> {
    if block.shape() != Shape::Map {
        return Err(no_block(block, at));
    }
    let present = |key| block.get(key).filter(|value| !value.is_null());
    if let Some(text) = present("text") {
        let path = || wrong(&format!("content[{at}].text"), "a string", text.shape());
        return text_part(&text, Place::BlockText(at as u32)).ok_or_else(path);
    }
    if let Some(call) = present("toolUse") {
        return read_call(&call, at);
    }
    if let Some(result) = present("toolResult") {
        return read_result(&result, at);
    }
    if block
        .get("type")
        .is_some_and(|kind| kind.shape() == Shape::Text)
    {
        let kind = block.get("type");
        let is_foreign = |kind: &N| kind.is_str("tool_use") || kind.is_str("tool_result");
        if kind.as_ref().is_some_and(is_foreign) {
            return Err(foreign(&format!("content[{at}]"), Dialect::Anthropic));
        }
    }
    let kind = if present("reasoningContent").is_some() {
        PartKind::Reasoning
    } else if present("image").is_some() {
        PartKind::Image
    } else if present("audio").is_some() {
        PartKind::Audio
    } else if present("document").is_some() || present("video").is_some() {
        PartKind::File
    } else {
        PartKind::Opaque
    };
    whole(kind, Place::Block(at as u32), block, 2)
}

fn read_call<N: Node>(call: &N, at: usize) -> Result<Part<N::Text>> {
    let path = |field: &str| format!("content[{at}].toolUse{field}");
    if call.shape() != Shape::Map {
        return Err(wrong(&path(""), "an object", call.shape()));
    }
    let id = optional_text(call, "toolUseId", || path(".toolUseId"))?;
    let name = optional_text(call, "name", || path(".name"))?;
    let body = match call.get("input") {
        None => Body::Empty,
        // A streamed reply that was cut leaves the arguments as a piece of JSON text.
        Some(input) => match input.text() {
            Some(text) => Body::Text(text),
            None if input.is_null() => Body::Empty,
            None => Body::Value(input.capture_below(4)?),
        },
    };
    let mut call = part(PartKind::Call, Place::ToolUseInput(at as u32), body);
    call.key = Some(Box::new(CallKey { id, name }));
    Ok(call)
}

fn read_result<N: Node>(result: &N, at: usize) -> Result<Part<N::Text>> {
    let path = |field: &str| format!("content[{at}].toolResult{field}");
    if result.shape() != Shape::Map {
        return Err(wrong(&path(""), "an object", result.shape()));
    }
    let id = optional_text(result, "toolUseId", || path(".toolUseId"))?;
    let content = result.get("content").filter(|value| !value.is_null());
    let body = match content {
        None => Body::Empty,
        Some(content) if content.shape() == Shape::List => {
            for index in 0..content.len() {
                let Some(block) = content.item(index) else {
                    break;
                };
                let path = || path(&format!(".content[{index}]"));
                if block.shape() != Shape::Map {
                    return Err(wrong(&path(), "an object", block.shape()));
                }
                let text = block.get("text").filter(|text| !text.is_null());
                if let Some(text) = text.filter(|text| text.shape() != Shape::Text) {
                    return Err(wrong(&(path() + ".text"), "a string", text.shape()));
                }
            }
            Body::Value(content.capture_below(4)?)
        }
        Some(other) => return Err(wrong(&path(".content"), "a list", other.shape())),
    };
    let mut part = part(PartKind::Result, Place::ToolResultContent(at as u32), body);
    part.key = Some(Box::new(CallKey { id, name: None }));
    part.is_error = result
        .get("status")
        .is_some_and(|status| status.is_str("error"));
    Ok(part)
}
