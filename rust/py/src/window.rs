//! The windows of the one-call functions over the caller's own message objects.

use pyo3::prelude::*;
use pyo3::types::PyList;
use satchel_core::content::{self, Content};
use satchel_core::error::Result;
use satchel_core::tokens::Counter;
use satchel_core::window::Fill;

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
#[pyfunction]
#[pyo3(signature = (messages, max_tokens, /, *, counter, dialect))]
pub(crate) fn token_window<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyList>,
    max_tokens: u64,
    counter: &Bound<'py, PyCounter>,
    dialect: Option<&str>,
) -> PyResult<Bound<'py, PyList>> {
    let messages = Messages::new(messages, dialect)?;
    let counter = &counter.get().0;
    let (mut window, others) = messages.split();
    let pinned = read(&messages, &window);
    let left = run(py, move || {
        let costs = content::count_each(&pinned, counter, max_tokens)?;
        // `None` as soon as one of them, or all together, are above the limit.
        let sum = costs
            .into_iter()
            .try_fold(0, |sum: u64, cost| sum.checked_add(cost?));
        Ok(sum.and_then(|sum| max_tokens.checked_sub(sum)))
    })?;
    if let Some(left) = left {
        window.extend(newest(py, &messages, &others, left, counter)?);
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
) -> PyResult<Vec<u32>> {
    let mut fill = Fill::new(left);
    let mut rest = others;
    let mut size = FIRST_BATCH;
    let mut wants_more = true;
    while wants_more && !rest.is_empty() {
        let (older, batch) = rest.split_at(rest.len().saturating_sub(size));
        let contents = read(messages, batch);
        (fill, wants_more) = run(py, move || offer_all(fill, batch, &contents, counter))?;
        rest = older;
        size = (size * 2).min(LAST_BATCH);
    }
    Ok(fill.finish())
}

fn offer_all(
    mut fill: Fill,
    indices: &[u32],
    contents: &[Content<PyText>],
    counter: &Counter,
) -> Result<(Fill, bool)> {
    let batch = content::count_batch(contents, counter)?;
    for (at, (index, content)) in indices.iter().zip(contents).enumerate().rev() {
        let cost = match &batch {
            Some(counts) => counts.get(at).copied(),
            None => content::count_within(&content.texts, counter, fill.left())?,
        };
        if !fill.offer(*index, content.link, cost) {
            return Ok((fill, false));
        }
    }
    Ok((fill, true))
}

fn read(messages: &Messages<'_>, indices: &[u32]) -> Vec<Content<PyText>> {
    indices
        .iter()
        .map(|index| messages.content(*index, false))
        .collect()
}
