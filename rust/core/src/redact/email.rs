//! E-mail addresses.

use super::edges::{byte_at, byte_before, end_of, ends_escape};
use super::{Kind, Span};

/// The longest local part and the longest domain (RFC 5321, section 4.5.3.1).
const MOST_LOCAL: usize = 64;
const MOST_DOMAIN: usize = 255;

/// Ends of file names that stand behind an `@` too: `logo@2x.png`.
const FILES: [&[u8]; 12] = [
    b"png", b"jpg", b"jpeg", b"gif", b"svg", b"webp", b"css", b"js", b"ts", b"json", b"html",
    b"scss",
];

/// The address around an `@` at `start..end` (`%40` in a URL).
pub(super) fn find(text: &[u8], start: usize, end: usize, found: &mut Vec<Span>) {
    let Some(from) = local_start(text, start) else {
        return;
    };
    let Some(until) = domain_end(text, end) else {
        return;
    };
    found.push(Span {
        kind: Kind::Email,
        start: from,
        end: until,
    });
}

fn is_local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-' | b'\'')
}

fn local_start(text: &[u8], at: usize) -> Option<usize> {
    let before = text.get(..at)?;
    let run = before.iter().rev().take(MOST_LOCAL + 1);
    let count = run.take_while(|byte| is_local(**byte)).count();
    if count == 0 || count > MOST_LOCAL {
        return None;
    }
    let mut start = at - count;
    // An escape before it lends it no letter.
    while start < at && byte_before(text, start) == b'\\' && ends_escape(text, start + 1) {
        start += 1;
    }
    let head = text.get(start..at)?;
    let skipped = head
        .iter()
        .take_while(|byte| !byte.is_ascii_alphanumeric() && **byte != b'_');
    start += skipped.count();
    let local = text.get(start..at)?;
    let last = local.last()?;
    if !(last.is_ascii_alphanumeric() || matches!(last, b'_' | b'-' | b'+')) {
        return None;
    }
    let before = byte_before(text, start);
    // User and password of a URL are not the address of anybody.
    let is_path = before == b'/' && byte_before(text, start.saturating_sub(1)) != b'/';
    let is_login = before == b':' && in_url(text, start);
    (!is_path && !is_login && before != b'@').then_some(start)
}

/// Whether `//` stands before, in the same word.
fn in_url(text: &[u8], at: usize) -> bool {
    let before = text
        .get(at.saturating_sub(MOST_LOCAL)..at)
        .unwrap_or_default();
    let word = before.rsplit(|byte| byte.is_ascii_whitespace() || *byte == b'"');
    word.take(1)
        .any(|word| memchr::memmem::find(word, b"//").is_some())
}

fn domain_end(text: &[u8], start: usize) -> Option<usize> {
    let is_domain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let mut end = end_of(text, start, MOST_DOMAIN, is_domain);
    // A sentence may end behind it.
    while end > start && matches!(byte_before(text, end), b'.' | b'-') {
        end -= 1;
    }
    let domain = text.get(start..end)?;
    let mut labels = domain.split(|byte| *byte == b'.');
    let last = labels.next_back()?;
    let is_top = last.len() >= 2 && last.iter().all(u8::is_ascii_alphabetic);
    let mut count = 0;
    for label in labels {
        if label.is_empty() || label.len() > 63 || label.starts_with(b"-") {
            return None;
        }
        count += 1;
    }
    if !is_top && !last.starts_with(b"xn--") {
        return None;
    }
    let is_file = FILES.iter().any(|file| last.eq_ignore_ascii_case(file));
    let next = byte_at(text, end);
    // A call in code, or a repository: `git@host.org:team/tool`.
    let is_repository = next == b':'
        && byte_at(text, end + 1).is_ascii_alphanumeric()
        && memchr::memchr(b'/', rest_of(text, end)).is_some();
    (count > 0 && !is_file && !is_repository && !matches!(next, b'(' | b'@')).then_some(end)
}

/// The word behind a domain, where a path would be.
fn rest_of(text: &[u8], end: usize) -> &[u8] {
    let stop = end_of(text, end, MOST_LOCAL, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'/' | b'-' | b'_' | b'.')
    });
    text.get(end..stop).unwrap_or_default()
}
