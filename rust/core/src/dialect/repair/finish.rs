//! What the order of messages still asks for, once calls and results stand right.

use super::draft::{Draft, Piece};
use super::flatten::server_text;
use super::items::{self, Item};
use super::marks::{Marks, limit};
use super::{Mode, NO_USER_MESSAGE, draft, is_blank};
use crate::dialect::form::OPENER;
use crate::dialect::lint::anthropic::{Pending, ServerTool, server_tool};
use crate::dialect::{Dialect, Traits};
use crate::message::{Body, PartKind, PathStep, Place, Role};
use crate::node::Text;

/// The drafts as the provider wants them: a user first, roles in turn, no prefill it refuses.
pub(super) fn finish<'a, T: Text>(
    mut drafts: Vec<Draft<'a, T>>,
    dialect: Dialect,
    mode: Mode,
    traits: Traits,
    marks: &Marks,
) -> Vec<Draft<'a, T>> {
    if dialect == Dialect::Anthropic {
        settle_server_tools(&mut drafts, mode);
        drop_emptied(&mut drafts);
    }
    if dialect == Dialect::OpenAi {
        drop_blanks(&mut drafts);
    }
    match dialect {
        Dialect::Anthropic | Dialect::Bedrock => drop_hollow(&mut drafts),
        Dialect::Responses => items::drop_lone_reasoning(&mut drafts),
        Dialect::OpenAi | Dialect::Gemini => {}
    }
    start_with_user(&mut drafts, mode);
    if matches!(dialect, Dialect::Gemini | Dialect::Bedrock) {
        merge(&mut drafts);
    }
    if dialect == Dialect::Gemini && traits.signed_calls {
        sign(&mut drafts);
    }
    if dialect == Dialect::Anthropic {
        move_instructions(&mut drafts, mode);
    }
    end(&mut drafts, dialect, mode, traits);
    limit(&mut drafts, marks);
    drafts
}

/// Calls and results of server tools that stand alone become text or go.
fn settle_server_tools<T: Text>(drafts: &mut [Draft<'_, T>], mode: Mode) {
    let mut bad = Vec::new();
    let mut pending = Pending::default();
    for (at, draft) in drafts.iter().enumerate() {
        if draft.role == Role::User && !draft.pieces.iter().all(Piece::is_result) {
            bad.extend(pending.drain());
        }
        if draft.role != Role::Assistant {
            continue;
        }
        for (number, piece) in draft.pieces.iter().enumerate() {
            let (PartKind::Opaque, Some(part)) = (piece.kind, piece.part) else {
                continue;
            };
            let Body::Value(block) = &part.body else {
                continue;
            };
            match server_tool(block) {
                Some(ServerTool::Call(id)) => pending.push(id, (at, number)),
                Some(ServerTool::Result(id)) => {
                    let has_call = pending.settle(id);
                    if !has_call {
                        bad.push((at, number));
                    }
                }
                None => {}
            }
        }
    }
    bad.sort_unstable();
    for bad in bad.chunk_by(|one, next| one.0 == next.0) {
        let Some(draft) = bad.first().and_then(|(at, _)| drafts.get_mut(*at)) else {
            continue;
        };
        let mut bad = bad.iter().map(|(_, number)| *number).peekable();
        let mut number = 0;
        draft.pieces.retain_mut(|piece| {
            let is_bad = bad.next_if_eq(&number).is_some();
            number += 1;
            match (mode, piece.part) {
                _ if !is_bad => true,
                (Mode::Drop, _) | (_, None) => false,
                (_, Some(part)) => {
                    *piece = Piece::text(server_text(part));
                    true
                }
            }
        });
    }
}

/// Takes out an empty string that stood beside calls, where one of them is a text now.
fn drop_blanks<T: Text>(drafts: &mut [Draft<'_, T>]) {
    let is_text = |piece: &Piece<'_, T>| piece.kind == PartKind::Text;
    for draft in drafts {
        if draft.pieces.iter().filter(|piece| is_text(piece)).count() > 1 {
            draft.pieces.retain(|piece| {
                let text = piece.part.filter(|_| is_text(piece));
                !text.is_some_and(|part| matches!(&part.body, Body::Text(text) if is_blank(text)))
            });
        }
    }
}

/// Takes out messages of which nothing is left; an empty prefill may stay where it is the end.
fn drop_emptied<T: Text>(drafts: &mut Vec<Draft<'_, T>>) {
    let last = drafts.len().saturating_sub(1);
    let mut at = 0;
    drafts.retain(|draft| {
        let is_prefill = at == last && draft.role == Role::Assistant && draft.whole == 0;
        at += 1;
        is_prefill || !draft.pieces.is_empty()
    });
}

/// Takes out turns of the assistant that hold nothing but reasoning.
fn drop_hollow<T: Text>(drafts: &mut Vec<Draft<'_, T>>) {
    let mut is_kept = vec![true; drafts.len()];
    let mut at = 0;
    while at < drafts.len() {
        let run = drafts[at..]
            .iter()
            .take_while(|draft| draft.role == Role::Assistant)
            .count();
        let turn = &drafts[at..at + run];
        // An empty prefill behind reasoning adds nothing; alone it may stay.
        let is_hollow = turn.iter().all(Draft::is_hollow) && turn.iter().any(|turn| turn.whole > 0);
        if is_hollow {
            is_kept[at..at + run].fill(false);
        }
        at += run.max(1);
    }
    let mut kept = is_kept.into_iter();
    drafts.retain(|_| kept.next().unwrap_or(true));
}

/// Makes the first message that is no instruction one of the user.
fn start_with_user<T: Text>(drafts: &mut Vec<Draft<'_, T>>, mode: Mode) {
    let is_stored = |draft: &Draft<'_, T>| draft.item == Some(Item::Stored);
    let is_said = |draft: &Draft<'_, T>| is_stored(draft) || !draft.role.is_instruction();
    let Some(first) = drafts.iter().position(is_said) else {
        return;
    };
    // What the server has stored may start with anything.
    let may_be_any = matches!(drafts[first].item, Some(Item::Stored | Item::Opaque));
    if drafts[first].is_users() || may_be_any {
        return;
    }
    if mode != Mode::Drop {
        let piece = Piece::text(OPENER.into());
        drafts.insert(first, Draft::made(Role::User, vec![piece]));
        return;
    }
    // Results behind a reference may answer what is stored.
    let may_start = |draft: &Draft<'_, T>| draft.is_users() || draft.item == Some(Item::Stored);
    let start = drafts[first..]
        .iter()
        .position(may_start)
        .map_or(drafts.len(), |offset| first + offset);
    let is_reference = drafts.get(start).is_some_and(is_stored);
    let mut at = 0;
    drafts.retain(|draft| {
        at += 1;
        at > start || draft.role.is_instruction()
    });
    if is_reference {
        return;
    }
    // The calls of these results went.
    if let Some(draft) = drafts.iter_mut().find(|draft| !draft.role.is_instruction()) {
        draft.pieces.retain(|piece| piece.kind != PartKind::Result);
    }
}

/// Joins neighbours of one role; results have the user's.
fn merge<T: Text>(drafts: &mut Vec<Draft<'_, T>>) {
    let side = |role: Role| if role == Role::Tool { Role::User } else { role };
    let mut out: Vec<Draft<'_, T>> = Vec::with_capacity(drafts.len());
    for draft in drafts.drain(..) {
        match out.last_mut() {
            Some(last) if side(last.role) == side(draft.role) => {
                // A message that is made gives way to one of the caller.
                if last.base.is_none() {
                    (last.base, last.whole) = (draft.base, draft.whole);
                }
                last.pieces.extend(draft.pieces);
            }
            _ => out.push(draft),
        }
    }
    *drafts = out;
}

/// What the provider takes in place of a signature that is lost.
pub(in crate::dialect) const DUMMY_SIGNATURE: &str = "skip_thought_signature_validator";

/// Gives the first call of each step of the current turn a signature if it has none.
fn sign<T: Text>(drafts: &mut [Draft<'_, T>]) {
    let turn = drafts.iter().rposition(Draft::is_users);
    for draft in drafts.iter_mut().skip(turn.unwrap_or(0)) {
        if let Some(call) = draft.pieces.iter_mut().find(|piece| piece.is_call())
            && let Some(part) = call.part
            && !matches!(part.place, Place::SignedPart(_))
        {
            let path = vec![PathStep::Key("thoughtSignature")];
            call.edits
                .push(super::Edit::Set(path, draft::string(DUMMY_SIGNATURE)));
        }
    }
}

/// Puts instructions behind a turn of the user and before one of the assistant.
fn move_instructions<T: Text>(drafts: &mut Vec<Draft<'_, T>>, mode: Mode) {
    let mut out: Vec<Draft<'_, T>> = Vec::with_capacity(drafts.len());
    let mut waiting: Vec<Draft<'_, T>> = Vec::new();
    for draft in drafts.drain(..) {
        match draft.role {
            Role::System | Role::Developer => waiting.push(draft),
            // Behind the user's whole turn.
            Role::User | Role::Tool => out.push(draft),
            Role::Assistant => {
                let is_behind_user = out.last().is_some_and(|last| last.role == Role::User);
                if is_behind_user {
                    out.append(&mut waiting);
                }
                out.push(draft);
            }
        }
    }
    if !waiting.is_empty() && !out.iter().any(|draft| draft.role == Role::User) {
        // Nobody is spoken to.
        if mode == Mode::Drop {
            waiting.clear();
        } else {
            let piece = Piece::text(NO_USER_MESSAGE.into());
            out.insert(0, Draft::made(Role::User, vec![piece]));
        }
    }
    if !waiting.is_empty() {
        // At the end, or before the assistant's last turn, where that is the end.
        let at = out
            .iter()
            .rposition(|draft| draft.role == Role::User)
            .map_or(0, |user| user + 1);
        out.splice(at..at, waiting);
    }
    *drafts = out;
}

/// What the last message must be.
fn end<T: Text>(drafts: &mut Vec<Draft<'_, T>>, dialect: Dialect, mode: Mode, traits: Traits) {
    let Some(last) = drafts
        .last_mut()
        .filter(|last| last.role == Role::Assistant)
    else {
        return;
    };
    if dialect != Dialect::Anthropic {
        return;
    }
    if traits.no_prefill {
        if mode == Mode::Drop {
            while drafts
                .last()
                .is_some_and(|last| last.role == Role::Assistant)
            {
                drafts.pop();
            }
        } else {
            let piece = Piece::text(NO_USER_MESSAGE.into());
            drafts.push(Draft::made(Role::User, vec![piece]));
        }
        return;
    }
    // A prefill without white space at its end.
    if let Some(piece) = last.pieces.last_mut()
        && let Some(part) = piece.part
        && let (PartKind::Text, Body::Text(text)) = (piece.kind, &part.body)
        && let Some(trimmed) = text.with(|text| {
            let trimmed = text.trim_end();
            (trimmed.len() < text.len()).then(|| trimmed.to_owned())
        })
    {
        let edit = super::Edit::Set(piece.content_path(), draft::string(trimmed));
        piece.edits.push(edit);
    }
}
