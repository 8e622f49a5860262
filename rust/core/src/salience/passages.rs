//! Passages of a history by the words they hold, and how well each answers a question (BM25).
//!
//! A passage is a run of whole lines of one part, or a piece of a very long line. Each message is read
//! once; a question costs what the passages with its rarer words cost. Words are lower-case runs of
//! letters and digits, without the commonest English endings.

use std::collections::BTreeMap;

use super::identifiers::hash_name;
use super::index::{LineAt, NameMap, is_read};
use crate::node::Text;
use crate::shrink::with_text;
use crate::transcript::Transcript;

/// Bytes after which a passage takes no further line.
const PASSAGE_BYTES: usize = 400;

/// Bytes from which a line is taken apart, at a space.
const LONG_LINE: usize = 800;

/// Distinct words of a question that are looked up.
const MOST_WORDS: usize = 128;

/// BM25's saturation and length normalisation.
///
/// # Source
/// Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009): the customary values.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// A word in more than this share of the passages tells nothing, once there are so many.
const COMMON: f64 = 0.3;
const COMMON_FROM: usize = 20;

/// How much of the best passage of the message before, and after, a passage is worth by its company:
/// an answer often has none of the words of its question.
const BEFORE: f64 = 0.35;
const AFTER: f64 = 0.15;

/// Best messages whose neighbours are looked at too.
const MOST_NEIGHBOURS: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Passage {
    line: LineAt,
    message: u32,
    words: u32,
}

/// A passage that has to do with a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Where it stands.
    pub line: LineAt,
    /// Raw index of its message.
    pub message: u32,
    /// How well it fits, above 0.
    pub score: f64,
}

/// The passages of the messages read so far.
#[derive(Clone, Debug, Default)]
pub struct Passages {
    items: Vec<Passage>,
    /// Word → passages that hold it, and how often.
    postings: NameMap<Vec<(u32, u32)>>,
    /// First passage of each message.
    starts: Vec<u32>,
    words: u64,
}

impl Passages {
    /// Reads the messages up to `end` that were not read yet.
    pub fn advance<T: Text>(&mut self, transcript: &Transcript<T>, end: usize) {
        for message in self.starts.len()..end.min(transcript.len()) {
            self.starts.push(self.items.len() as u32);
            for part in transcript.part_range(message) {
                let content = &transcript.all_parts()[part];
                if is_read(content) {
                    with_text(&content.body, |text| {
                        for (start, end) in passages_of(text) {
                            let line = LineAt {
                                part: part as u32,
                                start: start as u32,
                                end: end as u32,
                            };
                            self.add(line, message as u32, &text[start..end]);
                        }
                    });
                }
            }
        }
    }

    fn add(&mut self, line: LineAt, message: u32, text: &str) {
        let number = self.items.len() as u32;
        let mut words: Vec<u64> = Vec::new();
        for_words(text, &mut |word| words.push(word));
        if words.is_empty() {
            return;
        }
        words.sort_unstable();
        for same in words.chunk_by(|a, b| a == b) {
            let postings = self.postings.entry(same[0]).or_default();
            postings.push((number, same.len() as u32));
        }
        self.words += words.len() as u64;
        self.items.push(Passage {
            line,
            message,
            words: words.len() as u32,
        });
    }

    /// The passages that have to do with `query`, best first; equal ones in order of the history.
    pub fn search(&self, query: &str) -> Vec<Found> {
        let mut words = Vec::new();
        for_words(query, &mut |word| {
            if words.len() < MOST_WORDS {
                words.push(word);
            }
        });
        words.sort_unstable();
        words.dedup();
        let count = self.items.len() as f64;
        let average = self.words as f64 / count.max(1.0);
        let mut scores: BTreeMap<u32, f64> = BTreeMap::new();
        for word in words {
            let Some(postings) = self.postings.get(&word) else {
                continue;
            };
            let held = postings.len() as f64;
            if self.items.len() >= COMMON_FROM && held > COMMON * count {
                continue;
            }
            let rarity = (1.0 + (count - held + 0.5) / (held + 0.5)).ln();
            for &(passage, times) in postings {
                let length = f64::from(self.items[passage as usize].words) / average;
                let times = f64::from(times);
                let weight = times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length));
                *scores.entry(passage).or_default() += rarity * weight;
            }
        }
        self.with_company(&scores)
    }

    fn with_company(&self, scores: &BTreeMap<u32, f64>) -> Vec<Found> {
        let mut best: BTreeMap<u32, f64> = BTreeMap::new();
        for (&passage, &score) in scores {
            let slot = best.entry(self.items[passage as usize].message);
            let slot = slot.or_default();
            *slot = slot.max(score);
        }
        let mut ranked: Vec<(u32, f64)> = best.iter().map(|(at, score)| (*at, *score)).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut all: BTreeMap<u32, f64> = scores.clone();
        for &(message, _) in ranked.iter().take(MOST_NEIGHBOURS) {
            for near in [message.checked_sub(1), message.checked_add(1)] {
                for passage in near.map_or(0..0, |near| self.passages_of(near)) {
                    all.entry(passage).or_default();
                }
            }
        }
        let company = |message: Option<u32>| {
            let score = message.and_then(|message| best.get(&message));
            score.copied().unwrap_or(0.0)
        };
        let mut found: Vec<Found> = all
            .into_iter()
            .map(|(passage, score)| {
                let Passage { line, message, .. } = self.items[passage as usize];
                let before = BEFORE * company(message.checked_sub(1));
                let after = AFTER * company(message.checked_add(1));
                Found {
                    line,
                    message,
                    score: score + before + after,
                }
            })
            .collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.line.cmp(&b.line)));
        found
    }

    /// Passages of a message.
    fn passages_of(&self, message: u32) -> std::ops::Range<u32> {
        let at = |message: usize| {
            let start = self.starts.get(message).copied();
            start.unwrap_or(self.items.len() as u32)
        };
        at(message as usize)..at(message as usize + 1)
    }
}

/// The bytes of each passage of a text, without the line end after it.
fn passages_of(text: &str) -> Vec<(usize, usize)> {
    let mut passages = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.trim_end_matches(['\n', '\r']).len();
        let is_long = end - start > LONG_LINE;
        if is_long || open.is_some_and(|(first, _)| end - first > PASSAGE_BYTES) {
            passages.extend(open.take());
        }
        if is_long {
            take_apart(text, start, end, &mut passages);
        } else if end > start {
            open = Some((open.map_or(start, |(first, _)| first), end));
        }
        start += line.len();
    }
    passages.extend(open);
    passages
}

fn take_apart(text: &str, mut start: usize, end: usize, passages: &mut Vec<(usize, usize)>) {
    while end - start > LONG_LINE {
        let mut most = start + PASSAGE_BYTES;
        while !text.is_char_boundary(most) {
            most += 1;
        }
        let space = text[start..most].rfind(char::is_whitespace);
        let cut = space.filter(|at| *at > 0).map_or(most, |at| start + at);
        passages.push((start, cut));
        start = cut;
    }
    passages.push((start, end));
}

/// Calls `visit` with the hash of each word.
fn for_words(text: &str, visit: &mut impl FnMut(u64)) {
    let mut word = String::new();
    for run in text.split(|letter: char| !letter.is_alphanumeric()) {
        if run.is_empty() {
            continue;
        }
        word.clear();
        word.extend(run.chars().flat_map(char::to_lowercase));
        visit(hash_name(stem(&word).as_bytes()));
    }
}

/// An English word without the commonest endings; what is short or not ASCII stays.
fn stem(word: &str) -> &str {
    const LEAST: usize = 3;
    if !word.is_ascii() {
        return word;
    }
    for ending in ["ing", "ies", "ed", "es", "s", "e", "y"] {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.len() >= LEAST
        {
            return rest;
        }
    }
    word
}
