//! Structure-aware trimming: what a text is made of, what its pieces are worth, and how the kept
//! ones are written.
//!
//! A text is told by its form ([`detect`]), divided into [`Unit`]s ([`units`]: whole lines, or the
//! elements of JSON), and written again with some of them ([`render`]): kept units verbatim, each
//! gap one marker that says what and how much is missing. The caller chooses what is kept, by its
//! own lights or with [`outline`].
//!
//! Invariants: pure and deterministic; units do not overlap and stand in the order of the text; a
//! rendered text is never longer than the original, since a gap that its marker would outgrow is
//! written out; rendered JSON is valid JSON. Cost: linear in the text.

mod code;
mod detect;
mod diff;
mod json;
mod json_render;
mod json_scan;
mod line;
mod listing;
mod log;
mod marker;
mod outline;
mod prose;
mod render;
mod search;
mod stub;
mod table;
mod trace;
mod trim;
mod unit;
mod words;

use crate::marker::{LINES, Nouns};

pub use detect::detect;
pub(crate) use json::{divide, weighed};
pub(crate) use json_scan::Scan;
pub use outline::{boost_matching, outline};
pub use render::{left_out_lines, render, saves};
pub use stub::Stub;
pub use trim::{Trimmed, trim};
pub use unit::{Unit, units};

/// The form of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Structure {
    /// One JSON object or array.
    Json,
    /// A JSON object or array on every line.
    JsonLines,
    /// A unified diff.
    Diff,
    /// A stack trace.
    Trace,
    /// Lines that programs wrote about what they did: logs, builds, test runs.
    Log,
    /// Names of files, one a line.
    Listing,
    /// Search results: lines with file and line number.
    Search,
    /// Rows with a header: Markdown, CSV, TSV, aligned columns.
    Table,
    /// Source code, with or without line numbers.
    Code,
    /// Anything else.
    Text,
}

impl Structure {
    /// Every structure.
    pub const ALL: [Self; 10] = [
        Self::Json,
        Self::JsonLines,
        Self::Diff,
        Self::Trace,
        Self::Log,
        Self::Listing,
        Self::Search,
        Self::Table,
        Self::Code,
        Self::Text,
    ];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::JsonLines => "json_lines",
            Self::Diff => "diff",
            Self::Trace => "trace",
            Self::Log => "log",
            Self::Listing => "listing",
            Self::Search => "search",
            Self::Table => "table",
            Self::Code => "code",
            Self::Text => "text",
        }
    }

    /// What its units are called in a marker: one, several.
    pub(crate) fn nouns(self) -> Nouns {
        match self {
            Self::Listing => ("entry", "entries"),
            Self::Table => ("row", "rows"),
            _ => LINES,
        }
    }
}
