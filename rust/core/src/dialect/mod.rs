//! Provider message formats: which there are, which one a history is in, and how to read it.
//!
//! A reader turns one message of the caller into a [`Message`]: role, parts, the place of each
//! part. It is written once per dialect against [`Node`]. Fields it does not know are ignored here
//! and kept by rendering, which edits the caller's own object. Reading costs in proportion to the
//! message and copies no text that the representation can share.

pub mod convert;
pub mod form;
pub mod lint;
pub mod repair;

mod anthropic;
mod bedrock;
mod flaws;
mod gemini;
pub(crate) mod open_calls;
mod openai;
mod responses;

use std::fmt;

use crate::error::{Error, ErrorKind, Result, shown_name};
use crate::message::{Body, Message, Part, PartKind, Place};
use crate::node::{Node, Shape};

/// A provider's message format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// `OpenAI` Chat Completions, and the many servers that speak it.
    OpenAi,
    /// `OpenAI` Responses: items.
    Responses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini `generateContent`: contents.
    Gemini,
    /// Amazon Bedrock Converse.
    Bedrock,
}

impl Dialect {
    /// Every dialect, in the order of the documentation.
    pub const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::Responses,
        Self::Anthropic,
        Self::Gemini,
        Self::Bedrock,
    ];

    /// The public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
        }
    }

    /// The dialect of this name.
    ///
    /// # Errors
    /// `unknown_dialect`.
    pub fn from_name(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|dialect| dialect.name() == name)
            .ok_or_else(|| {
                let known = Self::ALL.map(Self::name).join(", ");
                let message = format!("no dialect {}; known: {known}", shown_name(name));
                Error::new(ErrorKind::UnknownDialect, message)
            })
    }
}

/// What a model asks of a request beside its dialect; nothing, where the model is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about a model"
)]
pub struct Traits {
    /// Reasoning is bound to everything before it.
    pub prefix_bound_reasoning: bool,
    /// The last message must not be the assistant's.
    pub no_prefill: bool,
    /// Messages with calls keep the reasoning that came with them.
    pub reasoning_with_calls: bool,
    /// Calls of the current turn keep their signatures.
    pub signed_calls: bool,
}

impl Traits {
    /// With the trait of this name as well; false if there is none.
    pub fn set(&mut self, name: &str) -> bool {
        let flag = match name {
            "prefix_bound_reasoning" => &mut self.prefix_bound_reasoning,
            "no_prefill" => &mut self.no_prefill,
            "reasoning_with_calls" => &mut self.reasoning_with_calls,
            "signed_calls" => &mut self.signed_calls,
            _ => return false,
        };
        *flag = true;
        true
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Messages that are looked at after one that is probably `openai`, before that is believed:
/// plain messages of `openai-responses` look the same.
const PROBATION: usize = 32;

/// The dialect that the content of `messages` gives away; `None` if it would read the same in
/// several.
///
/// Stops soon after the first message that decides. It only looks: a message that cannot be read
/// decides nothing.
///
/// # Example
/// ```
/// # use satchel_core::dialect::{Dialect, detect};
/// let messages = [serde_json::json!({"role": "tool", "tool_call_id": "a", "content": "42"})];
/// assert_eq!(detect(&messages), Some(Dialect::OpenAi));
/// let items = [serde_json::json!({"type": "function_call_output", "call_id": "a", "output": "42"})];
/// assert_eq!(detect(&items), Some(Dialect::Responses));
/// ```
pub fn detect<N: Node>(messages: impl IntoIterator<Item = N>) -> Option<Dialect> {
    let mut probable_since = None;
    for (index, message) in messages.into_iter().enumerate() {
        match tell(&message, index == 0) {
            Tell::Sure(dialect) => return Some(dialect),
            Tell::ProbablyOpenAi => {
                probable_since.get_or_insert(index);
            }
            Tell::Nothing => {}
        }
        if probable_since.is_some_and(|since| index >= since + PROBATION) {
            break;
        }
    }
    probable_since.map(|_| Dialect::OpenAi)
}

/// What one message says about its dialect.
enum Tell {
    Sure(Dialect),
    ProbablyOpenAi,
    Nothing,
}

fn tell<N: Node>(message: &N, is_first: bool) -> Tell {
    if message.shape() != Shape::Map {
        return Tell::Nothing;
    }
    let content = message.get("content");
    let is_plain = content.is_some() && message.field_count() == Some(2);
    let kind = if is_plain { None } else { message.get("type") };
    let is_item = kind.as_ref().and_then(|kind| {
        kind.with_str(|kind| match kind {
            // Anthropic's own answers are of this type too, but their content is a list.
            "message" => content
                .as_ref()
                .is_some_and(|content| content.shape() == Shape::Text),
            "function_call"
            | "reasoning"
            | "item_reference"
            | "compaction"
            | "program"
            | "mcp_list_tools"
            | "mcp_approval_request"
            | "mcp_approval_response" => true,
            _ => kind.ends_with("_call") || kind.ends_with("_output"),
        })
    });
    if is_item == Some(true) {
        return Tell::Sure(Dialect::Responses);
    }
    if content.is_none() && message.get("parts").is_some_and(|parts| !parts.is_null()) {
        return Tell::Sure(Dialect::Gemini);
    }
    let by_role = message.get("role").and_then(|role| {
        role.with_str(|role| match role {
            "tool" | "function" => Tell::Sure(Dialect::OpenAi),
            "developer" => Tell::ProbablyOpenAi,
            // Anthropic takes system messages only in the middle of a conversation.
            "system" if is_first => Tell::ProbablyOpenAi,
            "model" => Tell::Sure(Dialect::Gemini),
            _ => Tell::Nothing,
        })
    });
    let by_role = match by_role {
        Some(Tell::Sure(dialect)) => return Tell::Sure(dialect),
        Some(by_role) => by_role,
        // Every other message has a role.
        None => return Tell::Nothing,
    };
    if let Some(content) = &content {
        let blocks = (0..content.len()).filter_map(|index| content.item(index));
        if let Some(dialect) = blocks.into_iter().find_map(|block| tell_block(&block)) {
            return Tell::Sure(dialect);
        }
    }
    let has_fields = || {
        ["tool_calls", "function_call", "reasoning_content"]
            .into_iter()
            .any(|key| message.get(key).is_some_and(|value| !value.is_null()))
    };
    if !is_plain && has_fields() {
        return Tell::Sure(Dialect::OpenAi);
    }
    by_role
}

fn tell_block<N: Node>(block: &N) -> Option<Dialect> {
    if let Some(kind) = block.get("type") {
        return kind.with_str(|kind| match kind {
            "image_url" | "input_audio" | "file" | "refusal" => Some(Dialect::OpenAi),
            "input_text" | "output_text" | "input_image" | "input_file" => Some(Dialect::Responses),
            "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "image"
            | "document" | "server_tool_use" => Some(Dialect::Anthropic),
            _ => None,
        })?;
    }
    [
        "text",
        "toolUse",
        "toolResult",
        "reasoningContent",
        "image",
        "document",
        "video",
        "cachePoint",
        "guardContent",
        "citationsContent",
    ]
    .into_iter()
    .any(|key| block.get(key).is_some())
    .then_some(Dialect::Bedrock)
}

/// Reads the message at raw index `index` of a history: role, parts in order, their places, their
/// content captured. `tokens` of the parts stay 0.
///
/// # Errors
/// `invalid_message` for a wrong type or a missing field, `too_deep` beyond
/// [`MAX_DEPTH`](crate::node::MAX_DEPTH), `dialect_changed` for calls or results in the form of
/// another dialect. All carry the index, most a path such as `content[2].text`, none the content
/// itself.
///
/// # Example
/// ```
/// # use satchel_core::dialect::{Dialect, read_message};
/// # use satchel_core::message::{PartKind, Role};
/// let json = serde_json::json!({"role": "user", "content": "What is the weather?"});
/// let message = read_message(Dialect::OpenAi, &&json, 0).unwrap();
/// assert_eq!(message.role, Role::User);
/// assert_eq!(message.parts[0].kind, PartKind::Text);
/// ```
pub fn read_message<N: Node>(dialect: Dialect, node: &N, index: usize) -> Result<Message<N::Text>> {
    match dialect {
        Dialect::OpenAi => openai::read(node),
        Dialect::Responses => responses::read(node),
        Dialect::Anthropic => anthropic::read(node),
        Dialect::Gemini => gemini::read(node),
        Dialect::Bedrock => bedrock::read(node),
    }
    .map_err(|error| error.at(index))
}

/// Reads the `system` argument of a request as one message of role system: a string, a list of
/// text blocks (strings in Gemini's), or Gemini's content with `parts`. Cache points and guarded
/// blocks of Bedrock are opaque.
///
/// # Errors
/// As [`read_message`], without an index.
pub fn read_system<N: Node>(node: &N) -> Result<Message<N::Text>> {
    let mut parts = Vec::with_capacity(1);
    let content = node.get("parts").filter(|parts| !parts.is_null());
    match (node.shape(), content) {
        (Shape::Text, _) => parts.extend(text_part(node, Place::Content)),
        (Shape::List, _) => read_system_blocks(node, Place::BlockText, &mut parts)?,
        (Shape::Map, Some(content)) => {
            read_system_blocks(&content, Place::PartText, &mut parts)?;
        }
        (other, _) => return Err(wrong("system", "a string or a list of text blocks", other)),
    }
    Ok(Message {
        role: crate::message::Role::System,
        parts,
        name: None,
    })
}

fn read_system_blocks<N: Node>(
    blocks: &N,
    place: fn(u32) -> Place,
    parts: &mut Vec<Part<N::Text>>,
) -> Result<()> {
    for at in 0..blocks.len() {
        let Some(block) = blocks.item(at) else { break };
        let is_bedrock = |key| block.get(key).is_some_and(|value| !value.is_null());
        if let Some(text) = text_part(&block, Place::Block(at as u32)) {
            parts.push(text);
            continue;
        }
        match block.get("text") {
            Some(text) if text.shape() == Shape::Text => {
                parts.extend(text_part(&text, place(at as u32)));
            }
            None if is_bedrock("cachePoint") || is_bedrock("guardContent") => {
                parts.push(whole(PartKind::Opaque, Place::Block(at as u32), &block, 1)?);
            }
            found => {
                let shape = found.map_or(Shape::Null, |text| text.shape());
                return Err(wrong(&format!("system[{at}].text"), "a string", shape));
            }
        }
    }
    Ok(())
}

/// The error for a value of the wrong type: `content[2].text must be a string, got a number`.
#[cold]
fn wrong(path: &str, expected: &str, got: Shape) -> Error {
    let got = got.name();
    Error::new(
        ErrorKind::InvalidMessage,
        format!("{path} must be {expected}, got {got}"),
    )
}

/// The error for calls and results in the form of another dialect: read as something unknown they
/// would be lost.
#[cold]
fn foreign(what: &str, dialect: Dialect) -> Error {
    Error::new(
        ErrorKind::DialectChanged,
        format!("{what} belongs to the dialect {dialect}"),
    )
}

/// The error for a block that is no object; a cycle of lists is told as one.
#[cold]
fn no_block<N: Node>(block: &N, at: usize) -> Error {
    match block.capture_below(2) {
        Err(error) if error.kind() == ErrorKind::TooDeep => error,
        _ => wrong(&format!("content[{at}]"), "an object", block.shape()),
    }
}

fn shape_of<N: Node>(node: Option<&N>) -> Shape {
    node.map_or(Shape::Null, Node::shape)
}

/// The string field `key`, missing and null alike `None`; `path` names it in the error.
fn optional_text<N: Node>(
    node: &N,
    key: &'static str,
    path: impl FnOnce() -> String,
) -> Result<Option<N::Text>> {
    let Some(value) = node.get(key) else {
        return Ok(None);
    };
    if let Some(text) = value.text() {
        return Ok(Some(text));
    }
    match value.shape() {
        Shape::Null => Ok(None),
        other => Err(wrong(&path(), "a string", other)),
    }
}

fn part<T>(kind: PartKind, place: Place, body: Body<T>) -> Part<T> {
    Part {
        kind,
        is_error: false,
        place,
        tokens: 0,
        body,
        key: None,
    }
}

/// A text part, if `node` is a string.
fn text_part<N: Node>(node: &N, place: Place) -> Option<Part<N::Text>> {
    node.text()
        .map(|text| part(PartKind::Text, place, Body::Text(text)))
}

/// The text of a block of type `text`.
fn block_text<N: Node>(block: &N, at: usize) -> Result<Part<N::Text>> {
    let text = block.get("text");
    text.as_ref()
        .and_then(|text| text_part(text, Place::BlockText(at as u32)))
        .ok_or_else(|| {
            wrong(
                &format!("content[{at}].text"),
                "a string",
                shape_of(text.as_ref()),
            )
        })
}

/// The whole value, kept as a part that is never edited inside.
fn whole<N: Node>(kind: PartKind, place: Place, node: &N, depth: usize) -> Result<Part<N::Text>> {
    Ok(part(kind, place, Body::Value(node.capture_below(depth)?)))
}

/// The content of a result: a string, a list of blocks, or nothing.
fn result_body<N: Node>(
    content: Option<&N>,
    depth: usize,
    path: impl Fn() -> String,
) -> Result<Body<N::Text>> {
    let Some(content) = content else {
        return Ok(Body::Empty);
    };
    if let Some(text) = content.text() {
        return Ok(Body::Text(text));
    }
    match content.shape() {
        Shape::Null => Ok(Body::Empty),
        Shape::List => {
            for at in 0..content.len() {
                let Some(block) = content.item(at) else { break };
                check_result_block(&block, || format!("{}[{at}]", path()))?;
            }
            Ok(Body::Value(content.capture_below(depth)?))
        }
        other => Err(wrong(&path(), "a string or a list of blocks", other)),
    }
}

fn check_result_block<N: Node>(block: &N, path: impl Fn() -> String) -> Result<()> {
    if block.shape() != Shape::Map {
        return Err(wrong(&path(), "an object", block.shape()));
    }
    let kind = block.get("type");
    let is_text = kind
        .as_ref()
        .and_then(|kind| {
            kind.with_str(|kind| matches!(kind, "text" | "input_text" | "output_text"))
        })
        .ok_or_else(|| {
            let shape = shape_of(kind.as_ref());
            wrong(&format!("{}.type", path()), "a string", shape)
        })?;
    let text = block.get("text");
    if is_text && shape_of(text.as_ref()) != Shape::Text {
        let shape = shape_of(text.as_ref());
        return Err(wrong(&format!("{}.text", path()), "a string", shape));
    }
    Ok(())
}
