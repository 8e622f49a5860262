//! Layout of the lookup tables: hashing, buckets and bit fields.
//!
//! The build script includes this file too, so the writer and the reader of the tables cannot
//! disagree. A bucket is four entries; a key lives in its home bucket or, when that was full, in
//! the next one with room, and the home bucket's overflow bit says that a miss must look on.
//! Tokens are placed in rank order, so the frequent ones are at home.

/// Entries of a bucket.
pub(crate) const WAYS: usize = 4;
/// Bits of a token id: 2^18 = 262,144 ids.
pub(crate) const ID_BITS: u32 = 18;
/// Mask of a token id.
pub(crate) const ID_MASK: u64 = (1 << ID_BITS) - 1;

/// Longest token, in bytes, whose bytes are stored inside its entry.
pub(crate) const SHORT_MAX: usize = 12;
/// Bits of a short key: twelve bytes and a length in 1..=12.
pub(crate) const SHORT_KEY_BITS: u32 = 100;
/// Mask of a short key inside a 16-byte entry; the id sits above it.
pub(crate) const SHORT_KEY_MASK: u128 = (1 << SHORT_KEY_BITS) - 1;
/// Overflow bit of the first entry of a bucket of short tokens.
pub(crate) const SHORT_OVERFLOW: u128 = 1 << 127;

/// Overflow bit of the first entry of a bucket of pairs or of long tokens.
pub(crate) const OVERFLOW: u64 = 1 << 63;
/// Bits of a pair key, two ids, and of the fingerprint of a long token.
pub(crate) const KEY_MASK: u64 = (1 << (2 * ID_BITS)) - 1;

const SEED_LOW: u64 = 0x9E37_79B9_7F4A_7C15;
const SEED_HIGH: u64 = 0xD6E8_FEB8_6659_FD93;

/// Both halves of a 64 × 64 bit product, folded: every input bit reaches the upper half.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a).wrapping_mul(u128::from(b));
    (product as u64) ^ ((product >> 64) as u64)
}

/// Hash of a short key, see [`SHORT_KEY_BITS`].
#[inline]
pub(crate) fn hash_short(key: u128) -> u64 {
    fold(key as u64 ^ SEED_LOW, (key >> 64) as u64 ^ SEED_HIGH)
}

/// Hash of a piece of up to thirty-one bytes.
#[inline]
pub(crate) fn hash_wide(low: u128, high: u128) -> u64 {
    hash_short(
        low ^ u128::from(fold(
            high as u64 ^ SEED_LOW,
            (high >> 64) as u64 ^ SEED_HIGH,
        )),
    )
}

/// Hash of a pair key.
#[inline]
pub(crate) fn hash_pair(key: u64) -> u64 {
    fold(key ^ SEED_HIGH, SEED_LOW)
}

/// Words of the filter in front of a pair table: 128 KB, five bits a pair.
pub(crate) const FILTER_WORDS: usize = 1 << 14;

/// The word of the filter for a pair hash, and its two bits there.
///
/// Most neighbours merge to nothing, and the filter, small enough to stay near the processor, says
/// so without touching the table. It uses the half of the hash that [`bucket`] does not.
#[inline]
pub(crate) fn filter(hash: u64) -> (usize, u64) {
    let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63);
    ((hash >> 12) as usize % FILTER_WORDS, bits)
}

/// Hash of a token of any length, eight bytes at a time.
#[inline]
pub(crate) fn hash_long(token: &[u8]) -> u64 {
    let (words, tail) = token.as_chunks::<8>();
    let mut hash = token.len() as u64 ^ SEED_HIGH;
    for word in words {
        hash = fold(hash ^ u64::from_le_bytes(*word), SEED_LOW);
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(tail) {
        *to = *from;
    }
    fold(hash ^ u64::from_le_bytes(last), SEED_LOW)
}

/// Home bucket of a hash in a table of `buckets` buckets.
#[inline]
pub(crate) fn bucket(hash: u64, buckets: usize) -> usize {
    // The upper 32 bits times the count, without a division; tables are far below 2^32 buckets.
    ((hash >> 32).wrapping_mul(buckets as u64) >> 32) as usize
}

/// Fingerprint of a long token: the bits of its hash that its bucket does not depend on, and more.
#[inline]
pub(crate) fn fingerprint(hash: u64) -> u64 {
    hash & KEY_MASK
}
