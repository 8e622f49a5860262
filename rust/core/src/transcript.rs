//! The transcript: columns that only grow, one row per message and one per part.
//!
//! Each text is looked at once, when it is appended: its tokens and signals stay with the row, so
//! that a window needs sums, not texts. Memory beside the caller's own texts: about 40 bytes a
//! message and 80 a part.

use crate::dialect::form::Glue;
use crate::error::Result;
use crate::message::{Message, Part, PartKind, Role};
use crate::node::Text;
use crate::salience::signals::{Signals, signals_of};
use crate::step::{Attachment, Pairing, Step};
use crate::tokens::Counter;
use crate::tokens::chat::count_parts;

/// What is kept of one message beside its parts.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Who speaks.
    pub role: Role,
    /// Whether it is a user's message: role user with something else than results.
    pub is_user: bool,
    /// What its texts contain.
    pub signals: Signals,
    /// First of its parts in the parts column.
    pub first_part: u32,
    /// Tokens of the message, overhead included.
    pub tokens: u32,
    /// Tokens of the overhead alone.
    pub overhead: u32,
    /// The step it belongs to.
    pub step: u32,
}

/// An append-only, columnar history.
#[derive(Debug)]
pub struct Transcript<T> {
    rows: Vec<Row>,
    parts: Vec<Part<T>>,
    steps: Vec<Step>,
    pairing: Pairing,
    goal: Option<u32>,
    newest_user: Option<u32>,
    instructions_end: u32,
}

impl<T: Text> Transcript<T> {
    /// An empty transcript; `glue` as in [`Pairing::new`].
    pub fn new(glue: Glue) -> Self {
        Self {
            rows: Vec::new(),
            parts: Vec::new(),
            steps: Vec::new(),
            pairing: Pairing::new(glue),
            goal: None,
            newest_user: None,
            instructions_end: 0,
        }
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One row per message.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// One entry per step, in order; they tile the messages.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// All parts, in order.
    pub fn all_parts(&self) -> &[Part<T>] {
        &self.parts
    }

    /// Range of the parts of one message in [`Transcript::all_parts`].
    pub fn part_range(&self, message: usize) -> std::ops::Range<usize> {
        let start = self
            .rows
            .get(message)
            .map_or(self.parts.len(), |row| row.first_part as usize);
        let end = self
            .rows
            .get(message + 1)
            .map_or(self.parts.len(), |row| row.first_part as usize);
        start..end
    }

    /// The parts of one message.
    pub fn parts(&self, message: usize) -> &[Part<T>] {
        &self.parts[self.part_range(message)]
    }

    /// The message that holds the part at `part` in [`Transcript::all_parts`].
    pub fn message_of_part(&self, part: usize) -> usize {
        self.rows
            .partition_point(|row| row.first_part as usize <= part)
            .saturating_sub(1)
    }

    /// The goal: the first user message.
    pub fn goal(&self) -> Option<usize> {
        self.goal.map(|index| index as usize)
    }

    /// The newest user message.
    pub fn newest_user(&self) -> Option<usize> {
        self.newest_user.map(|index| index as usize)
    }

    /// Number of leading system and developer messages.
    pub fn instructions_end(&self) -> usize {
        self.instructions_end as usize
    }

    /// The pairing state of the newest step.
    pub fn pairing(&self) -> &Pairing {
        &self.pairing
    }

    /// Checks that `messages` can follow, without taking anything in.
    ///
    /// # Errors
    /// As [`Pairing::push`], with the raw index.
    pub fn check(&self, messages: &[Message<T>]) -> Result<()> {
        let mut pairing = self.pairing.clone();
        for (offset, message) in messages.iter().enumerate() {
            let index = self.len() + offset;
            pairing
                .push(index, message)
                .map_err(|error| error.at(index))?;
        }
        Ok(())
    }

    /// Appends one counted message and returns how it attached.
    ///
    /// # Errors
    /// As [`Pairing::push`], with the raw index; nothing is appended then.
    pub fn push(&mut self, message: Message<T>, overhead: u32) -> Result<Attachment> {
        let index = self.rows.len();
        let attachment = self
            .pairing
            .push(index, &message)
            .map_err(|error| error.at(index))?;
        let tokens = message.parts.iter().map(|part| part.tokens).sum::<u32>() + overhead;
        let is_user = message.role == Role::User
            && message
                .parts
                .iter()
                .any(|part| part.kind != PartKind::Result);
        if attachment == Attachment::Starts || self.steps.is_empty() {
            self.steps.push(Step {
                first: index as u32,
                end: index as u32,
                tokens: 0,
                open_calls: 0,
                has_calls: false,
            });
        }
        if let Some(step) = self.steps.last_mut() {
            step.end = index as u32 + 1;
            step.tokens += tokens;
            step.open_calls = self.pairing.open_calls() as u32;
            step.has_calls = !self.pairing.calls().is_empty();
        }
        if is_user {
            self.goal.get_or_insert(index as u32);
            self.newest_user = Some(index as u32);
        }
        if message.role.is_instruction() && self.instructions_end as usize == index {
            self.instructions_end += 1;
        }
        self.rows.push(Row {
            role: message.role,
            is_user,
            signals: signals_of(&message),
            first_part: self.parts.len() as u32,
            tokens,
            overhead,
            step: self.steps.len() as u32 - 1,
        });
        self.parts.extend(message.parts);
        Ok(attachment)
    }

    /// Counts a message again by another counter.
    ///
    /// # Errors
    /// `counter_failed`, only from a foreign counter.
    pub fn recount(&mut self, message: usize, counter: &Counter) -> Result<()> {
        let range = self.part_range(message);
        let parts = &mut self.parts[range];
        count_parts(parts, counter)?;
        let Some(row) = self.rows.get_mut(message) else {
            return Ok(());
        };
        let tokens = parts.iter().map(|part| part.tokens).sum::<u32>() + row.overhead;
        let step = &mut self.steps[row.step as usize];
        step.tokens = step.tokens - row.tokens + tokens;
        row.tokens = tokens;
        Ok(())
    }
}
