//! Words that make a line worth keeping whatever else it says: failures, outcomes, decisions.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};

use super::{Structure, Unit};

/// What a word says of the line it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sense {
    /// Something failed.
    Failure,
    /// Something may be wrong.
    Warning,
    /// How something came out.
    Outcome,
    /// A decision or a rule.
    Decision,
}

const WORDS: [(&str, Sense); 58] = [
    ("error", Sense::Failure),
    ("exception", Sense::Failure),
    ("traceback", Sense::Failure),
    ("failed", Sense::Failure),
    ("failure", Sense::Failure),
    ("fatal", Sense::Failure),
    ("panicked", Sense::Failure),
    ("permission denied", Sense::Failure),
    ("access denied", Sense::Failure),
    ("not found", Sense::Failure),
    ("no such file", Sense::Failure),
    ("segmentation fault", Sense::Failure),
    ("undefined reference", Sense::Failure),
    ("timed out", Sense::Failure),
    ("refused", Sense::Failure),
    ("unable to", Sense::Failure),
    ("aborted", Sense::Failure),
    ("critical", Sense::Failure),
    ("오류", Sense::Failure),
    ("실패", Sense::Failure),
    ("에러", Sense::Failure),
    ("예외", Sense::Failure),
    ("거부", Sense::Failure),
    ("찾을 수 없", Sense::Failure),
    ("warning", Sense::Warning),
    ("deprecated", Sense::Warning),
    ("경고", Sense::Warning),
    ("passed", Sense::Outcome),
    ("exit code", Sense::Outcome),
    ("exit status", Sense::Outcome),
    ("exited with", Sense::Outcome),
    ("exitcode", Sense::Outcome),
    ("tests run", Sense::Outcome),
    ("test result", Sense::Outcome),
    ("build success", Sense::Outcome),
    ("in total", Sense::Outcome),
    ("total:", Sense::Outcome),
    ("summary", Sense::Outcome),
    ("finished", Sense::Outcome),
    ("completed", Sense::Outcome),
    ("succeeded", Sense::Outcome),
    ("종료 코드", Sense::Outcome),
    ("합계", Sense::Outcome),
    ("완료", Sense::Outcome),
    ("요약", Sense::Outcome),
    ("성공", Sense::Outcome),
    ("통과", Sense::Outcome),
    ("decided", Sense::Decision),
    ("agreed", Sense::Decision),
    ("must not", Sense::Decision),
    ("never", Sense::Decision),
    ("important", Sense::Decision),
    ("root cause", Sense::Decision),
    ("결정", Sense::Decision),
    ("확정", Sense::Decision),
    ("반드시", Sense::Decision),
    ("중요", Sense::Decision),
    ("원인", Sense::Decision),
];

fn matcher() -> Option<&'static AhoCorasick> {
    static MATCHER: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    MATCHER
        .get_or_init(|| {
            AhoCorasickBuilder::new()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::LeftmostFirst)
                .kind(Some(AhoCorasickKind::DFA))
                .build(WORDS.map(|(word, _)| word))
                .ok()
        })
        .as_ref()
}

/// Calls `emit` with the offset and the sense of each word, in order.
pub(crate) fn find(text: &str, mut emit: impl FnMut(usize, Sense)) {
    let Some(matcher) = matcher() else { return };
    let bytes = text.as_bytes();
    for hit in matcher.find_iter(bytes) {
        let (_, sense) = WORDS[hit.pattern().as_usize()];
        let (before, after) = (&bytes[..hit.start()], &bytes[hit.end()..]);
        let is_ascii = bytes[hit.start()].is_ascii();
        if is_ascii && is_inside_name(before, bytes[hit.start()], after) {
            continue;
        }
        if sense == Sense::Failure && (is_denied_before(before) || is_denied_after(after)) {
            continue;
        }
        emit(hit.start(), sense);
    }
}

/// Whether the word is only a piece of a name: `terror`, `error_handler`, `errors.py`. The end of a
/// name in capitals counts (`KeyError`).
fn is_inside_name(before: &[u8], first: u8, after: &[u8]) -> bool {
    let joined = before
        .last()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    if joined && first.is_ascii_lowercase() {
        return true;
    }
    let after = after.strip_prefix(b"s").unwrap_or(after);
    match after {
        [byte, ..] if byte.is_ascii_alphanumeric() || *byte == b'_' => true,
        [b'.', byte, ..] => byte.is_ascii_alphabetic(),
        _ => false,
    }
}

/// `0 errors`, `no error`, `without failure`.
fn is_denied_before(before: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    let from = before.len().saturating_sub(8);
    let word = before[from..]
        .rsplit(|byte| !byte.is_ascii_alphanumeric())
        .next()
        .unwrap_or_default();
    word == b"0" || word.eq_ignore_ascii_case(b"no") || word.eq_ignore_ascii_case(b"without")
}

/// `errors: 0`, `"error": null`, `오류 0건`.
fn is_denied_after(after: &[u8]) -> bool {
    let after = after.get(..24).unwrap_or(after);
    let after = after.strip_prefix(b"s").unwrap_or(after);
    let after = after
        .strip_prefix(b"\"")
        .unwrap_or(after)
        .trim_ascii_start();
    let value = match after {
        [b':' | b'=', rest @ ..] => rest.trim_ascii_start(),
        rest if rest.starts_with("없".as_bytes()) => return true,
        rest => rest,
    };
    match value {
        [b'0', rest @ ..] => !rest
            .first()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'.'),
        value => ["null", "None", "none", "false", "\"\"", "[]", "{}"]
            .iter()
            .any(|nothing| value.starts_with(nothing.as_bytes())),
    }
}

/// Raises the units that hold such words; a failure that repeats one before is worth less each time.
pub(crate) fn raise(text: &str, structure: Structure, units: &mut [Unit]) {
    let [failure, warning, outcome, decision] = match structure {
        // In code, names of files and rows of data the words are about something else.
        Structure::Code | Structure::Listing => return,
        Structure::Diff => [0.0; 4],
        Structure::Search | Structure::Table => [0.5, 0.3, 0.5, 0.2],
        Structure::Text => [0.5, 0.3, 0.4, 0.5],
        Structure::Json | Structure::JsonLines => [0.8, 0.4, 0.3, 0.3],
        Structure::Trace | Structure::Log => [0.9, 0.45, 0.8, 0.2],
    };
    if failure == 0.0 {
        return;
    }
    let mut seen = vec![0u8; units.len()];
    let mut unit = 0;
    find(text, |at, sense| {
        while units.get(unit).is_some_and(|unit| unit.end as usize <= at) {
            unit += 1;
        }
        let Some(found) = units.get_mut(unit) else {
            return;
        };
        if (found.start as usize) > at {
            return;
        }
        let weight = match sense {
            Sense::Failure => failure,
            Sense::Warning => warning,
            Sense::Outcome => outcome,
            Sense::Decision => decision,
        };
        let Some(before) = seen.get_mut(found.group as usize) else {
            return;
        };
        // The same message a hundred times is told by its first ones and a count.
        let worth = weight / (1.0 + f32::from(*before) / 2.0);
        if found.weight < worth {
            found.weight = worth;
        }
        *before = before.saturating_add(1);
    });
}
