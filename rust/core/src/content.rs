//! The content text of a message, read without judging it: for the one-call functions, which never
//! fail on what a message holds.
//!
//! Content text is the string content, the text blocks, and the text of tool results; calls,
//! reasoning, images and unknown blocks have none. A message that cannot be read is one text, its
//! canonical JSON.

use crate::dialect::Dialect;
use crate::error::Result;
use crate::message::Role;
use crate::node::{Node, Shape, Text, Value};
use crate::tokens::Counter;
use crate::window::Link;

/// What the one-call functions see of a message.
#[derive(Debug)]
pub struct Content<T> {
    /// Who speaks; `None` where that cannot be read.
    pub role: Option<Role>,
    /// Its part in a step.
    pub link: Link,
    /// The content text in order.
    pub texts: Vec<T>,
    /// The arguments of the calls.
    pub calls: Vec<Value<T>>,
    /// The message could not be read: whoever knows its representation may fill in a text.
    pub is_unreadable: bool,
}

impl<T> Default for Content<T> {
    fn default() -> Self {
        Self {
            role: None,
            link: Link::Plain,
            texts: Vec::new(),
            calls: Vec::new(),
            is_unreadable: false,
        }
    }
}

/// Who speaks in a message.
pub fn role<N: Node>(message: &N) -> Option<Role> {
    let Some(role) = message.get("role").filter(|role| !role.is_null()) else {
        return role_of_item(message);
    };
    role.with_str(|role| match role {
        "user" => Some(Role::User),
        "assistant" | "model" => Some(Role::Assistant),
        "tool" | "function" => Some(Role::Tool),
        "system" => Some(Role::System),
        "developer" => Some(Role::Developer),
        _ => None,
    })?
}

/// Items of the Responses API tell by their type who speaks; a content of Gemini's that has parts
/// and no role is the user's.
fn role_of_item<N: Node>(message: &N) -> Option<Role> {
    let by_type = message.get("type").and_then(|kind| {
        kind.with_str(|kind| match kind {
            "reasoning" | "program" | "mcp_approval_request" | "compaction" => {
                Some(Role::Assistant)
            }
            "mcp_approval_response" => Some(Role::Tool),
            _ if kind.ends_with("_call") => Some(Role::Assistant),
            _ if kind.ends_with("_output") => Some(Role::Tool),
            _ => None,
        })?
    });
    let is_content = || message.get("parts").is_some_and(|parts| !parts.is_empty());
    by_type.or_else(|| is_content().then_some(Role::User))
}

/// The part of a message in a step. Without a dialect the signs of all of them count.
///
/// Only looks: a message that cannot be read is [`Link::Plain`].
pub fn link<N: Node>(message: &N, dialect: Option<Dialect>) -> Link {
    role(message).map_or(Link::Plain, |role| link_of(message, role, dialect))
}

fn link_of<N: Node>(message: &N, role: Role, dialect: Option<Dialect>) -> Link {
    let may_be = |one: Dialect| dialect.is_none_or(|dialect| dialect == one);
    let by_field = may_be(Dialect::OpenAi);
    let has = |key: &'static str, of: Form| has_block(message, key, of, dialect);
    match role {
        Role::System | Role::Developer => Link::Instruction,
        Role::Tool if by_field || (may_be(Dialect::Responses) && is_item(message)) => Link::Results,
        Role::User | Role::Tool if has("tool_result", Form::Result) => Link::Results,
        Role::Assistant if may_be(Dialect::Responses) && is_item(message) => Link::Item,
        Role::Assistant if by_field && has_call_field(message) => Link::Calls,
        Role::Assistant if has("tool_use", Form::Call) => Link::Calls,
        Role::User | Role::Assistant | Role::Tool => Link::Plain,
    }
}

/// Whether this is a call, a result or reasoning as an item of its own.
fn is_item<N: Node>(message: &N) -> bool {
    // Items have a type; messages of a role and a content have none.
    if message.field_count() == Some(2) && message.get("content").is_some() {
        return false;
    }
    message
        .get("type")
        .and_then(|kind| {
            kind.with_str(|kind| match kind {
                "reasoning"
                | "program"
                | "function_call"
                | "mcp_approval_request"
                | "mcp_approval_response" => true,
                // What has no id to pair by holds its result itself.
                _ if kind.ends_with("_call") => message.get("call_id").is_some(),
                _ => kind.ends_with("_output"),
            })
        })
        .unwrap_or(false)
}

fn has_call_field<N: Node>(message: &N) -> bool {
    // Role and content alone leave no room for calls.
    if message.field_count() == Some(2) && message.get("content").is_some() {
        return false;
    }
    message
        .get("tool_calls")
        .is_some_and(|calls| !calls.is_empty())
        || message
            .get("function_call")
            .is_some_and(|call| call.shape() == Shape::Map)
}

/// What is looked for among the blocks of a message.
#[derive(Clone, Copy)]
enum Form {
    Call,
    Result,
}

/// Whether a block is a call or a result: by its type, or by its one key.
fn has_block<N: Node>(message: &N, kind: &str, form: Form, dialect: Option<Dialect>) -> bool {
    let may_be = |one: Dialect| dialect.is_none_or(|dialect| dialect == one);
    let is_there = |block: &N, key| block.get(key).is_some_and(|value| !value.is_null());
    if let Some(content) = message.get("content") {
        return (0..content.len()).any(|at| {
            let Some(block) = content.item(at) else {
                return false;
            };
            match block.get("type") {
                Some(found) => may_be(Dialect::Anthropic) && found.is_str(kind),
                None if may_be(Dialect::Bedrock) => match form {
                    Form::Call => is_there(&block, "toolUse"),
                    Form::Result => is_there(&block, "toolResult"),
                },
                None => false,
            }
        });
    }
    if !may_be(Dialect::Gemini) {
        return false;
    }
    let Some(parts) = message.get("parts") else {
        return false;
    };
    (0..parts.len()).any(|at| {
        parts.item(at).is_some_and(|part| match form {
            Form::Call => is_there(&part, "functionCall") || is_there(&part, "function_call"),
            Form::Result => {
                is_there(&part, "functionResponse") || is_there(&part, "function_response")
            }
        })
    })
}

/// Reads the content text of a message.
pub fn read<N: Node>(message: &N, dialect: Option<Dialect>, calls: bool) -> Content<N::Text> {
    let role = role(message);
    let mut content = Content {
        role,
        link: role.map_or(Link::Plain, |role| link_of(message, role, dialect)),
        is_unreadable: role.is_none(),
        ..Content::default()
    };
    if !content.is_unreadable {
        content.is_unreadable = !read_texts(message, &mut content.texts);
    }
    if content.is_unreadable {
        content.texts.clear();
    } else if calls && matches!(content.link, Link::Calls | Link::Item) {
        read_calls(message, &mut content.calls);
    }
    content
}

/// Whether the content could be read.
fn read_texts<N: Node>(message: &N, texts: &mut Vec<N::Text>) -> bool {
    let Some(content) = message.get("content").filter(|content| !content.is_null()) else {
        if let Some(parts) = message.get("parts") {
            return read_parts(&parts, texts);
        }
        for key in ["output", "result"] {
            if let Some(output) = message.get(key) {
                read_output(&output, texts);
            }
        }
        return true;
    };
    if let Some(text) = content.text() {
        texts.push(text);
        return true;
    }
    match content.shape() {
        Shape::List => read_blocks(&content, texts, true),
        // Reasoning has a list or nothing there; no other content is read.
        _ => false,
    }
}

/// The output of an item: a string, blocks, or the streams of a shell.
fn read_output<N: Node>(output: &N, texts: &mut Vec<N::Text>) {
    if let Some(text) = output.text() {
        texts.push(text);
        return;
    }
    for at in 0..output.len() {
        let Some(block) = output.item(at) else { break };
        for key in ["text", "stdout", "stderr"] {
            texts.extend(block.get(key).and_then(|text| text.text()));
        }
    }
}

/// The parts of a content of Gemini's.
fn read_parts<N: Node>(parts: &N, texts: &mut Vec<N::Text>) -> bool {
    if !matches!(parts.shape(), Shape::List | Shape::Null) {
        return false;
    }
    for at in 0..parts.len() {
        let Some(part) = parts.item(at) else { break };
        let is_thought = part.get("thought").and_then(|thought| thought.bool()) == Some(true);
        if let Some(text) = part.get("text").and_then(|text| text.text()) {
            if !is_thought {
                texts.push(text);
            }
            continue;
        }
        let response = part
            .get("functionResponse")
            .or_else(|| part.get("function_response"))
            .and_then(|response| response.get("response"));
        if let Some(response) = response {
            push_leaves(&response, texts);
        }
    }
    true
}

/// Every string inside a value.
fn push_leaves<N: Node>(value: &N, texts: &mut Vec<N::Text>) {
    fn walk<T>(value: Value<T>, texts: &mut Vec<T>) {
        match value {
            Value::Text(text) => texts.push(text),
            Value::List(items) => {
                for item in items {
                    walk(item, texts);
                }
            }
            Value::Map(entries) => {
                for (_, value) in entries {
                    walk(value, texts);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    if let Ok(value) = value.capture_below(4) {
        walk(value, texts);
    }
}

fn read_blocks<N: Node>(blocks: &N, texts: &mut Vec<N::Text>, results: bool) -> bool {
    (0..blocks.len()).all(|at| {
        let Some(block) = blocks.item(at) else {
            return true;
        };
        // Some frameworks mix bare strings into the list.
        if let Some(text) = block.text() {
            texts.push(text);
            return true;
        }
        let Some(kind) = block.get("type") else {
            return read_bare_block(&block, texts);
        };
        let is_text = kind.with_str(|kind| matches!(kind, "text" | "input_text" | "output_text"));
        if is_text == Some(true) {
            let text = block.get("text").and_then(|text| text.text());
            let is_there = text.is_some();
            texts.extend(text);
            return is_there;
        }
        if results && kind.is_str("tool_result") {
            let Some(content) = block.get("content") else {
                return true;
            };
            if let Some(text) = content.text() {
                texts.push(text);
                return true;
            }
            return read_blocks(&content, texts, false);
        }
        true
    })
}

/// A block without a type: Bedrock's, whose one key tells what it is.
fn read_bare_block<N: Node>(block: &N, texts: &mut Vec<N::Text>) -> bool {
    if let Some(text) = block.get("text") {
        let text = text.text();
        let is_there = text.is_some();
        texts.extend(text);
        return is_there;
    }
    if let Some(value) = block.get("json") {
        push_leaves(&value, texts);
        return true;
    }
    if let Some(result) = block.get("toolResult") {
        return match result.get("content") {
            Some(content) if content.shape() == Shape::List => read_blocks(&content, texts, false),
            Some(content) => content.is_null(),
            None => true,
        };
    }
    BARE_KEYS.into_iter().any(|key| block.get(key).is_some())
}

/// Keys of the blocks of Bedrock's that have no text.
const BARE_KEYS: [&str; 9] = [
    "toolUse",
    "reasoningContent",
    "image",
    "document",
    "video",
    "audio",
    "cachePoint",
    "guardContent",
    "citationsContent",
];

fn read_calls<N: Node>(message: &N, calls: &mut Vec<Value<N::Text>>) {
    let mut keep = |arguments: Option<N>| {
        calls.extend(arguments.and_then(|arguments| arguments.capture_below(4).ok()));
    };
    if let Some(list) = message.get("tool_calls") {
        for at in 0..list.len() {
            let Some(call) = list.item(at) else { break };
            keep(match call.get("function") {
                Some(function) => function.get("arguments"),
                None => call.get("custom").and_then(|custom| custom.get("input")),
            });
        }
    }
    keep(
        message
            .get("function_call")
            .and_then(|call| call.get("arguments")),
    );
    for key in ["arguments", "input", "action", "operation", "code"] {
        keep(message.get(key));
    }
    if let Some(blocks) = message.get("content") {
        for at in 0..blocks.len() {
            let Some(block) = blocks.item(at) else { break };
            match block.get("type") {
                Some(kind) if kind.is_str("tool_use") => keep(block.get("input")),
                Some(_) => {}
                None => keep(block.get("toolUse").and_then(|call| call.get("input"))),
            }
        }
    }
    if let Some(parts) = message.get("parts") {
        for at in 0..parts.len() {
            let Some(part) = parts.item(at) else { break };
            let call = part
                .get("functionCall")
                .or_else(|| part.get("function_call"));
            keep(call.and_then(|call| call.get("args")));
        }
    }
}

/// Tokens of the texts together, or `None` if they are more than `limit`; stops counting soon
/// after they are.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub fn count_within<T: Text>(texts: &[T], counter: &Counter, limit: u64) -> Result<Option<u64>> {
    let mut left = limit;
    for text in texts {
        let tokens = text.with(|text| count_text(text, counter, left))?;
        match tokens.and_then(|tokens| left.checked_sub(tokens)) {
            Some(rest) => left = rest,
            None => return Ok(None),
        }
    }
    Ok(Some(limit - left))
}

/// Tokens of one text; `None` if it is plain that they are more than `limit`.
fn count_text(text: &str, counter: &Counter, limit: u64) -> Result<Option<u64>> {
    // Looked at twice only where the text may be the one that does not fit: a token of a built-in
    // counter has at least one byte.
    if text.len() as u64 > limit
        && counter.foreign_source().is_none()
        && !counter.fits(text, u32::try_from(limit).unwrap_or(u32::MAX))?
    {
        return Ok(None);
    }
    Ok(Some(u64::from(counter.count(text)?)))
}

/// Tokens of each message, asked of a foreign counter in one call; `None` for a built-in counter,
/// which had better count one by one and stop.
///
/// # Errors
/// `counter_failed`.
pub fn count_batch<T: Text>(
    messages: &[Content<T>],
    counter: &Counter,
) -> Result<Option<Vec<u64>>> {
    if counter.foreign_source().is_none() {
        return Ok(None);
    }
    let texts = messages.iter().flat_map(|message| &message.texts);
    let texts: Vec<String> = texts.map(|text| text.with(str::to_owned)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut counts = counter.count_many(&texts)?.into_iter().map(u64::from);
    let sum = |message: &Content<T>| counts.by_ref().take(message.texts.len()).sum();
    Ok(Some(messages.iter().map(sum).collect()))
}

/// [`count_within`] for each message, on this thread; one call of a foreign counter for all.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub fn count_each<T: Text>(
    messages: &[Content<T>],
    counter: &Counter,
    limit: u64,
) -> Result<Vec<Option<u64>>> {
    if let Some(counts) = count_batch(messages, counter)? {
        return Ok(counts.into_iter().map(Some).collect());
    }
    messages
        .iter()
        .map(|message| count_within(&message.texts, counter, limit))
        .collect()
}
