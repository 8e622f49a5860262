//! Cache marks in the caller's messages: at most four of a request, one-hour marks first.

use std::collections::BTreeMap;

use serde_json::json;

use super::draft::{Draft, Source};
use super::edit::{Edit, Path};
use crate::dialect::Dialect;
use crate::message::PathStep;
use crate::node::Node;

/// Most cache marks of a request.
pub(crate) const MOST_MARKS: usize = 4;

/// The field that holds a mark.
pub(crate) const MARK: &str = "cache_control";

/// One mark.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// The way from its block to the value that is marked.
    path: Path,
    /// Whether it asks for an hour.
    pub(crate) is_long: bool,
}

/// The marks of a request.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Those of the system prompt and the tools.
    pub(crate) outside: usize,
    /// Those of the messages, by message and block.
    pub(crate) inside: BTreeMap<(u32, u32), Vec<Mark>>,
}

/// Finds the marks of `messages`; `outside` are those that the request has beside them.
pub(crate) fn find<N: Node>(dialect: Dialect, messages: &[N], outside: usize) -> Marks {
    let mut marks = Marks {
        outside,
        inside: BTreeMap::new(),
    };
    if dialect != Dialect::Anthropic {
        return marks;
    }
    for (message, node) in messages.iter().enumerate() {
        let Some(content) = node.get("content") else {
            continue;
        };
        for at in 0..content.len() {
            let Some(block) = content.item(at) else { break };
            let mut found = Vec::new();
            if let Some(is_long) = mark_of(&block) {
                found.push(Mark {
                    path: Vec::new(),
                    is_long,
                });
            }
            if let Some(inner) = block.get("content") {
                for number in 0..inner.len() {
                    let is_long = inner.item(number).as_ref().and_then(mark_of);
                    found.extend(is_long.map(|is_long| Mark {
                        path: vec![PathStep::Key("content"), PathStep::Index(number as u32)],
                        is_long,
                    }));
                }
            }
            if !found.is_empty() {
                marks.inside.insert((message as u32, at as u32), found);
            }
        }
    }
    marks
}

/// Whether a value is marked, and for an hour.
pub(crate) fn mark_of<N: Node>(value: &N) -> Option<bool> {
    let mark = value.get(MARK).filter(|mark| !mark.is_null())?;
    Some(mark.get("ttl").is_some_and(|ttl| ttl.is_str("1h")))
}

/// Takes off the oldest marks beyond the limit, and the hour of marks behind shorter ones.
pub(super) fn limit<T>(drafts: &mut [Draft<'_, T>], marks: &Marks) {
    if marks.inside.is_empty() {
        return;
    }
    let mut found = Vec::new();
    for (number, draft) in drafts.iter().enumerate() {
        for (at, piece) in draft.pieces.iter().enumerate() {
            let (Source::Part(message, _), Some(PathStep::Index(block))) =
                (&piece.source, piece.block.get(1).copied())
            else {
                continue;
            };
            for mark in marks.inside.get(&(*message, block)).into_iter().flatten() {
                found.push((number, at, mark));
            }
        }
    }
    let most = MOST_MARKS.saturating_sub(marks.outside);
    let surplus = found.len().saturating_sub(most);
    let mut is_short = false;
    for (number, (draft, at, mark)) in found.into_iter().enumerate() {
        let mut path = mark.path.clone();
        path.push(PathStep::Key(MARK));
        let edits = &mut drafts[draft].pieces[at].edits;
        if number < surplus {
            edits.push(Edit::Remove(path));
        } else if is_short && mark.is_long {
            edits.push(Edit::Set(path, json!({"type": "ephemeral"})));
        } else {
            is_short |= !mark.is_long;
        }
    }
}
