//! Applies the core's changes to copies of the caller's own objects.

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use satchel_core::dialect::Dialect;
use satchel_core::dialect::form::TextForm;
use satchel_core::error::{Error, ErrorKind};
use satchel_core::message::{PathStep, Place};
use satchel_core::render::{Change, Entry};
use serde_json::Value as Json;

use crate::error::PyError;

/// Adds one entry to a window: a message of the caller, a changed copy, a new one, or a further
/// piece of the last one.
///
/// # Errors
/// `invalid_message` with what was raised as its cause: the message was changed since it was
/// appended, or an object of the caller's does not let itself be copied.
pub(crate) fn push_entry(
    window: &Bound<'_, PyList>,
    messages: &[Py<PyAny>],
    dialect: Dialect,
    entry: Entry,
) -> PyResult<()> {
    let py = window.py();
    let message = match entry {
        Entry::Original(index) => messages[index as usize].bind(py).clone(),
        Entry::Changed(index, changes) => {
            let index = index as usize;
            let copy = apply_changes(messages[index].bind(py), &changes);
            copy.map_err(|cause| no_copy(py, Some(index), cause))?
        }
        Entry::New(message) => json_to_python(py, &message)?,
        Entry::Joined(piece) => {
            let alone = PyList::empty(py);
            push_entry(&alone, messages, dialect, *piece)?;
            let Some(last) = window.len().checked_sub(1) else {
                return Ok(());
            };
            let joined = join(&window.get_item(last)?, &alone.get_item(0)?, dialect)
                .map_err(|cause| no_copy(py, None, cause))?;
            return window.set_item(last, joined);
        }
    };
    window.append(message)
}

#[cold]
fn no_copy(py: Python<'_>, index: Option<usize>, cause: PyErr) -> PyErr {
    // An interrupt is no fault of the message.
    if !cause.is_instance_of::<PyException>(py) {
        return cause;
    }
    let what = "its content cannot be replaced in a copy; was it changed since it was appended?";
    let error = Error::new(ErrorKind::InvalidMessage, what);
    let failure = PyErr::from(PyError(match index {
        Some(index) => error.at(index),
        None => error,
    }));
    failure.set_cause(py, Some(cause));
    failure
}

/// A copy of `before` with the blocks of `piece` behind its own.
fn join<'py>(
    before: &Bound<'py, PyAny>,
    piece: &Bound<'py, PyAny>,
    dialect: Dialect,
) -> PyResult<Bound<'py, PyAny>> {
    let place = dialect.blocks();
    let mut more = PyList::empty(before.py());
    edit(piece, place, |blocks| {
        if let Some(blocks) = blocks.filter(|blocks| !blocks.is_none()) {
            more = as_list(&blocks)?;
        }
        Ok(more.clone().into_any())
    })?;
    edit(before, place, |blocks| {
        let joined = match blocks.filter(|blocks| !blocks.is_none()) {
            Some(blocks) => as_list(&blocks)?,
            None => PyList::empty(before.py()),
        };
        for block in &more {
            joined.append(block)?;
        }
        Ok(joined.into_any())
    })
}

/// A copy of `message` with the changes applied; what does not change is shared with the original.
fn apply_changes<'py>(
    message: &Bound<'py, PyAny>,
    changes: &[Change],
) -> PyResult<Bound<'py, PyAny>> {
    let mut copy = message.clone();
    for change in changes {
        copy = apply_change(&copy, change)?;
    }
    Ok(copy)
}

fn apply_change<'py>(message: &Bound<'py, PyAny>, change: &Change) -> PyResult<Bound<'py, PyAny>> {
    let py = message.py();
    match change {
        Change::SetText(place, text) => {
            edit(message, *place, |_| Ok(PyString::new(py, text).into_any()))
        }
        Change::SetJson(place, value) => edit(message, *place, |_| json_to_python(py, value)),
        Change::AppendText(place, text, form) => edit(message, *place, |before| {
            let block = text_block(*form, PyString::new(py, text).as_any())?;
            match before {
                Some(before) if before.is_instance_of::<PyString>() && !is_blank(&before)? => {
                    let first = text_block(*form, &before)?;
                    Ok(PyList::new(py, [first, block])?.into_any())
                }
                Some(before) if !before.is_none() && !before.is_instance_of::<PyString>() => {
                    let blocks = as_list(&before)?;
                    blocks.append(block)?;
                    Ok(blocks.into_any())
                }
                _ if *form == TextForm::Bare => Ok(PyList::new(py, [block])?.into_any()),
                _ => Ok(PyString::new(py, text).into_any()),
            }
        }),
        Change::InsertBlock(place, at, value) => edit(message, *place, |before| {
            let blocks = match &before {
                Some(before) => as_list(before)?,
                None => PyList::empty(py),
            };
            blocks.insert(*at, json_to_python(py, value)?)?;
            Ok(blocks.into_any())
        }),
    }
}

fn text_block<'py>(form: TextForm, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = text.py();
    let block = PyDict::new(py);
    if let TextForm::Typed(kind) = form {
        block.set_item(intern!(py, "type"), kind)?;
    }
    block.set_item(intern!(py, "text"), text)?;
    Ok(block.into_any())
}

fn is_blank(text: &Bound<'_, PyAny>) -> PyResult<bool> {
    let stripped = text.call_method0(intern!(text.py(), "strip"))?;
    Ok(stripped.len()? == 0)
}

/// Copies the containers on the way to `place` and puts what `make` returns there.
fn edit<'py>(
    message: &Bound<'py, PyAny>,
    place: Place,
    make: impl FnOnce(Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    descend(message, &place.path(), make)
}

fn descend<'py>(
    value: &Bound<'py, PyAny>,
    path: &[PathStep],
    make: impl FnOnce(Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some((step, rest)) = path.split_first() else {
        return make(Some(value.clone()));
    };
    match step {
        PathStep::Key(key) => {
            let copy = as_dict(value)?;
            let inner = match copy.get_item(key)? {
                Some(inner) => descend(&inner, rest, make)?,
                None => make(None)?,
            };
            copy.set_item(key, inner)?;
            Ok(copy.into_any())
        }
        PathStep::Index(index) => {
            let copy = as_list(value)?;
            let inner = descend(&copy.get_item(*index as usize)?, rest, make)?;
            copy.set_item(*index as usize, inner)?;
            Ok(copy.into_any())
        }
    }
}

/// A shallow copy as a dict; a model of an SDK becomes the dict it would be sent as.
pub(crate) fn as_dict<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = value.py();
    if let Ok(dict) = value.cast::<PyDict>() {
        return dict.copy();
    }
    if let Some(dump) = value.getattr_opt(intern!(py, "model_dump"))? {
        let options = PyDict::new(py);
        options.set_item(intern!(py, "exclude_unset"), true)?;
        return Ok(dump.call((), Some(&options))?.cast_into::<PyDict>()?);
    }
    let copy = PyDict::new(py);
    if value.hasattr(intern!(py, "keys"))? {
        copy.update(value.cast()?)?;
        return Ok(copy);
    }
    if let Some(fields) = value.getattr_opt(intern!(py, "__dict__"))? {
        return fields.cast_into::<PyDict>()?.copy();
    }
    // Dataclasses with slots have no dict.
    let Some(names) = value.getattr_opt(intern!(py, "__dataclass_fields__"))? else {
        let message = "a message to be edited must be a dict or have fields";
        return Err(PyTypeError::new_err(message));
    };
    for name in names.try_iter()? {
        let name = name?.cast_into::<PyString>()?;
        copy.set_item(&name, value.getattr(&name)?)?;
    }
    Ok(copy)
}

/// A shallow copy as a list.
pub(crate) fn as_list<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    value
        .py()
        .get_type::<PyList>()
        .call1((value,))?
        .cast_into::<PyList>()
        .map_err(Into::into)
}

/// A JSON value as Python objects.
pub(crate) fn json_to_python<'py>(py: Python<'py>, value: &Json) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Json::Null => py.None().into_bound(py),
        Json::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into_pyobject(py)?.into_any(),
            (None, Some(number)) => number.into_pyobject(py)?.into_any(),
            (None, None) => PyString::new(py, &number.to_string()).into_any(),
        },
        Json::String(text) => PyString::new(py, text).into_any(),
        Json::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(json_to_python(py, item)?)?;
            }
            list.into_any()
        }
        Json::Object(entries) => {
            let dict = PyDict::new(py);
            for (key, item) in entries {
                dict.set_item(key, json_to_python(py, item)?)?;
            }
            dict.into_any()
        }
    })
}
