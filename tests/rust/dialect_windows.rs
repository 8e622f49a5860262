//! Windows in every dialect: placeholders of each kind, recalled content, what stands in front.

use satchel_core::dialect::Dialect;
use satchel_core::event::{Event, EventKind};
use satchel_core::message::PartKind;
use satchel_core::policy::Policy;
use satchel_core::working_set::WorkingSet;
use serde_json::{Value as Json, json};

use crate::histories::Act;
use crate::working_set::{disorder, json_of, read, read_one, recount, render, settings, unpaired};

fn window_of(
    dialect: Dialect,
    budget: u64,
    messages: &[Json],
) -> (WorkingSet<Box<str>>, Vec<Json>) {
    let mut set = WorkingSet::new(settings(dialect, budget, Policy::default())).unwrap();
    set.append(read(dialect, messages)).unwrap();
    let figures = set.window(true).unwrap();
    let window = render(&set, messages);
    assert_eq!(recount(&set, &window), figures.tokens);
    (set, window)
}

#[test]
fn every_kind_of_call_gets_a_placeholder_of_its_kind() {
    let kinds = [
        ("function_call", "function_call_output"),
        ("custom_tool_call", "custom_tool_call_output"),
        ("local_shell_call", "local_shell_call_output"),
        ("shell_call", "shell_call_output"),
        ("computer_call", "computer_call_output"),
        ("apply_patch_call", "apply_patch_call_output"),
        ("tool_search_call", "tool_search_output"),
        ("program", "program_output"),
        ("mcp_approval_request", "mcp_approval_response"),
        ("quantum_call", "quantum_call_output"),
    ];
    for (call, output) in kinds {
        let mut item = json!({"type": call, "id": "i", "call_id": "c", "arguments": "{}"});
        if call == "mcp_approval_request" {
            item["name"] = "delete".into();
        }
        let messages = [
            json!({"role": "user", "content": "go"}),
            item,
            json!({"role": "user", "content": "stop"}),
        ];
        let (_, window) = window_of(Dialect::Responses, 9_000, &messages);
        assert_eq!(window.len(), 4, "{call}");
        assert_eq!(window[2]["type"], output);
        // Read again, no call is open.
        let (again, _) = window_of(Dialect::Responses, 9_000, &window);
        assert!(
            again
                .transcript()
                .steps()
                .iter()
                .all(|step| step.open_calls == 0),
            "{call}"
        );
    }
}

#[test]
fn an_assistant_in_front_gets_an_opener() {
    for dialect in Dialect::ALL {
        let acts = [
            Act::Assistant("How can I help?".into()),
            Act::User("Find the bug.".into()),
        ];
        let messages = json_of(dialect, &acts);
        let (_, window) = window_of(dialect, 9_000, &messages);
        assert_eq!(disorder(dialect, &window), Vec::<String>::new());
        assert_eq!(
            window.len(),
            messages.len() + usize::from(dialect.user_first())
        );
        // A compaction drops what stands before the goal, and the opener with it.
        let mut acts = acts.to_vec();
        for number in 0..12 {
            acts.push(Act::Assistant(format!("step {number} ").repeat(40)));
            acts.push(Act::User("Go on.".into()));
        }
        let messages = json_of(dialect, &acts);
        let (_, window) = window_of(dialect, 600, &messages);
        assert_eq!(disorder(dialect, &window), Vec::<String>::new());
    }
}

#[test]
fn a_note_in_front_moves_to_the_first_user() {
    for dialect in Dialect::ALL {
        let acts: Vec<Act> = (0..12)
            .map(|number| Act::Assistant(format!("step {number} ").repeat(40)))
            .collect();
        let mut messages = json_of(dialect, &acts);
        let mut set = WorkingSet::new(settings(dialect, 700, Policy::default())).unwrap();
        set.append(read(dialect, &messages)).unwrap();
        let tokens = set.window(false).unwrap().tokens;
        assert_eq!(recount(&set, &render(&set, &messages)), tokens, "{dialect}");
        let user = json_of(dialect, &[Act::User("Find the bug.".into())])
            .pop()
            .unwrap();
        set.append(read_one(dialect, &user, messages.len()))
            .unwrap();
        messages.push(user);
        let tokens = set.window(false).unwrap().tokens;
        let window = render(&set, &messages);
        assert_eq!(recount(&set, &window), tokens, "{dialect}");
        assert_eq!(disorder(dialect, &window), Vec::<String>::new());
    }
}

#[test]
fn recalled_content_finds_its_place_in_every_dialect() {
    for dialect in Dialect::ALL {
        let mut acts = vec![Act::User("Find the bug.".into())];
        acts.extend((0..6).map(|number| Act::Tools {
            text: format!("looking at {number}"),
            results: vec![(format!("row {number}\n").repeat(60), true)],
            thinks: number % 2 == 0,
        }));
        let mut messages = json_of(dialect, &acts);
        let mut set = WorkingSet::new(settings(dialect, 700, Policy::default())).unwrap();
        set.append(read(dialect, &messages)).unwrap();
        set.window(false).unwrap();
        let part = (0..set.transcript().all_parts().len())
            .find(|&part| set.transcript().all_parts()[part].kind == PartKind::Result)
            .unwrap();
        let pointer = set.pointer_of(part).to_string();
        for range in [(1, 2), (3, 3)] {
            let kind = EventKind::PageIn {
                pointer: pointer.clone(),
                range: Some(range),
            };
            set.apply(&Event {
                at: messages.len(),
                kind,
            })
            .unwrap();
        }
        let figures = set.window(false).unwrap();
        let window = render(&set, &messages);
        assert_eq!(recount(&set, &window), figures.tokens, "{dialect}");
        assert_eq!(disorder(dialect, &window), Vec::<String>::new());
        assert_eq!(unpaired(dialect, &window), 0);
        let shown = Json::from(window.clone()).to_string();
        assert_eq!(shown.matches("<recalled source=").count(), 2, "{dialect}");
        // Behind an assistant message it is a message of its own.
        let said = json_of(
            dialect,
            &[Act::User("a".into()), Act::Assistant("b".into())],
        )
        .pop()
        .unwrap();
        set.append(read_one(dialect, &said, messages.len()))
            .unwrap();
        messages.push(said);
        let kind = EventKind::PageIn {
            pointer,
            range: Some((1, 1)),
        };
        set.apply(&Event {
            at: messages.len(),
            kind,
        })
        .unwrap();
        let figures = set.window(false).unwrap();
        let window = render(&set, &messages);
        assert_eq!(recount(&set, &window), figures.tokens, "{dialect}");
        assert_eq!(disorder(dialect, &window), Vec::<String>::new());
    }
}

#[test]
fn a_shell_keeps_how_it_ended() {
    let streams = json!([
        {"stdout": "row\n".repeat(900), "stderr": "", "outcome": {"type": "exit", "exit_code": 3}},
    ]);
    let messages = [
        json!({"role": "user", "content": "go"}),
        json!({"type": "shell_call", "call_id": "c", "action": {}}),
        json!({"type": "shell_call_output", "call_id": "c", "output": streams}),
    ];
    let (_, window) = window_of(Dialect::Responses, 600, &messages);
    let shown: Vec<_> = window
        .iter()
        .filter(|item| item["type"] == "shell_call_output" && item["output"] != streams)
        .collect();
    assert!(!shown.is_empty());
    for item in shown {
        assert_eq!(item["output"][0]["outcome"]["exit_code"], 3);
        let text = item["output"][0]["stdout"].as_str().unwrap();
        assert!(text.contains("page_in"), "{text}");
    }
}

#[test]
fn reasoning_content_goes_back_with_its_calls() {
    // DeepSeek rejects a turn with calls whose reasoning is gone: steps are dropped whole.
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for number in 0..12 {
        messages.push(json!({
            "role": "assistant", "content": null, "reasoning_content": format!("thought {number}"),
            "tool_calls": [{"id": "a", "type": "function",
                "function": {"name": "look", "arguments": "{}"}}],
        }));
        let rows = format!("row {number}\n").repeat(80);
        messages.push(json!({"role": "tool", "tool_call_id": "a", "content": rows}));
    }
    let (_, window) = window_of(Dialect::OpenAi, 900, &messages);
    let calls: Vec<_> = window
        .iter()
        .filter(|message| message["role"] == "assistant")
        .collect();
    assert!(!calls.is_empty() && calls.len() < 12);
    assert!(calls.iter().all(|call| messages.contains(call)));
}

#[test]
fn legacy_calls_are_answered_by_functions() {
    let messages = [
        json!({"role": "user", "content": "go"}),
        json!({"role": "assistant", "content": null,
            "function_call": {"name": "look", "arguments": "{}"}}),
        json!({"role": "function", "name": "look", "content": "42"}),
        json!({"role": "assistant", "content": null,
            "function_call": {"name": "look", "arguments": "{}"}}),
        json!({"role": "user", "content": "stop"}),
    ];
    let (set, window) = window_of(Dialect::OpenAi, 9_000, &messages);
    assert_eq!(set.transcript().steps()[1].end, 3);
    assert_eq!(window.len(), 6);
    assert_eq!(window[4]["role"], "function");
    assert_eq!(window[4]["name"], "look");
}
