//! The level below trimmed: one line that says what a text was.

use std::fmt::Write as _;

use crate::marker::one_line;
use crate::salience::features::{is_identifier, runs};

use super::json::key_of;
use super::outline::by_weight;
use super::{Structure, Unit, line, search, units};

const TOOL_CHARS: usize = 72;
const CLAIM_CHARS: usize = 88;
/// Identifiers that a stub names besides its claim.
const NAMES: usize = 4;
const NAMES_CHARS: usize = 96;
/// Units that are searched for them, the weightiest first.
const SEARCHED_UNITS: usize = 48;
const FILES: usize = 3;
/// Weight that in code only signatures have.
const SIGNATURE: f32 = 0.65;

/// One line for a text that is paged out: what it was, what it said, names in it, size, pointer.
///
/// `tool_name` may hold the main argument too (`read src/a.rs`); without one the structure's name
/// stands for it. No part of the line can end it: control characters become spaces.
///
/// # Example
/// ```
/// use satchel_core::prune::structure::{Structure, stub_line};
/// let text = "running 3 tests\ntest b ... FAILED\n2 passed; 1 failed\n";
/// assert_eq!(
///     stub_line(text, Structure::Log, "cargo test", "p_7"),
///     "[paged out: cargo test: test b ... FAILED; 3 lines, 53 bytes; page_in(\"p_7\")]"
/// );
/// ```
pub fn stub_line(text: &str, structure: Structure, tool_name: &str, pointer: &str) -> String {
    let units = units(text, structure);
    let tool = one_line(tool_name, TOOL_CHARS);
    let claim = one_line(&claim(text, structure, &units), CLAIM_CHARS);
    let mut out = String::from("[paged out: ");
    out.push_str(if tool.is_empty() {
        structure.name()
    } else {
        &tool
    });
    if !claim.is_empty() {
        let _ = write!(out, ": {claim}");
    }
    let names = names(text, &units, &out);
    if !names.is_empty() {
        let _ = write!(out, "; has {names}");
    }
    let _ = write!(out, "; {}", size(text, structure, &units));
    let pointer = one_line(pointer, 200);
    if !pointer.is_empty() {
        let _ = write!(out, "; page_in(\"{pointer}\")");
    }
    out.push(']');
    out
}

fn size(text: &str, structure: Structure, units: &[Unit]) -> String {
    let bytes = match text.len() {
        bytes @ 0..1000 => format!("{bytes} bytes"),
        bytes => format!("{} KB", bytes.div_ceil(1000)),
    };
    if structure == Structure::Json {
        return bytes;
    }
    let (one, many) = structure.nouns();
    let count = units.len();
    format!("{count} {}, {bytes}", if count == 1 { one } else { many })
}

fn claim(text: &str, structure: Structure, units: &[Unit]) -> String {
    match structure {
        Structure::Json => json_claim(text, units),
        Structure::Diff => diff_claim(text, units),
        Structure::Search => {
            let mut files: Vec<&[u8]> = Vec::new();
            let mut matches = 0;
            for unit in units {
                if let Some((name, is_match)) = search::file_of(line::of(text, unit)) {
                    matches += usize::from(is_match);
                    // Results come file by file.
                    if files.last() != Some(&name) {
                        files.push(name);
                    }
                }
            }
            if matches == 0 {
                return first(text, structure, units);
            }
            let (count, plural) = (files.len(), if files.len() == 1 { "" } else { "s" });
            let names: Vec<_> = files
                .iter()
                .take(FILES)
                .map(|name| String::from_utf8_lossy(name))
                .collect();
            let more = if count > FILES { ", …" } else { "" };
            format!(
                "{matches} matches in {count} file{plural}: {}{more}",
                names.join(", ")
            )
        }
        Structure::Trace | Structure::Log => {
            // Of equals the last one: how it came out.
            let best = units
                .iter()
                .fold(None, |best: Option<&Unit>, unit| match best {
                    Some(best) if best.weight > unit.weight => Some(best),
                    _ => Some(unit),
                });
            best.map_or_else(String::new, |unit| unit.text(text).to_owned())
        }
        _ => first(text, structure, units),
    }
}

/// The first line that says something; in code the first signature at the margin.
fn first(text: &str, structure: Structure, units: &[Unit]) -> String {
    let find = |least: f32| {
        units.iter().find_map(|unit| {
            let line = unit.text(text);
            let number = line::number_length(line.as_bytes()).unwrap_or(0);
            let content = line.get(number..).unwrap_or(line);
            let says = content
                .chars()
                .filter(|c| c.is_alphanumeric())
                .take(3)
                .count()
                == 3;
            (says && unit.weight >= least).then(|| content.to_owned())
        })
    };
    let signature = (structure == Structure::Code)
        .then(|| find(SIGNATURE))
        .flatten();
    signature.or_else(|| find(0.0)).unwrap_or_default()
}

fn json_claim(text: &str, units: &[Unit]) -> String {
    let inside = units.iter().filter(|unit| unit.parent == Some(0));
    if text.trim_start().starts_with('[') {
        let rows = inside.count();
        return format!("{rows} item{}", if rows == 1 { "" } else { "s" });
    }
    let mut told: Vec<&Unit> = inside.clone().filter(|unit| unit.bytes() <= 60).collect();
    told.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    told.truncate(FILES);
    if told.is_empty() {
        let keys: Vec<&str> = inside
            .take(FILES)
            .filter_map(|unit| key_of(text, unit))
            .collect();
        return keys.join(", ");
    }
    let told: Vec<&str> = told.iter().map(|unit| unit.text(text)).collect();
    told.join(", ")
}

fn diff_claim(text: &str, units: &[Unit]) -> String {
    let mut files: Vec<&str> = Vec::new();
    let (mut added, mut removed) = (0, 0);
    for unit in units {
        let line = unit.text(text);
        if let Some(name) = line.strip_prefix("+++ ") {
            let name = name.trim_end();
            files.push(name.strip_prefix("b/").unwrap_or(name));
        } else if unit.parent.is_some() {
            added += usize::from(line.starts_with('+'));
            removed += usize::from(line.starts_with('-') && !line.starts_with("--- "));
        }
    }
    let more = if files.len() > FILES { ", …" } else { "" };
    let count = files.len();
    files.truncate(FILES);
    let plural = if count == 1 { "" } else { "s" };
    format!(
        "{count} file{plural} +{added} -{removed}: {}{more}",
        files.join(", ")
    )
}

/// Whether a run is a key of JSON, which all rows have.
fn is_key(text: &str, run: &str) -> bool {
    text.starts_with(['{', '[', '"']) && text.contains(&format!("\"{run}\":"))
}

/// The identifiers of the weightiest units that `said` does not hold yet.
fn names(text: &str, units: &[Unit], said: &str) -> String {
    let mut out = String::new();
    let mut count = 0;
    for index in by_weight(units).into_iter().take(SEARCHED_UNITS) {
        let Some(unit) = units.get(index as usize) else {
            continue;
        };
        let body = unit.text(text);
        let near = body.get(..body.floor_char_boundary(300)).unwrap_or(body);
        runs(near, |run| {
            let fits = count < NAMES && out.len() + run.len() <= NAMES_CHARS;
            // A number alone names nothing.
            let is_name = fits && is_identifier(run) && run.contains(|c: char| c.is_alphabetic());
            if is_name && !said.contains(run) && !out.contains(run) && !is_key(near, run) {
                if count > 0 {
                    out.push_str(", ");
                }
                out.push_str(run);
                count += 1;
            }
        });
        if count == NAMES {
            break;
        }
    }
    out
}
