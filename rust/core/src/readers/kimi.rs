//! Kimi wire files: what was appended to the context, and the events of the agent's loop.
//!
//! Read into the `openai` dialect: the parts of a step become one assistant message (thinking as
//! `reasoning_content`, which this model wants back), each result a tool message after it. A
//! compaction stays out of the history; `compactions` in the metadata says before which message it
//! happened.

use super::json::{Json, JsonText};
use super::log::{Log, arguments, call};
use super::stream::Record;
use super::usage::usage;
use super::{Conversation, Format};

/// The conversation of one wire file.
pub(super) fn read(records: Vec<Record>) -> Vec<Conversation> {
    let mut conversation = Conversation::new(Format::Kimi, "openai", Vec::new());
    conversation.line = records.first().map_or(1, |record| record.line);
    let mut wire = Wire::default();
    for Record { value, .. } in records {
        wire.take(value, &mut conversation);
    }
    wire.close();
    conversation.messages = wire.log.messages;
    if !wire.compactions.is_empty() {
        conversation.note("compactions", Json::List(wire.compactions));
    }
    vec![conversation]
}

#[derive(Debug, Default)]
struct Wire {
    log: Log,
    /// Results of the open step: they follow its message.
    results: Vec<(Option<Box<str>>, Json)>,
    texts: Vec<JsonText>,
    thoughts: Vec<JsonText>,
    calls: Vec<Json>,
    compactions: Vec<Json>,
    /// Index of the message of the step that was closed last.
    step: usize,
}

impl Wire {
    fn take(&mut self, mut record: Json, conversation: &mut Conversation) {
        match record.str_at("type") {
            Some("config.update") => {
                if let Some(prompt) = record.take_some("systemPrompt") {
                    conversation.system = Some(prompt);
                }
            }
            Some("llm.request") => conversation.name_model(record.str_at("model")),
            Some("context.append_message") => {
                self.close();
                let message = record.take("message").unwrap_or_default();
                self.take_message(message);
            }
            Some("context.append_loop_event") => {
                let event = record.take("event").unwrap_or_default();
                self.take_event(event, conversation);
            }
            Some("context.apply_compaction") => {
                self.close();
                self.compactions.push(self.log.messages.len().into());
            }
            _ => {}
        }
    }

    fn take_message(&mut self, mut message: Json) {
        let content = message.take("content").unwrap_or_default();
        match message.str_at("role") {
            Some("assistant") => {
                for part in content.into_items() {
                    self.take_part(part);
                }
                for call in message.take("toolCalls").unwrap_or_default().into_items() {
                    self.take_call(call);
                }
                self.close();
            }
            Some("tool") => {
                let id = message.str_at("toolCallId").map(Into::into);
                self.results.push((id, content));
                self.close();
            }
            Some(role) => self.log.say(role, content),
            None => {}
        }
    }

    fn take_event(&mut self, mut event: Json, conversation: &mut Conversation) {
        match event.str_at("type") {
            Some("step.begin") => self.close(),
            Some("content.part") => {
                let part = event.take("part").unwrap_or_default();
                // A part after results begins a reply of its own.
                if !self.results.is_empty() {
                    self.close();
                }
                self.take_part(part);
            }
            Some("tool.call") => self.take_call(event),
            Some("tool.result") => {
                let id = event.str_at("toolCallId").map(Into::into);
                let result = event.take("result").unwrap_or_default();
                self.results.push((id, output(result)));
            }
            Some("step.end") => {
                self.close();
                let model = conversation.model.as_deref();
                let record = event.get("usage");
                let reported = record.and_then(|record| usage(self.step, model, record));
                conversation.usage.extend(reported);
            }
            _ => {}
        }
    }

    fn take_part(&mut self, mut part: Json) {
        match part.str_at("type") {
            Some("think") => self.thoughts.extend(text(part.take("think"))),
            _ => self.texts.extend(text(part.take("text"))),
        }
    }

    fn take_call(&mut self, mut event: Json) {
        let given = event
            .take_some("args")
            .or_else(|| event.take_some("arguments"));
        let id = event
            .str_at("toolCallId")
            .or(event.str_at("id"))
            .unwrap_or_default();
        let name = event.str_at("name").unwrap_or_default();
        self.calls.push(call(id, name, arguments(given)));
    }

    /// Writes the message of the open step and the results so far.
    fn close(&mut self) {
        let texts = std::mem::take(&mut self.texts);
        let thoughts = std::mem::take(&mut self.thoughts);
        let calls = std::mem::take(&mut self.calls);
        if !(texts.is_empty() && thoughts.is_empty() && calls.is_empty()) {
            self.step = self.log.messages.len();
            let content = match texts.len() {
                0 => Json::Null,
                _ => Json::Text(JsonText::concat(&texts)),
            };
            let reasoning = (!thoughts.is_empty()).then(|| JsonText::concat(&thoughts));
            self.log.answer(content, reasoning, calls);
        }
        for (id, content) in std::mem::take(&mut self.results) {
            // A result that answers nothing has no place in the dialect.
            let _ = self.log.result(id.as_deref(), content);
        }
    }
}

fn text(value: Option<Json>) -> Option<JsonText> {
    value.filter(|value| !value.is_null()).map(Json::into_text)
}

fn output(mut result: Json) -> Json {
    let found = ["output", "content"]
        .iter()
        .find_map(|key| result.take_some(key));
    match found.unwrap_or(result) {
        kept @ (Json::Text(_) | Json::Null) => kept,
        Json::List(items) if items.iter().all(|item| item.has("type")) => Json::List(items),
        other => Json::Text(other.into_text()),
    }
}
