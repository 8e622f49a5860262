//! Writing JSON again with some of its elements: valid JSON of the original's bytes and markers.

use std::fmt::Write as _;

use super::json::{key_of, sign_of};
use super::marker::Markers;
use super::render::Rendered;
use super::{Structure, Unit};
use crate::marker::{amount, one_line};

/// Keys that the marker of an object names.
const NAMED_KEYS: usize = 6;
const KEY_CHARS: usize = 32;

/// Containers inside containers that are written one by one.
const DEEPEST: usize = 64;

/// The key of the member that says what an object lacks.
const MARKER_KEY: &str = "…";

pub(crate) fn rendered(text: &str, units: &[Unit], keep: &[bool], pointer: &str) -> Rendered {
    let (ends, after) = extents(text, units);
    let mut writer = Writer {
        text,
        units,
        keep,
        ends,
        after,
        markers: Markers::new(text, Structure::Json, 0, pointer),
        out: String::with_capacity(text.len().min(1 << 16)),
        left_out: 0,
        depth: 0,
    };
    let head = units.first().map_or(0, |root| root.start as usize);
    writer.copy(0, head);
    writer.container(0);
    let tail = writer.ends.first().map_or(0, |end| *end as usize);
    writer.copy(tail, text.len());
    Rendered {
        text: writer.out,
        left_out: writer.left_out,
    }
}

/// For each unit the offset behind it, its closing bracket or quote included, and the index of the
/// first unit behind what is inside it.
fn extents(text: &str, units: &[Unit]) -> (Vec<u32>, Vec<u32>) {
    let bytes = text.as_bytes();
    let mut ends: Vec<u32> = units.iter().map(|unit| unit.end).collect();
    let mut after: Vec<u32> = (1..=units.len() as u32).collect();
    let mut open: Vec<usize> = Vec::new();
    let mut end = 0u32;
    let mut close = |container: usize, end: &mut u32, next: usize| {
        let mut at = *end as usize;
        if sign_of(text, &units[container]) != b'"' {
            while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\t' | b'\r')) {
                at += 1;
            }
        }
        *end = (at + 1).min(bytes.len()) as u32;
        ends[container] = *end;
        after[container] = next as u32;
    };
    for (index, unit) in units.iter().enumerate() {
        let parent = unit.parent.map(|parent| parent as usize);
        while let Some(&inner) = open.last()
            && parent != Some(inner)
        {
            open.pop();
            close(inner, &mut end, index);
        }
        end = unit.end;
        let holds_next = units
            .get(index + 1)
            .is_some_and(|next| next.parent == Some(index as u32));
        if holds_next {
            open.push(index);
        }
    }
    while let Some(inner) = open.pop() {
        close(inner, &mut end, units.len());
    }
    (ends, after)
}

struct Writer<'a> {
    text: &'a str,
    units: &'a [Unit],
    keep: &'a [bool],
    ends: Vec<u32>,
    after: Vec<u32>,
    markers: Markers<'a>,
    out: String,
    left_out: usize,
    depth: usize,
}

impl Writer<'_> {
    fn copy(&mut self, from: usize, to: usize) {
        self.out
            .push_str(self.text.get(from..to).unwrap_or_default());
    }

    /// The units directly inside a container.
    fn children(&self, container: usize) -> Vec<usize> {
        let end = self.after.get(container).map_or(0, |end| *end as usize);
        let mut children = Vec::new();
        let mut at = container + 1;
        while at < end {
            children.push(at);
            at = self.next(at);
        }
        children
    }

    /// The unit behind `unit` and what is inside it.
    fn next(&self, unit: usize) -> usize {
        let after = self
            .after
            .get(unit)
            .map_or(usize::MAX, |next| *next as usize);
        after.max(unit + 1)
    }

    fn start(&self, unit: usize) -> usize {
        self.units.get(unit).map_or(0, |unit| unit.start as usize)
    }

    fn end(&self, unit: usize) -> usize {
        self.ends.get(unit).map_or(0, |end| *end as usize)
    }

    fn is_kept(&self, unit: usize) -> bool {
        self.keep.get(unit).copied().unwrap_or(false)
    }

    fn unit(&mut self, unit: usize) {
        if self.next(unit) > unit + 1 {
            self.container(unit);
        } else {
            self.copy(self.start(unit), self.end(unit));
        }
    }

    /// An opening, what is kept inside, markers for the rest, the end.
    fn container(&mut self, container: usize) {
        let Some(unit) = self.units.get(container) else {
            return;
        };
        // The scanner divides less deeply; units of somebody else's making are written whole.
        if self.depth == DEEPEST {
            return self.copy(unit.start as usize, self.end(container));
        }
        self.depth += 1;
        self.copy(unit.start as usize, unit.end as usize);
        let children = self.children(container);
        match sign_of(self.text, unit) {
            b'{' => self.object(unit, &children),
            b'"' => self.gaps(&children, Inside::String),
            _ => self.gaps(&children, Inside::Array),
        }
        let end = self.end(container);
        match children.last() {
            // White space before the bracket, and the bracket.
            Some(&last) => self.copy(self.end(last), end),
            None => self.copy(unit.end as usize, end),
        }
        self.depth -= 1;
    }

    /// The white space before a child, which says how the text is laid out.
    fn lead(&mut self, child: usize, before: Option<usize>, container_end: usize) {
        let from = before.map_or(container_end, |before| self.end(before));
        let between = self.text.get(from..self.start(child)).unwrap_or_default();
        let space = between.rsplit(',').next().unwrap_or_default().to_owned();
        self.out.push_str(&space);
    }

    fn gaps(&mut self, children: &[usize], inside: Inside) {
        let count = children.len();
        let container_end = children.first().map_or(0, |first| {
            let parent = self.units[*first].parent.unwrap_or_default() as usize;
            self.units.get(parent).map_or(0, |unit| unit.end as usize)
        });
        let mut at = 0;
        while at < count {
            let first = children[at];
            let before = at.checked_sub(1).map(|before| children[before]);
            if inside == Inside::Array {
                if at > 0 {
                    self.out.push(',');
                }
                self.lead(first, before, container_end);
            }
            if self.is_kept(first) {
                self.unit(first);
                at += 1;
                continue;
            }
            let start = at;
            while at < count && !self.is_kept(children[at]) {
                at += 1;
            }
            let last = children[at - 1];
            let (from, to) = (self.start(first), self.end(last));
            let marker = self.gap(children, start, at, inside);
            if marker.len() < to.saturating_sub(from) {
                self.out.push_str(&marker);
                self.markers.said();
                self.left_out += self.next(last) - first;
            } else {
                self.copy(from, to);
            }
        }
    }

    fn gap(&self, children: &[usize], start: usize, end: usize, inside: Inside) -> String {
        let count = end - start;
        let all = children.len();
        let first = children[start];
        let sign = self.units.get(first).map_or(0, |unit| {
            self.text
                .as_bytes()
                .get(unit.start as usize)
                .copied()
                .unwrap_or(0)
        });
        let noun = match (inside, sign) {
            (Inside::String, _) => ("line", "lines"),
            (_, b'{' | b'[') => ("row", "rows"),
            _ => ("item", "items"),
        };
        let mut what = format!("… {count} of {}", amount(all, noun, false));
        if count < all {
            let _ = write!(what, " ({}", start + 1);
            if count > 1 {
                let _ = write!(what, "-{end}");
            }
            what.push(')');
        }
        match inside {
            Inside::Array => {
                let keys = if count == all {
                    self.keys_of_row(first)
                } else {
                    String::new()
                };
                format!("\"{}\"", self.markers.inside_json(&format!("{what}{keys}")))
            }
            Inside::String => {
                // A line end behind it if the gap has one.
                let last = children[end - 1];
                let has_end = self
                    .text
                    .get(self.start(last)..self.end(last))
                    .is_some_and(|piece| piece.ends_with("\\n"));
                let line_end = if has_end { "\\n" } else { "" };
                format!("[{}]{line_end}", self.markers.inside_json(&what))
            }
        }
    }

    /// The keys of a row that is one element, for an array of which no row is kept.
    fn keys_of_row(&self, row: usize) -> String {
        let Some(text) = self.text.get(self.start(row)..self.end(row)) else {
            return String::new();
        };
        let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(text) else {
            return String::new();
        };
        let mut out = String::from(": ");
        for (index, key) in fields.keys().enumerate() {
            if index == NAMED_KEYS {
                out.push_str(", …");
                break;
            }
            let quoted = serde_json::Value::String(one_line(key, KEY_CHARS)).to_string();
            let key = quoted.get(1..quoted.len() - 1).unwrap_or_default();
            let _ = write!(out, "{}{key}", if index > 0 { ", " } else { "" });
        }
        out
    }

    fn object(&mut self, container: &Unit, children: &[usize]) {
        let dropped: Vec<usize> = children
            .iter()
            .copied()
            .filter(|child| !self.is_kept(*child))
            .collect();
        let bytes: usize = dropped
            .iter()
            .map(|child| self.end(*child).saturating_sub(self.start(*child)))
            .sum();
        let marker = self.member(children, &dropped);
        let is_marked = !dropped.is_empty() && marker.len() < bytes;
        let mut before: Option<usize> = None;
        let mut is_first = true;
        for &child in children {
            if is_marked && !self.is_kept(child) {
                before = Some(child);
                continue;
            }
            if !is_first {
                self.out.push(',');
            }
            is_first = false;
            self.lead(child, before, container.end as usize);
            if self.is_kept(child) {
                self.unit(child);
            } else {
                self.copy(self.start(child), self.end(child));
            }
            before = Some(child);
        }
        if !is_marked {
            return;
        }
        if !is_first {
            self.out.push(',');
        }
        if let Some(&first) = dropped.first() {
            let at = children
                .iter()
                .position(|child| *child == first)
                .unwrap_or(0);
            let before = at
                .checked_sub(1)
                .and_then(|before| children.get(before))
                .copied();
            self.lead(first, before, container.end as usize);
        }
        self.out.push_str(&marker);
        self.markers.said();
        for child in dropped {
            self.left_out += self.next(child) - child;
        }
    }

    /// The member that tells what an object lacks.
    fn member(&self, children: &[usize], dropped: &[usize]) -> String {
        let mut key = MARKER_KEY.to_owned();
        // A text that was trimmed before has such a member already.
        for child in children {
            let taken = self
                .units
                .get(*child)
                .and_then(|unit| key_of(self.text, unit));
            if taken.is_some_and(|taken| taken.starts_with(MARKER_KEY) && taken.len() >= key.len())
            {
                key = format!("{}{MARKER_KEY}", taken.unwrap_or_default());
            }
        }
        let mut what = String::from("left out: ");
        for (index, child) in dropped.iter().enumerate() {
            if index == NAMED_KEYS {
                let _ = write!(what, " and {} more", dropped.len() - NAMED_KEYS);
                break;
            }
            let name = self
                .units
                .get(*child)
                .and_then(|unit| key_of(self.text, unit));
            let name = name.unwrap_or_default();
            let name = if name.len() <= KEY_CHARS {
                name
            } else {
                "a long key"
            };
            let bytes = self.end(*child).saturating_sub(self.start(*child));
            let _ = write!(what, "{}{name}", if index > 0 { ", " } else { "" });
            if bytes >= 1000 {
                let _ = write!(what, " ({} KB)", bytes.div_ceil(1000));
            }
        }
        format!("\"{key}\":\"{}\"", self.markers.inside_json(&what))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Array,
    String,
}
