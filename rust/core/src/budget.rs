//! How a total of tokens is divided among the sections of a request.
//!
//! Invariant: each section is the floor of a float64 product, so the sections never exceed the
//! total; what the floors leave over belongs to no section.

use crate::error::{Error, ErrorKind, Result};

/// Largest total: beyond 2^53 a float64 product no longer tells neighbouring totals apart.
pub const MAX_TOTAL: u64 = 1 << 53;

/// Room for rounding in a sum of shares that is meant to be 1.
const SUM_TOLERANCE: f64 = 1e-9;

/// The share of each section in the total.
///
/// # Source
/// The default is the founding documents' rule for agent memory: system prompt 10 %, memory
/// summary 10 %, retrieved context 20 %, recent messages 35 %, output reserve 25 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// The system prompt.
    pub system_prompt: f64,
    /// The running summary of what left the window.
    pub memory_summary: f64,
    /// Retrieved documents and memories.
    pub retrieved_context: f64,
    /// The newest messages, verbatim.
    pub recent_messages: f64,
    /// Room for the reply.
    pub output_reserve: f64,
}

impl Default for Shares {
    fn default() -> Self {
        Self {
            system_prompt: 0.10,
            memory_summary: 0.10,
            retrieved_context: 0.20,
            recent_messages: 0.35,
            output_reserve: 0.25,
        }
    }
}

impl Shares {
    /// Names of the sections, in their order.
    pub const NAMES: [&'static str; 5] = [
        "system_prompt",
        "memory_summary",
        "retrieved_context",
        "recent_messages",
        "output_reserve",
    ];

    /// Sets the share of the section `name`.
    ///
    /// # Errors
    /// `invalid_value` if there is no such section, or the share is negative or not finite.
    pub fn set(&mut self, name: &str, share: f64) -> Result<()> {
        let slot = match name {
            "system_prompt" => &mut self.system_prompt,
            "memory_summary" => &mut self.memory_summary,
            "retrieved_context" => &mut self.retrieved_context,
            "recent_messages" => &mut self.recent_messages,
            "output_reserve" => &mut self.output_reserve,
            _ => {
                return Err(Error::new(
                    ErrorKind::InvalidValue,
                    format!(
                        "no section '{name}' to share in, sections: {}",
                        Self::NAMES.join(", ")
                    ),
                ));
            }
        };
        if !share.is_finite() || share < 0.0 {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!("share {share} of '{name}' is not a finite number from 0 to 1"),
            ));
        }
        *slot = share;
        Ok(())
    }

    fn sum(&self) -> f64 {
        self.system_prompt
            + self.memory_summary
            + self.retrieved_context
            + self.recent_messages
            + self.output_reserve
    }
}

/// Tokens of each section and in total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenBudget {
    /// Tokens of the system prompt.
    pub system_prompt: u64,
    /// Tokens of the running summary.
    pub memory_summary: u64,
    /// Tokens of retrieved documents and memories.
    pub retrieved_context: u64,
    /// Tokens of the newest messages.
    pub recent_messages: u64,
    /// Tokens kept free for the reply.
    pub output_reserve: u64,
    /// What was divided.
    pub total: u64,
}

/// Divides `total` tokens by `shares`, each section floored after a float64 product.
///
/// # Errors
/// `invalid_value` if the shares sum to more than 1 or `total` exceeds [`MAX_TOTAL`].
///
/// # Example
/// ```
/// use satchel_core::budget::{Shares, allocate_budget};
/// let budget = allocate_budget(180, &Shares::default()).unwrap();
/// // 180 * .35 is 62.999… in float64.
/// assert_eq!(budget.recent_messages, 62);
/// ```
pub fn allocate_budget(total: u64, shares: &Shares) -> Result<TokenBudget> {
    if total > MAX_TOTAL {
        return Err(Error::new(
            ErrorKind::InvalidValue,
            format!("total of {total} tokens, limit {MAX_TOTAL}"),
        )
        .with_limit(total, MAX_TOTAL));
    }
    let sum = shares.sum();
    if sum > 1.0 + SUM_TOLERANCE {
        return Err(Error::new(
            ErrorKind::InvalidValue,
            format!("shares sum to {sum}, limit 1"),
        ));
    }
    let floor = |share: f64| (total as f64 * share).floor() as u64;
    Ok(TokenBudget {
        system_prompt: floor(shares.system_prompt),
        memory_summary: floor(shares.memory_summary),
        retrieved_context: floor(shares.retrieved_context),
        recent_messages: floor(shares.recent_messages),
        output_reserve: floor(shares.output_reserve),
        total,
    })
}
