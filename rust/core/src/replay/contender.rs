//! What is compared: satchel's own policies, and what people do without it.

use serde::{Deserialize, Serialize};

use crate::policy::Policy;

/// Share of the free budget above which a batched baseline makes room, and down to which it does:
/// those of satchel's defaults where the free budget is not small, so that prices compare.
pub(super) const TRIGGER: f64 = 1.0;
/// See [`TRIGGER`].
pub(super) const TARGET: f64 = 0.8;

/// A policy that is replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contender {
    /// A policy of satchel's, through the working set, as in production.
    Satchel(Box<Policy>),
    /// A policy that stands for what people do, or a reference.
    Baseline(Baseline),
}

/// A policy that is no plan of satchel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// Everything, whatever the budget.
    Full,
    /// `trim_messages(strategy="last", include_system=True)` of `LangChain` before every call: the
    /// leading instructions and the newest messages that fit, not beginning with a result.
    LangchainTrim,
    /// The pinned part and the newest steps; when the budget is full the oldest go, down to
    /// 80 % of its free part.
    KeepLast,
    /// As `keep-last`, but which steps go is drawn by lot.
    Random,
    /// Results older than the newest 10 are replaced by a note before every call; what still does
    /// not fit loses its oldest steps.
    ObservationMasking,
    /// When the budget is full, all results but the newest 3 are replaced by a note; what still
    /// does not fit loses its oldest steps, as `keep-last`.
    ClearToolUses,
    /// The first messages up to half of the free budget, and the newest that fit.
    HeadTail,
    /// Knows what later actions will take: whole messages by what they hold of it per token.
    Oracle,
    /// The same with single lines: a strong reference, not a bound.
    OracleLines,
}

impl Baseline {
    /// Every baseline, in the order of tables.
    pub const ALL: [Self; 9] = [
        Self::Full,
        Self::LangchainTrim,
        Self::KeepLast,
        Self::Random,
        Self::ObservationMasking,
        Self::ClearToolUses,
        Self::HeadTail,
        Self::Oracle,
        Self::OracleLines,
    ];

    /// The public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::LangchainTrim => "langchain-trim",
            Self::KeepLast => "keep-last",
            Self::Random => "random",
            Self::ObservationMasking => "observation-masking-10",
            Self::ClearToolUses => "clear-tool-uses-3",
            Self::HeadTail => "head-tail",
            Self::Oracle => "oracle",
            Self::OracleLines => "oracle-lines",
        }
    }
}

impl Contender {
    /// The name in tables.
    pub fn name(&self) -> &str {
        match self {
            Self::Satchel(policy) => &policy.name,
            Self::Baseline(baseline) => baseline.name(),
        }
    }

    /// Share of the free budget between trigger and target. Where satchel goes down less far, since
    /// little is free in a conversation, it is held to the same figure.
    pub(super) fn band(&self) -> f64 {
        match self {
            Self::Satchel(policy) => policy.trigger - policy.target,
            Self::Baseline(_) => TRIGGER - TARGET,
        }
    }

    /// Whether it knows what later actions will take.
    pub fn is_clairvoyant(&self) -> bool {
        matches!(
            self,
            Self::Baseline(Baseline::Oracle | Baseline::OracleLines)
        )
    }
}
