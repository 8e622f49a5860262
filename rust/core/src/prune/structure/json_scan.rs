//! A scanner of JSON that checks a text and divides it into elements, without a tree.
//!
//! A container is divided if it is large; small ones are one element, so that a record stays
//! whole. Large strings with line ends inside are divided into their lines. The scanner keeps a
//! stack of open containers, bounded by the depth limit, and the units that it returns.

use crate::node::MAX_DEPTH;

use super::table::number;
use super::{Unit, line};

/// The least weight of a row that holds an extreme number.
const EXTREME: f32 = 0.45;

/// Bytes up to which an object in an array stays one element.
const ROW_BYTES: usize = 600;
/// Bytes up to which any other container does.
const CONTAINER_BYTES: usize = 200;
/// Bytes from which a string is divided into its lines.
const STRING_BYTES: usize = 400;
const STRING_LINES: usize = 4;
/// Containers below this depth are never divided.
const DIVIDED_DEPTH: usize = 16;
/// Keys of which the extreme numbers are looked for.
const RANGES: usize = 8;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scan {
    pub(crate) units: Vec<Unit>,
    /// A number for the form of each unit: the keys of an object, the type of anything else.
    pub(crate) shapes: Vec<u64>,
}

/// An array or object that is not closed yet.
struct Open {
    is_object: bool,
    unit: usize,
    shape: u64,
    is_empty: bool,
    /// Of an array of objects: extreme numbers and the units that hold them, by key.
    ranges: Vec<Range>,
}

struct Range {
    key: u64,
    least: (f64, usize),
    greatest: (f64, usize),
}

/// What the scanner waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// A value, or the end of an array that is empty.
    ValueOrEnd,
    Value,
    /// A key, or the end of an object that is empty.
    KeyOrEnd,
    Key,
    /// A separator or the end of the container.
    Next,
}

/// Checks a text and, if `DIVIDES`, returns its elements. `None` if it is not one JSON object or array.
pub(crate) fn scan<const DIVIDES: bool>(text: &str) -> Option<Scan> {
    let bytes = text.as_bytes();
    let mut scanner = Scanner::<DIVIDES>::default();
    let mut at = skip_space(bytes, 0);
    if !matches!(bytes.get(at), Some(b'{' | b'[')) {
        return None;
    }
    let mut wait = Wait::Value;
    loop {
        at = skip_space(bytes, at);
        let &byte = bytes.get(at)?;
        match (wait, byte) {
            (Wait::Next, b',') => {
                let is_object = scanner.open.last()?.is_object;
                wait = if is_object { Wait::Key } else { Wait::Value };
                at += 1;
            }
            (Wait::Next | Wait::ValueOrEnd, b']') | (Wait::Next | Wait::KeyOrEnd, b'}') => {
                at += 1;
                scanner.close(byte, at)?;
                wait = Wait::Next;
                if scanner.open.is_empty() {
                    return (skip_space(bytes, at) == bytes.len()).then_some(scanner.found);
                }
            }
            (Wait::KeyOrEnd | Wait::Key, b'"') => {
                at = scanner.key(bytes, at)?;
                wait = Wait::Value;
            }
            (Wait::ValueOrEnd | Wait::Value, _) => (at, wait) = scanner.value(bytes, at, byte)?,
            _ => return None,
        }
    }
}

/// The state of a scan. `DIVIDES` is false where only validity is asked.
#[derive(Default)]
struct Scanner<const DIVIDES: bool> {
    found: Scan,
    open: Vec<Open>,
    /// Offsets behind the escaped line ends of the current string.
    breaks: Vec<usize>,
    /// Where the current element starts: at its key if it has one.
    element: usize,
    /// The hash of its key.
    key: u64,
}

impl<const DIVIDES: bool> Scanner<DIVIDES> {
    /// A key and its colon; the offset behind them.
    fn key(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        self.element = at;
        let end = string::<false>(bytes, at, &mut self.breaks)?;
        if DIVIDES {
            self.key = line::hash(bytes.get(at + 1..end - 1)?);
            let object = self.open.last_mut()?;
            object.shape = object.shape.wrapping_add(self.key | 1);
            object.is_empty = false;
        }
        let colon = skip_space(bytes, end);
        (bytes.get(colon) == Some(&b':')).then_some(colon + 1)
    }

    /// A scalar, or the opening of a container; the offset behind it and what comes next.
    fn value(&mut self, bytes: &[u8], at: usize, byte: u8) -> Option<(usize, Wait)> {
        match self.open.last_mut() {
            Some(container) if container.is_object => {}
            Some(container) => {
                container.is_empty = false;
                self.element = at;
            }
            None => self.element = at,
        }
        let parent = self.open.last().map(|container| container.unit);
        match byte {
            b'{' | b'[' => {
                // As deep as other readers of JSON go.
                if self.open.len() + 1 >= MAX_DEPTH {
                    return None;
                }
                let is_object = byte == b'{';
                self.open.push(Open {
                    is_object,
                    unit: self.found.units.len(),
                    shape: u64::from(byte),
                    is_empty: true,
                    ranges: Vec::new(),
                });
                if DIVIDES {
                    self.found
                        .push(self.element, at + 1, parent, u64::from(byte));
                }
                let wait = if is_object {
                    Wait::KeyOrEnd
                } else {
                    Wait::ValueOrEnd
                };
                Some((at + 1, wait))
            }
            b'"' => {
                self.breaks.clear();
                let end = string::<DIVIDES>(bytes, at, &mut self.breaks)?;
                if DIVIDES {
                    self.found
                        .push_string(self.element, at, end, parent, &self.breaks);
                }
                Some((end, Wait::Next))
            }
            _ => {
                let end = scalar(bytes, at)?;
                if DIVIDES {
                    let is_number = !byte.is_ascii_alphabetic();
                    self.found
                        .push(self.element, end, parent, u64::from(is_number));
                    note_number(&mut self.open, self.key, bytes.get(at..end)?);
                }
                Some((end, Wait::Next))
            }
        }
    }

    /// The end of the innermost container.
    fn close(&mut self, byte: u8, end: usize) -> Option<()> {
        let closed = self.open.pop()?;
        if DIVIDES {
            self.found.close(&closed, end, &self.open);
        }
        (closed.is_object == (byte == b'}')).then_some(())
    }
}

/// Remembers the number of a row if it is the least or the greatest of its key so far.
fn note_number(open: &mut [Open], key: u64, digits: &[u8]) {
    let [.., array, row] = open else { return };
    if array.is_object || !row.is_object {
        return;
    }
    let Some(value) = number(digits) else { return };
    let is_full = array.ranges.len() >= RANGES;
    let known = array.ranges.iter_mut().find(|range| range.key == key);
    match known {
        Some(range) => {
            if value < range.least.0 {
                range.least = (value, row.unit);
            }
            if value > range.greatest.0 {
                range.greatest = (value, row.unit);
            }
        }
        None if !is_full => array.ranges.push(Range {
            key,
            least: (value, row.unit),
            greatest: (value, row.unit),
        }),
        None => {}
    }
}

impl Scan {
    fn push(&mut self, start: usize, end: usize, parent: Option<usize>, shape: u64) {
        let mut unit = Unit::new(start, end);
        unit.parent = parent.map(|parent| parent as u32);
        self.units.push(unit);
        self.shapes.push(shape);
    }

    /// A string; its lines are units of their own if it is large. `breaks` are the offsets behind
    /// its line ends.
    fn push_string(
        &mut self,
        element: usize,
        start: usize,
        end: usize,
        parent: Option<usize>,
        breaks: &[usize],
    ) {
        const STRING: u64 = b'"' as u64;
        if end - start < STRING_BYTES || breaks.len() < STRING_LINES {
            return self.push(element, end, parent, STRING);
        }
        let opening = self.units.len();
        self.push(element, start + 1, parent, STRING);
        let mut from = start + 1;
        for &to in breaks.iter().chain([&(end - 1)]) {
            if from < to {
                self.push(from, to, Some(opening), STRING);
            }
            from = to;
        }
    }

    /// Ends a container: a small one becomes one unit.
    fn close(&mut self, closed: &Open, end: usize, open: &[Open]) {
        let Some(unit) = self.units.get_mut(closed.unit) else {
            return;
        };
        self.shapes[closed.unit] = closed.shape;
        let length = end - unit.start as usize;
        let is_row = closed.is_object && open.last().is_some_and(|outer| !outer.is_object);
        let limit = if is_row { ROW_BYTES } else { CONTAINER_BYTES };
        let is_root = open.is_empty();
        if closed.is_empty || (!is_root && (length <= limit || open.len() >= DIVIDED_DEPTH)) {
            unit.end = end as u32;
            self.units.truncate(closed.unit + 1);
            self.shapes.truncate(closed.unit + 1);
            return;
        }
        for range in closed
            .ranges
            .iter()
            .filter(|range| range.least.0 < range.greatest.0)
        {
            for row in [range.least.1, range.greatest.1] {
                if let Some(unit) = self.units.get_mut(row) {
                    unit.raise(EXTREME);
                }
            }
        }
    }
}

pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\t' | b'\r')) {
        at += 1;
    }
    at
}

/// The offset behind a string that starts at `at`; pushes the offsets behind its escaped line ends.
pub(crate) fn string<const BREAKS: bool>(
    bytes: &[u8],
    at: usize,
    breaks: &mut Vec<usize>,
) -> Option<usize> {
    let mut at = at + 1;
    loop {
        match *bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => match *bytes.get(at + 1)? {
                b'u' => {
                    let digits = bytes.get(at + 2..at + 6)?;
                    if !digits.iter().all(u8::is_ascii_hexdigit) {
                        return None;
                    }
                    at += 6;
                }
                escaped @ (b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                    at += 2;
                    if BREAKS && escaped == b'n' {
                        breaks.push(at);
                    }
                }
                _ => return None,
            },
            ..0x20 => return None,
            _ => at += 1,
        }
    }
}

/// The offset behind a number or a literal.
fn scalar(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    for literal in ["true", "false", "null"] {
        if rest.starts_with(literal.as_bytes()) {
            return Some(at + literal.len());
        }
    }
    let digits = |from: usize| {
        let count = rest[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        (count > 0).then_some(from + count)
    };
    let start = usize::from(rest.first() == Some(&b'-'));
    let mut end = digits(start)?;
    if rest.get(start) == Some(&b'0') && end > start + 1 {
        return None;
    }
    if rest.get(end) == Some(&b'.') {
        end = digits(end + 1)?;
    }
    if matches!(rest.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
        end = digits(end + 1 + sign)?;
    }
    Some(at + end)
}
