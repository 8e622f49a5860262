//! Blocks of private keys (RFC 7468; OpenSSH and PGP use the same lines).

use super::edges::{byte_at, end_of, is_base64};
use super::{Kind, Span};

/// The longest label, such as `ENCRYPTED PRIVATE KEY`.
const MOST_LABEL: usize = 48;

/// The shortest line of a body whose end line is missing.
const MIN_LINE: usize = 16;

const DASHES: &[u8] = b"-----";

/// The block that a `-----BEGIN ` at `start..end` opens. Its body is read once: it ends at the next
/// dashes.
pub(super) fn find(text: &[u8], start: usize, end: usize, found: &mut Vec<Span>) {
    let label_end = end_of(text, end, MOST_LABEL, |byte| {
        byte.is_ascii_uppercase() || byte == b' ' || byte.is_ascii_digit()
    });
    let label = text.get(end..label_end).unwrap_or_default();
    let is_private = memchr::memmem::find(label, b"PRIVATE KEY").is_some();
    let rest = text.get(label_end..).unwrap_or_default();
    if !is_private || !rest.starts_with(DASHES) {
        return;
    }
    let body = label_end + DASHES.len();
    let close = body_end(text, body);
    let tail = text.get(close..).unwrap_or_default();
    let end = if tail.starts_with(b"-----END ") {
        let label = close + b"-----END ".len();
        let label_end = end_of(text, label, MOST_LABEL, |byte| {
            byte.is_ascii_uppercase() || byte == b' '
        });
        end_of(text, label_end, DASHES.len(), |byte| byte == b'-')
    } else {
        whole_lines(text, body, close)
    };
    if end > body {
        found.push(Span {
            kind: Kind::PrivateKey,
            start,
            end,
        });
    }
}

/// Where the next dashes are, or what no body holds.
fn body_end(text: &[u8], body: usize) -> usize {
    let rest = text.get(body..).unwrap_or_default();
    let mut dashes = 0;
    for (at, byte) in rest.iter().enumerate() {
        dashes = if *byte == b'-' { dashes + 1 } else { 0 };
        if dashes == DASHES.len() {
            return body + at + 1 - dashes;
        }
        if !is_body(*byte) {
            return body + at;
        }
    }
    text.len()
}

/// The end of the lines of base64 at the start of a body that was cut off; `body` if there are none.
fn whole_lines(text: &[u8], body: usize, close: usize) -> usize {
    let (mut end, mut at) = (body, body);
    while at < close {
        at = match byte_at(text, at) {
            b'\\' => at + 2,
            b' ' | b'\n' | b'\r' | b'\t' => at + 1,
            _ => {
                let line = end_of(text, at, close - at, |byte| is_base64(byte) || byte == b'=');
                if line - at < MIN_LINE {
                    break;
                }
                end = line;
                line
            }
        };
    }
    end
}

/// Base64, headers, line ends plain and escaped, and quotes of a text joined in code.
fn is_body(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'+' | b'/' | b'=' | b'\n' | b'\r' | b'\t' | b' ' | b'\\' | b':' | b',' | b'.' | b'>'
        )
        || byte == b'-'
}
