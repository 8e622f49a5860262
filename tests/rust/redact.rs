//! Redaction over any bytes: spans, placeholders, and no content where it does not belong.

use proptest::prelude::*;
use satchel_core::redact::{Kind, Kinds, Redactor, find, redact};

fn cleaned(text: &str) -> String {
    String::from_utf8(redact(text.as_bytes(), Kinds::ALL).text).unwrap()
}

#[test]
fn the_same_value_has_the_same_number() {
    assert_eq!(
        cleaned("a@b.co c@d.co a@b.co [EMAIL_2]"),
        "[EMAIL_1] [EMAIL_3] [EMAIL_1] [EMAIL_2]"
    );
}

#[test]
fn registration_numbers_follow_their_rule() {
    // Hyphenated: the date decides. Bare: the check digit too, which foreigners count differently.
    for (text, is_found) in [
        ("900101-1234567", true),
        ("900101\u{2013}1234567", true),
        ("900230-1234567", false),
        ("900101-9234567", false),
        ("9001011234568", true),
        ("9001011234567", false),
        ("9001015234561", true),
        ("9001015234569", false),
        ("19001011234568", false),
        ("900101-12345678", false),
    ] {
        let found = find(text.as_bytes(), Kinds::ALL);
        let is_resident = found.iter().any(|span| span.kind == Kind::ResidentNumber);
        assert_eq!(is_resident, is_found, "{text}");
    }
}

#[test]
fn kinds_have_names_and_groups() {
    for kind in Kind::ALL {
        assert_eq!(kind.name().to_uppercase(), kind.label());
        assert!(Kinds::named(kind.name()).is_some_and(|kinds| kinds.contains(kind)));
        assert!(Kinds::SECRETS.contains(kind) != Kinds::PERSONAL.contains(kind));
    }
    assert_eq!(Kinds::SECRETS.union(Kinds::PERSONAL), Kinds::ALL);
    assert_eq!(Kinds::named("names"), None);
}

#[test]
fn debug_shows_no_content() {
    let shown = format!("{:?}", redact(b"note a@b.co", Kinds::ALL));
    assert!(!shown.contains("note") && !shown.contains("97"), "{shown}");
}

#[test]
fn overlapping_values_become_one() {
    let text = b"password=abc1234567:AAabcdefghijabcdefghij1234567890xy";
    let spans = find(text, Kinds::ALL);
    assert_eq!(spans.len(), 1);
    assert_eq!((spans[0].start, spans[0].end), (9, text.len()));
}

proptest! {
    #[test]
    fn any_bytes_are_cleaned(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let redacted = redact(&text, Kinds::ALL);
        let mut at = 0;
        for span in &redacted.spans {
            prop_assert!(at <= span.start && span.start < span.end && span.end <= text.len());
            at = span.end;
        }
        prop_assert_eq!(redacted.spans.len(), redacted.numbers.len());
    }

    #[test]
    fn pieces_of_values_never_panic(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "@", "a", ".co", "1", "010", "-", "1234", " ", "eyJ", ".", "://", ":", "password",
                "=", "\"", "\\", "n", "%40", "-----BEGIN ", "PRIVATE KEY", "-----END ", "Q~", "8",
                ":AA", "sk-", "+", "(", ")", "DE89", "bearer ", "token", "\u{2013}", "가", "é",
            ]),
            0..40,
        ),
    ) {
        let text = pieces.concat();
        let once = cleaned(&text);
        for span in find(text.as_bytes(), Kinds::ALL) {
            prop_assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end));
        }
        prop_assert!(!once.is_empty() || text.is_empty());
    }
}

#[test]
fn many_texts_share_their_numbers() {
    let texts = [
        "a@b.co and c@d.co",
        "c@d.co, [EMAIL_1]",
        "nothing",
        "e@f.co a@b.co",
    ];
    let mut redactor = Redactor::new(Kinds::ALL);
    for text in texts {
        redactor.avoid(text.as_bytes());
    }
    let found = texts.map(|text| {
        let redacted = redactor.redact(text.as_bytes());
        redacted.map(|(text, count)| (String::from_utf8(text).unwrap(), count))
    });
    assert_eq!(
        found,
        [
            Some(("[EMAIL_2] and [EMAIL_3]".into(), 2)),
            Some(("[EMAIL_3], [EMAIL_1]".into(), 1)),
            None,
            Some(("[EMAIL_4] [EMAIL_2]".into(), 2)),
        ]
    );
    assert!(!format!("{redactor:?}").contains("a@b.co"));
}

proptest! {
    #[test]
    fn one_text_among_many_is_a_text_alone(text in "[a-z@. \\[_0-9A-Z\\]=:-]{0,80}") {
        let mut redactor = Redactor::new(Kinds::ALL);
        redactor.avoid(text.as_bytes());
        let many = redactor.redact(text.as_bytes()).map(|(text, _)| text);
        let alone = redact(text.as_bytes(), Kinds::ALL);
        prop_assert_eq!(many, (!alone.spans.is_empty()).then_some(alone.text));
    }
}
