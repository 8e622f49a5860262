//! What the elements of JSON are worth: rows of a new shape, extremes, members that tell.

use super::json_scan::{Scan, scan, skip_space, string};
use super::line::{self, Groups};
use super::{Structure, Unit, words};

/// Whether a text is one JSON object or array, nested at most as deep as messages may be.
pub(crate) fn is_json(text: &str) -> bool {
    scan::<false>(text).is_some()
}

/// The elements of a JSON text; the first is the opening of the whole. `None` if it is none.
pub(crate) fn units(text: &str) -> Option<Vec<Unit>> {
    divide(text).map(|divided| weighed(text, divided))
}

/// The elements of a text before they are weighed; `None` if it is no JSON.
pub(crate) fn divide(text: &str) -> Option<Scan> {
    scan::<true>(text)
}

/// The elements of a text with their weights.
pub(crate) fn weighed(text: &str, Scan { mut units, shapes }: Scan) -> Vec<Unit> {
    weigh(text, &mut units, &shapes);
    words::raise(text, Structure::Json, &mut units);
    units
}

const ROOT: f32 = 1.0;
const TELLING: f32 = 0.6;
const SHORT: f32 = 0.35;
const LONG: f32 = 0.2;
const CONTAINER: f32 = 0.4;
const FIRST_ROW: f32 = 0.6;
const SECOND_ROW: f32 = 0.25;
const LAST_ROW: f32 = 0.4;
const ROW: f32 = 0.1;
/// The first row of a shape that differs from those before.
const OUTLIER: f32 = 0.6;
const FIRST_LINE: f32 = 0.5;
const LAST_LINE: f32 = 0.5;
const LINE: f32 = 0.15;
/// What each level of nesting leaves of a weight.
const DEPTH: f32 = 0.94;

/// Keys whose values tell what a record is or how something came out.
const TELLING_KEYS: [&str; 24] = [
    "id",
    "name",
    "status",
    "state",
    "error",
    "errors",
    "message",
    "code",
    "type",
    "title",
    "total",
    "count",
    "result",
    "summary",
    "url",
    "path",
    "email",
    "success",
    "exit_code",
    "exitCode",
    "reason",
    "date",
    "key",
    "kind",
];

/// The key of a member, as it is written.
pub(crate) fn key_of<'a>(text: &'a str, unit: &Unit) -> Option<&'a str> {
    let body = unit.text(text).strip_prefix('"')?;
    let mut escaped = false;
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return body.get(..at),
            _ => {}
        }
    }
    None
}

/// The sign that opens a container: its unit's last byte.
pub(crate) fn sign_of(text: &str, unit: &Unit) -> u8 {
    let end = unit.end as usize;
    let last = end.checked_sub(1).and_then(|at| text.as_bytes().get(at));
    last.copied().unwrap_or_default()
}

fn weigh(text: &str, units: &mut [Unit], shapes: &[u64]) {
    let mut groups = Groups::default();
    let mut factors = vec![1.0f32; units.len()];
    let mut children = vec![0u32; units.len()];
    let mut last_child = vec![0u32; units.len()];
    for index in 0..units.len() {
        let is_container = units
            .get(index + 1)
            .is_some_and(|next| next.parent == Some(index as u32));
        let Some(parent) = units[index].parent.map(|parent| parent as usize) else {
            units[index].weight = ROOT;
            units[index].group = groups.enter(0).0;
            continue;
        };
        let sign = sign_of(text, &units[parent]);
        let shape = line::hash(&shapes[index].to_le_bytes()) ^ (parent as u64);
        let (group, place) = groups.enter(shape);
        let position = children[parent];
        children[parent] += 1;
        last_child[parent] = index as u32;
        factors[index] = factors[parent] * DEPTH;
        let unit = &mut units[index];
        unit.group = group;
        let weight = match sign {
            b'{' => {
                let key = key_of(text, unit).unwrap_or_default();
                if TELLING_KEYS.contains(&key) || key.ends_with("_id") || key.ends_with("Id") {
                    TELLING
                } else if is_container {
                    CONTAINER
                } else if unit.bytes() <= 80 {
                    SHORT
                } else {
                    LONG
                }
            }
            b'[' => match position {
                0 => FIRST_ROW,
                _ if place == 0 => OUTLIER,
                1 => SECOND_ROW,
                _ => ROW,
            },
            _ if position == 0 => FIRST_LINE,
            _ => LINE,
        };
        unit.raise(weight * factors[index]);
    }
    for parent in 0..units.len() {
        if children[parent] < 2 {
            continue;
        }
        let weight = match sign_of(text, &units[parent]) {
            b'[' => LAST_ROW,
            b'"' => LAST_LINE,
            _ => continue,
        };
        let last = last_child[parent] as usize;
        let weight = weight * factors[last];
        units[last].raise(weight);
    }
}

const FIRST_OF_SHAPE: f32 = 0.55;
const LAST_OF_SHAPE: f32 = 0.25;
const REPEATED: f32 = 0.08;

/// Weighs lines that are JSON each: the first of every shape, the last of it, the ends.
pub(crate) fn weigh_lines(text: &str, units: &mut [Unit]) {
    let mut groups = Groups::default();
    let mut last = Vec::new();
    for (index, unit) in units.iter_mut().enumerate() {
        let content = line::of(text, unit);
        if content.is_empty() {
            continue;
        }
        let (group, place) = groups.enter(line_shape(content));
        unit.group = group;
        unit.weight = if place == 0 { FIRST_OF_SHAPE } else { REPEATED };
        match last.get_mut(group as usize) {
            Some(last) => *last = index,
            None => last.push(index),
        }
    }
    for index in last {
        units[index].raise(LAST_OF_SHAPE);
    }
    line::raise_ends(text, units, &[0.6, 0.3], &[0.6]);
}

/// Keys whose value is part of the shape of a record.
const KIND_KEYS: [&str; 6] = ["type", "event", "level", "kind", "role", "status"];

/// A number for the keys at the start of an object, and the value of those that tell its kind.
fn line_shape(content: &[u8]) -> u64 {
    let mut shape = 0u64;
    let mut depth = 0usize;
    let mut at = 0;
    let mut is_kind = false;
    while let Some(&byte) = content.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some(end) = string::<false>(content, at, &mut Vec::new()) else {
                    return shape;
                };
                let inside = &content[at + 1..end - 1];
                let is_key = content.get(skip_space(content, end)) == Some(&b':');
                if is_key && depth == 1 {
                    shape = shape.wrapping_add(line::hash(inside));
                    is_kind = KIND_KEYS.iter().any(|key| key.as_bytes() == inside);
                } else if is_kind {
                    shape = shape.wrapping_add(line::hash(inside).rotate_left(17));
                    is_kind = false;
                }
                at = end;
                continue;
            }
            b',' => is_kind = false,
            _ => {}
        }
        at += 1;
    }
    shape
}
