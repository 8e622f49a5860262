//! Learning from reported usage: what a provider billed for requests that were counted here.
//!
//! A line `total = factor * counted + offset` goes through the newest report, so the next estimate is
//! anchored on it and only what was added since is estimated. The slope comes from the growth
//! between reports: a system prompt or tools that a provider hides shift every report alike and
//! end up in the offset. Reports that do not fit (another model's, a request with something extra)
//! count for little, and both figures stay within limits.

use serde::{Deserialize, Serialize};

use super::numbers;
use crate::error::{Error, ErrorKind, Result};

/// Limits of a learnt factor.
const FACTORS: (f64, f64) = (0.5, 2.0);
/// Limits of a factor that is handed in.
const GIVEN_FACTORS: (f64, f64) = (0.1, 10.0);
/// Tokens of growth that the first guess of the factor counts for.
const PRIOR_TOKENS: f64 = 2_000.0;
/// How much an old report counts for when the next one comes: the last twenty or so matter.
const KEPT: f64 = 0.95;
/// By how much a growth may differ from what was expected before it counts for less: a share, and
/// tokens.
const USUAL_SHARE: f64 = 0.10;
const USUAL_TOKENS: f64 = 50.0;
/// Reports before the margin is taken from how far they were off.
const TRUSTED: u32 = 3;
/// The margin is this many times the usual error, and at least [`LEAST_MARGIN`].
const MARGIN_ERRORS: f64 = 4.0;
const LEAST_MARGIN: f64 = 0.02;

/// The line that scales counts, as an event carries it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Tokens for each one counted.
    #[serde(deserialize_with = "numbers::float")]
    pub factor: f64,
    /// Tokens on top.
    #[serde(deserialize_with = "numbers::float")]
    pub offset: f64,
    /// Share that the truth may lie above; `None` for the counter's own.
    #[serde(
        default,
        deserialize_with = "numbers::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub margin: Option<f64>,
}

impl Scale {
    /// Checks figures that come from outside.
    ///
    /// # Errors
    /// `invalid_value` for a factor outside 0.1 to 10, an offset that is not finite, or a negative
    /// margin.
    pub fn check(&self) -> Result<()> {
        let margin = self.margin.unwrap_or(0.0);
        let is_valid = (GIVEN_FACTORS.0..=GIVEN_FACTORS.1).contains(&self.factor)
            && self.offset.is_finite()
            && margin.is_finite()
            && margin >= 0.0;
        if is_valid {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidValue,
            format!(
                "calibration must have a factor from 0.1 to 10, a finite offset and a margin of at \
                 least 0, has {}, {} and {margin}",
                self.factor, self.offset
            ),
        ))
    }

    /// The estimate for a count.
    pub fn estimate(&self, tokens: u64) -> u64 {
        (tokens as f64)
            .mul_add(self.factor, self.offset)
            .max(0.0)
            .ceil() as u64
    }

    /// The upper estimate for a count: the margin goes on what was counted, not on the offset, which
    /// was reported.
    pub fn upper(&self, tokens: u64, margin: f64) -> u64 {
        let counted = tokens as f64 * self.factor;
        let margin = counted.min(counted + self.offset).max(0.0) * self.margin.unwrap_or(margin);
        (counted + self.offset + margin).max(0.0).ceil() as u64
    }
}

/// What was learnt so far; a value that never changes.
///
/// # Example
/// ```
/// # use satchel_core::tokens::Calibration;
/// // 1,000 tokens that are not seen here, and the model's tokens are a quarter more.
/// let learnt = Calibration::default()
///     .observe(1_000, 2_250)?
///     .observe(9_000, 12_250)?
///     .observe(17_000, 22_250)?;
/// let next = learnt.scale().estimate(18_000);
/// assert!((23_450..23_550).contains(&next), "{next}");
/// # Ok::<(), satchel_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Tokens reported for each one counted.
    pub factor: f64,
    /// Tokens on top, so that the newest report is met exactly.
    pub offset: f64,
    /// Reports so far.
    pub n: u32,
    /// The newest count.
    pub estimated: u64,
    /// What was reported for it.
    pub reported: u64,
    /// Growth that was counted, old reports fading, and what was reported for it.
    pub counted_growth: f64,
    /// See `counted_growth`.
    pub reported_growth: f64,
    /// Usual error of the last predictions, as a share of the total.
    pub error: f64,
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            factor: 1.0,
            offset: 0.0,
            n: 0,
            estimated: 0,
            reported: 0,
            counted_growth: 0.0,
            reported_growth: 0.0,
            error: 0.0,
        }
    }
}

impl Calibration {
    /// What is known after one more report: `reported` input tokens, cached ones included, for a
    /// request that was counted as `estimated` (without a calibration).
    ///
    /// # Errors
    /// `invalid_value` if either is 0: nothing can be learnt from that.
    pub fn observe(&self, estimated: u64, reported: u64) -> Result<Self> {
        if estimated == 0 || reported == 0 {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!("{estimated} tokens counted and {reported} reported, both must be above 0"),
            ));
        }
        let (counted, total) = (estimated as f64, reported as f64);
        let mut next = Self {
            n: self.n.saturating_add(1),
            estimated,
            reported,
            ..*self
        };
        if self.n == 0 {
            // A guess that the growth soon outweighs: hidden parts would spoil the plain ratio.
            next.factor = (total / counted).clamp(0.8, 1.25);
            next.counted_growth = PRIOR_TOKENS;
            next.reported_growth = PRIOR_TOKENS * next.factor;
        } else {
            let growth = counted - self.estimated as f64;
            let expected = growth * self.factor;
            let found = total - self.reported as f64;
            let usual = USUAL_TOKENS + USUAL_SHARE * expected.abs();
            // Huber's weight: what is far off counts as if it were just about usual.
            let weight = (usual / (found - expected).abs()).min(1.0);
            let taken = expected + (found - expected) * weight;
            // A request that shrank tells the same as one that grew.
            let sign = if growth < 0.0 { -1.0 } else { 1.0 };
            next.counted_growth = self.counted_growth * KEPT + growth * sign;
            next.reported_growth = self.reported_growth * KEPT + taken * sign;
            next.factor = (next.reported_growth / next.counted_growth).clamp(FACTORS.0, FACTORS.1);
            let missed = (found - expected).abs() / total;
            let share = (1.0 / f64::from(self.n)).max(0.2);
            next.error = self.error + share * (missed - self.error);
        }
        next.offset = total - next.factor * counted;
        Ok(next)
    }

    /// The line, with the margin that the reports so far suggest.
    pub fn scale(&self) -> Scale {
        Scale {
            factor: self.factor,
            offset: self.offset,
            margin: (self.n >= TRUSTED).then(|| (self.error * MARGIN_ERRORS).max(LEAST_MARGIN)),
        }
    }

    /// Whether the figures could have come from [`Calibration::observe`].
    ///
    /// # Errors
    /// `invalid_value` if not.
    pub fn check(&self) -> Result<()> {
        self.scale().check()?;
        let growths = [self.counted_growth, self.reported_growth, self.error];
        if growths.iter().all(|growth| growth.is_finite()) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidValue,
            "a calibration's figures must be finite",
        ))
    }
}
