//! The level below trimmed: one line that says what a text was.

use std::fmt::Write as _;

use crate::marker::{marker, one_line};
use crate::salience::identifiers::identifiers;

use super::json::key_of;
use super::outline::by_weight;
use super::{Structure, Unit, detect, line, search, units};

const WHAT_CHARS: usize = 56;
const CLAIM_CHARS: usize = 80;
/// Identifiers that a stub names besides its claim.
const NAMES: usize = 3;
const NAMES_CHARS: usize = 72;
/// Units that are searched for them, the weightiest first.
const SEARCHED_UNITS: usize = 48;
/// A claim shorter than this says nothing.
const LEAST_CHARS: usize = 12;
const FILES: usize = 3;
/// Weight that in code only signatures have.
const SIGNATURE: f32 = 0.65;

/// One line for a text of which nothing is kept: what it was, what it said, names in it, how much it
/// was, where it is.
///
/// # Example
/// ```
/// use satchel_core::prune::structure::Stub;
/// let stub = Stub {
///     what: "cargo test",
///     names: None,
///     amount: "3 lines left out",
///     pointer: "p_7",
///     max_chars: 200,
/// };
/// let text = "running 3 tests\ntest b ... FAILED\n2 passed; 1 failed\n";
/// assert_eq!(
///     stub.line(text),
///     "[… cargo test: test b ... FAILED; 3 lines left out; page_in(\"p_7\")]"
/// );
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stub<'a> {
    /// The tool and its main argument, or who spoke; may be empty.
    pub what: &'a str,
    /// Identifiers that are likely needed, the likeliest first; `None` to look for some that stand
    /// where the text says most.
    pub names: Option<&'a [String]>,
    /// How much was left out.
    pub amount: &'a str,
    /// The pointer.
    pub pointer: &'a str,
    /// Characters up to which it says more than amount and pointer.
    pub max_chars: usize,
}

impl Stub<'_> {
    /// The line. Nothing in it can end it: control characters become spaces.
    pub fn line(&self, text: &str) -> String {
        let pointer = one_line(self.pointer, 200);
        let least = marker(self.amount, &pointer);
        let mut room = self.max_chars.saturating_sub(least.chars().count() + 2);
        let mut said = one_line(self.what, WHAT_CHARS.min(room));
        if room < LEAST_CHARS {
            return least;
        }
        room = room.saturating_sub(said.chars().count() + 2);
        let structure = detect(text);
        let units = units(text, structure);
        if room >= LEAST_CHARS {
            let claim = one_line(&claim(text, structure, &units), CLAIM_CHARS.min(room));
            room = room.saturating_sub(claim.chars().count() + 2);
            if !said.is_empty() && !claim.is_empty() {
                said.push_str(": ");
            }
            said.push_str(&claim);
        }
        let names = match self.names {
            Some(names) => listed(names.iter().map(String::as_str), &said, room),
            None => listed(telling(text, &units).iter().copied(), &said, room),
        };
        if !names.is_empty() {
            let _ = write!(said, "; has {names}");
        }
        if said.is_empty() {
            return least;
        }
        marker(&format!("{said}; {}", self.amount), &pointer)
    }
}

/// The first names that are not said yet and find room.
fn listed<'a>(names: impl Iterator<Item = &'a str>, said: &str, room: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for name in names {
        let fits = out.len() + name.len() + 4 <= NAMES_CHARS.min(room);
        if count < NAMES && fits && !said.contains(name) && !out.contains(name) {
            if count > 0 {
                out.push_str(", ");
            }
            out.push_str(name);
            count += 1;
        }
    }
    out
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

/// Identifiers of the weightiest units.
fn telling<'a>(text: &'a str, units: &[Unit]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for index in by_weight(units).into_iter().take(SEARCHED_UNITS) {
        let Some(unit) = units.get(index as usize) else {
            continue;
        };
        let body = unit.text(text);
        let near = body.get(..body.floor_char_boundary(300)).unwrap_or(body);
        let found = identifiers(near).map(|found| &near[found.start..found.end]);
        // A number alone names nothing.
        let is_name = |name: &&str| name.contains(|c: char| c.is_alphabetic());
        names.extend(found.filter(is_name).filter(|name| !is_key(near, name)));
        if names.len() >= 4 * NAMES {
            break;
        }
    }
    names
}
