//! The windows of the one-call functions over the caller's own message objects.

use pyo3::prelude::*;
use pyo3::types::PyList;
use satchel_core::content::{self, Content};
use satchel_core::dialect::Dialect;
use satchel_core::error::Result;
use satchel_core::message::Message;
use satchel_core::tokens::Counter;
use satchel_core::tokens::chat::{ChatRules, count_message_parts, message_overhead};
use satchel_core::window::{Fill, Link};

use crate::content::Messages;
use crate::counter::PyCounter;
use crate::gil::run;
use crate::pytext::PyText;

/// Messages that are read before the first counting; each further batch is twice as large.
const FIRST_BATCH: usize = 32;

/// Messages in the largest batch. Reading is a small part of counting, so the messages that a
/// batch reads beyond the window cost little.
const LAST_BATCH: usize = 1024;

/// All instructions, then the newest steps of at most `max_messages` messages together.
#[pyfunction]
#[pyo3(signature = (messages, max_messages, /, *, dialect))]
pub(crate) fn sliding_window<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyList>,
    max_messages: u64,
    dialect: Option<&str>,
) -> PyResult<Bound<'py, PyList>> {
    let messages = Messages::new(messages, dialect)?;
    let (mut window, others) = messages.split();
    let mut fill = Fill::new(max_messages);
    for index in others.into_iter().rev() {
        let node = messages.node(index);
        let link = node.map(|node| content::link(&node, messages.dialect()));
        if !fill.offer(index, link.unwrap_or_default(), Some(1)) {
            break;
        }
    }
    window.extend(fill.finish());
    messages.select(py, &window)
}

/// All instructions, then the newest steps that fit into what they leave of `max_tokens`.
///
/// `model_dialect` asks for the chat formula, and is the dialect of messages that do not tell
/// theirs; `None` counts content text.
#[pyfunction]
#[pyo3(signature = (messages, max_tokens, /, *, counter, dialect, model_dialect))]
pub(crate) fn token_window<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyList>,
    max_tokens: u64,
    counter: &Bound<'py, PyCounter>,
    dialect: Option<&str>,
    model_dialect: Option<&str>,
) -> PyResult<Bound<'py, PyList>> {
    let messages = Messages::new(messages, dialect)?;
    let formula = model_dialect.map(|name| messages.dialect_or(name));
    let counter = &counter.get().0;
    let (mut window, others) = messages.split();
    let pinned = Batch::read(&messages, &window, formula);
    let left = run(py, move || pinned.leave(max_tokens, counter))?;
    if let Some(left) = left {
        window.extend(newest(py, &messages, &others, left, counter, formula)?);
    }
    messages.select(py, &window)
}

/// The newest steps of `others` that fit into `left` tokens. Reads and counts in turn, newest
/// first, so that what lies beyond the window is hardly looked at.
fn newest(
    py: Python<'_>,
    messages: &Messages<'_>,
    others: &[u32],
    left: u64,
    counter: &Counter,
    formula: Option<Dialect>,
) -> PyResult<Vec<u32>> {
    let mut fill = Fill::new(left);
    let mut rest = others;
    let mut size = FIRST_BATCH;
    let mut wants_more = true;
    while wants_more && !rest.is_empty() {
        let (older, indices) = rest.split_at(rest.len().saturating_sub(size));
        let batch = Batch::read(messages, indices, formula);
        (fill, wants_more) = run(py, move || batch.offer(fill, indices, counter))?;
        rest = older;
        size = (size * 2).min(LAST_BATCH);
    }
    Ok(fill.finish())
}

/// Messages that were read, to be counted with the interpreter released.
enum Batch {
    /// By their content text.
    Contents(Vec<Content<PyText>>),
    /// By the chat formula.
    Messages(Vec<(Link, Message<PyText>)>, Dialect),
}

impl Batch {
    fn read(messages: &Messages<'_>, indices: &[u32], formula: Option<Dialect>) -> Self {
        let indices = indices.iter();
        match formula {
            None => {
                let contents = indices.map(|index| messages.content(*index, false));
                Self::Contents(contents.collect())
            }
            Some(dialect) => {
                let rows = indices.map(|index| messages.message(*index, dialect));
                Self::Messages(rows.collect(), dialect)
            }
        }
    }

    /// What all of them together leave of `limit`; `None` if they are above it.
    fn leave(self, limit: u64, counter: &Counter) -> Result<Option<u64>> {
        let costs = match self {
            Self::Contents(contents) => content::count_each(&contents, counter, limit)?,
            Self::Messages(rows, dialect) => chat_tokens(rows, dialect, counter)?
                .into_iter()
                .map(|(_, tokens)| Some(tokens))
                .collect(),
        };
        let sum = costs
            .into_iter()
            .try_fold(0, |sum: u64, cost| sum.checked_add(cost?));
        Ok(sum.and_then(|sum| limit.checked_sub(sum)))
    }

    /// Offers the messages, newest first; whether older ones are wanted.
    fn offer(self, mut fill: Fill, indices: &[u32], counter: &Counter) -> Result<(Fill, bool)> {
        match self {
            Self::Contents(contents) => {
                let batch = content::count_batch(&contents, counter)?;
                for (at, (index, content)) in indices.iter().zip(&contents).enumerate().rev() {
                    let cost = match &batch {
                        Some(counts) => counts.get(at).copied(),
                        None => content::count_within(&content.texts, counter, fill.left())?,
                    };
                    if !fill.offer(*index, content.link, cost) {
                        return Ok((fill, false));
                    }
                }
            }
            // The caller's own counter is asked once for the batch.
            Self::Messages(rows, dialect) if counter.foreign_source().is_some() => {
                let costs = chat_tokens(rows, dialect, counter)?;
                for (index, (link, tokens)) in indices.iter().zip(costs).rev() {
                    if !fill.offer(*index, link, Some(tokens)) {
                        return Ok((fill, false));
                    }
                }
            }
            Self::Messages(rows, dialect) => {
                for (index, row) in indices.iter().zip(rows).rev() {
                    for (link, tokens) in chat_tokens(vec![row], dialect, counter)? {
                        if !fill.offer(*index, link, Some(tokens)) {
                            return Ok((fill, false));
                        }
                    }
                }
            }
        }
        Ok((fill, true))
    }
}

/// Tokens of each message by the chat formula, its overhead included.
fn chat_tokens(
    rows: Vec<(Link, Message<PyText>)>,
    dialect: Dialect,
    counter: &Counter,
) -> Result<Vec<(Link, u64)>> {
    let (links, mut messages): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    count_message_parts(&mut messages, counter)?;
    let rules = ChatRules::for_counter(dialect, counter);
    let tokens = messages.iter().map(|message| {
        let overhead = message_overhead(message, &rules, counter)?;
        let parts = message.parts.iter().map(|part| u64::from(part.tokens));
        Ok(u64::from(overhead) + parts.sum::<u64>())
    });
    links
        .into_iter()
        .zip(tokens)
        .map(|(link, tokens)| Ok((link, tokens?)))
        .collect()
}
