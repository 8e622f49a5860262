//! Inspect logs: one object with samples, each a conversation.
//!
//! Read into the `openai` dialect. Long texts and images that the log keeps apart (`attachment://`)
//! are put back where they belong; reasoning becomes `reasoning_content`; the message of a failed
//! call stands in for its missing output.

use super::json::{Json, JsonText};
use super::log::{arguments, call};
use super::usage::usage;
use super::{Conversation, Format};

const ATTACHMENT: &str = "attachment://";

/// The conversations of a log.
pub(super) fn read(mut log: Json) -> Vec<Conversation> {
    let model = log
        .at(&["eval", "model"])
        .and_then(Json::as_str)
        .map(Box::<str>::from);
    let task = log.at(&["eval", "task"]).cloned();
    let samples = log.take("samples").unwrap_or_default().into_items();
    samples
        .into_iter()
        .map(|sample| self::sample(sample, model.as_deref(), task.as_ref()))
        .collect()
}

fn sample(mut sample: Json, model: Option<&str>, task: Option<&Json>) -> Conversation {
    let mut kept = sample.take("attachments").unwrap_or_default();
    if !kept.is_map() {
        let transcript = sample.at(&["transcript", "content"]).cloned();
        kept = transcript.unwrap_or_default();
    }
    let messages: Vec<Json> = sample
        .take("messages")
        .unwrap_or_default()
        .into_items()
        .into_iter()
        .map(|entry| message(with_attachments(entry, &kept)))
        .collect();
    let index = messages.len().saturating_sub(1);
    let mut conversation = Conversation::new(Format::Inspect, "openai", messages);
    let answered = sample.at(&["output", "model"]).and_then(Json::as_str);
    conversation.name_model(model);
    if conversation.model.is_none() {
        conversation.name_model(answered);
    }
    let record = sample.at(&["output", "usage"]);
    let reported = record.and_then(|record| usage(index, answered, record));
    conversation.usage.extend(reported);
    conversation.note("task", task.cloned().unwrap_or_default());
    conversation.note("sample_id", sample.take("id").unwrap_or_default());
    conversation.note("epoch", sample.take("epoch").unwrap_or_default());
    conversation
}

fn with_attachments(value: Json, kept: &Json) -> Json {
    match value {
        Json::Text(text) => {
            let found = text
                .as_str()
                .and_then(|text| text.strip_prefix(ATTACHMENT))
                .and_then(|id| kept.get(id))
                .cloned();
            found.unwrap_or(Json::Text(text))
        }
        Json::List(items) => {
            let items = items.into_iter().map(|item| with_attachments(item, kept));
            Json::List(items.collect())
        }
        Json::Map(entries) => {
            let entries = entries
                .into_iter()
                .map(|(key, value)| (key, with_attachments(value, kept)));
            Json::Map(entries.collect())
        }
        other => other,
    }
}

fn message(mut entry: Json) -> Json {
    let role = entry.take("role").unwrap_or_default();
    let is_tool = role.as_str() == Some("tool");
    let mut reasoning = Vec::new();
    let mut content = match entry.take("content").unwrap_or_default() {
        Json::List(blocks) => {
            let mut kept = Vec::new();
            for block in blocks {
                if block.str_at("type") == Some("reasoning") {
                    reasoning.extend(thought(block));
                } else {
                    kept.push(self::block(block));
                }
            }
            Json::List(kept)
        }
        other => other,
    };
    if let (true, Some(error)) = (is_tool, entry.take_some("error")) {
        if content.as_str() == Some("") || content.is_null() {
            content = error
                .get("message")
                .cloned()
                .unwrap_or_else(|| error.to_json().into());
        }
    }
    let mut message = Json::map([("role", role), ("content", content)]);
    if !reasoning.is_empty() {
        message.set(
            "reasoning_content",
            Json::Text(JsonText::concat(&reasoning)),
        );
    }
    if is_tool {
        message.set(
            "tool_call_id",
            entry.take("tool_call_id").unwrap_or_default(),
        );
    }
    let calls = entry.take("tool_calls").unwrap_or_default().into_items();
    if !calls.is_empty() {
        let calls = calls.into_iter().map(tool_call).collect();
        message.set("tool_calls", Json::List(calls));
    }
    message
}

fn tool_call(mut entry: Json) -> Json {
    let given = entry.take("arguments");
    let id = entry.str_at("id").unwrap_or_default();
    let name = entry.str_at("function").unwrap_or_default();
    call(id, name, arguments(given))
}

fn thought(mut block: Json) -> Option<JsonText> {
    block.take_some("reasoning").map(Json::into_text)
}

fn block(mut block: Json) -> Json {
    match block.str_at("type") {
        Some("text") => Json::map([
            ("type", "text".into()),
            ("text", block.take("text").unwrap_or_default()),
        ]),
        Some("image") => {
            let mut image = Json::map([("url", block.take("image").unwrap_or_default())]);
            if let Some(detail) = block.take_some("detail") {
                image.set("detail", detail);
            }
            Json::map([("type", "image_url".into()), ("image_url", image)])
        }
        _ => block,
    }
}
