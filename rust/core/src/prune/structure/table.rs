//! Tables: Markdown, CSV, TSV, aligned columns; their header, totals and extremes.

use memchr::memmem;

use super::Unit;
use super::line;

/// What stands between the cells of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delimiter {
    Comma,
    Tab,
    Bar,
    /// Two spaces or more.
    Spaces,
}

const HEADER: f32 = 0.85;
const RULE: f32 = 0.7;
const FIRST: f32 = 0.5;
const LAST: f32 = 0.45;
const ROW: f32 = 0.2;
const TOTAL: f32 = 0.8;
/// The row with the least or the greatest number of a column.
const EXTREME: f32 = 0.4;
const NOTE: f32 = 0.5;

/// Columns whose extremes are looked for.
const COLUMNS: usize = 8;

/// Whether a line is a row between bars, or the rule below a header.
pub(crate) fn has_bars(line: &[u8]) -> bool {
    let box_drawing = "│".as_bytes();
    match line {
        [b'|', rest @ ..] => rest.contains(&b'|'),
        [b'+', b'-' | b'=', ..] => line.ends_with(b"+"),
        line if line.starts_with(box_drawing) => memmem::find(&line[3..], box_drawing).is_some(),
        line if memchr::memchr(b'|', line).is_some() => {
            memmem::find_iter(line, b" | ").nth(1).is_some() || is_rule(line)
        }
        line => is_rule(line),
    }
}

/// A line of nothing but the signs of a rule.
fn is_rule(line: &[u8]) -> bool {
    line.len() > 2
        && matches!(line[0], b'-' | b'+' | b'|' | b':' | b'=')
        && line.contains(&b'-')
        && line
            .iter()
            .all(|byte| matches!(byte, b'-' | b'+' | b'|' | b':' | b' ' | b'='))
}

/// The delimiter that all of these lines have equally often, or by which their header is set.
pub(crate) fn delimiter(lines: &[&[u8]]) -> Option<Delimiter> {
    let &first = lines.first()?;
    if lines.len() < 3 {
        return None;
    }
    for (delimiter, sign, least) in [(Delimiter::Tab, b'\t', 1), (Delimiter::Comma, b',', 2)] {
        let wanted = cells(first, sign);
        // Numbers before the lines of a file are no column, and statements have no header.
        let is_header = !matches!(first.first(), Some(b' ' | b'\t'))
            && !first
                .iter()
                .any(|byte| matches!(byte, b'{' | b'(' | b';' | b'<' | b'='));
        if wanted < least || !is_header || line::number_length(first).is_some() {
            continue;
        }
        let equal = lines.iter().filter(|line| cells(line, sign) == wanted);
        if equal.count() * 10 >= lines.len() * 9 {
            return Some(delimiter);
        }
    }
    let is_capital = first.iter().all(|byte| !byte.is_ascii_lowercase());
    let columns = gaps(first);
    let aligned = lines.iter().filter(|line| gaps(line) * 2 >= columns);
    (is_capital
        && columns >= 2
        && first.first().is_some_and(u8::is_ascii_uppercase)
        && aligned.count() * 10 >= lines.len() * 8)
        .then_some(Delimiter::Spaces)
}

/// How often a sign stands in a line outside double quotes.
fn cells(line: &[u8], sign: u8) -> usize {
    let mut inside = false;
    let mut count = 0;
    for &byte in line {
        inside ^= byte == b'"';
        count += usize::from(byte == sign && !inside);
    }
    count
}

/// How often two spaces or more stand in a line.
fn gaps(line: &[u8]) -> usize {
    let starts = line
        .windows(3)
        .filter(|three| three[0] != b' ' && three[1] == b' ' && three[2] == b' ');
    starts.count()
}

pub(crate) fn weigh(text: &str, units: &mut [Unit]) {
    let sample: Vec<&[u8]> = units
        .iter()
        .take(40)
        .map(|unit| line::of(text, unit))
        .filter(|line| !line.is_empty())
        .collect();
    let delimiter = delimiter(&sample).unwrap_or(Delimiter::Bar);
    let mut header: Option<u32> = None;
    let mut first_row = true;
    let mut extremes = Extremes::default();
    let mut last_row = None;
    for (index, unit) in units.iter_mut().enumerate() {
        let content = line::of(text, unit).trim_ascii_start();
        let is_row = match delimiter {
            Delimiter::Bar => has_bars(content),
            _ => !content.is_empty(),
        };
        if content.is_empty() {
            continue;
        }
        if !is_row {
            unit.weight = NOTE;
            header = None;
            continue;
        }
        let is_line = is_rule(content) || content.starts_with("├".as_bytes());
        match header {
            None if is_line => unit.weight = ROW,
            None => {
                header = Some(index as u32);
                first_row = true;
                unit.weight = HEADER;
            }
            Some(_) if is_line => {
                unit.parent = header;
                unit.weight = if first_row { RULE } else { ROW };
                if first_row {
                    // Rows need the rule as well, or a Markdown table is none.
                    header = Some(index as u32);
                }
            }
            Some(_) => {
                unit.parent = header;
                unit.weight = if is_total(content) {
                    TOTAL
                } else if first_row {
                    FIRST
                } else {
                    ROW
                };
                first_row = false;
                last_row = Some(index);
                if !is_total(content) {
                    extremes.read(content, delimiter, index);
                }
            }
        }
    }
    for index in extremes.rows() {
        if let Some(unit) = units.get_mut(index) {
            unit.raise(EXTREME);
        }
    }
    if let Some(unit) = last_row.and_then(|index| units.get_mut(index)) {
        unit.raise(LAST);
    }
}

fn is_total(content: &[u8]) -> bool {
    let content = content.trim_ascii_start();
    let content = content
        .strip_prefix(b"|")
        .unwrap_or(content)
        .trim_ascii_start();
    let content = content.strip_prefix(b"**").unwrap_or(content);
    content
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"total"))
        || ["합계", "총계", "소계"]
            .iter()
            .any(|word| content.starts_with(word.as_bytes()))
}

/// The rows with the least and the greatest number of each column.
#[derive(Default)]
struct Extremes {
    columns: [Option<Range>; COLUMNS],
}

#[derive(Clone, Copy)]
struct Range {
    least: (f64, usize),
    greatest: (f64, usize),
}

impl Extremes {
    fn read(&mut self, content: &[u8], delimiter: Delimiter, row: usize) {
        let sign = match delimiter {
            Delimiter::Comma => b',',
            Delimiter::Tab => b'\t',
            Delimiter::Bar => b'|',
            Delimiter::Spaces => return,
        };
        let content = match delimiter {
            Delimiter::Bar => content.strip_prefix(b"|").unwrap_or(content),
            _ => content,
        };
        for (cell, range) in content.split(|byte| *byte == sign).zip(&mut self.columns) {
            let Some(value) = number(cell) else { continue };
            let range = range.get_or_insert(Range {
                least: (value, row),
                greatest: (value, row),
            });
            if value < range.least.0 {
                range.least = (value, row);
            }
            if value > range.greatest.0 {
                range.greatest = (value, row);
            }
        }
    }

    fn rows(&self) -> impl Iterator<Item = usize> {
        self.columns
            .iter()
            .flatten()
            .filter(|range| range.least.0 < range.greatest.0)
            .flat_map(|range| [range.least.1, range.greatest.1])
    }
}

/// The number that a cell is.
pub(crate) fn number(cell: &[u8]) -> Option<f64> {
    let cell = cell.trim_ascii();
    if !(1..=24).contains(&cell.len()) || !matches!(cell[0], b'0'..=b'9' | b'-' | b'+' | b'.') {
        return None;
    }
    let value: f64 = std::str::from_utf8(cell).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}
