//! The figures of one model, as a value that a [`Counter`](super::Counter) carries.
//!
//! Nothing here knows a model: the figures come from the caller's data. Without them a counter uses
//! those of the dialect ([`ChatRules::of`], [`ToolRules::of`]).

use serde::{Deserialize, Serialize};

use super::chat::ChatRules;
use super::factors::Factors;
use super::images::ImageRules;
use super::tools::ToolRules;
use crate::error::{Error, ErrorKind, Result};

/// Everything that decides what a request to one model costs, beside the vocabulary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRules {
    /// The model's name.
    pub name: Box<str>,
    /// Around messages and requests.
    pub chat: ChatRules,
    /// Calls and their results.
    pub calls: CallRules,
    /// Tool definitions.
    pub tools: ToolRules,
    /// Images.
    pub images: ImageRules,
    /// Sounds and documents.
    pub media: MediaRules,
    /// Signed reasoning; `None` if its text says what it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningRules>,
    /// Tokens of the model for one token of the vocabulary; `None` if they are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factors: Option<Factors>,
}

impl ModelRules {
    /// Reads rules from their JSON.
    ///
    /// # Errors
    /// `invalid_value` for a field that is missing, unknown or out of range.
    pub fn from_json(json: &str) -> Result<Self> {
        let wrong = |what: &dyn std::fmt::Display| {
            Error::new(ErrorKind::InvalidValue, format!("rules of a model: {what}"))
        };
        let rules: Self = serde_json::from_str(json).map_err(|error| wrong(&error))?;
        if rules.factors.is_some_and(|factors| !factors.is_valid()) {
            return Err(wrong(&"a factor must be finite and above 0"));
        }
        rules.images.check()?;
        Ok(rules)
    }

    /// The JSON that [`ModelRules::from_json`] reads.
    pub fn to_json(&self) -> String {
        // A struct of numbers and texts always has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// What a call and the framing of its result cost beside their texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRules {
    /// For each call.
    pub per_call: u32,
    /// For each argument of a call, where `raw` takes them apart.
    pub per_argument: u32,
    /// How often the name of the tool is counted: 2 where the result carries it again.
    pub names: u32,
    /// Whether the model sees each argument as plain text, not the JSON of all of them.
    pub raw: bool,
}

/// What sounds and documents cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaRules {
    /// Tokens of a second of sound.
    pub audio_second: u32,
    /// Tokens of a document whose pages are not looked at.
    pub document: u32,
}

/// What reasoning costs whose signature carries all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasoningRules {
    /// Characters of a signature that carry nothing.
    pub signature_fixed: u32,
    /// Further characters of a signature for a token of reasoning.
    pub signature_chars: u32,
}
