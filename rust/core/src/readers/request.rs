//! Requests and bare lists of messages in the providers' own dialects. Messages are passed on as
//! they are; what stands beside them is sorted into system prompt, tools and model.

use super::detect::dialect_of;
use super::json::Json;
use super::{Conversation, Format};

/// Where each dialect keeps its messages.
const LISTS: [&str; 3] = ["messages", "input", "contents"];

/// A list of messages of which nothing else is known.
pub(super) fn from_messages(messages: Vec<Json>, format: Option<Format>) -> Conversation {
    let named = format.and_then(provider);
    let told = named.or_else(|| dialect_of(&messages));
    let mut conversation = Conversation::new(format_of(told), "openai", messages);
    conversation.dialect = told.map(Into::into);
    conversation
}

/// The dialect of a format that is a provider's own.
pub(super) fn provider(format: Format) -> Option<&'static str> {
    matches!(
        format,
        Format::OpenAi | Format::Responses | Format::Anthropic | Format::Gemini | Format::Bedrock
    )
    .then(|| format.name())
}

/// The format of a dialect; messages that any dialect could hold are read as `OpenAI` chat.
pub(super) fn format_of(dialect: Option<&str>) -> Format {
    match dialect {
        Some("openai-responses") => Format::Responses,
        Some("anthropic") => Format::Anthropic,
        Some("gemini") => Format::Gemini,
        Some("bedrock") => Format::Bedrock,
        _ => Format::OpenAi,
    }
}

/// Whether a request has its messages where one of the dialects puts them.
pub(super) fn is_request(request: &Json) -> bool {
    LISTS.iter().any(|key| request.has_list(key)) || request.str_at("input").is_some()
}

/// A request, or what satchel itself writes: an object with messages and what belongs to them.
///
/// # Errors
/// A sentence about the first field of the wrong type.
pub(super) fn read(mut request: Json, format: Option<Format>) -> Result<Conversation, String> {
    check(&request)?;
    let messages = messages(&mut request)?;
    let mut conversation = from_messages(messages, format);
    if format.and_then(provider).is_none() {
        let named = request.str_at("dialect").map(Into::into);
        let told = named.or_else(|| told_by_request(&request).map(Into::into));
        conversation.dialect = told.or(conversation.dialect);
        conversation.format = format_of(conversation.dialect.as_deref());
    }
    conversation.name_model(request.str_at("model").or(request.str_at("modelId")));
    conversation.note_str("title", &request, "title");
    conversation.system = [
        "system",
        "instructions",
        "systemInstruction",
        "system_instruction",
    ]
    .iter()
    .chain(&["system_prompt"])
    .find_map(|key| request.take_some(key));
    conversation.tools = request
        .take_some("tools")
        .or_else(|| request.take_some("toolConfig")?.take_some("tools"))
        .filter(|tools| !tools.items().is_empty());
    Ok(conversation)
}

fn messages(request: &mut Json) -> Result<Vec<Json>, String> {
    if let Some(Json::Text(text)) = request.get("input") {
        let text = Json::Text(text.clone());
        return Ok(vec![Json::map([
            ("role", "user".into()),
            ("content", text),
        ])]);
    }
    LISTS
        .iter()
        .find_map(|key| match request.take(key) {
            Some(Json::List(items)) => Some(items),
            _ => None,
        })
        .ok_or_else(|| "expected a list of messages or an object with messages".into())
}

fn check(request: &Json) -> Result<(), String> {
    type Test = fn(&Json) -> bool;
    let is_text: Test = |value| matches!(value, Json::Text(_));
    let is_system: Test = |value| !matches!(value, Json::Bool(_) | Json::Int(_) | Json::Number(_));
    let checks: [(&str, Test, &str); 5] = [
        ("messages", Json::is_list, "a list"),
        ("tools", Json::is_list, "a list"),
        ("system", is_system, "a string or a list"),
        ("model", is_text, "a string"),
        ("dialect", is_text, "a string"),
    ];
    for (name, test, called) in checks {
        let is_wrong = request
            .get(name)
            .is_some_and(|found| !test(found) && (!found.is_null() || name == "messages"));
        if is_wrong {
            return Err(format!("{name} must be {called}"));
        }
    }
    Ok(())
}

/// What a request says beside its messages.
fn told_by_request(request: &Json) -> Option<&'static str> {
    let has = |key: &str| request.get(key).is_some_and(|value| !value.is_null());
    if request.has_list("contents") {
        return Some("gemini");
    }
    if request.has("input") && !request.has("messages") {
        return Some("openai-responses");
    }
    if has("toolConfig") || has("inferenceConfig") {
        return Some("bedrock");
    }
    let has_anthropic_tools = request
        .items_at("tools")
        .iter()
        .any(|tool| tool.has("input_schema"));
    if has_anthropic_tools || has("anthropic_version") {
        return Some("anthropic");
    }
    None
}
