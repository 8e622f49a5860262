//! Drafts whose pieces can be taken out while the places of the others stay.

use std::collections::BTreeSet;

use super::Mode;
use super::draft::{Draft, Piece};
use super::flatten::{Trouble, call_text, result_pieces};
use super::items::Item;
use super::pair::{Call, Fate, Pairs};
use crate::dialect::Dialect;
use crate::dialect::flaws::lacks_name;
use crate::dialect::form::OpenCall;
use crate::message::{Body, Part, PartKind, Place, Role};
use crate::node::Text;

/// What is asked of calls beside results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// What their names must be.
    pub(super) dialect: Dialect,
    /// The reasoning that came with them.
    pub(super) reasoning: bool,
    /// That there are none: no tools are declared.
    pub(super) no_calls: bool,
}

pub(super) struct Work<'a, T> {
    heads: Vec<Draft<'a, T>>,
    slots: Vec<Vec<Option<Piece<'a, T>>>>,
    /// The part of each slot, also after its piece was taken.
    parts: Vec<Vec<Option<&'a Part<T>>>>,
    /// Of each call, whether it is one still.
    alive: Vec<bool>,
}

impl<'a, T: Text> Work<'a, T> {
    pub(super) fn new(mut drafts: Vec<Draft<'a, T>>, calls: usize) -> Self {
        let parts = drafts
            .iter()
            .map(|draft| draft.pieces.iter().map(|piece| piece.part).collect())
            .collect();
        let slots = drafts
            .iter_mut()
            .map(|draft| {
                let pieces = std::mem::take(&mut draft.pieces);
                pieces.into_iter().map(Some).collect()
            })
            .collect();
        Self {
            heads: drafts,
            slots,
            parts,
            alive: vec![true; calls],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    pub(super) fn role(&self, at: usize) -> Option<Role> {
        self.heads.get(at).map(|draft| draft.role)
    }

    /// What is left in the slots of a draft.
    pub(super) fn slots(&self, at: usize) -> &[Option<Piece<'a, T>>] {
        self.slots.get(at).map_or(&[], Vec::as_slice)
    }

    pub(super) fn take(&mut self, at: (usize, usize)) -> Option<Piece<'a, T>> {
        self.slots.get_mut(at.0)?.get_mut(at.1)?.take()
    }

    /// Puts these pieces into a draft in place of what was there.
    pub(super) fn refill(&mut self, at: usize, pieces: Vec<Piece<'a, T>>) {
        self.slots[at] = pieces.into_iter().map(Some).collect();
    }

    pub(super) fn item(&self, at: usize) -> Option<Item> {
        self.heads.get(at)?.item
    }

    /// A call as the one that its placeholder stands for.
    pub(super) fn open_call(&self, call: &Call) -> OpenCall {
        let part = self.parts[call.draft][call.piece];
        let kind = part
            .filter(|part| part.place == Place::Item)
            .and_then(|part| {
                let Body::Value(item) = &part.body else {
                    return None;
                };
                let kind = item.get("type")?.as_text()?;
                Some(kind.with(str::to_owned))
            });
        OpenCall {
            id: call.new_id.clone(),
            name: call.name.clone(),
            place: part.map_or(Place::Content, |part| part.place),
            kind,
        }
    }

    /// The draft with what is left of it.
    pub(super) fn draft(&mut self, at: usize) -> Draft<'a, T> {
        let pieces = self.slots[at].drain(..).flatten().collect();
        let head = &mut self.heads[at];
        Draft {
            base: head.base,
            role: head.role,
            pieces,
            whole: head.whole,
            edits: std::mem::take(&mut head.edits),
            item: head.item,
            is_legacy: head.is_legacy,
            has_id: head.has_id,
        }
    }

    /// The caller's message that a draft comes from.
    pub(super) fn base(&self, at: usize) -> Option<u32> {
        self.heads.get(at)?.base
    }

    /// Base and parts of the user's message `message`, if all its pieces were taken.
    pub(super) fn emptied(&self, message: u32) -> Option<(u32, usize)> {
        let at = self
            .heads
            .binary_search_by_key(&Some(message), |draft| draft.base)
            .ok()?;
        let is_empty = self.slots[at].iter().all(Option::is_none);
        (is_empty && matches!(self.heads[at].role, Role::User | Role::Tool))
            .then_some((message, self.heads[at].whole))
    }

    pub(super) fn is_alive(&self, call: usize) -> bool {
        self.alive.get(call).copied().unwrap_or(false)
    }

    /// Whether this result answers a call that is one still.
    pub(super) fn answers(&self, fate: Option<Fate>) -> bool {
        match fate {
            Some(Fate::Answers(call)) => self.is_alive(call),
            Some(Fate::Elsewhere) => true,
            _ => false,
        }
    }

    /// Does to calls in trouble what the mode says; placeholders come later.
    pub(super) fn settle(&mut self, pairs: &Pairs, mode: Mode, asked: Asked) {
        let lacks: Vec<bool> = self
            .slots
            .iter()
            .map(|slots| {
                let mut pieces = slots.iter().flatten();
                asked.no_calls
                    || asked.reasoning && !pieces.any(|piece| piece.kind == PartKind::Reasoning)
            })
            .collect();
        let mut touched = BTreeSet::new();
        for (number, call) in pairs.calls.iter().enumerate() {
            let item = self.heads[call.draft].item;
            let part = self.parts[call.draft][call.piece];
            let is_nameless = part.is_some_and(|part| lacks_name(asked.dialect, part));
            let may_wait = call.answer.is_none() && item.is_some_and(Item::needs_no_result);
            if !is_nameless && (call.is_open || may_wait) {
                continue;
            }
            let trouble = if lacks[call.draft] || is_nameless {
                Trouble::Unusable
            } else if call.answer.is_none() && mode != Mode::Synthesize {
                Trouble::Unanswered
            } else {
                continue;
            };
            self.alive[number] = false;
            self.slots[call.draft][call.piece] = match mode {
                Mode::Drop => None,
                _ => part.map(|part| Piece::text(call_text(part, trouble))),
            };
            touched.insert(call.draft);
        }
        // Reasoning is glued to its calls.
        for at in touched {
            if self.heads[at].item.is_some() {
                self.unglue(at);
                continue;
            }
            let slots = &mut self.slots[at];
            if slots.iter().flatten().any(Piece::is_call) {
                continue;
            }
            for slot in slots {
                // An empty string beside calls was as good as null; alone it is not.
                let is_glued = |piece: &Piece<'_, T>| {
                    piece.kind == PartKind::Reasoning
                        || matches!(piece.part.map(|part| &part.body), Some(Body::Text(text))
                            if piece.kind == PartKind::Text && super::is_blank(text))
                };
                if slot.as_ref().is_some_and(is_glued) {
                    *slot = None;
                }
            }
        }
    }

    /// Takes out reasoning items whose follower is no call any more; what else follows them in
    /// the turn loses its id, which would ask for the reasoning.
    fn unglue(&mut self, at: usize) {
        let is_reasoning = |slots: &[Option<Piece<'a, T>>]| {
            let mut pieces = slots.iter().flatten().peekable();
            pieces.peek().is_some() && pieces.all(|piece| piece.kind == PartKind::Reasoning)
        };
        let mut before = at;
        while before > 0 && is_reasoning(&self.slots[before - 1]) {
            before -= 1;
            self.slots[before].iter_mut().for_each(|slot| *slot = None);
        }
        if before == at {
            return;
        }
        for next in at + 1..self.heads.len() {
            let head = &mut self.heads[next];
            let goes_on = head.role == Role::Assistant && head.item != Some(Item::Reasoning);
            if !goes_on {
                break;
            }
            if head.item.is_some_and(Item::may_lose_id) {
                head.lose_id();
            }
        }
    }

    /// What becomes of a result that answers nothing: pieces of text, or nothing.
    pub(super) fn stray(
        &mut self,
        at: (usize, usize),
        pairs: &Pairs,
        mode: Mode,
        keeps_blocks: bool,
    ) -> Vec<Piece<'a, T>> {
        let Some(piece) = self.take(at).filter(|_| mode != Mode::Drop) else {
            return Vec::new();
        };
        let trouble = match pairs.results.get(&at) {
            Some(Fate::Repeats(call)) => {
                if self.says_the_same(&piece, pairs.calls[*call].answer) {
                    return Vec::new();
                }
                Trouble::Repeated
            }
            Some(Fate::Answers(_)) => Trouble::Unusable,
            _ => Trouble::Orphan,
        };
        result_pieces(&piece, trouble, keeps_blocks)
    }

    fn says_the_same(&self, piece: &Piece<'_, T>, other: Option<(usize, usize)>) -> bool {
        let other = other.and_then(|at| *self.parts.get(at.0)?.get(at.1)?);
        match (piece.part, other) {
            (Some(part), Some(other)) => match (&part.body, &other.body) {
                (Body::Text(part), Body::Text(other)) => {
                    part.with(|part| other.with(|other| part == other))
                }
                (Body::Value(part), Body::Value(other)) => part.to_json() == other.to_json(),
                (Body::Empty, Body::Empty) => true,
                _ => false,
            },
            _ => false,
        }
    }
}
