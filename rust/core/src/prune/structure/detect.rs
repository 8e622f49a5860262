//! What a text is made of, told from a sample of its lines.

use super::{Structure, code, diff, json, line, listing, search, table, trace};

/// Lines that are looked at: at the start, in the middle, at the end.
const SAMPLE: [usize; 3] = [80, 40, 40];

/// Bytes that are searched for the lines of one place.
const SAMPLE_BYTES: usize = 16 * 1024;

/// Tells the structure of a text from a sample of at most 160 lines and 48 KiB; JSON alone is read
/// to its end, since half of it is none.
///
/// # Example
/// ```
/// use satchel_core::prune::structure::{Structure, detect};
/// assert_eq!(detect("[{\"id\": 1}, {\"id\": 2}]"), Structure::Json);
/// assert_eq!(detect("src/a.rs:3:fn a() {\nsrc/b.rs:9:fn b() {\n"), Structure::Search);
/// assert_eq!(detect("회의는 세 시에 시작합니다."), Structure::Text);
/// ```
pub fn detect(text: &str) -> Structure {
    let trimmed = text.trim();
    let is_json = trimmed.starts_with('{') && trimmed.ends_with('}')
        || trimmed.starts_with('[') && trimmed.ends_with(']');
    if is_json && json::is_json(text) {
        return Structure::Json;
    }
    let lines = sample(text.as_bytes());
    if lines.is_empty() {
        return Structure::Text;
    }
    Votes::count(&lines).decide()
}

/// Lines of the sample that hold something, in order.
fn sample(bytes: &[u8]) -> Vec<&[u8]> {
    let [first, middle, last] = SAMPLE;
    let mut lines = Vec::with_capacity(first + middle + last);
    let whole = SAMPLE.iter().sum::<usize>();
    if bytes.len() <= SAMPLE_BYTES {
        let all = bytes.split(|byte| *byte == b'\n').map(line::content);
        let held: Vec<&[u8]> = all
            .filter(|line| !line.trim_ascii_start().is_empty())
            .collect();
        if held.len() <= whole {
            return held;
        }
        let half = held.len() / 2;
        lines.extend(&held[..first]);
        lines.extend(held.iter().skip(half).take(middle));
        lines.extend(&held[held.len() - last..]);
        return lines;
    }
    let half = bytes.len() / 2;
    let places = [
        (0, first),
        (half, middle),
        (bytes.len() - SAMPLE_BYTES / 2, last),
    ];
    for (at, most) in places {
        let end = bytes.len().min(at + SAMPLE_BYTES);
        let piece = &bytes[at..end];
        // The first of these is the rest of a line, the last may be cut.
        let whole = piece.split(|byte| *byte == b'\n').skip(usize::from(at > 0));
        let held = whole
            .map(line::content)
            .filter(|line| !line.trim_ascii_start().is_empty());
        lines.extend(held.take(most));
    }
    lines
}

/// How many of the sampled lines look like what.
#[derive(Debug, Default)]
struct Votes {
    lines: usize,
    json: usize,
    hunks: usize,
    file_heads: usize,
    changes: usize,
    frames: usize,
    trace_heads: usize,
    found: usize,
    under_heading: usize,
    names: usize,
    long_names: usize,
    bars: usize,
    code: usize,
    numbered: usize,
    stamped: usize,
    prose: usize,
    is_table: bool,
}

impl Votes {
    fn count(lines: &[&[u8]]) -> Self {
        let mut votes = Self {
            lines: lines.len(),
            numbered: lines
                .iter()
                .filter(|line| line::number_length(line).is_some())
                .count(),
            is_table: table::delimiter(lines).is_some(),
            ..Self::default()
        };
        let numbers = votes.numbered * 10 >= lines.len() * 7;
        let mut before: &[u8] = b"";
        for &whole in lines {
            let line = if numbers {
                line::without_number(whole)
            } else {
                whole
            };
            let trimmed = line.trim_ascii_start();
            votes.json += usize::from(is_json_line(trimmed));
            votes.hunks += usize::from(diff::is_hunk(line));
            votes.file_heads += usize::from(
                line.starts_with(b"diff --git ")
                    || (line.starts_with(b"+++ ") && before.starts_with(b"--- ")),
            );
            votes.changes += usize::from(matches!(line, [b'+' | b'-', ..]));
            votes.frames += usize::from(trace::frame(line).is_some());
            votes.trace_heads += usize::from(trace::is_head(trimmed));
            votes.found += usize::from(search::file_of(line).is_some());
            votes.under_heading += usize::from(search::is_under_heading(line));
            let is_name = listing::is_entry(line);
            votes.names += usize::from(is_name);
            votes.long_names += usize::from(is_name && listing::is_certain(line));
            votes.bars += usize::from(table::has_bars(trimmed));
            votes.code += usize::from(code::looks_like_code(line));
            votes.stamped += usize::from(is_stamped(trimmed));
            votes.prose += usize::from(is_prose(trimmed));
            before = line;
        }
        votes
    }

    fn decide(&self) -> Structure {
        let share = |count: usize, percent: usize| count * 100 >= self.lines * percent;
        if self.lines >= 2 && share(self.json, 80) {
            Structure::JsonLines
        } else if self.hunks + self.file_heads >= 2 && self.changes >= 2
            || (self.hunks >= 1 && self.changes >= 1 && share(self.changes, 10))
        {
            Structure::Diff
        } else if self.frames >= 2
            && (share(self.frames, 25) || self.trace_heads > 0)
            && (share(self.frames, 12) || self.lines < 12)
        {
            Structure::Trace
        } else if self.found >= 2 && share(self.found, 50)
            || (self.found + self.under_heading >= 3
                && share(self.found + self.under_heading, 60)
                && self.names > 0
                && self.numbered * 10 < self.lines * 9
                && self.under_heading > self.found)
        {
            Structure::Search
        } else if self.names >= 2 && share(self.names, 60) && self.long_names * 2 >= self.names {
            Structure::Listing
        } else if self.bars >= 2 && share(self.bars, 60) || self.is_table {
            Structure::Table
        } else if share(self.stamped, 40) {
            Structure::Log
        } else if share(self.code, 35) && self.lines >= 3 {
            Structure::Code
        } else if share(self.prose, 30) || self.lines < 3 {
            Structure::Text
        } else if self.numbered * 10 >= self.lines * 7 {
            // A file with line numbers that is no code: a document, a configuration.
            Structure::Text
        } else {
            Structure::Log
        }
    }
}

fn is_json_line(line: &[u8]) -> bool {
    matches!(line, [b'{', b'"' | b'}', ..])
}

/// A time, a level or a name in brackets at the start of a line.
fn is_stamped(line: &[u8]) -> bool {
    let rest = match line {
        [b'[' | b'(' | b'<', ..] => &line[1..],
        _ => line,
    };
    let rest = rest.strip_prefix(b"\x1b").unwrap_or(rest);
    let word = rest
        .split(|byte| matches!(byte, b' ' | b']' | b':' | b'\t' | b'|' | b')'))
        .next()
        .unwrap_or_default();
    let digits = rest
        .iter()
        .take(19)
        .filter(|byte| byte.is_ascii_digit())
        .count();
    let is_time = digits >= 6
        && matches!(rest, [b'0'..=b'9', b'0'..=b'9', ..])
        && rest
            .iter()
            .take(19)
            .any(|byte| matches!(byte, b':' | b'-' | b'/'));
    is_time
        || [
            "INFO",
            "DEBUG",
            "WARN",
            "WARNING",
            "ERROR",
            "TRACE",
            "FATAL",
            "CRITICAL",
            "NOTICE",
            "info",
            "debug",
            "warn",
            "warning",
            "error",
            "npm",
            "PASS",
            "FAIL",
            "ok",
            "not",
            "test",
            "Compiling",
            "Downloading",
            "Downloaded",
            "Installing",
            "Collecting",
            "Requirement",
            "Successfully",
            "remote",
            "PASSED",
            "FAILED",
            "make",
        ]
        .iter()
        .any(|level| word == level.as_bytes())
        || matches!(line, [b'[', rest @ ..] if rest.iter().take(40).any(|byte| *byte == b']'))
}

/// A sentence, a heading or an item of a list: many words, most of them letters.
fn is_prose(line: &[u8]) -> bool {
    if matches!(line, [b'#', b'#' | b' ', ..] | [b'-' | b'*', b' ', ..]) {
        return true;
    }
    let letters = line
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic() || **byte >= 128)
        .count();
    let spaces = memchr::memchr_iter(b' ', line).count();
    spaces >= 4 && letters * 10 >= line.len() * 7
        || (!line.is_ascii() && spaces >= 2 && letters * 10 >= line.len() * 7)
}
