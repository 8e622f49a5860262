//! Counters that are Python objects: a tiktoken encoding, an object with `count`, a callable.

use std::cell::RefCell;
use std::sync::Arc;

use indexmap::IndexMap;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyList, PyString, PyType};
use satchel_core::error::{Error, ErrorKind};
use satchel_core::tokens::{CountTexts, Counter};

use crate::counter::PyCounter;
use crate::error::invalid_value;
use crate::utf8::wrong_type;

thread_local! {
    /// What the last callback on this thread raised, until the core's error is translated here.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Takes what a callback raised on this thread.
fn take_raised() -> Option<PyErr> {
    RAISED.take()
}

/// A Python callable `text -> int` as the core's counter.
#[derive(Debug)]
pub(crate) struct Callback {
    /// The object that the caller gave, for pickling and comparing.
    pub(crate) source: Py<PyAny>,
    call: Call,
}

#[derive(Debug)]
enum Call {
    /// Returns the count.
    Count(Py<PyAny>),
    /// Returns the tokens.
    Encode(Py<PyAny>),
    /// Takes a list of texts and returns the tokens of each.
    EncodeBatch(Py<PyAny>),
}

impl CountTexts for Callback {
    fn count_texts(&self, texts: &[&str]) -> Result<Vec<u32>, Error> {
        Python::attach(|py| match &self.call {
            Call::EncodeBatch(encode) => count_batch(encode.bind(py), texts),
            _ => texts.iter().map(|text| self.count(py, text)).collect(),
        })
    }
}

impl Callback {
    fn count(&self, py: Python<'_>, text: &str) -> Result<u32, Error> {
        let returned = match &self.call {
            Call::Count(count) => count.bind(py).call1((text,)),
            Call::Encode(encode) => encode
                .bind(py)
                .call1((text,))
                .and_then(|ids| Ok(ids.len()?.into_pyobject(py)?.into_any())),
            Call::EncodeBatch(encode) => {
                let counts = count_batch(encode.bind(py), &[text])?;
                return Ok(counts.first().copied().unwrap_or(0));
            }
        };
        let value = returned.map_err(|raised| failed(py, raised))?;
        if !value.is_instance_of::<PyBool>()
            && let Ok(tokens) = value.extract::<u32>()
        {
            return Ok(tokens);
        }
        Err(Error::new(
            ErrorKind::CounterFailed,
            format!(
                "the counter returned {}, not an int from 0 to {}",
                type_name(&value.get_type()),
                u32::MAX
            ),
        ))
    }
}

/// The core's error for what a callback raised, which is kept for [`with_cause`].
fn failed(py: Python<'_>, raised: PyErr) -> Error {
    let message = format!("the counter raised {}", type_name(&raised.get_type(py)));
    RAISED.set(Some(raised));
    Error::new(ErrorKind::CounterFailed, message)
}

fn count_batch(encode: &Bound<'_, PyAny>, texts: &[&str]) -> Result<Vec<u32>, Error> {
    let py = encode.py();
    let count = || -> PyResult<Vec<u32>> {
        let options = PyDict::new(py);
        options.set_item("add_special_tokens", false)?;
        let list = PyList::new(py, texts)?;
        let encodings = encode.call((list,), Some(&options))?;
        encodings
            .try_iter()?
            .map(|encoding| Ok(u32::try_from(encoding?.len()?).unwrap_or(u32::MAX)))
            .collect()
    };
    count().map_err(|raised| failed(py, raised))
}

/// A native counter from the ranks of a `tiktoken.Encoding` with a pattern that is built in; `None`
/// for anything else, whose own method is called then.
///
/// # Errors
/// `InputError` with code `invalid_value` for ranks that cannot encode every text.
pub(crate) fn counter_of_ranks(object: &Bound<'_, PyAny>) -> PyResult<Option<Counter>> {
    let (Ok(ranks), Ok(pattern)) = (
        object.getattr("_mergeable_ranks"),
        object.getattr("_pat_str"),
    ) else {
        return Ok(None);
    };
    let (Ok(ranks), Ok(pattern)) = (ranks.cast_into::<PyDict>(), pattern.extract::<String>())
    else {
        return Ok(None);
    };
    if !Counter::knows_pattern(&pattern) {
        return Ok(None);
    }
    let mut table = IndexMap::with_capacity(ranks.len());
    for (token, rank) in ranks {
        let (Ok(token), Ok(rank)) = (token.cast::<PyBytes>(), rank.extract::<u32>()) else {
            return Ok(None);
        };
        table.insert(Box::from(token.as_bytes()), rank);
    }
    let name = named(object, "name").unwrap_or_else(|| "tiktoken".to_owned());
    Ok(Counter::of_ranks(&name, &pattern, table).map_err(crate::error::PyError)?)
}

fn type_name(class: &Bound<'_, PyType>) -> String {
    class
        .name()
        .map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}

/// A counter from what the caller gave: ours, a tiktoken encoding, any object with `count(text)`,
/// or a callable `text -> int`. An object may state `encoding`, `exact` and `margin`; without them
/// it is not exact and has margin 0.
///
/// # Errors
/// `InputError` with code `invalid_value` for anything else.
pub(crate) fn counter_from_python(object: &Bound<'_, PyAny>) -> PyResult<Counter> {
    if let Ok(counter) = object.cast::<PyCounter>() {
        return Ok(counter.get().0.clone());
    }
    if let Ok(encode) = object.getattr("encode_ordinary") {
        let name = named(object, "name").unwrap_or_else(|| "tiktoken".to_owned());
        return Ok(foreign(object, Call::Encode(encode.unbind()), &name, true));
    }
    // A `tokenizers.Tokenizer`.
    if let Ok(encode) = object.getattr("encode_batch_fast") {
        let name = named(object, "name").unwrap_or_else(|| "tokenizer".to_owned());
        let call = Call::EncodeBatch(encode.unbind());
        return Ok(foreign(object, call, &name, true));
    }
    // A str or list has a `count` that counts something else.
    let sequence = object.hasattr("__getitem__")?;
    let count = match object.getattr("count") {
        Ok(count) if count.is_callable() && !sequence => count,
        _ if object.is_callable() => object.clone(),
        _ => {
            let expected = "a Counter, an object with count(text) or a callable";
            return Err(invalid_value(&wrong_type("counter", expected, object)));
        }
    };
    let name = named(object, "encoding").unwrap_or_else(|| "custom".to_owned());
    let exact = object
        .getattr("exact")
        .and_then(|exact| exact.extract())
        .unwrap_or(false);
    let margin = object
        .getattr("margin")
        .and_then(|margin| margin.extract())
        .unwrap_or(0.0);
    let counter = foreign(object, Call::Count(count.unbind()), &name, exact);
    Ok(counter
        .with_margin(exact, margin)
        .map_err(crate::error::PyError)?)
}

fn foreign(source: &Bound<'_, PyAny>, call: Call, name: &str, exact: bool) -> Counter {
    let source = source.clone().unbind();
    Counter::foreign(name, exact, Arc::new(Callback { source, call }))
}

fn named(object: &Bound<'_, PyAny>, attribute: &str) -> Option<String> {
    let value = object.getattr(attribute).ok()?;
    value.cast::<PyString>().ok().map(ToString::to_string)
}

/// The exception to raise for a failed counter: what it raised if that must pass unchanged (an
/// interrupt, an exit), else `failure` with what it raised as the cause.
pub(crate) fn with_cause(py: Python<'_>, failure: PyErr) -> PyErr {
    match take_raised() {
        Some(raised) if !raised.is_instance_of::<PyException>(py) => raised,
        cause => {
            failure.set_cause(py, cause);
            failure
        }
    }
}
