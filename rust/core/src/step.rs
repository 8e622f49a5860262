//! Steps: the atoms of every decision, and the positional pairing that makes them.
//!
//! A step is a plain message, or an assistant message with its calls, all their results and the
//! reasoning glued to them. Results are paired with the calls of the step they directly follow:
//! ids repeat in real data, so an id is only compared inside its own step.

use crate::error::{Error, ErrorKind, Result};
use crate::message::{CallKey, Message, PartKind, Role};
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
}

/// Pairs calls with results while messages arrive in order.
///
/// Cost per message: its own calls and results against the calls of one step.
#[derive(Clone, Debug, Default)]
pub struct Pairing {
    calls: Vec<PendingCall>,
    last: Option<LastMessage>,
    /// Whether consecutive assistant messages are one turn for the provider.
    merges_roles: bool,
}

#[derive(Clone, Copy, Debug)]
struct LastMessage {
    role: Role,
    only_reasoning: bool,
}

impl Pairing {
    /// A pairing for a dialect; `merges_roles` where the provider merges neighbours of one role.
    pub fn new(merges_roles: bool) -> Self {
        Self {
            calls: Vec::new(),
            last: None,
            merges_roles,
        }
    }

    /// The calls of the newest step, answered or not.
    pub fn calls(&self) -> &[PendingCall] {
        &self.calls
    }

    /// Calls of the newest step without a result.
    pub fn open_calls(&self) -> usize {
        self.calls.iter().filter(|call| !call.answered).count()
    }

    /// Which step a message belongs to, if it comes next.
    pub fn attachment<T>(&self, message: &Message<T>) -> Attachment {
        let joins = message.has_results()
            || (message.role == Role::Assistant
                && self
                    .last
                    .is_some_and(|last| last.role == Role::Assistant && self.glues(last, message)));
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
        }
        for (part, content) in message.parts.iter().enumerate() {
            if content.kind == PartKind::Call {
                let (id, name) = identity(content.key.as_deref());
                self.calls.push(PendingCall {
                    message: index as u32,
                    part: part as u32,
                    id,
                    name,
                    answered: false,
                });
            }
        }
        self.last = Some(LastMessage {
            role: message.role,
            only_reasoning: !message.parts.is_empty()
                && message
                    .parts
                    .iter()
                    .all(|part| part.kind == PartKind::Reasoning),
        });
        Ok(attachment)
    }

    /// Whether an assistant message continues the assistant message before it: after reasoning
    /// alone, or with further calls of a turn whose records the provider merges.
    fn glues<T>(&self, last: LastMessage, message: &Message<T>) -> bool {
        last.only_reasoning || (self.merges_roles && message.has_calls() && self.open_calls() > 0)
    }

    fn answer<T: Text>(&mut self, message: &Message<T>) -> Result<()> {
        // All results of the message are matched on a copy first, so that an error changes nothing.
        let mut answered: Vec<bool> = self.calls.iter().map(|call| call.answered).collect();
        for part in message
            .parts
            .iter()
            .filter(|part| part.kind == PartKind::Result)
        {
            let (id, name) = identity(part.key.as_deref());
            let matches = |call: &PendingCall| match (&id, &call.id) {
                (Some(id), Some(call_id)) => id == call_id,
                _ => name.is_none() || call.name.is_none() || name == call.name,
            };
            let found = (0..self.calls.len()).find(|&at| !answered[at] && matches(&self.calls[at]));
            match found {
                Some(at) => answered[at] = true,
                None if id.is_some() && self.calls.iter().any(|call| call.id == id) => {
                    return Err(Error::new(
                        ErrorKind::DuplicateResult,
                        "a second result for a call that has one already",
                    ));
                }
                None => {
                    return Err(Error::new(
                        ErrorKind::OrphanResult,
                        "a result whose call is not in the assistant message before it",
                    ));
                }
            }
        }
        for (call, answered) in self.calls.iter_mut().zip(answered) {
            call.answered = answered;
        }
        Ok(())
    }
}

fn identity<T: Text>(key: Option<&CallKey<T>>) -> (Option<Box<str>>, Option<Box<str>>) {
    let keep = |text: &Option<T>| text.as_ref().map(|text| text.with(|text| Box::from(text)));
    key.map_or((None, None), |key| (keep(&key.id), keep(&key.name)))
}
