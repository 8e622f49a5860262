//! Lint: one row per rule, its neighbours that are valid, and totality.

use std::collections::BTreeSet;

use proptest::prelude::*;
use satchel_core::dialect::Dialect;
use satchel_core::dialect::lint::{Rule, Severity, lint};
use serde_json::{Value, json};

use crate::dialect::{arb_json, arb_message};

pub fn codes(dialect: Dialect, messages: &Value) -> Vec<(&'static str, Option<usize>)> {
    lint(dialect, messages.as_array().unwrap(), None, None)
        .into_iter()
        .map(|violation| (violation.rule.entry().code, violation.index))
        .collect()
}

/// Without the advice that the user comes first: many rows here are short.
fn openai(messages: &Value) -> Vec<(&'static str, Option<usize>)> {
    let mut found = codes(Dialect::OpenAi, messages);
    found.retain(|(code, _)| !matches!(*code, "starts_without_user" | "no_messages"));
    found
}

pub fn anthropic(messages: &Value) -> Vec<(&'static str, Option<usize>)> {
    codes(Dialect::Anthropic, messages)
}

pub fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

pub fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

pub fn calls(ids: &[&str]) -> Value {
    let calls: Vec<Value> = ids
        .iter()
        .map(|id| json!({"id": id, "function": {"name": "f", "arguments": "{}"}}))
        .collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

pub fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "done"})
}

pub fn uses(ids: &[&str]) -> Value {
    let blocks: Vec<Value> = ids
        .iter()
        .map(|id| json!({"type": "tool_use", "id": id, "name": "f", "input": {}}))
        .collect();
    json!({"role": "assistant", "content": blocks})
}

pub fn results(ids: &[&str]) -> Value {
    let blocks: Vec<Value> = ids
        .iter()
        .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "done"}))
        .collect();
    json!({"role": "user", "content": blocks})
}

pub fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The blocks of several messages as one message of the user.
pub fn joined(blocks: &[Value]) -> Value {
    json!({"role": "user", "content": blocks})
}

fn result_block(id: &str) -> Value {
    results(&[id])["content"][0].clone()
}

#[test]
fn codes_are_unique_and_the_catalogue_is_complete() {
    let codes: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.entry().code).collect();
    assert_eq!(codes.len(), Rule::ALL.len());
    for rule in Rule::ALL {
        let entry = rule.entry();
        assert!(
            entry
                .code
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        );
        assert!(!entry.sentence.is_empty());
        assert!(entry.severity == Severity::Error || entry.provider_error.is_empty());
        assert_eq!(
            entry.id.is_empty(),
            matches!(
                rule,
                Rule::InvalidMessage
                    | Rule::TooDeep
                    | Rule::ArgumentsNotText
                    | Rule::NotJson
                    | Rule::MissingName
                    | Rule::InvalidName
                    | Rule::MissingData
                    | Rule::EmptyCalls
                    | Rule::UnknownPart
                    | Rule::InputNotObject
                    | Rule::MissingOutput
            )
        );
    }
}

#[test]
fn valid_histories_of_openai() {
    let histories = [
        json!([]),
        json!([user("hi")]),
        json!([{"role": "system", "content": "x"}, user("hi"), assistant("ho")]),
        json!([
            user("hi"),
            calls(&["a", "b"]),
            result("b"),
            result("a"),
            assistant("ok")
        ]),
        // Ids come again later.
        json!([
            user("hi"),
            calls(&["a"]),
            result("a"),
            calls(&["a"]),
            result("a")
        ]),
        json!([user("hi"), {"role": "assistant", "refusal": "no"}]),
        json!([user("hi"),
               {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
               {"role": "function", "name": "f", "content": "1"}]),
    ];
    for history in histories {
        assert_eq!(openai(&history), [], "{history}");
    }
}

#[test]
fn oc1_unanswered_calls() {
    let code = "oc1_unanswered_call";
    let rows = [
        (json!([user("hi"), calls(&["a"])]), vec![(code, Some(1))]),
        (
            json!([user("hi"), calls(&["a", "b"]), result("b"), user("go on")]),
            vec![(code, Some(1))],
        ),
        (
            json!([calls(&["a"]), calls(&["b"])]),
            vec![(code, Some(0)), (code, Some(1))],
        ),
        (
            json!([calls(&["a", "a"]), result("a")]),
            vec![(code, Some(0)), ("repeated_id", Some(0))],
        ),
        // At once: a message in between makes the call unanswered and the result an orphan.
        (
            json!([calls(&["a"]), user("wait"), result("a")]),
            vec![(code, Some(0)), ("oc2_orphan_result", Some(2))],
        ),
    ];
    for (history, expected) in rows {
        assert_eq!(openai(&history), expected, "{history}");
    }
    let found = lint(Dialect::OpenAi, &[calls(&["secret", "b"])], None, None);
    assert_eq!(
        found[1].message,
        "call 1 of 2 has no tool message right after"
    );
}

#[test]
fn oc2_orphan_results() {
    let code = "oc2_orphan_result";
    let rows = [
        (json!([user("hi"), result("a")]), vec![(code, Some(1))]),
        (
            json!([calls(&["a"]), result("a"), result("a")]),
            vec![(code, Some(2))],
        ),
        (
            json!([calls(&["a"]), result("a"), result("b")]),
            vec![(code, Some(2))],
        ),
        (
            json!([calls(&["a"]), result("a"), user("x"), result("a")]),
            vec![(code, Some(3))],
        ),
    ];
    for (history, expected) in rows {
        assert_eq!(openai(&history), expected, "{history}");
    }
}

#[test]
fn oc4_missing_content() {
    let code = "oc4_missing_content";
    for message in [
        json!({"role": "assistant", "content": null}),
        json!({"role": "assistant"}),
        json!({"role": "user", "content": null}),
        json!({"role": "system"}),
        json!({"role": "assistant", "content": null, "reasoning_content": "hm"}),
    ] {
        assert_eq!(openai(&json!([message])), [(code, Some(0))], "{message}");
    }
    let no_calls = json!([{"role": "assistant", "content": null, "tool_calls": []}]);
    let expected = [("empty_calls", Some(0)), (code, Some(0))];
    assert_eq!(openai(&no_calls), expected);
    let empty = json!({"role": "tool", "tool_call_id": "a", "content": null});
    assert_eq!(openai(&json!([calls(&["a"]), empty])), [(code, Some(1))]);
}

#[test]
fn valid_histories_of_anthropic() {
    let histories = [
        json!([user("hi"), assistant("ho")]),
        json!([
            user("hi"),
            uses(&["a", "b"]),
            results(&["b", "a"]),
            assistant("ok")
        ]),
        json!([
            user("hi"),
            uses(&["a"]),
            results(&["a"]),
            uses(&["b"]),
            results(&["b"])
        ]),
        json!([user("hi"), {"role": "system", "content": "x"}, {"role": "system", "content": "y"}]),
        // An empty prefill at the end.
        json!([user("hi"), assistant("")]),
        json!([user("hi"), {"role": "assistant", "content": []}]),
    ];
    for history in histories {
        assert_eq!(anthropic(&history), [], "{history}");
    }
}

#[test]
fn an1_unanswered_calls() {
    let code = "an1_unanswered_call";
    let rows = [
        (json!([user("hi"), uses(&["a"])]), vec![(code, Some(1))]),
        (
            json!([user("hi"), uses(&["a", "b"]), results(&["a"])]),
            vec![(code, Some(1))],
        ),
        (
            json!([user("hi"), uses(&["a"]), user("go on")]),
            vec![(code, Some(1))],
        ),
        (
            json!([user("hi"), uses(&["a"]), {"role": "system", "content": "x"}, results(&["a"])]),
            vec![
                (code, Some(1)),
                ("an16_system_position", Some(2)),
                ("an2_orphan_result", Some(3)),
            ],
        ),
        (
            json!([{"role": "user", "content": uses(&["a"])["content"]}]),
            vec![(code, Some(0))],
        ),
    ];
    for (history, expected) in rows {
        assert_eq!(anthropic(&history), expected, "{history}");
    }
}

#[test]
fn an1_results_come_first() {
    let call = uses(&["a"]);
    let before = joined(&[text("wait"), result_block("a")]);
    let after = joined(&[result_block("a"), text("go on")]);
    let expected = [("an1_results_not_first", Some(2))];
    assert_eq!(anthropic(&json!([user("hi"), call, before])), expected);
    let expected = [("text_after_results", Some(2))];
    assert_eq!(anthropic(&json!([user("hi"), call, after])), expected);
}

#[test]
fn runs_of_one_role_are_one_message() {
    let same = "same_role";
    let split = json!([
        user("hi"),
        uses(&["a", "b"]),
        results(&["a"]),
        results(&["b"])
    ]);
    assert_eq!(anthropic(&split), [(same, Some(3))]);
    let calls = json!([user("hi"), uses(&["a"]), uses(&["b"]), results(&["a", "b"])]);
    assert_eq!(anthropic(&calls), [(same, Some(2))]);
    let late = json!([user("hi"), uses(&["a"]), user("wait"), results(&["a"])]);
    assert_eq!(
        anthropic(&late),
        [("an1_results_not_first", Some(3)), (same, Some(3))]
            .into_iter()
            .rev()
            .collect::<Vec<_>>()
    );
}

#[test]
fn an2_orphan_results() {
    let code = "an2_orphan_result";
    let rows = [
        (json!([results(&["a"])]), vec![(code, Some(0))]),
        (
            json!([user("hi"), assistant("ho"), results(&["a"])]),
            vec![(code, Some(2))],
        ),
        (
            json!([user("hi"), uses(&["a"]), results(&["a", "b"])]),
            vec![(code, Some(2))],
        ),
        (
            json!([
                user("hi"),
                uses(&["a"]),
                results(&["a"]),
                assistant("ok"),
                results(&["a"])
            ]),
            vec![(code, Some(4))],
        ),
        (
            json!([user("hi"), {"role": "assistant", "content": results(&["a"])["content"]}]),
            vec![(code, Some(1))],
        ),
    ];
    for (history, expected) in rows {
        assert_eq!(anthropic(&history), expected, "{history}");
    }
}

#[test]
fn an3_duplicate_results() {
    let twice = json!([user("hi"), uses(&["a"]), results(&["a", "a"])]);
    assert_eq!(anthropic(&twice), [("an3_duplicate_result", Some(2))]);
}

#[test]
fn an10_empty_messages() {
    let code = "an10_empty_message";
    for message in [
        user(""),
        joined(&[]),
        json!({"role": "user"}),
        json!({"role": "user", "content": null}),
    ] {
        assert_eq!(anthropic(&json!([message])), [(code, Some(0))], "{message}");
    }
    let middle = json!([user("hi"), assistant(""), user("ho")]);
    assert_eq!(anthropic(&middle), [(code, Some(1))]);
}

#[test]
fn an11_blank_texts() {
    let code = "an11_blank_text";
    let nested = json!([text("\n")]);
    for message in [
        user(" \n"),
        joined(&[text("")]),
        joined(&[text("fine"), text("\u{3000}")]),
        assistant("\t"),
    ] {
        let history = json!([user("hi"), uses(&["a"]), results(&["a"]), message]);
        assert!(anthropic(&history).contains(&(code, Some(3))), "{message}");
    }
    let history = json!([user("hi"), uses(&["a"]), {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": nested}]}]);
    assert_eq!(anthropic(&history), [(code, Some(2))]);

    for (system, expected) in [
        (json!(" "), vec![None]),
        (json!([{"type": "text", "text": ""}]), vec![None]),
        (json!("Be brief."), vec![]),
        (json!(null), vec![]),
    ] {
        let found = lint(Dialect::Anthropic, &[user("hi")], Some(&&system), None);
        let found: Vec<_> = found.iter().map(|violation| violation.index).collect();
        assert_eq!(found, expected, "{system}");
    }
}

#[test]
fn the_user_comes_first() {
    let history = json!([assistant("hi"), user("hi")]);
    assert_eq!(anthropic(&history), [("first_not_user", Some(0))]);
    let found = codes(Dialect::OpenAi, &history);
    assert_eq!(found, [("starts_without_user", Some(0))]);
    let found = codes(Dialect::Responses, &history);
    assert_eq!(found, [("starts_without_user", Some(0))]);
    let bedrock = json!([{"role": "assistant", "content": [{"text": "hi"}]}]);
    let found = codes(Dialect::Bedrock, &bedrock);
    assert_eq!(found, [("br3_first_not_user", Some(0))]);
}

#[test]
fn what_cannot_be_read_is_a_finding_and_its_neighbours_are_not_judged() {
    let broken = json!({"role": "user", "content": 5});
    let invalid = "invalid_message";
    assert_eq!(
        openai(&json!([
            calls(&["a"]),
            broken,
            result("a"),
            result("b"),
            user("x"),
            result("c")
        ])),
        [(invalid, Some(1)), ("oc2_orphan_result", Some(5))]
    );
    assert_eq!(
        anthropic(&json!([
            user("x"),
            uses(&["a"]),
            broken,
            results(&["a"]),
            assistant("x"),
            results(&["a"])
        ])),
        [(invalid, Some(2)), ("an2_orphan_result", Some(5))]
    );
    let found = lint(Dialect::OpenAi, &[broken], None, None);
    assert_eq!(
        found[0].message,
        "content must be a string, a list or null, got a number"
    );
    let found = lint(Dialect::OpenAi, &[user("hi")], Some(&&json!(5)), None);
    assert_eq!(
        (found[0].rule, found[0].index),
        (Rule::InvalidMessage, None)
    );
}

#[test]
fn undeclared_tools() {
    let code = |tools: &Value, dialect, history: &Value| -> Vec<_> {
        lint(dialect, history.as_array().unwrap(), None, Some(&tools))
            .iter()
            .map(|violation| (violation.rule.entry().code, violation.index))
            .collect()
    };
    let history = json!([user("hi"), calls(&["a"]), result("a")]);
    let other = json!([{"type": "function", "function": {"name": "g"}}]);
    let same = json!([{"type": "function", "function": {"name": "f"}}]);
    assert_eq!(
        code(&other, Dialect::OpenAi, &history),
        [("undeclared_tool", Some(1))]
    );
    assert_eq!(code(&same, Dialect::OpenAi, &history), []);
    let history = json!([user("hi"), uses(&["a"]), results(&["a"])]);
    let other = json!([{"name": "g", "input_schema": {}}]);
    let same = json!([{"name": "f", "input_schema": {}}]);
    assert_eq!(
        code(&other, Dialect::Anthropic, &history),
        [("undeclared_tool", Some(1))]
    );
    assert_eq!(code(&same, Dialect::Anthropic, &history), []);
}

/// Valid steps, so that damage to one of them is the only thing wrong.
fn arb_steps() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0_usize..4, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_panic(
        messages in prop::collection::vec(prop_oneof![arb_json(), arb_message()], 0..6),
        system in arb_json(),
        tools in arb_json(),
    ) {
        for dialect in Dialect::ALL {
            for violation in lint(dialect, &messages, Some(&&system), Some(&&tools)) {
                prop_assert!(violation.index.is_none_or(|index| index < messages.len()));
            }
        }
    }

    #[test]
    fn a_lost_message_of_a_step_is_found(steps in arb_steps(), pick in any::<prop::sample::Index>()) {
        // Every step has as many calls as its number says; ids come again in each.
        let ids = ["a", "b", "c"];
        let mut openai_history = vec![user("hi")];
        let mut anthropic_history = vec![user("hi")];
        for (number, &step) in steps.iter().enumerate() {
            let ids = &ids[..step];
            // Where ids may not come again.
            let own: Vec<String> = ids.iter().map(|id| format!("{id}{number}")).collect();
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            if step == 0 {
                openai_history.extend([assistant("ok"), user("go on")]);
                anthropic_history.extend([assistant("ok"), user("go on")]);
            } else {
                openai_history.push(calls(ids));
                openai_history.extend(ids.iter().map(|id| result(id)));
                anthropic_history.extend([uses(&own), results(&own)]);
            }
        }
        for (dialect, mut history) in [
            (Dialect::OpenAi, openai_history),
            (Dialect::Anthropic, anthropic_history),
        ] {
            prop_assert_eq!(lint(dialect, &history, None, None), vec![]);
            let at = pick.index(history.len());
            let lost = history.remove(at).to_string();
            let is_step = lost.contains("tool_call") || lost.contains("tool_use");
            let errors = lint(dialect, &history, None, None)
                .iter()
                .filter(|violation| violation.rule.entry().severity == Severity::Error)
                .count();
            prop_assert!(!is_step || errors > 0);
        }
    }
}
