//! Ids of calls and names of tools in the alphabet and length of the target.
//!
//! Both depend only on what came before: a longer history keeps the names of a shorter one.

use std::collections::{BTreeMap, BTreeSet};

use super::loss::{LossKind, Losses};
use super::pair::Block;
use crate::dialect::Dialect;

/// Longest id of a call that every dialect takes.
///
/// # Source
/// Error text of Chat Completions: `Expected a string with maximum length 40`; the others allow 64.
const MAX_ID: usize = 40;

/// Longest name of a tool that every dialect takes.
const MAX_NAME: usize = 64;

/// Names of tools, the same for their definitions and their calls.
#[derive(Debug)]
pub(super) struct Names {
    renamed: BTreeMap<String, String>,
    fresh: Fresh,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            renamed: BTreeMap::new(),
            fresh: Fresh::new(MAX_NAME),
        }
    }
}

impl Names {
    /// The name that stands for `name` in the target.
    pub(super) fn of(
        &mut self,
        name: &str,
        target: Dialect,
        index: Option<usize>,
        losses: &mut Losses,
    ) -> String {
        if let Some(found) = self.renamed.get(name) {
            return found.clone();
        }
        let found = if takes_name(target, name) && !self.fresh.taken.contains(name) {
            // As it is: it is short enough and free.
            self.fresh.take(name)
        } else {
            let base = if name.is_empty() {
                "unnamed_tool"
            } else {
                name
            };
            losses.add(index, LossKind::ToolName, "the name of a tool was changed");
            self.fresh.take(&plain(base, target))
        };
        self.renamed.insert(name.to_owned(), found.clone());
        found
    }
}

fn takes_name(target: Dialect, name: &str) -> bool {
    let mut bytes = name.bytes();
    let is_gemini = target == Dialect::Gemini;
    let first = bytes.next();
    let starts = first.is_some_and(|byte| {
        byte.is_ascii_alphabetic() || byte == b'_' || (!is_gemini && is_plain(byte))
    });
    starts
        && name.len() <= MAX_NAME
        && bytes.all(|byte| is_plain(byte) || (is_gemini && byte == b'.'))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// The text in the common alphabet; Gemini's names start with a letter or an underscore.
fn plain(text: &str, target: Dialect) -> String {
    let mut found: String = text
        .chars()
        .map(|c| {
            if c.is_ascii() && is_plain(c as u8) {
                c
            } else {
                '_'
            }
        })
        .collect();
    if target == Dialect::Gemini && !found.starts_with(|c: char| c.is_ascii_alphabetic()) {
        found.insert(0, '_');
    }
    found
}

/// Names of at most `most` characters, each given once.
#[derive(Debug)]
struct Fresh {
    most: usize,
    taken: BTreeSet<String>,
    /// The last number tried behind each start, by how many digits it has: without them the n-th
    /// name with one start would try n numbers.
    numbers: BTreeMap<(String, usize), u64>,
}

impl Fresh {
    fn new(most: usize) -> Self {
        Self {
            most,
            taken: BTreeSet::new(),
            numbers: BTreeMap::new(),
        }
    }

    /// `base` cut to the most characters, with the first number behind it, from 2, that makes it
    /// one which is not taken yet. It is taken then.
    fn take(&mut self, base: &str) -> String {
        let cut = |room: usize| base.get(..room.min(base.len())).unwrap_or(base);
        let mut found = cut(self.most).to_owned();
        let mut digits = 1;
        while self.taken.contains(&found) {
            let start = cut(self.most.saturating_sub(digits + 1));
            let first = if digits == 1 {
                2
            } else {
                10_u64.pow(digits as u32 - 1)
            };
            let end = 10_u64.pow(digits as u32);
            // Names are only ever taken, so no number before the last one is free.
            let number = self
                .numbers
                .entry((start.to_owned(), digits))
                .or_insert(first);
            while *number < end {
                found = format!("{start}_{number}");
                if !self.taken.contains(&found) {
                    break;
                }
                *number += 1;
            }
            digits += 1;
        }
        self.taken.insert(found.clone());
        found
    }
}

/// Gives every call an id of its own that the target takes, and its result the same; likewise the
/// names of their tools.
pub(super) fn assign(
    blocks: &mut [Block],
    target: Dialect,
    names: &mut Names,
    losses: &mut Losses,
) {
    let mut ids = Fresh::new(MAX_ID);
    let calls = blocks.iter_mut().flat_map(|block| {
        let index = block.index;
        block.calls.iter_mut().map(move |call| (index, call))
    });
    for (number, (index, (call, outcome))) in calls.enumerate() {
        let wished = call.id.as_deref().unwrap_or_default();
        let is_right = !wished.is_empty() && wished.len() <= MAX_ID && wished.bytes().all(is_plain);
        let base = if wished.is_empty() {
            format!("call_{number}")
        } else if is_right {
            wished.to_owned()
        } else {
            plain(wished, Dialect::OpenAi)
        };
        let id = ids.take(&base);
        let name = names.of(
            call.name.as_deref().unwrap_or_default(),
            target,
            index,
            losses,
        );
        outcome.id = Some(id.clone());
        outcome.name = Some(name.clone());
        call.id = Some(id);
        call.name = Some(name);
    }
}
