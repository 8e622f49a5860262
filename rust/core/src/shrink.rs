//! Shortened parts: the lines that are kept, a note of what was left out, a pointer to all of it.
//!
//! A shortened part keeps its place, role and id. Texts, results and media are replaced by the kept
//! lines, each as it was, with one note; arguments become one placeholder object; reasoning and
//! blocks of unknown kind are never touched.

use crate::elements::Elements;
use crate::error::Result;
use crate::marker::{self, CHARACTERS, LINES, TOKENS, amount};
use crate::message::{Body, Part, PartKind};
use crate::node::{Text, Value};
use crate::page::Pointer;
use crate::plan::Settings;
use crate::prune::structure::Stub;
use crate::tokens::Counter;
use crate::tokens::chat::{argument_tokens, replaced_arguments};
use crate::tool_use::{ToolUse, key_argument, tool_uses};
use crate::transcript::Transcript;

/// Bytes of a part's text, without the line end after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes from `start` up to `end`.
    pub fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// How many bytes there are.
    pub fn bytes(self) -> u32 {
        self.end - self.start
    }

    /// Sorted spans, with those that overlap, or that only a line end and `slack` further bytes
    /// separate, as one.
    pub fn merged(sorted: &[Self], slack: u32) -> Vec<Self> {
        let mut merged: Vec<Self> = Vec::with_capacity(sorted.len());
        for span in sorted {
            match merged.last_mut() {
                Some(last) if span.start <= last.end.saturating_add(1 + slack) => {
                    last.end = last.end.max(span.end);
                }
                _ => merged.push(*span),
            }
        }
        merged
    }
}

/// The new content of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartEdit {
    /// Index of the part in [`Transcript::all_parts`].
    pub part: u32,
    /// The new text; for arguments, the JSON of the placeholder object.
    pub text: Box<str>,
    /// Tokens of the part with it.
    pub tokens: u32,
    /// The pointer it shows.
    pub pointer: Pointer,
    /// What of the original's text is in the new one, in order.
    pub kept: Box<[Span]>,
}

/// What is wanted of one part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Index of the part in [`Transcript::all_parts`].
    pub part: u32,
    /// Raw index of its message.
    pub message: u32,
    /// What is kept of its text, sorted; nothing makes it a stub.
    pub kept: Vec<Span>,
    /// What a stub names, the likeliest needed first; `None` for what stands where the text says
    /// most.
    pub names: Option<Vec<String>>,
    /// Whether a stub says no more than how much there was and where it is.
    pub is_least: bool,
    /// The elements of its text, where they are known already.
    pub(crate) elements: Option<Elements>,
}

impl Wanted {
    /// A stub.
    pub fn nothing(part: u32, message: u32) -> Self {
        Self {
            part,
            message,
            ..Self::default()
        }
    }
}

/// Edits that keep only some spans of parts, in order of the parts. One batched count for all of them.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub fn edited<T: Text>(
    transcript: &Transcript<T>,
    settings: &Settings,
    wanted: &[Wanted],
) -> Result<Vec<PartEdit>> {
    let mut edits = Vec::with_capacity(wanted.len());
    let mut uses: (u32, Vec<ToolUse>) = (u32::MAX, Vec::new());
    for one in wanted {
        let (part, message, kept) = (one.part as usize, one.message as usize, &one.kept);
        let content = &transcript.all_parts()[part];
        let offset = part - transcript.part_range(message).start;
        let pointer = settings.key.pointer(message, offset, content);
        let mut tokens = 0;
        let text = if content.kind == PartKind::Call {
            let arguments = argument_tokens(content, &settings.counter)?;
            let text = marker::arguments(pointer, arguments);
            let new = replaced_arguments(&text, &settings.counter)?;
            tokens = content.tokens.saturating_sub(arguments) + new;
            text
        } else if kept.is_empty() {
            let step = transcript.rows()[message].step;
            if content.kind == PartKind::Result && uses.0 != step && !one.is_least {
                uses = (step, tool_uses(transcript, step));
            }
            with_text(&content.body, |text| {
                let what = what_it_was(transcript, one, &uses.1);
                stub(content, text, pointer, one, &what)
            })
        } else {
            with_text(&content.body, |text| {
                let found = one.elements.is_none().then(|| Elements::of(text)).flatten();
                let elements = one.elements.as_ref().or(found.as_ref());
                elements
                    .and_then(|pieces| pieces.written(text, kept, &pointer.to_string()))
                    .unwrap_or_else(|| shortened(content, text, kept, pointer))
            })
        };
        edits.push(PartEdit {
            part: one.part,
            text: text.into(),
            tokens,
            pointer,
            kept: kept.as_slice().into(),
        });
    }
    let is_text =
        |edit: &PartEdit| transcript.all_parts()[edit.part as usize].kind != PartKind::Call;
    let texts: Vec<&str> = edits
        .iter()
        .filter(|edit| is_text(edit))
        .map(|edit| &*edit.text)
        .collect();
    let mut counts = settings.counter.count_many(&texts)?.into_iter();
    for edit in edits.iter_mut().filter(|edit| is_text(edit)) {
        edit.tokens = counts.next().unwrap_or(u32::MAX);
    }
    Ok(edits)
}

/// The text of a result or text part as it is read: list content is its text blocks in order, an
/// object its only string or else its JSON.
pub fn with_text<T: Text, R>(body: &Body<T>, read: impl FnOnce(&str) -> R) -> R {
    match body {
        Body::Text(text) => text.with(read),
        Body::Value(value) => read(&block_texts(value)),
        Body::Empty => read(""),
    }
}

/// Tokens of a part once `text` stands in its place.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub fn edited_tokens<T: Text>(part: &Part<T>, text: &str, counter: &Counter) -> Result<u32> {
    if part.kind == PartKind::Call {
        let kept = part.tokens.saturating_sub(argument_tokens(part, counter)?);
        return Ok(kept + replaced_arguments(text, counter)?);
    }
    counter.count(text)
}

fn block_texts<T: Text>(value: &Value<T>) -> String {
    if !matches!(value, Value::List(_)) {
        return match value.only_text() {
            Some(text) => text.with(str::to_owned),
            None => value.to_json(),
        };
    }
    let mut out = String::new();
    let mut add = |text: &str| {
        if !out.is_empty() && !text.is_empty() {
            out.push('\n');
        }
        out.push_str(text);
    };
    for item in value.items() {
        if let Some(text) = item.as_text() {
            text.with(&mut add);
        }
        for text in ["text", "stdout", "stderr"]
            .into_iter()
            .filter_map(|key| item.get(key).and_then(Value::as_text))
        {
            text.with(&mut add);
        }
        if let Some(json) = item.get("json") {
            add(&json.to_json());
        }
    }
    out
}

/// The kept lines of a text. Where something is left out first a marker says how much of all of it
/// is, and where it is; where something is left out again a marker says how much.
fn shortened<T: Text>(part: &Part<T>, text: &str, kept: &[Span], pointer: Pointer) -> String {
    let note = note(part, text, kept, pointer);
    let mut out = String::new();
    let mut is_noted = false;
    let mut end = 0;
    for span in kept {
        let (start, stop) = (span.start as usize, span.end as usize);
        let (Some(gap), Some(words)) = (text.get(end..start), text.get(start..stop)) else {
            continue;
        };
        let is_gap = !gap.trim().is_empty();
        if is_gap && !is_noted {
            out.push_str(&note);
            out.push('\n');
            is_noted = true;
        } else if is_gap {
            push_gap(&mut out, gap);
        }
        if !is_at_line(text, start) {
            out.push('…');
        }
        out.push_str(words);
        if !matches!(text.as_bytes().get(stop), None | Some(b'\n')) {
            out.push('…');
        }
        out.push('\n');
        end = stop;
    }
    if !is_noted {
        out.push_str(&note);
    } else if let Some(rest) = text.get(end..).filter(|rest| !rest.trim().is_empty()) {
        push_gap(&mut out, rest);
        out.pop();
    }
    out
}

/// The most characters that a stub says beside amount and pointer, and the share of its original
/// that it takes at most.
const STUB_CHARS: usize = 200;
const STUB_SHARE: usize = 8;

/// The tool of a result and the argument that says most, or nothing.
fn what_it_was<T: Text>(transcript: &Transcript<T>, wanted: &Wanted, uses: &[ToolUse]) -> String {
    let Ok(at) = uses.binary_search_by_key(&wanted.part, |one| one.result) else {
        return String::new();
    };
    let tool = uses[at].tool.clone().unwrap_or_default();
    let argument = uses[at].call.map_or_else(String::new, |call| {
        key_argument(&transcript.all_parts()[call as usize])
    });
    format!("{tool} {argument}")
}

/// One line for a part of which nothing is kept.
fn stub<T: Text>(
    part: &Part<T>,
    text: &str,
    pointer: Pointer,
    wanted: &Wanted,
    what: &str,
) -> String {
    let is_text = matches!(part.kind, PartKind::Text | PartKind::Result);
    let max_chars = (text.len() / STUB_SHARE).min(STUB_CHARS);
    if !is_text || wanted.is_least {
        return note(part, text, &[], pointer);
    }
    Stub {
        what,
        names: wanted.names.as_deref(),
        amount: &amount_of(part, text, &[]),
        pointer: &pointer.to_string(),
        max_chars,
    }
    .line(text)
}

/// What is left out between two kept lines; pieces of one line have their own signs.
fn push_gap(out: &mut String, gap: &str) {
    let lines = gap.lines().filter(|line| !line.trim().is_empty()).count();
    if gap.contains('\n') {
        out.push_str(&marker::marker(&amount(lines, LINES, true), ""));
        out.push('\n');
    }
}

fn is_at_line(text: &str, at: usize) -> bool {
    at == 0 || text.as_bytes()[at - 1] == b'\n'
}

/// The marker that says how much was left out of a text and where all of it is.
fn note<T: Text>(part: &Part<T>, text: &str, kept: &[Span], pointer: Pointer) -> String {
    marker::marker(&amount_of(part, text, kept), &pointer.to_string())
}

/// As many lines as [`str::lines`] gives.
fn line_count(text: &str) -> usize {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    ends + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// How much of a part is left out.
fn amount_of<T: Text>(part: &Part<T>, text: &str, kept: &[Span]) -> String {
    let what = match part.kind {
        PartKind::Result if part.is_error => "failed result, ",
        PartKind::Image => "image, ",
        PartKind::Audio => "audio, ",
        PartKind::File => "file, ",
        _ => "",
    };
    let words = kept
        .iter()
        .filter_map(|span| text.get(span.start as usize..span.end as usize));
    let lines = line_count(text);
    let amount = match lines {
        0 => amount(part.tokens as usize, TOKENS, false),
        1 => {
            let all = text.chars().count();
            let shown: usize = words.map(|words| words.chars().count()).sum();
            amount(all.saturating_sub(shown), CHARACTERS, false)
        }
        _ => {
            let shown: usize = words.map(line_count).sum();
            amount(lines.saturating_sub(shown), LINES, false)
        }
    };
    format!("{what}{amount}")
}
