//! The same for policies that rank nothing: what is too large is shortened to its head and its tail.
//!
//! A policy that drops whole steps is left with those that must stay. Where even they are too much,
//! each of their parts gets an equal share of the room. Costs a look at what is shortened, and at
//! nothing else of the history.

use super::{Kept, Outcome, Room, Squeeze, best_of};
use crate::error::Result;
use crate::level::Level;
use crate::message::{Part, PartKind};
use crate::node::Text;
use crate::plan::{Plan, Settings, Shown, is_protected};
use crate::shrink::{PartEdit, Wanted, edited, with_text};
use crate::transcript::Transcript;

/// Fewest tokens of a part's share.
const LEAST_SHARE: u64 = 16;

/// What becomes of the soft steps, none of which goes.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub(crate) fn shorten<T: Text>(
    transcript: &Transcript<T>,
    settings: &Settings,
    plan: &Plan,
    soft: &[usize],
    room: Room,
    squeeze: Squeeze,
) -> Result<Outcome> {
    let parts_of = |at: &usize| {
        let bounds = transcript.steps()[plan.shown[*at].step as usize];
        transcript.part_range(bounds.first as usize).start
            ..transcript.part_range(bounds.end as usize - 1).end
    };
    let parts: usize = soft.iter().map(|at| parts_of(at).len()).sum();
    // The signs of what is missing, and the framing, take some of it.
    let target = match squeeze {
        Squeeze::None => room.target / 4 * 3,
        Squeeze::Newest => room.target / 2,
        Squeeze::All => 0,
    };
    let share = (target / parts.max(1) as u64).max(LEAST_SHARE);
    let mut wanted = Vec::new();
    for at in soft {
        let shown = &plan.shown[*at];
        for part in parts_of(at) {
            let content = &transcript.all_parts()[part];
            let message = transcript.message_of_part(part);
            let edit = shown.edits.iter().find(|edit| edit.part as usize == part);
            let tokens = edit.map_or(content.tokens, |edit| edit.tokens);
            let stays = squeeze == Squeeze::None
                && is_protected(transcript, message)
                && content.kind != PartKind::Result;
            let is_small = squeeze != Squeeze::All && u64::from(tokens) <= share;
            if stays || is_small || !may_shrink(content) {
                continue;
            }
            let one = Wanted {
                names: Some(Vec::new()),
                is_least: squeeze == Squeeze::All,
                ..Wanted::nothing(part as u32, message as u32)
            };
            if edit.is_some() || squeeze == Squeeze::All || content.kind == PartKind::Call {
                wanted.push(one);
                continue;
            }
            let (kept, elements) = with_text(&content.body, |text| {
                let bytes = text.len() as u64 * share / u64::from(content.tokens.max(1));
                best_of(text, bytes as usize)
            });
            wanted.push(Wanted {
                kept,
                elements,
                ..one
            });
        }
    }
    let mut fresh = edited(transcript, settings, &wanted)?
        .into_iter()
        .peekable();
    let mut outcome = Outcome::default();
    for at in soft {
        let end = parts_of(at).end;
        let mut own = Vec::new();
        while let Some(edit) = fresh.next_if(|edit| (edit.part as usize) < end) {
            own.push(edit);
        }
        let kept = lowered(transcript, *at, &plan.shown[*at], own);
        outcome.tokens += u64::from(kept.tokens);
        outcome.steps.push(kept);
    }
    Ok(outcome)
}

/// Whether something shorter can stand for a part.
fn may_shrink<T>(part: &Part<T>) -> bool {
    part.place.is_replaceable() && !matches!(part.kind, PartKind::Reasoning | PartKind::Opaque)
}

/// A step with new edits, of those that save tokens.
pub(super) fn lowered<T: Text>(
    transcript: &Transcript<T>,
    at: usize,
    shown: &Shown,
    fresh: Vec<PartEdit>,
) -> Kept {
    let mut edits: Vec<PartEdit> = shown.edits.to_vec();
    let mut tokens = shown.tokens;
    let mut changed = false;
    for edit in fresh {
        let place = edits.binary_search_by_key(&edit.part, |edit| edit.part);
        let before = match place {
            Ok(at) => edits[at].tokens,
            Err(_) => transcript.all_parts()[edit.part as usize].tokens,
        };
        if edit.tokens >= before {
            continue;
        }
        tokens -= before - edit.tokens;
        changed = true;
        match place {
            Ok(at) => edits[at] = edit,
            Err(at) => edits.insert(at, edit),
        }
    }
    let level = if !changed {
        shown.level
    } else if edits.iter().all(|edit| edit.kept.is_empty()) {
        Level::Stub
    } else {
        Level::Trimmed
    };
    Kept {
        shown: at,
        level: level.min(shown.level),
        tokens,
        edits,
        is_recent: false,
    }
}
