//! Counting texts: one immutable [`Counter`], whatever stands behind it.

pub mod chat;
pub mod tools;

use std::fmt::Debug;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};

/// A counter that lives outside the core (a caller's own function): called in batches, never
/// inside a loop over messages, with no lock held.
pub trait CountTexts: Debug + Send + Sync {
    /// One count per text.
    ///
    /// # Errors
    /// `counter_failed` if it raised or returned no count.
    fn count_texts(&self, texts: &[&str]) -> Result<Vec<u32>>;
}

/// Counts texts in tokens. Immutable, shared freely, cheap to clone.
#[derive(Clone, Debug)]
pub struct Counter(Engine);

#[derive(Clone, Debug)]
enum Engine {
    /// `max(1, chars // n)`, 0 for empty text.
    Chars(u32),
    /// The caller's own.
    Foreign {
        name: Arc<str>,
        exact: bool,
        count: Arc<dyn CountTexts>,
    },
}

impl Counter {
    /// The counter of an encoding (`o200k_base`, …) or estimator (`chars3`, `chars4`, …).
    ///
    /// # Errors
    /// `unknown_encoding`.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "chars3" => Ok(Self(Engine::Chars(3))),
            "chars4" => Ok(Self(Engine::Chars(4))),
            _ => Err(Error::new(
                ErrorKind::UnknownEncoding,
                format!("no encoding '{name}'"),
            )),
        }
    }

    /// A counter of the caller's own.
    pub fn foreign(name: &str, exact: bool, count: Arc<dyn CountTexts>) -> Self {
        Self(Engine::Foreign {
            name: name.into(),
            exact,
            count,
        })
    }

    /// Name of the encoding or estimator.
    pub fn name(&self) -> &str {
        match &self.0 {
            Engine::Chars(3) => "chars3",
            Engine::Chars(_) => "chars4",
            Engine::Foreign { name, .. } => name,
        }
    }

    /// Whether the count is the provider's own.
    pub fn exact(&self) -> bool {
        match &self.0 {
            Engine::Chars(_) => false,
            Engine::Foreign { exact, .. } => *exact,
        }
    }

    /// What a foreign counter was made of.
    pub fn foreign_source(&self) -> Option<&dyn CountTexts> {
        match &self.0 {
            Engine::Foreign { count, .. } => Some(count.as_ref()),
            Engine::Chars(_) => None,
        }
    }

    /// Tokens of `text`.
    ///
    /// # Errors
    /// `counter_failed`, only from a foreign counter.
    pub fn count(&self, text: &str) -> Result<u32> {
        match &self.0 {
            Engine::Chars(n) => {
                let chars = text.chars().count() as u32;
                Ok(if chars == 0 { 0 } else { (chars / n).max(1) })
            }
            Engine::Foreign { count, .. } => {
                let counts = count.count_texts(&[text])?;
                counts.first().copied().ok_or_else(|| {
                    Error::new(ErrorKind::CounterFailed, "the counter returned no count")
                })
            }
        }
    }

    /// Tokens of each text; one call of a foreign counter for all.
    ///
    /// # Errors
    /// `counter_failed`, only from a foreign counter.
    pub fn count_many(&self, texts: &[&str]) -> Result<Vec<u32>> {
        match &self.0 {
            Engine::Foreign { count, .. } => {
                let counts = count.count_texts(texts)?;
                if counts.len() == texts.len() {
                    Ok(counts)
                } else {
                    Err(Error::new(
                        ErrorKind::CounterFailed,
                        format!(
                            "the counter returned {} counts for {} texts",
                            counts.len(),
                            texts.len()
                        ),
                    ))
                }
            }
            Engine::Chars(_) => texts.iter().map(|text| self.count(text)).collect(),
        }
    }
}
