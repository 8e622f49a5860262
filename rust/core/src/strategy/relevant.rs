//! Selection by relevance: what has to do with the question comes back right before it.
//!
//! Levels fall as ever, down to a smaller share. The rest of the room is filled anew at every call
//! with the passages that are not visible and fit the question best, as one fenced block before the
//! newest user message: the edge of the window that models read best. Inside the block the best stands
//! last, next to the question. The order of the conversation itself never changes. Nothing of this is
//! folded, so a question changes no level; the window is not prefix-stable from the block on.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::compaction::hard_tokens;
use crate::error::Result;
use crate::message::PartKind;
use crate::need::is_visible;
use crate::node::Text;
use crate::plan::{Plan, Recall, Settings};
use crate::render::recall_place;
use crate::salience::passages::{Found, Passages};
use crate::shrink::with_text;
use crate::transcript::Transcript;
use crate::working_set::{around, fence};

/// What fits worse than this share of the best is left out.
const LEAST_SHARE: f64 = 0.1;

/// Passages that are looked at.
const MOST_JUDGED: usize = 512;

/// The plan with the block for `query` in it (by default the newest user message); `None` if there is
/// nothing to bring back.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub(crate) fn select<T: Text>(
    plan: &Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
    passages: &mut Passages,
    query: Option<&str>,
) -> Result<Option<Plan>> {
    let Some(question) = transcript.newest_user() else {
        return Ok(None);
    };
    let step = transcript.rows()[question].step;
    // Before the question stands the newest step in the window that is older.
    let before = plan.shown.partition_point(|shown| shown.step < step);
    let Some(before) = before.checked_sub(1).and_then(|at| plan.shown.get(at)) else {
        return Ok(None);
    };
    let at = transcript.steps()[before.step as usize].end as usize;
    let place = around(recall_place(transcript, settings.dialect, at), settings);
    let total = settings.base_tokens() + plan.history_tokens;
    let pinned = settings.base_tokens() + hard_tokens(plan, transcript);
    let room = settings.room();
    let share = settings.policy.relevant * room.saturating_sub(pinned) as f64;
    let limit = (share as u64).min(room.saturating_sub(total + u64::from(place)));
    passages.advance(transcript, transcript.len());
    let mut found = match query {
        Some(query) => passages.search(query),
        None => passages.search(&words_of(transcript, question)),
    };
    let least = LEAST_SHARE * found.first().map_or(0.0, |best| best.score);
    found.truncate(MOST_JUDGED);
    found.retain(|one| one.score > least && !is_visible(plan, transcript, one.line));
    let mut tokens = 0.0;
    found.retain(|one| {
        let part = &transcript.all_parts()[one.line.part as usize];
        let bytes = with_text(&part.body, str::len).max(1);
        let cost = f64::from(part.tokens) / bytes as f64 * f64::from(one.line.bytes() + 1);
        let fits = tokens + cost <= limit as f64;
        if fits {
            tokens += cost;
        }
        fits
    });
    while !found.is_empty() {
        let text = block(transcript, settings, &found);
        let tokens = settings.counter.count(&text)?;
        if u64::from(tokens) <= limit {
            let mut with = plan.clone();
            let tokens = tokens.saturating_add(place);
            let place = with
                .recalls
                .partition_point(|recall| recall.at as usize <= at);
            with.recalls.insert(
                place,
                Recall {
                    at: at as u32,
                    text: text.into(),
                    tokens,
                    restores: None,
                    lines: Arc::new([]),
                },
            );
            with.history_tokens += u64::from(tokens);
            with.changed_from = with.changed_from.min(step);
            return Ok(Some(with));
        }
        // Sources take room too: so much less as it is too much.
        let over = u64::from(tokens) - limit;
        let drop = (over * found.len() as u64).div_ceil(u64::from(tokens).max(1));
        found.truncate(found.len().saturating_sub(drop.max(1) as usize));
    }
    Ok(None)
}

/// What a user said in a message.
fn words_of<T: Text>(transcript: &Transcript<T>, message: usize) -> String {
    let parts = transcript.parts(message).iter();
    let texts = parts.filter(|part| part.kind == PartKind::Text);
    let mut words = String::new();
    for part in texts {
        with_text(&part.body, |text| words.push_str(text));
        words.push('\n');
    }
    words
}

/// The passages with their sources, part by part, the part with the best one last.
fn block<T: Text>(transcript: &Transcript<T>, settings: &Settings, found: &[Found]) -> String {
    let mut order: Vec<(usize, &Found)> = Vec::with_capacity(found.len());
    let mut ranks: std::collections::BTreeMap<u32, usize> = std::collections::BTreeMap::new();
    for (rank, one) in found.iter().enumerate() {
        let rank = *ranks.entry(one.line.part).or_insert(rank);
        order.push((rank, one));
    }
    order.sort_by_key(|(rank, one)| (std::cmp::Reverse(*rank), one.line));
    let mut text = String::new();
    for group in order.chunk_by(|a, b| a.1.line.part == b.1.line.part) {
        let (part, message) = (group[0].1.line.part, group[0].1.message as usize);
        let content = &transcript.all_parts()[part as usize];
        let offset = part as usize - transcript.part_range(message).start;
        let pointer = settings.key.pointer(message, offset, content);
        let role = transcript.rows()[message].role.name();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "[message {message}, {role}, {pointer}]");
        with_text(&content.body, |whole| {
            for (_, one) in group {
                let words = whole.get(one.line.start as usize..one.line.end as usize);
                text.push_str(words.unwrap_or_default());
                text.push('\n');
            }
        });
    }
    fence("recalled", "pages named below", &text)
}
