//! Readers: role, parts, places, keys; errors name a path and never the content.

use proptest::prelude::*;
use satchel_core::dialect::{Dialect, detect, read_message, read_system};
use satchel_core::message::{Body, Field, Message, PartKind, Place, Role};
use satchel_core::node::MAX_DEPTH;
use satchel_core::{ErrorKind, Result};
use serde_json::{Value, json};

pub fn read(dialect: Dialect, json: &Value) -> Result<Message<Box<str>>> {
    read_message(dialect, &json, 7)
}

/// Kind, place and page of each part: what the rest of the library relies on.
pub fn parts(message: &Message<Box<str>>) -> Vec<(PartKind, Place, String)> {
    message
        .parts
        .iter()
        .map(|part| {
            let page = String::from_utf8(part.body.page_bytes()).unwrap();
            (part.kind, part.place, page)
        })
        .collect()
}

pub fn keys(message: &Message<Box<str>>) -> Vec<(Option<&str>, Option<&str>)> {
    message
        .parts
        .iter()
        .filter_map(|part| part.key.as_deref())
        .map(|key| (key.id.as_deref(), key.name.as_deref()))
        .collect()
}

pub fn failure(dialect: Dialect, json: &Value) -> String {
    let error = read(dialect, json).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidMessage);
    assert_eq!(error.index(), Some(7));
    error.to_string()
}

#[test]
fn names_round_trip() {
    for dialect in Dialect::ALL {
        assert_eq!(Dialect::from_name(dialect.name()).unwrap(), dialect);
    }
    let error = Dialect::from_name("klingon").unwrap_err();
    assert_eq!(error.code(), "unknown_dialect");
    assert!(
        error
            .to_string()
            .contains("openai, openai-responses, anthropic, gemini, bedrock")
    );
}

#[test]
fn openai_plain_and_empty_content() {
    let message = read(
        Dialect::OpenAi,
        &json!({"role": "developer", "content": "Be brief.", "name": "desk"}),
    )
    .unwrap();
    assert_eq!(message.role, Role::Developer);
    assert_eq!(message.name.as_deref(), Some("desk"));
    assert_eq!(
        parts(&message),
        [(PartKind::Text, Place::Content, "Be brief.".into())]
    );
    for empty in [
        json!({"role": "assistant", "content": null}),
        json!({"role": "assistant"}),
        json!({"role": "assistant", "content": []}),
    ] {
        assert!(read(Dialect::OpenAi, &empty).unwrap().parts.is_empty());
    }
}

#[test]
fn openai_blocks_keep_their_place() {
    let image = json!({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}});
    let sound = json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}});
    let file = json!({"type": "file", "file": {"file_id": "f"}});
    let novel = json!({"type": "hologram", "depth": 3});
    let message = read(
        Dialect::OpenAi,
        &json!({"role": "user", "content": [
            {"type": "text", "text": "Look:"}, image, sound, file, novel,
        ]}),
    )
    .unwrap();
    assert_eq!(
        parts(&message),
        [
            (PartKind::Text, Place::BlockText(0), "Look:".into()),
            (PartKind::Image, Place::Block(1), image.to_string()),
            (PartKind::Audio, Place::Block(2), sound.to_string()),
            (PartKind::File, Place::Block(3), file.to_string()),
            (PartKind::Opaque, Place::Block(4), novel.to_string()),
        ]
    );
}

#[test]
fn openai_assistant_fields_and_calls_in_order() {
    let message = read(
        Dialect::OpenAi,
        &json!({
            "role": "assistant",
            "reasoning_content": "Two cities, two calls.",
            "content": "Checking both.",
            "refusal": "Not that one.",
            "tool_calls": [
                {"id": "c1", "type": "function",
                 "function": {"name": "weather", "arguments": "{\"city\":\"Bonn\"}"}},
                {"id": "c2", "type": "function",
                 "function": {"name": "weather", "arguments": {"city": "Ulm", "days": 2}}},
                {"id": "c3", "type": "custom", "custom": {"name": "shell", "input": "ls"}},
                {"type": "function", "function": {"name": "ping", "arguments": null}},
            ],
            "function_call": {"name": "legacy", "arguments": "{}"},
        }),
    )
    .unwrap();
    assert_eq!(
        parts(&message),
        [
            (
                PartKind::Reasoning,
                Place::Field(Field::ReasoningContent),
                "Two cities, two calls.".into()
            ),
            (PartKind::Text, Place::Content, "Checking both.".into()),
            (
                PartKind::Text,
                Place::Field(Field::Refusal),
                "Not that one.".into()
            ),
            (
                PartKind::Call,
                Place::CallArguments(0),
                r#"{"city":"Bonn"}"#.into()
            ),
            (
                PartKind::Call,
                Place::CallArguments(1),
                r#"{"city":"Ulm","days":2}"#.into()
            ),
            (PartKind::Call, Place::Field(Field::ToolCalls), "ls".into()),
            (PartKind::Call, Place::CallArguments(3), String::new()),
            (
                PartKind::Call,
                Place::Field(Field::FunctionCall),
                "{}".into()
            ),
        ]
    );
    assert_eq!(
        keys(&message),
        [
            (Some("c1"), Some("weather")),
            (Some("c2"), Some("weather")),
            (Some("c3"), Some("shell")),
            (None, Some("ping")),
            (None, Some("legacy")),
        ]
    );
    assert!(message.has_calls());
    assert!(!message.has_results());
}

#[test]
fn openai_results() {
    let message = read(
        Dialect::OpenAi,
        &json!({"role": "tool", "tool_call_id": "c1", "name": "weather", "content": "Rain."}),
    )
    .unwrap();
    assert_eq!(message.role, Role::Tool);
    assert_eq!(
        parts(&message),
        [(PartKind::Result, Place::Content, "Rain.".into())]
    );
    assert_eq!(keys(&message), [(Some("c1"), Some("weather"))]);

    let list = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    let message = read(
        Dialect::OpenAi,
        &json!({"role": "tool", "tool_call_id": "c1", "content": list}),
    )
    .unwrap();
    assert!(matches!(message.parts[0].body, Body::Value(_)));
    assert_eq!(parts(&message)[0].2, list.to_string());

    let legacy = read(
        Dialect::OpenAi,
        &json!({"role": "function", "name": "weather", "content": "Rain."}),
    )
    .unwrap();
    assert_eq!(legacy.role, Role::Tool);
    assert_eq!(keys(&legacy), [(None, Some("weather"))]);
}

#[test]
fn anthropic_blocks() {
    let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"});
    let server = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
                        "input": {"query": "x"}});
    let message = read(
        Dialect::Anthropic,
        &json!({"role": "assistant", "content": [
            thinking,
            {"type": "text", "text": "Reading."},
            {"type": "tool_use", "id": "t1", "name": "read", "input": {"b": 1, "a": [true, null]}},
            {"type": "tool_use", "id": "t2", "name": "read", "input": "{\"pa"},
            server,
        ]}),
    )
    .unwrap();
    assert_eq!(
        parts(&message),
        [
            (PartKind::Reasoning, Place::Block(0), thinking.to_string()),
            (PartKind::Text, Place::BlockText(1), "Reading.".into()),
            (
                PartKind::Call,
                Place::BlockInput(2),
                r#"{"b":1,"a":[true,null]}"#.into()
            ),
            (PartKind::Call, Place::BlockInput(3), r#"{"pa"#.into()),
            (PartKind::Opaque, Place::Block(4), server.to_string()),
        ]
    );
    assert_eq!(
        keys(&message),
        [(Some("t1"), Some("read")), (Some("t2"), Some("read"))]
    );

    let list = json!([{"type": "text", "text": "line"}]);
    let results = read(
        Dialect::Anthropic,
        &json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "ok"},
            {"type": "tool_result", "tool_use_id": "t2", "content": list, "is_error": true},
            {"type": "tool_result", "tool_use_id": "t3"},
            {"type": "text", "text": "Go on."},
        ]}),
    )
    .unwrap();
    assert_eq!(
        parts(&results),
        [
            (PartKind::Result, Place::BlockContent(0), "ok".into()),
            (PartKind::Result, Place::BlockContent(1), list.to_string()),
            (PartKind::Result, Place::BlockContent(2), String::new()),
            (PartKind::Text, Place::BlockText(3), "Go on.".into()),
        ]
    );
    let errors: Vec<bool> = results.parts.iter().map(|part| part.is_error).collect();
    assert_eq!(errors, [false, true, false, false]);
}

#[test]
fn a_place_leads_to_the_content() {
    use satchel_core::message::PathStep::{Index, Key};
    let json = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c", "function": {"name": "f", "arguments": "{}"}}]});
    let message = read(Dialect::OpenAi, &json).unwrap();
    let mut value = &json;
    for step in message.parts[0].place.path() {
        value = match step {
            Key(key) => &value[key],
            Index(index) => &value[index as usize],
        };
    }
    assert_eq!(value, "{}");
}

#[test]
fn openai_errors_name_the_path_and_not_the_content() {
    use Dialect::OpenAi;
    let rows = [
        (
            OpenAi,
            json!("secret"),
            "the message must be an object, got a string",
        ),
        (
            OpenAi,
            json!({"content": "secret"}),
            "role must be system, developer, user, assistant, tool or function, got null",
        ),
        (
            OpenAi,
            json!({"role": "secret"}),
            "role must be system, developer, user, assistant, tool or function, got a string",
        ),
        (
            OpenAi,
            json!({"role": "user", "content": 5}),
            "content must be a string, a list or null, got a number",
        ),
        (
            OpenAi,
            json!({"role": "user", "content": ["secret"]}),
            "content[0] must be an object, got a string",
        ),
        (
            OpenAi,
            json!({"role": "user", "content": [{"text": "secret"}]}),
            "content[0].type must be a string, got null",
        ),
        (
            OpenAi,
            json!({"role": "user", "content": [{"type": "text", "text": 5}]}),
            "content[0].text must be a string, got a number",
        ),
        (
            OpenAi,
            json!({"role": "user", "name": ["secret"], "content": "x"}),
            "name must be a string, got a list",
        ),
        (
            OpenAi,
            json!({"role": "assistant", "tool_calls": {"secret": 1}}),
            "tool_calls must be a list or null, got an object",
        ),
        (
            OpenAi,
            json!({"role": "assistant", "tool_calls": [{"id": "c"}]}),
            "tool_calls[0].function must be an object, got null",
        ),
        (
            OpenAi,
            json!({"role": "assistant", "tool_calls": [{"id": 5, "function": {}}]}),
            "tool_calls[0].id must be a string, got a number",
        ),
        (
            OpenAi,
            json!({"role": "assistant", "tool_calls": [{"function": {"arguments": [1]}}]}),
            "tool_calls[0].function.arguments must be a string or an object, got a list",
        ),
        (
            OpenAi,
            json!({"role": "assistant", "refusal": 1}),
            "refusal must be a string, got a number",
        ),
        (
            OpenAi,
            json!({"role": "tool", "tool_call_id": 1, "content": "x"}),
            "tool_call_id must be a string, got a number",
        ),
        (
            OpenAi,
            json!({"role": "tool", "content": [{"type": "text"}]}),
            "content[0].text must be a string, got null",
        ),
    ];
    for (dialect, json, expected) in rows {
        assert_eq!(failure(dialect, &json), format!("message 7: {expected}"));
    }
}

#[test]
fn anthropic_errors_name_the_path_and_not_the_content() {
    use Dialect::Anthropic;
    let rows = [
        (
            Anthropic,
            json!({"role": "narrator", "content": "x"}),
            "role must be user, assistant or system, got a string",
        ),
        (
            Anthropic,
            json!({"role": "user", "content": true}),
            "content must be a string, a list or null, got a boolean",
        ),
        (
            Anthropic,
            json!({"role": "user", "content": [{"type": "text"}]}),
            "content[0].text must be a string, got null",
        ),
        (
            Anthropic,
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": 1}]}),
            "content[0].tool_use_id must be a string, got a number",
        ),
        (
            Anthropic,
            json!({"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": {}}]}]}),
            "content[0].content[0].text must be a string, got an object",
        ),
        (
            Anthropic,
            json!({"role": "user", "content": [{"type": "tool_result", "is_error": "secret"}]}),
            "content[0].is_error must be a boolean, got a string",
        ),
    ];
    for (dialect, json, expected) in rows {
        assert_eq!(failure(dialect, &json), format!("message 7: {expected}"));
    }
}

#[test]
fn calls_and_results_of_another_dialect() {
    use Dialect::{Anthropic, OpenAi};
    let rows = [
        (
            OpenAi,
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t"}]}),
            "content[0] belongs to the dialect anthropic",
        ),
        (
            OpenAi,
            json!({"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "tool_result"}]}),
            "content[1] belongs to the dialect anthropic",
        ),
        (
            Anthropic,
            json!({"role": "tool", "content": "x"}),
            "the message belongs to the dialect openai",
        ),
        (
            Anthropic,
            json!({"role": "assistant", "content": "x", "tool_calls": [{"id": "c"}]}),
            "tool_calls belongs to the dialect openai",
        ),
    ];
    for (dialect, json, expected) in rows {
        let error = read(dialect, &json).unwrap_err();
        assert_eq!(error.code(), "dialect_changed");
        assert_eq!(error.to_string(), format!("message 7: {expected}"));
    }
    let null = json!({"role": "assistant", "content": "x", "tool_calls": null});
    assert_eq!(read(Anthropic, &null).unwrap().parts.len(), 1);
}

#[test]
fn depth_is_limited() {
    let mut nested = json!(1);
    for _ in 0..MAX_DEPTH {
        nested = json!([nested]);
    }
    for (dialect, json) in [
        (
            Dialect::Anthropic,
            json!({"role": "assistant",
                   "content": [{"type": "tool_use", "id": "a", "name": "f", "input": nested}]}),
        ),
        (
            Dialect::OpenAi,
            json!({"role": "user", "content": [{"type": "new", "x": nested}]}),
        ),
        (Dialect::OpenAi, json!({"role": "user", "content": nested})),
    ] {
        assert_eq!(read(dialect, &json).unwrap_err().code(), "too_deep");
    }
}

#[test]
fn system_argument() {
    let text = json!("Be brief.");
    assert_eq!(
        parts(&read_system(&&text).unwrap()),
        [(PartKind::Text, Place::Content, "Be brief.".into())]
    );
    let blocks = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    assert_eq!(read_system(&&blocks).unwrap().parts.len(), 2);
    let error = read_system(&&json!([{"type": "text"}])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "system[0].text must be a string, got null"
    );
    assert_eq!(
        read_system(&&json!(3)).unwrap_err().code(),
        "invalid_message"
    );
}

#[test]
fn detection_looks_at_the_content() {
    let rows = [
        (json!([]), None),
        (json!([{"role": "user", "content": "hi"}]), None),
        (
            json!([{"role": "user", "content": [{"type": "text", "text": "hi"}]}]),
            None,
        ),
        (
            json!([{"role": "system", "content": "x"}]),
            Some(Dialect::OpenAi),
        ),
        (
            json!([{"role": "user", "content": "x"}, {"role": "system", "content": "x"}]),
            None,
        ),
        (
            json!([{"role": "developer", "content": "x"}]),
            Some(Dialect::OpenAi),
        ),
        (
            json!([{"role": "user", "content": "x"}, {"role": "tool", "content": "x"}]),
            Some(Dialect::OpenAi),
        ),
        (
            json!([{"role": "assistant", "content": null, "tool_calls": [{}]}]),
            Some(Dialect::OpenAi),
        ),
        (
            json!([{"role": "assistant", "content": "x", "tool_calls": null}]),
            None,
        ),
        (
            json!([{"role": "user", "content": [{"type": "image_url"}]}]),
            Some(Dialect::OpenAi),
        ),
        (
            json!([{"role": "user", "content": [{"type": "tool_result"}]}]),
            Some(Dialect::Anthropic),
        ),
        (
            json!([{"role": "assistant", "content": [{"type": "thinking"}]}]),
            Some(Dialect::Anthropic),
        ),
        (
            json!([4, {"no": "role"}, {"role": "assistant", "content": [{"type": "tool_use"}]}]),
            Some(Dialect::Anthropic),
        ),
    ];
    for (json, expected) in rows {
        assert_eq!(detect(json.as_array().unwrap()), expected, "{json}");
    }
}

/// Random JSON made of the words that readers look for, so that it gets past the first check.
pub(crate) fn arb_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "role",
        "content",
        "type",
        "text",
        "user",
        "assistant",
        "tool",
        "system",
        "function",
        "tool_calls",
        "function_call",
        "arguments",
        "id",
        "name",
        "tool_call_id",
        "tool_use",
        "tool_result",
        "tool_use_id",
        "input",
        "is_error",
        "thinking",
        "refusal",
        "image",
        "source",
        "custom",
        "reasoning_content",
        "data",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|entries| entries
                .into_iter()
                .map(|(key, value)| (key.to_string(), value))
                .collect::<serde_json::Map<_, _>>()
                .into()),
        ]
    })
}

/// A random message that has at least a role.
pub(crate) fn arb_message() -> impl Strategy<Value = Value> {
    let role = prop::sample::select(vec!["user", "assistant", "tool", "system", "function"]);
    (role, arb_json(), arb_json()).prop_map(|(role, content, fields)| {
        let mut message = match fields {
            Value::Object(fields) => fields,
            _ => serde_json::Map::new(),
        };
        message.insert("role".into(), role.into());
        message.entry("content").or_insert(content);
        message.into()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_panic(json in prop_oneof![arb_json(), arb_message()]) {
        for dialect in Dialect::ALL {
            match read(dialect, &json) {
                Ok(message) => for part in &message.parts {
                    part.body.page_bytes();
                },
                Err(error) => prop_assert_eq!(error.index(), Some(7)),
            }
        }
        detect([&json]);
        let _ = read_system(&&json);
    }

    #[test]
    fn a_text_part_is_the_text_at_its_place(text in "\\PC{0,40}") {
        for dialect in Dialect::ALL {
            let string = json!({"role": "user", "content": text});
            let blocks = json!({"role": "user", "content": [{"type": "text", "text": text}]});
            let bare = json!({"role": "user", "content": [{"text": text}]});
            let parts = json!({"role": "user", "parts": [{"text": text}]});
            let forms = match dialect {
                Dialect::Gemini => vec![&parts],
                Dialect::Bedrock => vec![&bare],
                _ => vec![&string, &blocks],
            };
            for json in forms {
                let message = read(dialect, json).unwrap();
                prop_assert_eq!(message.parts[0].body.page_bytes(), text.as_bytes());
            }
        }
    }
}
