//! Character classes of the two pre-tokenizers, one table look-up each.
//!
//! Unicode 16.0 general categories; `data/classes.txt` is checked against the regular expression
//! crate for every code point by the tests.

use super::vocabulary::{Aligned, table};

/// Lu, Lt, Lm, Lo, M: may open a word.
pub(super) const UPPER: u8 = 1;
/// Ll, Lm, Lo, M: may close a word.
pub(super) const LOWER: u8 = 2;
/// M. Also has [`UPPER`] and [`LOWER`].
pub(super) const MARK: u8 = 4;
/// N.
pub(super) const NUMBER: u8 = 8;
/// `White_Space`.
pub(super) const SPACE: u8 = 16;
/// Carriage return and line feed. Also have [`SPACE`].
pub(super) const NEWLINE: u8 = 32;
/// No character: the end of the text.
pub(super) const END: u8 = 64;

/// Letters of either case, and marks.
pub(super) const WORD: u8 = UPPER | LOWER;

table!(INDEX, "classes.index");
table!(BLOCKS, "classes.blocks");

/// Classes of the ASCII characters; 0 for every byte of a longer character.
pub(super) const ASCII: [u8; 256] = ascii();

const fn ascii() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = match byte as u8 {
            b'A'..=b'Z' => UPPER,
            b'a'..=b'z' => LOWER,
            b'0'..=b'9' => NUMBER,
            b'\r' | b'\n' => SPACE | NEWLINE,
            b' ' | 0x09 | 0x0B | 0x0C => SPACE,
            _ => 0,
        };
        byte += 1;
    }
    classes
}

/// Class and length of the character that starts at byte `at`, or `(END, 0)`.
#[inline]
pub(super) fn class_at(text: &[u8], at: usize) -> (u8, usize) {
    match text.get(at) {
        None => (END, 0),
        Some(&byte) if byte < 0x80 => (ASCII[usize::from(byte)], 1),
        Some(&byte) => wide(text, at, byte),
    }
}

/// [`class_at`] of a character of two to four bytes; `text` is valid UTF-8.
#[inline]
fn wide(text: &[u8], at: usize, first: u8) -> (u8, usize) {
    let tail = |i: usize| u32::from(text.get(at + i).copied().unwrap_or(0) & 0x3F);
    let first = u32::from(first);
    let (code, length) = if first < 0xE0 {
        ((first & 0x1F) << 6 | tail(1), 2)
    } else if first < 0xF0 {
        ((first & 0x0F) << 12 | tail(1) << 6 | tail(2), 3)
    } else {
        let high = (first & 0x07) << 18 | tail(1) << 12;
        (high | tail(2) << 6 | tail(3), 4)
    };
    (class_of(code), length)
}

/// Class of a code point.
#[inline]
pub(super) fn class_of(code: u32) -> u8 {
    let block = INDEX.0.get(code as usize >> 7).copied().unwrap_or(0);
    let at = usize::from(block) << 7 | (code as usize & 127);
    BLOCKS.0.get(at).copied().unwrap_or(0)
}
