//! From messages as their reader gives them to turns.

use serde_json::{Map, Value as Json, json};

use super::loss::{LossKind, Losses, plain_name};
use super::media;
use super::turn::{Arguments, Call, Outcome, Piece, Turn};
use crate::dialect::{Dialect, read_message, read_system};
use crate::error::Result;
use crate::message::{Body, Field, Message, Part, PartKind, Place};
use crate::node::{Node, Shape, Text, Value};

/// What a call part needs no signature for: the dummies that the provider documents for histories
/// of other models. The second form is the first in base64.
const DUMMIES: [&str; 3] = [
    super::gemini::DUMMY_SIGNATURE,
    "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
    "context_engineering_is_the_way_to_go",
];

/// Reads one message.
pub(super) fn read_turn<N: Node>(
    source: Dialect,
    node: &N,
    index: usize,
    losses: &mut Losses,
) -> Result<Turn> {
    let message = read_message(source, node, index)?;
    let mut reader = Reader {
        source,
        index: Some(index),
        losses,
    };
    reader.note_fields(node);
    let kind = node
        .get("type")
        .and_then(|kind| kind.with_str(str::to_owned));
    Ok(reader.turn(&message, kind.as_deref()))
}

/// Reads the system argument.
pub(super) fn read_argument<N: Node>(
    source: Dialect,
    node: &N,
    losses: &mut Losses,
) -> Result<Turn> {
    let message = read_system(node)?;
    let mut reader = Reader {
        source,
        index: None,
        losses,
    };
    reader.note_blocks(node);
    Ok(reader.turn(&message, None))
}

/// A captured value as parsed JSON; what has no JSON form is listed.
pub(super) fn json_of<T: Text>(
    value: &Value<T>,
    index: Option<usize>,
    losses: &mut Losses,
) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Number(number) => {
            if let Ok(number) = serde_json::from_str::<serde_json::Number>(number) {
                return Json::Number(number);
            }
            losses.add(index, LossKind::Character, "a number without JSON form");
            Json::String(number.to_string())
        }
        Value::Text(text) => Json::String(string_of(text, index, losses)),
        Value::List(items) => items
            .iter()
            .map(|item| json_of(item, index, losses))
            .collect(),
        Value::Map(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                let value = json_of(value, index, losses);
                map.insert(string_of(key, index, losses), value);
            }
            Json::Object(map)
        }
    }
}

fn string_of<T: Text>(text: &T, index: Option<usize>, losses: &mut Losses) -> String {
    let found = text.with(str::to_owned);
    // A pair of surrogates is its character; only a lone one is replaced, which no text of valid
    // UTF-8 needs.
    if found.contains('\u{fffd}') && std::str::from_utf8(&text.to_bytes()).is_err() {
        losses.add(
            index,
            LossKind::Character,
            "half a surrogate pair became U+FFFD",
        );
    }
    found
}

struct Reader<'a> {
    source: Dialect,
    index: Option<usize>,
    losses: &'a mut Losses,
}

impl Reader<'_> {
    fn lose(&mut self, kind: LossKind, detail: impl Into<String>) {
        self.losses.add(self.index, kind, detail);
    }

    fn string<T: Text>(&mut self, text: &T) -> String {
        string_of(text, self.index, self.losses)
    }

    fn json<T: Text>(&mut self, value: &Value<T>) -> Json {
        json_of(value, self.index, self.losses)
    }

    /// Lists what stands beside the content and goes.
    fn note_fields<N: Node>(&mut self, node: &N) {
        if node.field_count() == Some(2)
            && node
                .get("content")
                .is_some_and(|content| content.shape() == Shape::Text)
        {
            return;
        }
        let is_there = |key| node.get(key).is_some_and(|value| !value.is_null());
        if is_there("cache_control") {
            self.lose(LossKind::CacheMark, "cache_control");
        }
        for key in ["phase", "namespace", "annotations"] {
            let value = node.get(key).filter(|value| !value.is_null());
            if value.is_some_and(|value| value.shape() != Shape::List || !value.is_empty()) {
                self.lose(LossKind::Field, key);
            }
        }
        for key in ["content", "parts"] {
            if let Some(blocks) = node.get(key) {
                self.note_blocks(&blocks);
            }
        }
    }

    fn note_blocks<N: Node>(&mut self, blocks: &N) {
        for at in 0..blocks.len() {
            let Some(block) = blocks.item(at) else { break };
            if block.shape() != Shape::Map {
                continue;
            }
            let value = |key| block.get(key).filter(|value| !value.is_null());
            if value("cache_control").is_some() {
                self.lose(LossKind::CacheMark, "cache_control");
            }
            for key in ["citations", "annotations"] {
                if value(key).is_some_and(|list| list.shape() == Shape::List && !list.is_empty()) {
                    self.lose(LossKind::Citations, key);
                }
            }
            if self.source == Dialect::Gemini
                && value("thought").is_none_or(|thought| thought.bool() != Some(true))
                && let Some(signature) =
                    value("thoughtSignature").or_else(|| value("thought_signature"))
                && !DUMMIES.iter().any(|dummy| signature.is_str(dummy))
            {
                self.lose(LossKind::Signature, "thoughtSignature");
            }
        }
    }

    fn turn<T: Text>(&mut self, message: &Message<T>, kind: Option<&str>) -> Turn {
        let mut pieces = Vec::with_capacity(message.parts.len());
        let mut has_reasoning = false;
        for part in &message.parts {
            match part.kind {
                PartKind::Text => {
                    if let Body::Text(text) = &part.body {
                        let text = self.string(text);
                        pieces.push(if part.place == Place::Field(Field::Refusal) {
                            Piece::Refusal(text)
                        } else {
                            Piece::Text(text)
                        });
                    }
                }
                // Several fields may hold the same reasoning; it is one loss.
                PartKind::Reasoning => has_reasoning = true,
                PartKind::Call => pieces.push(Piece::Call(self.call(part, kind))),
                PartKind::Result => pieces.push(Piece::Outcome(self.outcome(part))),
                PartKind::Image | PartKind::Audio | PartKind::File | PartKind::Opaque => {
                    if let Body::Value(value) = &part.body {
                        let value = self.json(value);
                        let is_audio = part.place == Place::Field(Field::Audio);
                        pieces.extend(if is_audio {
                            self.spoken(&value)
                        } else {
                            self.block(value)
                        });
                    }
                }
            }
        }
        if has_reasoning {
            self.lose(LossKind::Reasoning, "reasoning stays with its provider");
        }
        Turn {
            role: message.role,
            index: self.index,
            name: message.name.as_ref().map(|name| self.string(name)),
            was_empty: message.parts.is_empty(),
            pieces,
        }
    }

    /// What the model said aloud: its words, where they were written down.
    fn spoken(&mut self, audio: &Json) -> Option<Piece> {
        self.lose(LossKind::Audio, "the model's own sound");
        let words = audio.get("transcript")?.as_str()?;
        Some(Piece::Text(words.to_owned()))
    }

    /// A block that is neither text, call nor result.
    fn block(&mut self, block: Json) -> Option<Piece> {
        if let Some(media) = media::parse(&block) {
            return Some(Piece::Media(media));
        }
        let string = |key: &str| block.get(key).and_then(Json::as_str);
        let kind = string("type").unwrap_or_else(|| {
            // The one key of a block without a type.
            let object = block.as_object();
            let keys = object.into_iter().flat_map(Map::keys);
            keys.map(String::as_str)
                .find(|key| !key.to_lowercase().contains("signature"))
                .unwrap_or("block")
        });
        let kind = plain_name(kind).to_owned();
        let text = match kind.as_str() {
            "refusal" => return Some(Piece::Refusal(string("refusal")?.to_owned())),
            "cachePoint" => {
                self.lose(LossKind::CacheMark, kind);
                return None;
            }
            // What only its provider can read, or what declares instead of saying.
            "item_reference"
            | "mcp_list_tools"
            | "additional_tools"
            | "configuration_update"
            | "tool_addition"
            | "tool_removal" => {
                self.lose(LossKind::Opaque, format!("{kind} went"));
                return None;
            }
            "compaction" => {
                let Some(text) = string("content").filter(|text| !text.is_empty()) else {
                    self.lose(LossKind::Opaque, "compaction went");
                    return None;
                };
                format!("[compaction]\n{text}")
            }
            "guardContent" => match block.pointer("/guardContent/text/text") {
                Some(Json::String(text)) => text.clone(),
                _ => labelled(&kind, block),
            },
            "citationsContent" => {
                let content = block.pointer("/citationsContent/content");
                let texts = content.and_then(Json::as_array).into_iter().flatten();
                let texts: Vec<&str> = texts
                    .filter_map(|item| item.get("text")?.as_str())
                    .collect();
                self.lose(LossKind::Citations, kind);
                return Some(Piece::Text(texts.concat()));
            }
            _ => labelled(&kind, block),
        };
        self.lose(LossKind::Opaque, format!("{kind} became text"));
        Some(Piece::Text(text))
    }

    fn call<T: Text>(&mut self, part: &Part<T>, kind: Option<&str>) -> Call {
        let key = part.key.as_deref();
        let id = key.and_then(|key| key.id.as_ref());
        let id = id.map(|id| self.string(id));
        let name = key.and_then(|key| key.name.as_ref());
        let mut name = name.map(|name| self.string(name));
        let fixed = match part.place {
            Place::Field(field) => Some(field),
            _ => None,
        };
        let is_custom = part.place == Place::Input || fixed == Some(Field::ToolCalls);
        let mut arguments = match &part.body {
            Body::Text(text) if is_custom => Arguments::Free(self.string(text)),
            Body::Text(text) => Arguments::Text(self.string(text)),
            Body::Value(value) => Arguments::Json(self.json(value)),
            Body::Empty => Arguments::Json(json!({})),
        };
        let is_hosted =
            part.place == Place::Item || (self.source == Dialect::Responses && fixed.is_some());
        if is_hosted {
            let kind = plain_name(kind.unwrap_or_default());
            self.lose(LossKind::CallKind, format!("{kind} became a function call"));
            let tool = kind.strip_suffix("_call").unwrap_or(kind);
            name.get_or_insert_with(|| tool.to_owned());
            arguments = match (fixed, arguments) {
                (Some(Field::Arguments) | None, Arguments::Json(mut json)) => {
                    strip_private(&mut json);
                    Arguments::Json(json)
                }
                (Some(Field::Arguments) | None, other) => other,
                (Some(field), Arguments::Json(json)) => {
                    Arguments::Json(json!({field.name(): json}))
                }
                (Some(field), Arguments::Text(text) | Arguments::Free(text)) => {
                    Arguments::Json(json!({field.name(): text}))
                }
            };
        }
        Call {
            id,
            name,
            arguments,
        }
    }

    fn outcome<T: Text>(&mut self, part: &Part<T>) -> Outcome {
        let key = part.key.as_deref();
        let id = key.and_then(|key| key.id.as_ref());
        let name = key.and_then(|key| key.name.as_ref());
        let content = match &part.body {
            Body::Empty => Vec::new(),
            Body::Text(text) => vec![Piece::Text(self.string(text))],
            Body::Value(value) => {
                let value = self.json(value);
                match self.source {
                    Dialect::Gemini => self.response(&value, part),
                    _ => self.content(value),
                }
            }
        };
        Outcome {
            index: self.index,
            id: id.map(|id| self.string(id)),
            name: name.map(|name| self.string(name)),
            content,
            is_error: part.is_error,
        }
    }

    /// The content of a result that is no string.
    fn content(&mut self, value: Json) -> Vec<Piece> {
        let is_block = |item: &Json| {
            let known = ["text", "json", "image", "document", "video", "audio"];
            item.get("type").is_some_and(Json::is_string)
                || known.iter().any(|key| item.get(key).is_some())
        };
        let blocks = match value {
            Json::Array(blocks) if blocks.iter().all(is_block) => blocks,
            // One block without a list: the screenshot of a computer.
            block if media::parse(&block).is_some() => vec![block],
            mut other => {
                strip_private(&mut other);
                return vec![Piece::Text(other.to_string())];
            }
        };
        let mut pieces = Vec::with_capacity(blocks.len());
        for block in blocks {
            if block
                .get("cache_control")
                .is_some_and(|mark| !mark.is_null())
            {
                self.lose(LossKind::CacheMark, "cache_control");
            }
            if self.source == Dialect::Bedrock && block == super::bedrock::nothing() {
                continue;
            }
            if let Some(text) = block.get("text").and_then(Json::as_str) {
                pieces.push(Piece::Text(text.to_owned()));
            } else if let (None, Some(json)) = (block.get("type"), block.get("json")) {
                pieces.push(Piece::Text(json.to_string()));
            } else {
                pieces.extend(self.block(block));
            }
        }
        pieces
    }

    /// The response of a Gemini function: an object by contract.
    fn response<T: Text>(&mut self, value: &Json, part: &Part<T>) -> Vec<Piece> {
        // A result with media beside it was read whole.
        let is_whole = matches!(part.place, Place::SignedPart(_))
            && value.get("parts").is_some_and(Json::is_array);
        if !is_whole {
            return super::gemini::texts_of_response(value, part.is_error);
        }
        let response = value.get("response").unwrap_or(&Json::Null);
        let mut pieces = super::gemini::texts_of_response(response, part.is_error);
        let parts = value.get("parts").and_then(Json::as_array);
        for part in parts.into_iter().flatten() {
            pieces.extend(self.block(part.clone()));
        }
        pieces
    }
}

/// A block as text: its kind and its JSON, without what only its provider can read.
fn labelled(kind: &str, mut block: Json) -> String {
    strip_private(&mut block);
    format!("[{kind}] {block}")
}

/// Longest string that may be base64 and still stand in a text.
const MAX_BASE64: usize = 512;

/// Takes out what is encrypted, signed or base64.
fn strip_private(value: &mut Json) {
    let is_private = |key: &str, value: &Json| {
        let key = key.to_lowercase();
        let is_base64 = |text: &str| {
            text.len() > MAX_BASE64
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte))
        };
        key.contains("encrypted")
            || key.contains("signature")
            || key == "cache_control"
            || value
                .as_str()
                .is_some_and(|text| text.starts_with("data:") || is_base64(text))
    };
    match value {
        Json::Array(items) => items.iter_mut().for_each(strip_private),
        Json::Object(map) => {
            map.retain(|key, value| !is_private(key, value));
            map.values_mut().for_each(strip_private);
        }
        _ => {}
    }
}
