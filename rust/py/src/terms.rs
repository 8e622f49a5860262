//! The terms of texts.

use pyo3::prelude::*;
use satchel_core::analyse::{self as core_terms, STOP_WORDS};

use crate::gil::run;
use crate::utf8::{Text, text_of};

/// Bytes below which detaching costs more than it frees.
const MIN_BYTES: usize = 2048;

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

/// The terms that are stop words, sorted.
#[pyfunction]
pub(crate) fn stop_words() -> Vec<&'static str> {
    STOP_WORDS.to_vec()
}
