//! A list that is read while it comes, so that it is never in memory both as text and as values.
//!
//! Only the first value of a file, and only if it is long: a conversation in one JSON list may be as
//! long as memory allows once, but not twice.

use super::json::{Json, JsonError, parse_items};

/// Bytes of a first line from which it is read as a list while it comes.
pub(super) const LONG: usize = 8 << 20;

/// A list of which some items are read.
#[derive(Debug, Default)]
pub(super) struct LongList {
    items: Vec<Json>,
    /// Whether the bracket that opens it was read.
    is_open: bool,
    /// Lines and characters on the last of them before what is not read yet.
    lines: usize,
    chars: usize,
    /// Whether the bracket that closes it was read.
    is_closed: bool,
    /// Bytes that there must be before it is looked at again, as long as an item is not complete.
    least: usize,
}

/// How far a list is.
#[derive(Debug)]
pub(super) enum Progress {
    /// It goes on, or is broken: more bytes would tell.
    Open(JsonError),
    /// It is complete, and nothing else stands on its line, which ends before this byte; nor, if
    /// it has several lines, in what there is.
    Closed(Vec<Json>, usize),
}

impl LongList {
    /// Whether a list begins here.
    pub(super) fn begins(text: &[u8]) -> bool {
        text.trim_ascii_start().first() == Some(&b'[')
    }

    /// Whether it is worth looking at so many bytes, all that are not read yet.
    pub(super) fn wants(&self, bytes: usize) -> bool {
        bytes >= self.least
    }

    /// Reads items and takes their bytes out of the buffer. Without `is_end` more bytes may come.
    pub(super) fn read(&mut self, buffer: &mut Vec<u8>, is_end: bool) -> Progress {
        if self.is_closed {
            return self.read_behind(buffer, is_end);
        }
        let text = match std::str::from_utf8(buffer) {
            Ok(text) => text,
            Err(error) => {
                let valid = buffer.get(..error.valid_up_to()).unwrap_or_default();
                std::str::from_utf8(valid).unwrap_or_default()
            }
        };
        let (read, end) = parse_items(text, &mut self.items, &mut self.is_open);
        let taken = text.get(..read).unwrap_or_default();
        let line = match taken.rfind('\n') {
            Some(at) => {
                self.lines += memchr::memchr_iter(b'\n', taken.as_bytes()).count();
                self.chars = 0;
                taken.get(at + 1..).unwrap_or_default()
            }
            None => taken,
        };
        self.chars += line.chars().count();
        match end {
            None => {
                self.is_closed = true;
                buffer.drain(..read);
                self.read_behind(buffer, is_end)
            }
            Some(error) => {
                buffer.drain(..read);
                // What is not complete is read from its beginning again: not with every few bytes.
                self.least = 2 * buffer.len();
                Progress::Open(JsonError {
                    at: error.at - read,
                    ..error
                })
            }
        }
    }

    /// Looks at what follows the list: on its line, or in the file if it has several lines.
    fn read_behind(&mut self, buffer: &[u8], is_end: bool) -> Progress {
        let line = match self.lines {
            0 => memchr::memchr(b'\n', buffer),
            _ => None,
        };
        let end = line.unwrap_or(buffer.len());
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let more = buffer.iter().take(end).position(|byte| !is_blank(byte));
        if more.is_none() && (is_end || line.is_some()) {
            return Progress::Closed(std::mem::take(&mut self.items), end);
        }
        // What is wrong is told with all that follows, so there is nothing to look at before.
        self.least = if more.is_some() { usize::MAX } else { 0 };
        Progress::Open(JsonError {
            at: more.unwrap_or(end),
            expected: "the end",
        })
    }

    /// Whether lines behind it can be no records: it is complete, over several lines.
    pub(super) fn is_document(&self) -> bool {
        self.is_closed && self.lines > 0
    }

    /// Lines before what is not read yet, and characters before it on its line.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.lines, self.chars)
    }
}
