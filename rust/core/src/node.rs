//! The caller's message objects, seen through one small trait.
//!
//! A dialect reader is written once against [`Node`] and runs over parsed JSON (here) and over
//! Python objects (in the bindings). What must outlive the call is *captured*: texts by reference
//! to the caller's immutable strings ([`Text`]), structures as a [`Value`] tree of such texts, so
//! that a caller who changes a dict afterwards changes nothing here.

use std::fmt::Debug;
use std::fmt::Write as _;

use crate::error::{Error, ErrorKind, Result};

/// Deepest nesting that is read; deeper or cyclic input is `too_deep`.
pub const MAX_DEPTH: usize = 128;

/// An immutable text that can be kept: an owned string here, a Python string in the bindings.
pub trait Text: Debug + Send + Sync + 'static {
    /// Calls `read` with the text as UTF-8; a lone surrogate is seen as U+FFFD.
    fn with<R>(&self, read: impl FnOnce(&str) -> R) -> R;

    /// Whether there is nothing in it. A representation that has to make its UTF-8 knows without.
    fn is_empty(&self) -> bool {
        self.with(str::is_empty)
    }

    /// The exact text as bytes: UTF-8, lone surrogates as their three-byte form.
    fn to_bytes(&self) -> Vec<u8> {
        self.with(|text| text.as_bytes().to_vec())
    }

    /// Appends the text as a JSON string. A representation that can hold lone surrogates writes
    /// them as escapes, so that nothing is lost.
    fn write_json(&self, out: &mut String) {
        self.with(|text| write_json_string(text, out));
    }
}

impl Text for Box<str> {
    fn with<R>(&self, read: impl FnOnce(&str) -> R) -> R {
        read(self)
    }
}

/// What kind of value a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `null`, `None`, or a field that is not there.
    Null,
    /// A truth value.
    Bool,
    /// A number.
    Number,
    /// A string.
    Text,
    /// A list or tuple.
    List,
    /// A dict, a JSON object, or an object with fields.
    Map,
    /// Something that has no JSON form.
    Other,
}

impl Shape {
    /// The word for it in error messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::List => "a list",
            Self::Map => "an object",
            Self::Other => "an unsupported type",
        }
    }
}

/// One value inside a message: a handle that is cheap to make and to drop.
pub trait Node: Sized {
    /// How this representation keeps a text.
    type Text: Text;

    /// What kind of value this is.
    fn shape(&self) -> Shape;

    /// The field `key` of a map; `None` if this is no map or the field is missing.
    /// A field that is there and null is `Some` of a null node.
    fn get(&self, key: &'static str) -> Option<Self>;

    /// Number of fields of a map, where that is known at once; readers of plain messages stop
    /// looking for optional fields then.
    fn field_count(&self) -> Option<usize> {
        None
    }

    /// Length of a list; 0 for everything else.
    fn len(&self) -> usize;

    /// Whether this is an empty list or no list at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item `index` of a list.
    fn item(&self, index: usize) -> Option<Self>;

    /// Calls `read` with the string, without keeping it; `None` if this is no string.
    fn with_str<R>(&self, read: impl FnOnce(&str) -> R) -> Option<R>;

    /// Keeps the string; `None` if this is no string.
    fn text(&self) -> Option<Self::Text>;

    /// The truth value; `None` if this is none.
    fn bool(&self) -> Option<bool>;

    /// The number; `None` if this is none.
    fn number(&self) -> Option<f64>;

    /// Keeps the whole value.
    ///
    /// # Errors
    /// `too_deep` beyond [`MAX_DEPTH`] levels (a cycle ends there too), `invalid_message` for
    /// something without a JSON form.
    fn capture(&self) -> Result<Value<Self::Text>> {
        self.capture_below(0)
    }

    /// [`Node::capture`] for a value that is already `depth` levels deep.
    fn capture_below(&self, depth: usize) -> Result<Value<Self::Text>>;

    /// Whether this is the string `expected`.
    fn is_str(&self, expected: &str) -> bool {
        self.with_str(|text| text == expected).unwrap_or(false)
    }

    /// Whether this is null.
    fn is_null(&self) -> bool {
        self.shape() == Shape::Null
    }
}

/// A captured structure; its canonical JSON is what a page of a non-text part holds.
#[derive(Clone, Debug)]
pub enum Value<T> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as its JSON text.
    Number(Box<str>),
    /// A string.
    Text(T),
    /// A list.
    List(Box<[Value<T>]>),
    /// An object, keys in the caller's order.
    Map(Box<[(T, Value<T>)]>),
}

impl<T: Text> Value<T> {
    /// Appends the canonical JSON: the caller's key order, no white space, only the mandatory
    /// escapes, non-ASCII characters as they are.
    pub fn write_json(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
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
                    key.write_json(out);
                    out.push(':');
                    value.write_json(out);
                }
                out.push('}');
            }
        }
    }

    /// The canonical JSON of the value.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    /// The field `key` of a map.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(entries) => entries
                .iter()
                .find(|(name, _)| name.with(|name| name == key))
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// The string of a map that holds one string and nothing else.
    pub fn only_text(&self) -> Option<&T> {
        match self {
            Self::Map(entries) => match &entries[..] {
                [(_, value)] => value.as_text(),
                _ => None,
            },
            _ => None,
        }
    }

    /// The string, if this is one.
    pub fn as_text(&self) -> Option<&T> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list; empty for everything else.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }
}

/// Appends `text` as a JSON string with the mandatory escapes only.
pub fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    write_json_chars(text, out);
    out.push('"');
}

/// Appends `text` as the inside of a JSON string.
pub fn write_json_chars(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    let mut rest = 0;
    while let Some(at) = next_special(bytes, rest) {
        let byte = bytes[at];
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            8 => "\\b",
            12 => "\\f",
            _ => "",
        };
        out.push_str(&text[rest..at]);
        if escape.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            out.push_str(escape);
        }
        rest = at + 1;
    }
    out.push_str(&text[rest..]);
}

/// Bytes that are looked at together.
const BLOCK: usize = 32;

/// The first byte from `from` on that does not stand for itself inside a JSON string.
fn next_special(bytes: &[u8], from: usize) -> Option<usize> {
    let is_special = |byte: &u8| *byte < 32 || *byte == b'"' || *byte == b'\\';
    let mut at = from;
    for block in bytes.get(from..)?.chunks(BLOCK) {
        // Without a way out in the middle, a block is one comparison.
        let found = block
            .iter()
            .fold(false, |found, byte| found | is_special(byte));
        if found {
            return block.iter().position(is_special).map(|offset| at + offset);
        }
        at += block.len();
    }
    None
}

/// The error for a value that is nested deeper than [`MAX_DEPTH`].
#[cold]
pub fn too_deep() -> Error {
    Error::new(
        ErrorKind::TooDeep,
        format!("nested deeper than {MAX_DEPTH} levels, or cyclic"),
    )
    .with_limit(MAX_DEPTH as u64 + 1, MAX_DEPTH as u64)
}

impl Node for &serde_json::Value {
    type Text = Box<str>;

    fn shape(&self) -> Shape {
        match self {
            serde_json::Value::Null => Shape::Null,
            serde_json::Value::Bool(_) => Shape::Bool,
            serde_json::Value::Number(_) => Shape::Number,
            serde_json::Value::String(_) => Shape::Text,
            serde_json::Value::Array(_) => Shape::List,
            serde_json::Value::Object(_) => Shape::Map,
        }
    }

    fn get(&self, key: &'static str) -> Option<Self> {
        self.as_object()?.get(key)
    }

    fn field_count(&self) -> Option<usize> {
        self.as_object().map(serde_json::Map::len)
    }

    fn len(&self) -> usize {
        self.as_array().map_or(0, Vec::len)
    }

    fn item(&self, index: usize) -> Option<Self> {
        self.as_array()?.get(index)
    }

    fn with_str<R>(&self, read: impl FnOnce(&str) -> R) -> Option<R> {
        self.as_str().map(read)
    }

    fn text(&self) -> Option<Box<str>> {
        self.as_str().map(Into::into)
    }

    fn bool(&self) -> Option<bool> {
        self.as_bool()
    }

    fn number(&self) -> Option<f64> {
        self.as_f64()
    }

    fn capture_below(&self, depth: usize) -> Result<Value<Box<str>>> {
        if depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        Ok(match self {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(*value),
            serde_json::Value::Number(number) => Value::Number(number.to_string().into()),
            serde_json::Value::String(text) => Value::Text(text.as_str().into()),
            serde_json::Value::Array(items) => Value::List(
                items
                    .iter()
                    .map(|item| item.capture_below(depth + 1))
                    .collect::<Result<_>>()?,
            ),
            serde_json::Value::Object(entries) => Value::Map(
                entries
                    .iter()
                    .map(|(key, value)| Ok((key.as_str().into(), value.capture_below(depth + 1)?)))
                    .collect::<Result<_>>()?,
            ),
        })
    }
}
