//! Estimators for models without a public tokenizer: linear, no vocabulary, never exact.

/// `max(1, chars / per_token)`, 0 for empty text; chars are Unicode scalar values.
pub(super) fn by_chars(text: &str, per_token: u32) -> u32 {
    if text.is_empty() {
        return 0;
    }
    (text.chars().count() as u32 / per_token).max(1)
}

/// Margin of `chars3`.
pub(super) const CHARS3_MARGIN: f64 = 0.5;
/// Margin of `chars4`.
pub(super) const CHARS4_MARGIN: f64 = 1.0;
