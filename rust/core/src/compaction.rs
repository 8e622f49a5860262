//! Compaction: at a boundary, when the history has outgrown its trigger, levels fall.
//!
//! Pinned are the system prompt, the tools, the request's overhead and the hard messages. When
//! what is left exceeds `trigger × (budget − pinned)`, levels fall until it is within
//! `target × (budget − pinned)`, which is a ceiling, not a quota. The newest step never goes.

use std::cell::RefCell;
use std::sync::Arc;

use crate::dialect::form::OPENER;
use crate::error::Result;
use crate::keep::{Outcome, Room, Squeeze, keep, shorten};
use crate::level::{Level, Reason};
use crate::message::Role;
use crate::node::Text;
use crate::placeholder::placeholder_tokens;
use crate::plan::{Plan, Settings, Shown, Snapshot, hard_reason, is_protected};
use crate::policy::Strategy;
use crate::root::{is_root_message, root_note, root_of, short_root};
use crate::salience::index::Index;
use crate::shortfall::Shortfall;
use crate::strategy::clearing;
use crate::strategy::price::{Cause, rewrite};
use crate::transcript::Transcript;

/// Checks the boundary before message `at` and lowers levels if it must and if that saves tokens.
///
/// Returns what does not fit, if the window stays over budget.
///
/// # Errors
/// `counter_failed`, only from a foreign counter; nothing is changed then.
pub fn check_boundary<T: Text>(
    plan: &mut Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
    index: &mut Index,
    at: usize,
) -> Result<Option<Shortfall>> {
    let Some(Pressure { room, free, cause }) = pressure(plan, transcript, settings, 0) else {
        return Ok(None);
    };
    let policy = &settings.policy;
    let share = if transcript.is_conversation() {
        policy.target_of_conversation(free)
    } else {
        policy.target_of_run(free, growth(plan, transcript))
    };
    let compaction = Compaction {
        transcript,
        settings,
        index: RefCell::new(index),
        at,
        room,
        free,
        share,
        cause,
    };
    let before = compaction.total(plan);
    let is_crowded = is_crowded(plan, transcript, settings);
    let snapshot = plan.snapshot();
    if let Err(error) = compaction.run(plan, &snapshot) {
        plan.restore(snapshot);
        return Err(error);
    }
    let mut total = compaction.total(plan);
    let smallest = total.min(before);
    let changed = compaction.first_change(snapshot.plan(), plan);
    let cost = rewrite(plan, transcript, settings, (before, changed, at), cause);
    let is_worth_it = match cause {
        Cause::Priced => total < before && cost.pays(),
        _ => total < before || (is_crowded && (total <= room || before > room)),
    };
    if is_worth_it {
        plan.rewrites.push(cost);
    } else {
        // The note would take more than what it stands for: the window stays as it is.
        plan.restore(snapshot);
        total = before;
    }
    plan.tried = total;
    Ok((total > room).then(|| Shortfall::of(plan, transcript, settings, smallest)))
}

/// Whether a boundary now would lower levels.
pub fn needs_compaction<T: Text>(
    plan: &Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
) -> bool {
    pressure(plan, transcript, settings, 0).is_some()
}

/// The same for a window with so many more tokens.
pub(crate) fn may_need_compaction<T: Text>(
    plan: &Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
    more: u64,
) -> bool {
    pressure(plan, transcript, settings, more).is_some()
}

/// Why levels should fall, and the room that there is.
struct Pressure {
    room: u64,
    /// Its part that is not pinned.
    free: u64,
    cause: Cause,
}

/// Whether the history, with so many more tokens, has outgrown a trigger, or room should be made
/// before it has.
fn pressure<T: Text>(
    plan: &Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
    more: u64,
) -> Option<Pressure> {
    let room = settings.room();
    let total = (settings.base_tokens() + plan.history_tokens).saturating_add(more);
    let own = total - plan.automatic_tokens();
    let policy = &settings.policy;
    let is_due = is_crowded(plan, transcript, settings)
        || (policy.strategy == Strategy::ClearToolUses
            && clearing::is_due(plan, transcript, settings));
    let is_early = plan.is_cold || may_pay(plan, transcript, settings, total);
    let least = if is_early {
        policy
            .target_of_conversation(room)
            .min(policy.own_trigger())
    } else {
        policy.own_trigger()
    };
    // total − p > least × (room − p) cannot hold for any p ≥ 0 below this line: no sum needed.
    if !is_due && total <= room && own as f64 <= least * room as f64 {
        return None;
    }
    let pinned = settings.base_tokens() + hard_tokens(plan, transcript);
    let free = room.saturating_sub(pinned);
    let is_above = |share: f64| own.saturating_sub(pinned) as f64 > share * free as f64;
    let cause = if total > room || is_above(policy.own_trigger()) {
        Cause::Forced
    } else if is_due {
        Cause::Preset
    } else if !is_early || !is_above(policy.target_of_conversation(free)) {
        return None;
    } else if plan.is_cold {
        Cause::Cold
    } else {
        Cause::Priced
    };
    Some(Pressure { room, free, cause })
}

/// How much the window grows until it is asked again whether a compaction pays: a share of the room,
/// since the answer takes as long as a compaction.
const ASK_AGAIN: u64 = 32;

/// Whether it may pay to make room before that is needed. Where reasoning is bound to its prefix it
/// is kept to the end of the turn.
fn may_pay<T: Text>(
    plan: &Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
    total: u64,
) -> bool {
    let is_turn = || {
        transcript
            .newest_user()
            .is_some_and(|message| message + 1 == transcript.len())
    };
    settings.policy.cache.priced
        && total > plan.tried + settings.room() / ASK_AGAIN
        && (!settings.prices.binds_reasoning || is_turn())
}

/// Whether the window holds more messages than its policy wants.
fn is_crowded<T: Text>(plan: &Plan, transcript: &Transcript<T>, settings: &Settings) -> bool {
    let policy = &settings.policy;
    policy.strategy == Strategy::SlidingWindow
        && policy.max_messages.is_some_and(|most| {
            let note = plan.root.is_some() && is_root_message(settings, transcript);
            counted_messages(plan, transcript) + u32::from(note) > most
        })
}

fn counted_messages<T: Text>(plan: &Plan, transcript: &Transcript<T>) -> u32 {
    plan.shown
        .iter()
        .map(|shown| step_messages(transcript, shown.step))
        .sum()
}

/// Messages of a step besides system and developer messages.
fn step_messages<T: Text>(transcript: &Transcript<T>, step: u32) -> u32 {
    let bounds = transcript.steps()[step as usize];
    if transcript.rows()[bounds.first as usize]
        .role
        .is_instruction()
    {
        0
    } else {
        bounds.end - bounds.first
    }
}

pub(crate) fn hard_tokens<T: Text>(plan: &Plan, transcript: &Transcript<T>) -> u64 {
    plan.shown
        .iter()
        .filter(|shown| hard_reason(transcript, &plan.pins, shown.step).is_some())
        .map(|shown| u64::from(shown.tokens))
        .sum()
}

/// Tokens that a call and what answers it have added so far, on average.
fn growth<T: Text>(plan: &Plan, transcript: &Transcript<T>) -> u64 {
    let soft = plan
        .shown
        .iter()
        .filter(|shown| hard_reason(transcript, &plan.pins, shown.step).is_none());
    let shown: u64 = soft
        .map(|shown| u64::from(transcript.steps()[shown.step as usize].tokens))
        .sum();
    (shown + plan.gone_tokens) / u64::from(transcript.replies().max(1))
}

fn shown_tokens(plan: &Plan, entries: &[usize]) -> u64 {
    let tokens = entries.iter().map(|&at| u64::from(plan.shown[at].tokens));
    tokens.sum()
}

struct Compaction<'a, T> {
    transcript: &'a Transcript<T>,
    settings: &'a Settings,
    /// Read up to `at` by the first choice of lines; policies that rank nothing never ask it.
    index: RefCell<&'a mut Index>,
    at: usize,
    room: u64,
    free: u64,
    /// Share of `free` that levels fall to.
    share: f64,
    cause: Cause,
}

impl<T: Text> Compaction<'_, T> {
    fn run(&self, plan: &mut Plan, before: &Snapshot) -> Result<()> {
        plan.compactions += 1;
        plan.recalls.retain(|recall| recall.at as usize == self.at);
        self.restore_pinned(plan);
        match self.settings.policy.strategy {
            Strategy::Adaptive => self.adapt(plan, Squeeze::None)?,
            Strategy::SlidingWindow => self.slide(plan)?,
            Strategy::TokenWindow => {
                self.drop_oldest(plan, |_, _, total| total <= self.target())?;
            }
            Strategy::ClearToolUses => self.clear(plan)?,
        }
        self.settle_root(plan)?;
        settle_opener(plan, self.transcript, self.settings)?;
        plan.sum();
        // Where even what is protected is too much, ever less of it is.
        for squeeze in [Squeeze::None, Squeeze::Newest, Squeeze::All] {
            let is_done =
                squeeze == Squeeze::None && self.settings.policy.strategy == Strategy::Adaptive;
            if is_done || self.total(plan) <= self.room {
                continue;
            }
            match self.settings.policy.strategy {
                Strategy::Adaptive | Strategy::ClearToolUses => self.adapt(plan, squeeze)?,
                Strategy::SlidingWindow | Strategy::TokenWindow => self.shorten(plan, squeeze)?,
            }
            self.settle_root(plan)?;
            settle_opener(plan, self.transcript, self.settings)?;
            plan.sum();
        }
        if self.total(plan) > self.room && plan.summary.take().is_some() {
            // What a summary stands for keeps its pointers.
            self.settle_root(plan)?;
            plan.sum();
        }
        if self.total(before.plan()) > self.room {
            self.shorten_root(plan)?;
        }
        let changed = self.first_change(before.plan(), plan);
        plan.touch(changed);
        Ok(())
    }

    /// The first step whose rendering differs from before.
    fn first_change(&self, before: &Plan, plan: &Plan) -> u32 {
        let same = before
            .shown
            .iter()
            .zip(plan.shown.iter())
            .take_while(|(old, new)| old.step == new.step && old.edits == new.edits)
            .count();
        let changed = plan.shown.get(same).map_or(u32::MAX, |shown| shown.step);
        if before.root == plan.root {
            return changed;
        }
        // The note stands after the goal, or inside it.
        let goal = self
            .transcript
            .goal()
            .map_or(0, |goal| self.transcript.rows()[goal].step);
        let note = if self.settings.dialect.notes_inside() {
            goal
        } else {
            goal + 1
        };
        changed.min(note)
    }

    fn total(&self, plan: &Plan) -> u64 {
        self.settings.base_tokens() + plan.history_tokens
    }

    fn target(&self) -> u64 {
        let pinned = self.room - self.free;
        pinned + (self.share * self.free as f64) as u64
    }

    /// Puts pinned steps back as they were.
    fn restore_pinned(&self, plan: &mut Plan) {
        for step in plan.pins.clone() {
            let Some(bounds) = self.transcript.steps().get(step as usize) else {
                continue;
            };
            let verbatim = Shown {
                step,
                level: Level::Verbatim,
                tokens: bounds.tokens,
                edits: Arc::new([]),
                closed: false,
                placeholder_tokens: 0,
            };
            let own = Arc::make_mut(&mut plan.shown);
            match own.binary_search_by_key(&step, |shown| shown.step) {
                Ok(at) if own[at].level != Level::Verbatim => {
                    let Shown {
                        closed,
                        placeholder_tokens,
                        ..
                    } = own[at];
                    let tokens = bounds.tokens + placeholder_tokens;
                    own[at] = Shown {
                        tokens,
                        closed,
                        placeholder_tokens,
                        ..verbatim
                    };
                }
                Ok(_) => continue,
                Err(at) => {
                    // Only a step that came before others can be gone, so its open calls are closed.
                    let closed = bounds.open_calls > 0;
                    let placeholder_tokens =
                        placeholder_tokens(self.settings, self.transcript, step);
                    let tokens = bounds.tokens + placeholder_tokens;
                    own.insert(
                        at,
                        Shown {
                            tokens,
                            closed,
                            placeholder_tokens,
                            ..verbatim
                        },
                    );
                    plan.gone_steps -= 1;
                    plan.gone_tokens -= u64::from(bounds.tokens);
                }
            }
            plan.decide(step, Level::Verbatim, Reason::Pinned);
            plan.recalls.retain(|recall| recall.restores != Some(step));
        }
        plan.sum();
    }

    /// Which entries of `shown` may be lowered.
    fn soft(&self, plan: &Plan) -> Vec<usize> {
        (0..plan.shown.len())
            .filter(|&at| hard_reason(self.transcript, &plan.pins, plan.shown[at].step).is_none())
            .collect()
    }

    /// Whether a soft step may shrink but not go: the newest, and one that holds the goal or the
    /// newest words of the user beside results.
    fn must_stay(&self, step: u32) -> bool {
        let bounds = self.transcript.steps()[step as usize];
        step == self.newest_step()
            || (bounds.first as usize..bounds.end as usize)
                .any(|message| is_protected(self.transcript, message))
    }

    fn newest_step(&self) -> u32 {
        (self.transcript.steps().len() as u32).saturating_sub(1)
    }

    /// A level for every soft step: as much value as the target holds.
    fn adapt(&self, plan: &mut Plan, squeeze: Squeeze) -> Result<()> {
        let soft = self.soft(plan);
        let room = self.room_of(plan, &soft)?;
        let mut index = self.index.borrow_mut();
        index.advance(self.transcript, self.at);
        let mut memo = std::mem::take(&mut index.memo);
        let outcome = keep(
            self.transcript,
            self.settings,
            &index,
            &mut memo,
            plan,
            &soft,
            room,
            squeeze,
        );
        index.memo = memo;
        self.apply(plan, outcome?, index.is_dialogue());
        Ok(())
    }

    fn room_of(&self, plan: &Plan, soft: &[usize]) -> Result<Room> {
        Ok(Room {
            target: self.target().saturating_sub(self.fixed(plan, soft)?),
            free: self.free,
            budget: self.settings.budget,
        })
    }

    /// What must stay gets shorter, without a look at what it says.
    fn shorten(&self, plan: &mut Plan, squeeze: Squeeze) -> Result<()> {
        let soft = self.soft(plan);
        let room = self.room_of(plan, &soft)?;
        let (transcript, settings) = (self.transcript, self.settings);
        let outcome = shorten(transcript, settings, plan, &soft, room, squeeze)?;
        self.apply(plan, outcome, false);
        Ok(())
    }

    fn apply(&self, plan: &mut Plan, outcome: Outcome, is_dialogue: bool) {
        let mut gone = Vec::new();
        for kept in outcome.steps {
            let step = plan.shown[kept.shown].step;
            if kept.level == Level::Gone {
                gone.push(kept.shown);
                plan.decide(step, Level::Gone, Reason::Outranked);
                continue;
            }
            let shown = &mut Arc::make_mut(&mut plan.shown)[kept.shown];
            let reason = if kept.is_recent {
                Reason::Recent
            } else if kept.level == shown.level && kept.tokens == shown.tokens {
                Reason::Unchanged
            } else {
                Reason::Outranked
            };
            shown.level = kept.level;
            shown.tokens = kept.tokens;
            if shown.edits[..] != kept.edits[..] {
                shown.edits = kept.edits.into();
            }
            plan.decide(step, kept.level, reason);
        }
        plan.density = outcome.density;
        plan.judged = (self.transcript.len() as u32, is_dialogue);
        plan.worth = (outcome.value, outcome.upper_bound);
        self.remove(plan, &gone);
        plan.sum();
    }

    /// Tokens of everything but the soft steps, with the note as large as it may become.
    fn fixed(&self, plan: &Plan, soft: &[usize]) -> Result<u64> {
        let soft_tokens = shown_tokens(plan, soft);
        let summary = plan.summary.as_deref();
        let root_tokens = u64::from(root_note(summary, self.transcript, self.settings)?.tokens);
        let old_root = plan.root.as_ref().map_or(0, |root| u64::from(root.tokens));
        Ok(self.total(plan) - soft_tokens - old_root + root_tokens)
    }

    /// Takes the entries at `gone` (ascending positions in `shown`) out of the window.
    fn remove(&self, plan: &mut Plan, gone: &[usize]) {
        let (mut at, mut next) = (0, gone.iter().copied().peekable());
        let (mut steps, mut tokens) = (0, 0);
        Arc::make_mut(&mut plan.shown).retain(|shown| {
            let doomed = next.next_if_eq(&at).is_some();
            at += 1;
            if doomed {
                steps += 1;
                tokens += u64::from(self.transcript.steps()[shown.step as usize].tokens);
            }
            !doomed
        });
        plan.gone_steps += steps;
        plan.gone_tokens += tokens;
    }

    /// Old tool results go; where the budget wants room, so does what else is worth least.
    fn clear(&self, plan: &mut Plan) -> Result<()> {
        let is_forced = self.cause != Cause::Preset;
        clearing::clear(plan, self.transcript, self.settings, is_forced)?;
        if is_forced && self.total(plan) > self.target() {
            self.adapt(plan, Squeeze::None)?;
        }
        Ok(())
    }

    /// At most `max_messages`, hard ones and the note counted, and within the target.
    fn slide(&self, plan: &mut Plan) -> Result<()> {
        let most = self.settings.policy.max_messages.unwrap_or(u32::MAX);
        let trigger = self.settings.policy.own_trigger();
        let pinned = self.room - self.free;
        let over = self.total(plan).saturating_sub(pinned) as f64 > trigger * self.free as f64;
        let limit = if over { self.target() } else { self.room };
        let note = is_root_message(self.settings, self.transcript);
        self.drop_oldest(plan, |messages, is_any_gone, total| {
            messages + u32::from(note && is_any_gone) <= most && total <= limit
        })
    }

    /// Drops soft steps that may go, oldest first, until `enough(messages, is_any_gone, tokens)`.
    fn drop_oldest(&self, plan: &mut Plan, enough: impl Fn(u32, bool, u64) -> bool) -> Result<()> {
        let soft = self.soft(plan);
        let mut total = self.fixed(plan, &soft)? + shown_tokens(plan, &soft);
        let mut messages = counted_messages(plan, self.transcript);
        let mut gone = Vec::new();
        for &at in &soft {
            let step = plan.shown[at].step;
            if enough(messages, plan.gone_steps > 0 || !gone.is_empty(), total) {
                break;
            }
            if self.must_stay(step) {
                continue;
            }
            total -= u64::from(plan.shown[at].tokens);
            messages -= step_messages(self.transcript, step);
            plan.decide(step, Level::Gone, Reason::Oldest);
            gone.push(at);
        }
        self.remove(plan, &gone);
        plan.sum();
        Ok(())
    }

    /// Where nothing else can give way and the window is still too large, the note says less; its
    /// pointer always stays, since nothing else leads to what is gone.
    fn shorten_root(&self, plan: &mut Plan) -> Result<()> {
        if plan.root.is_some() && self.total(plan) > self.room {
            plan.root = Some(short_root(self.transcript, self.settings)?);
            plan.sum();
        }
        Ok(())
    }

    fn settle_root(&self, plan: &mut Plan) -> Result<()> {
        plan.root = root_of(plan, self.transcript, self.settings)?;
        Ok(())
    }
}

/// Puts a note in front of the window, or takes it away: where a user must open the conversation
/// and an assistant message would.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub fn settle_opener<T: Text>(
    plan: &mut Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
) -> Result<()> {
    let opens = |shown: &Shown| {
        let first = transcript.steps()[shown.step as usize].first;
        transcript.rows()[first as usize].role == Role::Assistant
    };
    let is_root_in_front = plan.root.is_some() && transcript.goal().is_none();
    let is_needed =
        settings.dialect.user_first() && !is_root_in_front && plan.shown.first().is_some_and(opens);
    plan.opener_tokens = if is_needed {
        settings.counter.count(OPENER)? + settings.message_tokens
    } else {
        0
    };
    Ok(())
}
