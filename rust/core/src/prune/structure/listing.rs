//! Listings: names of files, one a line.

use super::Unit;
use super::line::{self, Groups};

const FIRST: [f32; 2] = [0.6, 0.4];
const LAST: [f32; 2] = [0.5, 0.3];
/// What is no entry: a heading, a total, a note that more was found.
const NOTE: f32 = 0.6;
const FOLDER: f32 = 0.4;
/// The first entry of a folder.
const OPENING: f32 = 0.45;
const ENTRY: f32 = 0.2;

/// Whether a line names a file: `ls -l`, a tree, a path, a bare name.
pub(crate) fn is_entry(line: &[u8]) -> bool {
    is_long(line) || is_tree(line) || is_name(line)
}

/// Whether it can be nothing else; a bare word could be any list.
pub(crate) fn is_certain(line: &[u8]) -> bool {
    is_long(line)
        || is_tree(line)
        || line.contains(&b'/')
        || line
            .iter()
            .rposition(|byte| *byte == b'.')
            .is_some_and(|dot| (1..=6).contains(&(line.len() - dot - 1)))
}

/// A line of `ls -l`.
fn is_long(line: &[u8]) -> bool {
    line.len() > 12
        && matches!(line[0], b'-' | b'd' | b'l' | b'c' | b'b' | b's' | b'p')
        && line[1..10]
            .iter()
            .all(|byte| matches!(byte, b'r' | b'w' | b'x' | b's' | b'S' | b't' | b'T' | b'-'))
}

fn is_tree(line: &[u8]) -> bool {
    let trimmed = line.trim_ascii_start();
    ["├──", "└──", "│   ", "│\u{a0}", "|-- ", "`-- "]
        .iter()
        .any(|sign| trimmed.starts_with(sign.as_bytes()))
}

fn is_name(line: &[u8]) -> bool {
    let trimmed = line.trim_ascii_start();
    let trimmed = trimmed.strip_prefix(b"- ").unwrap_or(trimmed);
    (1..=300).contains(&trimmed.len())
        && trimmed
            .iter()
            .any(|byte| byte.is_ascii_alphanumeric() || *byte >= 128)
        && trimmed.iter().all(|byte| {
            byte.is_ascii_alphanumeric()
                || matches!(
                    byte,
                    b'/' | b'.'
                        | b'_'
                        | b'-'
                        | b'+'
                        | b'@'
                        | b'~'
                        | b'['
                        | b']'
                        | b'$'
                        | b'\\'
                        | 128..
                )
        })
}

/// The folder of an entry, as bytes; empty if it names none.
pub(crate) fn folder(line: &[u8]) -> &[u8] {
    let end = line
        .iter()
        .rposition(|byte| *byte == b'/')
        .filter(|at| at + 1 < line.len());
    end.map_or(&[], |end| &line[..end])
}

pub(crate) fn weigh(text: &str, units: &mut [Unit]) {
    let mut groups = Groups::default();
    for unit in units.iter_mut() {
        let content = line::of(text, unit);
        if content.is_empty() {
            continue;
        }
        let is_entry = is_entry(content);
        let key = if is_long(content) {
            line::hash(&content[..1])
        } else if is_entry {
            line::hash(folder(content))
        } else {
            line::hash(content)
        };
        let (group, place) = groups.enter(key);
        unit.group = group;
        unit.weight = if !is_entry {
            NOTE
        } else if content[0] == b'd' && is_long(content) || content.ends_with(b"/") {
            FOLDER
        } else if place == 0 && !is_long(content) && !is_tree(content) {
            OPENING
        } else {
            ENTRY
        };
    }
    line::raise_ends(text, units, &FIRST, &LAST);
}
