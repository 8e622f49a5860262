//! Edits of a window and of a repair, applied to messages as they were parsed.
//!
//! The same edits that [`render`](crate::render) and [`repair`](crate::dialect::repair) describe;
//! here nothing is lost on the way, halves of surrogate pairs included, and texts that do not change
//! are shared with the original.

use serde_json::Value as Serde;

use crate::dialect::Dialect;
use crate::dialect::form::TextForm;
use crate::dialect::repair::{Base, Block, Edit, Entry as RepairEntry};
use crate::message::PathStep;
use crate::node::Text;
use crate::readers::json::Json;
use crate::render::{Change, Entry};

/// A value of the renderer in the form of the readers.
pub(super) fn from_serde(value: Serde) -> Json {
    match value {
        Serde::Null => Json::Null,
        Serde::Bool(value) => Json::Bool(value),
        Serde::Number(number) => {
            let text = number.to_string();
            // As the parser keeps them: what is longer keeps its own digits.
            match number.as_i64().filter(|_| text.len() <= 18) {
                Some(number) => Json::Int(number),
                None => Json::Number(text.into()),
            }
        }
        Serde::String(text) => text.into(),
        Serde::Array(items) => Json::List(items.into_iter().map(from_serde).collect()),
        Serde::Object(entries) => {
            let entries = entries.into_iter();
            Json::Map(
                entries
                    .map(|(key, value)| (key.into(), from_serde(value)))
                    .collect(),
            )
        }
    }
}

/// Adds one entry of a window to `window`.
pub(super) fn push_entry(
    window: &mut Vec<Json>,
    messages: &[Json],
    dialect: Dialect,
    entry: Entry,
) {
    let own = |index: u32| messages.get(index as usize).cloned().unwrap_or_default();
    let message = match entry {
        Entry::Original(index) => own(index),
        Entry::Changed(index, changes) => {
            let mut copy = own(index);
            for change in changes {
                apply_change(&mut copy, change);
            }
            copy
        }
        Entry::New(message) => from_serde(message),
        Entry::Joined(piece) => {
            let mut alone = Vec::new();
            push_entry(&mut alone, messages, dialect, *piece);
            let path = dialect.blocks().path();
            let mut piece = alone.pop().unwrap_or_default();
            let more = slot(&mut piece, &path).map(std::mem::take);
            let before = window.last_mut().and_then(|before| slot(before, &path));
            if let (Some(Json::List(more)), Some(blocks)) = (more, before) {
                match blocks {
                    Json::List(blocks) => blocks.extend(more),
                    other => *other = Json::List(more),
                }
            }
            return;
        }
    };
    window.push(message);
}

fn apply_change(message: &mut Json, change: Change) {
    match change {
        Change::SetText(place, text) => {
            set(message, &place.path(), Json::from(String::from(text)));
        }
        Change::SetJson(place, value) => set(message, &place.path(), from_serde(value)),
        Change::AppendText(place, text, form) => {
            let Some(slot) = slot(message, &place.path()) else {
                return;
            };
            let block = |text: Json| text_block(form, text);
            let text = Json::from(String::from(text));
            match slot {
                Json::Text(before) if !before.with(|before| before.trim().is_empty()) => {
                    *slot = Json::List(vec![block(Json::Text(before.clone())), block(text)]);
                }
                Json::List(blocks) => blocks.push(block(text)),
                _ if form == TextForm::Bare => *slot = Json::List(vec![block(text)]),
                _ => *slot = text,
            }
        }
        Change::InsertBlock(place, at, value) => {
            if let Some(Json::List(blocks)) = slot(message, &place.path()) {
                blocks.insert(at.min(blocks.len()), from_serde(value));
            }
        }
    }
}

fn text_block(form: TextForm, text: Json) -> Json {
    match form {
        TextForm::Typed(kind) => Json::map([("type", kind.into()), ("text", text)]),
        TextForm::Bare => Json::map([("text", text)]),
    }
}

/// The message that an entry of a repair stands for.
pub(super) fn repaired(messages: &[Json], entry: RepairEntry) -> Json {
    let base = match entry.base {
        Base::Own(index) => messages.get(index as usize).cloned().unwrap_or_default(),
        Base::New(message) => from_serde(message),
    };
    edited(messages, base, entry.edits)
}

fn edited(messages: &[Json], mut value: Json, edits: Vec<Edit>) -> Json {
    for edit in edits {
        match edit {
            Edit::Set(path, new) => set(&mut value, &path, from_serde(new)),
            Edit::Remove(path) => {
                if let Some((PathStep::Key(key), way)) = path.split_last()
                    && let Some(inner) = slot(&mut value, way)
                {
                    inner.remove(key);
                }
            }
            Edit::Blocks(path, blocks) => {
                let blocks = blocks.into_iter().map(|block| built(messages, block));
                set(&mut value, &path, Json::List(blocks.collect()));
            }
        }
    }
    value
}

fn built(messages: &[Json], block: Block) -> Json {
    match block {
        Block::Own(message, path, edits) => {
            edited(messages, found(messages, message, &path), edits)
        }
        Block::Text(message, path, kind) => Json::map([
            ("type", kind.into()),
            ("text", found(messages, message, &path)),
        ]),
        Block::New(block) => from_serde(block),
    }
}

fn found(messages: &[Json], message: u32, path: &[PathStep]) -> Json {
    let mut value = messages.get(message as usize);
    for step in path {
        value = value.and_then(|value| match step {
            PathStep::Key(key) => value.get(key),
            PathStep::Index(index) => value.items().get(*index as usize),
        });
    }
    value.cloned().unwrap_or_default()
}

fn set(value: &mut Json, path: &[PathStep], new: Json) {
    if let Some(slot) = slot(value, path) {
        *slot = new;
    }
}

/// The place at the end of a path; a field that is missing (a result without content) is made.
fn slot<'a>(value: &'a mut Json, path: &[PathStep]) -> Option<&'a mut Json> {
    let mut value = value;
    for step in path {
        value = match (step, value) {
            (PathStep::Key(key), Json::Map(entries)) => {
                let at = entries.iter().position(|(name, _)| &**name == *key);
                let at = at.unwrap_or_else(|| {
                    entries.push(((*key).into(), Json::Null));
                    entries.len() - 1
                });
                entries.get_mut(at).map(|(_, inner)| inner)?
            }
            (PathStep::Index(index), Json::List(items)) => items.get_mut(*index as usize)?,
            _ => return None,
        };
    }
    Some(value)
}
