//! Clearing of tool uses: old results become one line with a pointer, their calls stay.
//!
//! A tool use is a call and its result. The newest `keep` of those in the window stay whole; of the
//! older ones, oldest first, the result is replaced, and the arguments too where asked for. Uses of
//! excluded tools and of pinned steps stay, and count among the newest. Levels only fall, so a
//! window changes only when more is cleared. Cost: in proportion to the steps in the window.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::level::{Level, Reason};
use crate::message::PartKind;
use crate::node::Text;
use crate::plan::{Plan, Settings, Shown, hard_reason};
use crate::shrink::{PartEdit, Wanted, edited};
use crate::tool_use::{ToolUse, tool_uses};
use crate::transcript::Transcript;

/// When clearing begins.
///
/// # Source
/// Anthropic, context editing page, `clear_tool_uses_20250919`: `trigger`, read 2026-08-21.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum Trigger {
    /// The request has more input tokens than this.
    InputTokens(u64),
    /// More tool uses than this are whole in the window.
    ToolUses(u64),
}

/// What `clear_at_least` means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtLeast {
    /// Nothing is cleared unless this much can be (Anthropic).
    #[default]
    Gate,
    /// Clearing stops once this much is cleared (`LangChain`); 0 for everything.
    Stop,
}

/// Whose arguments are cleared with their results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ClearInputs {
    /// Those of all tools, or of none.
    All(bool),
    /// Those of these tools.
    Of(Vec<String>),
}

/// Settings of the clearing.
///
/// # Source
/// Names and defaults: Anthropic, context editing page, `clear_tool_uses_20250919`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Clearing {
    /// When it begins.
    pub trigger: Trigger,
    /// The newest tool uses that stay whole.
    pub keep: u32,
    /// Tokens; see `clear_at_least_as`.
    pub clear_at_least: u64,
    /// What `clear_at_least` means.
    pub clear_at_least_as: AtLeast,
    /// Tools whose uses are never cleared.
    pub exclude_tools: Vec<String>,
    /// Whose arguments are cleared with their results.
    pub clear_tool_inputs: ClearInputs,
}

impl Default for Clearing {
    fn default() -> Self {
        Self {
            trigger: Trigger::InputTokens(100_000),
            keep: 3,
            clear_at_least: 0,
            clear_at_least_as: AtLeast::Gate,
            exclude_tools: Vec::new(),
            clear_tool_inputs: ClearInputs::All(false),
        }
    }
}

/// Most tools that a list of them may name: each is compared with each tool use.
const MOST_TOOLS: usize = 1_000;

impl Clearing {
    /// Checks the settings.
    ///
    /// # Errors
    /// `invalid_value` for a list of more than 1,000 tools.
    pub fn validate(&self) -> Result<()> {
        let inputs = match &self.clear_tool_inputs {
            ClearInputs::All(_) => 0,
            ClearInputs::Of(names) => names.len(),
        };
        let most = self.exclude_tools.len().max(inputs);
        if most > MOST_TOOLS {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!("policy clearing names {most} tools, most {MOST_TOOLS}"),
            ));
        }
        Ok(())
    }

    fn clears_input(&self, tool: Option<&str>) -> bool {
        match &self.clear_tool_inputs {
            ClearInputs::All(all) => *all,
            ClearInputs::Of(names) => tool.is_some_and(|tool| names.iter().any(|one| one == tool)),
        }
    }
}

fn edit_of(shown: &Shown, part: u32) -> Option<&PartEdit> {
    let at = shown.edits.binary_search_by_key(&part, |edit| edit.part);
    at.ok().and_then(|at| shown.edits.get(at))
}

/// Whether a part is one line already.
fn is_cleared(shown: &Shown, part: u32) -> bool {
    edit_of(shown, part).is_some_and(|edit| edit.kept.is_empty())
}

fn tokens_of<T: Text>(transcript: &Transcript<T>, shown: &Shown, part: u32) -> u32 {
    edit_of(shown, part).map_or(transcript.all_parts()[part as usize].tokens, |edit| {
        edit.tokens
    })
}

/// A tool use that may be cleared.
struct Candidate {
    /// Position of its step in `shown`.
    shown: usize,
    found: ToolUse,
    clears_input: bool,
}

/// The tool uses older than those that are kept and that may still be cleared, oldest first.
fn candidates<T: Text>(
    plan: &Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
) -> Vec<Candidate> {
    let clearing = &settings.policy.clearing;
    let mut kept = 0;
    let mut found = Vec::new();
    for (at, shown) in plan.shown.iter().enumerate().rev() {
        if !transcript.steps()[shown.step as usize].has_calls {
            continue;
        }
        let is_pinned = hard_reason(transcript, &plan.pins, shown.step).is_some();
        for one in tool_uses(transcript, shown.step).into_iter().rev() {
            if kept < clearing.keep {
                kept += 1;
                continue;
            }
            let tool = one.tool.as_deref();
            let is_excluded =
                tool.is_some_and(|tool| clearing.exclude_tools.iter().any(|name| name == tool));
            let result = &transcript.all_parts()[one.result as usize];
            if is_pinned || is_excluded || !result.place.is_replaceable() {
                continue;
            }
            let clears_input = clearing.clears_input(tool)
                && one.call.is_some_and(|call| {
                    let part = &transcript.all_parts()[call as usize];
                    part.place.is_replaceable() && !is_cleared(shown, call)
                });
            if !is_cleared(shown, one.result) || clears_input {
                found.push(Candidate {
                    shown: at,
                    found: one,
                    clears_input,
                });
            }
        }
    }
    found.reverse();
    found
}

/// Tool uses whose results are whole in the window.
fn whole_uses<T: Text>(plan: &Plan, transcript: &Transcript<T>) -> u64 {
    let steps = plan.shown.iter();
    let with_calls = steps.filter(|shown| transcript.steps()[shown.step as usize].has_calls);
    let count = |shown: &Shown| {
        let bounds = transcript.steps()[shown.step as usize];
        let first = transcript.part_range(bounds.first as usize).start;
        let end = transcript.part_range(bounds.end as usize - 1).end;
        let parts = (first..end).filter(|&part| {
            transcript.all_parts()[part].kind == PartKind::Result
                && edit_of(shown, part as u32).is_none()
        });
        parts.count() as u64
    };
    with_calls.map(count).sum()
}

/// Whether clearing would begin at a boundary now, by its own trigger: there is something to clear,
/// and as much of it as `clear_at_least` wants if that is a gate.
pub(crate) fn is_due<T: Text>(
    plan: &Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
) -> bool {
    let clearing = &settings.policy.clearing;
    let is_above = match clearing.trigger {
        Trigger::InputTokens(most) => settings.base_tokens() + plan.history_tokens > most,
        Trigger::ToolUses(most) => whole_uses(plan, transcript) > most,
    };
    if !is_above {
        return false;
    }
    let found = candidates(plan, transcript, settings);
    let tokens = |one: &Candidate| {
        let shown = &plan.shown[one.shown];
        let result = tokens_of(transcript, shown, one.found.result);
        let input = one.found.call.filter(|_| one.clears_input);
        let input = input.map_or(0, |call| tokens_of(transcript, shown, call));
        u64::from(result) + u64::from(input)
    };
    // Cannot save more than it has: texts need not be made to know that it is too little.
    let most: u64 = found.iter().map(tokens).sum();
    match clearing.clear_at_least_as {
        AtLeast::Gate => most > 0 && most >= clearing.clear_at_least,
        AtLeast::Stop => most > 0,
    }
}

/// Clears what may be cleared; `is_forced` if the budget wants room, whatever `clear_at_least` says.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub(crate) fn clear<T: Text>(
    plan: &mut Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
    is_forced: bool,
) -> Result<()> {
    let clearing = &settings.policy.clearing;
    let found = candidates(plan, transcript, settings);
    let mut wanted = Vec::new();
    for one in &found {
        let shown = &plan.shown[one.shown];
        if let Some(call) = one.found.call.filter(|_| one.clears_input) {
            wanted.push(Wanted::nothing(call, one.found.call_message));
        }
        if !is_cleared(shown, one.found.result) {
            wanted.push(Wanted::nothing(one.found.result, one.found.result_message));
        }
    }
    wanted.sort_unstable_by_key(|wanted| wanted.part);
    let mut made: Vec<Option<PartEdit>> = edited(transcript, settings, &wanted)?
        .into_iter()
        .map(Some)
        .collect();
    let mut take = |part: u32| {
        let at = wanted.binary_search_by_key(&part, |wanted| wanted.part);
        at.ok().and_then(|at| made[at].take())
    };
    let mut saved = 0;
    let mut changes: Vec<(usize, Shown)> = Vec::new();
    for one in found {
        let is_enough = clearing.clear_at_least_as == AtLeast::Stop
            && clearing.clear_at_least > 0
            && saved >= clearing.clear_at_least;
        if is_enough && !is_forced {
            break;
        }
        // Uses come step by step.
        if changes.last().is_none_or(|(at, _)| *at != one.shown) {
            changes.push((one.shown, plan.shown[one.shown].clone()));
        }
        let Some((_, shown)) = changes.last_mut() else {
            continue;
        };
        let input = one.found.call.filter(|_| one.clears_input);
        for part in input.into_iter().chain([one.found.result]) {
            if let Some(edit) = take(part) {
                saved += u64::from(replace(transcript, shown, edit));
            }
        }
    }
    let is_too_little =
        clearing.clear_at_least_as == AtLeast::Gate && saved < clearing.clear_at_least;
    if is_too_little && !is_forced {
        return Ok(());
    }
    for (at, shown) in changes {
        if shown.tokens < plan.shown[at].tokens {
            plan.decide(shown.step, shown.level, Reason::Cleared);
            Arc::make_mut(&mut plan.shown)[at] = shown;
        }
    }
    plan.sum();
    Ok(())
}

/// Puts one edit into a step if that saves tokens, and returns how many.
fn replace<T: Text>(transcript: &Transcript<T>, shown: &mut Shown, edit: PartEdit) -> u32 {
    let before = tokens_of(transcript, shown, edit.part);
    let Some(saved) = before.checked_sub(edit.tokens).filter(|saved| *saved > 0) else {
        return 0;
    };
    let mut edits = shown.edits.to_vec();
    match edits.binary_search_by_key(&edit.part, |edit| edit.part) {
        Ok(at) => edits[at] = edit,
        Err(at) => edits.insert(at, edit),
    }
    let level = if edits.iter().all(|edit| edit.kept.is_empty()) {
        Level::Stub
    } else {
        Level::Trimmed
    };
    shown.level = level.min(shown.level);
    shown.tokens -= saved;
    shown.edits = Arc::from(edits);
    saved
}
