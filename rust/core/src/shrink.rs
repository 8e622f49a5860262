//! The lower levels of a step: what its parts become when it is trimmed or stubbed.
//!
//! A shrunk step keeps its messages, roles, calls and ids. Texts, results and media are replaced
//! by a shorter text with a pointer; arguments stay whole or become one placeholder object;
//! reasoning and blocks of unknown kind are never touched.

use crate::error::Result;
use crate::message::{Body, Part, PartKind};
use crate::node::{Text, Value};
use crate::page::{PageKey, Pointer, first_line};
use crate::policy::Policy;
use crate::prune::text::head_and_tail;
use crate::step::Step;
use crate::tokens::Counter;
use crate::transcript::Transcript;

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
}

/// A step at a lower level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shrunk {
    /// The parts that change, in order.
    pub edits: Vec<PartEdit>,
    /// Tokens of the whole step with them.
    pub tokens: u32,
}

/// The lower levels that a step can take; each saves tokens over the one above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lower {
    /// Long parts shortened.
    pub trimmed: Option<Shrunk>,
    /// Every replaceable part one line.
    pub stub: Option<Shrunk>,
}

/// Characters of the original's first line that a stub shows as its claim.
const CLAIM_CHARS: usize = 60;

/// A part must be this much longer than the limit before trimming is tried, since the marker and
/// the cut at a line end take their share.
const TRIM_SLACK: f64 = 1.25;

/// A new text that waits for its count.
struct Draft {
    step: usize,
    stub: bool,
    part: u32,
    text: String,
    pointer: Pointer,
    /// Tokens of the part that stay whatever the text (the name of a call).
    kept_tokens: u32,
}

/// Builds the lower levels of several steps, with one batched count for all of them.
///
/// `is_protected` says which messages must keep their texts. The result has one entry per step.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub fn lower_levels<T: Text>(
    transcript: &Transcript<T>,
    steps: &[Step],
    policy: &Policy,
    key: &PageKey,
    counter: &Counter,
    is_protected: impl Fn(usize) -> bool,
) -> Result<Vec<Lower>> {
    let mut drafts = Vec::new();
    for (slot, step) in steps.iter().enumerate() {
        for message in step.first as usize..step.end as usize {
            let range = transcript.part_range(message);
            for (offset, part) in transcript.parts(message).iter().enumerate() {
                if is_protected(message) && part.kind != PartKind::Result {
                    continue;
                }
                let pointer = || key.pointer(message, offset, part);
                let index = (range.start + offset) as u32;
                draft(part, index, slot, policy, counter, pointer, &mut drafts)?;
            }
        }
    }
    let texts: Vec<&str> = drafts.iter().map(|draft| draft.text.as_str()).collect();
    let counts = counter.count_many(&texts)?;
    let mut levels = vec![(Vec::new(), Vec::new()); steps.len()];
    for (draft, count) in drafts.into_iter().zip(counts) {
        let tokens = draft.kept_tokens + count;
        if tokens >= transcript.all_parts()[draft.part as usize].tokens {
            continue;
        }
        let edit = PartEdit {
            part: draft.part,
            text: draft.text.into(),
            tokens,
            pointer: draft.pointer,
        };
        let (trimmed, stub) = &mut levels[draft.step];
        if draft.stub {
            stub.push(edit);
        } else {
            trimmed.push(edit);
        }
    }
    Ok(levels
        .into_iter()
        .zip(steps)
        .map(|((trimmed, stub), step)| {
            let shrunk = |edits: Vec<PartEdit>| {
                let saved: u32 = edits
                    .iter()
                    .map(|edit| transcript.all_parts()[edit.part as usize].tokens - edit.tokens)
                    .sum();
                Shrunk {
                    edits,
                    tokens: step.tokens - saved,
                }
            };
            let trimmed = Some(shrunk(trimmed)).filter(|level| !level.edits.is_empty());
            let below = trimmed.as_ref().map_or(step.tokens, |level| level.tokens);
            let stub = Some(shrunk(stub)).filter(|level| level.tokens < below);
            Lower { trimmed, stub }
        })
        .collect())
}

fn draft<T: Text>(
    part: &Part<T>,
    index: u32,
    step: usize,
    policy: &Policy,
    counter: &Counter,
    pointer: impl Fn() -> Pointer,
    drafts: &mut Vec<Draft>,
) -> Result<()> {
    let replaceable = part.place.is_replaceable();
    if part.tokens < policy.stub_from_tokens.min(policy.trim_tokens) {
        return Ok(());
    }
    let long = f64::from(part.tokens) > f64::from(policy.trim_tokens) * TRIM_SLACK;
    match part.kind {
        PartKind::Text | PartKind::Result if replaceable && part.tokens > 0 => {
            let pointer = pointer();
            with_text(&part.body, |text| {
                if long {
                    // The part's own bytes per token turn the limit into bytes.
                    let max_bytes = (text.len() as f64 * f64::from(policy.trim_tokens)
                        / f64::from(part.tokens)) as usize;
                    if let Some((head, tail)) = head_and_tail(text, max_bytes) {
                        let text = trimmed_text(head, tail, text, part.tokens, pointer);
                        drafts.push(Draft {
                            step,
                            stub: false,
                            part: index,
                            text,
                            kept_tokens: 0,
                            pointer,
                        });
                    }
                }
                let text = stub_line(part, text, pointer);
                drafts.push(Draft {
                    step,
                    stub: true,
                    part: index,
                    text,
                    kept_tokens: 0,
                    pointer,
                });
            });
        }
        PartKind::Image | PartKind::Audio | PartKind::File if replaceable => {
            let pointer = pointer();
            let text = stub_line(part, "", pointer);
            drafts.push(Draft {
                step,
                stub: true,
                part: index,
                text,
                kept_tokens: 0,
                pointer,
            });
        }
        PartKind::Call if replaceable => {
            let tokens = with_text_or_json(&part.body, |text| counter.count(text))?;
            let pointer = pointer();
            let text = format!("{{\"paged_out\":\"{pointer}\",\"tokens\":{tokens}}}");
            let kept_tokens = part.tokens.saturating_sub(tokens);
            if long {
                let text = text.clone();
                drafts.push(Draft {
                    step,
                    stub: false,
                    part: index,
                    text,
                    kept_tokens,
                    pointer,
                });
            }
            drafts.push(Draft {
                step,
                stub: true,
                part: index,
                text,
                kept_tokens,
                pointer,
            });
        }
        _ => {}
    }
    Ok(())
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

fn with_text_or_json<T: Text, R>(body: &Body<T>, read: impl FnOnce(&str) -> R) -> R {
    match body {
        Body::Value(value) => read(&value.to_json()),
        _ => with_text(body, read),
    }
}

/// Tokens of a part once `text` stands in its place.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub fn edited_tokens<T: Text>(part: &Part<T>, text: &str, counter: &Counter) -> Result<u32> {
    let tokens = counter.count(text)?;
    if part.kind == PartKind::Call {
        let arguments = with_text_or_json(&part.body, |text| counter.count(text))?;
        return Ok(part.tokens.saturating_sub(arguments) + tokens);
    }
    Ok(tokens)
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

fn trimmed_text(head: &str, tail: &str, text: &str, tokens: u32, pointer: Pointer) -> String {
    let left_out = text.len() - head.len() - tail.len();
    let share = (left_out as f64 / text.len() as f64 * 100.0).round();
    let newline = if head.ends_with('\n') { "" } else { "\n" };
    format!(
        "{head}{newline}[… {share} % of {tokens} tokens left out here; all of it: page_in(\"{pointer}\")]\n{tail}"
    )
}

fn stub_line<T: Text>(part: &Part<T>, text: &str, pointer: Pointer) -> String {
    let what = match part.kind {
        PartKind::Result if part.is_error => "failed result",
        PartKind::Result => "result",
        PartKind::Image => "image",
        PartKind::Audio => "audio",
        PartKind::File => "file",
        _ => "text",
    };
    let claim = first_line(text, CLAIM_CHARS);
    let claim = if claim.is_empty() {
        String::new()
    } else {
        format!(" starting \"{claim}\"")
    };
    format!(
        "[paged out: {what} of {} tokens{claim}; page_in(\"{pointer}\")]",
        part.tokens
    )
}
