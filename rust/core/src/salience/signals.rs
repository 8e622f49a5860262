//! What a text contains that makes it matter: found once, when it is asked.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};

use crate::message::{Body, Part, PartKind};
use crate::node::Text;

/// Bits that say what a message contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals(u8);

impl Signals {
    /// A decision or an agreement.
    pub const DECISION: Self = Self(1);
    /// A standing instruction or prohibition.
    pub const CONSTRAINT: Self = Self(2);
    /// An error.
    pub const ERROR: Self = Self(4);
    /// Code.
    pub const CODE: Self = Self(8);
    /// A failed result.
    pub const FAILED: Self = Self(16);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Words and the signal each stands for; matched without regard to ASCII case.
const WORDS: [(&str, Signals); 30] = [
    ("decided", Signals::DECISION),
    ("decision", Signals::DECISION),
    ("agreed", Signals::DECISION),
    ("confirmed", Signals::DECISION),
    ("approved", Signals::DECISION),
    ("결정", Signals::DECISION),
    ("확정", Signals::DECISION),
    ("합의", Signals::DECISION),
    ("never", Signals::CONSTRAINT),
    ("always", Signals::CONSTRAINT),
    ("must", Signals::CONSTRAINT),
    ("do not", Signals::CONSTRAINT),
    ("don't", Signals::CONSTRAINT),
    ("without asking", Signals::CONSTRAINT),
    ("remember", Signals::CONSTRAINT),
    ("important", Signals::CONSTRAINT),
    ("반드시", Signals::CONSTRAINT),
    ("절대", Signals::CONSTRAINT),
    ("중요", Signals::CONSTRAINT),
    ("하지 마", Signals::CONSTRAINT),
    ("error", Signals::ERROR),
    ("exception", Signals::ERROR),
    ("traceback", Signals::ERROR),
    ("failed", Signals::ERROR),
    ("panicked", Signals::ERROR),
    ("fatal", Signals::ERROR),
    ("오류", Signals::ERROR),
    ("실패", Signals::ERROR),
    ("```", Signals::CODE),
    ("코드", Signals::CODE),
];

/// Bytes of a text that are searched: head and tail of what is longer. A signal in the middle of
/// a long dump says little, and reading all of it would cost more than counting its tokens.
const SEARCHED_BYTES: usize = 4096;

fn matcher() -> Option<&'static AhoCorasick> {
    static MATCHER: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    MATCHER
        .get_or_init(|| {
            AhoCorasickBuilder::new()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::LeftmostFirst)
                // Twice as fast on prose as the automaton chosen by itself; 30 words keep it small.
                .kind(Some(AhoCorasickKind::DFA))
                .build(WORDS.map(|(word, _)| word))
                .ok()
        })
        .as_ref()
}

/// The signals of one text.
pub fn signals_in(text: &str) -> Signals {
    let mut found = Signals::default();
    let Some(matcher) = matcher() else {
        return found;
    };
    let bytes = text.as_bytes();
    let half = SEARCHED_BYTES / 2;
    let (head, tail) = if bytes.len() > SEARCHED_BYTES {
        (&bytes[..half], &bytes[bytes.len() - half..])
    } else {
        (bytes, &bytes[..0])
    };
    for slice in [head, tail] {
        for hit in matcher.find_iter(slice) {
            found = found.union(WORDS[hit.pattern().as_usize()].1);
        }
    }
    found
}

/// The signals of a message: its texts and results.
pub fn signals_of_parts<T: Text>(parts: &[Part<T>]) -> Signals {
    let mut found = Signals::default();
    for part in parts {
        if !matches!(part.kind, PartKind::Text | PartKind::Result) {
            continue;
        }
        if part.is_error {
            found = found.union(Signals::FAILED);
        }
        if let Body::Text(text) = &part.body {
            found = found.union(text.with(signals_in));
        }
    }
    found
}
