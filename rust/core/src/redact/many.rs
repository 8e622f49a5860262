//! Many texts redacted as one: the same value has the same placeholder in all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Kind, Kinds, find, placeholder};

/// Replaces values in the texts of one conversation. It holds the values; its `Debug` shows none.
pub struct Redactor {
    kinds: Kinds,
    known: BTreeMap<(Kind, Box<[u8]>), u32>,
    /// Numbers that the texts write themselves.
    written: BTreeSet<(Kind, u32)>,
    /// The last number given.
    last: BTreeMap<Kind, u32>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Redactor")
            .field("values", &self.known.len())
            .finish_non_exhaustive()
    }
}

impl Redactor {
    /// One that knows no value yet.
    pub fn new(kinds: Kinds) -> Self {
        Self {
            kinds,
            known: BTreeMap::new(),
            written: BTreeSet::new(),
            last: BTreeMap::new(),
        }
    }

    /// Leaves out the numbers of placeholders that stand in a text already. To be asked about every
    /// text before the first is redacted.
    pub fn avoid(&mut self, text: &[u8]) {
        for at in memchr::memchr_iter(b'[', text) {
            let rest = text.get(at + 1..).unwrap_or_default();
            let label = rest
                .iter()
                .take_while(|byte| byte.is_ascii_uppercase() || **byte == b'_')
                .count();
            let (label, rest) = rest.split_at(label);
            let kind = Kind::ALL
                .into_iter()
                .find(|kind| label.strip_suffix(b"_") == Some(kind.label().as_bytes()));
            let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let number = rest
                .get(..count.min(10))
                .and_then(|digits| std::str::from_utf8(digits).ok())
                .and_then(|digits| digits.parse().ok());
            self.written.extend(kind.zip(number));
        }
    }

    /// The text with placeholders, and how many; `None` where there is nothing to replace.
    ///
    /// # Example
    /// ```
    /// use satchel_core::redact::{Kinds, Redactor};
    /// let mut redactor = Redactor::new(Kinds::ALL);
    /// assert_eq!(redactor.redact(b"kim@example.com").unwrap().0, b"[EMAIL_1]");
    /// assert_eq!(redactor.redact(b"lee@example.com").unwrap().0, b"[EMAIL_2]");
    /// assert_eq!(redactor.redact(b"to kim@example.com").unwrap().0, b"to [EMAIL_1]");
    /// assert_eq!(redactor.redact(b"to nobody"), None);
    /// ```
    pub fn redact(&mut self, text: &[u8]) -> Option<(Vec<u8>, usize)> {
        let spans = find(text, self.kinds);
        if spans.is_empty() {
            return None;
        }
        let mut redacted = Vec::with_capacity(text.len());
        let mut copied = 0;
        for span in &spans {
            let value = text.get(span.start..span.end).unwrap_or_default();
            let number = self.number(span.kind, value);
            redacted.extend_from_slice(text.get(copied..span.start).unwrap_or_default());
            redacted.extend_from_slice(placeholder(span.kind, number).as_bytes());
            copied = span.end;
        }
        redacted.extend_from_slice(text.get(copied..).unwrap_or_default());
        Some((redacted, spans.len()))
    }

    fn number(&mut self, kind: Kind, value: &[u8]) -> u32 {
        if let Some(number) = self.known.get(&(kind, value.into())) {
            return *number;
        }
        let last = self.last.entry(kind).or_default();
        loop {
            *last += 1;
            if !self.written.contains(&(kind, *last)) {
                break;
            }
        }
        self.known.insert((kind, value.into()), *last);
        *last
    }
}
