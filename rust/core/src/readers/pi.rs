//! pi sessions: messages of a neutral form, a record a line.
//!
//! Where replies came through Anthropic's API the session is read into the `anthropic` dialect,
//! since only that holds signed thinking: results become blocks of the user message after the
//! calls. Else it is read into `openai`, thinking as `reasoning_content`. Aborted replies stay as
//! they are, unanswered calls and empty content included. Commands that the user ran become user
//! messages in the words of the program. Compactions stay out of the history; `compactions` in the
//! metadata says before which message each happened. Newer sessions are trees: the branch that ends
//! at the newest record is read, `abandoned` counts the messages of the others.

use std::collections::{BTreeMap, BTreeSet};

use super::json::{Json, JsonText};
use super::log::{Log, arguments, call};
use super::stream::Record;
use super::usage::usage;
use super::{Conversation, Format};

/// The conversation of one session file.
pub(super) fn read(records: Vec<Record>) -> Vec<Conversation> {
    let line = records.first().map_or(1, |record| record.line);
    let all = records.iter().filter(|record| is_message(record)).count();
    let records = branch(records);
    let kept = records.iter().filter(|record| is_message(record)).count();
    let is_anthropic = records.iter().any(|record| {
        let api = record.value.at(&["message", "api"]);
        api.and_then(Json::as_str) == Some("anthropic-messages")
    });
    let dialect = if is_anthropic { "anthropic" } else { "openai" };
    let mut conversation = Conversation::new(Format::Pi, dialect, Vec::new());
    conversation.line = line;
    let mut session = Session {
        is_anthropic,
        log: Log::default(),
        compactions: Vec::new(),
    };
    for Record { value, .. } in records {
        session.take(value, &mut conversation);
    }
    conversation.messages = session.log.messages;
    if !session.compactions.is_empty() {
        conversation.note("compactions", Json::List(session.compactions));
    }
    if all > kept {
        conversation.note("abandoned", (all - kept).into());
    }
    vec![conversation]
}

fn is_message(record: &Record) -> bool {
    record.value.str_at("type") == Some("message")
}

/// The records of the branch that ends at the newest one; all, where they are not linked.
fn branch(records: Vec<Record>) -> Vec<Record> {
    let is_tree = |record: &Record| record.value.has("parentId");
    if !records.iter().any(is_tree) {
        return records;
    }
    let by_id: BTreeMap<&str, usize> = records
        .iter()
        .enumerate()
        .filter_map(|(at, record)| Some((record.value.str_at("id")?, at)))
        .collect();
    let mut kept = BTreeSet::new();
    let mut next = records.iter().rposition(is_tree);
    while let Some(at) = next {
        // Links that run in a circle end where they began.
        if !kept.insert(at) {
            break;
        }
        let parent = records
            .get(at)
            .and_then(|record| record.value.str_at("parentId"));
        next = parent.and_then(|id| by_id.get(id)).copied();
    }
    records
        .into_iter()
        .enumerate()
        .filter(|(at, record)| kept.contains(at) || !is_tree(record))
        .map(|(_, record)| record)
        .collect()
}

struct Session {
    is_anthropic: bool,
    log: Log,
    compactions: Vec<Json>,
}

impl Session {
    fn take(&mut self, mut record: Json, conversation: &mut Conversation) {
        match record.str_at("type") {
            Some("session") => {
                conversation.note_str("session_id", &record, "id");
                conversation.name_model(record.str_at("modelId"));
            }
            Some("model_change") => conversation.name_model(record.str_at("modelId")),
            Some("compaction") => self.compactions.push(self.log.messages.len().into()),
            Some("message") => {
                let message = record.take("message").unwrap_or_default();
                self.take_message(message, conversation);
            }
            _ => {}
        }
    }

    fn take_message(&mut self, mut message: Json, conversation: &mut Conversation) {
        let content = message.take("content").unwrap_or_default();
        match message.str_at("role") {
            Some("user") => {
                let content = self.blocks(content);
                self.log.say("user", content);
            }
            Some("assistant") => {
                let model = message.str_at("model");
                let index = self.log.messages.len();
                let record = message.get("usage");
                let reported = record.and_then(|record| usage(index, model, record));
                conversation.usage.extend(reported);
                conversation.name_model(model);
                if self.is_anthropic {
                    let content = content.into_items().into_iter().map(anthropic_block);
                    let content = Json::List(content.collect());
                    self.log.say("assistant", content);
                } else {
                    self.openai_reply(content);
                }
            }
            Some("toolResult") => {
                let content = self.blocks(content);
                self.result(&message, content);
            }
            Some("bashExecution") => {
                let is_hidden = message.get("excludeFromContext").is_some_and(Json::is_true);
                if !is_hidden {
                    self.log.say("user", command(message));
                }
            }
            // Messages of extensions.
            Some("custom") => {
                let content = self.blocks(content);
                self.log.say("user", content);
            }
            _ => {}
        }
    }

    fn result(&mut self, message: &Json, content: Json) {
        let id = message.str_at("toolCallId").unwrap_or_default();
        if !self.is_anthropic {
            // With an id there is always a place for it.
            let _ = self.log.result(Some(id), content);
            return;
        }
        let mut block = Json::map([
            ("type", "tool_result".into()),
            ("tool_use_id", id.into()),
            ("content", content),
        ]);
        if message.get("isError").is_some_and(Json::is_true) {
            block.set("is_error", Json::Bool(true));
        }
        // Results of one reply go back in one message.
        let last = self.log.messages.last_mut().filter(|last| {
            let mut blocks = last.items_at("content").iter();
            blocks.any(|block| block.str_at("type") == Some("tool_result"))
        });
        match last {
            Some(last) => {
                let mut blocks = last.take("content").unwrap_or_default().into_items();
                blocks.push(block);
                last.set("content", Json::List(blocks));
            }
            None => self.log.say("user", Json::List(vec![block])),
        }
    }

    fn openai_reply(&mut self, content: Json) {
        let mut texts = Vec::new();
        let mut thoughts = Vec::new();
        let mut calls = Vec::new();
        for mut block in content.into_items() {
            match block.str_at("type") {
                Some("thinking") => {
                    thoughts.push(block.take("thinking").unwrap_or_default().into_text());
                }
                Some("toolCall") => {
                    let given = block.take("arguments");
                    let id = block.str_at("id").unwrap_or_default();
                    let name = block.str_at("name").unwrap_or_default();
                    calls.push(call(id, name, arguments(given)));
                }
                _ => texts.push(openai_block(block)),
            }
        }
        let content = match texts.len() {
            0 => Json::Null,
            _ => Json::List(texts),
        };
        let reasoning = (!thoughts.is_empty()).then(|| JsonText::concat(&thoughts));
        self.log.answer(content, reasoning, calls);
    }

    fn blocks(&self, content: Json) -> Json {
        match content {
            Json::List(blocks) => {
                let form = if self.is_anthropic {
                    anthropic_block
                } else {
                    openai_block
                };
                Json::List(blocks.into_iter().map(form).collect())
            }
            other => other,
        }
    }
}

/// A command that the user ran, in the words in which the program tells it to the model.
fn command(mut message: Json) -> Json {
    let command = message.take("command").unwrap_or_default().into_text();
    let output = message.take("output").unwrap_or_default().into_text();
    let text = if output.is_blank() {
        JsonText::concat([&"Ran `".into(), &command, &"`\n(no output)".into()])
    } else {
        let (open, end) = ("`\n```\n".into(), "\n```".into());
        JsonText::concat([&"Ran `".into(), &command, &open, &output, &end])
    };
    Json::Text(text)
}

fn anthropic_block(mut block: Json) -> Json {
    match block.str_at("type") {
        Some("thinking") => {
            let thinking = block.take("thinking").unwrap_or_default();
            let signature = block
                .take_some("thinkingSignature")
                .unwrap_or_else(|| "".into());
            Json::map([
                ("type", "thinking".into()),
                ("thinking", thinking),
                ("signature", signature),
            ])
        }
        Some("toolCall") => Json::map([
            ("type", "tool_use".into()),
            ("id", block.take("id").unwrap_or_default()),
            ("name", block.take("name").unwrap_or_default()),
            ("input", block.take("arguments").unwrap_or_default()),
        ]),
        Some("image") if block.has("data") => {
            let source = Json::map([
                ("type", "base64".into()),
                ("media_type", block.take("mimeType").unwrap_or_default()),
                ("data", block.take("data").unwrap_or_default()),
            ]);
            Json::map([("type", "image".into()), ("source", source)])
        }
        Some("text") => Json::map([
            ("type", "text".into()),
            ("text", block.take("text").unwrap_or_default()),
        ]),
        _ => block,
    }
}

fn openai_block(mut block: Json) -> Json {
    match block.str_at("type") {
        Some("image") if block.has("data") => {
            let media = block.take("mimeType").unwrap_or_default().into_text();
            let data = block.take("data").unwrap_or_default().into_text();
            let url = JsonText::concat([&"data:".into(), &media, &";base64,".into(), &data]);
            let image = Json::map([("url", Json::Text(url))]);
            Json::map([("type", "image_url".into()), ("image_url", image)])
        }
        Some("text") => Json::map([
            ("type", "text".into()),
            ("text", block.take("text").unwrap_or_default()),
        ]),
        _ => block,
    }
}
