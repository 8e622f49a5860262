//! Folding: characters that are written in several ways become one.

use std::borrow::Cow;

use unicode_normalization::char::decompose_canonical;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// The text in NFKC; case stays, since it separates the words of a name.
pub(super) fn folded(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfkc().collect())
    }
}

/// Appends a letter or digit in lower case, Latin letters without accents.
pub(super) fn push_plain(term: &mut String, char: char) {
    if char.is_ascii() {
        term.push(char.to_ascii_lowercase());
        return;
    }
    for lower in char.to_lowercase() {
        match lower {
            'ß' => term.push_str("ss"),
            'æ' => term.push_str("ae"),
            'œ' => term.push_str("oe"),
            'ø' => term.push('o'),
            'ł' => term.push('l'),
            'đ' | 'ð' => term.push('d'),
            'þ' => term.push_str("th"),
            'ı' => term.push('i'),
            'ς' => term.push('σ'),
            '\u{C0}'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}' => {
                let mut base = None;
                decompose_canonical(lower, |part| {
                    base.get_or_insert(part);
                });
                term.push(base.unwrap_or(lower));
            }
            // The dot that a Turkish capital leaves behind.
            _ if lower.is_alphanumeric() => term.push(lower),
            _ => {}
        }
    }
}
