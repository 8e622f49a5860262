//! Applies the core's changes to copies of the caller's own objects.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use satchel_core::message::{PathStep, Place};
use satchel_core::render::Change;
use serde_json::Value as Json;

/// A copy of `message` with the changes applied; what does not change is shared with the original.
pub(crate) fn apply_changes<'py>(
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
        Change::AppendText(place, text) => edit(message, *place, |before| {
            let block = text_block(py, text)?;
            match before {
                Some(before) if before.is_instance_of::<PyString>() && !is_blank(&before)? => {
                    let first = PyDict::new(py);
                    first.set_item(intern!(py, "type"), intern!(py, "text"))?;
                    first.set_item(intern!(py, "text"), before)?;
                    Ok(PyList::new(py, [first.into_any(), block])?.into_any())
                }
                Some(before) if !before.is_none() && !before.is_instance_of::<PyString>() => {
                    let blocks = as_list(&before)?;
                    blocks.append(block)?;
                    Ok(blocks.into_any())
                }
                _ => Ok(PyString::new(py, text).into_any()),
            }
        }),
        Change::InsertBlock(at, value) => edit(message, Place::Content, |before| {
            let blocks = match &before {
                Some(before) => as_list(before)?,
                None => PyList::empty(py),
            };
            blocks.insert(*at, json_to_python(py, value)?)?;
            Ok(blocks.into_any())
        }),
    }
}

fn text_block<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let block = PyDict::new(py);
    block.set_item(intern!(py, "type"), intern!(py, "text"))?;
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
    match value.getattr_opt(intern!(py, "__dict__"))? {
        Some(fields) => Ok(fields.cast_into::<PyDict>()?.copy()?),
        None => Err(PyTypeError::new_err(
            "a message to be edited must be a dict or have fields",
        )),
    }
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
