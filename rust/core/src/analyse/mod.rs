//! The terms of a text, by which recall finds it: one tokeniser for every store, so that all rank
//! alike.
//!
//! A term is made of lower-case letters and digits only, at most [`MAX_BYTES`] long, so that it is
//! one token for an ASCII tokeniser of `SQLite`'s FTS5 and one lexeme for `PostgreSQL`. The same text
//! gives the same terms everywhere. Terms come in the order of the text and repeat as often as it
//! does; stop words are among them, [`is_stop_word`] tells which.
//!
//! * English words are stemmed (Porter 2); letters are folded (NFKC, accents of Latin letters off).
//! * Names such as `user_id`, `HttpServer`, `v1.2` give their words and the whole.
//! * Numbers stay; thousands separators go; `2024-03-15` gives its numbers and `2024x03x15`.
//! * Korean words give the pairs of their syllables, without a particle at the end; Chinese,
//!   Japanese and other scripts without spaces give pairs of characters.
//!
//! Cost: linear in the text.

mod fold;
mod pairs;
mod stop_words;
mod word;

use fold::folded;
pub use stop_words::{STOP_WORDS, is_stop_word};

/// The longest term in bytes; what is longer is cut there.
pub const MAX_BYTES: usize = 64;

/// The terms of a text.
///
/// # Example
/// ```
/// use satchel_core::analyse::analyse;
/// assert_eq!(analyse("The cafés opened"), ["the", "cafe", "open"]);
/// assert_eq!(analyse("userId: 1,024"), ["user", "id", "userid", "1024"]);
/// assert_eq!(analyse("회의록을 보냈다"), ["회의", "의록", "보냈", "냈다"]);
/// ```
pub fn analyse(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    each_term(text, |term| terms.push(term.to_owned()));
    terms
}

/// Calls `found` with each term of a text, in order.
pub fn each_term(text: &str, found: impl FnMut(&str)) {
    let folded = folded(text);
    let mut reader = Reader {
        rest: folded.as_ref(),
        words: word::Words::new(),
        pairs: pairs::Pairs::default(),
        found,
    };
    while reader.next_run() {}
}

/// What a character is to the analyser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// A letter of a script with spaces, or a digit.
    Word,
    /// A syllable of Hangul.
    Hangul,
    /// A character of a script without spaces.
    Dense,
    /// A combining mark or an invisible joiner: part of the word, not of the term.
    Mark,
    /// Separates.
    Other,
}

fn class_of(char: char) -> Class {
    if char.is_ascii() {
        return if char.is_ascii_alphanumeric() {
            Class::Word
        } else {
            Class::Other
        };
    }
    match u32::from(char) {
        0xAD | 0x200B..=0x200D | 0x2060 | 0xFE00..=0xFE0F | 0xFEFF => Class::Mark,
        0xAC00..=0xD7A3 => Class::Hangul,
        // Thai, Lao, Myanmar, Khmer, loose jamo, kana, bopomofo, Han, and the planes of Han.
        0x0E00..=0x0EFF
        | 0x1000..=0x109F
        | 0x1100..=0x11FF
        | 0x1780..=0x17FF
        | 0x2E80..=0x2FDF
        | 0x3005..=0x3007
        | 0x3040..=0x318F
        | 0x31A0..=0x31BF
        | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xA960..=0xA97F
        | 0xD7B0..=0xD7FF
        | 0xF900..=0xFAFF
        | 0x1B000..=0x1B16F
        | 0x20000..=0x3FFFF
            if char.is_alphanumeric() =>
        {
            Class::Dense
        }
        _ if char.is_alphanumeric() => Class::Word,
        _ if unicode_normalization::char::is_combining_mark(char) => Class::Mark,
        _ => Class::Other,
    }
}

struct Reader<'a, F> {
    rest: &'a str,
    words: word::Words,
    pairs: pairs::Pairs,
    found: F,
}

impl<F: FnMut(&str)> Reader<'_, F> {
    /// Reads one run of characters of one class; false at the end.
    fn next_run(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        match class_of(first) {
            Class::Word => {
                self.rest = self.words.read(self.rest);
                self.words.give(&mut self.found);
                let is_glued = self.rest.chars().next().map(class_of) == Some(Class::Hangul);
                if is_glued {
                    self.rest = self.pairs.read(self.rest, Class::Hangul);
                    self.pairs
                        .give_hangul(self.words.last_number(), true, &mut self.found);
                }
            }
            Class::Hangul => {
                self.rest = self.pairs.read(self.rest, Class::Hangul);
                self.pairs.give_hangul(None, false, &mut self.found);
            }
            Class::Dense => {
                self.rest = self.pairs.read(self.rest, Class::Dense);
                self.pairs.give_dense(&mut self.found);
            }
            Class::Mark | Class::Other => {
                self.rest = self.rest.get(first.len_utf8()..).unwrap_or_default();
            }
        }
        true
    }
}
