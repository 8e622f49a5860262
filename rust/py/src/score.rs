//! Scores of messages.

use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyList;
use satchel_core::salience::{Features, Weights, score};

use crate::content::Messages;
use crate::counter::PyCounter;
use crate::error::PyError;
use crate::gil::run;

/// One score per message, float32 from 0 to 1. `weights` is `None` for the keyword formula, else
/// the default weights with the named ones replaced.
#[pyfunction]
#[pyo3(signature = (messages, /, *, weights, query, counter))]
pub(crate) fn score_messages<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyList>,
    weights: Option<Vec<(String, f64)>>,
    query: Option<String>,
    counter: &Bound<'py, PyCounter>,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let weights = weights
        .map(|named| Weights::with(&named))
        .transpose()
        .map_err(PyError)?;
    let messages = Messages::new(messages, None)?;
    let contents: Vec<_> = (0..messages.len() as u32)
        .map(|index| messages.content(index, weights.is_some()))
        .collect();
    let counter = counter.get().0.clone();
    let scores = run(py, move || {
        Ok(match weights {
            None => score::keywords(&Features::keywords(&contents, &counter)?),
            Some(weights) => {
                let features = Features::read(&contents, query.as_deref(), &counter)?;
                score::weighted(&features, &weights)
            }
        })
    })?;
    Ok(scores.to_pyarray(py))
}
