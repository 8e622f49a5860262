//! Plain text: its headings, how it opens and how it ends.

use super::Unit;
use super::line::{self, Groups};

const FIRST: [f32; 6] = [0.8, 0.65, 0.5, 0.45, 0.4, 0.35];
const LAST: [f32; 4] = [0.7, 0.55, 0.45, 0.35];
const HEADING: f32 = 0.55;
/// A line between, falling from the start to the end, so that equal lines are kept from the top.
const BODY: f32 = 0.3;
const BODY_AT_END: f32 = 0.15;
const REPEATED: f32 = 0.05;

pub(crate) fn weigh(text: &str, units: &mut [Unit]) {
    let mut groups = Groups::default();
    let count = units.len().max(1) as f32;
    let mut is_code = false;
    for (index, unit) in units.iter_mut().enumerate() {
        let whole = line::of(text, unit);
        let content = line::without_number(whole).trim_ascii_start();
        let (group, place) = groups.enter(line::hash(content));
        unit.group = group;
        if content.starts_with(b"```") {
            is_code = !is_code;
        }
        unit.weight = if content.is_empty() {
            0.0
        } else if place > 0 {
            REPEATED
        } else if !is_code && is_heading(content) {
            HEADING
        } else {
            BODY - (BODY - BODY_AT_END) * index as f32 / count
        };
    }
    line::raise_ends(text, units, &FIRST, &LAST);
}

/// Markdown's `#`, a line in bold, a line that ends with a colon.
fn is_heading(content: &[u8]) -> bool {
    matches!(content, [b'#', b'#' | b' ', ..])
        || (content.starts_with(b"**") && content.ends_with(b"**"))
        || (content.len() < 80 && content.ends_with(b":") && !content.starts_with(b"-"))
}
