//! Large input made to be slow: what it costs grows with its length, not with its square.

use std::collections::BTreeSet;

use satchel_core::dialect::convert::convert;
use satchel_core::dialect::lint::{Severity, lint};
use satchel_core::dialect::repair::{Around, Mode, repair_json};
use satchel_core::dialect::{Dialect, Traits, read_message};
use satchel_core::step::Pairing;
use serde_json::{Value, json};

const MANY: usize = 50_000;

fn mend(dialect: Dialect, messages: &[Value], mode: Mode) -> Vec<Value> {
    let (traits, around) = (Traits::default(), Around::default());
    repair_json(dialect, messages, mode, traits, around).unwrap()
}

fn turn(source: Dialect, target: Dialect, messages: &[Value]) -> Vec<Value> {
    let nodes: Vec<&Value> = messages.iter().collect();
    convert(source, target, &nodes, None, None)
        .unwrap()
        .messages
}

/// How often a rule is broken.
fn count(dialect: Dialect, messages: &[Value], code: &str) -> usize {
    let found = lint(dialect, messages, None, None);
    let codes = found.iter().map(|violation| violation.rule.entry().code);
    codes.filter(|found| *found == code).count()
}

fn errors(dialect: Dialect, messages: &[Value]) -> usize {
    let found = lint(dialect, messages, None, None);
    let entries = found.iter().map(|violation| violation.rule.entry());
    entries
        .filter(|entry| entry.severity == Severity::Error)
        .count()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn uses(ids: impl Iterator<Item = String>) -> Value {
    let blocks: Vec<Value> = ids
        .map(|id| json!({"type": "tool_use", "id": id, "name": "f", "input": {}}))
        .collect();
    json!({"role": "assistant", "content": blocks})
}

fn results(ids: impl Iterator<Item = String>) -> Value {
    let blocks: Vec<Value> = ids
        .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "x"}))
        .collect();
    json!({"role": "user", "content": blocks})
}

fn tool_calls(ids: impl Iterator<Item = (String, String)>) -> Value {
    let calls: Vec<Value> = ids
        .map(|(id, name)| {
            let function = json!({"name": name, "arguments": "{}"});
            json!({"id": id, "type": "function", "function": function})
        })
        .collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn tool(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

#[test]
fn one_id_for_all_calls() {
    let same = || (0..MANY).map(|_| "a".to_owned());
    let messages = [user("go"), uses(same()), results(same())];
    let mended = mend(Dialect::Anthropic, &messages, Mode::Synthesize);
    assert_eq!(errors(Dialect::Anthropic, &mended), 0);
    let blocks = mended[1]["content"].as_array().unwrap();
    let ids: BTreeSet<_> = blocks.iter().map(|block| block["id"].as_str()).collect();
    assert_eq!(ids.len(), MANY);
    let again = mend(Dialect::Anthropic, &mended, Mode::Synthesize);
    assert_eq!(again, mended);
    let turned = turn(Dialect::Anthropic, Dialect::OpenAi, &messages);
    assert_eq!(errors(Dialect::OpenAi, &turned), 0);
}

#[test]
fn names_with_one_start() {
    let start = "n".repeat(59);
    // Each is cut to an end of its own that is taken already, so that all share the numbers.
    let ends = || (0..MANY / 2).map(|at| format!("{start}{at:05}"));
    let names: Vec<String> = ends().chain(ends().map(|name| name + "!")).collect();
    let calls = names.iter().enumerate();
    let calls = calls.map(|(at, name)| (format!("c{at}"), name.clone()));
    let mut messages = vec![user("go"), tool_calls(calls)];
    messages.extend((0..names.len()).map(|at| tool(&format!("c{at}"), "x")));
    let turned = turn(Dialect::OpenAi, Dialect::Anthropic, &messages);
    let blocks = turned[1]["content"].as_array().unwrap();
    let found: BTreeSet<_> = blocks.iter().map(|block| block["name"].as_str()).collect();
    assert_eq!(found.len(), names.len());
    assert!(found.iter().flatten().all(|name| name.len() <= 64));
}

#[test]
fn ids_with_one_start() {
    let start = "i".repeat(35);
    let ends = || (0..MANY / 2).map(|at| format!("{start}{at:05}"));
    let ids: Vec<String> = ends().chain(ends().map(|id| id + "!")).collect();
    let messages = [
        user("go"),
        uses(ids.iter().cloned()),
        results(ids.iter().cloned()),
    ];
    let turned = turn(Dialect::Anthropic, Dialect::OpenAi, &messages);
    assert_eq!(errors(Dialect::OpenAi, &turned), 0);
    let calls = turned[1]["tool_calls"].as_array().unwrap();
    let found: BTreeSet<_> = calls.iter().map(|call| call["id"].as_str()).collect();
    assert_eq!(found.len(), ids.len());
}

#[test]
fn text_full_of_tags() {
    let tags = |name: &str| -> String {
        let tags = (2..MANY).map(|number| format!("</{name}-{number}>"));
        format!("</{name}>") + &tags.collect::<String>()
    };
    let messages = [user("go"), tool("gone", &tags("satchel-result"))];
    let mended = mend(Dialect::OpenAi, &messages, Mode::Flatten);
    let text = mended[1]["content"].as_str().unwrap();
    assert!(text.starts_with("<satchel-result-50000 "));
    let messages = [user("go"), tool("gone", &tags("tool-result"))];
    let turned = turn(Dialect::OpenAi, Dialect::Anthropic, &messages);
    assert!(turned[0].to_string().contains("<tool-result-50000 "));
}

/// Names that overlap, longer numbers and numbers with zeros in front.
#[test]
fn tags_are_free_of_all_that_a_text_holds() {
    for (text, tag) in [
        ("plain", "tool-result"),
        ("tool-result", "tool-result-2"),
        ("tool-result-27", "tool-result-3"),
        ("tool-resultool-result-2", "tool-result-3"),
        ("tool-result-2tool-result-4", "tool-result-3"),
        ("tool-result-", "tool-result-2"),
    ] {
        let messages = [user("go"), tool("gone", text)];
        let turned = turn(Dialect::OpenAi, Dialect::Anthropic, &messages);
        let found = turned[0].to_string();
        assert!(found.contains(&format!("<{tag} ")), "{text}: {found}");
    }
}

#[test]
fn runs_of_system_messages() {
    let system = json!({"role": "system", "content": "be kind"});
    let mut messages = vec![system; MANY];
    messages.insert(0, user("go"));
    messages.push(user("more"));
    let code = satchel_core::dialect::lint::Rule::An16SystemPosition
        .entry()
        .code;
    assert_eq!(count(Dialect::Anthropic, &messages, code), MANY);
    messages.pop();
    assert_eq!(count(Dialect::Anthropic, &messages, code), 0);
}

#[test]
fn server_tools_that_wait() {
    let call = |at: usize| {
        let id = format!("s{at}");
        json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})
    };
    let result = |at: usize| {
        let id = format!("s{at}");
        json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []})
    };
    let code = satchel_core::dialect::lint::Rule::An5PendingServerTool
        .entry()
        .code;
    // Answered from the newest on, but for one half.
    let half = MANY / 2;
    let blocks: Vec<Value> = (0..MANY)
        .map(call)
        .chain((half..MANY).rev().map(result))
        .collect();
    let said = json!({"role": "assistant", "content": blocks});
    let messages = [user("go"), said, user("more")];
    assert_eq!(count(Dialect::Anthropic, &messages, code), half);
    for (mode, left) in [(Mode::Drop, MANY), (Mode::Flatten, MANY + half)] {
        let mended = mend(Dialect::Anthropic, &messages, mode);
        assert_eq!(mended[1]["content"].as_array().unwrap().len(), left);
        assert_eq!(count(Dialect::Anthropic, &mended, code), 0);
    }
}

#[test]
fn outputs_far_from_their_calls() {
    let call = |at: usize| {
        let id = format!("c{at}");
        json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
    };
    let output = |at: usize| {
        let id = format!("c{at}");
        json!({"type": "function_call_output", "call_id": id, "output": "x"})
    };
    let mut items = vec![user("go")];
    items.extend((0..MANY).map(call));
    items.extend((0..MANY).map(output));
    assert_eq!(lint(Dialect::Responses, &items, None, None), []);
    // Each a second time, which nothing answers.
    items.extend((0..MANY).map(output));
    assert_eq!(errors(Dialect::Responses, &items), MANY);
    let mended = mend(Dialect::Responses, &items, Mode::Drop);
    assert_eq!(mended.len(), 2 * MANY + 1);
    assert_eq!(
        turn(Dialect::Responses, Dialect::OpenAi, &mended).len(),
        MANY + 2
    );
}

#[test]
fn calls_without_ids() {
    let part = |kind: &str, at: usize| {
        let name = format!("f{}", at % 3);
        let value = if kind == "functionCall" {
            json!({"name": name, "args": {}})
        } else {
            json!({"name": name, "response": {"at": at}})
        };
        json!({kind: value})
    };
    let calls: Vec<Value> = (0..MANY).map(|at| part("functionCall", at)).collect();
    // More results than calls: the rest finds all of them answered.
    let results: Vec<Value> = (0..2 * MANY)
        .map(|at| part("functionResponse", at))
        .collect();
    let messages = [
        json!({"role": "user", "parts": [{"text": "go"}]}),
        json!({"role": "model", "parts": calls}),
        json!({"role": "user", "parts": results}),
    ];
    assert!(errors(Dialect::Gemini, &messages) > 0);
    let mended = mend(Dialect::Gemini, &messages, Mode::Drop);
    assert_eq!(errors(Dialect::Gemini, &mended), 0);
    assert_eq!(mended[2]["parts"].as_array().unwrap().len(), MANY);
    let turned = turn(Dialect::Gemini, Dialect::OpenAi, &messages);
    assert_eq!(errors(Dialect::OpenAi, &turned), 0);
}

#[test]
fn steps_of_many_calls() {
    let mut pairing = Pairing::new(Dialect::OpenAi.glue());
    let ids = (0..MANY).map(|at| (format!("c{at}"), "f".to_owned()));
    let calls = read_message(Dialect::OpenAi, &&tool_calls(ids), 0).unwrap();
    pairing.push(0, &calls).unwrap();
    for at in 0..MANY {
        assert_eq!(pairing.open_calls(), MANY - at);
        let result = read_message(Dialect::OpenAi, &&tool(&format!("c{at}"), "x"), at + 1).unwrap();
        pairing.push(at + 1, &result).unwrap();
    }
    assert_eq!(pairing.open_calls(), 0);
    assert!(pairing.calls().iter().all(|call| call.answered));
}

/// A message whose last result answers nothing changes nothing.
#[test]
fn a_refused_message_leaves_its_calls_open() {
    let mut pairing = Pairing::new(Dialect::Anthropic.glue());
    let ids = || ["a", "b"].map(str::to_owned).into_iter();
    let calls = read_message(Dialect::Anthropic, &&uses(ids()), 0).unwrap();
    pairing.push(0, &calls).unwrap();
    let bad = results(ids().chain(["c".to_owned()]));
    let bad = read_message(Dialect::Anthropic, &&bad, 1).unwrap();
    assert_eq!(pairing.push(1, &bad).unwrap_err().code(), "orphan_result");
    assert_eq!(pairing.open_calls(), 2);
    let good = read_message(Dialect::Anthropic, &&results(ids()), 1).unwrap();
    pairing.push(1, &good).unwrap();
    assert_eq!(pairing.open_calls(), 0);
}
