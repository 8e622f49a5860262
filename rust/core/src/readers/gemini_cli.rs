//! Gemini CLI sessions: messages of `user` and `gemini`, results inside the calls.
//!
//! Read into the `gemini` dialect, since results are kept as its function responses. A reply becomes
//! a content of role `model` (thoughts, text, calls), the results of its calls the content of role
//! `user` after it; calls without a result stay open. Notes of the program (`info`, `error`) are
//! left out. Thought signatures are not in these files.

use super::json::Json;
use super::stream::Record;
use super::usage::usage;
use super::{Conversation, Format};

/// Whether this object is a whole session.
pub(super) fn is_session(value: &Json) -> bool {
    value.has("sessionId")
        && value
            .items_at("messages")
            .iter()
            .all(|message| message.has("type") && !message.has("role") && !message.has("uuid"))
}

/// The conversation of a session that is one object.
pub(super) fn read(mut session: Json) -> Conversation {
    let messages = session.take("messages").unwrap_or_default().into_items();
    let mut conversation = converted(messages);
    conversation.note_str("session_id", &session, "sessionId");
    conversation
}

/// The conversation of a session with a record a line: a header, messages (a later one of the same
/// id replaces the earlier), and marks to go back to.
pub(super) fn read_lines(records: Vec<Record>) -> Vec<Conversation> {
    let line = records.first().map_or(1, |record| record.line);
    let mut header = Json::Null;
    let mut messages: indexmap::IndexMap<Box<str>, Json> = indexmap::IndexMap::new();
    for Record { line, mut value } in records {
        if let Some(back) = value.take_some("$rewindTo") {
            if let Some(at) = back.as_str().and_then(|id| messages.get_index_of(id)) {
                messages.truncate(at);
            }
        } else if value.has("type") {
            let id = value
                .str_at("id")
                .map_or_else(|| line.to_string().into(), Into::into);
            messages.insert(id, value);
        } else if header.is_null() {
            header = value;
        }
    }
    let mut conversation = converted(messages.into_values().collect());
    conversation.note_str("session_id", &header, "sessionId");
    conversation.line = line;
    vec![conversation]
}

fn converted(messages: Vec<Json>) -> Conversation {
    let mut conversation = Conversation::new(Format::GeminiCli, "gemini", Vec::new());
    for mut message in messages {
        let content = message.take("content").unwrap_or_default();
        match message.str_at("type") {
            Some("user") => push(&mut conversation, "user", parts(content)),
            Some("gemini") => reply(&mut conversation, message, content),
            _ => {}
        }
    }
    conversation
}

fn push(conversation: &mut Conversation, role: &str, parts: Vec<Json>) {
    let content = [("role", role.into()), ("parts", Json::List(parts))];
    conversation.messages.push(Json::map(content));
}

fn reply(conversation: &mut Conversation, mut message: Json, content: Json) {
    let model = message.str_at("model").map(Box::<str>::from);
    conversation.name_model(model.as_deref());
    let index = conversation.messages.len();
    let reported = message.get("tokens");
    let reported = reported.and_then(|record| usage(index, model.as_deref(), record));
    conversation.usage.extend(reported);
    let thoughts = message.take("thoughts").unwrap_or_default().into_items();
    let mut said: Vec<Json> = thoughts.into_iter().map(thought).collect();
    said.extend(parts(content));
    let mut results = Vec::new();
    for mut call in message.take("toolCalls").unwrap_or_default().into_items() {
        results.extend(result(&mut call));
        let function = super::log::only(call, &["id", "name", "args"]);
        said.push(Json::map([("functionCall", function)]));
    }
    push(conversation, "model", said);
    if !results.is_empty() {
        push(conversation, "user", results);
    }
}

fn thought(mut thought: Json) -> Json {
    let subject = thought.take("subject").unwrap_or_default().into_text();
    let description = thought.take("description").unwrap_or_default().into_text();
    let text = if subject.is_blank() {
        description
    } else {
        super::json::JsonText::concat([&"**".into(), &subject, &"** ".into(), &description])
    };
    Json::map([("text", Json::Text(text)), ("thought", Json::Bool(true))])
}

/// The parts that answer a call; none if it was never answered.
fn result(call: &mut Json) -> Vec<Json> {
    match call.take_some("result") {
        None => Vec::new(),
        Some(Json::List(parts)) if parts.iter().any(|part| part.has("functionResponse")) => parts,
        Some(other) => {
            let mut response = Json::Map(Vec::new());
            for key in ["id", "name"] {
                response.set(key, call.get(key).cloned().unwrap_or_default());
            }
            response.set("response", Json::map([("output", other)]));
            vec![Json::map([("functionResponse", response)])]
        }
    }
}

/// Content as parts: a string is one text part, an empty one none.
fn parts(content: Json) -> Vec<Json> {
    match content {
        Json::Text(text) if text.as_bytes().is_empty() => Vec::new(),
        Json::Text(text) => vec![Json::map([("text", Json::Text(text))])],
        Json::List(parts) => parts
            .into_iter()
            .map(|part| match part {
                Json::Text(text) => Json::map([("text", Json::Text(text))]),
                part => part,
            })
            .collect(),
        part @ Json::Map(_) => vec![part],
        _ => Vec::new(),
    }
}
