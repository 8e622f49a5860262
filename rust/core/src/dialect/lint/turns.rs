//! `gemini` and `bedrock`: all results of a turn in the one message behind it, roles in turn.

use super::{Answer, Calls, Findings, Rule, calls_of, has_blank_text, is_blank};
use crate::dialect::Traits;
use crate::error::Result;
use crate::message::{Body, Message, PartKind, Place, Role};
use crate::node::{Text, Value};

/// Whether a message speaks for the user; results may have a role of their own.
fn is_users(role: Role) -> bool {
    role != Role::Assistant
}

/// How results stand to the calls before them.
#[derive(Default)]
struct Match {
    /// Calls without a result.
    open: usize,
    /// Results without a call.
    extra: usize,
    /// Whether something stands before the last result.
    is_late: bool,
    results: usize,
}

fn compare<T: Text>(
    before: Option<&Message<T>>,
    message: Option<&Message<T>>,
    by_name: bool,
) -> Match {
    let mut calls = Calls::new(by_name);
    if let Some(before) = before.filter(|before| before.role == Role::Assistant) {
        calls_of(before, 0).for_each(|call| calls.push(call));
    }
    let mut found = Match::default();
    let mut has_others = false;
    for part in message.into_iter().flat_map(|message| &message.parts) {
        if part.kind != PartKind::Result {
            has_others = true;
            continue;
        }
        found.results += 1;
        match calls.answer(part.key.as_deref()) {
            Answer::Open => found.is_late |= has_others,
            Answer::Answered | Answer::Unknown => found.extra += 1,
        }
    }
    found.open = calls.count_open();
    found
}

/// The neighbours of a message; `None` where one cannot be read.
fn around<T>(messages: &[Result<Message<T>>], index: usize) -> Option<[Option<&Message<T>>; 2]> {
    let get = |at: Option<usize>| match at.and_then(|at| messages.get(at)) {
        None => Some(None),
        Some(Ok(message)) => Some(Some(message)),
        Some(Err(_)) => None,
    };
    Some([get(index.checked_sub(1))?, get(Some(index + 1))?])
}

pub(super) fn check_gemini<T: Text>(
    messages: &[Result<Message<T>>],
    traits: Traits,
    found: &mut Findings,
) {
    let is_prompt = |message: &Result<Message<T>>| {
        let Ok(message) = message else { return false };
        is_users(message.role)
            && message
                .parts
                .iter()
                .any(|part| part.kind != PartKind::Result)
    };
    let turn = messages.iter().rposition(is_prompt).unwrap_or(0);
    if let Some(Ok(first)) = messages.first()
        && first.role == Role::Assistant
        && !first.has_calls()
    {
        let message = "the first content is the model's";
        found.add(Rule::StartsWithoutUser, 0, message);
    }
    for (index, message) in messages.iter().enumerate() {
        let Ok(message) = message else { continue };
        if message.parts.is_empty() {
            found.add(Rule::Ge7EmptyContent, index, "the content has no parts");
        }
        let is_bad = |place: Place, body: &Body<T>| {
            !matches!(place, Place::SignedPart(_))
                && matches!(body, Body::Text(text) if is_blank(text))
        };
        let mut parts = message.parts.iter();
        if parts.any(|part| part.kind == PartKind::Text && is_bad(part.place, &part.body)) {
            found.add(Rule::BlankText, index, "a text is blank");
        }
        let Some([before, after]) = around(messages, index) else {
            continue;
        };
        if before.is_some_and(|before| is_users(before.role) == is_users(message.role)) {
            let message = "the content follows another of its role";
            found.add(Rule::SameRole, index, message);
        }
        if message.role == Role::Assistant {
            if message.has_results() {
                let message = "a response is in a content of the model";
                found.add(Rule::Ge2ResponsePosition, index, message);
            }
            if message.has_calls() {
                check_calls(message, [before, after], index, found);
                let first = message
                    .parts
                    .iter()
                    .find(|part| part.kind == PartKind::Call);
                let is_signed =
                    first.is_some_and(|part| matches!(part.place, Place::SignedPart(_)));
                if traits.signed_calls && index >= turn && !is_signed {
                    let message = "the first call of the step has no signature";
                    found.add(Rule::Ge4LostSignature, index, message);
                }
            }
            continue;
        }
        if message.has_calls() {
            let message = "a call is in a content of the user";
            found.add(Rule::Ge1CallPosition, index, message);
        }
        let match_ = compare(before, Some(message), true);
        let has_calls =
            before.is_some_and(|before| before.role == Role::Assistant && before.has_calls());
        if match_.results > 0 && !has_calls {
            let message = "responses have no calls right before them";
            found.add(Rule::Ge2ResponsePosition, index, message);
        } else if match_.extra > 0 {
            let message = "there is a response too many";
            found.add(Rule::Ge3ResponseCount, index, message);
        } else if match_.is_late {
            let message = "something stands before a response";
            found.add(Rule::Ge2ResponsePosition, index, message);
        }
    }
}

fn check_calls<T: Text>(
    message: &Message<T>,
    [before, after]: [Option<&Message<T>>; 2],
    index: usize,
    found: &mut Findings,
) {
    if !before.is_some_and(|before| is_users(before.role)) {
        let message = "calls do not follow the user";
        found.add(Rule::Ge1CallPosition, index, message);
    }
    let after = after.filter(|after| is_users(after.role));
    if compare(Some(message), after, true).open > 0 {
        let message = "a call has no response in the next content";
        found.add(Rule::Ge3ResponseCount, index, message);
    }
}

pub(super) fn check_bedrock<T: Text>(
    messages: &[Result<Message<T>>],
    tools: Option<&Value<T>>,
    found: &mut Findings,
) {
    if let Some(Ok(first)) = messages.first()
        && first.role == Role::Assistant
    {
        found.add(
            Rule::Br3FirstNotUser,
            0,
            "the first message is the assistant's",
        );
    }
    let no_tools = tools.is_some_and(|tools| tools.items().is_empty());
    for (index, message) in messages.iter().enumerate() {
        let Ok(message) = message else { continue };
        if message.parts.is_empty() {
            found.add(Rule::Br6EmptyMessage, index, "the message has no content");
        }
        if message.parts.iter().any(has_blank_text) {
            found.add(Rule::Br5BlankText, index, "a text is blank");
        }
        if no_tools && (message.has_calls() || message.has_results()) {
            let message = "tool blocks stand in a request without tools";
            found.add(Rule::Br7ToolsNotDeclared, index, message);
        }
        let is_reasoning = message
            .parts
            .iter()
            .all(|part| part.kind == PartKind::Reasoning);
        if is_reasoning && !message.parts.is_empty() && message.role == Role::Assistant {
            found.add(
                Rule::ReasoningOnly,
                index,
                "the turn has nothing but reasoning",
            );
        }
        let Some([before, after]) = around(messages, index) else {
            continue;
        };
        if before.is_some_and(|before| before.role == message.role) {
            let message = "the message follows another of its role";
            found.add(Rule::Br4SameRole, index, message);
        }
        if message.role == Role::Assistant {
            let after = after.filter(|after| is_users(after.role));
            if message.has_results() {
                let message = "a result is in an assistant message";
                found.add(Rule::Br2ExtraResult, index, message);
            }
            if compare(Some(message), after, false).open > 0 {
                let message = "a call has no result in the next message";
                found.add(Rule::Br1UnansweredCall, index, message);
            }
            continue;
        }
        let match_ = compare(before, Some(message), false);
        if match_.extra > 0 {
            let message = "a result answers no call of the message before";
            found.add(Rule::Br2ExtraResult, index, message);
        }
        if match_.is_late {
            let message = "something stands before a result";
            found.add(Rule::An1ResultsNotFirst, index, message);
        }
        if message.has_calls() {
            let message = "a call is in a user message, where nothing answers it";
            found.add(Rule::Br1UnansweredCall, index, message);
        }
    }
}
