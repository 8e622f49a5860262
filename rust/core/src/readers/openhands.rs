//! `OpenHands` events: actions of the agent and observations of what came of them.
//!
//! Read into the `openai` dialect. An event that carries the model's own reply gives it back as one
//! assistant message with all its calls, whichever of its events comes first; an action without one
//! becomes a call with its name and arguments and a numbered id. An observation answers the call it
//! names, else the call of the action that caused it, else the first call that is still open; one
//! that answers nothing (an error about a reply that could not be parsed) becomes a user message, as
//! the program tells it to the model. Changes of state and recalled knowledge are left out.
//! Events of the newer SDK (`kind`) are read as well.

use std::collections::{BTreeMap, BTreeSet};

use super::json::{Json, JsonText};
use super::log::{Log, arguments, call, only};
use super::usage::usage;
use super::{Conversation, Format};

/// Whether an object with a `history` is the output of an evaluation.
pub(super) fn is_output(value: &Json) -> bool {
    let first = value.items_at("history").first();
    first.is_some_and(|first| first.is_list() || super::detect::is_event(first))
}

/// The conversation of a row with a `history`.
pub(super) fn read_output(mut row: Json) -> Conversation {
    let history = row.take("history").unwrap_or_default().into_items();
    let mut conversation = read(history);
    let model = row
        .at(&["metadata", "llm_config", "model"])
        .and_then(Json::as_str);
    conversation.name_model(model);
    conversation.note_str("instance_id", &row, "instance_id");
    conversation
}

/// The conversation of a list of events, or of pairs of them.
pub(super) fn read(events: Vec<Json>) -> Conversation {
    let mut conversation = Conversation::new(Format::OpenHands, "openai", Vec::new());
    let mut history = History::default();
    for event in events {
        match event {
            Json::List(pair) => pair
                .into_iter()
                .for_each(|event| history.take(event, &mut conversation)),
            event => history.take(event, &mut conversation),
        }
    }
    conversation.messages = history.log.messages;
    conversation
}

#[derive(Debug, Default)]
struct History {
    log: Log,
    /// Replies of the model that are written already, by their id.
    replies: BTreeSet<Box<str>>,
    /// The call that stands for an action, by the number of the event.
    calls: BTreeMap<u64, Box<str>>,
}

impl History {
    fn take(&mut self, mut event: Json, conversation: &mut Conversation) {
        if event
            .str_at("kind")
            .is_some_and(|kind| kind.ends_with("Event"))
        {
            return self.take_sdk(event, conversation);
        }
        let metadata = event.take("tool_call_metadata").unwrap_or_default();
        let call = metadata.str_at("tool_call_id").map(Box::<str>::from);
        self.take_reply(metadata, conversation);
        let number = event.u64_at("id");
        if event.has("observation") {
            return self.observation(event, call);
        }
        if let (Some(number), Some(call)) = (number, &call) {
            self.calls.insert(number, call.clone());
        }
        self.action(event, call.is_some(), conversation);
    }

    /// Writes the reply that an event carries, once.
    fn take_reply(&mut self, mut metadata: Json, conversation: &mut Conversation) {
        let mut response = metadata.take("model_response").unwrap_or_default();
        let choices = response.take("choices").unwrap_or_default().into_items();
        let Some(mut first) = choices.into_iter().next() else {
            return;
        };
        let id = response.str_at("id").unwrap_or_default();
        if !self.replies.insert(id.into()) {
            return;
        }
        let model = response.str_at("model");
        let index = self.log.messages.len();
        let record = response.get("usage");
        let reported = record.and_then(|record| usage(index, model, record));
        conversation.usage.extend(reported);
        conversation.name_model(model);
        let mut message = first.take("message").unwrap_or_default();
        let calls = message.take("tool_calls").unwrap_or_default().into_items();
        let calls = calls
            .into_iter()
            .map(|call| only(call, &["id", "type", "function"]))
            .collect();
        let reasoning = message.take_some("reasoning_content").map(Json::into_text);
        let content = message.take("content").unwrap_or_default();
        self.log.answer(content, reasoning, calls);
    }

    fn action(&mut self, mut event: Json, has_reply: bool, conversation: &mut Conversation) {
        let mut given = event.take("args").unwrap_or_default();
        let by_user = event.str_at("source") == Some("user");
        match event.str_at("action") {
            Some("system") => {
                let content = given.take("content").unwrap_or_default();
                self.log.say("system", content);
                conversation.tools = given
                    .take_some("tools")
                    .filter(|tools| !tools.items().is_empty());
            }
            Some("message") => {
                let content = given
                    .take_some("content")
                    .or_else(|| event.take_some("message"));
                let content = content.unwrap_or_default();
                match (by_user, has_reply) {
                    (true, _) => self.log.say("user", content),
                    (false, false) => self.log.answer(content, None, Vec::new()),
                    (false, true) => {}
                }
            }
            Some("recall" | "change_agent_state" | "condensation" | "null") | None => {}
            Some(_) if has_reply || by_user => {}
            Some(name) => {
                let name = name.to_owned();
                let id = self.log.new_id();
                let thought = given.take_some("thought").map(Json::into_text);
                given.remove("thought");
                let content = match thought {
                    Some(thought) if !thought.is_blank() => Json::Text(thought),
                    _ => Json::Null,
                };
                let made = call(&id, &name, arguments(Some(given)));
                self.log.answer(content, None, vec![made]);
                if let Some(number) = event.u64_at("id") {
                    self.calls.insert(number, id.into());
                }
            }
        }
    }

    fn observation(&mut self, mut event: Json, call: Option<Box<str>>) {
        let kind = event.str_at("observation").unwrap_or_default();
        if matches!(kind, "null" | "agent_state_changed" | "recall" | "condense") {
            return;
        }
        let is_error = kind == "error";
        let cause = event
            .u64_at("cause")
            .and_then(|cause| self.calls.get(&cause).cloned());
        let content = Json::Text(event.take("content").unwrap_or_default().into_text());
        // An error without a cause is about a reply that made no call.
        let is_loose = is_error && call.is_none() && cause.is_none();
        let id = call.or(cause);
        let given_back = if is_loose {
            Err(content)
        } else {
            self.log.result(id.as_deref(), content)
        };
        if let Err(content) = given_back {
            self.log.say("user", content);
        }
    }

    // --- the newer SDK --------------------------------------------------------------------------

    fn take_sdk(&mut self, mut event: Json, conversation: &mut Conversation) {
        match event.str_at("kind") {
            Some("SystemPromptEvent") => {
                let prompt = event.take("system_prompt").unwrap_or_default();
                self.log.say("system", text_of(prompt));
                let tools = event.take_some("tools");
                conversation.tools = tools.filter(|tools| !tools.items().is_empty());
            }
            Some("MessageEvent") => {
                let mut message = event.take("llm_message").unwrap_or_default();
                let content = message.take("content").unwrap_or_default();
                match message.str_at("role") {
                    Some("assistant") => self.log.answer(content, None, Vec::new()),
                    Some(role) => self.log.say(role, content),
                    None => {}
                }
            }
            Some("ActionEvent") => self.sdk_action(event),
            Some("ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation") => {
                let id = event.str_at("tool_call_id").map(Box::<str>::from);
                let content = match event.take_some("observation") {
                    Some(mut observation) => observation
                        .take_some("content")
                        .map_or_else(|| observation.to_json().into(), text_of),
                    None => event
                        .take_some("error")
                        .or_else(|| event.take_some("rejection_reason"))
                        .unwrap_or_default(),
                };
                if let Err(content) = self.log.result(id.as_deref(), content) {
                    self.log.say("user", content);
                }
            }
            _ => {}
        }
    }

    fn sdk_action(&mut self, mut event: Json) {
        let made = event.take("tool_call").unwrap_or_default();
        let id = made.str_at("id").or(event.str_at("tool_call_id"));
        let id = id.unwrap_or_default().to_owned();
        let name = made.str_at("name").or(event.str_at("tool_name"));
        let function = made.get("function");
        let name = name.or(function.and_then(|function| function.str_at("name")));
        let given = made
            .get("arguments")
            .or(function.and_then(|it| it.get("arguments")));
        let made = call(&id, name.unwrap_or_default(), arguments(given.cloned()));
        let reply: Box<str> = event.str_at("llm_response_id").unwrap_or(&id).into();
        if !self.replies.insert(reply) {
            return self.log.add_call(made);
        }
        let reasoning = event.take_some("reasoning_content").map(Json::into_text);
        let thought = text_of(event.take("thought").unwrap_or_default());
        let is_blank = matches!(&thought, Json::Text(text) if text.is_blank());
        let content = if is_blank { Json::Null } else { thought };
        self.log.answer(content, reasoning, vec![made]);
    }
}

/// The text of content that is a string, a text block or a list of blocks; other blocks stay.
fn text_of(content: Json) -> Json {
    match content {
        Json::List(blocks) => {
            if !blocks.iter().all(|block| block.has("text")) {
                return Json::List(blocks);
            }
            let texts: Vec<JsonText> = blocks
                .into_iter()
                .filter_map(|mut block| block.take_some("text").map(Json::into_text))
                .collect();
            Json::Text(JsonText::concat(&texts))
        }
        mut block @ Json::Map(_) => block.take_some("text").unwrap_or_default(),
        other => other,
    }
}
