//! Counting texts: one immutable [`Counter`], whatever stands behind it.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use super::encoder::{CL100K_BASE, Encoder, O200K_BASE};
use super::truncate::{ByCount, ById, Keep, truncate};
use super::{estimate, parallel};
use crate::error::{Error, ErrorKind, Result};

/// A counter that lives outside the core (a caller's own function): called in batches, never
/// inside a loop over messages, with no lock held, always on the thread that asked.
pub trait CountTexts: Any + Debug + Send + Sync {
    /// One count per text.
    ///
    /// # Errors
    /// `counter_failed` if it raised or returned no count.
    fn count_texts(&self, texts: &[&str]) -> Result<Vec<u32>>;
}

/// Counts texts in tokens. Immutable, shared freely, cheap to clone.
///
/// # Example
/// ```
/// # use satchel_core::tokens::{Counter, Keep};
/// let counter = Counter::named("o200k_base")?;
/// assert_eq!(counter.count("What's the weather like in San Francisco?")?, 8);
/// assert!(counter.fits("short", 5)?);
/// assert_eq!(counter.truncate("one two three four", 2, Keep::Head)?, "one two");
/// # Ok::<(), satchel_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Counter {
    name: Arc<str>,
    engine: Engine,
    exact: bool,
    margin: f64,
}

#[derive(Clone, Debug)]
enum Engine {
    /// A vocabulary.
    Encoder(Arc<dyn Encoder>),
    /// `max(1, chars // n)`, 0 for empty text.
    Chars(u32),
    /// By the scripts in the text.
    Scripts,
    /// The caller's own.
    Foreign(Arc<dyn CountTexts>),
}

impl Counter {
    /// The counter of an encoding or estimator.
    ///
    /// Encodings: `o200k_base`, `o200k_harmony`, `cl100k_base`. Estimators: `scripts`,
    /// `chars3`, `chars4`.
    ///
    /// # Errors
    /// `unknown_encoding`.
    pub fn named(name: &str) -> Result<Self> {
        let (engine, margin) = match name {
            // Only the special tokens differ between the two, and text never counts as one.
            "o200k_base" | "o200k_harmony" => (Engine::Encoder(Arc::new(O200K_BASE)), 0.0),
            "cl100k_base" => (Engine::Encoder(Arc::new(CL100K_BASE)), 0.0),
            "chars3" => (Engine::Chars(3), estimate::CHARS3_MARGIN),
            "scripts" => (Engine::Scripts, estimate::SCRIPTS_MARGIN),
            "chars4" => (Engine::Chars(4), estimate::CHARS4_MARGIN),
            _ => {
                return Err(Error::new(
                    ErrorKind::UnknownEncoding,
                    format!("no encoding '{name}'"),
                ));
            }
        };
        Ok(Self {
            name: name.into(),
            exact: matches!(engine, Engine::Encoder(_)),
            engine,
            margin,
        })
    }

    /// A counter of the caller's own, with margin 0.
    pub fn foreign(name: &str, exact: bool, count: Arc<dyn CountTexts>) -> Self {
        Self {
            name: name.into(),
            engine: Engine::Foreign(count),
            exact,
            margin: 0.0,
        }
    }

    /// The same counts, used for a model whose own tokenizer may count more by up to `margin`.
    ///
    /// # Errors
    /// `invalid_value` if `margin` is negative or not finite.
    pub fn with_margin(mut self, exact: bool, margin: f64) -> Result<Self> {
        if !(margin >= 0.0 && margin.is_finite()) {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!("margin is {margin}, must be finite and at least 0"),
            ));
        }
        self.exact = exact;
        self.margin = margin;
        Ok(self)
    }

    /// Name of the encoding or estimator.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the count is the provider's own.
    pub fn exact(&self) -> bool {
        self.exact
    }

    /// How far the true count may lie above, as a share: `upper = ceil(tokens * (1 + margin))`.
    pub fn margin(&self) -> f64 {
        self.margin
    }

    /// The encoder behind a counter with a vocabulary: ids, bytes and safe cuts.
    pub fn encoder(&self) -> Option<&dyn Encoder> {
        match &self.engine {
            Engine::Encoder(encoder) => Some(encoder.as_ref()),
            Engine::Chars(_) | Engine::Scripts | Engine::Foreign(_) => None,
        }
    }

    /// What a foreign counter was made of.
    pub fn foreign_source(&self) -> Option<&dyn CountTexts> {
        match &self.engine {
            Engine::Foreign(count) => Some(count.as_ref()),
            Engine::Encoder(_) | Engine::Chars(_) | Engine::Scripts => None,
        }
    }

    /// Tokens of `text`.
    ///
    /// # Errors
    /// `counter_failed`, only from a foreign counter. `invalid_value` for a text of 4 GiB or more.
    pub fn count(&self, text: &str) -> Result<u32> {
        check_length(text)?;
        match &self.engine {
            Engine::Encoder(encoder) => Ok(encoder.count(text)),
            Engine::Chars(per_token) => Ok(estimate::by_chars(text, *per_token)),
            Engine::Scripts => Ok(estimate::by_scripts(text)),
            Engine::Foreign(count) => match count.count_texts(&[text])?[..] {
                [tokens] => Ok(tokens),
                ref other => Err(wrong_number(other.len(), 1)),
            },
        }
    }

    /// Tokens of each text; one call of a foreign counter for all. On this thread.
    ///
    /// # Errors
    /// As [`count`](Self::count).
    pub fn count_many(&self, texts: &[&str]) -> Result<Vec<u32>> {
        match &self.engine {
            Engine::Foreign(count) => {
                let counts = count.count_texts(texts)?;
                if counts.len() == texts.len() {
                    Ok(counts)
                } else {
                    Err(wrong_number(counts.len(), texts.len()))
                }
            }
            Engine::Encoder(_) | Engine::Chars(_) | Engine::Scripts => {
                texts.iter().map(|text| self.count(text)).collect()
            }
        }
    }

    /// [`count_many`](Self::count_many) on all cores; few or short texts stay on this thread, and
    /// so does a foreign counter.
    ///
    /// # Errors
    /// As [`count`](Self::count).
    pub fn count_many_parallel(&self, texts: &[&str]) -> Result<Vec<u32>> {
        for text in texts {
            check_length(text)?;
        }
        match &self.engine {
            Engine::Encoder(encoder) => Ok(parallel::count_many(encoder.as_ref(), texts)),
            Engine::Chars(_) | Engine::Scripts | Engine::Foreign(_) => self.count_many(texts),
        }
    }

    /// Whether `text` has at most `max` tokens; stops counting soon after it has more.
    ///
    /// # Errors
    /// As [`count`](Self::count).
    pub fn fits(&self, text: &str, max: u32) -> Result<bool> {
        match &self.engine {
            // A token has at least one byte.
            Engine::Encoder(_) if text.len() <= max as usize => Ok(true),
            Engine::Encoder(encoder) => {
                check_length(text)?;
                Ok(encoder.count_up_to(text, max).is_some())
            }
            Engine::Chars(_) | Engine::Scripts | Engine::Foreign(_) => Ok(self.count(text)? <= max),
        }
    }

    /// `text` cut to at most `max` tokens by this counter's own count, between characters.
    ///
    /// A text that fits comes back whole. The cut keeps as many tokens as it can: it gives up
    /// tokens only where the text left over would count more. A foreign counter is asked about
    /// `log2(text.len())` times, and must count empty text as 0.
    ///
    /// # Errors
    /// As [`count`](Self::count).
    pub fn truncate(&self, text: &str, max: u32, keep: Keep) -> Result<String> {
        if self.fits(text, max)? {
            return Ok(text.to_owned());
        }
        match &self.engine {
            Engine::Encoder(encoder) => truncate(&ById(encoder.as_ref()), text, max, keep),
            Engine::Chars(_) | Engine::Scripts | Engine::Foreign(_) => {
                truncate(&ByCount(|part: &str| self.count(part)), text, max, keep)
            }
        }
    }
}

#[inline]
fn check_length(text: &str) -> Result<()> {
    if u32::try_from(text.len()).is_ok() {
        Ok(())
    } else {
        Err(too_long(text.len()))
    }
}

#[cold]
fn too_long(bytes: usize) -> Error {
    let limit = u32::MAX;
    Error::new(
        ErrorKind::InvalidValue,
        format!("text has {bytes} bytes, limit {limit}"),
    )
    .with_limit(bytes as u64, u64::from(limit))
}

#[cold]
fn wrong_number(counts: usize, texts: usize) -> Error {
    Error::new(
        ErrorKind::CounterFailed,
        format!("the counter returned {counts} counts for {texts} texts"),
    )
}
