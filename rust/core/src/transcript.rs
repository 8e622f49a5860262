//! The transcript: columns that only grow, one row per message and one per part.
//!
//! Each text is counted once, when it is appended, and its tokens stay with the row, so that a
//! window needs sums, not texts; its signals are looked for when a report first asks. Memory beside
//! the caller's own texts: about 48 bytes a message and 80 a part.

use std::sync::OnceLock;

use crate::dialect::form::Glue;
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Body, Message, Part, PartKind, Role};
use crate::node::Text;
use crate::salience::signals::{Signals, signals_of_parts};
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
    /// Whether it is in the user's role and answers an action that the assistant wrote as text: what
    /// a tool found, in a run without calls.
    pub is_answer: bool,
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
    /// What the texts of each message contain, once that was asked.
    signals: Vec<OnceLock<Signals>>,
    steps: Vec<Step>,
    pairing: Pairing,
    goal: Option<u32>,
    newest_user: Option<u32>,
    instructions_end: u32,
    acting: Acting,
}

/// How the assistant has acted so far.
#[derive(Clone, Copy, Debug, Default)]
struct Acting {
    /// Its messages.
    replies: u32,
    /// Messages of the user that are not a tool's answers.
    spoken: u32,
    /// Those that end with an action written as text.
    in_text: u32,
    /// Whether any of them had a call.
    calls: bool,
    /// Whether the newest message is a reply that ends with an action written as text.
    waits: bool,
}

impl Acting {
    /// Takes in a message; whether it answers an action written as text. Nine in ten replies must
    /// end with one: a conversation about code has explanations too.
    fn take_in<T: Text>(&mut self, message: &Message<T>) -> bool {
        let is_answer = message.role == Role::User
            && self.waits
            && !self.calls
            && u64::from(self.in_text) * 10 >= u64::from(self.replies) * 9;
        if message.role == Role::Assistant {
            let ends_in_action = acts_in_text(message);
            self.replies += 1;
            self.in_text += u32::from(ends_in_action);
            self.calls |= message.has_calls();
            self.waits = ends_in_action;
        } else {
            self.waits = false;
        }
        is_answer
    }
}

/// Messages of the user from which on a history is a conversation.
const CONVERSATION: u32 = 3;

/// Whether a reply without calls ends with an action: a fenced block, a block between tags or, as
/// agents that reason aloud write it, a line of input behind a line that names the action.
fn acts_in_text<T: Text>(message: &Message<T>) -> bool {
    let is_text = |part: &&Part<T>| part.kind == PartKind::Text;
    let Some(Body::Text(text)) = message
        .parts
        .iter()
        .rfind(is_text)
        .map(|part| &part.body)
        .filter(|_| !message.has_calls())
    else {
        return false;
    };
    text.with(|text| {
        let text = text.trim_end();
        let last = text.rsplit('\n').next().unwrap_or(text).trim_start();
        let name = last
            .rsplit("</")
            .next()
            .and_then(|end| end.strip_suffix('>'));
        let is_tag = last.contains("</")
            && name.is_some_and(|name| {
                let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-:".contains(&byte);
                !name.is_empty() && name.bytes().all(is_letter)
            });
        let is_fence = last == "```" && text.len() > last.len();
        is_fence || is_tag || last.starts_with("Action Input:") || last.starts_with("Action:")
    })
}

/// How far a transcript was, see [`Transcript::mark`].
#[derive(Debug)]
pub struct Mark {
    rows: usize,
    parts: usize,
    steps: usize,
    newest_step: Option<Step>,
    pairing: Pairing,
    goal: Option<u32>,
    newest_user: Option<u32>,
    instructions_end: u32,
    acting: Acting,
}

/// The most tokens of one step; half of what the columns hold, so that notes and placeholders of
/// satchel's own never overflow them.
const MAX_STEP_TOKENS: u64 = 1 << 31;

impl<T: Text> Transcript<T> {
    /// An empty transcript; `glue` as in [`Pairing::new`].
    pub fn new(glue: Glue) -> Self {
        Self {
            rows: Vec::new(),
            parts: Vec::new(),
            signals: Vec::new(),
            steps: Vec::new(),
            pairing: Pairing::new(glue),
            goal: None,
            newest_user: None,
            instructions_end: 0,
            acting: Acting::default(),
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

    /// What the texts of one message contain; looked for once.
    pub fn signals(&self, message: usize) -> Signals {
        self.signals
            .get(message)
            .map_or_else(Signals::default, |found| {
                *found.get_or_init(|| signals_of_parts(self.parts(message)))
            })
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

    /// The newest user message that is not a tool's answer.
    pub fn newest_user(&self) -> Option<usize> {
        self.newest_user.map(|index| index as usize)
    }

    /// Number of the assistant's messages.
    pub fn replies(&self) -> u32 {
        self.acting.replies
    }

    /// Whether the user goes on talking: an agent's run has one task, a conversation further words.
    pub fn is_conversation(&self) -> bool {
        self.acting.spoken >= CONVERSATION
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

    /// Checks that no step outgrows what its columns hold, once `messages` are counted.
    ///
    /// # Errors
    /// `counter_failed` with the raw index: no real text has that many tokens.
    pub fn check_sizes(&self, messages: &[Message<T>], overheads: &[u32]) -> Result<()> {
        let tokens = |message: &Message<T>, overhead: u32| {
            let parts = message.parts.iter().map(|part| u64::from(part.tokens));
            parts.sum::<u64>() + u64::from(overhead)
        };
        let newest = self.steps.last().map_or(0, |step| u64::from(step.tokens));
        let counted = || messages.iter().zip(overheads);
        let sum: u64 = counted().map(|(message, &own)| tokens(message, own)).sum();
        if newest + sum <= MAX_STEP_TOKENS {
            return Ok(());
        }
        let mut pairing = self.pairing.clone();
        let mut step = newest;
        for (offset, (message, &overhead)) in counted().enumerate() {
            let index = self.len() + offset;
            if pairing.push(index, message)? == Attachment::Starts {
                step = 0;
            }
            step += tokens(message, overhead);
            if step > MAX_STEP_TOKENS {
                let message = format!("a step of {step} tokens, most {MAX_STEP_TOKENS}");
                return Err(Error::new(ErrorKind::CounterFailed, message)
                    .with_limit(step, MAX_STEP_TOKENS)
                    .at(index));
            }
        }
        Ok(())
    }

    /// Remembers how far the transcript is, for [`Transcript::go_back`].
    pub fn mark(&self) -> Mark {
        Mark {
            rows: self.rows.len(),
            parts: self.parts.len(),
            steps: self.steps.len(),
            newest_step: self.steps.last().copied(),
            pairing: self.pairing.clone(),
            goal: self.goal,
            newest_user: self.newest_user,
            instructions_end: self.instructions_end,
            acting: self.acting,
        }
    }

    /// Takes back everything that was appended since `mark`.
    pub fn go_back(&mut self, mark: Mark) {
        self.rows.truncate(mark.rows);
        self.parts.truncate(mark.parts);
        self.signals.truncate(mark.rows);
        self.steps.truncate(mark.steps);
        if let (Some(step), Some(newest)) = (self.steps.last_mut(), mark.newest_step) {
            *step = newest;
        }
        self.pairing = mark.pairing;
        self.goal = mark.goal;
        self.newest_user = mark.newest_user;
        self.instructions_end = mark.instructions_end;
        self.acting = mark.acting;
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
        let is_answer = self.acting.take_in(&message) && self.goal.is_some();
        if is_user && !is_answer {
            self.acting.spoken += 1;
            self.goal.get_or_insert(index as u32);
            self.newest_user = Some(index as u32);
        }
        if message.role.is_instruction() && self.instructions_end as usize == index {
            self.instructions_end += 1;
        }
        self.rows.push(Row {
            role: message.role,
            is_user,
            is_answer,
            first_part: self.parts.len() as u32,
            tokens,
            overhead,
            step: self.steps.len() as u32 - 1,
        });
        self.signals.push(OnceLock::new());
        self.parts.extend(message.parts);
        Ok(attachment)
    }

    /// Counts a message again by another counter, whose framing of a message takes `change` tokens
    /// more. A `name` keeps its count.
    ///
    /// # Errors
    /// `counter_failed`, only from a foreign counter.
    pub fn recount(&mut self, message: usize, counter: &Counter, change: i64) -> Result<()> {
        let range = self.part_range(message);
        let parts = &mut self.parts[range];
        count_parts(parts, counter)?;
        let Some(row) = self.rows.get_mut(message) else {
            return Ok(());
        };
        let overhead = (i64::from(row.overhead) + change).max(0);
        row.overhead = u32::try_from(overhead).unwrap_or(u32::MAX);
        let tokens = parts.iter().map(|part| part.tokens).sum::<u32>() + row.overhead;
        let step = &mut self.steps[row.step as usize];
        step.tokens = step.tokens - row.tokens + tokens;
        row.tokens = tokens;
        Ok(())
    }
}
