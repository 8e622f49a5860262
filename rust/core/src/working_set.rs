//! The working set: the fold over one log, message by message and event by event.
//!
//! `state' = f(state, entry)`. Asking for a window checks the pending boundary on a copy; the fold
//! repeats that check when the assistant message arrives, and finds the same, so asking changes
//! nothing and a rebuild from the log gives the same bytes.

use std::sync::Arc;

use crate::compaction::{Shortfall, check_boundary, needs_compaction, settle_opener};
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, EventKind, SettingsChange};
use crate::level::{Fidelity, Level, Reason};
use crate::message::{Message, Role};
use crate::node::Text;
use crate::page::{
    PageDirectory, PageKey, Pointer, index_page, not_a_pointer, not_found, select_lines,
};
use crate::placeholder::placeholder_tokens;
use crate::plan::{Plan, Recall, Settings, fidelity, hard_reason, salience};
use crate::render::{Entry, RecallPlace, entries, recall_place};
use crate::shrink::with_text;
use crate::step::Attachment;
use crate::tokens::Counter;
use crate::tokens::chat::{ChatRules, count_message_parts, message_overhead};
use crate::transcript::Transcript;

/// What a page holds: a part of the transcript, or a text made on reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Index of a part in [`Transcript::all_parts`].
    Part(usize),
    /// The index of everything that is gone.
    Index,
}

/// The state of the fold over one log.
#[derive(Debug)]
pub struct WorkingSet<T> {
    transcript: Transcript<T>,
    settings: Settings,
    own_counter: Counter,
    rules: ChatRules,
    plan: Plan,
    pending: Option<Pending>,
    directory: PageDirectory,
    /// Messages before the newest boundary that was folded.
    boundary: u32,
    /// How many pending plans were made.
    pending_plans: u64,
    joins: Joins,
}

/// How many messages of the newest window are further pieces of the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Joins {
    revision: u64,
    /// Raw messages that were looked at.
    messages: usize,
    count: u64,
}

/// The outcome of the check at the pending boundary, kept until something is appended.
#[derive(Debug)]
struct Pending {
    plan: Plan,
    shortfall: Option<Shortfall>,
    synthesized: bool,
}

/// What happened to one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Raw index of the step's first message.
    pub first: u32,
    /// One past the raw index of its last message.
    pub end: u32,
    /// Role of its first message.
    pub role: Role,
    /// How much of it is in the window.
    pub level: Level,
    /// Tokens it takes in the window.
    pub tokens: u32,
    /// Tokens of the original.
    pub original_tokens: u32,
    /// How much it matters for the next call, 0..1.
    pub salience: f32,
    /// Whether it may be approximated.
    pub fidelity: Fidelity,
    /// Why it has its level.
    pub reason: Reason,
    /// The compaction that decided it, from 1; 0 if none has.
    pub compaction: u32,
}

/// Figures of one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowFigures {
    /// Tokens of the whole request, by the counter.
    pub tokens: u64,
    /// The upper estimate; equal to `tokens` for an exact counter.
    pub tokens_upper: u64,
    /// Tokens at the front that equal the window at the boundary before.
    pub stable_prefix_tokens: u64,
    /// Compactions so far, a pending one included.
    pub compactions: u32,
    /// Identifies the state of the window's older part, see [`Plan::revision`].
    pub revision: u64,
    /// Messages of the history.
    pub messages: usize,
    /// Steps by level: verbatim, trimmed, stub, gone.
    pub steps: [u32; 4],
}

impl<T: Text> WorkingSet<T> {
    /// An empty working set.
    ///
    /// # Errors
    /// `invalid_value` if the policy is out of range or the budget 0.
    pub fn new(settings: Settings) -> Result<Self> {
        settings.policy.validate()?;
        check_budget(settings.budget)?;
        Ok(Self {
            transcript: Transcript::new(settings.dialect.glue()),
            own_counter: settings.counter.clone(),
            rules: ChatRules::of(settings.dialect),
            settings,
            plan: Plan::default(),
            pending: None,
            directory: PageDirectory::default(),
            boundary: 0,
            pending_plans: 0,
            joins: Joins::default(),
        })
    }

    /// The transcript.
    pub fn transcript(&self) -> &Transcript<T> {
        &self.transcript
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The plan as folded so far (a pending compaction is not in it).
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Appends messages; all of them or, on an error, none.
    ///
    /// # Errors
    /// `orphan_result`, `duplicate_result` with the raw index; `counter_failed`.
    pub fn append(&mut self, mut messages: Vec<Message<T>>) -> Result<()> {
        self.transcript.check(&messages)?;
        let overheads = self.count(&mut messages)?;
        for (message, overhead) in messages.into_iter().zip(overheads) {
            self.fold(message, overhead)?;
        }
        Ok(())
    }

    /// Folds messages and the events between them, as a log holds them.
    ///
    /// # Errors
    /// As [`WorkingSet::append`] and [`WorkingSet::apply`]; the state is unusable then.
    pub fn replay(&mut self, mut messages: Vec<Message<T>>, events: &[Event]) -> Result<()> {
        self.transcript.check(&messages)?;
        let end = self.transcript.len() + messages.len();
        let mut last = self.transcript.len();
        for (position, event) in events.iter().enumerate() {
            if event.at < last || event.at > end {
                return Err(Error::new(
                    ErrorKind::InvalidEvent,
                    format!(
                        "event {position} is at message {}, must be from {last} to {end}",
                        event.at
                    ),
                ));
            }
            last = event.at;
        }
        let mut overheads = self.count(&mut messages)?;
        let mut events = events.iter().peekable();
        let mut messages = messages.into_iter();
        let mut position = 0;
        loop {
            while let Some(event) = events.next_if(|event| event.at == self.transcript.len()) {
                let counter = self.settings.counter.name().to_owned();
                self.apply(event)?;
                if self.settings.counter.name() != counter {
                    // Messages to come were counted by the old counter.
                    let mut rest: Vec<_> = messages.collect();
                    overheads.truncate(position);
                    overheads.extend(self.count(&mut rest)?);
                    messages = rest.into_iter();
                }
            }
            let Some(message) = messages.next() else {
                return Ok(());
            };
            self.fold(message, overheads[position])?;
            position += 1;
        }
    }

    fn count(&self, messages: &mut [Message<T>]) -> Result<Vec<u32>> {
        count_message_parts(messages, &self.settings.counter)?;
        messages
            .iter()
            .map(|message| message_overhead(message, &self.rules, &self.settings.counter))
            .collect()
    }

    fn fold(&mut self, message: Message<T>, overhead: u32) -> Result<()> {
        let at = self.transcript.len();
        let joins = self.transcript.pairing().attachment(&message) == Attachment::Joins;
        let abandons = !joins && self.transcript.pairing().open_calls() > 0;
        // A record that goes on with a reply is no call of its own.
        let is_boundary = message.role == Role::Assistant && !joins;
        let pending = self
            .pending
            .take()
            .filter(|pending| pending.synthesized == abandons);
        match pending {
            Some(pending) if is_boundary => self.plan = pending.plan,
            _ => {
                if abandons {
                    self.close_newest_in(None);
                }
                if is_boundary {
                    check_boundary(&mut self.plan, &self.transcript, &self.settings, at)?;
                }
            }
        }
        if is_boundary {
            self.boundary = at as u32;
            self.plan.changed_from = u32::MAX;
        }
        let had_goal = self.transcript.goal().is_some();
        self.transcript.push(message, overhead)?;
        let row = self.transcript.rows()[at];
        self.plan.grow(row.step, row.tokens);
        if at == 0 {
            settle_opener(&mut self.plan, &self.transcript, &self.settings)?;
            self.plan.sum();
        } else if !had_goal && self.transcript.goal().is_some() && self.plan.root.is_some() {
            // The note moves from the front to the goal.
            self.recount_notes()?;
            self.plan.sum();
            self.plan.touch(0);
        }
        Ok(())
    }

    /// Counts the notes again, whose text or place changed.
    fn recount_notes(&mut self) -> Result<()> {
        if let Some(root) = &mut self.plan.root {
            let text = self.settings.counter.count(&root.text)?;
            root.tokens = text + crate::compaction::root_overhead(&self.settings, &self.transcript);
        }
        settle_opener(&mut self.plan, &self.transcript, &self.settings)
    }

    /// Adds placeholders for the newest step's open calls to `plan`, or to the folded plan.
    fn close_newest_in(&mut self, plan: Option<&mut Plan>) {
        let step = self.transcript.steps().len().saturating_sub(1) as u32;
        let tokens = placeholder_tokens(&self.settings, &self.transcript, step);
        plan.unwrap_or(&mut self.plan).close_newest(tokens);
    }

    /// Folds one event at the end of the log.
    ///
    /// # Errors
    /// `invalid_event` if it is not at the end, names a message that is not there, or changes what
    /// cannot change; `page_not_found` for a pointer without a page; `dialect_changed`.
    pub fn apply(&mut self, event: &Event) -> Result<()> {
        let end = self.transcript.len();
        if event.at != end {
            return Err(Error::new(
                ErrorKind::InvalidEvent,
                format!(
                    "an event at message {} cannot be applied, the log has {end}",
                    event.at
                ),
            ));
        }
        match &event.kind {
            EventKind::Settings(change) => self.change_settings(change)?,
            EventKind::Pin { index } => self.pin(*index)?,
            EventKind::Unpin { index } => {
                let step = self.step_of(*index)?;
                self.plan.pins.remove(&step);
            }
            EventKind::PageIn { pointer, range } => self.place_page(pointer, *range)?,
        }
        self.pending = None;
        Ok(())
    }

    fn step_of(&self, index: usize) -> Result<u32> {
        self.transcript
            .rows()
            .get(index)
            .map(|row| row.step)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidEvent,
                    format!("no message {index}, the log has {}", self.transcript.len()),
                )
                .with_limit(index as u64, self.transcript.len() as u64)
            })
    }

    fn change_settings(&mut self, change: &SettingsChange) -> Result<()> {
        if let Some(dialect) = &change.dialect
            && dialect != self.settings.dialect.name()
        {
            return Err(Error::new(
                ErrorKind::DialectChanged,
                format!(
                    "the log is in dialect {}, not {dialect}",
                    self.settings.dialect.name()
                ),
            ));
        }
        if let Some(policy) = &change.policy {
            policy.validate()?;
        }
        if let Some(budget) = change.budget {
            check_budget(budget)?;
            self.settings.budget = budget;
        }
        if let Some(policy) = &change.policy {
            self.settings.policy = Arc::new(policy.clone());
            for shown in &mut self.plan.shown {
                shown.lower = None;
            }
        }
        if let Some(tokens) = change.system_tokens {
            self.settings.system_tokens = tokens;
        }
        if let Some(tokens) = change.tools_tokens {
            self.settings.tools_tokens = tokens;
        }
        if let Some(key) = &change.page_key {
            let key = PageKey::new(key);
            if !self.transcript.is_empty() && key != self.settings.key {
                return Err(Error::new(
                    ErrorKind::InvalidEvent,
                    "the page key is set by event 0 and cannot change",
                ));
            }
            self.settings.key = key;
        }
        match &change.counter {
            Some(name) if name != self.settings.counter.name() => self.change_counter(name),
            _ => Ok(()),
        }
    }

    /// Counts what is not gone again by another counter; what is gone keeps its counts.
    fn change_counter(&mut self, name: &str) -> Result<()> {
        self.settings.counter = if name == self.own_counter.name() {
            self.own_counter.clone()
        } else {
            Counter::named(name)?
        };
        let counter = self.settings.counter.clone();
        for shown in &mut self.plan.shown {
            let bounds = self.transcript.steps()[shown.step as usize];
            for message in bounds.first as usize..bounds.end as usize {
                self.transcript.recount(message, &counter)?;
            }
            shown.lower = None;
            shown.tokens = self.transcript.steps()[shown.step as usize].tokens;
            if shown.placeholder_tokens > 0 {
                shown.placeholder_tokens =
                    placeholder_tokens(&self.settings, &self.transcript, shown.step);
                shown.tokens += shown.placeholder_tokens;
            }
            let mut edits = shown.edits.to_vec();
            for edit in &mut edits {
                let part = &self.transcript.all_parts()[edit.part as usize];
                edit.tokens = crate::shrink::edited_tokens(part, &edit.text, &counter)?;
                shown.tokens = shown.tokens - part.tokens + edit.tokens;
            }
            shown.edits = edits.into();
        }
        for recall in &mut self.plan.recalls {
            let place = recall_place(&self.transcript, self.settings.dialect, recall.at as usize);
            recall.tokens = counter.count(&recall.text)? + around(place, &self.settings);
        }
        self.recount_notes()?;
        self.plan.sum();
        Ok(())
    }

    fn pin(&mut self, index: usize) -> Result<()> {
        let step = self.step_of(index)?;
        if !self.plan.pins.insert(step) {
            return Ok(());
        }
        let level = self
            .plan
            .find(step)
            .map_or(Level::Gone, |shown| shown.level);
        if level == Level::Verbatim {
            return Ok(());
        }
        let bounds = self.transcript.steps()[step as usize];
        let edited: Vec<u32> = self
            .plan
            .find(step)
            .map(|shown| shown.edits.iter().map(|edit| edit.part).collect())
            .unwrap_or_default();
        for message in bounds.first as usize..bounds.end as usize {
            for part in self.transcript.part_range(message) {
                if level == Level::Gone || edited.contains(&(part as u32)) {
                    let text = self.part_text(part);
                    if !text.is_empty() {
                        self.recall(self.pointer_of(part), part, &text, Some(step))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn place_page(&mut self, pointer: &str, range: Option<(usize, usize)>) -> Result<()> {
        let name = parse_pointer(pointer)?;
        match self.find_page(name)? {
            Page::Part(part) => {
                let text = select_lines(&self.part_text(part), None, range);
                self.recall(name, part, &text, None)
            }
            Page::Index => Err(Error::new(
                ErrorKind::InvalidEvent,
                "the index page is read with page_in, it cannot be placed",
            )),
        }
    }

    /// Shows `text` from the end of the log on, fenced and labelled with its source.
    fn recall(
        &mut self,
        pointer: Pointer,
        part: usize,
        text: &str,
        restores: Option<u32>,
    ) -> Result<()> {
        let message = self.transcript.message_of_part(part);
        let role = self.transcript.rows()[message].role.name();
        let source = format!("message {message}, {role}, page {pointer}");
        let text = fence("recalled", &source, text);
        let at = self.transcript.len();
        let place = recall_place(&self.transcript, self.settings.dialect, at);
        let tokens = self.settings.counter.count(&text)? + around(place, &self.settings);
        self.plan.recalls.push(Recall {
            at: at as u32,
            text: text.into(),
            tokens,
            restores,
        });
        self.plan.history_tokens += u64::from(tokens);
        let newest = self.transcript.steps().len().saturating_sub(1) as u32;
        self.plan.touch(newest);
        Ok(())
    }

    /// Checks the pending boundary and returns the figures of the window.
    ///
    /// # Errors
    /// `open_calls` if the newest step waits for results and `synthesize` is not set;
    /// `over_budget` if what must stay does not fit.
    pub fn window(&mut self, synthesize: bool) -> Result<WindowFigures> {
        let open = self.transcript.pairing().open_calls();
        if open > 0 && !synthesize {
            let index = self
                .transcript
                .pairing()
                .calls()
                .first()
                .map_or(0, |call| call.message);
            return Err(Error::new(
                ErrorKind::OpenCalls,
                format!("{open} calls have no result yet; append them, or pass open_calls=\"synthesize\""),
            )
            .at(index as usize));
        }
        let synthesized = open > 0;
        if self
            .pending
            .as_ref()
            .is_none_or(|pending| pending.synthesized != synthesized)
        {
            self.pending = None;
            if synthesized || needs_compaction(&self.plan, &self.transcript, &self.settings) {
                let mut plan = self.plan.clone();
                if synthesized {
                    self.close_newest_in(Some(&mut plan));
                }
                let at = self.transcript.len();
                let shortfall = check_boundary(&mut plan, &self.transcript, &self.settings, at)?;
                // A pending plan may be thrown away; its number is never given out again.
                self.pending_plans += 1;
                plan.revision = self.pending_plans << 32;
                self.pending = Some(Pending {
                    plan,
                    shortfall,
                    synthesized,
                });
            }
        }
        let shortfall = self.pending.as_ref().and_then(|pending| pending.shortfall);
        if let Some(shortfall) = shortfall {
            return Err(shortfall.error(&self.settings));
        }
        let joins = self.count_joins();
        let plan = self.window_plan();
        let joined = joins * u64::from(self.settings.message_tokens);
        let tokens = self.settings.base_tokens() + plan.history_tokens() - joined;
        if tokens > self.settings.room() {
            // Only possible without a compaction: trigger 1.0 and a plan that fits exactly.
            return Err(Error::over_budget(
                None,
                tokens,
                self.settings.budget,
                "the window",
            ));
        }
        Ok(WindowFigures {
            tokens,
            tokens_upper: self.settings.upper(tokens),
            stable_prefix_tokens: self.stable_prefix_tokens(plan).saturating_sub(joined),
            compactions: plan.compactions(),
            revision: plan.revision(),
            messages: self.transcript.len(),
            steps: plan.count_levels(),
        })
    }

    /// The plan behind the newest window: with the pending compaction, if there is one.
    pub fn window_plan(&self) -> &Plan {
        self.pending
            .as_ref()
            .map_or(&self.plan, |pending| &pending.plan)
    }

    /// The messages of the newest window, from raw message `from` on.
    pub fn entries(&self, from: usize) -> Vec<Entry> {
        entries(
            &self.transcript,
            self.window_plan(),
            self.settings.dialect,
            from,
        )
    }

    /// Messages of the window that are further pieces of the one before, which saves their framing.
    fn count_joins(&mut self) -> u64 {
        if !self.settings.dialect.may_join() {
            return 0;
        }
        let revision = self.window_plan().revision();
        if self.joins.revision != revision {
            self.joins = Joins {
                revision,
                ..Joins::default()
            };
        }
        let joined = |entry: &&Entry| entry.is_joined();
        let new = self
            .entries(self.joins.messages)
            .iter()
            .filter(joined)
            .count();
        self.joins.count += new as u64;
        self.joins.messages = self.transcript.len();
        self.joins.count
    }

    fn stable_prefix_tokens(&self, plan: &Plan) -> u64 {
        let mut tokens = self.settings.system_tokens + self.settings.tools_tokens;
        let mut end = 0;
        for shown in &plan.shown {
            let bounds = self.transcript.steps()[shown.step as usize];
            if shown.step >= plan.changed_from || bounds.end > self.boundary {
                break;
            }
            tokens += u64::from(shown.tokens);
            end = bounds.end;
        }
        // The note stands with the goal, recalled content where it came in.
        let goal = self.transcript.goal().unwrap_or(0) as u32;
        let root = plan
            .root
            .as_ref()
            .filter(|_| goal < end)
            .map_or(0, |root| root.tokens);
        let recalls = plan.recalls.iter().filter(|recall| recall.at <= end);
        tokens + u64::from(root) + recalls.map(|recall| u64::from(recall.tokens)).sum::<u64>()
    }

    /// What happened to each step, in order.
    pub fn explain(&self) -> Vec<StepReport> {
        (0..self.transcript.steps().len() as u32)
            .map(|step| self.explain_step(step))
            .collect()
    }

    /// What happened to the step of message `index`.
    ///
    /// # Errors
    /// `invalid_event` if there is no such message.
    pub fn explain_message(&self, index: usize) -> Result<StepReport> {
        Ok(self.explain_step(self.step_of(index)?))
    }

    fn explain_step(&self, step: u32) -> StepReport {
        let plan = self.window_plan();
        let bounds = self.transcript.steps()[step as usize];
        let fate = plan.fates()[step as usize];
        let hard = hard_reason(&self.transcript, plan.pins(), step)
            .filter(|_| fate.level == Level::Verbatim);
        StepReport {
            first: bounds.first,
            end: bounds.end,
            role: self.transcript.rows()[bounds.first as usize].role,
            level: fate.level,
            tokens: plan.find(step).map_or(0, |shown| shown.tokens),
            original_tokens: bounds.tokens,
            salience: salience(&self.transcript, &self.settings.policy, step) as f32,
            fidelity: fidelity(&self.transcript, step),
            reason: hard.unwrap_or(fate.reason),
            compaction: fate.compaction,
        }
    }

    /// Finds the page of a pointer.
    ///
    /// # Errors
    /// `page_not_found`.
    pub fn find_page(&mut self, pointer: Pointer) -> Result<Page> {
        if pointer == self.settings.key.index_pointer() {
            return Ok(Page::Index);
        }
        self.directory
            .find(pointer, &self.transcript, &self.settings.key)
            .map(Page::Part)
            .map_err(|_| not_found(pointer))
    }

    /// The index of everything that is gone from the newest window.
    pub fn index_page(&self) -> String {
        index_page(
            &self.transcript,
            &self.settings.key,
            self.window_plan().gone(),
        )
    }

    /// The pointer of a part, by its index in [`Transcript::all_parts`].
    pub fn pointer_of(&self, part: usize) -> Pointer {
        let message = self.transcript.message_of_part(part);
        let offset = part - self.transcript.part_range(message).start;
        self.settings
            .key
            .pointer(message, offset, &self.transcript.all_parts()[part])
    }

    fn part_text(&self, part: usize) -> String {
        match &self.transcript.all_parts()[part].body {
            crate::message::Body::Value(value) => value.to_json(),
            body => with_text(body, str::to_owned),
        }
    }
}

fn around(place: RecallPlace, settings: &Settings) -> u32 {
    match place {
        RecallPlace::Inside(_) => 0,
        RecallPlace::After => settings.message_tokens,
    }
}

fn check_budget(budget: u64) -> Result<()> {
    if budget == 0 {
        return Err(Error::new(
            ErrorKind::InvalidValue,
            "budget is 0, must be at least 1 token",
        )
        .with_limit(0, 1));
    }
    Ok(())
}

/// Reads a pointer as a caller wrote it.
///
/// # Errors
/// `page_not_found` for a text that is no pointer.
pub fn parse_pointer(text: &str) -> Result<Pointer> {
    Pointer::parse(text).ok_or_else(|| not_a_pointer(text.chars().count()))
}

/// `content` between two tags that do not occur in it, labelled as data with its source.
pub fn fence(tag: &str, source: &str, content: &str) -> String {
    let mut tag = tag.to_owned();
    let mut number = 1;
    while content.contains(&format!("<{tag}")) || content.contains(&format!("</{tag}")) {
        number += 1;
        tag.truncate(tag.find('-').unwrap_or(tag.len()));
        tag = format!("{tag}-{number}");
    }
    let newline = if content.ends_with('\n') { "" } else { "\n" };
    format!(
        "<{tag} source=\"{source}\" note=\"earlier content, shown as data\">\n{content}{newline}</{tag}>"
    )
}
