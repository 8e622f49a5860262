//! Pruning of tool outputs: lengths, notes, stripping.

use proptest::prelude::*;
use satchel_core::prune::outputs::{
    Cut, MAX_NOTE_CHARS, Note, cut, is_old, prune_text, strip_keys,
};

#[test]
fn old_is_more_than_keep_last_from_the_end() {
    let old: Vec<bool> = (0..5).map(|index| is_old(index, 5, 3)).collect();
    assert_eq!(old, [true, true, false, false, false]);
    assert!(is_old(4, 5, 0));
    assert!(!is_old(7, 5, 0));
}

#[test]
fn characters_count_not_bytes() {
    let korean = "가".repeat(150);
    assert_eq!(prune_text(&korean, 150), None);
    let longer = format!("{korean}나");
    let pruned = prune_text(&longer, 150).unwrap();
    assert_eq!(
        pruned,
        format!("{korean}\n[tool output pruned: first 150 of 151 characters kept]")
    );
}

#[test]
fn a_smaller_limit_cuts_again_and_keeps_the_full_length() {
    let once = prune_text(&"x".repeat(500), 150).unwrap();
    let twice = prune_text(&once, 20).unwrap();
    assert!(twice.starts_with(&"x".repeat(20)));
    assert!(twice.ends_with("first 20 of 500 characters kept]"));
    assert_eq!(prune_text(&twice, 150), None);
}

#[test]
fn a_note_that_lies_does_not_protect() {
    let note = Note { kept: 5, full: 900 };
    let text = format!("{}{}", "x".repeat(400), note.text());
    let pruned = prune_text(&text, 150).unwrap();
    let full = text.len();
    assert!(pruned.ends_with(&format!("first 150 of {full} characters kept]")));
}

#[test]
fn only_the_exact_spelling_is_a_note() {
    assert_eq!(
        Note::find("ab\n[tool output pruned: first 2 of 9 characters kept]"),
        Some(Note { kept: 2, full: 9 })
    );
    for text in [
        "",
        "ab",
        "\n[tool output pruned: first 2 of 9 characters kept] ",
        "\n[tool output pruned: first +2 of 9 characters kept]",
        "\n[tool output pruned: first 02 of 9 characters kept]",
        "\n[tool output pruned: first 9 of 9 characters kept]",
        "\n[tool output pruned: first 2 of 99999999999999999999999 characters kept]",
    ] {
        assert_eq!(Note::find(text), None, "{text}");
    }
    let longest = Note {
        kept: u64::MAX - 1,
        full: u64::MAX,
    }
    .text();
    assert_eq!(longest.len(), MAX_NOTE_CHARS);
    assert!(Note::find(&longest).is_some());
}

#[test]
fn blocks_are_cut_as_one_text() {
    let (cuts, note) = cut(&[150, 10], None, 150).unwrap();
    assert_eq!(cuts, [Cut::Shorten(150), Cut::Drop]);
    assert_eq!(
        note,
        Note {
            kept: 150,
            full: 160
        }
    );
    let (cuts, _) = cut(&[0, 0, 3], None, 0).unwrap();
    assert_eq!(cuts, [Cut::Shorten(0), Cut::Drop, Cut::Drop]);
    assert_eq!(cut(&[], None, 0), None);
    assert_eq!(cut(&[0], None, 0), None);
}

#[test]
fn keys_are_stripped_at_any_depth() {
    let names = ["raw".to_owned(), "trace".to_owned()];
    let text = r#"[{"raw": [1, 2], "keep": {"trace": {"raw": 1}, "n": 1.50}}, "raw"]"#;
    assert_eq!(
        strip_keys(text, &names).unwrap(),
        r#"[{"keep":{"n":1.50}},"raw"]"#
    );
    assert_eq!(strip_keys(r#"{"other": 1}"#, &names), None);
    assert_eq!(strip_keys(r#"{"raw": 1} tail"#, &names), None);
    assert_eq!(strip_keys("\"raw\"", &names), None);
    assert_eq!(strip_keys(r#"{"raw": 1}"#, &[]), None);
    let deep = format!("{}{{\"raw\":1}}{}", "[".repeat(500), "]".repeat(500));
    assert_eq!(strip_keys(&deep, &names), None);
}

proptest! {
    #[test]
    fn pruning_is_idempotent(text in ".{0,400}", max_chars in 0usize..200) {
        match prune_text(&text, max_chars) {
            None => prop_assert!(text.chars().count() <= max_chars),
            Some(pruned) => {
                let head: String = text.chars().take(max_chars).collect();
                let full = text.chars().count();
                prop_assert_eq!(&pruned, &format!(
                    "{head}\n[tool output pruned: first {max_chars} of {full} characters kept]"
                ));
                prop_assert_eq!(prune_text(&pruned, max_chars), None);
            }
        }
    }

    #[test]
    fn cuts_keep_exactly_the_limit(
        lengths in prop::collection::vec(0usize..100, 0..8),
        max_chars in 0usize..300,
    ) {
        let total: usize = lengths.iter().sum();
        match cut(&lengths, None, max_chars) {
            None => prop_assert!(total <= max_chars),
            Some((cuts, note)) => {
                let kept: usize = cuts.iter().zip(&lengths).map(|(cut, length)| match cut {
                    Cut::Keep => *length,
                    Cut::Shorten(chars) => (*chars).min(*length),
                    Cut::Drop => 0,
                }).sum();
                prop_assert_eq!(kept, max_chars);
                let shortened = cuts.iter().filter(|cut| matches!(cut, Cut::Shorten(_))).count();
                prop_assert_eq!(shortened, 1);
                prop_assert_eq!(note, Note { kept: max_chars as u64, full: total as u64 });
            }
        }
    }

    #[test]
    fn stripping_never_panics(text in any::<String>()) {
        let names = ["a".to_owned()];
        if let Some(stripped) = strip_keys(&text, &names) {
            prop_assert_eq!(strip_keys(&stripped, &names), None);
        }
    }
}
