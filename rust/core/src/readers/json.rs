//! JSON as transcripts have it: [`Json`] is a parsed value that loses nothing.
//!
//! Kept apart from `serde_json::Value` because real transcripts hold what that cannot: halves of
//! surrogate pairs in strings (a JavaScript program cut a text inside an emoji), integers of any
//! length, `NaN` beside the messages. Texts are kept as UTF-8, or as UTF-8 with three-byte
//! surrogates where there is no other way; numbers as their own text, so nothing is rounded.
//! Objects keep the order of their keys; of equal keys the last value wins, at the first's place.
//! Parsing is linear in the input, nesting is limited to [`MAX_NESTING`].

use std::fmt::Write as _;

use crate::error::Result;
use crate::node::{MAX_DEPTH, Node, Shape, Text, Value, too_deep, write_json_chars};

/// Deepest nesting that is parsed. More than [`MAX_DEPTH`], because records wrap messages.
pub const MAX_NESTING: usize = 512;

/// Longest integer, in digits: Python reads no longer one from text.
const MAX_DIGITS: usize = 4_300;

/// Objects up to this size are searched for equal keys one by one; longer ones are sorted.
const FEW_KEYS: usize = 16;

/// A string of a JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonText(Kept);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kept {
    Utf8(Box<str>),
    /// UTF-8 in which lone surrogates stand as three bytes.
    Surrogates(Box<[u8]>),
}

impl JsonText {
    /// The text, unless it has lone surrogates.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Kept::Utf8(text) => Some(text),
            Kept::Surrogates(_) => None,
        }
    }

    /// The text as UTF-8, lone surrogates as three bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Kept::Utf8(text) => text.as_bytes(),
            Kept::Surrogates(bytes) => bytes,
        }
    }

    /// Whether there is nothing, or only white space.
    pub fn is_blank(&self) -> bool {
        self.as_str().is_some_and(|text| text.trim().is_empty())
    }

    /// The pieces one after the other; halves of a pair that meet become one character.
    pub fn concat<'a>(pieces: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut bytes = Vec::new();
        for piece in pieces {
            bytes.extend_from_slice(piece.as_bytes());
        }
        Self::from_bytes(bytes)
    }

    fn from_bytes(bytes: Vec<u8>) -> Self {
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => return text.into(),
            Err(error) => error.into_bytes(),
        };
        match String::from_utf8(joined_pairs(&bytes)) {
            Ok(text) => text.into(),
            Err(error) => Self(Kept::Surrogates(error.into_bytes().into())),
        }
    }
}

impl From<&str> for JsonText {
    fn from(text: &str) -> Self {
        Self(Kept::Utf8(text.into()))
    }
}

impl From<String> for JsonText {
    fn from(text: String) -> Self {
        Self(Kept::Utf8(text.into()))
    }
}

impl Text for JsonText {
    fn with<R>(&self, read: impl FnOnce(&str) -> R) -> R {
        match &self.0 {
            Kept::Utf8(text) => read(text),
            Kept::Surrogates(bytes) => {
                let mut text = String::with_capacity(bytes.len());
                pieces(bytes, |piece| match piece {
                    Piece::Utf8(run) => text.push_str(run),
                    Piece::Surrogate(_) => text.push(char::REPLACEMENT_CHARACTER),
                });
                read(&text)
            }
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn write_json(&self, out: &mut String) {
        out.push('"');
        match &self.0 {
            Kept::Utf8(text) => write_json_chars(text, out),
            Kept::Surrogates(bytes) => pieces(bytes, |piece| match piece {
                Piece::Utf8(run) => write_json_chars(run, out),
                Piece::Surrogate(unit) => {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }),
        }
        out.push('"');
    }
}

enum Piece<'a> {
    Utf8(&'a str),
    Surrogate(u16),
}

/// Walks through the runs of UTF-8 and the surrogates of `bytes`.
fn pieces(mut bytes: &[u8], mut each: impl FnMut(Piece<'_>)) {
    while !bytes.is_empty() {
        let (run, rest) = match std::str::from_utf8(bytes) {
            Ok(run) => (run, &[][..]),
            Err(error) => {
                let (run, rest) = bytes.split_at(error.valid_up_to());
                (std::str::from_utf8(run).unwrap_or_default(), rest)
            }
        };
        if !run.is_empty() {
            each(Piece::Utf8(run));
        }
        bytes = match rest {
            [0xED, second @ 0xA0..=0xBF, third, rest @ ..] => {
                let unit = 0xD000 | (u16::from(second & 0x3F) << 6) | u16::from(third & 0x3F);
                each(Piece::Surrogate(unit));
                rest
            }
            [_, rest @ ..] => rest,
            [] => rest,
        };
    }
}

fn joined_pairs(bytes: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(bytes.len());
    let mut high = None;
    pieces(bytes, |piece| match piece {
        Piece::Utf8(run) => {
            push_unit(&mut joined, high.take());
            joined.extend_from_slice(run.as_bytes());
        }
        Piece::Surrogate(unit) => match (high, pair(high.unwrap_or(0), unit)) {
            (Some(_), Some(both)) => {
                high = None;
                push_char(&mut joined, both);
            }
            _ => {
                push_unit(&mut joined, high.take());
                high = Some(unit);
            }
        },
    });
    push_unit(&mut joined, high);
    joined
}

fn pair(high: u16, low: u16) -> Option<char> {
    if !(0xD800..0xDC00).contains(&high) || !(0xDC00..0xE000).contains(&low) {
        return None;
    }
    char::from_u32(0x1_0000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(low) - 0xDC00))
}

fn push_char(bytes: &mut Vec<u8>, char: char) {
    bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
}

fn push_unit(bytes: &mut Vec<u8>, unit: Option<u16>) {
    if let Some(unit) = unit {
        let low = unit.to_le_bytes()[0] & 0x3F;
        let middle = (unit >> 6).to_le_bytes()[0] & 0x3F;
        bytes.extend_from_slice(&[0xED, 0x80 | middle, 0x80 | low]);
    }
}

/// A JSON value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer of up to 18 digits.
    Int(i64),
    /// Any other number as its text; also `NaN`, `Infinity` and `-Infinity`.
    Number(Box<str>),
    /// A string.
    Text(JsonText),
    /// A list.
    List(Vec<Json>),
    /// An object, keys in the order of the text.
    Map(Vec<(Box<str>, Json)>),
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<usize> for Json {
    fn from(number: usize) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl Json {
    /// An object of these entries.
    pub fn map<const N: usize>(entries: [(&str, Self); N]) -> Self {
        Self::Map(entries.map(|(key, value)| (key.into(), value)).into())
    }

    /// The value of `key` in an object.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => {
                let found = entries.iter().find(|(name, _)| &**name == key);
                found.map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The value at the end of a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Takes the value of `key` out of an object; null stays behind.
    pub fn take(&mut self, key: &str) -> Option<Self> {
        match self {
            Self::Map(entries) => {
                let found = entries.iter_mut().find(|(name, _)| &**name == key);
                found.map(|(_, value)| std::mem::take(value))
            }
            _ => None,
        }
    }

    /// Takes the value of `key` if it is there and not null.
    pub fn take_some(&mut self, key: &str) -> Option<Self> {
        self.take(key).filter(|value| !value.is_null())
    }

    /// Sets `key` in an object.
    pub fn set(&mut self, key: &str, value: Self) {
        if let Self::Map(entries) = self {
            match entries.iter_mut().find(|(name, _)| &**name == key) {
                Some((_, old)) => *old = value,
                None => entries.push((key.into(), value)),
            }
        }
    }

    /// Removes `key` from an object.
    pub fn remove(&mut self, key: &str) {
        if let Self::Map(entries) = self {
            entries.retain(|(name, _)| &**name != key);
        }
    }

    /// Whether an object has `key`.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        *self == Self::Null
    }

    /// Whether this is an object.
    pub fn is_map(&self) -> bool {
        matches!(self, Self::Map(_))
    }

    /// Whether this is a list.
    pub fn is_list(&self) -> bool {
        matches!(self, Self::List(_))
    }

    /// Whether this is `true`.
    pub fn is_true(&self) -> bool {
        *self == Self::Bool(true)
    }

    /// The string, unless it has lone surrogates.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => text.as_str(),
            _ => None,
        }
    }

    /// The string at `key`.
    pub fn str_at(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// Whether there is a list at `key`.
    pub fn has_list(&self, key: &str) -> bool {
        self.get(key).is_some_and(Self::is_list)
    }

    /// The items of a list; none of anything else.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// The items of the list at `key`.
    pub fn items_at(&self, key: &str) -> &[Self] {
        self.get(key).map_or(&[], Self::items)
    }

    /// The items of a list; none of anything else.
    pub fn into_items(self) -> Vec<Self> {
        match self {
            Self::List(items) => items,
            _ => Vec::new(),
        }
    }

    /// The number, if it is an integer from 0.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Int(number) => u64::try_from(*number).ok(),
            Self::Number(number) => number.parse().ok(),
            _ => None,
        }
    }

    /// The number at `key`, if it is an integer from 0.
    pub fn u64_at(&self, key: &str) -> Option<u64> {
        self.get(key)?.as_u64()
    }

    /// The canonical JSON: no white space, only the mandatory escapes.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Int(number) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "{number}");
            }
            Self::Number(number) => out.push_str(number),
            Self::Text(text) => text.write_json(out),
            Self::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write_json(out);
                }
                out.push(']');
            }
            Self::Map(entries) => {
                out.push('{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    out.push('"');
                    write_json_chars(key, out);
                    out.push_str("\":");
                    value.write_json(out);
                }
                out.push('}');
            }
        }
    }

    /// A string as it is, anything else as its JSON.
    pub fn into_text(self) -> JsonText {
        match self {
            Self::Text(text) => text,
            Self::Null => "".into(),
            other => other.to_json().into(),
        }
    }

    /// The first number that a message must not hold, as a sentence.
    pub(super) fn bad_number(&self) -> Option<String> {
        match self {
            Self::Number(number) => complaint(number),
            Self::List(items) => items.iter().find_map(Self::bad_number),
            Self::Map(entries) => entries.iter().find_map(|(_, value)| value.bad_number()),
            _ => None,
        }
    }
}

fn complaint(number: &str) -> Option<String> {
    if number.ends_with(|char: char| char.is_ascii_alphabetic()) {
        return Some(format!("{number} is no JSON number"));
    }
    if number.contains(['.', 'e', 'E']) {
        let is_finite = number.parse::<f64>().is_ok_and(f64::is_finite);
        return (!is_finite).then(|| "a number is out of range".to_owned());
    }
    let digits = number.trim_start_matches('-').len();
    (digits > MAX_DIGITS).then(|| format!("a number has {digits} digits"))
}

impl Node for &Json {
    type Text = JsonText;

    fn shape(&self) -> Shape {
        match self {
            Json::Null => Shape::Null,
            Json::Bool(_) => Shape::Bool,
            Json::Int(_) | Json::Number(_) => Shape::Number,
            Json::Text(_) => Shape::Text,
            Json::List(_) => Shape::List,
            Json::Map(_) => Shape::Map,
        }
    }

    fn get(&self, key: &'static str) -> Option<Self> {
        Json::get(self, key)
    }

    fn field_count(&self) -> Option<usize> {
        match self {
            Json::Map(entries) => Some(entries.len()),
            _ => None,
        }
    }

    fn len(&self) -> usize {
        self.items().len()
    }

    fn item(&self, index: usize) -> Option<Self> {
        self.items().get(index)
    }

    fn with_str<R>(&self, read: impl FnOnce(&str) -> R) -> Option<R> {
        match self {
            Json::Text(text) => Some(text.with(read)),
            _ => None,
        }
    }

    fn text(&self) -> Option<JsonText> {
        match self {
            Json::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn bool(&self) -> Option<bool> {
        match self {
            Json::Bool(value) => Some(*value),
            _ => None,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Json::Int(number) => Some(*number as f64),
            Json::Number(number) => number.parse().ok(),
            _ => None,
        }
    }

    fn capture_below(&self, depth: usize) -> Result<Value<JsonText>> {
        if depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        Ok(match self {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Int(number) => Value::Number(number.to_string().into()),
            Json::Number(number) => Value::Number(number.clone()),
            Json::Text(text) => Value::Text(text.clone()),
            Json::List(items) => Value::List(
                items
                    .iter()
                    .map(|item| item.capture_below(depth + 1))
                    .collect::<Result<_>>()?,
            ),
            Json::Map(entries) => Value::Map(
                entries
                    .iter()
                    .map(|(key, value)| Ok(((&**key).into(), value.capture_below(depth + 1)?)))
                    .collect::<Result<_>>()?,
            ),
        })
    }
}

/// Why a text is no JSON, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The byte at which parsing stopped.
    pub at: usize,
    /// What was expected there.
    pub expected: &'static str,
}

/// What a [`JsonError`] expects where the nesting is the fault.
pub(super) const TOO_NESTED: &str = "nested too deeply";

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
    let mut parser = Parser {
        text,
        bytes: text.as_bytes(),
        at: 0,
    };
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
}

impl Parser<'_> {
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
        if is_whole && digits <= 18 && !(is_negative && starts_with_0) {
            if let Ok(number) = text.parse() {
                return Ok(Json::Int(number));
            }
        }
        Ok(Json::Number(text.into()))
    }

    /// The position of the next quote, backslash or control character inside a string.
    fn plain_until(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let stop = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        let run = rest.get(..stop).unwrap_or_default();
        // A fold without a branch runs at the speed of memory; the position is needed rarely.
        if run.iter().fold(false, |found, byte| found | (*byte < 0x20)) {
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

    /// The rest of a string whose first escape, or fault, is at `stop`.
    fn escaped(&mut self, from: usize, mut stop: usize) -> Result<JsonText, JsonError> {
        let mut out: Vec<u8> = Vec::with_capacity(stop - from + 64);
        let mut from = from;
        loop {
            out.extend_from_slice(self.slice(from, stop).as_bytes());
            self.at = stop;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(JsonText::from_bytes(out));
                }
                Some(b'\\') => self.escape(&mut out)?,
                Some(_) => return Err(self.error("no control character in a string")),
                None => return Err(self.error("the end of a string")),
            }
            from = self.at;
            stop = self.plain_until(from);
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        let char = match self.bytes.get(self.at + 1) {
            Some(b'"') => b'"',
            Some(b'\\') => b'\\',
            Some(b'/') => b'/',
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode(out),
            _ => return Err(self.error("an escape")),
        };
        out.push(char);
        self.at += 2;
        Ok(())
    }

    fn unicode(&mut self, out: &mut Vec<u8>) -> Result<(), JsonError> {
        let Some(unit) = self.unit(self.at) else {
            return Err(self.error("four hexadecimal digits"));
        };
        let low = self.unit(self.at + 6);
        if let Some(both) = low.and_then(|low| pair(unit, low)) {
            push_char(out, both);
            self.at += 12;
            return Ok(());
        }
        match char::from_u32(u32::from(unit)) {
            Some(char) => push_char(out, char),
            None => push_unit(out, Some(unit)),
        }
        self.at += 6;
        Ok(())
    }

    /// The UTF-16 unit of the escape at `at`.
    fn unit(&self, at: usize) -> Option<u16> {
        match self.bytes.get(at..at + 6)? {
            [b'\\', b'u', digits @ ..] => digits.iter().try_fold(0_u16, |unit, digit| {
                let digit = char::from(*digit).to_digit(16)?;
                Some((unit << 4) | u16::try_from(digit).ok()?)
            }),
            _ => None,
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json, JsonError> {
        self.open(depth)?;
        let mut items = Vec::new();
        if self.takes(b']') {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.takes(b']') {
                return Ok(Json::List(items));
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
        let mut entries = Vec::new();
        if self.takes(b'}') {
            return Ok(Json::Map(entries));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.error("a key in quotes"));
            }
            // A key with lone surrogates names nothing that is looked for: U+FFFD will do.
            let key: Box<str> = match self.string()?.0 {
                Kept::Utf8(key) => key,
                kept @ Kept::Surrogates(_) => JsonText(kept).with(|key| key.into()),
            };
            self.skip_space();
            if !self.takes(b':') {
                return Err(self.error("':'"));
            }
            self.skip_space();
            let value = self.value(depth + 1)?;
            let equal = (entries.len() < FEW_KEYS)
                .then(|| entries.iter_mut().find(|(name, _)| *name == key))
                .flatten();
            match equal {
                Some((_, old)) => *old = value,
                None => entries.push((key, value)),
            }
            self.skip_space();
            if self.takes(b'}') {
                if entries.len() > FEW_KEYS {
                    entries = without_equal_keys(entries);
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
