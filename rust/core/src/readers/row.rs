//! Conversations that stand in one JSON value: which reader each of them needs.

use super::detect::{is_event, is_exchange, is_langchain, is_message, is_row};
use super::json::Json;
use super::stream::Record;
use super::{
    Conversation, Format, claude_code, codex, exchange, gemini_cli, inspect, intercode, kimi,
    langchain, openhands, pi, request, sharegpt, swe_agent,
};

type Found = Vec<Result<Conversation, String>>;

/// The conversations of a whole document, or of one line.
pub(super) fn read(value: Json, format: Option<Format>) -> Found {
    match value {
        Json::List(items) => list(items, format),
        Json::Map(_) => object(value, format),
        _ => vec![Err(
            "expected a list of messages or an object with messages".into(),
        )],
    }
}

/// The conversations of a session file.
pub(super) fn session(format: Format, records: Vec<Record>) -> Vec<Conversation> {
    match format {
        Format::ClaudeCode => claude_code::read(records),
        Format::Codex => codex::read(records),
        Format::Pi => pi::read(records),
        Format::Kimi => kimi::read(records),
        Format::GeminiCli => gemini_cli::read_lines(records),
        _ => {
            let events = records.into_iter().map(|record| record.value).collect();
            vec![openhands::read(events)]
        }
    }
}

fn list(items: Vec<Json>, format: Option<Format>) -> Found {
    let Some(first) = items.first() else {
        return vec![Ok(request::from_messages(items, format))];
    };
    // `OpenHands` outputs pair an action with its observation.
    if is_event(first) || first.items().first().is_some_and(is_event) {
        return vec![Ok(openhands::read(items))];
    }
    if is_exchange(first) {
        let records = items.into_iter().map(|value| Record { line: 1, value });
        return exchange::cassette(records.collect(), format);
    }
    if is_langchain(first) {
        return vec![Ok(langchain::read(items))];
    }
    if first.is_list() || (is_row(first) && !is_message(first)) {
        return items
            .into_iter()
            .flat_map(|item| read(item, format))
            .collect();
    }
    if first.has("from") && first.has("value") {
        return vec![Ok(sharegpt::read_turns(items))];
    }
    vec![Ok(request::from_messages(items, format))]
}

fn object(mut value: Json, format: Option<Format>) -> Found {
    if is_exchange(&value) {
        return exchange::cassette(vec![Record { line: 1, value }], format);
    }
    if value.has_list("samples") && value.has("eval") {
        return inspect::read(value).into_iter().map(Ok).collect();
    }
    if value.has("turn_history") || values(&value).any(|entry| entry.has("turn_history")) {
        return intercode::read(value).into_iter().map(Ok).collect();
    }
    if value.has_list("conversations") {
        return vec![Ok(sharegpt::read(value))];
    }
    if value.has_list("history") {
        return vec![Ok(if openhands::is_output(&value) {
            openhands::read_output(value)
        } else {
            swe_agent::read(value)
        })];
    }
    if value.has_list("messages") {
        return vec![with_messages(value, format)];
    }
    for wrapped in ["body", "values"] {
        if value.get(wrapped).is_some_and(is_row) {
            return read(value.take(wrapped).unwrap_or_default(), format);
        }
    }
    if value.has("messages") || request::is_request(&value) {
        return vec![with_response(value, format)];
    }
    if let Some(benchmark) = benchmark(&mut value, format) {
        return vec![Ok(benchmark)];
    }
    if is_langchain(&value) {
        return vec![Ok(langchain::read(vec![value]))];
    }
    if is_event(&value) {
        return vec![Ok(openhands::read(vec![value]))];
    }
    if is_message(&value) {
        return list(vec![value], format);
    }
    vec![Err(
        "expected a message with a role, or an object with messages".into(),
    )]
}

fn with_messages(value: Json, format: Option<Format>) -> Result<Conversation, String> {
    let messages = value.items_at("messages");
    if messages.iter().any(is_langchain) {
        return Ok(langchain::read_state(value));
    }
    if gemini_cli::is_session(&value) {
        return Ok(gemini_cli::read(value));
    }
    if swe_agent::is_mini(&value) {
        return Ok(swe_agent::read_mini(value));
    }
    with_response(value, format)
}

/// A request that may have its response beside it, as logs of completions do.
fn with_response(mut value: Json, format: Option<Format>) -> Result<Conversation, String> {
    let response = value.take_some("response").filter(Json::is_map);
    match response {
        Some(response) => exchange::read(value, response, format),
        None => request::read(value, format),
    }
}

/// Rows of benchmarks that keep `OpenAI` chat messages under other names: runs of a simulated user
/// (`traj`), dialogs with the expected next message (`turns`, of which the last holds them all, and
/// `input_messages`).
fn benchmark(value: &mut Json, format: Option<Format>) -> Option<Conversation> {
    let (mut messages, answer) = if let Some(Json::List(messages)) = value.take("traj") {
        (messages, None)
    } else if let Some(Json::List(messages)) = value.take("conversation") {
        (messages, None)
    } else if let Some(Json::List(messages)) = value.take("input_messages") {
        (messages, value.take("ground_truth"))
    } else if let Some(Json::List(mut turns)) = value.take("turns") {
        let mut last = turns.pop()?;
        (last.take("query")?.into_items(), last.take("ground_truth"))
    } else {
        return None;
    };
    messages.extend(answer.filter(Json::is_map));
    let mut conversation = request::from_messages(messages, format);
    conversation.tools = ["tools", "input_tools"]
        .iter()
        .find_map(|key| value.take_some(key))
        .filter(|tools| !tools.items().is_empty());
    conversation.name_model(value.str_at("model"));
    for (name, key) in [
        ("task_id", "task_id"),
        ("trial", "trial"),
        ("reward", "reward"),
        ("dialog", "dialog_num"),
    ] {
        conversation.note(name, value.take(key).unwrap_or_default());
    }
    Some(conversation)
}

fn values(value: &Json) -> impl Iterator<Item = &Json> {
    let entries = match value {
        Json::Map(entries) => entries.as_slice(),
        _ => &[],
    };
    entries.iter().map(|(_, value)| value)
}
