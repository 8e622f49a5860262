//! Steps: the atoms of every decision, and the positional pairing that makes them.
//!
//! A step is a plain message, or an assistant message with its calls, all their results and the
//! reasoning glued to them. Results are paired with the calls of the step they directly follow:
//! ids repeat in real data, so an id is only compared inside its own step.

use crate::dialect::form::Glue;
use crate::dialect::open_calls::OpenCalls;
use crate::error::{Error, ErrorKind, Result};
use crate::message::{CallKey, Field, Message, Part, PartKind, Place, Role};
use crate::node::Text;

/// One step: the messages `first..end` and what is known about them as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Raw index of its first message.
    pub first: u32,
    /// One past the raw index of its last message.
    pub end: u32,
    /// Tokens of all its messages, overhead included.
    pub tokens: u32,
    /// Calls that have no result.
    pub open_calls: u32,
    /// Whether the step has calls.
    pub has_calls: bool,
}

/// How the next message relates to the steps before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// It starts a step of its own.
    Starts,
    /// It belongs to the newest step.
    Joins,
}

/// A call of the newest step: where it is and whether it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingCall {
    /// Raw index of the message that holds the call.
    pub message: u32,
    /// Index of the part inside that message.
    pub part: u32,
    /// The id, if the call has one.
    pub id: Option<Box<str>>,
    /// The tool's name.
    pub name: Option<Box<str>>,
    /// Whether a result was seen.
    pub answered: bool,
    /// Whether the model goes on before the result: a program makes calls of its own.
    pub spans: bool,
}

/// Pairs calls with results while messages arrive in order.
///
/// Cost per message: its own calls and results, times the logarithm of the calls of one step.
#[derive(Clone, Debug, Default)]
pub struct Pairing {
    calls: Vec<PendingCall>,
    /// How many of them have no result, and how many of these the model goes on before.
    open: usize,
    spanning: usize,
    /// How many of the first calls are known to have their results.
    passed: usize,
    /// The calls by id and by name, where they are so many that looking at each is too much.
    index: Option<OpenCalls<bool>>,
    last: Option<LastMessage>,
    /// Which assistant messages continue the one before them.
    glue: Glue,
    /// Whether the newest step holds reasoning.
    has_reasoning: bool,
}

#[derive(Clone, Copy, Debug)]
struct LastMessage {
    role: Role,
    only_reasoning: bool,
}

impl Pairing {
    /// A pairing for a dialect, as [`glue`](crate::dialect::Dialect::glue) says.
    pub fn new(glue: Glue) -> Self {
        Self {
            glue,
            ..Self::default()
        }
    }

    /// The calls of the newest step, answered or not.
    pub fn calls(&self) -> &[PendingCall] {
        &self.calls
    }

    /// Calls of the newest step without a result.
    pub fn open_calls(&self) -> usize {
        self.open
    }

    /// Which step a message belongs to, if it comes next.
    pub fn attachment<T>(&self, message: &Message<T>) -> Attachment {
        let joins = message.has_results()
            || (message.role == Role::Assistant
                && self.last.is_some_and(|last| self.glues(last, message)));
        if joins {
            Attachment::Joins
        } else {
            Attachment::Starts
        }
    }

    /// Takes in the message at raw index `index` and says which step it belongs to.
    ///
    /// # Errors
    /// `orphan_result` for a result without a call directly before it, `duplicate_result` for a
    /// second result of one call. Nothing is taken in then.
    pub fn push<T: Text>(&mut self, index: usize, message: &Message<T>) -> Result<Attachment> {
        let results = message.has_results();
        let attachment = self.attachment(message);
        if results {
            self.answer(message)?;
        }
        if attachment == Attachment::Starts {
            self.calls.clear();
            (self.open, self.spanning, self.passed) = (0, 0, 0);
            self.index = None;
            self.has_reasoning = false;
        }
        for (part, content) in message.parts.iter().enumerate() {
            if content.kind == PartKind::Call {
                let (id, name) = identity(content.key.as_deref());
                let spans = content.place == Place::Field(Field::Code);
                self.open += 1;
                self.spanning += usize::from(spans);
                if let Some(index) = &mut self.index {
                    index.push(0, id.as_deref(), id.is_some(), name.as_deref());
                }
                self.calls.push(PendingCall {
                    message: index as u32,
                    part: part as u32,
                    id,
                    name,
                    answered: false,
                    spans,
                });
            }
            self.has_reasoning |= content.kind == PartKind::Reasoning;
        }
        self.last = Some(LastMessage {
            role: message.role,
            only_reasoning: is_only_reasoning(message),
        });
        Ok(attachment)
    }

    /// Whether an assistant message continues what stands before it.
    fn glues<T>(&self, last: LastMessage, message: &Message<T>) -> bool {
        let follows = last.role == Role::Assistant;
        let after_reasoning = follows && last.only_reasoning;
        match self.glue {
            Glue::Reasoning => after_reasoning,
            Glue::OpenCalls => {
                after_reasoning || (follows && message.has_calls() && self.open_calls() > 0)
            }
            Glue::Answer => {
                let goes_on = self.spanning > 0;
                let belongs = message.has_calls()
                    || self.open_calls() > 0
                    || (self.has_reasoning && !is_only_reasoning(message));
                goes_on || after_reasoning || (follows && belongs)
            }
        }
    }

    fn answer<T: Text>(&mut self, message: &Message<T>) -> Result<()> {
        // What was answered is taken back, so that an error changes nothing.
        let mut answered = Vec::new();
        let mut passed = self.passed;
        let mut index = self.index.take();
        if index.is_none() && self.open > FEW {
            index = Some(self.indexed());
        }
        for part in message
            .parts
            .iter()
            .filter(|part| part.kind == PartKind::Result)
        {
            while self.calls.get(passed).is_some_and(|call| call.answered) {
                passed += 1;
            }
            match self.find(part, passed, index.as_mut()) {
                Ok(at) => {
                    self.calls[at].answered = true;
                    if let Some(index) = &mut index {
                        index.close(at);
                    }
                    answered.push(at);
                }
                Err(error) => {
                    for at in answered {
                        self.calls[at].answered = false;
                    }
                    return Err(error);
                }
            }
        }
        self.index = index;
        for at in answered {
            self.open -= 1;
            self.spanning -= usize::from(self.calls[at].spans);
        }
        self.passed = passed;
        Ok(())
    }

    /// The calls by id and by name.
    fn indexed(&self) -> OpenCalls<bool> {
        let mut index = OpenCalls::default();
        for (at, call) in self.calls.iter().enumerate() {
            let (id, name) = (call.id.as_deref(), call.name.as_deref());
            index.push(0, id, id.is_some(), name);
            if call.answered {
                index.close(at);
            }
        }
        index
    }

    /// The call that a result answers, behind those that `passed` counts.
    fn find<T: Text>(
        &self,
        part: &Part<T>,
        passed: usize,
        index: Option<&mut OpenCalls<bool>>,
    ) -> Result<usize> {
        let (id, name) = identity(part.key.as_deref());
        if let Some(index) = index {
            let found = index.best(id.as_deref(), name.as_deref());
            return found.ok_or_else(|| self.unanswerable(id.as_deref()));
        }
        let mut found: Option<(u8, usize)> = None;
        for (at, call) in self.calls.iter().enumerate().skip(passed) {
            let (call_id, call_name) = (call.id.as_deref(), call.name.as_deref());
            if call.answered {
                continue;
            }
            let Some(rank) = affinity(id.as_deref(), name.as_deref(), call_id, call_name) else {
                continue;
            };
            if found.is_none_or(|(best, _)| rank < best) {
                found = Some((rank, at));
            }
            if rank == 0 {
                break;
            }
        }
        found
            .map(|(_, at)| at)
            .ok_or_else(|| self.unanswerable(id.as_deref()))
    }

    /// The error for a result that answers no open call.
    #[cold]
    fn unanswerable(&self, id: Option<&str>) -> Error {
        if id.is_some() && self.calls.iter().any(|call| call.id.as_deref() == id) {
            return Error::new(
                ErrorKind::DuplicateResult,
                "a second result for a call that has one already",
            );
        }
        Error::new(
            ErrorKind::OrphanResult,
            "a result whose call is not in the assistant message before it",
        )
    }
}

/// Calls that are looked at one by one; more of them get an index.
const FEW: usize = 32;

/// How well a result fits a call, 0 best; `None` if it cannot be its result. Ids decide where both
/// sides have one, then names, and order among equals.
pub(crate) fn affinity(
    result_id: Option<&str>,
    result_name: Option<&str>,
    call_id: Option<&str>,
    call_name: Option<&str>,
) -> Option<u8> {
    let named = result_name.is_none() || call_name.is_none() || result_name == call_name;
    match (result_id, call_id) {
        (Some(result), Some(call)) => (result == call).then_some(0),
        (None, None) => named.then_some(1),
        _ => named.then_some(2),
    }
}

fn is_only_reasoning<T>(message: &Message<T>) -> bool {
    let is_reasoning = |part: &Part<T>| part.kind == PartKind::Reasoning;
    !message.parts.is_empty() && message.parts.iter().all(is_reasoning)
}

fn identity<T: Text>(key: Option<&CallKey<T>>) -> (Option<Box<str>>, Option<Box<str>>) {
    // An empty id or name is none.
    let keep = |text: &Option<T>| {
        text.as_ref()
            .map(|text| text.with(|text| Box::<str>::from(text)))
            .filter(|text| !text.is_empty())
    };
    key.map_or((None, None), |key| (keep(&key.id), keep(&key.name)))
}
