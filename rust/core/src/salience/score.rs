//! Scores of messages: a weighted sum of features, clamped to 0..1.

use crate::error::{Error, ErrorKind, Result};
use crate::message::Role;

use super::features::{Features, LONG_ABOVE, SHORT_BELOW};
use super::signals::Signals;

/// Weights of the default score; each feature is 0..1, so a weight is the most it can add.
///
/// Hand-set: where a message stands and who speaks make up half, what later messages take up again
/// and what reads like a rule, a decision or a failure the rest; a query outweighs any of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Position, `(i + 1) / n`.
    pub recency: f64,
    /// Instructions 1.0, user 0.8, assistant and unknown 0.5, tool 0.3.
    pub role: f64,
    /// Identifiers that come up again later.
    pub references: f64,
    /// A decision or an agreement.
    pub decision: f64,
    /// Something a person or the application requires.
    pub constraint: f64,
    /// A failure that a tool reports.
    pub error: f64,
    /// Code.
    pub code: f64,
    /// Overlap with the query.
    pub query: f64,
    /// A short text that carries nothing; a penalty.
    pub brief: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            recency: 0.25,
            role: 0.25,
            references: 0.20,
            decision: 0.15,
            constraint: 0.15,
            error: 0.10,
            code: 0.05,
            query: 0.30,
            brief: -0.20,
        }
    }
}

impl Weights {
    /// Names of the weights.
    pub const NAMES: [&'static str; 9] = [
        "recency",
        "role",
        "references",
        "decision",
        "constraint",
        "error",
        "code",
        "query",
        "brief",
    ];

    /// The default weights with the named ones replaced.
    ///
    /// # Errors
    /// As [`Weights::set`].
    pub fn with(named: &[(String, f64)]) -> Result<Self> {
        let mut weights = Self::default();
        for (name, value) in named {
            weights.set(name, *value)?;
        }
        Ok(weights)
    }

    /// Sets the weight `name`.
    ///
    /// # Errors
    /// `invalid_value` if there is no such weight or `value` is not finite.
    pub fn set(&mut self, name: &str, value: f64) -> Result<()> {
        let slot = match name {
            "recency" => &mut self.recency,
            "role" => &mut self.role,
            "references" => &mut self.references,
            "decision" => &mut self.decision,
            "constraint" => &mut self.constraint,
            "error" => &mut self.error,
            "code" => &mut self.code,
            "query" => &mut self.query,
            "brief" => &mut self.brief,
            _ => {
                return Err(Error::new(
                    ErrorKind::InvalidValue,
                    format!("no weight '{name}', weights: {}", Self::NAMES.join(", ")),
                ));
            }
        };
        if !value.is_finite() {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!("weight {value} of '{name}' is not a finite number"),
            ));
        }
        *slot = value;
        Ok(())
    }
}

/// What a message is scored by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Its place in the history, from 0.
    pub(crate) index: usize,
    /// Messages of the history.
    pub(crate) length: usize,
    pub(crate) role: Option<Role>,
    pub(crate) tokens: u32,
    pub(crate) signals: Signals,
    pub(crate) references: f32,
    pub(crate) query: f32,
    pub(crate) brief: bool,
}

fn rows(features: &Features) -> impl Iterator<Item = Row> {
    let length = features.roles.len();
    let rows = features.roles.iter().zip(&features.signals);
    let shares = features.references.iter().zip(&features.query);
    let sizes = features.tokens.iter().zip(&features.brief);
    rows.zip(shares).zip(sizes).enumerate().map(
        move |(index, (((role, signals), (references, query)), (tokens, brief)))| Row {
            index,
            length,
            role: *role,
            tokens: *tokens,
            signals: *signals,
            references: *references,
            query: *query,
            brief: *brief,
        },
    )
}

/// Scores by the default features and `weights`, one per message.
pub fn weighted(features: &Features, weights: &Weights) -> Vec<f32> {
    rows(features)
        .map(|row| weighted_of(&row, weights))
        .collect()
}

/// The score of one message by `weights`.
pub(crate) fn weighted_of(row: &Row, weights: &Weights) -> f32 {
    let role = match row.role {
        Some(Role::System | Role::Developer) => 1.0,
        Some(Role::User) => 0.8,
        Some(Role::Assistant) | None => 0.5,
        Some(Role::Tool) => 0.3,
    };
    let bit = |signal| f64::from(row.signals.contains(signal));
    let score = weights.recency * (row.index as f64 + 1.0) / row.length as f64
        + weights.role * role
        + weights.references * f64::from(row.references)
        + weights.decision * bit(Signals::DECISION)
        + weights.constraint * bit(Signals::CONSTRAINT)
        + weights.error * bit(Signals::ERROR)
        + weights.code * bit(Signals::CODE)
        + weights.query * f64::from(row.query)
        + weights.brief * f64::from(row.brief);
    score.clamp(0.0, 1.0) as f32
}

/// Scores by the weight set `"keywords"`, one per message.
///
/// # Source
/// The founding documents' importance score: `0.3·(i/n) + 0.2·role` (system 1.0, user 0.8, all
/// others 0.5) `+ 0.15` decision `+ 0.10` constraint `+ 0.10` code `− 0.15` if tokens < 10 `+ 0.05`
/// if tokens > 100, clamped to 0..1; `i` counts from 0.
pub fn keywords(features: &Features) -> Vec<f32> {
    rows(features).map(|row| keywords_of(&row)).collect()
}

/// The score of one message by the weight set `"keywords"`.
pub(crate) fn keywords_of(row: &Row) -> f32 {
    let role = match row.role {
        Some(Role::System) => 1.0,
        Some(Role::User) => 0.8,
        _ => 0.5,
    };
    let mut score = 0.3 * (row.index as f64 / row.length as f64) + 0.2 * role;
    if row.signals.contains(Signals::DECISION) {
        score += 0.15;
    }
    if row.signals.contains(Signals::CONSTRAINT) {
        score += 0.10;
    }
    if row.signals.contains(Signals::CODE) {
        score += 0.10;
    }
    if row.tokens < SHORT_BELOW {
        score -= 0.15;
    }
    if row.tokens > LONG_ABOVE {
        score += 0.05;
    }
    score.clamp(0.0, 1.0) as f32
}
