//! Serialised `LangChain` messages: the constructor form (`lc`), the data form (`type` and `data`)
//! and the flat form (`type` and `content`).
//!
//! Read into the `openai` dialect. Calls come from `tool_calls`, so blocks of the content that repeat
//! them are left out; calls that could not be parsed are calls all the same.

use super::json::Json;
use super::log::{arguments, call};
use super::usage::usage;
use super::{Conversation, Format};

/// The conversation of a state that holds `messages`.
pub(super) fn read_state(mut state: Json) -> Conversation {
    read(state.take("messages").unwrap_or_default().into_items())
}

/// The conversation of a list of messages.
pub(super) fn read(messages: Vec<Json>) -> Conversation {
    let mut conversation = Conversation::new(Format::LangChain, "openai", Vec::new());
    for entry in messages {
        let (kind, mut fields) = opened(entry);
        let Some(role) = role(&kind, &fields) else {
            continue;
        };
        let index = conversation.messages.len();
        if role == "assistant" {
            let metadata = fields.take("response_metadata").unwrap_or_default();
            let model = ["model_name", "model"]
                .iter()
                .find_map(|key| metadata.str_at(key));
            conversation.name_model(model);
            let record = fields
                .get("usage_metadata")
                .filter(|record| record.is_map());
            let record = record
                .or(metadata.get("token_usage"))
                .or(metadata.get("usage"));
            let reported = record.and_then(|record| usage(index, model, record));
            conversation.usage.extend(reported);
        }
        conversation.messages.push(message(&role, fields));
    }
    conversation
}

/// The kind of a message and its fields.
fn opened(mut entry: Json) -> (String, Json) {
    if let Some(fields) = entry.take_some("kwargs") {
        let kind = match entry.get("id") {
            Some(Json::List(path)) => path.last().and_then(Json::as_str),
            _ => None,
        };
        return (kind.unwrap_or_default().to_owned(), fields);
    }
    let kind = entry
        .str_at("type")
        .or(entry.str_at("role"))
        .unwrap_or_default()
        .to_owned();
    match entry.take_some("data") {
        Some(data) => (kind, data),
        None => (kind, entry),
    }
}

/// The role of a kind; `None` for marks that are no message.
fn role(kind: &str, fields: &Json) -> Option<String> {
    let kind = kind.strip_suffix("Chunk").unwrap_or(kind);
    let kind = kind
        .strip_suffix("Message")
        .unwrap_or(kind)
        .to_ascii_lowercase();
    let role = match kind.as_str() {
        "human" | "user" => "user",
        "ai" | "assistant" => "assistant",
        "remove" => return None,
        "system" | "developer" | "tool" | "function" => &kind,
        _ => match fields.str_at("role") {
            Some(role @ ("user" | "assistant" | "system" | "developer")) => role,
            _ => "user",
        },
    };
    Some(role.to_owned())
}

fn message(role: &str, mut fields: Json) -> Json {
    let content = content(
        fields.take("content").unwrap_or_default(),
        role == "assistant",
    );
    let mut message = Json::map([("role", role.into()), ("content", content)]);
    if let Some(name) = fields
        .take_some("name")
        .filter(|name| name.as_str() != Some(""))
    {
        if role != "tool" {
            message.set("name", name);
        }
    }
    if role == "tool" {
        message.set(
            "tool_call_id",
            fields.take("tool_call_id").unwrap_or_default(),
        );
    }
    if role != "assistant" {
        return message;
    }
    let mut extra = fields.take("additional_kwargs").unwrap_or_default();
    if let Some(reasoning) = extra.take_some("reasoning_content") {
        message.set("reasoning_content", reasoning);
    }
    let mut calls: Vec<Json> = Vec::new();
    for key in ["tool_calls", "invalid_tool_calls"] {
        for mut entry in fields.take(key).unwrap_or_default().into_items() {
            let given = entry.take("args");
            let id = entry.str_at("id").unwrap_or_default();
            let name = entry.str_at("name").unwrap_or_default();
            calls.push(call(id, name, arguments(given)));
        }
    }
    if calls.is_empty() {
        // Older files keep the provider's own form only.
        calls = extra.take("tool_calls").unwrap_or_default().into_items();
    }
    if let Some(function) = extra
        .take_some("function_call")
        .filter(|_| calls.is_empty())
    {
        message.set("function_call", function);
    }
    if !calls.is_empty() {
        message.set("tool_calls", Json::List(calls));
    }
    message
}

/// Content without the blocks that repeat calls, images in the form of the dialect.
fn content(content: Json, is_reply: bool) -> Json {
    let Json::List(blocks) = content else {
        return content;
    };
    let is_call = |block: &Json| {
        matches!(
            block.str_at("type"),
            Some("tool_use" | "tool_call" | "function_call" | "input_json_delta")
        )
    };
    let blocks = blocks
        .into_iter()
        .filter(|block| !(is_reply && is_call(block)))
        .map(block);
    Json::List(blocks.collect())
}

fn block(mut block: Json) -> Json {
    if let Json::Text(text) = block {
        return Json::map([("type", "text".into()), ("text", Json::Text(text))]);
    }
    if block.str_at("type") != Some("image") {
        return block;
    }
    let url = match (
        block.take_some("url"),
        block.take_some("data").or(block.take_some("base64")),
    ) {
        (Some(url), _) => url,
        (None, Some(data)) => {
            let media = block
                .take_some("mime_type")
                .unwrap_or_else(|| "image/png".into());
            let parts = [
                "data:".into(),
                media.into_text(),
                ";base64,".into(),
                data.into_text(),
            ];
            Json::Text(super::json::JsonText::concat(&parts))
        }
        (None, None) => return block,
    };
    Json::map([
        ("type", "image_url".into()),
        ("image_url", Json::map([("url", url)])),
    ])
}
