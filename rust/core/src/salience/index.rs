//! What is known about every identifier of a log: where its newest copy stands, how often it was
//! seen and used.
//!
//! The index is a function of the messages it has read and of nothing else, so that a rebuild finds
//! the same. It is advanced at boundaries only, once a compaction is near, and reads each message
//! once: linear in the log. Memory: about 80 bytes an identifier, 40 a name part and 12 a message,
//! at most [`MOST`] identifiers.

use std::hash::{BuildHasherDefault, Hasher};

use indexmap::map::Entry;
use indexmap::{IndexMap, IndexSet};

use super::identifiers::{
    Form, Identifier, Identifiers, identifiers, json_identifiers, line_identifiers,
    looks_like_json, name_parts,
};
use crate::keep::Memo;
use crate::message::{Body, Part, PartKind, Role};
use crate::node::Text;
use crate::shrink::with_text;
use crate::transcript::Transcript;

/// Identifiers that are kept. Beyond it, those that no action ever used go, oldest first, until
/// half of it is left.
pub const MOST: usize = 1 << 17;

/// A reuse counts as late if the copy before is at least this many messages old.
const GAP: u32 = 5;

/// Names from which a part is not looked up: a word in many names tells nothing.
const MOST_NAMES: usize = 32;

/// Bytes from which a line is too long to come back.
pub(crate) const LONG_LINE: u32 = 960;

/// Passes a hash on as it is: names are hashed already.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed(u64);

impl Hasher for Passed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A set of hashed names or words.
pub type Names = IndexSet<u64, BuildHasherDefault<Passed>>;

/// A map from hashed names.
pub type NameMap<V> = IndexMap<u64, V, BuildHasherDefault<Passed>>;

/// A line of a part: bytes of its text, without the line end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineAt {
    /// Index of the part in [`Transcript::all_parts`].
    pub part: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl LineAt {
    /// Bytes of the line.
    pub fn bytes(self) -> u32 {
        self.end - self.start
    }
}

/// What is known of one identifier.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "signs that have nothing to do with each other"
)]
pub struct Known {
    /// Raw index of the newest message that holds it.
    pub newest: u32,
    /// The shortest line of that message with it.
    pub line: LineAt,
    /// First byte of the identifier in the part's text, on that line.
    pub start: u32,
    /// Bytes of the identifier.
    pub bytes: u16,
    /// What it looks like.
    pub form: Form,
    /// Whether it stands in the action of the newest message.
    pub in_action: bool,
    /// Whether a user ever wrote it.
    pub by_user: bool,
    /// Whether it was first seen in an action.
    pub first_in_action: bool,
    /// Whether it came up again after a gap.
    pub reused: bool,
    /// Messages that hold it.
    pub seen: u32,
    /// Messages whose action holds it.
    pub acted: u32,
    /// Share of its words that the task held when it was first seen.
    pub in_task: f32,
    /// Tokens of the line, by its share of the text's bytes.
    pub tokens: f32,
}

/// Where an identifier stood before the message that holds it now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Again {
    /// Messages that held it before.
    pub(crate) seen: u32,
    /// Raw index of the message that holds it now.
    pub(crate) message: u32,
    /// Raw index of the message before that held it.
    pub(crate) before: u32,
    /// The line there.
    pub(crate) line: LineAt,
}

/// How many identifiers and name parts are known at some time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    names: u32,
    parts: u32,
}

/// Every identifier of the messages read so far.
#[derive(Clone, Debug, Default)]
pub struct Index {
    names: NameMap<Known>,
    /// Name part → positions in `names`.
    parts: NameMap<Places>,
    /// Distinct identifiers of each message.
    counts: Vec<u32>,
    /// What was known after each message.
    extents: Vec<Extent>,
    /// Words of the leading instructions and the goal.
    task: Names,
    /// User messages that do not follow one.
    turns: u32,
    /// Whether the newest message is one.
    spoke: bool,
    assistants: u32,
    /// Assistant messages that act in fenced text.
    fenced: u32,
    /// How often identifiers were forgotten.
    forgotten: u32,
    /// Where the identifiers of the newest two messages stood before.
    again: Vec<Again>,
    /// What the choices of lines found out about single parts.
    pub(crate) memo: Memo,
}

impl Index {
    /// Messages read.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether nothing was read yet.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// What is known of the identifier with this hash.
    pub fn get(&self, hash: u64) -> Option<&Known> {
        self.names.get(&hash)
    }

    /// Distinct identifiers of a message.
    pub fn count_of(&self, message: usize) -> u32 {
        self.counts.get(message).copied().unwrap_or(0)
    }

    /// Where the identifiers of the newest two messages read stood before.
    pub(crate) fn again(&self) -> &[Again] {
        &self.again
    }

    /// How often identifiers were forgotten, which makes room for new ones.
    pub(crate) fn forgotten(&self) -> u32 {
        self.forgotten
    }

    /// Words of the leading instructions and the goal.
    pub fn task(&self) -> &Names {
        &self.task
    }

    /// Whether this is a dialogue: more than a fifth of the messages begin a turn of the user's, and
    /// they are not the answers to actions that the assistant writes into fenced text.
    pub fn is_dialogue(&self) -> bool {
        let acts_in_text = self.fenced * 2 > self.assistants;
        u64::from(self.turns) * 5 > self.counts.len() as u64 && !acts_in_text
    }

    /// How much was known once the messages before `end` were read.
    pub(crate) fn extent(&self, end: usize) -> Extent {
        let last = end.min(self.len()).checked_sub(1);
        last.and_then(|last| self.extents.get(last))
            .copied()
            .unwrap_or_default()
    }

    /// The identifiers with a name part that were within the extent, oldest first; none if there
    /// were too many to tell anything.
    pub(crate) fn with_part(
        &self,
        part: u64,
        extent: Extent,
    ) -> impl Iterator<Item = (u64, &Known)> {
        let places = self.parts.get_full(&part);
        let places = places.filter(|&(at, ..)| at < extent.parts as usize);
        let places = places.map_or(&[][..], |(_, _, places)| places.as_slice());
        let old = places.partition_point(|&place| place < extent.names);
        let old = if old > MOST_NAMES { 0 } else { old };
        places[..old].iter().filter_map(|&at| {
            let (hash, known) = self.names.get_index(at as usize)?;
            Some((*hash, known))
        })
    }

    /// Reads the messages up to `end` that were not read yet.
    pub fn advance<T: Text>(&mut self, transcript: &Transcript<T>, end: usize) {
        for message in self.len()..end.min(transcript.len()) {
            self.read(transcript, message);
            self.extents.push(Extent {
                names: self.names.len() as u32,
                parts: self.parts.len() as u32,
            });
            if self.names.len() > MOST {
                self.forget_half();
            }
        }
    }

    fn read<T: Text>(&mut self, transcript: &Transcript<T>, message: usize) {
        let row = transcript.rows()[message];
        self.again
            .retain(|again| again.message as usize + 1 >= message);
        let is_result = |part: &Part<T>| part.kind == PartKind::Result;
        // What a client puts beside results is not the user's turn.
        let speaks =
            row.is_user && !row.is_answer && !transcript.parts(message).iter().any(is_result);
        self.turns += u32::from(speaks && !self.spoke);
        self.spoke = speaks;
        self.assistants += u32::from(row.role == Role::Assistant);
        let is_task = message < transcript.instructions_end() || transcript.goal() == Some(message);
        let acts = row.role == Role::Assistant && !has_calls(transcript, message);
        let (mut count, mut has_fence) = (0, false);
        for part in transcript.part_range(message) {
            let content = &transcript.all_parts()[part];
            if !is_read(content) {
                continue;
            }
            with_text(&content.body, |text| {
                if is_task {
                    self.task.extend(name_parts(text));
                }
                let mut reading = Reading {
                    message: message as u32,
                    part: part as u32,
                    by_user: row.is_user && content.kind == PartKind::Text,
                    is_call: content.kind == PartKind::Call,
                    is_fenced: false,
                    per_byte: content.tokens as f32 / text.len().max(1) as f32,
                };
                scan_lines(content, text, |line, found| {
                    if acts && text[line.start as usize..line.end as usize].starts_with("```") {
                        reading.is_fenced = !reading.is_fenced;
                        has_fence = true;
                    }
                    for identifier in found {
                        self.note(&reading, line, identifier, text, &mut count);
                    }
                });
            });
        }
        self.fenced += u32::from(has_fence);
        self.counts.push(count);
    }

    fn note(
        &mut self,
        reading: &Reading,
        line: LineAt,
        found: &Identifier,
        text: &str,
        count: &mut u32,
    ) {
        let line = LineAt {
            part: reading.part,
            ..line
        };
        let in_action = reading.is_call || reading.is_fenced;
        let tokens = (reading.per_byte * (line.bytes() + 1) as f32).max(1.0);
        let at = self.names.len() as u32;
        let mut is_new = false;
        let known = self.names.entry(found.hash).or_insert_with(|| {
            is_new = true;
            Known {
                newest: reading.message,
                line,
                start: found.start as u32,
                bytes: (found.end - found.start) as u16,
                form: found.form,
                in_action,
                by_user: reading.by_user,
                first_in_action: in_action,
                reused: false,
                seen: 1,
                acted: u32::from(in_action),
                in_task: 0.0,
                tokens,
            }
        });
        if is_new {
            *count += 1;
            let (mut words, mut in_task) = (0.0f32, 0.0);
            for part in name_parts(&text[found.start..found.end]) {
                words += 1.0;
                in_task += f32::from(u8::from(self.task.contains(&part)));
                match self.parts.entry(part) {
                    Entry::Vacant(entry) => {
                        entry.insert(Places::One(at));
                    }
                    Entry::Occupied(mut entry) => entry.get_mut().push(at),
                }
            }
            known.in_task = in_task / words.max(1.0);
            return;
        }
        known.by_user |= reading.by_user;
        if known.newest == reading.message {
            known.acted += u32::from(in_action && !known.in_action);
            known.in_action |= in_action;
            if line.bytes() >= known.line.bytes() {
                return;
            }
        } else {
            *count += 1;
            known.reused |= reading.message - known.newest >= GAP;
            if known.line.bytes() < LONG_LINE {
                self.again.push(Again {
                    seen: known.seen,
                    message: reading.message,
                    before: known.newest,
                    line: known.line,
                });
            }
            known.newest = reading.message;
            known.seen += 1;
            known.acted += u32::from(in_action);
            known.in_action = in_action;
        }
        known.line = line;
        known.tokens = tokens;
        known.start = found.start as u32;
    }

    /// Forgets the half that matters least: what no action ever used, the oldest first, then what one
    /// did.
    fn forget_half(&mut self) {
        let goal = self.names.len().saturating_sub(MOST / 2);
        let age = |known: &Known| (known.acted > 0, known.newest);
        let mut ages: Vec<_> = self.names.values().map(age).collect();
        ages.sort_unstable();
        let Some(&limit) = ages.get(goal.saturating_sub(1)) else {
            return;
        };
        self.forgotten += 1;
        // Of those that are as old as the last one that goes.
        let mut ties = goal - ages.partition_point(|age| *age < limit);
        let mut places = Vec::with_capacity(self.names.len());
        let mut kept = 0u32;
        self.names.retain(|_, known| {
            let is_tie = age(known) == limit && ties > 0;
            ties -= usize::from(is_tie);
            let stays = age(known) >= limit && !is_tie;
            places.push(stays.then_some(kept));
            kept += u32::from(stays);
            stays
        });
        for names in self.parts.values_mut() {
            names.renumber(&places);
        }
        let mut parts = Vec::with_capacity(self.parts.len() + 1);
        let mut left = 0u32;
        self.parts.retain(|_, names| {
            parts.push(left);
            let stays = !matches!(names, Places::Many(places) if places.is_empty());
            left += u32::from(stays);
            stays
        });
        parts.push(left);
        let mut names = Vec::with_capacity(places.len() + 1);
        let mut left = 0u32;
        for place in &places {
            names.push(left);
            left += u32::from(place.is_some());
        }
        names.push(left);
        let after = |counts: &[u32], at: u32| counts.get(at as usize).copied().unwrap_or(0);
        for extent in &mut self.extents {
            *extent = Extent {
                names: after(&names, extent.names),
                parts: after(&parts, extent.parts),
            };
        }
    }
}

/// Positions in the names, ascending. Most name parts stand in one name only, which takes no
/// allocation.
#[derive(Clone, Debug)]
enum Places {
    One(u32),
    Many(Vec<u32>),
    /// There were too many before names were forgotten, and it stays so.
    TooMany,
}

impl Places {
    fn as_slice(&self) -> &[u32] {
        match self {
            Self::One(at) => std::slice::from_ref(at),
            Self::Many(places) => places,
            Self::TooMany => &[],
        }
    }

    /// Adds the newest position. One beyond the limit says that there are too many.
    fn push(&mut self, at: u32) {
        match self {
            Self::One(first) if *first == at => {}
            Self::One(first) => *self = Self::Many(vec![*first, at]),
            Self::Many(places) => {
                if places.last() != Some(&at) && places.len() <= MOST_NAMES {
                    places.push(at);
                }
            }
            Self::TooMany => {}
        }
    }

    /// Takes in the new positions; those without one go.
    fn renumber(&mut self, places: &[Option<u32>]) {
        let old = self.as_slice();
        *self = if old.is_empty() || old.len() > MOST_NAMES {
            Self::TooMany
        } else {
            let stays = |at: &u32| places.get(*at as usize).copied().flatten();
            Self::Many(old.iter().filter_map(stays).collect())
        };
    }
}

/// Where the scan is.
struct Reading {
    message: u32,
    part: u32,
    by_user: bool,
    is_call: bool,
    is_fenced: bool,
    /// Tokens for each byte of the text.
    per_byte: f32,
}

fn has_calls<T: Text>(transcript: &Transcript<T>, message: usize) -> bool {
    let parts = transcript.parts(message);
    parts.iter().any(|part| part.kind == PartKind::Call)
}

/// Whether a part's text can be needed later: what was said, done and answered, not what was only
/// thought.
pub fn is_read<T: Text>(part: &Part<T>) -> bool {
    matches!(
        part.kind,
        PartKind::Text | PartKind::Call | PartKind::Result
    ) && !matches!(part.body, Body::Empty)
}

/// Whether backslashes in a part's text escape.
fn has_escapes<T: Text>(part: &Part<T>, text: &str) -> bool {
    part.kind == PartKind::Call || looks_like_json(text)
}

/// The identifiers of a part's text.
pub fn scan<'t, T: Text>(part: &Part<T>, text: &'t str) -> Identifiers<'t> {
    if has_escapes(part, text) {
        json_identifiers(text)
    } else {
        identifiers(text)
    }
}

/// Whether an identifier is all of a JSON string with a colon behind it.
fn is_key(bytes: &[u8], identifier: Identifier) -> bool {
    let before = identifier.start.checked_sub(1).and_then(|at| bytes.get(at));
    let mut after = bytes.get(identifier.end..).unwrap_or(&[]).iter();
    before == Some(&b'"')
        && after.next() == Some(&b'"')
        && after.find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

/// Calls `visit` with every line of a part's text and the identifiers on it. The arguments of a
/// call are one line, whatever they hold: they are kept whole or not at all.
pub fn scan_lines<T: Text>(
    part: &Part<T>,
    text: &str,
    mut visit: impl FnMut(LineAt, &[Identifier]),
) {
    scan_some_lines(part, text, |_| true, |line, _, found| visit(line, found));
}

/// [`scan_lines`] for the lines that are `wanted`, with their numbers from 0: nothing else is looked
/// at.
pub(crate) fn scan_some_lines<T: Text>(
    part: &Part<T>,
    text: &str,
    mut wanted: impl FnMut(LineAt) -> bool,
    mut visit: impl FnMut(LineAt, u32, &[Identifier]),
) {
    let bytes = text.as_bytes();
    let escapes = has_escapes(part, text);
    let mut on_line = Vec::new();
    let (mut start, mut number) = (0, 0);
    loop {
        let end = match part.kind {
            PartKind::Call => bytes.len(),
            _ => memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at),
        };
        let line = LineAt {
            part: 0,
            start: start as u32,
            end: end as u32,
        };
        if wanted(line) {
            on_line.clear();
            let found = line_identifiers(bytes, start..end, number, escapes);
            if part.kind == PartKind::Call {
                // The keys of arguments are the tool's, not what it was used on.
                on_line.extend(found.filter(|identifier| !is_key(bytes, *identifier)));
            } else {
                on_line.extend(found);
            }
            visit(line, number, &on_line);
        }
        if end >= bytes.len() {
            return;
        }
        start = end + 1;
        number += 1;
    }
}
