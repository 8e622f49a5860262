//! The elements of a JSON text that is one line: its pieces are kept whole, so that what is left is
//! JSON.

use crate::prune::structure::{Scan, Structure, Unit, divide, outline, render, weighed};
use crate::shrink::Span;

/// The elements of a text that is one line of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Elements {
    /// Not weighed: only an outline asks what they are worth.
    scan: Scan,
}

impl Elements {
    /// `None` for any other text.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let is_short = u32::try_from(text.len()).is_ok();
        let may_be_json = is_short && text.trim_start().starts_with(['{', '[']);
        if !may_be_json || text.trim_end().contains('\n') {
            return None;
        }
        let scan = divide(text)?;
        // Only one that is divided has pieces.
        (scan.units.get(1)?.parent == Some(0)).then_some(Self { scan })
    }

    fn units(&self) -> &[Unit] {
        &self.scan.units
    }

    /// The innermost element that holds a piece of the text; `None` between two.
    pub(crate) fn around(&self, piece: Span) -> Option<Span> {
        let after = self
            .units()
            .partition_point(|unit| unit.start <= piece.start);
        let unit = self.units().get(after.checked_sub(1)?)?;
        (piece.end <= unit.end).then(|| Span::new(unit.start, unit.end))
    }

    /// The most telling elements that take about `max_bytes`.
    pub(crate) fn outline(&self, text: &str, max_bytes: usize) -> Vec<Span> {
        let units = weighed(text, self.scan.clone());
        let numbers = outline(text, Structure::Json, &units, max_bytes);
        // What opens a container comes with what is inside.
        let holds = |number: u32| {
            let next = self.units().get(number as usize + 1);
            next.is_some_and(|next| next.parent == Some(number))
        };
        let numbers = numbers.into_iter().filter(|number| !holds(*number));
        let units = numbers.filter_map(|number| self.units().get(number as usize));
        units.map(|unit| Span::new(unit.start, unit.end)).collect()
    }

    /// The text with the kept elements, as JSON; `None` if something else than whole elements is
    /// kept.
    pub(crate) fn written(&self, text: &str, kept: &[Span], pointer: &str) -> Option<String> {
        let mut numbers = Vec::new();
        for span in kept {
            let first = self.units().partition_point(|unit| unit.start < span.start);
            let inside = self.units()[first..]
                .iter()
                .take_while(|unit| unit.end <= span.end)
                .count();
            let begins = self.units().get(first)?.start == span.start;
            let last = self.units().get((first + inside).checked_sub(1)?)?;
            if !begins || last.end != span.end || inside == 0 {
                return None;
            }
            numbers.extend((first..first + inside).map(|number| number as u32));
        }
        Some(render(
            text,
            Structure::Json,
            self.units(),
            &numbers,
            pointer,
        ))
    }
}
