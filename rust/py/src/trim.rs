//! Structure-aware trimming of one text.

use pyo3::prelude::*;
use satchel_core::prune::structure::{Structure, detect, trim};

use crate::counter::PyCounter;
use crate::gil::run;
use crate::utf8::{Text, text_of};

/// UTF-8 bytes that a character takes at most.
const BYTES_PER_CHAR: usize = 4;

/// The text within its limit, the name of its structure, and how many lines were left out.
///
/// `limit` is in tokens of `counter`; without one in characters.
#[pyfunction]
#[pyo3(signature = (text, /, *, limit, counter, pointer, matching))]
#[allow(
    clippy::needless_pass_by_value,
    reason = "arguments as Python gives them"
)]
pub(crate) fn trim_text(
    py: Python<'_>,
    text: &Bound<'_, PyAny>,
    limit: usize,
    counter: Option<&Bound<'_, PyCounter>>,
    pointer: &Bound<'_, PyAny>,
    matching: Vec<Bound<'_, PyAny>>,
) -> PyResult<(String, &'static str, usize)> {
    let text = text_of(text, "text")?;
    let pointer = text_of(pointer, "pointer")?;
    let matching: Vec<Text> = matching
        .iter()
        .map(|literal| text_of(literal, "matching"))
        .collect::<PyResult<_>>()?;
    let counter = counter.map(|counter| counter.get().0.clone());
    let trimmed = run(py, move || {
        let literals: Vec<&str> = matching.iter().map(Text::as_str).collect();
        let (text, pointer) = (text.as_str(), pointer.as_str());
        if let Some(counter) = counter {
            let most = u32::try_from(limit).unwrap_or(u32::MAX);
            let fits = |text: &str| counter.fits(text, most);
            trim(text, text.len(), &literals, pointer, &fits)
        } else {
            let fits = |text: &str| Ok(text.chars().nth(limit).is_none());
            let most = limit.saturating_mul(BYTES_PER_CHAR);
            trim(text, most, &literals, pointer, &fits)
        }
    })?;
    Ok((
        trimmed.text,
        trimmed.structure.name(),
        trimmed.left_out_lines,
    ))
}

/// The name of the structure of a text.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn text_structure(py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    let text = text_of(text, "text")?;
    run(py, move || Ok(detect(text.as_str()).name()))
}

/// The names of all structures.
#[pyfunction]
pub(crate) fn text_structures() -> Vec<&'static str> {
    Structure::ALL.map(Structure::name).to_vec()
}
