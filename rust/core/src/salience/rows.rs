//! What the weights of [`Likelihood`](super::likelihood::Likelihood) are fitted to: the features of
//! identifiers as they were before an action, and whether they were used again.

use super::identifiers::hash_name;
use super::index::{Index, NameMap, is_read, scan_lines};
use super::likelihood::{FEATURES, Moment};
use crate::keep::newest_of;
use crate::message::{PartKind, Role};
use crate::node::Text;
use crate::shrink::with_text;
use crate::transcript::Transcript;

/// Messages after which a use counts.
const LATE: u32 = 6;

/// Newest messages whose words count as present, as at a compaction.
const NEWEST: usize = 3;

/// One identifier at one boundary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LikelihoodRow {
    /// Its features, in the order of the weights.
    pub features: [f64; FEATURES],
    /// Whether an action used it at least six messages after its newest copy, before any other copy.
    pub is_used: bool,
    /// Whether the conversation looked like a dialogue then.
    pub is_dialogue: bool,
    /// How many rows it stands for: those that were not used are drawn, one of ten.
    pub weight: f64,
}

/// One of so many rows that were not used is taken.
const ONE_OF: u64 = 10;

/// Rows at every `every`-th message of the assistant. A function of the transcript alone.
pub fn likelihood_rows<T: Text>(transcript: &Transcript<T>, every: usize) -> Vec<LikelihoodRow> {
    let uses = Uses::of(transcript);
    let mut index = Index::default();
    let mut rows = Vec::new();
    let replies =
        (0..transcript.len()).filter(|&at| at > 0 && transcript.rows()[at].role == Role::Assistant);
    for at in replies.step_by(every.max(1)) {
        index.advance(transcript, at);
        let (words, names) = newest_of(transcript, at, NEWEST, usize::MAX);
        let weights = super::likelihood::Likelihood::AGENT;
        let moment = Moment {
            weights: &weights,
            index: &index,
            messages: at as u32,
            newest_words: &words,
            newest_names: &names,
        };
        for message in 0..at {
            for part in transcript.part_range(message) {
                let content = &transcript.all_parts()[part];
                if !is_read(content) {
                    continue;
                }
                let row = transcript.rows()[message];
                with_text(&content.body, |text| {
                    let lines = text.split('\n').count() as u32;
                    let mut number = 0;
                    scan_lines(content, text, |line, found| {
                        number += 1;
                        for one in found {
                            let known = index.get(one.hash).copied();
                            let Some(known) = known.filter(|known| {
                                known.newest as usize == message
                                    && known.line.part as usize == part
                                    && known.start as usize == one.start
                            }) else {
                                continue;
                            };
                            let next = uses.next(one.hash, at as u32);
                            let is_used = next.is_some_and(|(use_at, in_action)| {
                                in_action && use_at - known.newest >= LATE
                            });
                            let lot = one.hash ^ hash_name(&at.to_le_bytes());
                            if !is_used && !lot.is_multiple_of(ONE_OF) {
                                continue;
                            }
                            let words = &text[line.start as usize..line.end as usize];
                            let company =
                                found.iter().filter(|one| names.contains(&one.hash)).count();
                            let spot = Moment::spot(words, number - 1, lines, company as u32);
                            let name = &text[one.start..one.end];
                            rows.push(LikelihoodRow {
                                features: moment.features(name, one.hash, &known, &row, spot),
                                is_used,
                                is_dialogue: index.is_dialogue(),
                                weight: if is_used { 1.0 } else { ONE_OF as f64 },
                            });
                        }
                    });
                });
            }
        }
    }
    rows
}

/// The messages that hold each identifier, and whether in their action.
struct Uses {
    by_name: NameMap<Vec<(u32, bool)>>,
}

impl Uses {
    fn of<T: Text>(transcript: &Transcript<T>) -> Self {
        let mut by_name: NameMap<Vec<(u32, bool)>> = NameMap::default();
        for message in 0..transcript.len() {
            let parts = transcript.parts(message);
            let acts_in_text = transcript.rows()[message].role == Role::Assistant
                && !parts.iter().any(|part| part.kind == PartKind::Call);
            for content in parts.iter().filter(|part| is_read(part)) {
                with_text(&content.body, |text| {
                    let mut is_fenced = false;
                    scan_lines(content, text, |line, found| {
                        let words = &text[line.start as usize..line.end as usize];
                        is_fenced ^= acts_in_text && words.starts_with("```");
                        let in_action = content.kind == PartKind::Call || is_fenced;
                        for one in found {
                            let uses = by_name.entry(one.hash).or_default();
                            match uses.last_mut() {
                                Some(last) if last.0 as usize == message => last.1 |= in_action,
                                _ => uses.push((message as u32, in_action)),
                            }
                        }
                    });
                });
            }
        }
        Self { by_name }
    }

    /// The first message from `at` on that holds a name.
    fn next(&self, name: u64, at: u32) -> Option<(u32, bool)> {
        let uses = self.by_name.get(&name)?;
        uses.get(uses.partition_point(|(message, _)| *message < at))
            .copied()
    }
}
