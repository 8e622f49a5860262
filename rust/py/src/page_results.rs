//! Which results of a history answer calls of the page-in tool, in any message format.
//!
//! What was read back must stay readable: cut again, it would send the model to read it once more.
//! Calls are told by their name; ids repeat in real histories, so the newest call of an id counts.

use std::collections::BTreeSet;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

/// The name of the tool that `satchel.page_tool` defines.
const TOOL: &str = "page_in";

/// Ids of the calls so far that read pages.
#[derive(Default)]
pub(crate) struct PageCalls {
    ids: BTreeSet<String>,
}

impl PageCalls {
    /// Takes note of the calls in a message; costs nothing for one without a list.
    pub(crate) fn read(&mut self, message: &Bound<'_, PyAny>) {
        let py = message.py();
        for call in items(get(message, intern!(py, "tool_calls"))) {
            if let Some(function) = get(&call, intern!(py, "function")) {
                self.note(&function, get(&call, intern!(py, "id")));
            }
        }
        for block in items(get(message, intern!(py, "content"))) {
            if is_text(get(&block, intern!(py, "type")), "tool_use") {
                self.note(&block, get(&block, intern!(py, "id")));
            } else if let Some(call) = get(&block, intern!(py, "toolUse")) {
                self.note(&call, get(&call, intern!(py, "toolUseId")));
            }
        }
        if is_text(get(message, intern!(py, "type")), "function_call") {
            self.note(message, get(message, intern!(py, "call_id")));
        }
    }

    fn note(&mut self, named: &Bound<'_, PyAny>, id: Option<Bound<'_, PyAny>>) {
        let Some(id) = id.and_then(|id| id.extract::<String>().ok()) else {
            return;
        };
        if is_text(get(named, intern!(named.py(), "name")), TOOL) {
            self.ids.insert(id);
        } else if !self.ids.is_empty() {
            self.ids.remove(&id);
        }
    }

    /// Whether `fields`, a result that names its call under `key`, answers one of them.
    pub(crate) fn answered_by(
        &self,
        fields: &Bound<'_, PyDict>,
        key: &Bound<'_, PyString>,
    ) -> bool {
        let id = || get(fields.as_any(), key)?.extract::<String>().ok();
        // Formats without ids name the tool in the result.
        is_text(get(fields.as_any(), intern!(key.py(), "name")), TOOL)
            || (!self.ids.is_empty() && id().is_some_and(|id| self.ids.contains(&id)))
    }
}

fn get<'py>(value: &Bound<'py, PyAny>, key: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    match value.cast::<PyDict>() {
        Ok(fields) => fields.get_item(key).ok()?,
        // Messages of the clients have attributes. A failing one says nothing about a call.
        Err(_) => value.getattr_opt(key).ok()?,
    }
}

fn items(list: Option<Bound<'_, PyAny>>) -> Vec<Bound<'_, PyAny>> {
    let Some(list) = list else {
        return Vec::new();
    };
    if list.is_instance_of::<PyList>() || list.is_instance_of::<PyTuple>() {
        list.try_iter()
            .map(|items| items.flatten().collect())
            .unwrap_or_default()
    } else {
        Vec::new()
    }
}

fn is_text(value: Option<Bound<'_, PyAny>>, text: &str) -> bool {
    value.is_some_and(|value| value.cast::<PyString>().is_ok_and(|value| value == text))
}
