//! OR1, OR2, OR3, OR6, OR7: outputs have calls, reasoning its follower, ids one item each.
//!
//! What the server has stored is not in the request: behind a reference to it any output may be
//! right. Whether an item still needs reasoning that is gone (OR4) cannot be seen in a request.

use std::collections::BTreeSet;

use super::{Findings, Rule, is_blank};
use crate::dialect::open_calls::{Found, OpenCalls};
use crate::dialect::repair::items::Item;
use crate::error::Result;
use crate::message::{Body, CallKey, Message, PartKind, Role};
use crate::node::{Node, Text};

struct Call {
    index: usize,
    item: Item,
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
    let mut calls = Calls::default();
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
            for call in calls.list.iter_mut().rev() {
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
                    calls.push(id, kind, index);
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
    for (at, call) in calls.list.iter().enumerate() {
        if calls.open.is_open(at) && !call.item.needs_no_result() {
            found.add(Rule::Or1UnansweredCall, call.index, "a call has no output");
        }
    }
}

/// The calls so far. Each is a turn of its own, so the newest is found first; a class are those
/// with or without an id of one kind of item.
#[derive(Default)]
struct Calls {
    list: Vec<Call>,
    open: OpenCalls<(bool, Item)>,
}

impl Calls {
    fn push<T: Text>(&mut self, id: Option<&T>, item: Item, index: usize) {
        let turn = self.list.len();
        let class = (id.is_some(), item);
        match id {
            Some(id) => id.with(|id| self.open.push(turn, Some(id), class, None)),
            None => self.open.push(turn, None, class, None),
        }
        self.list.push(Call {
            index,
            item,
            is_past: false,
        });
    }

    /// The newest open call that an output answers; it is answered now.
    fn answer<T: Text>(&mut self, id: Option<&T>, output: Item) -> Option<&Call> {
        let found = match id {
            Some(id) => id.with(|id| self.open.with_id(id)),
            // What the server searched for has no id on either side; the output of the old local
            // shell names no call.
            None if output == Item::Found => self.open.fitting(&[(false, Item::Question)], None),
            None => {
                let shells = [false, true].map(|has_id| (has_id, Item::LocalShell));
                self.open.fitting(&shells, None)
            }
        };
        let Found::Open(call) = found else {
            return None;
        };
        self.open.close(call);
        self.list.get(call)
    }
}

fn answer<T: Text>(
    calls: &mut Calls,
    (output, result): (Item, Option<&CallKey<T>>),
    index: usize,
    is_blind: bool,
    found: &mut Findings,
) {
    let id = result.and_then(|key| key.id.as_ref());
    if let Some(call) = calls.answer(id, output) {
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
