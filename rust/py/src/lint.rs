//! `satchel.lint`: findings as rows, which Python turns into `Violation`s.

use pyo3::prelude::*;
use pyo3::types::PyList;
use satchel_core::dialect::Dialect;
use satchel_core::dialect::Traits;
use satchel_core::dialect::lint::{Progress, Request, Rule, Violation, check};
use satchel_core::node::Node;

use crate::error::{PyError, invalid_value};
use crate::node::{PyNode, message_list};
use crate::repair::traits_of;
use crate::sendable::unsendable;
use crate::utf8::wrong_type;

/// Code, severity, index, message, provider's error.
type Row = (
    &'static str,
    &'static str,
    Option<usize>,
    String,
    &'static str,
);

/// The findings of one request. Only an unknown dialect and a `previous` that is
/// no list raise.
#[pyfunction]
#[pyo3(signature = (messages, /, dialect, *, traits, system=None, tools=None, previous=None, same_prompt=true))]
#[allow(
    clippy::too_many_arguments,
    clippy::needless_pass_by_value,
    reason = "one argument for each of the Python function's"
)]
pub(crate) fn lint_rows(
    py: Python<'_>,
    messages: &Bound<'_, PyAny>,
    dialect: &str,
    traits: Vec<String>,
    system: Option<Bound<'_, PyAny>>,
    tools: Option<Bound<'_, PyAny>>,
    previous: Option<Bound<'_, PyAny>>,
    same_prompt: bool,
) -> PyResult<Vec<Row>> {
    let dialect = Dialect::from_name(dialect).map_err(PyError)?;
    let mut found = Vec::new();
    let messages = message_list(messages)?.unwrap_or_else(|| {
        let got = PyNode::new(messages.clone()).shape().name();
        found.push(Violation {
            rule: Rule::InvalidMessage,
            index: None,
            message: format!("messages must be a list, got {got}"),
        });
        PyList::empty(py)
    });
    let system = system.map(PyNode::new);
    let tools = tools.map(PyNode::new);
    let nodes: Vec<_> = messages.iter().map(PyNode::new).collect();
    let previous = match previous {
        Some(previous) => Some(message_list(&previous)?.ok_or_else(|| {
            let expected = "a window or a list of messages";
            invalid_value(&wrong_type("previous", expected, &previous))
        })?),
        None => None,
    };
    let previous = previous.map(|list| list.iter().map(PyNode::new).collect::<Vec<_>>());
    let request = Request {
        messages: &nodes,
        system: system.as_ref(),
        tools: tools.as_ref(),
        traits: traits_of(&traits),
        previous: previous.as_deref(),
        same_prompt,
    };
    let is_list = found.is_empty();
    let of_request = check(dialect, &request).into_iter();
    found.extend(of_request.filter(|one| is_list || one.rule != Rule::NoMessages));
    for (index, message) in messages.iter().enumerate() {
        if let Some(one) = unsendable(&message, dialect) {
            found.push(Violation {
                rule: Rule::NotJson,
                index: Some(index),
                message: one.sentence(),
            });
        }
    }
    // Those without a message stay first; the sort is stable.
    found.sort_by_key(|violation| violation.index);
    Ok(found.into_iter().map(row).collect())
}

/// Whether windows that grow at their end are right, at the price of what is new.
#[pyclass(module = "satchel._core", name = "LintProgress")]
pub(crate) struct PyLintProgress {
    dialect: Dialect,
    traits: Traits,
    progress: Progress,
}

#[pymethods]
impl PyLintProgress {
    #[new]
    #[allow(
        clippy::needless_pass_by_value,
        reason = "arguments as Python gives them"
    )]
    fn new(dialect: &str, traits: Vec<String>) -> PyResult<Self> {
        Ok(Self {
            dialect: Dialect::from_name(dialect).map_err(PyError)?,
            traits: traits_of(&traits),
            progress: Progress::default(),
        })
    }

    /// Index of the first message that the next check needs.
    #[getter]
    fn start(&self) -> usize {
        self.progress.start()
    }

    /// Whether there is no error in `messages`, which are those of the last call and more behind
    /// them. False may also mean that only a look at the whole list can tell.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "arguments as Python gives them"
    )]
    #[pyo3(signature = (messages, system, tools, /))]
    fn is_valid(
        &mut self,
        messages: &Bound<'_, PyList>,
        system: Option<Bound<'_, PyAny>>,
        tools: Option<Bound<'_, PyAny>>,
    ) -> bool {
        let start = self.progress.start();
        // Their own errors show in the first look; Converse also asks whether there are any tools.
        let is_first = start == 0;
        let system = system.filter(|_| is_first).map(PyNode::new);
        let asks = is_first || self.dialect == Dialect::Bedrock;
        let tools = tools.filter(|_| asks).map(PyNode::new);
        let tail = messages.get_slice(start, messages.len());
        let is_unsendable = |message| unsendable(&message, self.dialect).is_some();
        if tail.iter().any(is_unsendable) {
            return false;
        }
        let nodes: Vec<_> = tail.iter().map(PyNode::new).collect();
        let request = Request {
            messages: &nodes,
            system: system.as_ref(),
            tools: tools.as_ref(),
            traits: self.traits,
            previous: None,
            same_prompt: true,
        };
        self.progress.is_valid(self.dialect, &request)
    }
}

/// The catalogue: code, id, severity, sentence, provider's error.
#[pyfunction]
pub(crate) fn lint_rules() -> Vec<(
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
)> {
    Rule::ALL
        .iter()
        .map(|rule| rule.entry())
        .map(|entry| {
            (
                entry.code,
                entry.id,
                entry.severity.name(),
                entry.sentence,
                entry.provider_error,
            )
        })
        .collect()
}

fn row(violation: Violation) -> Row {
    let entry = violation.rule.entry();
    (
        entry.code,
        entry.severity.name(),
        violation.index,
        violation.message,
        entry.provider_error,
    )
}
