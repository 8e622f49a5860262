//! The rows of a scope of memories as columns: which of them may answer a query.
//!
//! Holds what rows are found by, and no text: terms, vectors, times, flags. Every search looks at
//! every row that passes, so it is exact; ties go to the row that stands first. What is removed
//! leaves nothing behind, terms and names that only it held included. Cost of a search: one small
//! multiplication a row and dimension, and the postings of the query's terms.

mod vectors;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::error::{Error, ErrorKind, Result};
use vectors::{Vectors, highest};

/// No row.
const NONE: u32 = u32::MAX;

/// How soon a term that is repeated counts no more; as in the ranking of all backends.
const K1: f32 = 1.2;

/// How much a long text must hold more; likewise.
const B: f32 = 0.75;

/// Bytes that a row takes beside its terms and its vector, about.
const ROW_BYTES: usize = 160;

/// A memory, as far as it is found by something.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// What the store calls it.
    pub number: i64,
    /// Its namespace.
    pub path: &'a [u8],
    /// The session it comes from; empty for none.
    pub session: &'a [u8],
    /// Its place in that session.
    pub place: Option<i64>,
    /// Its terms with blanks between them, as often as they occur.
    pub words: &'a str,
    /// The name that it begins with.
    pub label: Option<&'a str>,
    /// What it means; empty for nothing.
    pub vector: &'a [f32],
    /// What filters look at.
    pub facts: Facts,
}

/// What filters look at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// When it was said, in seconds.
    pub time: f64,
    /// When it expires, likewise; infinity for never.
    pub expires: f64,
    /// How sure it is.
    pub confidence: f64,
    /// The number of its kind, below 32.
    pub kind: u8,
    /// Whether it is a claim.
    pub is_claim: bool,
    /// Whether something newer took its place.
    pub is_superseded: bool,
}

/// Which rows pass.
#[derive(Debug, Clone, Copy)]
pub struct Passing {
    /// What expired before is left out, in seconds.
    pub now: f64,
    /// Least confidence.
    pub confidence: f64,
    /// One bit for each kind that counts.
    pub kinds: u32,
    /// Whether claims count too.
    pub with_claims: bool,
    /// Whether superseded rows count too.
    pub with_history: bool,
}

/// What rows are wanted for.
#[derive(Debug, Clone)]
pub struct Query {
    /// Terms that count, each once.
    pub terms: Vec<String>,
    /// What each is worth: `weights.len() == terms.len()`.
    pub weights: Vec<f32>,
    /// Mean length of a row, in terms.
    pub mean_terms: f64,
    /// What the query means; `None` for words alone.
    pub vector: Option<Vec<f32>>,
    /// Rows by words, and as many by meaning.
    pub most: usize,
}

/// Figures of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statistics {
    /// Rows.
    pub rows: usize,
    /// Sum of their lengths, in terms.
    pub terms: u64,
    /// Rows that hold each term that was asked for.
    pub holding: Vec<i64>,
}

/// Rows that may answer and their neighbours, by ascending number; columns of one length.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Candidates {
    /// What the store calls each.
    pub numbers: Vec<i64>,
    /// BM25.
    pub lexical: Vec<f32>,
    /// Product with the query's vector.
    pub dense: Vec<f32>,
    /// Place of the row before it in its session among these; -1 for none.
    pub previous: Vec<i64>,
    /// Place of the row after it, likewise.
    pub following: Vec<i64>,
    /// When each was said, in seconds.
    pub times: Vec<f64>,
    /// How sure each is.
    pub confidences: Vec<f32>,
    /// The name that each begins with.
    pub labels: Vec<Option<String>>,
}

/// Columns of a scope.
///
/// # Example
/// ```
/// use satchel_core::resident::{Facts, Passing, Query, Resident, Row};
/// let facts = Facts {
///     time: 1.0, expires: f64::INFINITY, confidence: 1.0, kind: 0, is_claim: false,
///     is_superseded: false,
/// };
/// let row = Row {
///     number: 7, path: b"a", session: b"", place: None, words: "tea cup", label: None,
///     vector: &[], facts,
/// };
/// let mut resident = Resident::default();
/// resident.put(&[row]).unwrap();
/// let passing = Passing {
///     now: 2.0, confidence: 0.0, kinds: u32::MAX, with_claims: false, with_history: false,
/// };
/// let query = Query {
///     terms: vec!["cup".into()], weights: vec![1.0], mean_terms: 2.0, vector: None, most: 5,
/// };
/// assert_eq!(resident.candidates(&passing, &query).unwrap().numbers, [7]);
/// ```
#[derive(Debug, Default)]
pub struct Resident {
    /// Numbers with their rows, ascending.
    places: Vec<(i64, u32)>,
    rows: Vec<Kept>,
    paths: BTreeMap<Box<[u8]>, Held>,
    groups: BTreeMap<(u32, Box<[u8]>), u32>,
    /// Rows by group and place in it.
    steps: BTreeMap<(u32, i64), u32>,
    terms: BTreeMap<Box<str>, Vec<(u32, u32)>>,
    vectors: Vectors,
    length: u64,
    postings: usize,
    /// The next number of a path or a group.
    next: u32,
}

/// A path, by number, and how many rows it has.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    name: u32,
    rows: usize,
}

/// A row as it is kept.
#[derive(Debug)]
struct Kept {
    number: i64,
    facts: Facts,
    path: u32,
    group: u32,
    place: Option<i64>,
    length: u32,
    previous: u32,
    following: u32,
    label: Option<Box<str>>,
    /// Of everything but the facts.
    digest: u64,
}

impl Resident {
    /// Rows in it.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of memory, about.
    pub fn size(&self) -> usize {
        self.rows.len() * ROW_BYTES + self.postings * size_of::<(u32, u32)>() + self.vectors.size()
    }

    /// Rows of one path.
    pub fn count(&self, path: &[u8]) -> usize {
        self.paths.get(path).map_or(0, |held| held.rows)
    }

    /// Takes in rows; one whose number is here takes its place.
    ///
    /// # Errors
    /// `invalid_value` if a number comes twice, a kind is no kind, or vectors differ in length;
    /// nothing changes then.
    pub fn put(&mut self, rows: &[Row<'_>]) -> Result<()> {
        let mut numbers: Vec<i64> = rows.iter().map(|row| row.number).collect();
        numbers.sort_unstable();
        if numbers.windows(2).any(|pair| pair.first() == pair.last()) {
            return Err(invalid("a number comes twice".to_owned()));
        }
        if let Some(row) = rows.iter().find(|row| row.facts.kind >= 32) {
            return Err(invalid(format!("there is no kind {}", row.facts.kind)));
        }
        self.vectors.check(rows.iter().map(|row| row.vector))?;
        let mut kept = vec![true; self.rows.len()];
        let mut fresh = Vec::with_capacity(rows.len());
        for row in rows {
            let digest = digest(row);
            let Some(at) = self.at(row.number) else {
                fresh.push((row, digest));
                continue;
            };
            match self.rows.get_mut(at as usize) {
                // Mostly a row is changed by something newer that takes its place.
                Some(known) if known.digest == digest => known.facts = row.facts,
                _ => {
                    if let Some(kept) = kept.get_mut(at as usize) {
                        *kept = false;
                    }
                    fresh.push((row, digest));
                }
            }
        }
        self.keep(&kept);
        for (row, digest) in fresh {
            self.push(row, digest);
        }
        self.places.sort_unstable();
        Ok(())
    }

    /// Removes the rows of these paths whose numbers are not named.
    pub fn retain(&mut self, paths: &[&[u8]], numbers: &[i64]) {
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        let mut named: Vec<u32> = paths
            .iter()
            .filter_map(|path| self.paths.get(*path).map(|held| held.name))
            .collect();
        named.sort_unstable();
        let kept: Vec<bool> = self
            .rows
            .iter()
            .map(|row| {
                named.binary_search(&row.path).is_err()
                    || numbers.binary_search(&row.number).is_ok()
            })
            .collect();
        self.keep(&kept);
    }

    /// Figures of all rows, and of those that hold each of the terms.
    pub fn statistics<T: AsRef<str>>(&self, terms: &[T]) -> Statistics {
        let holding = terms.iter().map(|term| self.holders(term.as_ref()).len());
        Statistics {
            rows: self.rows.len(),
            terms: self.length,
            holding: holding
                .map(|count| i64::try_from(count).unwrap_or(i64::MAX))
                .collect(),
        }
    }

    /// The best by words and the best by meaning among the rows that pass, with their neighbours;
    /// all that pass if the query has neither.
    ///
    /// # Errors
    /// `invalid_value` if weights and terms, or the vectors, differ in length.
    pub fn candidates(&self, passing: &Passing, query: &Query) -> Result<Candidates> {
        if query.weights.len() != query.terms.len() {
            return Err(invalid(format!(
                "{} weights for {} terms",
                query.weights.len(),
                query.terms.len()
            )));
        }
        let dimension = self.vectors.dimension();
        let vector = query.vector.as_deref().filter(|_| dimension > 0);
        if let Some(vector) = vector.filter(|vector| vector.len() != dimension) {
            return Err(invalid(format!(
                "the query's vector has {} numbers, those of the rows {dimension}",
                vector.len()
            )));
        }
        let allowed: Vec<u32> = (0u32..)
            .zip(&self.rows)
            .filter(|(_, row)| passing.takes(&row.facts))
            .map(|(at, _)| at)
            .collect();
        let lexical = self.lexical(query);
        let mut chosen = if query.terms.is_empty() && query.vector.is_none() {
            allowed
        } else {
            let scored = allowed
                .iter()
                .filter_map(|row| lexical.get(*row as usize).map(|score| (*score, *row)));
            let found = scored.filter(|(score, _)| *score > 0.0).collect();
            let mut chosen = highest(found, query.most);
            if query.vector.is_some() {
                chosen.extend(self.vectors.nearest(
                    vector.unwrap_or_default(),
                    &allowed,
                    query.most,
                ));
            }
            chosen
        };
        let beside: Vec<u32> = chosen
            .iter()
            .filter_map(|row| self.rows.get(*row as usize))
            .flat_map(|row| [row.previous, row.following])
            .filter(|row| {
                self.rows
                    .get(*row as usize)
                    .is_some_and(|row| passing.takes(&row.facts))
            })
            .collect();
        chosen.extend(beside);
        Ok(self.figures(chosen, &lexical, vector))
    }

    /// The columns of these rows, each once.
    fn figures(&self, mut chosen: Vec<u32>, lexical: &[f32], vector: Option<&[f32]>) -> Candidates {
        let number = |row: &u32| self.rows.get(*row as usize).map(|row| row.number);
        chosen.sort_unstable_by_key(number);
        chosen.dedup();
        let mut places: Vec<(u32, i64)> = chosen.iter().copied().zip(0..).collect();
        places.sort_unstable();
        let place = |row: u32| match places.binary_search_by_key(&row, |(row, _)| *row) {
            Ok(at) => places.get(at).map_or(-1, |(_, place)| *place),
            Err(_) => -1,
        };
        let mut found = Candidates::default();
        for at in chosen {
            let Some(row) = self.rows.get(at as usize) else {
                continue;
            };
            found.numbers.push(row.number);
            found
                .lexical
                .push(lexical.get(at as usize).copied().unwrap_or_default());
            found
                .dense
                .push(vector.map_or(0.0, |vector| self.vectors.product(at, vector)));
            found.previous.push(place(row.previous));
            found.following.push(place(row.following));
            found.times.push(row.facts.time);
            found.confidences.push(row.facts.confidence as f32);
            found.labels.push(row.label.as_deref().map(str::to_owned));
        }
        found
    }

    /// BM25 of every row; the sums in the order of the terms, as every backend has them.
    fn lexical(&self, query: &Query) -> Vec<f32> {
        let mut scores = vec![0.0f32; self.rows.len()];
        let mean = query.mean_terms.max(1.0) as f32;
        for (term, weight) in query.terms.iter().zip(&query.weights) {
            for (row, count) in self.holders(term) {
                let at = *row as usize;
                let (Some(score), Some(row)) = (scores.get_mut(at), self.rows.get(at)) else {
                    continue;
                };
                let norm = (1.0 - B) + B * row.length as f32 / mean;
                let count = f64::from(*count);
                let worth = count * 2.2 / (count + f64::from(K1 * norm));
                *score += weight * worth as f32;
            }
        }
        scores
    }

    fn holders(&self, term: &str) -> &[(u32, u32)] {
        self.terms.get(term).map(Vec::as_slice).unwrap_or_default()
    }

    fn at(&self, number: i64) -> Option<u32> {
        let found = self.places.binary_search_by_key(&number, |(one, _)| *one);
        found
            .ok()
            .and_then(|at| self.places.get(at))
            .map(|(_, row)| *row)
    }

    fn push(&mut self, row: &Row<'_>, digest: u64) {
        self.vectors.push(row.vector);
        let at = u32::try_from(self.rows.len()).unwrap_or(NONE);
        let next = &mut self.next;
        let mut name = || {
            *next = next.wrapping_add(1);
            *next
        };
        let held = self.paths.entry(row.path.into()).or_insert_with(|| Held {
            name: name(),
            rows: 0,
        });
        held.rows += 1;
        let path = held.name;
        let group = *self
            .groups
            .entry((path, row.session.into()))
            .or_insert_with(name);
        let mut length = 0;
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for word in row.words.split(' ').filter(|word| !word.is_empty()) {
            length += 1;
            *counts.entry(word).or_default() += 1;
        }
        self.length += u64::from(length);
        self.postings += counts.len();
        for (term, count) in counts {
            if let Some(holders) = self.terms.get_mut(term) {
                holders.push((at, count));
            } else {
                self.terms.insert(term.into(), vec![(at, count)]);
            }
        }
        self.places.push((row.number, at));
        self.rows.push(Kept {
            number: row.number,
            facts: row.facts,
            path,
            group,
            place: row.place,
            length,
            previous: NONE,
            following: NONE,
            label: row.label.map(Into::into),
            digest,
        });
        self.join(at);
    }

    /// Makes a row the neighbour of those beside it.
    fn join(&mut self, at: u32) {
        let Some(row) = self.rows.get(at as usize) else {
            return;
        };
        let Some(place) = row.place else { return };
        let group = row.group;
        self.steps.insert((group, place), at);
        let near = |place: Option<i64>| {
            place
                .and_then(|place| self.steps.get(&(group, place)))
                .copied()
                .unwrap_or(NONE)
        };
        let previous = near(place.checked_sub(1));
        let following = near(place.checked_add(1));
        if let Some(row) = self.rows.get_mut(at as usize) {
            (row.previous, row.following) = (previous, following);
        }
        if let Some(row) = self.rows.get_mut(previous as usize) {
            row.following = at;
        }
        if let Some(row) = self.rows.get_mut(following as usize) {
            row.previous = at;
        }
    }

    /// Keeps the rows that are marked, and nothing that only others held.
    fn keep(&mut self, kept: &[bool]) {
        if kept.iter().all(|kept| *kept) {
            return;
        }
        let mut last = 0;
        let moved: Vec<u32> = kept
            .iter()
            .map(|kept| {
                let at = if *kept { last } else { NONE };
                last += u32::from(*kept);
                at
            })
            .collect();
        let moved_to = |row: u32| moved.get(row as usize).copied().unwrap_or(NONE);
        let mut postings = 0;
        self.terms.retain(|_, holders| {
            holders.retain_mut(|(row, _)| {
                *row = moved_to(*row);
                *row != NONE
            });
            postings += holders.len();
            !holders.is_empty()
        });
        self.postings = postings;
        self.vectors.retain(kept);
        let mut marks = kept.iter();
        self.rows.retain(|_| marks.next().copied().unwrap_or(false));
        for held in self.paths.values_mut() {
            held.rows = 0;
        }
        let mut names: BTreeMap<u32, usize> = BTreeMap::new();
        for row in &self.rows {
            *names.entry(row.path).or_default() += 1;
            names.entry(row.group).or_default();
        }
        self.paths.retain(|_, held| {
            held.rows = names.get(&held.name).copied().unwrap_or_default();
            held.rows > 0
        });
        self.groups.retain(|_, group| names.contains_key(group));
        self.length = self.rows.iter().map(|row| u64::from(row.length)).sum();
        self.places = (0u32..)
            .zip(&self.rows)
            .map(|(at, row)| (row.number, at))
            .collect();
        self.places.sort_unstable();
        self.steps.clear();
        for row in &mut self.rows {
            (row.previous, row.following) = (NONE, NONE);
        }
        for at in 0..last {
            self.join(at);
        }
    }
}

impl Passing {
    fn takes(&self, facts: &Facts) -> bool {
        facts.expires > self.now
            && facts.confidence >= self.confidence
            && (self.kinds >> facts.kind) & 1 == 1
            && (self.with_claims || !facts.is_claim)
            && (self.with_history || !facts.is_superseded)
    }
}

fn digest(row: &Row<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (row.path, row.session, row.place, row.words, row.label).hash(&mut hasher);
    for value in row.vector {
        hasher.write_u32(value.to_bits());
    }
    hasher.finish()
}

#[cold]
fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidValue, message)
}
