//! Lines that come back by themselves: the newest messages need what only they hold.
//!
//! Looked for at every boundary after the first compaction that is none itself, from the log alone.
//! A candidate is an identifier that is paged out and shares a word with the newest two messages, or
//! stood on one line with one of their identifiers. Its line comes back if it is worth as much per
//! token as the last line that the newest compaction kept. Cost: in proportion to the newest two
//! messages, and to the texts of at most [`MOST_JUDGED`] lines.

use std::fmt::Write as _;

use crate::compaction::hard_tokens;
use crate::error::Result;
use crate::keep::newest_of;
use crate::node::Text;
use crate::plan::{Plan, Recall, Settings};
use crate::policy::{Select, Strategy};
use crate::salience::index::{Index, Known, LineAt, scan};
use crate::salience::likelihood::{Moment, Spot};
use crate::shrink::with_text;
use crate::transcript::Transcript;
use crate::working_set::fence;

/// Words, and identifiers, of a text that are looked up.
const MOST_WORDS: usize = 512;

/// Identifiers that are looked for, and those of them that are judged, which means to read their
/// lines.
const MOST_CANDIDATES: usize = 512;
const MOST_JUDGED: usize = 48;

/// Newest messages that may need something.
const NEWEST: usize = 2;

/// Tokens from which a line is too long to come back.
const LONG_TOKENS: f64 = 120.0;

/// Bytes from which a line is too long to be looked at: no tokenizer has longer tokens on average.
const LONG_BYTES: u32 = 8 * LONG_TOKENS as u32;

/// The least likelihood of a line's identifiers together.
const LEAST_VALUE: f64 = 0.02;

/// A line that may come back.
struct Candidate {
    line: LineAt,
    value: f64,
    tokens: f64,
    text: String,
}

/// The lines that the newest messages need, as one block; `None` if there are none.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub(crate) fn needed<T: Text>(
    plan: &Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
    index: &mut Index,
) -> Result<Option<Recall>> {
    let policy = &settings.policy;
    if plan.compactions == 0
        || policy.strategy != Strategy::Adaptive
        || policy.recall <= 0.0
        || policy.select == Select::Relevant
    {
        return Ok(None);
    }
    index.advance(transcript, transcript.len());
    let names = candidates(plan, transcript, index);
    if names.is_empty() {
        return Ok(None);
    }
    let total = settings.base_tokens() + plan.history_tokens;
    let pinned = settings.base_tokens() + hard_tokens(plan, transcript);
    let room = settings.room();
    let share = (policy.recall * room.saturating_sub(pinned) as f64) as u64;
    let around = u64::from(settings.message_tokens);
    let limit = share
        .saturating_sub(plan.automatic_tokens())
        .min(room.saturating_sub(total + around));
    let mut lines = judge(transcript, settings, index, &names);
    lines.retain(|line| {
        line.value >= LEAST_VALUE
            && line.tokens < LONG_TOKENS
            && line.value >= plan.density * line.tokens
    });
    lines.sort_by(|a, b| {
        let (left, right) = (a.value * b.tokens, b.value * a.tokens);
        right.total_cmp(&left).then(a.line.cmp(&b.line))
    });
    let mut tokens = 0.0;
    lines.retain(|line| {
        let fits = tokens + line.tokens <= limit as f64;
        if fits {
            tokens += line.tokens;
        }
        fits
    });
    while !lines.is_empty() {
        let text = block(transcript, settings, &lines);
        let tokens = settings.counter.count(&text)?;
        if u64::from(tokens) <= limit {
            let mut shown: Vec<LineAt> = lines.iter().map(|line| line.line).collect();
            shown.sort_unstable();
            return Ok(Some(Recall {
                at: u32::MAX,
                text: text.into(),
                tokens,
                restores: None,
                lines: shown.into(),
            }));
        }
        lines.pop();
    }
    Ok(None)
}

/// Identifiers that are paged out and have to do with the newest messages.
fn candidates<T: Text>(
    plan: &Plan,
    transcript: &Transcript<T>,
    index: &Index,
) -> Vec<(u64, Known)> {
    let end = transcript.len();
    let (words, names) = newest_of(transcript, end, NEWEST, MOST_WORDS);
    let mut found: Vec<(u64, Known)> = Vec::new();
    let mut offer = |hash: u64, known: &Known| {
        if found.len() < MOST_CANDIDATES
            && (known.newest as usize) + NEWEST < end
            && known.line.bytes() < LONG_BYTES
            && !is_visible(plan, transcript, known.line)
        {
            found.push((hash, *known));
        }
    };
    for word in &words {
        for (hash, known) in index.with_part(*word) {
            offer(hash, known);
        }
    }
    // Lines that hold an identifier of the newest messages, each once, part by part: reading a part
    // may mean to put its text together.
    let mut lines: Vec<LineAt> = names
        .iter()
        .filter_map(|name| index.get(*name)?.before)
        .filter(|line| line.bytes() < LONG_BYTES && !is_visible(plan, transcript, *line))
        .collect();
    lines.sort_unstable();
    lines.dedup();
    for lines in lines.chunk_by(|a, b| a.part == b.part) {
        let part = &transcript.all_parts()[lines[0].part as usize];
        with_text(&part.body, |text| {
            for line in lines {
                let Some(words) = text.get(line.start as usize..line.end as usize) else {
                    continue;
                };
                for other in scan(part, words).take(MOST_WORDS) {
                    let known = index.get(other.hash);
                    if let Some(known) = known.filter(|known| known.line == *line) {
                        offer(other.hash, known);
                    }
                }
            }
        });
    }
    // What was used before first, then the newest: few others are ever needed.
    found.sort_unstable_by_key(|(hash, known)| {
        let signs = [known.acted > 0, known.reused, known.by_user];
        (std::cmp::Reverse((signs, known.newest)), *hash)
    });
    found.dedup_by_key(|(hash, _)| *hash);
    found.truncate(MOST_JUDGED);
    found.sort_unstable_by_key(|(hash, known)| (known.line, *hash));
    found
}

/// Whether the window shows a line.
pub(crate) fn is_visible<T: Text>(plan: &Plan, transcript: &Transcript<T>, line: LineAt) -> bool {
    if plan
        .recalls
        .iter()
        .any(|recall| recall.lines.binary_search(&line).is_ok())
    {
        return true;
    }
    let message = transcript.message_of_part(line.part as usize);
    let Some(shown) = plan.find(transcript.rows()[message].step) else {
        return false;
    };
    let edit = shown
        .edits
        .binary_search_by_key(&line.part, |edit| edit.part)
        .ok()
        .and_then(|at| shown.edits.get(at));
    edit.is_none_or(|edit| {
        let after = edit.kept.partition_point(|span| span.start <= line.start);
        let before = after.checked_sub(1).and_then(|at| edit.kept.get(at));
        before.is_some_and(|span| line.end <= span.end)
    })
}

/// What the lines of the candidates are worth.
fn judge<T: Text>(
    transcript: &Transcript<T>,
    settings: &Settings,
    index: &Index,
    names: &[(u64, Known)],
) -> Vec<Candidate> {
    let (newest_words, newest_names) = newest_of(transcript, transcript.len(), NEWEST, MOST_WORDS);
    let likelihoods = &settings.policy.likelihood;
    let weights = if index.is_dialogue() {
        &likelihoods.dialogue
    } else {
        &likelihoods.agent
    };
    let moment = Moment {
        weights,
        index,
        newest_words: &newest_words,
        newest_names: &newest_names,
    };
    let mut lines: Vec<Candidate> = Vec::new();
    for group in names.chunk_by(|a, b| a.1.line.part == b.1.line.part) {
        let part = &transcript.all_parts()[group[0].1.line.part as usize];
        with_text(&part.body, |text| {
            let per_byte = f64::from(part.tokens) / text.len().max(1) as f64;
            let mut newest: Option<(LineAt, Spot)> = None;
            for (hash, known) in group {
                let line = known.line;
                let (start, end) = (line.start as usize, line.end as usize);
                let name = known.start as usize..known.start as usize + usize::from(known.bytes);
                let (Some(words), Some(name)) = (text.get(start..end), text.get(name)) else {
                    continue;
                };
                let row = transcript.rows()[known.newest as usize];
                let spot = match newest {
                    Some((at, spot)) if at == line => spot,
                    _ => {
                        let found = scan(part, words);
                        let others = found.filter(|other| newest_names.contains(&other.hash));
                        let company = others.take(4).count() as u32;
                        // Where in its text the line stands would cost a look at all of it.
                        Moment::spot(words, u32::MAX / 2, u32::MAX, company)
                    }
                };
                newest = Some((line, spot));
                let value = moment.likelihood(name, *hash, known, &row, spot);
                match lines.last_mut() {
                    Some(last) if last.line == line => last.value += value,
                    _ => lines.push(Candidate {
                        line,
                        value,
                        tokens: (per_byte * (words.len() + 1) as f64).max(1.0),
                        text: words.to_owned(),
                    }),
                }
            }
        });
    }
    lines
}

/// The lines with their sources, in order of the history, fenced as data.
fn block<T: Text>(transcript: &Transcript<T>, settings: &Settings, lines: &[Candidate]) -> String {
    let mut order: Vec<&Candidate> = lines.iter().collect();
    order.sort_by_key(|line| line.line);
    let mut text = String::new();
    let mut part = u32::MAX;
    for line in order {
        if line.line.part != part {
            part = line.line.part;
            let message = transcript.message_of_part(part as usize);
            let offset = part as usize - transcript.part_range(message).start;
            let content = &transcript.all_parts()[part as usize];
            let pointer = settings.key.pointer(message, offset, content);
            let role = transcript.rows()[message].role.name();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "[message {message}, {role}, {pointer}]");
        }
        text.push_str(&line.text);
        text.push('\n');
    }
    fence("recalled", "pages named below", &text)
}
