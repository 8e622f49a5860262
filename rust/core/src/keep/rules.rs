//! Which results of tools stay, keep nothing or keep little, whatever their lines are worth.

use std::collections::{BTreeMap, BTreeSet};

use crate::message::{Body, Part};
use crate::node::{Text, Value};
use crate::plan::{Plan, Settings};
use crate::policy::ToolRule;
use crate::tool_use::{PAGE_TOOL, ToolUse, tool_uses};
use crate::transcript::Transcript;

/// What a rule makes of one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    /// It stays whole while there is room for what is protected.
    Protected,
    /// None of its lines is kept once its step is lowered.
    Worthless,
    /// So many tokens of its lines are kept at most.
    AtMost(u32),
}

/// The rulings on the results of soft steps, by their parts.
///
/// A page that was read again is superseded by the newer reading, and one that was just read stays
/// whole: shortened at once, it would lead to the next call. Both unless the policy has a rule of its
/// own for that tool.
pub(super) fn rulings<T: Text>(
    transcript: &Transcript<T>,
    settings: &Settings,
    plan: &Plan,
    soft: &[usize],
) -> BTreeMap<u32, Ruling> {
    let rules = &settings.policy.tools;
    let page_rule = ToolRule {
        supersede_key: Some("pointer".to_owned()),
        ..ToolRule::default()
    };
    let newest_page_rule = ToolRule {
        protect: true,
        ..page_rule.clone()
    };
    let mut found = BTreeMap::new();
    let mut newer: BTreeSet<(String, String)> = BTreeSet::new();
    for &at in soft.iter().rev() {
        let step = plan.shown[at].step;
        let is_newest = transcript.steps()[step as usize].end as usize == transcript.len();
        if !transcript.steps()[step as usize].has_calls {
            continue;
        }
        for one in tool_uses(transcript, step).into_iter().rev() {
            let Some(tool) = one.tool.as_deref() else {
                continue;
            };
            let built_in = (tool == PAGE_TOOL).then_some(if is_newest {
                &newest_page_rule
            } else {
                &page_rule
            });
            if let Some(rule) = rules.get(tool).or(built_in) {
                let is_old = is_superseded(transcript, rule, &one, tool, &mut newer);
                if let Some(ruling) = ruling(rule, is_old) {
                    found.insert(one.result, ruling);
                }
            }
        }
    }
    found
}

fn ruling(rule: &ToolRule, is_old: bool) -> Option<Ruling> {
    if is_old || rule.exclude {
        Some(Ruling::Worthless)
    } else if rule.protect {
        Some(Ruling::Protected)
    } else {
        rule.max_tokens.map(Ruling::AtMost)
    }
}

/// Whether a newer use of the tool has the same argument; notes this one for the older ones.
fn is_superseded<T: Text>(
    transcript: &Transcript<T>,
    rule: &ToolRule,
    one: &ToolUse,
    tool: &str,
    newer: &mut BTreeSet<(String, String)>,
) -> bool {
    let value = rule.supersede_key.as_ref().and_then(|key| {
        let call = &transcript.all_parts()[one.call? as usize];
        argument(call, key)
    });
    value.is_some_and(|value| !newer.insert((tool.to_owned(), value)))
}

/// The JSON of one argument of a call.
fn argument<T: Text>(call: &Part<T>, key: &str) -> Option<String> {
    match &call.body {
        Body::Text(text) => text.with(|text| {
            let arguments: serde_json::Value = serde_json::from_str(text).ok()?;
            Some(arguments.get(key)?.to_string())
        }),
        Body::Value(value) => Some(value.get(key).map(Value::to_json)?),
        Body::Empty => None,
    }
}
