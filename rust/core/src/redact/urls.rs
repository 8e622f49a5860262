//! Connection strings: URLs with a password (RFC 3986, section 3.2.1), which go whole.

use super::edges::{byte_at, byte_before};
use super::named::is_blank;
use super::{Kind, Span};

const MOST_SCHEME: usize = 24;
const MOST_LOGIN: usize = 512;
const MOST_URL: usize = 2048;

/// The URL around a `://` at `start..end`.
pub(super) fn find(text: &[u8], start: usize, end: usize, found: &mut Vec<Span>) {
    let before = text.get(..start).unwrap_or_default();
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-');
    let scheme = before.iter().rev().take(MOST_SCHEME);
    let mut from = start - scheme.take_while(|byte| is_scheme(**byte)).count();
    // The letter of an escape, and what a scheme cannot start with.
    from += usize::from(from < start && byte_before(text, from) == b'\\');
    while from < start && !byte_at(text, from).is_ascii_alphabetic() {
        from += 1;
    }
    if start - from < 2 {
        return;
    }
    let rest = text.get(end..).unwrap_or_default();
    let login = rest.iter().take(MOST_LOGIN);
    let login = login.take_while(|byte| {
        !byte.is_ascii() || !(is_outside(**byte) || matches!(byte, b'/' | b'?' | b'#'))
    });
    let login = rest.get(..login.count()).unwrap_or_default();
    let Some(at) = memchr::memrchr(b'@', login) else {
        return;
    };
    let Some(colon) = memchr::memchr(b':', login.get(..at).unwrap_or_default()) else {
        return;
    };
    let secret = login.get(colon + 1..at).unwrap_or_default();
    if secret.is_empty() || is_blank(secret) {
        return;
    }
    let url = rest.iter().take(MOST_URL).skip(at);
    let mut until = end + at + url.take_while(|byte| !is_outside(**byte)).count();
    while matches!(
        byte_before(text, until),
        b'.' | b',' | b';' | b':' | b'!' | b'?' | b'\\'
    ) {
        until -= 1;
    }
    found.push(Span {
        kind: Kind::ConnectionString,
        start: from,
        end: until,
    });
}

/// What ends a URL in a text.
fn is_outside(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || byte.is_ascii_control()
        || !byte.is_ascii()
        || matches!(
            byte,
            b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\' | b'(' | b')' | b'|' | b'^' | b'{' | b'}'
        )
}
