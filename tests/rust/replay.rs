//! Replay: what counts as a reference, what each policy shows, and promises over random histories.

use std::fmt::Write as _;

use proptest::prelude::*;
use satchel_core::dialect::Dialect;
use satchel_core::policy::Policy;
use satchel_core::readers::json::{Json, parse};
use satchel_core::replay::{
    Baseline, Contender, Limit, Options, Outcome, PLANTED, Prices, Recording, Run, replay,
    replay_planted, with_planted,
};
use satchel_core::tokens::Counter;
use satchel_core::{Error, ErrorKind};
use serde_json::{Value as Serde, json};

use crate::histories::{Act, acts, anthropic, bedrock, gemini, openai, responses};

const PRICES: Prices = Prices {
    read: 0.3,
    write: 3.75,
    output: 15.0,
};

const OPTIONS: Options = Options {
    prices: PRICES,
    seed: 7,
    trace: true,
    worst: 5,
};

fn counter() -> Counter {
    Counter::named("chars4")
        .unwrap()
        .with_margin(true, 0.0)
        .unwrap()
}

fn run_of(dialect: Dialect, messages: &[Serde]) -> Run {
    let parsed = messages
        .iter()
        .map(|message| parse(&message.to_string()).unwrap());
    Run {
        dialect,
        messages: parsed.collect(),
        system: None,
        tools: None,
    }
}

fn recording(run: &Run, limit: Limit) -> Result<Recording, Error> {
    Recording::new(run, &counter(), limit)
}

fn play(run: &Run, limit: Limit, contender: &Contender) -> Outcome {
    replay(&recording(run, limit).unwrap(), contender, &OPTIONS).unwrap()
}

fn adaptive() -> Contender {
    Contender::Satchel(Box::default())
}

fn call(number: usize, arguments: &Serde, output: &str) -> [Serde; 2] {
    let id = format!("c{number}");
    [
        json!({"role": "assistant", "content": null, "tool_calls": [{
            "id": id, "type": "function",
            "function": {"name": "run", "arguments": arguments.to_string()},
        }]}),
        json!({"role": "tool", "tool_call_id": id, "content": output}),
    ]
}

/// A key in the first result, work that has nothing to do with it, then its use.
fn run_with_key() -> Run {
    let mut messages = vec![
        json!({"role": "system", "content": "You keep the ledger_of_2031."}),
        json!({"role": "user", "content": "Tidy up task-77, please."}),
    ];
    messages.extend(call(
        0,
        &json!({"list": "all"}),
        "name kind\nvault-417 the key\nother thing",
    ));
    for number in 1..12 {
        let mut output = String::new();
        for line in 0..20 {
            writeln!(output, "line {line} of file_{number}.txt says nothing").unwrap();
        }
        let path = format!("file_{number}.txt");
        messages.extend(call(number, &json!({"open": path}), &output));
    }
    messages.extend(call(
        12,
        &json!({"use": "vault-417", "for": "task-77 in ledger_of_2031", "near": "file_11.txt"}),
        "done",
    ));
    run_of(Dialect::OpenAi, &messages)
}

#[test]
fn references_are_what_actions_took_from_earlier_messages() {
    let run = run_with_key();
    let recording = recording(&run, Limit::Share(0.25)).unwrap();
    let calls = recording.calls();
    assert_eq!(calls.len(), 13);
    let last = calls.last().unwrap();
    let found: Vec<_> = last
        .references
        .iter()
        .map(|found| (recording.name(found.name), found.newest, found.is_long))
        .collect();
    // Not task-77 and ledger_of_2031: they are pinned. The newest copy counts.
    assert_eq!(found, [("vault-417", 3, true), ("file_11.txt", 25, false)]);
    // A name that an action makes up is no reference.
    assert!(calls[..12].iter().all(|call| call.references.is_empty()));
    assert_eq!((last.at, last.end), (26, 27));
}

#[test]
fn without_calls_actions_are_fenced() {
    let mut messages = vec![json!({"role": "user", "content": "Begin."})];
    for number in 0..7 {
        let text = format!("I name item_{number}.\n```\nopen item_0 at_{number}\n```\nand item_1");
        messages.push(json!({"role": "assistant", "content": text}));
        messages.push(json!({"role": "user", "content": format!("output_{number}")}));
    }
    let run = run_of(Dialect::OpenAi, &messages);
    let recording = recording(&run, Limit::Share(0.5)).unwrap();
    let taken: Vec<Vec<&str>> = recording
        .calls()
        .iter()
        .map(|call| {
            let found = call.references.iter();
            found.map(|found| recording.name(found.name)).collect()
        })
        .collect();
    assert!(taken[0].is_empty());
    assert!(taken[1..].iter().all(|names| names == &["item_0"]));
}

#[test]
fn everything_keeps_everything_and_begins_with_what_was() {
    let run = run_with_key();
    let full = play(
        &run,
        Limit::Share(0.25),
        &Contender::Baseline(Baseline::Full),
    );
    assert_eq!(
        (full.read, full.long_read),
        (full.references, full.long_references)
    );
    assert_eq!((full.long_references, full.long_read_in_line), (1, 1));
    assert_eq!((full.steady_calls, full.stable_calls), (12, 12));
    assert!(full.over_budget > 0);
    let recording = recording(&run, Limit::Share(0.25)).unwrap();
    let reply: u64 = recording
        .calls()
        .iter()
        .map(|call| call.output_tokens)
        .sum();
    assert_eq!(full.output_tokens, reply);
    let expected = (full.cached_tokens as f64 * PRICES.read
        + (full.input_tokens - full.cached_tokens) as f64 * PRICES.write
        + full.output_tokens as f64 * PRICES.output)
        / 1e6;
    assert!((full.cost - expected).abs() < 1e-12);
}

#[test]
fn who_knows_the_future_keeps_the_key_and_who_keeps_the_newest_does_not() {
    let run = run_with_key();
    let limit = Limit::Share(0.25);
    let long = |baseline| play(&run, limit, &Contender::Baseline(baseline)).long_read_in_line;
    assert_eq!(long(Baseline::OracleLines), 1);
    assert_eq!(long(Baseline::Oracle), 1);
    assert_eq!(long(Baseline::HeadTail), 1);
    assert_eq!(long(Baseline::KeepLast), 0);
    assert_eq!(long(Baseline::LangchainTrim), 0);
    assert_eq!(long(Baseline::ClearToolUses), 0);
    let lost = play(&run, limit, &Contender::Baseline(Baseline::KeepLast));
    assert_eq!((lost.lost, lost.behind_pointers), (1, 0));
    assert_eq!(lost.worst.len(), 1);
    let worst = &lost.worst[0];
    assert_eq!(
        (worst.name.as_str(), worst.newest, worst.at),
        ("vault-417", 3, 26)
    );
    assert_eq!(
        (worst.line.as_str(), worst.action.as_str()),
        ("vault-417 the key", "vault-417")
    );
    assert!(!worst.behind_pointer);
}

/// The level of every message at the last call.
fn last_levels(outcome: &Outcome, messages: usize) -> Vec<u8> {
    let mut levels = vec![0; messages];
    for shot in &outcome.shots {
        for &(message, level) in &shot.changes {
            levels[message as usize] = level;
        }
    }
    levels
}

#[test]
fn masking_replaces_results_and_trimming_keeps_no_goal() {
    let run = run_with_key();
    let all = Limit::Tokens(1_000_000);
    let masked = play(
        &run,
        all,
        &Contender::Baseline(Baseline::ObservationMasking),
    );
    let levels = last_levels(&masked, run.messages.len());
    // Twelve results stand before the last call; the newest ten are whole.
    assert_eq!(&levels[..8], [3, 3, 3, 1, 3, 1, 3, 3]);
    assert!(levels[8..26].iter().all(|&level| level == 3));
    let trimmed = play(
        &run,
        Limit::Share(0.25),
        &Contender::Baseline(Baseline::LangchainTrim),
    );
    let levels = last_levels(&trimmed, run.messages.len());
    assert_eq!(&levels[..4], [3, 0, 0, 0]);
    let first = levels.iter().skip(1).position(|&level| level == 3).unwrap() + 1;
    assert_eq!(first % 2, 0, "the window must not begin with a result");
    assert_eq!(trimmed.compactions, None);
}

#[test]
fn planted_instructions_stand_between_steps() {
    let run = run_with_key();
    let recording = recording(&run, Limit::Share(0.5)).unwrap();
    let (planted, places) = with_planted(&run, &recording).unwrap();
    assert_eq!(places.len(), PLANTED.len());
    assert_eq!(planted.messages.len(), run.messages.len() + PLANTED.len());
    for (&place, text) in places.iter().zip(PLANTED) {
        assert_eq!(
            planted.messages[place].at(&["content"]).unwrap(),
            &Json::from(text)
        );
        assert_eq!(planted.messages[place - 1].str_at("role"), Some("tool"));
    }
    let read = |baseline| {
        let contender = Contender::Baseline(baseline);
        replay_planted(&run, &counter(), &recording, &contender, 0).unwrap()
    };
    assert_eq!(read(Baseline::Full), (3, 3));
    assert!(read(Baseline::KeepLast).0 < 3);
    // They must fit a tenth of the budget.
    let small = Recording::new(&run, &counter(), Limit::Tokens(150)).unwrap();
    assert!(with_planted(&run, &small).unwrap().1.is_empty());
}

#[test]
fn damage_is_an_error_with_its_place() {
    let messages = [
        json!({"role": "user", "content": "Begin."}),
        json!({"role": "tool", "tool_call_id": "x", "content": "orphan"}),
    ];
    let run = run_of(Dialect::OpenAi, &messages);
    let error = recording(&run, Limit::Share(0.5)).unwrap_err();
    assert_eq!(
        (error.kind(), error.index()),
        (ErrorKind::OrphanResult, Some(1))
    );
}

#[test]
fn a_run_without_calls_or_messages_has_nothing_to_play() {
    for messages in [vec![], vec![json!({"role": "user", "content": "Hello."})]] {
        let run = run_of(Dialect::OpenAi, &messages);
        for baseline in Baseline::ALL {
            let outcome = play(&run, Limit::Share(0.5), &Contender::Baseline(baseline));
            assert_eq!((outcome.calls, outcome.input_tokens), (0, 0));
        }
        assert_eq!(play(&run, Limit::Share(0.5), &adaptive()).calls, 0);
    }
}

#[test]
fn the_bound_on_compactions_follows_the_target_even_of_a_small_budget() {
    let run = run_with_key();
    let limit = Limit::Share(0.25);
    let recorded = recording(&run, limit).unwrap();
    let (pinned, total) = (recorded.pinned_tokens(), recorded.total_tokens());
    let free = recorded.budget() - pinned;
    let policy = Policy::default();
    assert!(free < u64::from(policy.small_tokens));
    let bound = |band: f64| (1.2 * (total - pinned) as f64 / (free as f64 * band)).ceil() as u32;
    let outcome = play(&run, limit, &adaptive());
    assert!(policy.target_of_conversation(free) > policy.target);
    assert_eq!(
        outcome.compactions_bound,
        bound(policy.trigger - policy.target)
    );
    assert!(outcome.compactions.unwrap() <= outcome.compactions_bound);
    let newest = play(&run, limit, &Contender::Baseline(Baseline::KeepLast));
    assert_eq!(newest.compactions_bound, bound(1.0 - 0.8));
}

fn json_of(dialect: Dialect, acts: &[Act]) -> Vec<Serde> {
    match dialect {
        Dialect::Responses => responses(acts),
        Dialect::Anthropic => anthropic(acts),
        Dialect::Gemini => gemini(acts),
        Dialect::Bedrock => bedrock(acts),
        _ => openai(acts),
    }
}

proptest! {
    #[test]
    fn every_policy_keeps_its_promises(
        acts in acts(40),
        dialect in prop::sample::select(Dialect::ALL.to_vec()),
        share in prop::sample::select(vec![0.1, 0.25, 0.5, 1.0]),
    ) {
        let run = run_of(dialect, &json_of(dialect, &acts));
        let limit = Limit::Share(share);
        let Ok(recording) = recording(&run, limit) else {
            return Ok(());
        };
        let mut contenders = vec![adaptive()];
        contenders.extend(Baseline::ALL.map(Contender::Baseline));
        for contender in &contenders {
            let outcome = replay(&recording, contender, &OPTIONS).unwrap();
            prop_assert_eq!(&outcome, &replay(&recording, contender, &OPTIONS).unwrap());
            prop_assert_eq!(outcome.calls as usize, recording.calls().len());
            prop_assert!(outcome.read <= outcome.references);
            prop_assert!(outcome.long_read_in_line <= outcome.long_read);
            prop_assert!(outcome.long_read <= outcome.long_references);
            prop_assert!(outcome.cached_tokens <= outcome.input_tokens);
            prop_assert_eq!(
                outcome.behind_pointers + outcome.lost,
                outcome.references - outcome.read
            );
            let is_above = outcome.largest_window > recording.budget();
            prop_assert_eq!(outcome.over_budget > 0, is_above);
            match contender {
                Contender::Satchel(_) => {
                    prop_assert_eq!(outcome.lost, 0);
                    prop_assert_eq!(outcome.stable_calls, outcome.steady_calls);
                }
                Contender::Baseline(Baseline::Full) => {
                    prop_assert_eq!(outcome.read, outcome.references);
                    prop_assert_eq!(outcome.stable_calls, outcome.steady_calls);
                }
                Contender::Baseline(
                    Baseline::Oracle | Baseline::OracleLines | Baseline::LangchainTrim,
                ) => prop_assert_eq!(outcome.over_budget, 0),
                Contender::Baseline(_) => {}
            }
        }
    }

    #[test]
    fn a_wider_budget_never_costs_the_oracle_a_reference(acts in acts(40)) {
        let run = run_of(Dialect::OpenAi, &openai(&acts));
        let all = play(&run, Limit::Share(1.0), &Contender::Baseline(Baseline::OracleLines));
        prop_assert_eq!(all.read, all.references);
        prop_assert_eq!(all.compactions, Some(0));
    }
}

#[test]
fn the_name_of_a_policy_is_its_own() {
    let named = Policy {
        name: "mine".to_owned(),
        ..Policy::default()
    };
    let run = run_with_key();
    let outcome = play(
        &run,
        Limit::Share(0.5),
        &Contender::Satchel(Box::new(named)),
    );
    assert_eq!(outcome.policy, "mine");
}
