//! Reader of the `openai-responses` dialect: the items of the Responses API.
//!
//! A message is one item of `input`. Calls and reasoning read as the assistant's, outputs as a
//! tool's; a compaction reads as the developer's, because it stands for what came before and is
//! never dropped. Items that hold call and result in one (`web_search_call`, `mcp_call`, …) and items of
//! unknown kind are opaque: the server pairs them itself.

use super::{
    Dialect, foreign, no_block, optional_text, part, result_body, shape_of, text_part, whole, wrong,
};
use crate::error::Result;
use crate::message::{Body, CallKey, Field, Message, Part, PartKind, Place, Role};
use crate::node::{Node, Shape};

const ROLES: &str = "user, assistant, system or developer";

/// What an item is, by its `type`.
#[derive(Clone, Copy)]
enum Form {
    Message,
    /// A call whose content lives at this place.
    Call(Place),
    /// A person is asked whether a call may run.
    Request,
    /// A result whose content lives at this place.
    Output(Place),
    /// The person's answer.
    Response,
    Reasoning,
    /// Settings that stay in force, and what stands for everything before it.
    Standing,
    /// A call of a kind to come, if it has a `call_id`.
    NewCall,
    /// A result of a kind to come, if it has a `call_id`.
    NewOutput,
    Opaque,
}

impl Form {
    fn of(kind: &str) -> Self {
        match kind {
            "message" => Self::Message,
            "function_call" => Self::Call(Place::Arguments),
            "custom_tool_call" => Self::Call(Place::Input),
            "local_shell_call" => Self::Call(Place::Field(Field::LocalShellAction)),
            "shell_call" => Self::Call(Place::Field(Field::ShellAction)),
            "computer_call" => Self::Call(Place::Field(Field::ComputerAction)),
            "apply_patch_call" => Self::Call(Place::Field(Field::Operation)),
            "tool_search_call" => Self::Call(Place::Field(Field::Arguments)),
            "program" => Self::Call(Place::Field(Field::Code)),
            "mcp_approval_request" => Self::Request,
            "function_call_output" | "custom_tool_call_output" => Self::Output(Place::Output),
            "apply_patch_call_output" | "local_shell_call_output" => {
                Self::Output(Place::OutputText)
            }
            "shell_call_output" => Self::Output(Place::ShellOutput),
            "computer_call_output" => Self::Output(Place::Field(Field::Output)),
            "tool_search_output" => Self::Output(Place::Field(Field::Tools)),
            "program_output" => Self::Output(Place::ResultText),
            "mcp_approval_response" => Self::Response,
            "reasoning" => Self::Reasoning,
            "configuration_update" | "compaction" => Self::Standing,
            _ if kind.ends_with("_call") => Self::NewCall,
            _ if kind.ends_with("_output") => Self::NewOutput,
            _ => Self::Opaque,
        }
    }
}

pub(super) fn read<N: Node>(node: &N) -> Result<Message<N::Text>> {
    if node.shape() != Shape::Map {
        return Err(wrong("the item", "an object", node.shape()));
    }
    let kind = node.get("type").filter(|kind| !kind.is_null());
    let form = match &kind {
        Some(kind) => match kind.with_str(Form::of) {
            Some(form) => form,
            None => return Err(wrong("type", "a string", kind.shape())),
        },
        None if node.get("role").is_some() => Form::Message,
        // A reference to a stored item may be its id alone.
        None if node.get("id").is_some() => Form::Opaque,
        None => return Err(wrong("type", "a string", Shape::Null)),
    };
    let (role, parts) = match form {
        Form::Message => return read_message(node),
        Form::Call(place) => (Role::Assistant, read_call(node, place)?),
        Form::Request => {
            let id = optional_text(node, "id", || "id".into())?;
            let name = optional_text(node, "name", || "name".into())?;
            let place = Place::Field(Field::Arguments);
            let body = field(node, "arguments")?;
            (
                Role::Assistant,
                keyed(PartKind::Call, place, body, id, name),
            )
        }
        Form::Output(place) => (Role::Tool, read_output(node, place)?),
        Form::Response => {
            let path = || "approval_request_id".into();
            let id = optional_text(node, "approval_request_id", path)?;
            let place = Place::Field(Field::Approve);
            let body = field(node, "approve")?;
            (Role::Tool, keyed(PartKind::Result, place, body, id, None))
        }
        Form::Reasoning => (Role::Assistant, item(PartKind::Reasoning, node)?),
        Form::Standing => (Role::Developer, item(PartKind::Opaque, node)?),
        Form::NewCall | Form::NewOutput => {
            let is_call = matches!(form, Form::NewCall);
            match optional_text(node, "call_id", || "call_id".into())? {
                None => (Role::Assistant, item(PartKind::Opaque, node)?),
                Some(id) => {
                    let body = Body::Value(node.capture()?);
                    let (role, kind) = if is_call {
                        (Role::Assistant, PartKind::Call)
                    } else {
                        (Role::Tool, PartKind::Result)
                    };
                    (role, keyed(kind, Place::Item, body, Some(id), None))
                }
            }
        }
        // What declares tools or settings carries a role of its own.
        Form::Opaque => {
            let role = node.get("role").and_then(|role| role.with_str(role_of));
            let role = role.flatten().unwrap_or(Role::Assistant);
            (role, item(PartKind::Opaque, node)?)
        }
    };
    Ok(Message {
        role,
        parts,
        name: None,
    })
}

fn role_of(role: &str) -> Option<Role> {
    match role {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "system" => Some(Role::System),
        "developer" => Some(Role::Developer),
        _ => None,
    }
}

fn read_message<N: Node>(node: &N) -> Result<Message<N::Text>> {
    let role = node.get("role");
    let role = match role.as_ref().and_then(|role| role.with_str(role_of)) {
        Some(Some(role)) => role,
        Some(None) => {
            let is_result = |role: &N| role.is_str("tool") || role.is_str("function");
            if role.as_ref().is_some_and(is_result) {
                return Err(foreign("the message", Dialect::OpenAi));
            }
            return Err(wrong("role", ROLES, Shape::Text));
        }
        None => return Err(wrong("role", ROLES, shape_of(role.as_ref()))),
    };
    if node.field_count() != Some(2)
        && node
            .get("tool_calls")
            .is_some_and(|calls| !calls.is_empty())
    {
        return Err(foreign("tool_calls", Dialect::OpenAi));
    }
    let mut parts = Vec::new();
    if let Some(content) = node.get("content") {
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
            "input_text" | "output_text" | "text" => PartKind::Text,
            "input_image" | "computer_screenshot" => PartKind::Image,
            "input_audio" => PartKind::Audio,
            "input_file" => PartKind::File,
            "reasoning_text" | "summary_text" => PartKind::Reasoning,
            "tool_use" => PartKind::Call,
            "tool_result" => PartKind::Result,
            _ => PartKind::Opaque,
        })
    });
    match found {
        Some(PartKind::Text) => super::block_text(block, at),
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

fn read_call<N: Node>(node: &N, place: Place) -> Result<Vec<Part<N::Text>>> {
    let id = optional_text(node, "call_id", || "call_id".into())?;
    let name = optional_text(node, "name", || "name".into())?;
    let (place, body) = match place {
        Place::Arguments => (place, text_or_value(node, "arguments")?),
        Place::Input => (place, text_or_value(node, "input")?),
        // Newer computer calls carry several actions.
        Place::Field(Field::ComputerAction)
            if node.get("action").is_none_or(|action| action.is_null())
                && node
                    .get("actions")
                    .is_some_and(|actions| !actions.is_null()) =>
        {
            (
                Place::Field(Field::ComputerActions),
                field(node, "actions")?,
            )
        }
        Place::Field(fixed) => (place, field(node, fixed.name())?),
        _ => (place, Body::Empty),
    };
    Ok(keyed(PartKind::Call, place, body, id, name))
}

fn read_output<N: Node>(node: &N, place: Place) -> Result<Vec<Part<N::Text>>> {
    // The output of the old local shell has no `call_id`: it answers the first open call.
    let id = optional_text(node, "call_id", || "call_id".into())?;
    let body = match place {
        Place::Output | Place::OutputText => {
            result_body(node.get("output").as_ref(), 1, || "output".into())?
        }
        Place::ResultText => text_or_value(node, "result")?,
        Place::ShellOutput => field(node, "output")?,
        Place::Field(fixed) => field(node, fixed.name())?,
        _ => Body::Empty,
    };
    let mut parts = keyed(PartKind::Result, place, body, id, None);
    let failed = node
        .get("status")
        .is_some_and(|status| status.is_str("failed"));
    for part in &mut parts {
        part.is_error = failed;
    }
    Ok(parts)
}

fn item<N: Node>(kind: PartKind, node: &N) -> Result<Vec<Part<N::Text>>> {
    Ok(vec![whole(kind, Place::Item, node, 0)?])
}

fn keyed<T>(
    kind: PartKind,
    place: Place,
    body: Body<T>,
    id: Option<T>,
    name: Option<T>,
) -> Vec<Part<T>> {
    let mut part = part(kind, place, body);
    part.key = Some(Box::new(CallKey { id, name }));
    vec![part]
}

/// A field that may be anything; its shape is the server's business.
fn field<N: Node>(node: &N, key: &'static str) -> Result<Body<N::Text>> {
    let Some(value) = node.get(key) else {
        return Ok(Body::Empty);
    };
    if let Some(text) = value.text() {
        return Ok(Body::Text(text));
    }
    if value.is_null() {
        return Ok(Body::Empty);
    }
    Ok(Body::Value(value.capture_below(1)?))
}

/// Arguments are a string; some frameworks keep the parsed object.
fn text_or_value<N: Node>(node: &N, key: &'static str) -> Result<Body<N::Text>> {
    match node.get(key) {
        Some(value) if !matches!(value.shape(), Shape::Text | Shape::Null | Shape::Map) => {
            Err(wrong(key, "a string or an object", value.shape()))
        }
        _ => field(node, key),
    }
}
