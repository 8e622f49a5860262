//! Which call each result answers: by id and position, the nearest open call before it.

use std::collections::BTreeMap;

use super::draft::{Draft, Piece};
use super::items::Item;
use crate::dialect::open_calls::{Found, OpenCalls};
use crate::message::{Field, Part, PartKind, Place, Role};
use crate::node::Text;

/// A call of the history.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The draft and the piece that it is.
    pub(super) draft: usize,
    pub(super) piece: usize,
    /// Number of the assistant's turn it was made in.
    pub(super) turn: usize,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    /// The id it has after the repair.
    pub(super) new_id: Option<String>,
    /// The draft and the piece of its result.
    pub(super) answer: Option<(usize, usize)>,
    /// Whether its result is still to come.
    pub(super) is_open: bool,
}

impl Call {
    /// Whether a result must be put in.
    pub(super) fn needs_result(&self) -> bool {
        self.answer.is_none() && !self.is_open
    }
}

/// What a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The result of this call.
    Answers(usize),
    /// A further result of this call, which has one already.
    Repeats(usize),
    /// A result without a call.
    Orphan,
    /// A result whose call the server may have stored.
    Elsewhere,
}

/// All calls, and what becomes of each result by draft and piece.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) calls: Vec<Call>,
    pub(super) results: BTreeMap<(usize, usize), Fate>,
    /// The calls of each draft: a range of `calls`.
    by_draft: BTreeMap<usize, std::ops::Range<usize>>,
}

impl Pairs {
    /// The calls of a draft, as a range of [`Pairs::calls`].
    pub(super) fn of_draft(&self, draft: usize) -> std::ops::Range<usize> {
        self.by_draft.get(&draft).cloned().unwrap_or(0..0)
    }
}

impl Pairs {
    /// Leaves the calls of the last step open, if nothing but results follows them.
    pub(super) fn leave_open<T: Text>(&mut self, drafts: &[Draft<'_, T>]) {
        let Some(last) = self.calls.last() else {
            return;
        };
        let turn = last.turn;
        let mut behind = drafts[last.draft + 1..].iter();
        if behind.all(|draft| draft.pieces.iter().all(Piece::is_result)) {
            let calls = self.calls.iter_mut().rev();
            for call in calls.take_while(|call| call.turn == turn) {
                call.is_open = call.answer.is_none();
            }
        }
    }
}

impl Pairs {
    /// Takes results whose call may be stored for results without a call: who packs steps has to
    /// see the call.
    pub(super) fn expect_nothing_elsewhere(&mut self) {
        for fate in self.results.values_mut() {
            if *fate == Fate::Elsewhere {
                *fate = Fate::Orphan;
            }
        }
    }
}

/// Pairs the results of `drafts` with their calls. `joins` says whether a draft goes on with the
/// turn of the draft before it.
pub(super) fn pair<T: Text>(
    drafts: &[Draft<'_, T>],
    joins: impl Fn(&Draft<'_, T>, &Draft<'_, T>) -> bool,
) -> Pairs {
    let mut pairs = Pairs::default();
    let mut open = OpenCalls::default();
    let mut turn = 0;
    // Behind a reference to stored items any result may be right.
    let mut is_stored = false;
    for (at, draft) in drafts.iter().enumerate() {
        is_stored |= draft.item == Some(Item::Stored);
        if at > 0 && !joins(&drafts[at - 1], draft) {
            turn += 1;
        }
        let first = pairs.calls.len();
        for (number, piece) in draft.pieces.iter().enumerate() {
            let (id, name) = identity(piece.part.and_then(|part| part.key.as_deref()));
            match piece.kind {
                PartKind::Call if draft.role == Role::Assistant => {
                    let class = Class {
                        has_id: id.is_some(),
                        is_legacy: piece.part.is_some_and(is_legacy),
                        is_search: id.is_none() && draft.item == Some(Item::Question),
                    };
                    open.push(turn, id.as_deref(), class, name.as_deref());
                    pairs.calls.push(Call {
                        draft: at,
                        piece: number,
                        turn,
                        new_id: id.clone(),
                        id,
                        name,
                        answer: None,
                        is_open: false,
                    });
                }
                PartKind::Result => {
                    let result = Result {
                        id: id.as_deref(),
                        name: name.as_deref(),
                        is_legacy: draft.is_legacy,
                        is_found: draft.item == Some(Item::Found),
                    };
                    let mut fate = fate(&mut open, &pairs.calls, result);
                    if fate == Fate::Orphan && is_stored {
                        fate = Fate::Elsewhere;
                    }
                    if let Fate::Answers(call) = fate {
                        open.close(call);
                        pairs.calls[call].answer = Some((at, number));
                    }
                    pairs.results.insert((at, number), fate);
                }
                _ => {}
            }
        }
        if pairs.calls.len() > first {
            pairs.by_draft.insert(at, first..pairs.calls.len());
        }
    }
    pairs
}

/// What a result says about its call.
#[derive(Clone, Copy)]
struct Result<'a> {
    id: Option<&'a str>,
    name: Option<&'a str>,
    /// Whether it is a `function` message.
    is_legacy: bool,
    /// Whether it is what the server found.
    is_found: bool,
}

/// Whether a call is the single one of old.
pub(super) fn is_legacy<T>(part: &Part<T>) -> bool {
    part.place == Place::Field(Field::FunctionCall)
}

/// What a result may ask beside ids and names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    has_id: bool,
    /// Whether it is the single call of old, which a `function` message answers.
    is_legacy: bool,
    /// Whether the server answers it, without an id.
    is_search: bool,
}

/// What becomes of a result behind `calls`.
fn fate(open: &mut OpenCalls<Class>, calls: &[Call], result: Result<'_>) -> Fate {
    let Result { id, name, .. } = result;
    let nameless = Class {
        has_id: false,
        is_legacy: result.is_legacy,
        is_search: result.is_found,
    };
    if let Some(id) = id {
        return match open.with_id(id) {
            Found::Open(call) => Fate::Answers(call),
            Found::Answered(last) => Fate::Repeats(last),
            // A call without an id, of this name, in the newest turn.
            Found::Unknown => name
                .and_then(|name| open.named(nameless, name))
                .map_or(Fate::Orphan, Fate::Answers),
        };
    }
    if let Found::Open(call) = open.fitting(&[nameless], name) {
        return Fate::Answers(call);
    }
    // The result lost its id: the newest turn says whose it is.
    let named = Class {
        has_id: true,
        ..nameless
    };
    let turn = calls.last().map(|call| call.turn);
    match open.fitting(&[named], name) {
        Found::Open(call) if Some(calls[call].turn) == turn => Fate::Answers(call),
        _ => Fate::Orphan,
    }
}

/// Id and name; an empty id is none.
pub(super) fn identity<T: Text>(
    key: Option<&crate::message::CallKey<T>>,
) -> (Option<String>, Option<String>) {
    let keep = |text: &Option<T>| {
        text.as_ref()
            .map(|text| text.with(str::to_owned))
            .filter(|text| !text.is_empty())
    };
    key.map_or((None, None), |key| (keep(&key.id), keep(&key.name)))
}
