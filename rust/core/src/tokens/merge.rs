//! Byte-pair encoding of one piece that is no token as a whole.
//!
//! Of all neighbouring pairs the one with the lowest rank merges first, the leftmost of equals,
//! until none merges. Short pieces are merged in a small array; long ones by a heap, n log n in
//! the length of the piece whatever it holds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::vocabulary::{NONE, Vocabulary};

/// Longest piece, in bytes, that is merged in an array. Measured: above it the heap is faster.
const ARRAY_MAX: usize = 64;

/// Number of tokens of `piece`.
pub(super) fn count(vocabulary: &Vocabulary, piece: &[u8]) -> u32 {
    if piece.len() <= ARRAY_MAX {
        Array::merge(vocabulary, piece).length as u32
    } else {
        Chain::merge(vocabulary, piece).ids().count() as u32
    }
}

/// Appends the ids of `piece`.
pub(super) fn encode(vocabulary: &Vocabulary, piece: &[u8], ids: &mut Vec<u32>) {
    if piece.len() <= ARRAY_MAX {
        let array = Array::merge(vocabulary, piece);
        ids.extend(array.ids.iter().take(array.length));
    } else {
        ids.extend(Chain::merge(vocabulary, piece).ids());
    }
}

/// The tokens of a short piece and, beside each, what it merges to with the next.
struct Array {
    ids: [u32; ARRAY_MAX],
    length: usize,
}

/// A pair that does not merge comes after every rank.
#[inline]
fn rank_of(merged: u32) -> u32 {
    // NONE is 0 and wraps to the greatest number; the order of the others is kept.
    merged.wrapping_sub(1)
}

impl Array {
    fn merge(vocabulary: &Vocabulary, piece: &[u8]) -> Self {
        let mut ids = [0; ARRAY_MAX];
        let mut ranks = [u32::MAX; ARRAY_MAX];
        let mut length = piece.len().min(ARRAY_MAX);
        for (id, &byte) in ids.iter_mut().zip(piece) {
            *id = vocabulary.byte(byte);
        }
        for (rank, pair) in ranks.iter_mut().zip(piece.windows(2)) {
            if let [left, right] = *pair {
                *rank = rank_of(vocabulary.byte_pair(left, right));
            }
        }
        while length > 1 {
            let mut best = u32::MAX;
            let mut at = 0;
            for (i, &rank) in ranks[..length - 1].iter().enumerate() {
                if rank < best {
                    best = rank;
                    at = i;
                }
            }
            if best == u32::MAX {
                break;
            }
            ids[at] = best + 1;
            ids.copy_within(at + 2..length, at + 1);
            ranks.copy_within(at + 2..length, at + 1);
            length -= 1;
            ranks[length - 1] = u32::MAX;
            if at > 0 {
                ranks[at - 1] = rank_of(vocabulary.pair(ids[at - 1], ids[at]));
            }
            if at + 1 < length {
                ranks[at] = rank_of(vocabulary.pair(ids[at], ids[at + 1]));
            }
        }
        Self { ids, length }
    }
}

/// The tokens of a long piece as a linked list over byte positions.
struct Chain {
    nodes: Vec<Node>,
}

#[derive(Clone, Copy)]
struct Node {
    /// Token that starts here; meaningless once merged into the one before.
    id: u32,
    /// What it merges to with the next, or [`NONE`]; [`NONE`] too once merged into the one before.
    merged: u32,
    /// Position of the token before and of the next.
    before: u32,
    next: u32,
}

impl Chain {
    fn merge(vocabulary: &Vocabulary, piece: &[u8]) -> Self {
        let length = piece.len() as u32;
        let mut nodes: Vec<Node> = (0..length)
            .zip(piece)
            .map(|(at, &byte)| Node {
                id: vocabulary.byte(byte),
                merged: NONE,
                before: at.wrapping_sub(1),
                next: at + 1,
            })
            .collect();
        let mut queue = Vec::with_capacity(piece.len());
        for (at, pair) in piece.windows(2).enumerate() {
            if let [left, right] = *pair {
                let merged = vocabulary.byte_pair(left, right);
                nodes[at].merged = merged;
                if merged != NONE {
                    queue.push(entry(merged, at as u32));
                }
            }
        }
        let mut queue = BinaryHeap::from(queue);
        while let Some(Reverse(top)) = queue.pop() {
            let (merged, at) = ((top >> 32) as u32, top as u32);
            let node = nodes[at as usize];
            if node.merged != merged {
                continue;
            }
            let gone = node.next as usize;
            let next = nodes[gone].next;
            nodes[gone].merged = NONE;
            let node = &mut nodes[at as usize];
            node.id = merged;
            node.next = next;
            node.merged = NONE;
            let before = node.before;
            if let Some(&Node { id, .. }) = nodes.get(next as usize) {
                nodes[next as usize].before = at;
                let pair = vocabulary.pair(merged, id);
                nodes[at as usize].merged = pair;
                if pair != NONE {
                    queue.push(entry(pair, at));
                }
            }
            if let Some(left) = nodes.get_mut(before as usize) {
                left.merged = vocabulary.pair(left.id, merged);
                if left.merged != NONE {
                    queue.push(entry(left.merged, before));
                }
            }
        }
        Self { nodes }
    }

    fn ids(&self) -> impl Iterator<Item = u32> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let node: &Node = self.nodes.get(at)?;
            at = node.next as usize;
            Some(node.id)
        })
    }
}

/// Lowest rank first, then leftmost.
fn entry(merged: u32, at: u32) -> Reverse<u64> {
    Reverse(u64::from(merged) << 32 | u64::from(at))
}
