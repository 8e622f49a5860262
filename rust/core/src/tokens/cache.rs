//! Counts of recent pieces, remembered per thread.
//!
//! Words come back within a conversation, and a small dense table answers from the nearest memory
//! where the vocabulary is megabytes wide. Direct mapped, of fixed size; an entry holds the whole
//! piece, so a hit is exact and the cache changes no result.

use super::table::{SHORT_KEY_BITS, SHORT_KEY_MASK, bucket, hash_short, hash_wide};

/// Entries for pieces of up to twelve bytes: 256 KB a thread.
const SHORT_ENTRIES: usize = 16384;

/// Entries for longer ones: 64 KB a thread.
const WIDE_ENTRIES: usize = 2048;

/// Longest piece that is remembered, in bytes.
pub(super) const PIECE_MAX: usize = 30;

/// The count of a wide entry sits above the 31 bytes of its key.
const WIDE_KEY_BITS: u32 = 120;
const WIDE_KEY_MASK: u128 = (1 << WIDE_KEY_BITS) - 1;

/// Token counts by piece; see the module.
#[derive(Debug)]
pub(super) struct Cache {
    short: Vec<u128>,
    wide: Vec<[u128; 2]>,
}

impl Cache {
    pub(super) const fn new() -> Self {
        Self {
            short: Vec::new(),
            wide: Vec::new(),
        }
    }

    /// The remembered count of a piece of up to twelve bytes, or 0.
    #[inline]
    pub(super) fn short(&self, key: u128) -> u32 {
        match self.short.get(bucket(hash_short(key), SHORT_ENTRIES)) {
            Some(&known) if (known ^ key) & SHORT_KEY_MASK == 0 => (known >> SHORT_KEY_BITS) as u32,
            _ => 0,
        }
    }

    /// Remembers the count of a piece of up to twelve bytes.
    #[inline]
    pub(super) fn remember_short(&mut self, key: u128, tokens: u32) {
        if self.short.is_empty() {
            self.short = vec![0; SHORT_ENTRIES];
        }
        if let Some(entry) = self.short.get_mut(bucket(hash_short(key), SHORT_ENTRIES)) {
            *entry = key | u128::from(tokens) << SHORT_KEY_BITS;
        }
    }

    /// The remembered count of a piece of thirteen to thirty bytes, or what `count` says, which is
    /// then remembered.
    #[inline]
    pub(super) fn wide(&mut self, [low, high]: [u128; 2], count: impl FnOnce() -> u32) -> u32 {
        let at = bucket(hash_wide(low, high), WIDE_ENTRIES);
        if let Some(&[known_low, known_high]) = self.wide.get(at)
            && known_low == low
            && (known_high ^ high) & WIDE_KEY_MASK == 0
        {
            return (known_high >> WIDE_KEY_BITS) as u32;
        }
        let tokens = count();
        if self.wide.is_empty() {
            self.wide = vec![[0, 0]; WIDE_ENTRIES];
        }
        if let Some(entry) = self.wide.get_mut(at) {
            *entry = [low, high | u128::from(tokens) << WIDE_KEY_BITS];
        }
        tokens
    }
}
