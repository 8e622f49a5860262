//! Personal data and secrets in a text, and the text without them.
//!
//! Works on bytes, since what is to be cleaned may hold anything; UTF-8, also with the halves of
//! surrogate pairs, stays so, as every span starts and ends at an ASCII character or around one.
//! A value is found by its form: prefix, length, alphabet, check digits, or the name it is given.
//! Cost: linear in the text, whatever it holds: one pass finds where something may start, and what
//! looks further from there looks at a bounded number of bytes or goes on behind them.

mod blocks;
mod digits;
mod edges;
mod email;
mod iban;
mod keys;
mod kind;
mod many;
mod named;
mod phone;
mod scan;
mod urls;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use kind::{Kind, Kinds};
pub use many::Redactor;

/// A value in a text: bytes `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What it is.
    pub kind: Kind,
    /// Its first byte.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
}

/// A text without its values. Its `Debug` shows no content.
#[derive(Clone, PartialEq, Eq)]
pub struct Redacted {
    /// The text with a placeholder such as `[EMAIL_1]` for each value; the same value has the same
    /// number, numbers that the text itself writes in such brackets are left out.
    pub text: Vec<u8>,
    /// Where the values were in the original, in order, without overlap.
    pub spans: Vec<Span>,
    /// The number in the placeholder of each span.
    pub numbers: Vec<u32>,
}

impl fmt::Debug for Redacted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Redacted")
            .field("bytes", &self.text.len())
            .field("spans", &self.spans.len())
            .finish_non_exhaustive()
    }
}

/// The values of some kinds in a text, in order, without overlap. Of values inside one another the
/// outer one counts; values that overlap become one, of the first one's kind.
///
/// # Example
/// ```
/// use satchel_core::redact::{Kind, Kinds, find};
/// let spans = find(b"mail kim@example.com", Kinds::ALL);
/// assert_eq!((spans[0].kind, spans[0].start, spans[0].end), (Kind::Email, 5, 20));
/// ```
pub fn find(text: &[u8], kinds: Kinds) -> Vec<Span> {
    let mut found = scan::scan(text);
    found.retain(|span| kinds.contains(span.kind));
    found.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end), span.kind));
    let mut spans: Vec<Span> = Vec::with_capacity(found.len());
    for span in found {
        match spans.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            _ => spans.push(span),
        }
    }
    spans
}

/// The text with placeholders for the values of some kinds.
///
/// # Example
/// ```
/// use satchel_core::redact::{Kinds, redact};
/// let redacted = redact(b"kim@example.com, 010-1234-5678, kim@example.com", Kinds::ALL);
/// assert_eq!(redacted.text, b"[EMAIL_1], [PHONE_1], [EMAIL_1]");
/// ```
pub fn redact(text: &[u8], kinds: Kinds) -> Redacted {
    let spans = find(text, kinds);
    let mut numbers = Vec::with_capacity(spans.len());
    let mut redacted = Vec::with_capacity(text.len());
    let mut known: BTreeMap<(Kind, &[u8]), u32> = BTreeMap::new();
    let mut taken: BTreeMap<Kind, Taken> = BTreeMap::new();
    let mut copied = 0;
    for span in &spans {
        let value = text.get(span.start..span.end).unwrap_or_default();
        let number = *known.entry((span.kind, value)).or_insert_with(|| {
            taken
                .entry(span.kind)
                .or_insert_with(|| Taken::read(text, span.kind))
                .next()
        });
        numbers.push(number);
        redacted.extend_from_slice(text.get(copied..span.start).unwrap_or_default());
        redacted.extend_from_slice(placeholder(span.kind, number).as_bytes());
        copied = span.end;
    }
    redacted.extend_from_slice(text.get(copied..).unwrap_or_default());
    Redacted {
        text: redacted,
        spans,
        numbers,
    }
}

/// What stands for a value: `[CARD_2]`.
pub fn placeholder(kind: Kind, number: u32) -> String {
    format!("[{}_{number}]", kind.label())
}

/// Numbers of placeholders that a text writes itself, and the last one given.
struct Taken {
    written: BTreeSet<u32>,
    last: u32,
}

impl Taken {
    fn read(text: &[u8], kind: Kind) -> Self {
        let head = format!("[{}_", kind.label());
        let written = memchr::memmem::find_iter(text, &head)
            .filter_map(|at| {
                let rest = text.get(at + head.len()..)?;
                let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                std::str::from_utf8(rest.get(..count.min(10))?)
                    .ok()?
                    .parse()
                    .ok()
            })
            .collect();
        Self { written, last: 0 }
    }

    fn next(&mut self) -> u32 {
        loop {
            self.last += 1;
            if !self.written.contains(&self.last) {
                return self.last;
            }
        }
    }
}
