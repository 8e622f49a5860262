//! Lint: one row per rule of what breaks it, with neighbours that are valid.

use std::slice::from_ref;

use satchel_core::dialect::lint::{Request, Rule, check, lint};
use satchel_core::dialect::{Dialect, Traits};
use serde_json::{Value, json};

use crate::lint::{anthropic, assistant, calls, codes, joined, result, results, text, user, uses};

fn marked(ttl: &str) -> Value {
    let mark = json!({"type": "ephemeral", "ttl": ttl});
    json!({"type": "text", "text": "x", "cache_control": mark})
}

fn said(blocks: &[Value]) -> Value {
    json!({"role": "assistant", "content": blocks})
}

fn thought() -> Value {
    json!({"type": "thinking", "thinking": "hm", "signature": "s"})
}

/// A call of a server tool and its result.
fn searched() -> [Value; 2] {
    let call = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"});
    let result =
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    [call, result]
}

fn has_rows(dialect: Dialect, rows: &[(&str, Value)]) {
    for (code, history) in rows {
        let found = codes(dialect, history);
        assert!(
            found.iter().any(|(one, _)| one == code),
            "{code}: {history} gives {found:?}"
        );
    }
}

#[test]
fn rules_of_blocks() {
    let [server, found] = searched();
    let unsigned = json!({"type": "thinking", "thinking": "hm"});
    let rows = [
        (
            "an4_invalid_id",
            json!([user("hi"), uses(&["a b"]), results(&["a b"])]),
        ),
        (
            "an4_repeated_id",
            json!([
                user("hi"),
                uses(&["a"]),
                results(&["a"]),
                uses(&["a"]),
                results(&["a"])
            ]),
        ),
        (
            "an5_pending_server_tool",
            json!([user("hi"), said(from_ref(&server)), user("go on")]),
        ),
        (
            "an5_pending_server_tool",
            json!([user("hi"), said(from_ref(&found)), user("go on")]),
        ),
        (
            "an7_reasoning_not_first",
            json!([user("hi"), said(&[text("x"), thought()])]),
        ),
        (
            "an8_unsigned_reasoning",
            json!([user("hi"), said(&[unsigned, text("x")]), user("y")]),
        ),
        (
            "reasoning_only",
            json!([user("hi"), said(&[thought()]), user("y")]),
        ),
        ("an12_trailing_space", json!([user("hi"), assistant("so ")])),
        (
            "an14_too_many_marks",
            json!([joined(&vec![marked("5m"); 5])]),
        ),
        (
            "an15_mark_order",
            json!([joined(&[marked("5m"), marked("1h")])]),
        ),
        (
            "an16_system_position",
            json!([user("hi"), assistant("x"), {"role": "system", "content": "y"}]),
        ),
        (
            "an17_many_images",
            json!([joined(&vec![json!({"type": "image", "source": {}}); 21])]),
        ),
        (
            "an20_empty_compaction",
            json!([
                user("hi"),
                said(&[json!({"type": "compaction", "content": ""}), text("x")]),
                user("y")
            ]),
        ),
        (
            "missing_id",
            json!([user("hi"), uses(&[""]), results(&[""])]),
        ),
    ];
    has_rows(Dialect::Anthropic, &rows);
}

#[test]
fn blocks_that_break_no_rule() {
    let [server, found] = searched();
    let sound = [
        json!([
            user("hi"),
            said(&[server.clone(), found.clone(), text("x")]),
            user("go on")
        ]),
        // Paused: only results come before the rest of the answer.
        json!([
            user("hi"),
            said(&[server, uses(&["a"])["content"][0].clone()]),
            results(&["a"]),
            said(&[found, text("x")])
        ]),
        json!([
            user("hi"),
            said(&[thought()]),
            said(&[text("x")]),
            user("y")
        ]),
        json!([joined(&[marked("1h"), marked("5m")])]),
        json!([user("hi"), {"role": "system", "content": "y"}, assistant("x")]),
    ];
    for history in sound {
        let mut found = anthropic(&history);
        found.retain(|(code, _)| *code != "same_role");
        assert_eq!(found, [], "{history}");
    }
}

#[test]
fn rules_of_some_models() {
    let check = |dialect, messages: &[Value], set: fn(&mut Traits)| {
        let mut traits = Traits::default();
        set(&mut traits);
        let messages: Vec<&Value> = messages.iter().collect();
        let request = Request {
            messages: &messages,
            system: None,
            tools: None,
            traits,
            previous: None,
            same_prompt: true,
        };
        let found = check(dialect, &request);
        found
            .into_iter()
            .map(|one| one.rule.entry().code)
            .collect::<Vec<_>>()
    };
    let prefill = [user("hi"), assistant("so")];
    assert_eq!(check(Dialect::Anthropic, &prefill, |_| {}), [""; 0]);
    assert_eq!(
        check(Dialect::Anthropic, &prefill, |traits| traits.no_prefill =
            true),
        ["an13_prefill"]
    );
    let lost = [user("hi"), calls(&["a"]), result("a")];
    assert_eq!(
        check(Dialect::OpenAi, &lost, |traits| traits
            .reasoning_with_calls =
            true),
        ["oc5_lost_reasoning"]
    );
    let content = |role: &str, part: Value| json!({"role": role, "parts": [part]});
    let contents = [
        content("user", json!({"text": "hi"})),
        content("model", json!({"functionCall": {"name": "f", "args": {}}})),
        content(
            "user",
            json!({"functionResponse": {"name": "f", "response": {}}}),
        ),
    ];
    assert_eq!(
        check(Dialect::Gemini, &contents, |traits| traits.signed_calls =
            true),
        ["ge4_lost_signature"]
    );
    assert_eq!(check(Dialect::Gemini, &contents, |_| {}), [""; 0]);
}

#[test]
fn what_the_request_before_says() {
    let said = said(&[thought(), text("x")]);
    let before = [user("hi"), said.clone()];
    let codes = |messages: &[Value], bound: bool, same_prompt: bool| {
        let messages: Vec<&Value> = messages.iter().collect();
        let previous: Vec<&Value> = before.iter().collect();
        let traits = Traits {
            prefix_bound_reasoning: bound,
            ..Traits::default()
        };
        let request = Request {
            messages: &messages,
            system: None,
            tools: None,
            traits,
            previous: Some(&previous),
            same_prompt,
        };
        let found = check(Dialect::Anthropic, &request);
        found
            .into_iter()
            .map(|one| one.rule.entry().code)
            .collect::<Vec<_>>()
    };
    let grown = [user("hi"), said.clone(), user("go on")];
    assert_eq!(codes(&grown, true, true), [""; 0]);
    assert_eq!(codes(&grown, true, false), ["an9_changed_prefix"]);
    let edited = [user("hello"), said.clone(), user("go on")];
    assert_eq!(codes(&edited, true, true), ["an9_changed_prefix"]);
    assert_eq!(codes(&edited, false, true), [""; 0]);
    // Cache marks are not compared.
    let mark = json!({"type": "ephemeral"});
    let blocks = |marked: bool| {
        let mut block = text("hi");
        if marked {
            block["cache_control"] = mark.clone();
        }
        joined(&[block])
    };
    let marked = [blocks(true), said.clone()];
    let plain = [blocks(false), said.clone()];
    let [marked, plain] = [&marked, &plain].map(|side| side.iter().collect::<Vec<_>>());
    let traits = Traits {
        prefix_bound_reasoning: true,
        ..Traits::default()
    };
    let request = Request {
        messages: &marked,
        system: None,
        tools: None,
        traits,
        previous: Some(&plain),
        same_prompt: true,
    };
    assert_eq!(check(Dialect::Anthropic, &request), []);
    // The newest reasoning as it came, or not at all changed.
    let other = json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm?", "signature": "s"}, text("x")]});
    assert_eq!(
        codes(&[user("hi"), other, user("go on")], false, true),
        ["an6_changed_reasoning"]
    );
}

#[test]
fn the_single_call_of_old_has_results_of_its_own() {
    let old = json!({"role": "assistant", "content": null,
        "function_call": {"name": "f", "arguments": "{}"}});
    let function = json!({"role": "function", "name": "f", "content": "x"});
    let found = |messages: Value| {
        let found = codes(Dialect::OpenAi, &messages);
        found.into_iter().map(|(code, _)| code).collect::<Vec<_>>()
    };
    assert_eq!(found(json!([user("hi"), old, function])), [""; 0]);
    let mixed = ["oc1_unanswered_call", "oc2_orphan_result"];
    assert_eq!(found(json!([user("hi"), calls(&["a"]), function])), mixed);
    let nameless = json!({"role": "tool", "content": "x"});
    assert_eq!(found(json!([user("hi"), old, nameless])), mixed);
}

#[test]
fn rules_of_items() {
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "x"});
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let rows = [
        ("or1_unanswered_call", json!([user("hi"), call("a")])),
        ("or2_orphan_output", json!([user("hi"), output("a")])),
        (
            "or2_orphan_output",
            json!([user("hi"), call("a"), output("a"), output("a")]),
        ),
        (
            "or3_lone_reasoning",
            json!([user("hi"), reasoning, user("go on")]),
        ),
        ("or3_lone_reasoning", json!([user("hi"), reasoning])),
        (
            "or6_repeated_item",
            json!([
                user("hi"),
                reasoning,
                assistant("x"),
                reasoning,
                assistant("y")
            ]),
        ),
        (
            "or7_invalid_item_id",
            json!([user("hi"), {"type": "reasoning", "id": "msg_1", "summary": []}, assistant("x")]),
        ),
        (
            "invalid_id",
            json!([user("hi"), call(&"x".repeat(65)), output(&"x".repeat(65))]),
        ),
        (
            "outputs_apart",
            json!([user("hi"), call("a"), user("wait"), output("a")]),
        ),
        ("blank_text", json!([user(" ")])),
    ];
    has_rows(Dialect::Responses, &rows);
    let sound = [
        json!([
            user("hi"),
            reasoning,
            call("a"),
            call("b"),
            output("b"),
            output("a"),
            assistant("x")
        ]),
        // What the server has stored may hold the call.
        json!([{"type": "item_reference", "id": "fc_9"}, output("a"), user("go on")]),
        json!([
            user("hi"),
            {"type": "tool_search_call", "call_id": null, "execution": "server", "arguments": {}},
            {"type": "tool_search_output", "call_id": null, "execution": "server", "tools": []},
            user("go on")
        ]),
        json!([user("hi"), {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "arguments": "{}", "server_label": "s"}]),
    ];
    for history in sound {
        assert_eq!(codes(Dialect::Responses, &history), [], "{history}");
    }
}

#[test]
fn rules_of_contents() {
    let part = |role: &str, parts: &[&Value]| json!({"role": role, "parts": parts});
    let (hi, call) = (
        json!({"text": "hi"}),
        json!({"functionCall": {"name": "f", "args": {}}}),
    );
    let response = json!({"functionResponse": {"name": "f", "response": {}}});
    let user = |parts: &[&Value]| part("user", parts);
    let model = |parts: &[&Value]| part("model", parts);
    let rows = [
        (
            "ge1_call_position",
            json!([model(&[&call]), user(&[&response])]),
        ),
        (
            "ge1_call_position",
            json!([
                user(&[&hi]),
                model(&[&hi]),
                model(&[&call]),
                user(&[&response])
            ]),
        ),
        (
            "ge2_response_position",
            json!([user(&[&hi]), user(&[&response])]),
        ),
        (
            "ge3_response_count",
            json!([user(&[&hi]), model(&[&call, &call]), user(&[&response])]),
        ),
        (
            "ge3_response_count",
            json!([user(&[&hi]), model(&[&call]), user(&[&response, &response])]),
        ),
        ("ge7_empty_content", json!([user(&[])])),
        ("same_role", json!([user(&[&hi]), user(&[&hi])])),
    ];
    has_rows(Dialect::Gemini, &rows);
}

#[test]
fn rules_of_converse() {
    let hi = json!({"text": "hi"});
    let message = |role: &str, blocks: &[&Value]| json!({"role": role, "content": blocks});
    let call = |id: &str| json!({"toolUse": {"toolUseId": id, "name": "f", "input": {}}});
    let answer = |id: &str| json!({"toolResult": {"toolUseId": id, "content": [{"text": "x"}]}});
    let user = |blocks: &[&Value]| message("user", blocks);
    let model = |blocks: &[&Value]| message("assistant", blocks);
    let rows = [
        (
            "br1_unanswered_call",
            json!([user(&[&hi]), model(&[&call("a")]), user(&[&hi])]),
        ),
        ("br2_extra_result", json!([user(&[&answer("a")])])),
        ("br3_first_not_user", json!([model(&[&hi])])),
        ("br4_same_role", json!([user(&[&hi]), user(&[&hi])])),
        ("br5_blank_text", json!([user(&[&json!({"text": " "})])])),
        ("br6_empty_message", json!([user(&[])])),
        (
            "invalid_id",
            json!([
                user(&[&hi]),
                model(&[&call("a b")]),
                user(&[&answer("a b")])
            ]),
        ),
    ];
    has_rows(Dialect::Bedrock, &rows);
    let history = json!([user(&[&hi]), model(&[&call("a")]), user(&[&answer("a")])]);
    assert_eq!(codes(Dialect::Bedrock, &history), []);
    let none = json!([]);
    let nodes: Vec<&Value> = history.as_array().unwrap().iter().collect();
    let found = lint(Dialect::Bedrock, nodes, None, Some(&&none));
    assert!(
        found
            .iter()
            .any(|one| one.rule == Rule::Br7ToolsNotDeclared)
    );
}

/// A response without an id is that of a call without one; a call whose id a later response names
/// waits for it.
#[test]
fn gemini_responses_with_and_without_ids() {
    let call = |id: Option<&str>| match id {
        Some(id) => json!({"functionCall": {"id": id, "name": "f", "args": {}}}),
        None => json!({"functionCall": {"name": "f", "args": {}}}),
    };
    let response = |id: Option<&str>| match id {
        Some(id) => json!({"functionResponse": {"id": id, "name": "f", "response": {}}}),
        None => json!({"functionResponse": {"name": "f", "response": {}}}),
    };
    for (calls, responses) in [
        ([Some("a"), None], [None, Some("a")]),
        ([None, Some("a")], [None, Some("a")]),
        ([Some("a"), None], [Some("a"), None]),
        ([Some("a"), Some("b")], [Some("b"), None]),
    ] {
        let messages = json!([
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": calls.map(call)},
            {"role": "user", "parts": responses.map(response)},
        ]);
        assert_eq!(
            codes(Dialect::Gemini, &messages),
            [],
            "{calls:?} {responses:?}"
        );
    }
}
