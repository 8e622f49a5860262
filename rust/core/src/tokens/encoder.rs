//! Encoders: texts to token ids and back, exactly as the reference encoder's ordinary encode.
//!
//! A text is cut into pieces by the pre-tokenizer; most pieces are one token, found by one look-up;
//! the rest is byte-pair encoded. Text that looks like a special token is ordinary text.

use std::fmt::{self, Debug};

use super::cache::{Cache, PIECE_MAX};
use super::merge;
use super::split::{self, Cl100k, O200k, Split};
use super::table::SHORT_MAX;
use super::vocabulary::{CL100K, O200K, Vocabulary, short_key, short_length, wide_key};

/// The seam between counting and a tokenizer. Texts are at most `u32::MAX` bytes long.
pub trait Encoder: Debug + Send + Sync {
    /// Number of tokens of `text`.
    fn count(&self, text: &str) -> u32;

    /// The number of tokens of `text` if it is at most `limit`; stops soon after it is passed.
    fn count_up_to(&self, text: &str, limit: u32) -> Option<u32>;

    /// Appends the ids of `text`. Their bytes, one after the other, are `text`.
    fn encode(&self, text: &str, ids: &mut Vec<u32>);

    /// Bytes of a token, not always valid UTF-8; `None` if there is no such id.
    fn token(&self, id: u32) -> Option<&[u8]>;

    /// The first byte at or after `from` where counts add up: for it and any text around,
    /// `count(text) == count(&text[..at]) + count(&text[at..])`, and the ids are joined. The end of
    /// the text if there is none, and always allowed.
    fn next_cut(&self, text: &str, _from: usize) -> usize {
        text.len()
    }

    /// The last byte at or before `from` where counts add up; 0 if there is none.
    fn previous_cut(&self, _text: &str, _from: usize) -> usize {
        0
    }
}

/// The built-in encoder of a public vocabulary.
pub(super) struct BytePair<S> {
    vocabulary: &'static Vocabulary,
    split: std::marker::PhantomData<fn(S)>,
}

/// `o200k_base`; `o200k_harmony` differs in its special tokens only.
pub(super) const O200K_BASE: BytePair<O200k> = BytePair {
    vocabulary: &O200K,
    split: std::marker::PhantomData,
};

/// `cl100k_base`.
pub(super) const CL100K_BASE: BytePair<Cl100k> = BytePair {
    vocabulary: &CL100K,
    split: std::marker::PhantomData,
};

impl<S> Debug for BytePair<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.vocabulary.fmt(f)
    }
}

impl<S: Split> Encoder for BytePair<S> {
    fn count(&self, text: &str) -> u32 {
        self.count_pieces(text.as_bytes(), u32::MAX)
            .unwrap_or(u32::MAX)
    }

    fn count_up_to(&self, text: &str, limit: u32) -> Option<u32> {
        self.count_pieces(text.as_bytes(), limit)
    }

    fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let text = text.as_bytes();
        let mut at = 0;
        while at < text.len() {
            let end = S::piece_end(text, at);
            match self.vocabulary.whole(text, at, end) {
                Some(id) => ids.push(id),
                None => merge::encode(self.vocabulary, &text[at..end], ids),
            }
            at = end;
        }
    }

    fn token(&self, id: u32) -> Option<&[u8]> {
        self.vocabulary.token(id)
    }

    fn next_cut(&self, text: &str, from: usize) -> usize {
        split::next_safe_cut(text, from)
    }

    fn previous_cut(&self, text: &str, from: usize) -> usize {
        split::previous_safe_cut(text, from)
    }
}

/// Short pieces that are scanned before they are looked up.
const BATCH: usize = 32;

/// A piece of at most [`SHORT_MAX`] bytes.
#[derive(Clone, Copy, Default)]
struct ShortPiece {
    /// See [`short_key`].
    key: u128,
    start: u32,
    /// Whether it is a token.
    whole: bool,
}

impl<S: Split> BytePair<S> {
    /// The number of tokens if it is at most `limit`.
    ///
    /// Scanning and looking up take turns, a batch of pieces each: the look-ups of a batch do not
    /// depend on each other, so the processor waits for their cache misses together.
    fn count_pieces(&self, text: &[u8], limit: u32) -> Option<u32> {
        self.vocabulary.with_cache(|cache| {
            let mut batch = [ShortPiece::default(); BATCH];
            let mut tokens = 0;
            let mut at = 0;
            while at < text.len() {
                let mut scanned = 0;
                while at < text.len()
                    && let Some(piece) = batch.get_mut(scanned)
                {
                    let start = at;
                    at = S::piece_end(text, start);
                    if at - start > SHORT_MAX {
                        tokens += self.long_count(cache, text, start, at);
                        continue;
                    }
                    piece.key = short_key(text, start, at);
                    piece.start = start as u32;
                    scanned += 1;
                }
                tokens += self.batch_count(cache, text, &mut batch[..scanned]);
                if tokens > limit {
                    return None;
                }
            }
            Some(tokens)
        })
    }

    #[inline]
    fn batch_count(&self, cache: &mut Cache, text: &[u8], batch: &mut [ShortPiece]) -> u32 {
        let mut tokens = 0;
        let mut unknown = 0;
        for at in 0..batch.len() {
            let known = cache.short(batch[at].key);
            tokens += known;
            batch[unknown] = batch[at];
            unknown += usize::from(known == 0);
        }
        let unknown = &mut batch[..unknown];
        for piece in &mut *unknown {
            piece.whole = self.vocabulary.whole_short(piece.key).is_some();
        }
        for piece in unknown {
            let count = if piece.whole {
                1
            } else {
                let start = piece.start as usize;
                merge::count(
                    self.vocabulary,
                    &text[start..start + short_length(piece.key)],
                )
            };
            cache.remember_short(piece.key, count);
            tokens += count;
        }
        tokens
    }

    fn long_count(&self, cache: &mut Cache, text: &[u8], start: usize, end: usize) -> u32 {
        let piece = &text[start..end];
        let count = || match self.vocabulary.whole_long(piece) {
            Some(_) => 1,
            None => merge::count(self.vocabulary, piece),
        };
        if piece.len() <= PIECE_MAX {
            cache.wide(wide_key(text, start, end), count)
        } else {
            count()
        }
    }
}
