//! `satchel.repair`: the core's edits applied to copies of the caller's own objects.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use satchel_core::dialect::lint::count_marks;
use satchel_core::dialect::repair::{
    Around, Base, Block, Edit, Entry, MOST_LOOKS, Mode, PLACEHOLDERS, Plan, plan, unmended,
};
use satchel_core::dialect::{Dialect, Traits};
use satchel_core::message::PathStep;
use satchel_core::node::{Node, Shape};

use crate::error::{PyError, invalid_value};
use crate::node::{PyNode, message_list};
use crate::render::{as_dict, as_list, json_to_python};
use crate::sendable::sendable;
use crate::utf8::wrong_type;

/// The repaired messages; unchanged ones are the same objects.
#[pyfunction]
#[pyo3(signature = (messages, /, dialect, *, mode, traits, system=None, tools=None, for_planner=false))]
#[allow(
    clippy::too_many_arguments,
    clippy::needless_pass_by_value,
    reason = "one argument for each of the Python function's"
)]
pub(crate) fn repair_messages<'py>(
    py: Python<'py>,
    messages: &Bound<'py, PyAny>,
    dialect: &str,
    mode: &str,
    traits: Vec<String>,
    system: Option<Bound<'py, PyAny>>,
    tools: Option<Bound<'py, PyAny>>,
    for_planner: bool,
) -> PyResult<Bound<'py, PyList>> {
    let dialect = Dialect::from_name(dialect).map_err(PyError)?;
    let mode = Mode::from_name(mode).ok_or_else(|| {
        let known = Mode::ALL.map(Mode::name).join(", ");
        invalid_value(&format!("no mode of that name; known: {known}"))
    })?;
    let traits = traits_of(&traits);
    let [system, tools] = [system, tools].map(|value| value.map(PyNode::new));
    let outside = [system.as_ref(), tools.as_ref()].into_iter().flatten();
    let around = Around {
        marks: outside.map(count_marks).sum(),
        for_planner,
        no_tools: tools.is_some_and(|tools| has_no_tools(&tools)),
    };
    let list = message_list(messages)?
        .ok_or_else(|| invalid_value(&wrong_type("messages", "a list of messages", messages)))?;
    let mut current = Vec::with_capacity(list.len());
    for message in list.iter() {
        let sent = sendable(&message, dialect)?;
        current.push(sent.unwrap_or(message));
    }
    for _ in 0..MOST_LOOKS {
        let nodes: Vec<_> = current.iter().cloned().map(PyNode::new).collect();
        match plan(dialect, &nodes, mode, traits, around).map_err(PyError)? {
            Plan::Entries(entries) => return written(py, &current, &entries),
            Plan::Mends(mends) => {
                let mut mended = current.clone();
                for (index, edits) in mends {
                    mended[index] = edited(&current, &current[index], &edits)?;
                }
                current = mended;
            }
        }
    }
    Err(PyError(unmended()).into())
}

/// Whether a request says that it has no tools.
fn has_no_tools(tools: &PyNode<'_>) -> bool {
    let list = tools.get("tools");
    let list = list.as_ref().unwrap_or(tools);
    list.shape() == Shape::List && list.is_empty()
}

/// Every text that repair may put in.
#[pyfunction]
pub(crate) fn repair_placeholders() -> [&'static str; 3] {
    PLACEHOLDERS
}

/// The traits of these names; others are for a newer version.
pub(crate) fn traits_of(names: &[String]) -> Traits {
    let mut traits = Traits::default();
    for name in names {
        traits.set(name);
    }
    traits
}

fn written<'py>(
    py: Python<'py>,
    originals: &[Bound<'py, PyAny>],
    entries: &[Entry],
) -> PyResult<Bound<'py, PyList>> {
    let messages = PyList::empty(py);
    for entry in entries {
        let base = match &entry.base {
            Base::Own(index) => own(originals, *index)?,
            Base::New(message) => json_to_python(py, message)?,
        };
        messages.append(edited(originals, &base, &entry.edits)?)?;
    }
    Ok(messages)
}

fn own<'py>(originals: &[Bound<'py, PyAny>], index: u32) -> PyResult<Bound<'py, PyAny>> {
    originals
        .get(index as usize)
        .cloned()
        .ok_or_else(|| invalid_value("the messages changed while they were repaired"))
}

fn edited<'py>(
    originals: &[Bound<'py, PyAny>],
    value: &Bound<'py, PyAny>,
    edits: &[Edit],
) -> PyResult<Bound<'py, PyAny>> {
    let mut copy = value.clone();
    for edit in edits {
        copy = match edit {
            Edit::Set(path, new) => {
                at(&copy, path, &|_| json_to_python(value.py(), new).map(Some))?
            }
            Edit::Remove(path) => at(&copy, path, &|_| Ok(None))?,
            Edit::Blocks(path, blocks) => at(&copy, path, &|_| {
                let list = PyList::empty(value.py());
                for block in blocks {
                    list.append(built(value.py(), originals, block)?)?;
                }
                Ok(Some(list.into_any()))
            })?,
        };
    }
    Ok(copy)
}

fn built<'py>(
    py: Python<'py>,
    originals: &[Bound<'py, PyAny>],
    block: &Block,
) -> PyResult<Bound<'py, PyAny>> {
    match block {
        Block::Own(message, path, edits) => {
            let value = found(&own(originals, *message)?, path)?;
            edited(originals, &value, edits)
        }
        Block::Text(message, path, kind) => {
            let block = PyDict::new(py);
            block.set_item(intern!(py, "type"), *kind)?;
            let text = found(&own(originals, *message)?, path)?;
            block.set_item(intern!(py, "text"), text)?;
            Ok(block.into_any())
        }
        Block::New(block) => json_to_python(py, block),
    }
}

/// The value at `path`, as it is.
fn found<'py>(value: &Bound<'py, PyAny>, path: &[PathStep]) -> PyResult<Bound<'py, PyAny>> {
    let mut value = value.clone();
    for step in path {
        value = match step {
            PathStep::Key(key) => match value.cast::<PyDict>() {
                Ok(dict) => match dict.get_item(key)? {
                    Some(inner) => inner,
                    None => return Ok(value.py().None().into_bound(value.py())),
                },
                Err(_) if value.hasattr(intern!(value.py(), "keys"))? => value.get_item(key)?,
                Err(_) => value.getattr(*key)?,
            },
            PathStep::Index(index) => match value.cast::<PyTuple>() {
                Ok(tuple) => tuple.get_item(*index as usize)?,
                Err(_) => value.get_item(*index as usize)?,
            },
        };
    }
    Ok(value)
}

/// What takes the place of a value; no value removes it.
type Make<'a, 'py> = dyn Fn(Option<&Bound<'py, PyAny>>) -> PyResult<Option<Bound<'py, PyAny>>> + 'a;

/// A copy in which the value at `path` is what `make` says; the containers on the way are copied.
fn at<'py>(
    value: &Bound<'py, PyAny>,
    path: &[PathStep],
    make: &Make<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let none = || value.py().None().into_bound(value.py());
    let Some((step, rest)) = path.split_first() else {
        return Ok(make(Some(value))?.unwrap_or_else(none));
    };
    match step {
        PathStep::Key(key) => {
            let copy = as_dict(value)?;
            let before = copy.get_item(key)?;
            let inner = if rest.is_empty() {
                make(before.as_ref())?
            } else {
                Some(at(&before.unwrap_or_else(none), rest, make)?)
            };
            match inner {
                Some(inner) => copy.set_item(key, inner)?,
                None if copy.contains(key)? => copy.del_item(key)?,
                None => {}
            }
            Ok(copy.into_any())
        }
        PathStep::Index(index) => {
            let copy = as_list(value)?;
            let index = *index as usize;
            let inner = at(&copy.get_item(index)?, rest, make)?;
            copy.set_item(index, inner)?;
            Ok(copy.into_any())
        }
    }
}
