//! AN1, AN2, AN3, AN10, AN11: results right after their calls and first, one each, nothing blank.
//!
//! The provider merges neighbours with one role, so runs of user or assistant messages are judged
//! as one.

use super::{Answer, Call, Findings, Rule, Violation, answer, calls_of, is_blank, is_empty};
use crate::error::Result;
use crate::message::{Body, Message, Part, PartKind, Place, Role};
use crate::node::{Text, Value};

pub(super) fn check<T: Text>(
    messages: &[Result<Message<T>>],
    system: Option<&Message<T>>,
    found: &mut Findings,
) {
    for part in system.iter().flat_map(|system| &system.parts) {
        if matches!(&part.body, Body::Text(text) if is_blank(text)) {
            found.0.push(Violation {
                rule: Rule::An11BlankText,
                index: None,
                message: "a text of the system argument is blank".into(),
            });
        }
    }
    if let Some(Ok(first)) = messages.first()
        && first.role != Role::User
    {
        let role = first.role.name();
        let message = format!("the first message is of role {role}");
        found.add(Rule::FirstNotUser, 0, message);
    }
    let mut run = Run::new();
    for (index, message) in messages.iter().enumerate() {
        let Ok(message) = message else {
            run = Run::new();
            run.is_blind = true;
            continue;
        };
        let is_last = index + 1 == messages.len();
        check_content(message, index, is_last, found);
        run.enter(message.role, index, found);
        match message.role {
            Role::User => run.read_user(message, index, found),
            Role::Assistant => run.read_assistant(message, index, found),
            _ => {}
        }
    }
    run.close(found);
}

/// A run of messages with one role, and the calls that it must answer or that it made.
struct Run<'a, T> {
    role: Option<Role>,
    calls: Vec<Call<'a, T>>,
    has_results: bool,
    has_others: bool,
    /// A message before it could not be read: any result may be right.
    is_blind: bool,
}

impl<'a, T: Text> Run<'a, T> {
    fn new() -> Self {
        Self {
            role: None,
            calls: Vec::new(),
            has_results: false,
            has_others: false,
            is_blind: false,
        }
    }

    /// Goes on with a message of `role`.
    fn enter(&mut self, role: Role, index: usize, found: &mut Findings) {
        if self.role == Some(role) {
            if role != Role::System {
                let role = role.name();
                let message = format!("the {role} message follows another of its role");
                found.add(Rule::SameRole, index, message);
            }
            return;
        }
        // The calls of an assistant run pass on to the user run behind it, and only there.
        let passes_on = self.role == Some(Role::Assistant) && role == Role::User;
        if !passes_on {
            self.close(found);
        }
        if self.role.is_some() {
            self.is_blind = false;
        }
        self.role = Some(role);
        self.has_results = false;
        self.has_others = false;
    }

    fn close(&mut self, found: &mut Findings) {
        for call in self.calls.drain(..).filter(|call| !call.is_answered) {
            let Call { number, total, .. } = call;
            let message = format!("call {number} of {total} has no result in the next message");
            found.add(Rule::An1UnansweredCall, call.index, message);
        }
    }

    fn read_assistant(&mut self, message: &'a Message<T>, index: usize, found: &mut Findings) {
        self.calls.extend(calls_of(message, index));
        if message.has_results() {
            let message = "a result is in an assistant message";
            found.add(Rule::An2OrphanResult, index, message);
        }
    }

    fn read_user(&mut self, message: &Message<T>, index: usize, found: &mut Findings) {
        if message.has_calls() {
            let message = "a call is in a user message, where nothing answers it";
            found.add(Rule::An1UnansweredCall, index, message);
        }
        let mut is_late = false;
        let mut is_text_after = false;
        for part in &message.parts {
            if part.kind != PartKind::Result {
                is_text_after |= self.has_results && part.kind == PartKind::Text;
                self.has_others = true;
                continue;
            }
            match answer(&mut self.calls, part.key.as_deref()) {
                Answer::Open => {
                    self.has_results = true;
                    is_late |= self.has_others;
                }
                Answer::Answered => {
                    let message = "a call has its result already";
                    found.add(Rule::An3DuplicateResult, index, message);
                }
                Answer::Unknown if self.is_blind => {}
                Answer::Unknown => {
                    let message = "a result answers no call of the message before it";
                    found.add(Rule::An2OrphanResult, index, message);
                }
            }
        }
        if is_late {
            let message = "something stands before the results";
            found.add(Rule::An1ResultsNotFirst, index, message);
        }
        if is_text_after {
            let message = "a text stands behind the results";
            found.add(Rule::TextAfterResults, index, message);
        }
    }
}

fn check_content<T: Text>(message: &Message<T>, index: usize, is_last: bool, found: &mut Findings) {
    let is_empty = match &message.parts[..] {
        [] => true,
        [only] => only.place == Place::Content && is_empty(&only.body),
        _ => false,
    };
    if is_empty {
        // The provider leaves an empty prefill at the end alone.
        if !(is_last && message.role == Role::Assistant) {
            let role = message.role.name();
            let message = format!("the {role} message is empty");
            found.add(Rule::An10EmptyMessage, index, message);
        }
        return;
    }
    if message.parts.iter().any(has_blank_text) {
        found.add(Rule::An11BlankText, index, "a text is blank");
    }
}

fn has_blank_text<T: Text>(part: &Part<T>) -> bool {
    match (part.kind, &part.body) {
        (PartKind::Text, Body::Text(text)) => is_blank(text),
        (PartKind::Result, Body::Value(Value::List(blocks))) => blocks.iter().any(|block| {
            let is_text = block
                .get("type")
                .and_then(Value::as_text)
                .is_some_and(|kind| kind.with(|kind| kind == "text"));
            let text = block.get("text").and_then(Value::as_text);
            is_text && text.is_some_and(is_blank)
        }),
        _ => false,
    }
}
