use proptest::prelude::*;
use satchel_core::error::ErrorKind;
use satchel_core::node::{Node, Text};
use satchel_core::readers::json::{Json, parse};
use satchel_core::readers::{Conversation, Format, Item, Problem, Reader, read};

/// The sample of each format.
const SAMPLES: [(Format, &[u8]); 18] = [
    (
        Format::OpenAi,
        include_bytes!("../data/formats/openai.jsonl"),
    ),
    (
        Format::Responses,
        include_bytes!("../data/formats/openai-responses.json"),
    ),
    (
        Format::Anthropic,
        include_bytes!("../data/formats/anthropic.json"),
    ),
    (
        Format::Gemini,
        include_bytes!("../data/formats/gemini.json"),
    ),
    (
        Format::Bedrock,
        include_bytes!("../data/formats/bedrock.json"),
    ),
    (
        Format::LangChain,
        include_bytes!("../data/formats/langchain.json"),
    ),
    (
        Format::ClaudeCode,
        include_bytes!("../data/formats/claude-code.jsonl"),
    ),
    (Format::Codex, include_bytes!("../data/formats/codex.jsonl")),
    (
        Format::GeminiCli,
        include_bytes!("../data/formats/gemini-cli.json"),
    ),
    (Format::Pi, include_bytes!("../data/formats/pi.jsonl")),
    (Format::Kimi, include_bytes!("../data/formats/kimi.jsonl")),
    (
        Format::OpenHands,
        include_bytes!("../data/formats/openhands.json"),
    ),
    (
        Format::SweAgent,
        include_bytes!("../data/formats/swe-agent.traj"),
    ),
    (
        Format::MiniSweAgent,
        include_bytes!("../data/formats/mini-swe-agent.json"),
    ),
    (
        Format::Inspect,
        include_bytes!("../data/formats/inspect.json"),
    ),
    (Format::Aider, include_bytes!("../data/formats/aider.md")),
    (
        Format::InterCode,
        include_bytes!("../data/formats/intercode.json"),
    ),
    (
        Format::ShareGpt,
        include_bytes!("../data/formats/sharegpt.json"),
    ),
];

fn conversations(bytes: &[u8]) -> Vec<Conversation> {
    read(bytes, None).map(Result::unwrap).collect()
}

fn only_problem(bytes: &[u8]) -> Problem {
    let items: Vec<Item> = read(bytes, None).collect();
    let [Err(problem)] = items.as_slice() else {
        panic!("expected one problem, got {items:?}");
    };
    problem.clone()
}

#[test]
fn every_sample_is_told_apart_by_its_content() {
    for (format, bytes) in SAMPLES {
        let found = conversations(bytes);
        assert!(!found.is_empty(), "{format}");
        for conversation in found {
            assert_eq!(conversation.format, format);
            assert!(!conversation.messages.is_empty(), "{format}");
        }
    }
}

#[test]
fn a_named_format_reads_its_sample_the_same() {
    for (format, bytes) in SAMPLES {
        let named: Vec<Item> = read(bytes, Some(format)).collect();
        let mut told: Vec<Item> = read(bytes, None).collect();
        for conversation in told.iter_mut().flatten() {
            // What nothing gives away is told by the name.
            if conversation.dialect.is_none() {
                conversation.dialect = Some(format.name().into());
            }
        }
        assert_eq!(named, told, "{format}");
    }
}

#[test]
fn names_of_formats_come_back() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()).unwrap(), format);
    }
    let error = Format::from_name("smoke-signals").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidValue);
}

#[test]
fn problems_name_their_line_and_reading_goes_on() {
    let file = b"{\"messages\": []}\n{\"messages\": [}\n\n{\"messages\": 7}\n[]\n";
    let items: Vec<Item> = read(file, None).collect();
    let lines: Vec<(bool, usize)> = items
        .iter()
        .map(|item| match item {
            Ok(conversation) => (true, conversation.line),
            Err(problem) => (false, problem.line.unwrap()),
        })
        .collect();
    assert_eq!(lines, [(true, 1), (false, 2), (false, 4), (true, 5)]);
    let error = items[1].clone().unwrap_err().into_error();
    assert_eq!(error.kind(), ErrorKind::InvalidFile);
    assert_eq!(
        error.to_string(),
        "line 2: not valid JSON: expected a value (column 15)"
    );
}

#[test]
fn a_session_keeps_what_can_be_read() {
    let sample = SAMPLES[6].1;
    let mut broken = b"{\"type\": \"user\", \"uuid\": \n".to_vec();
    broken.extend_from_slice(sample);
    broken.extend_from_slice(b"\0\0\0\0\n");
    let items: Vec<Item> = read(&broken, None).collect();
    assert_eq!(items[0].as_ref().unwrap_err().line, Some(1));
    let binary = items[1].as_ref().unwrap_err();
    assert_eq!(binary.message, "binary data, expected JSON");
    let whole = conversations(sample);
    let kept: Vec<&Conversation> = items.iter().flatten().collect();
    assert_eq!(kept.len(), whole.len());
    for (kept, whole) in kept.into_iter().zip(&whole) {
        assert_eq!(kept.messages, whole.messages);
        assert_eq!(kept.line, whole.line + 1);
    }
}

#[test]
fn numbers_that_no_request_can_hold_are_refused_in_messages_only() {
    let beside = br#"{"messages": [{"role": "user", "content": "a"}], "score": NaN}"#;
    assert_eq!(conversations(beside).len(), 1);
    let inside = br#"{"messages": [{"role": "user", "content": "a", "score": -Infinity}]}"#;
    assert_eq!(only_problem(inside).message, "-Infinity is no JSON number");
}

#[test]
fn of_equal_keys_the_last_value_wins() {
    let many: Vec<String> = (0..40)
        .map(|at| format!("\"k{}\": {at}", at % 20))
        .collect();
    let json = parse(&format!("{{{}}}", many.join(","))).unwrap();
    let expected: Vec<String> = (0..20).map(|at| format!("\"k{at}\":{}", at + 20)).collect();
    assert_eq!(json.to_json(), format!("{{{}}}", expected.join(",")));
}

#[test]
fn surrogates_are_kept_and_pairs_are_joined() {
    let half = parse(r#""a\ud83d""#).unwrap();
    let other = parse(r#""\ude00b""#).unwrap();
    assert_eq!(half.to_json(), r#""a\ud83d""#);
    assert_eq!((&half).with_str(str::to_owned).unwrap(), "a\u{fffd}");
    let (Json::Text(half), Json::Text(other)) = (half, other) else {
        panic!("both are strings");
    };
    assert_eq!(half.as_str(), None);
    assert_eq!(half.to_bytes(), [b'a', 0xED, 0xA0, 0xBD]);
    let joined = satchel_core::readers::json::JsonText::concat([&half, &other]);
    assert_eq!(joined.as_str(), Some("a\u{1f600}b"));
}

#[test]
fn nesting_has_a_limit() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse(&deep(512)).is_ok());
    assert!(parse(&deep(513)).is_err());
    let problem = only_problem(deep(100_000).as_bytes());
    assert_eq!(problem.message, "nested too deeply");
}

fn pieces(bytes: &[u8], format: Option<Format>, sizes: &[usize]) -> Vec<Item> {
    let mut reader = Reader::new(format);
    let mut items = Vec::new();
    let mut rest = bytes;
    for size in sizes {
        let (piece, after) = rest.split_at(rest.len().min(*size));
        items.extend(reader.feed(piece));
        rest = after;
    }
    items.extend(reader.feed(rest));
    items.extend(reader.finish());
    items
}

fn formats() -> impl Strategy<Value = Option<Format>> {
    prop::option::of(prop::sample::select(&Format::ALL[..]))
}

/// A sample with some bytes replaced, removed or repeated.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let damage = (
        0..20_000_usize,
        0..60_usize,
        prop::collection::vec(any::<u8>(), 0..4),
    );
    let sample = prop::sample::select(&SAMPLES[..]);
    (sample, prop::collection::vec(damage, 1..6)).prop_map(|((_, bytes), damages)| {
        let mut bytes = bytes.to_vec();
        for (at, length, put) in damages {
            let at = at % bytes.len().max(1);
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, put);
        }
        bytes
    })
}

/// JSON values in the words of the formats, in any wrong place.
fn confused() -> impl Strategy<Value = serde_json::Value> {
    const WORDS: [&str; 56] = [
        "role",
        "content",
        "type",
        "messages",
        "message",
        "id",
        "uuid",
        "parentUuid",
        "user",
        "assistant",
        "tool",
        "text",
        "parts",
        "tool_calls",
        "function",
        "arguments",
        "request",
        "response",
        "input",
        "output",
        "contents",
        "usage",
        "payload",
        "timestamp",
        "session",
        "session_meta",
        "response_item",
        "event_msg",
        "kwargs",
        "lc",
        "data",
        "human",
        "ai",
        "history",
        "action",
        "observation",
        "source",
        "args",
        "tool_call_metadata",
        "samples",
        "eval",
        "conversations",
        "from",
        "value",
        "turn_history",
        "traj",
        "turns",
        "query",
        "event",
        "context.append_loop_event",
        "step.begin",
        "tool_result",
        "tool_use",
        "model",
        "sessionId",
        "isSidechain",
    ];
    let word = || prop::sample::select(&WORDS[..]);
    let leaf = prop_oneof![
        4 => word().prop_map(serde_json::Value::from),
        1 => any::<u32>().prop_map(serde_json::Value::from),
        1 => any::<bool>().prop_map(serde_json::Value::from),
        1 => Just(serde_json::Value::Null),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            prop::collection::vec((word(), inner), 0..7).prop_map(|entries| {
                let entries = entries
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value));
                serde_json::Value::Object(entries.collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..400), format in formats()) {
        prop_assert!(read(&bytes, format).count() <= bytes.len() + 1);
    }

    #[test]
    fn damaged_samples_are_read_alike_in_any_pieces(
        bytes in damaged(),
        format in formats(),
        sizes in prop::collection::vec(1..900_usize, 0..30),
    ) {
        let whole: Vec<Item> = read(&bytes, format).collect();
        prop_assert_eq!(pieces(&bytes, format, &sizes), whole);
    }

    #[test]
    fn values_in_wrong_places_are_read(
        values in prop::collection::vec(confused(), 1..6),
        format in formats(),
        is_document in any::<bool>(),
    ) {
        let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
        let text = if is_document {
            format!("[\n{}\n]", texts.join(",\n"))
        } else {
            texts.join("\n")
        };
        prop_assert!(read(text.as_bytes(), format).count() <= text.len() + 1);
    }

    #[test]
    fn json_is_what_serde_json_says(value in confused(), pretty in any::<bool>()) {
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        let found = parse(&text).unwrap().to_json();
        prop_assert_eq!(found, value.to_string());
    }

    #[test]
    fn json_is_refused_where_serde_json_refuses(
        text in "[ \\[\\]{}:,\"\\\\a-fnrtu0-9.eE+\u{1}\u{e9}-]{0,24}",
    ) {
        let ours = parse(&text);
        let theirs: Result<serde_json::Value, _> = serde_json::from_str(&text);
        let has_surrogate = text.contains("\\ud") || text.contains("\\uD");
        if let Ok(theirs) = theirs {
            // Numbers keep their own text here; serde_json writes `0E0` as `0e+0`.
            let again: serde_json::Value = serde_json::from_str(&ours.unwrap().to_json()).unwrap();
            prop_assert_eq!(again, theirs);
        } else if !has_surrogate {
            prop_assert!(ours.is_err(), "{:?}", text);
        }
    }
}

/// Runs between escapes are looked at by the word: every length of a run, before and after each kind.
#[test]
fn strings_with_escapes_at_every_place() {
    for before in 0..80 {
        for (escape, said) in [
            ("\\\"", "\""),
            ("\\n", "\n"),
            ("\\u0041", "A"),
            ("\\u00e9", "é"),
            ("\\ud55C", "한"),
            ("\\ud83d\\ude00", "😀"),
        ] {
            for after in [0, 1, 7, 8, 9, 49, 60] {
                let (front, back) = (
                    "é".repeat(before / 2) + &"x".repeat(before % 2),
                    "y".repeat(after),
                );
                let text = format!("[\"{front}{escape}{escape}{back}\", 1]");
                let expected = format!("{front}{said}{said}{back}");
                let found = parse(&text).unwrap();
                assert_eq!(found.items()[0].as_str(), Some(expected.as_str()), "{text}");
            }
        }
        let front = "x".repeat(before);
        let error = parse(&format!("[\"{front}\u{1f}\"]")).unwrap_err();
        assert_eq!(error.at, before + 2);
        let error = parse(&format!("[\"{front}\\u12g4\"]")).unwrap_err();
        assert_eq!(error.at, before + 2);
    }
}
