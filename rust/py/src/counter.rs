//! `satchel.Counter`.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use satchel_core::tokens::{Counter, Keep, ModelRules};

use crate::argument::optional;
use crate::callback::{Callback, counter_from_python, counter_of_ranks};
use crate::error::{PyError, invalid_value};
use crate::gil::run;
use crate::message_tokens::{PyMessageTokens, count_messages};
use crate::utf8::{Text, text_of, with_text, wrong_type};

/// Bytes below which releasing the interpreter costs more than it gives.
const DETACH_BYTES: usize = 8 * 1024;

/// Counts texts in tokens. Immutable, shared between threads, pickles; compares by value, hashes by name.
#[pyclass(name = "Counter", module = "satchel", frozen)]
#[derive(Debug)]
pub(crate) struct PyCounter(
    pub(crate) Counter,
    /// The encoding whose ranks are inside, for pickling and comparing.
    pub(crate) Option<Py<PyAny>>,
);

#[pymethods]
impl PyCounter {
    #[new]
    #[pyo3(signature = (encoding, /, *, exact=None, margin=None, rules=None))]
    fn new(
        encoding: &Bound<'_, PyAny>,
        exact: Option<&Bound<'_, PyAny>>,
        margin: Option<&Bound<'_, PyAny>>,
        rules: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let exact = optional(exact, "exact", "a bool")?;
        let margin = optional(margin, "margin", "a number")?;
        let rules: Option<String> = optional(rules, "rules", "JSON text")?;
        let (counter, source) = if encoding.is_instance_of::<PyString>() {
            let counter = with_text(encoding, "encoding", |name| {
                Ok(Counter::named(name).map_err(PyError)?)
            })?;
            (counter, None)
        } else if let Some(counter) = counter_of_ranks(encoding)? {
            (counter, Some(encoding.clone().unbind()))
        } else {
            let source = encoding
                .cast::<Self>()
                .ok()
                .and_then(|counter| Some(counter.get().1.as_ref()?.clone_ref(encoding.py())));
            (counter_from_python(encoding)?, source)
        };
        let counter = match rules {
            Some(rules) => counter.with_rules(ModelRules::from_json(&rules).map_err(PyError)?),
            None => counter,
        };
        let exact = exact.unwrap_or_else(|| counter.exact());
        let margin = margin.unwrap_or_else(|| counter.margin());
        let counter = counter.with_margin(exact, margin).map_err(PyError)?;
        Ok(Self(counter, source))
    }

    #[getter]
    fn exact(&self) -> bool {
        self.0.exact()
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn encoding(&self) -> &str {
        self.0.encoding()
    }

    #[getter]
    fn rules(&self) -> Option<String> {
        self.0.rules().map(ModelRules::to_json)
    }

    #[getter]
    fn margin(&self) -> f64 {
        self.0.margin()
    }

    #[pyo3(signature = (text, /))]
    fn count(&self, text: &Bound<'_, PyAny>) -> PyResult<u32> {
        self.work(text, Counter::count)
    }

    #[pyo3(signature = (texts, /))]
    fn count_many<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let wrong = || invalid_value(&wrong_type("texts", "an iterable of str", texts));
        if texts.is_instance_of::<PyString>() {
            return Err(wrong());
        }
        let items = texts.try_iter().map_err(|_| wrong())?;
        let owned = items
            .map(|item| text_of(&item?, "texts"))
            .collect::<PyResult<Vec<_>>>()?;
        let views: Vec<&str> = owned.iter().map(Text::as_str).collect();
        let counts = if self.0.foreign_source().is_some() {
            self.0.count_many(&views).map_err(PyError)?
        } else {
            run(py, || self.0.count_many_parallel(&views))?
        };
        Ok(PyArray1::from_vec(py, counts))
    }

    #[pyo3(signature = (text, max_tokens))]
    fn fits(&self, text: &Bound<'_, PyAny>, max_tokens: &Bound<'_, PyAny>) -> PyResult<bool> {
        let max = limit(max_tokens, "max_tokens")?;
        self.work(text, |counter, text| counter.fits(text, max))
    }

    #[pyo3(
        signature = (text, max_tokens, *, keep=None),
        text_signature = "($self, text, max_tokens, *, keep='head')"
    )]
    fn truncate(
        &self,
        text: &Bound<'_, PyAny>,
        max_tokens: &Bound<'_, PyAny>,
        keep: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let max = limit(max_tokens, "max_tokens")?;
        let keep = keep.map_or(Ok(Keep::Head), read_keep)?;
        self.work(text, |counter, text| counter.truncate(text, max, keep))
    }

    #[pyo3(signature = (messages, /, *, system=None, tools=None, dialect=None, calibration=None))]
    fn count_messages(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        system: Option<Bound<'_, PyAny>>,
        tools: Option<Bound<'_, PyAny>>,
        dialect: Option<&Bound<'_, PyAny>>,
        calibration: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyMessageTokens> {
        let dialect: Option<String> = optional(dialect, "dialect", "a str")?;
        let dialect = dialect.as_deref();
        count_messages(py, self, messages, system, tools, dialect, calibration)
    }

    fn __repr__(&self) -> String {
        let (name, margin) = (self.0.encoding(), self.0.margin());
        let exact = if self.0.exact() { "True" } else { "False" };
        let model = match self.0.rules() {
            Some(rules) => format!(" of '{}'", rules.name),
            None => String::new(),
        };
        format!("Counter('{name}', exact={exact}, margin={margin}){model}")
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else {
            return Ok(py.NotImplemented());
        };
        let other = other.get();
        let same = self.0.encoding() == other.0.encoding()
            && self.0.rules() == other.0.rules()
            && self.0.exact() == other.0.exact()
            && self.0.margin().to_bits() == other.0.margin().to_bits()
            && match (self.source(py), other.source(py)) {
                (None, None) => true,
                (Some(left), Some(right)) => left.eq(right)?,
                _ => false,
            };
        Ok(same.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::new(py, self.0.name()).hash()
    }

    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<((Bound<'py, PyAny>,), Bound<'py, PyDict>)> {
        let made_of = match self.source(py) {
            Some(source) => source,
            None => PyString::new(py, self.0.encoding()).into_any(),
        };
        let options = PyDict::new(py);
        options.set_item("exact", self.0.exact())?;
        options.set_item("margin", self.0.margin())?;
        options.set_item("rules", self.rules())?;
        Ok(((made_of,), options))
    }
}

impl PyCounter {
    /// The caller's object behind the counts.
    fn source<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        if let Some(source) = &self.1 {
            return Some(source.bind(py).clone());
        }
        let source: &dyn std::any::Any = self.0.foreign_source()?;
        let callback: &Callback = source.downcast_ref()?;
        Some(callback.source.bind(py).clone())
    }

    /// Works on one text, with the interpreter released if it is long.
    fn work<T: Send>(
        &self,
        text: &Bound<'_, PyAny>,
        work: impl FnOnce(&Counter, &str) -> Result<T, satchel_core::Error> + Send,
    ) -> PyResult<T> {
        with_text(text, "text", |view| {
            if view.len() < DETACH_BYTES || self.0.foreign_source().is_some() {
                Ok(work(&self.0, view).map_err(PyError)?)
            } else {
                run(text.py(), || work(&self.0, view))
            }
        })
    }
}

/// A number of tokens: an int from 0; more than any text can have is no limit.
pub(crate) fn limit(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u32> {
    if let Ok(limit) = value.extract::<u32>() {
        return Ok(limit);
    }
    match value.lt(0) {
        Ok(false) if value.is_instance_of::<pyo3::types::PyInt>() => Ok(u32::MAX),
        Ok(true) => Err(invalid_value(&format!(
            "{name} is {value}, must be at least 0"
        ))),
        _ => Err(invalid_value(&wrong_type(name, "an int", value))),
    }
}

fn read_keep(value: &Bound<'_, PyAny>) -> PyResult<Keep> {
    let wrong = || invalid_value("keep must be 'head', 'tail' or 'both'");
    let name = value.cast::<PyString>().map_err(|_| wrong())?;
    match &*name.to_cow().map_err(|_| wrong())? {
        "head" => Ok(Keep::Head),
        "tail" => Ok(Keep::Tail),
        "both" => Ok(Keep::Both),
        _ => Err(wrong()),
    }
}
