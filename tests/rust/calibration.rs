//! Learning from reported usage, and windows under what was learnt.

use std::sync::Arc;

use proptest::prelude::*;
use satchel_core::ErrorKind;
use satchel_core::dialect::{Dialect, read_message};
use satchel_core::event::{Event, EventKind};
use satchel_core::message::Message;
use satchel_core::page::PageKey;
use satchel_core::plan::Settings;
use satchel_core::policy::Policy;
use satchel_core::render::push_json;
use satchel_core::tokens::chat::{ChatRules, count_message_parts, message_overhead};
use satchel_core::tokens::{Calibration, Counter, ModelRules, Scale};
use satchel_core::working_set::{WindowFigures, WorkingSet};
use serde_json::{Value as Json, json};

use crate::histories::{acts, anthropic};

/// Observes `(counted, reported)` pairs in order.
fn learn(reports: impl IntoIterator<Item = (u64, u64)>) -> Calibration {
    reports
        .into_iter()
        .fold(Calibration::default(), |learnt, (counted, reported)| {
            learnt.observe(counted, reported).unwrap()
        })
}

#[test]
fn the_newest_report_is_met_exactly() {
    let learnt = learn([(1_000, 3_000), (2_500, 4_900), (2_600, 5_060)]);
    assert_eq!(learnt.scale().estimate(2_600), 5_060);
    assert_eq!(
        (learnt.n, learnt.estimated, learnt.reported),
        (3, 2_600, 5_060)
    );
}

#[test]
fn hidden_parts_end_up_in_the_offset() {
    // 20,000 tokens nobody sees, and 1.3 for each counted.
    let learnt = learn((1..40).map(|call| (call * 2_000, 20_000 + call * 2_600)));
    assert!((learnt.factor - 1.3).abs() < 0.01, "{learnt:?}");
    assert!((learnt.offset - 20_000.0).abs() < 500.0, "{learnt:?}");
}

#[test]
fn one_report_that_does_not_fit_changes_little() {
    let mut reports: Vec<(u64, u64)> = (1..30).map(|call| (call * 2_000, call * 2_400)).collect();
    let before = learn(reports.clone());
    // An attachment of 30,000 tokens that was not counted.
    reports.push((60_000, 102_000));
    let after = learn(reports);
    assert!(
        (before.factor - after.factor).abs() < 0.05,
        "{before:?} {after:?}"
    );
    assert_eq!(after.scale().estimate(60_000), 102_000);
}

#[test]
fn a_history_that_shrank_is_no_outlier() {
    let learnt = learn([
        (10_000, 12_500),
        (20_000, 25_000),
        (5_000, 6_250),
        (9_000, 11_250),
    ]);
    assert!((learnt.factor - 1.25).abs() < 0.01, "{learnt:?}");
}

#[test]
fn the_margin_comes_with_enough_reports() {
    let good = learn((1..20).map(|call| (call * 1_000, call * 1_250)));
    assert_eq!(learn([(1_000, 1_200)]).scale().margin, None);
    assert!(good.scale().margin.unwrap() <= 0.03, "{good:?}");
    let noisy = learn((1..40).map(|call| (call * 1_000, call * 1_250 + call % 2 * 3_000)));
    assert!(noisy.scale().margin.unwrap() > good.scale().margin.unwrap());
}

#[test]
fn nothing_is_learnt_from_nothing() {
    for (counted, reported) in [(0, 5), (5, 0), (0, 0)] {
        let error = Calibration::default()
            .observe(counted, reported)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidValue);
    }
}

#[test]
fn figures_from_outside_are_checked() {
    let scale = |factor, offset, margin| Scale {
        factor,
        offset,
        margin,
    };
    assert!(scale(1.0, -5.0, None).check().is_ok());
    for wrong in [
        scale(0.0, 0.0, None),
        scale(-1.0, 0.0, None),
        scale(11.0, 0.0, None),
        scale(f64::NAN, 0.0, None),
        scale(1.0, f64::INFINITY, None),
        scale(1.0, 0.0, Some(-0.1)),
    ] {
        assert_eq!(wrong.check().unwrap_err().kind(), ErrorKind::InvalidValue);
    }
}

proptest! {
    #[test]
    fn always_within_limits_and_anchored(
        reports in prop::collection::vec((1_u64..2_000_000, 1_u64..2_000_000), 1..40),
    ) {
        let learnt = learn(reports.clone());
        prop_assert!((0.5..=2.0).contains(&learnt.factor));
        prop_assert!(learnt.check().is_ok());
        let (counted, reported) = reports[reports.len() - 1];
        prop_assert!(learnt.scale().estimate(counted).abs_diff(reported) <= 1);
    }

    #[test]
    fn the_upper_estimate_is_above_and_grows(
        factor in 0.5..2.0_f64, offset in -50_000.0..50_000.0_f64,
        margin in 0.0..0.5_f64, tokens in 0_u64..1_000_000, more in 0_u64..10_000,
    ) {
        let scale = Scale { factor, offset, margin: None };
        prop_assert!(scale.upper(tokens, margin) >= scale.estimate(tokens));
        prop_assert!(scale.upper(tokens + more, margin) >= scale.upper(tokens, margin));
    }
}

fn settings(budget: u64) -> Settings {
    let rules = ModelRules::from_json(&crate::rules::claude().to_string()).unwrap();
    let counter = Counter::named("chars4").unwrap().with_rules(rules);
    let chat = ChatRules::for_counter(Dialect::Anthropic, &counter);
    Settings {
        dialect: Dialect::Anthropic,
        counter: counter.with_margin(false, 0.25).unwrap(),
        budget,
        policy: Arc::new(Policy::default()),
        system_tokens: 10,
        tools_tokens: 30,
        request_tokens: chat.request_tokens(),
        message_tokens: chat.inserted_message_tokens(),
        calibration: None,
        key: PageKey::new(""),
        prices: satchel_core::strategy::price::Prices::default(),
    }
}

fn read(messages: &[Json], first: usize) -> Vec<Message<Box<str>>> {
    let read = |(at, json): (usize, &Json)| read_message(Dialect::Anthropic, &json, first + at);
    messages
        .iter()
        .enumerate()
        .map(|message| read(message).unwrap())
        .collect()
}

/// Tokens of the newest window, counted again from its messages.
fn recount(set: &WorkingSet<Box<str>>, messages: &[Json]) -> u64 {
    let mut window: Vec<Json> = Vec::new();
    for entry in set.entries(0) {
        push_json(&mut window, messages, set.settings().dialect, &entry);
    }
    let settings = set.settings();
    let rules = ChatRules::for_counter(settings.dialect, &settings.counter);
    let mut window = read(&window, 0);
    count_message_parts(&mut window, &settings.counter).unwrap();
    let tokens = window.iter().map(|message| {
        let parts = message.parts.iter().map(|part| part.tokens).sum::<u32>();
        u64::from(parts + message_overhead(message, &rules, &settings.counter).unwrap())
    });
    settings.base_tokens() + tokens.sum::<u64>()
}

fn event(at: usize, scale: Scale) -> Event {
    Event {
        at,
        kind: EventKind::Calibration(scale),
    }
}

#[test]
fn an_event_is_read_with_numbers_of_every_form() {
    for (json, offset) in [
        (
            r#"{"at": 3, "kind": "calibration", "factor": 1.25, "offset": -12.5}"#,
            -12.5,
        ),
        (
            r#"{"at": 3, "kind": "calibration", "factor": 1, "offset": 7, "margin": 0.02}"#,
            7.0,
        ),
        (
            r#"{"at": 3, "kind": "calibration", "factor": 1e0, "offset": 2E3}"#,
            2_000.0,
        ),
    ] {
        let json: Json = serde_json::from_str(json).unwrap();
        let event = Event::from_json(&json, 1).unwrap();
        let EventKind::Calibration(scale) = event.kind else {
            panic!("{json} is a calibration");
        };
        assert!((scale.offset - offset).abs() < 1e-9);
        assert_eq!(event.at, 3);
    }
    for wrong in [
        json!({"at": 0, "kind": "calibration"}),
        json!({"at": 0, "kind": "calibration",
        "factor": "1", "offset": 0}),
    ] {
        assert_eq!(
            Event::from_json(&wrong, 1).unwrap_err().kind(),
            ErrorKind::InvalidEvent
        );
    }
}

#[test]
fn another_counter_forgets_what_was_learnt() {
    let mut set: WorkingSet<Box<str>> = WorkingSet::new(settings(1_000)).unwrap();
    let scale = Scale {
        factor: 1.5,
        offset: 100.0,
        margin: None,
    };
    set.apply(&event(0, scale)).unwrap();
    assert_eq!(set.settings().calibration, Some(scale));
    let change = json!({"at": 0, "kind": "settings", "counter": "chars3"});
    set.apply(&Event::from_json(&change, 1).unwrap()).unwrap();
    assert_eq!(set.settings().calibration, None);
    // And the dialect's own figures come back with a counter that has no rules.
    let rules = ChatRules::of(Dialect::Anthropic);
    assert_eq!(
        set.settings().message_tokens,
        rules.inserted_message_tokens()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn within_budget_by_the_calibrated_estimate(
        acts in acts(20), budget in 300_u64..6_000,
        factor in 0.6..1.8_f64, offset in -200.0..800.0_f64,
        margin in prop::option::of(0.0..0.3_f64), place in 0.0..1.0_f64,
    ) {
        let messages = anthropic(&acts);
        let at = (messages.len() as f64 * place) as usize;
        let scale = Scale { factor, offset, margin };
        let mut set = WorkingSet::new(settings(budget)).unwrap();
        for (index, message) in messages.iter().enumerate() {
            if index == at {
                set.apply(&event(at, scale)).unwrap();
            }
            set.append(read(std::slice::from_ref(message), index)).unwrap();
            match set.window(true) {
                Ok(figures) => {
                    prop_assert!(figures.tokens_upper <= budget);
                    prop_assert_eq!(recount(&set, &messages), figures.tokens);
                    if index >= at {
                        prop_assert_eq!(scale.upper(figures.tokens, 0.25), figures.tokens_upper);
                    }
                }
                Err(error) => prop_assert_eq!(error.kind(), ErrorKind::OverBudget),
            }
        }
        let mut rebuilt = WorkingSet::new(settings(budget)).unwrap();
        rebuilt.replay(read(&messages, 0), &[event(at, scale)]).unwrap();
        // A pending check shows in the reports.
        let tokens = |figures: WindowFigures| (figures.tokens, figures.tokens_upper, figures.steps);
        prop_assert_eq!(rebuilt.window(true).ok().map(tokens), set.window(true).ok().map(tokens));
        prop_assert_eq!(rebuilt.explain(), set.explain());
    }
}
