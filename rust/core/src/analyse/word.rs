//! Words, names and numbers of scripts with spaces.

use rust_stemmers::{Algorithm, Stemmer};

use super::fold::push_plain;
use super::{Class, MAX_BYTES, class_of};

/// Words that a run is split into at most; more, and it is encoded data.
const MOST_WORDS: usize = 8;

/// Changes between letters and digits in a run at most; more, and it is a hash or an id.
const MOST_CHANGES: usize = 3;

/// The shortest word that is stemmed.
const MIN_STEMMED: usize = 3;

/// A compound: runs of letters and digits, joined by `_`, `-` or `.`.
pub(super) struct Words {
    stemmer: Stemmer,
    /// Letters and digits as they stand, without what joins them.
    raw: String,
    /// Where in `raw` each run ends.
    ends: Vec<usize>,
    /// Where in a run its words start, but the first.
    starts: Vec<usize>,
    term: String,
    number: String,
}

impl Words {
    pub(super) fn new() -> Self {
        Self {
            stemmer: Stemmer::create(Algorithm::English),
            raw: String::new(),
            ends: Vec::new(),
            starts: Vec::new(),
            term: String::new(),
            number: String::new(),
        }
    }

    /// Reads the compound at the start of a text; what is left of it.
    pub(super) fn read<'a>(&mut self, text: &'a str) -> &'a str {
        self.raw.clear();
        self.ends.clear();
        let mut rest = text;
        while let Some(char) = rest.chars().next() {
            let after = rest.get(char.len_utf8()..).unwrap_or_default();
            rest = match class_of(char) {
                Class::Word => {
                    self.raw.push(char);
                    after
                }
                Class::Mark => after,
                Class::Other if starts_word(after) => match char {
                    '_' | '-' | '.' => {
                        self.ends.push(self.raw.len());
                        after
                    }
                    '\'' | '’' => after.strip_prefix(['s', 'S']).map_or(after, |behind| {
                        // A possessive goes.
                        if starts_word(behind) { after } else { behind }
                    }),
                    ',' if self.ends_in_digit() && groups_thousands(after) => after,
                    _ => break,
                },
                _ => break,
            };
        }
        self.ends.push(self.raw.len());
        rest
    }

    /// The digits that the compound ends with, if it is no longer than a number.
    pub(super) fn last_number(&mut self) -> Option<&str> {
        let tail = self.raw.bytes().rev();
        let count = tail.take_while(u8::is_ascii_digit).count();
        let digits = self.raw.get(self.raw.len() - count..)?;
        self.number.clear();
        self.number.push_str(digits);
        (1..=MAX_BYTES / 2).contains(&count).then_some(&self.number)
    }

    /// The terms of the compound: its words, each run of several words, and the whole.
    pub(super) fn give(&mut self, found: &mut impl FnMut(&str)) {
        let mut start = 0;
        for index in 0..self.ends.len() {
            let Some(&end) = self.ends.get(index) else {
                break;
            };
            self.give_run(start, end, found);
            start = end;
        }
        if self.ends.len() > 1 && self.raw.len() + self.ends.len() <= MAX_BYTES {
            let mut whole = String::with_capacity(MAX_BYTES);
            let mut start = 0;
            for &end in &self.ends {
                let run = self.raw.get(start..end).unwrap_or_default();
                let is_number = run.starts_with(|char: char| char.is_ascii_digit());
                // `1.5` is not `15`.
                if is_number && whole.ends_with(|char: char| char.is_ascii_digit()) {
                    whole.push('x');
                }
                whole.push_str(run);
                start = end;
            }
            self.give_term(&whole, found);
        }
    }

    fn give_run(&mut self, start: usize, end: usize, found: &mut impl FnMut(&str)) {
        let Some(run) = self.raw.get(start..end) else {
            return;
        };
        find_words(run, &mut self.starts);
        let run = std::mem::take(&mut self.raw);
        let text = run.get(start..end).unwrap_or_default();
        let starts = std::mem::take(&mut self.starts);
        let mut from = 0;
        for &at in &starts {
            self.give_term(text.get(from..at).unwrap_or_default(), found);
            from = at;
        }
        self.give_term(text.get(from..).unwrap_or_default(), found);
        if !starts.is_empty() {
            self.give_term(text, found);
        }
        self.raw = run;
        self.starts = starts;
    }

    fn give_term(&mut self, word: &str, found: &mut impl FnMut(&str)) {
        self.term.clear();
        for char in word.chars() {
            push_plain(&mut self.term, char);
            if self.term.len() > MAX_BYTES {
                break;
            }
        }
        while self.term.len() > MAX_BYTES {
            self.term.pop();
        }
        if self.term.is_empty() {
            return;
        }
        let is_english = self.term.bytes().all(|byte| byte.is_ascii_lowercase());
        if is_english && self.term.len() >= MIN_STEMMED {
            found(&self.stemmer.stem(&self.term));
        } else {
            found(&self.term);
        }
    }

    fn ends_in_digit(&self) -> bool {
        self.raw.ends_with(|char: char| char.is_ascii_digit())
    }
}

fn starts_word(text: &str) -> bool {
    text.chars()
        .next()
        .is_some_and(|char| class_of(char) == Class::Word)
}

/// Whether a text starts with exactly three digits.
fn groups_thousands(text: &str) -> bool {
    let digits = text.bytes().take(4);
    digits.take_while(u8::is_ascii_digit).count() == 3
}

/// Where the words of a run start, but the first: where a capital begins one, and between letters
/// and digits. None if it has too many to be a name.
fn find_words(run: &str, starts: &mut Vec<usize>) {
    starts.clear();
    let mut changes = 0;
    let mut chars = run.char_indices().peekable();
    let mut before: Option<char> = None;
    while let Some((at, char)) = chars.next() {
        if let Some(before) = before {
            let is_change = before.is_numeric() != char.is_numeric();
            let next = chars.peek().map(|(_, next)| *next);
            let begins = char.is_uppercase()
                && (before.is_lowercase()
                    || (before.is_uppercase()
                        && next.is_some_and(char::is_lowercase)
                        && !is_plural(run.get(at..).unwrap_or_default())));
            changes += usize::from(is_change);
            if is_change || begins {
                starts.push(at);
            }
            if changes > MOST_CHANGES || starts.len() >= MOST_WORDS {
                starts.clear();
                return;
            }
        }
        before = Some(char);
    }
}

/// Whether the last capital of an abbreviation and the `s` of its plural are left: `URLs`.
fn is_plural(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    chars.next() == Some('s') && chars.next().is_none()
}
