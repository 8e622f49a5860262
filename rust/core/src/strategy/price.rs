//! What a rewrite of the prompt cache costs, and when it pays.
//!
//! Removing `R` cached tokens rewrites the `S` tokens after them. With a write at `w` and a read at
//! `r` times the input price it pays over `n` requests, the next one included, when
//! `n > (w − r) S / (r R)`. Where the model's reasoning is bound to what stands before it, the `L`
//! tokens of reasoning behind the edit are lost: they are no longer sent, but thinking them again
//! costs output, so `n > ((w − r) (S − L) + o L) / (r (R + L))`.

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::message::PartKind;
use crate::node::Text;
use crate::plan::{Plan, Settings};
use crate::transcript::Transcript;

/// Prices of a model's input, as multiples of its input price, and what goes with them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prices {
    /// A token that is read from the cache.
    pub read: f64,
    /// A token that is written to it.
    pub write: f64,
    /// A token of output.
    pub output: f64,
    /// Fewest tokens that are cached.
    pub min_prefix: u64,
    /// Whether reasoning is bound to everything before it.
    pub binds_reasoning: bool,
}

impl Default for Prices {
    /// Those of most models with a cache of five minutes.
    ///
    /// # Source
    /// Anthropic, prompt caching page, read 2026-08-21: read 0.1, write 1.25; output is five times
    /// the input price in its price list.
    fn default() -> Self {
        Self {
            read: 0.1,
            write: 1.25,
            output: 5.0,
            min_prefix: 1_024,
            binds_reasoning: false,
        }
    }
}

/// How the policy weighs the prompt cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cache {
    /// Whether levels may fall before they must, where that pays.
    pub priced: bool,
    /// Calls still to come; as many as there were so far if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_calls: Option<u32>,
    /// Price of a read, where the model's own does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<f64>,
    /// Price of a write, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<f64>,
    /// Fewest tokens that are cached, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_prefix: Option<u64>,
}

impl Cache {
    /// The model's prices with this policy's own laid over them.
    pub fn over(&self, prices: Prices) -> Prices {
        Prices {
            read: self.read.unwrap_or(prices.read),
            write: self.write.unwrap_or(prices.write),
            min_prefix: self.min_prefix.unwrap_or(prices.min_prefix),
            ..prices
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// `invalid_value` for a price below 0 or above 1,000.
    pub fn validate(&self) -> Result<()> {
        let own = [("cache.read", self.read), ("cache.write", self.write)];
        check_prices(
            own.iter()
                .filter_map(|(name, price)| Some((*name, (*price)?))),
        )
    }
}

impl Prices {
    /// Checks the prices.
    ///
    /// # Errors
    /// `invalid_value` for one below 0 or above 1,000.
    pub fn validate(&self) -> Result<()> {
        let prices = [
            ("prices.read", self.read),
            ("prices.write", self.write),
            ("prices.output", self.output),
        ];
        check_prices(prices.into_iter())
    }
}

fn check_prices<'a>(prices: impl Iterator<Item = (&'a str, f64)>) -> Result<()> {
    for (name, price) in prices {
        if !(0.0..=1_000.0).contains(&price) {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!("{name} is {price}, must be from 0 to 1000"),
            ));
        }
    }
    Ok(())
}

/// Why levels fell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The history outgrew the trigger.
    Forced,
    /// The trigger of the preset's own.
    Preset,
    /// It was expected to pay.
    Priced,
    /// The cache was lost, so that a rewrite was free.
    Cold,
}

impl Cause {
    /// The lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forced => "forced",
            Self::Preset => "preset",
            Self::Priced => "priced",
            Self::Cold => "cold",
        }
    }
}

/// One compaction, as the prompt cache sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rewrite {
    /// Messages before the boundary.
    pub at: u32,
    /// Why levels fell.
    pub cause: Cause,
    /// Tokens that left the window, bound reasoning behind the first change included.
    pub removed: u64,
    /// Tokens after the first change, which are written to the cache again.
    pub rewritten: u64,
    /// Tokens of bound reasoning that is lost.
    pub lost_reasoning: u64,
    /// Calls after which it pays; 0 if the rewrite was free, infinite if it never does.
    pub break_even: f64,
    /// Calls that were expected to come.
    pub expected: u32,
}

impl Rewrite {
    /// Whether it is expected to pay.
    pub fn pays(&self) -> bool {
        f64::from(self.expected) > self.break_even
    }
}

/// What the step from a window of `before` tokens to `plan` costs, which changed from step `changed`
/// on, at the boundary after `at` messages.
pub(crate) fn rewrite<T: Text>(
    plan: &Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
    (before, changed, at): (u64, u32, usize),
    cause: Cause,
) -> Rewrite {
    let prices = settings.policy.cache.over(settings.prices);
    let total = settings.base_tokens() + plan.history_tokens;
    let prefix = prefix_tokens(plan, transcript, settings, changed);
    // What is too short for the cache is not read from it.
    let prefix = if prefix < prices.min_prefix {
        0
    } else {
        prefix
    };
    let lost = if prices.binds_reasoning {
        reasoning_behind(plan, transcript, changed)
    } else {
        0
    };
    let removed = before.saturating_sub(total) + lost;
    let rewritten = total.saturating_sub(prefix).saturating_sub(lost);
    let is_cached = before >= prices.min_prefix;
    let break_even = if plan.is_cold || !is_cached {
        0.0
    } else {
        let cost =
            (prices.write - prices.read).max(0.0) * rewritten as f64 + prices.output * lost as f64;
        let gain = prices.read * removed as f64;
        if gain > 0.0 {
            cost / gain
        } else {
            f64::INFINITY
        }
    };
    Rewrite {
        at: at as u32,
        cause,
        removed,
        rewritten,
        lost_reasoning: lost,
        break_even,
        expected: settings.policy.cache.remaining_calls.unwrap_or(plan.calls),
    }
}

/// Tokens of the window before step `changed`.
fn prefix_tokens<T: Text>(
    plan: &Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
    changed: u32,
) -> u64 {
    let mut tokens = settings.system_tokens + settings.tools_tokens;
    let mut end = 0;
    for shown in plan.shown.iter().take_while(|shown| shown.step < changed) {
        tokens += u64::from(shown.tokens);
        end = transcript.steps()[shown.step as usize].end;
    }
    let goal = transcript.goal().unwrap_or(0) as u32;
    let root = plan.root.as_ref().filter(|_| goal < end);
    let recalls = plan.recalls.iter().filter(|recall| recall.at <= end);
    tokens
        + root.map_or(0, |root| u64::from(root.tokens))
        + recalls.map(|recall| u64::from(recall.tokens)).sum::<u64>()
}

/// Tokens of reasoning from step `changed` on that earlier rewrites left.
fn reasoning_behind<T: Text>(plan: &Plan, transcript: &Transcript<T>, changed: u32) -> u64 {
    let newest = plan.rewrites.last().map_or(0, |rewrite| rewrite.at);
    let steps = plan.shown.iter().filter(|shown| shown.step >= changed);
    let messages = steps.flat_map(|shown| {
        let bounds = transcript.steps()[shown.step as usize];
        bounds.first.max(newest)..bounds.end
    });
    let parts = messages.flat_map(|message| transcript.parts(message as usize));
    let reasoning = parts.filter(|part| part.kind == PartKind::Reasoning);
    reasoning.map(|part| u64::from(part.tokens)).sum()
}
