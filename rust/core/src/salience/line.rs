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

/// Words of rules that hold from now on, and how they count.
const STANDING: [(&str, Claim); 38] = [
    // The longer ones first: the first that matches at a place counts.
    ("without asking", Claim::Always),
    ("without my", Claim::Always),
    ("under no circumstances", Claim::Always),
    ("from now on", Claim::Always),
    ("from here on", Claim::Always),
    ("going forward", Claim::Always),
    ("at all times", Claim::Always),
    ("in every ", Claim::AtStart),
    ("not allowed", Claim::Always),
    ("forbidden", Claim::Always),
    ("must never", Claim::Always),
    ("must always", Claim::Always),
    ("must not", Claim::Always),
    ("should never", Claim::Always),
    ("should always", Claim::Always),
    ("unless i ", Claim::Always),
    ("unless you", Claim::AtStart),
    ("unless", Claim::AtStart),
    ("never", Claim::AtStart),
    ("always", Claim::AtStart),
    ("must", Claim::AtStart),
    ("do not", Claim::AtStart),
    ("don't", Claim::AtStart),
    ("don\u{2019}t", Claim::AtStart),
    ("only", Claim::AtStart),
    ("remember", Claim::AtStart),
    ("make sure", Claim::AtStart),
    ("keep in mind", Claim::AtStart),
    ("avoid", Claim::AtStart),
    ("반드시", Claim::Always),
    ("절대", Claim::Always),
    ("항상", Claim::Always),
    ("하지 마", Claim::Always),
    ("하지 말", Claim::Always),
    ("금지", Claim::Always),
    ("기억", Claim::AtStart),
    ("꼭 ", Claim::Always),
    ("앞으로", Claim::Always),
];

/// Where a word makes a rule of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// Wherever it stands.
    Always,
    /// Where a sentence or a clause begins; elsewhere it is a hint.
    AtStart,
}

/// Words before which a clause has not begun yet.
const OPENINGS: [&str; 9] = [
    "and", "but", "so", "please", "also", "then", "you", "to", "that",
];

/// Words after which what follows is no rule: who speaks of oneself or of others tells something.
const TELLERS: [&str; 6] = ["i", "they", "he", "she", "it", "who"];

/// How much a line reads like an instruction that holds from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Not at all.
    #[default]
    No,
    /// It has a word of one.
    Hint,
    /// It has the form of one.
    Rule,
}

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

/// How much a line reads like an instruction that holds from now on. English words count only as
/// whole words.
pub fn standing(line: &str) -> Standing {
    static WORDS: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let matcher = WORDS.get_or_init(|| matcher(STANDING.iter().map(|(word, _)| *word)));
    let hits = matcher.iter().flat_map(|matcher| matcher.find_iter(line));
    let mut found = Standing::No;
    for hit in hits {
        let bytes = line.as_bytes();
        let ends_inside = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
        let is_english = bytes[hit.start()].is_ascii();
        let is_whole = is_word_start(line, hit.start())
            && (bytes[hit.end() - 1] == b' ' || !ends_inside(hit.end()));
        if is_english && !is_whole {
            continue;
        }
        let (word, before) = before(line, hit.start());
        let is = |words: &[&str]| words.iter().any(|one| word.eq_ignore_ascii_case(one));
        let claims = match STANDING[hit.pattern().as_usize()].1 {
            Claim::Always => Standing::Rule,
            Claim::AtStart if is(&TELLERS) => Standing::No,
            Claim::AtStart if word.is_empty() || is(&OPENINGS) || before => Standing::Rule,
            Claim::AtStart => Standing::Hint,
        };
        found = found.max(claims);
        if found == Standing::Rule {
            break;
        }
    }
    found
}

/// The word before a place, and whether something else than a space stands between.
fn before(line: &str, at: usize) -> (&str, bool) {
    let head = line[..at].trim_end();
    let is_letter = |c: char| c.is_alphanumeric() || c == '\'' || c == '\u{2019}';
    let is_parted = head
        .chars()
        .next_back()
        .is_some_and(|last| !is_letter(last));
    if is_parted {
        return ("", true);
    }
    let start = head
        .char_indices()
        .rev()
        .take(16)
        .find(|(_, c)| !is_letter(*c));
    (
        start.map_or(head, |(at, c)| &head[at + c.len_utf8()..]),
        false,
    )
}

fn is_word_start(line: &str, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| line.as_bytes().get(at));
    !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
