//! The terms of texts: what they look like, and that the same word is found again.

use proptest::prelude::*;
use satchel_core::analyse::{MAX_BYTES, STOP_WORDS, analyse, is_stop_word};

#[track_caller]
fn gives(text: &str, terms: &[&str]) {
    assert_eq!(analyse(text), terms, "{text}");
}

#[test]
fn english_words_are_stemmed_and_stop_words_stay() {
    gives(
        "The runners were running quickly to meetings.",
        &["the", "runner", "were", "run", "quick", "to", "meet"],
    );
    gives("the user's dogs don't", &["the", "user", "dog", "dont"]);
    gives("O’Brien’s", &["o", "brien", "obrien"]);
}

#[test]
fn names_give_their_words_and_the_whole() {
    gives("user_id", &["user", "id", "userid"]);
    gives(
        "parseHTTPResponse",
        &["pars", "http", "respons", "parsehttprespons"],
    );
    gives(
        "max_tokensLeft",
        &["max", "token", "left", "tokensleft", "maxtokensleft"],
    );
    gives("URLs and IDs", &["url", "and", "id"]);
    gives("e-mail email", &["e", "mail", "email", "email"]);
    gives("gpt4 C-1042", &["gpt", "4", "gpt4", "c", "1042", "c1042"]);
    gives("src/main.rs", &["src", "main", "rs", "mainr"]);
}

#[test]
fn encoded_data_is_one_term() {
    gives("a3f9c2d1e8b7", &["a3f9c2d1e8b7"]);
    let blob = "aB3dE5".repeat(1000);
    let terms = analyse(&blob);
    assert_eq!(terms.len(), 1);
    assert_eq!(terms[0], blob.to_lowercase()[..MAX_BYTES]);
}

#[test]
fn numbers_stay() {
    gives("$1,234,567 or 1,23", &["1234567", "or", "1", "23"]);
    gives("3.14", &["3", "14", "3x14"]);
    gives("2024-03-15", &["2024", "03", "15", "2024x03x15"]);
    gives("007", &["007"]);
}

#[test]
fn letters_are_folded() {
    gives("Ｃａｆé CAFÉ cafe\u{301}", &["cafe", "cafe", "cafe"]);
    gives("Straße Łódź ŒUVRE", &["strass", "lodz", "oeuvr"]);
    gives("Σίσυφος ΣΊΣΥΦΟΣ", &["σίσυφοσ", "σίσυφοσ"]);
    gives("Привет", &["привет"]);
    gives("İstanbul", &["istanbul"]);
}

#[test]
fn korean_particles_go_and_pairs_stay() {
    gives("회의록을", &["회의", "의록"]);
    gives("회의", &["회의"]);
    gives("책을 책은 책", &["책", "책", "책"]);
    gives("휴가 휴가를", &["휴가", "휴가"]);
    gives("마을 마을에서", &["마을", "마을"]);
    gives("서울에서는", &["서울"]);
    gives("API를 user_id는", &["api", "user", "id", "userid"]);
    gives("3월 15일에", &["3", "3월", "월", "15", "15일", "일에"]);
    // Decomposed, as some file systems write names.
    gives("\u{1112}\u{116C}\u{110B}\u{1174}", &["회의"]);
}

#[test]
fn scripts_without_spaces_give_pairs() {
    gives("我喜欢猫", &["我喜", "喜欢", "欢猫"]);
    gives("猫が好き", &["猫が", "が好", "好き", "猫", "好"]);
    gives("ﾃｽﾄ", &["テス", "スト"]);
    gives("猫", &["猫"]);
}

#[test]
fn stop_words_are_terms() {
    assert!(STOP_WORDS.is_sorted());
    let text = "The one who is very sure has any of these because only he does. 그리고 우리는";
    let stop: Vec<_> = analyse(text)
        .into_iter()
        .filter(|term| is_stop_word(term))
        .collect();
    assert_eq!(
        stop.join(" "),
        "the who is veri has ani of these onli he doe 그리 리고 우리"
    );
    assert!(is_stop_word("the") && is_stop_word("그리"));
    assert!(!is_stop_word("budget"));
}

#[test]
fn nothing_gives_nothing() {
    for text in ["", " ", "—…!?", "\u{FFFD}", "\u{301}", "🙂"] {
        gives(text, &[]);
    }
}

#[test]
fn hostile_texts_are_read_once() {
    for piece in [
        "a-", "1.", "aA", "a'", "1,", "가", "e\u{301}", "\u{301}", "ﷺ", "猫a",
    ] {
        let text = piece.repeat(200_000);
        let terms = analyse(&text);
        assert!(terms.len() <= 18 * 200_000, "{piece}");
    }
}

proptest! {
    #[test]
    fn terms_are_letters_and_digits_in_lower_case(text in "\\PC{0,60}") {
        for term in analyse(&text) {
            prop_assert!(!term.is_empty() && term.len() <= MAX_BYTES);
            for char in term.chars() {
                prop_assert!(char.is_alphanumeric(), "{term:?}");
                prop_assert!(!char.is_ascii_uppercase());
            }
        }
    }

    #[test]
    fn case_of_plain_words_does_not_matter(word in "[a-z]{1,12}") {
        prop_assert_eq!(analyse(&word), analyse(&word.to_uppercase()));
    }

    #[test]
    fn words_do_not_touch_their_neighbours(first in "\\PC{0,20}", second in "\\PC{0,20}") {
        let both = [analyse(&first), analyse(&second)].concat();
        prop_assert_eq!(analyse(&format!("{first} \n {second}")), both);
    }
}
