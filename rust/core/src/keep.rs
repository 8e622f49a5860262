//! What a compaction keeps of the steps that may be lowered: lines, chosen across the history.
//!
//! The steps become an instance of [`cover`]: a step is a group, opened at what its messages cost
//! once all that can be replaced is, and each line still visible may be kept for the identifiers
//! whose newest copy is in its message. What is kept of a step makes its level. Levels only fall:
//! a line that is not visible any more is not offered.

mod memo;
mod outcome;
mod plain;
mod rules;
mod structure;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

pub(crate) use self::memo::Memo;
pub(crate) use self::plain::shorten;
use self::rules::{Ruling, rulings};

use crate::coverage::{Group, Instance, Line};
use crate::elements::Elements;
use crate::error::Result;
use crate::level::Level;
use crate::message::{Part, PartKind};
use crate::node::Text;
use crate::plan::{Plan, Settings, hard_reason, is_protected};
use crate::policy::Ablation;
use crate::prune::text::head_and_tail;
use crate::salience::identifiers::name_parts;
use crate::salience::index::{Index, LineAt, NameMap, Names, is_read, scan, scan_some_lines};
use crate::salience::likelihood::Moment;
use crate::salience::line::{Standing, standing};
use crate::shrink::{PartEdit, Span, with_text};
use crate::transcript::Transcript;

/// Tokens are counted in sixteenths inside the choice: a line has few.
const UNIT: u64 = 16;

/// Bytes from which a line also offers fragments.
const LONG_LINE: usize = 200;

/// Bytes that a fragment shows before and after its identifier.
const FRAGMENT_BYTES: usize = 48;

/// Bytes of what stands between two kept lines that are kept as well: a marker takes as many.
const GAP_BYTES: u32 = 13;

/// Newest messages whose words and identifiers count as present.
const NEWEST: usize = 3;

/// How much must be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Squeeze {
    /// What the policy protects stays.
    None,
    /// Of the newest message only head and tail; nothing else is protected.
    Newest,
    /// Nothing is kept but what every message must have.
    All,
}

/// The room that a compaction has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Tokens for the soft steps, if possible.
    pub(crate) target: u64,
    /// Tokens of the budget beside what is pinned.
    pub(crate) free: u64,
    /// Tokens of the whole budget.
    pub(crate) budget: u64,
}

/// What becomes of a soft step.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Position in `shown`.
    pub(crate) shown: usize,
    /// Its new level.
    pub(crate) level: Level,
    /// Its new tokens, placeholders included.
    pub(crate) tokens: u32,
    /// Its new edits.
    pub(crate) edits: Vec<PartEdit>,
    /// Whether it stays whole for being recent.
    pub(crate) is_recent: bool,
}

/// The outcome of a choice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// One entry per soft step, in order.
    pub(crate) steps: Vec<Kept>,
    /// Tokens of them all.
    pub(crate) tokens: u64,
    /// Value per token of the last line that was kept.
    pub(crate) density: f64,
    /// Value of what is kept.
    pub(crate) value: f64,
    /// What no choice can exceed.
    pub(crate) upper_bound: f64,
}

/// Words and identifiers of the newest messages before `end`.
pub(crate) fn newest_of<T: Text>(
    transcript: &Transcript<T>,
    end: usize,
    messages: usize,
    limit: usize,
) -> (Names, Names) {
    let (mut words, mut names) = (Names::default(), Names::default());
    for message in end.saturating_sub(messages)..end {
        for part in transcript
            .parts(message)
            .iter()
            .filter(|part| is_read(part))
        {
            with_text(&part.body, |text| {
                words.extend(name_parts(text).take(limit));
                names.extend(scan(part, text).take(limit).map(|found| found.hash));
            });
        }
    }
    (words, names)
}

/// The end of the lines that end by `at`; `at` itself inside a long line.
fn whole_lines_up_to(text: &str, at: usize) -> u32 {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    let at = if at == end || end - start > LONG_LINE {
        at
    } else {
        start.saturating_sub(1)
    };
    at as u32
}

/// The start of the lines that start at `at` or later; `at` itself inside a long line.
fn whole_lines_from(text: &str, at: usize) -> u32 {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    let at = if at == start || end - start > LONG_LINE {
        at
    } else {
        (end + 1).min(text.len())
    };
    at as u32
}

/// What of a text that is too long says most without a look at what is needed: its head and its
/// tail, or the most telling elements of JSON, which come with it.
fn best_of(text: &str, max_bytes: usize) -> (Vec<Span>, Option<Elements>) {
    if text.len() > max_bytes
        && let Some(elements) = Elements::of(text)
    {
        return (elements.outline(text, max_bytes), Some(elements));
    }
    let Some((head, tail)) = head_and_tail(text, max_bytes) else {
        return (Vec::new(), None);
    };
    let head = whole_lines_up_to(text, head.len());
    let tail = whole_lines_from(text, text.len() - tail.len());
    let end = text.strip_suffix('\n').unwrap_or(text).len() as u32;
    let spans = [Span::new(0, head), Span::new(tail.min(end), end)];
    let spans = spans.into_iter().filter(|span| span.bytes() > 0);
    (spans.collect(), None)
}

/// The best use of `room`.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
#[allow(clippy::too_many_arguments, reason = "what a choice rests on")]
pub(crate) fn keep<T: Text>(
    transcript: &Transcript<T>,
    settings: &Settings,
    index: &Index,
    memo: &mut Memo,
    plan: &Plan,
    soft: &[usize],
    room: Room,
    squeeze: Squeeze,
) -> Result<Outcome> {
    let (newest_words, newest_names) = newest_of(transcript, transcript.len(), NEWEST, usize::MAX);
    let likelihoods = &settings.policy.likelihood;
    let weights = if index.is_dialogue() {
        &likelihoods.dialogue
    } else {
        &likelihoods.agent
    };
    let marker = settings.counter.count(MARKER_SAMPLE)?;
    let mut keeper = Keeper {
        transcript,
        settings,
        plan,
        room,
        squeeze,
        moment: Moment {
            weights,
            index,
            messages: index.len() as u32,
            newest_words: &newest_words,
            newest_names: &newest_names,
        },
        marker,
        memo: RefCell::new(memo),
        likely: RefCell::default(),
        pinned: Names::default(),
        numbers: NameMap::default(),
        instance: Instance::default(),
        spans: Vec::new(),
        pieces: Vec::new(),
        steps: Vec::new(),
        rulings: rulings(transcript, settings, plan, soft),
        standing: Vec::new(),
        places: Vec::new(),
        fragments: Vec::new(),
        fragment_lines: Vec::new(),
    };
    keeper.read_pinned();
    let recent = keeper.recent(soft);
    for (place, &at) in soft.iter().enumerate() {
        keeper.read_step(at, place >= recent);
    }
    keeper.choose()
}

/// A marker as long as any: what it costs to leave lines out.
const MARKER_SAMPLE: &str = "[… 120 lines left out; page_in(\"p_123456789012345678\")]";

/// A part that can be replaced.
struct Piece {
    part: u32,
    message: u32,
    /// Its lines in the instance.
    lines: Range<u32>,
    is_call: bool,
    /// Bytes of its text without the blank ones at the end.
    bytes: u32,
}

/// A soft step.
struct Step {
    shown: usize,
    pieces: Range<usize>,
    /// Nothing of it may change.
    is_whole: bool,
    is_recent: bool,
}

struct Keeper<'a, T> {
    transcript: &'a Transcript<T>,
    settings: &'a Settings,
    plan: &'a Plan,
    room: Room,
    squeeze: Squeeze,
    moment: Moment<'a>,
    /// Tokens of a marker.
    marker: u32,
    /// How texts are divided.
    memo: RefCell<&'a mut Memo>,
    /// What stubs may name, by their parts: the same however often a choice is taken back.
    likely: RefCell<BTreeMap<u32, Vec<String>>>,
    /// Identifiers that are always there.
    pinned: Names,
    /// Number of each identifier in the instance.
    numbers: NameMap<u32>,
    instance: Instance,
    /// The bytes of each line of the instance.
    spans: Vec<Span>,
    pieces: Vec<Piece>,
    steps: Vec<Step>,
    /// What rules make of the results of tools, by their parts.
    rulings: BTreeMap<u32, Ruling>,
    /// Lines of user text that read like standing instructions, and how much.
    standing: Vec<(Claim, u32)>,
    /// Identifiers on long lines.
    places: Vec<Placed>,
    /// Pieces of long lines, numbered after the lines: the line, and the bytes.
    fragments: Vec<(u32, Span)>,
    fragment_lines: Vec<Line>,
}

/// How much a line has a claim to stay, the strongest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// A word of a rule in the user's text.
    Hint,
    /// The form of a rule in a short answer to an action, which may be the user's.
    Answer,
    /// The form of a rule in the user's text.
    Rule,
}

/// Bytes up to which an answer to an action may be the user's own words.
const SHORT_ANSWER: usize = 400;

/// An identifier on a long line.
struct Placed {
    /// Index of its part.
    part: u32,
    /// The line in the instance.
    line: u32,
    /// Its number.
    name: u32,
    /// Its bytes.
    span: Span,
}

impl<T: Text> Keeper<'_, T> {
    /// The identifiers of the messages that stay.
    fn read_pinned(&mut self) {
        for shown in self.plan.shown.iter() {
            if hard_reason(self.transcript, &self.plan.pins, shown.step).is_none() {
                continue;
            }
            let bounds = self.transcript.steps()[shown.step as usize];
            for message in bounds.first as usize..bounds.end as usize {
                for part in self
                    .transcript
                    .parts(message)
                    .iter()
                    .filter(|part| is_read(part))
                {
                    with_text(&part.body, |text| {
                        self.pinned.extend(scan(part, text).map(|found| found.hash));
                    });
                }
            }
        }
    }

    /// Where the newest steps begin that stay whole: at most `recent_steps`, while together they
    /// take at most `recent` of the free part.
    fn recent(&self, soft: &[usize]) -> usize {
        let policy = &self.settings.policy;
        let most = (policy.recent * self.room.free as f64) as u64;
        let mut first = soft.len();
        let mut tokens = 0;
        let steps = match self.squeeze {
            Squeeze::None
                if self.transcript.is_conversation()
                    && self.room.free < u64::from(policy.small_tokens) =>
            {
                policy.recent_steps.min(1) as usize
            }
            Squeeze::None => policy.recent_steps as usize,
            _ => 0,
        };
        for (place, &at) in soft.iter().enumerate().rev().take(steps) {
            tokens += u64::from(self.plan.shown[at].tokens);
            if tokens > most {
                break;
            }
            first = place;
        }
        first
    }

    fn read_step(&mut self, at: usize, is_recent: bool) {
        let shown = &self.plan.shown[at];
        let bounds = self.transcript.steps()[shown.step as usize];
        let group = self.instance.groups.len() as u32;
        let first_piece = self.pieces.len();
        let is_newest = bounds.end as usize == self.transcript.len();
        let share = |share: f64| (share * self.room.free as f64) as u64;
        let policy = &self.settings.policy;
        let newest = self.transcript.len() - 1;
        let newest_tokens = u64::from(self.transcript.rows()[newest].tokens);
        let newest_stays =
            is_newest && self.squeeze == Squeeze::None && newest_tokens <= share(policy.newest);
        let mut floor = u64::from(shown.placeholder_tokens);
        let mut free_names = Vec::new();
        let mut holds_protected = false;
        let mut edits = shown.edits.iter().peekable();
        for message in bounds.first as usize..bounds.end as usize {
            floor += u64::from(self.transcript.rows()[message].overhead);
            for part in self.transcript.part_range(message) {
                let edit = edits.next_if(|edit| edit.part as usize == part);
                let is_protected_result = self.squeeze == Squeeze::None
                    && self.rulings.get(&(part as u32)) == Some(&Ruling::Protected);
                holds_protected |= is_protected_result;
                let stays = is_recent
                    || is_protected_result
                    || (newest_stays && message == newest)
                    || (is_protected(self.transcript, message)
                        && self.transcript.all_parts()[part].kind != PartKind::Result);
                floor += self.read_part(group, message, part, edit, stays, &mut free_names);
            }
        }
        free_names.sort_unstable();
        free_names.dedup();
        let start = self.instance.names.len() as u32;
        self.instance.names.extend(free_names);
        let end = self.instance.names.len() as u32;
        if policy.is_without(Ablation::Opening) {
            floor = 0;
        }
        let must_stay = is_newest
            || holds_protected
            || is_recent
            || (bounds.first as usize..bounds.end as usize)
                .any(|message| is_protected(self.transcript, message));
        self.instance.groups.push(Group {
            tokens: (floor * UNIT) as u32,
            names: start..end,
            is_open: must_stay,
        });
        if start < end {
            // The step may be worth opening for what comes with it.
            self.push_line(group, Span::default(), 0, &mut Vec::new());
        }
        self.steps.push(Step {
            shown: at,
            pieces: first_piece..self.pieces.len(),
            is_whole: is_recent,
            is_recent,
        });
    }

    /// Offers what a part has and returns the tokens it takes if nothing of that is kept.
    fn read_part(
        &mut self,
        group: u32,
        message: usize,
        part: usize,
        edit: Option<&PartEdit>,
        stays: bool,
        free_names: &mut Vec<u32>,
    ) -> u64 {
        let content = &self.transcript.all_parts()[part];
        let tokens = edit.map_or(content.tokens, |edit| edit.tokens);
        let is_call = content.kind == PartKind::Call;
        let least = self.least_tokens(content);
        let is_fixed =
            stays || !content.place.is_replaceable() || least.is_none_or(|least| least >= tokens);
        if is_fixed {
            if is_read(content) && (!is_call || edit.is_none()) {
                let places = self.places.len();
                with_text(&content.body, |text| {
                    let kept = edit.map(|edit| &edit.kept[..]);
                    self.read_lines(message, part, content, text, kept, |_, _, names| {
                        free_names.append(names);
                    });
                });
                self.places.truncate(places);
                if !stays && edit.is_none() {
                    self.claim_short(group, message, content);
                }
            }
            return u64::from(tokens);
        }
        let least = least.unwrap_or(tokens);
        let first = self.instance.lines.len() as u32;
        let mut bytes = u32::MAX;
        if is_read(content) && (!is_call || edit.is_none()) {
            with_text(&content.body, |text| {
                bytes = text.trim_end().len() as u32;
                self.offer(group, message, part, content, text, edit, least);
            });
        }
        self.pieces.push(Piece {
            part: part as u32,
            message: message as u32,
            lines: first..self.instance.lines.len() as u32,
            is_call,
            bytes,
        });
        u64::from(least)
    }

    /// Tokens of a part once it is replaced by a marker; `None` if it cannot be.
    fn least_tokens(&self, part: &Part<T>) -> Option<u32> {
        match part.kind {
            PartKind::Text
            | PartKind::Result
            | PartKind::Image
            | PartKind::Audio
            | PartKind::File => Some(self.marker),
            // The name stays; a placeholder object is about as long as a marker.
            PartKind::Call => Some(self.marker + 4),
            PartKind::Reasoning | PartKind::Opaque => None,
        }
    }

    #[allow(clippy::too_many_arguments, reason = "what is known of one part")]
    fn offer(
        &mut self,
        group: u32,
        message: usize,
        part: usize,
        content: &Part<T>,
        text: &str,
        edit: Option<&PartEdit>,
        least: u32,
    ) {
        if content.kind == PartKind::Call {
            let tokens = u64::from(content.tokens - least) * UNIT;
            self.read_lines(message, part, content, text, None, |keeper, line, names| {
                if !names.is_empty() {
                    let span = Span::new(line.start, line.end);
                    keeper.push_line(group, span, tokens as u32, names);
                }
            });
            return;
        }
        let per_byte = f64::from(content.tokens) / text.len().max(1) as f64;
        let cost = move |bytes: u32| {
            // The line end, and half a token for what stands in a gap.
            (per_byte * f64::from(bytes + 1) * UNIT as f64).ceil() as u32 + UNIT as u32 / 2
        };
        let kept = edit.map(|edit| &edit.kept[..]);
        let is_worthless = self.rulings.get(&(part as u32)) == Some(&Ruling::Worthless);
        // Whole, a part has no marker.
        let is_one = edit.is_none() && !text.trim_end().contains('\n');
        let whole = (u64::from(content.tokens - least) * UNIT).max(1) as u32;
        let places = self.places.len();
        self.read_lines(message, part, content, text, kept, |keeper, line, names| {
            if is_worthless {
                return;
            }
            let words = &text[line.start as usize..line.end as usize];
            let claim = keeper.claim(message, content, text.len(), words);
            if !names.is_empty() || claim.is_some() {
                let span = Span::new(line.start, line.end);
                let tokens = if is_one { whole } else { cost(line.bytes()) };
                let number = keeper.push_line(group, span, tokens, names);
                keeper.standing.extend(claim.map(|claim| (claim, number)));
            }
        });
        if is_worthless {
            // None of its lines can be taken, so no fragment of one can.
            self.places.truncate(places);
        }
        let is_newest = message + 1 == self.transcript.len();
        if is_newest && edit.is_none() && self.squeeze != Squeeze::All {
            // A newest message that leaves no room: its head and its tail.
            let parts = self.transcript.parts(message).len() as u64;
            let tokens = (self.room.target / 2 / parts.max(1)).max(16) as f64;
            for span in best_of(text, (tokens / per_byte) as usize).0 {
                let number = self.push_line(group, span, cost(span.bytes()), &mut Vec::new());
                self.instance.forced.push(number);
            }
        }
    }

    /// How much a line of a text of `bytes` has a claim to stay: words of the user, and of nobody
    /// else, who may say what holds from now on.
    fn claim(&self, message: usize, content: &Part<T>, bytes: usize, line: &str) -> Option<Claim> {
        let row = self.transcript.rows()[message];
        let is_user_text = row.is_user && content.kind == PartKind::Text;
        if !is_user_text || self.squeeze != Squeeze::None {
            return None;
        }
        let is_short = bytes <= SHORT_ANSWER;
        match (standing(line), row.is_answer) {
            (Standing::Rule, false) => Some(Claim::Rule),
            (Standing::Rule, true) if is_short => Some(Claim::Answer),
            (Standing::Hint, false) => Some(Claim::Hint),
            _ => None,
        }
    }

    /// A text too short to be replaced may be a rule: it costs nothing but its message.
    fn claim_short(&mut self, group: u32, message: usize, content: &Part<T>) {
        let claim = with_text(&content.body, |text| {
            let lines = text.lines();
            lines
                .filter_map(|line| self.claim(message, content, text.len(), line))
                .max()
        });
        if let Some(claim) = claim {
            let number = self.push_line(group, Span::default(), 0, &mut Vec::new());
            self.standing.push((claim, number));
        }
    }

    /// Calls `visit` with every visible line and the numbers of its identifiers that count.
    fn read_lines(
        &mut self,
        message: usize,
        part: usize,
        content: &Part<T>,
        text: &str,
        kept: Option<&[Span]>,
        mut visit: impl FnMut(&mut Self, LineAt, &mut Vec<u32>),
    ) {
        let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count() as u32 + 1;
        let row = self.transcript.rows()[message];
        let policy = &self.settings.policy;
        let mut names = Vec::new();
        let mut next = kept.unwrap_or(&[]).iter().peekable();
        let is_visible = |line: LineAt| {
            while next.next_if(|span| span.end < line.end).is_some() {}
            kept.is_none() || next.peek().is_some_and(|span| span.start <= line.start)
        };
        scan_some_lines(content, text, is_visible, |line, number, found| {
            let line = LineAt {
                part: part as u32,
                ..line
            };
            names.clear();
            let words = &text[line.start as usize..line.end as usize];
            let mut spot = None;
            let is_long = words.len() > LONG_LINE && content.kind != PartKind::Call;
            for identifier in found {
                let Some(known) = self.moment.index.get(identifier.hash).copied() else {
                    continue;
                };
                let is_old = known.newest as usize != message;
                if (is_old && !policy.is_without(Ablation::Newest))
                    || self.pinned.contains(&identifier.hash)
                {
                    continue;
                }
                let next_number = self.instance.values.len() as u32;
                let number_of = if policy.is_without(Ablation::Coverage) {
                    next_number
                } else {
                    *self.numbers.entry(identifier.hash).or_insert(next_number)
                };
                if number_of == next_number || known.line == line {
                    let spot = *spot.get_or_insert_with(|| {
                        let present = |hash: &u64| self.moment.newest_names.contains(hash);
                        let company = found.iter().filter(|one| present(&one.hash)).count();
                        Moment::spot(words, number, lines, company as u32)
                    });
                    let name = &text[identifier.start..identifier.end];
                    let value = self
                        .moment
                        .likelihood(name, identifier.hash, &known, &row, spot);
                    match self.instance.values.get_mut(number_of as usize) {
                        Some(worth) => *worth = value,
                        None => self.instance.values.push(value),
                    }
                }
                names.push(number_of);
                if is_long {
                    self.places.push(Placed {
                        part: part as u32,
                        line: self.instance.lines.len() as u32,
                        name: number_of,
                        span: Span::new(identifier.start as u32, identifier.end as u32),
                    });
                }
            }
            names.sort_unstable();
            names.dedup();
            visit(self, line, &mut names);
        });
    }

    fn push_line(&mut self, group: u32, span: Span, tokens: u32, names: &mut Vec<u32>) -> u32 {
        let start = self.instance.names.len() as u32;
        self.instance.names.append(names);
        let number = self.instance.lines.len() as u32;
        self.instance.lines.push(Line {
            group,
            tokens,
            names: start..self.instance.names.len() as u32,
        });
        self.spans.push(span);
        number
    }
}
