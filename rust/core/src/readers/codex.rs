//! Codex rollouts: response items, with events of the program between them.
//!
//! Items are passed on as they are, in the `openai-responses` dialect. A compaction replaces what
//! the program sends from then on, but the log keeps it: `compactions` in the metadata says before
//! which message each happened. What the user interface was told, the settings of each turn and
//! snapshots of the repository are no part of the conversation.

use super::json::Json;
use super::stream::Record;
use super::usage::{Usage, usage};
use super::{Conversation, Format};

/// The conversation of one rollout file.
pub(super) fn read(records: Vec<Record>) -> Vec<Conversation> {
    let mut conversation = Conversation::new(Format::Codex, "openai-responses", Vec::new());
    conversation.line = records.first().map_or(1, |record| record.line);
    let mut rollout = Rollout::default();
    for Record { value, .. } in records {
        rollout.take(value, &mut conversation);
    }
    conversation.messages = rollout.items;
    conversation.usage = rollout.usage;
    if !rollout.compactions.is_empty() {
        conversation.note("compactions", Json::List(rollout.compactions));
    }
    vec![conversation]
}

#[derive(Debug, Default)]
struct Rollout {
    items: Vec<Json>,
    usage: Vec<Usage>,
    compactions: Vec<Json>,
    /// Where the newest reply begins.
    reply: usize,
    /// Whether the newest item is of a reply.
    in_reply: bool,
    /// The total that was reported last: the same report comes several times.
    total: Option<Json>,
}

impl Rollout {
    fn take(&mut self, mut record: Json, conversation: &mut Conversation) {
        let payload = record.take_some("payload").unwrap_or_default();
        match record.str_at("type") {
            Some("response_item") => self.take_item(payload),
            Some("session_meta") => head(payload, conversation),
            Some("turn_context") => conversation.name_model(payload.str_at("model")),
            Some("compacted") => self.compactions.push(self.items.len().into()),
            Some("event_msg") => self.take_event(&payload, conversation.model.as_deref()),
            // Rollouts of the first versions: a header, then bare items.
            Some(_) if payload.is_null() => self.take_item(record),
            None if record.has("instructions") => head(record, conversation),
            _ => {}
        }
    }

    fn take_item(&mut self, item: Json) {
        let kind = item.str_at("type").unwrap_or("message");
        if kind == "ghost_snapshot" || !item.is_map() {
            return;
        }
        let is_given = kind.ends_with("_output")
            || (kind == "message" && item.str_at("role") != Some("assistant"));
        if !is_given && !self.in_reply {
            self.reply = self.items.len();
        }
        self.in_reply = !is_given;
        self.items.push(item);
    }

    fn take_event(&mut self, event: &Json, model: Option<&str>) {
        if event.str_at("type") != Some("token_count") {
            return;
        }
        let total = event.at(&["info", "total_token_usage"]).cloned();
        if total.is_none() || total == self.total {
            return;
        }
        self.total = total;
        let last = event.at(&["info", "last_token_usage"]);
        let reported = last.and_then(|record| usage(self.reply, model, record));
        self.usage.extend(reported);
    }
}

fn head(mut header: Json, conversation: &mut Conversation) {
    conversation.note_str("session_id", &header, "id");
    let base = header.take_some("base_instructions");
    conversation.system = base
        .and_then(|mut base| base.take_some("text"))
        .or_else(|| header.take_some("instructions"));
}
