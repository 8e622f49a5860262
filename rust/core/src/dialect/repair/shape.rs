//! Values of the wrong type that can only mean one thing, made what the dialect asks for.
//!
//! Works on one message that a reader refuses, before anything else is looked at. What could mean
//! two things is left: the reader's error then says where it is.

use serde_json::{Value as Json, json};

use super::edit::{Block, Edit, Path};
use crate::dialect::Dialect;
use crate::dialect::flaws::arguments::object_of;
use crate::message::PathStep;
use crate::node::{Node, Shape, Text as _};

const CONTENT: PathStep = PathStep::Key("content");

/// The edits that make message `index` readable, as far as they are beyond doubt.
pub(super) fn mend<N: Node>(dialect: Dialect, message: &N, index: usize) -> Vec<Edit> {
    let mut mending = Mending {
        message: index as u32,
        edits: Vec::new(),
    };
    if message.shape() != Shape::Map {
        return Vec::new();
    }
    mending.role(message, dialect);
    if dialect == Dialect::Gemini {
        mending.parts(message);
        return mending.edits;
    }
    let is_result = message.get("role").is_some_and(|role| role.is_str("tool"));
    if let Some(content) = message.get("content") {
        if is_result {
            mending.result_content(&content, &vec![CONTENT]);
        } else {
            mending.content(&content, dialect);
        }
    }
    mending.id(message, vec![PathStep::Key("tool_call_id")]);
    if let Some(calls) = message.get("tool_calls") {
        mending.calls(&calls);
    }
    mending.edits
}

struct Mending {
    message: u32,
    edits: Vec<Edit>,
}

impl Mending {
    fn role<N: Node>(&mut self, message: &N, dialect: Dialect) {
        let models = if dialect == Dialect::Gemini {
            "model"
        } else {
            "assistant"
        };
        let known = message.get("role").and_then(|role| {
            role.with_str(|role| match role.trim().to_ascii_lowercase().as_str() {
                "human" => Some("user".to_owned()),
                "ai" => Some(models.to_owned()),
                "model" if models != role => Some(models.to_owned()),
                lower if lower != role => Some(lower.to_owned()),
                _ => None,
            })
        });
        if let Some(Some(role)) = known {
            self.edits
                .push(Edit::Set(vec![PathStep::Key("role")], Json::String(role)));
        }
    }

    /// Parts of Gemini: arguments and responses that are no objects.
    fn parts<N: Node>(&mut self, message: &N) {
        const PARTS: PathStep = PathStep::Key("parts");
        let Some(parts) = message.get("parts") else {
            return;
        };
        let mut blocks = Vec::with_capacity(parts.len());
        let mut is_changed = false;
        for at in 0..parts.len() {
            let Some(part) = parts.item(at) else { break };
            let mut edits = Vec::new();
            for (holder, field) in [
                ("functionCall", "args"),
                ("function_call", "args"),
                ("functionResponse", "response"),
                ("function_response", "response"),
            ] {
                let value = part.get(holder).and_then(|holder| holder.get(field));
                let value =
                    value.filter(|value| !matches!(value.shape(), Shape::Map | Shape::Null));
                let Some(Ok(value)) = value.map(|value| value.capture()) else {
                    continue;
                };
                let object = match (field, value.as_text()) {
                    ("args", Some(text)) => text.with(object_of),
                    ("args", None) => object_of(&value.to_json()),
                    (_, Some(text)) => json!({"output": text.with(str::to_owned)}),
                    (_, None) => json!({"output": value.to_json()}),
                };
                let path = vec![PathStep::Key(holder), PathStep::Key(field)];
                edits.push(Edit::Set(path, object));
            }
            // A part that is null or a bare string.
            match part.shape() {
                Shape::Null => is_changed = true,
                Shape::Text => {
                    is_changed = true;
                    let text = part.with_str(str::to_owned).unwrap_or_default();
                    blocks.push(Block::New(json!({"text": text})));
                }
                _ => {
                    is_changed |= !edits.is_empty();
                    let path = vec![PARTS, PathStep::Index(at as u32)];
                    blocks.push(Block::Own(self.message, path, edits));
                }
            }
        }
        if is_changed {
            self.edits.push(Edit::Blocks(vec![PARTS], blocks));
        }
    }

    /// The content of a message that is no result: one block becomes a list, a scalar its text.
    fn content<N: Node>(&mut self, content: &N, dialect: Dialect) {
        match content.shape() {
            Shape::Map if content.get("type").is_some() => {
                let own = Block::Own(self.message, vec![CONTENT], Vec::new());
                self.edits.push(Edit::Blocks(vec![CONTENT], vec![own]));
            }
            Shape::Number | Shape::Bool => self.as_text(content, vec![CONTENT]),
            Shape::List => self.blocks(content, dialect),
            _ => {}
        }
    }

    fn blocks<N: Node>(&mut self, content: &N, dialect: Dialect) {
        let mut blocks = Vec::with_capacity(content.len());
        let mut is_changed = false;
        for at in 0..content.len() {
            let Some(block) = content.item(at) else { break };
            let path = vec![CONTENT, PathStep::Index(at as u32)];
            let own = |edits| Block::Own(self.message, path.clone(), edits);
            let has_text = block
                .get("text")
                .is_some_and(|text| text.shape() == Shape::Text);
            let has_type = block
                .get("type")
                .is_some_and(|kind| kind.shape() == Shape::Text);
            let is_text = block.get("type").is_some_and(|kind| kind.is_str("text"));
            match block.shape() {
                Shape::Null => is_changed = true,
                Shape::Text => {
                    is_changed = true;
                    blocks.push(Block::Text(self.message, path, "text"));
                }
                Shape::Map if !has_type && has_text => {
                    is_changed = true;
                    let kind = vec![PathStep::Key("type")];
                    blocks.push(own(vec![Edit::Set(kind, Json::String("text".into()))]));
                }
                // A text block without a text says nothing.
                Shape::Map if is_text && block.get("text").is_none_or(|text| text.is_null()) => {
                    is_changed = true;
                }
                Shape::Map if dialect == Dialect::Anthropic => {
                    let edits = inside(&block, self.message, &path);
                    is_changed |= !edits.is_empty();
                    blocks.push(own(edits));
                }
                _ => blocks.push(own(Vec::new())),
            }
        }
        if is_changed {
            self.edits.push(Edit::Blocks(vec![CONTENT], blocks));
        }
    }

    /// The content of a result: what is no string and no list of blocks is its JSON text.
    fn result_content<N: Node>(&mut self, content: &N, path: &Path) {
        self.edits
            .extend(result_edit(content, path.clone(), self.message, path));
    }

    fn id<N: Node>(&mut self, holder: &N, path: Path) {
        if let Some(PathStep::Key(key)) = path.last().copied()
            && let Some(id) = holder.get(key)
            && id.shape() == Shape::Number
        {
            self.as_text(&id, path);
        }
    }

    fn as_text<N: Node>(&mut self, value: &N, path: Path) {
        self.edits.extend(json_text(value, path));
    }

    fn calls<N: Node>(&mut self, calls: &N) {
        const CALLS: PathStep = PathStep::Key("tool_calls");
        match calls.shape() {
            Shape::Map => {
                let own = Block::Own(self.message, vec![CALLS], Vec::new());
                self.edits.push(Edit::Blocks(vec![CALLS], vec![own]));
            }
            Shape::List => {
                for at in 0..calls.len() {
                    let Some(call) = calls.item(at) else { break };
                    let path = vec![CALLS, PathStep::Index(at as u32), PathStep::Key("id")];
                    self.id(&call, path);
                }
            }
            _ => {}
        }
    }
}

/// The edits of one content block of Anthropic: ids that are numbers, contents that are data.
fn inside<N: Node>(block: &N, message: u32, place: &[PathStep]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for key in ["id", "tool_use_id"] {
        if let Some(id) = block.get(key)
            && id.shape() == Shape::Number
        {
            edits.extend(json_text(&id, vec![PathStep::Key(key)]));
        }
    }
    let is_result = block
        .get("type")
        .is_some_and(|kind| kind.is_str("tool_result"));
    if is_result && let Some(content) = block.get("content") {
        let from = [place, &[CONTENT]].concat();
        edits.extend(result_edit(&content, vec![CONTENT], message, &from));
    }
    if let Some(is_error) = block.get("is_error")
        && let Some(number) = is_error.number()
    {
        let path = vec![PathStep::Key("is_error")];
        edits.push(Edit::Set(path, Json::Bool(number != 0.0)));
    }
    edits
}

/// The content of a result as a list of blocks, where that is what it is but for empty items and
/// bare strings; else its JSON text. `path` leads to it from where the edit starts, `from` from the
/// message.
fn result_edit<N: Node>(content: &N, path: Path, message: u32, from: &[PathStep]) -> Option<Edit> {
    let is_text = |value: Option<N>| value.is_some_and(|value| value.shape() == Shape::Text);
    let is_block = |block: &N| {
        let kind = block.get("type");
        let says_text = kind.as_ref().is_some_and(|kind| kind.is_str("text"));
        block.shape() == Shape::Map && is_text(kind) && (!says_text || is_text(block.get("text")))
    };
    match content.shape() {
        Shape::Null | Shape::Text => return None,
        Shape::List => {}
        _ => return json_text(content, path),
    }
    let items: Vec<N> = (0..content.len())
        .filter_map(|at| content.item(at))
        .collect();
    if items.iter().all(is_block) {
        return None;
    }
    let is_plain = |item: &N| matches!(item.shape(), Shape::Null | Shape::Text) || is_block(item);
    if !items.iter().all(is_plain) {
        return json_text(content, path);
    }
    let mut blocks = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let own = [from, &[PathStep::Index(at as u32)]].concat();
        match item.shape() {
            Shape::Null => {}
            Shape::Text => blocks.push(Block::Text(message, own, "text")),
            _ => blocks.push(Block::Own(message, own, Vec::new())),
        }
    }
    Some(Edit::Blocks(path, blocks))
}

fn json_text<N: Node>(value: &N, path: Path) -> Option<Edit> {
    let text = value.capture().ok()?.to_json();
    Some(Edit::Set(path, Json::String(text)))
}
