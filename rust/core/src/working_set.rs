//! The working set: the fold over one log, message by message and event by event.
//!
//! `state' = f(state, entry)`. Asking for a window checks the pending boundary on a copy; the fold
//! repeats that check when the assistant message arrives, and finds the same, so asking changes
//! nothing and a rebuild from the log gives the same bytes.

mod appending;
mod checkpoint;
mod handover;
mod recall;
mod settings;
mod summary;

use std::ops::Range;

pub use self::checkpoint::Checkpoint;
use self::checkpoint::Checkpoints;
pub use self::handover::{Carried, Gone};
pub(crate) use self::recall::{around, fence};
use self::recall::{check, place};
pub use self::settings::MAX_TOKENS;
use self::settings::{check_budget, check_tokens};
use crate::compaction::{needs_compaction, settle_opener};
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, EventKind};
use crate::message::{Message, Role};
use crate::need::{Search, needed};
use crate::node::Text;
use crate::page::{PageDirectory, Pointer, index_page, not_a_pointer, not_found};
use crate::placeholder::placeholder_tokens;
use crate::plan::{Plan, Recall, Settings};
use crate::policy::Select;
use crate::render::{Entry, entries};
use crate::root::root_overhead;
use crate::salience::passages::Passages;
use crate::shortfall::Shortfall;
use crate::shrink::with_text;
use crate::step::Attachment;
use crate::strategy::relevant::select;
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
    /// Counters that a settings event may name; the first is the log's own.
    counters: Vec<Counter>,
    rules: ChatRules,
    plan: Plan,
    /// What is known of the identifiers.
    search: Search,
    pending: Option<Pending>,
    /// What is known of passages, where a question selects them.
    passages: Passages,
    /// The plan of the newest window with what a question brought back; never folded.
    answering: Option<Plan>,
    /// Messages before the boundary that was checked last and changes nothing.
    quiet: Option<usize>,
    directory: PageDirectory,
    /// Messages before the newest boundary that was folded.
    boundary: u32,
    /// Messages at the front that another working set handed on: no calls were made between them.
    opening: usize,
    /// Messages before the boundary at which the window's older part last changed.
    changed_at: Option<u32>,
    /// How many pending plans were made.
    pending_plans: u64,
    /// Content that was paged in between a call and its results, where nothing may stand.
    waiting: Vec<Recall>,
    joins: Joins,
    prefix: Prefix,
    checkpoints: Checkpoints,
}

/// How many messages of the newest window are further pieces of the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Joins {
    revision: u64,
    /// Raw messages that were looked at.
    messages: usize,
    count: u64,
}

/// How much of the newest window's front is as it was at the boundary before.
#[derive(Clone, Copy, Debug, Default)]
struct Prefix {
    revision: u64,
    /// Steps of the window that were looked at.
    steps: usize,
    tokens: u64,
    /// Messages before the end of these steps.
    end: u32,
}

/// The outcome of the check at the pending boundary, kept until something is appended.
#[derive(Debug)]
struct Pending {
    plan: Plan,
    shortfall: Option<Shortfall>,
    synthesized: bool,
}

/// What the check of a boundary has to do.
#[derive(Debug)]
enum Due {
    Nothing,
    /// All of it.
    Check,
    /// These lines come back.
    Recall(Recall),
}

/// Figures of one window.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// Messages before the newest boundary that was folded: as long as the revision is the same,
    /// these are rendered as they were.
    pub settled: usize,
    /// Steps by level: verbatim, trimmed, stub, gone.
    pub steps: [u32; 4],
    /// See [`Plan::worth`].
    pub worth: (f64, f64),
}

impl<T: Text> WorkingSet<T> {
    /// An empty working set.
    ///
    /// # Errors
    /// `invalid_value` if the policy is out of range, the budget 0, or system or tools beyond
    /// [`MAX_TOKENS`].
    pub fn new(settings: Settings) -> Result<Self> {
        settings.policy.validate()?;
        check_budget(settings.budget)?;
        check_tokens("system_tokens", settings.system_tokens)?;
        check_tokens("tools_tokens", settings.tools_tokens)?;
        Ok(Self {
            transcript: Transcript::new(settings.dialect.glue()),
            counters: vec![settings.counter.clone()],
            rules: ChatRules::for_counter(settings.dialect, &settings.counter),
            settings,
            plan: Plan::default(),
            search: Search::default(),
            pending: None,
            passages: Passages::default(),
            answering: None,
            quiet: None,
            directory: PageDirectory::default(),
            boundary: 0,
            opening: 0,
            changed_at: None,
            pending_plans: 0,
            waiting: Vec::new(),
            joins: Joins::default(),
            prefix: Prefix::default(),
            checkpoints: Checkpoints::default(),
        })
    }

    /// Lets settings events name a counter that is not that of an encoding, such as a model's.
    pub fn offer_counter(&mut self, counter: Counter) {
        self.counters.push(counter);
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
        let overheads: Vec<u32> = messages
            .iter()
            .map(|message| message_overhead(message, &self.rules, &self.settings.counter))
            .collect::<Result<_>>()?;
        self.transcript.check_sizes(messages, &overheads)?;
        Ok(overheads)
    }

    fn fold(&mut self, message: Message<T>, overhead: u32) -> Result<()> {
        if self.is_resuming() {
            return self.pass_message(message, overhead);
        }
        let at = self.transcript.len();
        let joins = self.transcript.pairing().attachment(&message) == Attachment::Joins;
        let abandons = !joins && self.transcript.pairing().open_calls() > 0;
        // A record that goes on with a reply is no call of its own.
        let is_boundary = message.role == Role::Assistant && !joins;
        self.answering = None;
        let pending = self
            .pending
            .take()
            .filter(|pending| pending.synthesized == abandons);
        let compactions = self.plan.compactions;
        match pending {
            Some(pending) if is_boundary => {
                self.plan = pending.plan;
                self.waiting.clear();
            }
            stale => {
                // Its plan shares the steps with the one that grows.
                drop(stale);
                if abandons {
                    self.close_newest_in(None);
                    self.place_waiting();
                }
                if is_boundary && at >= self.opening && (abandons || self.quiet != Some(at)) {
                    check(
                        &mut self.plan,
                        &self.transcript,
                        &self.settings,
                        &mut self.search,
                    )?;
                }
            }
        }
        if self.plan.compactions != compactions {
            self.changed_at = Some(at as u32);
        }
        if is_boundary {
            self.boundary = at as u32;
            self.plan.calls += 1;
            if at >= self.opening {
                self.plan.is_cold = false;
            }
            self.plan.changed_from = u32::MAX;
        }
        let had_goal = self.transcript.goal().is_some();
        self.transcript.push(message, overhead)?;
        let row = self.transcript.rows()[at];
        let step_tokens = self.transcript.steps()[row.step as usize].tokens;
        self.plan.grow(row.step, row.tokens, step_tokens);
        if joins && self.transcript.pairing().open_calls() == 0 {
            self.place_waiting();
        }
        if at == 0 {
            self.recount_notes()?;
            self.plan.sum();
        } else if !had_goal && self.transcript.goal().is_some() && self.plan.root.is_some() {
            // The note moves from the front to the goal.
            self.recount_notes()?;
            self.plan.sum();
            self.plan.touch(0);
            self.changed_at = Some(at as u32 + 1);
        }
        if self.plan.compactions != compactions {
            self.note_checkpoint();
        }
        Ok(())
    }

    /// Counts the notes again, whose text or place changed.
    fn recount_notes(&mut self) -> Result<()> {
        let mut plan = std::mem::take(&mut self.plan);
        let counted = self.count_notes(&mut plan);
        self.plan = plan;
        counted
    }

    /// Counts the notes of a plan of this log.
    fn count_notes(&self, plan: &mut Plan) -> Result<()> {
        if let Some(root) = &mut plan.root {
            let text = self.settings.counter.count(&root.text)?;
            root.tokens = text + root_overhead(&self.settings, &self.transcript);
        }
        settle_opener(plan, &self.transcript, &self.settings)
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
        if self.is_resuming() {
            return self.pass_event(event);
        }
        let compactions = self.plan.compactions;
        match &event.kind {
            EventKind::Settings(change) => {
                let counter = self.settings.counter.name().to_owned();
                self.change_settings(change)?;
                if self.settings.counter.name() == counter {
                    self.search.forget_values();
                } else {
                    self.checkpoints.is_recounted = true;
                    self.checkpoints.forget();
                    // What it knows of tokens is by the old counter.
                    self.search = Search::default();
                }
            }
            EventKind::Pin { index } => self.pin(*index)?,
            EventKind::Unpin { index } => {
                let step = self.step_of(*index)?;
                self.plan.pins.remove(&step);
            }
            EventKind::PageIn { pointer, range } => self.place_page(pointer, *range)?,
            EventKind::Memories { items, language } => self.remember(items, *language)?,
            EventKind::Summary(summary) => self.summarize(summary)?,
            EventKind::Cache { cold } => self.plan.is_cold = *cold,
            EventKind::Calibration(scale) => {
                scale.check()?;
                self.settings.calibration = Some(*scale);
            }
        }
        self.pending = None;
        self.answering = None;
        self.quiet = None;
        self.prefix = Prefix::default();
        self.checkpoints.events += 1;
        if self.plan.compactions != compactions {
            self.note_checkpoint();
        }
        Ok(())
    }

    pub(crate) fn step_of(&self, index: usize) -> Result<u32> {
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

    /// Checks the pending boundary and returns the figures of the window.
    ///
    /// # Errors
    /// `open_calls` if the newest step waits for results and `synthesize` is not set;
    /// `over_budget` if what must stay does not fit.
    pub fn window(&mut self, synthesize: bool) -> Result<WindowFigures> {
        self.window_for(synthesize, None)
    }

    /// The same for a question, where the policy selects by relevance: by default the newest user
    /// message. A question changes no level.
    ///
    /// # Errors
    /// As [`WorkingSet::window`].
    pub fn window_for(&mut self, synthesize: bool, query: Option<&str>) -> Result<WindowFigures> {
        self.answering = None;
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
            let due = if synthesized { Due::Check } else { self.due()? };
            if !matches!(due, Due::Nothing) {
                let mut plan = self.plan.clone();
                if synthesized {
                    self.close_newest_in(Some(&mut plan));
                    let waiting = self.waiting.clone();
                    place(waiting, &mut plan, &self.transcript, &self.settings);
                }
                let shortfall = match due {
                    // The search was made already.
                    Due::Recall(recall) => {
                        place(vec![recall], &mut plan, &self.transcript, &self.settings);
                        None
                    }
                    _ => check(
                        &mut plan,
                        &self.transcript,
                        &self.settings,
                        &mut self.search,
                    )?,
                };
                // A pending plan may be thrown away; its number is never given out again.
                if plan.revision != self.plan.revision {
                    self.pending_plans += 1;
                    plan.revision = self.pending_plans << 32;
                }
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
        if self.settings.policy.select == Select::Relevant {
            let plan = self
                .pending
                .as_ref()
                .map_or(&self.plan, |pending| &pending.plan);
            let passages = &mut self.passages;
            self.answering = select(plan, &self.transcript, &self.settings, passages, query)?;
            if let Some(plan) = &mut self.answering {
                self.pending_plans += 1;
                plan.revision = self.pending_plans << 32;
            }
        }
        let joins = self.count_joins();
        let stable = self.stable_prefix_tokens();
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
            stable_prefix_tokens: stable.saturating_sub(joined),
            compactions: plan.compactions(),
            revision: plan.revision(),
            messages: self.transcript.len(),
            settled: self.boundary as usize,
            steps: plan.count_levels(),
            worth: plan.worth(),
        })
    }

    /// What the pending boundary changes.
    fn due(&mut self) -> Result<Due> {
        let at = self.transcript.len();
        if self.quiet == Some(at) {
            return Ok(Due::Nothing);
        }
        let (plan, transcript, settings) = (&self.plan, &self.transcript, &self.settings);
        if needs_compaction(plan, transcript, settings) {
            return Ok(Due::Check);
        }
        let recall = needed(plan, transcript, settings, &mut self.search)?;
        if recall.is_none() {
            self.quiet = Some(at);
        }
        Ok(recall.map_or(Due::Nothing, Due::Recall))
    }

    /// The plan behind the newest window: with the pending compaction, if there is one.
    pub fn window_plan(&self) -> &Plan {
        let pending = self.pending.as_ref().map(|pending| &pending.plan);
        self.answering.as_ref().or(pending).unwrap_or(&self.plan)
    }

    /// The messages of the newest window, from raw message `from` on.
    pub fn entries(&self, from: usize) -> Vec<Entry> {
        self.entries_of(from..self.transcript.len())
    }

    /// The messages of the newest window that stand for these raw messages.
    pub fn entries_of(&self, range: Range<usize>) -> Vec<Entry> {
        let dialect = self.settings.dialect;
        entries(&self.transcript, self.window_plan(), dialect, range)
    }

    /// Messages at the end of the newest window that came after its older part last changed; `None`
    /// if that never changed. What the model said there, it said with this older part before it.
    pub fn unchanged_tail(&self) -> Option<usize> {
        if self.answering.is_some() {
            return Some(0);
        }
        let is_pending = self.window_plan().compactions() > self.plan.compactions();
        let from = match self.changed_at {
            _ if is_pending => return Some(0),
            None if self.opening > 0 => self.opening,
            changed => changed? as usize,
        };
        let tail = self.entries(from);
        Some(tail.iter().filter(|entry| !entry.is_joined()).count())
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
        let count = |entries: Vec<Entry>| {
            let joined = entries.iter().filter(|entry| entry.is_joined());
            joined.count() as u64
        };
        let settled = self.boundary as usize;
        if self.joins.messages < settled {
            self.joins.count += count(self.entries_of(self.joins.messages..settled));
            self.joins.messages = settled;
        }
        self.joins.count + count(self.entries(self.joins.messages))
    }

    /// Goes on from the window before where that is still the front of this one.
    fn stable_prefix_tokens(&mut self) -> u64 {
        let plan = self.window_plan();
        let revision = plan.revision();
        let mut prefix = match self.prefix {
            prefix if prefix.revision == revision => prefix,
            _ => Prefix {
                revision,
                ..Prefix::default()
            },
        };
        for shown in plan.shown.get(prefix.steps..).unwrap_or_default() {
            let bounds = self.transcript.steps()[shown.step as usize];
            if shown.step >= plan.changed_from || bounds.end > self.boundary {
                break;
            }
            prefix.steps += 1;
            prefix.tokens += u64::from(shown.tokens);
            prefix.end = bounds.end;
        }
        let Prefix { end, .. } = prefix;
        let tokens = self.settings.system_tokens + self.settings.tools_tokens + prefix.tokens;
        // The note stands with the goal, recalled content where it came in.
        let goal = self.transcript.goal().unwrap_or(0) as u32;
        let root = plan
            .root
            .as_ref()
            .filter(|_| goal < end)
            .map_or(0, |root| root.tokens);
        let recalls = plan.recalls.iter().filter(|recall| recall.at <= end);
        let recalled: u64 = recalls.map(|recall| u64::from(recall.tokens)).sum();
        self.prefix = prefix;
        tokens + u64::from(root) + recalled
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

/// Reads a pointer as a caller wrote it.
///
/// # Errors
/// `page_not_found` for a text that is no pointer.
pub fn parse_pointer(text: &str) -> Result<Pointer> {
    Pointer::parse(text).ok_or_else(|| not_a_pointer(text.chars().count()))
}
