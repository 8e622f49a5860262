//! A recorded run made ready: what each message costs and holds, where the calls were, and which
//! identifiers each call's action took from earlier messages.
//!
//! Every text is looked at once. Lines and identifiers get numbers, so that a window is a multiset
//! of numbers and asking whether something can be read costs one look.

use std::sync::Arc;

use indexmap::IndexMap;

use super::texts::{read_actions, read_texts, unmarked_json};
use super::unit::{Content, NO_MESSAGE, Unit, key_of, pointers_in};
use super::{Limit, Run};
use crate::dialect::{Dialect, read_message, read_system};
use crate::error::Result;
use crate::level::Level;
use crate::message::{Message, Role};
use crate::node::{Node, Text};
use crate::readers::json::{Json, JsonText};
use crate::salience::identifiers::identifiers;
use crate::step::{Attachment, Pairing};
use crate::tokens::Counter;
use crate::tokens::chat::{ChatRules, count_message_parts, message_overhead};
use crate::tokens::tools::{ToolRules, tool_tokens};

/// Messages that the newest earlier copy of a long reference is old, at least.
pub const LONG_AGE: u32 = 10;

/// One message of the run.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) unit: Unit,
    pub(super) overhead: u32,
    pub(super) role: Role,
    /// Leading instructions and the goal.
    pub(super) is_pinned: bool,
    /// The step it belongs to.
    pub(super) step: u32,
    /// Whether it answers a call or, where the run has no calls, the agent's text.
    pub(super) is_result: bool,
    /// Whether no call waits for a result after it.
    pub(super) is_closed: bool,
    /// Its lines, by number, in order; blank ones are left out.
    pub(super) lines: Box<[u32]>,
}

/// A line of some original message.
#[derive(Debug)]
pub(super) struct Line {
    /// The identifiers on it, by number.
    pub(super) names: Box<[u32]>,
    /// The first message that holds it.
    pub(super) first: u32,
}

/// An identifier in an action that stood in an earlier message and not in the pinned part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The identifier's number.
    pub name: u32,
    /// The newest message before the call that holds it.
    pub newest: u32,
    /// Whether that is at least [`LONG_AGE`] messages old.
    pub is_long: bool,
}

/// A place where the model was called: before message `at`.
#[derive(Clone, Debug)]
pub struct Call {
    /// Index of the first message of the reply.
    pub at: u32,
    /// One past its last.
    pub end: u32,
    /// Tokens of the reply.
    pub output_tokens: u64,
    /// What its action took from earlier messages, ordered by number.
    pub references: Vec<Reference>,
}

/// A recorded run, made ready to be replayed under any number of policies.
#[derive(Debug)]
pub struct Recording {
    pub(super) dialect: Dialect,
    pub(super) counter: Counter,
    pub(super) messages: Vec<Json>,
    pub(super) rows: Vec<Row>,
    pub(super) steps: Vec<(u32, u32)>,
    pub(super) calls: Vec<Call>,
    pub(super) names: IndexMap<u64, Box<str>>,
    pub(super) lines: IndexMap<Box<str>, Line>,
    pub(super) system_tokens: u64,
    pub(super) tools_tokens: u64,
    pub(super) request_tokens: u32,
    pub(super) message_tokens: u32,
    pub(super) pinned_tokens: u64,
    pub(super) total_tokens: u64,
    pub(super) budget: u64,
    /// The first user message.
    pub(super) goal: Option<u32>,
    /// Whether the run has calls; else its actions stand in fenced text.
    pub(super) has_calls: bool,
}

impl Recording {
    /// Reads, counts and indexes a run.
    ///
    /// # Errors
    /// As [`read_message`]; `orphan_result` and `duplicate_result` for runs that must be repaired
    /// first; `counter_failed`, only from a foreign counter.
    pub fn new(run: &Run, counter: &Counter, limit: Limit) -> Result<Self> {
        let dialect = run.dialect;
        let rules = ChatRules::for_counter(dialect, counter);
        let mut messages = run
            .messages
            .iter()
            .enumerate()
            .map(|(index, message)| read_message(dialect, &message, index))
            .collect::<Result<Vec<_>>>()?;
        count_message_parts(&mut messages, counter)?;
        let mut recording = Self {
            dialect,
            counter: counter.clone(),
            messages: run.messages.clone(),
            rows: Vec::with_capacity(messages.len()),
            steps: Vec::new(),
            calls: Vec::new(),
            names: IndexMap::new(),
            lines: IndexMap::new(),
            system_tokens: 0,
            tools_tokens: 0,
            request_tokens: rules.request_tokens(),
            message_tokens: rules.inserted_message_tokens(),
            pinned_tokens: 0,
            total_tokens: 0,
            budget: 0,
            goal: None,
            has_calls: messages.iter().any(Message::has_calls),
        };
        let mut learner = Learner::default();
        recording.take_system(run, &mut learner)?;
        recording.take_messages(&messages, &rules, &mut learner)?;
        recording.measure(limit);
        Ok(recording)
    }

    /// The calls of the run, in order; a reply without anything before it is none.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Input tokens that a window may have.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Tokens of system prompt, tools, request framing, leading instructions and goal.
    pub fn pinned_tokens(&self) -> u64 {
        self.pinned_tokens
    }

    /// Tokens of a request with everything.
    pub fn total_tokens(&self) -> u64 {
        self.total_tokens
    }

    /// The identifier of this number.
    pub fn name(&self, number: u32) -> &str {
        self.names
            .get_index(number as usize)
            .map_or("", |(_, name)| name)
    }

    /// Whether no call waits for results at the boundary before message `at`.
    pub(super) fn is_closed_before(&self, at: u32) -> bool {
        self.rows
            .get((at as usize).wrapping_sub(1))
            .is_none_or(|row| row.is_closed)
    }

    /// Role and tokens of each message.
    pub fn sizes(&self) -> Vec<(&'static str, u32)> {
        let rows = self.rows.iter();
        rows.map(|row| (row.role.name(), row.unit.tokens)).collect()
    }

    /// Tokens of everything that is no message.
    pub(super) fn base_tokens(&self) -> u64 {
        self.system_tokens + self.tools_tokens + u64::from(self.request_tokens)
    }

    /// The upper estimate of a count.
    pub(super) fn upper(&self, tokens: u64) -> u64 {
        (tokens as f64 * (1.0 + self.counter.margin())).ceil() as u64
    }

    /// A message of the run, read again.
    pub(super) fn read(&self, index: usize) -> Result<Message<JsonText>> {
        read_message(self.dialect, &&self.messages[index], index)
    }

    fn take_system(&mut self, run: &Run, learner: &mut Learner) -> Result<()> {
        if let Some(system) = run.system.as_ref().filter(|system| !system.is_null()) {
            let mut read = [read_system(&system)?];
            count_message_parts(&mut read, &self.counter)?;
            let [read] = read;
            let parts = read.parts.iter().map(|part| u64::from(part.tokens));
            self.system_tokens = parts.sum::<u64>() + u64::from(self.message_tokens);
            let (content, _) = self.learn(&read, NO_MESSAGE, learner);
            learner.pin(&content);
        }
        if let Some(tools) = run.tools.as_ref().filter(|tools| tools.is_list()) {
            let rules = ToolRules::for_counter(self.dialect, &self.counter);
            let tools = tool_tokens(&tools.capture()?, &rules, &self.counter);
            // Definitions in a form of their own cost nothing that is known.
            self.tools_tokens = tools.map_or(0, |tools| u64::from(tools.tokens));
        }
        Ok(())
    }

    fn take_messages(
        &mut self,
        messages: &[Message<JsonText>],
        rules: &ChatRules,
        learner: &mut Learner,
    ) -> Result<()> {
        let joins = self.find_calls(messages)?;
        let mut calls = std::mem::take(&mut self.calls).into_iter().peekable();
        let mut is_opening = true;
        for (at, (message, (joins, is_closed))) in messages.iter().zip(joins).enumerate() {
            let index = at as u32;
            if let Some(mut call) = calls.next_if(|call| call.at == index) {
                call.references = self.references(&call, messages, learner);
                self.calls.push(call);
            }
            match self.steps.last_mut() {
                Some(step) if joins => step.1 = index + 1,
                _ => self.steps.push((index, index + 1)),
            }
            let has_words = |message: &Message<JsonText>| {
                message.role == Role::User
                    && (message.parts.is_empty() || !message.parts.iter().all(is_result_part))
            };
            is_opening &= message.role.is_instruction();
            let is_goal = self.goal.is_none() && has_words(message);
            if is_goal {
                self.goal = Some(index);
            }
            let is_pinned = is_opening || is_goal;
            let (content, lines) = self.learn(message, index, learner);
            if is_pinned {
                learner.pin(&content);
            }
            for &(name, _) in &content.names {
                learner.newest[name as usize] = index;
            }
            let overhead = message_overhead(message, rules, &self.counter)?;
            let tokens = message.parts.iter().map(|part| part.tokens).sum::<u32>() + overhead;
            self.rows.push(Row {
                unit: Unit {
                    key: key_of(unmarked_json(&self.messages[at]).as_bytes()),
                    tokens,
                    message: index,
                    level: Level::Verbatim,
                    content: Arc::new(content),
                },
                overhead,
                role: message.role,
                is_pinned,
                step: self.steps.len() as u32 - 1,
                is_result: message.has_results()
                    || (!self.has_calls && message.role == Role::User && !is_goal),
                is_closed,
                lines,
            });
        }
        for call in &mut self.calls {
            let reply = &self.rows[call.at as usize..call.end as usize];
            call.output_tokens = reply.iter().map(|row| u64::from(row.unit.tokens)).sum();
        }
        Ok(())
    }

    /// Notes where the calls were; for each message, whether it belongs to the step before it, and
    /// whether no call is open after it.
    fn find_calls(&mut self, messages: &[Message<JsonText>]) -> Result<Vec<(bool, bool)>> {
        let mut pairing = Pairing::new(self.dialect.glue());
        let mut joins = Vec::with_capacity(messages.len());
        for (at, message) in messages.iter().enumerate() {
            let attachment = pairing.attachment(message);
            pairing.push(at, message).map_err(|error| error.at(at))?;
            let index = at as u32;
            let is_joined = attachment == Attachment::Joins && at > 0;
            joins.push((is_joined, pairing.open_calls() == 0));
            if message.role != Role::Assistant {
                continue;
            }
            if is_joined {
                // A record that goes on with a reply.
                if let Some(call) = self.calls.last_mut().filter(|call| call.end == index) {
                    call.end = index + 1;
                }
            } else if at > 0 {
                self.calls.push(Call {
                    at: index,
                    end: index + 1,
                    output_tokens: 0,
                    references: Vec::new(),
                });
            }
        }
        Ok(joins)
    }

    /// What the action of a call took from the messages before it, which were all learnt.
    fn references(
        &self,
        call: &Call,
        messages: &[Message<JsonText>],
        learner: &Learner,
    ) -> Vec<Reference> {
        let mut found = Vec::new();
        for message in &messages[call.at as usize..call.end as usize] {
            read_actions(message, self.has_calls, &mut |text| {
                for identifier in identifiers(text) {
                    found.extend(self.names.get_index_of(&identifier.hash));
                }
            });
        }
        found.sort_unstable();
        found.dedup();
        let newest = found.into_iter().map(|name| (name, learner.newest[name]));
        newest
            .filter(|&(name, newest)| newest != NO_MESSAGE && !learner.pinned[name])
            .map(|(name, newest)| Reference {
                name: name as u32,
                newest,
                is_long: call.at - newest >= LONG_AGE,
            })
            .collect()
    }

    /// Numbers the lines and identifiers of a message.
    fn learn<T: Text>(
        &mut self,
        message: &Message<T>,
        index: u32,
        learner: &mut Learner,
    ) -> (Content, Box<[u32]>) {
        let mut found = Vec::new();
        read_texts(message, &mut |text| {
            for line in lines_of(text) {
                found.push(self.learn_line(line, index) as u32);
            }
        });
        learner.newest.resize(self.names.len(), NO_MESSAGE);
        learner.pinned.resize(self.names.len(), false);
        let names = found
            .iter()
            .flat_map(|&line| &self.lines[line as usize].names);
        let content = Content::of(names.map(|&name| (name, 1)).collect(), Vec::new());
        (content, found.into())
    }

    fn learn_line(&mut self, line: &str, index: u32) -> usize {
        if let Some(known) = self.lines.get_index_of(line) {
            return known;
        }
        let mut names = Vec::new();
        for identifier in identifiers(line) {
            let entry = self.names.entry(identifier.hash);
            names.push(entry.index() as u32);
            entry.or_insert_with(|| line[identifier.start..identifier.end].into());
        }
        names.sort_unstable();
        names.dedup();
        let line_entry = Line {
            names: names.into(),
            first: index,
        };
        self.lines.insert_full(line.into(), line_entry).0
    }

    /// What a message that is not the recording's own shows: whole lines of messages before
    /// `before`, identifiers, pointers.
    pub(super) fn look<T: Text>(&self, message: &Message<T>, before: u32) -> Content {
        let mut names = Vec::new();
        let mut pointers = Vec::new();
        read_texts(message, &mut |text| {
            self.look_at(text, before, &mut names);
            pointers_in(text, &mut pointers);
        });
        Content::of(names, pointers)
    }

    pub(super) fn look_at(&self, text: &str, before: u32, names: &mut Vec<(u32, u32)>) {
        for line in lines_of(text) {
            let known = self.lines.get(line).filter(|known| {
                // Lines of the system prompt are always there.
                known.first < before || known.first == NO_MESSAGE
            });
            if let Some(known) = known {
                names.extend(known.names.iter().map(|&name| (name, 1)));
                continue;
            }
            for identifier in identifiers(line) {
                if let Some(name) = self.names.get_index_of(&identifier.hash) {
                    names.push((name as u32, 0));
                }
            }
        }
    }

    fn measure(&mut self, limit: Limit) {
        let tokens = |row: &Row| u64::from(row.unit.tokens);
        let pinned = self.rows.iter().filter(|row| row.is_pinned);
        self.pinned_tokens = self.base_tokens() + pinned.map(tokens).sum::<u64>();
        self.total_tokens = self.base_tokens() + self.rows.iter().map(tokens).sum::<u64>();
        let others = self.rows.iter().filter(|row| !row.is_pinned);
        let largest = others.map(tokens).max().unwrap_or(0);
        self.budget = match limit {
            Limit::Tokens(tokens) => tokens,
            Limit::Share(share) => {
                let rest = self.total_tokens - self.pinned_tokens;
                let free = ((rest as f64 * share) as u64).max(largest);
                self.upper(self.pinned_tokens + free).max(1)
            }
        };
    }
}

/// The lines that count: without white space at their end, and not blank.
pub(super) fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n')
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
}

fn is_result_part<T>(part: &crate::message::Part<T>) -> bool {
    part.kind == crate::message::PartKind::Result
}

/// What is known while the messages go by.
#[derive(Debug, Default)]
struct Learner {
    /// The newest message that holds each identifier.
    newest: Vec<u32>,
    /// Whether each identifier stands in the pinned part.
    pinned: Vec<bool>,
}

impl Learner {
    fn pin(&mut self, content: &Content) {
        for &(name, _) in &content.names {
            self.pinned[name as usize] = true;
        }
    }
}
