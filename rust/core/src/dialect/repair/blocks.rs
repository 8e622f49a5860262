//! Placing where results are blocks of the user's next message (`anthropic`, `bedrock`, `gemini`).

use std::collections::BTreeSet;

use super::Mode;
use super::draft::{Draft, Piece, Source};
use super::flatten::Trouble;
use super::flatten::call_text;
use super::pair::Pairs;
use super::work::Work;
use crate::dialect::Dialect;
use crate::message::{PartKind, Role};
use crate::node::Text;

/// The drafts in their new order: all results of a turn first in the user's message behind it.
pub(super) fn place<'a, T: Text>(
    work: Work<'a, T>,
    pairs: &Pairs,
    mode: Mode,
    dialect: Dialect,
    for_planner: bool,
) -> Vec<Draft<'a, T>> {
    let mut placing = Placing {
        for_planner,
        work,
        pairs,
        mode,
        dialect,
        out: Vec::new(),
        open: Vec::new(),
        strays: Vec::new(),
        settled: None,
    };
    for at in 0..placing.work.len() {
        match placing.work.role(at) {
            Some(Role::Assistant) => placing.assistant(at),
            Some(Role::User | Role::Tool) => placing.user(at),
            _ => placing.instruction(at),
        }
    }
    placing.out
}

struct Placing<'a, 'p, T> {
    work: Work<'a, T>,
    pairs: &'p Pairs,
    mode: Mode,
    dialect: Dialect,
    /// Whether words of the assistant end a turn that has calls.
    for_planner: bool,
    out: Vec<Draft<'a, T>>,
    /// Calls of the turn that is being read.
    open: Vec<usize>,
    /// What became of results that stood among the assistant's words.
    strays: Vec<Piece<'a, T>>,
    /// A user's message that was put in order already.
    settled: Option<usize>,
}

impl<'a, T: Text> Placing<'a, '_, T> {
    fn assistant(&mut self, at: usize) {
        for number in 0..self.work.slots(at).len() {
            let is_result =
                matches!(&self.work.slots(at)[number], Some(piece) if piece.is_result());
            let fate = self.pairs.results.get(&(at, number)).copied();
            if is_result && !self.work.answers(fate) {
                let pieces = self.work.stray((at, number), self.pairs, self.mode, true);
                self.strays.extend(pieces);
            }
        }
        self.open.extend(
            self.pairs
                .of_draft(at)
                .filter(|&call| self.work.is_alive(call)),
        );
        // Results that answer a call are taken out when the turn ends; what is left goes out then.
        if self.goes_on(at) {
            return;
        }
        let first = (0..=at)
            .rev()
            .take_while(|&before| before == at || self.goes_on(before))
            .last()
            .unwrap_or(at);
        let gathered = self.gather(at);
        for before in first..=at {
            let draft = self.work.draft(before);
            if !draft.pieces.is_empty() || draft.whole == 0 {
                self.out.push(draft);
            }
        }
        self.carry(at, gathered);
    }

    /// Whether the turn of the draft at `at` goes on with the next one.
    fn goes_on(&self, at: usize) -> bool {
        let is_assistant = |at| self.work.role(at) == Some(Role::Assistant);
        let all = |at, is: fn(&Piece<'a, T>) -> bool| {
            let mut pieces = self.work.slots(at).iter().flatten();
            pieces.all(is)
        };
        if !is_assistant(at) || !is_assistant(at + 1) {
            return false;
        }
        // The planner reads a message without calls behind open ones as the next step.
        let starts_step = self.for_planner
            && !self.open.is_empty()
            && all(at + 1, |piece| !piece.is_call())
            && !all(at, |piece| piece.kind == PartKind::Reasoning);
        !starts_step
    }

    /// The results of the turn that ends at `at`, taken from where they stand; `None` if they
    /// stand right already.
    fn gather(&mut self, at: usize) -> Option<Vec<Piece<'a, T>>> {
        let calls = std::mem::take(&mut self.open);
        let mut answers: Vec<_> = calls
            .iter()
            .filter_map(|&call| self.pairs.calls[call].answer)
            .collect();
        answers.sort_unstable();
        let is_complete = !calls
            .iter()
            .any(|&call| self.pairs.calls[call].needs_result());
        // What became of stray results goes behind the right ones, which then move as well.
        let has_strays = !self.strays.is_empty() && !answers.is_empty();
        if is_complete && !has_strays && self.is_in_place(at, &answers) {
            return None;
        }
        let mut pieces: Vec<_> = answers
            .into_iter()
            .filter_map(|answer| self.work.take(answer))
            .collect();
        for call in calls {
            let call = &self.pairs.calls[call];
            if call.needs_result() {
                pieces.push(Piece::result(self.work.open_call(call)));
            }
        }
        Some(pieces)
    }

    fn is_in_place(&self, at: usize, answers: &[(usize, usize)]) -> bool {
        let mut left: BTreeSet<_> = answers.iter().copied().collect();
        let most = if self.dialect == Dialect::Anthropic {
            usize::MAX
        } else {
            1
        };
        let run = (at + 1..self.work.len())
            .take_while(|&next| is_users(self.work.role(next)))
            .take(most);
        for next in run {
            for number in 0..self.work.slots(next).len() {
                if left.is_empty() {
                    return true;
                }
                if !left.remove(&(next, number)) {
                    return false;
                }
            }
        }
        left.is_empty()
    }

    /// Puts results right behind the turn that ends at `at`: into the user's next message if it
    /// held one of them, else into a message of their own.
    fn carry(&mut self, at: usize, gathered: Option<Vec<Piece<'a, T>>>) {
        let strays = std::mem::take(&mut self.strays);
        let results = gathered.unwrap_or_default();
        if results.is_empty() && strays.is_empty() {
            return;
        }
        let next = at + 1;
        let is_from = |piece: &Piece<'_, T>, base: Option<u32>| matches!(piece.source, Source::Part(message, _) if Some(message) == base);
        let base = self.work.base(next);
        let is_user = is_users(self.work.role(next));
        if is_user && results.iter().any(|piece| is_from(piece, base)) {
            let mut pieces = results;
            for number in 0..self.work.slots(next).len() {
                pieces.extend(self.rest((next, number)));
            }
            pieces.extend(strays);
            self.work.refill(next, pieces);
            self.settled = Some(next);
            return;
        }
        // A message that holds just these results moves up as it is.
        let source = match results.first().map(|piece| &piece.source) {
            Some(Source::Part(message, _)) => Some(*message),
            _ => None,
        };
        let mut draft = Draft::made(Role::User, results);
        if let Some((base, whole)) = source.and_then(|source| self.work.emptied(source)) {
            draft.base = Some(base);
            draft.whole = whole;
        }
        draft.pieces.extend(strays);
        self.out.push(draft);
    }

    /// The piece at `at`, or the text it becomes.
    fn rest(&mut self, at: (usize, usize)) -> Vec<Piece<'a, T>> {
        let Some(piece) = &self.work.slots(at.0)[at.1] else {
            return Vec::new();
        };
        if piece.is_result() && !self.work.answers(self.pairs.results.get(&at).copied()) {
            return self.work.stray(at, self.pairs, self.mode, true);
        }
        // Nothing answers a call of the user.
        if piece.is_call() {
            let part = piece.part;
            self.work.take(at);
            return match (self.mode, part) {
                (Mode::Drop, _) | (_, None) => Vec::new(),
                (_, Some(part)) => vec![Piece::text(call_text(part, Trouble::Unanswered))],
            };
        }
        self.work.take(at).into_iter().collect()
    }

    /// An instruction keeps its words; what a tool said is no instruction.
    fn instruction(&mut self, at: usize) {
        let mut strays = Vec::new();
        for number in 0..self.work.slots(at).len() {
            let piece = self.work.slots(at)[number].as_ref();
            if piece.is_some_and(|piece| piece.is_result() || piece.is_call()) {
                strays.extend(self.rest((at, number)));
            }
        }
        let draft = self.work.draft(at);
        if !draft.pieces.is_empty() {
            self.out.push(draft);
        }
        if !strays.is_empty() {
            self.out.push(Draft::made(Role::User, strays));
        }
    }

    fn user(&mut self, at: usize) {
        if self.settled == Some(at) {
            let draft = self.work.draft(at);
            self.out.push(draft);
            return;
        }
        let mut pieces = Vec::with_capacity(self.work.slots(at).len());
        for number in 0..self.work.slots(at).len() {
            pieces.extend(self.rest((at, number)));
        }
        let mut draft = self.work.draft(at);
        draft.pieces = pieces;
        if !draft.pieces.is_empty() || draft.whole == 0 {
            self.out.push(draft);
        }
    }
}

/// Whether a role speaks for the user: results may have a role of their own.
fn is_users(role: Option<Role>) -> bool {
    matches!(role, Some(Role::User | Role::Tool))
}
