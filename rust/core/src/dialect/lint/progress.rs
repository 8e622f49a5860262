//! Lint of a list that grows at its end, at the price of what is new.
//!
//! Every rule looks at a run of messages, at the last message, or at something that may occur once
//! in a request. So a list whose start was right is checked from the last turn of the assistant
//! that begins before its end was; ids are remembered, and a cache mark anywhere gives up. To go on
//! with a window costs what its last turns cost, however long it is.

use std::collections::{BTreeMap, BTreeSet};

use super::anthropic::{ServerTool, server_tool};
use super::{Request, Rule, Severity, Violation, check_read, read_all};
use crate::dialect::Dialect;
use crate::dialect::repair::items::Item;
use crate::dialect::repair::marks;
use crate::error::Result;
use crate::message::{Body, Message, PartKind, Role};
use crate::node::{Node, Text};
use crate::salience::identifiers::hash_name;

/// How far a growing list has been found right.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Index of the message from which the next check starts.
    start: usize,
    /// Hashes of the ids before it; two ids with one hash cost a check of the whole list.
    ids: BTreeSet<u64>,
}

impl Progress {
    /// Index of the first message that the next check needs.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Whether there is no error in the list whose messages from [`start`](Self::start) on are in
    /// `tail`; those before it must be the ones of the last check. `false` may also mean that only
    /// a look at the whole list can tell. Progress is made only where the answer is yes.
    pub fn is_valid<N: Node>(&mut self, dialect: Dialect, tail: &Request<'_, N>) -> bool {
        let read = read_all(dialect, tail.messages);
        let is_error = |violation: &Violation| {
            violation.rule.entry().severity == Severity::Error && !self.is_of_a_start(violation)
        };
        if check_read(dialect, tail, &read).iter().any(is_error) {
            return false;
        }
        let has_marks = !marks::find(dialect, tail.messages, 0).inside.is_empty();
        if has_marks {
            return false;
        }
        let cut = last_turn(&read).min(first_pending(&read));
        let mut ids = ids_of(dialect, &read, tail.messages);
        if ids.iter().any(|(_, id)| self.ids.contains(id)) {
            return false;
        }
        ids.retain(|(index, _)| *index < cut);
        self.ids.extend(ids.into_iter().map(|(_, id)| id));
        self.start += cut;
        true
    }

    /// Whether a finding comes of the list before the tail being left out.
    fn is_of_a_start(&self, violation: &Violation) -> bool {
        let is_start = matches!(
            violation.rule,
            Rule::FirstNotUser | Rule::Br3FirstNotUser | Rule::Ge1CallPosition
        );
        is_start && self.start > 0 && violation.index == Some(0)
    }
}

/// Index of the last message that begins a turn of the assistant, behind one of somebody else.
fn last_turn<T: Text>(messages: &[Result<Message<T>>]) -> usize {
    let is_assistant = |at: usize| matches!(&messages[at], Ok(m) if m.role == Role::Assistant);
    (1..messages.len())
        .rev()
        .find(|&at| is_assistant(at) && !is_assistant(at - 1))
        .unwrap_or(0)
}

/// Index of the first message with a call of a server tool whose result is still to come: it
/// matters to whatever follows.
fn first_pending<T: Text>(messages: &[Result<Message<T>>]) -> usize {
    let mut pending: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, message) in messages.iter().enumerate() {
        for part in message.iter().flat_map(|message| &message.parts) {
            let (PartKind::Opaque, Body::Value(block)) = (part.kind, &part.body) else {
                continue;
            };
            match server_tool(block) {
                Some(ServerTool::Call(id)) => {
                    pending
                        .entry(id.with(str::to_owned))
                        .or_default()
                        .push(index);
                }
                Some(ServerTool::Result(id)) => {
                    id.with(|id| pending.get_mut(id).and_then(Vec::pop));
                }
                None => {}
            }
        }
    }
    let first = pending.values().flatten().min();
    first.copied().unwrap_or(messages.len())
}

/// The ids that may occur once in a request, with the index of their message.
fn ids_of<N: Node>(
    dialect: Dialect,
    messages: &[Result<Message<N::Text>>],
    nodes: &[N],
) -> Vec<(usize, u64)> {
    let mut ids = Vec::new();
    match dialect {
        Dialect::Anthropic => {
            for (index, message) in messages.iter().enumerate() {
                let parts = message.iter().flat_map(|message| &message.parts);
                let calls = parts.filter(|part| part.kind == PartKind::Call);
                ids.extend(calls.filter_map(|part| {
                    let id = part.key.as_deref()?.id.as_ref()?;
                    Some((index, id.with(|id| hash_name(id.as_bytes()))))
                }));
            }
        }
        Dialect::Responses => {
            for (index, node) in nodes.iter().enumerate() {
                let id = Item::of(node).own_id(node);
                ids.extend(id.map(|id| (index, hash_name(id.as_bytes()))));
            }
        }
        _ => {}
    }
    ids
}
