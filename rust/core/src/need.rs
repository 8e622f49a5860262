//! Lines that come back by themselves: the newest messages need what only they hold.
//!
//! Looked for at every boundary after the first compaction that is none itself, from the log alone.
//! A candidate is an identifier that is paged out and shares a rare word with the newest two
//! messages, or stood on one line with one of their identifiers. Its line comes back if it is worth
//! as much per token as the last line that the newest compaction kept.
//!
//! What was paged out stays so until the next compaction, and is worth what it was at the newest
//! one: each word is looked up once between two compactions, without a look at the texts. Cost of
//! a boundary: in proportion to the newest two messages, and to at most [`MOST_READ`] lines.

use std::fmt::Write as _;

use crate::compaction::hard_tokens;
use crate::error::Result;
use crate::level::Level;
use crate::node::Text;
use crate::plan::{Plan, Recall, Settings};
use crate::policy::{Select, Strategy};
use crate::salience::identifiers::name_parts;
use crate::salience::index::{
    Again, Index, Known, LONG_LINE, LineAt, NameMap, Names, is_read, scan,
};
use crate::salience::likelihood::Moment;
use crate::shrink::with_text;
use crate::transcript::Transcript;
use crate::working_set::fence;

/// Words of a part that are looked up, and identifiers of a line.
const MOST_WORDS: usize = 512;

/// Lines that are read for what stands beside an identifier of the newest messages.
const MOST_READ: usize = 4;

/// Newest messages that may need something.
const NEWEST: usize = 2;

/// Tokens from which a line is too long to come back.
const LONG_TOKENS: f64 = 120.0;

/// The least likelihood of a line's identifiers together.
const LEAST_VALUE: f64 = 0.02;

/// The least share of what its line must be worth that makes an identifier a candidate.
const LEAST_SHARE: f64 = 0.25;

/// What a search at a boundary rests on: a function of the transcript and of the settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    /// What is known of the identifiers.
    pub(crate) index: Index,
    /// Word → the candidates with it. A candidate that is not seen again stays one.
    by_word: NameMap<Box<[Candidate]>>,
    /// Candidates of the newest messages' words, by raw index: each is read at two boundaries, and
    /// reading it is most of what a boundary costs.
    by_message: Vec<(usize, Box<[Candidate]>)>,
    /// When `by_word` was begun: compactions, and how often the index forgot.
    stamp: (u32, u32),
}

impl Search {
    /// Forgets what rests on the settings.
    pub(crate) fn forget_values(&mut self) {
        self.by_word.clear();
        self.by_message.clear();
    }
}

/// An identifier that is paged out and may be worth its line.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    name: u64,
    /// Raw index of the message with its newest copy.
    newest: u32,
    line: LineAt,
    value: f64,
    tokens: f64,
}

/// A line that may come back.
struct Line {
    at: LineAt,
    value: f64,
    tokens: f64,
}

/// The lines that the newest messages need, as one block; `None` if there are none.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub(crate) fn needed<T: Text>(
    plan: &Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
    search: &mut Search,
) -> Result<Option<Recall>> {
    let policy = &settings.policy;
    if plan.compactions == 0
        || policy.strategy != Strategy::Adaptive
        || policy.recall <= 0.0
        || policy.select == Select::Relevant
    {
        return Ok(None);
    }
    search.index.advance(transcript, transcript.len());
    let mut lines = lines(plan, transcript, settings, search);
    if lines.is_empty() {
        return Ok(None);
    }
    let limit = limit(plan, transcript, settings);
    lines.sort_by(|a, b| {
        let (left, right) = (a.value * b.tokens, b.value * a.tokens);
        right.total_cmp(&left).then(a.at.cmp(&b.at))
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
            let mut shown: Vec<LineAt> = lines.iter().map(|line| line.at).collect();
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

/// Tokens that the block may have.
fn limit<T: Text>(plan: &Plan, transcript: &Transcript<T>, settings: &Settings) -> u64 {
    let total = settings.base_tokens() + plan.history_tokens;
    let room = settings.room();
    let around = u64::from(settings.message_tokens);
    let pinned = settings.base_tokens() + hard_tokens(plan, transcript);
    let share = (settings.policy.recall * room.saturating_sub(pinned) as f64) as u64;
    share
        .saturating_sub(plan.automatic_tokens())
        .min(room.saturating_sub(total + around))
}

/// The lines that are worth coming back.
fn lines<T: Text>(
    plan: &Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
    search: &mut Search,
) -> Vec<Line> {
    let Search {
        index,
        by_word,
        by_message,
        stamp,
    } = search;
    let index = &*index;
    let now = (plan.compactions, index.forgotten());
    if *stamp != now {
        *stamp = now;
        by_word.clear();
        by_message.clear();
    }
    let (messages, is_dialogue) = plan.judged;
    let likelihoods = &settings.policy.likelihood;
    let nothing = Names::default();
    let judge = Judge {
        plan,
        transcript,
        moment: Moment {
            weights: if is_dialogue {
                &likelihoods.dialogue
            } else {
                &likelihoods.agent
            },
            index,
            messages,
            newest_words: &nothing,
            newest_names: &nothing,
        },
    };
    let end = transcript.len();
    let start = end.saturating_sub(NEWEST);
    by_message.retain(|&(message, _)| message >= start);
    let mut found: Vec<Candidate> = Vec::new();
    for message in start..end {
        let known = by_message.iter().find(|&&(known, _)| known == message);
        if let Some((_, candidates)) = known {
            found.extend_from_slice(candidates);
            continue;
        }
        let first = found.len();
        for part in transcript
            .parts(message)
            .iter()
            .filter(|part| is_read(part))
        {
            with_text(&part.body, |text| {
                for word in name_parts(text).take(MOST_WORDS) {
                    if let Some(candidates) = by_word.get(&word) {
                        found.extend_from_slice(candidates);
                    } else if index.has_part(word) {
                        let names = index.with_part(word);
                        let candidates = names.filter_map(|(name, known)| judge.judge(name, known));
                        let candidates: Box<[Candidate]> = candidates.collect();
                        found.extend_from_slice(&candidates);
                        by_word.insert(word, candidates);
                    }
                }
            });
        }
        by_message.push((message, found[first..].into()));
    }
    judge.beside(&mut found);
    let is_hidden = |candidate: &Candidate| {
        let is_same = |known: &Known| known.newest == candidate.newest;
        index.get(candidate.name).is_some_and(is_same)
            && !plan
                .recalls
                .iter()
                .any(|recall| recall.lines.binary_search(&candidate.line).is_ok())
    };
    found.sort_unstable_by_key(|candidate| (candidate.line, candidate.name));
    found.dedup_by_key(|candidate| (candidate.line, candidate.name));
    found.retain(is_hidden);
    let lines = found.chunk_by(|a, b| a.line == b.line).map(|names| Line {
        at: names[0].line,
        value: names.iter().map(|name| name.value).sum(),
        tokens: names[0].tokens,
    });
    lines
        .filter(|line| line.value >= judge.least(line.tokens))
        .collect()
}

/// What identifiers are judged by between two compactions.
struct Judge<'a, T> {
    plan: &'a Plan,
    transcript: &'a Transcript<T>,
    moment: Moment<'a>,
}

impl<T: Text> Judge<'_, T> {
    /// What a line must be worth.
    fn least(&self, tokens: f64) -> f64 {
        LEAST_VALUE.max(self.plan.density * tokens)
    }

    /// An identifier as a candidate, if it is one.
    fn judge(&self, name: u64, known: &Known) -> Option<Candidate> {
        let tokens = f64::from(known.tokens);
        let message = known.newest as usize;
        if tokens >= LONG_TOKENS
            || known.line.bytes() >= LONG_LINE
            || is_kept(self.plan, self.transcript, message, known.line)
        {
            return None;
        }
        let row = self.transcript.rows().get(message)?;
        let value = self.moment.likelihood_unread(name, known, row);
        (value >= LEAST_SHARE * self.least(tokens)).then_some(Candidate {
            name,
            newest: known.newest,
            line: known.line,
            value,
            tokens,
        })
    }

    /// Adds what stood beside the identifiers of the newest messages: those that the fewest
    /// messages hold, and of these the newest.
    fn beside(&self, found: &mut Vec<Candidate>) {
        let index = self.moment.index;
        let again = index.again().iter();
        let mut lines: Vec<&Again> = again
            .filter(|again| {
                !is_kept(
                    self.plan,
                    self.transcript,
                    again.before as usize,
                    again.line,
                )
            })
            .collect();
        lines.sort_unstable_by_key(|again| {
            (again.seen, std::cmp::Reverse(again.before), again.line)
        });
        lines.dedup_by_key(|again| again.line);
        for again in lines.into_iter().take(MOST_READ) {
            let part = &self.transcript.all_parts()[again.line.part as usize];
            with_text(&part.body, |text| {
                let words = text.get(again.line.start as usize..again.line.end as usize);
                for other in scan(part, words.unwrap_or_default()).take(MOST_WORDS) {
                    let known = index.get(other.hash);
                    let known = known.filter(|known| known.line == again.line);
                    found.extend(known.and_then(|known| self.judge(other.hash, known)));
                }
            });
        }
    }
}

/// Whether the window shows a line, at its own place or as one that came back.
pub(crate) fn is_visible<T: Text>(plan: &Plan, transcript: &Transcript<T>, line: LineAt) -> bool {
    let message = transcript.message_of_part(line.part as usize);
    let came_back = |recall: &Recall| recall.lines.binary_search(&line).is_ok();
    plan.recalls.iter().any(came_back) || is_kept(plan, transcript, message, line)
}

/// Whether the window shows a line at its own place.
fn is_kept<T: Text>(plan: &Plan, transcript: &Transcript<T>, message: usize, line: LineAt) -> bool {
    let step = transcript.rows()[message].step;
    match plan.fates.get(step as usize).map(|fate| fate.level) {
        Some(Level::Verbatim) => return true,
        Some(Level::Gone) => return false,
        _ => {}
    }
    let Some(shown) = plan.find(step) else {
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

/// The lines with their sources, in order of the history, fenced as data.
fn block<T: Text>(transcript: &Transcript<T>, settings: &Settings, lines: &[Line]) -> String {
    let mut order: Vec<&Line> = lines.iter().collect();
    order.sort_by_key(|line| line.at);
    let mut text = String::new();
    let mut part = u32::MAX;
    for line in order {
        if line.at.part != part {
            part = line.at.part;
            let message = transcript.message_of_part(part as usize);
            let offset = part as usize - transcript.part_range(message).start;
            let content = &transcript.all_parts()[part as usize];
            let pointer = settings.key.pointer(message, offset, content);
            let role = transcript.rows()[message].role.name();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "[message {message}, {role}, {pointer}]");
        }
        let (start, end) = (line.at.start as usize, line.at.end as usize);
        let content = &transcript.all_parts()[part as usize];
        with_text(&content.body, |from| {
            text.push_str(from.get(start..end).unwrap_or_default());
        });
        text.push('\n');
    }
    fence("recalled", "pages named below", &text)
}
