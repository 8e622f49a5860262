//! Conversion of calls and results: pairing, ids, arguments, kinds.

use satchel_core::dialect::convert::{LossKind, RAW_ARGUMENTS};
use satchel_core::dialect::repair::NO_USER_MESSAGE;
use satchel_core::message::PartKind;
use serde_json::{Value as Json, json};

use crate::convert::{
    ALTERNATING, ANTHROPIC, BEDROCK, GEMINI, OPENAI, RESPONSES, Said, check, clean, kinds,
    read_all, run, said, user,
};

pub fn call(id: &str, name: &str, arguments: &str) -> Json {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

pub fn calls(calls: &[Json]) -> Json {
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

pub fn result(id: &str, content: &str) -> Json {
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
        .flat_map(|message| crate::convert::ids(message, PartKind::Call))
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
fn a_call_that_a_user_made_is_the_assistants() {
    let used = json!({"type": "tool_use", "id": "a", "name": "look", "input": {}});
    let asked = json!({"type": "text", "text": "see"});
    let messages = [
        json!({"role": "user", "content": [asked, used]}),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "row"}]}),
        json!({"role": "assistant", "content": "so"}),
    ];
    for target in [OPENAI, RESPONSES, GEMINI, BEDROCK] {
        for first in 0..2 {
            let found = run(ANTHROPIC, target, &messages[first..]);
            check(target, &found);
        }
    }
    let found = run(ANTHROPIC, GEMINI, &messages);
    let roles: Vec<_> = found.messages.iter().map(|m| m["role"].as_str()).collect();
    assert_eq!(roles, ["user", "model", "user", "model"].map(Some));
    assert_eq!(found.messages[0]["parts"], json!([{"text": "see"}]));
    // Without anything said before it.
    let alone = [json!({"role": "user", "content": [messages[0]["content"][1]]})];
    for target in [OPENAI, RESPONSES, GEMINI, BEDROCK] {
        check(target, &run(ANTHROPIC, target, &alone));
    }
}
