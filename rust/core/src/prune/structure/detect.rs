//! What a text is made of, told from a sample of its lines.

use super::{Structure, code, diff, json, line, listing, search, table, trace};

/// Lines that are looked at: at the start, in the middle, at the end.
const SAMPLE: [usize; 3] = [32, 16, 16];

/// Bytes that are searched for the lines of one place.
const SAMPLE_BYTES: usize = 8 * 1024;

/// Tells the structure of a text from a sample of at most 64 lines and 24 KiB; JSON alone is read
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
    decide(&lines)
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

/// How many of the sampled lines look like what. What is dear to ask is asked last.
#[derive(Debug, Default)]
struct Votes {
    json: usize,
    hunks: usize,
    file_heads: usize,
    changes: usize,
    frames: usize,
    trace_heads: usize,
    found: usize,
    under_heading: usize,
    names: usize,
    certain_names: usize,
}

impl Votes {
    fn count(lines: &[&[u8]]) -> Self {
        let mut votes = Self::default();
        let mut before: &[u8] = b"";
        for &line in lines {
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
            if listing::is_entry(line) {
                votes.names += 1;
                votes.certain_names += usize::from(listing::is_certain(line));
            }
            before = line;
        }
        votes
    }
}

fn decide(lines: &[&[u8]]) -> Structure {
    let numbered = lines
        .iter()
        .filter(|line| line::number_length(line).is_some());
    let is_numbered = numbered.count() * 10 >= lines.len() * 7;
    let plain: Vec<&[u8]>;
    let lines = if is_numbered {
        // What stands behind the numbers of a viewer; unless a name stands above it.
        plain = lines
            .iter()
            .map(|line| line::without_number(line))
            .collect();
        &plain
    } else {
        lines
    };
    let votes = Votes::count(lines);
    let share = |count: usize, percent: usize| count * 100 >= lines.len() * percent;
    let matches = votes.found + votes.under_heading;
    if lines.len() >= 2 && share(votes.json, 80) {
        return Structure::JsonLines;
    }
    if (votes.hunks + votes.file_heads >= 2 && votes.changes >= 2)
        || (votes.hunks >= 1 && votes.changes >= 1 && share(votes.changes, 10))
    {
        return Structure::Diff;
    }
    if votes.frames >= 2
        && (share(votes.frames, 25) || (votes.trace_heads > 0 && share(votes.frames, 12)))
    {
        return Structure::Trace;
    }
    if (votes.found >= 2 && share(votes.found, 50))
        || (votes.under_heading > votes.found && votes.names > 0 && share(matches, 60))
    {
        return Structure::Search;
    }
    if votes.names >= 2 && share(votes.names, 60) && votes.certain_names * 2 >= votes.names {
        return Structure::Listing;
    }
    let counted = |is: &dyn Fn(&[u8]) -> bool| lines.iter().filter(|line| is(line)).count();
    let bars = counted(&|line| table::has_bars(line.trim_ascii_start()));
    if (bars >= 2 && share(bars, 60)) || table::delimiter(lines).is_some() {
        return Structure::Table;
    }
    if lines.len() < 3 {
        return Structure::Text;
    }
    if !is_numbered && share(counted(&|line| is_stamped(line.trim_ascii_start())), 40) {
        return Structure::Log;
    }
    if share(counted(&code::looks_like_code), 35) {
        return Structure::Code;
    }
    // A file with line numbers that is no code is a document or a configuration.
    let is_text = is_numbered || share(counted(&|line| is_prose(line.trim_ascii_start())), 30);
    if is_text {
        Structure::Text
    } else {
        Structure::Log
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
        || is_level(word)
        || matches!(line, [b'[', rest @ ..] if rest.iter().take(40).any(|byte| *byte == b']'))
}

/// Words with which lines of logs, builds and test runs start.
fn is_level(word: &[u8]) -> bool {
    matches!(
        word,
        b"INFO"
            | b"DEBUG"
            | b"WARN"
            | b"WARNING"
            | b"ERROR"
            | b"TRACE"
            | b"FATAL"
            | b"CRITICAL"
            | b"NOTICE"
            | b"info"
            | b"debug"
            | b"warn"
            | b"warning"
            | b"error"
            | b"npm"
            | b"PASS"
            | b"FAIL"
            | b"ok"
            | b"not"
            | b"test"
            | b"Compiling"
            | b"Downloading"
            | b"Downloaded"
            | b"Installing"
            | b"Collecting"
            | b"Requirement"
            | b"Successfully"
            | b"remote"
            | b"PASSED"
            | b"FAILED"
            | b"make"
    )
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
