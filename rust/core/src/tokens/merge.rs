//! Byte-pair encoding of one piece that is no token as a whole.
//!
//! Of all neighbouring pairs the one with the lowest rank merges first, the leftmost of equals,
//! until none merges. Short pieces are merged in a small array; long ones by a heap, n log n in
//! the length of the piece whatever it holds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::vocabulary::{NONE, Vocabulary};

/// Longest piece, in bytes, of most that are merged; and of nearly all.
const TINY: usize = 16;
const SMALL: usize = 32;

/// Longest piece, in bytes, that is merged in an array. Measured: above it the heap is faster.
const LARGE: usize = 128;

/// Number of tokens of `piece`.
pub(super) fn count(vocabulary: &Vocabulary, piece: &[u8]) -> u32 {
    let bytes = piece.len();
    if bytes <= TINY {
        Small::<TINY>::merge(vocabulary, piece).count
    } else if bytes <= SMALL {
        Small::<SMALL>::merge(vocabulary, piece).count
    } else if bytes <= LARGE {
        Array::merge(vocabulary, piece).length as u32
    } else {
        Chain::merge(vocabulary, piece).ids().count() as u32
    }
}

/// Appends the ids of `piece`.
pub(super) fn encode(vocabulary: &Vocabulary, piece: &[u8], ids: &mut Vec<u32>) {
    let bytes = piece.len();
    if bytes <= SMALL {
        ids.extend(Small::<SMALL>::merge(vocabulary, piece).ids());
    } else if bytes <= LARGE {
        ids.extend(Array::merge(vocabulary, piece).ids());
    } else {
        ids.extend(Chain::merge(vocabulary, piece).ids());
    }
}

/// The tokens of a piece of at most `MAX` bytes, at most 32, each at its first byte.
struct Small<const MAX: usize> {
    ids: [u32; MAX],
    /// Lengths of the tokens, in bytes; a token's length also at its last byte.
    lengths: [u8; MAX],
    bytes: usize,
    count: u32,
}

/// Bits of a position in a [`Small`].
const AT_BITS: u32 = 5;
/// Comes after the rank of every merge.
const NEVER: u64 = u64::MAX;

/// Rank, then position, of a merge: the least of these is the next to be done.
#[inline]
fn order(merged: u32, at: usize) -> u64 {
    if merged == NONE {
        NEVER
    } else {
        u64::from(merged) << AT_BITS | at as u64
    }
}

/// The least of the first `length` orders.
///
/// In four chains of scalar minima: the processor runs them side by side, while a vector load of
/// what was just written as scalars would wait for the writes to leave the store buffer.
#[inline]
fn least(orders: &[u64], length: usize) -> u64 {
    let (fours, _) = orders.as_chunks::<4>();
    let mut least = [NEVER; 4];
    for four in fours.iter().take(length.div_ceil(4)) {
        for (least, order) in least.iter_mut().zip(four) {
            *least = (*least).min(*order);
        }
    }
    let [a, b, c, d] = least;
    a.min(b).min(c.min(d))
}

impl<const MAX: usize> Small<MAX> {
    #[inline]
    fn merge(vocabulary: &Vocabulary, piece: &[u8]) -> Self {
        let mut all = Self {
            ids: [0; MAX],
            lengths: [1; MAX],
            bytes: piece.len().min(MAX),
            count: 0,
        };
        let mut orders = [NEVER; MAX];
        let mut at = 0;
        let mut before = 0;
        for (id, length) in vocabulary.units(piece) {
            all.ids[at] = id;
            all.lengths[at] = length as u8;
            all.lengths[at + length - 1] = length as u8;
            if at > 0 {
                let merged = if length == 1 && at - before == 1 {
                    vocabulary.byte_pair(piece[before], piece[at])
                } else {
                    vocabulary.pair(all.ids[before], id)
                };
                orders[before] = order(merged, before);
            }
            before = at;
            at += length;
            all.count += 1;
        }
        loop {
            let least = least(&orders, all.bytes);
            if least == NEVER {
                return all;
            }
            let merged = (least >> AT_BITS) as u32;
            let at = least as usize & ((1 << AT_BITS) - 1);
            let gone = at + usize::from(all.lengths[at]);
            let end = gone + usize::from(all.lengths[gone]);
            all.ids[at] = merged;
            all.count -= 1;
            let length = (end - at) as u8;
            all.lengths[at] = length;
            all.lengths[end - 1] = length;
            orders[gone] = NEVER;
            orders[at] = if end < all.bytes {
                order(vocabulary.pair(merged, all.ids[end]), at)
            } else {
                NEVER
            };
            if at > 0 {
                let before = at - usize::from(all.lengths[at - 1]);
                orders[before] = order(vocabulary.pair(all.ids[before], merged), before);
            }
        }
    }

    fn ids(&self) -> impl Iterator<Item = u32> {
        let mut at = 0;
        std::iter::from_fn(move || {
            if at >= self.bytes {
                return None;
            }
            let id = *self.ids.get(at)?;
            at += usize::from(*self.lengths.get(at)?);
            Some(id)
        })
    }
}

/// The tokens of a piece of at most [`LARGE`] bytes.
struct Array {
    ids: [u32; LARGE],
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
        let mut ids = [0; LARGE];
        let mut ranks = [u32::MAX; LARGE];
        let mut length = 0;
        for (id, _) in vocabulary.units(piece) {
            ids[length] = id;
            if length > 0 {
                ranks[length - 1] = rank_of(vocabulary.pair(ids[length - 1], id));
            }
            length += 1;
        }
        while length > 1 {
            // Two passes, because the first one is done with vectors.
            let live = &ranks[..length - 1];
            let best = live.iter().copied().min().unwrap_or(u32::MAX);
            let at = live.iter().position(|&rank| rank == best).unwrap_or(0);
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

    fn ids(&self) -> impl Iterator<Item = u32> {
        self.ids.iter().copied().take(self.length)
    }
}

/// The tokens of a long piece as a linked list.
struct Chain {
    nodes: Vec<Node>,
}

#[derive(Clone, Copy)]
struct Node {
    /// Token that starts here; meaningless once merged into the one before.
    id: u32,
    /// What it merges to with the next, or [`NONE`]; [`NONE`] too once merged into the one before.
    merged: u32,
    /// Where the token before and the next are.
    before: u32,
    next: u32,
}

impl Chain {
    fn merge(vocabulary: &Vocabulary, piece: &[u8]) -> Self {
        let mut nodes: Vec<Node> = Vec::with_capacity(piece.len());
        let mut queue = Vec::with_capacity(piece.len());
        for (id, _) in vocabulary.units(piece) {
            let at = nodes.len() as u32;
            if let Some(left) = nodes.last_mut() {
                left.merged = vocabulary.pair(left.id, id);
                if left.merged != NONE {
                    queue.push(entry(left.merged, at - 1));
                }
            }
            nodes.push(Node {
                id,
                merged: NONE,
                before: at.wrapping_sub(1),
                next: at + 1,
            });
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
