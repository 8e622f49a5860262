//! Counting texts: one immutable [`Counter`], whatever stands behind it.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use indexmap::IndexMap;

use super::encoder::{CL100K_BASE, Encoder, O200K_BASE};
use super::factors::Factors;
use super::rules::ModelRules;
use super::truncate::{ByCount, ById, Keep, truncate};
use super::{estimate, parallel, ranks};
use crate::error::{Error, ErrorKind, Result, shown_name};

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
/// The counter of a model carries that model's [`ModelRules`]: what its messages, calls, tools and
/// images cost beside their texts, and by how much its tokenizer differs from the vocabulary that
/// is counted with.
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
    encoding: Arc<str>,
    engine: Engine,
    exact: bool,
    margin: f64,
    rules: Option<Arc<ModelRules>>,
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
                    format!("no encoding {}", shown_name(name)),
                ));
            }
        };
        Ok(Self {
            encoding: name.into(),
            exact: matches!(engine, Engine::Encoder(_)),
            engine,
            margin,
            rules: None,
        })
    }

    /// A counter of the caller's own, with margin 0.
    pub fn foreign(name: &str, exact: bool, count: Arc<dyn CountTexts>) -> Self {
        Self {
            encoding: name.into(),
            engine: Engine::Foreign(count),
            exact,
            margin: 0.0,
            rules: None,
        }
    }

    /// Whether [`Counter::of_ranks`] takes this pattern.
    pub fn knows_pattern(pattern: &str) -> bool {
        ranks::is_known(pattern)
    }

    /// A counter of the caller's own ranks, such as those of a `tiktoken.Encoding`; `None` if the
    /// pattern that cuts texts into pieces is not one that is built in.
    ///
    /// # Errors
    /// `invalid_value` if a single byte has no rank, or two tokens have the same one.
    pub fn of_ranks(
        name: &str,
        pattern: &str,
        ranks: IndexMap<Box<[u8]>, u32>,
    ) -> Result<Option<Self>> {
        Ok(ranks::encoder(name, pattern, ranks)?.map(|encoder| Self {
            encoding: name.into(),
            engine: Engine::Encoder(encoder),
            exact: true,
            margin: 0.0,
            rules: None,
        }))
    }

    /// The same counter with the rules of a model. Factors make it an estimate.
    #[must_use]
    pub fn with_rules(mut self, rules: ModelRules) -> Self {
        self.exact &= rules.factors.is_none();
        self.rules = Some(Arc::new(rules));
        self
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

    /// What it is called in settings: the model's name, else that of the encoding.
    pub fn name(&self) -> &str {
        match &self.rules {
            Some(rules) => &rules.name,
            None => &self.encoding,
        }
    }

    /// Name of the encoding or estimator.
    pub fn encoding(&self) -> &str {
        &self.encoding
    }

    /// The rules of a model, if it is the counter of one.
    pub fn rules(&self) -> Option<&ModelRules> {
        self.rules.as_deref()
    }

    fn factors(&self) -> Option<&Factors> {
        self.rules.as_ref()?.factors.as_ref()
    }

    /// `tokens` of `text` in the vocabulary as tokens of the model.
    #[inline]
    fn scaled(&self, tokens: u32, text: &str) -> u32 {
        match self.factors() {
            None => tokens,
            Some(factors) => factors.scale(tokens, text),
        }
    }

    /// Whether the count is the provider's own.
    pub fn exact(&self) -> bool {
        self.exact
    }

    /// How far the true count may lie above, as a share: `upper = ceil(tokens * (1 + margin))`.
    pub fn margin(&self) -> f64 {
        self.margin
    }

    /// The encoder behind a counter with a vocabulary: ids, bytes and safe cuts. Its counts are not
    /// scaled by a model's factors.
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
        let tokens = match &self.engine {
            Engine::Encoder(encoder) => encoder.count(text),
            Engine::Chars(per_token) => estimate::by_chars(text, *per_token),
            Engine::Scripts => estimate::by_scripts(text),
            Engine::Foreign(count) => match count.count_texts(&[text])?[..] {
                [tokens] => tokens,
                ref other => return Err(wrong_number(other.len(), 1)),
            },
        };
        Ok(self.scaled(tokens, text))
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
                    Ok(self.all_scaled(counts, texts))
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
            Engine::Encoder(encoder) => {
                let counts = parallel::count_many(encoder.as_ref(), texts);
                Ok(self.all_scaled(counts, texts))
            }
            Engine::Chars(_) | Engine::Scripts | Engine::Foreign(_) => self.count_many(texts),
        }
    }

    fn all_scaled(&self, mut counts: Vec<u32>, texts: &[&str]) -> Vec<u32> {
        if let Some(factors) = self.factors() {
            for (tokens, text) in counts.iter_mut().zip(texts) {
                *tokens = factors.scale(*tokens, text);
            }
        }
        counts
    }

    /// Whether `text` has at most `max` tokens; stops counting soon after it has more.
    ///
    /// # Errors
    /// As [`count`](Self::count).
    pub fn fits(&self, text: &str, max: u32) -> Result<bool> {
        if let (Some(factors), Engine::Encoder(encoder)) = (self.factors(), &self.engine) {
            check_length(text)?;
            // The most tokens of the vocabulary that can still fit, whatever the text.
            let limit = (f64::from(max) + 0.5) / factors.least();
            let tokens = encoder.count_up_to(text, limit as u32);
            return Ok(tokens.is_some_and(|tokens| factors.scale(tokens, text) <= max));
        }
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
            Engine::Encoder(encoder) if self.factors().is_none() => {
                truncate(&ById(encoder.as_ref()), text, max, keep)
            }
            Engine::Encoder(_) | Engine::Chars(_) | Engine::Scripts | Engine::Foreign(_) => {
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
