//! Python objects as the core's nodes: dicts, lists, tuples, and objects with fields.
//!
//! Dicts take the fast path: interned keys, no Python code runs. Anything with attributes (the
//! message classes of the SDKs, dataclasses) reads as a map of its public fields; nothing is
//! imported to recognise it. A field that raises is there, with a value of no kind, so that whoever
//! reads it says where it stands instead of going on without it.

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use satchel_core::error::{Error, ErrorKind, Result};
use satchel_core::node::{MAX_DEPTH, Node, Shape, Value, too_deep};

use crate::pytext::{PyText, with_text};

/// A Python object seen as a [`Node`].
#[derive(Debug)]
pub(crate) struct PyNode<'py> {
    object: Bound<'py, PyAny>,
    form: Form,
}

/// What the object is, looked at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Null,
    Bool,
    Int,
    Float,
    Text,
    List,
    Tuple,
    Dict,
    /// `keys()` and `[]`, but no dict.
    Mapping,
    /// Fields are attributes.
    Object,
    Other,
}

impl Form {
    fn of(object: &Bound<'_, PyAny>) -> Self {
        // By how often they occur in messages; the first seven are checks of one flag word.
        if object.is_instance_of::<PyString>() {
            Self::Text
        } else if object.is_instance_of::<PyDict>() {
            Self::Dict
        } else if object.is_none() {
            Self::Null
        } else if object.is_instance_of::<PyList>() {
            Self::List
        } else if object.is_instance_of::<PyTuple>() {
            Self::Tuple
        } else if object.is_instance_of::<PyBool>() {
            Self::Bool
        } else if object.is_instance_of::<PyInt>() {
            Self::Int
        } else if object.is_instance_of::<PyFloat>() {
            Self::Float
        } else {
            Self::of_instance(object)
        }
    }

    fn of_instance(object: &Bound<'_, PyAny>) -> Self {
        let py = object.py();
        let has = |name| object.hasattr(name).unwrap_or(false);
        if object.is_instance_of::<PyType>() || object.is_callable() {
            Self::Other
        } else if has(intern!(py, "keys")) && has(intern!(py, "__getitem__")) {
            Self::Mapping
        } else if has(intern!(py, "__dict__")) || has(intern!(py, "__dataclass_fields__")) {
            Self::Object
        } else {
            Self::Other
        }
    }
}

impl<'py> PyNode<'py> {
    /// The object as a node.
    pub(crate) fn new(object: Bound<'py, PyAny>) -> Self {
        let form = Form::of(&object);
        Self { object, form }
    }

    /// A value that could not be read.
    fn failed(error: PyErr, py: Python<'py>) -> Self {
        Self {
            object: error.into_value(py).into_bound(py).into_any(),
            form: Form::Other,
        }
    }

    fn string(&self) -> Option<&Bound<'py, PyString>> {
        match self.form {
            Form::Text => self.object.cast().ok(),
            _ => None,
        }
    }

    fn capture_entries(entries: &Bound<'py, PyList>, depth: usize) -> Result<Value<PyText>> {
        let mut captured = Vec::with_capacity(entries.len());
        for entry in entries {
            let (key, value) = entry
                .extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()
                .map_err(|_| no_json("a mapping whose items are no pairs"))?;
            let key = key
                .cast_into::<PyString>()
                .map_err(|_| no_json("a key that is no string"))?;
            captured.push((
                PyText::new(key),
                PyNode::new(value).capture_below(depth + 1)?,
            ));
        }
        Ok(Value::Map(captured.into()))
    }
}

impl Node for PyNode<'_> {
    type Text = PyText;

    fn shape(&self) -> Shape {
        match self.form {
            Form::Null => Shape::Null,
            Form::Bool => Shape::Bool,
            Form::Int | Form::Float => Shape::Number,
            Form::Text => Shape::Text,
            Form::List | Form::Tuple => Shape::List,
            Form::Dict | Form::Mapping | Form::Object => Shape::Map,
            Form::Other => Shape::Other,
        }
    }

    fn get(&self, key: &'static str) -> Option<Self> {
        let key = interned(self.object.py(), key);
        let value = match self.form {
            Form::Dict => self.object.cast::<PyDict>().ok()?.get_item(key).ok()?,
            Form::Mapping => match self.object.get_item(key) {
                Ok(value) => Some(value),
                Err(error) if error.is_instance_of::<PyKeyError>(self.object.py()) => None,
                Err(error) => return Some(Self::failed(error, self.object.py())),
            },
            Form::Object => match self.object.getattr_opt(key) {
                Ok(value) => value,
                Err(error) => return Some(Self::failed(error, self.object.py())),
            },
            _ => None,
        };
        value.map(PyNode::new)
    }

    fn field_count(&self) -> Option<usize> {
        match self.form {
            Form::Dict => Some(self.object.cast::<PyDict>().ok()?.len()),
            _ => None,
        }
    }

    fn len(&self) -> usize {
        match self.form {
            Form::List => self.object.cast::<PyList>().map_or(0, PyListMethods::len),
            Form::Tuple => self.object.cast::<PyTuple>().map_or(0, PyTupleMethods::len),
            _ => 0,
        }
    }

    fn item(&self, index: usize) -> Option<Self> {
        let item = match self.form {
            Form::List => self.object.cast::<PyList>().ok()?.get_item(index),
            Form::Tuple => self.object.cast::<PyTuple>().ok()?.get_item(index),
            _ => return None,
        };
        item.ok().map(PyNode::new)
    }

    fn with_str<R>(&self, read: impl FnOnce(&str) -> R) -> Option<R> {
        self.string().map(|text| with_text(text, read))
    }

    fn text(&self) -> Option<PyText> {
        self.string().map(|text| PyText::new(text.clone()))
    }

    fn bool(&self) -> Option<bool> {
        match self.form {
            Form::Bool => self.object.extract().ok(),
            _ => None,
        }
    }

    fn number(&self) -> Option<f64> {
        match self.form {
            Form::Int | Form::Float => self.object.extract().ok(),
            _ => None,
        }
    }

    fn capture_below(&self, depth: usize) -> Result<Value<PyText>> {
        if depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        Ok(match self.form {
            Form::Null => Value::Null,
            Form::Bool => Value::Bool(self.bool().unwrap_or(false)),
            Form::Int | Form::Float => Value::Number(number_text(&self.object)?),
            Form::Text => match self.text() {
                Some(text) => Value::Text(text),
                None => Value::Null,
            },
            Form::List | Form::Tuple => {
                let mut items = Vec::with_capacity(self.len());
                // By index: other threads may change the list while an attribute is read.
                while let Some(item) = self.item(items.len()) {
                    items.push(item.capture_below(depth + 1)?);
                }
                Value::List(items.into())
            }
            Form::Dict => {
                let dict = self.object.cast::<PyDict>();
                // A snapshot, for the same reason.
                let entries = dict.map_err(|_| no_json("a dict"))?.items();
                Self::capture_entries(&entries, depth)?
            }
            Form::Mapping => {
                let entries =
                    mapping_items(&self.object).map_err(|_| no_json("a mapping without items"))?;
                Self::capture_entries(&entries, depth)?
            }
            Form::Object => {
                let entries = fields(&self.object).map_err(|_| no_json("an object"))?;
                Self::capture_entries(&entries, depth)?
            }
            // Some clients keep payloads as bytes, which are sent as base64.
            Form::Other => match self.object.cast::<PyBytes>() {
                Ok(bytes) => Value::Text(PyText::of_bytes(bytes.clone())),
                Err(_) => return Err(no_json("an unsupported type")),
            },
        })
    }
}

/// The messages as a list: any iterable of them, but no string and no dict; None for what is none.
///
/// # Errors
/// What the caller's own iterator raises, unchanged: a history that ends early is no history.
pub(crate) fn message_list<'py>(
    messages: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyList>>> {
    if let Ok(list) = messages.cast::<PyList>() {
        return Ok(Some(list.clone()));
    }
    if messages.is_instance_of::<PyString>()
        || messages.is_instance_of::<PyBytes>()
        || messages.is_instance_of::<PyDict>()
    {
        return Ok(None);
    }
    let iterator = match messages.try_iter() {
        Ok(iterator) => iterator,
        Err(error) if error.is_instance_of::<PyTypeError>(messages.py()) => return Ok(None),
        Err(error) => return Err(error),
    };
    let list = PyList::empty(messages.py());
    for message in iterator {
        list.append(message?)?;
    }
    Ok(Some(list))
}

#[cold]
fn no_json(what: &str) -> Error {
    Error::new(
        ErrorKind::InvalidMessage,
        format!("{what} has no JSON form"),
    )
}

/// A number as Python's `json` writes it: any size of integer, the shortest float, `NaN` and
/// `Infinity` by those names.
fn number_text(number: &Bound<'_, PyAny>) -> Result<Box<str>> {
    if let Ok(value) = number.cast::<PyFloat>().map(PyFloatMethods::value) {
        if value.is_nan() {
            return Ok("NaN".into());
        }
        if value.is_infinite() {
            return Ok(if value > 0.0 { "Infinity" } else { "-Infinity" }.into());
        }
        return representation::<PyFloat>(number);
    }
    match number.extract::<i64>() {
        Ok(value) => Ok(value.to_string().into()),
        Err(_) => representation::<PyInt>(number),
    }
}

/// The `repr` of the built-in type: subclasses (enumerations) have their own.
fn representation<T: PyTypeInfo>(number: &Bound<'_, PyAny>) -> Result<Box<str>> {
    let py = number.py();
    py.get_type::<T>()
        .call_method1(intern!(py, "__repr__"), (number,))
        .and_then(|text| text.extract::<String>())
        .map(String::into_boxed_str)
        // The interpreter refuses to print integers beyond its digit limit, `json` does so too.
        .map_err(|_| no_json("an integer with more digits than the interpreter prints"))
}

/// The items of a mapping or the public fields of an object, as pairs; None if they cannot be read.
pub(crate) fn public_items<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyList>> {
    match Form::of(value) {
        Form::Dict | Form::Mapping => mapping_items(value).ok(),
        Form::Object => fields(value).ok(),
        _ => None,
    }
}

fn mapping_items<'py>(mapping: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = mapping.py();
    let items = mapping.call_method0(intern!(py, "items"))?;
    Ok(py.get_type::<PyList>().call1((items,))?.cast_into()?)
}

/// The public fields of an object as pairs. Of a pydantic model those that were set, extra ones
/// included, which is what the SDKs send.
fn fields<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = object.py();
    let found = PyList::empty(py);
    let set = object.getattr_opt(intern!(py, "__pydantic_fields_set__"))?;
    let sources = [
        object.getattr_opt(intern!(py, "__dict__"))?,
        object.getattr_opt(intern!(py, "__pydantic_extra__"))?,
    ];
    for source in sources.iter().flatten() {
        let Ok(source) = source.cast::<PyDict>() else {
            continue;
        };
        for entry in source.items() {
            let (name, _value) = entry.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
            let is_private = name
                .extract::<String>()
                .is_ok_and(|name| name.starts_with('_'));
            let is_set = match &set {
                Some(set) => set.contains(&name)?,
                None => true,
            };
            if is_set && !is_private {
                found.append(entry)?;
            }
        }
    }
    // Dataclasses with slots have no dict.
    if sources[0].is_none()
        && let Some(names) = object.getattr_opt(intern!(py, "__dataclass_fields__"))?
    {
        for name in names.try_iter()? {
            let name = name?.cast_into::<PyString>()?;
            let value = object.getattr(&name)?;
            found.append((name, value))?;
        }
    }
    Ok(found)
}

/// The interned Python string of a field name. Readers ask for a fixed set of names; each is made
/// once for the process.
fn interned<'py>(py: Python<'py>, key: &'static str) -> Bound<'py, PyString> {
    macro_rules! table {
        ($($name:literal)*) => {
            match key {
                $($name => intern!(py, $name).clone(),)*
                other => PyString::intern(py, other),
            }
        };
    }
    table! {
        "role" "content" "type" "text" "tool_calls" "name" "id" "function" "arguments"
        "tool_call_id" "tool_use_id" "input" "is_error" "refusal" "audio" "function_call"
        "reasoning_content" "reasoning" "reasoning_details" "thinking_blocks" "custom"
        "parts" "call_id" "output" "toolUse" "toolResult" "toolUseId" "functionCall"
        "functionResponse" "function_response" "args" "response" "thoughtSignature"
        "thought_signature" "thought" "status"
    }
}
