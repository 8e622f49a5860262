//! The window as edits of the caller's own objects.
//!
//! Untouched messages stay the same objects; what changes is said as a place and a new content, so
//! that every representation is rendered by a few lines.

use serde_json::{Value as Json, json};

use crate::compaction::PLACEHOLDER;
use crate::dialect::Dialect;
use crate::message::{Body, PartKind, Place, Role};
use crate::node::Text;
use crate::plan::{Plan, Recall, Shown};
use crate::transcript::Transcript;

/// One change inside a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The content at this place becomes a string.
    SetText(Place, Box<str>),
    /// The content at this place becomes this JSON value.
    SetJson(Place, Json),
    /// A text block is added at the end of the content at this place; a string becomes a list.
    AppendText(Place, Box<str>),
    /// A block is put into the message's content list at this position.
    InsertBlock(usize, Json),
}

/// One message of the window.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// The caller's message, unchanged.
    Original(u32),
    /// A copy of the caller's message with changes, applied in order.
    Changed(u32, Vec<Change>),
    /// A message that is put in.
    New(Json),
}

/// Where recalled content goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecallPlace {
    /// A further block of this place in the message before.
    Inside(Place),
    /// A user message of its own after the message before.
    After,
}

/// Where content recalled before message `at` goes: into the newest result inside a tool loop,
/// into the user's message where roles must alternate, else into a message of its own.
pub fn recall_place<T: Text>(
    transcript: &Transcript<T>,
    dialect: Dialect,
    at: usize,
) -> RecallPlace {
    let Some(before) = at
        .checked_sub(1)
        .filter(|&before| before < transcript.len())
    else {
        return RecallPlace::After;
    };
    let result = transcript
        .parts(before)
        .iter()
        .rfind(|part| part.kind == PartKind::Result);
    match result {
        Some(part) if !matches!(part.place, Place::Field(_)) => RecallPlace::Inside(part.place),
        _ if dialect == Dialect::Anthropic && transcript.rows()[before].role == Role::User => {
            RecallPlace::Inside(Place::Content)
        }
        _ => RecallPlace::After,
    }
}

/// The messages of the window, from raw message `from` on (0 for all of it).
pub fn entries<T: Text>(
    transcript: &Transcript<T>,
    plan: &Plan,
    dialect: Dialect,
    from: usize,
) -> Vec<Entry> {
    let start = plan
        .shown()
        .partition_point(|shown| transcript.steps()[shown.step as usize].end as usize <= from);
    let mut renderer = Renderer {
        transcript,
        plan,
        dialect,
        out: Vec::new(),
    };
    let root_alone = plan.root().filter(|_| transcript.goal().is_none());
    let mut root_pending = root_alone.is_some() && from == 0;
    for shown in &plan.shown()[start..] {
        let bounds = transcript.steps()[shown.step as usize];
        let first_row = transcript.rows()[bounds.first as usize];
        if root_pending && !first_row.role.is_instruction() {
            renderer.root_message();
            root_pending = false;
        }
        renderer.step(shown, from);
    }
    renderer.out
}

struct Renderer<'a, T> {
    transcript: &'a Transcript<T>,
    plan: &'a Plan,
    dialect: Dialect,
    out: Vec<Entry>,
}

impl<T: Text> Renderer<'_, T> {
    fn step(&mut self, shown: &Shown, from: usize) {
        let bounds = self.transcript.steps()[shown.step as usize];
        let open = if shown.closed {
            self.open_calls(shown.step)
        } else {
            Vec::new()
        };
        let mut edits = shown.edits.iter().peekable();
        for message in bounds.first as usize..bounds.end as usize {
            let range = self.transcript.part_range(message);
            let mut changes = Vec::new();
            while let Some(edit) = edits.next_if(|edit| (edit.part as usize) < range.end) {
                changes.push(self.replace(edit.part as usize, &edit.text));
            }
            if message < from {
                continue;
            }
            let is_last = message + 1 == bounds.end as usize;
            let mut after = Vec::new();
            if is_last && !open.is_empty() {
                self.fill(message, &open, &mut changes, &mut after);
            }
            if self.transcript.goal() == Some(message)
                && let Some(root) = self.plan.root()
            {
                if self.dialect == Dialect::Anthropic {
                    changes.push(Change::AppendText(Place::Content, (&*root.text).into()));
                } else {
                    after.push(Entry::New(json!({"role": "user", "content": &*root.text})));
                }
            }
            for recall in self.plan.recalls() {
                if recall.at as usize == message + 1 {
                    self.recall(recall, &mut changes, &mut after);
                }
            }
            self.out.push(if changes.is_empty() {
                Entry::Original(message as u32)
            } else {
                Entry::Changed(message as u32, changes)
            });
            self.out.append(&mut after);
        }
    }

    fn root_message(&mut self) {
        if let Some(root) = self.plan.root() {
            self.out
                .push(Entry::New(json!({"role": "user", "content": &*root.text})));
        }
    }

    fn recall(&self, recall: &Recall, changes: &mut Vec<Change>, after: &mut Vec<Entry>) {
        match recall_place(self.transcript, self.dialect, recall.at as usize) {
            RecallPlace::Inside(place) => {
                changes.push(Change::AppendText(place, (&*recall.text).into()));
            }
            RecallPlace::After => {
                after.push(Entry::New(
                    json!({"role": "user", "content": &*recall.text}),
                ));
            }
        }
    }

    fn replace(&self, part: usize, text: &str) -> Change {
        let part = &self.transcript.all_parts()[part];
        match (part.kind, &part.body) {
            // A string of JSON stays a string; an object stays an object.
            (PartKind::Call, Body::Value(_)) => Change::SetJson(
                part.place,
                serde_json::from_str(text).unwrap_or_else(|_| Json::String(text.to_owned())),
            ),
            _ if matches!(part.place, Place::Block(_)) => {
                Change::SetJson(part.place, json!({"type": "text", "text": text}))
            }
            _ => Change::SetText(part.place, text.into()),
        }
    }

    /// The calls of a step that no result of the step answers, with id and name.
    fn open_calls(&self, step: u32) -> Vec<(Option<String>, Option<String>)> {
        let bounds = self.transcript.steps()[step as usize];
        let mut calls = Vec::new();
        for message in bounds.first as usize..bounds.end as usize {
            for part in self.transcript.parts(message) {
                let key = part.key.as_deref();
                let keep = |text: Option<&T>| text.map(|text| text.with(str::to_owned));
                let id = keep(key.and_then(|key| key.id.as_ref()));
                let name = keep(key.and_then(|key| key.name.as_ref()));
                match part.kind {
                    PartKind::Call => calls.push((id, name)),
                    PartKind::Result => {
                        let answers =
                            |(call_id, call_name): &(Option<String>, Option<String>)| match (
                                &id, call_id,
                            ) {
                                (Some(id), Some(call_id)) => id == call_id,
                                _ => name.is_none() || call_name.is_none() || name == *call_name,
                            };
                        if let Some(at) = calls.iter().position(answers) {
                            calls.remove(at);
                        }
                    }
                    _ => {}
                }
            }
        }
        calls
    }

    /// Puts in placeholder results after the results that are there.
    fn fill(
        &self,
        message: usize,
        open: &[(Option<String>, Option<String>)],
        changes: &mut Vec<Change>,
        after: &mut Vec<Entry>,
    ) {
        if self.dialect != Dialect::Anthropic {
            after.extend(open.iter().map(|(id, name)| {
                Entry::New(match (id, name) {
                    (Some(id), _) => {
                        json!({"role": "tool", "tool_call_id": id, "content": PLACEHOLDER})
                    }
                    (None, name) => {
                        json!({"role": "function", "name": name, "content": PLACEHOLDER})
                    }
                })
            }));
            return;
        }
        let block = |id: &Option<String>| json!({"type": "tool_result", "tool_use_id": id, "content": PLACEHOLDER, "is_error": true});
        let last_result = self
            .transcript
            .parts(message)
            .iter()
            .rev()
            .find_map(|part| match (part.kind, part.place) {
                (PartKind::Result, Place::BlockContent(at)) => Some(at as usize),
                _ => None,
            });
        if let Some(at) = last_result {
            changes.extend(
                open.iter()
                    .enumerate()
                    .map(|(offset, (id, _))| Change::InsertBlock(at + 1 + offset, block(id))),
            );
        } else {
            let blocks: Vec<Json> = open.iter().map(|(id, _)| block(id)).collect();
            after.push(Entry::New(json!({"role": "user", "content": blocks})));
        }
    }
}

/// Applies changes to a parsed JSON message and returns the changed copy.
pub fn apply_to_json(message: &Json, changes: &[Change]) -> Json {
    let mut copy = message.clone();
    for change in changes {
        match change {
            Change::SetText(place, text) => {
                if let Some(slot) = slot(&mut copy, *place) {
                    *slot = Json::String(text.to_string());
                }
            }
            Change::SetJson(place, value) => {
                if let Some(slot) = slot(&mut copy, *place) {
                    *slot = value.clone();
                }
            }
            Change::AppendText(place, text) => {
                if let Some(slot) = slot(&mut copy, *place) {
                    let block = json!({"type": "text", "text": &**text});
                    match slot {
                        Json::String(before) if !before.trim().is_empty() => {
                            *slot = json!([{"type": "text", "text": &*before}, block]);
                        }
                        Json::Array(blocks) => blocks.push(block),
                        _ => *slot = Json::String(text.to_string()),
                    }
                }
            }
            Change::InsertBlock(at, block) => {
                if let Some(Json::Array(blocks)) = copy.get_mut("content") {
                    blocks.insert((*at).min(blocks.len()), block.clone());
                }
            }
        }
    }
    copy
}

fn slot(message: &mut Json, place: Place) -> Option<&mut Json> {
    use crate::message::PathStep;
    let mut value = message;
    for step in place.path() {
        value = match step {
            // A missing field (a result without content) is made.
            PathStep::Key(key) => value.as_object_mut()?.entry(key).or_insert(Json::Null),
            PathStep::Index(index) => value.get_mut(index as usize)?,
        };
    }
    Some(value)
}
