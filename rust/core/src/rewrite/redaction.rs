//! Conversations without personal data and secrets: every text that is written is cleaned before
//! anything else looks at it.
//!
//! The same value has the same placeholder in the whole conversation. Ids, roles, names and payloads
//! stay: calls and results are paired by them. The arguments of calls, and what else is JSON, stay
//! JSON. Reasoning that was signed is no longer what was signed once a value went from it: it goes
//! as a whole; any other signature goes from what it was bound to.

use crate::node::Text as _;
use crate::readers::json::{Json, JsonText, parse};
use crate::redact::{Kinds, Redactor};

/// Fields that are no content: what messages are told apart and paired by, and encoded data.
const KEPT: [&str; 20] = [
    "id",
    "type",
    "role",
    "name",
    "tool_call_id",
    "call_id",
    "tool_use_id",
    "toolUseId",
    "signature",
    "thoughtSignature",
    "thought_signature",
    "encrypted_content",
    "redactedContent",
    "data",
    "bytes",
    "mime_type",
    "mimeType",
    "media_type",
    "model",
    "status",
];

/// Fields below which everything is content, whatever it is called.
const FREE: [&str; 5] = ["arguments", "input", "args", "response", "json"];

/// Fields that say what stands beside them was signed.
const SIGNATURES: [&str; 3] = ["signature", "thoughtSignature", "thought_signature"];

/// Takes the values out of these texts; how many there were.
pub(super) fn redact<'a>(values: impl IntoIterator<Item = &'a mut Json>, kinds: Kinds) -> u64 {
    let mut values: Vec<&mut Json> = values.into_iter().collect();
    let mut cleaner = Cleaner {
        redactor: Redactor::new(kinds),
        count: 0,
    };
    for value in &values {
        cleaner.avoid(value);
    }
    for value in &mut values {
        cleaner.clean(value);
    }
    cleaner.count
}

struct Cleaner {
    redactor: Redactor,
    count: u64,
}

impl Cleaner {
    fn avoid(&mut self, value: &Json) {
        match value {
            Json::Text(text) => self.redactor.avoid(text.as_bytes()),
            Json::List(items) => items.iter().for_each(|item| self.avoid(item)),
            Json::Map(entries) => entries.iter().for_each(|(_, inner)| self.avoid(inner)),
            _ => {}
        }
    }

    /// Whether anything changed.
    fn clean(&mut self, value: &mut Json) -> bool {
        match value {
            Json::Text(text) => self.clean_text(text),
            Json::List(items) => {
                let mut is_changed = false;
                items.retain_mut(|item| {
                    let is_cleaned = self.clean(item);
                    is_changed |= is_cleaned;
                    !(is_cleaned && is_signed_reasoning(item))
                });
                is_changed
            }
            Json::Map(entries) => {
                let mut is_changed = false;
                for (key, inner) in entries.iter_mut() {
                    if KEPT.contains(&&**key) {
                        continue;
                    }
                    is_changed |= match inner {
                        Json::Text(text) if FREE.contains(&&**key) => self.clean_json(text),
                        Json::Text(text) if text.as_bytes().starts_with(b"data:") => false,
                        Json::Map(_) | Json::List(_) if FREE.contains(&&**key) => {
                            self.clean_free(inner)
                        }
                        inner => self.clean(inner),
                    };
                }
                if is_changed && !is_reasoning(entries) {
                    entries.retain(|(key, _)| !SIGNATURES.contains(&&**key));
                }
                is_changed
            }
            _ => false,
        }
    }

    fn clean_text(&mut self, text: &mut JsonText) -> bool {
        let Some((bytes, count)) = self.redactor.redact(text.as_bytes()) else {
            return false;
        };
        self.count += count as u64;
        *text = JsonText::from_slice(&bytes);
        true
    }

    /// Text that may be JSON, and is still JSON then.
    fn clean_json(&mut self, text: &mut JsonText) -> bool {
        let parsed = text.with(|text| parse(text).ok());
        let Some(mut value) = parsed.filter(|value| value.is_map() || value.is_list()) else {
            return self.clean_text(text);
        };
        let is_changed = self.clean_free(&mut value);
        if is_changed {
            *text = value.to_json().into();
        }
        is_changed
    }

    /// An object or list that is content: as its JSON, in which names stand beside values; where
    /// that would be no JSON any more, or another, each text by itself.
    fn clean_free(&mut self, value: &mut Json) -> bool {
        let json = value.to_json();
        let Some((bytes, count)) = self.redactor.redact(json.as_bytes()) else {
            return false;
        };
        let text = String::from_utf8(bytes).ok();
        let cleaned = text.and_then(|text| parse(&text).ok());
        match cleaned.filter(|cleaned| is_alike(value, cleaned)) {
            Some(cleaned) => {
                self.count += count as u64;
                *value = cleaned;
                true
            }
            None => self.clean_leaves(value),
        }
    }

    fn clean_leaves(&mut self, value: &mut Json) -> bool {
        match value {
            Json::Text(text) => self.clean_text(text),
            Json::Int(_) | Json::Number(_) => {
                let Some((bytes, count)) = self.redactor.redact(value.to_json().as_bytes()) else {
                    return false;
                };
                self.count += count as u64;
                *value = Json::Text(JsonText::from_slice(&bytes));
                true
            }
            Json::List(items) => items.iter_mut().fold(false, |is_changed, item| {
                self.clean_leaves(item) | is_changed
            }),
            Json::Map(entries) => entries.iter_mut().fold(false, |is_changed, (_, inner)| {
                self.clean_leaves(inner) | is_changed
            }),
            Json::Null | Json::Bool(_) => false,
        }
    }
}

/// Whether two values differ in their texts and numbers alone.
fn is_alike(before: &Json, after: &Json) -> bool {
    match (before, after) {
        (Json::List(before), Json::List(after)) => {
            before.len() == after.len() && before.iter().zip(after).all(|(a, b)| is_alike(a, b))
        }
        (Json::Map(before), Json::Map(after)) => {
            before.len() == after.len()
                && before
                    .iter()
                    .zip(after)
                    .all(|((a, before), (b, after))| a == b && is_alike(before, after))
        }
        (Json::Text(_), Json::Text(_)) => true,
        (before, after) => before == after,
    }
}

/// Whether this is reasoning that its provider signed.
fn is_signed_reasoning(block: &Json) -> bool {
    let is_signed = |block: &Json| SIGNATURES.iter().any(|key| block.has(key));
    match block {
        Json::Map(entries) if is_reasoning(entries) => {
            let inner = block.at(&["reasoningContent", "reasoningText"]);
            is_signed(block) || inner.is_some_and(is_signed)
        }
        _ => false,
    }
}

/// Whether these are the fields of a block of reasoning, or of what is inside one.
fn is_reasoning(entries: &[(Box<str>, Json)]) -> bool {
    entries.iter().any(|(key, value)| match &**key {
        "type" => value.as_str() == Some("thinking"),
        "thought" => value.is_true(),
        "reasoningContent" | "thinking" => true,
        _ => false,
    })
}
