//! `InterCode` logs: a task a key, with the actions of the agent and what came of them.
//!
//! Read into the `openai` dialect: the task is the user's message, each action a call of the tool
//! `action` whose ids are numbered, since the format has none, each observation its result.

use super::json::Json;
use super::log::{Log, call};
use super::{Conversation, Format};

/// The conversations of a log, or of one of its entries.
pub(super) fn read(log: Json) -> Vec<Conversation> {
    if log.has("turn_history") {
        return vec![entry(log)];
    }
    match log {
        Json::Map(entries) => entries
            .into_iter()
            .filter(|(_, value)| value.has("turn_history"))
            .map(|(_, value)| entry(value))
            .collect(),
        _ => Vec::new(),
    }
}

fn entry(mut task: Json) -> Conversation {
    let mut log = Log::default();
    let query = task.take("query").unwrap_or_default().into_text();
    log.say("user", Json::Text(query));
    let mut history = task.take("turn_history").unwrap_or_default();
    let actions = history.take("actions").unwrap_or_default().into_items();
    let observations = history
        .take("observations")
        .unwrap_or_default()
        .into_items();
    let mut observations = observations.into_iter();
    for action in actions {
        let id = log.new_id();
        let arguments = Json::map([("action", action)]).to_json();
        log.answer(
            Json::Null,
            None,
            vec![call(&id, "action", arguments.into())],
        );
        if let Some(observation) = observations.next() {
            let text = Json::Text(observation.into_text());
            // The call was made a line before.
            let _ = log.result(Some(&id), text);
        }
    }
    let mut conversation = Conversation::new(Format::InterCode, "openai", log.messages);
    conversation.note("task_id", task.take("task_id").unwrap_or_default());
    conversation.note_str("environment", &task, "environment");
    conversation
}
