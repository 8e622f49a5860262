//! What messages cost: the texts of their parts, and the framing around them.
//!
//! Exact where the provider published a formula and the counter has its vocabulary: plain text in
//! the `openai` dialect. Everything else is a documented estimate, and [`is_exact`] says which is
//! which. Base64 payloads are never counted as text. Each text is counted once; texts are copied
//! only for a foreign counter, which is asked once for a whole batch.

use crate::dialect::Dialect;
use crate::error::Result;
use crate::message::{Body, Message, Part, PartKind, Place, Role};
use crate::node::{Text, Value};
use crate::tokens::Counter;

/// Tokens of an image whose size is not looked at: the most that a standard Claude model takes for
/// one, and more than the tile formula of gpt-4o gives for any size.
///
/// # Source
/// Anthropic documentation, vision page, read 2026-08-21: at most 1,568 after the resize.
pub const IMAGE_TOKENS: u32 = 1_568;

/// Tokens of a sound whose length is not looked at: an estimate for about half a minute.
///
/// # Source
/// Gemini documentation: 32 tokens a second; no figure is published for the other dialects.
pub const AUDIO_TOKENS: u32 = 1_000;

/// Tokens of a document whose pages are not looked at: an estimate for one page, as text and as
/// an image.
///
/// # Source
/// [`IMAGE_TOKENS`] for the page's image and about as much for its text.
pub const FILE_TOKENS: u32 = 3_000;

/// Tokens of a call in `openai` and of the framing of its result, beside the arguments and twice the
/// name: the answer carries it again.
///
/// # Source
/// Measured on recorded requests: 5 on gpt-4o (four requests, exactly), 10 on gpt-5-mini (one). The
/// higher, since none is published.
pub const CALL_TOKENS: u32 = 10;

/// Tokens of a `tool_use` block in `anthropic` and of the framing of its result, beside the name
/// and the input. With the call, because a result whose content is replaced costs its text alone.
///
/// # Source
/// Measured on recorded requests to Claude 4 to 5: a call and its result cost 28 to 57 beside
/// their texts and the framing of two messages, most of them about 40.
pub const TOOL_USE_TOKENS: u32 = 40;

/// Tokens that frame messages and requests in a dialect. A value, so that the figures of one model
/// can replace the dialect's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatRules {
    /// Around each message.
    pub per_message: u32,
    /// Of the role of each message.
    pub per_role: u32,
    /// For a `name`, beside its text.
    pub per_name: u32,
    /// Once a request.
    pub per_request: u32,
    /// Whether the figures are the provider's own.
    pub exact: bool,
}

impl ChatRules {
    /// The figures of a dialect.
    ///
    /// # Source
    /// `openai`: the `OpenAI` cookbook's formula for gpt-3.5-turbo-0613 and later, exact for plain
    /// text. `anthropic`: a third-party figure of about 7 a request, and the same figures for a
    /// message as an estimate, since none are published. The other dialects likewise: nothing is
    /// published for them.
    pub fn of(dialect: Dialect) -> Self {
        let (per_request, exact) = match dialect {
            Dialect::OpenAi => (3, true),
            Dialect::Responses => (3, false),
            Dialect::Anthropic | Dialect::Gemini | Dialect::Bedrock => (7, false),
        };
        Self {
            per_message: 3,
            per_role: 1,
            per_name: 1,
            per_request,
            exact,
        }
    }

    /// Tokens of a request beside its messages and tools.
    pub fn request_tokens(&self) -> u32 {
        self.per_request
    }

    /// Tokens of a further message without a name, beside its parts.
    pub fn inserted_message_tokens(&self) -> u32 {
        self.per_message + self.per_role
    }
}

/// Whether the count of this message is the provider's own, given an exact counter.
pub fn is_exact<T>(message: &Message<T>, rules: &ChatRules) -> bool {
    rules.exact
        && message.role != Role::Tool
        && message
            .parts
            .iter()
            .all(|part| part.kind == PartKind::Text && !matches!(part.place, Place::Field(_)))
}

/// Tokens of a message beside its parts: framing, role, name.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub fn message_overhead<T: Text>(
    message: &Message<T>,
    rules: &ChatRules,
    counter: &Counter,
) -> Result<u32> {
    let framing = rules.inserted_message_tokens();
    match &message.name {
        None => Ok(framing),
        Some(name) => {
            let name = name.with(|name| counter.count(name))?;
            Ok(framing + rules.per_name + name)
        }
    }
}

/// Fills `tokens` of every part.
///
/// # Errors
/// `counter_failed`, only from a foreign counter; `tokens` are unchanged then.
pub fn count_message_parts<T: Text>(messages: &mut [Message<T>], counter: &Counter) -> Result<()> {
    let parts = messages.iter_mut().flat_map(|message| &mut message.parts);
    count_all(parts, counter)
}

/// [`count_message_parts`] for parts that are no longer in messages.
///
/// # Errors
/// As there.
pub fn count_parts<T: Text>(parts: &mut [Part<T>], counter: &Counter) -> Result<()> {
    count_all(parts.iter_mut(), counter)
}

fn count_all<'a, T: Text>(
    parts: impl Iterator<Item = &'a mut Part<T>>,
    counter: &Counter,
) -> Result<()> {
    if counter.foreign_source().is_some() {
        return count_in_one_batch(parts, counter);
    }
    for part in parts {
        let mut tokens = 0_u32;
        let mut failure = None;
        let fixed = visit(part, &mut |text| match counter.count(text) {
            Ok(count) => tokens = tokens.saturating_add(count),
            Err(error) => failure = Some(error),
        });
        match failure {
            None => part.tokens = tokens.saturating_add(fixed),
            Some(error) => return Err(error),
        }
    }
    Ok(())
}

fn count_in_one_batch<'a, T: Text>(
    parts: impl Iterator<Item = &'a mut Part<T>>,
    counter: &Counter,
) -> Result<()> {
    let mut texts = Vec::new();
    let mut rows = Vec::new();
    for part in parts {
        let first = texts.len();
        let fixed = visit(part, &mut |text| texts.push(text.to_owned()));
        rows.push((part, first..texts.len(), fixed));
    }
    let views: Vec<&str> = texts.iter().map(String::as_str).collect();
    let counts = counter.count_many(&views)?;
    for (part, range, fixed) in rows {
        let counts = counts.get(range).unwrap_or_default();
        part.tokens = counts
            .iter()
            .fold(fixed, |sum, count| sum.saturating_add(*count));
    }
    Ok(())
}

/// Shows every text of a part to `count` and returns the tokens that come on top.
fn visit<T: Text>(part: &Part<T>, count: &mut impl FnMut(&str)) -> u32 {
    match part.kind {
        PartKind::Text => {
            visit_body(&part.body, count);
            0
        }
        PartKind::Call => visit_call(part, count),
        PartKind::Result => visit_result(part, count),
        PartKind::Reasoning => match &part.body {
            Body::Value(Value::List(items)) => items.iter().fold(0_u32, |sum, item| {
                sum.saturating_add(visit_reasoning(item, count))
            }),
            Body::Value(value) => visit_reasoning(value, count),
            body => {
                visit_body(body, count);
                0
            }
        },
        PartKind::Image => IMAGE_TOKENS,
        PartKind::Audio => AUDIO_TOKENS,
        PartKind::File => match &part.body {
            Body::Value(value) => visit_file(value, count),
            _ => FILE_TOKENS,
        },
        PartKind::Opaque => match &part.body {
            Body::Value(value) => visit_block(value, count),
            body => {
                visit_body(body, count);
                0
            }
        },
    }
}

fn visit_call<T: Text>(part: &Part<T>, count: &mut impl FnMut(&str)) -> u32 {
    let is_block = matches!(part.place, Place::BlockInput(_) | Place::ToolUseInput(_));
    if let Some(name) = part.key.as_ref().and_then(|key| key.name.as_ref()) {
        name.with(&mut *count);
        if !is_block {
            name.with(&mut *count);
        }
    }
    visit_body(&part.body, count);
    if is_block {
        TOOL_USE_TOKENS
    } else {
        CALL_TOKENS
    }
}

fn visit_result<T: Text>(part: &Part<T>, count: &mut impl FnMut(&str)) -> u32 {
    match &part.body {
        Body::Value(Value::List(blocks)) => blocks.iter().fold(0_u32, |sum, block| {
            sum.saturating_add(visit_block(block, count))
        }),
        // Gemini's response of one text: the key around it says nothing.
        Body::Value(value) => match value.only_text() {
            Some(text) => {
                text.with(count);
                0
            }
            None => visit_block(value, count),
        },
        body => {
            visit_body(body, count);
            0
        }
    }
}

fn visit_body<T: Text>(body: &Body<T>, count: &mut impl FnMut(&str)) {
    match body {
        Body::Text(text) => text.with(count),
        Body::Value(value) => count(&value.to_json()),
        Body::Empty => {}
    }
}

fn is_type<T: Text>(block: &Value<T>, expected: &str) -> bool {
    block
        .get("type")
        .and_then(Value::as_text)
        .is_some_and(|found| found.with(|found| found == expected))
}

/// What a block inside a result is, by its `type`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Image,
    Audio,
    File,
    /// It has no `type`: its keys tell.
    Bare,
    Other,
}

impl Form {
    fn of(kind: &str) -> Self {
        match kind {
            "text" | "input_text" | "output_text" => Self::Text,
            "image" | "image_url" | "input_image" | "computer_screenshot" => Self::Image,
            "input_audio" => Self::Audio,
            "document" | "file" | "input_file" => Self::File,
            _ => Self::Other,
        }
    }
}

/// A block inside a result, or one this version does not know.
fn visit_block<T: Text>(block: &Value<T>, count: &mut impl FnMut(&str)) -> u32 {
    let kind = block.get("type").and_then(Value::as_text);
    let form = kind.map_or(Form::Bare, |kind| kind.with(Form::of));
    match form {
        Form::Text | Form::Bare => {
            if let Some(text) = block.get("text").and_then(Value::as_text) {
                text.with(count);
                return 0;
            }
        }
        Form::Image => return IMAGE_TOKENS,
        Form::Audio => return AUDIO_TOKENS,
        Form::File => return visit_file(block, count),
        Form::Other => {}
    }
    if form == Form::Bare {
        if block.get("image").is_some() {
            return IMAGE_TOKENS;
        }
        if block.get("document").is_some() || block.get("video").is_some() {
            return FILE_TOKENS;
        }
        if let Some(value) = block.get("json") {
            count(&value.to_json());
            return 0;
        }
        let streams = ["stdout", "stderr"].map(|key| block.get(key).and_then(Value::as_text));
        if streams.iter().any(Option::is_some) {
            for text in streams.into_iter().flatten() {
                text.with(&mut *count);
            }
            return 0;
        }
    }
    let mut json = String::new();
    let fixed = write_without_payloads(block, &mut json);
    count(&json);
    fixed
}

/// A document: its text where it has one.
fn visit_file<T: Text>(block: &Value<T>, count: &mut impl FnMut(&str)) -> u32 {
    let source = block.get("source");
    if let Some(source) = source.filter(|source| is_type(source, "text"))
        && let Some(text) = source.get("data").and_then(Value::as_text)
    {
        text.with(count);
        return 0;
    }
    FILE_TOKENS
}

/// Reasoning: its text; signatures are proofs, not input; what is encrypted by its size.
fn visit_reasoning<T: Text>(value: &Value<T>, count: &mut impl FnMut(&str)) -> u32 {
    for key in ["reasoningContent", "reasoningText"] {
        if let Some(inner) = value.get(key) {
            return visit_reasoning(inner, count);
        }
    }
    for key in ["thinking", "text", "summary", "reasoning"] {
        if let Some(text) = value.get(key).and_then(Value::as_text) {
            text.with(count);
            return 0;
        }
    }
    let data = value.get("data").or_else(|| value.get("redactedContent"));
    if let Some(data) = data.and_then(Value::as_text) {
        return data.with(encrypted_tokens);
    }
    let mut json = String::new();
    let fixed = write_without_payloads(value, &mut json);
    count(&json);
    fixed
}

/// An estimate for text that only the provider can read: three bytes in four characters of base64,
/// four bytes a token.
fn encrypted_tokens(base64: &str) -> u32 {
    u32::try_from(base64.len() / 4 * 3 / 4).unwrap_or(u32::MAX)
}

/// Strings of this many bytes and more may be payloads; no identifier is that long.
const PAYLOAD_BYTES: usize = 64;

/// Writes a block as JSON with its payloads left out, and returns the tokens they stand for.
fn write_without_payloads<T: Text>(value: &Value<T>, out: &mut String) -> u32 {
    match value {
        Value::List(items) => {
            let mut fixed = 0_u32;
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                fixed = fixed.saturating_add(write_without_payloads(item, out));
            }
            out.push(']');
            fixed
        }
        Value::Map(entries) => {
            let mut fixed = 0_u32;
            out.push('{');
            for (at, (key, value)) in entries.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                key.write_json(out);
                out.push(':');
                let payload = value
                    .as_text()
                    .and_then(|text| key.with(|key| text.with(|text| payload_tokens(key, text))));
                let more = match payload {
                    Some(tokens) => {
                        out.push_str("\"\"");
                        tokens
                    }
                    None => write_without_payloads(value, out),
                };
                fixed = fixed.saturating_add(more);
            }
            out.push('}');
            fixed
        }
        plain => {
            plain.write_json(out);
            0
        }
    }
}

/// What a payload under `key` stands for; `None` if it is text.
fn payload_tokens(key: &str, text: &str) -> Option<u32> {
    if text.len() < PAYLOAD_BYTES {
        return None;
    }
    match key {
        "signature" | "thoughtSignature" | "thought_signature" => Some(0),
        _ if key.starts_with("encrypted") => Some(encrypted_tokens(text)),
        _ if text.starts_with("data:") && text.contains(";base64,") => Some(IMAGE_TOKENS),
        "data" | "file_data" if is_base64(text) => Some(IMAGE_TOKENS),
        _ => None,
    }
}

fn is_base64(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_\r\n".contains(&byte))
}
