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
    message.get("role")?.with_str(|role| match role {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "tool" | "function" => Some(Role::Tool),
        "system" => Some(Role::System),
        "developer" => Some(Role::Developer),
        _ => None,
    })?
}

/// The part of a message in a step. Without a dialect the signs of both count.
///
/// Only looks: a message that cannot be read is [`Link::Plain`].
pub fn link<N: Node>(message: &N, dialect: Option<Dialect>) -> Link {
    role(message).map_or(Link::Plain, |role| link_of(message, role, dialect))
}

fn link_of<N: Node>(message: &N, role: Role, dialect: Option<Dialect>) -> Link {
    let by_field = dialect != Some(Dialect::Anthropic);
    let by_block = dialect != Some(Dialect::OpenAi);
    match role {
        Role::System | Role::Developer => Link::Instruction,
        Role::Tool if by_field => Link::Results,
        Role::User if by_block && has_block(message, "tool_result") => Link::Results,
        Role::Assistant if by_field && has_call_field(message) => Link::Calls,
        Role::Assistant if by_block && has_block(message, "tool_use") => Link::Calls,
        Role::User | Role::Assistant | Role::Tool => Link::Plain,
    }
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

fn has_block<N: Node>(message: &N, kind: &str) -> bool {
    let Some(content) = message.get("content") else {
        return false;
    };
    (0..content.len()).any(|at| {
        content
            .item(at)
            .and_then(|block| block.get("type"))
            .is_some_and(|found| found.is_str(kind))
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
    } else if calls && content.link == Link::Calls {
        read_calls(message, &mut content.calls);
    }
    content
}

/// Whether the content could be read.
fn read_texts<N: Node>(message: &N, texts: &mut Vec<N::Text>) -> bool {
    let Some(content) = message.get("content") else {
        return true;
    };
    if let Some(text) = content.text() {
        texts.push(text);
        return true;
    }
    match content.shape() {
        Shape::Null => true,
        Shape::List => read_blocks(&content, texts, true),
        _ => false,
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
            return false;
        };
        if kind.is_str("text") {
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

fn read_calls<N: Node>(message: &N, calls: &mut Vec<Value<N::Text>>) {
    if let Some(list) = message.get("tool_calls") {
        let arguments = (0..list.len()).filter_map(|at| {
            let call = list.item(at)?;
            match call.get("function") {
                Some(function) => function.get("arguments"),
                None => call.get("custom")?.get("input"),
            }
        });
        calls.extend(arguments.filter_map(|arguments| arguments.capture_below(4).ok()));
    }
    let legacy = message.get("function_call");
    let legacy = legacy.and_then(|call| call.get("arguments"));
    calls.extend(legacy.and_then(|arguments| arguments.capture_below(2).ok()));
    if let Some(blocks) = message.get("content") {
        let inputs = (0..blocks.len()).filter_map(|at| {
            let block = blocks.item(at)?;
            let is_call = block.get("type")?.is_str("tool_use");
            if is_call { block.get("input") } else { None }
        });
        calls.extend(inputs.filter_map(|input| input.capture_below(3).ok()));
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
