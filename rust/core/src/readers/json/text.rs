//! Strings of JSON texts, which may hold halves of surrogate pairs.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::node::{Text, write_json_chars};

/// A string of a JSON text; a copy costs nothing, so that messages share the texts of their file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonText(Kept);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kept {
    Utf8(Arc<str>),
    /// UTF-8 in which lone surrogates stand as three bytes.
    Surrogates(Arc<[u8]>),
}

impl JsonText {
    /// The text, unless it has lone surrogates.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Kept::Utf8(text) => Some(text),
            Kept::Surrogates(_) => None,
        }
    }

    /// The text as UTF-8, lone surrogates as three bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Kept::Utf8(text) => text.as_bytes(),
            Kept::Surrogates(bytes) => bytes,
        }
    }

    /// Whether there is nothing, or only white space.
    pub fn is_blank(&self) -> bool {
        self.as_str().is_some_and(|text| text.trim().is_empty())
    }

    /// The pieces one after the other; halves of a pair that meet become one character.
    pub fn concat<'a>(pieces: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut bytes = Vec::new();
        for piece in pieces {
            bytes.extend_from_slice(piece.as_bytes());
        }
        Self::from_bytes(bytes)
    }

    /// From UTF-8 in which lone surrogates may stand as three bytes.
    pub(crate) fn from_slice(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => Self::from_bytes(bytes.to_vec()),
        }
    }

    fn from_bytes(bytes: Vec<u8>) -> Self {
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => return text.into(),
            Err(error) => error.into_bytes(),
        };
        match String::from_utf8(joined_pairs(&bytes)) {
            Ok(text) => text.into(),
            Err(error) => Self(Kept::Surrogates(error.into_bytes().into())),
        }
    }
}

impl From<&str> for JsonText {
    fn from(text: &str) -> Self {
        Self(Kept::Utf8(text.into()))
    }
}

impl From<String> for JsonText {
    fn from(text: String) -> Self {
        Self(Kept::Utf8(text.into()))
    }
}

impl Text for JsonText {
    fn with<R>(&self, read: impl FnOnce(&str) -> R) -> R {
        match &self.0 {
            Kept::Utf8(text) => read(text),
            Kept::Surrogates(bytes) => {
                let mut text = String::with_capacity(bytes.len());
                pieces(bytes, |piece| match piece {
                    Piece::Utf8(run) => text.push_str(run),
                    Piece::Surrogate(_) => text.push(char::REPLACEMENT_CHARACTER),
                });
                read(&text)
            }
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn write_json(&self, out: &mut String) {
        out.push('"');
        match &self.0 {
            Kept::Utf8(text) => write_json_chars(text, out),
            Kept::Surrogates(bytes) => pieces(bytes, |piece| match piece {
                Piece::Utf8(run) => write_json_chars(run, out),
                Piece::Surrogate(unit) => {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }),
        }
        out.push('"');
    }
}

enum Piece<'a> {
    Utf8(&'a str),
    Surrogate(u16),
}

/// Walks through the runs of UTF-8 and the surrogates of `bytes`.
fn pieces(mut bytes: &[u8], mut each: impl FnMut(Piece<'_>)) {
    while !bytes.is_empty() {
        let (run, rest) = match std::str::from_utf8(bytes) {
            Ok(run) => (run, &[][..]),
            Err(error) => {
                let (run, rest) = bytes.split_at(error.valid_up_to());
                (std::str::from_utf8(run).unwrap_or_default(), rest)
            }
        };
        if !run.is_empty() {
            each(Piece::Utf8(run));
        }
        bytes = match rest {
            [0xED, second @ 0xA0..=0xBF, third, rest @ ..] => {
                let unit = 0xD000 | (u16::from(second & 0x3F) << 6) | u16::from(third & 0x3F);
                each(Piece::Surrogate(unit));
                rest
            }
            [_, rest @ ..] => rest,
            [] => rest,
        };
    }
}

fn joined_pairs(bytes: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(bytes.len());
    let mut high = None;
    pieces(bytes, |piece| match piece {
        Piece::Utf8(run) => {
            push_unit(&mut joined, high.take());
            joined.extend_from_slice(run.as_bytes());
        }
        Piece::Surrogate(unit) => {
            let before = high.take();
            if let Some(both) = before.and_then(|before| pair(before, unit)) {
                push_char(&mut joined, both);
            } else {
                push_unit(&mut joined, before);
                high = Some(unit);
            }
        }
    });
    push_unit(&mut joined, high);
    joined
}

pub(super) fn pair(high: u16, low: u16) -> Option<char> {
    if !(0xD800..0xDC00).contains(&high) || !(0xDC00..0xE000).contains(&low) {
        return None;
    }
    char::from_u32(0x1_0000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(low) - 0xDC00))
}

pub(super) fn push_char(bytes: &mut Vec<u8>, char: char) {
    bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
}

pub(super) fn push_unit(bytes: &mut Vec<u8>, unit: Option<u16>) {
    if let Some(unit) = unit {
        push_three(bytes, unit);
    }
}

/// Appends a unit of 0x800 or more as three bytes, as UTF-8 does for all but surrogates.
pub(super) fn push_three(bytes: &mut Vec<u8>, unit: u16) {
    let below = |shift: u32| 0x80 | (unit >> shift) as u8 & 0x3F;
    bytes.extend_from_slice(&[0xE0 | (unit >> 12) as u8, below(6), below(0)]);
}
