//! Search results: one line a match, with the file in it or above it.

use super::Unit;
use super::line::{self, Groups};

/// What is no match: the number of matches, a note that more were found.
const NOTE: f32 = 0.55;
/// The name of a file above its matches.
const HEADING: f32 = 0.6;
const FIRST_OF_FILE: f32 = 0.6;
const SECOND_OF_FILE: f32 = 0.35;
const FURTHER: f32 = 0.2;
/// Lines around a match.
const CONTEXT: f32 = 0.1;

/// Bytes in which a file name and its line number must end.
const LONGEST_NAME: usize = 300;

/// The file that a line `name:12:…`, `name-12-…` or `name:…` is about, and whether it is a match (and no line
/// around one).
pub(crate) fn file_of(line: &[u8]) -> Option<(&[u8], bool)> {
    let near = line.get(..LONGEST_NAME).unwrap_or(line);
    let mut looks_like_file = false;
    for (at, &byte) in near.iter().enumerate() {
        match byte {
            b':' | b'-' => {
                let rest = &near[at + 1..];
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let ends = (1..=7).contains(&digits) && rest.get(digits) == Some(&byte);
                if ends && looks_like_file && at > 1 {
                    return Some((&near[..at], byte == b':'));
                }
                // A drive letter is part of the name; any other colon ends it.
                if byte == b':' && at != 1 {
                    let behind = rest.first().copied().unwrap_or(b' ');
                    let is_bare =
                        looks_like_file && at > 2 && !matches!(behind, b'/' | b'\\' | b':');
                    let has_folder = near[..at].contains(&b'/');
                    return (is_bare && (has_folder || behind != b' '))
                        .then_some((&near[..at], true));
                }
            }
            b'.' | b'/' | b'\\' => looks_like_file = true,
            b' ' | b'\t' | b'"' | b'\'' | b'(' | b'<' | b'{' => return None,
            _ => {}
        }
    }
    None
}

/// Whether a line is `12:…` or `12-…`, as it stands below the name of its file.
pub(crate) fn is_under_heading(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let line = line.strip_prefix(b"Line ").unwrap_or(line);
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (1..=7).contains(&digits) && matches!(line.get(digits), Some(b':' | b'-'))
}

pub(crate) fn weigh(text: &str, units: &mut [Unit]) {
    let mut groups = Groups::default();
    let mut heading: Option<(u32, u64)> = None;
    for index in 0..units.len() {
        let content = line::of(text, &units[index]);
        let next = units
            .get(index + 1)
            .map(|next| line::of(text, next))
            .unwrap_or_default();
        let here = index as u32;
        let (weight, parent, key) = if let Some((name, is_match)) = file_of(content) {
            heading = None;
            (is_match.then_some(FURTHER), None, line::hash(name))
        } else if content.is_empty() || content == b"--" {
            heading = heading.filter(|_| content == b"--");
            (Some(0.0), None, 0)
        } else if is_under_heading(content) && heading.is_some() {
            let (parent, key) = heading.unwrap_or_default();
            let digits = content.iter().position(|byte| matches!(byte, b':' | b'-'));
            let is_match = digits.is_some_and(|at| content[at] == b':');
            (is_match.then_some(FURTHER), Some(parent), key)
        } else if is_under_heading(next) {
            let key = line::hash(content);
            heading = Some((here, key));
            (Some(HEADING), None, key)
        } else {
            (Some(NOTE), None, line::hash(content))
        };
        let unit = &mut units[index];
        unit.parent = parent;
        if weight == Some(0.0) {
            continue;
        }
        let (group, place) = groups.enter(key);
        unit.group = group;
        unit.weight = match weight {
            None => CONTEXT,
            Some(weight) if weight == FURTHER => {
                // Below a heading the heading came first.
                match place - u32::from(parent.is_some() && place > 0) {
                    0 => FIRST_OF_FILE,
                    1 => SECOND_OF_FILE,
                    _ => FURTHER,
                }
            }
            Some(weight) => weight,
        };
    }
    line::raise_ends(text, units, &[FIRST_OF_FILE], &[0.4]);
}
