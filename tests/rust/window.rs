//! Windows against a slow obvious version, and their promises one by one.

use proptest::prelude::*;
use satchel_core::content;
use satchel_core::dialect::Dialect;
use satchel_core::window::{Fill, Link, sliding_window, token_window};
use serde_json::json;

use Link::{Calls, Instruction, Plain, Results};

/// The steps of the messages that are no instructions, oldest first, worked out forwards.
fn steps(links: &[Link]) -> Vec<Vec<u32>> {
    let mut steps: Vec<Vec<u32>> = Vec::new();
    let mut takes_results = false;
    for (index, link) in (0..).zip(links) {
        match link {
            Instruction => {}
            Results if takes_results => steps.last_mut().unwrap().push(index),
            _ => {
                steps.push(vec![index]);
                takes_results = *link == Calls;
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
