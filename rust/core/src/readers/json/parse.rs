//! The parser: recursive descent over UTF-8, one pass, no look-back.

use super::text::{pair, push_char, push_unit};
use super::{Json, JsonText};
use crate::node::Text;

/// Deepest nesting that is parsed. More than [`MAX_DEPTH`](crate::node::MAX_DEPTH), because records wrap messages.
pub const MAX_NESTING: usize = 512;

/// Objects up to this size are searched for equal keys one by one; longer ones are sorted.
const FEW_KEYS: usize = 16;

/// Why a text is no JSON, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The byte at which parsing stopped.
    pub at: usize,
    /// What was expected there.
    pub expected: &'static str,
}

/// What a [`JsonError`] expects where the nesting is the fault.
pub(in super::super) const TOO_NESTED: &str = "nested too deeply";

/// Parses one JSON value with nothing but white space around it.
///
/// # Errors
/// The first byte at fault and what was expected there.
///
/// # Example
/// ```
/// # use satchel_core::readers::json::{Json, parse};
/// assert_eq!(parse("[1, 2.50]").unwrap().to_json(), "[1,2.50]");
/// assert_eq!(parse(r#""\ud83d""#).unwrap().to_json(), r#""\ud83d""#);
/// ```
pub fn parse(text: &str) -> Result<Json, JsonError> {
    let mut parser = Parser::new(text);
    parser.skip_space();
    let value = parser.value(0)?;
    parser.skip_space();
    if parser.at < parser.bytes.len() {
        return Err(parser.error("the end"));
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Whether there are control characters anywhere: most texts are one line without any, and no
    /// string has to be searched for them.
    has_controls: bool,
    /// Where strings with escapes are put together.
    scratch: String,
    /// What the open lists hold so far, those outside first: a list is made when its length is known.
    items: Vec<Json>,
    /// The same of the open objects.
    entries: Vec<(Box<str>, Json)>,
}

/// A minimum over all bytes runs at the speed of memory.
fn has_controls(bytes: &[u8]) -> bool {
    bytes.iter().fold(u8::MAX, |least, byte| least.min(*byte)) < 0x20
}

/// Words of eight bytes that are looked at one by one before a search of longer runs begins: keys
/// and ids end soon, and JSON inside a string has an escape every few bytes.
const NEAR: usize = 6;

/// The values of hexadecimal digits; 16 of any other byte.
const HEX: [u8; 256] = {
    let mut values = [16; 256];
    let mut value = 0;
    while value < 16 {
        let digit = if value < 10 { b'0' } else { b'a' - 10 } + value;
        values[digit as usize] = value;
        values[digit.to_ascii_uppercase() as usize] = value;
        value += 1;
    }
    values
};

/// How many bytes of a word stand before the first quote, backslash or control character.
fn plain_bytes(word: [u8; 8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    // The sign bit of each byte that is below `least`: bytes above the first of them may be wrong,
    // which nobody asks for.
    let below =
        |word: u64, least: u8| word.wrapping_sub(ONES * u64::from(least)) & !word & (ONES * 0x80);
    let word = u64::from_le_bytes(word);
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let special = equal(b'"') | equal(b'\\') | below(word, 0x20);
    special.trailing_zeros() as usize / 8
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            has_controls: has_controls(text.as_bytes()),
            scratch: String::new(),
            items: Vec::new(),
            entries: Vec::new(),
        }
    }

    #[cold]
    fn error(&self, expected: &'static str) -> JsonError {
        JsonError {
            at: self.at,
            expected,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn slice(&self, from: usize, to: usize) -> &str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn value(&mut self, depth: usize) -> Result<Json, JsonError> {
        match self.peek() {
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'{') => self.map(depth),
            Some(b'[') => self.list(depth),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(b'N') => self.word("NaN", Json::Number("NaN".into())),
            Some(b'I') => self.word("Infinity", Json::Number("Infinity".into())),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.error("a value")),
        }
    }

    fn word(&mut self, word: &'static str, value: Json) -> Result<Json, JsonError> {
        let end = self.at + word.len();
        if self.bytes.get(self.at..end) != Some(word.as_bytes()) {
            return Err(self.error("a value"));
        }
        self.at = end;
        Ok(value)
    }

    fn digits(&mut self) -> Result<usize, JsonError> {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == from {
            return Err(self.error("a digit"));
        }
        Ok(self.at - from)
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let from = self.at;
        let is_negative = self.takes(b'-');
        if is_negative && self.peek() == Some(b'I') {
            return self.word("Infinity", Json::Number("-Infinity".into()));
        }
        let starts_with_0 = self.peek() == Some(b'0');
        let digits = self.digits()?;
        if starts_with_0 && digits > 1 {
            self.at = from + usize::from(is_negative) + 1;
            return Err(self.error("no digit after a leading 0"));
        }
        let mut is_whole = true;
        if self.takes(b'.') {
            is_whole = false;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            is_whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = self.slice(from, self.at);
        // `-0` is kept as text: as an integer it would lose its sign.
        if is_whole
            && digits <= 18
            && !(is_negative && starts_with_0)
            && let Ok(number) = text.parse()
        {
            return Ok(Json::Int(number));
        }
        Ok(Json::Number(text.into()))
    }

    /// The position of the next quote, backslash or control character inside a string.
    fn plain_until(&self, from: usize) -> usize {
        let mut from = from;
        let near = self.bytes.get(from..).unwrap_or_default();
        for word in near.as_chunks().0.iter().take(NEAR) {
            let plain = plain_bytes(*word);
            from += plain;
            if plain < word.len() {
                return from;
            }
        }
        let rest = self.bytes.get(from..).unwrap_or_default();
        let stop = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        let run = rest.get(..stop).unwrap_or_default();
        if self.has_controls && has_controls(run) {
            return from + run.iter().position(|byte| *byte < 0x20).unwrap_or(stop);
        }
        from + stop
    }

    fn string(&mut self) -> Result<JsonText, JsonError> {
        self.at += 1;
        let from = self.at;
        let end = self.plain_until(from);
        if self.bytes.get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(self.slice(from, end).into());
        }
        self.escaped(from, end)
    }

    fn key(&mut self) -> Result<Box<str>, JsonError> {
        let from = self.at + 1;
        let end = self.plain_until(from);
        if self.bytes.get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(self.slice(from, end).into());
        }
        // A key with lone surrogates names nothing that is looked for: U+FFFD will do.
        Ok(self.string()?.with(|key| key.into()))
    }

    /// The rest of a string whose first escape, or fault, is at `stop`.
    fn escaped(&mut self, from: usize, stop: usize) -> Result<JsonText, JsonError> {
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        out.push_str(self.slice(from, stop));
        self.at = stop;
        while !self.takes(b'"') {
            let Some(char) = self.escape()? else {
                return self.with_surrogates(from);
            };
            out.push(char);
            if self.peek() == Some(b'\\') {
                continue;
            }
            let from = self.at;
            self.at = self.plain_until(from);
            out.push_str(self.slice(from, self.at));
        }
        let text = out.as_str().into();
        self.scratch = out;
        Ok(text)
    }

    /// A string from its first byte on in which half of a surrogate pair stands alone: no UTF-8.
    #[cold]
    fn with_surrogates(&mut self, from: usize) -> Result<JsonText, JsonError> {
        let mut out = Vec::new();
        self.at = from;
        loop {
            let from = self.at;
            self.at = self.plain_until(from);
            out.extend_from_slice(self.bytes.get(from..self.at).unwrap_or_default());
            if self.takes(b'"') {
                return Ok(JsonText::from_slice(&out));
            }
            if let Some(char) = self.escape()? {
                push_char(&mut out, char);
            } else {
                push_unit(&mut out, self.unit(self.at));
                self.at += 6;
            }
        }
    }

    /// The character of the escape that must be here; `None`, and nothing is taken, if it is half of
    /// a surrogate pair.
    fn escape(&mut self) -> Result<Option<char>, JsonError> {
        match self.peek() {
            Some(b'\\') => {}
            Some(_) => return Err(self.error("no control character in a string")),
            None => return Err(self.error("the end of a string")),
        }
        let char = match self.bytes.get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.error("an escape")),
        };
        self.at += 2;
        Ok(Some(char))
    }

    fn unicode(&mut self) -> Result<Option<char>, JsonError> {
        let Some(unit) = self.unit(self.at) else {
            return Err(self.error("four hexadecimal digits"));
        };
        if let Some(char) = char::from_u32(u32::from(unit)) {
            self.at += 6;
            return Ok(Some(char));
        }
        let low = self.unit(self.at + 6);
        let both = low.and_then(|low| pair(unit, low));
        if both.is_some() {
            self.at += 12;
        }
        Ok(both)
    }

    /// The UTF-16 unit of the escape at `at`.
    fn unit(&self, at: usize) -> Option<u16> {
        let [b'\\', b'u', a, b, c, d] = *self.bytes.get(at..)?.first_chunk()? else {
            return None;
        };
        let value = |digit: u8| HEX[usize::from(digit)];
        let (a, b, c, d) = (value(a), value(b), value(c), value(d));
        let is_hex = a | b | c | d < 16;
        is_hex.then(|| u16::from_be_bytes([a << 4 | b, c << 4 | d]))
    }

    fn list(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.open(depth)?;
        if self.takes(b']') {
            return Ok(Json::List(Vec::new()));
        }
        let first = self.items.len();
        loop {
            let value = self.value(depth + 1)?;
            self.items.push(value);
            self.skip_space();
            if self.takes(b']') {
                return Ok(Json::List(self.items.drain(first..).collect()));
            }
            if !self.takes(b',') {
                return Err(self.error("',' or ']'"));
            }
            self.skip_space();
        }
    }

    fn open(&mut self, depth: usize) -> Result<(), JsonError> {
        if depth >= MAX_NESTING {
            return Err(self.error(TOO_NESTED));
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    fn map(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.open(depth)?;
        if self.takes(b'}') {
            return Ok(Json::Map(Vec::new()));
        }
        let first = self.entries.len();
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.error("a key in quotes"));
            }
            let key = self.key()?;
            self.skip_space();
            if !self.takes(b':') {
                return Err(self.error("':'"));
            }
            self.skip_space();
            let value = self.value(depth + 1)?;
            let before = self.entries.get_mut(first..).unwrap_or_default();
            let equal = (before.len() < FEW_KEYS)
                .then(|| before.iter_mut().find(|(name, _)| *name == key))
                .flatten();
            match equal {
                Some((_, old)) => *old = value,
                None => self.entries.push((key, value)),
            }
            self.skip_space();
            if self.takes(b'}') {
                let entries: Vec<_> = self.entries.drain(first..).collect();
                if entries.len() > FEW_KEYS {
                    return Ok(Json::Map(without_equal_keys(entries)));
                }
                return Ok(Json::Map(entries));
            }
            if !self.takes(b',') {
                return Err(self.error("',' or '}'"));
            }
            self.skip_space();
        }
    }
}

fn without_equal_keys(entries: Vec<(Box<str>, Json)>) -> Vec<(Box<str>, Json)> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    let key = |index: &usize| entries.get(*index).map(|(key, _)| key);
    order.sort_by(|a, b| key(a).cmp(&key(b)));
    let has_equal = order.windows(2).any(|two| match two {
        [a, b] => key(a) == key(b),
        _ => false,
    });
    if !has_equal {
        return entries;
    }
    let mut kept = indexmap::IndexMap::with_capacity(entries.len());
    for (key, value) in entries {
        kept.insert(key, value);
    }
    kept.into_iter().collect()
}

/// Reads the items of a list that may not be all there: how many bytes of `text` are done with, and
/// what was missing behind them; `None` if the list ended there. `is_open` says whether its bracket
/// was read before.
pub(in super::super) fn parse_items(
    text: &str,
    items: &mut Vec<Json>,
    is_open: &mut bool,
) -> (usize, Option<JsonError>) {
    let mut parser = Parser::new(text);
    let mut done = 0;
    let mut next = || -> Result<bool, JsonError> {
        parser.skip_space();
        if !*is_open {
            if !parser.takes(b'[') {
                return Err(parser.error("a value"));
            }
            *is_open = true;
            done = parser.at;
            parser.skip_space();
        }
        if items.is_empty() && parser.takes(b']') {
            done = parser.at;
            return Ok(false);
        }
        let value = parser.value(1)?;
        parser.skip_space();
        // Only what stands behind a number says that it is complete.
        let is_last = parser.takes(b']');
        if !is_last && !parser.takes(b',') {
            return Err(parser.error("',' or ']'"));
        }
        items.push(value);
        done = parser.at;
        Ok(!is_last)
    };
    let end = loop {
        match next() {
            Ok(true) => {}
            Ok(false) => break None,
            Err(error) => break Some(error),
        }
    };
    (done, end)
}
