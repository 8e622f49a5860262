//! Stack traces: their heads, their frames and what was raised.

use memchr::memmem;

use super::{Unit, line};

/// How a frame is written; decides which end of the trace is the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Innermost last: Python.
    Last,
    /// Innermost first: everybody else.
    First,
}

/// The kind of frame that a line is, if it is one.
pub(crate) fn frame(line: &[u8]) -> Option<Frame> {
    let trimmed = line.trim_ascii_start();
    let is_indented = trimmed.len() < line.len();
    let has = |sign: &str| memmem::find(trimmed, sign.as_bytes()).is_some();
    match trimmed {
        [b'F', ..] if is_indented && trimmed.starts_with(b"File \"") => {
            has(", line ").then_some(Frame::Last)
        }
        [b'a', b't', b' ', rest @ ..] if is_indented => {
            let is_place = rest.iter().any(|byte| matches!(byte, b'(' | b':' | b'/'));
            is_place.then_some(Frame::First)
        }
        // Rust's and gdb's numbered frames, Go's places behind a tab.
        [b'0'..=b'9', ..] if is_indented => {
            let digits = trimmed.iter().take_while(|byte| byte.is_ascii_digit());
            let behind = &trimmed[digits.count()..];
            (behind.starts_with(b": ") && has("::")).then_some(Frame::First)
        }
        [b'#', b'0'..=b'9', ..] => (has(" in ") || has(" at ")).then_some(Frame::First),
        [b'/', ..] if is_indented => has(".go:").then_some(Frame::First),
        _ => None,
    }
}

/// Whether a line opens a trace.
pub(crate) fn is_head(line: &[u8]) -> bool {
    match line.first() {
        Some(b'T') => line.starts_with(b"Traceback (most recent call last)"),
        Some(b'E') => line.starts_with(b"Exception in thread"),
        Some(b'C') => line.starts_with(b"Caused by:"),
        Some(b's') => line.starts_with(b"stack backtrace:"),
        Some(b'g') => line.starts_with(b"goroutine ") && line.ends_with(b":"),
        Some(b't') => line.starts_with(b"thread '") && memmem::find(line, b"panicked at").is_some(),
        _ => false,
    }
}

/// Signs of frames in code that somebody else wrote.
const FOREIGN: [&str; 20] = [
    "site-packages",
    "dist-packages",
    "node_modules",
    "/usr/lib",
    "/lib/python",
    "<frozen ",
    "node:",
    "at java.",
    "at javax.",
    "at jdk.",
    "at sun.",
    "at org.junit",
    "at org.gradle",
    "at org.apache.maven",
    "/rustc/",
    ".cargo/registry",
    "std::",
    "core::",
    "tokio::",
    "/usr/local/go/",
];

fn is_foreign(line: &[u8]) -> bool {
    FOREIGN
        .iter()
        .any(|sign| memmem::find(line, sign.as_bytes()).is_some())
}

const HEAD: f32 = 0.75;
const RAISED: f32 = 0.95;
/// The innermost frames of own code, from the place of the failure outwards.
const OWN: [f32; 6] = [0.85, 0.75, 0.65, 0.55, 0.45, 0.4];
const OUTER: f32 = 0.3;
const FOREIGN_FRAME: f32 = 0.12;
/// Where it was raised matters even if the code is somebody else's.
const INNERMOST: f32 = 0.5;

/// A line between two frames that belongs to the one before: its source, a marker, a Go function.
const LINES_OF_A_FRAME: usize = 3;

/// Weighs every trace in the text.
pub(crate) fn weigh(text: &str, units: &mut [Unit]) {
    let mut at = 0;
    while at < units.len() {
        let Some(kind) = frame(line::of(text, &units[at])) else {
            at += 1;
            continue;
        };
        let mut frames = vec![at];
        let mut end = at + 1;
        let mut next = at + 1;
        // Lines of a frame stand between it and the next one.
        while next < units.len() && next - end <= LINES_OF_A_FRAME {
            let content = line::of(text, &units[next]);
            if frame(content) == Some(kind) {
                frames.push(next);
                end = next + 1;
            } else if is_head(content) || (kind == Frame::Last && !content.starts_with(b" ")) {
                break;
            }
            next += 1;
        }
        one(text, units, kind, &frames);
        at = end;
    }
}

fn one(text: &str, units: &mut [Unit], kind: Frame, frames: &[usize]) {
    let (Some(&first), Some(&last)) = (frames.first(), frames.last()) else {
        return;
    };
    let head = first.checked_sub(1);
    if let Some(head) = head {
        let content = line::of(text, &units[head]);
        let is_raised = kind == Frame::First && content.contains(&b':');
        units[head].raise(if is_raised { RAISED } else { HEAD });
    }
    // Java tells what was raised above the frames, Rust one line further up.
    if kind == Frame::First
        && let Some(above) = first.checked_sub(2)
        && line::of(text, &units[first - 1]).ends_with(b":")
    {
        units[above].raise(RAISED);
    }
    let mut own = OWN.iter();
    let mut weigh = |position: usize, is_innermost: bool| {
        let content = line::of(text, &units[position]);
        let weight = match (is_foreign(content), is_innermost) {
            (true, true) => INNERMOST,
            (true, false) => FOREIGN_FRAME,
            (false, _) => own.next().copied().unwrap_or(OUTER),
        };
        units[position].weight = weight;
        units[position].parent = head.map(|head| head as u32);
    };
    match kind {
        Frame::Last => {
            for &position in frames.iter().rev() {
                weigh(position, position == last);
            }
        }
        Frame::First => {
            for &position in frames {
                weigh(position, position == first);
            }
        }
    }
    for pair in frames.windows(2) {
        for inside in pair[0] + 1..pair[1] {
            belong(units, inside, pair[0]);
        }
    }
    // Behind the last frame: its source, and in Python what was raised.
    let mut after = last + 1;
    while after < units.len() && after <= last + LINES_OF_A_FRAME {
        let content = line::of(text, &units[after]);
        if content.is_empty() {
            break;
        }
        if content[0].is_ascii_whitespace() {
            belong(units, after, last);
        } else {
            if kind == Frame::Last {
                units[after].raise(RAISED);
            }
            break;
        }
        after += 1;
    }
}

/// Makes a line a part of a frame, worth a little less than it.
fn belong(units: &mut [Unit], inside: usize, frame: usize) {
    units[inside].weight = (units[frame].weight - 0.05).max(0.0);
    units[inside].parent = Some(frame as u32);
}
