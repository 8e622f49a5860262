//! Windows of the policies that people use today. Each only ever takes away from what it showed.

use std::sync::Arc;

use super::contender::{Baseline, TARGET, TRIGGER};
use super::recording::Recording;
use super::texts::to_serde;
use super::unit::{Unit, key_of};
use super::window::Proposal;
use crate::dialect::form::replacement;
use crate::dialect::read_message;
use crate::error::Result;
use crate::level::Level;
use crate::message::{Message, PartKind, Role};
use crate::readers::json::JsonText;
use crate::render::{Change, apply_to_json};
use crate::tokens::chat::{ChatRules, count_message_parts, message_overhead};

/// What stands for a result that was masked or cleared.
pub const CLEARED: &str = "[an older result was left out]";

/// Results that observation masking keeps.
const MASKING_KEEPS: usize = 10;

/// Results that clearing keeps, as Anthropic's context editing does by default.
const CLEARING_KEEPS: usize = 3;

/// One of the baselines over one recording.
#[derive(Debug)]
pub(super) struct Windows<'a> {
    recording: &'a Recording,
    baseline: Baseline,
    seed: u64,
    shown: Vec<Unit>,
    /// Tokens of the request with all of `shown`.
    tokens: u64,
    /// Messages that came in.
    taken: usize,
    /// Messages with results, in order, and how many of them were replaced.
    results: Vec<u32>,
    cleared: usize,
    compactions: u32,
    /// Messages of the head, once it is closed.
    head: Option<usize>,
}

impl<'a> Windows<'a> {
    pub(super) fn new(recording: &'a Recording, baseline: Baseline, seed: u64) -> Self {
        Self {
            recording,
            baseline,
            seed,
            shown: Vec::new(),
            tokens: recording.base_tokens(),
            taken: 0,
            results: Vec::new(),
            cleared: 0,
            compactions: 0,
            head: None,
        }
    }

    pub(super) fn compactions(&self) -> Option<u32> {
        match self.baseline {
            Baseline::KeepLast | Baseline::Random | Baseline::ClearToolUses => {
                Some(self.compactions)
            }
            _ => None,
        }
    }

    pub(super) fn window(&mut self, at: usize) -> Result<Proposal> {
        let before = self.shown.len();
        for row in &self.recording.rows[self.taken..at] {
            self.tokens += u64::from(row.unit.tokens);
            self.shown.push(row.unit.clone());
            if row.is_result {
                self.results.push(row.unit.message);
            }
        }
        self.taken = at;
        let was = self.compactions;
        let is_changed = self.make_room()?;
        let keep = if is_changed { 0 } else { before };
        Ok(Proposal {
            keep,
            tail: self.shown[keep..].to_vec(),
            tokens: None,
            is_compacted: self.compactions > was,
        })
    }

    /// Takes away what the policy wants away; whether that was anything.
    fn make_room(&mut self) -> Result<bool> {
        let budget = self.recording.budget;
        Ok(match self.baseline {
            Baseline::Full | Baseline::Oracle | Baseline::OracleLines => false,
            Baseline::LangchainTrim => self.trim(),
            Baseline::ObservationMasking => {
                let masked = self.clear_results(MASKING_KEEPS)?;
                self.drop_oldest(budget) || masked
            }
            Baseline::HeadTail => self.keep_ends(),
            Baseline::KeepLast => {
                self.is_full() && {
                    self.compactions += 1;
                    self.drop_oldest(self.share(TARGET))
                }
            }
            Baseline::Random => {
                self.is_full() && {
                    self.compactions += 1;
                    self.drop_by_lot()
                }
            }
            Baseline::ClearToolUses => {
                self.is_full() && {
                    self.compactions += 1;
                    let cleared = self.clear_results(CLEARING_KEEPS)?;
                    (self.is_full() && self.drop_oldest(self.share(TARGET))) || cleared
                }
            }
        })
    }

    fn is_full(&self) -> bool {
        self.recording.upper(self.tokens) > self.share(TRIGGER)
    }

    /// The pinned part and this share of what is free beside it.
    fn share(&self, share: f64) -> u64 {
        share_of(self.recording, share)
    }

    fn step_of(&self, unit: &Unit) -> u32 {
        self.recording.rows[unit.message as usize].step
    }

    /// Drops whole steps, oldest first and never pinned ones or the newest, down to `limit`.
    fn drop_oldest(&mut self, limit: u64) -> bool {
        let steps = self.open_steps();
        self.drop_steps(steps, limit)
    }

    fn drop_by_lot(&mut self) -> bool {
        let mut steps = self.open_steps();
        steps.sort_by_cached_key(|step| {
            let lot = [self.seed, u64::from(self.compactions), u64::from(*step)];
            key_of(&lot.map(u64::to_le_bytes).concat())
        });
        self.drop_steps(steps, self.share(TARGET))
    }

    /// The steps that may go, oldest first.
    fn open_steps(&self) -> Vec<u32> {
        let newest = self.shown.last().map(|unit| self.step_of(unit));
        let open = self.shown.iter();
        let open = open.filter(|unit| !self.recording.rows[unit.message as usize].is_pinned);
        let mut steps: Vec<u32> = open.map(|unit| self.step_of(unit)).collect();
        steps.dedup();
        steps.retain(|step| Some(*step) != newest);
        steps
    }

    fn drop_steps(&mut self, steps: Vec<u32>, limit: u64) -> bool {
        if self.recording.upper(self.tokens) <= limit {
            return false;
        }
        let mut sizes = vec![0_u64; self.recording.steps.len()];
        for unit in &self.shown {
            if !self.recording.rows[unit.message as usize].is_pinned {
                sizes[self.step_of(unit) as usize] += u64::from(unit.tokens);
            }
        }
        let mut doomed = vec![false; self.recording.steps.len()];
        for step in steps {
            if self.recording.upper(self.tokens) <= limit {
                break;
            }
            doomed[step as usize] = true;
            self.tokens -= sizes[step as usize];
        }
        let recording = self.recording;
        let before = self.shown.len();
        self.shown.retain(|unit| {
            let row = &recording.rows[unit.message as usize];
            row.is_pinned || !doomed[row.step as usize]
        });
        self.shown.len() < before
    }

    /// Leading instructions, and the newest messages that fit, not beginning with a result.
    fn trim(&mut self) -> bool {
        let budget = self.recording.budget;
        let is_kept = |unit: &Unit| {
            let row = &self.recording.rows[unit.message as usize];
            row.is_pinned && row.role.is_instruction()
        };
        let first = self.shown.iter().take_while(|unit| is_kept(unit)).count();
        let mut end = first;
        while end < self.shown.len() && self.recording.upper(self.tokens) > budget {
            self.tokens -= u64::from(self.shown[end].tokens);
            end += 1;
        }
        if end == first {
            return false;
        }
        let is_orphan = |unit: &Unit| {
            self.recording.rows[unit.message as usize].role == Role::Tool
                || (self.recording.rows[unit.message as usize].is_result
                    && self.recording.dialect.results_are_blocks())
        };
        while end < self.shown.len() && is_orphan(&self.shown[end]) {
            self.tokens -= u64::from(self.shown[end].tokens);
            end += 1;
        }
        self.shown.drain(first..end);
        true
    }

    /// The head is closed when the budget is first full; then what follows it goes, oldest first.
    fn keep_ends(&mut self) -> bool {
        if self.recording.upper(self.tokens) <= self.recording.budget {
            return false;
        }
        let head = self.head.unwrap_or_else(|| self.first_half());
        self.head = Some(head);
        let recording = self.recording;
        let budget = recording.budget;
        let (mut at, mut tokens) = (0, self.tokens);
        let newest = self.shown.len() - 1;
        let before = self.shown.len();
        self.shown.retain(|unit| {
            let is_open = at >= head && at < newest;
            at += 1;
            let goes = is_open
                && recording.upper(tokens) > budget
                && !recording.rows[unit.message as usize].is_pinned;
            if goes {
                tokens -= u64::from(unit.tokens);
            }
            !goes
        });
        self.tokens = tokens;
        self.shorten_head();
        self.shown.len() < before
    }

    /// Where even the newest message does not fit beside the head, the head's end goes.
    fn shorten_head(&mut self) {
        let recording = self.recording;
        let mut at = self.shown.len().saturating_sub(1);
        while at > 0 && recording.upper(self.tokens) > recording.budget {
            at -= 1;
            if !recording.rows[self.shown[at].message as usize].is_pinned {
                self.tokens -= u64::from(self.shown[at].tokens);
                self.shown.remove(at);
            }
        }
        self.head = self.head.map(|head| head.min(self.shown.len()));
    }

    /// How many messages at the front take up to half of the free budget.
    fn first_half(&self) -> usize {
        let limit = self.share(0.5);
        let mut tokens = self.recording.pinned_tokens;
        let fits = self.shown.iter().take_while(|unit| {
            if !self.recording.rows[unit.message as usize].is_pinned {
                tokens += u64::from(unit.tokens);
            }
            self.recording.upper(tokens) <= limit
        });
        fits.count()
    }

    /// Replaces every result but those of the newest `keep` messages with results.
    fn clear_results(&mut self, keep: usize) -> Result<bool> {
        let until = self.results.len().saturating_sub(keep);
        if until <= self.cleared {
            return Ok(false);
        }
        let old = self.results[self.cleared..until].to_vec();
        self.cleared = until;
        let mut is_changed = false;
        for message in old {
            let place = self
                .shown
                .binary_search_by_key(&message, |unit| unit.message);
            let Ok(place) = place else { continue };
            let unit = self.cleared_unit(message as usize)?;
            if unit.tokens < self.shown[place].tokens {
                self.tokens -= u64::from(self.shown[place].tokens - unit.tokens);
                self.shown[place] = unit;
                is_changed = true;
            }
        }
        Ok(is_changed)
    }

    fn cleared_unit(&self, at: usize) -> Result<Unit> {
        let recording = self.recording;
        let dialect = recording.dialect;
        let message: Message<JsonText> = recording.read(at)?;
        let form = dialect.text_form(message.role);
        let is_output =
            |kind| kind == PartKind::Result || (kind == PartKind::Text && !message.has_results());
        let outputs = message.parts.iter().filter(|part| is_output(part.kind));
        let changes: Vec<Change> = outputs
            .filter(|part| part.place.is_replaceable())
            .map(
                |part| match replacement(part.place, part.is_error, CLEARED, form) {
                    Some(value) => Change::SetJson(part.place, value),
                    None => Change::SetText(part.place, CLEARED.into()),
                },
            )
            .collect();
        let json = apply_to_json(&to_serde(&recording.messages[at]), &changes);
        let mut read = [read_message(dialect, &&json, at)?];
        count_message_parts(&mut read, &recording.counter)?;
        let [read] = read;
        let rules = ChatRules::for_counter(dialect, &recording.counter);
        let parts = read.parts.iter().map(|part| part.tokens);
        let tokens = parts.sum::<u32>() + message_overhead(&read, &rules, &recording.counter)?;
        Ok(Unit {
            key: key_of(json.to_string().as_bytes()),
            tokens,
            message: at as u32,
            level: Level::Stub,
            content: Arc::new(recording.look(&read, at as u32)),
        })
    }
}

/// The pinned part and a share of what is free beside it, in tokens of the budget.
pub(super) fn share_of(recording: &Recording, share: f64) -> u64 {
    let pinned = recording.upper(recording.pinned_tokens);
    let free = recording.budget.saturating_sub(pinned);
    pinned + (free as f64 * share) as u64
}
