//! `satchel.lint`: findings as rows, which Python turns into `Violation`s.

use pyo3::prelude::*;
use pyo3::types::PyList;
use satchel_core::dialect::Dialect;
use satchel_core::dialect::lint::{Rule, Violation, lint};
use satchel_core::node::Node;

use crate::error::PyError;
use crate::node::{PyNode, message_list};

/// Code, severity, index, message, provider's error.
type Row = (
    &'static str,
    &'static str,
    Option<usize>,
    String,
    &'static str,
);

/// The findings of one request. Only an unknown dialect raises.
#[pyfunction]
#[pyo3(signature = (messages, /, dialect, *, system=None, tools=None))]
pub(crate) fn lint_rows(
    py: Python<'_>,
    messages: &Bound<'_, PyAny>,
    dialect: &str,
    system: Option<Bound<'_, PyAny>>,
    tools: Option<Bound<'_, PyAny>>,
) -> PyResult<Vec<Row>> {
    let dialect = Dialect::from_name(dialect).map_err(PyError)?;
    let mut found = Vec::new();
    let messages = message_list(messages).unwrap_or_else(|| {
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
    let nodes = messages.iter().map(PyNode::new);
    found.extend(lint(dialect, nodes, system.as_ref(), tools.as_ref()));
    Ok(found.into_iter().map(row).collect())
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
        .into_iter()
        .map(Rule::entry)
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
