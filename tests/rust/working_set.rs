//! The promises of the planner, over random histories in every dialect.

use std::ops::Range;
use std::sync::Arc;

use proptest::prelude::*;
use satchel_core::dialect::{Dialect, read_message};
use satchel_core::event::{Event, EventKind};
use satchel_core::level::Level;
use satchel_core::message::{Message, PartKind, Role};
use satchel_core::page::PageKey;
use satchel_core::plan::Settings;
use satchel_core::policy::{Policy, Strategy as Choice};
use satchel_core::render::push_json;
use satchel_core::strategy::price::Cache;
use satchel_core::strategy::{AtLeast, ClearInputs, Clearing, Trigger};
use satchel_core::tokens::Counter;
use satchel_core::tokens::chat::{ChatRules, count_message_parts, message_overhead};
use satchel_core::working_set::{Page, WorkingSet, parse_pointer};
use satchel_core::{Error, ErrorKind};
use serde_json::Value as Json;

use crate::histories::{Act, acts, anthropic, bedrock, gemini, openai, responses};

const SYSTEM_TOKENS: u64 = 11;
const TOOLS_TOKENS: u64 = 40;

pub fn settings(dialect: Dialect, budget: u64, policy: Policy) -> Settings {
    let rules = ChatRules::of(dialect);
    Settings {
        dialect,
        // As a unit of its own: an estimate's margin is tested apart.
        counter: Counter::named("chars4")
            .unwrap()
            .with_margin(true, 0.0)
            .unwrap(),
        budget,
        policy: Arc::new(policy),
        system_tokens: SYSTEM_TOKENS,
        tools_tokens: TOOLS_TOKENS,
        request_tokens: rules.request_tokens(),
        calibration: None,
        message_tokens: rules.inserted_message_tokens(),
        key: PageKey::new(""),
        prices: satchel_core::strategy::price::Prices::default(),
    }
}

pub fn read(dialect: Dialect, messages: &[Json]) -> Vec<Message<Box<str>>> {
    messages
        .iter()
        .enumerate()
        .map(|(index, message)| read_message(dialect, &message, index).unwrap())
        .collect()
}

pub fn render(set: &WorkingSet<Box<str>>, messages: &[Json]) -> Vec<Json> {
    render_of(set, messages, 0..messages.len())
}

fn render_of(set: &WorkingSet<Box<str>>, messages: &[Json], range: Range<usize>) -> Vec<Json> {
    let mut window = Vec::new();
    for entry in set.entries_of(range) {
        push_json(&mut window, messages, set.settings().dialect, &entry);
    }
    window
}

/// Tokens of a request, counted again from the rendered messages.
pub fn recount(set: &WorkingSet<Box<str>>, window: &[Json]) -> u64 {
    let settings = set.settings();
    let rules = ChatRules::of(settings.dialect);
    let mut messages = read(settings.dialect, window);
    count_message_parts(&mut messages, &settings.counter).unwrap();
    let history: u32 = messages
        .iter()
        .map(|message| {
            message_overhead(message, &rules, &settings.counter).unwrap()
                + message.parts.iter().map(|part| part.tokens).sum::<u32>()
        })
        .sum();
    settings.base_tokens() + u64::from(history)
}

/// Calls without exactly one result right after them, and results without a call.
pub fn unpaired(dialect: Dialect, window: &[Json]) -> usize {
    let mut faults = 0;
    let mut open: Vec<String> = Vec::new();
    let text = |message: &Message<Box<str>>, kind: PartKind| -> Vec<String> {
        message
            .parts
            .iter()
            .filter(|part| part.kind == kind)
            .map(|part| {
                part.key
                    .as_ref()
                    .and_then(|key| key.id.as_deref())
                    .unwrap_or("")
                    .to_owned()
            })
            .collect()
    };
    for message in read(dialect, window) {
        let results = text(&message, PartKind::Result);
        for id in &results {
            match open.iter().position(|call| call == id) {
                Some(at) => drop(open.remove(at)),
                None => faults += 1,
            }
        }
        // Records of one answer; `gemini` and `bedrock` write them as one message.
        let joins = matches!(dialect, Dialect::Anthropic | Dialect::Responses)
            && message.role == Role::Assistant;
        if results.is_empty() && !joins {
            faults += open.len();
            open.clear();
        }
        open.extend(text(&message, PartKind::Call));
    }
    faults + open.len()
}

pub fn json_of(dialect: Dialect, acts: &[Act]) -> Vec<Json> {
    match dialect {
        Dialect::Responses => responses(acts),
        Dialect::Anthropic => anthropic(acts),
        Dialect::Gemini => gemini(acts),
        Dialect::Bedrock => bedrock(acts),
        _ => openai(acts),
    }
}

pub fn dialects() -> impl Strategy<Value = Dialect> {
    prop::sample::select(Dialect::ALL.to_vec())
}

pub fn clearings() -> impl Strategy<Value = Clearing> {
    let trigger = prop_oneof![
        (0u64..2000).prop_map(Trigger::InputTokens),
        (0u64..12).prop_map(Trigger::ToolUses),
    ];
    let inputs = prop_oneof![
        any::<bool>().prop_map(ClearInputs::All),
        Just(ClearInputs::Of(vec!["look".to_owned()])),
    ];
    let as_gate = any::<bool>().prop_map(|gate| if gate { AtLeast::Gate } else { AtLeast::Stop });
    (trigger, 0u32..6, 0u64..300, as_gate, inputs).prop_map(
        |(trigger, keep, clear_at_least, clear_at_least_as, clear_tool_inputs)| Clearing {
            trigger,
            keep,
            clear_at_least,
            clear_at_least_as,
            clear_tool_inputs,
            ..Clearing::default()
        },
    )
}

pub fn policies() -> impl Strategy<Value = Policy> {
    let strategy = prop_oneof![
        4 => Just((Choice::Adaptive, None)),
        1 => (1u32..12).prop_map(|most| (Choice::SlidingWindow, Some(most))),
        1 => Just((Choice::TokenWindow, None)),
        3 => Just((Choice::ClearToolUses, None)),
    ];
    let shares = (strategy, 0.5f64..1.0, 0.2f64..1.0, 0u32..4, 0.0f64..0.5);
    (shares, clearings(), any::<bool>()).prop_map(
        |(((strategy, max_messages), trigger, part, recent_steps, recall), clearing, priced)| {
            Policy {
                clearing,
                cache: Cache {
                    priced,
                    min_prefix: Some(0),
                    ..Cache::default()
                },
                recent_steps,
                recall,
                strategy,
                max_messages,
                trigger,
                target: trigger * part,
                ..Policy::default()
            }
        },
    )
}

fn is_boundary(set: &WorkingSet<Box<str>>) -> bool {
    set.transcript().pairing().open_calls() == 0
}

/// Whether message `index`, the newest, was folded as a call.
fn is_newest_folded(set: &WorkingSet<Box<str>>, index: usize) -> bool {
    let newest = set.transcript().steps().last();
    let starts = newest.is_some_and(|step| step.first as usize == index);
    starts && set.transcript().rows()[index].role == Role::Assistant
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn promises_hold_at_every_boundary(
        acts in acts(24), dialect in dialects(), policy in policies(), budget in 60u64..3000,
    ) {
        let messages = json_of(dialect, &acts);
        let mut set = WorkingSet::new(settings(dialect, budget, policy.clone())).unwrap();
        let mut before: Option<(u32, u64, Vec<Json>)> = None;
        let mut settled_before: Option<(u64, usize, Vec<Json>)> = None;
        // Whether something at the end of the newest window goes if no call is made there.
        let mut is_provisional = false;
        for (index, message) in messages.iter().enumerate() {
            set.append(read_one(dialect, message, index)).unwrap();
            let is_call = is_newest_folded(&set, index);
            let figures = match set.window(true) {
                Ok(figures) => figures,
                Err(error) => {
                    prop_assert_eq!(error.kind(), ErrorKind::OverBudget);
                    prop_assert_eq!(error.limit(), Some(budget));
                    before = None;
                    settled_before = None;
                    continue;
                }
            };
            let window = render(&set, &messages);
            // settled: what a cache by revision may keep
            let settled = render_of(&set, &messages, 0..figures.settled);
            if let Some((revision, end, old)) = &settled_before
                && *revision == figures.revision
            {
                prop_assert_eq!(&render_of(&set, &messages, 0..*end), old);
            }
            settled_before = Some((figures.revision, figures.settled, settled));
            // within_budget, by a count of the rendered messages
            prop_assert!(figures.tokens_upper <= budget);
            prop_assert_eq!(recount(&set, &window), figures.tokens);
            // valid, whole_steps
            prop_assert_eq!(unpaired(dialect, &window), 0);
            prop_assert_eq!(disorder(dialect, &window), Vec::<String>::new());
            // anchored, order_kept
            let seen = &messages[..=index];
            let goal = seen.iter().find(|message| message["role"] == "user");
            if let Some(goal) = goal {
                prop_assert!(window.iter().any(|message| holds(message, goal)));
            }
            if let Some(user) = seen.iter().rev().find(|message| is_user(message)) {
                prop_assert!(window.iter().any(|message| holds(message, user)));
            }
            for system in seen.iter().filter(|message| message["role"] == "system") {
                prop_assert!(window.contains(system));
            }
            // plan_adds_up
            let reports = set.explain();
            let sum: u64 = reports.iter().map(|report| u64::from(report.tokens)).sum();
            let plan = set.window_plan();
            let notes = plan.recalls().iter().map(|recall| u64::from(recall.tokens)).sum::<u64>()
                + plan.root().map_or(0, |root| u64::from(root.tokens));
            prop_assert_eq!(sum + notes, plan.history_tokens());
            // noop_under_budget
            if figures.compactions == 0 && is_boundary(&set) && !aborted(&acts) {
                prop_assert_eq!(flat(&window), flat(&messages[..=index]));
                if !dialect.may_join() {
                    prop_assert_eq!(&window, &messages[..=index]);
                }
            }
            // prefix_stable
            if let Some((compactions, revision, old)) = &before
                && *compactions == figures.compactions
                && *revision == figures.revision
                && (is_call || !is_provisional)
            {
                if dialect.may_join() {
                    let old = flat(old);
                    prop_assert_eq!(&flat(&window)[..old.len()], &old[..]);
                } else {
                    prop_assert_eq!(&window[..old.len()], &old[..]);
                }
            }
            is_provisional = set.transcript().pairing().open_calls() > 0
                || plan.recalls().iter().any(|recall| recall.at as usize == index + 1);
            before = Some((figures.compactions, figures.revision, window));
        }
    }

    #[test]
    fn incremental_equals_rebuild(
        acts in acts(24), dialect in dialects(), policy in policies(), budget in 200u64..2000,
        asks in prop::collection::vec(any::<bool>(), 0..120), pin in 0usize..40,
    ) {
        let messages = json_of(dialect, &acts);
        let mut set = WorkingSet::new(settings(dialect, budget, policy.clone())).unwrap();
        let mut events = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            set.append(read_one(dialect, message, index)).unwrap();
            if asks.get(index).copied().unwrap_or(false) {
                let _ = set.window(true);
            }
            if index == pin {
                let event = Event { at: index + 1, kind: EventKind::Pin { index: index / 2 } };
                set.apply(&event).unwrap();
                events.push(event);
            }
        }
        let mut rebuilt = WorkingSet::new(settings(dialect, budget, policy)).unwrap();
        rebuilt.replay(read(dialect, &messages), &events).unwrap();
        let (left, right) = (set.window(true), rebuilt.window(true));
        match (left, right) {
            (Ok(left), Ok(right)) => {
                prop_assert_eq!(left.tokens, right.tokens);
                prop_assert_eq!(render(&set, &messages), render(&rebuilt, &messages));
            }
            (left, right) => prop_assert_eq!(left.err(), right.err()),
        }
        prop_assert_eq!(set.explain(), rebuilt.explain());
    }

    #[test]
    fn nothing_is_lost(
        acts in acts(20), dialect in dialects(), policy in policies(), budget in 150u64..1200,
    ) {
        let messages = json_of(dialect, &acts);
        let mut set = WorkingSet::new(settings(dialect, budget, policy)).unwrap();
        set.append(read(dialect, &messages)).unwrap();
        if set.window(true).is_err() {
            return Ok(());
        }
        let window = render(&set, &messages);
        let shown = Json::from(window).to_string();
        let index = set.index_page();
        // Every pointer that the window or the index shows leads to a page with the same bytes.
        for text in [&shown, &index] {
            for (at, _) in text.match_indices("p_") {
                let Some(name) = text.get(at..at + 20) else { continue };
                let Ok(pointer) = parse_pointer(name) else { continue };
                prop_assert!(set.find_page(pointer).is_ok(), "dangling {name}");
            }
        }
        // Every part that is not verbatim has a pointer in the window or in the index.
        let reports = set.explain();
        for report in &reports {
            for message in report.first as usize..report.end as usize {
                for part in set.transcript().part_range(message) {
                    let pointer = set.pointer_of(part);
                    prop_assert_eq!(set.find_page(pointer).unwrap(), Page::Part(part));
                    if report.level == Level::Gone {
                        prop_assert!(index.contains(&pointer.to_string()));
                    }
                }
            }
        }
        for shown_step in set.window_plan().shown() {
            for edit in shown_step.edits.iter() {
                let pointer = set.pointer_of(edit.part as usize).to_string();
                prop_assert!(edit.text.contains(&pointer));
                prop_assert!(shown.contains(&pointer));
            }
        }
    }

    #[test]
    fn levels_only_fall(
        acts in acts(24), dialect in dialects(), budget in 150u64..1500,
    ) {
        let messages = json_of(dialect, &acts);
        let mut set = WorkingSet::new(settings(dialect, budget, Policy::default())).unwrap();
        let mut before: Vec<Level> = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            set.append(read_one(dialect, message, index)).unwrap();
            let now: Vec<Level> = set.plan().fates().iter().map(|fate| fate.level).collect();
            for (old, new) in before.iter().zip(&now) {
                prop_assert!(new <= old);
            }
            before = now;
        }
    }
}

pub fn read_one(dialect: Dialect, message: &Json, index: usize) -> Vec<Message<Box<str>>> {
    vec![read_message(dialect, &message, index).unwrap()]
}

/// The blocks of a message; texts as strings, in whatever form they are written.
fn blocks(message: &Json) -> Vec<Json> {
    let content = match message.get("parts") {
        Some(parts) => parts,
        None => &message["content"],
    };
    let text = |block: &Json| match &block["text"] {
        Json::Null => block.clone(),
        text => text.clone(),
    };
    match content {
        Json::Array(blocks) => blocks.iter().map(text).collect(),
        Json::Null => vec![message.clone()],
        content => vec![content.clone()],
    }
}

/// Role and block, one after the other: joined neighbours read the same as single ones.
fn flat(messages: &[Json]) -> Vec<(Json, Json)> {
    let pair = |message: &Json| {
        let role = message["role"].clone();
        let pairs = blocks(message)
            .into_iter()
            .map(move |block| (role.clone(), block));
        pairs.collect::<Vec<_>>()
    };
    messages.iter().flat_map(pair).collect()
}

fn is_user(message: &Json) -> bool {
    let is_result = |block: &Json| {
        block["type"] == "tool_result"
            || block.get("functionResponse").is_some()
            || block.get("toolResult").is_some()
    };
    message["role"] == "user" && blocks(message).iter().any(|block| !is_result(block))
}

/// Whether `message` shows all of `original`, perhaps with further blocks around.
fn holds(message: &Json, original: &Json) -> bool {
    let (shown, wanted) = (blocks(message), blocks(original));
    message["role"] == original["role"]
        && shown.windows(wanted.len()).any(|blocks| blocks == wanted)
}

/// Breaks of the order that the provider asks for.
pub fn disorder(dialect: Dialect, window: &[Json]) -> Vec<String> {
    let count = |message: &Json, key: &str| {
        blocks(message)
            .iter()
            .filter(|block| block.get(key).is_some())
            .count()
    };
    let mut found = Vec::new();
    if dialect.user_first() && window.first().is_some_and(|first| first["role"] != "user") {
        found.push("the first message is no user's".to_owned());
    }
    for (at, pair) in window.windows(2).enumerate() {
        let same = pair[0]["role"] == pair[1]["role"];
        match dialect {
            Dialect::Bedrock if same => found.push(format!("one role at {at}")),
            Dialect::Gemini => {
                if same && pair[0]["role"] == "model" {
                    found.push(format!("two turns of the model at {at}"));
                }
                let (calls, results) = (
                    count(&pair[0], "functionCall"),
                    count(&pair[1], "functionResponse"),
                );
                if calls != results {
                    found.push(format!("{calls} calls and {results} results at {at}"));
                }
            }
            _ => {}
        }
    }
    found
}

fn aborted(acts: &[Act]) -> bool {
    acts.iter().any(|act| {
        matches!(act, Act::Tools { results, .. } if results.iter().any(|(_, arrived)| !arrived))
    })
}

fn small(budget: u64) -> (WorkingSet<Box<str>>, Vec<Json>) {
    let mut messages = vec![
        serde_json::json!({"role": "system", "content": "Be brief."}),
        serde_json::json!({"role": "user", "content": "Find the bug in the parser."}),
    ];
    for number in 0..20 {
        messages.push(
            serde_json::json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "same", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}),
        );
        messages.push(serde_json::json!({"role": "tool", "tool_call_id": "same",
            "content": format!("file {number}\n").repeat(60)}));
    }
    let mut set = WorkingSet::new(settings(Dialect::OpenAi, budget, Policy::default())).unwrap();
    set.append(read(Dialect::OpenAi, &messages)).unwrap();
    (set, messages)
}

#[test]
fn a_pinned_step_comes_back_in_place() {
    let (mut set, mut messages) = small(900);
    set.window(false).unwrap();
    let gone = set
        .explain()
        .iter()
        .position(|report| report.level < Level::Verbatim)
        .unwrap();
    let index = set.explain()[gone].end as usize - 1;
    set.apply(&Event {
        at: messages.len(),
        kind: EventKind::Pin { index },
    })
    .unwrap();
    let content = messages[index]["content"].as_str().unwrap().trim_end();
    let content = content.to_owned();
    let shows = |window: &[Json]| {
        let texts = window
            .iter()
            .filter_map(|message| message["content"].as_str());
        let mut blocks = window
            .iter()
            .filter_map(|message| message["content"].as_array());
        texts.into_iter().any(|text| text.contains(&content))
            || blocks.any(|blocks| {
                blocks.iter().any(|block| {
                    block["text"]
                        .as_str()
                        .is_some_and(|text| text.contains(&content))
                })
            })
    };
    let compactions = set.window(false).unwrap().compactions;
    assert!(shows(&render(&set, &messages)));
    // It is in its place from the next compaction on, and stays while the history grows.
    for _ in 0..30 {
        let at = messages.len();
        messages.push(
            serde_json::json!({"role": "assistant", "content": "thinking aloud ".repeat(20)}),
        );
        messages.push(serde_json::json!({"role": "user", "content": "go on"}));
        set.append(read(Dialect::OpenAi, &messages[at..])).unwrap();
        let figures = set.window(false).unwrap();
        let window = render(&set, &messages);
        assert!(shows(&window));
        assert!(figures.compactions == compactions || window.contains(&messages[index]));
    }
    assert_eq!(set.explain()[gone].level, Level::Verbatim);
    set.apply(&Event {
        at: messages.len(),
        kind: EventKind::Unpin { index },
    })
    .unwrap();
}

#[test]
fn what_cannot_fit_names_the_message() {
    let (mut set, _) = small(900);
    let big = serde_json::json!({"role": "user", "content": "word ".repeat(2000)});
    set.append(read_one(Dialect::OpenAi, &big, 42)).unwrap();
    let error: Error = set.window(false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverBudget);
    assert_eq!(error.index(), Some(42));
    assert_eq!(error.limit(), Some(900));
    assert!(
        error.to_string().starts_with("message 42 has 25"),
        "{error}"
    );
}

#[test]
fn open_calls_are_named() {
    let (mut set, messages) = small(900);
    let call = serde_json::json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "x", "type": "function", "function": {"name": "look", "arguments": "{}"}}]});
    set.append(read_one(Dialect::OpenAi, &call, messages.len()))
        .unwrap();
    let error = set.window(false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OpenCalls);
    assert_eq!(error.index(), Some(messages.len()));
    set.window(true).unwrap();
}

#[test]
fn damage_changes_nothing() {
    let (mut set, messages) = small(900);
    let length = set.transcript().len();
    for (content, kind) in [
        (
            serde_json::json!({"role": "tool", "tool_call_id": "same", "content": "again"}),
            ErrorKind::DuplicateResult,
        ),
        (
            serde_json::json!({"role": "tool", "tool_call_id": "other", "content": "?"}),
            ErrorKind::OrphanResult,
        ),
    ] {
        let good = serde_json::json!({"role": "user", "content": "hello"});
        let error = set
            .append(read(Dialect::OpenAi, &[content.clone(), good]))
            .unwrap_err();
        assert_eq!(error.kind(), kind);
        assert_eq!(error.index(), Some(messages.len()));
        assert_eq!(set.transcript().len(), length);
    }
}

#[test]
fn recalled_content_is_fenced_and_counted() {
    let (mut set, mut messages) = small(900);
    set.window(false).unwrap();
    // The next assistant message makes the compaction part of the log.
    messages.push(serde_json::json!({"role": "assistant", "content": "so far so good"}));
    messages.push(serde_json::json!({"role": "user", "content": "and file 0?"}));
    let at = messages.len() - 2;
    set.append(read(Dialect::OpenAi, &messages[at..])).unwrap();
    let part = set.transcript().part_range(3).start;
    let pointer = set.pointer_of(part).to_string();
    let kind = EventKind::PageIn {
        pointer: pointer.clone(),
        range: Some((1, 2)),
    };
    set.apply(&Event {
        at: messages.len(),
        kind,
    })
    .unwrap();
    let figures = set.window(false).unwrap();
    let window = render(&set, &messages);
    assert_eq!(recount(&set, &window), figures.tokens);
    let last = window.last().unwrap()["content"].as_str().unwrap();
    assert!(
        last.starts_with("<recalled source=\"message 3, tool, page p_"),
        "{last}"
    );
    assert!(last.contains("file 0\nfile 0\n</recalled>"), "{last}");
    let unknown = EventKind::PageIn {
        pointer: "p_000000000000000000".to_owned(),
        range: None,
    };
    let error = set
        .apply(&Event {
            at: messages.len(),
            kind: unknown,
        })
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PageNotFound);
}

#[test]
fn an_append_at_which_levels_fall_is_foreseen() {
    let (_, messages) = small(1_500);
    let policy = Policy::default();
    let mut set = WorkingSet::new(settings(Dialect::OpenAi, 1_500, policy)).unwrap();
    let (mut fell, mut foreseen) = (0, 0);
    for (index, message) in messages.iter().enumerate() {
        let expected = set.may_compact_within(100);
        foreseen += usize::from(expected);
        let before = set.plan().compactions();
        set.append(read_one(Dialect::OpenAi, message, index))
            .unwrap();
        if set.plan().compactions() > before {
            fell += 1;
            assert!(expected);
        }
    }
    assert!(fell > 0);
    assert!(foreseen < messages.len() / 2, "{foreseen}");
    assert!(set.may_compact_within(1_500));
    assert!(set.may_compact_within(u64::MAX));
}

#[test]
fn a_step_that_goes_on_after_a_summary_of_it_comes_back() {
    let said = |text: &str| {
        serde_json::json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": text}]})
    };
    let messages = [
        serde_json::json!({"role": "user", "content": "a question"}),
        serde_json::json!({"type": "reasoning", "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "one thought"}]}),
        said("and the rest of it"),
        serde_json::json!({"role": "user", "content": "thanks"}),
    ];
    let dialect = Dialect::Responses;
    let mut set = WorkingSet::new(settings(dialect, 2_000, Policy::default())).unwrap();
    set.append(read(dialect, &messages[..2])).unwrap();
    let summary = satchel_core::event::Summary {
        covers: (0, 2),
        text: "Asked and answered.".to_owned(),
        receipts: Vec::new(),
    };
    let kind = EventKind::Summary(Box::new(summary));
    set.apply(&Event { at: 2, kind }).unwrap();
    assert_eq!(set.plan().count_levels()[3], 1);
    for (index, message) in messages.iter().enumerate().skip(2) {
        set.append(read_one(dialect, message, index)).unwrap();
        let figures = set.window(false).unwrap();
        let window = render(&set, &messages[..=index]);
        assert_eq!(recount(&set, &window), figures.tokens);
        assert_eq!(set.plan().fates().len(), set.transcript().steps().len());
        assert_eq!(set.plan().count_levels()[3], 0);
        let text = serde_json::to_string(&window).unwrap();
        assert!(
            text.contains("one thought") && text.contains("and the rest of it"),
            "{text}"
        );
    }
}
