//! Windows and scores of many conversations over numpy columns.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use satchel_core::columns;
use satchel_core::salience::Weights;

use crate::error::{PyError, invalid_value};
use crate::gil::run;

/// Names of the roles, by number, and of the signals, by bit.
pub(crate) fn names() -> ([&'static str; 5], [&'static str; 4]) {
    (
        columns::ROLES.map(satchel_core::message::Role::name),
        columns::SIGNALS.map(|(name, _)| name),
    )
}

/// Indices of the messages in the windows.
#[pyfunction]
#[pyo3(signature = (tokens, protected, limits, offsets, /))]
#[allow(
    clippy::needless_pass_by_value,
    reason = "arguments as Python gives them"
)]
pub(crate) fn column_windows<'py>(
    py: Python<'py>,
    tokens: PyReadonlyArray1<'py, u32>,
    protected: PyReadonlyArray1<'py, bool>,
    limits: PyReadonlyArray1<'py, u64>,
    offsets: PyReadonlyArray1<'py, i64>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (tokens, protected) = (own(&tokens)?, own(&protected)?);
    let (limits, offsets) = (own(&limits)?, own(&offsets)?);
    let found = run(py, move || {
        columns::token_window(&tokens, &protected, &limits, &offsets)
    })?;
    Ok(found.into_pyarray(py))
}

/// One score per message, float32 from 0 to 1. `weights` is `None` for the keyword formula, else
/// the default weights with the named ones replaced.
#[pyfunction]
#[pyo3(signature = (roles, tokens, signals, offsets, /, *, weights))]
#[allow(
    clippy::needless_pass_by_value,
    reason = "arguments as Python gives them"
)]
pub(crate) fn column_scores<'py>(
    py: Python<'py>,
    roles: PyReadonlyArray1<'py, u8>,
    tokens: PyReadonlyArray1<'py, u32>,
    signals: PyReadonlyArray1<'py, u8>,
    offsets: PyReadonlyArray1<'py, i64>,
    weights: Option<Vec<(String, f64)>>,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let weights = weights
        .map(|named| Weights::with(&named))
        .transpose()
        .map_err(PyError)?;
    let (roles, tokens) = (own(&roles)?, own(&tokens)?);
    let (signals, offsets) = (own(&signals)?, own(&offsets)?);
    let scores = run(py, move || {
        columns::score(&roles, &tokens, &signals, weights.as_ref(), &offsets)
    })?;
    Ok(scores.into_pyarray(py))
}

/// The values of a column: another thread may write to an array while the interpreter is released.
fn own<T: numpy::Element + Copy>(column: &PyReadonlyArray1<'_, T>) -> PyResult<Vec<T>> {
    let values = column.as_slice();
    let values = values.map_err(|_| invalid_value("columns must be contiguous"))?;
    Ok(values.to_vec())
}
