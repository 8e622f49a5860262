//! `satchel.read_transcripts`: bytes of a file in, conversations out as Python objects.

use std::collections::BTreeMap;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use satchel_core::readers::json::{Json, JsonText};
use satchel_core::readers::{Conversation, Format, Item, Reader, Usage};

use crate::error::PyError;
use crate::gil::run;

/// Most keys that are kept to be used again: transcripts have a few dozen.
const MOST_KEYS: usize = 1 << 10;

/// Longest key that is kept, in bytes.
const LONGEST_KEY: usize = 64;

/// The names of the formats, in the order of the documentation.
#[pyfunction]
pub(crate) fn transcript_formats() -> Vec<&'static str> {
    Format::ALL.into_iter().map(Format::name).collect()
}

/// Reads one file piece by piece.
#[pyclass(name = "TranscriptReader", module = "satchel._core")]
#[derive(Debug)]
pub(crate) struct PyTranscriptReader {
    reader: Option<Reader>,
    keys: BTreeMap<Box<str>, Py<PyString>>,
}

#[pymethods]
impl PyTranscriptReader {
    #[new]
    #[pyo3(signature = (format=None))]
    fn new(format: Option<&str>) -> PyResult<Self> {
        let format = format.map(Format::from_name).transpose().map_err(PyError)?;
        Ok(Self {
            reader: Some(Reader::new(format)),
            keys: BTreeMap::new(),
        })
    }

    /// Takes the next bytes; gives what they complete.
    fn feed<'py>(&mut self, py: Python<'py>, bytes: PyBackedBytes) -> PyResult<Bound<'py, PyList>> {
        let Some(reader) = &mut self.reader else {
            return Ok(PyList::empty(py));
        };
        let items = run(py, || Ok(reader.feed(&bytes)))?;
        self.converted(py, items)
    }

    /// Ends the file; gives what is left.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let Some(mut reader) = self.reader.take() else {
            return Ok(PyList::empty(py));
        };
        let items = run(py, || Ok(reader.finish()))?;
        self.converted(py, items)
    }
}

impl PyTranscriptReader {
    fn converted<'py>(
        &mut self,
        py: Python<'py>,
        items: Vec<Item>,
    ) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for item in items {
            match item {
                Ok(conversation) => list.append(self.conversation(py, conversation)?)?,
                Err(problem) => list.append((problem.line, problem.message))?,
            }
        }
        Ok(list)
    }

    fn conversation<'py>(
        &mut self,
        py: Python<'py>,
        conversation: Conversation,
    ) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("format", conversation.format.name())?;
        fields.set_item("dialect", conversation.dialect.as_deref())?;
        let messages = self.list(py, conversation.messages)?;
        fields.set_item("messages", messages)?;
        let system = conversation
            .system
            .map(|value| self.value(py, value))
            .transpose()?;
        fields.set_item("system", system)?;
        let tools = conversation
            .tools
            .map(|value| self.value(py, value))
            .transpose()?;
        fields.set_item("tools", tools)?;
        fields.set_item("model", conversation.model.as_deref())?;
        let usage = PyList::empty(py);
        for reported in conversation.usage {
            usage.append(self.usage(py, reported)?)?;
        }
        fields.set_item("usage", usage)?;
        let metadata = PyDict::new(py);
        for (key, value) in conversation.metadata {
            metadata.set_item(key, self.value(py, value)?)?;
        }
        fields.set_item("metadata", metadata)?;
        fields.set_item("line", conversation.line)?;
        Ok(fields)
    }

    fn usage<'py>(&mut self, py: Python<'py>, usage: Usage) -> PyResult<Bound<'py, PyTuple>> {
        let record = self.value(py, usage.record)?;
        let model = usage.model.as_deref();
        (
            usage.index,
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output,
            model,
            record,
        )
            .into_pyobject(py)
    }

    fn list<'py>(&mut self, py: Python<'py>, items: Vec<Json>) -> PyResult<Bound<'py, PyList>> {
        let items = items
            .into_iter()
            .map(|item| self.value(py, item))
            .collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, items)
    }

    fn value<'py>(&mut self, py: Python<'py>, value: Json) -> PyResult<Bound<'py, PyAny>> {
        Ok(match value {
            Json::Null => py.None().into_bound(py),
            Json::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
            Json::Int(number) => number.into_pyobject(py)?.into_any(),
            Json::Number(number) => parsed_number(py, &number)?,
            Json::Text(text) => string(py, &text)?.into_any(),
            Json::List(items) => self.list(py, items)?.into_any(),
            Json::Map(entries) => {
                let dict = PyDict::new(py);
                for (key, value) in entries {
                    let value = self.value(py, value)?;
                    dict.set_item(self.key(py, &key), value)?;
                }
                dict.into_any()
            }
        })
    }

    /// The same string object for the same key: a quarter of the time and most of the memory.
    fn key<'py>(&mut self, py: Python<'py>, key: &str) -> Bound<'py, PyString> {
        if let Some(kept) = self.keys.get(key) {
            return kept.bind(py).clone();
        }
        let made = PyString::new(py, key);
        if key.len() <= LONGEST_KEY && self.keys.len() < MOST_KEYS {
            self.keys.insert(key.into(), made.clone().unbind());
        }
        made
    }
}

fn string<'py>(py: Python<'py>, text: &JsonText) -> PyResult<Bound<'py, PyString>> {
    if let Some(text) = text.as_str() {
        return Ok(PyString::new(py, text));
    }
    let bytes = PyBytes::new(py, text.as_bytes());
    let text = bytes.call_method1("decode", ("utf-8", "surrogatepass"))?;
    text.cast_into::<PyString>()
        .map_err(|_| PyTypeError::new_err("bytes.decode returned no str"))
}

/// A number that is no small integer, as `json.loads` reads it.
fn parsed_number<'py>(py: Python<'py>, number: &str) -> PyResult<Bound<'py, PyAny>> {
    if number
        .bytes()
        .all(|byte| byte == b'-' || byte.is_ascii_digit())
    {
        // Python refuses to read some thousands of digits: such a number is as good as infinite.
        if let Ok(integer) = py.get_type::<PyInt>().call1((number,)) {
            return Ok(integer);
        }
    }
    let number = number.parse().unwrap_or(f64::NAN);
    Ok(PyFloat::new(py, number).into_any())
}
