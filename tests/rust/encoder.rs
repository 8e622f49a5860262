//! The encoders against a slow one: the published regular expression, and merging by definition.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fancy_regex::Regex;
use proptest::prelude::*;
use satchel_core::tokens::{Counter, Encoder};

const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const CL100K: &str = concat!(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+",
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
);

/// Encodes by definition, in time quadratic in the length of a piece.
struct Oracle {
    counter: Counter,
    pieces: Regex,
    ranks: BTreeMap<Vec<u8>, u32>,
}

impl Oracle {
    fn new(name: &str, pieces: &str) -> Self {
        let counter = Counter::named(name).unwrap();
        let encoder = counter.encoder().unwrap();
        let ranks = (0..)
            .map_while(|id| Some((encoder.token(id)?.to_vec(), id)))
            .collect();
        Self {
            pieces: Regex::new(pieces).unwrap(),
            ranks,
            counter,
        }
    }

    fn encoder(&self) -> &dyn Encoder {
        self.counter.encoder().unwrap()
    }

    fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        for piece in self.pieces.find_iter(text) {
            ids.extend(self.encode_piece(piece.unwrap().as_str().as_bytes()));
        }
        ids
    }

    fn encode_piece(&self, piece: &[u8]) -> Vec<u32> {
        if let Some(&id) = self.ranks.get(piece) {
            return vec![id];
        }
        let mut borders: Vec<usize> = (0..=piece.len()).collect();
        loop {
            let best = borders
                .windows(3)
                .enumerate()
                .filter_map(|(at, of)| Some((self.ranks.get(&piece[of[0]..of[2]])?, at)))
                .min();
            match best {
                Some((_, at)) => borders.remove(at + 1),
                None => break,
            };
        }
        borders
            .windows(2)
            .map(|of| self.ranks[&piece[of[0]..of[1]]])
            .collect()
    }

    /// Ids, count and bytes are right.
    fn check(&self, text: &str) {
        let mut ids = Vec::new();
        self.encoder().encode(text, &mut ids);
        assert_eq!(ids, self.encode(text), "{text:?}");
        assert_eq!(self.encoder().count(text) as usize, ids.len(), "{text:?}");
        // Again, now that this thread's cache knows the pieces.
        assert_eq!(self.encoder().count(text) as usize, ids.len(), "{text:?}");
        let bytes: Vec<u8> = ids
            .iter()
            .flat_map(|&id| self.encoder().token(id).unwrap().to_vec())
            .collect();
        assert_eq!(bytes, text.as_bytes());
    }
}

static ORACLES: LazyLock<[Oracle; 2]> = LazyLock::new(|| {
    [
        Oracle::new("o200k_base", O200K),
        Oracle::new("cl100k_base", CL100K),
    ]
});

/// Characters and fragments that the expressions treat in different ways.
const FRAGMENTS: &[&str] = &[
    "a",
    "b",
    "word",
    "Word",
    "WORD",
    "camelCase",
    "HTMLParser",
    "é",
    "É",
    "ß",
    "ǅ",
    "ʰ",
    "ª",
    "я",
    "Ж",
    "漢",
    "字",
    "ひ",
    "カ",
    "한",
    "국",
    "어",
    "사용자",
    "했습니다",
    "ᄀ",
    "ᅡ",
    "ა",
    "अ",
    "ि",
    "ำ",
    "\u{301}",
    "\u{200d}",
    "1",
    "23",
    "4567",
    "٣",
    "½",
    "²",
    " ",
    "  ",
    "\t",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\u{a0}",
    "\u{3000}",
    "\u{85}",
    "\u{2028}",
    "'",
    "'s",
    "'S",
    "'ſ",
    "'LL",
    "'re",
    "'Ve",
    "'d",
    "'m",
    "'t",
    ".",
    "!",
    "!!",
    "!!!!!!",
    "/",
    "//",
    "-",
    "—",
    "_",
    "#",
    "{",
    "}\n",
    "\"",
    "😀",
    "👍🏽",
    "👩‍💻",
    "\0",
    "\u{7}",
    "\u{feff}",
    "\u{ffff}",
    "\u{10ffff}",
    "\u{d7ff}",
    "\u{e000}",
    "<|endoftext|>",
    "==",
    "==========",
];

fn hostile(max: usize) -> impl Strategy<Value = String> {
    let fragment = prop_oneof![
        8 => prop::sample::select(FRAGMENTS).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => (0xAC00_u32..0xD7A4).prop_map(|code| char::from_u32(code).unwrap_or('가').to_string()),
        1 => (0x4E00_u32..0x9FFF).prop_map(|code| char::from_u32(code).unwrap_or('一').to_string()),
    ];
    prop::collection::vec(fragment, 0..max).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn matches_oracle(text in hostile(24)) {
        for oracle in ORACLES.iter() {
            oracle.check(&text);
        }
    }

    /// Whole tokens side by side reach deep into the merges.
    #[test]
    fn matches_oracle_on_joined_tokens(picks in prop::collection::vec(any::<prop::sample::Index>(), 1..8)) {
        for oracle in ORACLES.iter() {
            let bytes: Vec<u8> = picks
                .iter()
                .map(|pick| pick.index(oracle.ranks.len()) as u32)
                .flat_map(|id| oracle.encoder().token(id).unwrap())
                .copied()
                .collect();
            oracle.check(&String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn counts_add_up_at_cuts(text in hostile(24), at in 0_usize..60) {
        for oracle in ORACLES.iter() {
            let encoder = oracle.encoder();
            for cut in [encoder.next_cut(&text, at), encoder.previous_cut(&text, at)] {
                prop_assert!(text.is_char_boundary(cut));
                let (left, right) = text.split_at(cut);
                prop_assert_eq!(encoder.count(&text), encoder.count(left) + encoder.count(right));
            }
        }
    }

    #[test]
    fn stops_at_the_limit(text in hostile(24), limit in 0_u32..40) {
        for oracle in ORACLES.iter() {
            let count = oracle.encoder().count(&text);
            let expected = (count <= limit).then_some(count);
            prop_assert_eq!(oracle.encoder().count_up_to(&text, limit), expected);
        }
    }
}

/// Pieces of every length around the borders between the ways of merging.
#[test]
fn matches_oracle_at_every_length() {
    // A fixed linear congruence: letters that look random, so that many merges compete.
    let letters: String = (0..1200_u64)
        .scan(7_u64, |state, _| {
            *state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            Some(char::from(b'a' + ((*state >> 33) % 26) as u8))
        })
        .collect();
    for oracle in ORACLES.iter() {
        for length in (1..140).chain([1200]) {
            oracle.check(&letters[..length]);
            oracle.check(&"=".repeat(length));
            let syllables: String = "하고싶었습니다"
                .chars()
                .cycle()
                .take(length / 3 + 1)
                .collect();
            oracle.check(&syllables);
        }
    }
}

#[test]
fn knows_every_code_point() {
    let contexts = |char: char| format!("a{char}B {char} {char}1!{char}\n");
    for oracle in ORACLES.iter() {
        for block in (0..=0x10_FFFF_u32).collect::<Vec<_>>().chunks(256) {
            let text: String = block
                .iter()
                .filter_map(|&code| char::from_u32(code))
                .map(contexts)
                .collect();
            let pieces: u32 = oracle
                .pieces
                .find_iter(&text)
                .map(|piece| oracle.encoder().count(piece.unwrap().as_str()))
                .sum();
            assert_eq!(
                oracle.encoder().count(&text),
                pieces,
                "block {:x}",
                block[0]
            );
        }
    }
}

#[test]
fn encodes_long_runs_whole() {
    for oracle in ORACLES.iter() {
        let count = |text: String| oracle.encoder().count(&text);
        assert_eq!(count("a".repeat(100_000)), 12_500);
        assert_eq!(count(" ".repeat(100_000)), 782);
        assert_eq!(count("<|endoftext|>".into()), 7);
    }
    assert_eq!(ORACLES[0].encoder().count(&"!".repeat(100_000)), 6_250);
}

#[test]
fn knows_no_token_past_the_end() {
    for oracle in ORACLES.iter() {
        assert!(oracle.encoder().token(oracle.ranks.len() as u32).is_none());
        assert!(oracle.encoder().token(u32::MAX).is_none());
    }
    assert_eq!(ORACLES[0].ranks.len(), 199_998);
    assert_eq!(ORACLES[1].ranks.len(), 100_256);
}
