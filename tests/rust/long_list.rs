use satchel_core::readers::json::parse;
use satchel_core::readers::{Item, Reader, read_value};

/// Messages of a list of nine megabytes: long enough to be read while it comes.
fn messages() -> String {
    let text = "Größe \u{1F600} \\n \\ud83d\\ude00 [1, {]} \\\"".repeat(20);
    let mut list = String::from("[");
    let roles = ["user", "assistant"];
    for (number, role) in roles.into_iter().cycle().enumerate() {
        if list.len() > 9 << 20 {
            break;
        }
        let message = format!("{{\"role\": \"{role}\", \"content\": \"{number} {text}\"}}, ");
        list.push_str(&message);
    }
    list.truncate(list.len() - 2);
    list
}

fn found(text: &[u8], piece: usize) -> Vec<Item> {
    let mut reader = Reader::new(None);
    let mut items = Vec::new();
    for piece in text.chunks(piece) {
        items.extend(reader.feed(piece));
    }
    items.extend(reader.finish());
    items
}

#[test]
fn a_long_list_is_what_it_is_as_one_value() {
    let list = messages() + "]";
    let wanted = read_value(parse(&list).unwrap(), None, 1);
    assert_eq!(wanted.len(), 1);
    // The pieces end inside of characters and escapes.
    for (piece, end) in [(1 << 20, ""), (99_991, "\n\n"), (list.len(), " \n")] {
        let text = list.clone() + end;
        assert!(found(text.as_bytes(), piece) == wanted, "{piece}");
    }
}

#[test]
fn a_long_list_over_several_lines_too() {
    let mut list = messages() + "\n,\n{\"role\": \"user\", \"content\": \"last\"}\n]\n";
    let wanted = read_value(parse(&list).unwrap(), None, 1);
    assert!(found(list.as_bytes(), 1 << 20) == wanted);
    list.push_str("{\"role\": \"user\", ");
    let items = found(list.as_bytes(), 1 << 20);
    let problem = items.last().unwrap().as_ref().unwrap_err();
    assert_eq!(problem.line, Some(5));
}

#[test]
fn a_broken_long_list_says_where() {
    for tail in [
        "",
        ", ",
        ", {\"role\"]",
        ", 1 2]",
        ", \"\u{E9}\\x\"]",
        ",, 1]",
        ", \"\u{1}",
    ] {
        let list = messages() + tail;
        let error = parse(list.trim_end()).unwrap_err();
        let column = list[..error.at].chars().count() + 1;
        let expected = error.expected;
        for piece in [1 << 20, list.len()] {
            let items = found(list.as_bytes(), piece);
            assert_eq!(items.len(), 1);
            let problem = items[0].as_ref().unwrap_err();
            assert_eq!(problem.line, Some(1));
            assert_eq!(
                problem.message,
                format!("not valid JSON: expected {expected} (column {column})")
            );
        }
    }
}

#[test]
fn nesting_and_bytes_have_their_limits_in_it_too() {
    let deep = messages() + ", " + &"[".repeat(2_000);
    let problem = found(deep.as_bytes(), 1 << 20).remove(0).unwrap_err();
    assert_eq!(problem.message, "nested too deeply");
    let mut bytes = messages().into_bytes();
    bytes.extend_from_slice(b", \"\xff\"]");
    let problem = found(&bytes, 1 << 20).remove(0).unwrap_err();
    assert_eq!(problem.message, "the text is not UTF-8");
}

#[test]
fn lines_behind_a_long_list_are_read() {
    let row = "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}\n";
    let whole = messages() + "]\n" + row + row;
    let items = found(whole.as_bytes(), 1 << 20);
    assert_eq!(items.len(), 3);
    assert!(items.iter().all(Result::is_ok));
    let broken = messages() + "}\n" + row + row;
    let items = found(broken.as_bytes(), 1 << 20);
    assert_eq!(items.len(), 3);
    assert_eq!(items[0].as_ref().unwrap_err().line, Some(1));
    let lines: Vec<_> = items[1..]
        .iter()
        .map(|item| item.as_ref().unwrap().line)
        .collect();
    assert_eq!(lines, [2, 3]);
}

#[test]
fn what_follows_on_its_line_is_an_error() {
    let row = "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}\n";
    let list = messages() + "]";
    for tail in ["]", " x", "}", "\u{b}", "[1]", " {\"messages\": []}", "  1"] {
        let spaces = tail.len() - tail.trim_start_matches(' ').len();
        let column = list.chars().count() + spaces + 1;
        let expected = format!("not valid JSON: expected the end (column {column})");
        for rows in [0, 2] {
            let whole = format!("{list}{tail}\n{}", row.repeat(rows));
            for piece in [1 << 20, list.len(), whole.len()] {
                let items = found(whole.as_bytes(), piece);
                assert_eq!(items.len(), 1 + rows, "{tail:?}");
                let problem = items[0].as_ref().unwrap_err();
                assert_eq!(problem.line, Some(1));
                assert_eq!(problem.message, expected);
            }
        }
    }
}

#[test]
fn a_list_over_several_lines_is_all_of_its_file() {
    let row = "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}\n";
    let list = messages() + "\n]";
    let items = found(format!("{list} \n\n").as_bytes(), 1 << 20);
    assert_eq!(items.len(), 1);
    assert!(items[0].is_ok());
    let items = found(format!("{list}\n{row}").as_bytes(), 1 << 20);
    let problem = items[0].as_ref().unwrap_err();
    assert_eq!(problem.line, Some(3));
    assert_eq!(
        problem.message,
        "not valid JSON: expected the end (column 1)"
    );
    assert_eq!(items.len(), 1);
}
