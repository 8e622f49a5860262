//! Turns the vocabulary and character class files into the tables that the encoder looks up.
//!
//! Runs offline in well under a second; the layout is in `src/tokens/table.rs`, which it shares
//! with the library.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs, io};

#[allow(dead_code, reason = "the library also reads what is written here")]
#[path = "src/tokens/table.rs"]
mod table;

use table::{
    FILTER_WORDS, ID_BITS, OVERFLOW, SHORT_KEY_BITS, SHORT_MAX, SHORT_OVERFLOW, WAYS, bucket,
    fingerprint, hash_long, hash_pair, hash_short,
};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/tokens/table.rs");
    println!("cargo::rerun-if-changed=data");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    let out = Path::new(&out);
    for name in ["o200k_base", "cl100k_base"] {
        vocabulary(&fs::read(format!("data/{name}.vocab"))?, out, name)?;
    }
    classes(&fs::read_to_string("data/classes.txt")?, out)
}

/// Writes the tables of one vocabulary: `short`, `long`, `pairs`, `bytes`, `ends`, `text`.
fn vocabulary(file: &[u8], out: &Path, name: &str) -> io::Result<()> {
    let mut tokens: Vec<&[u8]> = Vec::new();
    let mut rest = file;
    while let Some((&length, tail)) = rest.split_first() {
        let (token, tail) = tail.split_at(usize::from(length));
        tokens.push(token);
        rest = tail;
    }
    assert!(tokens.len() < 1 << ID_BITS, "ids must fit their bit field");

    let shorts = tokens.iter().filter(|t| t.len() <= SHORT_MAX).count();
    let mut short = Table::new(shorts * 20 / 13);
    let mut long = Table::new((tokens.len() - shorts) * 2);
    let mut text = Vec::new();
    let mut ends = Vec::new();
    for (id, token) in tokens.iter().enumerate() {
        if token.len() <= SHORT_MAX {
            let mut bytes = [0; 16];
            bytes[..token.len()].copy_from_slice(token);
            let key = u128::from_le_bytes(bytes) | (token.len() as u128) << 96;
            short.insert(hash_short(key), key | (id as u128) << SHORT_KEY_BITS);
        } else {
            let hash = hash_long(token);
            long.insert(hash, u128::from(fingerprint(hash) << ID_BITS | id as u64));
        }
        text.extend_from_slice(token);
        ends.extend_from_slice(&id32(text.len())?.to_le_bytes());
    }

    let merges = merges(&tokens)?;
    let write = |what: &str, data: &[u8]| fs::write(out.join(format!("{name}.{what}")), data);
    write("short", &short.wide())?;
    write("long", &long.narrow())?;
    write("pairs", &merges.pairs.narrow())?;
    write("filter", &merges.filter)?;
    write("chars", &merges.chars)?;
    write("byte_pairs", &merges.byte_pairs)?;
    write("byte_ids", &merges.byte_ids)?;
    write("ends", &ends)?;
    write("text", &text)
}

/// What merges to what, see [`merges`].
struct Merges {
    pairs: Table,
    filter: Vec<u8>,
    /// The merges of two single bytes once more, as a plain array.
    byte_pairs: Vec<u8>,
    byte_ids: Vec<u8>,
    /// See [`closed_chars`].
    chars: Vec<u8>,
}

/// The pair of tokens whose merge makes each token.
///
/// Byte-pair encoding of a token's own bytes ends in exactly one pair before the token itself, and
/// inside any text the token can only arise from that pair: until both halves exist no merge has
/// crossed their borders, so the same merges happen in the same order as in the token alone.
/// Tokens that their own bytes do not encode to have no pair; they are found whole or not at all.
fn merges(tokens: &[&[u8]]) -> io::Result<Merges> {
    let mut byte_ids = vec![0_u32; 256];
    let mut byte_pairs = vec![0_u32; 1 << 16];
    let mut pairs = Table::new(tokens.len() * 2);
    let mut filter = vec![0_u64; FILTER_WORDS];
    let mut reached = vec![false; tokens.len()];
    let mut known: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for (id, token) in tokens.iter().enumerate() {
        if let [byte] = token {
            byte_ids[usize::from(*byte)] = id32(id)?;
        }
    }
    for (id, token) in tokens.iter().enumerate() {
        let id = id32(id)?;
        let mut parts: Vec<u32> = token.iter().map(|&b| byte_ids[usize::from(b)]).collect();
        // Lower ranks only: `known` holds nothing else yet.
        while parts.len() > 2 {
            let best = parts
                .windows(2)
                .enumerate()
                .filter_map(|(at, pair)| known.get(&(pair[0], pair[1])).map(|&id| (id, at)))
                .min();
            let Some((merged, at)) = best else { break };
            parts[at] = merged;
            parts.remove(at + 1);
        }
        if let [left, right] = parts[..] {
            known.insert((left, right), id);
            reached[id as usize] = true;
            if let [first, second] = token {
                byte_pairs[usize::from(*first) << 8 | usize::from(*second)] = id;
            }
            let key = u64::from(left) << ID_BITS | u64::from(right);
            let hash = hash_pair(key);
            pairs.insert(hash, u128::from(key << ID_BITS | u64::from(id)));
            let (word, bits) = table::filter(hash);
            filter[word] |= bits;
        }
    }
    let bytes = |ids: Vec<u32>| ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    Ok(Merges {
        chars: bytes(closed_chars(tokens, &reached)?),
        pairs,
        filter: filter.iter().flat_map(|word| word.to_le_bytes()).collect(),
        byte_pairs: bytes(byte_pairs),
        byte_ids: bytes(byte_ids),
    })
}

/// The tokens that are one character of three bytes from U+3000 to U+DFFF and may be formed before
/// all other merges of a piece, by code point.
///
/// Exact wherever no token that holds a part of the character, but not all of it, together with a
/// neighbour comes before it in rank: until the character is complete, nothing can cross its borders.
/// Two kinds of neighbour are left out here, and the encoder must look for them: a byte below 128
/// before it (there are tokens of a space and the start of a character), and a lead byte E0 to E2
/// after it.
fn closed_chars(tokens: &[&[u8]], reached: &[bool]) -> io::Result<Vec<u32>> {
    let inner = |byte: &u8| (0x80..0xC0).contains(byte);
    // The lowest rank of a token that ends with a proper start of a character, and of one that
    // starts with a proper end.
    let mut starts: BTreeMap<&[u8], usize> = BTreeMap::new();
    let mut ends: BTreeMap<&[u8], usize> = BTreeMap::new();
    for (id, token) in tokens.iter().enumerate() {
        let head = token.iter().take_while(|byte| inner(byte)).count();
        if (1..=2).contains(&head) && head < token.len() && !(0xE0..=0xE2).contains(&token[head]) {
            ends.entry(&token[..head]).or_insert(id);
        }
        let tail = token.iter().rev().take_while(|byte| inner(byte)).count() + 1;
        if tail <= 2 && tail < token.len() && token[token.len() - tail - 1] >= 0x80 {
            starts.entry(&token[token.len() - tail..]).or_insert(id);
        }
    }
    let mut chars = vec![0; 0xE000 - 0x3000];
    for (id, token) in tokens.iter().enumerate() {
        let Ok(text) = str::from_utf8(token) else {
            continue;
        };
        let mut all = text.chars();
        let (Some(char @ '\u{3000}'..'\u{E000}'), None) = (all.next(), all.next()) else {
            continue;
        };
        let first =
            |known: &BTreeMap<&[u8], usize>, part| known.get(part).is_none_or(|&at| at > id);
        if first(&starts, &token[..1])
            && first(&starts, &token[..2])
            && first(&ends, &token[1..])
            && first(&ends, &token[2..])
            && reached[id]
        {
            chars[char as usize - 0x3000] = id32(id)?;
        }
    }
    Ok(chars)
}

fn id32(number: usize) -> io::Result<u32> {
    u32::try_from(number).map_err(io::Error::other)
}

/// Buckets of [`WAYS`] entries; 0 is an empty entry.
struct Table {
    buckets: Vec<[u128; WAYS]>,
    overflow: Vec<bool>,
}

impl Table {
    fn new(entries: usize) -> Self {
        let buckets = entries.div_ceil(WAYS);
        Self {
            buckets: vec![[0; WAYS]; buckets],
            overflow: vec![false; buckets],
        }
    }

    fn insert(&mut self, hash: u64, entry: u128) {
        let mut at = bucket(hash, self.buckets.len());
        loop {
            if let Some(free) = self.buckets[at].iter_mut().find(|slot| **slot == 0) {
                *free = entry;
                return;
            }
            self.overflow[at] = true;
            at = (at + 1) % self.buckets.len();
        }
    }

    fn wide(&self) -> Vec<u8> {
        self.write(SHORT_OVERFLOW, |entry| entry.to_le_bytes().to_vec())
    }

    fn narrow(&self) -> Vec<u8> {
        self.write(u128::from(OVERFLOW), |entry| {
            (entry as u64).to_le_bytes().to_vec()
        })
    }

    fn write(&self, flag: u128, bytes: impl Fn(u128) -> Vec<u8>) -> Vec<u8> {
        let mut out = Vec::new();
        for (bucket, &overflow) in self.buckets.iter().zip(&self.overflow) {
            for (way, &entry) in bucket.iter().enumerate() {
                let flag = if way == 0 && overflow { flag } else { 0 };
                out.extend(bytes(entry | flag));
            }
        }
        out
    }
}

/// Writes the two-stage class table: `classes.index` has one byte per 128 code points, the number
/// of their block in `classes.blocks`.
fn classes(file: &str, out: &Path) -> io::Result<()> {
    let mut class = vec![0_u8; 0x11_0000];
    for line in file.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let number = |text| usize::from_str_radix(text, 16).map_err(io::Error::other);
        let (first, last) = (number(fields[0])?, number(fields[1])?);
        // The bits are named in `src/tokens/classes.rs`.
        let bits = match fields[2] {
            "U" => 1,
            "L" => 2,
            "B" => 3,
            "M" => 7,
            "N" => 8,
            "S" => 16,
            other => return Err(io::Error::other(format!("no class {other}"))),
        };
        class[first..=last].fill(bits);
    }
    for newline in [b'\r', b'\n'] {
        class[usize::from(newline)] |= 32;
    }
    let mut blocks: Vec<&[u8]> = Vec::new();
    let mut index = Vec::new();
    for block in class.chunks(128) {
        let at = blocks.iter().position(|known| *known == block);
        index.push(u8::try_from(at.unwrap_or(blocks.len())).map_err(io::Error::other)?);
        if at.is_none() {
            blocks.push(block);
        }
    }
    fs::write(out.join("classes.index"), &index)?;
    fs::write(out.join("classes.blocks"), blocks.concat())
}
