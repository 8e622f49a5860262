//! Pointers and pages.

use satchel_core::page::{Pointer, first_line, select_lines};

#[test]
fn pointers_read_back() {
    for text in ["p_000000000000000001", " p_987654321098765432 "] {
        let pointer = Pointer::parse(text).unwrap();
        assert_eq!(pointer.to_string(), text.trim());
    }
    for text in [
        "",
        "p_",
        "p_12",
        "p_0000000000000000001",
        "p_00000000000000000x",
        "q_000000000000000001",
        "p_일이삼사오륙",
        "p_+00000000000000001",
    ] {
        assert_eq!(Pointer::parse(text), None, "{text}");
    }
}

#[test]
fn lines_are_selected_with_their_ends() {
    let text = "alpha\nbeta 1\r\ngamma\nbeta 2";
    assert_eq!(select_lines(text, None, None), text);
    assert_eq!(select_lines(text, Some("beta"), None), "beta 1\r\nbeta 2");
    assert_eq!(select_lines(text, None, Some((2, 3))), "beta 1\r\ngamma\n");
    assert_eq!(select_lines(text, Some("beta"), Some((3, 9))), "beta 2");
    assert_eq!(select_lines(text, None, Some((9, 3))), "");
}

#[test]
fn claims_are_cut_between_words() {
    assert_eq!(
        first_line("\n\n  one two three  \nmore", 60),
        "one two three"
    );
    assert_eq!(first_line("one two three four", 10), "one two…");
    assert_eq!(first_line("가나다라마바사", 3), "가나다…");
    assert_eq!(first_line("", 3), "");
}
