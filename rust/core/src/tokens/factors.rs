//! How many tokens another tokenizer makes of a text, by what the text consists of.
//!
//! One pass over the bytes tells how much of a text is CJK, how dense its symbols are, and how many
//! of those are quotation marks. Plain prose has few symbols, programs about one in seven bytes,
//! JSON as many but mostly quotation marks; between the kinds the factor changes smoothly, so that
//! one more line never makes a text jump.

use serde::{Deserialize, Serialize};

/// Tokens of a tokenizer for one token of the vocabulary that is counted with, by kind of content.
///
/// # Example
/// ```
/// # use satchel_core::tokens::Factors;
/// let factors = Factors { prose: 1.2, code: 1.3, json: 1.25, cjk: 1.6 };
/// assert_eq!(factors.of("They went down to the river in the evening"), 1.2);
/// assert_eq!(factors.of("안녕하세요안녕하세요"), 1.6);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factors {
    /// Running text.
    pub prose: f64,
    /// Programs, listings, markup.
    pub code: f64,
    /// JSON and what looks like it.
    pub json: f64,
    /// Chinese, Japanese, Korean and the scripts beside them.
    pub cjk: f64,
}

/// Symbols per byte below which a text is prose, and above which none of it is.
///
/// Measured on this project's own documents and sources: README 0.05 without its tables, Rust and
/// Python 0.14 to 0.17, JSON 0.2.
const PROSE_SYMBOLS: f64 = 0.05;
const CODE_SYMBOLS: f64 = 0.13;
/// Quotation marks per symbol below which it is a program, and above which it is JSON.
const CODE_QUOTES: f64 = 0.2;
const JSON_QUOTES: f64 = 0.35;
/// Bytes of other text that cost as much as one CJK character.
const CJK_BYTES: f64 = 2.8;

impl Factors {
    /// The same factor for everything.
    pub fn flat(factor: f64) -> Self {
        Self {
            prose: factor,
            code: factor,
            json: factor,
            cjk: factor,
        }
    }

    /// The factor for `text`; that of prose if it is empty.
    pub fn of(&self, text: &str) -> f64 {
        let mut symbols = 0_u32;
        let mut quotes = 0_u32;
        let mut cjk = 0_u32;
        for &byte in text.as_bytes() {
            symbols += u32::from(byte.is_ascii_punctuation());
            quotes += u32::from(byte == b'"');
            // First bytes of three-byte characters from U+1000 on but for punctuation and symbols
            // (E2), and of all four-byte ones.
            cjk += u32::from(matches!(byte, 0xE1 | 0xE3..=0xED | 0xF0));
        }
        let cjk = f64::from(cjk);
        let rest = (text.len() as f64 - 3.0 * cjk).max(0.0);
        let symbols = f64::from(symbols);
        let code = share(symbols / rest.max(1.0), PROSE_SYMBOLS, CODE_SYMBOLS);
        let json = share(
            f64::from(quotes) / symbols.max(1.0),
            CODE_QUOTES,
            JSON_QUOTES,
        );
        let dense = self.code + json * (self.json - self.code);
        let plain = self.prose + code * (dense - self.prose);
        let wide = cjk * CJK_BYTES / (cjk * CJK_BYTES + rest).max(1.0);
        plain + wide * (self.cjk - plain)
    }

    /// `tokens` of `text` as the other tokenizer would have them; 0 only for 0.
    pub(super) fn scale(&self, tokens: u32, text: &str) -> u32 {
        if tokens == 0 {
            return 0;
        }
        ((f64::from(tokens) * self.of(text)).round() as u32).max(1)
    }

    /// The lowest of the factors.
    pub(super) fn least(&self) -> f64 {
        self.prose.min(self.code).min(self.json).min(self.cjk)
    }

    /// Whether every factor is finite and above 0.
    pub(super) fn is_valid(&self) -> bool {
        [self.prose, self.code, self.json, self.cjk]
            .iter()
            .all(|factor| factor.is_finite() && *factor > 0.0)
    }
}

/// 0 up to `low`, 1 from `high` on.
fn share(value: f64, low: f64, high: f64) -> f64 {
    ((value - low) / (high - low)).clamp(0.0, 1.0)
}
