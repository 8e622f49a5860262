//! What happened to each step of a working set, and why. Only looks.

use crate::error::Result;
use crate::level::{Fidelity, Level, Reason};
use crate::message::Role;
use crate::node::Text;
use crate::plan::{fidelity, hard_reason, salience};
use crate::working_set::WorkingSet;

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
    /// How telling it looks by age, role and signals, 0..1; a description that decides nothing.
    pub salience: f32,
    /// Whether it may be approximated.
    pub fidelity: Fidelity,
    /// Why it has its level.
    pub reason: Reason,
    /// The compaction that decided it, from 1; 0 if none has.
    pub compaction: u32,
}

impl<T: Text> WorkingSet<T> {
    /// What happened to each step, in order.
    pub fn explain(&self) -> Vec<StepReport> {
        (0..self.transcript().steps().len() as u32)
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
        let bounds = self.transcript().steps()[step as usize];
        let fate = plan.fates()[step as usize];
        let hard = hard_reason(self.transcript(), plan.pins(), step)
            .filter(|_| fate.level == Level::Verbatim);
        StepReport {
            first: bounds.first,
            end: bounds.end,
            role: self.transcript().rows()[bounds.first as usize].role,
            level: fate.level,
            tokens: plan.find(step).map_or(0, |shown| shown.tokens),
            original_tokens: bounds.tokens,
            salience: salience(self.transcript(), &self.settings().policy, step) as f32,
            fidelity: fidelity(self.transcript(), step),
            reason: hard.unwrap_or(fate.reason),
            compaction: fate.compaction,
        }
    }
}
