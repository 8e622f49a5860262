//! The form between two dialects: who says what, with calls and results apart.

use serde_json::Value as Json;

use super::media::Media;
use crate::message::Role;

/// One source message.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) role: Role,
    /// Raw index of the source message; `None` for the system argument.
    pub(super) index: Option<usize>,
    pub(super) name: Option<String>,
    /// Whether the message held nothing at all.
    pub(super) was_empty: bool,
    pub(super) pieces: Vec<Piece>,
}

/// One piece of a message.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Text(String),
    Refusal(String),
    Media(Media),
    Call(Call),
    Outcome(Outcome),
}

/// A call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) arguments: Arguments,
}

/// What a tool is called with.
#[derive(Clone, Debug)]
pub(super) enum Arguments {
    /// A string that should be JSON.
    Text(String),
    Json(Json),
    /// The free text of a custom tool.
    Free(String),
}

/// The result of a call.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Raw index of the source message; `None` for a placeholder.
    pub(super) index: Option<usize>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    /// Texts and media.
    pub(super) content: Vec<Piece>,
    pub(super) is_error: bool,
}

impl Outcome {
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }
}
