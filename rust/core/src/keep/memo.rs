//! What is found out about single parts once, however many choices look at them.

use std::collections::BTreeMap;

use crate::prune::structure::{Structure, Unit, detect, units};

/// Units that are remembered, as many as a few megabytes hold.
const MOST_UNITS: usize = 1 << 17;

/// How the texts of parts are divided. A part never changes, so that nothing goes out of date; what
/// is remembered changes no result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memo {
    divided: BTreeMap<u32, Option<Box<[Unit]>>>,
    /// Units in it, and one for each part.
    held: usize,
}

impl Memo {
    /// The units of the text of a part, if it has a structure that explains its lines.
    pub(super) fn units(&mut self, part: u32, text: &str) -> Option<&[Unit]> {
        if self.held > MOST_UNITS {
            *self = Self::default();
        }
        let divided = self.divided.entry(part).or_insert_with(|| {
            let units = divide(text);
            self.held += 1 + units.as_deref().map_or(0, <[Unit]>::len);
            units
        });
        divided.as_deref()
    }
}

fn divide(text: &str) -> Option<Box<[Unit]>> {
    let structure = detect(text);
    let explains = matches!(
        structure,
        Structure::Diff
            | Structure::Search
            | Structure::Code
            | Structure::Table
            | Structure::Trace
            | Structure::Json
    );
    explains.then(|| units(text, structure).into())
}
