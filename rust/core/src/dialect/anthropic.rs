//! Reader of the `anthropic` dialect: Messages API messages.
//!
//! One part per content block, in order. Blocks of server-side tools stay opaque: the server
//! pairs them itself.

use super::{
    Dialect, block_text, foreign, no_block, optional_text, part, result_body, shape_of, text_part,
    whole, wrong,
};
use crate::error::Result;
use crate::message::{Body, CallKey, Message, Part, PartKind, Place, Role};
use crate::node::{Node, Shape};

const ROLES: &str = "user, assistant or system";

pub(super) fn read<N: Node>(node: &N) -> Result<Message<N::Text>> {
    if node.shape() != Shape::Map {
        return Err(wrong("the message", "an object", node.shape()));
    }
    let role = node.get("role");
    let known = role.as_ref().and_then(|role| {
        role.with_str(|role| match role {
            "user" => Some(Role::User),
            "assistant" => Some(Role::Assistant),
            "system" => Some(Role::System),
            _ => None,
        })
    });
    let role = match known {
        Some(Some(role)) => role,
        Some(None)
            if role
                .as_ref()
                .is_some_and(|role| role.is_str("tool") || role.is_str("function")) =>
        {
            return Err(foreign("the message", Dialect::OpenAi));
        }
        Some(None) => return Err(wrong("role", ROLES, Shape::Text)),
        None => return Err(wrong("role", ROLES, shape_of(role.as_ref()))),
    };
    let content = node.get("content");
    let is_plain = content.is_some() && node.field_count() == Some(2);
    if !is_plain
        && node
            .get("tool_calls")
            .is_some_and(|calls| !calls.is_empty())
    {
        return Err(foreign("tool_calls", Dialect::OpenAi));
    }
    let mut parts = Vec::new();
    if let Some(content) = content {
        if let Some(text) = text_part(&content, Place::Content) {
            parts = vec![text];
        } else {
            match content.shape() {
                Shape::Null => {}
                Shape::List => {
                    parts.reserve_exact(content.len());
                    for at in 0..content.len() {
                        let Some(block) = content.item(at) else { break };
                        parts.push(read_block(&block, at)?);
                    }
                }
                other => return Err(wrong("content", "a string, a list or null", other)),
            }
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
    let kind = block.get("type");
    let found = kind.as_ref().and_then(|kind| {
        kind.with_str(|kind| match kind {
            "text" => PartKind::Text,
            "tool_use" => PartKind::Call,
            "tool_result" => PartKind::Result,
            "thinking" | "redacted_thinking" => PartKind::Reasoning,
            "image" => PartKind::Image,
            "document" => PartKind::File,
            _ => PartKind::Opaque,
        })
    });
    match found {
        Some(PartKind::Text) => block_text(block, at),
        Some(PartKind::Call) => read_call(block, at),
        Some(PartKind::Result) => read_result(block, at),
        Some(kind) => whole(kind, Place::Block(at as u32), block, 2),
        None => {
            let shape = shape_of(kind.as_ref());
            Err(wrong(&format!("content[{at}].type"), "a string", shape))
        }
    }
}

fn read_call<N: Node>(block: &N, at: usize) -> Result<Part<N::Text>> {
    let id = optional_text(block, "id", || format!("content[{at}].id"))?;
    let name = optional_text(block, "name", || format!("content[{at}].name"))?;
    let body = match block.get("input") {
        None => Body::Empty,
        // A streamed reply that was cut leaves the arguments as a piece of JSON text.
        Some(input) => match input.text() {
            Some(text) => Body::Text(text),
            None if input.is_null() => Body::Empty,
            None => Body::Value(input.capture_below(3)?),
        },
    };
    let mut call = part(PartKind::Call, Place::BlockInput(at as u32), body);
    call.key = Some(Box::new(CallKey { id, name }));
    Ok(call)
}

fn read_result<N: Node>(block: &N, at: usize) -> Result<Part<N::Text>> {
    let id = optional_text(block, "tool_use_id", || {
        format!("content[{at}].tool_use_id")
    })?;
    let body = result_body(block.get("content").as_ref(), 3, || {
        format!("content[{at}].content")
    })?;
    let mut result = part(PartKind::Result, Place::BlockContent(at as u32), body);
    result.key = Some(Box::new(CallKey { id, name: None }));
    if let Some(is_error) = block.get("is_error") {
        result.is_error = match is_error.bool() {
            Some(is_error) => is_error,
            None if is_error.is_null() => false,
            None => {
                let path = format!("content[{at}].is_error");
                return Err(wrong(&path, "a boolean", is_error.shape()));
            }
        };
    }
    Ok(result)
}
