//! Events: what happened to a log besides messages, as JSON `{kind, at, …}`.
//!
//! An event with `at = n` is folded before message n. Event 0 is `settings`.

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result, bounded};
use crate::policy::Policy;
use crate::strategy::price::Prices;
use crate::tokens::Scale;

/// Settings of the log from a point on. A later `settings` event names only what changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingsChange {
    /// The model's name; said for the record, the core decides nothing by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The dialect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Name of the counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<String>,
    /// Input tokens of the whole request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// The policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Tokens of a system prompt outside the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_tokens: Option<u64>,
    /// Tokens of the tool definitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_tokens: Option<u64>,
    /// What the model's input costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// Key of the page pointers; only in event 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_key: Option<String>,
}

/// A summary: what a model or somebody else wrote, and what is quoted word for word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Raw index of the first message that it covers, and one past the last.
    pub covers: (usize, usize),
    /// The text.
    pub text: String,
    /// Lines of what it covers that must stay exact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<Receipt>,
}

/// A line that is quoted word for word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Raw index of its message; none if that came before a change of the dialect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<usize>,
    /// Where it is from, as the window says it.
    pub source: String,
    /// The line.
    pub text: String,
}

/// Something that is known from other conversations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// What it says.
    pub text: String,
    /// Where it is from, as the window says it.
    #[serde(default)]
    pub source: String,
}

/// Language of what the window itself says about quoted material.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Language {
    /// English.
    #[default]
    #[serde(rename = "en")]
    English,
    /// Korean.
    #[serde(rename = "ko")]
    Korean,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventKind {
    /// Settings changed.
    Settings(Box<SettingsChange>),
    /// The step of this message must stay verbatim.
    Pin {
        /// Raw message index.
        index: usize,
    },
    /// The step of this message may be lowered again.
    Unpin {
        /// Raw message index.
        index: usize,
    },
    /// Content of a page is placed here.
    PageIn {
        /// The page's pointer.
        pointer: String,
        /// First and last line, from 1, both included; everything if missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        range: Option<(usize, usize)>,
    },
    /// A text stands for a range of steps, which are gone from here on.
    Summary(Box<Summary>),
    /// Things that are known from other conversations are shown here, as data.
    Memories {
        /// In the order in which they are shown.
        items: Vec<Remembered>,
        /// Of the note on them.
        #[serde(default)]
        language: Language,
    },
    /// The provider's cache is lost, or not: after a pause, say. Until the next call a rewrite is free.
    Cache {
        /// Whether it is lost.
        cold: bool,
    },
    /// Counts are scaled by this from the next boundary on; they themselves stay as they are.
    Calibration(Scale),
}

/// An event and its place in the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Raw index of the message before which it is folded.
    pub at: usize,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// Reads one event.
    ///
    /// # Errors
    /// `invalid_event`, naming the event's position in its list.
    pub fn from_json(json: &serde_json::Value, position: usize) -> Result<Self> {
        Self::deserialize(json).map_err(|error| {
            Error::new(
                ErrorKind::InvalidEvent,
                format!(
                    "event {position} cannot be read: {}",
                    bounded(error.to_string())
                ),
            )
        })
    }
}
