//! Trimming a text to a limit without knowing who needs what of it.

use crate::error::Result;
use crate::marker::{CHARACTERS, amount, marker, one_line};
use crate::prune::text::head_and_tail;

use super::render::rendered;
use super::{Structure, Unit, boost_matching, detect, outline, units};

/// A text within its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// The text that is left, with markers.
    pub text: String,
    /// What the text was.
    pub structure: Structure,
    /// Lines that were left out; for JSON elements.
    pub left_out_lines: usize,
}

/// Halvings of the interval in which the best byte limit lies.
const ROUNDS: usize = 9;

/// Trims a text until `fits` says yes: the weightiest units, those with one of the literals first.
///
/// `fits` is a limit in any unit: more text never fits where less did not. `most_bytes` is a number
/// of bytes that surely does not fit, to start from. What has no lines to leave out (one line longer
/// than the limit) keeps its head and its tail; a limit too small for a marker leaves only a
/// beginning. JSON stays JSON unless the limit is too small for that.
///
/// # Errors
/// What `fits` returns.
pub fn trim(
    text: &str,
    most_bytes: usize,
    matching: &[&str],
    pointer: &str,
    fits: &dyn Fn(&str) -> Result<bool>,
) -> Result<Trimmed> {
    let structure = detect(text);
    let whole = |text: &str, left_out_lines| Trimmed {
        text: text.to_owned(),
        structure,
        left_out_lines,
    };
    if fits(text)? {
        return Ok(whole(text, 0));
    }
    let mut units = units(text, structure);
    boost_matching(text, structure, &mut units, matching);
    let most = most_bytes.min(text.len());
    let lines = |bytes: usize| {
        let kept = outline(text, structure, &units, bytes);
        let rendered = rendered(text, structure, &units, &kept, pointer);
        Some((rendered.text, rendered.left_out))
    };
    let is_divisible = structure == Structure::Json || !has_giant(text, &units);
    if is_divisible && let Some((text, left_out)) = longest(most, fits, lines)? {
        return Ok(whole(&text, left_out));
    }
    let pointer = one_line(pointer, 200);
    let ends = |bytes: usize| {
        let (head, tail) = head_and_tail(text, bytes)?;
        let left_out = text.get(head.len()..text.len() - tail.len())?;
        let characters = left_out.chars().count();
        let gap = marker(&amount(characters, CHARACTERS, false), &pointer);
        let cut = format!("{head} {gap} {tail}");
        Some((cut, left_out.matches('\n').count()))
    };
    if let Some((cut, left_out)) = longest(most, fits, ends)? {
        return Ok(whole(&cut, left_out));
    }
    let beginning = |bytes: usize| {
        let piece = text.get(..text.floor_char_boundary(bytes))?;
        Some((piece.to_owned(), text.len() - piece.len()))
    };
    let beginning = longest(most, fits, beginning)?.map(|(piece, _)| piece);
    let piece = beginning.unwrap_or_default();
    let left_out = text.get(piece.len()..).unwrap_or_default();
    Ok(whole(&piece, left_out.lines().count()))
}

/// Whether one line is most of the text: leaving it out or not is no choice.
fn has_giant(text: &str, units: &[Unit]) -> bool {
    units.iter().any(|unit| unit.bytes() * 2 > text.len())
}

/// The text that `write` makes from the greatest number of bytes for which it fits.
fn longest(
    most: usize,
    fits: &dyn Fn(&str) -> Result<bool>,
    write: impl Fn(usize) -> Option<(String, usize)>,
) -> Result<Option<(String, usize)>> {
    let mut best = None;
    let (mut low, mut high) = (0, most);
    for round in 0..=ROUNDS {
        // First whether anything fits at all.
        let bytes = if round == 0 {
            0
        } else {
            low + (high - low) / 2
        };
        let Some(written) = write(bytes) else {
            return Ok(best);
        };
        if fits(&written.0)? {
            low = bytes;
            best = Some(written);
        } else if round == 0 {
            return Ok(None);
        } else {
            high = bytes;
        }
        if high - low <= 1 {
            break;
        }
    }
    Ok(best)
}
