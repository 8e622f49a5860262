//! What a line is about, told by a few words: an error, a definition, the head of a file, an
//! instruction that holds from now on.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};

/// What the words of a line say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineSigns {
    /// Speaks of an error.
    pub is_error: bool,
    /// Defines something: a function, a type, a constant.
    pub is_definition: bool,
    /// Says which file comes next.
    pub is_header: bool,
}

const ERRORS: [&str; 8] = [
    "error",
    "exception",
    "traceback",
    "failed",
    "failure",
    "fatal",
    "panicked",
    "오류",
];

const DEFINITIONS: [&str; 18] = [
    "def ",
    "class ",
    "fn ",
    "func ",
    "function ",
    "interface ",
    "struct ",
    "enum ",
    "trait ",
    "impl ",
    "type ",
    "const ",
    "public ",
    "private ",
    "protected ",
    "static ",
    "import ",
    "#define ",
];

const HEADERS: [&str; 10] = [
    "diff --git",
    "--- ",
    "+++ ",
    "==> ",
    "[file:",
    "file:",
    "here's the result of running",
    "here are the files",
    "<file",
    "# file",
];

const STANDING: [&str; 24] = [
    "never",
    "always",
    "must",
    "do not",
    "don't",
    "only",
    "remember",
    "without asking",
    "unless",
    "make sure",
    "under no circumstances",
    "from now on",
    "at all times",
    "not allowed",
    "forbidden",
    "반드시",
    "절대",
    "항상",
    "하지 마",
    "하지 말",
    "금지",
    "기억",
    "꼭 ",
    "앞으로",
];

fn matcher<'a>(words: impl Iterator<Item = &'a str>) -> Option<AhoCorasick> {
    AhoCorasickBuilder::new()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostFirst)
        .build(words)
        .ok()
}

/// What the words of a line say. Reads at most its first 400 bytes.
pub fn signs_of(line: &str) -> LineSigns {
    static WORDS: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let words = ERRORS.iter().chain(&DEFINITIONS);
    let matcher = WORDS.get_or_init(|| matcher(words.copied()));
    let line = &line[..line.floor_char_boundary(400)];
    let start = line.trim_start();
    let mut signs = LineSigns {
        is_header: HEADERS.iter().any(|head| {
            let found = start.as_bytes().get(..head.len());
            found.is_some_and(|found| found.eq_ignore_ascii_case(head.as_bytes()))
        }),
        ..LineSigns::default()
    };
    for hit in matcher.iter().flat_map(|matcher| matcher.find_iter(line)) {
        if hit.pattern().as_usize() < ERRORS.len() {
            signs.is_error = true;
        } else if is_word_start(line, hit.start()) {
            signs.is_definition = true;
        }
    }
    signs
}

/// Whether a line reads like an instruction that holds from now on. English words count only as
/// whole words.
pub fn is_standing(line: &str) -> bool {
    static WORDS: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let matcher = WORDS.get_or_init(|| matcher(STANDING.iter().copied()));
    let mut hits = matcher.iter().flat_map(|matcher| matcher.find_iter(line));
    hits.any(|hit| {
        let ends = line.as_bytes().get(hit.end());
        let is_whole = !ends.is_some_and(u8::is_ascii_alphanumeric);
        !line.as_bytes()[hit.start()].is_ascii() || (is_word_start(line, hit.start()) && is_whole)
    })
}

fn is_word_start(line: &str, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| line.as_bytes().get(at));
    !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
