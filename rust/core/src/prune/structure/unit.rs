//! The pieces of a text that are kept or left out whole.

use super::{Structure, code, diff, json, line, listing, log, prose, search, table, words};

/// A piece of a text: a whole line with its line end, or an element of JSON.
///
/// An element is a value in an array or a member with its key, as it stands in the text. Large
/// arrays, objects and strings are divided: the unit of such a container is its opening (`"rows":
/// [`), and the units inside name it as their parent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Byte offset of its start.
    pub start: u32,
    /// Byte offset behind its end.
    pub end: u32,
    /// 0..1: what it is worth by itself, before anything is known of who needs it.
    pub weight: f32,
    /// Index of a unit that must be kept with it; always an earlier one.
    pub parent: Option<u32>,
    /// Units that resemble each other share it: the template of a log line, the file of a diff line
    /// or a search result, the folder of a listing, the enclosing signature of a code line, the
    /// shape of a JSON element. Less than the number of units.
    pub group: u32,
}

impl Unit {
    /// A unit over a span, worth nothing yet.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self {
            start: start as u32,
            end: end as u32,
            weight: 0.0,
            parent: None,
            group: 0,
        }
    }

    /// Its text; empty if it is not of this text.
    pub fn text<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.start as usize..self.end as usize)
            .unwrap_or("")
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Makes it worth at least `weight`.
    pub(crate) fn raise(&mut self, weight: f32) {
        self.weight = self.weight.max(weight);
    }
}

/// Divides a text into its units, in order.
///
/// Lines cover the text without a gap. JSON elements cover it but for white space, separators and
/// closing brackets; text that is not JSON after all is divided into lines. Nothing is returned for
/// a text of 4 GiB or more.
///
/// # Example
/// ```
/// use satchel_core::prune::structure::{Structure, units};
/// let text = "started\nERROR disk full\nstopped\n";
/// let units = units(text, Structure::Log);
/// assert_eq!(units.len(), 3);
/// assert_eq!(units[1].text(text), "ERROR disk full\n");
/// assert!(units[1].weight > units[0].weight);
/// ```
pub fn units(text: &str, structure: Structure) -> Vec<Unit> {
    if u32::try_from(text.len()).is_err() {
        return Vec::new();
    }
    if structure == Structure::Json
        && let Some(units) = json::units(text)
    {
        return units;
    }
    let mut units = line::units(text);
    match structure {
        Structure::JsonLines => json::weigh_lines(text, &mut units),
        Structure::Diff => diff::weigh(text, &mut units),
        Structure::Trace | Structure::Log => log::weigh(text, &mut units),
        Structure::Listing => listing::weigh(text, &mut units),
        Structure::Search => search::weigh(text, &mut units),
        Structure::Table => table::weigh(text, &mut units),
        Structure::Code => code::weigh(text, &mut units),
        Structure::Json | Structure::Text => prose::weigh(text, &mut units),
    }
    words::raise(text, structure, &mut units);
    units
}
