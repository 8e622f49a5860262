//! Names of tools in the alphabet and the length that the dialect asks for.

use crate::dialect::Dialect;

/// Most characters of a name.
///
/// # Source
/// Error texts of the providers, read 2026-11: Chat Completions and Responses
/// `^[a-zA-Z0-9_-]{1,64}$`; Gemini "a maximum length of 64"; Converse the same length in its
/// reference; Messages "at most 200 characters" for a `tool_use`, though a definition has 128.
fn most(dialect: Dialect) -> usize {
    match dialect {
        Dialect::Anthropic => 200,
        _ => 64,
    }
}

/// Whether the dialect takes this name of a tool.
pub(in crate::dialect) fn takes(dialect: Dialect, name: &str) -> bool {
    let is_gemini = dialect == Dialect::Gemini;
    let starts = name
        .bytes()
        .next()
        .is_some_and(|byte| !is_gemini || byte.is_ascii_alphabetic() || byte == b'_');
    starts
        && name.len() <= most(dialect)
        && name
            .bytes()
            .all(|byte| is_plain(byte) || (is_gemini && matches!(byte, b'.' | b':')))
}

/// A name that the dialect takes, made from one that it does not; the same for the same name, so
/// that calls and results agree. A hash keeps two names apart that read alike afterwards.
pub(in crate::dialect) fn mended(dialect: Dialect, name: &str) -> String {
    const HASH: usize = 8;
    const MOST: usize = 64;
    let plain = name.chars().map(|c| {
        let is_plain = u8::try_from(c).is_ok_and(is_plain);
        if is_plain { c } else { '_' }
    });
    let kept: String = plain.take(MOST - HASH - 2).collect();
    let hash = blake3::hash(name.as_bytes()).to_hex();
    let start = if dialect == Dialect::Gemini && !kept.starts_with(|c: char| c.is_alphabetic()) {
        "_"
    } else {
        ""
    };
    format!("{start}{kept}_{}", &hash[..HASH])
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}
