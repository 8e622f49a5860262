//! The terms of texts.

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use satchel_core::analyse::{self as core_terms, STOP_WORDS};

use crate::gil::run;
use crate::utf8::{Text, text_of};

/// Bytes below which detaching costs more than it frees.
const MIN_BYTES: usize = 2048;

/// Counts by text and term, and lengths by text.
type Counted<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray1<i64>>);

/// The terms of a text, in order.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn analyse(py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let text = text_of(text, "text")?;
    if text.as_str().len() < MIN_BYTES {
        return Ok(core_terms::analyse(text.as_str()));
    }
    run(py, move || Ok(core_terms::analyse(text.as_str())))
}

/// The terms of each text.
#[pyfunction]
#[pyo3(signature = (texts, /))]
#[allow(
    clippy::needless_pass_by_value,
    reason = "arguments as Python gives them"
)]
pub(crate) fn analyse_many(
    py: Python<'_>,
    texts: Vec<Bound<'_, PyAny>>,
) -> PyResult<Vec<Vec<String>>> {
    let texts: Vec<Text> = texts
        .iter()
        .map(|text| text_of(text, "texts"))
        .collect::<PyResult<_>>()?;
    run(py, move || {
        Ok(texts
            .iter()
            .map(|text| core_terms::analyse(text.as_str()))
            .collect())
    })
}

/// How often each of `terms` stands in each text of terms with blanks between them, `(n, t)`, and
/// how many terms each text has, `(n,)`.
#[pyfunction]
#[pyo3(signature = (texts, terms, /))]
#[allow(
    clippy::needless_pass_by_value,
    reason = "arguments as Python gives them"
)]
pub(crate) fn term_counts(
    py: Python<'_>,
    texts: Vec<PyBackedStr>,
    terms: Vec<PyBackedStr>,
) -> PyResult<Counted<'_>> {
    let mut counts = vec![0; texts.len() * terms.len()];
    let mut lengths = vec![0; texts.len()];
    for (row, text) in texts.iter().enumerate() {
        let start = row * terms.len();
        let (Some(counts), Some(length)) = (
            counts.get_mut(start..start + terms.len()),
            lengths.get_mut(row),
        ) else {
            continue;
        };
        if text.is_empty() {
            continue;
        }
        for word in text.split(' ') {
            *length += 1;
            for (count, term) in counts.iter_mut().zip(&terms) {
                *count += i64::from(**term == *word);
            }
        }
    }
    let shape = [texts.len(), terms.len()];
    let counts = PyArray1::from_vec(py, counts).reshape(shape)?;
    Ok((counts, PyArray1::from_vec(py, lengths)))
}

/// The terms that are stop words, sorted.
#[pyfunction]
pub(crate) fn stop_words() -> Vec<&'static str> {
    STOP_WORDS.to_vec()
}
