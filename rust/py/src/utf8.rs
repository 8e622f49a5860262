//! Python strings as UTF-8, lone surrogates included.

use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyString;

use crate::error::invalid_value;

/// A Python string as UTF-8: its own buffer, or a copy where that has lone surrogates.
#[derive(Debug)]
pub(crate) enum Text {
    Backed(PyBackedStr),
    Replaced(String),
}

impl Text {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Backed(text) => text,
            Self::Replaced(text) => text,
        }
    }
}

/// Reads `value`, which may outlive the interpreter lock.
///
/// A lone surrogate becomes U+FFFD and a surrogate pair its character, as in the reference encoder.
pub(crate) fn text_of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Text> {
    let string = string(value, name)?;
    match PyBackedStr::try_from(string.clone()) {
        Ok(text) => Ok(Text::Backed(text)),
        Err(error) => replaced(string, error).map(Text::Replaced),
    }
}

/// Calls `work` with the UTF-8 of `value`, without a reference of its own.
pub(crate) fn with_text<T>(
    value: &Bound<'_, PyAny>,
    name: &str,
    work: impl FnOnce(&str) -> PyResult<T>,
) -> PyResult<T> {
    let string = string(value, name)?;
    match string.to_str() {
        Ok(text) => work(text),
        Err(error) => work(&replaced(string, error)?),
    }
}

fn string<'a, 'py>(value: &'a Bound<'py, PyAny>, name: &str) -> PyResult<&'a Bound<'py, PyString>> {
    value
        .cast::<PyString>()
        .map_err(|_| invalid_value(&wrong_type(name, "a str", value)))
}

/// `message has the wrong type` as a sentence that names both types and no content.
pub(crate) fn wrong_type(name: &str, expected: &str, found: &Bound<'_, PyAny>) -> String {
    match found.get_type().name() {
        Ok(found) => format!("{name} must be {expected}, not {found}"),
        Err(_) => format!("{name} must be {expected}"),
    }
}

#[cold]
fn replaced(string: &Bound<'_, PyString>, error: PyErr) -> PyResult<String> {
    if !error.is_instance_of::<PyUnicodeEncodeError>(string.py()) {
        return Err(error);
    }
    string
        .call_method1("encode", ("utf-16", "surrogatepass"))?
        .call_method1("decode", ("utf-16", "replace"))?
        .extract()
}
