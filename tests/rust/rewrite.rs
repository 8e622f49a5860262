//! Stored conversations written anew: stretches of a file are what the file is.

use std::sync::Arc;

use satchel_core::dialect::Traits;
use satchel_core::policy::Policy;
use satchel_core::readers::{Reader, has_rows, read};
use satchel_core::redact::Kinds;
use satchel_core::replay::Limit;
use satchel_core::rewrite::{At, Form, Lines, Options, Output};
use satchel_core::strategy::price::Prices;
use satchel_core::tokens::Counter;

fn options(limit: Limit, at: At) -> Arc<Options> {
    Arc::new(Options {
        model: "gpt-4o".into(),
        traits: Traits::default(),
        prefix_bound: false,
        counter: Counter::named("chars4").unwrap(),
        policy: Arc::new(Policy::default()),
        limit,
        at,
        target: None,
        prices: Prices::default(),
        price: None,
        pages: false,
        redact: Kinds::NONE,
    })
}

fn run(file: &[u8], options: &Arc<Options>) -> Output {
    let mut lines = Lines::new(options.clone(), "in", Form::Lines);
    lines.take(read(file, None));
    lines.finish()
}

fn row(words: usize) -> String {
    let messages: Vec<_> = (0..8)
        .map(|index| {
            let role = if index % 2 == 0 { "user" } else { "assistant" };
            serde_json::json!({"role": role, "content": format!("{index} word").repeat(words)})
        })
        .collect();
    serde_json::json!({ "messages": messages }).to_string()
}

#[test]
fn stretches_of_lines_are_the_whole_file() {
    let file: String = (1..20).map(|words| row(words * 20) + "\n").collect();
    let options = options(Limit::Share(0.5), At::End);
    let whole = run(file.as_bytes(), &options);
    assert_eq!(whole.counts.conversations, 19);
    assert!(whole.counts.tokens_after < whole.counts.tokens_before);
    assert!(has_rows(file.as_bytes(), None));
    let mut records = String::new();
    let mut reports = String::new();
    for (index, stretch) in file.split_inclusive('\n').enumerate() {
        let mut reader = Reader::rows(None, index + 1);
        let mut lines = Lines::new(options.clone(), "in", Form::Lines);
        lines.take(reader.feed(stretch.as_bytes()));
        lines.take(reader.finish());
        let output = lines.finish();
        records += &output.records;
        reports += &output.reports.text;
    }
    assert_eq!(records, whole.records);
    assert_eq!(reports, whole.reports.text);
}

#[test]
fn columns_hold_what_lines_hold() {
    let file = row(3) + "\n" + &row(4);
    let options = options(Limit::Tokens(10_000), At::EveryCall);
    let mut columns = Lines::new(options.clone(), "in", Form::Columns);
    columns.take(read(file.as_bytes(), None));
    let (columns, lines) = (columns.finish(), run(file.as_bytes(), &options));
    assert_eq!(columns.lines, [1, 1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(columns.records, "");
    for (index, record) in lines.records.lines().enumerate() {
        let bounds = &columns.messages.offsets[index..=index + 1];
        let text = &columns.messages.text[bounds[0] as usize..bounds[1] as usize];
        let record: serde_json::Value = serde_json::from_str(record).unwrap();
        assert_eq!(record["messages"].to_string(), text);
    }
}

#[test]
fn only_a_conversation_a_line_is_rows() {
    let hello = r#"[{"role": "user", "content": "hi"}]"#;
    let message = r#"{"role": "user", "content": "hi"}"#;
    for (file, expected) in [
        (format!("{hello}\n{hello}\n"), true),
        (format!("\n{hello}\n\n{hello}"), true),
        (format!("broken\n{hello}\n{hello}\n"), true),
        (format!("{hello}\n"), false),
        (format!("[\n{hello}\n]\n"), false),
        (format!("{message}\n{message}\n"), false),
        (String::new(), false),
    ] {
        assert_eq!(has_rows(file.as_bytes(), None), expected, "{file}");
    }
}

#[test]
fn what_cannot_be_read_is_a_reject_with_its_line() {
    let file = row(1) + "\n{\n" + &row(1) + "\n{\"messages\": [{\"role\": 5}, 7]}\n";
    let output = run(file.as_bytes(), &options(Limit::Tokens(1_000), At::End));
    assert_eq!(output.counts.conversations, 2);
    assert_eq!(
        output.counts.rejected,
        output.rejects.lines().count() as u64
    );
    assert_eq!(output.first.unwrap().line, Some(2));
    assert!(At::from_name("turn:0").is_err());
    assert_eq!(At::from_name("turn:-2").unwrap(), At::Turn(-2));
}

#[test]
fn lines_that_are_not_copied_are_the_same_lines() {
    let file = format!("{}\n\nbroken\n{}", row(3), row(4));
    let mut fed = Reader::rows(None, 5);
    let mut items = fed.feed(file.as_bytes());
    items.extend(fed.finish());
    let mut taken = Vec::new();
    Reader::rows(None, 5).feed_rows(file.as_bytes(), |item| taken.push(item));
    assert_eq!(taken, items);
    assert_eq!(taken.len(), 3);
}
