//! Recorded exchanges: requests with their responses, one file often holding a conversation that
//! grows from request to request.
//!
//! A conversation is a request's messages and the reply. A request that a later one continues,
//! either because its messages are the beginning of the later one's or because the later one names
//! its response in `previous_response_id`, is no conversation of its own: what was reported about
//! it is kept with the longer one. Messages are compared by a hash of their JSON, so a long
//! recording costs in proportion to its size.

use std::collections::BTreeMap;

use super::json::Json;
use super::stream::Record;
use super::usage::usage;
use super::{Conversation, Format, request, sse};

type Key = [u8; 32];

/// The whole history of each response that a later request names.
type Answered = BTreeMap<Box<str>, Vec<Json>>;

struct Exchange {
    conversation: Conversation,
    line: usize,
    /// Number of messages that were sent.
    sent: usize,
    /// The chained hash after each message that was sent.
    keys: Vec<Key>,
    /// The hash of system prompt, tools and model: usage is only comparable where they are equal.
    setting: Key,
    has_reply: bool,
}

/// The conversations of a recording.
pub(super) fn cassette(
    records: Vec<Record>,
    format: Option<Format>,
) -> Vec<Result<Conversation, String>> {
    // Only these responses are asked for again: keeping all would cost their square.
    let named = records.iter().filter_map(|record| {
        let request = record.value.get("request")?;
        request.str_at("previous_response_id")
    });
    let mut answered: Answered = named.map(|id| (id.into(), Vec::new())).collect();
    let mut found: Vec<Result<Exchange, String>> = Vec::new();
    for Record { line, mut value } in records {
        let request = value.take("request").unwrap_or_default();
        if !request::is_request(&request) && !request.has("messages") {
            // Models are listed and files uploaded in between.
            continue;
        }
        let mut reply = value.take("response").unwrap_or_default();
        if !reply.is_map() {
            let text = value.str_at("response_text");
            reply = text.map(sse::assemble).unwrap_or_default();
        }
        let uri = value
            .str_at("uri")
            .or(value.str_at("url"))
            .unwrap_or_default();
        found.push(
            exchange(request, reply, uri, &mut answered, format).map(|mut exchange| {
                exchange.line = line;
                exchange
            }),
        );
    }
    without_beginnings(found)
}

/// A request and its response.
pub(super) fn read(
    request: Json,
    response: Json,
    format: Option<Format>,
) -> Result<Conversation, String> {
    exchange(request, response, "", &mut Answered::new(), format)
        .map(|exchange| exchange.conversation)
}

fn exchange(
    request: Json,
    mut response: Json,
    uri: &str,
    answered: &mut Answered,
    format: Option<Format>,
) -> Result<Exchange, String> {
    let before = request
        .str_at("previous_response_id")
        .and_then(|id| answered.get(id));
    let before = before.cloned().unwrap_or_default();
    let mut conversation = request::read(request, format)?;
    if let Some(told) = told_by(&response, uri) {
        if format.and_then(request::provider).is_none() {
            conversation.dialect = Some(told.into());
            conversation.format = request::format_of(Some(told));
        }
    }
    if conversation.model.is_none() {
        conversation.name_model(model_of(&response, uri));
    }
    if !before.is_empty() {
        conversation.messages.splice(0..0, before);
    }
    let sent = conversation.messages.len();
    let keys = keys(&conversation.messages);
    let setting = setting(&conversation);
    let model = response.str_at("model").or(conversation.model.as_deref());
    let record = ["usage", "usageMetadata"]
        .iter()
        .find_map(|key| response.get(key));
    let reported = record.and_then(|record| usage(sent, model, record));
    let id: Option<Box<str>> = response.str_at("id").map(Into::into);
    conversation.messages.extend(replies(&mut response, uri));
    conversation.usage.extend(reported);
    if let Some(kept) = id.and_then(|id| answered.get_mut(&id)) {
        kept.clone_from(&conversation.messages);
    }
    Ok(Exchange {
        has_reply: conversation.messages.len() > sent,
        conversation,
        line: 1,
        sent,
        keys,
        setting,
    })
}

/// The dialect that a response, or the address it came from, gives away.
fn told_by(response: &Json, uri: &str) -> Option<&'static str> {
    if response.has_list("choices") {
        return Some("openai");
    }
    if response.has_list("output") {
        return Some("openai-responses");
    }
    if response.has_list("candidates") || uri.contains(":generateContent") {
        return Some("gemini");
    }
    if response.at(&["output", "message"]).is_some() {
        return Some("bedrock");
    }
    let is_message = response.str_at("type") == Some("message") && response.has_list("content");
    (is_message || uri.contains("/v1/messages")).then_some("anthropic")
}

fn model_of<'a>(response: &'a Json, uri: &'a str) -> Option<&'a str> {
    let told = ["model", "modelVersion"]
        .iter()
        .find_map(|key| response.str_at(key));
    told.or_else(|| uri.split_once("/models/")?.1.split([':', '?']).next())
}

/// The messages that a response adds.
fn replies(response: &mut Json, uri: &str) -> Vec<Json> {
    if let Some(Json::List(choices)) = response.take("choices") {
        let first = choices.into_iter().next();
        return first
            .and_then(|mut choice| choice.take_some("message"))
            .into_iter()
            .collect();
    }
    match response.take("output") {
        // What is kept verbatim beside the compaction stands in the request already.
        Some(Json::List(mut items)) => {
            if uri.ends_with("/compact") {
                items.retain(|item| item.str_at("type") != Some("message"));
            }
            return items;
        }
        Some(mut output) => return output.take_some("message").into_iter().collect(),
        None => {}
    }
    if let Some(Json::List(candidates)) = response.take("candidates") {
        let first = candidates.into_iter().next();
        return first
            .and_then(|mut candidate| candidate.take_some("content"))
            .into_iter()
            .collect();
    }
    match (response.take("role"), response.take("content")) {
        (Some(role), Some(content)) => vec![Json::map([("role", role), ("content", content)])],
        _ => Vec::new(),
    }
}

fn keys(messages: &[Json]) -> Vec<Key> {
    let mut hasher = blake3::Hasher::new();
    messages
        .iter()
        .map(|message| {
            hasher.update(message.to_json().as_bytes());
            hasher.update(b"\n");
            *hasher.finalize().as_bytes()
        })
        .collect()
}

fn setting(conversation: &Conversation) -> Key {
    let mut hasher = blake3::Hasher::new();
    for value in [&conversation.system, &conversation.tools] {
        let json = value.as_ref().map(Json::to_json).unwrap_or_default();
        hasher.update(json.as_bytes());
        hasher.update(b"\n");
    }
    hasher.update(conversation.model.as_deref().unwrap_or_default().as_bytes());
    *hasher.finalize().as_bytes()
}

/// Drops every request that a later one begins with.
fn without_beginnings(found: Vec<Result<Exchange, String>>) -> Vec<Result<Conversation, String>> {
    // Which later exchange begins with the messages of this hash.
    let mut later: BTreeMap<Key, usize> = BTreeMap::new();
    let mut kept: BTreeMap<usize, Result<Exchange, String>> = BTreeMap::new();
    for (at, item) in found.into_iter().enumerate().rev() {
        if let Ok(exchange) = &item {
            let whole = exchange.keys.last();
            let longer = whole
                .and_then(|key| later.get(key))
                .and_then(|at| kept.get_mut(at)?.as_mut().ok())
                // An equal request continues this one if this one has no reply to lose.
                .filter(|longer| longer.sent > exchange.sent || !exchange.has_reply);
            if let Some(longer) = longer {
                if longer.setting == exchange.setting {
                    let reported = exchange.conversation.usage.iter().cloned();
                    longer.conversation.usage.splice(0..0, reported);
                }
                continue;
            }
            for key in &exchange.keys {
                later.insert(*key, at);
            }
        }
        kept.insert(at, item);
    }
    kept.into_values()
        .map(|item| {
            item.map(|exchange| Conversation {
                line: exchange.line,
                ..exchange.conversation
            })
        })
        .collect()
}
