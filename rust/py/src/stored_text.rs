//! Texts inside a log as it is stored, and the JSON around them, without a Python object.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use satchel_core::error::Result;
use satchel_core::node::{MAX_DEPTH, Node, Shape, Value, too_deep};

use crate::json_scan::{Found, Maker, Scanner};
use crate::pytext::PyText;

/// Entries up to which an object's keys are compared with each other one by one.
const FEW_KEYS: usize = 16;

/// A text of a log: a piece of the bytes that were read, or its own where it stood with escapes.
#[derive(Clone)]
pub(crate) enum StoredText {
    /// From this byte on, so many bytes.
    Piece(Arc<String>, u32, u32),
    /// A copy.
    Own(Arc<str>),
}

impl StoredText {
    /// The bytes of `whole` from `start` up to `end`; `None` behind the first 4 GiB.
    pub(crate) fn piece(whole: &Arc<String>, start: usize, end: usize) -> Option<Self> {
        let length = u32::try_from(end.checked_sub(start)?).ok()?;
        let start = u32::try_from(start).ok()?;
        Some(Self::Piece(Arc::clone(whole), start, length))
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Piece(whole, start, length) => {
                let start = *start as usize;
                whole
                    .get(start..start + *length as usize)
                    .unwrap_or_default()
            }
            Self::Own(text) => text,
        }
    }
}

impl fmt::Debug for StoredText {
    /// Never the content: what is logged must not carry a conversation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Piece(..) => "StoredText(piece)",
            Self::Own(_) => "StoredText(own)",
        })
    }
}

/// A stored message that was parsed.
#[derive(Debug)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Int(i64),
    /// A number with a fraction, as Python writes it.
    Float(StoredText),
    Text(StoredText),
    List(Box<[Tree]>),
    Map(Box<[(StoredText, Tree)]>),
}

impl Tree {
    /// The JSON in `whole` from `start` up to `end`; `None` if it is out of the ordinary, which is
    /// whatever would not come back as Python's `json` reads and writes it.
    pub(crate) fn parse(whole: &Arc<String>, start: usize, end: usize) -> Option<Self> {
        Scanner::new(whole.as_bytes(), Trees { whole }).one(start, end)
    }
}

/// Makes trees.
struct Trees<'a> {
    whole: &'a Arc<String>,
}

impl<'a> Maker<'a> for Trees<'a> {
    type Value = Tree;
    type Map = Vec<(StoredText, Tree)>;
    type Key = StoredText;

    fn null(&mut self) -> Tree {
        Tree::Null
    }

    fn bool(&mut self, value: bool) -> Tree {
        Tree::Bool(value)
    }

    fn int(&mut self, value: i64) -> Option<Tree> {
        Some(Tree::Int(value))
    }

    fn float(&mut self, value: f64, at: usize, text: &'a str) -> Option<Tree> {
        // Here Rust and Python write the same; beyond, their exponents look different.
        let size = value.abs();
        let is_alike = value == 0.0 || (1e-4..1e16).contains(&size);
        if !is_alike || format!("{value:?}") != text {
            return None;
        }
        StoredText::piece(self.whole, at, at + text.len()).map(Tree::Float)
    }

    fn text(&mut self, found: Found<'a, '_>) -> Option<Tree> {
        self.key(found).map(Tree::Text)
    }

    fn list(&mut self, items: Vec<Tree>) -> Option<Tree> {
        Some(Tree::List(items.into()))
    }

    fn map(&mut self) -> Self::Map {
        Vec::new()
    }

    fn key(&mut self, found: Found<'a, '_>) -> Option<StoredText> {
        match found {
            Found::Plain(at, bytes) => StoredText::piece(self.whole, at, at + bytes.len()),
            Found::Unescaped(bytes) => Some(StoredText::Own(str::from_utf8(bytes).ok()?.into())),
        }
    }

    fn entry(&mut self, map: &mut Self::Map, key: StoredText, value: Tree) -> Option<()> {
        map.push((key, value));
        Some(())
    }

    fn finish(&mut self, map: Self::Map) -> Option<Tree> {
        has_own_keys(&map).then(|| Tree::Map(map.into()))
    }
}

/// Whether no key comes twice; if one does, the last value counts at the first's place.
fn has_own_keys(entries: &[(StoredText, Tree)]) -> bool {
    if entries.len() <= FEW_KEYS {
        return entries.iter().enumerate().all(|(place, (key, _))| {
            let before = entries.iter().take(place);
            before
                .into_iter()
                .all(|(other, _)| other.as_str() != key.as_str())
        });
    }
    let keys: BTreeSet<&str> = entries.iter().map(|(key, _)| key.as_str()).collect();
    keys.len() == entries.len()
}

impl Node for &Tree {
    type Text = PyText;

    fn shape(&self) -> Shape {
        match self {
            Tree::Null => Shape::Null,
            Tree::Bool(_) => Shape::Bool,
            Tree::Int(_) | Tree::Float(_) => Shape::Number,
            Tree::Text(_) => Shape::Text,
            Tree::List(_) => Shape::List,
            Tree::Map(_) => Shape::Map,
        }
    }

    fn get(&self, key: &'static str) -> Option<Self> {
        match self {
            Tree::Map(entries) => {
                let found = entries.iter().find(|(name, _)| name.as_str() == key);
                found.map(|(_, value)| value)
            }
            _ => None,
        }
    }

    fn field_count(&self) -> Option<usize> {
        match self {
            Tree::Map(entries) => Some(entries.len()),
            _ => None,
        }
    }

    fn len(&self) -> usize {
        match self {
            Tree::List(items) => items.len(),
            _ => 0,
        }
    }

    fn item(&self, index: usize) -> Option<Self> {
        match self {
            Tree::List(items) => items.get(index),
            _ => None,
        }
    }

    fn with_str<R>(&self, read: impl FnOnce(&str) -> R) -> Option<R> {
        match self {
            Tree::Text(text) => Some(read(text.as_str())),
            _ => None,
        }
    }

    fn text(&self) -> Option<PyText> {
        match self {
            Tree::Text(text) => Some(PyText::Stored(text.clone())),
            _ => None,
        }
    }

    fn bool(&self) -> Option<bool> {
        match self {
            Tree::Bool(value) => Some(*value),
            _ => None,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Tree::Int(value) => Some(*value as f64),
            Tree::Float(text) => text.as_str().parse().ok(),
            _ => None,
        }
    }

    fn capture_below(&self, depth: usize) -> Result<Value<PyText>> {
        if depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        Ok(match self {
            Tree::Null => Value::Null,
            Tree::Bool(value) => Value::Bool(*value),
            Tree::Int(value) => Value::Number(value.to_string().into()),
            Tree::Float(text) => Value::Number(text.as_str().into()),
            Tree::Text(text) => Value::Text(PyText::Stored(text.clone())),
            Tree::List(items) => Value::List(
                items
                    .iter()
                    .map(|item| item.capture_below(depth + 1))
                    .collect::<Result<_>>()?,
            ),
            Tree::Map(entries) => Value::Map(
                entries
                    .iter()
                    .map(|(key, value)| {
                        let key = PyText::Stored(key.clone());
                        Ok((key, value.capture_below(depth + 1)?))
                    })
                    .collect::<Result<_>>()?,
            ),
        })
    }
}
