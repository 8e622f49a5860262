//! Any bytes: spans in order and inside, UTF-8 stays so, no value is left in the text as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use satchel_core::analyse::analyse;
use satchel_core::redact::{Kinds, redact};

fuzz_target!(|data: &[u8]| {
    let redacted = redact(data, Kinds::ALL);
    let mut rest = redacted.text.as_slice();
    let mut at = 0;
    for span in &redacted.spans {
        assert!(at <= span.start && span.start < span.end && span.end <= data.len());
        let between = &data[at..span.start];
        assert!(rest.starts_with(between));
        rest = &rest[between.len()..];
        assert!(rest.starts_with(format!("[{}_", span.kind.label()).as_bytes()));
        let close = rest.iter().position(|byte| *byte == b']').unwrap_or_default();
        rest = &rest[close + 1..];
        at = span.end;
    }
    assert_eq!(rest, &data[at..]);
    if let Ok(text) = std::str::from_utf8(data) {
        assert!(std::str::from_utf8(&redacted.text).is_ok());
        for term in analyse(text) {
            assert!(term.chars().all(char::is_alphanumeric));
        }
    }
});
