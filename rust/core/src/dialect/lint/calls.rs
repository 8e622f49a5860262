//! Calls beside results, by id and position: of several that match, the first open one.

use crate::dialect::open_calls::{Found, OpenCalls};
use crate::message::{CallKey, Field, Message, Part, PartKind, Place};
use crate::node::Text;

/// A call that waits for its result, or has it.
pub(super) struct Call<'a, T> {
    pub(super) key: Option<&'a CallKey<T>>,
    /// Raw index of its message.
    pub(super) index: usize,
    /// Its number in that message, from 1, and how many calls there are.
    pub(super) number: usize,
    pub(super) total: usize,
    /// Whether it is the single call of old.
    pub(super) is_legacy: bool,
}

/// The calls of a message.
pub(super) fn calls_of<T>(message: &Message<T>, index: usize) -> impl Iterator<Item = Call<'_, T>> {
    let is_call = |part: &&Part<T>| part.kind == PartKind::Call;
    let total = message.parts.iter().filter(is_call).count();
    let calls = message.parts.iter().filter(is_call);
    calls.enumerate().map(move |(at, part)| Call {
        key: part.key.as_deref(),
        index,
        number: at + 1,
        total,
        is_legacy: part.place == Place::Field(Field::FunctionCall),
    })
}

/// What a result finds among the calls before it.
pub(super) enum Answer {
    /// The first open call that matches; it is answered now.
    Open,
    /// Only answered calls match.
    Answered,
    /// No call matches.
    Unknown,
}

/// Calls that results may answer. A class are those with an id.
pub(super) struct Calls<'a, T> {
    list: Vec<Call<'a, T>>,
    open: OpenCalls<bool>,
    /// Whether ids may be left out on either side and names stand for them.
    by_name: bool,
}

impl<'a, T: Text> Calls<'a, T> {
    pub(super) fn new(by_name: bool) -> Self {
        Self {
            list: Vec::new(),
            open: OpenCalls::default(),
            by_name,
        }
    }

    pub(super) fn push(&mut self, call: Call<'a, T>) {
        let (id, name) = self.identity(call.key);
        self.open
            .push(0, id.as_deref(), id.is_some(), name.as_deref());
        self.list.push(call);
    }

    /// Takes all calls out: those without a result.
    pub(super) fn drain_open(&mut self) -> impl Iterator<Item = Call<'a, T>> + use<'a, T> {
        let open = std::mem::take(&mut self.open);
        let calls = std::mem::take(&mut self.list).into_iter().enumerate();
        calls.filter_map(move |(at, call)| open.is_open(at).then_some(call))
    }

    /// How many calls have no result.
    pub(super) fn count_open(&self) -> usize {
        (0..self.list.len())
            .filter(|at| self.open.is_open(*at))
            .count()
    }

    /// Pairs a result with a call.
    pub(super) fn answer(&mut self, result: Option<&CallKey<T>>) -> Answer {
        if self.list.is_empty() {
            return Answer::Unknown;
        }
        let (id, name) = self.identity(result);
        // An id that is the same says more than a name.
        let same_id = match id.as_deref() {
            Some(id) => self.open.with_id(id),
            None if self.by_name => Found::Unknown,
            None => self.open.fitting(&[false], None),
        };
        let found = match same_id {
            Found::Open(_) => same_id,
            _ if !self.by_name => same_id,
            _ => {
                // A result without an id belongs to a call without one, if there is one.
                let of_call = match self.open.fitting(&[false], name.as_deref()) {
                    found @ Found::Open(_) => found,
                    found if id.is_some() => found,
                    found => match self.open.fitting(&[true], name.as_deref()) {
                        Found::Unknown => found,
                        other => other,
                    },
                };
                match of_call {
                    Found::Unknown => same_id,
                    found => found,
                }
            }
        };
        match found {
            Found::Open(call) => {
                self.open.close(call);
                Answer::Open
            }
            Found::Answered(_) => Answer::Answered,
            Found::Unknown => Answer::Unknown,
        }
    }

    /// Id and name as they count: where ids may be left out, an empty one is none; elsewhere names
    /// say nothing.
    fn identity(&self, key: Option<&CallKey<T>>) -> (Option<String>, Option<String>) {
        let own = |text: &Option<T>| text.as_ref().map(|text| text.with(str::to_owned));
        let Some(key) = key else {
            return (None, None);
        };
        let id = own(&key.id).filter(|id| !(self.by_name && id.is_empty()));
        let name = if self.by_name { own(&key.name) } else { None };
        (id, name)
    }
}
