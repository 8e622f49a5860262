//! A choice of units by their own weights, for callers that know of no references.

use std::fmt::Write as _;

use aho_corasick::{AhoCorasick, MatchKind};

use super::{Structure, Unit};

/// Bytes that a marker takes, about.
const MARKER_BYTES: usize = 44;

/// Weight from which a short unit stands between two gaps.
const WORTH_A_GAP: f32 = 0.3;

/// Weights are told apart in steps of 1/256, up to 2 (what matches a literal has more than 1).
const STEPS: f32 = 256.0;
const BUCKETS: usize = 2 * 256 + 1;

/// Chooses units by weight, with those that they need, until about `max_bytes` are used.
///
/// Returns their indices in order. Equal weights are taken in the order of the text; what does not
/// fit is passed over. Gaps count as markers of 44 bytes, so a rendering may miss `max_bytes` by
/// a little. Linear in the number of units.
///
/// # Example
/// ```
/// use satchel_core::prune::structure::{Structure, outline, units};
/// let text = "def a():\n    x = 1\n    y = 2\n    return x\n\ndef b():\n    pass\n";
/// let units = units(text, Structure::Code);
/// let kept = outline(text, Structure::Code, &units, 80);
/// assert!(kept.contains(&0) && kept.contains(&5), "both signatures");
/// ```
pub fn outline(text: &str, structure: Structure, units: &[Unit], max_bytes: usize) -> Vec<u32> {
    let mut kept = vec![false; units.len()];
    // Before anything is kept all of it is one gap.
    let mut used = MARKER_BYTES.min(text.len());
    // A JSON element has a separator, a container its end.
    let separator = if structure == Structure::Json { 2 } else { 0 };
    let mut chain = Vec::new();
    for index in by_weight(units) {
        let index = index as usize;
        if kept[index] || units[index].weight <= 0.0 {
            continue;
        }
        let is_kept = |at: Option<usize>| at.is_none_or(|at| *kept.get(at).unwrap_or(&true));
        let is_alone = !is_kept(index.checked_sub(1)) && !is_kept(Some(index + 1));
        // A short line of little worth between two gaps costs a marker and explains nothing.
        if is_alone && units[index].weight < WORTH_A_GAP && units[index].bytes() < MARKER_BYTES {
            continue;
        }
        chain.clear();
        let mut next = Some(index);
        while let Some(index) = next.filter(|index| !kept[*index]) {
            chain.push(index);
            next = units[index]
                .parent
                .map(|parent| parent as usize)
                .filter(|parent| *parent < index);
        }
        let before = used;
        for &index in &chain {
            used += units[index].bytes() + separator;
            let is_kept = |at: Option<usize>| at.is_none_or(|at| *kept.get(at).unwrap_or(&true));
            let gaps = usize::from(!is_kept(index.checked_sub(1)))
                + usize::from(!is_kept(Some(index + 1)));
            used = (used + gaps * MARKER_BYTES).saturating_sub(MARKER_BYTES);
            kept[index] = true;
        }
        if used > max_bytes {
            used = before;
            for &index in &chain {
                kept[index] = false;
            }
        }
    }
    (0..units.len() as u32)
        .filter(|index| kept[*index as usize])
        .collect()
}

/// Indices of the units, the weightiest first, equal ones in order.
pub(crate) fn by_weight(units: &[Unit]) -> Vec<u32> {
    let bucket = |unit: &Unit| {
        let step = (unit.weight.clamp(0.0, 2.0) * STEPS) as usize;
        BUCKETS - 1 - step.min(BUCKETS - 1)
    };
    let mut starts = [0usize; BUCKETS + 1];
    for unit in units {
        starts[bucket(unit) + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut order = vec![0u32; units.len()];
    for (index, unit) in units.iter().enumerate() {
        let slot = &mut starts[bucket(unit)];
        order[*slot] = index as u32;
        *slot += 1;
    }
    order
}

/// What a unit with a wanted literal has more than any other.
const MATCHED: f32 = 1.0;
/// Its neighbours, where lines explain each other.
const BESIDE: f32 = 0.6;

/// Raises the units that hold one of the literals above all others, and lines beside them.
///
/// In JSON a literal is also found in the form in which strings hold it (`\"`, `\n`, `\ud55c`). The
/// weights of such units are 1..2. Empty literals match nothing.
pub fn boost_matching(text: &str, structure: Structure, units: &mut [Unit], matching: &[&str]) {
    let mut literals: Vec<String> = Vec::new();
    for literal in matching.iter().filter(|literal| !literal.is_empty()) {
        literals.push((*literal).to_owned());
        if matches!(structure, Structure::Json | Structure::JsonLines) {
            literals.push(escaped(literal, false));
            literals.push(escaped(literal, true));
        }
    }
    let builder = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(&literals);
    let Ok(matcher) = builder else { return };
    if literals.is_empty() {
        return;
    }
    let explains = matches!(
        structure,
        Structure::Code | Structure::Text | Structure::Log | Structure::Trace
    );
    let mut unit = 0;
    for hit in matcher.find_iter(text) {
        while units
            .get(unit)
            .is_some_and(|unit| unit.end as usize <= hit.start())
        {
            unit += 1;
        }
        let mut at = unit;
        while let Some(found) = units
            .get_mut(at)
            .filter(|unit| (unit.start as usize) < hit.end())
        {
            if found.weight < MATCHED {
                found.weight += MATCHED;
            }
            at += 1;
        }
        if explains {
            for beside in [unit.checked_sub(1), Some(at)].into_iter().flatten() {
                if let Some(beside) = units.get_mut(beside).filter(|unit| unit.weight > 0.0) {
                    beside.raise(BESIDE);
                }
            }
        }
    }
}

/// A literal as it stands in a JSON string, with other scripts as they are or as escapes.
fn escaped(literal: &str, is_ascii: bool) -> String {
    let quoted = serde_json::Value::String(literal.to_owned()).to_string();
    let inside = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    if !is_ascii {
        return inside.to_owned();
    }
    let mut out = String::with_capacity(inside.len());
    let mut pair = [0; 2];
    for c in inside.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut pair) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}
