//! Placing where every result is a message of its own (`openai`, `openai-responses`).

use super::Mode;
use super::draft::{Draft, Piece};
use super::items::Item;
use super::pair::{Fate, Pairs};
use super::work::Work;
use crate::dialect::Dialect;
use crate::message::Role;
use crate::node::Text;

/// The drafts in their new order: results right behind the message that called.
pub(super) fn place<'a, T: Text>(
    mut work: Work<'a, T>,
    pairs: &Pairs,
    mode: Mode,
    dialect: Dialect,
) -> Vec<Draft<'a, T>> {
    let mut out = Vec::with_capacity(work.len());
    let mut open = Vec::new();
    for at in 0..work.len() {
        let is_elsewhere = pairs.results.get(&(at, 0)) == Some(&Fate::Elsewhere);
        if !is_elsewhere && work.slots(at).iter().flatten().any(Piece::is_result) {
            stray(&mut work, at, pairs, mode, &mut out);
            continue;
        }
        let draft = work.draft(at);
        let is_assistant = draft.role == Role::Assistant;
        if !draft.pieces.is_empty() || draft.whole == 0 {
            out.push(draft);
        }
        if is_assistant {
            open.extend(pairs.of_draft(at).filter(|&call| work.is_alive(call)));
        }
        if !goes_on(&work, at, dialect) {
            close(&mut work, pairs, &mut open, &mut out);
        }
    }
    out
}

/// Whether the turn of the draft at `at` goes on with the next one.
fn goes_on<T: Text>(work: &Work<'_, T>, at: usize, dialect: Dialect) -> bool {
    dialect != Dialect::OpenAi
        && work.role(at) == Some(Role::Assistant)
        && work.role(at + 1) == Some(Role::Assistant)
}

/// A message whose results answer nothing; those that do answer were or will be placed elsewhere.
fn stray<'a, T: Text>(
    work: &mut Work<'a, T>,
    at: usize,
    pairs: &Pairs,
    mode: Mode,
    out: &mut Vec<Draft<'a, T>>,
) {
    for number in 0..work.slots(at).len() {
        let fate = pairs.results.get(&(at, number)).copied();
        if work.answers(fate) {
            continue;
        }
        let pieces = work.stray((at, number), pairs, mode, false);
        if !pieces.is_empty() {
            out.push(Draft::made(Role::User, pieces));
        }
    }
}

/// Puts the results of the open calls behind them, in the order in which they came.
fn close<'a, T: Text>(
    work: &mut Work<'a, T>,
    pairs: &Pairs,
    open: &mut Vec<usize>,
    out: &mut Vec<Draft<'a, T>>,
) {
    let mut answers: Vec<_> = open
        .iter()
        .filter_map(|&call| pairs.calls[call].answer)
        .collect();
    answers.sort_unstable();
    out.extend(answers.into_iter().map(|(at, _)| work.draft(at)));
    for call in open.drain(..) {
        let call = &pairs.calls[call];
        let item = work.item(call.draft);
        if call.answer.is_none() && !item.is_some_and(Item::needs_no_result) {
            let piece = Piece::result(call.new_id.clone(), call.name.clone());
            let mut draft = Draft::made(Role::Tool, vec![piece]);
            draft.item = item;
            out.push(draft);
        }
    }
}
