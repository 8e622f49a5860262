//! `satchel.convert`: reads the caller's objects, writes new ones without the interpreter.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use satchel_core::dialect::Dialect;
use satchel_core::dialect::convert::{Conversation, Converted};
use satchel_core::error::{Error, ErrorKind};
use satchel_core::node::Node;

use crate::error::{PyError, invalid_value};
use crate::gil::run;
use crate::node::{PyNode, message_list};

/// Index, kind, detail.
type Row = (Option<usize>, &'static str, String);

/// Messages, system, tools, losses. In the same dialect all of them are the caller's own.
#[pyfunction]
#[pyo3(signature = (messages, /, source, target, *, system=None, tools=None))]
pub(crate) fn convert_messages<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyAny>,
    source: &str,
    target: &str,
    system: Option<Bound<'py, PyAny>>,
    tools: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let source = Dialect::from_name(source).map_err(PyError)?;
    let target = Dialect::from_name(target).map_err(PyError)?;
    let Some(list) = message_list(messages)? else {
        let got = PyNode::new(messages.clone()).shape().name();
        return Err(invalid_value(&format!(
            "messages must be a list, got {got}"
        )));
    };
    if source == target {
        let own = PyList::new(py, list.iter())?;
        let losses: Vec<Row> = Vec::new();
        return (own, system, tools, losses).into_pyobject(py);
    }
    let nodes: Vec<PyNode<'_>> = list.iter().map(PyNode::new).collect();
    let system = system.map(PyNode::new);
    let tools = tools.map(PyNode::new);
    let conversation = Conversation::read(source, &nodes, system.as_ref(), tools.as_ref());
    let conversation = conversation.map_err(PyError)?;
    let (json, losses) = run(py, move || {
        let Converted {
            messages,
            system,
            tools,
            losses,
        } = conversation.write(target);
        let json = serde_json::to_string(&(messages, system, tools))
            .map_err(|error| Error::new(ErrorKind::InvalidMessage, format!("no JSON: {error}")))?;
        let rows = losses.into_iter();
        let rows = rows.map(|loss| (loss.index, loss.kind.code(), loss.detail));
        Ok((json, rows.collect::<Vec<Row>>()))
    })?;
    // The interpreter's own reader: integers of any size, and the fastest way to its objects.
    let reader = py.import(intern!(py, "json"))?;
    let read = reader.call_method1(intern!(py, "loads"), (json,))?;
    let item = |at: usize| read.get_item(at);
    (item(0)?, item(1)?, item(2)?, losses).into_pyobject(py)
}
