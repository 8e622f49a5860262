//! Claude Code sessions: a record a line, linked by `uuid` and `parentUuid`, a content block a line.
//!
//! What is read, into the `anthropic` dialect:
//!
//! * The blocks of one reply (`message.id`) become one message; the results of its calls follow as
//!   one message, also where they were written between the blocks.
//! * The main conversation is the chain that ends at the newest message, together with the blocks
//!   and results that belong to replies of the chain (parallel calls fork the links). Records of
//!   branches that were given up by going back are left out; `abandoned` in the metadata counts
//!   them. A chain goes on across a compaction, whose summary stays where it stands.
//! * Each side chain (a subagent) is a conversation of its own, after the main one.
//! * Records that never reached the model (summaries, snapshots, queues, hooks, `system`, errors of
//!   the API) are left out; `isMeta` messages and compaction summaries did reach it and stay.

use std::collections::{BTreeMap, BTreeSet};

use super::json::Json;
use super::stream::Record;
use super::usage::{Usage, usage};
use super::{Conversation, Format};

/// The conversations of one session file.
pub(super) fn read(records: Vec<Record>) -> Vec<Conversation> {
    let title = title(&records);
    let main = newest(&records, |record| !is_side(record));
    let mut chains: Vec<Vec<usize>> = Vec::new();
    let mut abandoned = 0;
    if let Some(main) = main {
        let chain = chain(&records, main);
        let all = records.iter().filter(|record| !is_side(&record.value));
        let said = all.filter(|record| is_said(&record.value)).count();
        abandoned = said.saturating_sub(chain.len());
        chains.push(chain);
    }
    chains.extend(side_chains(&records));
    let mut records: Vec<Option<Record>> = records.into_iter().map(Some).collect();
    let mut found: Vec<Conversation> = chains
        .into_iter()
        .map(|chain| {
            let taken = chain
                .into_iter()
                .filter_map(|at| records.get_mut(at)?.take())
                .collect();
            conversation(taken)
        })
        .collect();
    if let (Some(_), Some(first)) = (main, found.first_mut()) {
        first.note("title", title);
        if abandoned > 0 {
            first.note("abandoned", abandoned.into());
        }
    }
    found
}

fn title(records: &[Record]) -> Json {
    records
        .iter()
        .rev()
        .find_map(|record| record.value.str_at("summary"))
        .map_or(Json::Null, Json::from)
}

fn is_side(record: &Json) -> bool {
    record.get("isSidechain").is_some_and(Json::is_true)
}

/// Whether a record is a message that the model said or was told.
fn is_said(record: &Json) -> bool {
    let kind = record.str_at("type");
    let is_error = record.get("isApiErrorMessage").is_some_and(Json::is_true);
    matches!(kind, Some("user" | "assistant")) && record.has("message") && !is_error
}

fn newest(records: &[Record], of: impl Fn(&Json) -> bool) -> Option<usize> {
    records
        .iter()
        .rposition(|record| is_said(&record.value) && of(&record.value))
}

/// The record before this one, also across a compaction.
fn parent(record: &Json) -> Option<&str> {
    ["parentUuid", "logicalParentUuid"]
        .iter()
        .find_map(|key| record.str_at(key))
}

/// The messages of the conversation that ends at `leaf`, in the order of the file.
fn chain(records: &[Record], leaf: usize) -> Vec<usize> {
    let by_id: BTreeMap<&str, usize> = records
        .iter()
        .enumerate()
        .filter_map(|(at, record)| Some((record.value.str_at("uuid")?, at)))
        .collect();
    let mut on_chain = BTreeSet::new();
    let mut next = Some(leaf);
    while let Some(at) = next {
        // Links that run in a circle end where they began.
        if !on_chain.insert(at) {
            break;
        }
        let record = records.get(at).map(|record| &record.value);
        next = record
            .and_then(parent)
            .and_then(|id| by_id.get(id))
            .copied();
    }
    let replies: BTreeSet<&str> = on_chain
        .iter()
        .filter_map(|at| reply(&records.get(*at)?.value))
        .collect();
    let side = records.get(leaf).is_some_and(|leaf| is_side(&leaf.value));
    // Blocks first: a result may be written before the block of a sibling.
    let mut calls: BTreeSet<&str> = BTreeSet::new();
    for (at, Record { value, .. }) in records.iter().enumerate() {
        if is_side(value) == side && reply(value).is_some_and(|reply| replies.contains(reply)) {
            on_chain.insert(at);
            calls.extend(content(value).iter().filter_map(|block| block.str_at("id")));
        }
    }
    for (at, Record { value, .. }) in records.iter().enumerate() {
        let mut results = content(value)
            .iter()
            .filter_map(|block| block.str_at("tool_use_id"));
        if is_side(value) == side && results.any(|call| calls.contains(call)) {
            on_chain.insert(at);
        }
    }
    let said = |at: &usize| {
        records
            .get(*at)
            .is_some_and(|record| is_said(&record.value))
    };
    on_chain.into_iter().filter(said).collect()
}

/// The id of the reply that this record is a block of.
fn reply(record: &Json) -> Option<&str> {
    record.at(&["message", "id"])?.as_str()
}

fn content(record: &Json) -> &[Json] {
    record
        .get("message")
        .map_or(&[], |message| message.items_at("content"))
}

/// The side chains: by agent where records name one, else by the record they begin with.
fn side_chains(records: &[Record]) -> Vec<Vec<usize>> {
    let mut chain_of: BTreeMap<&str, usize> = BTreeMap::new();
    let mut chains: indexmap::IndexMap<&str, Vec<usize>> = indexmap::IndexMap::new();
    let mut names: Vec<&str> = Vec::new();
    for (at, Record { value, .. }) in records.iter().enumerate() {
        if !is_side(value) {
            continue;
        }
        let id = value.str_at("uuid").unwrap_or_default();
        let name = match value.str_at("agentId") {
            Some(agent) => agent,
            None => match parent(value).and_then(|parent| chain_of.get(parent)) {
                Some(chain) => names.get(*chain).copied().unwrap_or_default(),
                None => id,
            },
        };
        let entry = chains.entry(name);
        let chain = entry.index();
        if chain == names.len() {
            names.push(name);
        }
        let members = entry.or_default();
        if is_said(value) {
            members.push(at);
        }
        chain_of.insert(id, chain);
    }
    chains
        .into_values()
        .filter(|chain| !chain.is_empty())
        .collect()
}

fn conversation(records: Vec<Record>) -> Conversation {
    let mut conversation = Conversation::new(Format::ClaudeCode, "anthropic", Vec::new());
    if let Some(Record { line, value }) = records.first() {
        conversation.line = *line;
        conversation.note_str("session_id", value, "sessionId");
        conversation.note_str("agent_id", value, "agentId");
        if is_side(value) {
            conversation.note("sidechain", Json::Bool(true));
        }
    }
    let mut merge = Merge::default();
    for record in records {
        merge.take(record.value);
    }
    if !merge.compactions.is_empty() {
        let at = merge.compactions.into_iter().map(Json::from).collect();
        conversation.note("compactions", Json::List(at));
    }
    conversation.name_model(merge.model.as_deref());
    conversation.messages = merge.messages;
    conversation.usage = merge.usage;
    conversation
}

#[derive(Debug, Default)]
struct Merge {
    messages: Vec<Json>,
    usage: Vec<Usage>,
    compactions: Vec<usize>,
    model: Option<Box<str>>,
    /// The newest reply: its id and the index of its message.
    reply: Option<(Box<str>, usize)>,
}

impl Merge {
    fn take(&mut self, mut record: Json) {
        let is_summary = record.get("isCompactSummary").is_some_and(Json::is_true);
        let mut message = record.take("message").unwrap_or_default();
        let content = message.take("content").unwrap_or_default();
        if record.str_at("type") == Some("assistant") {
            return self.take_reply(&message, content);
        }
        if is_summary {
            self.compactions.push(self.messages.len());
        }
        let is_result = |block: &Json| block.str_at("type") == Some("tool_result");
        let answers = self.reply.is_some() && content.items().iter().any(is_result);
        if answers {
            // Results of one reply go back in one message.
            if let Some((_, at)) = self.reply {
                if let Some(last) = self.messages.get_mut(at + 1) {
                    return extend_content(last, content);
                }
            }
        } else {
            self.reply = None;
        }
        self.messages
            .push(Json::map([("role", "user".into()), ("content", content)]));
    }

    fn take_reply(&mut self, message: &Json, content: Json) {
        let id = message.str_at("id");
        let model = message
            .str_at("model")
            .filter(|model| *model != "<synthetic>");
        if model.is_some() {
            self.model = model.map(Into::into);
        }
        let same = self
            .reply
            .as_ref()
            .filter(|(reply, _)| Some(&**reply) == id)
            .map(|(_, at)| *at);
        let at = same.unwrap_or(self.messages.len());
        let reported = message
            .get("usage")
            .and_then(|record| usage(at, model, record));
        match same.and_then(|at| self.messages.get_mut(at)) {
            Some(reply) => {
                extend_content(reply, content);
                // Each block repeats the figures; the last ones are complete.
                if reported.is_some() && self.usage.last().is_some_and(|last| last.index == at) {
                    self.usage.pop();
                }
            }
            None => {
                let reply = [("role", "assistant".into()), ("content", content)];
                self.messages.push(Json::map(reply));
                self.reply = id.map(|id| (id.into(), at));
            }
        }
        self.usage.extend(reported);
    }
}

fn extend_content(message: &mut Json, more: Json) {
    let mut blocks = blocks(message.take("content").unwrap_or_default());
    blocks.extend(self::blocks(more));
    message.set("content", Json::List(blocks));
}

/// Content as a list of blocks.
fn blocks(content: Json) -> Vec<Json> {
    match content {
        Json::List(blocks) => blocks,
        Json::Text(text) => vec![Json::map([
            ("type", "text".into()),
            ("text", Json::Text(text)),
        ])],
        _ => Vec::new(),
    }
}
