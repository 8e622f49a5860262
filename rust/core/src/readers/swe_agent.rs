//! SWE-agent and mini-SWE-agent trajectories: their history is close to `openai` messages already.
//!
//! Fields of the agent (`agent`, `thought`, `message_type`, `extra` ...) are left out; a result
//! names its call in `tool_call_id`. Without function calling, commands stand in the text of the
//! replies and their output in user messages: they stay that way, as the model saw them.

use super::json::Json;
use super::log::only;
use super::usage::usage;
use super::{Conversation, Format};

const FIELDS: [&str; 8] = [
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "reasoning_content",
    "thinking_blocks",
];

/// The conversation of a SWE-agent trajectory.
pub(super) fn read(mut trajectory: Json) -> Conversation {
    let history = trajectory.take("history").unwrap_or_default().into_items();
    let messages = history.into_iter().map(message).collect();
    let mut conversation = Conversation::new(Format::SweAgent, "openai", messages);
    let model = trajectory.at(&["replay_config", "agent", "model", "name"]);
    conversation.name_model(model.and_then(Json::as_str));
    conversation.note_str("environment", &trajectory, "environment");
    let status = trajectory.at(&["info", "exit_status"]).cloned();
    conversation.note("exit_status", status.unwrap_or_default());
    conversation
}

/// Whether an object with messages is a mini-SWE-agent trajectory.
pub(super) fn is_mini(value: &Json) -> bool {
    let told = value.str_at("trajectory_format");
    told.is_some_and(|told| told.starts_with("mini-swe-agent"))
        || value.at(&["info", "mini_version"]).is_some()
        || value.at(&["info", "exit_status"]).is_some()
}

/// The conversation of a mini-SWE-agent trajectory.
pub(super) fn read_mini(mut trajectory: Json) -> Conversation {
    let mut conversation = Conversation::new(Format::MiniSweAgent, "openai", Vec::new());
    let model = ["model_name", "model_kwargs"].iter().find_map(|key| {
        let path = ["info", "config", "model", key];
        trajectory.at(&path).and_then(Json::as_str)
    });
    conversation.name_model(model);
    for entry in trajectory.take("messages").unwrap_or_default().into_items() {
        // How the run ended is no message.
        if entry.str_at("role") == Some("exit") {
            continue;
        }
        let reported = entry.at(&["extra", "response", "usage"]);
        let model = entry
            .at(&["extra", "response", "model"])
            .and_then(Json::as_str);
        let index = conversation.messages.len();
        let reported = reported.and_then(|record| usage(index, model, record));
        conversation.usage.extend(reported);
        conversation.messages.push(message(entry));
    }
    let status = trajectory.at(&["info", "exit_status"]).cloned();
    conversation.note("exit_status", status.unwrap_or_default());
    conversation
}

fn message(mut entry: Json) -> Json {
    let ids = entry.take("tool_call_ids").unwrap_or_default().into_items();
    if entry.str_at("role") == Some("tool") && !entry.has("tool_call_id") {
        if let Some(id) = ids.into_iter().next() {
            entry.set("tool_call_id", id);
        }
    }
    for empty in [
        "tool_calls",
        "function_call",
        "name",
        "tool_call_id",
        "thinking_blocks",
    ] {
        if entry.get(empty).is_some_and(Json::is_null) {
            entry.remove(empty);
        }
    }
    only(entry, &FIELDS)
}
