//! The markers of gaps: what was left out of a text of this structure.

use std::fmt::Write as _;

use super::{Structure, Unit, line, listing, search};
use crate::marker::{amount, marker, one_line};

/// A gap shorter than this is never worth a marker.
pub(crate) const SHORTEST: usize = 28;

/// Characters of a line that stands for its template.
const SAMPLE_CHARS: usize = 48;

/// The part of a gap that a marker may take to say more than a number.
const DETAIL_SHARE: usize = 4;

/// Writes markers; says the pointer once.
pub(crate) struct Markers<'a> {
    pointer: String,
    is_said: bool,
    text: &'a str,
    structure: Structure,
    /// Per group, units in the current gap; all 0 between two gaps.
    counts: Vec<u32>,
}

impl<'a> Markers<'a> {
    pub(crate) fn new(text: &'a str, structure: Structure, units: usize, pointer: &str) -> Self {
        Self {
            pointer: one_line(pointer, 200),
            is_said: false,
            text,
            structure,
            counts: vec![0; units],
        }
    }

    /// Takes note that a marker with the pointer was written.
    pub(crate) fn said(&mut self) {
        self.is_said = true;
    }

    /// The marker line for the units `first..end`, without a line end; `None` if the gap has fewer
    /// bytes than it.
    pub(crate) fn for_lines(
        &mut self,
        units: &[Unit],
        first: usize,
        end: usize,
        bytes: usize,
    ) -> Option<String> {
        if bytes < SHORTEST {
            return None;
        }
        let count = end - first;
        let mut what = amount(count, self.structure.nouns(), self.is_said);
        let _ = write!(what, " ({}", first + 1);
        if count > 1 {
            let _ = write!(what, "-{end}");
        }
        what.push(')');
        let detail = self.detail(units.get(first..end)?);
        let short = self.close(&what);
        if !detail.is_empty() {
            let long = self.close(&format!("{what}: {detail}"));
            // What a hunk lacks is told whenever there is room.
            let share = if self.structure == Structure::Diff {
                1
            } else {
                DETAIL_SHARE
            };
            if long.len() * share < bytes {
                return Some(long);
            }
        }
        (short.len() < bytes).then_some(short)
    }

    fn close(&self, what: &str) -> String {
        let names_page = !self.is_said && !self.pointer.is_empty();
        if self.structure == Structure::JsonLines {
            let page = if names_page {
                format!(", page {}", self.pointer)
            } else {
                String::new()
            };
            let value = serde_json::Value::String(format!("{what}{page}"));
            return format!("{{\"…\":{value}}}");
        }
        marker(what, if names_page { &self.pointer } else { "" })
    }

    /// Words for a gap in JSON, as they stand between quotes.
    pub(crate) fn inside_json(&self, what: &str) -> String {
        if self.is_said || self.pointer.is_empty() {
            return what.to_owned();
        }
        let quoted = serde_json::Value::String(self.pointer.clone()).to_string();
        let pointer = quoted.get(1..quoted.len() - 1).unwrap_or_default();
        format!("{what}, page {pointer}")
    }

    /// What most of the lines left out have in common.
    fn detail(&mut self, gap: &[Unit]) -> String {
        match self.structure {
            Structure::Log | Structure::Trace | Structure::JsonLines => {
                let top = self.most_frequent(gap, 1);
                let [(count, unit)] = top[..] else {
                    return String::new();
                };
                if count < 3 || (count as usize) * 4 < gap.len() {
                    return String::new();
                }
                let sample = one_line(unit.text(self.text), SAMPLE_CHARS);
                if sample.is_empty() {
                    return sample;
                }
                format!("{count} like \"{sample}\"")
            }
            Structure::Listing => {
                let top = self.most_frequent(gap, 2);
                self.named(&top, gap.len(), |line| listing::folder(line))
            }
            Structure::Search => {
                let top = self.most_frequent(gap, 3);
                self.named(&top, gap.len(), |line| {
                    search::file_of(line).map_or(&[], |(name, _)| name)
                })
            }
            Structure::Diff => {
                let count = |sign: u8| {
                    gap.iter()
                        .filter(|unit| {
                            unit.parent.is_some()
                                && self.text.as_bytes().get(unit.start as usize) == Some(&sign)
                        })
                        .count()
                };
                let (added, removed) = (count(b'+'), count(b'-'));
                if added + removed == 0 {
                    return String::new();
                }
                format!("+{added} -{removed}")
            }
            _ => String::new(),
        }
    }

    /// `20 in src/agents, 17 in docs`; nothing if the groups have no names.
    fn named(
        &self,
        top: &[(u32, Unit)],
        all: usize,
        name: impl for<'b> Fn(&'b [u8]) -> &'b [u8],
    ) -> String {
        let mut out = String::new();
        let mut named = 0;
        for (count, unit) in top {
            let content = line::of(self.text, unit);
            let name = String::from_utf8_lossy(name(content.trim_ascii_start()));
            if name.is_empty() {
                continue;
            }
            if !out.is_empty() {
                out.push_str(", ");
            }
            let name = one_line(&name, SAMPLE_CHARS);
            let _ = write!(out, "{count} in {name}");
            named += *count as usize;
        }
        if !out.is_empty() && named < all {
            out.push_str(", …");
        }
        out
    }

    /// The groups with most units in a gap, each with its first unit; ties in order of appearance.
    fn most_frequent(&mut self, gap: &[Unit], most: usize) -> Vec<(u32, Unit)> {
        // Blank lines resemble each other, which says nothing.
        let gap = gap.iter().filter(|unit| unit.weight > 0.0);
        for unit in gap.clone() {
            if let Some(count) = self.counts.get_mut(unit.group as usize) {
                *count += 1;
            }
        }
        let mut top: Vec<(u32, Unit)> = Vec::with_capacity(most + 1);
        for unit in gap {
            let Some(count) = self.counts.get_mut(unit.group as usize) else {
                continue;
            };
            // The first unit of a group takes its count.
            let taken = std::mem::take(count);
            if taken == 0 {
                continue;
            }
            let at = top.iter().take_while(|(other, _)| *other >= taken).count();
            top.insert(at, (taken, *unit));
            top.truncate(most);
        }
        top
    }
}
