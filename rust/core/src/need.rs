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

use indexmap::map::Entry;

use crate::compaction::hard_tokens;
use crate::error::Result;
use crate::level::Level;
use crate::node::Text;
use crate::plan::{Plan, Recall, Settings};
use crate::policy::{Select, Strategy};
use crate::salience::identifiers::name_parts;
use crate::salience::index::{
    Again, Extent, Index, Known, LONG_LINE, LineAt, NameMap, Names, is_read, scan,
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
    /// The candidates of each word. A candidate that is not seen again stays one.
    by_word: ByWord,
    /// Candidates of the newest messages' words, by raw index, sorted: each is read at two
    /// boundaries, and reading it is most of what a boundary costs.
    by_message: Vec<(usize, Box<[Candidate]>)>,
    /// The candidates on lines that were read at the newest boundary.
    by_line: Vec<(LineAt, Box<[Candidate]>)>,
    /// When these were begun: compactions, and how often the index forgot.
    stamp: (u32, u32),
}

impl Search {
    /// Forgets what rests on the settings.
    pub(crate) fn forget_values(&mut self) {
        self.by_word = ByWord::default();
        self.by_message.clear();
        self.by_line.clear();
    }
}

/// Candidates by their word, which is looked up once between two compactions.
#[derive(Clone, Debug, Default)]
struct ByWord {
    /// Where in `found` those of each word are that was said since the newest compaction. Few words
    /// make up most of what is said: this map fits into the processor's cache, the index does not.
    ranges: NameMap<(u32, u32)>,
    found: Vec<Candidate>,
    /// The words of one text, as positions in `ranges`.
    words: Vec<usize>,
    /// Those of them that came up first.
    new: Vec<usize>,
    /// What is known of the identifiers with a new word, by its position.
    names: Vec<(usize, u64, Known)>,
}

impl ByWord {
    /// Adds the candidates with a text's words, judged when a word first comes up. A word that no
    /// identifier had at the newest compaction has none: all that was said since is in the window.
    fn read<T: Text>(&mut self, text: &str, judge: &Judge<'_, T>, to: &mut Vec<Candidate>) {
        self.words.clear();
        self.new.clear();
        for word in name_parts(text).take(MOST_WORDS) {
            let entry = self.ranges.entry(word);
            self.words.push(entry.index());
            if let Entry::Vacant(entry) = entry {
                self.new.push(entry.index());
                entry.insert((0, 0));
            }
        }
        self.judge_new(judge);
        for &at in &self.words {
            let (start, end) = self.ranges[at];
            to.extend_from_slice(&self.found[start as usize..end as usize]);
        }
    }

    /// Judges the identifiers with the new words. All go through one pass after the other: what is
    /// known of them is scattered, and the processor waits for several at a time only if little is
    /// done with each.
    fn judge_new<T: Text>(&mut self, judge: &Judge<'_, T>) {
        self.names.clear();
        for &at in &self.new {
            let word = self.ranges.get_index(at).map_or(0, |(word, _)| *word);
            let names = judge.moment.index.with_part(word, judge.extent);
            let short = names.filter(|(_, known)| is_short(known));
            self.names
                .extend(short.map(|(name, known)| (at, name, *known)));
        }
        self.names.retain(|(_, _, known)| judge.is_out(known));
        for names in self.names.chunk_by(|a, b| a.0 == b.0) {
            let start = self.found.len() as u32;
            let judged = names.iter();
            self.found
                .extend(judged.filter_map(|(_, name, known)| judge.value(*name, known)));
            self.ranges[names[0].0] = (start, self.found.len() as u32);
        }
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

impl Candidate {
    /// By which candidates are sorted, and are the same.
    fn place(&self) -> (LineAt, u64) {
        (self.line, self.name)
    }
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
        || !may_fit(plan, settings)
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

/// Whether there may be room for a block: what [`limit`] tells exactly, without a look at what is
/// pinned.
fn may_fit(plan: &Plan, settings: &Settings) -> bool {
    let room = settings.room();
    let most = (settings.policy.recall * room.saturating_sub(settings.base_tokens()) as f64) as u64;
    most > plan.automatic_tokens() && room > settings.base_tokens() + plan.history_tokens
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
        by_line,
        stamp,
    } = search;
    let index = &*index;
    let now = (plan.compactions, index.forgotten());
    if *stamp != now {
        *stamp = now;
        by_word.ranges.clear();
        by_word.found.clear();
        by_message.clear();
        by_line.clear();
    }
    let (messages, is_dialogue) = plan.judged;
    let likelihoods = &settings.policy.likelihood;
    let nothing = Names::default();
    let judge = Judge {
        plan,
        transcript,
        extent: index.extent(judged_end(plan)),
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
    for message in start..end {
        if by_message.iter().any(|&(known, _)| known == message) {
            continue;
        }
        let mut found: Vec<Candidate> = Vec::new();
        let parts = transcript.parts(message).iter();
        for part in parts.filter(|part| is_read(part)) {
            with_text(&part.body, |text| by_word.read(text, &judge, &mut found));
        }
        found.sort_unstable_by_key(Candidate::place);
        found.dedup_by_key(|candidate| candidate.place());
        by_message.push((message, found.into()));
    }
    judge.beside(by_line);
    let mut found: Vec<Candidate> = Vec::new();
    let by_message = by_message.iter().map(|(_, found)| found);
    for some in by_message.chain(by_line.iter().map(|(_, found)| found)) {
        found.extend_from_slice(some);
    }
    // Made for a few sorted runs.
    found.sort_by_key(Candidate::place);
    found.dedup_by_key(|candidate| candidate.place());
    let is_as_it_was = |candidate: &&Candidate| {
        let is_same = |known: &Known| known.newest == candidate.newest;
        index.get(candidate.name).is_some_and(is_same)
    };
    let came_back = |line: LineAt| {
        let mut recalls = plan.recalls.iter();
        recalls.any(|recall| recall.lines.binary_search(&line).is_ok())
    };
    let value = |names: &mut dyn Iterator<Item = &Candidate>| -> f64 {
        names.map(|candidate| candidate.value).sum()
    };
    let mut lines = Vec::new();
    for names in found.chunk_by(|a, b| a.line == b.line) {
        let (at, tokens) = (names[0].line, names[0].tokens);
        let least = judge.least(tokens);
        // Most lines are not worth it even if nothing of them was seen again, which costs a look-up
        // for each identifier: a sum never grows by leaving out what is not negative.
        if value(&mut names.iter()) < least || came_back(at) {
            continue;
        }
        let value = value(&mut names.iter().filter(is_as_it_was));
        if value >= least {
            lines.push(Line { at, value, tokens });
        }
    }
    lines
}

/// Messages before the place where levels last fell: from there on all of them are in the window.
fn judged_end(plan: &Plan) -> usize {
    let rewrite = plan.rewrites.last().map_or(0, |rewrite| rewrite.at);
    let summary = plan.summary.as_deref().map_or(0, |one| one.covers.1);
    (plan.judged.0.max(rewrite) as usize).max(summary)
}

/// Whether an identifier's line is short enough to come back.
fn is_short(known: &Known) -> bool {
    f64::from(known.tokens) < LONG_TOKENS && known.line.bytes() < LONG_LINE
}

/// What identifiers are judged by between two compactions.
struct Judge<'a, T> {
    plan: &'a Plan,
    transcript: &'a Transcript<T>,
    /// What was known when levels last fell.
    extent: Extent,
    moment: Moment<'a>,
}

impl<T: Text> Judge<'_, T> {
    /// What a line must be worth.
    fn least(&self, tokens: f64) -> f64 {
        LEAST_VALUE.max(self.plan.density * tokens)
    }

    /// Whether the window does not show an identifier's newest copy at its place.
    fn is_out(&self, known: &Known) -> bool {
        !is_kept(
            self.plan,
            self.transcript,
            known.newest as usize,
            known.line,
        )
    }

    /// An identifier as a candidate, if it is one.
    fn judge(&self, name: u64, known: &Known) -> Option<Candidate> {
        if !is_short(known) || !self.is_out(known) {
            return None;
        }
        self.value(name, known)
    }

    /// An identifier that is out of the window as a candidate, if it may be worth its line.
    fn value(&self, name: u64, known: &Known) -> Option<Candidate> {
        let tokens = f64::from(known.tokens);
        let row = self.transcript.rows().get(known.newest as usize)?;
        let value = self.moment.likelihood_unread(name, known, row);
        (value >= LEAST_SHARE * self.least(tokens)).then_some(Candidate {
            name,
            newest: known.newest,
            line: known.line,
            value,
            tokens,
        })
    }

    /// What stood beside the identifiers of the newest messages, on the lines that the fewest
    /// messages hold, and of these the newest. `read` are those of the boundary before, then of
    /// this one: what came up since is told by its newest copy.
    fn beside(&self, read: &mut Vec<(LineAt, Box<[Candidate]>)>) {
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
        lines.truncate(MOST_READ);
        read.retain(|(line, _)| lines.iter().any(|again| again.line == *line));
        for again in lines {
            if read.iter().any(|(line, _)| *line == again.line) {
                continue;
            }
            let part = &self.transcript.all_parts()[again.line.part as usize];
            let found = with_text(&part.body, |text| {
                let words = text.get(again.line.start as usize..again.line.end as usize);
                let others = scan(part, words.unwrap_or_default()).take(MOST_WORDS);
                let judged = others.filter_map(|other| {
                    let known = index.get(other.hash);
                    let known = known.filter(|known| known.line == again.line)?;
                    self.judge(other.hash, known)
                });
                let mut judged: Vec<Candidate> = judged.collect();
                judged.sort_unstable_by_key(Candidate::place);
                judged
            });
            read.push((again.line, found.into()));
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
