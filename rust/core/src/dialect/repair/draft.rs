//! Messages under repair: taken apart into pieces, so that pieces can go, move and be put in.

use serde_json::Value as Json;

use super::edit::{Edit, Path};
use super::items::Item;
use crate::dialect::Dialect;
use crate::dialect::form::OpenCall;
use crate::message::{Body, Message, Part, PartKind, PathStep, Role};
use crate::node::Text;

/// Where the content of a piece comes from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// This part of this message.
    Part(u32, u32),
    /// Something deeper inside a message.
    Inside(u32, Path),
    /// A text that is made.
    Text(String),
    /// A result that is made, for this call.
    Result(Box<OpenCall>),
}

/// One part of a message under repair.
#[derive(Debug)]
pub(super) struct Piece<'a, T> {
    pub(super) source: Source,
    pub(super) kind: PartKind,
    /// The part as it was read; `None` for what is made.
    pub(super) part: Option<&'a Part<T>>,
    /// The way from the message to the block, call or field that it is; empty where it is the
    /// message itself.
    pub(super) block: Path,
    /// What changes inside it.
    pub(super) edits: Vec<Edit>,
}

impl<T> Piece<'_, T> {
    pub(super) fn text(text: String) -> Self {
        Self {
            source: Source::Text(text),
            kind: PartKind::Text,
            part: None,
            block: Vec::new(),
            edits: Vec::new(),
        }
    }

    pub(super) fn inside(message: u32, path: Path) -> Self {
        Self {
            source: Source::Inside(message, path),
            kind: PartKind::Opaque,
            part: None,
            block: Vec::new(),
            edits: Vec::new(),
        }
    }

    pub(super) fn result(call: OpenCall) -> Self {
        Self {
            source: Source::Result(Box::new(call)),
            kind: PartKind::Result,
            part: None,
            block: Vec::new(),
            edits: Vec::new(),
        }
    }

    /// The way from the block to the content of the part.
    pub(super) fn content_path(&self) -> Path {
        let path = self.part.map(|part| part.place.path()).unwrap_or_default();
        path.get(self.block.len()..).unwrap_or_default().to_vec()
    }

    pub(super) fn is_call(&self) -> bool {
        self.kind == PartKind::Call
    }

    pub(super) fn is_result(&self) -> bool {
        self.kind == PartKind::Result
    }
}

/// One message under repair.
#[derive(Debug)]
pub(super) struct Draft<'a, T> {
    /// The caller's message that the other fields come from.
    pub(super) base: Option<u32>,
    pub(super) role: Role,
    pub(super) pieces: Vec<Piece<'a, T>>,
    /// Parts of the base as it was read.
    pub(super) whole: usize,
    /// Changes of the message beside its pieces.
    pub(super) edits: Vec<Edit>,
    /// What kind of item it is, where a message is one.
    pub(super) item: Option<Item>,
    /// Whether it is a `function` message, the result of the single call of old.
    pub(super) is_legacy: bool,
    /// Whether it is an item with an id of its own.
    pub(super) has_id: bool,
}

impl<'a, T: Text> Draft<'a, T> {
    pub(super) fn of(dialect: Dialect, index: usize, message: &'a Message<T>) -> Self {
        let mut listed_calls = 0;
        let pieces = message.parts.iter().enumerate().map(|(at, part)| {
            let mut block = part.place.path();
            if let [PathStep::Key("tool_calls"), ..] = block[..] {
                // The place of a call of a custom tool has no number.
                block = vec![PathStep::Key("tool_calls"), PathStep::Index(listed_calls)];
                listed_calls += 1;
            } else if let [_, PathStep::Index(_), ..] = block[..] {
                block.truncate(2);
            } else if dialect == Dialect::Responses || block[..] == [PathStep::Key("content")] {
                // An item, or a text or a result that is the whole content.
                block.clear();
            } else {
                block.truncate(1);
            }
            Piece {
                source: Source::Part(index as u32, at as u32),
                kind: part.kind,
                part: Some(part),
                block,
                edits: Vec::new(),
            }
        });
        Self {
            base: Some(index as u32),
            role: message.role,
            pieces: pieces.collect(),
            whole: message.parts.len(),
            edits: Vec::new(),
            item: None,
            is_legacy: false,
            has_id: false,
        }
    }

    pub(super) fn made(role: Role, pieces: Vec<Piece<'a, T>>) -> Self {
        Self {
            base: None,
            role,
            pieces,
            whole: 0,
            edits: Vec::new(),
            item: None,
            is_legacy: false,
            has_id: false,
        }
    }

    /// Whether it still has exactly the parts of its base, in their order.
    pub(super) fn is_whole(&self) -> bool {
        self.base.is_some_and(|base| {
            self.pieces.len() == self.whole
                && self.pieces.iter().enumerate().all(
                    |(at, piece)| matches!(piece.source, Source::Part(m, p) if m == base && p as usize == at),
                )
        })
    }

    /// Whether it is a user's message: it has something else than results.
    pub(super) fn is_users(&self) -> bool {
        matches!(self.role, Role::User | Role::Tool)
            && self.pieces.iter().any(|piece| !piece.is_result())
    }

    /// Whether nothing is left but reasoning.
    pub(super) fn is_hollow(&self) -> bool {
        self.pieces
            .iter()
            .all(|piece| piece.kind == PartKind::Reasoning)
    }
}

/// A text of one part, for reading: the text itself, texts of a list joined, anything else as JSON.
pub(super) fn plain_text<T: Text>(body: &Body<T>) -> String {
    match body {
        Body::Text(text) => text.with(str::to_owned),
        Body::Empty => String::new(),
        Body::Value(value) => value.to_json(),
    }
}

/// The string of a made JSON value.
pub(super) fn string(text: impl Into<String>) -> Json {
    Json::String(text.into())
}
