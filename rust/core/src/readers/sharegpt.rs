//! `ShareGPT` lists: turns of `from` and `value`.
//!
//! Read into the `openai` dialect. A turn that is a call in JSON becomes one, with a numbered id; an
//! observation answers the first call that is still open, and is a user message where none is.

use super::json::{Json, parse};
use super::log::{Log, arguments, call};
use super::{Conversation, Format};

/// The conversation of a row with `conversations`.
pub(super) fn read(mut row: Json) -> Conversation {
    let turns = row.take("conversations").unwrap_or_default().into_items();
    let mut conversation = read_turns(turns);
    conversation.system = row
        .take_some("system")
        .filter(|system| system.as_str() != Some(""));
    conversation.tools = match row.take_some("tools") {
        // Tools are often a JSON text.
        Some(Json::Text(text)) => text.as_str().and_then(|text| parse(text).ok()),
        other => other,
    };
    conversation.tools = conversation.tools.filter(|tools| !tools.items().is_empty());
    conversation.name_model(row.str_at("model"));
    conversation.note("id", row.take("id").unwrap_or_default());
    conversation
}

/// The conversation of a list of turns.
pub(super) fn read_turns(turns: Vec<Json>) -> Conversation {
    let mut log = Log::default();
    for mut turn in turns {
        let value = turn.take("value").unwrap_or_default();
        let from = turn
            .str_at("from")
            .or(turn.str_at("role"))
            .unwrap_or_default();
        match from {
            "system" => log.say("system", value),
            "gpt" | "assistant" | "chatgpt" | "bard" | "bing" | "model" => {
                log.answer(value, None, Vec::new());
            }
            "function_call" | "tool_call" => {
                for function in calls(&value) {
                    let id = log.new_id();
                    let name = function.str_at("name").unwrap_or_default();
                    let given = arguments(function.get("arguments").cloned());
                    log.add_call(call(&id, name, given));
                }
            }
            "observation" | "tool" | "function_response" | "tool_response" => {
                if let Err(value) = log.result(None, value) {
                    log.say("user", value);
                }
            }
            _ => log.say("user", value),
        }
    }
    Conversation::new(Format::ShareGpt, "openai", log.messages)
}

/// The calls of a turn; a text that is no call is kept as the name of none.
fn calls(value: &Json) -> Vec<Json> {
    match value.as_str().map(parse) {
        Some(Ok(Json::List(calls))) => calls,
        Some(Ok(call @ Json::Map(_))) => vec![call],
        _ => vec![Json::map([
            ("name", "call".into()),
            ("arguments", Json::map([("text", value.clone())])),
        ])],
    }
}
