//! Windows of satchel's own policies: the same fold as in production, over parsed JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::recording::Recording;
use super::texts::to_serde;
use super::unit::{Content, NO_MESSAGE, Unit, key_of, pointers_in};
use super::window::Proposal;
use crate::dialect::read_message;
use crate::error::{ErrorKind, Result};
use crate::level::Level;
use crate::page::PageKey;
use crate::plan::Settings;
use crate::policy::Policy;
use crate::readers::json::JsonText;
use crate::render::{Entry, apply_to_json};
use crate::salience::rows::{LikelihoodRow, likelihood_rows};
use crate::strategy::price::Prices;
use crate::tokens::chat::{ChatRules, count_message_parts, message_overhead};
use crate::working_set::WorkingSet;

/// One policy over one recording.
#[derive(Debug)]
pub(super) struct Packed<'a> {
    recording: &'a Recording,
    set: WorkingSet<JsonText>,
    /// Messages that were appended.
    appended: usize,
    revision: u64,
    /// Raw messages before the newest boundary that was folded, and their units in the newest
    /// window; none before the first.
    rendered: Option<(usize, usize)>,
    /// Units that were rendered from edits, by what was edited.
    changed: BTreeMap<u128, Unit>,
    compactions: u32,
    stub_share: f64,
    /// Sums over the compactions of [`Plan::worth`](crate::plan::Plan::worth).
    worth: (f64, f64),
}

impl<'a> Packed<'a> {
    pub(super) fn new(recording: &'a Recording, policy: &Policy) -> Result<Self> {
        let settings = Settings {
            dialect: recording.dialect,
            counter: recording.counter.clone(),
            budget: recording.budget,
            policy: Arc::new(policy.clone()),
            system_tokens: recording.system_tokens,
            tools_tokens: recording.tools_tokens,
            request_tokens: recording.request_tokens,
            message_tokens: recording.message_tokens,
            calibration: None,
            key: PageKey::new(""),
            prices: Prices::default(),
        };
        Ok(Self {
            recording,
            set: WorkingSet::new(settings)?,
            appended: 0,
            revision: 0,
            rendered: None,
            changed: BTreeMap::new(),
            compactions: 0,
            stub_share: 0.0,
            worth: (0.0, 0.0),
        })
    }

    /// The window at the boundary before message `at`.
    pub(super) fn window(&mut self, at: usize) -> Result<Proposal> {
        let messages = (self.appended..at)
            .map(|index| self.recording.read(index))
            .collect::<Result<Vec<_>>>()?;
        self.set.append(messages)?;
        self.appended = at;
        let (tokens, settled) = match self.set.window(true) {
            Ok(figures) => (Some(figures.tokens), figures.settled),
            // What does not fit is counted as a call above budget.
            Err(error) if error.kind() == ErrorKind::OverBudget => (None, 0),
            Err(error) => return Err(error),
        };
        let plan = self.set.window_plan();
        let is_compacted = plan.compactions() > self.compactions;
        self.compactions = plan.compactions();
        let revision = plan.revision();
        let (from, keep) = self
            .rendered
            .filter(|_| revision == self.revision)
            .unwrap_or((0, 0));
        self.revision = revision;
        let settled = settled.max(from);
        let mut tail = Vec::new();
        for entry in self.set.entries_of(from..settled) {
            tail.push(self.unit(&entry, at as u32)?);
        }
        self.rendered = Some((settled, keep + tail.len()));
        for entry in self.set.entries(settled) {
            tail.push(self.unit(&entry, at as u32)?);
        }
        if is_compacted {
            let (worth, bound) = self.set.window_plan().worth();
            self.worth = (self.worth.0 + worth, self.worth.1 + bound);
            self.note_stubs(at);
        }
        Ok(Proposal {
            keep,
            tail,
            tokens,
            is_compacted,
        })
    }

    /// Whether a page that holds something of `message` can be reached from the pointers that the
    /// window shows.
    pub(super) fn reaches(
        &self,
        name: u32,
        newest_first: &[u32],
        shows: impl Fn(u64) -> bool,
    ) -> bool {
        let index = digits(&self.set.settings().key.index_pointer().to_string());
        let has_index = index.is_some_and(&shows);
        newest_first.iter().any(|&message| {
            let message = message as usize;
            let Some(row) = self.set.transcript().rows().get(message) else {
                return false;
            };
            if has_index && self.set.window_plan().find(row.step).is_none() {
                return true;
            }
            let range = self.set.transcript().part_range(message);
            range.into_iter().any(|part| {
                let pointer = digits(&self.set.pointer_of(part).to_string());
                pointer.is_some_and(&shows) && self.part_holds(part, name)
            })
        })
    }

    pub(super) fn compactions(&self) -> u32 {
        self.compactions
    }

    /// The largest share of the tokens so far that stubs took.
    pub(super) fn stub_share(&self) -> f64 {
        self.stub_share
    }

    /// What the compactions kept, and what no choice could exceed.
    pub(super) fn worth(&self) -> (f64, f64) {
        self.worth
    }

    /// Features and uses of the identifiers of the whole recording, see [`likelihood_rows`].
    pub(super) fn likelihood_rows(mut self, every: usize) -> Result<Vec<LikelihoodRow>> {
        let messages = (0..self.recording.len())
            .map(|index| self.recording.read(index))
            .collect::<Result<Vec<_>>>()?;
        self.set.append(messages)?;
        Ok(likelihood_rows(self.set.transcript(), every))
    }

    fn part_holds(&self, part: usize, name: u32) -> bool {
        let mut names = Vec::new();
        let part = &self.set.transcript().all_parts()[part];
        super::texts::read_part(part, &mut |text| {
            self.recording.look_at(text, NO_MESSAGE, &mut names);
        });
        names.iter().any(|&(held, _)| held == name)
    }

    fn note_stubs(&mut self, at: usize) {
        let shown = self.set.window_plan().shown().iter();
        let stubs = shown.filter(|shown| shown.level == Level::Stub);
        // What stands in place of their parts; what they keep as it was is no stub.
        let edits = stubs.flat_map(|shown| shown.edits.iter());
        let tokens: u64 = edits.map(|edit| u64::from(edit.tokens)).sum();
        let rows = self.recording.rows[..at].iter();
        let all: u64 = rows.map(|row| u64::from(row.unit.tokens)).sum();
        self.stub_share = self.stub_share.max(tokens as f64 / all.max(1) as f64);
    }

    fn unit(&mut self, entry: &Entry, before: u32) -> Result<Unit> {
        match entry {
            Entry::Original(index) => Ok(self.recording.rows[*index as usize].unit.clone()),
            Entry::Changed(index, changes) => {
                let edit = key_of(format!("{index} {changes:?}").as_bytes());
                let level = self.level(*index);
                if let Some(unit) = self.changed.get(&edit) {
                    let unit = unit.clone();
                    return Ok(Unit { level, ..unit });
                }
                let message = to_serde(&self.recording.messages[*index as usize]);
                let json = apply_to_json(&message, changes);
                let unit = self.made(&json, *index, level, before)?;
                self.changed.insert(edit, unit.clone());
                Ok(unit)
            }
            Entry::New(json) => self.made(json, NO_MESSAGE, Level::Verbatim, before),
            Entry::Joined(piece) => {
                // A further piece of the message before it has no framing of its own.
                let unit = self.unit(piece, before)?;
                Ok(Unit {
                    key: unit.key.wrapping_add(1),
                    tokens: unit.tokens.saturating_sub(self.recording.message_tokens),
                    ..unit
                })
            }
        }
    }

    fn level(&self, message: u32) -> Level {
        let rows = self.set.transcript().rows();
        let step = rows.get(message as usize).map(|row| row.step);
        let shown = step.and_then(|step| self.set.window_plan().find(step));
        shown.map_or(Level::Gone, |shown| shown.level)
    }

    fn made(
        &self,
        json: &serde_json::Value,
        index: u32,
        level: Level,
        before: u32,
    ) -> Result<Unit> {
        let counter = &self.recording.counter;
        let rules = ChatRules::for_counter(self.recording.dialect, counter);
        let at = if index == NO_MESSAGE {
            0
        } else {
            index as usize
        };
        let mut read = [read_message(self.recording.dialect, &json, at)?];
        count_message_parts(&mut read, counter)?;
        let [read] = read;
        let parts = read.parts.iter().map(|part| part.tokens);
        let tokens = parts.sum::<u32>() + message_overhead(&read, &rules, counter)?;
        let mut content = self.recording.look(&read, before);
        // Arguments are read without their keys, but a pointer may stand anywhere.
        let text = json.to_string();
        let mut pointers = Vec::new();
        pointers_in(&text, &mut pointers);
        content = Content {
            pointers: pointers.into(),
            ..content
        };
        Ok(Unit {
            key: key_of(text.as_bytes()),
            tokens,
            message: index,
            level,
            content: Arc::new(content),
        })
    }
}

/// The digits of a pointer as it is written.
fn digits(pointer: &str) -> Option<u64> {
    pointer.strip_prefix("p_")?.parse().ok()
}
