//! The plan: the level of every step, as a fold over one log.
//!
//! A plan only changes at boundaries (before an assistant message): when the history outgrows the
//! trigger, levels fall until the target is met. Between boundaries it grows by what is appended.
//! Cost: an append is O(1); a compaction looks at the steps that are not gone, so folding a whole
//! log is linear in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::dialect::Dialect;
use crate::event::Summary;
use crate::level::{Fidelity, Level, Reason};
use crate::message::Role;
use crate::node::Text;
use crate::page::PageKey;
use crate::policy::Policy;
use crate::salience::index::LineAt;
use crate::salience::signals::Signals;
use crate::shrink::PartEdit;
use crate::strategy::price::{Prices, Rewrite};
use crate::tokens::{Counter, Scale};
use crate::transcript::Transcript;

/// The settings of a log at one point, resolved.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The dialect.
    pub dialect: Dialect,
    /// Counts every text.
    pub counter: Counter,
    /// Input tokens of the whole request.
    pub budget: u64,
    /// How room is made.
    pub policy: Arc<Policy>,
    /// Tokens of a system prompt outside the messages.
    pub system_tokens: u64,
    /// Tokens of the tool definitions.
    pub tools_tokens: u64,
    /// Tokens that every request costs beside its messages.
    pub request_tokens: u32,
    /// Tokens of a message around its content, for messages that are put in.
    pub message_tokens: u32,
    /// How far the provider's counts are from ours, once that was observed.
    pub calibration: Option<Scale>,
    /// Key of the page pointers.
    pub key: PageKey,
    /// What the model's input costs.
    pub prices: Prices,
}

impl Settings {
    /// The upper estimate of a count: `ceil(tokens * (1 + margin))`, calibrated if that was observed.
    pub fn upper(&self, tokens: u64) -> u64 {
        let margin = self.counter.margin();
        match &self.calibration {
            None => (tokens as f64 * (1.0 + margin)).ceil() as u64,
            Some(scale) => scale.upper(tokens, margin),
        }
    }

    /// The most tokens whose upper estimate is within the budget; 0 if there are none.
    pub fn room(&self) -> u64 {
        if self.calibration.is_none() {
            let mut room = (self.budget as f64 / (1.0 + self.counter.margin())).floor() as u64;
            while room > 0 && self.upper(room) > self.budget {
                room -= 1;
            }
            return room;
        }
        // The upper estimate grows with the tokens, but not by the same slope everywhere.
        let (mut fits, mut too_many) = (0, self.budget.saturating_mul(16).saturating_add(16));
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            if self.upper(middle) <= self.budget {
                fits = middle;
            } else {
                too_many = middle;
            }
        }
        fits
    }

    /// The upper estimate of one message or several: without what is in every request alike.
    pub fn upper_part(&self, tokens: u64) -> u64 {
        let margin = self.counter.margin();
        let (factor, margin) = match &self.calibration {
            None => (1.0, margin),
            Some(scale) => (scale.factor, scale.margin.unwrap_or(margin)),
        };
        (tokens as f64 * factor * (1.0 + margin)).ceil() as u64
    }

    /// Tokens of everything that is not history.
    pub fn base_tokens(&self) -> u64 {
        self.system_tokens + self.tools_tokens + u64::from(self.request_tokens)
    }
}

/// A step that is in the window.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Index of the step.
    pub step: u32,
    /// How much of it is shown.
    pub level: Level,
    /// Tokens it takes, placeholders included.
    pub tokens: u32,
    /// What differs from the original.
    pub edits: Arc<[PartEdit]>,
    /// Whether its open calls have placeholder results, since nobody will answer them.
    pub closed: bool,
    /// Tokens of those placeholder results.
    pub placeholder_tokens: u32,
}

impl Shown {
    /// A step as it came, without placeholders.
    fn verbatim(step: u32, tokens: u32) -> Self {
        Self {
            step,
            level: Level::Verbatim,
            tokens,
            edits: Arc::new([]),
            closed: false,
            placeholder_tokens: 0,
        }
    }
}

/// Content that was paged in, shown after a message until the next compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recall {
    /// Raw index of the message before which it stands: where its event was, or behind the
    /// results that were still to come there.
    pub at: u32,
    /// The fenced text.
    pub text: Arc<str>,
    /// Tokens it adds to the window.
    pub tokens: u32,
    /// The step that a pin will restore at the next compaction, if a pin asked for it.
    pub restores: Option<u32>,
    /// The lines it shows, if they came back by themselves.
    pub(crate) lines: Arc<[LineAt]>,
}

impl Recall {
    /// Whether it came back by itself, because the newest messages need it.
    pub fn is_automatic(&self) -> bool {
        !self.lines.is_empty()
    }
}

/// The note that leads to everything that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The fenced text.
    pub text: Arc<str>,
    /// Tokens it adds to the window.
    pub tokens: u32,
}

/// Where a step ended up, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// Its level.
    pub level: Level,
    /// Why.
    pub reason: Reason,
    /// The compaction that decided it, from 1; 0 if none has yet.
    pub compaction: u32,
}

/// The level of every step, with all that follows from it.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Shared, like the fates: a plan is copied for every pending boundary that changes something.
    pub(crate) shown: Arc<Vec<Shown>>,
    pub(crate) fates: Arc<Vec<Fate>>,
    pub(crate) recalls: Vec<Recall>,
    pub(crate) root: Option<Root>,
    /// The newest summary, which stands in the root note.
    pub(crate) summary: Option<Arc<Summary>>,
    pub(crate) pins: BTreeSet<u32>,
    /// Steps in the window by level: verbatim, trimmed, stub.
    pub(crate) levels: [u32; 3],
    pub(crate) gone_steps: u32,
    pub(crate) gone_tokens: u64,
    pub(crate) history_tokens: u64,
    /// Tokens of the message in front of an assistant message that would open the window.
    pub(crate) opener_tokens: u32,
    pub(crate) compactions: u32,
    /// What each of them cost.
    pub(crate) rewrites: Vec<Rewrite>,
    /// Calls so far.
    pub(crate) calls: u32,
    /// Whether the provider's cache was lost since the newest call.
    pub(crate) is_cold: bool,
    /// Tokens of the window when it was last asked whether a compaction pays.
    pub(crate) tried: u64,
    /// Value per token of the last line that the newest compaction kept.
    pub(crate) density: f64,
    /// Messages at that compaction, and whether they are a dialogue: what is gone is judged by them
    /// until the next.
    pub(crate) judged: (u32, bool),
    /// What the newest compaction's choice is worth, and what no choice can exceed.
    pub(crate) worth: (f64, f64),
    /// See [`Plan::revision`].
    pub(crate) revision: u64,
    /// First step whose rendering the newest revision changed.
    pub(crate) changed_from: u32,
}

/// An earlier state of a plan, see [`Plan::snapshot`].
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// Everything but the fates.
    plan: Plan,
    /// The fates that can change: a step that is gone and not pinned stays gone.
    fates: Vec<(u32, Fate)>,
    /// How many steps there were.
    steps: usize,
}

impl Snapshot {
    /// The plan as it was, without its fates.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }
}

impl Plan {
    /// The steps in the window, in order.
    pub fn shown(&self) -> &[Shown] {
        &self.shown
    }

    /// One fate per step.
    pub fn fates(&self) -> &[Fate] {
        &self.fates
    }

    /// Recalled content that is in the window.
    pub fn recalls(&self) -> &[Recall] {
        &self.recalls
    }

    /// The note that leads to what is gone, if anything is.
    pub fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    /// The newest summary, if it is in the window.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_deref()
    }

    /// Whether a note of satchel's opens the window, because a user must.
    pub fn has_opener(&self) -> bool {
        self.opener_tokens > 0
    }

    /// Tokens of what came back by itself: it goes at the next compaction and does not cause one.
    pub(crate) fn automatic_tokens(&self) -> u64 {
        let automatic = self.recalls.iter().filter(|recall| recall.is_automatic());
        automatic.map(|recall| u64::from(recall.tokens)).sum()
    }

    /// Tokens of the history as the window shows it, before neighbours are joined.
    pub fn history_tokens(&self) -> u64 {
        self.history_tokens
    }

    /// How many compactions there were.
    pub fn compactions(&self) -> u32 {
        self.compactions
    }

    /// What each compaction cost, in order.
    pub fn rewrites(&self) -> &[Rewrite] {
        &self.rewrites
    }

    /// Changes whenever something in the window before the newest folded boundary did.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// What the lines are worth that the newest compaction chose, and what no choice within its room
    /// could exceed: sums of likelihoods.
    pub fn worth(&self) -> (f64, f64) {
        self.worth
    }

    /// Steps pinned by events.
    pub fn pins(&self) -> &BTreeSet<u32> {
        &self.pins
    }

    /// Steps that are gone, in order.
    pub fn gone(&self) -> impl Iterator<Item = usize> + '_ {
        self.fates
            .iter()
            .enumerate()
            .filter(|(_, fate)| fate.level == Level::Gone)
            .map(|(step, _)| step)
    }

    /// Steps by level: verbatim, trimmed, stub, gone.
    pub fn count_levels(&self) -> [u32; 4] {
        let [verbatim, trimmed, stub] = self.levels;
        [verbatim, trimmed, stub, self.gone_steps]
    }

    /// The entry of a step, if it is in the window.
    pub fn find(&self, step: u32) -> Option<&Shown> {
        self.shown
            .binary_search_by_key(&step, |shown| shown.step)
            .ok()
            .map(|at| &self.shown[at])
    }

    /// Takes in a message of `tokens` that started a step or joined the newest one, which takes
    /// `step_tokens` with it.
    pub(crate) fn grow(&mut self, step: u32, tokens: u32, step_tokens: u32) {
        let fate = self.fates.get(step as usize);
        if fate.is_some_and(|fate| fate.level == Level::Gone) {
            // A summary covered it, and it goes on: what joins it cannot stand without it.
            self.decide(step, Level::Verbatim, Reason::NoPressure);
            let before = u64::from(step_tokens - tokens);
            self.gone_steps -= 1;
            self.gone_tokens -= before;
            self.history_tokens += u64::from(step_tokens);
            self.levels[0] += 1;
            Arc::make_mut(&mut self.shown).push(Shown::verbatim(step, step_tokens));
            self.touch(step);
            return;
        }
        self.history_tokens += u64::from(tokens);
        let shown = Arc::make_mut(&mut self.shown);
        match shown.last_mut() {
            Some(last) if last.step == step => {
                last.tokens += tokens;
            }
            _ => {
                self.levels[0] += 1;
                shown.push(Shown::verbatim(step, tokens));
                Arc::make_mut(&mut self.fates).push(Fate {
                    level: Level::Verbatim,
                    reason: Reason::NoPressure,
                    compaction: 0,
                });
            }
        }
    }

    /// Adds the placeholder results of the newest step, whose open calls nobody will answer. It
    /// began at the newest boundary, so nothing before that changes.
    pub(crate) fn close_newest(&mut self, placeholder_tokens: u32) {
        if let Some(last) = Arc::make_mut(&mut self.shown).last_mut() {
            last.closed = true;
            last.placeholder_tokens += placeholder_tokens;
            last.tokens += placeholder_tokens;
            self.history_tokens += u64::from(placeholder_tokens);
        }
    }

    /// What it takes to undo everything that appends and a compaction do. Costs in proportion to
    /// the window, not to the history.
    pub(crate) fn snapshot(&mut self) -> Snapshot {
        let fates = std::mem::take(&mut self.fates);
        let plan = self.clone();
        self.fates = fates;
        let steps = self.shown.iter().map(|shown| shown.step);
        let changeable = steps.chain(self.pins.iter().copied());
        Snapshot {
            fates: changeable
                .filter_map(|step| Some((step, *self.fates.get(step as usize)?)))
                .collect(),
            steps: self.fates.len(),
            plan,
        }
    }

    /// Goes back to a snapshot.
    pub(crate) fn restore(&mut self, snapshot: Snapshot) {
        let mut fates = std::mem::take(&mut self.fates);
        let own = Arc::make_mut(&mut fates);
        own.truncate(snapshot.steps);
        for (step, fate) in snapshot.fates {
            if let Some(slot) = own.get_mut(step as usize) {
                *slot = fate;
            }
        }
        *self = snapshot.plan;
        self.fates = fates;
    }

    /// Notes where the compaction that is running leaves a step, and why.
    pub(crate) fn decide(&mut self, step: u32, level: Level, reason: Reason) {
        let compaction = self.compactions;
        if let Some(fate) = Arc::make_mut(&mut self.fates).get_mut(step as usize) {
            *fate = Fate {
                level,
                reason,
                compaction,
            };
        }
    }

    /// Notes that the rendering changed from `step` on.
    pub(crate) fn touch(&mut self, step: u32) {
        self.revision += 1;
        self.changed_from = self.changed_from.min(step);
    }

    /// Sums the history again after steps changed.
    pub(crate) fn sum(&mut self) {
        self.levels = [0; 3];
        for shown in self.shown.iter() {
            if let Some(count) = self
                .levels
                .get_mut(Level::Verbatim as usize - shown.level as usize)
            {
                *count += 1;
            }
        }
        self.history_tokens = self
            .shown
            .iter()
            .map(|shown| u64::from(shown.tokens))
            .sum::<u64>()
            + self
                .recalls
                .iter()
                .map(|recall| u64::from(recall.tokens))
                .sum::<u64>()
            + self.root.as_ref().map_or(0, |root| u64::from(root.tokens))
            + u64::from(self.opener_tokens);
    }
}

/// Why a step must stay verbatim, if it must.
pub fn hard_reason<T: Text>(
    transcript: &Transcript<T>,
    pins: &BTreeSet<u32>,
    step: u32,
) -> Option<Reason> {
    let bounds = transcript.steps().get(step as usize)?;
    let role = transcript.rows()[bounds.first as usize].role;
    let holds = |message: Option<usize>| {
        message
            .is_some_and(|message| (bounds.first as usize..bounds.end as usize).contains(&message))
    };
    if role.is_instruction() {
        Some(Reason::Instruction)
    } else if holds(transcript.goal()) && !bounds.has_calls {
        Some(Reason::Goal)
    } else if holds(transcript.newest_user()) && !bounds.has_calls {
        Some(Reason::NewestUser)
    } else if pins.contains(&step) {
        Some(Reason::Pinned)
    } else {
        None
    }
}

/// Whether the texts of this message stay although its step may be lowered: the newest user
/// message (or the goal) when it came in one message with results.
pub fn is_protected<T: Text>(transcript: &Transcript<T>, message: usize) -> bool {
    transcript.newest_user() == Some(message) || transcript.goal() == Some(message)
}

/// Whether the wording of a step counts.
pub fn fidelity<T: Text>(transcript: &Transcript<T>, step: u32) -> Fidelity {
    let exact = transcript.steps().get(step as usize).is_some_and(|bounds| {
        transcript.rows()[bounds.first as usize..bounds.end as usize]
            .iter()
            .any(|row| row.is_user || row.role.is_instruction())
    });
    if exact {
        Fidelity::Exact
    } else {
        Fidelity::Approximate
    }
}

/// How many of the newest steps count as fresh for an unsolved error.
const FRESH_STEPS: u32 = 6;

/// How telling a step looks by its age, role and signals, in 0..1, as `policy.salience` weighs it.
/// A description for reports: the planner chooses lines by what they hold.
pub fn salience<T: Text>(transcript: &Transcript<T>, policy: &Policy, step: u32) -> f64 {
    let weights = &policy.salience;
    let Some(bounds) = transcript.steps().get(step as usize) else {
        return 0.0;
    };
    let messages = bounds.first as usize..bounds.end as usize;
    let age = (transcript.steps().len() as u32 - 1).saturating_sub(step);
    let recency = 1.0 / (1.0 + f64::from(age) / weights.half_life);
    let mut said = Signals::default();
    let mut seen = Signals::default();
    let mut role = 0.0f64;
    for message in messages {
        let (row, signals) = (transcript.rows()[message], transcript.signals(message));
        if row.role == Role::Tool || (row.role == Role::User && !row.is_user) {
            seen = seen.union(signals);
        } else {
            said = said.union(signals);
        }
        role = role.max(match row.role {
            Role::User if row.is_user => 1.0,
            Role::Assistant if !bounds.has_calls => 0.6,
            Role::System | Role::Developer => 1.0,
            _ => 0.4,
        });
    }
    let decided = said.contains(Signals::DECISION) || said.contains(Signals::CONSTRAINT);
    let failed =
        age < FRESH_STEPS && (seen.contains(Signals::ERROR) || seen.contains(Signals::FAILED));
    let sum = weights.recency * recency
        + weights.role * role
        + weights.decision * f64::from(u8::from(decided))
        + weights.error * f64::from(u8::from(failed));
    sum.clamp(0.0, 1.0)
}
