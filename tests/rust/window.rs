//! Windows against a slow obvious version, and their promises one by one.

use proptest::prelude::*;
use satchel_core::content;
use satchel_core::dialect::Dialect;
use satchel_core::window::{Fill, Link, sliding_window, token_window};
use serde_json::json;

use Link::{Calls, Instruction, Item, Plain, Results};

/// The steps of the messages that are no instructions, oldest first, worked out forwards.
fn steps(links: &[Link]) -> Vec<Vec<u32>> {
    let mut steps: Vec<Vec<u32>> = Vec::new();
    let mut takes_results = false;
    let mut takes_items = false;
    for (index, link) in (0..).zip(links) {
        match link {
            Instruction => {}
            Results if takes_results => {
                steps.last_mut().unwrap().push(index);
                takes_items = false;
            }
            Item if takes_items => steps.last_mut().unwrap().push(index),
            _ => {
                steps.push(vec![index]);
                takes_results = matches!(link, Calls | Item);
                takes_items = *link == Item;
            }
        }
    }
    steps
}

/// Newest steps while they fit; then results without calls at the cut are dropped.
fn oracle(costs: &[u64], links: &[Link], limit: Option<u64>) -> Vec<u32> {
    let steps = steps(links);
    let mut first = steps.len();
    if let Some(limit) = limit {
        let cost = |from: usize| -> u64 {
            let indices = steps[from..].iter().flatten();
            indices.map(|index| costs[*index as usize]).sum()
        };
        while first > 0 && cost(first - 1) <= limit {
            first -= 1;
        }
    }
    if first > 0 {
        while first < steps.len() && links[steps[first][0] as usize] == Results {
            first += 1;
        }
    }
    let instructions = (0..).zip(links).filter(|(_, link)| **link == Instruction);
    let mut window: Vec<u32> = instructions.map(|(index, _)| index).collect();
    window.extend(steps[first..].iter().flatten());
    window
}

fn links() -> impl Strategy<Value = Vec<Link>> {
    let link = prop_oneof![
        1 => Just(Instruction),
        3 => Just(Plain),
        2 => Just(Calls),
        3 => Just(Results),
        2 => Just(Item),
    ];
    prop::collection::vec(link, 0..40)
}

proptest! {
    #[test]
    fn sliding_window_matches_oracle(links in links(), limit in 0u64..45) {
        let ones = vec![1; links.len()];
        prop_assert_eq!(sliding_window(&links, limit), oracle(&ones, &links, Some(limit)));
    }

    #[test]
    fn token_window_matches_oracle(
        rows in links().prop_flat_map(|links| {
            let tokens = prop::collection::vec(prop_oneof![Just(0u32), 1u32..30], links.len());
            (Just(links), tokens)
        }),
        limit in 0u64..400,
    ) {
        let (links, tokens) = rows;
        let costs: Vec<u64> = tokens.iter().map(|tokens| u64::from(*tokens)).collect();
        let pinned: u64 = links
            .iter()
            .zip(&costs)
            .filter(|(link, _)| **link == Instruction)
            .map(|(_, cost)| cost)
            .sum();
        let window = token_window(&tokens, &links, limit);
        prop_assert_eq!(&window, &oracle(&costs, &links, limit.checked_sub(pinned)));
        let total: u64 = window.iter().map(|index| costs[*index as usize]).sum();
        prop_assert!(total <= limit.max(pinned));
    }
}

#[test]
fn without_tools_it_is_the_newest_messages() {
    let links = [Plain, Instruction, Plain, Plain, Instruction, Plain];
    assert_eq!(sliding_window(&links, 2), [1, 4, 3, 5]);
    assert_eq!(sliding_window(&links, 0), [1, 4]);
    assert_eq!(sliding_window(&links, 99), [1, 4, 0, 2, 3, 5]);
    assert_eq!(sliding_window(&[], 5), [0u32; 0]);
}

#[test]
fn it_stops_at_the_first_that_does_not_fit() {
    // The one-token message before the large one would fit and is not tried.
    assert_eq!(token_window(&[1, 50, 3], &[Plain; 3], 10), [2]);
}

#[test]
fn exactly_full_fits() {
    assert_eq!(token_window(&[4, 3, 3], &[Plain; 3], 10), [0, 1, 2]);
    assert_eq!(token_window(&[5, 3, 3], &[Plain; 3], 10), [1, 2]);
}

#[test]
fn instructions_above_the_limit_leave_no_room_even_for_empty_messages() {
    assert_eq!(token_window(&[11, 0], &[Instruction, Plain], 10), [0]);
    assert_eq!(token_window(&[10, 0], &[Instruction, Plain], 10), [0, 1]);
}

#[test]
fn a_straddling_step_is_dropped_whole() {
    let links = [Plain, Calls, Results, Results, Plain];
    assert_eq!(token_window(&[1, 5, 5, 5, 1], &links, 15), [4]);
    assert_eq!(token_window(&[1, 5, 5, 5, 1], &links, 16), [1, 2, 3, 4]);
}

#[test]
fn an_instruction_inside_a_step_does_not_split_it() {
    let links = [Plain, Calls, Instruction, Results, Plain];
    assert_eq!(sliding_window(&links, 2), [2, 4]);
    assert_eq!(sliding_window(&links, 3), [2, 1, 3, 4]);
}

#[test]
fn orphan_results_go_only_at_a_cut() {
    let links = [Plain, Results, Plain];
    assert_eq!(sliding_window(&links, 2), [2]);
    assert_eq!(sliding_window(&links, 3), [0, 1, 2]);
    assert_eq!(sliding_window(&[Results, Plain], 2), [0, 1]);
}

#[test]
fn columns_of_different_length_are_read_to_the_shorter() {
    assert_eq!(token_window(&[1, 1], &[Plain; 3], 10), [0, 1]);
    assert_eq!(token_window(&[1, 1, 1], &[Plain; 2], 10), [0, 1]);
}

#[test]
fn a_closed_fill_takes_nothing_more() {
    let mut fill = Fill::new(5);
    assert!(fill.offer(3, Plain, Some(2)));
    assert!(!fill.offer(2, Plain, None));
    assert!(!fill.offer(1, Plain, Some(1)));
    assert_eq!(fill.left(), 3);
    assert_eq!(fill.finish(), [3]);
}

#[test]
fn links_of_the_other_dialects() {
    let rows = [
        (
            Dialect::Responses,
            json!({"type": "reasoning", "summary": []}),
            Item,
        ),
        (
            Dialect::Responses,
            json!({"type": "function_call", "call_id": "a"}),
            Item,
        ),
        (
            Dialect::Responses,
            json!({"type": "shell_call", "call_id": "a"}),
            Item,
        ),
        (
            Dialect::Responses,
            json!({"type": "web_search_call", "id": "a"}),
            Plain,
        ),
        (
            Dialect::Responses,
            json!({"type": "function_call_output", "call_id": "a"}),
            Results,
        ),
        (
            Dialect::Responses,
            json!({"type": "message", "role": "assistant", "content": []}),
            Plain,
        ),
        (
            Dialect::Responses,
            json!({"role": "developer", "content": "a"}),
            Instruction,
        ),
        (
            Dialect::Gemini,
            json!({"role": "model", "parts": [{"text": "a"}]}),
            Plain,
        ),
        (
            Dialect::Gemini,
            json!({"role": "model", "parts": [{"functionCall": {"name": "f"}}]}),
            Calls,
        ),
        (
            Dialect::Gemini,
            json!({"role": "user", "parts": [{"function_response": {"name": "f"}}]}),
            Results,
        ),
        (
            Dialect::Gemini,
            json!({"role": "function", "parts": [{"functionResponse": {"name": "f"}}]}),
            Results,
        ),
        (Dialect::Gemini, json!({"parts": [{"text": "a"}]}), Plain),
        (
            Dialect::Bedrock,
            json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": "a"}}]}),
            Calls,
        ),
        (
            Dialect::Bedrock,
            json!({"role": "user", "content": [{"toolResult": {"toolUseId": "a"}}]}),
            Results,
        ),
        (
            Dialect::Bedrock,
            json!({"role": "user", "content": [{"text": "a"}]}),
            Plain,
        ),
    ];
    for (dialect, message, expected) in &rows {
        assert_eq!(
            content::link(&message, Some(*dialect)),
            *expected,
            "{message}"
        );
        assert_eq!(content::link(&message, None), *expected, "{message}");
    }
}

#[test]
fn content_texts_of_the_other_dialects() {
    let rows = [
        (
            json!({"role": "user", "content": [{"type": "input_text", "text": "a"}]}),
            vec!["a"],
        ),
        (
            json!({"type": "function_call_output", "call_id": "c", "output": "a"}),
            vec!["a"],
        ),
        (
            json!({"type": "shell_call_output", "call_id": "c",
            "output": [{"stdout": "a", "stderr": "b", "outcome": {"type": "exit"}}]}),
            vec!["a", "b"],
        ),
        (
            json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}),
            vec![],
        ),
        (
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}]}),
            vec![],
        ),
        (
            json!({"role": "model", "parts": [{"text": "a"}, {"text": "hm", "thought": true}]}),
            vec!["a"],
        ),
        (
            json!({"role": "user", "parts": [{"functionResponse": {"name": "f",
            "response": {"output": "a", "more": ["b"]}}}]}),
            vec!["a", "b"],
        ),
        (
            json!({"role": "user", "content": [{"text": "a"}, {"toolResult": {"toolUseId": "c",
            "content": [{"text": "b"}, {"json": {"x": "c"}}]}}]}),
            vec!["a", "b", "c"],
        ),
        (
            json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "input": {}}}]}),
            vec![],
        ),
    ];
    for (message, expected) in &rows {
        let content = content::read(&message, None, true);
        assert!(!content.is_unreadable, "{message}");
        let texts: Vec<&str> = content.texts.iter().map(|text| &**text).collect();
        assert_eq!(texts, *expected, "{message}");
    }
    let call = json!({"type": "function_call", "call_id": "c", "arguments": "{\"a\":1}"});
    assert_eq!(content::read(&&call, None, true).calls.len(), 1);
}

#[test]
fn links_follow_the_dialect() {
    let rows = [
        (json!({"role": "system", "content": "a"}), [Instruction; 3]),
        (
            json!({"role": "developer", "content": "a"}),
            [Instruction; 3],
        ),
        (json!({"role": "user", "content": "a"}), [Plain; 3]),
        (
            json!({"role": "assistant", "content": null, "tool_calls": []}),
            [Plain; 3],
        ),
        (
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]}),
            [Calls, Calls, Plain],
        ),
        (
            json!({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}),
            [Calls, Calls, Plain],
        ),
        (
            json!({"role": "tool", "content": "a"}),
            [Results, Results, Plain],
        ),
        (
            json!({"role": "function", "content": "a"}),
            [Results, Results, Plain],
        ),
        (
            json!({"role": "assistant", "content": [{"type": "text", "text": ""},
                {"type": "tool_use", "id": "a", "name": "f", "input": {}}]}),
            [Calls, Plain, Calls],
        ),
        (
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}),
            [Results, Plain, Results],
        ),
        (json!({"role": "narrator", "content": "a"}), [Plain; 3]),
        (json!({"content": 5}), [Plain; 3]),
        (json!("text"), [Plain; 3]),
        (json!(null), [Plain; 3]),
    ];
    for (message, expected) in &rows {
        let found = [None, Some(Dialect::OpenAi), Some(Dialect::Anthropic)]
            .map(|dialect| content::link(&message, dialect));
        assert_eq!(found, *expected, "{message}");
    }
}
