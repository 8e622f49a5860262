//! What a record is: told by its keys, never by a name.

use super::Format;
use super::json::Json;
use crate::dialect;

/// How the lines of a JSON Lines file belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// All lines are one session.
    Session(Format),
    /// A message a line.
    Message,
    /// A recorded exchange a line.
    Exchange,
    /// A conversation a line.
    Row,
}

/// What a line says about its file; `None` for lines that say nothing.
pub(super) fn classify(record: &Json, format: Option<Format>) -> Option<Kind> {
    match format {
        Some(
            session @ (Format::ClaudeCode
            | Format::Codex
            | Format::Pi
            | Format::Kimi
            | Format::GeminiCli),
        ) if !record.has_list("messages") => return Some(Kind::Session(session)),
        _ => {}
    }
    if record.is_list() {
        return Some(Kind::Row);
    }
    if !record.is_map() {
        // A scalar is no record at all: the row reader says so.
        return Some(Kind::Row);
    }
    if let Some(format) = session_of(record) {
        return Some(Kind::Session(format));
    }
    if is_exchange(record) {
        return Some(Kind::Exchange);
    }
    if is_row(record) {
        return Some(Kind::Row);
    }
    is_message(record).then_some(Kind::Message)
}

/// The session format of a line.
fn session_of(record: &Json) -> Option<Format> {
    let kind = record.str_at("type");
    let has = |key: &str| record.has(key);
    if (has("uuid") && has("parentUuid"))
        || (kind == Some("summary") && has("leafUuid"))
        || (kind == Some("file-history-snapshot") && has("snapshot"))
        || (kind == Some("queue-operation") && has("sessionId"))
    {
        return Some(Format::ClaudeCode);
    }
    // The first line of older rollouts is the header itself, and the items stand bare below it.
    let is_header = has("instructions") && has("timestamp") && has("id") && !has("role");
    if is_header || (kind.is_some() && has("payload") && has("timestamp")) {
        return Some(Format::Codex);
    }
    match kind {
        Some("session") if has("cwd") || has("modelId") || has("version") => {
            return Some(Format::Pi);
        }
        Some("message") if record.get("message").is_some_and(Json::is_map) => {
            return Some(Format::Pi);
        }
        Some("metadata") if has("protocol_version") => return Some(Format::Kimi),
        Some(kind) if kind.starts_with("context.append") => return Some(Format::Kimi),
        _ => {}
    }
    if has("sessionId") && has("projectHash") && !has("messages") {
        return Some(Format::GeminiCli);
    }
    is_event(record).then_some(Format::OpenHands)
}

/// Whether this is an `OpenHands` event.
pub(super) fn is_event(record: &Json) -> bool {
    let acts = record.str_at("action").is_some() || record.str_at("observation").is_some();
    if acts && (record.has("source") || record.has("args") || record.has("extras")) {
        return true;
    }
    let kind = record.str_at("kind").unwrap_or_default();
    record.has("source")
        && (kind.ends_with("Event") || kind.starts_with("Condensation") || kind == "Condenser")
}

/// Whether this is a recorded request with what came back.
pub(super) fn is_exchange(record: &Json) -> bool {
    record.get("request").is_some_and(Json::is_map)
}

/// Whether a conversation stands in one object, and in which of the forms that are known.
pub(super) fn is_row(record: &Json) -> bool {
    const LISTS: [&str; 8] = [
        "messages",
        "contents",
        "conversations",
        "conversation",
        "traj",
        "history",
        "turns",
        "input_messages",
    ];
    record.has("messages")
        || LISTS.iter().any(|key| record.has_list(key))
        || (record.has("input") && (record.has("model") || record.has("instructions")))
        || record.has("turn_history")
        || record.get("body").is_some_and(is_row)
        || record.get("values").is_some_and(is_row)
        || (record.has("samples") && record.has("eval"))
}

/// Whether this is one message of some dialect.
pub(super) fn is_message(record: &Json) -> bool {
    record.has("role")
        || is_item(record)
        || is_langchain(record)
        || (record.has("from") && record.has("value"))
        || record.has_list("parts")
}

/// Whether this is a serialised `LangChain` message.
pub(super) fn is_langchain(record: &Json) -> bool {
    const TYPES: [&str; 10] = [
        "human",
        "ai",
        "AIMessageChunk",
        "HumanMessageChunk",
        "tool",
        "system",
        "function",
        "chat",
        "developer",
        "remove",
    ];
    if record.has("lc") && record.has("kwargs") {
        return true;
    }
    let is_known = record
        .str_at("type")
        .is_some_and(|kind| TYPES.contains(&kind));
    is_known && !record.has("role") && (record.has("data") || record.has("content"))
}

/// Whether this is an item of the Responses dialect that is no plain message.
fn is_item(record: &Json) -> bool {
    let Some(kind) = record.str_at("type") else {
        return false;
    };
    kind.ends_with("_call")
        || kind.ends_with("_call_output")
        || matches!(
            kind,
            "reasoning" | "compaction" | "item_reference" | "tool_search_output" | "mcp_list_tools"
        )
        || (kind == "message" && record.has("role"))
}

/// The dialect that messages give away.
pub(super) fn dialect_of(messages: &[Json]) -> Option<&'static str> {
    messages
        .iter()
        .find_map(tell)
        .or_else(|| dialect::detect(messages).map(dialect::Dialect::name))
}

fn tell(message: &Json) -> Option<&'static str> {
    if message.has_list("parts") || message.str_at("role") == Some("model") {
        return Some("gemini");
    }
    if is_item(message) {
        return Some("openai-responses");
    }
    if message.has("tool_calls") || matches!(message.str_at("role"), Some("tool" | "function")) {
        return Some("openai");
    }
    message.items_at("content").iter().find_map(|block| {
        let kind = block.str_at("type");
        match kind {
            Some(kind) if kind.starts_with("input_") && kind != "input_audio" => {
                Some("openai-responses")
            }
            Some("output_text") => Some("openai-responses"),
            Some("tool_use" | "tool_result") => Some("anthropic"),
            Some(_) => None,
            None => ["text", "toolUse", "toolResult", "reasoningContent"]
                .iter()
                .any(|key| block.has(key))
                .then_some("bedrock"),
        }
    })
}
