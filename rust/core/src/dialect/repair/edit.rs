//! What a repaired message is made of, said as edits of the caller's own objects.
//!
//! Like a window's changes ([`crate::render`]), but blocks may come from other messages: the
//! results of one turn are brought together, and a neighbour is merged. Every representation
//! applies these few forms and shares all that does not change.

use serde_json::{Value as Json, json};

use crate::message::PathStep;

/// The way from a value to one inside it.
pub type Path = Vec<PathStep>;

/// One change inside a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// The value at this path becomes this one; a missing field is made.
    Set(Path, Json),
    /// The field at the end of this path goes.
    Remove(Path),
    /// The value at this path becomes the list of these blocks.
    Blocks(Path, Vec<Block>),
}

/// One block of a list that is put together.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// The caller's own value at a path of a message, with edits.
    Own(u32, Path, Vec<Edit>),
    /// The caller's own string at a path of a message, as a text block of this type.
    Text(u32, Path, &'static str),
    /// A block that is made.
    New(Json),
}

/// What a message of the result starts from.
#[derive(Clone, Debug, PartialEq)]
pub enum Base {
    /// The caller's message of this index.
    Own(u32),
    /// A message that is made.
    New(Json),
}

/// One message of the result; an own message without edits is the caller's same object.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What it starts from.
    pub base: Base,
    /// What changes, in order; all of them read the caller's original objects.
    pub edits: Vec<Edit>,
}

impl Entry {
    /// The index of the caller's message, if this is one, unchanged.
    pub fn original(&self) -> Option<u32> {
        match self.base {
            Base::Own(index) if self.edits.is_empty() => Some(index),
            _ => None,
        }
    }
}

/// The message that `entry` stands for, over the parsed JSON it was made from.
pub fn apply_to_json(messages: &[Json], entry: &Entry) -> Json {
    let base = match &entry.base {
        Base::Own(index) => messages.get(*index as usize).cloned().unwrap_or_default(),
        Base::New(message) => message.clone(),
    };
    edited(messages, base, &entry.edits)
}

fn edited(messages: &[Json], mut value: Json, edits: &[Edit]) -> Json {
    for edit in edits {
        match edit {
            Edit::Set(path, new) => {
                if let Some(slot) = slot(&mut value, path) {
                    *slot = new.clone();
                }
            }
            Edit::Remove(path) => {
                if let Some((PathStep::Key(key), way)) = path.split_last()
                    && let Some(Json::Object(fields)) = slot(&mut value, way)
                {
                    fields.shift_remove(*key);
                }
            }
            Edit::Blocks(path, blocks) => {
                let list = blocks.iter().map(|block| built(messages, block)).collect();
                if let Some(slot) = slot(&mut value, path) {
                    *slot = Json::Array(list);
                }
            }
        }
    }
    value
}

fn built(messages: &[Json], block: &Block) -> Json {
    match block {
        Block::Own(message, path, edits) => {
            edited(messages, found(messages, *message, path), edits)
        }
        Block::Text(message, path, kind) => {
            json!({"type": kind, "text": found(messages, *message, path)})
        }
        Block::New(block) => block.clone(),
    }
}

fn found(messages: &[Json], message: u32, path: &[PathStep]) -> Json {
    let mut value = messages.get(message as usize);
    for step in path {
        value = value.and_then(|value| match step {
            PathStep::Key(key) => value.get(*key),
            PathStep::Index(index) => value.get(*index as usize),
        });
    }
    value.cloned().unwrap_or_default()
}

fn slot<'a>(value: &'a mut Json, path: &[PathStep]) -> Option<&'a mut Json> {
    let mut value = value;
    for step in path {
        value = match step {
            PathStep::Key(key) => value.as_object_mut()?.entry(*key).or_insert(Json::Null),
            PathStep::Index(index) => value.get_mut(*index as usize)?,
        };
    }
    Some(value)
}
