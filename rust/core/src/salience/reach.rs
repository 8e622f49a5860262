//! How far the lines that the window does not show could reach: a bound that spares a search.
//!
//! A search for lines that are needed again looks at thousands of names and finds nothing most of
//! the time. What a name is worth has a fixed factor and one of the moment, so each line is read
//! once, and each name part keeps the few lines that could be worth enough until the next
//! compaction; a boundary sums over its words. The bound is never below what the search itself
//! would find: where nothing reaches, the search finds nothing.
//!
//! With x the sum behind a likelihood, `1 / (1 + e^−x) ≤ e^x`, and e^x is a product: of the features
//! that stay as they are while a name is not seen again, of its age, and of the rest at its highest.

use super::index::{Index, LineAt, NameMap, Names, scan_line};
use super::likelihood::{Likelihood, Moment};
use crate::node::Text;
use crate::shrink::with_text;
use crate::transcript::Transcript;

/// Messages for which the age of a name part's lines is taken in advance.
const AHEAD: usize = 64;

/// Lines whose factors are kept.
const MOST_LINES: usize = 1 << 16;

/// Covers the rounding of sums in another order.
const SLACK: f64 = 1.000_001;

/// What must hold for a line to come back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threshold {
    /// The least value of a line.
    pub(crate) value: f64,
    /// The least value of a line per token.
    pub(crate) density: f64,
    /// Tokens from which a line is too long.
    pub(crate) tokens: f64,
}

/// A line, read once: the factor that stays of the value of all its names.
#[derive(Clone, Copy, Debug)]
struct Fixed {
    value: f64,
    tokens: f64,
    message: u32,
}

/// What one name does for a line, as a multiple of what the line must be worth.
#[derive(Clone, Copy, Debug)]
struct Share {
    line: u64,
    name: u64,
    reach: f64,
}

/// Stands for all names of a line; sorts before each of them.
const ALL: u64 = 0;

/// A name part, looked at once between two compactions.
#[derive(Clone, Debug)]
struct Looked {
    /// Messages that there were then.
    at: usize,
    /// The names with it on lines that could be worth enough.
    shares: Vec<Share>,
}

/// Bounds under one set of weights.
#[derive(Clone, Debug, Default)]
struct Bounds {
    lines: NameMap<Fixed>,
    /// The line that a name was read on, and the factor of its value that stays.
    names: NameMap<(u64, f64)>,
    parts: NameMap<Looked>,
    /// When `parts` was begun: compactions, and what the index forgot and holds of the task.
    stamp: (u32, u32, usize),
}

/// Bounds of lines and name parts; made again from the transcript where something changes that
/// they rest on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// For agents, and for dialogues: a conversation near the border turns back and forth.
    bounds: [Bounds; 2],
}

/// One boundary's look at the bounds.
pub(crate) struct Look<'a, T> {
    bounds: &'a mut Bounds,
    transcript: &'a Transcript<T>,
    index: &'a Index,
    /// The weights of what stays.
    fixed: Likelihood,
    age_weight: f64,
    threshold: Threshold,
    /// The highest factor of the moment.
    factor: f64,
    nothing: Names,
    shares: Vec<Share>,
}

impl Bounds {
    fn forget_lines(&mut self) {
        self.lines.clear();
        self.names.clear();
    }
}

impl Reach {
    /// Begins a boundary's look, after `compactions`.
    pub(crate) fn look<'a, T: Text>(
        &'a mut self,
        transcript: &'a Transcript<T>,
        index: &'a Index,
        weights: &Likelihood,
        threshold: Threshold,
        compactions: u32,
    ) -> Look<'a, T> {
        let bounds = &mut self.bounds[usize::from(index.is_dialogue())];
        let stamp = (compactions, index.forgotten(), index.task().len());
        if bounds.stamp != stamp {
            bounds.parts.clear();
            if bounds.stamp.1 != stamp.1 || bounds.stamp.2 != stamp.2 {
                bounds.forget_lines();
            }
            bounds.stamp = stamp;
        }
        let messages = index.len() as f64;
        let moment = weights.history * (1.0 + messages).ln()
            + weights.in_newest.max(0.0)
            + weights.company.max(0.0);
        Look {
            bounds,
            transcript,
            index,
            fixed: Likelihood {
                age: 0.0,
                history: 0.0,
                in_newest: 0.0,
                company: 0.0,
                ..*weights
            },
            age_weight: weights.age,
            threshold,
            factor: moment.exp() * SLACK,
            nothing: Names::default(),
            shares: Vec::new(),
        }
    }
}

impl<T: Text> Look<'_, T> {
    /// Adds what the names with this part do for their lines; `is_hidden` tells of a line of a
    /// message whether the window may not show it.
    pub(crate) fn add_part(&mut self, part: u64, is_hidden: impl Fn(u32, LineAt) -> bool) {
        let now = self.index.len();
        let looked = self.bounds.parts.get(&part);
        if looked.is_none_or(|looked| now - looked.at >= AHEAD) {
            let mut shares = Vec::new();
            let index = self.index;
            for (name, known) in index.with_part(part) {
                if !is_hidden(known.newest, known.line) {
                    continue;
                }
                let (all, least) = self.line(known.line, known.newest);
                if !self.reaches(all, least) {
                    continue;
                }
                let line = key_of(known.line);
                let own = self.bounds.names.get(&name);
                let own = own.filter(|(at, _)| *at == line);
                // What stands on the line in another form counts as all of it.
                let reach = own.map_or(all, |(_, value)| value * self.age(known.newest)) / least;
                shares.push(Share { line, name, reach });
            }
            self.bounds.parts.insert(part, Looked { at: now, shares });
        }
        if let Some(looked) = self.bounds.parts.get(&part) {
            self.shares.extend_from_slice(&looked.shares);
        }
    }

    /// Adds all names of a line; `is_hidden` tells of its message whether the window may not show it.
    pub(crate) fn add_line(&mut self, line: LineAt, is_hidden: impl Fn(u32, LineAt) -> bool) {
        let message = self.transcript.message_of_part(line.part as usize) as u32;
        let (all, least) = self.line(line, message);
        if self.reaches(all, least) && is_hidden(message, line) {
            self.shares.push(Share {
                line: key_of(line),
                name: ALL,
                reach: all / least,
            });
        }
    }

    /// The lines that could be worth enough by what was added.
    pub(crate) fn reaching(mut self) -> Reaching {
        self.shares
            .sort_unstable_by_key(|share| (share.line, share.name));
        self.shares.dedup_by_key(|share| (share.line, share.name));
        let lines = self.shares.chunk_by(|a, b| a.line == b.line);
        let reaches = |shares: &&[Share]| {
            // All names of the line include each of them.
            let counted = if shares[0].name == ALL {
                1
            } else {
                shares.len()
            };
            let sum: f64 = shares.iter().take(counted).map(|share| share.reach).sum();
            self.reaches(sum, 1.0)
        };
        Reaching(lines.filter(reaches).map(|shares| shares[0].line).collect())
    }

    /// Whether a value is enough at its highest; what is no number may be.
    fn reaches(&self, value: f64, least: f64) -> bool {
        let highest = value * self.factor;
        highest >= least || highest.is_nan()
    }

    fn age(&self, message: u32) -> f64 {
        let age = (self.index.len() as f64 - f64::from(message) - 1.0).max(0.0);
        let ahead = if self.age_weight > 0.0 { AHEAD } else { 0 };
        (self.age_weight * (1.0 + age + ahead as f64).ln()).exp()
    }

    /// What a line is worth, but for the factor of the moment, and what it must be worth.
    fn line(&mut self, line: LineAt, message: u32) -> (f64, f64) {
        let key = key_of(line);
        let fixed = self.bounds.lines.get(&key).copied().unwrap_or_else(|| {
            if self.bounds.lines.len() >= MOST_LINES {
                self.bounds.forget_lines();
            }
            let fixed = self.read(line, message);
            self.bounds.lines.insert(key, fixed);
            fixed
        });
        let least = if fixed.tokens < self.threshold.tokens {
            self.threshold
                .value
                .max(self.threshold.density * fixed.tokens)
        } else {
            f64::INFINITY
        };
        (fixed.value * self.age(fixed.message), least)
    }

    fn read(&mut self, line: LineAt, message: u32) -> Fixed {
        let part = &self.transcript.all_parts()[line.part as usize];
        let moment = Moment {
            weights: &self.fixed,
            index: self.index,
            newest_words: &self.nothing,
            newest_names: &self.nothing,
        };
        let weights = self.fixed.weights();
        let names = &mut self.bounds.names;
        let row = &self.transcript.rows()[message as usize];
        with_text(&part.body, |text| {
            let nothing = Fixed {
                value: 0.0,
                tokens: 0.0,
                message,
            };
            let Some(words) = text.get(line.start as usize..line.end as usize) else {
                return nothing;
            };
            let per_byte = f64::from(part.tokens) / text.len().max(1) as f64;
            let mut spot = None;
            let mut value = 0.0;
            for found in scan_line(part, text, words) {
                let known = self.index.get(found.hash);
                let Some(known) = known.filter(|known| {
                    // A name counts once, where it stands first.
                    known.line == line && known.start == line.start + found.start as u32
                }) else {
                    continue;
                };
                let spot =
                    *spot.get_or_insert_with(|| Moment::spot(words, u32::MAX / 2, u32::MAX, 0));
                let name = words.get(found.start..found.end).unwrap_or_default();
                let features = moment.features(name, found.hash, known, row, spot);
                let terms = weights.iter().zip(features);
                let sum: f64 = terms.map(|(weight, feature)| weight * feature).sum();
                let own = sum.exp().max(f64::MIN_POSITIVE);
                names.insert(found.hash, (key_of(line), own));
                value += own;
            }
            Fixed {
                value,
                tokens: (per_byte * (words.len() + 1) as f64).max(1.0),
                ..nothing
            }
        })
    }
}

/// Lines that could be worth enough.
pub(crate) struct Reaching(Vec<u64>);

impl Reaching {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this line is one.
    pub(crate) fn contains(&self, line: LineAt) -> bool {
        self.0.binary_search(&key_of(line)).is_ok()
    }
}

/// One number for each line, spread over all bits since tables use it as it is.
fn key_of(line: LineAt) -> u64 {
    let place = u64::from(line.part) << 32 | u64::from(line.start);
    let spread = (place ^ (place >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    spread ^ (spread >> 32)
}
