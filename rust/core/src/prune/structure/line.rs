//! Lines: where they start and end, what stands before their content, and their templates.

use indexmap::IndexMap;
use memchr::{memchr, memchr_iter};

use super::Unit;

/// One unit a line, its line end included.
pub(crate) fn units(text: &str) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut start = 0;
    for at in memchr_iter(b'\n', text.as_bytes()) {
        units.push(Unit::new(start, at + 1));
        start = at + 1;
    }
    if start < text.len() {
        units.push(Unit::new(start, text.len()));
    }
    units
}

/// Bytes of a line that are looked at to tell what it is.
const LOOKED_AT: usize = 400;

/// The content of a line: no line end, no trailing white space, at most its first 400 bytes.
pub(crate) fn content(line: &[u8]) -> &[u8] {
    line.get(..LOOKED_AT).unwrap_or(line).trim_ascii_end()
}

/// The content of a unit that is a line.
pub(crate) fn of<'a>(text: &'a str, unit: &Unit) -> &'a [u8] {
    let bytes = text.as_bytes();
    content(
        bytes
            .get(unit.start as usize..unit.end as usize)
            .unwrap_or_default(),
    )
}

/// A line without the number that a viewer wrote before it (`12→`, `12<tab>`, `12:`, `12|`).
pub(crate) fn without_number(line: &[u8]) -> &[u8] {
    match number_length(line) {
        Some(length) => &line[length..],
        None => line,
    }
}

/// Bytes of a line number with the white space before and the sign behind it.
pub(crate) fn number_length(line: &[u8]) -> Option<usize> {
    let indent = line.iter().take_while(|byte| **byte == b' ').count();
    let rest = &line[indent..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=7).contains(&digits) {
        return None;
    }
    let sign = match &rest[digits..] {
        [b'\t' | b':' | b'|', ..] => 1,
        [0xe2, 0x86, 0x92, ..] => 3,
        // A viewer's line that holds nothing loses its white space behind.
        [] if indent > 0 => 0,
        _ => return None,
    };
    Some(indent + digits + sign)
}

const SPACE: u8 = 0;
const LETTER: u8 = 1;
const VARYING: u8 = 2;
const SIGN: u8 = 3;
const QUOTE: u8 = 4;
const CLASS: [u8; 256] = {
    let mut class = [SIGN; 256];
    let mut byte = 0;
    while byte < 256 {
        let c = byte as u8;
        class[byte] = match c {
            b' ' | b'\t' | b'\r' | b'\n' => SPACE,
            b'0'..=b'9' | b'/' | b'\\' => VARYING,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'.' | b'-' | 128.. => LETTER,
            b'"' | b'\'' | b'`' => QUOTE,
            _ => SIGN,
        };
        byte += 1;
    }
    class
};

/// A quoted text longer than this is not taken as one.
const LONGEST_QUOTE: usize = 200;

const START: u64 = 0xcbf2_9ce4_8422_2325;

pub(crate) fn mix(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// FNV-1a, 64 bits.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(START, |hash, byte| mix(hash, *byte))
}

/// The hash of a line in which words with digits (numbers, times, hex, ids), paths and quoted texts
/// all count as the same.
pub(crate) fn template(line: &[u8]) -> u64 {
    let mut hash = START;
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        match CLASS[byte as usize] {
            SPACE => at += 1,
            LETTER | VARYING => {
                let start = at;
                let mut varies = false;
                while let Some(&byte) = line.get(at) {
                    let class = CLASS[byte as usize];
                    if class != LETTER && class != VARYING {
                        break;
                    }
                    varies |= class == VARYING;
                    at += 1;
                }
                if varies {
                    hash = mix(hash, b'#');
                } else {
                    hash = line[start..at]
                        .iter()
                        .fold(hash, |hash, byte| mix(hash, *byte));
                }
                hash = mix(hash, b' ');
            }
            QUOTE => {
                hash = mix(hash, byte);
                let rest = &line[at + 1..];
                let near = rest.get(..LONGEST_QUOTE).unwrap_or(rest);
                // An apostrophe inside a word opens nothing.
                let opens = at == 0 || CLASS[line[at - 1] as usize] != LETTER;
                let length = memchr(byte, near).filter(|_| opens);
                at += 1 + length.map_or(0, |length| length + 1);
            }
            _ => {
                hash = mix(hash, byte);
                at += 1;
            }
        }
    }
    hash
}

/// Numbers for groups in the order in which their keys come up, and how many units each has.
#[derive(Default)]
pub(crate) struct Groups {
    counts: IndexMap<u64, u32>,
}

impl Groups {
    /// The group of `key`, and which of its units this is, from 0.
    pub(crate) fn enter(&mut self, key: u64) -> (u32, u32) {
        let entry = self.counts.entry(key);
        let group = entry.index() as u32;
        let count = entry.or_insert(0);
        *count += 1;
        (group, *count - 1)
    }

    /// Units of a group so far.
    pub(crate) fn count(&self, group: u32) -> u32 {
        self.counts
            .get_index(group as usize)
            .map_or(0, |(_, count)| *count)
    }
}

/// Raises the first and the last lines that hold something: what a text opens and ends with says
/// what it is and how it came out.
pub(crate) fn raise_ends(text: &str, units: &mut [Unit], first: &[f32], last: &[f32]) {
    raise_next(text, units.iter_mut(), first);
    raise_next(text, units.iter_mut().rev(), last);
}

fn raise_next<'a>(text: &str, units: impl Iterator<Item = &'a mut Unit>, weights: &[f32]) {
    let mut weights = weights.iter();
    // White space alone must not make this walk the whole text for nothing more than a few lines.
    for unit in units {
        if of(text, unit).trim_ascii_start().is_empty() {
            continue;
        }
        let Some(weight) = weights.next() else { return };
        unit.raise(*weight);
    }
}
