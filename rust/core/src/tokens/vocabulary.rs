//! The vocabularies: static tables of the token bytes, looked up whole or by the pair that merges.
//!
//! Built by `build.rs` and linked in: there is no set-up, a process touches only the pages it uses.

use std::fmt;

use super::table::{
    ID_BITS, ID_MASK, KEY_MASK, OVERFLOW, SHORT_KEY_BITS, SHORT_KEY_MASK, SHORT_MAX,
    SHORT_OVERFLOW, WAYS, bucket, fingerprint, hash_long, hash_pair, hash_short,
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
    byte_pairs: &'static [[u8; 4]],
    byte_ids: &'static [[u8; 4]],
    ends: &'static [[u8; 4]],
    text: &'static [u8],
}

macro_rules! vocabulary {
    ($name:ident, $file:literal) => {
        pub(super) static $name: Vocabulary = {
            table!(SHORT, concat!($file, ".short"));
            table!(LONG, concat!($file, ".long"));
            table!(PAIRS, concat!($file, ".pairs"));
            table!(BYTE_PAIRS, concat!($file, ".byte_pairs"));
            table!(BYTE_IDS, concat!($file, ".byte_ids"));
            table!(ENDS, concat!($file, ".ends"));
            table!(TEXT, concat!($file, ".text"));
            Vocabulary {
                name: $file,
                short: SHORT.0.as_slice().as_chunks().0,
                long: LONG.0.as_slice().as_chunks().0,
                pairs: PAIRS.0.as_slice().as_chunks().0,
                byte_pairs: BYTE_PAIRS.0.as_slice().as_chunks().0,
                byte_ids: BYTE_IDS.0.as_slice().as_chunks().0,
                ends: ENDS.0.as_slice().as_chunks().0,
                text: TEXT.0.as_slice(),
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

    #[inline]
    fn whole_short(&self, key: u128) -> Option<u32> {
        let mut at = bucket(hash_short(key), self.short.len());
        loop {
            let (entries, _) = self.short.get(at)?.as_chunks::<16>();
            let mut overflow = 0;
            for (way, entry) in entries.iter().enumerate() {
                let entry = u128::from_le_bytes(*entry);
                if (entry ^ key) & SHORT_KEY_MASK == 0 {
                    return Some((entry >> SHORT_KEY_BITS) as u32 & ID_MASK as u32);
                }
                if way == 0 {
                    overflow = entry & SHORT_OVERFLOW;
                }
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

    fn whole_long(&self, piece: &[u8]) -> Option<u32> {
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
        let mut at = bucket(hash_pair(key), self.pairs.len());
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
                if entry >> ID_BITS & KEY_MASK == key {
                    found = (entry & ID_MASK) as u32;
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
fn short_key(text: &[u8], start: usize, end: usize) -> u128 {
    let length = end - start;
    let bytes = match text.get(start..).and_then(|rest| rest.first_chunk::<16>()) {
        Some(chunk) => u128::from_le_bytes(*chunk),
        None => last_bytes(text, start),
    };
    let mask = (1_u128 << (8 * (length as u32 & 15))) - 1;
    (bytes & mask) | (length as u128) << 96
}

/// The fewer than sixteen bytes that are left of the text.
#[cold]
fn last_bytes(text: &[u8], start: usize) -> u128 {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(text.get(start..).unwrap_or_default()) {
        *to = *from;
    }
    u128::from_le_bytes(bytes)
}
