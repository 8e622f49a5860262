//! Where a value may start and end, in plain text and in JSON or URL escapes.

/// The byte at a place; 0 beyond the ends.
pub(super) fn byte_at(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

/// The byte before a place; 0 at the start.
pub(super) fn byte_before(text: &[u8], at: usize) -> u8 {
    at.checked_sub(1).map_or(0, |at| byte_at(text, at))
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(super) fn is_url_safe(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

/// Whether a value can start here: behind no letter, digit or `_`, or behind an escape that ends
/// with one (`\n`, `%3D`).
pub(super) fn is_start(text: &[u8], at: usize) -> bool {
    let before = byte_before(text, at);
    !is_word(before) || ends_escape(text, at)
}

/// Whether an escape ends right before.
pub(super) fn ends_escape(text: &[u8], at: usize) -> bool {
    let byte = |back: usize| at.checked_sub(back).map_or(0, |at| byte_at(text, at));
    (matches!(byte(1), b'n' | b'r' | b't') && byte(2) == b'\\')
        || (byte(3) == b'%' && byte(2).is_ascii_hexdigit() && byte(1).is_ascii_hexdigit())
}

/// One past the last byte of a kind, at most `most` bytes on.
pub(super) fn end_of(
    text: &[u8],
    start: usize,
    most: usize,
    accepts: impl Fn(u8) -> bool,
) -> usize {
    let run = text.get(start..).unwrap_or_default().iter().take(most);
    start + run.take_while(|byte| accepts(**byte)).count()
}

/// How many digits, capitals and small letters a value has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mix {
    pub(super) digits: usize,
    pub(super) capitals: usize,
    pub(super) small: usize,
    pub(super) others: usize,
}

impl Mix {
    pub(super) fn of(value: &[u8]) -> Self {
        let mut mix = Self::default();
        for byte in value {
            match byte {
                b'0'..=b'9' => mix.digits += 1,
                b'A'..=b'Z' => mix.capitals += 1,
                b'a'..=b'z' => mix.small += 1,
                _ => mix.others += 1,
            }
        }
        mix
    }

    pub(super) fn letters(self) -> usize {
        self.capitals + self.small
    }
}
