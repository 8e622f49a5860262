//! One message of a window as the metrics see it, and the window as a multiset of what they hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::recording::Recording;
use crate::level::Level;

/// Stands for the index of a message that is not the run's own.
pub(super) const NO_MESSAGE: u32 = u32::MAX;

/// What can be read in a message.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// Identifiers by number, and on how many whole original lines each stands.
    pub(super) names: Box<[(u32, u32)]>,
    /// Pointers to pages, as their digits say.
    pub(super) pointers: Box<[u64]>,
}

impl Content {
    /// From identifiers as they were found, with repetitions.
    pub(super) fn of(mut names: Vec<(u32, u32)>, pointers: Vec<u64>) -> Self {
        names.sort_unstable();
        names.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 += next.1;
            }
            is_same
        });
        Self {
            names: names.into(),
            pointers: pointers.into(),
        }
    }
}

/// One message of a window.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// Hash of its canonical JSON without cache marks.
    pub(super) key: u128,
    pub(super) tokens: u32,
    /// The message it comes from, or [`NO_MESSAGE`].
    pub(super) message: u32,
    /// How much of that message it shows.
    pub(super) level: Level,
    pub(super) content: Arc<Content>,
}

/// The identity of some bytes.
pub(super) fn key_of(bytes: &[u8]) -> u128 {
    let hash = blake3::hash(bytes);
    let first = hash.as_bytes().first_chunk::<16>();
    first.map_or(0, |bytes| u128::from_le_bytes(*bytes))
}

/// Digits of a pointer, see [`crate::page::Pointer`].
const POINTER_DIGITS: usize = 18;

/// Adds the pointers that stand in a text.
pub(super) fn pointers_in(text: &str, pointers: &mut Vec<u64>) {
    for (at, _) in text.match_indices("p_") {
        let digits = text.get(at + 2..at + 2 + POINTER_DIGITS);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        pointers.extend(digits.and_then(|digits| digits.parse::<u64>().ok()));
    }
}

/// How a window begins like the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Overlap {
    /// Tokens of the longest common prefix, those of the request's fixed part included.
    pub(super) tokens: u64,
    /// Whether the whole window before is that prefix.
    pub(super) is_whole: bool,
}

/// The newest window: its messages in order, and how often each identifier can be read in it.
#[derive(Debug)]
pub(super) struct View {
    units: Vec<Unit>,
    /// `ends[i]`: tokens of the request up to and with unit `i`.
    ends: Vec<u64>,
    base_tokens: u64,
    is_first: bool,
    held: Vec<u32>,
    whole: Vec<u32>,
    pointers: BTreeMap<u64, u32>,
    /// Level of each message that is in the window.
    levels: Vec<Option<Level>>,
    /// Messages whose level may have changed since [`View::changes`] was asked.
    touched: Vec<u32>,
    reported: Vec<Option<Level>>,
}

impl View {
    pub(super) fn new(recording: &Recording) -> Self {
        Self {
            units: Vec::new(),
            ends: Vec::new(),
            base_tokens: recording.base_tokens(),
            is_first: true,
            held: vec![0; recording.names.len()],
            whole: vec![0; recording.names.len()],
            pointers: BTreeMap::new(),
            levels: vec![None; recording.len()],
            touched: Vec::new(),
            reported: vec![None; recording.len()],
        }
    }

    /// Tokens of the request.
    pub(super) fn tokens(&self) -> u64 {
        self.ends.last().copied().unwrap_or(self.base_tokens)
    }

    /// Whether the identifier can be read.
    pub(super) fn holds(&self, name: u32) -> bool {
        self.held.get(name as usize).is_some_and(|&count| count > 0)
    }

    /// Whether a whole original line with the identifier can be read.
    pub(super) fn holds_line(&self, name: u32) -> bool {
        self.whole
            .get(name as usize)
            .is_some_and(|&count| count > 0)
    }

    /// Whether the pointer stands somewhere.
    pub(super) fn shows(&self, pointer: u64) -> bool {
        self.pointers.contains_key(&pointer)
    }

    /// The window becomes its first `keep` units and `tail`. Costs in proportion to `tail`, what
    /// it replaces, and the content of units that come or go.
    pub(super) fn update(&mut self, keep: usize, tail: Vec<Unit>) -> Overlap {
        let keep = keep.min(self.units.len());
        let same = self.units[keep..]
            .iter()
            .zip(&tail)
            .take_while(|(old, new)| old.key == new.key)
            .count();
        let common = keep + same;
        let overlap = Overlap {
            tokens: match common.checked_sub(1) {
                _ if self.is_first => 0,
                None => self.base_tokens,
                Some(last) => self.ends[last],
            },
            is_whole: !self.is_first && common == self.units.len(),
        };
        self.is_first = false;
        let old = self.units.split_off(common);
        self.ends.truncate(common);
        let mut old = old.into_iter().peekable();
        for unit in tail.into_iter().skip(same) {
            if unit.message != NO_MESSAGE {
                while let Some(gone) =
                    old.next_if(|old| old.message == NO_MESSAGE || old.message < unit.message)
                {
                    self.leave(&gone);
                }
            }
            // A message that stands in both stays; everything else comes anew.
            let same = |old: &Unit| unit.message != NO_MESSAGE && old.message == unit.message;
            let unit = match old.next_if(same) {
                Some(before) if before.key == unit.key => before,
                before => {
                    if let Some(before) = before {
                        self.leave(&before);
                    }
                    self.enter(&unit);
                    unit
                }
            };
            let end = self.tokens() + u64::from(unit.tokens);
            self.ends.push(end);
            self.units.push(unit);
        }
        for gone in old {
            self.leave(&gone);
        }
        overlap
    }

    fn enter(&mut self, unit: &Unit) {
        for &(name, lines) in &unit.content.names {
            self.held[name as usize] += 1;
            self.whole[name as usize] += lines;
        }
        for &pointer in &unit.content.pointers {
            *self.pointers.entry(pointer).or_default() += 1;
        }
        self.set_level(unit.message, Some(unit.level));
    }

    fn leave(&mut self, unit: &Unit) {
        for &(name, lines) in &unit.content.names {
            self.held[name as usize] -= 1;
            self.whole[name as usize] -= lines;
        }
        for pointer in &unit.content.pointers {
            if let Some(count) = self.pointers.get_mut(pointer) {
                *count -= 1;
                if *count == 0 {
                    self.pointers.remove(pointer);
                }
            }
        }
        self.set_level(unit.message, None);
    }

    fn set_level(&mut self, message: u32, level: Option<Level>) {
        if let Some(slot) = self.levels.get_mut(message as usize) {
            *slot = level;
            self.touched.push(message);
        }
    }

    /// Messages whose level changed since this was last asked, with their level: 3 whole, 2
    /// trimmed, 1 stub, 0 gone.
    pub(super) fn changes(&mut self) -> Vec<(u32, u8)> {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        touched.retain(|&message| self.levels[message as usize] != self.reported[message as usize]);
        touched
            .into_iter()
            .map(|message| {
                let level = self.levels[message as usize];
                self.reported[message as usize] = level;
                (message, level.map_or(0, |level| level as u8))
            })
            .collect()
    }
}
