//! A byte-pair encoder over ranks that come at run time, such as those of a `tiktoken.Encoding`.
//!
//! The pre-tokenizer must be one of the two that are built in: patterns are compared as text, after
//! the spelling of tiktoken. Slower than the built-in vocabularies by about the look-ups: merges
//! go by the bytes of the merged pair.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::sync::Arc;

use indexmap::IndexMap;

use super::encoder::{CL100K_BASE, Encoder, O200K_BASE};
use super::split::{self, Cl100k, O200k, Split};
use crate::error::{Error, ErrorKind, Result};

/// The pattern of `cl100k_base`.
///
/// # Source
/// tiktoken 0.14, `tiktoken_ext/openai_public.py`.
const CL100K_PATTERN: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";

/// The pattern of `o200k_base`.
///
/// # Source
/// As above.
const O200K_PATTERN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

pub(super) fn is_known(pattern: &str) -> bool {
    [O200K_PATTERN, CL100K_PATTERN].contains(&pattern)
}

/// An encoder of the caller's ranks; `None` if `pattern` is not one that is built in.
///
/// # Errors
/// `invalid_value` if a single byte has no rank, or two tokens have the same one.
pub(super) fn encoder(
    name: &str,
    pattern: &str,
    ranks: IndexMap<Box<[u8]>, u32>,
) -> Result<Option<Arc<dyn Encoder>>> {
    if pattern == O200K_PATTERN {
        if is_same(&O200K_BASE, &ranks) {
            return Ok(Some(Arc::new(O200K_BASE)));
        }
        return Ok(Some(Arc::new(Ranks::<O200k>::new(name, ranks)?)));
    }
    if pattern == CL100K_PATTERN {
        if is_same(&CL100K_BASE, &ranks) {
            return Ok(Some(Arc::new(CL100K_BASE)));
        }
        return Ok(Some(Arc::new(Ranks::<Cl100k>::new(name, ranks)?)));
    }
    Ok(None)
}

/// Whether these are the ranks of a public vocabulary, which is linked in and faster.
fn is_same(built_in: &dyn Encoder, ranks: &IndexMap<Box<[u8]>, u32>) -> bool {
    built_in.token(ranks.len() as u32).is_none()
        && ranks
            .iter()
            .all(|(bytes, &id)| built_in.token(id) == Some(bytes))
}

struct Ranks<S> {
    name: Box<str>,
    ids: IndexMap<Box<[u8]>, u32>,
    /// Ids in order, and where their bytes are in `ids`.
    by_id: Box<[(u32, u32)]>,
    split: PhantomData<fn(S)>,
}

impl<S> Debug for Ranks<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranks")
            .field("name", &self.name)
            .field("tokens", &self.ids.len())
            .finish_non_exhaustive()
    }
}

impl<S: Split> Encoder for Ranks<S> {
    fn count(&self, text: &str) -> u32 {
        self.count_pieces(text, u32::MAX).unwrap_or(u32::MAX)
    }

    fn count_up_to(&self, text: &str, limit: u32) -> Option<u32> {
        self.count_pieces(text, limit)
    }

    fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        self.pieces(text, &mut |found| {
            ids.push(found);
            true
        });
    }

    fn token(&self, id: u32) -> Option<&[u8]> {
        let at = self.by_id.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        let (_, place) = self.by_id.get(at)?;
        let (bytes, _) = self.ids.get_index(*place as usize)?;
        Some(bytes)
    }

    fn next_cut(&self, text: &str, from: usize) -> usize {
        split::next_safe_cut(text, from)
    }

    fn previous_cut(&self, text: &str, from: usize) -> usize {
        split::previous_safe_cut(text, from)
    }
}

impl<S: Split> Ranks<S> {
    fn new(name: &str, ranks: IndexMap<Box<[u8]>, u32>) -> Result<Self> {
        let invalid = |what: String| Error::new(ErrorKind::InvalidValue, what);
        for byte in 0..=u8::MAX {
            if !ranks.contains_key([byte].as_slice()) {
                return Err(invalid(format!("ranks of '{name}': byte {byte} has none")));
            }
        }
        let mut by_id: Vec<(u32, u32)> = ranks
            .values()
            .enumerate()
            .map(|(place, &id)| (id, place as u32))
            .collect();
        by_id.sort_unstable();
        if let Some(pair) = by_id.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(invalid(format!(
                "ranks of '{name}': two tokens have rank {}",
                pair[0].0
            )));
        }
        Ok(Self {
            name: name.into(),
            ids: ranks,
            by_id: by_id.into(),
            split: PhantomData,
        })
    }

    fn count_pieces(&self, text: &str, limit: u32) -> Option<u32> {
        let mut tokens = 0_u32;
        let fits = self.pieces(text, &mut |_| {
            tokens += 1;
            tokens <= limit
        });
        fits.then_some(tokens)
    }

    /// Shows every id in order until `show` returns false; whether it never did.
    fn pieces(&self, text: &str, show: &mut impl FnMut(u32) -> bool) -> bool {
        let text = text.as_bytes();
        let mut at = 0;
        while at < text.len() {
            let end = S::piece_end(text, at).max(at + 1);
            let piece = &text[at..end];
            let fits = match self.ids.get(piece) {
                Some(&id) => show(id),
                None => self.merge(piece, show),
            };
            if !fits {
                return false;
            }
            at = end;
        }
        true
    }

    fn rank(&self, piece: &[u8], start: u32, end: u32) -> Option<u32> {
        let bytes = piece.get(start as usize..end as usize)?;
        self.ids.get(bytes).copied()
    }

    /// Byte-pair encoding: of all neighbouring pairs the one with the lowest rank merges first, the
    /// leftmost of equals; `n log n` in the length of the piece.
    fn merge(&self, piece: &[u8], show: &mut impl FnMut(u32) -> bool) -> bool {
        let length = piece.len() as u32;
        // Parts by their first byte: where they end, and where the one before starts.
        let mut ends: Vec<u32> = (1..=length).collect();
        let mut before: Vec<u32> = (0..=length).map(|at| at.saturating_sub(1)).collect();
        let mut heap: BinaryHeap<Reverse<(u32, u32, u32)>> = (0..length.saturating_sub(1))
            .filter_map(|at| Some(Reverse((self.rank(piece, at, at + 2)?, at, at + 2))))
            .collect();
        let mut merged = vec![false; piece.len()];
        while let Some(Reverse((_, start, end))) = heap.pop() {
            let right = ends[start as usize];
            // Stale: the left part is gone, or one of the two has grown since.
            if merged[start as usize]
                || right >= length
                || merged[right as usize]
                || ends[right as usize] != end
            {
                continue;
            }
            merged[right as usize] = true;
            ends[start as usize] = end;
            if end < length {
                before[end as usize] = start;
                let next = ends[end as usize];
                if let Some(rank) = self.rank(piece, start, next) {
                    heap.push(Reverse((rank, start, next)));
                }
            }
            if start > 0 {
                let left = before[start as usize];
                if let Some(rank) = self.rank(piece, left, end) {
                    heap.push(Reverse((rank, left, end)));
                }
            }
        }
        let mut at = 0;
        while at < length {
            let end = ends[at as usize];
            // Every part is a byte or a merged pair, and both have ranks.
            let id = self.rank(piece, at, end).unwrap_or_default();
            if !show(id) {
                return false;
            }
            at = end;
        }
        true
    }
}
