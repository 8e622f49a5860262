//! AN6, AN9: what the request before says about kept reasoning.
//!
//! Reasoning of the request before that is still there was made before the first change: it is
//! bound to what stood before it then. Reasoning that is new was made after the change.

use std::collections::BTreeSet;

use super::{Findings, Request, Rule};
use crate::dialect::Dialect;
use crate::dialect::repair::marks::MARK;
use crate::node::{Node, Text, Value};

/// One message as canonical JSON without cache marks, its reasoning apart.
struct Canon {
    is_assistant: bool,
    whole: String,
    reasoning: Vec<String>,
    rest: Vec<String>,
}

pub(super) fn check<N: Node>(
    dialect: Dialect,
    request: &Request<'_, N>,
    previous: &[N],
    found: &mut Findings,
) {
    if dialect != Dialect::Anthropic {
        return;
    }
    let (Some(now), Some(before)) = (canons(request.messages), canons(previous)) else {
        return;
    };
    if let Some(latest) = now.iter().rposition(|canon| canon.is_assistant)
        && let Some(same) = before.get(latest)
        && same.rest == now[latest].rest
        && same.reasoning != now[latest].reasoning
    {
        let message = "the reasoning of the newest assistant message was changed";
        found.add(Rule::An6ChangedReasoning, latest, message);
    }
    if !request.traits.prefix_bound_reasoning {
        return;
    }
    let common = if request.same_prompt {
        let pairs = now.iter().zip(&before);
        pairs
            .take_while(|(now, before)| now.whole == before.whole)
            .count()
    } else {
        0
    };
    let bound: BTreeSet<&String> = before.iter().flat_map(|canon| &canon.reasoning).collect();
    for (index, canon) in now.iter().enumerate().skip(common) {
        if canon.reasoning.iter().any(|block| bound.contains(block)) {
            let message = if request.same_prompt {
                format!("message {common} or what stood there has changed before it")
            } else {
                "the system prompt or the tools have changed before it".to_owned()
            };
            found.add(Rule::An9ChangedPrefix, index, message);
        }
    }
}

fn canons<N: Node>(messages: &[N]) -> Option<Vec<Canon>> {
    messages.iter().map(canon).collect()
}

fn canon<N: Node>(message: &N) -> Option<Canon> {
    let value = message.capture().ok()?;
    let mut whole = String::new();
    write(&value, &mut whole);
    let (mut reasoning, mut rest) = (Vec::new(), Vec::new());
    for block in value.get("content").map_or(&[][..], Value::items) {
        let is = |name: &str| {
            let kind = block.get("type").and_then(Value::as_text);
            kind.is_some_and(|kind| kind.with(|kind| kind == name))
        };
        let mut out = String::new();
        write(block, &mut out);
        if is("thinking") || is("redacted_thinking") {
            reasoning.push(out);
        } else {
            rest.push(out);
        }
    }
    Some(Canon {
        is_assistant: message
            .get("role")
            .is_some_and(|role| role.is_str("assistant")),
        whole,
        reasoning,
        rest,
    })
}

/// Canonical JSON without cache marks, which the provider does not compare.
fn write<T: Text>(value: &Value<T>, out: &mut String) {
    match value {
        Value::List(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            for (key, value) in entries {
                if key.with(|key| key == MARK) {
                    continue;
                }
                key.write_json(out);
                out.push(':');
                write(value, out);
                out.push(',');
            }
            out.push('}');
        }
        other => other.write_json(out),
    }
}
