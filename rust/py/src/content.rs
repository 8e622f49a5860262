//! The caller's messages for the one-call functions, which never fail on what a message holds.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use satchel_core::content::{self, Content};
use satchel_core::dialect::{self, Dialect, read_message};
use satchel_core::message::{Body, Message, Part, PartKind, Place, Role};
use satchel_core::node::Node;
use satchel_core::window::Link;

use crate::error::{PyError, invalid_value};
use crate::node::PyNode;
use crate::pytext::PyText;

/// The messages of a list, held so that another thread may change the list meanwhile.
#[derive(Debug)]
pub(crate) struct Messages<'py> {
    items: Vec<Bound<'py, PyAny>>,
    dialect: Option<Dialect>,
}

impl<'py> Messages<'py> {
    /// The messages of `list`; `dialect` names their format, `None` leaves each to tell its own.
    pub(crate) fn new(list: &Bound<'py, PyList>, dialect: Option<&str>) -> PyResult<Self> {
        let dialect = dialect.map(Dialect::from_name).transpose();
        let dialect = dialect.map_err(PyError)?;
        if u32::try_from(list.len()).is_err() {
            return Err(invalid_value(&format!(
                "{} messages, limit 2^32",
                list.len()
            )));
        }
        Ok(Self {
            items: list.iter().collect(),
            dialect,
        })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// The dialect that was named.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    /// The message at `index` as a node.
    pub(crate) fn node(&self, index: u32) -> Option<PyNode<'py>> {
        self.items.get(index as usize).cloned().map(PyNode::new)
    }

    /// The indices of the instructions and of all other messages, each in order.
    pub(crate) fn split(&self) -> (Vec<u32>, Vec<u32>) {
        let mut others = Vec::with_capacity(self.items.len());
        let mut instructions = Vec::new();
        for (index, item) in (0..).zip(&self.items) {
            match content::role(&PyNode::new(item.clone())) {
                Some(Role::System | Role::Developer) => instructions.push(index),
                _ => others.push(index),
            }
        }
        (instructions, others)
    }

    /// The content text of the message at `index`; of one that cannot be read, its canonical JSON,
    /// or what `str` makes of it.
    pub(crate) fn content(&self, index: u32, with_calls: bool) -> Content<PyText> {
        let Some(item) = self.items.get(index as usize) else {
            return Content::default();
        };
        let node = PyNode::new(item.clone());
        let mut content = content::read(&node, self.dialect, with_calls);
        if content.is_unreadable {
            content.texts.push(any_text(item, &node));
        }
        content
    }

    /// The dialect that was named, or that the messages give away, or `name`, or `openai`, which
    /// most gateways speak.
    pub(crate) fn dialect_or(&self, name: &str) -> Dialect {
        let nodes = self.items.iter().cloned().map(PyNode::new);
        self.dialect
            .or_else(|| dialect::detect(nodes))
            .or_else(|| Dialect::from_name(name).ok())
            .unwrap_or(Dialect::OpenAi)
    }

    /// The message at `index` with all its parts; one that cannot be read is a user message of one
    /// text, the one that [`Messages::content`] gives it.
    pub(crate) fn message(&self, index: u32, dialect: Dialect) -> (Link, Message<PyText>) {
        let Some(node) = self.node(index) else {
            return (Link::Plain, plain(Vec::new()));
        };
        if let Ok(message) = read_message(dialect, &node, index as usize) {
            return (content::link(&node, self.dialect), message);
        }
        let content = self.content(index, false);
        (content.link, plain(content.texts))
    }

    /// A list of the messages at `indices`: the same objects.
    pub(crate) fn select(&self, py: Python<'py>, indices: &[u32]) -> PyResult<Bound<'py, PyList>> {
        let chosen = indices
            .iter()
            .filter_map(|index| self.items.get(*index as usize));
        PyList::new(py, chosen.collect::<Vec<_>>())
    }
}

fn plain(texts: Vec<PyText>) -> Message<PyText> {
    let parts = texts.into_iter().map(|text| Part {
        kind: PartKind::Text,
        is_error: false,
        place: Place::Content,
        tokens: 0,
        body: Body::Text(text),
        key: None,
    });
    Message {
        role: Role::User,
        parts: parts.collect(),
        name: None,
    }
}

fn any_text(item: &Bound<'_, PyAny>, node: &PyNode<'_>) -> PyText {
    if let Some(text) = node.text() {
        return text;
    }
    let py = item.py();
    PyText::new(match node.capture() {
        Ok(value) => PyString::new(py, &value.to_json()),
        // What has no text of any kind counts as nothing.
        Err(_) => item.str().unwrap_or_else(|_| PyString::new(py, "")),
    })
}
