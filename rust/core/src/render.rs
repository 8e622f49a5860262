//! The window as edits of the caller's own objects.
//!
//! Untouched messages stay the same objects; what changes is said as a place and a new content, so
//! that every representation is rendered by a few lines.

use std::ops::Range;

use serde_json::Value as Json;

use crate::dialect::Dialect;
use crate::dialect::form::{OPENER, Side, TextForm, replacement};
use crate::message::{Body, Part, PartKind, Place, Role};
use crate::node::Text;
use crate::placeholder::{last_results, open_calls};
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
    AppendText(Place, Box<str>, TextForm),
    /// A block is put into the list at this place, at this position.
    InsertBlock(Place, usize, Json),
}

/// One message of the window, or a further piece of the one before it.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// The caller's message, unchanged.
    Original(u32),
    /// A copy of the caller's message with changes, applied in order.
    Changed(u32, Vec<Change>),
    /// A message that is put in.
    New(Json),
    /// The blocks of this message follow those of the message before it, in a copy: the provider
    /// does not take them apart.
    Joined(Box<Entry>),
}

impl Entry {
    /// Whether it is a further piece of the message before it.
    pub fn is_joined(&self) -> bool {
        matches!(self, Self::Joined(_))
    }
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
/// into the user's message where notes stand inside, else into a message of its own.
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
    match result.map(|part| part.place) {
        Some(
            place @ (Place::Content
            | Place::BlockContent(_)
            | Place::Output
            | Place::ToolResultContent(_)),
        ) => RecallPlace::Inside(place),
        // Results of fixed shape take no further block: it stands behind them.
        _ if dialect.notes_inside() && transcript.rows()[before].role != Role::Assistant => {
            RecallPlace::Inside(dialect.blocks())
        }
        _ => RecallPlace::After,
    }
}

/// The messages of the window that stand for the raw messages `range`.
pub fn entries<T: Text>(
    transcript: &Transcript<T>,
    plan: &Plan,
    dialect: Dialect,
    range: Range<usize>,
) -> Vec<Entry> {
    let from = range.start;
    let is_instruction = |shown: &Shown| {
        let first = transcript.steps()[shown.step as usize].first;
        transcript.rows()[first as usize].role.is_instruction()
    };
    let start = plan
        .shown()
        .partition_point(|shown| transcript.steps()[shown.step as usize].end as usize <= from);
    let mut renderer = Renderer {
        transcript,
        plan,
        dialect,
        range,
        before: None,
        out: Vec::new(),
    };
    if from == 0 && plan.has_opener() {
        let opener = Entry::New(dialect.user_message(OPENER, true));
        renderer.push(Side::NOTE, opener);
    }
    let root_alone = plan.root().filter(|_| transcript.goal().is_none());
    let mut root_pending = root_alone.is_some() && plan.shown()[..start].iter().all(is_instruction);
    // The step before tells what the first new message may join.
    for shown in &plan.shown()[start.saturating_sub(1)..] {
        let bounds = transcript.steps()[shown.step as usize];
        if bounds.first as usize >= renderer.range.end {
            break;
        }
        if root_pending && !is_instruction(shown) {
            // Where the step began before the range, so did the note.
            if bounds.first as usize >= from {
                renderer.root_message();
            }
            root_pending = false;
        }
        renderer.step(shown);
    }
    renderer.out
}

struct Renderer<'a, T> {
    transcript: &'a Transcript<T>,
    plan: &'a Plan,
    dialect: Dialect,
    /// Raw messages to render; those before were rendered already.
    range: Range<usize>,
    /// The message before the next one.
    before: Option<Side>,
    out: Vec<Entry>,
}

impl<T: Text> Renderer<'_, T> {
    fn push(&mut self, side: Side, entry: Entry) {
        let joins = self
            .before
            .is_some_and(|before| self.dialect.joins(before, side));
        self.before = Some(side);
        self.out.push(if joins {
            Entry::Joined(Box::new(entry))
        } else {
            entry
        });
    }

    fn side(&self, message: usize) -> Side {
        let is_result = |part: &Part<T>| part.kind == PartKind::Result;
        Side {
            role: self.transcript.rows()[message].role,
            // Only where neighbours may be joined does it matter.
            has_results: self.dialect.may_join()
                && self.transcript.parts(message).iter().any(is_result),
        }
    }

    fn step(&mut self, shown: &Shown) {
        let bounds = self.transcript.steps()[shown.step as usize];
        if bounds.end as usize <= self.range.start {
            // Rendered already; what it ended with matters.
            self.before = Some(self.tail(shown, bounds.end as usize - 1));
            return;
        }
        let mut edits = shown.edits.iter().peekable();
        for message in bounds.first as usize..(bounds.end as usize).min(self.range.end) {
            let range = self.transcript.part_range(message);
            let mut changes = Vec::new();
            while let Some(edit) = edits.next_if(|edit| (edit.part as usize) < range.end) {
                changes.push(self.replace(edit.part as usize, &edit.text));
            }
            if message < self.range.start {
                self.before = Some(self.tail(shown, message));
                continue;
            }
            let mut after = Vec::new();
            if shown.closed && message + 1 == bounds.end as usize {
                self.fill(shown.step, &mut changes, &mut after);
            }
            if self.transcript.goal() == Some(message)
                && let Some(root) = self.plan.root()
            {
                if self.dialect.notes_inside() {
                    changes.push(self.append(self.dialect.blocks(), &root.text));
                } else {
                    after.push((Side::NOTE, self.user_message(&root.text)));
                }
            }
            for recall in self.plan.recalls() {
                if recall.at as usize == message + 1 {
                    self.recall(recall, &mut changes, &mut after);
                }
            }
            let entry = if changes.is_empty() {
                Entry::Original(message as u32)
            } else {
                Entry::Changed(message as u32, changes)
            };
            self.push(self.side(message), entry);
            for (side, entry) in after {
                self.push(side, entry);
            }
        }
    }

    /// What stood last once `message` of a step was rendered.
    fn tail(&self, shown: &Shown, message: usize) -> Side {
        let bounds = self.transcript.steps()[shown.step as usize];
        let is_root = !self.dialect.notes_inside()
            && self.plan.root().is_some()
            && self.transcript.goal() == Some(message);
        let is_recall = self.plan.recalls().iter().any(|recall| {
            recall.at as usize == message + 1
                && recall_place(self.transcript, self.dialect, message + 1) == RecallPlace::After
        });
        if is_root || is_recall {
            return Side::NOTE;
        }
        let is_filled = shown.closed
            && shown.placeholder_tokens > 0
            && message + 1 == bounds.end as usize
            && last_results(self.transcript, shown.step).is_none();
        if is_filled {
            return Side {
                has_results: true,
                ..Side::NOTE
            };
        }
        self.side(message)
    }

    fn root_message(&mut self) {
        if let Some(root) = self.plan.root() {
            let entry = self.user_message(&root.text);
            self.push(Side::NOTE, entry);
        }
    }

    /// A user message in the form that the history uses.
    fn user_message(&self, text: &str) -> Entry {
        let goal = self.transcript.goal();
        let plain = goal.is_none_or(|goal| {
            let parts = self.transcript.parts(goal);
            parts.iter().all(|part| part.place == Place::Content)
        });
        Entry::New(self.dialect.user_message(text, plain))
    }

    /// A text block at the end of the content at `place`.
    fn append(&self, place: Place, text: &str) -> Change {
        Change::AppendText(place, text.into(), self.dialect.text_form(Role::User))
    }

    fn recall(&self, recall: &Recall, changes: &mut Vec<Change>, after: &mut Vec<(Side, Entry)>) {
        match recall_place(self.transcript, self.dialect, recall.at as usize) {
            RecallPlace::Inside(place) => changes.push(self.append(place, &recall.text)),
            RecallPlace::After => after.push((Side::NOTE, self.user_message(&recall.text))),
        }
    }

    fn replace(&self, part: usize, text: &str) -> Change {
        let message = self.transcript.message_of_part(part);
        let part = &self.transcript.all_parts()[part];
        let form = self.dialect.text_form(self.transcript.rows()[message].role);
        match (part.kind, &part.body) {
            // A string of JSON stays a string; an object stays an object.
            (PartKind::Call, Body::Value(_)) => Change::SetJson(
                part.place,
                serde_json::from_str(text).unwrap_or_else(|_| Json::String(text.to_owned())),
            ),
            _ => match replacement(part.place, part.is_error, text, form) {
                Some(mut value) => {
                    if part.place == Place::ShellOutput
                        && let Some(outcome) = outcome(&part.body)
                    {
                        value[0]["outcome"] = outcome;
                    }
                    Change::SetJson(part.place, value)
                }
                None => Change::SetText(part.place, text.into()),
            },
        }
    }

    /// Puts in placeholder results after the results that are there.
    fn fill(&self, step: u32, changes: &mut Vec<Change>, after: &mut Vec<(Side, Entry)>) {
        let open = open_calls(self.transcript, step);
        if open.is_empty() {
            return;
        }
        let results: Vec<Json> = open
            .iter()
            .map(|call| self.dialect.placeholder(call))
            .collect();
        let side = Side {
            role: if self.dialect.results_are_blocks() {
                Role::User
            } else {
                Role::Tool
            },
            has_results: true,
        };
        if !self.dialect.results_are_blocks() {
            after.extend(results.into_iter().map(|result| (side, Entry::New(result))));
            return;
        }
        match last_results(self.transcript, step) {
            Some((_, at)) => {
                let place = self.dialect.blocks();
                let inserts = results.into_iter().enumerate();
                changes.extend(
                    inserts.map(|(offset, block)| Change::InsertBlock(place, at + offset, block)),
                );
            }
            None => after.push((side, Entry::New(self.dialect.message_of(&results)))),
        }
    }
}

/// How a shell's last command ended.
fn outcome<T: Text>(body: &Body<T>) -> Option<Json> {
    let Body::Value(value) = body else {
        return None;
    };
    let outcome = value.items().last()?.get("outcome")?;
    serde_json::from_str(&outcome.to_json()).ok()
}

/// Applies one entry to a window of parsed JSON messages.
pub fn push_json(window: &mut Vec<Json>, messages: &[Json], dialect: Dialect, entry: &Entry) {
    let message = match entry {
        Entry::Original(index) => messages[*index as usize].clone(),
        Entry::Changed(index, changes) => apply_to_json(&messages[*index as usize], changes),
        Entry::New(message) => message.clone(),
        Entry::Joined(piece) => {
            let mut alone = Vec::new();
            push_json(&mut alone, messages, dialect, piece);
            if let (Some(before), Some(mut piece)) = (window.last_mut(), alone.pop()) {
                let taken = slot(&mut piece, dialect.blocks()).map(Json::take);
                let blocks = slot(before, dialect.blocks());
                if let (Some(Json::Array(more)), Some(blocks)) = (taken, blocks) {
                    match blocks {
                        Json::Array(blocks) => blocks.extend(more),
                        other => *other = Json::Array(more),
                    }
                }
            }
            return;
        }
    };
    window.push(message);
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
            Change::AppendText(place, text, form) => {
                if let Some(slot) = slot(&mut copy, *place) {
                    match slot {
                        Json::String(before) if !before.trim().is_empty() => {
                            *slot = Json::Array(vec![form.block(before), form.block(text)]);
                        }
                        Json::Array(blocks) => blocks.push(form.block(text)),
                        _ if *form == TextForm::Bare => {
                            *slot = Json::Array(vec![form.block(text)]);
                        }
                        _ => *slot = Json::String(text.to_string()),
                    }
                }
            }
            Change::InsertBlock(place, at, block) => {
                if let Some(Json::Array(blocks)) = slot(&mut copy, *place) {
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
