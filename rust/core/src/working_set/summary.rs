//! Summaries: a text that stands for a range of steps.
//!
//! The text is somebody else's. What it stands for leaves the window and stays behind its pointers,
//! and what must stay exact is quoted beside it, checked against the log. Hard and pinned steps stay
//! where they are, and so do calls that nobody answered.

use std::ops::Range;
use std::sync::Arc;

use super::WorkingSet;
use crate::compaction::settle_opener;
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Receipt, Summary};
use crate::level::{Level, Reason};
use crate::node::Text;
use crate::plan::{Recall, hard_reason, is_protected};
use crate::root::root_of;

impl<T: Text> WorkingSet<T> {
    /// Raw messages that a summary may cover if the newest `keep` stay as they are: from the last
    /// summary on, whole steps, and never the newest user message or what follows it. `None` if
    /// there are none.
    pub fn summary_range(&self, keep: usize) -> Option<Range<usize>> {
        let steps = self.transcript.steps();
        let start = match self.plan.summary() {
            Some(summary) if summary.covers.1 > 0 => summary.covers.1,
            _ => self
                .transcript
                .goal()
                .map_or(self.transcript.instructions_end(), |goal| goal + 1),
        };
        let newest_user = self.transcript.newest_user().unwrap_or(usize::MAX);
        let newest = steps.last().map_or(0, |step| step.first as usize);
        let limit = self.transcript.len().saturating_sub(keep);
        // A run of one user message: what follows it is all there is, so it does not hold it back.
        let limit = if self.transcript.goal() == Some(newest_user) {
            limit.min(newest)
        } else {
            limit.min(newest).min(newest_user)
        };
        let covered = steps.partition_point(|step| step.end as usize <= limit);
        let end = steps[..covered].last().map_or(0, |step| step.end as usize);
        (start < end).then_some(start..end)
    }

    /// Folds a summary: the steps that it covers go, and its text comes into the root note.
    pub(super) fn summarize(&mut self, summary: &Summary) -> Result<()> {
        let covered = self.covered(summary)?;
        for receipt in &summary.receipts {
            self.check_receipt(receipt, summary)?;
        }
        let mut summary = summary.clone();
        if let Some(before) = self.plan.summary() {
            // It goes on from the one before, and stands for all that did.
            summary.covers.0 = summary.covers.0.min(before.covers.0);
        }
        let undo = self.plan.snapshot();
        self.plan.compactions += 1;
        self.plan.summary = Some(Arc::new(summary));
        self.remove(&covered);
        let settled = root_of(&self.plan, &self.transcript, &self.settings).and_then(|root| {
            self.plan.root = root;
            settle_opener(&mut self.plan, &self.transcript, &self.settings)
        });
        if let Err(error) = settled {
            self.plan.restore(undo);
            return Err(error);
        }
        self.plan.sum();
        // The note stands with the goal: everything behind it is written anew.
        self.plan.touch(0);
        self.changed_at = Some(self.transcript.len() as u32);
        Ok(())
    }

    /// The steps that a summary covers.
    fn covered(&self, summary: &Summary) -> Result<Range<u32>> {
        let (first, end) = summary.covers;
        let invalid = |message: String| Err(Error::new(ErrorKind::InvalidEvent, message));
        if first > end || end > self.transcript.len() {
            return invalid(format!(
                "a summary cannot cover messages {first} to {end} of {}",
                self.transcript.len()
            ));
        }
        let steps = self.transcript.steps();
        let at = |message: usize| steps.partition_point(|step| (step.first as usize) < message);
        let (from, to) = (at(first), at(end));
        let begins = |step: usize, message: usize| {
            message == self.transcript.len()
                || steps
                    .get(step)
                    .is_some_and(|step| step.first as usize == message)
        };
        if !begins(from, first) || !begins(to, end) {
            return invalid(format!(
                "a summary covers whole steps: messages {first} to {end} divide one"
            ));
        }
        let open = self.transcript.pairing().open_calls();
        if first < end && to == steps.len() && open > 0 {
            return invalid("the newest step waits for results, a summary cannot cover it".into());
        }
        Ok(from as u32..to as u32)
    }

    /// Refuses a quotation that its message does not hold.
    fn check_receipt(&self, receipt: &Receipt, summary: &Summary) -> Result<()> {
        let Some(message) = receipt.message else {
            return Ok(());
        };
        let is_inside = message < summary.covers.1 && message < self.transcript.len();
        let is_there = is_inside
            && self
                .transcript
                .part_range(message)
                .any(|part| self.part_text(part).contains(receipt.text.as_str()));
        if is_there {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidEvent,
            format!("a receipt is not what message {message} says"),
        ))
    }

    /// Takes the soft steps of a range out of the window.
    fn remove(&mut self, covered: &Range<u32>) {
        let (transcript, pins) = (&self.transcript, &self.plan.pins);
        let goes = |step: u32| {
            let bounds = transcript.steps()[step as usize];
            covered.contains(&step)
                && hard_reason(transcript, pins, step).is_none()
                && bounds.open_calls == 0
                && !(bounds.first as usize..bounds.end as usize)
                    .any(|message| is_protected(transcript, message))
        };
        let gone: Vec<u32> = self
            .plan
            .shown
            .iter()
            .map(|shown| shown.step)
            .filter(|&step| goes(step))
            .collect();
        Arc::make_mut(&mut self.plan.shown)
            .retain(|shown| gone.binary_search(&shown.step).is_err());
        for &step in &gone {
            self.plan.gone_steps += 1;
            self.plan.gone_tokens += u64::from(self.transcript.steps()[step as usize].tokens);
            self.plan.decide(step, Level::Gone, Reason::Summarized);
        }
        // What was recalled behind a step that is gone now has no place; a pin's comes to the end.
        let rows = self.transcript.rows();
        let stands = |recall: &Recall| {
            let before = (recall.at as usize).checked_sub(1);
            before
                .and_then(|message| rows.get(message))
                .is_none_or(|row| gone.binary_search(&row.step).is_err())
        };
        let (kept, lost): (Vec<Recall>, Vec<Recall>) = std::mem::take(&mut self.plan.recalls)
            .into_iter()
            .partition(stands);
        self.plan.recalls = kept;
        let moved = lost.into_iter().filter(|recall| recall.restores.is_some());
        let end = self.transcript.len() as u32;
        self.plan
            .recalls
            .extend(moved.map(|recall| Recall { at: end, ..recall }));
    }
}
