//! Writing a text again with some of its units.

use super::marker::Markers;
use super::{Structure, Unit, json_render};

/// What was written, and how much of the text was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// The text.
    pub(crate) text: String,
    /// Units that are not in it.
    pub(crate) left_out: usize,
}

/// Writes the kept units verbatim and in order, and one marker for each gap.
///
/// `kept` are indices of `units`; those that a kept one needs are kept with it. The first marker
/// names the pointer, unless that is empty: `[… 37 lines left out (31-67): 35 like "GET /health
/// 200"; page_in("p_…")]`, in JSON `"… 12 of 40 rows left out, page p_…"`. Numbers in
/// brackets are line numbers of the text, from 1. A gap that is not longer than its marker is
/// written out, so that the result is never longer than the text; with everything kept it is the
/// text. Units of JSON give valid JSON.
///
/// # Example
/// ```
/// use satchel_core::prune::structure::{Structure, render, units};
/// let text = format!("start\n{}ERROR disk full\n", "GET /health 200\n".repeat(37));
/// let units = units(&text, Structure::Log);
/// let kept = [0, 38];
/// assert_eq!(
///     render(&text, Structure::Log, &units, &kept, ""),
///     "start\n[… 37 lines left out (2-38): 37 like \"GET /health 200\"]\nERROR disk full\n"
/// );
/// ```
pub fn render(
    text: &str,
    structure: Structure,
    units: &[Unit],
    kept: &[u32],
    pointer: &str,
) -> String {
    rendered(text, structure, units, kept, pointer).text
}

/// How many units a rendering with these kept leaves out: lines, or elements of JSON.
pub fn left_out_lines(
    text: &str,
    structure: Structure,
    units: &[Unit],
    kept: &[u32],
    pointer: &str,
) -> usize {
    rendered(text, structure, units, kept, pointer).left_out
}

/// Whether a rendering is worth having: shorter than the text, in bytes.
pub fn saves(text: &str, rendered: &str) -> bool {
    rendered.len() < text.len()
}

pub(crate) fn rendered(
    text: &str,
    structure: Structure,
    units: &[Unit],
    kept: &[u32],
    pointer: &str,
) -> Rendered {
    let keep = with_parents(units, kept);
    if keep.iter().all(|keep| *keep) {
        return Rendered {
            text: text.to_owned(),
            left_out: 0,
        };
    }
    let is_divided = units.get(1).is_some_and(|second| second.parent == Some(0));
    if structure == Structure::Json && is_divided {
        return json_render::rendered(text, units, &keep, pointer);
    }
    let short = lines(text, structure, units, &keep, pointer);
    // A string or a number; other values are shorter than any marker.
    let begins_value = |first: char| matches!(first, '"' | '-' | '0'..='9');
    let is_lone_value = structure == Structure::Json
        && units.len() == 1
        && text.trim_start().starts_with(begins_value);
    if !is_lone_value {
        return short;
    }
    // Its marker is a string too.
    let quoted = serde_json::Value::from(short.text.trim_end()).to_string();
    if quoted.len() >= text.len() {
        return Rendered {
            text: text.to_owned(),
            left_out: 0,
        };
    }
    Rendered {
        text: quoted,
        left_out: short.left_out,
    }
}

/// Which units are kept, those that kept ones need included.
pub(crate) fn with_parents(units: &[Unit], kept: &[u32]) -> Vec<bool> {
    let mut keep = vec![false; units.len()];
    for &index in kept {
        let mut next = Some(index as usize);
        while let Some(index) = next {
            let (Some(unit), Some(slot)) = (units.get(index), keep.get_mut(index)) else {
                break;
            };
            if std::mem::replace(slot, true) {
                break;
            }
            // Only an earlier unit can be a parent.
            next = unit
                .parent
                .map(|parent| parent as usize)
                .filter(|parent| *parent < index);
        }
    }
    keep
}

fn lines(
    text: &str,
    structure: Structure,
    units: &[Unit],
    keep: &[bool],
    pointer: &str,
) -> Rendered {
    let mut markers = Markers::new(text, structure, units.len(), pointer);
    let mut out = String::with_capacity(text.len().min(1 << 16));
    let mut left_out = 0;
    let mut at = 0;
    while at < units.len() {
        if keep[at] {
            out.push_str(units[at].text(text));
            at += 1;
            continue;
        }
        let first = at;
        while at < units.len() && !keep[at] {
            at += 1;
        }
        let gap = text
            .get(units[first].start as usize..units[at - 1].end as usize)
            .unwrap_or_default();
        let line_end = if gap.ends_with("\r\n") {
            "\r\n"
        } else if gap.ends_with('\n') {
            "\n"
        } else {
            ""
        };
        match markers.for_lines(units, first, at, gap.len() - line_end.len()) {
            Some(marker) => {
                out.push_str(&marker);
                out.push_str(line_end);
                markers.said();
                left_out += at - first;
            }
            None => out.push_str(gap),
        }
    }
    Rendered {
        text: out,
        left_out,
    }
}
