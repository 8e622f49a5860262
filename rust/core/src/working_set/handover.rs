//! What a log hands on when it goes on in another dialect.
//!
//! A change of dialect closes one working set and opens another: what is in the window then is
//! converted, and that is where the new one begins. What is gone stays gone, and its index stays
//! behind the same pointer. Costs time in proportion to the window.

use std::sync::Arc;

use super::WorkingSet;
use crate::error::{Error, ErrorKind, Result};
use crate::level::Level;
use crate::message::Role;
use crate::node::Text;
use crate::plan::{Plan, Root, Shown};
use crate::render::{Entry, entries};
use crate::root::root_overhead;

/// A step that is handed on, as the window shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    /// Raw index of its first message.
    pub first: u32,
    /// One past the raw index of its last message.
    pub end: u32,
    /// Role of its first message.
    pub role: Role,
    /// Whether it is one of the leading instructions.
    pub is_leading: bool,
    /// Whether it is pinned.
    pub is_pinned: bool,
    /// Its messages, in the old dialect.
    pub entries: Vec<Entry>,
}

/// What is not handed on, and the note that leads to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// How many steps are gone.
    pub steps: u32,
    /// Their tokens, by the counters of their time.
    pub tokens: u64,
    /// The note.
    pub note: Arc<str>,
}

impl<T: Text> WorkingSet<T> {
    /// The steps in the window as they were folded, pinned ones in full, and what is gone. Forgets
    /// the pending boundary.
    ///
    /// # Errors
    /// `open_calls` while calls wait for their results: those would come in another dialect.
    pub fn hand_on(&mut self) -> Result<(Vec<Carried>, Option<Gone>)> {
        let open = self.transcript.pairing().open_calls();
        if open > 0 {
            let message = format!("{open} calls wait for their results, the dialect cannot change");
            return Err(Error::new(ErrorKind::OpenCalls, message));
        }
        self.pending = None;
        let (mut gone_steps, mut gone_tokens) = (self.plan.gone_steps, self.plan.gone_tokens);
        let mut shown = self.plan.shown.to_vec();
        for &step in &self.plan.pins {
            let Some(bounds) = self.transcript.steps().get(step as usize) else {
                continue;
            };
            let verbatim = Shown {
                step,
                level: Level::Verbatim,
                tokens: bounds.tokens,
                edits: Arc::new([]),
                closed: bounds.open_calls > 0,
                placeholder_tokens: u32::from(bounds.open_calls > 0),
            };
            match shown.binary_search_by_key(&step, |shown| shown.step) {
                Ok(at) => shown[at] = verbatim,
                Err(at) => {
                    shown.insert(at, verbatim);
                    gone_steps = gone_steps.saturating_sub(1);
                    gone_tokens = gone_tokens.saturating_sub(u64::from(bounds.tokens));
                }
            }
        }
        // What a pin brought back stands in its own place again.
        let recalls = self.plan.recalls.iter();
        let recalls: Vec<_> = recalls
            .filter(|recall| recall.restores.is_none())
            .cloned()
            .collect();
        let steps = shown.into_iter().map(|shown| {
            let bounds = self.transcript.steps()[shown.step as usize];
            let is_pinned = self.plan.pins.contains(&shown.step);
            // They stand in the order of the log.
            let from = recalls.partition_point(|recall| recall.at <= bounds.first);
            let to = recalls.partition_point(|recall| recall.at <= bounds.end);
            let alone = Plan {
                recalls: recalls[from..to].to_vec(),
                shown: Arc::new(vec![shown]),
                ..Plan::default()
            };
            Carried {
                first: bounds.first,
                end: bounds.end,
                role: self.transcript.rows()[bounds.first as usize].role,
                is_leading: (bounds.first as usize) < self.transcript.instructions_end(),
                is_pinned,
                entries: entries(
                    &self.transcript,
                    &alone,
                    self.settings.dialect,
                    0..self.transcript.len(),
                ),
            }
        });
        let steps = steps.collect();
        let gone = self.plan.root.as_ref().filter(|_| gone_steps > 0);
        let gone = gone.map(|root| Gone {
            steps: gone_steps,
            tokens: gone_tokens,
            note: root.text.clone(),
        });
        Ok((steps, gone))
    }

    /// Begins where another working set was closed: with `messages` of it to come, between which
    /// no call was made in this dialect, and what was gone from it. To be called before any message.
    ///
    /// # Errors
    /// `counter_failed`, only from a foreign counter.
    pub fn take_over(&mut self, messages: usize, gone: Option<Gone>) -> Result<()> {
        self.opening = messages;
        // No cache knows these messages in this form.
        self.plan.is_cold = true;
        if let Some(gone) = gone {
            self.plan.gone_steps = gone.steps;
            self.plan.gone_tokens = gone.tokens;
            let tokens = self.settings.counter.count(&gone.note)?;
            self.plan.root = Some(Root {
                text: gone.note,
                tokens: tokens + root_overhead(&self.settings, &self.transcript),
            });
            self.plan.sum();
        }
        Ok(())
    }
}
