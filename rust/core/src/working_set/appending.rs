//! Messages that are appended: checked, counted, folded.

use super::{Prefix, WorkingSet};
use crate::compaction::may_need_compaction;
use crate::error::Result;
use crate::message::Message;
use crate::need::Search;
use crate::node::Text;
use crate::salience::passages::Passages;

impl<T: Text> WorkingSet<T> {
    /// Appends messages; all of them or, on an error, none.
    ///
    /// # Errors
    /// `orphan_result`, `duplicate_result` with the raw index; `counter_failed`.
    pub fn append(&mut self, mut messages: Vec<Message<T>>) -> Result<()> {
        self.transcript.check(&messages)?;
        let overheads = self.count(&mut messages)?;
        self.take_in(messages, overheads)
    }

    /// Appends messages whose parts are counted, with what each takes beside its parts; on an error
    /// the state is unusable.
    ///
    /// # Errors
    /// As [`WorkingSet::append`].
    pub(crate) fn append_counted(
        &mut self,
        messages: Vec<Message<T>>,
        overheads: Vec<u32>,
    ) -> Result<()> {
        self.transcript.check_sizes(&messages, &overheads)?;
        self.take_in(messages, overheads)
    }

    /// Whether levels may fall while so many tokens of messages are appended: most of what an
    /// append costs that falls on one of the rare boundaries where they do (ten milliseconds beside
    /// twenty microseconds). A forecast: the tokens are a guess, and a preset's own reasons beside
    /// the tokens count as they are now.
    pub fn may_compact_within(&self, tokens: u64) -> bool {
        may_need_compaction(&self.plan, &self.transcript, &self.settings, tokens)
    }

    fn take_in(&mut self, messages: Vec<Message<T>>, overheads: Vec<u32>) -> Result<()> {
        // From here on only a foreign counter can fail, at the texts that a compaction makes.
        let foreign = self.settings.counter.foreign_source().is_some();
        let undo = foreign.then(|| {
            let plan = self.plan.snapshot();
            (
                plan,
                self.transcript.mark(),
                (self.boundary, self.changed_at),
                self.waiting.clone(),
            )
        });
        for (message, overhead) in messages.into_iter().zip(overheads) {
            let Err(error) = self.fold(message, overhead) else {
                continue;
            };
            if let Some((plan, mark, boundary, waiting)) = undo {
                self.plan.restore(plan);
                self.transcript.go_back(mark);
                // It may have read what was taken back; it reads again what is needed.
                self.search = Search::default();
                self.passages = Passages::default();
                self.quiet = None;
                self.prefix = Prefix::default();
                (self.boundary, self.changed_at) = boundary;
                self.waiting = waiting;
                self.checkpoints.forget();
            }
            return Err(error);
        }
        Ok(())
    }
}
