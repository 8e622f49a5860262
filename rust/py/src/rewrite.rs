//! `satchel.batch`: stretches of files and columns in, windows out, detached from the interpreter.

use std::sync::{Arc, Mutex};

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use satchel_core::dialect::Dialect;
use satchel_core::error::{Error, ErrorKind, Result};
use satchel_core::policy::Policy;
use satchel_core::readers::json::{Json, parse};
use satchel_core::readers::{Format, Item, Problem, Reader, has_rows, read_value};
use satchel_core::replay::Limit;
use satchel_core::rewrite::{At, Form, Lines, Options, Output, Price, Rejected};
use satchel_core::strategy::price::Prices;

use crate::counter::PyCounter;
use crate::error::{PyError, invalid_value};
use crate::gil::run;
use crate::redact::kinds_of;
use crate::repair::traits_of;

/// Whether a file that begins like this has a conversation a line.
#[pyfunction]
#[pyo3(signature = (head, file_format))]
#[allow(
    clippy::needless_pass_by_value,
    reason = "arguments as Python gives them"
)]
pub(crate) fn has_rows_of(
    py: Python<'_>,
    head: PyBackedBytes,
    file_format: Option<&str>,
) -> PyResult<bool> {
    let format = format_of(file_format).map_err(PyError)?;
    run(py, || Ok(has_rows(&head, format)))
}

/// How many lines end in these bytes.
#[pyfunction]
#[pyo3(signature = (data, /))]
#[allow(
    clippy::needless_pass_by_value,
    reason = "arguments as Python gives them"
)]
pub(crate) fn count_line_ends(data: PyBackedBytes) -> usize {
    memchr::memchr_iter(b'\n', &data).count()
}

/// Texts one after the other, and where each begins.
type Texts<'py> = (PyReadonlyArray1<'py, i64>, PyBackedBytes);

/// Writes conversations anew; immutable, shared between threads.
#[pyclass(name = "Rewriter", frozen, module = "satchel._core")]
#[derive(Debug)]
pub(crate) struct PyRewriter(Arc<Options>);

#[pymethods]
impl PyRewriter {
    #[new]
    #[pyo3(signature = (model, *, traits, prefix_bound, counter, policy, share, tokens, at, target, prices, price, pages, redact))]
    #[allow(
        clippy::too_many_arguments,
        clippy::needless_pass_by_value,
        reason = "a border function takes its options one by one; Python names them"
    )]
    fn new(
        model: String,
        traits: Vec<String>,
        prefix_bound: bool,
        counter: &PyCounter,
        policy: &str,
        share: Option<f64>,
        tokens: Option<u64>,
        at: &str,
        target: Option<&str>,
        prices: &str,
        price: Option<(f64, Option<u64>, f64)>,
        pages: bool,
        redact: Vec<String>,
    ) -> PyResult<Self> {
        let policy: Policy = serde_json::from_str(policy)
            .map_err(|error| invalid_value(&format!("a policy cannot be read: {error}")))?;
        policy.validate().map_err(PyError)?;
        let prices: Prices = serde_json::from_str(prices)
            .map_err(|error| invalid_value(&format!("prices cannot be read: {error}")))?;
        prices.validate().map_err(PyError)?;
        let limit = match (share, tokens) {
            (Some(share), None) => Limit::Share(share),
            (None, Some(tokens)) => Limit::Tokens(tokens),
            _ => return Err(invalid_value("a budget is a share or a number of tokens")),
        };
        let target = target.map(Dialect::from_name).transpose();
        Ok(Self(Arc::new(Options {
            model,
            traits: traits_of(&traits),
            prefix_bound,
            counter: counter.0.clone(),
            policy: Arc::new(policy),
            limit,
            at: At::from_name(at).map_err(PyError)?,
            target: target.map_err(PyError)?,
            prices,
            price: price.map(|(input, long_above, long_input)| Price {
                input,
                long_above,
                long_input,
            }),
            pages,
            redact: kinds_of(&redact)?,
        })))
    }

    /// Rewrites lines of the file `source`, the first of which has the number `line`; each holds a
    /// conversation.
    #[pyo3(signature = (lines, source, line, file_format, *, columns))]
    #[allow(
        clippy::needless_pass_by_value,
        reason = "arguments as Python gives them"
    )]
    fn lines<'py>(
        &self,
        py: Python<'py>,
        lines: PyBackedBytes,
        source: &str,
        line: usize,
        file_format: Option<&str>,
        columns: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let output = run(py, || {
            let mut reader = Reader::rows(format_of(file_format)?, line);
            let mut out = Lines::new(self.0.clone(), source, form(columns));
            // A line at a time: what was read is written and dropped before the next.
            reader.feed_rows(&lines, |item| out.take([item]));
            Ok(out.finish())
        })?;
        given(py, output)
    }

    /// A reader of a whole file of any format.
    #[pyo3(signature = (source, file_format, *, columns))]
    fn file(
        &self,
        source: &str,
        file_format: Option<&str>,
        columns: bool,
    ) -> PyResult<PyRewriteReader> {
        let format = format_of(file_format).map_err(PyError)?;
        let lines = Lines::new(self.0.clone(), source, form(columns));
        Ok(PyRewriteReader {
            state: Mutex::new(Some((Reader::new(format), lines))),
        })
    }

    /// Rewrites rows of columns. `messages` holds lists of messages or whole conversations as JSON;
    /// `system` is JSON or plain text, `tools` JSON, an empty text stands for none. The first row
    /// has the number `row`, which takes the place of the line.
    #[pyo3(signature = (messages, system, tools, dialects, source, row, file_format, *, columns))]
    #[allow(
        clippy::too_many_arguments,
        clippy::needless_pass_by_value,
        reason = "a border function takes its columns one by one; Python names them"
    )]
    fn rows<'py>(
        &self,
        py: Python<'py>,
        messages: Texts<'py>,
        system: Option<Texts<'py>>,
        tools: Option<Texts<'py>>,
        dialects: Option<Texts<'py>>,
        source: &str,
        row: usize,
        file_format: Option<&str>,
        columns: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let messages = Strings::of(&messages)?;
        let [system, tools, dialects] =
            [&system, &tools, &dialects].map(|texts| texts.as_ref().map(Strings::of).transpose());
        let (system, tools, dialects) = (system?, tools?, dialects?);
        let output = run(py, || {
            let format = format_of(file_format)?;
            let mut out = Lines::new(self.0.clone(), source, form(columns));
            for at in 0..messages.len() {
                let others = [&system, &tools, &dialects]
                    .map(|column| column.as_ref().and_then(|column| column.get(at)));
                out.take(row_items(messages.get(at), others, format, row + at));
            }
            Ok(out.finish())
        })?;
        given(py, output)
    }
}

/// Reads one file piece by piece and writes its conversations anew.
#[pyclass(name = "RewriteReader", frozen, module = "satchel._core")]
#[derive(Debug)]
pub(crate) struct PyRewriteReader {
    state: Mutex<Option<(Reader, Lines)>>,
}

#[pymethods]
impl PyRewriteReader {
    /// Takes the next bytes.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "arguments as Python gives them"
    )]
    fn feed(&self, py: Python<'_>, piece: PyBackedBytes) -> PyResult<()> {
        run(py, || {
            if let Some((reader, lines)) = self.lock()?.as_mut() {
                lines.take(reader.feed(&piece));
            }
            Ok(())
        })
    }

    /// Notes that the rest of the file cannot be read.
    fn fail(&self, what: String) -> PyResult<()> {
        if let Some((reader, lines)) = self.lock().map_err(PyError)?.as_mut() {
            *reader = Reader::rows(None, 1);
            lines.take([Err(Problem {
                line: None,
                message: what,
            })]);
        }
        Ok(())
    }

    /// Ends the file; gives everything that came out.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let output = run(py, || {
            let Some((mut reader, mut lines)) = self.lock()?.take() else {
                return Ok(Output::default());
            };
            let items = reader.finish();
            // Its buffer was as long as the file, if that is one value.
            drop(reader);
            lines.take(items);
            Ok(lines.finish())
        })?;
        given(py, output)
    }
}

impl PyRewriteReader {
    fn lock(&self) -> Result<std::sync::MutexGuard<'_, Option<(Reader, Lines)>>> {
        self.state.try_lock().map_err(|_| {
            let message = "a file is read from one thread at a time";
            Error::new(ErrorKind::ConcurrentUse, message)
        })
    }
}

fn form(columns: bool) -> Form {
    if columns { Form::Columns } else { Form::Lines }
}

fn format_of(name: Option<&str>) -> Result<Option<Format>> {
    name.map(Format::from_name).transpose()
}

/// A column of texts.
struct Strings<'a> {
    offsets: &'a [i64],
    bytes: &'a [u8],
}

impl<'a> Strings<'a> {
    fn of(texts: &'a Texts<'_>) -> PyResult<Self> {
        let offsets = texts
            .0
            .as_slice()
            .map_err(|_| invalid_value("offsets must be contiguous"))?;
        Ok(Self {
            offsets,
            bytes: &texts.1,
        })
    }

    fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// The text of a row; `None` where it is empty, or no UTF-8.
    fn get(&self, row: usize) -> Option<&'a str> {
        let from = usize::try_from(*self.offsets.get(row)?).ok()?;
        let to = usize::try_from(*self.offsets.get(row + 1)?).ok()?;
        let text = std::str::from_utf8(self.bytes.get(from..to)?).ok()?;
        Some(text).filter(|text| !text.is_empty())
    }
}

/// The conversations of one row.
fn row_items(
    messages: Option<&str>,
    [system, tools, dialect]: [Option<&str>; 3],
    format: Option<Format>,
    row: usize,
) -> Vec<Item> {
    let value = parse(messages.unwrap_or("null"));
    let Ok(mut value) = value else {
        // Read again as a line, which says what is wrong and where.
        let mut reader = Reader::rows(format, row);
        let mut items = reader.feed(messages.unwrap_or_default().as_bytes());
        items.extend(reader.finish());
        return items;
    };
    let others = [
        ("system", system.map(loose)),
        ("tools", tools.map(loose)),
        ("dialect", dialect.map(Json::from)),
    ];
    if others.iter().any(|(_, other)| other.is_some()) {
        if value.is_list() {
            value = Json::map([("messages", value)]);
        }
        for (key, other) in others {
            if let Some(other) = other {
                value.set(key, other);
            }
        }
    }
    read_value(value, format, row)
}

/// What looks like JSON and is, else a plain text.
fn loose(text: &str) -> Json {
    let is_json = text.trim_start().starts_with(['"', '[', '{']);
    let value = is_json.then(|| parse(text).ok()).flatten();
    value.unwrap_or_else(|| text.into())
}

fn given(py: Python<'_>, output: Output) -> PyResult<Bound<'_, PyDict>> {
    let fields = PyDict::new(py);
    let bytes = |text: &str| PyBytes::new(py, text.as_bytes());
    fields.set_item("records", bytes(&output.records))?;
    for (name, column) in [
        ("messages", output.messages),
        ("system", output.system),
        ("tools", output.tools),
        ("reports", output.reports),
    ] {
        let offsets = column.offsets.into_pyarray(py);
        fields.set_item(name, (offsets, bytes(&column.text)))?;
    }
    fields.set_item("lines", output.lines.into_pyarray(py))?;
    fields.set_item("pages", bytes(&output.pages))?;
    fields.set_item("rejects", bytes(&output.rejects))?;
    let first = output.first.map(|first| {
        let Rejected {
            line,
            conversation,
            code,
            message,
        } = first;
        (line, conversation, code, message)
    });
    fields.set_item("first_reject", first)?;
    let counts = output.counts;
    for (name, count) in [
        ("conversations", counts.conversations),
        ("windows", counts.windows),
        ("rejected", counts.rejected),
        ("messages_in", counts.messages),
        ("tokens_before", counts.tokens_before),
        ("tokens_after", counts.tokens_after),
        ("violations", counts.violations),
        ("violations_left", counts.violations_left),
        ("repaired", counts.repaired),
        ("losses", counts.losses),
    ] {
        fields.set_item(name, count)?;
    }
    Ok(fields)
}
