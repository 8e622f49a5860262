//! A checkpoint: what a log had come to at its newest compaction, so that it need not be folded again.
//!
//! Between compactions a fold is cheap; a compaction costs milliseconds. With a checkpoint the log up
//! to it is only read, and the fold goes on from there: to the same windows, also where a later
//! planner would have chosen otherwise. Every count in it is made again, and one that does not fit
//! the log is not used. It holds the shortened parts and notes of the window, nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::WorkingSet;
use super::recall::around;
use crate::error::Result;
use crate::event::{Event, EventKind, Summary};
use crate::level::{Level, Reason};
use crate::message::Message;
use crate::node::Text;
use crate::page::Pointer;
use crate::placeholder::placeholder_tokens;
use crate::plan::{Fate, Plan, Recall, Root, Shown};
use crate::policy::Strategy;
use crate::render::recall_place;
use crate::salience::index::LineAt;
use crate::shrink::{PartEdit, Span, edited_tokens, with_text};
use crate::strategy::price::{Cause, Rewrite};

/// Version of the written form; another one is not read.
const FORMAT: u32 = 1;

/// Messages between two checkpoints of a policy whose windows move on with every call: its rules are
/// plain, and what is behind the checkpoint is folded again soon enough.
const SPACING: usize = 32;

/// Beyond any number of changes or tokens; far from where sums overflow.
const MOST: u64 = 1 << 60;

/// The fold right after a compaction.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    plan: Plan,
    /// Raw messages and events before it.
    messages: usize,
    events: usize,
    boundary: u32,
    changed_at: Option<u32>,
}

/// A working set that is on its way to a checkpoint.
#[derive(Debug)]
pub(super) struct Resuming {
    written: Written,
    summary: Option<Arc<Summary>>,
    /// Whether the log is not the checkpoint's.
    has_failed: bool,
}

/// How far checkpoints are kept, and used.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    /// Whether the newest one is kept.
    is_on: bool,
    /// Events that were folded.
    pub(super) events: usize,
    /// Whether messages were counted by different counters: then counts cannot be made again.
    pub(super) is_recounted: bool,
    newest: Option<Box<Checkpoint>>,
    resuming: Option<Box<Resuming>>,
    /// Raw messages before the checkpoint from which the fold went on.
    resumed: Option<usize>,
}

impl Checkpoints {
    /// Forgets the newest one, whose compaction was undone.
    pub(super) fn forget(&mut self) {
        self.newest = None;
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Written {
    format: u32,
    messages: usize,
    events: usize,
    boundary: u32,
    changed_at: Option<u32>,
    /// Steps in a row that came to the same: how many, level, reason, compaction.
    fates: Vec<(u32, u8, u8, u32)>,
    shown: Vec<WrittenStep>,
    recalls: Vec<WrittenRecall>,
    root: Option<String>,
    /// What the newest summary stands for, together with those before it.
    covers: Option<(usize, usize)>,
    pins: Vec<u32>,
    rewrites: Vec<(u32, u8, u64, u64, u64, u64, u32)>,
    history_tokens: u64,
    compactions: u32,
    calls: u32,
    is_cold: bool,
    tried: u64,
    // Numbers with a fraction as their bits: they come back as they were.
    density: u64,
    judged: (u32, bool),
    worth: (u64, u64),
    revision: u64,
    changed_from: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct WrittenStep {
    step: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    closed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    edits: Vec<WrittenEdit>,
}

/// Part, text, pointer, kept bytes.
type WrittenEdit = (u32, String, String, Vec<(u32, u32)>);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct WrittenRecall {
    at: u32,
    text: String,
    restores: Option<u32>,
    lines: Vec<(u32, u32, u32)>,
}

impl Checkpoint {
    /// The compaction after which it was made, from 1.
    pub fn compactions(&self) -> u32 {
        self.plan.compactions
    }

    /// JSON, as [`WorkingSet::resume_from`] reads it.
    pub fn to_json(&self) -> String {
        let plan = &self.plan;
        let mut fates: Vec<(u32, u8, u8, u32)> = Vec::new();
        for same in plan.fates.chunk_by(|one, two| one == two) {
            if let Some(fate) = same.first() {
                let count = same.len() as u32;
                fates.push((count, fate.level as u8, fate.reason as u8, fate.compaction));
            }
        }
        let written = Written {
            format: FORMAT,
            messages: self.messages,
            events: self.events,
            boundary: self.boundary,
            changed_at: self.changed_at,
            fates,
            shown: plan.shown.iter().map(written_step).collect(),
            recalls: plan.recalls.iter().map(written_recall).collect(),
            root: plan.root.as_ref().map(|root| root.text.to_string()),
            covers: plan.summary.as_ref().map(|summary| summary.covers),
            pins: plan.pins.iter().copied().collect(),
            rewrites: plan.rewrites.iter().map(written_rewrite).collect(),
            history_tokens: plan.history_tokens,
            compactions: plan.compactions,
            calls: plan.calls,
            is_cold: plan.is_cold,
            tried: plan.tried,
            density: plan.density.to_bits(),
            judged: plan.judged,
            worth: (plan.worth.0.to_bits(), plan.worth.1.to_bits()),
            revision: plan.revision,
            changed_from: plan.changed_from,
        };
        serde_json::to_string(&written).unwrap_or_default()
    }
}

fn written_step(shown: &Shown) -> WrittenStep {
    let edits = shown.edits.iter().map(|edit| {
        let kept = edit.kept.iter().map(|span| (span.start, span.end));
        let pointer = edit.pointer.to_string();
        (edit.part, edit.text.to_string(), pointer, kept.collect())
    });
    WrittenStep {
        step: shown.step,
        closed: shown.closed,
        edits: edits.collect(),
    }
}

fn written_recall(recall: &Recall) -> WrittenRecall {
    let lines = recall.lines.iter();
    WrittenRecall {
        at: recall.at,
        text: recall.text.to_string(),
        restores: recall.restores,
        lines: lines
            .map(|line| (line.part, line.start, line.end))
            .collect(),
    }
}

fn written_rewrite(one: &Rewrite) -> (u32, u8, u64, u64, u64, u64, u32) {
    (
        one.at,
        one.cause as u8,
        one.removed,
        one.rewritten,
        one.lost_reasoning,
        one.break_even.to_bits(),
        one.expected,
    )
}

impl<T: Text> WorkingSet<T> {
    /// Keeps the newest checkpoint from now on.
    pub fn keep_checkpoints(&mut self) {
        self.checkpoints.is_on = true;
    }

    /// The newest checkpoint: of the newest compaction, or of one shortly before it. `None` before the
    /// first one, if none are kept, and where counts could not be made again.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.checkpoints.newest.as_deref()
    }

    /// Goes on from a checkpoint once [`WorkingSet::replay`] comes to it, instead of folding what is
    /// before. To be called before any message. A text that is no checkpoint is not used.
    pub fn resume_from(&mut self, json: &str) {
        let written: Option<Written> = serde_json::from_str(json).ok();
        let written = written.filter(|written| written.format == FORMAT && written.compactions > 0);
        self.checkpoints.resuming = written.map(|written| {
            Box::new(Resuming {
                written,
                summary: None,
                has_failed: false,
            })
        });
    }

    /// Raw messages before the checkpoint from which the fold went on. A working set that was to
    /// [`resume_from`](WorkingSet::resume_from) one and did not is of no use.
    pub fn resumed(&self) -> Option<usize> {
        self.checkpoints.resumed
    }

    /// Whether the fold is still before the checkpoint from which it is to go on, or did not get
    /// there.
    pub fn is_resuming(&self) -> bool {
        self.checkpoints.resuming.is_some()
    }

    /// Notes what the log has come to, after a compaction.
    pub(super) fn note_checkpoint(&mut self) {
        let kept = &mut self.checkpoints;
        let can_be = self.opening == 0 && self.waiting.is_empty() && !kept.is_recounted;
        let is_due = self.settings.policy.strategy == Strategy::Adaptive
            || (kept.newest.as_ref())
                .is_none_or(|newest| self.transcript.len() >= newest.messages + SPACING);
        if kept.is_on && can_be && is_due && kept.resuming.is_none() {
            kept.newest = Some(Box::new(Checkpoint {
                plan: self.plan.clone(),
                messages: self.transcript.len(),
                events: kept.events,
                boundary: self.boundary,
                changed_at: self.changed_at,
            }));
        }
    }

    /// Takes in a message that stands before the checkpoint.
    pub(super) fn pass_message(&mut self, message: Message<T>, overhead: u32) -> Result<()> {
        self.transcript.push(message, overhead)?;
        self.try_resume();
        Ok(())
    }

    /// Takes in an event that stands before the checkpoint: its settings hold from here on.
    pub(super) fn pass_event(&mut self, event: &Event) -> Result<()> {
        let counter = self.settings.counter.name().to_owned();
        match &event.kind {
            EventKind::Settings(change) => self.change_settings(change)?,
            EventKind::Calibration(scale) => {
                scale.check()?;
                self.settings.calibration = Some(*scale);
            }
            EventKind::Summary(summary) => {
                if let Some(resuming) = &mut self.checkpoints.resuming {
                    resuming.summary = Some(Arc::new((**summary).clone()));
                }
            }
            _ => {}
        }
        self.checkpoints.events += 1;
        if self.settings.counter.name() != counter {
            self.checkpoints.is_recounted = true;
        }
        self.try_resume();
        Ok(())
    }

    /// Goes on from the checkpoint, if this is where it was made.
    fn try_resume(&mut self) {
        let Some(resuming) = &self.checkpoints.resuming else {
            return;
        };
        let written = &resuming.written;
        let (messages, events) = (self.transcript.len(), self.checkpoints.events);
        if resuming.has_failed || messages < written.messages || events < written.events {
            return;
        }
        let is_there = (messages, events) == (written.messages, written.events)
            && self.opening == 0
            && !self.checkpoints.is_recounted;
        let found = is_there
            .then(|| self.plan_of(written, resuming.summary.as_deref()))
            .flatten();
        let Some(plan) = found else {
            if let Some(resuming) = &mut self.checkpoints.resuming {
                resuming.has_failed = true;
            }
            return;
        };
        // No pending plan gets a number again that a folded one has.
        self.pending_plans = self.pending_plans.max(plan.revision >> 32);
        self.plan = plan;
        self.boundary = written.boundary;
        self.changed_at = written.changed_at;
        self.checkpoints.resuming = None;
        self.checkpoints.resumed = Some(messages);
        self.note_checkpoint();
    }

    /// The plan that was written, if it can be one of this log.
    fn plan_of(&self, written: &Written, summary: Option<&Summary>) -> Option<Plan> {
        let steps = self.transcript.steps();
        let end = self.transcript.len() as u32;
        let changes = u64::from(end) + self.checkpoints.events as u64;
        let is_possible = written.boundary <= end
            && written.changed_at.is_none_or(|at| at <= end)
            && written.judged.0 <= end
            && written.calls <= end
            && u64::from(written.compactions) <= changes
            && written.revision.max(written.tried) < MOST;
        if !is_possible {
            return None;
        }
        let fates = fates_of(written, steps.len())?;
        let shown: Vec<Shown> = (written.shown.iter())
            .map(|step| self.shown_of(step, &fates))
            .collect::<Option<_>>()?;
        let is_sorted = shown.is_sorted_by(|one, two| one.step < two.step);
        let gone = fates.iter().zip(steps);
        let gone = gone.filter(|(fate, _)| fate.level == Level::Gone);
        let (gone_steps, gone_tokens) = gone.fold((0, 0), |(count, tokens), (_, step)| {
            (count + 1, tokens + u64::from(step.tokens))
        });
        if !is_sorted || shown.len() + gone_steps as usize != fates.len() {
            return None;
        }
        let pins: BTreeSet<u32> = written.pins.iter().copied().collect();
        if pins
            .last()
            .is_some_and(|step| *step as usize >= steps.len())
        {
            return None;
        }
        let mut plan = Plan {
            shown: Arc::new(shown),
            fates: Arc::new(fates),
            recalls: (written.recalls.iter())
                .map(|recall| self.recall_of(recall))
                .collect::<Option<_>>()?,
            root: written.root.as_ref().map(|text| Root {
                text: text.as_str().into(),
                tokens: 0,
            }),
            summary: match written.covers {
                None => None,
                Some((first, end)) => {
                    let inside = first <= end && end <= self.transcript.len();
                    let summary = summary.filter(|_| inside)?.clone();
                    Some(Arc::new(Summary {
                        covers: (first, end),
                        ..summary
                    }))
                }
            },
            pins,
            gone_steps,
            gone_tokens,
            compactions: written.compactions,
            rewrites: (written.rewrites.iter())
                .map(rewrite_of)
                .collect::<Option<_>>()?,
            calls: written.calls,
            is_cold: written.is_cold,
            tried: written.tried,
            density: f64::from_bits(written.density),
            judged: written.judged,
            worth: (
                f64::from_bits(written.worth.0),
                f64::from_bits(written.worth.1),
            ),
            revision: written.revision,
            changed_from: written.changed_from,
            ..Plan::default()
        };
        self.count_notes(&mut plan).ok()?;
        plan.sum();
        (plan.history_tokens == written.history_tokens).then_some(plan)
    }

    fn shown_of(&self, written: &WrittenStep, fates: &[Fate]) -> Option<Shown> {
        let bounds = *self.transcript.steps().get(written.step as usize)?;
        let level = fates.get(written.step as usize)?.level;
        let (first, last) = (bounds.first as usize, bounds.end.checked_sub(1)? as usize);
        let parts = self.transcript.part_range(first).start..self.transcript.part_range(last).end;
        let mut tokens = i64::from(bounds.tokens);
        let mut edits = Vec::with_capacity(written.edits.len());
        for (part, text, pointer, kept) in &written.edits {
            if !parts.contains(&(*part as usize)) {
                return None;
            }
            let original = self.transcript.all_parts().get(*part as usize)?;
            let kept: Vec<Span> = kept
                .iter()
                .map(|(from, to)| Span::new(*from, *to))
                .collect();
            let are_inside = with_text(&original.body, |text| {
                let inside =
                    |span: &Span| text.get(span.start as usize..span.end as usize).is_some();
                kept.iter().all(inside) && kept.is_sorted_by(|one, two| one.end <= two.start)
            });
            if !are_inside {
                return None;
            }
            let edited = edited_tokens(original, text, &self.settings.counter).ok()?;
            tokens += i64::from(edited) - i64::from(original.tokens);
            edits.push(PartEdit {
                part: *part,
                text: text.as_str().into(),
                tokens: edited,
                pointer: Pointer::parse(pointer)?,
                kept: kept.into(),
            });
        }
        let is_sorted = edits.is_sorted_by(|one, two| one.part < two.part);
        let is_whole = edits.is_empty();
        if !is_sorted || level == Level::Gone || is_whole != (level == Level::Verbatim) {
            return None;
        }
        let placeholder_tokens = if written.closed {
            placeholder_tokens(&self.settings, &self.transcript, written.step)
        } else {
            0
        };
        Some(Shown {
            step: written.step,
            level,
            tokens: u32::try_from(tokens + i64::from(placeholder_tokens)).ok()?,
            edits: edits.into(),
            closed: written.closed,
            placeholder_tokens,
        })
    }

    fn recall_of(&self, written: &WrittenRecall) -> Option<Recall> {
        let lines = written.lines.iter().map(|&(part, start, end)| {
            let body = &self.transcript.all_parts().get(part as usize)?.body;
            let is_inside = with_text(body, |text| {
                text.get(start as usize..end as usize).is_some()
            });
            is_inside.then_some(LineAt { part, start, end })
        });
        let lines: Arc<[LineAt]> = lines.collect::<Option<_>>()?;
        let steps = self.transcript.steps().len();
        let is_known = written.restores.is_none_or(|step| (step as usize) < steps);
        if written.at as usize > self.transcript.len() || !is_known {
            return None;
        }
        let place = recall_place(&self.transcript, self.settings.dialect, written.at as usize);
        let tokens = self.settings.counter.count(&written.text).ok()?;
        Some(Recall {
            at: written.at,
            text: written.text.as_str().into(),
            tokens: tokens.saturating_add(around(place, &self.settings)),
            restores: written.restores,
            lines,
        })
    }
}

fn fates_of(written: &Written, steps: usize) -> Option<Vec<Fate>> {
    let mut fates = Vec::with_capacity(steps);
    for &(count, level, reason, compaction) in &written.fates {
        let fate = Fate {
            level: level_of(level)?,
            reason: *Reason::ALL.get(usize::from(reason))?,
            compaction,
        };
        if count as usize > steps - fates.len() {
            return None;
        }
        fates.resize(fates.len() + count as usize, fate);
    }
    (fates.len() == steps).then_some(fates)
}

fn level_of(number: u8) -> Option<Level> {
    [Level::Gone, Level::Stub, Level::Trimmed, Level::Verbatim]
        .into_iter()
        .find(|level| *level as u8 == number)
}

fn rewrite_of(written: &(u32, u8, u64, u64, u64, u64, u32)) -> Option<Rewrite> {
    let &(at, cause, removed, rewritten, lost_reasoning, break_even, expected) = written;
    let cause = [Cause::Forced, Cause::Preset, Cause::Priced, Cause::Cold]
        .into_iter()
        .find(|one| *one as u8 == cause)?;
    Some(Rewrite {
        at,
        cause,
        removed,
        rewritten,
        lost_reasoning,
        break_even: f64::from_bits(break_even),
        expected,
    })
}
