//! What a replay found: sums over the calls of one run, and the calls themselves where asked.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Options;
use super::contender::Contender;
use super::recording::{Call, Recording, Reference, lines_of};
use super::texts::{read_actions, read_texts};
use super::unit::{Overlap, View};
use super::window::Player;
use crate::error::Result;
use crate::salience::identifiers::identifiers;

/// Fewest tokens of a prompt that providers cache.
const MIN_CACHED: u64 = 1_024;

/// Characters of a line that are told of a loss.
const LINE_CHARS: usize = 240;

/// Prices in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Input that is read from the prompt cache.
    pub read: f64,
    /// Input that is not, which is written to the cache.
    pub write: f64,
    /// Output.
    pub output: f64,
}

/// The figures of one policy over one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Name of the policy.
    pub policy: String,
    /// Calls that were replayed.
    pub calls: u32,
    /// References of all calls.
    pub references: u32,
    /// Those that could be read.
    pub read: u32,
    /// References whose newest earlier copy is at least ten messages old.
    pub long_references: u32,
    /// Those that could be read.
    pub long_read: u32,
    /// Those that could be read with a whole original line around them.
    pub long_read_in_line: u32,
    /// Calls with long references.
    pub long_calls: u32,
    /// Those of which all could be read.
    pub long_calls_complete: u32,
    /// References that only a visible pointer leads to.
    pub behind_pointers: u32,
    /// References that could not be read and that no visible pointer leads to.
    pub lost: u32,
    /// Calls above the budget.
    pub over_budget: u32,
    /// The most tokens of a window.
    pub largest_window: u64,
    /// Tokens of all windows.
    pub input_tokens: u64,
    /// Those that equal the window before from its beginning on, where they are at least 1,024.
    pub cached_tokens: u64,
    /// Tokens of the recorded replies.
    pub output_tokens: u64,
    /// US dollars.
    pub cost: f64,
    /// Instructions that were planted, and those that could be read in the end.
    pub planted: u32,
    /// See `planted`.
    pub planted_read: u32,
    /// How often room was made; none where that happens before every call.
    pub compactions: Option<u32>,
    /// How often it should be at most: 1.2 × (new tokens ÷ the band between trigger and target),
    /// rounded up.
    pub compactions_bound: u32,
    /// Calls after the first without a compaction.
    pub steady_calls: u32,
    /// Those whose window begins with the whole window before.
    pub stable_calls: u32,
    /// The largest share of the tokens so far that stubs took.
    pub stub_share: f64,
    /// What the compactions kept, by the policy's own likelihoods, and what no choice could exceed.
    pub worth: f64,
    /// See `worth`.
    pub worth_bound: f64,
    /// Each call, if asked for.
    pub shots: Vec<Shot>,
    /// The long references that were missed most often, if asked for.
    pub worst: Vec<Worst>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shot {
    /// Index of the first message of the reply.
    pub at: u32,
    /// Tokens of the window.
    pub tokens: u64,
    /// Those that came from the cache.
    pub cached: u64,
    /// US dollars.
    pub cost: f64,
    /// Whether room was made for this window.
    pub compacted: bool,
    /// Long references, and those that could not be read.
    pub long: (u32, u32),
    /// Messages whose level changed, with the level: 3 whole, 2 trimmed, 1 stub, 0 gone.
    pub changes: Vec<(u32, u8)>,
}

/// An identifier that actions needed while it could not be read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// The identifier.
    pub name: String,
    /// How many calls missed it.
    pub misses: u32,
    /// The first of them: index of the first message of its reply.
    pub at: u32,
    /// The newest message that held it then.
    pub newest: u32,
    /// The line on which it stood there.
    pub line: String,
    /// The line of the action that used it.
    pub action: String,
    /// Whether a visible pointer led to it.
    pub behind_pointer: bool,
}

/// What one miss is remembered by: how often, the first call, where it stood.
#[derive(Clone, Copy, Debug)]
struct Miss {
    count: u32,
    at: u32,
    end: u32,
    newest: u32,
    behind_pointer: bool,
}

/// Sums while the calls go by.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    recording: &'a Recording,
    options: &'a Options,
    contender: &'a Contender,
    out: Outcome,
    misses: BTreeMap<u32, Miss>,
    /// Messages that hold each identifier, newest last; made when the first one is missed.
    postings: Vec<Vec<u32>>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(
        recording: &'a Recording,
        contender: &'a Contender,
        options: &'a Options,
    ) -> Self {
        Self {
            recording,
            options,
            contender,
            out: Outcome {
                policy: contender.name().to_owned(),
                ..Outcome::default()
            },
            misses: BTreeMap::new(),
            postings: Vec::new(),
        }
    }

    /// Takes in one call with its window.
    pub(super) fn call(
        &mut self,
        call: &Call,
        view: &mut View,
        player: &Player<'_>,
        tokens: u64,
        overlap: Overlap,
        is_compacted: bool,
    ) {
        let cached = if overlap.tokens >= MIN_CACHED {
            overlap.tokens.min(tokens)
        } else {
            0
        };
        let prices = &self.options.prices;
        let cost = (cached as f64 * prices.read
            + (tokens - cached) as f64 * prices.write
            + call.output_tokens as f64 * prices.output)
            / 1e6;
        if self.out.calls > 0 && !is_compacted {
            self.out.steady_calls += 1;
            self.out.stable_calls += u32::from(overlap.is_whole);
        }
        let (mut long, mut missed_long) = (0, 0);
        for reference in &call.references {
            let is_read = view.holds(reference.name);
            self.out.references += 1;
            self.out.read += u32::from(is_read);
            if reference.is_long {
                long += 1;
                missed_long += u32::from(!is_read);
                self.out.long_read += u32::from(is_read);
                self.out.long_read_in_line += u32::from(view.holds_line(reference.name));
            }
            if !is_read {
                self.miss(call, reference, view, player);
            }
        }
        let out = &mut self.out;
        out.calls += 1;
        out.long_references += long;
        out.long_calls += u32::from(long > 0);
        out.long_calls_complete += u32::from(long > 0 && missed_long == 0);
        out.over_budget += u32::from(self.recording.upper(tokens) > self.recording.budget);
        out.largest_window = out.largest_window.max(tokens);
        out.input_tokens += tokens;
        out.cached_tokens += cached;
        out.output_tokens += call.output_tokens;
        out.cost += cost;
        if self.options.trace {
            out.shots.push(Shot {
                at: call.at,
                tokens,
                cached,
                cost,
                compacted: is_compacted,
                long: (long, missed_long),
                changes: view.changes(),
            });
        }
    }

    fn miss(&mut self, call: &Call, reference: &Reference, view: &View, player: &Player<'_>) {
        let behind_pointer = match player {
            Player::Packed(packed) => {
                let holders = self.holders(reference.name, call.at);
                packed.reaches(reference.name, &holders, |pointer| view.shows(pointer))
            }
            Player::Baseline(_) | Player::Oracle(_) => false,
        };
        if behind_pointer {
            self.out.behind_pointers += 1;
        } else {
            self.out.lost += 1;
        }
        if reference.is_long && self.options.worst > 0 {
            let miss = self.misses.entry(reference.name).or_insert(Miss {
                count: 0,
                at: call.at,
                end: call.end,
                newest: reference.newest,
                behind_pointer,
            });
            miss.count += 1;
        }
    }

    /// Messages before `at` that hold an identifier, newest first.
    fn holders(&mut self, name: u32, at: u32) -> Vec<u32> {
        if self.postings.is_empty() {
            self.postings = vec![Vec::new(); self.recording.names.len()];
            for row in &self.recording.rows {
                for &(name, _) in &row.unit.content.names {
                    self.postings[name as usize].push(row.unit.message);
                }
            }
        }
        let holders = &self.postings[name as usize];
        let before = holders.partition_point(|&message| message < at);
        holders[..before].iter().rev().copied().collect()
    }

    pub(super) fn finish(mut self, player: &Player<'_>) -> Result<Outcome> {
        self.out.compactions = player.compactions();
        if let Player::Packed(packed) = player {
            self.out.stub_share = packed.stub_share();
            (self.out.worth, self.out.worth_bound) = packed.worth();
        }
        let recording = self.recording;
        let pinned = recording.upper(recording.pinned_tokens);
        let free = recording.budget.saturating_sub(pinned);
        let new = recording.total_tokens - recording.pinned_tokens;
        let band = free as f64 * self.contender.band();
        self.out.compactions_bound = if band >= 1.0 {
            (1.2 * new as f64 / band).ceil() as u32
        } else {
            u32::MAX
        };
        let mut worst: Vec<(u32, Miss)> = std::mem::take(&mut self.misses).into_iter().collect();
        worst.sort_by_key(|(name, miss)| (std::cmp::Reverse(miss.count), miss.at, *name));
        worst.truncate(self.options.worst);
        self.out.worst = worst
            .into_iter()
            .map(|(name, miss)| self.tell(name, miss))
            .collect::<Result<_>>()?;
        Ok(self.out)
    }

    fn tell(&self, name: u32, miss: Miss) -> Result<Worst> {
        let recording = self.recording;
        let hash = recording
            .names
            .get_index(name as usize)
            .map(|(hash, _)| *hash);
        let holds = |line: &str| identifiers(line).any(|found| Some(found.hash) == hash);
        let mut line = None;
        let source = recording.read(miss.newest as usize)?;
        read_texts(&source, &mut |text| {
            if line.is_none() {
                line = lines_of(text).find(|line| holds(line)).map(cut);
            }
        });
        let mut action = None;
        let has_calls = recording.has_calls;
        for message in miss.at..miss.end {
            read_actions(&recording.read(message as usize)?, has_calls, &mut |text| {
                if action.is_none() {
                    action = lines_of(text).find(|line| holds(line)).map(cut);
                }
            });
        }
        Ok(Worst {
            name: recording.name(name).to_owned(),
            misses: miss.count,
            at: miss.at,
            newest: miss.newest,
            line: line.unwrap_or_default(),
            action: action.unwrap_or_default(),
            behind_pointer: miss.behind_pointer,
        })
    }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}
