//! Identifiers in a text: names of one certain thing, by which a later step can need an earlier one.
//!
//! An identifier is a run of ASCII letters, digits and `_./-` (with `./-` taken off its ends) that
//! is a path, a dotted name, a snake- or camel-case name, a word with digits, or a number of three
//! digits or more; from 3 to 200 bytes. Everything else separates, letters beyond ASCII too, so
//! that a Korean particle does not stick to the name before it. Cost: one pass over the bytes,
//! without allocation, whatever they are.

/// The longest run that counts as an identifier; longer ones are encoded data.
pub const MAX_BYTES: usize = 200;

/// The shortest identifier, and the shortest part of one that counts as a word.
pub const MIN_BYTES: usize = 3;

/// What an identifier looks like; several bits may be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form(u8);

impl Form {
    /// Has a `/` inside.
    pub const PATH: Self = Self(1);
    /// Has a `.` in the part after the last `/`.
    pub const DOTTED: Self = Self(2);
    /// Has a lower-case letter before a capital, or capitals before lower-case letters.
    pub const CAMEL: Self = Self(4);
    /// Has a `_`.
    pub const SNAKE: Self = Self(8);
    /// Has a digit.
    pub const DIGITS: Self = Self(16);
    /// Has no letter.
    pub const NUMBER: Self = Self(32);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// The first kind that fits, in the order path, number, digits, snake, camel, dotted.
    pub fn kind(self) -> Kind {
        [
            (Self::PATH, Kind::Path),
            (Self::NUMBER, Kind::Number),
            (Self::DIGITS, Kind::Digits),
            (Self::SNAKE, Kind::Snake),
            (Self::CAMEL, Kind::Camel),
        ]
        .into_iter()
        .find(|(form, _)| self.contains(*form))
        .map_or(Kind::Dotted, |(_, kind)| kind)
    }
}

/// What an identifier is, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Has a `/`.
    Path,
    /// Digits without letters.
    Number,
    /// A word with digits: an id, a version.
    Digits,
    /// `snake_case`.
    Snake,
    /// `camelCase`.
    Camel,
    /// Parts joined by dots and nothing else of the above.
    Dotted,
}

/// One identifier of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identifier {
    /// First byte in the text.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// Number of the line it stands on, from 0; lines end at `\n`.
    pub line: u32,
    /// What it looks like.
    pub form: Form,
    /// Hash of its bytes, see [`hash_name`].
    pub hash: u64,
}

/// The identifiers of a text, in order; made by [`identifiers`] and [`json_identifiers`].
#[derive(Clone, Debug)]
pub struct Identifiers<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u32,
    escapes: bool,
}

/// The identifiers of a text as a person reads it.
///
/// # Example
/// ```
/// use satchel_core::salience::identifiers::identifiers;
/// let text = "open src/main.rs:42\nuser_id는 C-1042, not 7";
/// let found: Vec<_> = identifiers(text).map(|id| (&text[id.start..id.end], id.line)).collect();
/// assert_eq!(found, [("src/main.rs", 0), ("user_id", 1), ("C-1042", 1)]);
/// ```
pub fn identifiers(text: &str) -> Identifiers<'_> {
    Identifiers {
        bytes: text.as_bytes(),
        at: 0,
        line: 0,
        escapes: false,
    }
}

/// The identifiers of the line `range` of a text, whose number is `line`; places are those of the
/// whole text.
pub(super) fn line_identifiers(
    bytes: &[u8],
    range: std::ops::Range<usize>,
    line: u32,
    escapes: bool,
) -> Identifiers<'_> {
    Identifiers {
        bytes: &bytes[..range.end],
        at: range.start,
        line,
        escapes,
    }
}

/// The identifiers of a JSON text: escapes such as `\n` separate instead of lending a letter to
/// the name after them. Lines are those of the JSON text itself.
pub fn json_identifiers(text: &str) -> Identifiers<'_> {
    Identifiers {
        escapes: true,
        ..identifiers(text)
    }
}

/// Whether a text is JSON by its first and last characters, so that [`json_identifiers`] fits.
pub fn looks_like_json(text: &str) -> bool {
    let text = text.trim_ascii();
    (text.starts_with('{') && text.ends_with('}')) || (text.starts_with('[') && text.ends_with(']'))
}

const OTHER: u8 = 0;
const DIGIT: u8 = 1;
const LOWER: u8 = 2;
const UPPER: u8 = 3;
/// From here on, punctuation that may stand inside an identifier.
const UNDERSCORE: u8 = 4;
const SLASH: u8 = 5;
const DOT: u8 = 6;
const HYPHEN: u8 = 7;

const CLASS: [u8; 256] = {
    let mut class = [OTHER; 256];
    let mut byte = 0;
    while byte < 128 {
        let ascii = byte as u8;
        class[byte] = match ascii {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'_' => UNDERSCORE,
            b'/' => SLASH,
            b'.' => DOT,
            b'-' => HYPHEN,
            _ => OTHER,
        };
        byte += 1;
    }
    class
};

/// A bit for the class of each byte, none for what separates.
const BIT: [u8; 256] = {
    let mut bit = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        if CLASS[byte] != OTHER {
            bit[byte] = 1 << CLASS[byte];
        }
        byte += 1;
    }
    bit
};

/// Classes without which a run is no identifier.
const SPECIAL: u8 = 1 << DIGIT | 1 << UPPER | 1 << UNDERSCORE | 1 << SLASH | 1 << DOT;

impl Iterator for Identifiers<'_> {
    type Item = Identifier;

    fn next(&mut self) -> Option<Identifier> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if CLASS[usize::from(byte)] == OTHER {
                self.line += u32::from(byte == b'\n');
                self.at += 1;
                if self.escapes && byte == b'\\' {
                    self.skip_escape();
                }
                continue;
            }
            let start = self.at;
            let (mut end, mut seen) = (start, 0);
            while let Some(&byte) = self.bytes.get(end) {
                let bit = BIT[usize::from(byte)];
                if bit == 0 {
                    break;
                }
                seen |= bit;
                end += 1;
            }
            self.at = end;
            // Most runs are plain words, which are none.
            if seen & SPECIAL != 0
                && let Some(found) = self.judge(start, end, seen)
            {
                return Some(found);
            }
        }
        None
    }
}

impl Identifiers<'_> {
    /// Goes past the character that a backslash escapes; `\uXXXX` takes four more.
    fn skip_escape(&mut self) {
        let Some(&escaped) = self.bytes.get(self.at) else {
            return;
        };
        if !escaped.is_ascii() || escaped == b'\n' {
            return;
        }
        self.at += 1;
        if escaped == b'u' {
            let digits = self.bytes[self.at..].iter().take(4);
            self.at += digits.take_while(|byte| byte.is_ascii_hexdigit()).count();
        }
    }

    /// The identifier that the run `start..end` of the classes `seen` holds, if it is one.
    fn judge(&self, start: usize, end: usize, seen: u8) -> Option<Identifier> {
        let is_end = |byte: &u8| matches!(byte, b'.' | b'/' | b'-');
        let run = &self.bytes[start..end];
        let head = run.iter().take_while(|byte| is_end(byte)).count();
        let tail = run[head..].iter().rev().take_while(|byte| is_end(byte));
        let (start, end) = (start + head, end - tail.count());
        let run = &self.bytes[start..end];
        if !(MIN_BYTES..=MAX_BYTES).contains(&run.len()) {
            return None;
        }
        let (form, is_name) = form_of(run, seen);
        is_name.then(|| Identifier {
            start,
            end,
            line: self.line,
            form,
            hash: hash_name(run),
        })
    }
}

/// What a run looks like, and whether that is an identifier. `seen` holds its classes, and maybe
/// those of the punctuation that was taken off its ends.
fn form_of(run: &[u8], seen: u8) -> (Form, bool) {
    let has = |class: u8| seen & (1 << class) != 0;
    let mut form = Form::default();
    if has(UNDERSCORE) {
        form.set(Form::SNAKE);
    }
    let mut name = run;
    if has(SLASH)
        && let Some(slash) = memchr::memrchr(b'/', run)
    {
        form.set(Form::PATH);
        name = &run[slash..];
    }
    if has(DOT) && name.contains(&b'.') {
        form.set(Form::DOTTED);
    }
    if has(DIGIT) {
        form.set(Form::DIGITS);
    }
    if !has(LOWER) && !has(UPPER) {
        form.set(Form::NUMBER);
        let digits = run.iter().filter(|byte| byte.is_ascii_digit()).count();
        return (form, digits >= 3);
    }
    if has(LOWER) && has(UPPER) && is_camel(run) {
        form.set(Form::CAMEL);
    }
    let joined = form.0 & (Form::PATH.0 | Form::DOTTED.0 | Form::SNAKE.0) != 0;
    let is_name = has(DIGIT) || form.contains(Form::CAMEL) || (joined && run.len() > MIN_BYTES);
    (form, is_name)
}

/// A lower-case letter before a capital, or capitals before lower-case letters: `HTTPServer`.
fn is_camel(run: &[u8]) -> bool {
    let (mut before, mut earlier, mut oldest) = (OTHER, OTHER, OTHER);
    run.iter().any(|byte| {
        let class = CLASS[usize::from(*byte)];
        let begins = class == UPPER && before == LOWER;
        let ends = class == LOWER && before == LOWER && earlier == UPPER && oldest == UPPER;
        (oldest, earlier, before) = (earlier, before, class);
        begins || ends
    })
}

/// A 64-bit hash of a name: FNV-1a, the same on every machine and in every run.
pub fn hash_name(name: &[u8]) -> u64 {
    mix(name.iter().fold(FNV_START, |hash, byte| step(hash, *byte)))
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// Spreads the entropy to the low bits, which tables use.
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

/// The words of a name, as hashes of their lower-case form: split at everything but letters and
/// digits and where a capital begins a word; words below [`MIN_BYTES`] are left out.
///
/// # Example
/// ```
/// use satchel_core::salience::identifiers::{hash_name, name_parts};
/// let parts: Vec<u64> = name_parts("src/HTTPServer_log.rs").collect();
/// assert_eq!(parts, ["src", "http", "server", "log"].map(|word| hash_name(word.as_bytes())));
/// ```
pub fn name_parts(name: &str) -> NameParts<'_> {
    NameParts {
        bytes: name.as_bytes(),
        at: 0,
    }
}

/// Hashes of the words of a name; made by [`name_parts`].
#[derive(Clone, Debug)]
pub struct NameParts<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Iterator for NameParts<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            let class = |at: usize| {
                let byte = self.bytes.get(at).copied().unwrap_or(0);
                CLASS[usize::from(byte)]
            };
            let is_word = |class: u8| matches!(class, DIGIT | LOWER | UPPER);
            while self.at < self.bytes.len() && !is_word(class(self.at)) {
                self.at += 1;
            }
            let start = self.at;
            if start == self.bytes.len() {
                return None;
            }
            let mut end = start + 1;
            while is_word(class(end)) {
                let begins = class(end) == UPPER
                    && (class(end - 1) == LOWER
                        || (class(end - 1) == UPPER && class(end + 1) == LOWER));
                if begins {
                    break;
                }
                end += 1;
            }
            self.at = end;
            if end - start >= MIN_BYTES {
                let word = self.bytes[start..end].iter();
                return Some(mix(word.fold(FNV_START, |hash, byte| {
                    step(hash, byte.to_ascii_lowercase())
                })));
            }
        }
    }
}
