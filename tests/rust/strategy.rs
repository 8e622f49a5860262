//! Presets beside the choice by lines, and what a rewrite of the prompt cache costs.

use satchel_core::dialect::Dialect;
use satchel_core::event::{Event, EventKind};
use satchel_core::level::{Level, Reason};
use satchel_core::policy::{Policy, Select, Strategy};
use satchel_core::strategy::price::{Cache, Cause, Prices};
use satchel_core::strategy::{AtLeast, ClearInputs, Clearing, Trigger};
use satchel_core::working_set::WorkingSet;
use serde_json::{Value as Json, json};

use crate::working_set::{read_one, render, settings};

const ROOMY: u64 = 1_000_000;

/// A call of `tool` and its result of 50 lines.
fn tool_use(number: usize, tool: &str) -> [Json; 2] {
    let id = format!("call_{number}");
    let arguments = json!({"path": format!("src/part_{number}.rs"), "note": "x".repeat(400)});
    let line = |line| format!("row {line} of part {number}, nothing else to see here\n");
    let result: String = (0..50).map(line).collect();
    [
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
            "function": {"name": tool, "arguments": arguments.to_string()}}]}),
        json!({"role": "tool", "tool_call_id": id, "content": result}),
    ]
}

fn run(tools: &[&str]) -> Vec<Json> {
    let goal = json!({"role": "user", "content": "Look at every part."});
    let uses = tools.iter().enumerate();
    let uses = uses.flat_map(|(number, tool)| tool_use(number, tool));
    std::iter::once(goal).chain(uses).collect()
}

fn clearing(trigger: Trigger) -> Clearing {
    Clearing {
        trigger,
        ..Clearing::default()
    }
}

fn policy(clearing: Clearing) -> Policy {
    Policy {
        strategy: Strategy::ClearToolUses,
        clearing,
        ..Policy::default()
    }
}

fn set_of(messages: &[Json], policy: Policy, budget: u64) -> WorkingSet<Box<str>> {
    let mut set = WorkingSet::new(settings(Dialect::OpenAi, budget, policy)).unwrap();
    for (index, message) in messages.iter().enumerate() {
        set.append(read_one(Dialect::OpenAi, message, index))
            .unwrap();
    }
    set
}

/// Tool uses whose results, and whose arguments, are cleared in the window.
fn cleared(set: &mut WorkingSet<Box<str>>, messages: &[Json]) -> (Vec<usize>, Vec<usize>) {
    set.window(false).unwrap();
    let window = render(set, messages);
    assert_eq!(window.len(), messages.len());
    let changed = |offset: usize| {
        let uses = 0..(messages.len() - 1) / 2;
        let at = move |number: usize| 1 + 2 * number + offset;
        uses.filter(|&number| window[at(number)] != messages[at(number)])
            .collect()
    };
    (changed(1), changed(0))
}

#[test]
fn all_but_the_newest_are_cleared_above_the_trigger() {
    let messages = run(&["look"; 8]);
    let mut set = set_of(&messages, policy(clearing(Trigger::ToolUses(7))), ROOMY);
    assert_eq!(cleared(&mut set, &messages), (vec![0, 1, 2, 3, 4], vec![]));
    let report = &set.explain()[1];
    assert_eq!(
        (report.level, report.reason),
        (Level::Stub, Reason::Cleared)
    );
    let rewrite = set.window_plan().rewrites()[0];
    assert_eq!(rewrite.cause, Cause::Preset);
    let mut set = set_of(&messages, policy(clearing(Trigger::ToolUses(8))), ROOMY);
    assert_eq!(cleared(&mut set, &messages), (vec![], vec![]));

    let whole = set.window(false).unwrap().tokens;
    for (most, is_due) in [(whole - 1, true), (whole, false)] {
        let mut set = set_of(
            &messages,
            policy(clearing(Trigger::InputTokens(most))),
            ROOMY,
        );
        assert_eq!(cleared(&mut set, &messages).0.is_empty(), !is_due);
    }
}

#[test]
fn a_gate_is_all_or_nothing_and_a_stop_ends_the_clearing() {
    let messages = run(&["look"; 8]);
    let of = |clear_at_least, clear_at_least_as| Clearing {
        clear_at_least,
        clear_at_least_as,
        ..clearing(Trigger::ToolUses(7))
    };
    let found = |clearing| cleared(&mut set_of(&messages, policy(clearing), ROOMY), &messages).0;
    let all = vec![0, 1, 2, 3, 4];
    assert_eq!(found(of(0, AtLeast::Stop)), all);
    // A result has about 600 tokens.
    assert_eq!(found(of(700, AtLeast::Stop)), [0, 1]);
    assert_eq!(found(of(9_999, AtLeast::Stop)), all);
    assert_eq!(found(of(700, AtLeast::Gate)), all);
    assert_eq!(found(of(9_999, AtLeast::Gate)), Vec::<usize>::new());
}

#[test]
fn excluded_tools_and_pinned_steps_stay_and_count_as_newest() {
    let messages = run(&["look", "memory", "look", "look", "memory", "look", "memory"]);
    let clearing = Clearing {
        exclude_tools: vec!["memory".to_owned()],
        keep: 2,
        clear_tool_inputs: ClearInputs::Of(vec!["look".to_owned()]),
        ..clearing(Trigger::ToolUses(6))
    };
    let mut set = set_of(&messages, policy(clearing), ROOMY);
    set.apply(&Event {
        at: messages.len(),
        kind: EventKind::Pin { index: 5 },
    })
    .unwrap();
    // 5 and 6 are the newest two, 1 and 4 are excluded, 2 is pinned.
    assert_eq!(cleared(&mut set, &messages), (vec![0, 3], vec![0, 3]));
    let window = render(&set, &messages);
    let arguments = window[1]["tool_calls"][0]["function"]["arguments"].as_str();
    let arguments: Json = serde_json::from_str(arguments.unwrap()).unwrap();
    assert!(arguments["paged_out"].is_string());
}

#[test]
fn what_was_cleared_stays_and_the_window_only_grows_between() {
    let messages = run(&["look"; 30]);
    let polled = Clearing {
        keep: 5,
        ..clearing(Trigger::ToolUses(9))
    };
    let mut set = WorkingSet::new(settings(Dialect::OpenAi, ROOMY, policy(polled))).unwrap();
    let (mut before, mut compactions) = (Vec::new(), 0);
    for (index, message) in messages.iter().enumerate() {
        set.append(read_one(Dialect::OpenAi, message, index))
            .unwrap();
        if index % 2 == 1 {
            continue;
        }
        let figures = set.window(false).unwrap();
        let window = render(&set, &messages[..=index]);
        if figures.compactions == compactions {
            assert_eq!(window[..before.len()], before[..]);
        }
        (before, compactions) = (window, figures.compactions);
    }
    // From 10 whole results down to 5, again and again.
    assert_eq!(compactions, 5);
}

#[test]
fn the_budget_comes_after_the_preset_and_holds() {
    let messages = run(&["look"; 40]);
    let whole = set_of(
        &messages,
        policy(clearing(Trigger::InputTokens(ROOMY))),
        ROOMY,
    )
    .window(false)
    .unwrap()
    .tokens;
    let mut set = set_of(
        &messages,
        policy(clearing(Trigger::InputTokens(ROOMY))),
        whole / 2,
    );
    let figures = set.window(false).unwrap();
    assert!(figures.tokens <= whole / 2);
    let causes = set.window_plan().rewrites().iter().map(|one| one.cause);
    assert!(causes.clone().all(|cause| cause == Cause::Forced) && causes.count() > 0);
    // Room for the calls alone is not there: whole steps go.
    let mut set = set_of(&messages, policy(clearing(Trigger::ToolUses(3))), 2_000);
    let figures = set.window(false).unwrap();
    assert!(figures.tokens <= 2_000 && figures.steps[3] > 0);
}

fn priced(cache: Cache) -> Policy {
    Policy {
        cache,
        ..Policy::default()
    }
}

#[test]
fn a_cold_cache_makes_room_above_the_target_and_only_once() {
    let messages = run(&["look"; 20]);
    let whole = set_of(&messages, Policy::default(), ROOMY)
        .window(false)
        .unwrap()
        .tokens;
    let budget = whole + whole / 10;
    let mut set = set_of(&messages, Policy::default(), budget);
    assert_eq!(set.window(false).unwrap().compactions, 0);
    let event = |cold| Event {
        at: messages.len(),
        kind: EventKind::Cache { cold },
    };
    set.apply(&event(true)).unwrap();
    assert_eq!(set.window(false).unwrap().compactions, 1);
    let rewrite = set.window_plan().rewrites()[0];
    assert_eq!((rewrite.cause, rewrite.break_even), (Cause::Cold, 0.0));
    set.apply(&event(false)).unwrap();
    assert_eq!(set.window(false).unwrap().compactions, 0);
    // The call that follows fills the cache again.
    set.apply(&event(true)).unwrap();
    let [call, result] = tool_use(99, "look");
    set.append(read_one(Dialect::OpenAi, &call, messages.len()))
        .unwrap();
    set.append(read_one(Dialect::OpenAi, &result, messages.len() + 1))
        .unwrap();
    assert_eq!(set.window(false).unwrap().compactions, 1);
    // Below the target there is nothing to do.
    let mut set = set_of(&messages, Policy::default(), whole * 2);
    set.apply(&event(true)).unwrap();
    assert_eq!(set.window(false).unwrap().compactions, 0);
}

#[test]
fn a_priced_compaction_happens_only_if_it_pays() {
    let messages = run(&["look"; 20]);
    let whole = set_of(&messages, Policy::default(), ROOMY)
        .window(false)
        .unwrap()
        .tokens;
    let budget = whole + whole / 20;
    let of = |remaining_calls| Cache {
        priced: true,
        remaining_calls: Some(remaining_calls),
        ..Cache::default()
    };
    let mut set = set_of(&messages, priced(of(100_000)), budget);
    let figures = set.window(false).unwrap();
    let rewrites = set.window_plan().rewrites().to_vec();
    assert!(figures.compactions > 0 && rewrites.iter().all(|one| one.cause == Cause::Priced));
    let first = rewrites[0];
    let expected = (1.25 - 0.1) * first.rewritten as f64 / (0.1 * first.removed as f64);
    assert!((first.break_even - expected).abs() < 1e-9 && first.break_even < 100_000.0);
    // Not enough calls to come: nothing happens.
    let mut set = set_of(&messages, priced(of(first.break_even as u32 / 8)), budget);
    let causes = |set: &WorkingSet<Box<str>>| set.window_plan().rewrites().len();
    set.window(false).unwrap();
    assert_eq!(causes(&set), 0);
    // Where a write costs no more than a read, any saving pays.
    let free = Cache {
        write: Some(0.1),
        ..of(1)
    };
    let mut set = set_of(&messages, priced(free), budget);
    assert!(set.window(false).unwrap().compactions > 0);
}

#[test]
fn bound_reasoning_is_part_of_the_price() {
    let mut messages = run(&["look"; 20]);
    for message in messages.iter_mut().skip(1).step_by(2) {
        message["reasoning_content"] = json!("I wonder what this part holds. ".repeat(8));
    }
    let found = |binds_reasoning| {
        let mut settings = settings(Dialect::OpenAi, 9_000, Policy::default());
        settings.prices = Prices {
            binds_reasoning,
            ..Prices::default()
        };
        let mut set = WorkingSet::new(settings).unwrap();
        for (index, message) in messages.iter().enumerate() {
            set.append(read_one(Dialect::OpenAi, message, index))
                .unwrap();
        }
        set.window(false).unwrap();
        set.window_plan().rewrites()[0]
    };
    let (free, bound) = (found(false), found(true));
    assert_eq!((free.at, free.lost_reasoning), (bound.at, 0));
    assert!(bound.lost_reasoning > 0);
    let lost = bound.lost_reasoning as f64;
    let cost = 1.15 * bound.rewritten as f64 + 5.0 * lost;
    assert!((bound.break_even - cost / (0.1 * bound.removed as f64)).abs() < 1e-9);
    assert_eq!(bound.removed, free.removed + bound.lost_reasoning);
    assert_eq!(bound.rewritten, free.rewritten - bound.lost_reasoning);
}

#[test]
fn what_fits_the_question_comes_back_before_it() {
    let mut messages = vec![json!({"role": "user", "content": "Let us talk."})];
    for number in 0..200 {
        let role = if number % 2 == 0 { "assistant" } else { "user" };
        let text = match number {
            30 => "What did you name the cat in the end?".to_owned(),
            31 => "Pickle, since he is green-eyed and sour.".to_owned(),
            _ => format!("Weather report {number}: clouds, some rain, wind from the west again."),
        };
        messages.push(json!({"role": role, "content": text}));
    }
    messages.push(json!({"role": "user", "content": "So what did I name that cat?"}));
    let relevant = Policy {
        select: Select::Relevant,
        ..Policy::default()
    };
    let mut set = set_of(&messages, relevant, 1_000);
    let levels = |set: &WorkingSet<Box<str>>| -> Vec<Level> {
        set.explain().iter().map(|step| step.level).collect()
    };
    let figures = set.window(false).unwrap();
    assert!(figures.tokens <= 1_000);
    let window = render(&set, &messages);
    assert_eq!(window.last(), messages.last());
    let block = window[window.len() - 2]["content"].as_str().unwrap();
    // The answer has no word of the question: it comes with its neighbour.
    assert!(block.contains("name the cat") && block.contains("Pickle"));
    let before = levels(&set);
    set.window_for(false, Some("report 77 clouds")).unwrap();
    assert_eq!(levels(&set), before);
    let window = render(&set, &messages);
    let block = window[window.len() - 2]["content"].as_str().unwrap();
    assert!(block.contains("report 77") && !block.contains("Pickle"));
}
