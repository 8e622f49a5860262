//! What a message's text says about its salience: signal words, identifiers, overlap with a query.
//!
//! Every text is scanned once, without regular expressions and without copies. Cost: linear in
//! the text, plus one set lookup per identifier.

use indexmap::{IndexMap, IndexSet};
use memchr::memmem;

use crate::content::Content;
use crate::error::Result;
use crate::message::Role;
use crate::node::{Text, Value};
use crate::tokens::Counter;
use crate::window::Link;

/// Below this many tokens a message is short: the founding rule's own limit.
pub const SHORT_BELOW: u32 = 10;

/// Above this many tokens a message is long; counting stops there.
pub const LONG_ABOVE: u32 = 100;

/// What was found in the text of a message, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals(pub u8);

impl Signals {
    /// A decision or an agreement.
    pub const DECISION: Self = Self(1);
    /// Something that must, must not or is important.
    pub const CONSTRAINT: Self = Self(1 << 1);
    /// Code.
    pub const CODE: Self = Self(1 << 2);
    /// A tool that reports a failure.
    pub const ERROR: Self = Self(1 << 3);
    /// A few words that carry nothing: no call, no identifier, no other signal.
    pub const BRIEF: Self = Self(1 << 4);

    /// Whether all bits of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Columns that a score is made of; all of the length of the history.
#[derive(Clone, Debug, Default)]
pub struct Features {
    /// Who speaks; `None` where that cannot be read.
    pub roles: Vec<Option<Role>>,
    /// Tokens of the content text, exact up to [`LONG_ABOVE`]; longer texts have one more.
    pub tokens: Vec<u32>,
    /// What the text says.
    pub signals: Vec<Signals>,
    /// 0..1: how many of the message's identifiers come up again later, `n / (n + 2)`.
    pub references: Vec<f32>,
    /// 0..1: the share of the query's terms in the text, rare terms weighing more.
    pub query: Vec<f32>,
}

impl Features {
    /// The columns of the weight set `"keywords"`: roles, tokens and the six Korean and code
    /// signs of that formula. `references` and `query` are 0.
    ///
    /// # Errors
    /// `counter_failed`, only from a foreign counter.
    pub fn keywords<T: Text>(messages: &[Content<T>], counter: &Counter) -> Result<Self> {
        let signals = messages.iter().map(|message| {
            let mut found = Signals::default();
            for text in &message.texts {
                text.with(|text| found.add(keyword_signals(text)));
            }
            found
        });
        Ok(Self {
            roles: messages.iter().map(|message| message.role).collect(),
            signals: signals.collect(),
            tokens: count(messages, counter)?,
            references: vec![0.0; messages.len()],
            query: vec![0.0; messages.len()],
        })
    }

    /// The columns of the default weights.
    ///
    /// # Errors
    /// `counter_failed`, only from a foreign counter.
    pub fn read<T: Text>(
        messages: &[Content<T>],
        query: Option<&str>,
        counter: &Counter,
    ) -> Result<Self> {
        let tokens = count(messages, counter)?;
        let mut signals = vec![Signals::default(); messages.len()];
        let mut references = vec![0.0; messages.len()];
        let mut later = IndexSet::<u64>::new();
        let mut own = Vec::new();
        for (index, message) in messages.iter().enumerate().rev() {
            own.clear();
            let mut found = Signals::default();
            for text in &message.texts {
                text.with(|text| found.add(scan(text, message.role, &mut own)));
            }
            for call in &message.calls {
                scan_value(call, &mut own);
            }
            own.sort_unstable();
            own.dedup();
            let again = own.iter().filter(|name| later.contains(*name)).count() as f32;
            let is_brief = tokens
                .get(index)
                .is_some_and(|tokens| *tokens < SHORT_BELOW)
                && message.link == Link::Plain
                && own.is_empty()
                && found == Signals::default();
            if is_brief {
                found.add(Signals::BRIEF);
            }
            if let (Some(signals), Some(reference)) =
                (signals.get_mut(index), references.get_mut(index))
            {
                *signals = found;
                *reference = again / (again + 2.0);
            }
            later.extend(own.iter().copied());
        }
        Ok(Self {
            roles: messages.iter().map(|message| message.role).collect(),
            tokens,
            signals,
            references,
            query: overlap(messages, query),
        })
    }
}

/// Tokens of each message's texts, capped just above [`LONG_ABOVE`].
fn count<T: Text>(messages: &[Content<T>], counter: &Counter) -> Result<Vec<u32>> {
    let limit = u64::from(LONG_ABOVE);
    let counts = crate::content::count_each(messages, counter, limit)?;
    Ok(counts
        .into_iter()
        .map(|count| count.map_or(LONG_ABOVE + 1, |count| count.min(limit + 1) as u32))
        .collect())
}

/// The signs of the weight set `"keywords"`. Its words have no case, so the text is not folded.
fn keyword_signals(text: &str) -> Signals {
    let mut found = Signals::default();
    let bytes = text.as_bytes();
    let has = |word: &str| memmem::find(bytes, word.as_bytes()).is_some();
    if has("```") {
        found.add(Signals::CODE);
    }
    if !text.is_ascii() {
        if has("결정") || has("확정") {
            found.add(Signals::DECISION);
        }
        if has("중요") || has("반드시") {
            found.add(Signals::CONSTRAINT);
        }
        if has("코드") {
            found.add(Signals::CODE);
        }
    }
    found
}

const DECISIONS: [&str; 12] = [
    "agreed",
    "approve",
    "approved",
    "chose",
    "chosen",
    "confirm",
    "confirmed",
    "decide",
    "decided",
    "decision",
    "finalized",
    "settled",
];
const CONSTRAINTS: [&str; 14] = [
    "always",
    "cannot",
    "critical",
    "crucial",
    "essential",
    "forbidden",
    "important",
    "mandatory",
    "must",
    "never",
    "only",
    "remember",
    "required",
    "unless",
];
const ERRORS: [&str; 10] = [
    "denied",
    "error",
    "errors",
    "exception",
    "failed",
    "failure",
    "fatal",
    "panic",
    "timeout",
    "traceback",
];
const KOREAN_DECISIONS: [&str; 5] = ["결정", "확정", "합의", "승인", "하기로"];
const KOREAN_CONSTRAINTS: [&str; 7] = ["중요", "반드시", "절대", "필수", "금지", "꼭 ", "기억해"];
const KOREAN_ERRORS: [&str; 3] = ["오류", "에러", "실패"];

/// Scans one text for signal words and identifiers; pushes the identifiers' hashes.
///
/// Constraints count where a person or the application speaks, decisions where the model does too,
/// failures where a tool answers: a log that says "must" sets no rule.
fn scan(text: &str, role: Option<Role>, identifiers: &mut Vec<u64>) -> Signals {
    let mut found = Signals::default();
    let is_tool = role == Some(Role::Tool);
    let rules = !is_tool && role != Some(Role::Assistant);
    let mut judge = |word: &str| {
        if is_tool {
            if is_in(&ERRORS, word) {
                found.add(Signals::ERROR);
            }
        } else if is_in(&DECISIONS, word) {
            found.add(Signals::DECISION);
        } else if rules && is_in(&CONSTRAINTS, word) {
            found.add(Signals::CONSTRAINT);
        }
    };
    runs(text, |run| {
        if is_identifier(run) {
            identifiers.push(hash(run.as_bytes()));
            // An exception's name is an identifier and a failure at once.
            if is_tool && (run.ends_with("Error") || run.ends_with("Exception")) {
                judge("error");
            }
        } else if run.len() <= 12 {
            let mut lower = [0; 12];
            let lower = &mut lower[..run.len()];
            lower.copy_from_slice(run.as_bytes());
            lower.make_ascii_lowercase();
            if let Ok(word) = std::str::from_utf8(lower) {
                judge(word);
            }
        }
    });
    let bytes = text.as_bytes();
    let has = |word: &&str| memmem::find(bytes, word.as_bytes()).is_some();
    if has(&"```") {
        found.add(Signals::CODE);
    }
    if !text.is_ascii() {
        if is_tool {
            if KOREAN_ERRORS.iter().any(has) {
                found.add(Signals::ERROR);
            }
        } else if KOREAN_DECISIONS.iter().any(has) {
            found.add(Signals::DECISION);
        }
        if rules && KOREAN_CONSTRAINTS.iter().any(has) {
            found.add(Signals::CONSTRAINT);
        }
    }
    found
}

fn is_in(words: &[&str], word: &str) -> bool {
    words.binary_search(&word).is_ok()
}

fn scan_value<T: Text>(value: &Value<T>, identifiers: &mut Vec<u64>) {
    match value {
        Value::Text(text) => text.with(|text| {
            runs(text, |run| {
                if is_identifier(run) {
                    identifiers.push(hash(run.as_bytes()));
                }
            });
        }),
        Value::Number(number) if is_identifier(number) => identifiers.push(hash(number.as_bytes())),
        Value::List(items) => items.iter().for_each(|item| scan_value(item, identifiers)),
        Value::Map(fields) => fields
            .iter()
            .for_each(|(_, field)| scan_value(field, identifiers)),
        _ => {}
    }
}

/// Calls `emit` with each run of ASCII letters, digits and `_./:@#-`, punctuation at its ends
/// taken off.
fn runs<'a>(text: &'a str, mut emit: impl FnMut(&'a str)) {
    let bytes = text.as_bytes();
    let mut start = 0;
    while start < bytes.len() {
        let length = bytes[start..]
            .iter()
            .position(|byte| CLASS[*byte as usize] == OTHER)
            .unwrap_or(bytes.len() - start);
        if length > 1 {
            // Both ends are at ASCII bytes, so the slice is valid.
            if let Some(run) = text.get(start..start + length) {
                let run = run.trim_matches(['.', ':', '/', '-', '@', '#']);
                if run.len() > 1 {
                    emit(run);
                }
            }
        }
        start += length + 1;
    }
}

const OTHER: u8 = 0;
const CLASS: [u8; 256] = {
    let mut class = [OTHER; 256];
    let mut byte = 0;
    while byte < 128 {
        let c = byte as u8;
        if c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'/' | b':' | b'@' | b'#' | b'-')
        {
            class[byte] = 1;
        }
        byte += 1;
    }
    class
};

/// Whether a run looks like a name of one certain thing (a path, an id, a symbol, a number of
/// three digits or more) and not like a word.
fn is_identifier(run: &str) -> bool {
    if !(3..=200).contains(&run.len()) {
        return false;
    }
    let (mut digits, mut letters, mut joined, mut humps) = (0, 0, false, false);
    let mut before = 0;
    for byte in run.bytes() {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'_' | b'/' | b'@' | b'#' | b'.' => joined = true,
            b'A'..=b'Z' => {
                letters += 1;
                humps |= u8::is_ascii_lowercase(&before);
            }
            b'a'..=b'z' => letters += 1,
            _ => {}
        }
        before = byte;
    }
    digits >= 3 || (digits > 0 && letters > 0) || (run.len() > 3 && (joined || humps))
}

/// FNV-1a, 64 bits: the same on every machine and in every run.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(FNV_START, |hash, byte| step(hash, *byte))
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// Words that a question holds whatever it is about.
const STOP_WORDS: [&str; 36] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "did", "do", "does", "for", "from",
    "how", "i", "in", "is", "it", "my", "of", "on", "or", "our", "that", "the", "this", "to",
    "was", "we", "were", "what", "which", "who", "with", "you",
];

/// The share of the query's terms that each message holds. A term weighs `ln(1 + n / df)`, `df`
/// being the number of the `n` messages that hold it; terms that none holds do not count.
fn overlap<T: Text>(messages: &[Content<T>], query: Option<&str>) -> Vec<f32> {
    let mut wanted = IndexMap::<u64, usize>::new();
    if let Some(query) = query {
        let stop: Vec<u64> = STOP_WORDS
            .iter()
            .map(|word| hash(word.as_bytes()))
            .collect();
        terms(query, |term| {
            if !stop.contains(&term) {
                wanted.entry(term).or_insert(0);
            }
        });
    }
    if wanted.is_empty() {
        return vec![0.0; messages.len()];
    }
    let held: Vec<Vec<usize>> = messages
        .iter()
        .map(|message| {
            let mut held = Vec::new();
            for text in &message.texts {
                text.with(|text| {
                    terms(text, |term| held.extend(wanted.get_index_of(&term)));
                });
            }
            held.sort_unstable();
            held.dedup();
            for term in &held {
                if let Some((_, count)) = wanted.get_index_mut(*term) {
                    *count += 1;
                }
            }
            held
        })
        .collect();
    let weight = |df: usize| match df {
        0 => 0.0,
        df => (1.0 + messages.len() as f64 / df as f64).ln(),
    };
    let weights: Vec<f64> = wanted.values().map(|df| weight(*df)).collect();
    let all: f64 = weights.iter().sum();
    held.iter()
        .map(|held| {
            let sum: f64 = held.iter().filter_map(|term| weights.get(*term)).sum();
            if all > 0.0 { (sum / all) as f32 } else { 0.0 }
        })
        .collect()
}

/// Hashes of the search terms of a text: lower-cased words; pairs of neighbouring characters where
/// a script joins its words (Hangul with particles, Han, Kana).
fn terms(text: &str, mut emit: impl FnMut(u64)) {
    let mut word = FNV_START;
    let mut length = 0;
    let mut before = None;
    for c in text.chars() {
        if is_joined(c) {
            if length > 0 {
                emit(word);
            }
            (word, length) = (FNV_START, 0);
            if let Some(before) = before {
                emit(push(push(FNV_START, before), c));
            }
            before = Some(c);
            continue;
        }
        before = None;
        if c.is_alphanumeric() {
            for c in c.to_lowercase() {
                word = push(word, c);
            }
            length += 1;
        } else if length > 0 {
            emit(word);
            (word, length) = (FNV_START, 0);
        }
    }
    if length > 0 {
        emit(word);
    }
}

fn push(hash: u64, c: char) -> u64 {
    let mut buffer = [0; 4];
    c.encode_utf8(&mut buffer).bytes().fold(hash, step)
}

fn is_joined(c: char) -> bool {
    matches!(c, '\u{ac00}'..='\u{d7a3}' | '\u{4e00}'..='\u{9fff}' | '\u{3040}'..='\u{30ff}')
}
