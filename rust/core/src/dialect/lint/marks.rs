//! AN14, AN15: at most four cache marks, the long ones first.

use super::{Findings, Request, Rule};
use crate::dialect::Dialect;
use crate::dialect::repair::marks::{MOST_MARKS, find, mark_of};
use crate::node::Node;

/// Cache marks of a `system` argument or of tool definitions.
pub fn count_marks<N: Node>(value: &N) -> usize {
    outside(value).len()
}

/// Whether each mark asks for an hour.
fn outside<N: Node>(value: &N) -> Vec<bool> {
    (0..value.len())
        .filter_map(|at| value.item(at).as_ref().and_then(mark_of))
        .collect()
}

pub(super) fn check<N: Node>(dialect: Dialect, request: &Request<'_, N>, found: &mut Findings) {
    if dialect != Dialect::Anthropic {
        return;
    }
    // The order in which the provider reads them.
    let before = [request.tools, request.system];
    let before: Vec<bool> = before.into_iter().flatten().flat_map(outside).collect();
    let marks = find(dialect, request.messages, before.len());
    let mut count = 0;
    let mut is_short = false;
    let inside = marks
        .inside
        .iter()
        .flat_map(|((message, _), marks)| marks.iter().map(|mark| (Some(*message), mark.is_long)));
    let all = before.iter().map(|is_long| (None, *is_long)).chain(inside);
    for (message, is_long) in all {
        count += 1;
        let mut add = |rule, sentence: &str| match message {
            Some(message) => found.add(rule, message as usize, sentence),
            None => found.add_outside(rule, sentence),
        };
        if count == MOST_MARKS + 1 {
            add(
                Rule::An14TooManyMarks,
                "the fifth cache mark of the request",
            );
        }
        if is_short && is_long {
            add(
                Rule::An15MarkOrder,
                "a cache mark of an hour follows a shorter one",
            );
        }
        is_short |= !is_long;
    }
}
