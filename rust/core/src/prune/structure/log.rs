//! Logs, builds and test runs: the first of each template, the outcome, the traces.

use super::line::{self, Groups};
use super::{Unit, trace};

const FIRST: [f32; 2] = [0.7, 0.4];
const LAST: [f32; 4] = [0.75, 0.6, 0.45, 0.35];

/// A line of a template that comes up once.
const ONLY: f32 = 0.4;
/// The first line of a template.
const REPRESENTATIVE: f32 = 0.5;
/// Its last line: where a repetition ended.
const FINAL: f32 = 0.2;
const REPEATED: f32 = 0.05;
/// Lines of a test report that tell why a test failed.
const REASON: f32 = 0.7;

pub(crate) fn weigh(text: &str, units: &mut [Unit]) {
    let mut groups = Groups::default();
    let mut places = Vec::with_capacity(units.len());
    for unit in units.iter_mut() {
        let content = line::of(text, unit);
        let (group, place) = groups.enter(line::template(content));
        unit.group = group;
        places.push(place);
        unit.weight = if content.iter().any(u8::is_ascii_alphanumeric) || !content.is_ascii() {
            REPEATED
        } else {
            0.0
        };
    }
    for (unit, place) in units.iter_mut().zip(places) {
        if unit.weight == 0.0 {
            continue;
        }
        let count = groups.count(unit.group);
        if count == 1 {
            unit.weight = ONLY;
        } else if place == 0 {
            unit.weight = REPRESENTATIVE;
        } else if place + 1 == count {
            unit.weight = FINAL;
        }
        let content = line::of(text, unit);
        if content.starts_with(b"E  ") || content.starts_with(b"FAILED ") {
            unit.raise(REASON);
        }
    }
    line::raise_ends(text, units, &FIRST, &LAST);
    trace::weigh(text, units);
}
