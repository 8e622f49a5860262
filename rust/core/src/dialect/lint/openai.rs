//! OC1, OC2, OC4, OC5: calls are answered at once, results answer something, content is there.

use super::{Answer, Call, Calls, Findings, Rule, calls_of, is_blank};
use crate::dialect::Traits;
use crate::dialect::repair::is_legacy_result;
use crate::error::Result;
use crate::message::{Body, Message, PartKind, Place, Role};
use crate::node::{Node, Text};

pub(super) fn check<N: Node>(
    messages: &[Result<Message<N::Text>>],
    nodes: &[N],
    traits: Traits,
    found: &mut Findings,
) {
    let said = messages.iter().position(|message| {
        message
            .as_ref()
            .map_or(true, |message| !message.role.is_instruction())
    });
    if let Some(index) = said
        && let Ok(first) = &messages[index]
        && first.role == Role::Assistant
    {
        let message = "the first message besides instructions is the assistant's";
        found.add(Rule::StartsWithoutUser, index, message);
    }
    // The single call of old is answered by a `function` message, others by `tool` messages.
    let mut calls: Calls<'_, N::Text> = Calls::new(false);
    let mut legacy: Calls<'_, N::Text> = Calls::new(false);
    // Behind a message that could not be read any result may be right.
    let mut is_blind = false;
    for (index, message) in messages.iter().enumerate() {
        let Ok(message) = message else {
            calls = Calls::new(false);
            legacy = Calls::new(false);
            is_blind = true;
            continue;
        };
        check_content(message, index, found);
        let has_reasoning = || {
            let mut parts = message.parts.iter();
            parts.any(|part| part.kind == PartKind::Reasoning)
        };
        if traits.reasoning_with_calls && message.has_calls() && !has_reasoning() {
            let message = "calls lost the reasoning that came with them";
            found.add(Rule::Oc5LostReasoning, index, message);
        }
        if message.role == Role::Tool {
            let asked = if is_legacy_result(&nodes[index]) {
                &mut legacy
            } else {
                &mut calls
            };
            for result in &message.parts {
                let sentence = match asked.answer(result.key.as_deref()) {
                    Answer::Unknown if !is_blind => "the result answers no call right before it",
                    Answer::Answered => "the call has its result already",
                    Answer::Open | Answer::Unknown => continue,
                };
                found.add(Rule::Oc2OrphanResult, index, sentence);
            }
            continue;
        }
        report_open(&mut calls, found);
        report_open(&mut legacy, found);
        is_blind = false;
        if message.role == Role::Assistant {
            for call in calls_of(message, index) {
                let asked = if call.is_legacy {
                    &mut legacy
                } else {
                    &mut calls
                };
                asked.push(call);
            }
        }
    }
    report_open(&mut calls, found);
    report_open(&mut legacy, found);
}

fn report_open<T: Text>(calls: &mut Calls<'_, T>, found: &mut Findings) {
    for call in calls.drain_open() {
        let Call { number, total, .. } = call;
        let message = format!("call {number} of {total} has no tool message right after");
        found.add(Rule::Oc1UnansweredCall, call.index, message);
    }
}

fn check_content<T: Text>(message: &Message<T>, index: usize, found: &mut Findings) {
    let mut has_content = false;
    let mut is_blank_text = false;
    let mut has_data_arguments = false;
    for part in &message.parts {
        match (part.kind, &part.body) {
            (PartKind::Reasoning, _) | (PartKind::Result, Body::Empty) => continue,
            // An empty string beside calls is as good as null.
            (PartKind::Text, Body::Text(text)) => {
                let beside = part.place == Place::Content && message.parts.len() > 1;
                is_blank_text |= !beside && is_blank(text);
            }
            (PartKind::Call, Body::Value(_)) => has_data_arguments = true,
            _ => {}
        }
        has_content = true;
    }
    if !has_content {
        let role = message.role.name();
        let message = format!("the {role} message has no content and no calls");
        found.add(Rule::Oc4MissingContent, index, message);
    }
    if is_blank_text {
        found.add(Rule::BlankText, index, "a text is blank");
    }
    if has_data_arguments {
        let message = "the arguments of a call are no string";
        found.add(Rule::ArgumentsNotText, index, message);
    }
}
