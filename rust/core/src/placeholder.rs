//! Results that stand for missing ones: which calls nobody answered, and what it costs to say so.
//!
//! A call whose step is over gets a marked result, so that every call has one. What it costs is
//! counted from the message as it will be written.

use crate::dialect::form::OpenCall;
use crate::dialect::open_calls::OpenCalls;
use crate::dialect::read_message;
use crate::message::{Body, PartKind, Place};
use crate::node::{Text, Value};
use crate::plan::Settings;
use crate::tokens::chat::count_message_parts;
use crate::transcript::Transcript;

/// Tokens that the placeholder results of a step add to the window.
pub fn placeholder_tokens<T: Text>(
    settings: &Settings,
    transcript: &Transcript<T>,
    step: u32,
) -> u32 {
    let Some(bounds) = transcript.steps().get(step as usize) else {
        return 0;
    };
    if bounds.open_calls == 0 {
        return 0;
    }
    let dialect = settings.dialect;
    let results: Vec<_> = open_calls(transcript, step)
        .iter()
        .map(|call| dialect.placeholder(call))
        .collect();
    let is_inside = dialect.results_are_blocks();
    let messages = if is_inside {
        vec![dialect.message_of(&results)]
    } else {
        results
    };
    let mut read: Vec<_> = messages
        .iter()
        .filter_map(|message| read_message(dialect, &message, 0).ok())
        .collect();
    // A foreign counter that fails here fails at the next text too, where the error is reported.
    if count_message_parts(&mut read, &settings.counter).is_err() {
        return 0;
    }
    let around = if is_inside && last_results(transcript, step).is_some() {
        0
    } else {
        settings.message_tokens * read.len() as u32
    };
    let parts = read.iter().flat_map(|message| &message.parts);
    around + parts.map(|part| part.tokens).sum::<u32>()
}

/// The message of a step that holds its last results, and how many blocks stand before its end.
pub(crate) fn last_results<T: Text>(
    transcript: &Transcript<T>,
    step: u32,
) -> Option<(usize, usize)> {
    let bounds = transcript.steps().get(step as usize)?;
    let message = (bounds.end as usize).checked_sub(1)?;
    let parts = transcript.parts(message);
    let last = parts
        .iter()
        .rposition(|part| part.kind == PartKind::Result)?;
    Some((message, last + 1))
}

/// The calls of a step that no result of the step answers.
pub(crate) fn open_calls<T: Text>(transcript: &Transcript<T>, step: u32) -> Vec<OpenCall> {
    let bounds = transcript.steps()[step as usize];
    let mut calls: Vec<OpenCall> = Vec::new();
    let mut open = OpenCalls::default();
    for message in bounds.first as usize..bounds.end as usize {
        for part in transcript.parts(message) {
            let key = part.key.as_deref();
            // An empty id or name is none.
            let keep = |text: Option<&T>| {
                text.map(|text| text.with(str::to_owned))
                    .filter(|text| !text.is_empty())
            };
            let id = keep(key.and_then(|key| key.id.as_ref()));
            let name = keep(key.and_then(|key| key.name.as_ref()));
            match part.kind {
                PartKind::Call => {
                    let kind = match &part.body {
                        Body::Value(value) if part.place == Place::Item => {
                            keep(value.get("type").and_then(Value::as_text))
                        }
                        _ => None,
                    };
                    open.push(0, id.as_deref(), id.is_some(), name.as_deref());
                    calls.push(OpenCall {
                        id,
                        name,
                        place: part.place,
                        kind,
                    });
                }
                PartKind::Result => {
                    if let Some(call) = open.best(id.as_deref(), name.as_deref()) {
                        open.close(call);
                    }
                }
                _ => {}
            }
        }
    }
    let calls = calls.into_iter().enumerate();
    calls
        .filter_map(|(at, call)| open.is_open(at).then_some(call))
        .collect()
}
