//! `Counter.count_messages` and what it returns.

use numpy::PyArray1;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use satchel_core::dialect::{self, Dialect};
use satchel_core::error::Error;
use satchel_core::message::Message;
use satchel_core::node::{Node, Value};
use satchel_core::tokens::chat::{ChatRules, count_message_parts, is_exact, message_overhead};
use satchel_core::tokens::tools::{ToolRules, ToolTokens, tool_tokens};
use satchel_core::tokens::{Counter, Scale};

use crate::calibration::PyCalibration;
use crate::counter::PyCounter;
use crate::error::{PyError, invalid_value};
use crate::gil::run;
use crate::node::{PyNode, message_list};
use crate::pytext::PyText;
use crate::utf8::wrong_type;

/// What the messages of one request cost.
#[pyclass(name = "MessageTokens", module = "satchel", frozen)]
#[derive(Debug)]
pub(crate) struct PyMessageTokens {
    per_message: Py<PyArray1<u32>>,
    counts: Counts,
}

/// The sums beside the array.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counts {
    total: u64,
    upper: u64,
    system: u32,
    tools: u32,
    overhead: u32,
    exact: bool,
}

#[pymethods]
impl PyMessageTokens {
    #[new]
    #[pyo3(signature = (*, per_message, total, upper, system, tools, overhead, exact))]
    fn new(
        per_message: Bound<'_, PyArray1<u32>>,
        total: u64,
        upper: u64,
        system: u32,
        tools: u32,
        overhead: u32,
        exact: bool,
    ) -> PyResult<Self> {
        let counts = Counts {
            total,
            upper,
            system,
            tools,
            overhead,
            exact,
        };
        Self::of(per_message, counts)
    }

    #[getter]
    fn per_message<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        self.per_message.bind(py).clone()
    }

    #[getter]
    fn total(&self) -> u64 {
        self.counts.total
    }

    #[getter]
    fn upper(&self) -> u64 {
        self.counts.upper
    }

    #[getter]
    fn system(&self) -> u32 {
        self.counts.system
    }

    #[getter]
    fn tools(&self) -> u32 {
        self.counts.tools
    }

    #[getter]
    fn overhead(&self) -> u32 {
        self.counts.overhead
    }

    #[getter]
    fn exact(&self) -> bool {
        self.counts.exact
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Counts {
            total,
            upper,
            system,
            tools,
            overhead,
            exact,
        } = self.counts;
        let messages = self.per_message.bind(py).len()?;
        let exact = if exact { "True" } else { "False" };
        Ok(format!(
            "MessageTokens(total={total}, upper={upper}, system={system}, tools={tools}, \
             overhead={overhead}, exact={exact}, messages={messages})"
        ))
    }

    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let fields = PyDict::new(py);
        fields.set_item("per_message", &self.per_message)?;
        fields.set_item("total", self.counts.total)?;
        fields.set_item("upper", self.counts.upper)?;
        fields.set_item("system", self.counts.system)?;
        fields.set_item("tools", self.counts.tools)?;
        fields.set_item("overhead", self.counts.overhead)?;
        fields.set_item("exact", self.counts.exact)?;
        Ok((PyTuple::empty(py), fields))
    }
}

impl PyMessageTokens {
    fn of(per_message: Bound<'_, PyArray1<u32>>, counts: Counts) -> PyResult<Self> {
        let py = per_message.py();
        let read_only = PyDict::new(py);
        read_only.set_item("write", false)?;
        per_message.call_method(intern!(py, "setflags"), (), Some(&read_only))?;
        Ok(Self {
            per_message: per_message.unbind(),
            counts,
        })
    }
}

/// Tokens of the messages of a request: `Counter.count_messages`.
pub(crate) fn count_messages(
    py: Python<'_>,
    counter: &PyCounter,
    messages: &Bound<'_, PyAny>,
    system: Option<Bound<'_, PyAny>>,
    tools: Option<Bound<'_, PyAny>>,
    dialect: Option<&str>,
    calibration: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyMessageTokens> {
    let messages = message_list(messages)?.ok_or_else(|| {
        invalid_value(&wrong_type("messages", "an iterable of messages", messages))
    })?;
    let dialect = match dialect {
        Some(name) => Dialect::from_name(name).map_err(PyError)?,
        None => dialect::detect(messages.iter().map(PyNode::new)).unwrap_or(Dialect::OpenAi),
    };
    let calibration = calibration.map(scale_of).transpose()?;
    let request = Request {
        messages: messages
            .iter()
            .enumerate()
            .map(|(index, message)| {
                dialect::read_message(dialect, &PyNode::new(message), index)
                    .map_err(|error| PyError(error).into())
            })
            .collect::<PyResult<_>>()?,
        system: system
            .map(|system| dialect::read_system(&PyNode::new(system)))
            .transpose()
            .map_err(PyError)?,
        tools: tools
            .map(|tools| PyNode::new(tools).capture())
            .transpose()
            .map_err(|error| PyError(error.of_argument("tools")))?,
        chat_rules: ChatRules::for_counter(dialect, &counter.0),
        tool_rules: ToolRules::for_counter(dialect, &counter.0),
    };
    let counter = &counter.0;
    // A counter of the caller's own needs the interpreter, and this thread.
    let (bill, _request) = if counter.foreign_source().is_some() {
        request.count(counter).map_err(PyError)?
    } else {
        run(py, move || request.count(counter))?
    };
    let counts = bill.sums(counter, calibration);
    PyMessageTokens::of(PyArray1::from_vec(py, bill.per_message), counts)
}

/// A request as it was read, ready to be counted without the interpreter.
struct Request {
    messages: Vec<Message<PyText>>,
    system: Option<Message<PyText>>,
    tools: Option<Value<PyText>>,
    chat_rules: ChatRules,
    tool_rules: ToolRules,
}

struct Counted {
    per_message: Vec<u32>,
    system: u32,
    tools: ToolTokens,
    overhead: u32,
    exact: bool,
}

impl Request {
    /// Counts, and gives the request back to be dropped where the interpreter is attached.
    fn count(mut self, counter: &Counter) -> Result<(Counted, Self), Error> {
        let rules = self.chat_rules;
        // The system argument is counted in the same batch as the messages.
        let has_system = self.system.is_some();
        self.messages.extend(self.system.take());
        count_message_parts(&mut self.messages, counter)?;
        let mut per_message = Vec::with_capacity(self.messages.len());
        let mut exact = counter.exact();
        for message in &self.messages {
            exact &= is_exact(message, &rules);
            let overhead = message_overhead(message, &rules, counter)?;
            let tokens = message.parts.iter().map(|part| part.tokens);
            per_message.push(tokens.fold(overhead, u32::saturating_add));
        }
        let system = if has_system {
            per_message.pop().unwrap_or(0)
        } else {
            0
        };
        let tools = match &self.tools {
            Some(tools) => tool_tokens(tools, &self.tool_rules, counter)?,
            None => ToolTokens {
                tokens: 0,
                exact: true,
            },
        };
        let bill = Counted {
            per_message,
            system,
            tools,
            overhead: rules.request_tokens(),
            exact: exact && rules.exact && tools.exact,
        };
        Ok((bill, self))
    }
}

impl Counted {
    fn sums(&self, counter: &Counter, calibration: Option<Scale>) -> Counts {
        let messages: u64 = self.per_message.iter().copied().map(u64::from).sum();
        let fixed = u64::from(self.system) + u64::from(self.tools.tokens);
        let sum = messages + fixed + u64::from(self.overhead);
        let margin = counter.margin();
        let (total, upper) = match calibration {
            None => (sum, (sum as f64 * (1.0 + margin)).ceil() as u64),
            Some(scale) => (scale.estimate(sum), scale.upper(sum, margin)),
        };
        Counts {
            total,
            upper: upper.max(total),
            system: self.system,
            tools: self.tools.tokens,
            overhead: self.overhead,
            exact: self.exact && calibration.is_none(),
        }
    }
}

/// The line of a calibration: ours, or any object with a `factor` and an `offset`.
fn scale_of(calibration: &Bound<'_, PyAny>) -> PyResult<Scale> {
    if let Ok(calibration) = calibration.cast::<PyCalibration>() {
        return Ok(calibration.get().0.scale());
    }
    let py = calibration.py();
    let field = |name| -> Option<f64> { calibration.getattr(name).ok()?.extract().ok() };
    let scale = match (field(intern!(py, "factor")), field(intern!(py, "offset"))) {
        (Some(factor), Some(offset)) => Scale {
            factor,
            offset,
            margin: field(intern!(py, "margin")),
        },
        _ => {
            return Err(invalid_value(
                "calibration must be a satchel.Calibration or have a factor and an offset",
            ));
        }
    };
    scale.check().map_err(PyError)?;
    Ok(scale)
}
