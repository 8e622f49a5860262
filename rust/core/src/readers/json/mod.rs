//! JSON as transcripts have it: [`Json`] is a parsed value that loses nothing.
//!
//! Kept apart from `serde_json::Value` because real transcripts hold what that cannot: halves of
//! surrogate pairs in strings (a JavaScript program cut a text inside an emoji), integers of any
//! length, `NaN` beside the messages. Texts are kept as UTF-8, or as UTF-8 with three-byte
//! surrogates where there is no other way; numbers as their own text, so nothing is rounded.
//! Objects keep the order of their keys; of equal keys the last value wins, at the first's place.
//! Parsing is linear in the input, nesting is limited to [`MAX_NESTING`].

mod parse;
mod text;

use std::fmt::Write as _;

use crate::error::Result;
use crate::node::{MAX_DEPTH, Node, Shape, Text, Value, too_deep, write_json_chars};

pub use parse::{JsonError, MAX_NESTING, parse};
pub(super) use parse::{TOO_NESTED, parse_items};
pub use text::JsonText;

/// Longest integer, in digits: Python reads no longer one from text.
const MAX_DIGITS: usize = 4_300;

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

    /// Appends the canonical JSON.
    pub fn write_json(&self, out: &mut String) {
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
