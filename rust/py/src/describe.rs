//! What a reader made of a message, as plain Python values: for tests of the readers, for the
//! parity of the two representations, and for looking at a message that surprises.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use satchel_core::dialect::{self, Dialect};
use satchel_core::error::{Error, ErrorKind};
use satchel_core::message::{Message, Part, PartKind, PathStep};
use satchel_core::node::Text;

use crate::error::PyError;
use crate::gil::run;
use crate::node::PyNode;
use crate::pytext::PyText;

/// The dialect that a list of messages gives away, or None.
#[pyfunction]
#[pyo3(signature = (messages, /))]
pub(crate) fn detect_dialect(messages: &Bound<'_, PyList>) -> Option<&'static str> {
    dialect::detect(messages.iter().map(PyNode::new)).map(Dialect::name)
}

/// Role, name and parts of one message, as the reader of `dialect` sees it.
#[pyfunction]
#[pyo3(signature = (message, /, dialect))]
pub(crate) fn describe_message<'py>(
    py: Python<'py>,
    message: Bound<'py, PyAny>,
    dialect: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let dialect = Dialect::from_name(dialect).map_err(PyError)?;
    let message = dialect::read_message(dialect, &PyNode::new(message), 0).map_err(PyError)?;
    describe(py, &message)
}

/// The same for a message that is still JSON text.
#[pyfunction]
#[pyo3(signature = (json, /, dialect))]
pub(crate) fn describe_json<'py>(
    py: Python<'py>,
    json: &str,
    dialect: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let dialect = Dialect::from_name(dialect).map_err(PyError)?;
    let json: serde_json::Value = serde_json::from_str(json).map_err(|error| {
        let place = format!("no JSON at line {} column {}", error.line(), error.column());
        PyError(Error::new(ErrorKind::InvalidMessage, place))
    })?;
    let message = dialect::read_message(dialect, &&json, 0).map_err(PyError)?;
    describe(py, &message)
}

/// How a string is kept: the caller's object again, its UTF-8 as read on another thread without
/// the interpreter, and its page bytes.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn describe_text<'py>(
    py: Python<'py>,
    text: Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyDict>> {
    let text = PyText::new(text);
    let (text, utf8) = run(py, move || {
        let reader = std::thread::spawn(move || {
            let utf8 = text.with(str::to_owned);
            (text, utf8)
        });
        reader
            .join()
            .map_err(|_| Error::new(ErrorKind::InvalidMessage, "the reading thread failed"))
    })?;
    let described = PyDict::new(py);
    described.set_item("object", text.object(py))?;
    described.set_item("utf8", PyBytes::new(py, utf8.as_bytes()))?;
    described.set_item("page", PyBytes::new(py, &text.to_bytes()))?;
    let mut json = String::new();
    text.write_json(&mut json);
    described.set_item("json", json)?;
    // Dropped where no interpreter is attached.
    py.detach(move || drop(text));
    Ok(described)
}

fn describe<'py, T: Text>(py: Python<'py>, message: &Message<T>) -> PyResult<Bound<'py, PyDict>> {
    let described = PyDict::new(py);
    described.set_item("role", message.role.name())?;
    described.set_item("name", message.name.as_ref().map(owned))?;
    let parts = PyList::empty(py);
    for part in &message.parts {
        parts.append(describe_part(py, part)?)?;
    }
    described.set_item("parts", parts)?;
    Ok(described)
}

fn describe_part<'py, T: Text>(py: Python<'py>, part: &Part<T>) -> PyResult<Bound<'py, PyDict>> {
    let described = PyDict::new(py);
    described.set_item("kind", kind_name(part.kind))?;
    let place = PyList::empty(py);
    for step in part.place.path() {
        match step {
            PathStep::Key(key) => place.append(key)?,
            PathStep::Index(index) => place.append(index)?,
        }
    }
    described.set_item("place", place)?;
    described.set_item("is_error", part.is_error)?;
    let key = part.key.as_deref();
    described.set_item("id", key.and_then(|key| key.id.as_ref()).map(owned))?;
    described.set_item("tool", key.and_then(|key| key.name.as_ref()).map(owned))?;
    described.set_item("page", PyBytes::new(py, &part.body.page_bytes()))?;
    Ok(described)
}

fn owned<T: Text>(text: &T) -> String {
    text.with(str::to_owned)
}

/// The kind of a part, in one word.
pub(crate) fn kind_name(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Text => "text",
        PartKind::Image => "image",
        PartKind::Audio => "audio",
        PartKind::File => "file",
        PartKind::Call => "call",
        PartKind::Result => "result",
        PartKind::Reasoning => "reasoning",
        PartKind::Opaque => "opaque",
    }
}
