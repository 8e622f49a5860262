//! The clairvoyant policy: it knows which identifiers later actions will take from which message.
//!
//! When the budget is full it chooses, among what is still visible, what covers most future
//! references per token: greedy weighted coverage, really lazy. A reference counts if its newest
//! earlier copy is in what is there now; a later copy will come by itself. It calls for no pages. A
//! strong reference and no bound: greedy is not optimal, and it chooses only when the budget is
//! full, from what it has kept so far.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::baseline::share_of;
use super::contender::TRIGGER;
use super::recording::Recording;
use super::unit::{Content, Unit, key_of};
use super::window::Proposal;
use crate::error::Result;
use crate::level::Level;

/// Share of the free budget above which even the newest message may be cut.
const HUGE: f64 = 0.85;

/// Tokens of the note that a message with lines left out ends in.
const NOTE_TOKENS: u32 = 12;

#[derive(Debug)]
pub(super) struct Clairvoyant<'a> {
    recording: &'a Recording,
    by_line: bool,
    shown: Vec<Shown>,
    tokens: u64,
    taken: usize,
    compactions: u32,
}

/// A message in the window, and the lines of it that are left; `None` for all of it.
#[derive(Clone, Debug)]
struct Shown {
    unit: Unit,
    lines: Option<Vec<u32>>,
}

/// What may be kept: a message of the window, or one of its lines.
#[derive(Debug)]
struct Candidate {
    /// Position in `shown`.
    place: usize,
    line: Option<u32>,
    names: Vec<u32>,
    tokens: u32,
}

/// A candidate and its value per token when it was last looked at.
#[derive(Debug)]
struct Offer {
    density: f64,
    candidate: usize,
}

impl PartialEq for Offer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Offer {}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Offer {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_density = self.density.total_cmp(&other.density);
        by_density.then_with(|| other.candidate.cmp(&self.candidate))
    }
}

impl<'a> Clairvoyant<'a> {
    pub(super) fn new(recording: &'a Recording, by_line: bool) -> Self {
        Self {
            recording,
            by_line,
            shown: Vec::new(),
            tokens: recording.base_tokens(),
            taken: 0,
            compactions: 0,
        }
    }

    pub(super) fn compactions(&self) -> u32 {
        self.compactions
    }

    pub(super) fn window(&mut self, at: usize) -> Result<Proposal> {
        let before = self.shown.len();
        for row in &self.recording.rows[self.taken..at] {
            self.tokens += u64::from(row.unit.tokens);
            let unit = row.unit.clone();
            self.shown.push(Shown { unit, lines: None });
        }
        self.taken = at;
        let limit = share_of(self.recording, TRIGGER);
        let is_full = self.recording.upper(self.tokens) > limit;
        if is_full {
            self.compactions += 1;
            self.choose(at as u32)?;
        }
        let keep = if is_full { 0 } else { before };
        let tail = self.shown[keep..].iter().map(|shown| shown.unit.clone());
        Ok(Proposal {
            keep,
            tail: tail.collect(),
            tokens: None,
            is_compacted: is_full,
        })
    }

    /// How often actions from the call at `at` on take each identifier from what is there now.
    fn demand(&self, at: u32) -> Vec<u32> {
        let mut demand = vec![0; self.recording.names.len()];
        let calls = &self.recording.calls;
        let first = calls.partition_point(|call| call.at < at);
        for call in &calls[first..] {
            for reference in call.references.iter().filter(|known| known.newest < at) {
                demand[reference.name as usize] += 1;
            }
        }
        demand
    }

    fn choose(&mut self, at: u32) -> Result<()> {
        let mut demand = self.demand(at);
        let fixed = self.fixed();
        let mut tokens = self.recording.base_tokens();
        for (shown, _) in self.shown.iter().zip(&fixed).filter(|(_, fixed)| **fixed) {
            tokens += u64::from(shown.unit.tokens);
            for &(name, _) in &shown.unit.content.names {
                demand[name as usize] = 0;
            }
        }
        let mut candidates = Vec::new();
        for (place, shown) in self.shown.iter().enumerate() {
            if !fixed[place] {
                self.offer(place, shown, &demand, &mut candidates)?;
            }
        }
        let chosen = self.cover(&candidates, demand, tokens);
        self.keep(&candidates, &chosen, fixed)
    }

    /// Which messages stay whatever they hold: the pinned part and the newest. Lines may be taken
    /// out of the newest too where it leaves hardly any room.
    fn fixed(&self) -> Vec<bool> {
        let newest = self.shown.len().saturating_sub(1);
        let size = self.shown.last().map_or(0, |shown| shown.unit.tokens);
        let free = share_of(self.recording, 1.0) - share_of(self.recording, 0.0);
        let is_huge = self.by_line && f64::from(size) > HUGE * free as f64;
        let places = self.shown.iter().enumerate();
        let is_pinned = |unit: &Unit| self.recording.rows[unit.message as usize].is_pinned;
        places
            .map(|(place, shown)| (place == newest && !is_huge) || is_pinned(&shown.unit))
            .collect()
    }

    /// The candidates of one message: itself, or its lines with something that will be taken.
    fn offer(
        &self,
        place: usize,
        shown: &Shown,
        demand: &[u32],
        candidates: &mut Vec<Candidate>,
    ) -> Result<()> {
        let wanted = |names: &mut dyn Iterator<Item = u32>| -> Vec<u32> {
            names.filter(|&name| demand[name as usize] > 0).collect()
        };
        if !self.by_line {
            let names = wanted(&mut shown.unit.content.names.iter().map(|&(name, _)| name));
            if !names.is_empty() {
                candidates.push(Candidate {
                    place,
                    line: None,
                    names,
                    tokens: shown.unit.tokens,
                });
            }
            return Ok(());
        }
        let row = &self.recording.rows[shown.unit.message as usize];
        for &line in shown.lines.as_deref().unwrap_or(&row.lines) {
            let Some((text, entry)) = self.recording.lines.get_index(line as usize) else {
                continue;
            };
            let names = wanted(&mut entry.names.iter().copied());
            if !names.is_empty() {
                candidates.push(Candidate {
                    place,
                    line: Some(line),
                    names,
                    tokens: self.recording.counter.count(text)? + 1,
                });
            }
        }
        Ok(())
    }

    /// The candidates that fit, by uncovered demand per token.
    fn cover(&self, candidates: &[Candidate], mut demand: Vec<u32>, mut tokens: u64) -> Vec<usize> {
        let limit = share_of(self.recording, TRIGGER);
        let mut of_place: Vec<Vec<usize>> = vec![Vec::new(); self.shown.len()];
        for (index, candidate) in candidates.iter().enumerate() {
            of_place[candidate.place].push(index);
        }
        let mut is_open = vec![false; self.shown.len()];
        let opening = |candidate: &Candidate, is_open: &[bool]| {
            if candidate.line.is_none() || is_open[candidate.place] {
                0
            } else {
                let message = self.shown[candidate.place].unit.message as usize;
                self.recording.rows[message].overhead + NOTE_TOKENS
            }
        };
        let value = |candidate: &Candidate, demand: &[u32]| -> u64 {
            let names = candidate.names.iter();
            names.map(|&name| u64::from(demand[name as usize])).sum()
        };
        let density = |candidate: &Candidate, demand: &[u32], is_open: &[bool]| {
            let cost = candidate.tokens + opening(candidate, is_open);
            value(candidate, demand) as f64 / f64::from(cost.max(1))
        };
        let mut heap: BinaryHeap<Offer> = candidates
            .iter()
            .enumerate()
            .map(|(index, candidate)| Offer {
                density: density(candidate, &demand, &is_open),
                candidate: index,
            })
            .collect();
        let mut chosen = Vec::new();
        while let Some(offer) = heap.pop() {
            let candidate = &candidates[offer.candidate];
            if value(candidate, &demand) == 0 {
                continue;
            }
            let now = density(candidate, &demand, &is_open);
            if heap.peek().is_some_and(|next| next.density > now) && now < offer.density {
                heap.push(Offer {
                    density: now,
                    ..offer
                });
                continue;
            }
            let cost = u64::from(candidate.tokens + opening(candidate, &is_open));
            if self.recording.upper(tokens + cost) > limit {
                continue;
            }
            tokens += cost;
            for &name in &candidate.names {
                demand[name as usize] = 0;
            }
            if !is_open[candidate.place] {
                is_open[candidate.place] = true;
                // The message's other lines are cheaper now.
                for &index in &of_place[candidate.place] {
                    heap.push(Offer {
                        density: density(&candidates[index], &demand, &is_open),
                        candidate: index,
                    });
                }
            }
            chosen.push(offer.candidate);
        }
        chosen
    }

    /// The window becomes what is fixed and what was chosen.
    fn keep(&mut self, candidates: &[Candidate], chosen: &[usize], fixed: Vec<bool>) -> Result<()> {
        let mut whole = fixed;
        let mut lines: Vec<Vec<u32>> = vec![Vec::new(); self.shown.len()];
        for &index in chosen {
            let candidate = &candidates[index];
            match candidate.line {
                None => whole[candidate.place] = true,
                Some(line) => lines[candidate.place].push(line),
            }
        }
        let shown = std::mem::take(&mut self.shown);
        self.tokens = self.recording.base_tokens();
        for (place, (shown, mut lines)) in shown.into_iter().zip(lines).enumerate() {
            let shown = if whole[place] {
                shown
            } else if lines.is_empty() {
                continue;
            } else {
                lines.sort_unstable();
                lines.dedup();
                self.cut(&shown, lines)?
            };
            self.tokens += u64::from(shown.unit.tokens);
            self.shown.push(shown);
        }
        Ok(())
    }

    /// A message with only these of its lines.
    fn cut(&self, shown: &Shown, lines: Vec<u32>) -> Result<Shown> {
        if shown.lines.as_ref() == Some(&lines) {
            return Ok(shown.clone());
        }
        let recording = self.recording;
        let message = shown.unit.message;
        let mut text = String::new();
        let mut names = Vec::new();
        for &line in &lines {
            if let Some((line, entry)) = recording.lines.get_index(line as usize) {
                text.push_str(line);
                text.push('\n');
                names.extend(entry.names.iter().map(|&name| (name, 1)));
            }
        }
        let overhead = recording.rows[message as usize].overhead;
        let tokens = recording.counter.count(&text)? + overhead + NOTE_TOKENS;
        let unit = Unit {
            key: key_of(format!("{message}\n{text}").as_bytes()),
            tokens,
            message,
            level: Level::Trimmed,
            content: Arc::new(Content::of(names, Vec::new())),
        };
        Ok(Shown {
            unit,
            lines: Some(lines),
        })
    }
}
