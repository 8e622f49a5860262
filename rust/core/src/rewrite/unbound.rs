//! Reasoning that is bound to everything before it, where that has changed.
//!
//! Some models sign their reasoning together with what stood before it, and their provider refuses
//! it behind anything else. A compaction changes that for all reasoning so far, which is left out.

use crate::dialect::{Dialect, read_message};
use crate::error::Result;
use crate::node::Text as _;
use crate::readers::json::Json;
use crate::tokens::Counter;
use crate::tokens::chat::{ChatRules, count_message_parts, message_overhead};

/// Takes the reasoning out of all but the last `tail` messages, and messages that were nothing
/// else; returns the tokens it took.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub(super) fn unbind(
    window: &mut Vec<Json>,
    tail: usize,
    dialect: Dialect,
    counter: &Counter,
) -> Result<u64> {
    let older = window.len().saturating_sub(tail);
    let mut saved = 0;
    let mut at = 0;
    let mut left = Ok(());
    window.retain_mut(|message| {
        at += 1;
        let Some(bare) = (at <= older).then(|| without_reasoning(message)).flatten() else {
            return true;
        };
        let count = |message: &Json| tokens(message, dialect, counter);
        match (count(message), count(&bare)) {
            (Ok(before), Ok(after)) => {
                let is_kept = bare
                    .get("content")
                    .is_some_and(|blocks| !blocks.items().is_empty());
                saved += before - if is_kept { after.min(before) } else { 0 };
                *message = bare;
                is_kept
            }
            (Err(error), _) | (_, Err(error)) => {
                left = Err(error);
                true
            }
        }
    });
    left.map(|()| saved)
}

/// The message without its reasoning; `None` if it has none.
fn without_reasoning(message: &Json) -> Option<Json> {
    let blocks = message.items_at("content");
    let kept: Vec<_> = blocks
        .iter()
        .filter(|block| !is_reasoning(block))
        .cloned()
        .collect();
    (kept.len() < blocks.len()).then(|| {
        let mut bare = message.clone();
        bare.set("content", Json::List(kept));
        bare
    })
}

fn is_reasoning(block: &Json) -> bool {
    let is_kind = |kind: &Json| match kind {
        Json::Text(kind) => kind.with(|kind| matches!(kind, "thinking" | "redacted_thinking")),
        _ => false,
    };
    block.get("type").is_some_and(is_kind)
        || block
            .get("reasoningContent")
            .is_some_and(|content| !content.is_null())
}

/// Tokens of one message with its framing.
pub(super) fn tokens(message: &Json, dialect: Dialect, counter: &Counter) -> Result<u64> {
    let mut read = [read_message(dialect, &message, 0)?];
    count_message_parts(&mut read, counter)?;
    let [read] = read;
    let overhead = message_overhead(&read, &ChatRules::for_counter(dialect, counter), counter)?;
    let parts = read.parts.iter().map(|part| u64::from(part.tokens));
    Ok(parts.sum::<u64>() + u64::from(overhead))
}
