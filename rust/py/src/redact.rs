//! Redaction of texts: the placeholders, and where the values were in characters.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use satchel_core::error::Error;
use satchel_core::redact::{Kind, Kinds, Redacted, placeholder, redact};

use crate::error::invalid_value;
use crate::gil::run;
use crate::pytext::to_surrogate_bytes;
use crate::utf8::wrong_type;

/// Kind, first character, one past the last, number of the placeholder.
type Row = (&'static str, usize, usize, u32);

/// The text without its values, and a row for each.
#[pyfunction]
#[pyo3(signature = (text, /, *, kinds))]
#[allow(
    clippy::needless_pass_by_value,
    reason = "arguments as Python gives them"
)]
pub(crate) fn redact_text<'py>(
    py: Python<'py>,
    text: &Bound<'py, PyAny>,
    kinds: Vec<String>,
) -> PyResult<(Bound<'py, PyAny>, Vec<Row>)> {
    let kinds = kinds_of(&kinds)?;
    let bytes = bytes_of(text, "text")?;
    let (redacted, rows) = run(py, move || Ok::<_, Error>(cleaned(&bytes, kinds)))?;
    Ok((to_python(py, &redacted)?, rows))
}

/// The same for many texts.
#[pyfunction]
#[pyo3(signature = (texts, /, *, kinds))]
#[allow(
    clippy::needless_pass_by_value,
    reason = "arguments as Python gives them"
)]
pub(crate) fn redact_texts<'py>(
    py: Python<'py>,
    texts: Vec<Bound<'py, PyAny>>,
    kinds: Vec<String>,
) -> PyResult<Vec<(Bound<'py, PyAny>, Vec<Row>)>> {
    let kinds = kinds_of(&kinds)?;
    let texts: Vec<Vec<u8>> = texts
        .iter()
        .map(|text| bytes_of(text, "texts"))
        .collect::<PyResult<_>>()?;
    let cleaned: Vec<_> = run(py, move || {
        Ok::<_, Error>(texts.iter().map(|text| cleaned(text, kinds)).collect())
    })?;
    cleaned
        .into_iter()
        .map(|(text, rows)| Ok((to_python(py, &text)?, rows)))
        .collect()
}

/// The names of all kinds.
#[pyfunction]
pub(crate) fn redaction_kinds() -> Vec<&'static str> {
    Kind::ALL.map(Kind::name).to_vec()
}

/// What stands for a value of a kind.
#[pyfunction]
#[pyo3(signature = (kind, number, /))]
pub(crate) fn redaction_placeholder(kind: &str, number: u32) -> PyResult<String> {
    let named = Kind::ALL.into_iter().find(|known| known.name() == kind);
    named
        .map(|kind| placeholder(kind, number))
        .ok_or_else(|| unknown(kind))
}

pub(crate) fn kinds_of(names: &[String]) -> PyResult<Kinds> {
    names.iter().try_fold(Kinds::NONE, |kinds, name| {
        Kinds::named(name)
            .map(|more| kinds.union(more))
            .ok_or_else(|| unknown(name))
    })
}

fn unknown(name: &str) -> PyErr {
    let start: String = name.chars().take(40).collect();
    invalid_value(&format!("unknown kind {start:?}"))
}

fn bytes_of(text: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<u8>> {
    text.cast::<PyString>()
        .map(to_surrogate_bytes)
        .map_err(|_| invalid_value(&wrong_type(name, "a str", text)))
}

fn cleaned(text: &[u8], kinds: Kinds) -> (Vec<u8>, Vec<Row>) {
    let Redacted {
        text: redacted,
        spans,
        numbers,
    } = redact(text, kinds);
    let (mut at, mut chars) = (0, 0);
    let mut place = |to: usize| {
        let between = text.get(at..to).unwrap_or_default();
        // Every byte but those that go on a character.
        chars += between.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
        at = to;
        chars
    };
    let rows = spans
        .iter()
        .zip(numbers)
        .map(|(span, number)| {
            let start = place(span.start);
            (span.kind.name(), start, place(span.end), number)
        })
        .collect();
    (redacted, rows)
}

fn to_python<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(text) = std::str::from_utf8(text) {
        return Ok(PyString::new(py, text).into_any());
    }
    pyo3::types::PyBytes::new(py, text)
        .call_method1(intern!(py, "decode"), ("utf-8", "surrogatepass"))
}
