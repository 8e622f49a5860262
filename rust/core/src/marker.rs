//! Markers: the one wording of what stands where something was left out.
//!
//! The first marker of a text says what was left out, how much, and where all of it is:
//! `[… 37 lines left out; page_in("p_…")]`. Further ones only say how much: `[… 12 lines]`. Where there
//! is room they say more: `[… 37 lines left out (4-40): 35 like "GET /health"; page_in("p_…")]`.
//! Inside JSON the same words stand in a string. A marker is one line: nothing in it can end it.

use crate::page::Pointer;

/// What is counted: one, several.
pub(crate) type Nouns = (&'static str, &'static str);

/// Nouns of amounts.
pub(crate) const LINES: Nouns = ("line", "lines");
/// See [`LINES`].
pub(crate) const CHARACTERS: Nouns = ("character", "characters");
/// See [`LINES`].
pub(crate) const TOKENS: Nouns = ("token", "tokens");

/// Text on one line without control characters, at most `max_chars` characters; a longer one is cut
/// after a word where one ends in its second half.
pub(crate) fn one_line(text: &str, max_chars: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    for c in text.trim().chars() {
        let c = if c.is_control() || c.is_whitespace() {
            ' '
        } else {
            c
        };
        if c == ' ' && out.ends_with(' ') {
            continue;
        }
        if length == max_chars {
            if c != ' '
                && let Some(at) = out.rfind(' ').filter(|at| at * 2 >= out.len())
            {
                out.truncate(at);
            }
            return format!("{}…", out.trim_end());
        }
        out.push(c);
        length += 1;
    }
    out
}

/// How much was left out: `12 lines left out`. Of a text that said so before only `12 lines`.
pub(crate) fn amount(count: usize, nouns: Nouns, is_said: bool) -> String {
    let noun = if count == 1 { nouns.0 } else { nouns.1 };
    let left_out = if is_said { "" } else { " left out" };
    format!("{count} {noun}{left_out}")
}

/// A marker that says `what`; the pointer, where it is named, leads to all of it.
pub(crate) fn marker(what: &str, pointer: &str) -> String {
    if pointer.is_empty() {
        format!("[… {what}]")
    } else {
        format!("[… {what}; page_in(\"{pointer}\")]")
    }
}

/// The object that stands for the arguments of a call: nothing of the arguments is in it, so that no
/// piece of them can be taken for the whole.
pub(crate) fn arguments(pointer: Pointer, tokens: u32) -> String {
    format!("{{\"paged_out\":\"{pointer}\",\"tokens\":{tokens}}}")
}
