//! OR1, OR2, OR3, OR6, OR7: outputs have calls, reasoning its follower, ids one item each.
//!
//! What the server has stored is not in the request: behind a reference to it any output may be
//! right. Whether an item still needs reasoning that is gone (OR4) cannot be seen in a request.

use std::collections::BTreeSet;

use super::{Findings, Rule, is_blank};
use crate::dialect::repair::items::Item;
use crate::error::Result;
use crate::message::{Body, CallKey, Message, PartKind, Role};
use crate::node::{Node, Text};

struct Open<'a, T> {
    key: Option<&'a CallKey<T>>,
    index: usize,
    item: Item,
    is_answered: bool,
    /// Whether something else than the rest of its turn came after it.
    is_past: bool,
}

pub(super) fn check<N: Node>(
    items: &[Result<Message<N::Text>>],
    nodes: &[N],
    found: &mut Findings,
) {
    check_start(items, nodes, found);
    check_ids(nodes, found);
    let mut calls: Vec<Open<'_, N::Text>> = Vec::new();
    let mut is_blind = false;
    let mut reasoning = None;
    let mut before = None;
    for (index, (item, node)) in items.iter().zip(nodes).enumerate() {
        let Ok(item) = item else {
            is_blind = true;
            reasoning = None;
            continue;
        };
        let kind = Item::of(node);
        is_blind |= kind == Item::Stored;
        check_content(item, index, found);
        if kind == Item::Reasoning {
            reasoning = Some(index);
        } else if item.role == Role::Assistant {
            reasoning = None;
        } else if let Some(at) = reasoning.take() {
            found.add(
                Rule::Or3LoneReasoning,
                at,
                "nothing of its turn follows the reasoning",
            );
        }
        let is_next_turn = item.role == Role::Assistant && before == Some(Role::Tool);
        before = Some(item.role);
        if is_next_turn || !matches!(item.role, Role::Assistant | Role::Tool) {
            // Far calls stay at the front; those that are answered need no further look.
            for call in calls.iter_mut().rev() {
                if call.is_past {
                    break;
                }
                call.is_past = true;
            }
        }
        for part in &item.parts {
            match part.kind {
                PartKind::Call => {
                    let key = part.key.as_deref();
                    let id = key.and_then(|key| key.id.as_ref());
                    if id.is_none_or(|id| id.with(str::is_empty)) && !kind.needs_no_result() {
                        found.add(Rule::MissingId, index, "a call has no id");
                    }
                    calls.push(Open {
                        key,
                        index,
                        item: kind,
                        is_answered: false,
                        is_past: false,
                    });
                }
                PartKind::Result => {
                    let result = (kind, part.key.as_deref());
                    answer(&mut calls, result, index, is_blind, found);
                }
                _ => {}
            }
        }
    }
    if let Some(at) = reasoning {
        found.add(
            Rule::Or3LoneReasoning,
            at,
            "nothing of its turn follows the reasoning",
        );
    }
    for call in calls {
        if !call.is_answered && !call.item.needs_no_result() {
            found.add(Rule::Or1UnansweredCall, call.index, "a call has no output");
        }
    }
}

fn answer<T: Text>(
    calls: &mut [Open<'_, T>],
    (output, result): (Item, Option<&CallKey<T>>),
    index: usize,
    is_blind: bool,
    found: &mut Findings,
) {
    let id = result.and_then(|key| key.id.as_ref());
    let same = |call: &Open<'_, T>| match (call.key.and_then(|key| key.id.as_ref()), id) {
        (Some(call), Some(result)) => call.with(|call| result.with(|result| call == result)),
        // What the server searched for has no id on either side.
        (None, None) => call.item.is_found_by(output),
        // The output of the old local shell names no call.
        (Some(_), None) => call.item == Item::LocalShell && output != Item::Found,
        (None, Some(_)) => false,
    };
    if let Some(call) = calls
        .iter_mut()
        .rev()
        .find(|call| !call.is_answered && same(call))
    {
        call.is_answered = true;
        if call.is_past {
            let message = "something stands between the call and its output";
            found.add(Rule::OutputsApart, index, message);
        }
    } else if !is_blind {
        found.add(
            Rule::Or2OrphanOutput,
            index,
            "the output answers no open call",
        );
    }
}

fn check_start<N: Node>(items: &[Result<Message<N::Text>>], nodes: &[N], found: &mut Findings) {
    let said = items.iter().position(|item| {
        item.as_ref()
            .map_or(true, |item| !item.role.is_instruction())
    });
    if let Some(index) = said
        && let Ok(first) = &items[index]
        && first.role != Role::User
        && !matches!(Item::of(&nodes[index]), Item::Stored | Item::Opaque)
    {
        let message = "the first item besides instructions is not the user's";
        found.add(Rule::StartsWithoutUser, index, message);
    }
}

fn check_ids<N: Node>(nodes: &[N], found: &mut Findings) {
    let mut taken = BTreeSet::new();
    for (index, node) in nodes.iter().enumerate() {
        let item = Item::of(node);
        let Some(id) = item.own_id(node) else {
            continue;
        };
        if !item.takes_id(&id) && item.may_lose_id() {
            let message = "the id is not one of this kind of item";
            found.add(Rule::Or7InvalidItemId, index, message);
        } else if !taken.insert(id) {
            found.add(Rule::Or6RepeatedItem, index, "an earlier item has this id");
        }
    }
}

fn check_content<T: Text>(item: &Message<T>, index: usize, found: &mut Findings) {
    let is_bad = |body: &Body<T>| matches!(body, Body::Text(text) if is_blank(text));
    let mut texts = item.parts.iter().filter(|part| part.kind == PartKind::Text);
    if item.parts.is_empty() || texts.any(|part| is_bad(&part.body)) {
        found.add(Rule::BlankText, index, "a text is blank or there is none");
    }
}
