//! What kept lines need around them to be understood: the file and the hunk of a changed line, the
//! signature around a line of code, the header of a row, the file of a search hit, the key of what
//! stands inside an object.

use crate::prune::structure::Unit;
use crate::shrink::Span;

/// Bytes of a line above which it explains too little for what it takes.
const LONGEST: u32 = 200;

/// Lines around each other that are followed outwards: the innermost say most.
const DEEPEST: usize = 4;

/// The kept lines of a text with those that explain them, sorted and not overlapping. `kept` is
/// sorted; `shown` has what is still visible of the text, `None` for all of it. `units` divides the
/// text, if its structure explains.
pub(super) fn explained<'m>(
    text: &str,
    kept: &[Span],
    shown: Option<&[Span]>,
    units: impl FnOnce() -> Option<&'m [Unit]>,
) -> Vec<Span> {
    let mut spans = kept.to_vec();
    if kept.is_empty() || !text.trim_end().contains('\n') {
        return spans;
    }
    let Some(units) = units() else {
        return spans;
    };
    let mut parents = Vec::new();
    for span in kept {
        let first = units.partition_point(|unit| unit.end <= span.start);
        for unit in units[first..]
            .iter()
            .take_while(|unit| unit.start < span.end)
        {
            parents.extend(around(units, unit));
        }
    }
    parents.sort_unstable();
    parents.dedup();
    let lines = parents
        .into_iter()
        .map(|parent| line_of(text, units[parent as usize].start));
    let is_visible = |line: &Span| {
        shown.is_none_or(|shown| {
            let after = shown.partition_point(|span| span.start <= line.start);
            let before = after.checked_sub(1).and_then(|at| shown.get(at));
            before.is_some_and(|span| line.end <= span.end)
        })
    };
    spans.extend(lines.filter(|line| line.bytes() <= LONGEST && is_visible(line)));
    spans.sort_unstable();
    Span::merged(&spans, 0)
}

/// The units around a unit, from the inside outwards.
fn around<'a>(units: &'a [Unit], unit: &'a Unit) -> impl Iterator<Item = u32> + 'a {
    let mut next = unit.parent;
    std::iter::from_fn(move || {
        let at = next?;
        // Only an earlier unit can be a parent.
        next = units.get(at as usize)?.parent.filter(|outer| *outer < at);
        Some(at)
    })
    .take(DEEPEST)
}

/// The line of a text that holds byte `at`, without its line end.
fn line_of(text: &str, at: u32) -> Span {
    let bytes = text.as_bytes();
    let at = (at as usize).min(bytes.len());
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
    let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end);
    Span::new(start as u32, end as u32)
}
