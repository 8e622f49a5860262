//! What no JSON text can say, found anywhere inside a message: numbers that are not finite, halves
//! of surrogate pairs, bytes where the client takes none.
//!
//! A provider's client fails on such a value after the request was built, or sends what the server
//! refuses. Looking costs a visit of every value and allocates nothing; a copy is made only of the
//! containers on the way to a value that has to change.

use std::cell::RefCell;

use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple,
};
use satchel_core::dialect::Dialect;
use satchel_core::node::{MAX_DEPTH, Node, Shape};

use crate::node::{PyNode, public_items};
use crate::pytext::{base64, is_sendable, to_utf8};
use crate::render::{as_dict, as_list};

/// What was found, and the way to it from the outside in.
#[derive(Debug)]
pub(crate) struct Unsendable {
    what: &'static str,
    /// From the inside out.
    way: Vec<String>,
}

impl Unsendable {
    #[cold]
    fn new(what: &'static str) -> Self {
        Self {
            what,
            way: Vec::new(),
        }
    }

    /// One sentence, with the place: names of fields are cut, so that they carry no content.
    pub(crate) fn sentence(&self) -> String {
        const MOST_STEPS: usize = 8;
        let mut place = String::new();
        for step in self.way.iter().rev().take(MOST_STEPS) {
            if !place.is_empty() && !step.starts_with('[') {
                place.push('.');
            }
            place.push_str(step);
        }
        if self.way.len() > MOST_STEPS {
            place.push('…');
        }
        if place.is_empty() {
            place.push_str("the message");
        }
        format!("{place} is {}, which JSON cannot say", self.what)
    }
}

/// Where values are bytes by right: the client encodes them itself.
#[derive(Clone, Copy)]
struct Bytes {
    dialect: Dialect,
    /// Whether the value is the content of a field that takes bytes.
    are_taken: bool,
    /// Whether the value is inside something that is JSON.
    in_json: bool,
}

impl Bytes {
    fn of(dialect: Dialect) -> Self {
        Self {
            dialect,
            are_taken: false,
            in_json: false,
        }
    }

    /// For the content of the field `name`. Only the clients of two dialects take bytes.
    fn below(self, name: &str) -> Self {
        let (fields, json): (&[&str], &[&str]) = match self.dialect {
            Dialect::Gemini => (
                &["data", "thoughtSignature", "thought_signature"],
                &["args", "response"],
            ),
            Dialect::Bedrock => (&["bytes", "redactedContent"], &["input", "json"]),
            _ => return self,
        };
        let in_json = self.in_json || json.contains(&name);
        Self {
            are_taken: !in_json && fields.contains(&name),
            in_json,
            ..self
        }
    }
}

/// The first value of a message that cannot be sent; None also where nesting is too deep, which is
/// a finding of its own.
pub(crate) fn unsendable(message: &Bound<'_, PyAny>, dialect: Dialect) -> Option<Unsendable> {
    look(message, Bytes::of(dialect), 0).err().flatten()
}

/// Why a look ended early: a finding, or None where nesting is too deep. Then nothing else is
/// looked at: a value that holds itself several times has more ways into it than can be walked.
type Stop = Option<Unsendable>;

fn found(what: Option<&'static str>) -> Result<(), Stop> {
    what.map_or(Ok(()), |what| Err(Some(Unsendable::new(what))))
}

fn look(value: &Bound<'_, PyAny>, bytes: Bytes, depth: usize) -> Result<(), Stop> {
    if let Ok(text) = value.cast::<PyString>() {
        return found((!is_sendable(text)).then_some("a text with half a surrogate pair"));
    }
    if depth >= MAX_DEPTH {
        return Err(None);
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let fields = RefCell::new(Vec::with_capacity(dict.len()));
        // A snapshot: other threads may change the dict while an attribute is read.
        dict.locked_for_each(|key, inner| {
            fields.borrow_mut().push((key, inner));
            Ok(())
        })
        .map_err(|_| None)?;
        let fields = fields.into_inner();
        let mut fields = fields.iter();
        return fields.try_for_each(|(key, inner)| look_at_field(key, inner, bytes, depth));
    }
    if value.is_none() {
        return Ok(());
    }
    let at_index = |(at, inner): (usize, Bound<'_, PyAny>)| {
        look(&inner, bytes, depth + 1).map_err(|stop| below(stop, || format!("[{at}]")))
    };
    if let Ok(list) = value.cast::<PyList>() {
        return list.iter().enumerate().try_for_each(at_index);
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return tuple.iter().enumerate().try_for_each(at_index);
    }
    if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyInt>() {
        return Ok(());
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        let is_finite = number.value().is_finite();
        return found((!is_finite).then_some("a number that is not finite"));
    }
    if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        return found((!bytes.are_taken).then_some("a string of bytes"));
    }
    if PyNode::new(value.clone()).shape() != Shape::Map {
        return Ok(());
    }
    let Some(fields) = public_items(value) else {
        return Ok(());
    };
    fields.iter().try_for_each(|entry| {
        let Ok((key, inner)) = entry.extract() else {
            return Ok(());
        };
        look_at_field(&key, &inner, bytes, depth)
    })
}

/// A finding one step further out.
fn below(stop: Stop, name: impl FnOnce() -> String) -> Stop {
    stop.map(|mut found| {
        found.way.push(name());
        found
    })
}

fn look_at_field(
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    bytes: Bytes,
    depth: usize,
) -> Result<(), Stop> {
    let Ok(key) = key.cast::<PyString>() else {
        return look(value, bytes, depth + 1);
    };
    if !is_sendable(key) {
        return found(Some("a name of a field with half a surrogate pair"));
    }
    let inner = match bytes.dialect {
        Dialect::Gemini | Dialect::Bedrock if value.is_instance_of::<PyString>() => bytes,
        Dialect::Gemini | Dialect::Bedrock => key.to_str().map_or(bytes, |key| bytes.below(key)),
        _ => bytes,
    };
    look(value, inner, depth + 1).map_err(|stop| below(stop, || short(key)))
}

/// The name of a field, cut and with nothing but plain characters.
fn short(name: &Bound<'_, PyString>) -> String {
    const MOST: usize = 40;
    let name = to_utf8(name);
    let plain = name.chars().take(MOST);
    let plain = plain.map(|c| {
        if c.is_alphanumeric() || "_-".contains(c) {
            c
        } else {
            '?'
        }
    });
    plain.collect()
}

/// The value as it can be sent; None if it can be already. Half a surrogate pair becomes U+FFFD,
/// a number that is not finite null, bytes their base64.
pub(crate) fn sendable<'py>(
    message: &Bound<'py, PyAny>,
    dialect: Dialect,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    mended(message, Bytes::of(dialect), 0)
}

fn mended<'py>(
    value: &Bound<'py, PyAny>,
    bytes: Bytes,
    depth: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    // Most values of a message in which one is wrong are right.
    if !matches!(look(value, bytes, depth), Err(Some(_))) {
        return Ok(None);
    }
    let py = value.py();
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(PyString::new(py, &to_utf8(text)).into_any()));
    }
    if let Ok(payload) = value.cast::<PyBytes>() {
        let text = base64(payload.as_bytes());
        return Ok(Some(PyString::new(py, &text).into_any()));
    }
    if let Ok(payload) = value.cast::<PyByteArray>() {
        let text = base64(&payload.to_vec());
        return Ok(Some(PyString::new(py, &text).into_any()));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Some(py.None().into_bound(py)));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let copy = as_list(value)?;
        for at in 0..copy.len() {
            if let Some(inner) = mended(&copy.get_item(at)?, bytes, depth + 1)? {
                copy.set_item(at, inner)?;
            }
        }
        return Ok(Some(copy.into_any()));
    }
    let fields = as_dict(value)?;
    let copy = PyDict::new(py);
    for (key, inner) in fields.iter() {
        let name = key.cast::<PyString>().ok();
        let below = match name.map(|name| name.to_str()) {
            Some(Ok(name)) => bytes.below(name),
            _ => bytes,
        };
        let inner = mended(&inner, below, depth + 1)?.unwrap_or(inner);
        match name {
            Some(name) if !is_sendable(name) => copy.set_item(to_utf8(name), inner)?,
            _ => copy.set_item(key, inner)?,
        }
    }
    Ok(Some(copy.into_any()))
}
