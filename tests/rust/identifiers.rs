//! Identifiers: which runs count, where they stand, and that nothing about a text breaks the scan.

use proptest::prelude::*;
use satchel_core::salience::identifiers::{
    Form, Identifier, Kind, hash_name, identifiers, json_identifiers, looks_like_json, name_parts,
};

fn names(text: &str) -> Vec<&str> {
    identifiers(text)
        .map(|found| &text[found.start..found.end])
        .collect()
}

#[test]
fn paths_ids_names_and_numbers_count() {
    for (text, expected) in [
        ("see /repo/src/main.rs, line 42", vec!["repo/src/main.rs"]),
        ("run ./build.sh --all -v", vec!["build.sh"]),
        (
            "user_id and userId and UserId",
            vec!["user_id", "userId", "UserId"],
        ),
        (
            "HTTPServer but not README or Nested or IDs",
            vec!["HTTPServer"],
        ),
        (
            "order 7, 42, 123 and 1.5 or 2024-05-06",
            vec!["123", "2024-05-06"],
        ),
        ("C-1042 v10 p9", vec!["C-1042", "v10"]),
        ("os.path.join(a.b)", vec!["os.path.join"]),
        ("__init__ _x __ ___", vec!["__init__"]),
        (
            "main.rs를 열고 1234원과 user_id는",
            vec!["main.rs", "1234", "user_id"],
        ),
        ("src/a.rs:120:7", vec!["src/a.rs", "120"]),
        ("... --- ./. // a b", vec![]),
        ("", vec![]),
    ] {
        assert_eq!(names(text), expected, "{text}");
    }
}

#[test]
fn kinds_follow_the_form() {
    for (name, kind) in [
        ("src/lib.rs", Kind::Path),
        ("12345", Kind::Number),
        ("item42", Kind::Digits),
        ("item_id", Kind::Snake),
        ("itemId", Kind::Camel),
        ("lib.rs", Kind::Dotted),
    ] {
        let found: Vec<Identifier> = identifiers(name).collect();
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(found[0].form.kind(), kind, "{name}");
        assert_eq!(found[0].hash, hash_name(name.as_bytes()));
    }
    let form = identifiers("a.b/c_d").next().unwrap().form;
    assert!(form.contains(Form::PATH) && form.contains(Form::SNAKE));
    assert!(
        !form.contains(Form::DOTTED),
        "the dot is not in the last part"
    );
}

#[test]
fn json_escapes_separate() {
    let text = r#"{"command":"cd /repo\ngrep_all x\u00e9foo_bar \"my_name\" C:\\new_dir"}"#;
    assert!(looks_like_json(text));
    let found: Vec<&str> = json_identifiers(text)
        .map(|found| &text[found.start..found.end])
        .collect();
    assert_eq!(found, ["grep_all", "foo_bar", "my_name", "new_dir"]);
    assert!(!looks_like_json("{ no"));
}

#[test]
fn name_parts_are_lower_case_words() {
    let parts = |name: &str| name_parts(name).collect::<Vec<_>>();
    let words = |words: &[&str]| {
        let hashes = words.iter().map(|word| hash_name(word.as_bytes()));
        hashes.collect::<Vec<_>>()
    };
    assert_eq!(parts("getUserName"), words(&["get", "user", "name"]));
    assert_eq!(
        parts("XMLHttpRequest2"),
        words(&["xml", "http", "request2"])
    );
    assert_eq!(
        parts("src/my_file-v2.test.TS"),
        words(&["src", "file", "test"])
    );
    assert_eq!(parts("A.b"), words(&[]));
    assert_eq!(parts("한글/name"), words(&["name"]));
}

/// The same rules, written the slow way with owned strings.
fn slow(text: &str) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for (line, content) in text.split('\n').enumerate() {
        let inside = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
        for run in content.split(|c: char| !inside(c)) {
            let run = run.trim_matches(['.', '/', '-']);
            let chars: Vec<char> = run.chars().collect();
            if !(3..=200).contains(&chars.len()) {
                continue;
            }
            let digits = chars.iter().filter(|c| c.is_ascii_digit()).count();
            let letters = chars.iter().filter(|c| c.is_ascii_alphabetic()).count();
            let humps = chars
                .windows(2)
                .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
            let caps = chars.windows(4).any(|four| {
                four[..2].iter().all(char::is_ascii_uppercase)
                    && four[2..].iter().all(char::is_ascii_lowercase)
            });
            let joined = run.contains(['/', '.', '_']);
            let is_name = if letters == 0 {
                digits >= 3
            } else {
                digits > 0 || humps || caps || (joined && chars.len() > 3)
            };
            // A dot before the last slash does not join by itself, but the slash does.
            if is_name {
                found.push((run.to_owned(), line as u32));
            }
        }
    }
    found
}

proptest! {
    #[test]
    fn matches_the_slow_rules(text in "[a-zA-Z0-9_./ \n:가-나é\\-]{0,120}") {
        let found: Vec<(String, u32)> = identifiers(&text)
            .map(|found| (text[found.start..found.end].to_owned(), found.line))
            .collect();
        prop_assert_eq!(found, slow(&text));
    }

    #[test]
    fn any_text_is_read(text in any::<String>()) {
        let mut end = 0;
        for found in identifiers(&text) {
            prop_assert!(found.start >= end && found.end > found.start);
            prop_assert!(text.get(found.start..found.end).is_some());
            prop_assert_eq!(found.hash, hash_name(&text.as_bytes()[found.start..found.end]));
            end = found.end;
        }
        prop_assert!(json_identifiers(&text).count() <= text.len());
        prop_assert!(name_parts(&text).count() <= text.len());
    }
}
