//! Ids of calls in the alphabet, the length and the uniqueness that the dialect asks for.

use std::collections::{BTreeMap, BTreeSet};

use crate::dialect::Dialect;

/// What a dialect asks of the ids of calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdRule {
    /// Most characters.
    pub(crate) most: usize,
    /// Whether only letters, digits, `_` and `-` of ASCII may occur.
    pub(crate) is_plain: bool,
    /// Whether no two calls of a request may share one.
    pub(crate) is_unique: bool,
    /// Whether a call must have one.
    pub(crate) is_needed: bool,
}

impl IdRule {
    /// The rule of a dialect.
    pub(crate) fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::OpenAi => Self {
                most: 40,
                is_plain: false,
                // In one message.
                is_unique: true,
                is_needed: true,
            },
            Dialect::Responses => Self {
                most: 64,
                is_plain: false,
                is_unique: false,
                is_needed: false,
            },
            Dialect::Gemini => Self {
                most: usize::MAX,
                is_plain: false,
                is_unique: false,
                is_needed: false,
            },
            Dialect::Bedrock => Self {
                most: 64,
                is_plain: true,
                // In one message; others may be joined to it.
                is_unique: true,
                is_needed: true,
            },
            Dialect::Anthropic => Self {
                most: usize::MAX,
                is_plain: true,
                is_unique: true,
                is_needed: true,
            },
        }
    }

    /// Whether `id` is one that the dialect takes.
    pub(crate) fn takes(self, id: &str) -> bool {
        !id.is_empty()
            && (id.len() <= self.most || id.chars().count() <= self.most)
            && (!self.is_plain || id.bytes().all(is_plain))
    }

    /// A valid id made from `id`, other than those taken; the same for the same input. `numbers`
    /// holds the last number of each id: without it the n-th repeat would try n of them.
    pub(super) fn mend(
        self,
        id: &str,
        taken: &BTreeSet<String>,
        numbers: &mut BTreeMap<String, u32>,
    ) -> String {
        // Room for the mark that keeps two ids apart which read alike after mending.
        const MARK: usize = 9;
        let most = self.most.min(64) - MARK;
        let kept: String = id
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
                    c
                } else {
                    '_'
                }
            })
            .take(most)
            .collect();
        // Ids are only ever taken, so no number before the last one is free.
        let number = numbers.entry(id.to_owned()).or_insert(0);
        loop {
            let hash = blake3::hash(format!("{number}:{id}").as_bytes()).to_hex();
            let mended = format!("{kept}_{}", &hash[..MARK - 1]);
            if !taken.contains(&mended) {
                return mended;
            }
            *number += 1;
        }
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}
