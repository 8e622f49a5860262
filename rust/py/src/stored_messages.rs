//! The messages of a stored log: JSON until somebody wants a Python object of one.
//!
//! A session of 10,000 messages shows a few hundred in its windows. Objects for all of them would
//! take the interpreter's time to make, its memory to keep, and a pause of the garbage collector,
//! which walks every dict that there is, at each of its full runs.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};
use satchel_core::dialect::{Dialect, read_message};
use satchel_core::error::{Error, ErrorKind};
use satchel_core::message::Message;

use crate::error::PyError;
use crate::gil::run;
use crate::json_values::json_value;
use crate::node::PyNode;
use crate::pytext::PyText;
use crate::stored_text::{StoredText, Tree};

/// Bit of an entry's form: an event, no message.
const EVENT: u8 = 1;

/// One message of a log.
#[derive(Debug)]
pub(crate) enum Raw {
    /// The caller's own object, or the one that was made.
    Object(Py<PyAny>),
    /// Its JSON, which `Tree::parse` took.
    Stored(StoredText),
}

impl Raw {
    /// The object; made once, and the same ever after.
    pub(crate) fn object(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let made = match self {
            Self::Object(object) => return Ok(object.clone_ref(py)),
            Self::Stored(text) => json_value(py, text.as_str().as_bytes()),
        };
        let made = made.ok_or_else(|| {
            let what = "a stored message cannot be read any more";
            PyErr::from(PyError(Error::new(ErrorKind::InvalidMessage, what)))
        })?;
        let made = made.unbind();
        *self = Self::Object(made.clone_ref(py));
        Ok(made)
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Object(object) => Self::Object(object.clone_ref(py)),
            Self::Stored(text) => Self::Stored(text.clone()),
        }
    }
}

/// A message, and what was parsed of it; none of one that came as an object.
#[derive(Debug)]
pub(crate) struct Held {
    raw: Raw,
    tree: Option<Tree>,
}

/// The messages of a log, in order.
#[derive(Debug)]
#[pyclass(name = "StoredMessages", frozen, module = "satchel._core")]
pub(crate) struct PyStoredMessages {
    held: Mutex<Vec<Held>>,
}

#[pymethods]
impl PyStoredMessages {
    #[new]
    fn new() -> Self {
        Self {
            held: Mutex::default(),
        }
    }

    /// Adds the messages of a block: the entries' JSON with a comma between any two, the bytes of
    /// each, a byte for each whose lowest bit says that it is an event. `read` gives the object of
    /// an entry by its place, for events and for what is out of the ordinary. Returns the events.
    fn add<'py>(
        &self,
        py: Python<'py>,
        joined: &[u8],
        lengths: Vec<usize>,
        forms: &[u8],
        read: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut held = self.lock()?;
        let parsed = run(py, move || Ok(parse_block(joined, &lengths, forms)))?;
        let mut events = Vec::new();
        held.reserve(parsed.len());
        for (place, (form, parsed)) in forms.iter().zip(parsed).enumerate() {
            match parsed {
                Some((text, tree)) => held.push(Held {
                    raw: Raw::Stored(text),
                    tree: Some(tree),
                }),
                None if form & EVENT == 0 => held.push(Held {
                    raw: Raw::Object(read.call1((place,))?.unbind()),
                    tree: None,
                }),
                None => events.push(read.call1((place,))?),
            }
        }
        Ok(events)
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.lock()?.len())
    }

    /// The objects of all messages.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let mut held = self.lock()?;
        let objects: Vec<_> = held
            .iter_mut()
            .map(|one| one.raw.object(py))
            .collect::<PyResult<_>>()?;
        PyList::new(py, objects)?.try_iter()
    }
}

impl PyStoredMessages {
    /// What is held. Whoever holds this lock may let go of the interpreter, so nobody waits for it.
    pub(crate) fn lock(&self) -> PyResult<MutexGuard<'_, Vec<Held>>> {
        match self.held.try_lock() {
            Ok(held) => Ok(held),
            Err(TryLockError::WouldBlock) => Err(PyError(Error::new(
                ErrorKind::ConcurrentUse,
                "stored messages are used from one thread at a time",
            ))
            .into()),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        }
    }
}

/// The messages alone.
pub(crate) fn raws_of(py: Python<'_>, held: &[Held]) -> Vec<Raw> {
    held.iter().map(|one| one.raw.clone_ref(py)).collect()
}

/// Reads messages of a log, the first of which has the index `first`.
pub(crate) fn read_held(
    py: Python<'_>,
    dialect: Dialect,
    held: &[Held],
    first: usize,
) -> PyResult<Vec<Message<PyText>>> {
    let indexed = || (first..).zip(held);
    if held.iter().all(|one| one.tree.is_some()) {
        return run(py, || {
            let trees = indexed().filter_map(|(index, one)| Some((index, one.tree.as_ref()?)));
            trees
                .map(|(index, tree)| read_message(dialect, &tree, index))
                .collect()
        });
    }
    indexed()
        .map(|(index, one)| {
            let read = match (&one.tree, &one.raw) {
                (Some(tree), _) => read_message(dialect, &tree, index),
                (None, Raw::Object(object)) => {
                    read_message(dialect, &PyNode::new(object.bind(py).clone()), index)
                }
                (None, Raw::Stored(_)) => read_message(dialect, &&Tree::Null, index),
            };
            read.map_err(|error| PyError(error).into())
        })
        .collect()
}

/// The messages of a block; `None` for events, and for what is out of the ordinary.
fn parse_block(joined: &[u8], lengths: &[usize], forms: &[u8]) -> Vec<Option<(StoredText, Tree)>> {
    // Where one message has half of a surrogate pair, the others are looked at one by one.
    let whole = str::from_utf8(joined).ok().map(shared);
    let mut start = 0;
    let mut parsed = Vec::with_capacity(forms.len());
    for (place, form) in forms.iter().enumerate() {
        let end = start + lengths.get(place).copied().unwrap_or_default();
        parsed.push(match &whole {
            _ if form & EVENT != 0 => None,
            Some(whole) => parse(whole, start, end),
            None => joined
                .get(start..end)
                .and_then(|bytes| str::from_utf8(bytes).ok())
                .and_then(|text| parse(&shared(text), 0, text.len())),
        });
        start = end.saturating_add(1);
    }
    parsed
}

fn shared(text: &str) -> Arc<String> {
    Arc::new(text.to_owned())
}

fn parse(whole: &Arc<String>, start: usize, end: usize) -> Option<(StoredText, Tree)> {
    let tree = Tree::parse(whole, start, end)?;
    Some((StoredText::piece(whole, start, end)?, tree))
}
