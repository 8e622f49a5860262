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

use super::signals::{Signals, signals_in};

/// Below this many tokens a message is short: the founding rule's own limit.
pub const SHORT_BELOW: u32 = 10;

/// Above this many tokens a message is long; counting stops there.
pub const LONG_ABOVE: u32 = 100;

/// Columns that a score is made of; all of the length of the history.
#[derive(Clone, Debug, Default)]
pub struct Features {
    /// Who speaks; `None` where that cannot be read.
    pub roles: Vec<Option<Role>>,
    /// Tokens of the content text, exact up to [`LONG_ABOVE`]; longer texts have one more.
    pub tokens: Vec<u32>,
    /// What the text says.
    pub signals: Vec<Signals>,
    /// A few words that carry nothing: no call, no identifier, no signal.
    pub brief: Vec<bool>,
    /// 0..1: how many of the message's identifiers come up again later, `n / (n + 2)`.
    pub references: Vec<f32>,
    /// 0..1: the share of the query's terms in the text, rare terms weighing more.
    pub query: Vec<f32>,
}

impl Features {
    /// The columns of the weight set `"keywords"`: roles, tokens and the six Korean and code
    /// signs of that formula. `references` and `query` are 0, `brief` is false.
    ///
    /// # Errors
    /// `counter_failed`, only from a foreign counter.
    pub fn keywords<T: Text>(messages: &[Content<T>], counter: &Counter) -> Result<Self> {
        let signals = messages.iter().map(|message| {
            let mut found = Signals::default();
            for text in &message.texts {
                found = found.union(text.with(keyword_signals));
            }
            found
        });
        Ok(Self {
            roles: messages.iter().map(|message| message.role).collect(),
            signals: signals.collect(),
            brief: vec![false; messages.len()],
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
        let mut features = Self {
            roles: messages.iter().map(|message| message.role).collect(),
            query: overlap(messages, query),
            ..Self::default()
        };
        let mut later = IndexSet::<u64>::new();
        let mut own = Vec::new();
        // From the end, so that what comes later is known; the columns are turned round below.
        for (message, tokens) in messages.iter().zip(&tokens).rev() {
            own.clear();
            let mut found = Signals::default();
            for text in &message.texts {
                text.with(|text| {
                    found = found.union(signals_in(text));
                    scan(text, &mut own);
                });
            }
            for call in &message.calls {
                scan_value(call, &mut own);
            }
            own.sort_unstable();
            own.dedup();
            let again = own.iter().filter(|name| later.contains(*name)).count() as f32;
            let found = heard(found, message.role);
            features.signals.push(found);
            features.references.push(again / (again + 2.0));
            features.brief.push(
                *tokens < SHORT_BELOW
                    && message.link == Link::Plain
                    && own.is_empty()
                    && found == Signals::default(),
            );
            later.extend(own.iter().copied());
        }
        features.signals.reverse();
        features.references.reverse();
        features.brief.reverse();
        features.tokens = tokens;
        Ok(features)
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
        found = found.union(Signals::CODE);
    }
    if !text.is_ascii() {
        if has("결정") || has("확정") {
            found = found.union(Signals::DECISION);
        }
        if has("중요") || has("반드시") {
            found = found.union(Signals::CONSTRAINT);
        }
        if has("코드") {
            found = found.union(Signals::CODE);
        }
    }
    found
}

/// The signals that count in the mouth of `role`: constraints where a person or the application
/// speaks, decisions where the model does too, failures where a tool answers. A log that says
/// "must" sets no rule.
fn heard(found: Signals, role: Option<Role>) -> Signals {
    let counted: &[Signals] = match role {
        Some(Role::Tool) => &[Signals::ERROR, Signals::CODE],
        Some(Role::Assistant) => &[Signals::DECISION, Signals::CODE],
        _ => &[Signals::DECISION, Signals::CONSTRAINT, Signals::CODE],
    };
    let held = counted.iter().filter(|signal| found.contains(**signal));
    held.fold(Signals::default(), |all, signal| all.union(*signal))
}

/// Pushes the hashes of the identifiers in a text.
fn scan(text: &str, identifiers: &mut Vec<u64>) {
    runs(text, |run| {
        if is_identifier(run) {
            identifiers.push(hash(run.as_bytes()));
        }
    });
}

fn scan_value<T: Text>(value: &Value<T>, identifiers: &mut Vec<u64>) {
    match value {
        Value::Text(text) => text.with(|text| scan(text, identifiers)),
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
pub(crate) fn runs<'a>(text: &'a str, mut emit: impl FnMut(&'a str)) {
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
pub(crate) fn is_identifier(run: &str) -> bool {
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
