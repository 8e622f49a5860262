//! OC1, OC2, OC4: calls are answered at once, results answer something, content is there.

use super::{Answer, Call, Findings, Rule, answer, calls_of};
use crate::error::Result;
use crate::message::{Body, Message, PartKind, Role};
use crate::node::Text;

pub(super) fn check<T: Text>(messages: &[Result<Message<T>>], found: &mut Findings) {
    let mut calls: Vec<Call<'_, T>> = Vec::new();
    // Behind a message that could not be read any result may be right.
    let mut is_blind = false;
    for (index, message) in messages.iter().enumerate() {
        let Ok(message) = message else {
            calls.clear();
            is_blind = true;
            continue;
        };
        check_content(message, index, found);
        if message.role == Role::Tool {
            for result in &message.parts {
                let sentence = match answer(&mut calls, result.key.as_deref()) {
                    Answer::Unknown if !is_blind => "the result answers no call right before it",
                    Answer::Answered => "the call has its result already",
                    Answer::Open | Answer::Unknown => continue,
                };
                found.add(Rule::Oc2OrphanResult, index, sentence);
            }
            continue;
        }
        report_open(&calls, found);
        is_blind = false;
        calls.clear();
        if message.role == Role::Assistant {
            calls.extend(calls_of(message, index));
        }
    }
    report_open(&calls, found);
}

fn report_open<T>(calls: &[Call<'_, T>], found: &mut Findings) {
    for call in calls.iter().filter(|call| !call.is_answered) {
        let Call { number, total, .. } = call;
        let message = format!("call {number} of {total} has no tool message right after");
        found.add(Rule::Oc1UnansweredCall, call.index, message);
    }
}

fn check_content<T>(message: &Message<T>, index: usize, found: &mut Findings) {
    let has_content = message.parts.iter().any(|part| match part.kind {
        PartKind::Reasoning => false,
        PartKind::Result => !matches!(part.body, Body::Empty),
        _ => true,
    });
    if !has_content {
        let role = message.role.name();
        let message = format!("the {role} message has no content and no calls");
        found.add(Rule::Oc4MissingContent, index, message);
    }
}
