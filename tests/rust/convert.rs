//! Conversion between the dialects: each kind of part, and random histories in every direction.

use proptest::prelude::*;
use satchel_core::dialect::convert::{Converted, LossKind, RAW_ARGUMENTS, convert};
use satchel_core::dialect::lint::{Severity, lint};
use satchel_core::dialect::repair::NO_USER_MESSAGE;
use satchel_core::dialect::{Dialect, read_message};
use satchel_core::message::{Body, Message, PartKind, Role};
use serde_json::{Value as Json, json};

use crate::spoken::{self, Act};

const OPENAI: Dialect = Dialect::OpenAi;
const RESPONSES: Dialect = Dialect::Responses;
const ANTHROPIC: Dialect = Dialect::Anthropic;
const GEMINI: Dialect = Dialect::Gemini;
const BEDROCK: Dialect = Dialect::Bedrock;

/// The dialects whose turns alternate.
const ALTERNATING: [Dialect; 3] = [ANTHROPIC, GEMINI, BEDROCK];

fn directions() -> impl Iterator<Item = (Dialect, Dialect)> {
    let pairs = Dialect::ALL.into_iter();
    pairs
        .flat_map(|source| Dialect::ALL.map(|target| (source, target)))
        .filter(|(source, target)| source != target)
}

fn run(source: Dialect, target: Dialect, messages: &[Json]) -> Converted {
    let nodes: Vec<&Json> = messages.iter().collect();
    convert(source, target, &nodes, None, None).unwrap()
}

/// The messages of a conversion without losses.
fn clean(source: Dialect, target: Dialect, messages: &[Json]) -> Vec<Json> {
    let found = run(source, target, messages);
    assert_eq!(found.losses, [], "{source} to {target}");
    check(target, &found);
    found.messages
}

fn kinds(found: &Converted) -> Vec<(Option<usize>, LossKind)> {
    found
        .losses
        .iter()
        .map(|loss| (loss.index, loss.kind))
        .collect()
}

fn page(message: &Message<Box<str>>, part: usize) -> String {
    String::from_utf8(message.parts[part].body.page_bytes()).unwrap()
}

fn read_all(dialect: Dialect, messages: &[Json]) -> Vec<Message<Box<str>>> {
    let messages = messages.iter().enumerate();
    let read = messages.map(|(index, message)| read_message(dialect, &message, index).unwrap());
    read.collect()
}

fn ids(message: &Message<Box<str>>, kind: PartKind) -> Vec<String> {
    let parts = message.parts.iter().filter(|part| part.kind == kind);
    parts
        .map(|part| part.key.as_ref().unwrap().id.clone().unwrap().into())
        .collect()
}

/// What every converted history holds to, whatever `lint` knows of its dialect.
fn check(dialect: Dialect, found: &Converted) {
    let system = found.system.as_ref();
    let tools = found.tools.as_ref();
    let errors: Vec<_> = lint(dialect, &found.messages, system.as_ref(), tools.as_ref())
        .into_iter()
        .filter(|violation| violation.rule.entry().severity == Severity::Error)
        .collect();
    assert!(
        errors.is_empty(),
        "{dialect}: {errors:?}\n{:#?}",
        found.messages
    );
    let messages = read_all(dialect, &found.messages);
    let mut taken = std::collections::BTreeSet::new();
    let mut waiting: Vec<String> = Vec::new();
    let mut before = None;
    for message in &messages {
        assert!(!message.parts.is_empty(), "{dialect}");
        if ALTERNATING.contains(&dialect) {
            assert_ne!(
                before,
                Some(message.role),
                "{dialect}: {:#?}",
                found.messages
            );
            assert!(before.is_some() || message.role == Role::User, "{dialect}");
            before = Some(message.role);
            // Results come first.
            let kinds: Vec<bool> = message
                .parts
                .iter()
                .map(|part| part.kind == PartKind::Result)
                .collect();
            assert!(kinds.is_sorted_by(|a, b| a >= b));
            for part in &message.parts {
                if let (PartKind::Text, Body::Text(text)) = (part.kind, &part.body) {
                    assert!(!text.trim().is_empty(), "{dialect}");
                }
            }
        }
        let results = ids(message, PartKind::Result);
        let calls = ids(message, PartKind::Call);
        if results.is_empty() {
            // Responses has a message for each call of a turn.
            assert!(
                waiting.is_empty() || (dialect == RESPONSES && !calls.is_empty()),
                "{dialect}: {waiting:?}"
            );
        } else {
            let answered: Vec<String> = waiting.drain(..results.len()).collect();
            assert_eq!(answered, results, "{dialect}");
        }
        for id in calls {
            assert!(id.len() <= 40 && !id.is_empty());
            assert!(
                id.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
            );
            assert!(taken.insert(id.clone()), "{dialect}: {id} twice");
            waiting.push(id);
        }
    }
    assert!(waiting.is_empty(), "{dialect}: {waiting:?}");
    // What only its own provider can use.
    let everything = json!(found.messages).to_string();
    for secret in ["SECRET", "c2lnbmVk"] {
        assert!(!everything.contains(secret), "{dialect}: {everything}");
    }
}

/// One thing that is said, in a form all dialects share.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Text(Role, String),
    Image(String),
    Call(String, Json),
    Result(String),
}

/// The texts of a result's body, joined.
fn result_text(dialect: Dialect, json: &Json) -> String {
    let strings = |json: &Json| match json {
        Json::String(text) => text.clone(),
        Json::Array(items) => items
            .iter()
            .filter_map(|item| item.as_str().or_else(|| item.get("text")?.as_str()))
            .collect::<Vec<_>>()
            .join("|"),
        other => other.to_string(),
    };
    if dialect != GEMINI {
        return strings(json);
    }
    let wrapped = json.get("output").or_else(|| json.get("error"));
    match json.as_object().unwrap().len() {
        0 => String::new(),
        1 if wrapped.is_some_and(|it| it.is_string() || it.is_array()) => strings(wrapped.unwrap()),
        _ => json.to_string(),
    }
}

fn said(dialect: Dialect, messages: &[Json]) -> Vec<Said> {
    let mut found = Vec::new();
    for message in read_all(dialect, messages) {
        for (at, part) in message.parts.iter().enumerate() {
            let text = page(&message, at);
            let json = || match &part.body {
                Body::Text(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
                Body::Value(_) => serde_json::from_str(&text).unwrap(),
                Body::Empty => json!({}),
            };
            match part.kind {
                PartKind::Text => found.push(Said::Text(message.role, text)),
                PartKind::Image => found.push(Said::Image(
                    // The one thing in common of all forms of an image.
                    text.contains("iVBORw0KGgo=").to_string(),
                )),
                PartKind::Call => {
                    let name = part.key.as_ref().unwrap().name.clone().unwrap();
                    found.push(Said::Call(name.into(), json()));
                }
                PartKind::Result => found.push(Said::Result(match &part.body {
                    Body::Text(text) => text.to_string(),
                    Body::Empty => String::new(),
                    Body::Value(_) => result_text(dialect, &json()),
                })),
                PartKind::Reasoning | PartKind::Opaque | PartKind::Audio | PartKind::File => {}
            }
        }
    }
    found
}

/// Everything but the instructions in the middle, which only two dialects have.
fn plain(said: Vec<Said>) -> Vec<Said> {
    let is_instruction = |said: &Said| match said {
        Said::Text(role, text) => role.is_instruction() || text.starts_with("[system message]"),
        _ => false,
    };
    said.into_iter()
        .filter(|said| !is_instruction(said))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn valid_histories_in_every_direction(acts in spoken::acts(8)) {
        for (source, target) in directions() {
            let messages = spoken::write(source, &acts);
            let found = run(source, target, &messages);
            check(target, &found);
            prop_assert_eq!(
                plain(said(source, &messages)),
                plain(said(target, &found.messages)),
                "{} to {}", source, target
            );
            // Reasoning, error flags, signatures and instructions are all there is to lose.
            let is_expected = |kind| matches!(kind, LossKind::Reasoning | LossKind::ErrorFlag
                | LossKind::Signature | LossKind::Instruction);
            prop_assert!(found.losses.iter().all(|loss| is_expected(loss.kind)), "{:?}", found.losses);
            let nothing = Converted { messages: Vec::new(), system: None, tools: None, losses: Vec::new() };
            prop_assert_eq!(run(source, target, &[]), nothing);
        }
    }

    #[test]
    fn there_and_back(acts in spoken::acts(8)) {
        for (source, target) in directions() {
            let messages = spoken::write(source, &acts);
            let there = run(source, target, &messages);
            let back = run(target, source, &there.messages);
            check(source, &back);
            prop_assert_eq!(
                plain(said(source, &messages)),
                plain(said(source, &back.messages)),
                "{} by {}", source, target
            );
        }
    }

    #[test]
    fn damaged_histories_come_out_valid(
        acts in spoken::acts(6),
        damage in prop::collection::vec((0..5_usize, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..5),
    ) {
        for (source, target) in directions() {
            let mut messages = spoken::write(source, &acts);
            for (how, at, other) in &damage {
                spoken::damage(source, &mut messages, *how, *at, *other);
            }
            let nodes: Vec<&Json> = messages.iter().collect();
            let before = messages.clone();
            let found = convert(source, target, &nodes, None, None).unwrap();
            check(target, &found);
            prop_assert_eq!(&before, &messages);
            prop_assert_eq!(&found, &convert(source, target, &nodes, None, None).unwrap());
            // Whatever is not there is listed with its message.
            let everything = json!([found.messages, found.system]).to_string();
            for (index, message) in messages.iter().enumerate() {
                for word in spoken::words(message) {
                    let is_listed = found.losses.iter().any(|loss| loss.index == Some(index));
                    prop_assert!(everything.contains(&word) || is_listed, "{} of {}", word, index);
                }
            }
        }
    }

    #[test]
    fn more_messages_change_no_earlier_id(acts in spoken::acts(6), more in spoken::acts(3)) {
        let all: Vec<Act> = acts.iter().chain(&more).cloned().collect();
        for (source, target) in directions() {
            let first = spoken::write(source, &acts);
            let both = spoken::write(source, &all);
            prop_assert_eq!(&both[..first.len()], &first[..]);
            let first = run(source, target, &first).messages;
            let both = run(source, target, &both).messages;
            // The last message may be merged with what follows.
            let same = first.len().saturating_sub(1);
            prop_assert_eq!(&both[..same], &first[..same]);
        }
    }
}

fn user(text: &str) -> Json {
    json!({"role": "user", "content": text})
}

#[test]
fn the_same_dialect_is_the_same_request() {
    let messages = [json!({"role": "tool", "tool_call_id": "a", "content": "late"})];
    let system = json!("Be brief.");
    let nodes: Vec<&Json> = messages.iter().collect();
    let found = convert(OPENAI, OPENAI, &nodes, Some(&&system), None).unwrap();
    assert_eq!(found.messages, messages);
    assert_eq!(found.system, Some(system));
    assert_eq!(found.losses, []);
}

#[test]
fn instructions_go_where_the_target_wants_them() {
    let messages = [
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "developer", "content": [{"type": "text", "text": "Be kind."}]}),
        user("hi"),
    ];
    let hi = json!([{"role": "user", "content": "hi"}]);
    for (target, system, rest) in [
        (
            ANTHROPIC,
            json!([{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]),
            hi.clone(),
        ),
        (
            GEMINI,
            json!({"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}),
            json!([{"role": "user", "parts": [{"text": "hi"}]}]),
        ),
        (
            BEDROCK,
            json!([{"text": "Be brief."}, {"text": "Be kind."}]),
            json!([{"role": "user", "content": [{"text": "hi"}]}]),
        ),
    ] {
        let found = run(OPENAI, target, &messages);
        assert_eq!(found.system, Some(system.clone()));
        assert_eq!(json!(found.messages), rest);
        assert_eq!(found.losses, []);
        // And back: the argument becomes a message, or stays one where there is such an argument.
        let nodes: Vec<&Json> = found.messages.iter().collect();
        let back = convert(target, OPENAI, &nodes, Some(&&system), None).unwrap();
        let texts =
            json!([{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]);
        assert_eq!(
            back.messages,
            [json!({"role": "system", "content": texts}), user("hi")]
        );
        let back = convert(target, RESPONSES, &nodes, Some(&&system), None).unwrap();
        assert_eq!(back.system, Some(json!("Be brief.\n\nBe kind.")));
    }
    let items = clean(OPENAI, RESPONSES, &messages);
    assert_eq!(
        items[1],
        json!({"role": "developer", "content": "Be kind."})
    );
}

#[test]
fn later_instructions_are_the_users_text_where_they_must() {
    let messages = [
        user("hi"),
        json!({"role": "system", "content": "From now on in Korean."}),
        json!({"role": "assistant", "content": "네"}),
    ];
    let found = run(OPENAI, ANTHROPIC, &messages);
    check(ANTHROPIC, &found);
    assert_eq!(kinds(&found), [(Some(1), LossKind::Instruction)]);
    assert_eq!(
        found.messages[0],
        json!({"role": "user", "content": [
            {"type": "text", "text": "hi"},
            {"type": "text", "text": "[system message]\nFrom now on in Korean."},
        ]})
    );
    let items = clean(OPENAI, RESPONSES, &messages);
    assert_eq!(items[1]["role"], "system");
    // A text that looks like the label is no way to become a system message.
    let back = run(ANTHROPIC, OPENAI, &found.messages);
    assert!(
        back.messages
            .iter()
            .all(|message| message["role"] != "system")
    );
}

fn call(id: &str, name: &str, arguments: &str) -> Json {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn calls(calls: &[Json]) -> Json {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn result(id: &str, content: &str) -> Json {
    json!({"role": "tool", "tool_call_id": id, "content": content})
}

#[test]
fn parallel_calls_in_all_forms() {
    let messages = [
        user("go"),
        calls(&[call("a", "look", r#"{"n":1}"#), call("b", "ping", "")]),
        result("b", "pong"),
        result("a", "one"),
        user("thanks"),
    ];
    assert_eq!(
        clean(OPENAI, ANTHROPIC, &messages)[1..],
        [
            json!({"role": "assistant", "content": [
                {"type": "tool_use", "id": "a", "name": "look", "input": {"n": 1}},
                {"type": "tool_use", "id": "b", "name": "ping", "input": {}}]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                {"type": "tool_result", "tool_use_id": "b", "content": "pong"},
                {"type": "text", "text": "thanks"}]}),
        ]
    );
    assert_eq!(
        clean(OPENAI, GEMINI, &messages)[1..],
        [
            json!({"role": "model", "parts": [
                {"functionCall": {"id": "a", "name": "look", "args": {"n": 1}},
                 "thoughtSignature": "skip_thought_signature_validator"},
                {"functionCall": {"id": "b", "name": "ping", "args": {}}}]}),
            json!({"role": "user", "parts": [
                {"functionResponse": {"id": "a", "name": "look", "response": {"output": "one"}}},
                {"functionResponse": {"id": "b", "name": "ping", "response": {"output": "pong"}}},
                {"text": "thanks"}]}),
        ]
    );
    assert_eq!(
        clean(OPENAI, BEDROCK, &messages)[2],
        json!({"role": "user", "content": [
            {"toolResult": {"toolUseId": "a", "content": [{"text": "one"}]}},
            {"toolResult": {"toolUseId": "b", "content": [{"text": "pong"}]}},
            {"text": "thanks"}]})
    );
    assert_eq!(
        clean(OPENAI, RESPONSES, &messages)[1..5],
        [
            json!({"type": "function_call", "call_id": "a", "name": "look", "arguments": "{\"n\":1}"}),
            json!({"type": "function_call", "call_id": "b", "name": "ping", "arguments": ""}),
            json!({"type": "function_call_output", "call_id": "a", "output": "one"}),
            json!({"type": "function_call_output", "call_id": "b", "output": "pong"}),
        ]
    );
}

#[test]
fn arguments_that_are_no_object_come_back() {
    for (raw, input) in [
        ("{\"cut", json!({RAW_ARGUMENTS: "{\"cut"})),
        ("[1, 2]", json!({RAW_ARGUMENTS: "[1, 2]"})),
        (" ", json!({})),
        ("{\"n\": 12345678901234567890123}", json!({"n": 0})),
    ] {
        let messages = [
            user("go"),
            calls(&[call("a", "look", raw)]),
            result("a", "x"),
        ];
        for target in ALTERNATING {
            let found = run(OPENAI, target, &messages);
            check(target, &found);
            let is_wrapped = input.get(RAW_ARGUMENTS).is_some();
            let expected: &[_] = if is_wrapped {
                &[(Some(1), LossKind::Arguments)]
            } else {
                &[]
            };
            assert_eq!(kinds(&found), expected);
            let text = json!(found.messages).to_string();
            if raw.contains("123") {
                assert!(text.contains("12345678901234567890123"));
            } else {
                assert!(text.contains(&input.to_string()), "{text}");
            }
            let back = run(target, OPENAI, &found.messages);
            let arguments = &back.messages[1]["tool_calls"][0]["function"]["arguments"];
            let expected = match raw {
                " " => "{}",
                raw if is_wrapped => raw,
                _ => "{\"n\":12345678901234567890123}",
            };
            assert_eq!(arguments, expected);
        }
    }
    // Too deep for a message around it.
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(110), "]".repeat(110));
    let messages = [
        user("go"),
        calls(&[call("a", "look", &deep)]),
        result("a", "x"),
    ];
    let found = run(OPENAI, ANTHROPIC, &messages);
    check(ANTHROPIC, &found);
    assert_eq!(kinds(&found), [(Some(1), LossKind::Arguments)]);
}

#[test]
fn ids_become_ones_that_all_take() {
    let long = "call_".repeat(12);
    let messages = [
        user("go"),
        calls(&[
            call("x", "look", "{}"),
            call("x", "look", "{}"),
            call("a b|c", "look", "{}"),
        ]),
        result("x", "first"),
        result("a b|c", "third"),
        result("x", "second"),
        calls(&[
            call("x", "look", "{}"),
            call(&long, "look", "{}"),
            call("", "look", "{}"),
        ]),
        result("", "sixth"),
        result(&long, "fifth"),
        result("x", "fourth"),
    ];
    for target in [RESPONSES, ANTHROPIC, GEMINI, BEDROCK] {
        let found = clean(OPENAI, target, &messages);
        let results = said(target, &found)
            .into_iter()
            .filter_map(|said| match said {
                Said::Result(text) => Some(text),
                _ => None,
            });
        let results: Vec<String> = results.collect();
        assert_eq!(
            results,
            ["first", "second", "third", "fourth", "fifth", "sixth"]
        );
    }
    let ids = read_all(ANTHROPIC, &clean(OPENAI, ANTHROPIC, &messages));
    let ids: Vec<String> = ids
        .iter()
        .flat_map(|message| self::ids(message, PartKind::Call))
        .collect();
    assert_eq!(ids[..4], ["x", "x_2", "a_b_c", "x_3"]);
    assert_eq!((ids[4].as_str(), ids[5].as_str()), (&long[..40], "call_5"));
}

#[test]
fn damage_is_mended_by_position() {
    let messages = [
        result("z", "whose?"),
        calls(&[call("a", "look", "{}"), call("b", "look", "{}")]),
        user("wait"),
        result("b", "late"),
        result("b", "again"),
    ];
    let found = run(OPENAI, ANTHROPIC, &messages);
    check(ANTHROPIC, &found);
    assert_eq!(
        kinds(&found),
        [
            (Some(0), LossKind::StrayResult),
            (Some(1), LossKind::Placeholder),
            (Some(4), LossKind::StrayResult),
        ]
    );
    let text = json!(found.messages).to_string();
    for piece in [
        "whose?",
        "late",
        "again",
        "[no result: the call was interrupted]",
    ] {
        assert!(text.contains(piece), "{piece}");
    }
    let found = run(
        OPENAI,
        BEDROCK,
        &[json!({"role": "assistant", "content": "Hello."})],
    );
    check(BEDROCK, &found);
    assert_eq!(found.messages[0]["content"][0]["text"], NO_USER_MESSAGE);
    assert_eq!(kinds(&found), [(Some(0), LossKind::Placeholder)]);
}

#[test]
fn legacy_and_custom_calls() {
    let messages = [
        user("go"),
        json!({"role": "assistant", "content": null,
            "function_call": {"name": "look", "arguments": "{\"n\":1}"}}),
        json!({"role": "function", "name": "look", "content": "one"}),
        json!({"role": "assistant", "tool_calls": [
            {"id": "p", "type": "custom", "custom": {"name": "patch", "input": "*** free"}}]}),
        result("p", "done"),
    ];
    let items = clean(OPENAI, RESPONSES, &messages);
    assert_eq!(
        items[3..],
        [
            json!({"type": "custom_tool_call", "call_id": "p", "name": "patch", "input": "*** free"}),
            json!({"type": "custom_tool_call_output", "call_id": "p", "output": "done"}),
        ]
    );
    let back = clean(RESPONSES, OPENAI, &items);
    assert_eq!(back[3]["tool_calls"][0]["custom"]["input"], "*** free");
    assert_eq!(back[1]["tool_calls"][0]["id"], "call_0");
    let found = run(OPENAI, ANTHROPIC, &messages);
    check(ANTHROPIC, &found);
    assert_eq!(kinds(&found), [(Some(3), LossKind::CallKind)]);
    assert_eq!(
        found.messages[3]["content"][0]["input"],
        json!({"input": "*** free"})
    );
}

#[test]
fn hosted_calls_become_functions() {
    let screen =
        json!({"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="});
    let items = [
        json!({"role": "user", "content": "go"}),
        json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "SECRET"}),
        json!({"type": "computer_call", "id": "cu_1", "call_id": "c", "action": {"type": "screenshot"}}),
        json!({"type": "computer_call_output", "call_id": "c", "output": screen}),
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed",
            "action": {"type": "search", "query": "cats", "encrypted_content": "SECRET"}}),
        json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "SECRET"}),
    ];
    let found = run(RESPONSES, ANTHROPIC, &items);
    check(ANTHROPIC, &found);
    assert_eq!(
        kinds(&found),
        [
            (Some(1), LossKind::Reasoning),
            (Some(2), LossKind::CallKind),
            (Some(4), LossKind::Opaque),
            (Some(5), LossKind::Opaque),
        ]
    );
    assert_eq!(
        found.messages[1]["content"][0],
        json!({"type": "tool_use", "id": "c", "name": "computer", "input": {"action": {"type": "screenshot"}}})
    );
    assert_eq!(
        found.messages[2]["content"][0]["content"][0]["source"]["data"],
        "iVBORw0KGgo="
    );
    let searched = found.messages[3]["content"].as_str().unwrap();
    assert!(searched.starts_with("[web_search_call] {") && searched.contains("cats"));
}

/// The same picture in the five forms.
fn pictures() -> [(Dialect, Json); 5] {
    let data = "iVBORw0KGgo=";
    let url = format!("data:image/png;base64,{data}");
    [
        (
            OPENAI,
            json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}}),
        ),
        (
            RESPONSES,
            json!({"type": "input_image", "image_url": url, "detail": "low"}),
        ),
        (
            ANTHROPIC,
            json!({"type": "image", "source": {
            "type": "base64", "media_type": "image/png", "data": data}}),
        ),
        (
            GEMINI,
            json!({"inlineData": {"mimeType": "image/png", "data": data}}),
        ),
        (
            BEDROCK,
            json!({"image": {"format": "png", "source": {"bytes": data}}}),
        ),
    ]
}

fn said_by_user(dialect: Dialect, block: &Json) -> Json {
    let text = match dialect {
        OPENAI | ANTHROPIC => json!({"type": "text", "text": "Look:"}),
        RESPONSES => json!({"type": "input_text", "text": "Look:"}),
        _ => json!({"text": "Look:"}),
    };
    let key = if dialect == GEMINI {
        "parts"
    } else {
        "content"
    };
    json!({"role": "user", key: [text, block]})
}

#[test]
fn pictures_in_every_direction() {
    for (source, picture) in pictures() {
        for (target, mut expected) in pictures() {
            if source == target {
                continue;
            }
            let has_detail = [OPENAI, RESPONSES].contains(&source);
            if !has_detail && target == OPENAI {
                expected["image_url"]
                    .as_object_mut()
                    .unwrap()
                    .remove("detail");
            } else if !has_detail && target == RESPONSES {
                expected.as_object_mut().unwrap().remove("detail");
            }
            let found = clean(source, target, &[said_by_user(source, &picture)]);
            assert_eq!(
                found,
                [said_by_user(target, &expected)],
                "{source} to {target}"
            );
        }
    }
}

#[test]
fn other_media() {
    let web = json!({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}});
    let sound =
        json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}});
    let paper = json!({"type": "file", "file": {"filename": "Q3 report, final.pdf",
        "file_data": "data:application/pdf;base64,JVBERi0="}});
    let stored = json!({"type": "file", "file": {"file_id": "file-1"}});
    for (block, target, expected) in [
        (
            &web,
            ANTHROPIC,
            Ok(json!({"type": "image", "source": {
            "type": "url", "url": "https://example.org/a.png"}})),
        ),
        (
            &web,
            RESPONSES,
            Ok(json!({"type": "input_image", "image_url": "https://example.org/a.png"})),
        ),
        (
            &web,
            BEDROCK,
            Err("[image left out: https://example.org/a.png]"),
        ),
        (
            &web,
            GEMINI,
            Err("[image left out: https://example.org/a.png]"),
        ),
        (
            &sound,
            GEMINI,
            Ok(json!({"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}})),
        ),
        (
            &sound,
            BEDROCK,
            Ok(json!({"audio": {"format": "wav", "source": {"bytes": "UklGRg=="}}})),
        ),
        (&sound, ANTHROPIC, Err("[audio left out: audio/wav]")),
        (
            &paper,
            ANTHROPIC,
            Ok(json!({"type": "document", "source": {
            "type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
            "title": "Q3 report, final.pdf"})),
        ),
        (
            &paper,
            BEDROCK,
            Ok(
                json!({"document": {"format": "pdf", "name": "Q3 report final pdf",
            "source": {"bytes": "JVBERi0="}}}),
            ),
        ),
        (
            &paper,
            RESPONSES,
            Ok(
                json!({"type": "input_file", "filename": "Q3 report, final.pdf",
            "file_data": "data:application/pdf;base64,JVBERi0="}),
            ),
        ),
        (&stored, ANTHROPIC, Err("[document left out: file file-1]")),
    ] {
        let found = run(OPENAI, target, &[said_by_user(OPENAI, block)]);
        check(target, &found);
        match expected {
            Ok(expected) => {
                assert_eq!(found.losses, []);
                assert_eq!(found.messages, [said_by_user(target, &expected)]);
            }
            Err(note) => {
                assert_eq!(found.losses.len(), 1, "{target}");
                assert!(json!(found.messages).to_string().contains(note), "{target}");
            }
        }
    }
    // A text document is text wherever there is no form for it.
    let notes = json!({"type": "document", "title": "Notes", "source": {
        "type": "text", "media_type": "text/plain", "data": "Buy milk."}});
    let found = run(ANTHROPIC, OPENAI, &[said_by_user(ANTHROPIC, &notes)]);
    assert_eq!(
        found.messages[0]["content"][1]["text"],
        "[document: Notes]\nBuy milk."
    );
    let notes = json!({"inline_data": {"mime_type": "text/plain", "data": "QnV5IG1pbGsu"}});
    let found = clean(GEMINI, ANTHROPIC, &[said_by_user(GEMINI, &notes)]);
    assert_eq!(found[0]["content"][1]["source"]["data"], "Buy milk.");
    // Two documents of one name, and none without a text.
    let paper = json!({"type": "document", "source": {
        "type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}});
    let found = clean(
        ANTHROPIC,
        BEDROCK,
        &[json!({"role": "user", "content": [paper, paper]})],
    );
    let content = &found[0]["content"];
    assert_eq!(content[0], json!({"text": "[document]"}));
    assert_eq!(content[1]["document"]["name"], "document");
    assert_eq!(content[2]["document"]["name"], "document 2");
}

#[test]
fn media_in_results() {
    let messages = [
        user("go"),
        json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "a", "name": "shot", "input": {}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": true,
            "content": [{"type": "text", "text": "here"}, pictures()[2].1]}]}),
    ];
    let bedrock = clean(ANTHROPIC, BEDROCK, &messages);
    assert_eq!(
        bedrock[2]["content"][0]["toolResult"],
        json!({"toolUseId": "a", "content": [{"text": "here"}, pictures()[4].1], "status": "error"})
    );
    assert_eq!(clean(BEDROCK, ANTHROPIC, &bedrock)[2], messages[2]);
    let chat = run(ANTHROPIC, OPENAI, &messages);
    check(OPENAI, &chat);
    assert_eq!(
        kinds(&chat),
        [(Some(2), LossKind::Image), (Some(2), LossKind::ErrorFlag)]
    );
    assert_eq!(chat.messages[2], result("a", "here"));
    assert_eq!(chat.messages[3]["role"], "user");
    let gemini = run(ANTHROPIC, GEMINI, &messages);
    check(GEMINI, &gemini);
    assert_eq!(kinds(&gemini), [(Some(2), LossKind::Image)]);
    let parts = &gemini.messages[2]["parts"];
    assert_eq!(
        parts[0]["functionResponse"]["response"],
        json!({"error": "here"})
    );
    assert_eq!(parts[1], pictures()[3].1);
    // Gemini's own results may hold media.
    let own = [
        gemini.messages[1].clone(),
        json!({"role": "user", "parts": [{"functionResponse": {"id": "a", "name": "shot",
            "response": {"output": "here"}, "parts": [pictures()[3].1]}}]}),
    ];
    let found = run(GEMINI, ANTHROPIC, &own);
    check(ANTHROPIC, &found);
    assert_eq!(
        found.messages[2]["content"][0]["content"][1],
        pictures()[2].1
    );
}

#[test]
fn responses_of_gemini_come_back_as_they_were() {
    let responses = [
        json!({"output": "x"}),
        json!({"output": ["x", "y"]}),
        json!({"output": {"a": 1}}),
        json!({"result": "x"}),
        json!({"temperature": 21.50, "unit": "C"}),
        json!({"error": "gone"}),
        json!({"error": {"code": 5}}),
        json!({}),
    ];
    for response in responses {
        let messages = [
            json!({"role": "user", "parts": [{"text": "go"}]}),
            json!({"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}),
            json!({"role": "user", "parts": [
                {"functionResponse": {"name": "look", "response": response}}]}),
        ];
        for target in [ANTHROPIC, BEDROCK] {
            let found = clean(GEMINI, target, &messages);
            let back = clean(target, GEMINI, &found);
            assert_eq!(
                back[2]["parts"][0]["functionResponse"]["response"], response,
                "{target}"
            );
        }
    }
    // Text that happens to be JSON keeps its bytes.
    for text in [
        "{\"a\": 1}",
        "{\"a\":1}",
        "{\"output\":\"x\"}",
        "{\"error\":\"x\"}",
        "[1]",
        "",
    ] {
        let messages = [
            user("go"),
            calls(&[call("a", "look", "{}")]),
            result("a", text),
        ];
        let back = clean(GEMINI, OPENAI, &clean(OPENAI, GEMINI, &messages));
        assert_eq!(back[2], messages[2], "{text}");
    }
}

#[test]
fn refusals_names_and_marks() {
    let messages = [
        json!({"role": "user", "name": "kim", "content": [
            {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}),
        json!({"role": "assistant", "content": null, "refusal": "No."}),
    ];
    let items = run(OPENAI, RESPONSES, &messages);
    assert_eq!(
        kinds(&items),
        [(Some(0), LossKind::CacheMark), (Some(0), LossKind::Name)]
    );
    assert_eq!(
        items.messages[1]["content"],
        json!([{"type": "refusal", "refusal": "No."}])
    );
    assert_eq!(clean(RESPONSES, OPENAI, &items.messages)[1], messages[1]);
    let found = run(OPENAI, ANTHROPIC, &messages);
    assert_eq!(found.losses.last().unwrap().kind, LossKind::Refusal);
    assert_eq!(found.messages[1]["content"][0]["text"], "No.");
}

#[test]
fn blank_messages_go() {
    let messages = [
        user("hi"),
        json!({"role": "assistant", "content": ""}),
        user("   "),
        json!({"role": "assistant", "content": "yo  "}),
    ];
    let found = run(OPENAI, ANTHROPIC, &messages);
    check(ANTHROPIC, &found);
    assert_eq!(
        found.messages,
        [user("hi"), json!({"role": "assistant", "content": "yo"})]
    );
    assert_eq!(
        kinds(&found),
        [
            (Some(1), LossKind::EmptyMessage),
            (Some(2), LossKind::Blank),
            (Some(2), LossKind::EmptyMessage),
            (Some(3), LossKind::Blank),
        ]
    );
}

#[test]
fn server_blocks_of_anthropic() {
    let messages = [
        user("go"),
        json!({"role": "assistant", "content": [
            {"type": "redacted_thinking", "data": "SECRET"},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "cats"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
                {"type": "web_search_result", "title": "Cats", "url": "https://example.org", "encrypted_content": "SECRET"}]},
            {"type": "text", "text": "Cats.", "citations": [{"encrypted_index": "SECRET"}]},
            {"type": "compaction", "content": "So far: cats."}]}),
    ];
    for target in [OPENAI, RESPONSES, GEMINI, BEDROCK] {
        let found = run(ANTHROPIC, target, &messages);
        check(target, &found);
        let text = json!(found.messages).to_string();
        for piece in [
            "web_search",
            "https://example.org",
            "Cats.",
            "So far: cats.",
        ] {
            assert!(text.contains(piece), "{target}: {piece}");
        }
        let kinds: Vec<LossKind> = found.losses.iter().map(|loss| loss.kind).collect();
        assert_eq!(
            kinds,
            [
                LossKind::Citations,
                LossKind::Opaque,
                LossKind::Opaque,
                LossKind::Opaque,
                LossKind::Reasoning,
            ]
        );
    }
}

fn definitions(source: Dialect, target: Dialect, tools: &Json) -> Converted {
    let none: [&Json; 0] = [];
    convert(source, target, &none, None, Some(&tools)).unwrap()
}

#[test]
fn tools_in_every_direction() {
    let schema =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let forms = [
        (
            OPENAI,
            json!([{"type": "function", "function": {
            "name": "look", "description": "Looks.", "parameters": schema}}]),
        ),
        (
            RESPONSES,
            json!([{"type": "function", "name": "look", "description": "Looks.",
            "parameters": schema, "strict": false}]),
        ),
        (
            ANTHROPIC,
            json!([{"name": "look", "description": "Looks.", "input_schema": schema}]),
        ),
        (
            GEMINI,
            json!([{"functionDeclarations": [
            {"name": "look", "description": "Looks.", "parameters": schema}]}]),
        ),
        (
            BEDROCK,
            json!([{"toolSpec": {"name": "look", "description": "Looks.",
            "inputSchema": {"json": schema}}}]),
        ),
    ];
    for (source, tools) in &forms {
        for (target, expected) in &forms {
            if source != target {
                let found = definitions(*source, *target, tools);
                assert_eq!(found.tools.as_ref(), Some(expected), "{source} to {target}");
                assert_eq!(found.losses, [], "{source} to {target}");
            }
        }
    }
    let config = json!({"tools": forms[4].1, "toolChoice": {"auto": {}}});
    let found = definitions(BEDROCK, OPENAI, &config);
    assert_eq!(found.tools.as_ref(), Some(&forms[0].1));
    assert_eq!(kinds(&found), [(None, LossKind::ToolOption)]);
}

#[test]
fn tools_of_servers_are_listed() {
    for (source, tools, names) in [
        (
            ANTHROPIC,
            json!([{"type": "web_search_20250305", "name": "web_search"}]),
            ["web_search_20250305"],
        ),
        (
            RESPONSES,
            json!([{"type": "code_interpreter", "container": {"type": "auto"}}]),
            ["code_interpreter"],
        ),
        (GEMINI, json!([{"googleSearch": {}}]), ["googleSearch"]),
    ] {
        let found = definitions(source, BEDROCK, &tools);
        assert_eq!(found.tools, None);
        let details: Vec<&str> = found
            .losses
            .iter()
            .map(|loss| loss.detail.as_str())
            .collect();
        assert_eq!(details, names);
        assert_eq!(kinds(&found), [(None, LossKind::ServerTool)]);
    }
}

#[test]
fn custom_tools_take_an_input() {
    let custom = json!([{"type": "custom", "custom": {"name": "patch", "format": {
        "type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}}}}]);
    let found = definitions(OPENAI, RESPONSES, &custom);
    let flat = json!([{"type": "custom", "name": "patch",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}}]);
    assert_eq!(found.tools.as_ref(), Some(&flat));
    assert_eq!(
        definitions(RESPONSES, OPENAI, &flat).tools,
        Some(custom.clone())
    );
    let found = definitions(OPENAI, ANTHROPIC, &custom);
    assert_eq!(
        found.tools.unwrap()[0]["input_schema"]["required"],
        json!(["input"])
    );
}

#[test]
fn names_of_tools_are_the_same_in_definition_and_call() {
    let long = "a.b/".repeat(30);
    let tools = json!([{"functionDeclarations": [{"name": "fs.read"}, {"name": "fs_read"}, {"name": long}]}]);
    let messages = [
        json!({"role": "user", "parts": [{"text": "go"}]}),
        json!({"role": "model", "parts": [{"functionCall": {"name": "fs_read"}}, {"functionCall": {"name": "fs.read"}}]}),
        json!({"role": "user", "parts": [{"functionResponse": {"name": "fs_read"}}, {"functionResponse": {"name": "fs.read"}}]}),
    ];
    let nodes: Vec<&Json> = messages.iter().collect();
    let found = convert(GEMINI, OPENAI, &nodes, None, Some(&&tools)).unwrap();
    check(OPENAI, &found);
    let tools = found.tools.unwrap();
    let names: Vec<&str> = (0..3)
        .map(|at| tools[at]["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..2], ["fs_read", "fs_read_2"]);
    assert_eq!(names[2].len(), 64);
    let calls = &found.messages[1]["tool_calls"];
    assert_eq!(calls[0]["function"]["name"], "fs_read_2");
    assert_eq!(calls[1]["function"]["name"], "fs_read");
}

#[test]
fn schemas_for_gemini() {
    let schema = json!({
        "type": "object",
        "$defs": {
            "place": {"type": "object", "properties": {"city": {"type": "string", "format": "uri"}}},
            "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}},
        },
        "properties": {
            "where": {"$ref": "#/$defs/place", "description": "Where to look."},
            "tree": {"$ref": "#/$defs/node"},
            "count": {"type": ["integer", "null"], "exclusiveMinimum": 0},
            "mode": {"const": "fast"},
            "level": {"enum": [1, 2]},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["where", "gone"],
        "additionalProperties": false,
    });
    let tools = json!([{"name": "look", "input_schema": schema}]);
    let found = definitions(ANTHROPIC, GEMINI, &tools);
    assert_eq!(
        found.tools.unwrap()[0]["functionDeclarations"][0]["parameters"],
        json!({
            "type": "object",
            "properties": {
                "where": {"type": "object", "properties": {"city": {"type": "string"}},
                    "description": "Where to look."},
                "tree": {"type": "object", "properties": {"next": {"type": "object"}}},
                "count": {"type": "integer", "nullable": true},
                "mode": {"enum": ["fast"], "type": "string"},
                "level": {},
                "either": {"nullable": true, "type": "string"},
            },
            "required": ["where"],
        })
    );
    let dropped: Vec<&str> = found
        .losses
        .iter()
        .map(|loss| loss.detail.as_str())
        .collect();
    assert_eq!(
        dropped,
        [
            "$ref",
            "additionalProperties",
            "enum",
            "exclusiveMinimum",
            "format"
        ]
    );
    // References that multiply end.
    let mut definitions_of = serde_json::Map::new();
    for level in 0..20 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        let both = json!({"type": "object", "properties": {"a": next, "b": next}});
        definitions_of.insert(format!("d{level}"), both);
    }
    let schema = json!({"$defs": definitions_of, "properties": {"root": {"$ref": "#/$defs/d0"}}});
    let found = definitions(
        ANTHROPIC,
        GEMINI,
        &json!([{"name": "look", "input_schema": schema}]),
    );
    assert!(json!(found.tools).to_string().len() < 2_000_000);
    // And back, from Gemini's words.
    let tools = json!([{"functionDeclarations": [{"name": "look", "parameters": {"type": "OBJECT",
        "properties": {"a": {"type": "ARRAY", "minItems": "1", "items": {"type": "STRING", "nullable": true}}}}}]}]);
    let found = definitions(GEMINI, OPENAI, &tools);
    assert_eq!(
        found.tools.unwrap()[0]["function"]["parameters"],
        json!({"type": "object", "properties": {
            "a": {"type": "array", "minItems": 1, "items": {"type": ["string", "null"]}}}})
    );
}

#[test]
fn what_cannot_be_read_is_an_error_with_its_index() {
    let messages = [user("hi"), json!({"role": "critic", "content": "boo"})];
    let nodes: Vec<&Json> = messages.iter().collect();
    let error = convert(OPENAI, GEMINI, &nodes, None, None).unwrap_err();
    assert_eq!((error.code(), error.index()), ("invalid_message", Some(1)));
    let tools = json!("look");
    let error = convert(OPENAI, GEMINI, &nodes[..1], None, Some(&&tools)).unwrap_err();
    assert_eq!(error.code(), "invalid_message");
}
