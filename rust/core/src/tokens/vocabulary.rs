//! The vocabularies: static tables of the token bytes, looked up whole or by the pair that merges.
//!
//! Built by `build.rs` and linked in: there is no set-up, a process touches only the pages it uses.

use std::cell::RefCell;
use std::fmt;
use std::thread::LocalKey;

use super::cache::Cache;
use super::table::{
    ID_BITS, ID_MASK, KEY_MASK, OVERFLOW, SHORT_KEY_BITS, SHORT_KEY_MASK, SHORT_MAX,
    SHORT_OVERFLOW, WAYS, bucket, filter, fingerprint, hash_long, hash_pair, hash_short,
};

/// Aligns a table to cache lines, so that a bucket never straddles two.
#[repr(align(64))]
pub(super) struct Aligned<T>(pub(super) T);

/// A static table from a file that the build script wrote.
macro_rules! table {
    ($name:ident, $file:expr) => {
        static $name: Aligned<[u8; include_bytes!(concat!(env!("OUT_DIR"), "/", $file)).len()]> =
            Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $file)));
    };
}
pub(super) use table;

/// No token. Rank 0 is a single byte in both vocabularies, never the result of a merge.
pub(super) const NONE: u32 = 0;

type Wide = [u8; 16 * WAYS];
type Narrow = [u8; 8 * WAYS];

/// One vocabulary. Ids are ranks: of two possible merges the one with the lower id comes first.
pub(super) struct Vocabulary {
    name: &'static str,
    short: &'static [Wide],
    long: &'static [Narrow],
    pairs: &'static [Narrow],
    filter: &'static [[u8; 8]],
    byte_pairs: &'static [[u8; 4]],
    byte_ids: &'static [[u8; 4]],
    chars: &'static [[u8; 4]],
    ends: &'static [[u8; 4]],
    text: &'static [u8],
    cache: &'static LocalKey<RefCell<Cache>>,
}

macro_rules! vocabulary {
    ($name:ident, $file:literal) => {
        pub(super) static $name: Vocabulary = {
            table!(SHORT, concat!($file, ".short"));
            table!(LONG, concat!($file, ".long"));
            table!(PAIRS, concat!($file, ".pairs"));
            table!(FILTER, concat!($file, ".filter"));
            table!(BYTE_PAIRS, concat!($file, ".byte_pairs"));
            table!(BYTE_IDS, concat!($file, ".byte_ids"));
            table!(CHARS, concat!($file, ".chars"));
            table!(ENDS, concat!($file, ".ends"));
            table!(TEXT, concat!($file, ".text"));
            thread_local! {
                static CACHE: RefCell<Cache> = const { RefCell::new(Cache::new()) };
            }
            Vocabulary {
                name: $file,
                short: SHORT.0.as_slice().as_chunks().0,
                long: LONG.0.as_slice().as_chunks().0,
                pairs: PAIRS.0.as_slice().as_chunks().0,
                filter: FILTER.0.as_slice().as_chunks().0,
                byte_pairs: BYTE_PAIRS.0.as_slice().as_chunks().0,
                byte_ids: BYTE_IDS.0.as_slice().as_chunks().0,
                chars: CHARS.0.as_slice().as_chunks().0,
                ends: ENDS.0.as_slice().as_chunks().0,
                text: TEXT.0.as_slice(),
                cache: &CACHE,
            }
        };
    };
}

vocabulary!(O200K, "o200k_base");
vocabulary!(CL100K, "cl100k_base");

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocabulary")
            .field("name", &self.name)
            .field("tokens", &self.ends.len())
            .finish_non_exhaustive()
    }
}

impl Vocabulary {
    /// Lends this thread's cache of merged pieces.
    pub(super) fn with_cache<T>(&self, work: impl FnOnce(&mut Cache) -> T) -> T {
        self.cache.with_borrow_mut(work)
    }

    /// Bytes of a token.
    pub(super) fn token(&self, id: u32) -> Option<&'static [u8]> {
        let id = id as usize;
        let end = u32::from_le_bytes(*self.ends.get(id)?) as usize;
        let start = match id.checked_sub(1) {
            Some(before) => u32::from_le_bytes(*self.ends.get(before)?) as usize,
            None => 0,
        };
        self.text.get(start..end)
    }

    /// The id of the token that is exactly `text[start..end]`.
    #[inline]
    pub(super) fn whole(&self, text: &[u8], start: usize, end: usize) -> Option<u32> {
        if end - start <= SHORT_MAX {
            self.whole_short(short_key(text, start, end))
        } else {
            self.whole_long(text.get(start..end)?)
        }
    }

    /// The id of a short token, by its [`short_key`].
    #[inline]
    pub(super) fn whole_short(&self, key: u128) -> Option<u32> {
        let mut at = bucket(hash_short(key), self.short.len());
        loop {
            let (entries, _) = self.short.get(at)?.as_chunks::<16>();
            let mut found = 0;
            let mut overflow = 0;
            for (way, entry) in entries.iter().enumerate() {
                let entry = u128::from_le_bytes(*entry);
                if (entry ^ key) & SHORT_KEY_MASK == 0 {
                    found = entry;
                }
                if way == 0 {
                    overflow = entry & SHORT_OVERFLOW;
                }
            }
            if found != 0 {
                return Some((found >> SHORT_KEY_BITS) as u32 & ID_MASK as u32);
            }
            if overflow == 0 {
                return None;
            }
            at = if at + 1 == self.short.len() {
                0
            } else {
                at + 1
            };
        }
    }

    /// The id of a token of more than [`SHORT_MAX`] bytes.
    pub(super) fn whole_long(&self, piece: &[u8]) -> Option<u32> {
        let hash = hash_long(piece);
        let mut at = bucket(hash, self.long.len());
        loop {
            let (entries, _) = self.long.get(at)?.as_chunks::<8>();
            let mut overflow = 0;
            for (way, entry) in entries.iter().enumerate() {
                let entry = u64::from_le_bytes(*entry);
                let id = (entry & ID_MASK) as u32;
                if entry >> ID_BITS & KEY_MASK == fingerprint(hash) && self.token(id) == Some(piece)
                {
                    return Some(id);
                }
                if way == 0 {
                    overflow = entry & OVERFLOW;
                }
            }
            if overflow == 0 {
                return None;
            }
            at = if at + 1 == self.long.len() { 0 } else { at + 1 };
        }
    }

    /// The id of a byte.
    #[inline]
    pub(super) fn byte(&self, byte: u8) -> u32 {
        self.byte_ids
            .get(usize::from(byte))
            .map_or(NONE, |id| u32::from_le_bytes(*id))
    }

    /// The token of the three-byte character at `at` if its bytes merge before anything that
    /// crosses its borders, else [`NONE`]. The build script's `closed_chars` says why.
    #[inline]
    fn closed_char(&self, piece: &[u8], at: usize) -> u32 {
        let Some(&[first, second, third]) = piece.get(at..).and_then(|rest| rest.first_chunk())
        else {
            return NONE;
        };
        let closed_before = at == 0 || piece.get(at - 1).is_some_and(|&byte| byte >= 0x80);
        let closed_after = !piece
            .get(at + 3)
            .is_some_and(|byte| (0xE0..=0xE2).contains(byte));
        if !(closed_before && closed_after) {
            return NONE;
        }
        let code = usize::from(first & 0x0F) << 12
            | usize::from(second & 0x3F) << 6
            | usize::from(third & 0x3F);
        let id = self.chars.get(code.wrapping_sub(0x3000));
        id.map_or(NONE, |id| u32::from_le_bytes(*id))
    }

    /// The tokens that merging a piece may start from, and their lengths in bytes: single bytes, or
    /// whole characters where that is the same.
    #[inline]
    pub(super) fn units(&self, piece: &[u8]) -> impl Iterator<Item = (u32, usize)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let byte = *piece.get(at)?;
            let char = if (0xE3..=0xED).contains(&byte) {
                self.closed_char(piece, at)
            } else {
                NONE
            };
            let unit = if char == NONE {
                (self.byte(byte), 1)
            } else {
                (char, 3)
            };
            at += unit.1;
            Some(unit)
        })
    }

    /// What two neighbouring bytes merge to, or [`NONE`].
    #[inline]
    pub(super) fn byte_pair(&self, left: u8, right: u8) -> u32 {
        let at = usize::from(left) << 8 | usize::from(right);
        self.byte_pairs
            .get(at)
            .map_or(NONE, |id| u32::from_le_bytes(*id))
    }

    /// What two neighbouring tokens merge to, or [`NONE`].
    #[inline]
    pub(super) fn pair(&self, left: u32, right: u32) -> u32 {
        let key = u64::from(left) << ID_BITS | u64::from(right);
        let hash = hash_pair(key);
        let (word, bits) = filter(hash);
        let word = self
            .filter
            .get(word)
            .map_or(0, |word| u64::from_le_bytes(*word));
        if word & bits != bits {
            return NONE;
        }
        let mut at = bucket(hash, self.pairs.len());
        loop {
            let Some(bucket) = self.pairs.get(at) else {
                return NONE;
            };
            let (entries, _) = bucket.as_chunks::<8>();
            // All four are compared without a branch: most pairs merge to nothing.
            let mut found = NONE;
            let mut overflow = 0;
            for (way, entry) in entries.iter().enumerate() {
                let entry = u64::from_le_bytes(*entry);
                // An empty entry looks like a pair of two zeros that merges to nothing.
                if entry >> ID_BITS & KEY_MASK == key {
                    found |= (entry & ID_MASK) as u32;
                }
                if way == 0 {
                    overflow = entry & OVERFLOW;
                }
            }
            if found != NONE || overflow == 0 {
                return found;
            }
            at = if at + 1 == self.pairs.len() {
                0
            } else {
                at + 1
            };
        }
    }
}

/// Up to twelve bytes and their number, as one integer.
#[inline]
pub(super) fn short_key(text: &[u8], start: usize, end: usize) -> u128 {
    let length = end - start;
    first_bytes(text, start, length) | (length as u128) << 96
}

/// Number of bytes in a [`short_key`].
#[inline]
pub(super) fn short_length(key: u128) -> usize {
    (key >> 96) as usize & 15
}

/// Thirteen to thirty bytes and their number, as two integers; the last byte is 0.
#[inline]
pub(super) fn wide_key(text: &[u8], start: usize, end: usize) -> [u128; 2] {
    let length = end - start;
    let low = first_bytes(text, start, length.min(16));
    let high = first_bytes(text, start + 16, length.saturating_sub(16));
    [low, high | (length as u128) << 112]
}

/// The `length` bytes from `start`, at most sixteen, the first in the lowest bits.
#[inline]
fn first_bytes(text: &[u8], start: usize, length: usize) -> u128 {
    let bytes = match text.get(start..).and_then(|rest| rest.first_chunk::<16>()) {
        Some(chunk) => u128::from_le_bytes(*chunk),
        None => last_bytes(text, start),
    };
    let mask = MASKS.get(length).copied().unwrap_or(u128::MAX);
    bytes & mask
}

/// The lowest 0, 1, …, 15 bytes.
const MASKS: [u128; 16] = {
    let mut masks = [0; 16];
    let mut bytes = 0;
    while bytes < 16 {
        masks[bytes] = (1 << (8 * bytes)) - 1;
        bytes += 1;
    }
    masks
};

/// The fewer than sixteen bytes that are left of the text.
#[cold]
fn last_bytes(text: &[u8], start: usize) -> u128 {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(text.get(start..).unwrap_or_default()) {
        *to = *from;
    }
    u128::from_le_bytes(bytes)
}
