//! Reader of the `openai` dialect: Chat Completions messages.
//!
//! Parts come in the order reasoning, content, refusal, audio, calls. A `tool` (or legacy
//! `function`) message is one result whose place is the whole content.

use super::{
    Dialect, block_text, foreign, no_block, optional_text, part, result_body, shape_of, whole,
    wrong,
};
use crate::error::Result;
use crate::message::{Body, CallKey, Field, Message, Part, PartKind, Place, Role};
use crate::node::{Node, Shape};

const ROLES: &str = "system, developer, user, assistant, tool or function";

/// Fields in which servers return reasoning; each must go back unchanged where it is required.
const REASONING: [Field; 4] = [
    Field::ReasoningContent,
    Field::Reasoning,
    Field::ReasoningDetails,
    Field::ThinkingBlocks,
];

pub(super) fn read<N: Node>(node: &N) -> Result<Message<N::Text>> {
    if node.shape() != Shape::Map {
        return Err(wrong("the message", "an object", node.shape()));
    }
    let role = node.get("role");
    let known = role.as_ref().and_then(|role| {
        role.with_str(|role| match role {
            "user" => Some((Role::User, false)),
            "assistant" => Some((Role::Assistant, false)),
            "tool" => Some((Role::Tool, false)),
            "system" => Some((Role::System, false)),
            "developer" => Some((Role::Developer, false)),
            "function" => Some((Role::Tool, true)),
            _ => None,
        })
    });
    let (role, is_legacy_result) = match known {
        Some(Some(known)) => known,
        Some(None) => return Err(wrong("role", ROLES, Shape::Text)),
        None => return Err(wrong("role", ROLES, shape_of(role.as_ref()))),
    };
    let content = node.get("content");
    // Most messages are a role and a content: nothing else is looked for then.
    let is_plain = content.is_some() && node.field_count() == Some(2);
    let name = if is_plain {
        None
    } else {
        optional_text(node, "name", || "name".into())?
    };
    if role == Role::Tool {
        return read_result(node, content.as_ref(), name, is_legacy_result);
    }
    let has_fields = role == Role::Assistant && !is_plain;
    let mut parts = Vec::with_capacity(1);
    if has_fields {
        for field in REASONING {
            read_field(node, field, PartKind::Reasoning, &mut parts)?;
        }
    }
    if let Some(content) = &content {
        read_content(content, &mut parts)?;
    }
    if has_fields {
        read_field(node, Field::Refusal, PartKind::Text, &mut parts)?;
        read_field(node, Field::Audio, PartKind::Audio, &mut parts)?;
        read_calls(node, &mut parts)?;
    }
    Ok(Message { role, parts, name })
}

fn read_result<N: Node>(
    node: &N,
    content: Option<&N>,
    name: Option<N::Text>,
    is_legacy: bool,
) -> Result<Message<N::Text>> {
    let id = if is_legacy {
        None
    } else {
        optional_text(node, "tool_call_id", || "tool_call_id".into())?
    };
    let body = result_body(content, 1, || "content".into())?;
    let mut result = part(PartKind::Result, Place::Content, body);
    result.key = Some(Box::new(CallKey { id, name }));
    Ok(Message {
        role: Role::Tool,
        parts: vec![result],
        name: None,
    })
}

fn read_content<N: Node>(content: &N, parts: &mut Vec<Part<N::Text>>) -> Result<()> {
    if let Some(text) = super::text_part(content, Place::Content) {
        parts.push(text);
        return Ok(());
    }
    match content.shape() {
        Shape::Null => Ok(()),
        Shape::List => {
            parts.reserve(content.len());
            for at in 0..content.len() {
                let Some(block) = content.item(at) else { break };
                parts.push(read_block(&block, at)?);
            }
            Ok(())
        }
        other => Err(wrong("content", "a string, a list or null", other)),
    }
}

fn read_block<N: Node>(block: &N, at: usize) -> Result<Part<N::Text>> {
    if block.shape() != Shape::Map {
        return Err(no_block(block, at));
    }
    let kind = block.get("type");
    let found = kind.as_ref().and_then(|kind| {
        kind.with_str(|kind| match kind {
            "text" => PartKind::Text,
            "image_url" | "image" => PartKind::Image,
            "input_audio" => PartKind::Audio,
            "file" | "document" => PartKind::File,
            "thinking" | "redacted_thinking" | "reasoning" => PartKind::Reasoning,
            "tool_use" => PartKind::Call,
            "tool_result" => PartKind::Result,
            _ => PartKind::Opaque,
        })
    });
    match found {
        Some(PartKind::Text) => block_text(block, at),
        Some(PartKind::Call | PartKind::Result) => {
            Err(foreign(&format!("content[{at}]"), Dialect::Anthropic))
        }
        Some(kind) => whole(kind, Place::Block(at as u32), block, 2),
        None => {
            let shape = shape_of(kind.as_ref());
            Err(wrong(&format!("content[{at}].type"), "a string", shape))
        }
    }
}

/// A field of an assistant message beside its content, kept as it is.
fn read_field<N: Node>(
    node: &N,
    field: Field,
    kind: PartKind,
    parts: &mut Vec<Part<N::Text>>,
) -> Result<()> {
    let Some(value) = node.get(field.name()) else {
        return Ok(());
    };
    let place = Place::Field(field);
    if let Some(text) = value.text() {
        parts.push(part(kind, place, Body::Text(text)));
    } else if !value.is_null() {
        if kind == PartKind::Text {
            return Err(wrong(field.name(), "a string", value.shape()));
        }
        parts.push(whole(kind, place, &value, 1)?);
    }
    Ok(())
}

fn read_calls<N: Node>(node: &N, parts: &mut Vec<Part<N::Text>>) -> Result<()> {
    if let Some(calls) = node.get("tool_calls") {
        match calls.shape() {
            Shape::Null => {}
            Shape::List => {
                for at in 0..calls.len() {
                    let Some(call) = calls.item(at) else { break };
                    parts.push(read_call(&call, at)?);
                }
            }
            other => return Err(wrong("tool_calls", "a list or null", other)),
        }
    }
    // The legacy single call has no id; the next `function` message answers it.
    if let Some(call) = node.get("function_call") {
        match call.shape() {
            Shape::Null => {}
            Shape::Map => {
                let name = optional_text(&call, "name", || "function_call.name".into())?;
                let body = arguments(&call, "arguments", 2, || "function_call.arguments".into())?;
                let mut call = part(PartKind::Call, Place::Field(Field::FunctionCall), body);
                call.key = Some(Box::new(CallKey { id: None, name }));
                parts.push(call);
            }
            other => return Err(wrong("function_call", "an object or null", other)),
        }
    }
    Ok(())
}

fn read_call<N: Node>(call: &N, at: usize) -> Result<Part<N::Text>> {
    let path = |field: &str| format!("tool_calls[{at}]{field}");
    if call.shape() != Shape::Map {
        return Err(wrong(&path(""), "an object", call.shape()));
    }
    let id = optional_text(call, "id", || path(".id"))?;
    let function = call.get("function");
    let (name, body, place) = match (&function, call.get("custom")) {
        (Some(function), _) if function.shape() == Shape::Map => (
            optional_text(function, "name", || path(".function.name"))?,
            arguments(function, "arguments", 4, || path(".function.arguments"))?,
            Place::CallArguments(at as u32),
        ),
        // A custom tool takes free text instead of JSON arguments.
        (_, Some(custom)) if custom.shape() == Shape::Map => (
            optional_text(&custom, "name", || path(".custom.name"))?,
            arguments(&custom, "input", 4, || path(".custom.input"))?,
            Place::Field(Field::ToolCalls),
        ),
        (function, _) => {
            let shape = shape_of(function.as_ref());
            return Err(wrong(&path(".function"), "an object", shape));
        }
    };
    let mut part = part(PartKind::Call, place, body);
    part.key = Some(Box::new(CallKey { id, name }));
    Ok(part)
}

/// Arguments are JSON in a string; some frameworks keep the parsed object.
fn arguments<N: Node>(
    call: &N,
    key: &'static str,
    depth: usize,
    path: impl FnOnce() -> String,
) -> Result<Body<N::Text>> {
    let Some(value) = call.get(key) else {
        return Ok(Body::Empty);
    };
    if let Some(text) = value.text() {
        return Ok(Body::Text(text));
    }
    match value.shape() {
        Shape::Null => Ok(Body::Empty),
        Shape::Map => Ok(Body::Value(value.capture_below(depth)?)),
        other => Err(wrong(&path(), "a string or an object", other)),
    }
}
