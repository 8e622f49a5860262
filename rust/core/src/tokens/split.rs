//! The pre-tokenizers: where the pieces of a text end, by hand-written scanners.
//!
//! Each scanner gives exactly the matches of its regular expression (quoted at the type), in time
//! linear in the text: no alternative looks further than the run of characters it ends in.

use super::classes::{
    ASCII, END, LOWER, MARK, NEWLINE, NUMBER, SPACE, UPPER, WORD, class_at, class_of,
};

/// The rule that cuts a text into pieces, which are then encoded one by one.
pub(super) trait Split {
    /// End of the piece that starts at byte `at` of a valid UTF-8 text; `at < text.len()`, on a
    /// character border; the result is greater than `at`.
    fn piece_end(text: &[u8], at: usize) -> usize;
}

/// The expression of `o200k_base` and `o200k_harmony`:
///
/// ```text
/// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
/// |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
/// |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
/// ```
///
/// Source: tiktoken 0.14, `tiktoken_ext/openai_public.py`.
pub(super) struct O200k;

/// The expression of `cl100k_base`:
///
/// ```text
/// '(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+
/// |\s++$|\s*[\r\n]|\s+(?!\S)|\s
/// ```
///
/// Source: tiktoken 0.14, `tiktoken_ext/openai_public.py`.
pub(super) struct Cl100k;

impl Split for O200k {
    #[inline]
    fn piece_end(text: &[u8], at: usize) -> usize {
        let (class, length) = class_at(text, at);
        if class & WORD != 0 {
            return if class & MARK == 0 {
                cased_word(text, at)
            } else {
                marked_word(text, at, length)
            };
        }
        if class & NUMBER != 0 {
            return number(text, at + length);
        }
        let next = at + length;
        if class & NEWLINE == 0 && class_at(text, next).0 & WORD != 0 {
            return cased_word(text, next);
        }
        if let Some(end) = symbols(text, at) {
            return newlines(text, end, true);
        }
        let run = spaces(text, at);
        run.after_newline.unwrap_or_else(|| run.but_last(text))
    }
}

impl Split for Cl100k {
    #[inline]
    fn piece_end(text: &[u8], at: usize) -> usize {
        let (class, length) = class_at(text, at);
        if is_letter(class) {
            return letters(text, at + length);
        }
        if text.get(at) == Some(&b'\'') {
            let end = contraction(text, at);
            if end > at {
                return end;
            }
        }
        if class & NUMBER != 0 {
            return number(text, at + length);
        }
        if class & NEWLINE == 0 {
            let (next, next_length) = class_at(text, at + length);
            if is_letter(next) {
                return letters(text, at + length + next_length);
            }
        }
        if let Some(end) = symbols(text, at) {
            return newlines(text, end, false);
        }
        let run = spaces(text, at);
        if run.end == text.len() {
            return run.end;
        }
        run.after_newline.unwrap_or_else(|| run.but_last(text))
    }
}

/// The first safe cut at or after byte `from`, or the end of the text.
///
/// A safe cut is a place where both pre-tokenizers end a piece whatever stands around it: before a
/// space after a character that is no space, or before a line feed after a letter or number. No
/// alternative of either expression crosses it. (After a symbol, a line feed is part of its piece.)
pub(super) fn next_safe_cut(text: &str, from: usize) -> usize {
    let Some(rest) = text.as_bytes().get(from..) else {
        return text.len();
    };
    memchr::memchr2_iter(b' ', b'\n', rest)
        .map(|at| from + at)
        .find(|&at| is_safe_cut(text, at))
        .unwrap_or(text.len())
}

/// The last safe cut at or before byte `from`, or 0. See [`next_safe_cut`].
pub(super) fn previous_safe_cut(text: &str, from: usize) -> usize {
    let Some(rest) = text.as_bytes().get(..=from) else {
        return if from >= text.len() { text.len() } else { 0 };
    };
    memchr::memrchr2_iter(b' ', b'\n', rest)
        .find(|&at| is_safe_cut(text, at))
        .unwrap_or(0)
}

fn is_safe_cut(text: &str, at: usize) -> bool {
    // A space and a line feed are characters of their own, so `at` is on a border.
    let (before, after) = text.split_at(at);
    let Some(last) = before.chars().next_back() else {
        return false;
    };
    let class = class_of(u32::from(last));
    match after.as_bytes().first() {
        Some(b' ') => class & SPACE == 0,
        Some(b'\n') => is_letter(class) || class & NUMBER != 0,
        _ => false,
    }
}

#[inline]
fn is_letter(class: u8) -> bool {
    class & WORD != 0 && class & MARK == 0
}

/// End of `U*L+` or `U+L*` with its contraction, where a letter or mark is at `start`.
#[inline]
fn cased_word(text: &[u8], start: usize) -> usize {
    let mut end = start;
    if let Some(&bytes) = text.get(start..).and_then(|rest| rest.first_chunk::<8>()) {
        end += cased_run(u64::from_le_bytes(bytes));
    }
    if end == start + 8 || end == start {
        // Longer than eight letters, or at the end of the text.
        end = start;
        while ascii(text, end) == UPPER {
            end += 1;
        }
        while ascii(text, end) == LOWER {
            end += 1;
        }
    }
    match text.get(end) {
        None => end,
        Some(b'\'') => contraction(text, end),
        Some(&byte) if byte < 0x80 => end,
        Some(_) => {
            let end = lower_ended(text, start).unwrap_or_else(|end| end);
            contraction(text, end)
        }
    }
}

/// The number of bytes, of eight, in the longest `[A-Z]*[a-z]*` from the lowest byte up.
#[inline]
fn cased_run(bytes: u64) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    // Bit 7 of each byte is set where the byte is at least the letter: the sum of a byte below 128
    // and `128 - letter` carries into bit 7 and not beyond.
    let at_least = |letter: u8| (bytes & !HIGH) + (0x80 - u64::from(letter)) * ONES;
    let ascii = !bytes & HIGH;
    let upper = at_least(b'A') & !at_least(b'Z' + 1) & ascii;
    let lower = at_least(b'a') & !at_least(b'z' + 1) & ascii;
    // The bytes of the leading upper-case run are counted as lower case, so one search finds both.
    let not_upper = !upper & HIGH;
    let before = not_upper & not_upper.wrapping_neg();
    let run = lower | (before.wrapping_sub(1) & HIGH);
    ((!run & HIGH).trailing_zeros() / 8) as usize
}

/// A word that starts with a mark, which may also be the one character before a word.
fn marked_word(text: &[u8], at: usize, length: usize) -> usize {
    let end = match lower_ended(text, at + length) {
        Ok(end) => end,
        // The mark is in both classes, so without it in front the expression always matches.
        Err(_) => lower_ended(text, at).unwrap_or_else(|end| end),
    };
    contraction(text, end)
}

/// End of `U*L+`: back from the run of `U` to its last character that is also in `L`, unless a
/// plain lower-case letter follows the run. `Err` is the end of the run where nothing matches.
fn lower_ended(text: &[u8], start: usize) -> Result<usize, usize> {
    let mut at = start;
    let mut both = None;
    let mut class;
    let mut length;
    loop {
        (class, length) = class_at(text, at);
        if class & UPPER == 0 {
            break;
        }
        at += length;
        if class & LOWER != 0 {
            both = Some(at);
        }
    }
    if class & LOWER == 0 {
        return both.ok_or(at);
    }
    while class & LOWER != 0 {
        at += length;
        (class, length) = class_at(text, at);
    }
    Ok(at)
}

#[inline]
fn ascii(text: &[u8], at: usize) -> u8 {
    text.get(at).map_or(0, |&byte| ASCII[usize::from(byte)])
}

/// End of `(?i:'s|'t|'re|'ve|'m|'ll|'d)` at `at`, or `at`. Long s folds to s.
#[inline]
fn contraction(text: &[u8], at: usize) -> usize {
    let Some([b'\'', tail @ ..]) = text.get(at..) else {
        return at;
    };
    let lower = |byte: &u8| byte.to_ascii_lowercase();
    let length = match (tail.first().map(lower), tail.get(1).map(lower)) {
        (Some(b's' | b't' | b'm' | b'd'), _) => 2,
        // C5 BF is U+017F.
        (Some(b'r' | b'v'), Some(b'e')) | (Some(b'l'), Some(b'l')) | (Some(0xC5), Some(0xBF)) => 3,
        _ => 0,
    };
    at + length
}

/// End of a run of letters that goes on at `at`.
#[inline]
fn letters(text: &[u8], mut at: usize) -> usize {
    loop {
        while ascii(text, at) & WORD != 0 {
            at += 1;
        }
        let (class, length) = class_at(text, at);
        if !is_letter(class) {
            return at;
        }
        at += length;
    }
}

/// End of `\p{N}{1,3}` whose first character ends at `at`.
#[inline]
fn number(text: &[u8], mut at: usize) -> usize {
    for _ in 0..2 {
        let (class, length) = class_at(text, at);
        if class & NUMBER == 0 {
            break;
        }
        at += length;
    }
    at
}

/// End of ` ?[^\s\p{L}\p{N}]+` at `at`.
#[inline]
fn symbols(text: &[u8], at: usize) -> Option<usize> {
    let start = at + usize::from(text.get(at) == Some(&b' '));
    let mut end = start;
    loop {
        let (class, length) = class_at(text, end);
        if class & MARK == 0 && class & (WORD | NUMBER | SPACE | END) != 0 {
            break;
        }
        end += length;
    }
    (end > start).then_some(end)
}

/// End of `[\r\n]*`, or of `[\r\n/]*`, at `at`.
#[inline]
fn newlines(text: &[u8], mut at: usize, slash: bool) -> usize {
    while let Some(&byte) = text.get(at) {
        if byte == b'\n' || byte == b'\r' || (slash && byte == b'/') {
            at += 1;
        } else {
            break;
        }
    }
    at
}

/// A run of white space.
struct Spaces {
    start: usize,
    /// Start of its last character.
    last: usize,
    end: usize,
    /// End of its last line break.
    after_newline: Option<usize>,
}

impl Spaces {
    /// `\s+(?!\S)|\s+`: all but the last character, which belongs to what follows; all of it at the
    /// end of the text or when it is one character.
    #[inline]
    fn but_last(&self, text: &[u8]) -> usize {
        if self.end == text.len() || self.last == self.start {
            self.end
        } else {
            self.last
        }
    }
}

#[inline]
fn spaces(text: &[u8], start: usize) -> Spaces {
    let mut run = Spaces {
        start,
        last: start,
        end: start,
        after_newline: None,
    };
    loop {
        let (class, length) = class_at(text, run.end);
        if class & SPACE == 0 {
            return run;
        }
        run.last = run.end;
        run.end += length;
        if class & NEWLINE != 0 {
            run.after_newline = Some(run.end);
        }
    }
}
