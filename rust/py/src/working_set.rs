//! The working set over Python messages: reads them, keeps them, and renders windows of them.

use std::sync::{Mutex, MutexGuard, TryLockError};

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use satchel_core::dialect::{Dialect, read_message};
use satchel_core::error::{Error, ErrorKind};
use satchel_core::event::Event;
use satchel_core::explain::StepReport;
use satchel_core::level::{Fidelity, Level, Reason};
use satchel_core::message::{Body, Message};
use satchel_core::node::{Text, Value};
use satchel_core::page::select_lines;
use satchel_core::shrink::with_text;
use satchel_core::strategy::price::Rewrite;
use satchel_core::working_set::{Checkpoint, Gone, Page, WorkingSet, parse_pointer};

use crate::counter::PyCounter;
use crate::describe::kind_name;
use crate::error::{PyError, invalid_value};
use crate::gil::run;
use crate::log_events::{check_order, parse_json, read_events, read_settings};
use crate::node::PyNode;
use crate::pytext::PyText;
use crate::render::push_entry;
use crate::stored_messages::{PyStoredMessages, Raw, raws_of, read_held};

/// Appends of up to this many messages, with up to so many characters in all, stay attached to the
/// interpreter, unless levels may fall: letting go of it costs more than folding them. Folding
/// 100,000 characters, or a compaction, took ten milliseconds in which no other thread ran.
const ATTACHED_MESSAGES: usize = 4;
const ATTACHED_CHARS: usize = 8_192;

/// At the least, of what people write; to guess whether an append comes near the trigger.
const CHARS_PER_TOKEN: u64 = 2;

/// Messages that are read before they are folded. Read all at once, 50,000 messages leave 130
/// bytes a message of holes in the heap, where their short-lived lists stood between what stays.
const CHUNK_MESSAGES: usize = 1_000;

/// The fold over one log of Python messages.
#[derive(Debug)]
#[pyclass(name = "WorkingSet", frozen, module = "satchel._core")]
pub(crate) struct PyWorkingSet {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    set: WorkingSet<PyText>,
    /// The caller's own objects, or what is stored of them, by raw index.
    messages: Vec<Raw>,
    rendered: Option<Rendered>,
}

/// The newest window's messages before the newest boundary, reused while the revision is the same.
#[derive(Debug)]
struct Rendered {
    revision: u64,
    /// Raw messages that are in it or gone from it.
    messages: usize,
    window: Py<PyList>,
}

/// Text, raw message index, index of the part, role, kind.
type PageSource = (String, Option<usize>, usize, &'static str, &'static str);

/// Tokens, upper estimate, stable prefix tokens, compactions, raw messages, revision, and the
/// number of steps that are verbatim, trimmed, stubs and gone.
type Figures = (u64, u64, u64, u32, usize, u64, u32, u32, u32, u32, f64, f64);

/// Steps, tokens and note of what is gone.
type GoneFields = (u32, u64, String);

/// Messages before it, why, removed, rewritten, lost reasoning, break-even, expected calls.
type RewriteFields = (u32, &'static str, u64, u64, u64, f64, u32);

/// Messages that another working set handed on, and what is gone from it.
type Opening = (usize, Option<GoneFields>);

/// A step that is handed on.
type HandedOn<'py> = (u32, u32, &'static str, bool, bool, Bound<'py, PyList>);

type Explained = (
    u32,
    u32,
    &'static str,
    &'static str,
    u32,
    u32,
    f32,
    &'static str,
    &'static str,
    u32,
);

#[pymethods]
impl PyWorkingSet {
    /// A working set from the settings event's JSON (without `kind` and `at`), messages, and the
    /// JSON list of further events. `counters` are those that later settings may name; `opening` is
    /// how many messages another working set handed on, and what was gone from it. With
    /// `checkpoint`, a JSON text or an empty one, checkpoints are kept, and the fold goes on from
    /// that one if it is of this log.
    #[new]
    #[pyo3(signature = (
        counter, settings, messages, events, counters=Vec::new(), opening=None, checkpoint=None
    ))]
    #[allow(
        clippy::needless_pass_by_value,
        clippy::too_many_arguments,
        reason = "arguments as Python gives them: the parts of a log"
    )]
    fn new(
        py: Python<'_>,
        counter: &PyCounter,
        settings: &str,
        messages: &Bound<'_, PyAny>,
        events: &str,
        counters: Vec<PyRef<'_, PyCounter>>,
        opening: Option<Opening>,
        checkpoint: Option<&str>,
    ) -> PyResult<Self> {
        let settings = read_settings(counter, settings).map_err(PyError)?;
        let events = read_events(events).map_err(PyError)?;
        let mut set = WorkingSet::new(settings.clone()).map_err(PyError)?;
        for counter in &counters {
            set.offer_counter(counter.0.clone());
        }
        if let Some(checkpoint) = checkpoint {
            set.keep_checkpoints();
            set.resume_from(checkpoint);
        }
        if let Some((messages, gone)) = opening {
            let gone = gone.map(|(steps, tokens, note)| Gone {
                steps,
                tokens,
                note: note.into(),
            });
            set.take_over(messages, gone).map_err(PyError)?;
        }
        let mut set = folded(py, set, messages, &events)?;
        if set.set.is_resuming() {
            // The checkpoint is none of this log: all of it is folded.
            let mut anew = WorkingSet::new(settings).map_err(PyError)?;
            for counter in &counters {
                anew.offer_counter(counter.0.clone());
            }
            anew.keep_checkpoints();
            set = folded(py, anew, messages, &events)?;
        }
        Ok(Self {
            state: Mutex::new(set),
        })
    }

    /// Appends messages; all or, on an error, none.
    fn append(&self, py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut state = self.lock()?;
        let state = &mut *state;
        let dialect = state.set.settings().dialect;
        let objects = listed(messages)?;
        let read = read_messages(py, dialect, &objects, state.messages.len())?;
        let chars = chars_in(py, &read);
        let is_light = read.len() <= ATTACHED_MESSAGES && chars <= ATTACHED_CHARS;
        if is_light && !state.set.may_compact_within(chars as u64 / CHARS_PER_TOKEN) {
            state.set.append(read).map_err(PyError)?;
        } else {
            let set = &mut state.set;
            run(py, move || set.append(read))?;
        }
        state.messages.extend(objects.into_iter().map(Raw::Object));
        Ok(())
    }

    /// Whether levels may fall while messages of so many characters are appended, which is slow.
    fn may_compact_within(&self, chars: u64) -> PyResult<bool> {
        let state = self.lock()?;
        Ok(state.set.may_compact_within(chars / CHARS_PER_TOKEN))
    }

    /// Folds one event, given as JSON, at the end of the log; `counter` is the one it names.
    #[pyo3(signature = (event, counter=None))]
    fn apply(&self, py: Python<'_>, event: &str, counter: Option<&PyCounter>) -> PyResult<()> {
        let mut state = self.lock()?;
        let set = &mut state.set;
        if let Some(counter) = counter {
            set.offer_counter(counter.0.clone());
        }
        let json = parse_json(event).map_err(PyError)?;
        let event = Event::from_json(&json, 0).map_err(PyError)?;
        run(py, move || set.apply(&event))
    }

    /// The messages of the window at the pending boundary, and its figures.
    #[pyo3(signature = (*, synthesize, query=None))]
    fn window<'py>(
        &self,
        py: Python<'py>,
        synthesize: bool,
        query: Option<&str>,
    ) -> PyResult<(Bound<'py, PyList>, Figures)> {
        let mut state = self.lock()?;
        let state = &mut *state;
        let set = &mut state.set;
        let figures = run(py, move || set.window_for(synthesize, query))?;
        let mut rendered = match state.rendered.take() {
            Some(rendered) if rendered.revision == figures.revision => rendered,
            _ => Rendered {
                revision: figures.revision,
                messages: 0,
                window: PyList::empty(py).unbind(),
            },
        };
        let dialect = state.set.settings().dialect;
        let settled = rendered.window.bind(py);
        if rendered.messages < figures.settled {
            for entry in state.set.entries_of(rendered.messages..figures.settled) {
                push_entry(settled, &mut state.messages, dialect, entry)?;
            }
            rendered.messages = figures.settled;
        }
        // What may still change comes anew each time: placeholders, lines that came back.
        let list = settled.get_slice(0, settled.len());
        for entry in state.set.entries(rendered.messages) {
            push_entry(&list, &mut state.messages, dialect, entry)?;
        }
        state.rendered = Some(rendered);
        let [verbatim, trimmed, stub, gone] = figures.steps;
        let figures = (
            figures.tokens,
            figures.tokens_upper,
            figures.stable_prefix_tokens,
            figures.compactions,
            figures.messages,
            figures.revision,
            verbatim,
            trimmed,
            stub,
            gone,
            figures.worth.0,
            figures.worth.1,
        );
        Ok((list, figures))
    }

    /// The steps in the window, as `(first, end, role, is leading, is pinned, messages)`, and what
    /// is gone, as `(steps, tokens, note)`: what goes on when the dialect changes.
    fn hand_on<'py>(&self, py: Python<'py>) -> PyResult<(Vec<HandedOn<'py>>, Option<GoneFields>)> {
        let mut state = self.lock()?;
        let state = &mut *state;
        let set = &mut state.set;
        let (steps, gone) = run(py, move || set.hand_on())?;
        state.rendered = None;
        let dialect = state.set.settings().dialect;
        let mut carried = Vec::with_capacity(steps.len());
        for step in steps {
            let messages = PyList::empty(py);
            for entry in step.entries {
                push_entry(&messages, &mut state.messages, dialect, entry)?;
            }
            let role = step.role.name();
            carried.push((
                step.first,
                step.end,
                role,
                step.is_leading,
                step.is_pinned,
                messages,
            ));
        }
        let gone = gone.map(|gone| (gone.steps, gone.tokens, gone.note.to_string()));
        Ok((carried, gone))
    }

    /// The pointer of the index of everything that is gone.
    fn index_pointer(&self) -> PyResult<String> {
        let state = self.lock()?;
        Ok(state.set.settings().key.index_pointer().to_string())
    }

    /// First and end of the raw messages that a summary may cover if the newest `keep` stay.
    fn summary_range(&self, keep: usize) -> PyResult<Option<(usize, usize)>> {
        let range = self.lock()?.set.summary_range(keep);
        Ok(range.map(|range| (range.start, range.end)))
    }

    /// Messages at the end of the newest window that came after its older part last changed.
    fn unchanged_tail(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let mut state = self.lock()?;
        let set = &mut state.set;
        run(py, move || Ok(set.unchanged_tail()))
    }

    /// The newest checkpoint as JSON, if it is of a later compaction than number `known`, and the
    /// number of its own; `None` if there is none.
    fn checkpoint(&self, py: Python<'_>, known: u32) -> PyResult<Option<(u32, String)>> {
        let state = self.lock()?;
        let newest = state.set.checkpoint();
        let Some(newest) = newest.filter(|newest| newest.compactions() != known) else {
            return Ok(None);
        };
        run(py, || Ok(Some((newest.compactions(), newest.to_json()))))
    }

    /// Number of the newest checkpoint's compaction; 0 if there is none.
    fn checkpointed(&self) -> PyResult<u32> {
        let state = self.lock()?;
        Ok(state.set.checkpoint().map_or(0, Checkpoint::compactions))
    }

    /// Raw messages before the checkpoint from which the fold went on.
    fn resumed(&self) -> PyResult<Option<usize>> {
        Ok(self.lock()?.set.resumed())
    }

    /// Number of raw messages.
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.lock()?.messages.len())
    }

    /// The raw messages from `first` up to `end`, the caller's own objects; all of them by default.
    #[pyo3(signature = (first=0, end=None))]
    fn messages<'py>(
        &self,
        py: Python<'py>,
        first: usize,
        end: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut state = self.lock()?;
        let end = end.map_or(state.messages.len(), |end| end.min(state.messages.len()));
        let chosen = state.messages.get_mut(first..end).unwrap_or_default();
        let objects: Vec<_> = chosen
            .iter_mut()
            .map(|raw| raw.object(py))
            .collect::<PyResult<_>>()?;
        PyList::new(py, objects)
    }

    /// The content behind a pointer.
    #[pyo3(signature = (pointer, *, pattern, lines))]
    fn page_in<'py>(
        &self,
        py: Python<'py>,
        pointer: &str,
        pattern: Option<&str>,
        lines: Option<(usize, usize)>,
    ) -> PyResult<Bound<'py, PyString>> {
        let mut state = self.lock()?;
        let name = parse_pointer(pointer).map_err(PyError)?;
        let set = &mut state.set;
        let page = run(py, move || set.find_page(name))?;
        let text = match page {
            Page::Index => set_index(py, &state.set)?,
            Page::Part(part) => match &state.set.transcript().all_parts()[part].body {
                Body::Text(text) if pattern.is_none() && lines.is_none() => {
                    return Ok(text.object(py));
                }
                Body::Text(text) => text.with(str::to_owned),
                body => String::from_utf8_lossy(&body.page_bytes()).into_owned(),
            },
        };
        Ok(PyString::new(py, &select_lines(&text, pattern, lines)))
    }

    /// A page as a model reads it, and where it is from: text (of blocks, their texts), raw index
    /// of the message, index of the part in it, role, kind. The index page has no message.
    fn page_source(&self, py: Python<'_>, pointer: &str) -> PyResult<PageSource> {
        let mut state = self.lock()?;
        let name = parse_pointer(pointer).map_err(PyError)?;
        let set = &mut state.set;
        run(py, move || {
            let part = match set.find_page(name)? {
                Page::Index => return Ok((set.index_page(), None, 0, "", "index")),
                Page::Part(part) => part,
            };
            let transcript = set.transcript();
            let message = transcript.message_of_part(part);
            let content = &transcript.all_parts()[part];
            Ok((
                with_text(&content.body, str::to_owned),
                Some(message),
                part - transcript.part_range(message).start,
                transcript.rows()[message].role.name(),
                kind_name(content.kind),
            ))
        })
    }

    /// The pages of everything that is gone from the newest window, oldest first: pointer and raw
    /// index of the message.
    fn gone_pages(&self, py: Python<'_>) -> PyResult<Vec<(String, usize)>> {
        let state = self.lock()?;
        let set = &state.set;
        run(py, move || {
            let transcript = set.transcript();
            let steps = set.window_plan().gone();
            let steps = steps.filter_map(|step| transcript.steps().get(step));
            let messages = steps.flat_map(|step| step.first as usize..step.end as usize);
            Ok(messages
                .flat_map(|message| {
                    transcript
                        .part_range(message)
                        .map(move |part| (part, message))
                })
                .map(|(part, message)| (set.pointer_of(part).to_string(), message))
                .collect())
        })
    }

    /// The texts that were brought back and are in the newest window, fenced as they stand there.
    fn recalls(&self) -> PyResult<Vec<String>> {
        let state = self.lock()?;
        let recalls = state.set.window_plan().recalls().iter();
        Ok(recalls.map(|recall| recall.text.to_string()).collect())
    }

    /// What each compaction cost: messages before it, why, tokens removed, tokens written again,
    /// bound reasoning lost, calls after which it pays, calls that were expected. Those from number
    /// `first` on.
    #[pyo3(signature = (first=0))]
    fn rewrites(&self, first: usize) -> PyResult<Vec<RewriteFields>> {
        let state = self.lock()?;
        let rewrites = state.set.window_plan().rewrites().iter().skip(first);
        let fields = |one: &Rewrite| {
            (
                one.at,
                one.cause.name(),
                one.removed,
                one.rewritten,
                one.lost_reasoning,
                one.break_even,
                one.expected,
            )
        };
        Ok(rewrites.map(fields).collect())
    }

    /// What the newest window points to: pointer, raw index of the message, tokens of the
    /// original. The index page comes first, if anything is gone.
    fn pointers(&self) -> PyResult<Vec<(String, Option<usize>, u32)>> {
        let state = self.lock()?;
        let transcript = state.set.transcript();
        let plan = state.set.window_plan();
        let index = plan.root().map(|_| {
            (
                state.set.settings().key.index_pointer().to_string(),
                None,
                0,
            )
        });
        let edits = plan
            .shown()
            .iter()
            .flat_map(|shown| shown.edits.iter())
            .map(|edit| {
                let part = edit.part as usize;
                let message = transcript.message_of_part(part);
                (
                    edit.pointer.to_string(),
                    Some(message),
                    transcript.all_parts()[part].tokens,
                )
            });
        Ok(index.into_iter().chain(edits).collect())
    }

    /// What happened to each step, or to the step of one message.
    #[pyo3(signature = (index=None))]
    fn explain(&self, py: Python<'_>, index: Option<usize>) -> PyResult<Vec<Explained>> {
        let state = self.lock()?;
        let set = &state.set;
        let reports = match index {
            None => run(py, move || Ok(set.explain()))?,
            Some(index) => vec![set.explain_message(index).map_err(PyError)?],
        };
        Ok(reports.iter().map(explained).collect())
    }

    /// The same as columns: numpy arrays by name, one entry per step.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.lock()?;
        let set = &state.set;
        let reports = run(py, move || Ok(set.explain()))?;
        let columns = PyDict::new(py);
        let u32_column = |read: fn(&StepReport) -> u32| {
            reports
                .iter()
                .map(read)
                .collect::<Vec<u32>>()
                .into_pyarray(py)
        };
        let u8_column = |read: fn(&StepReport) -> u8| {
            reports
                .iter()
                .map(read)
                .collect::<Vec<u8>>()
                .into_pyarray(py)
        };
        columns.set_item("first", u32_column(|report| report.first))?;
        columns.set_item("end", u32_column(|report| report.end))?;
        columns.set_item("level", u8_column(|report| report.level as u8))?;
        columns.set_item("tokens", u32_column(|report| report.tokens))?;
        columns.set_item(
            "original_tokens",
            u32_column(|report| report.original_tokens),
        )?;
        let salience: Vec<f32> = reports.iter().map(|report| report.salience).collect();
        columns.set_item("salience", salience.into_pyarray(py))?;
        columns.set_item("fidelity", u8_column(|report| report.fidelity as u8))?;
        columns.set_item("reason", u8_column(|report| report.reason as u8))?;
        columns.set_item("compaction", u32_column(|report| report.compaction))?;
        Ok(columns)
    }
}

impl PyWorkingSet {
    fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::WouldBlock) => Err(PyError(Error::new(
                ErrorKind::ConcurrentUse,
                "a working set is used from one thread at a time",
            ))
            .into()),
            Err(TryLockError::Poisoned(_)) => Err(PyError(Error::new(
                ErrorKind::ConcurrentUse,
                "a call on this working set failed midway; build a new one from its log",
            ))
            .into()),
        }
    }
}

/// The names behind the `level`, `fidelity` and `reason` columns, by number.
pub(crate) fn column_names(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let names = PyDict::new(py);
    let levels = [Level::Gone, Level::Stub, Level::Trimmed, Level::Verbatim].map(Level::name);
    names.set_item("level", PyTuple::new(py, levels)?)?;
    let fidelity = [Fidelity::Exact, Fidelity::Approximate].map(Fidelity::name);
    names.set_item("fidelity", PyTuple::new(py, fidelity)?)?;
    names.set_item("reason", PyTuple::new(py, Reason::ALL.map(Reason::name))?)?;
    Ok(names)
}

fn set_index(py: Python<'_>, set: &WorkingSet<PyText>) -> PyResult<String> {
    run(py, move || Ok(set.index_page()))
}

fn explained(report: &StepReport) -> Explained {
    (
        report.first,
        report.end,
        report.role.name(),
        report.level.name(),
        report.tokens,
        report.original_tokens,
        report.salience,
        report.fidelity.name(),
        report.reason.name(),
        report.compaction,
    )
}

fn listed(messages: &Bound<'_, PyAny>) -> PyResult<Vec<Py<PyAny>>> {
    let Ok(iterator) = messages.try_iter() else {
        let kind = messages.get_type().name()?;
        return Err(invalid_value(&format!(
            "messages must be an iterable of messages, not {kind}"
        )));
    };
    let mut objects = Vec::with_capacity(messages.len().unwrap_or(0));
    for message in iterator {
        objects.push(message?.unbind());
    }
    Ok(objects)
}

fn raws(py: Python<'_>, objects: &[Py<PyAny>]) -> Vec<Raw> {
    let objects = objects.iter();
    objects
        .map(|object| Raw::Object(object.clone_ref(py)))
        .collect()
}

fn read_messages(
    py: Python<'_>,
    dialect: Dialect,
    messages: &[Py<PyAny>],
    first: usize,
) -> PyResult<Vec<Message<PyText>>> {
    let read = |(offset, message): (usize, &Py<PyAny>)| {
        let node = PyNode::new(message.bind(py).clone());
        read_message(dialect, &node, first + offset).map_err(|error| PyError(error).into())
    };
    messages.iter().enumerate().map(read).collect()
}

/// Characters of the texts in these.
fn chars_in(py: Python<'_>, messages: &[Message<PyText>]) -> usize {
    fn chars(py: Python<'_>, value: &Value<PyText>) -> usize {
        match value {
            Value::Text(text) => text.chars(py),
            Value::List(items) => items.iter().map(|item| chars(py, item)).sum(),
            Value::Map(entries) => entries.iter().map(|(_, item)| chars(py, item)).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }
    let parts = messages.iter().flat_map(|message| &message.parts);
    parts
        .map(|part| match &part.body {
            Body::Text(text) => text.chars(py),
            Body::Value(value) => chars(py, value),
            Body::Empty => 0,
        })
        .sum()
}

/// The state of a working set that has folded a log.
fn folded(
    py: Python<'_>,
    set: WorkingSet<PyText>,
    messages: &Bound<'_, PyAny>,
    events: &[Event],
) -> PyResult<State> {
    let dialect = set.settings().dialect;
    let stored = messages.cast::<PyStoredMessages>().ok();
    let held = stored.map(|stored| stored.get().lock()).transpose()?;
    let held = held.as_ref().map(|held| held.as_slice());
    let objects = match held {
        Some(_) => Vec::new(),
        None => listed(messages)?,
    };
    let mut state = State {
        set,
        messages: match held {
            Some(held) => raws_of(py, held),
            None => raws(py, &objects),
        },
        rendered: None,
    };
    check_order(events, state.messages.len()).map_err(PyError)?;
    let mut events = events;
    let mut first = 0;
    loop {
        let end = state.messages.len().min(first + CHUNK_MESSAGES);
        let read = match held.and_then(|held| held.get(first..end)) {
            Some(held) => read_held(py, dialect, held, first)?,
            None => read_messages(py, dialect, &objects[first..end], first)?,
        };
        let is_last = end == state.messages.len();
        // An event at the end of a chunk goes with the next one, which it may come before.
        let due = events.partition_point(|event| is_last || event.at < end);
        let (now, later) = events.split_at(due);
        events = later;
        let folding = &mut state.set;
        run(py, move || folding.replay(read, now))?;
        if is_last {
            return Ok(state);
        }
        first = end;
    }
}
