//! What a caller may set about the choice. Data only: every number has its reason beside it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::salience::likelihood::Likelihood;
use crate::strategy::Clearing;
use crate::strategy::price::Cache;

/// How room is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The lines that hold what is most likely needed again, per token and each thing once; what is
    /// kept of a step makes its level.
    Adaptive,
    /// The hard parts and the newest steps, at most `max_messages` messages.
    SlidingWindow,
    /// The hard parts and the newest steps that fit.
    TokenWindow,
    /// Old tool results become one line, as `clearing` says; what is still too much falls as in
    /// `Adaptive`.
    ClearToolUses,
}

/// What is shown beside what the levels leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Select {
    /// Nothing more: windows only grow between compactions.
    #[default]
    Sticky,
    /// At every call, what fits the question best: windows are not prefix-stable.
    Relevant,
}

/// How a step's salience is put together; each weight multiplies a figure in 0..1. Salience
/// describes steps in reports; no strategy chooses by it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SalienceWeights {
    /// Newness: `1 / (1 + age / half_life)`, age in steps.
    pub recency: f64,
    /// Age in steps at which newness has fallen to one half.
    pub half_life: f64,
    /// Who speaks: user 1, assistant with text .6, tool traffic .4.
    pub role: f64,
    /// A decision or a standing instruction in user or assistant text.
    pub decision: f64,
    /// An error that is among the newest steps; an old one has usually been dealt with.
    pub error: f64,
}

impl Default for SalienceWeights {
    fn default() -> Self {
        Self {
            recency: 0.5,
            half_life: 12.0,
            role: 0.25,
            decision: 0.15,
            error: 0.1,
        }
    }
}

/// Settings of the choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Name of the preset, or the caller's own.
    pub name: String,
    /// How room is made.
    pub strategy: Strategy,
    /// Most messages in the window besides system messages, the note about what is gone counted;
    /// `sliding-window` only.
    pub max_messages: Option<u32>,
    /// Share of (budget − pinned) above which a compaction happens. 1.0: the check runs before the
    /// call on exact counts, so waiting to the last moment costs nothing.
    pub trigger: f64,
    /// Share of (budget − pinned) a compaction goes down to; a ceiling, not a quota.
    pub target: f64,
    /// The same in a conversation where (budget − pinned) is small: there a note weighs as much as a
    /// line, messages are short, and little is rewritten.
    pub small_target: f64,
    /// Tokens of (budget − pinned) below which it is small; between `target` and `small_target` in
    /// proportion.
    pub small_tokens: u32,
    /// Share of (budget − pinned) up to which the newest steps stay whole.
    pub recent: f64,
    /// Most of the newest steps that stay whole; one in a conversation where (budget − pinned) is
    /// small, since there the newest step is mostly the user's, which stays anyway.
    pub recent_steps: u32,
    /// What an identifier is worth in a piece of a long line, beside one in a whole line.
    pub fragment: f64,
    /// Share of (budget − pinned) that lines may take which come back between two compactions.
    pub recall: f64,
    /// Share of (budget − pinned) up to which the newest message stays whole.
    pub newest: f64,
    /// When a session summarises; kept for the record, the core never asks for a summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<serde_json::Value>,
    /// How the salience that reports show is put together; it decides nothing.
    pub salience: SalienceWeights,
    /// How likely an identifier is needed again: what a line is worth.
    pub likelihood: Likelihoods,
    /// Which tool uses are cleared, and when; `clear-tool-uses` only.
    pub clearing: Clearing,
    /// What holds for the results of single tools, by their names; at most 1,000.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, ToolRule>,
    /// What the choice does without; only for measurements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Ablation>,
    /// How the prompt cache is weighed.
    pub cache: Cache,
    /// What is shown beside what the levels leave.
    pub select: Select,
    /// Share of (budget − pinned) for what fits the question; levels fall within the rest.
    pub relevant: f64,
}

/// What holds for the results of one tool when levels fall by lines. Later settings give way to
/// earlier ones: superseded or excluded, protected, limited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolRule {
    /// Its results stay whole while there is room for what is protected.
    pub protect: bool,
    /// Nothing of its results is kept once their step is lowered.
    pub exclude: bool,
    /// An argument that says what a call is about: of calls with an equal one only the newest result
    /// keeps anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersede_key: Option<String>,
    /// Tokens of its lines that a lowered result keeps at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

/// What the choice does without, to see what it is worth; only for measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ablation {
    /// A name counts on every line, not only on the first that is kept.
    Coverage,
    /// Every copy of a name counts, not only the newest.
    Newest,
    /// Opening a step costs nothing.
    Opening,
}

/// The likelihoods for the two kinds of conversation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Likelihoods {
    /// Runs of agents.
    pub agent: Likelihood,
    /// Conversations where more than a fifth of the messages begin a turn of the user's.
    pub dialogue: Likelihood,
}

impl Default for Likelihoods {
    fn default() -> Self {
        Self {
            agent: Likelihood::AGENT,
            dialogue: Likelihood::DIALOGUE,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            name: "adaptive".to_owned(),
            strategy: Strategy::Adaptive,
            max_messages: None,
            trigger: 1.0,
            target: 0.8,
            small_target: 0.97,
            small_tokens: 8_000,
            recent: 0.3,
            recent_steps: 4,
            fragment: 0.6,
            recall: 0.06,
            newest: 0.3,
            summary: None,
            salience: SalienceWeights::default(),
            likelihood: Likelihoods::default(),
            clearing: Clearing::default(),
            tools: BTreeMap::new(),
            without: Vec::new(),
            cache: Cache::default(),
            select: Select::default(),
            relevant: 0.5,
        }
    }
}

/// How far below the target a compaction goes to make room for one more call.
///
/// # Source
/// `bench_replay.py` on short runs of a coding agent at 25 %: HIT .77 at a target of .80, .79 at .70.
const MOST_BELOW: f64 = 0.1;

/// Most tools that have rules.
const MOST_TOOLS: usize = 1_000;

impl Policy {
    /// Whether the choice does without something, for a measurement.
    pub(crate) fn is_without(&self, ablation: Ablation) -> bool {
        self.without.contains(&ablation)
    }

    /// Share of (budget − pinned) that levels may take.
    fn own_share(&self) -> f64 {
        match self.select {
            Select::Sticky => 1.0,
            Select::Relevant => 1.0 - self.relevant,
        }
    }

    /// Share of (budget − pinned) above which a compaction happens.
    pub fn own_trigger(&self) -> f64 {
        self.trigger * self.own_share()
    }

    /// The target of an agent's run where (budget − pinned) is `free` tokens and a call adds
    /// `growth`: where little fits besides, the room for one call more, so that not every call
    /// rewrites the cache.
    pub fn target_of_run(&self, free: u64, growth: u64) -> f64 {
        let one_more = self.trigger - growth as f64 / free.max(1) as f64;
        one_more.clamp((self.target - MOST_BELOW).max(0.0), self.target) * self.own_share()
    }

    /// The target of a conversation where (budget − pinned) is `free` tokens.
    pub fn target_of_conversation(&self, free: u64) -> f64 {
        let small = f64::from(self.small_tokens);
        let shortage = ((small - free as f64) / (0.75 * small).max(1.0)).clamp(0.0, 1.0);
        let more = (self.small_target.min(self.trigger) - self.target).max(0.0);
        (self.target + shortage * more) * self.own_share()
    }

    /// Checks every setting against its range.
    ///
    /// # Errors
    /// `invalid_value`, naming the setting, the value and the range.
    pub fn validate(&self) -> Result<()> {
        let share = |name: &str, value: f64, low: f64, high: f64| {
            if value.is_finite() && value >= low && value <= high {
                Ok(())
            } else {
                Err(Error::new(
                    ErrorKind::InvalidValue,
                    format!("policy {name} is {value}, must be from {low} to {high}"),
                ))
            }
        };
        share("trigger", self.trigger, 0.05, 1.0)?;
        share("target", self.target, 0.0, self.trigger)?;
        share("small_target", self.small_target, 0.0, 1.0)?;
        share("recent", self.recent, 0.0, 1.0)?;
        share("fragment", self.fragment, 0.0, 1.0)?;
        share("recall", self.recall, 0.0, 1.0)?;
        share("newest", self.newest, 0.0, 1.0)?;
        share("relevant", self.relevant, 0.0, 0.9)?;
        let weights = &self.salience;
        share("salience.recency", weights.recency, 0.0, 1.0)?;
        share("salience.half_life", weights.half_life, 0.01, 1e9)?;
        share("salience.role", weights.role, 0.0, 1.0)?;
        share("salience.decision", weights.decision, 0.0, 1.0)?;
        share("salience.error", weights.error, 0.0, 1.0)?;
        for likelihood in [&self.likelihood.agent, &self.likelihood.dialogue] {
            for weight in likelihood.weights() {
                share("likelihood", weight, -100.0, 100.0)?;
            }
        }
        self.clearing.validate()?;
        if self.tools.len() > MOST_TOOLS {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!(
                    "policy has rules for {} tools, most {MOST_TOOLS}",
                    self.tools.len()
                ),
            ));
        }
        self.cache.validate()?;
        if self.strategy == Strategy::SlidingWindow && self.max_messages.is_none() {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                "policy sliding-window needs max_messages",
            ));
        }
        Ok(())
    }
}
