//! A history in the `openai` dialect under construction, for the programs that keep messages in a
//! form of their own.

use super::json::{Json, JsonText};

/// Messages so far, and the calls of the newest assistant message that have no result yet.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) messages: Vec<Json>,
    open: Vec<Box<str>>,
    made: usize,
}

impl Log {
    /// Appends a message of `role` with this content.
    pub(super) fn say(&mut self, role: &str, content: Json) {
        self.open.clear();
        let message = Json::map([("role", role.into()), ("content", content)]);
        self.messages.push(message);
    }

    /// Appends an assistant message; nothing if it holds nothing.
    pub(super) fn answer(&mut self, content: Json, reasoning: Option<JsonText>, calls: Vec<Json>) {
        let mut message = Json::map([("role", "assistant".into()), ("content", content)]);
        if let Some(reasoning) = reasoning {
            message.set("reasoning_content", Json::Text(reasoning));
        }
        self.open = calls.iter().filter_map(call_id).collect();
        if !calls.is_empty() {
            message.set("tool_calls", Json::List(calls));
        }
        self.messages.push(message);
    }

    /// Adds a call to the newest assistant message, or to one of its own.
    pub(super) fn add_call(&mut self, call: Json) {
        let id = call_id(&call);
        match self.messages.last_mut() {
            Some(last) if last.str_at("role") == Some("assistant") => {
                match last.take("tool_calls") {
                    Some(Json::List(mut calls)) => {
                        calls.push(call);
                        last.set("tool_calls", Json::List(calls));
                    }
                    _ => last.set("tool_calls", Json::List(vec![call])),
                }
                self.open.extend(id);
            }
            _ => self.answer(Json::Null, None, vec![call]),
        }
    }

    /// Appends the result of a call. Without an id it answers the first call that is still open.
    /// Gives back the content if there is none.
    pub(super) fn result(&mut self, id: Option<&str>, content: Json) -> Result<(), Json> {
        let id: Box<str> = match id {
            Some(id) => id.into(),
            None => match self.open.first() {
                Some(id) => id.clone(),
                None => return Err(content),
            },
        };
        if let Some(at) = self.open.iter().position(|open| *open == id) {
            self.open.remove(at);
        }
        self.messages.push(Json::map([
            ("role", "tool".into()),
            ("tool_call_id", (&*id).into()),
            ("content", content),
        ]));
        Ok(())
    }

    /// An id for a call that has none; the same file gives the same ids.
    pub(super) fn new_id(&mut self) -> String {
        self.made += 1;
        format!("call_{}", self.made)
    }
}

fn call_id(call: &Json) -> Option<Box<str>> {
    call.str_at("id").map(Into::into)
}

/// A call in the `openai` dialect.
pub(super) fn call(id: &str, name: &str, arguments: JsonText) -> Json {
    let function = Json::map([("name", name.into()), ("arguments", Json::Text(arguments))]);
    Json::map([
        ("id", id.into()),
        ("type", "function".into()),
        ("function", function),
    ])
}

/// Arguments as the JSON text that the dialect wants.
pub(super) fn arguments(value: Option<Json>) -> JsonText {
    match value {
        None | Some(Json::Null) => "{}".into(),
        Some(value) => value.into_text(),
    }
}

/// An object without the keys that are not among these.
pub(super) fn only(record: Json, keys: &[&str]) -> Json {
    match record {
        Json::Map(entries) => Json::Map(
            entries
                .into_iter()
                .filter(|(key, _)| keys.contains(&&**key))
                .collect(),
        ),
        other => other,
    }
}
