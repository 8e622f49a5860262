//! The planner: a cold fold, one more message, a compaction alone, and growth.
//!
//! Ids are `fold/10k_messages/o200k_base` and so on. `chars4` counts by dividing, so that line is
//! the planner without counting. Growth: `20k_messages` beside `10k_messages`.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(
    clippy::unwrap_used,
    reason = "a bench that meets an unexpected error should stop there"
)]

use std::fmt::Write as _;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use satchel_core::dialect::{Dialect, read_message};
use satchel_core::event::{Event, EventKind};
use satchel_core::message::Message;
use satchel_core::page::PageKey;
use satchel_core::plan::Settings;
use satchel_core::policy::Policy;
use satchel_core::tokens::Counter;
use satchel_core::tokens::chat::ChatRules;
use satchel_core::working_set::WorkingSet;
use serde_json::{Value as Json, json};

const BUDGET: u64 = 32_000;
/// Messages of a turn.
const TURN: usize = 10;
const SIZES: [(&str, usize); 3] = [
    ("1k_messages", 1_000),
    ("10k_messages", 10_000),
    ("20k_messages", 20_000),
];

/// Numbers that look random and are the same on every run: the generator of Numerical Recipes.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn text(&mut self, words: usize) -> String {
        const WORDS: [&str; 20] = [
            "the", "deploy", "of", "service", "failed", "with", "status", "retry", "before",
            "customer", "must", "never", "see", "an", "error", "in", "build", "cache", "we",
            "decided",
        ];
        let mut text = String::new();
        for word in 0..words {
            text.push_str(if word % 12 == 11 { "\n" } else { " " });
            if self.below(6) == 0 {
                // Writing to a String cannot fail.
                let _ = write!(text, "src/module_{}.rs", self.below(5_000));
            } else {
                text.push_str(WORDS[self.below(WORDS.len())]);
            }
        }
        text
    }
}

/// An agent's history: turns of a request, four steps with a call, and an answer.
fn history(count: usize) -> Vec<Json> {
    let mut seeded = Seeded(7);
    let mut messages = vec![json!({"role": "system", "content": seeded.text(60)})];
    for index in 1..count {
        messages.push(match (index - 1) % TURN {
            0 => json!({"role": "user", "content": seeded.text(40)}),
            9 => json!({"role": "assistant", "content": seeded.text(60)}),
            place if place % 2 == 1 => json!({
                "role": "assistant",
                "content": seeded.text(15),
                "tool_calls": [{"id": format!("call_{index}"), "type": "function", "function": {
                    "name": "read_file",
                    "arguments": format!(r#"{{"path": "src/module_{}.rs"}}"#, seeded.below(5_000)),
                }}],
            }),
            _ => {
                // One result in ten is ten times as long.
                let words = if seeded.below(10) == 0 { 800 } else { 80 };
                json!({
                    "role": "tool",
                    "tool_call_id": format!("call_{}", index - 1),
                    "content": seeded.text(words),
                })
            }
        });
    }
    messages
}

fn read(messages: &[Json], first: usize) -> Vec<Message<Box<str>>> {
    messages
        .iter()
        .enumerate()
        .map(|(offset, message)| read_message(Dialect::OpenAi, &message, first + offset).unwrap())
        .collect()
}

fn empty(counter: &str, budget: u64) -> WorkingSet<Box<str>> {
    let rules = ChatRules::of(Dialect::OpenAi);
    WorkingSet::new(Settings {
        dialect: Dialect::OpenAi,
        counter: Counter::named(counter).unwrap(),
        budget,
        policy: Arc::new(Policy::default()),
        system_tokens: 0,
        tools_tokens: 0,
        request_tokens: rules.request_tokens(),
        message_tokens: rules.inserted_message_tokens(),
        key: PageKey::new(""),
        prices: satchel_core::strategy::price::Prices::default(),
        calibration: None,
    })
    .unwrap()
}

fn fold(c: &mut Criterion) {
    for (name, size) in SIZES {
        let messages = history(size);
        let mut group = c.benchmark_group(format!("fold/{name}"));
        group.sample_size(10);
        for counter in ["o200k_base", "chars4"] {
            group.bench_function(counter, |b| {
                b.iter_batched(
                    || read(&messages, 0),
                    |messages| {
                        let mut set = empty(counter, BUDGET);
                        set.append(messages).unwrap();
                        let figures = set.window(true).unwrap();
                        assert!(figures.tokens_upper <= BUDGET);
                        set
                    },
                    BatchSize::PerIteration,
                );
            });
        }
        group.finish();
    }
}

/// Reading, folding and rendering one more message; the history grows while it is measured.
fn append(c: &mut Criterion) {
    let mut group = c.benchmark_group("append");
    for (name, size) in SIZES {
        let messages = history(size);
        let mut set = empty("o200k_base", BUDGET);
        set.append(read(&messages, 0)).unwrap();
        let mut at = size;
        group.bench_function(name, |b| {
            b.iter(|| {
                // The history ends where message `size` of the same pattern goes on.
                let next = 1 + (at - 1) % TURN;
                set.append(read(&messages[next..=next], at)).unwrap();
                let figures = set.window(true).unwrap();
                assert!(figures.tokens <= BUDGET);
                at += 1;
                set.entries(at - 1).len()
            });
        });
    }
    group.finish();
}

/// A working set whose pending boundary compacts.
fn pending(messages: &[Json], budget: u64) -> WorkingSet<Box<str>> {
    let mut set = empty("o200k_base", budget);
    let most = messages.len() / 2;
    set.append(read(&messages[..most], 0)).unwrap();
    for at in most..messages.len() {
        set.append(read(&messages[at..=at], at)).unwrap();
        if set.transcript().pairing().open_calls() == 0
            && set.window(false).unwrap().compactions > set.plan().compactions()
        {
            break;
        }
    }
    set
}

fn compaction(c: &mut Criterion) {
    let messages = history(10_000);
    let mut group = c.benchmark_group("compaction");
    for (name, budget) in [
        ("8k_budget", 8_000),
        ("32k_budget", 32_000),
        ("200k_budget", 200_000),
    ] {
        let mut set = pending(&messages, budget);
        let again = Event {
            at: set.transcript().len(),
            kind: EventKind::Unpin { index: 0 },
        };
        group.bench_function(name, |b| {
            b.iter(|| {
                // Any event makes the pending plan stale; this one changes nothing else.
                set.apply(&again).unwrap();
                let figures = set.window(false).unwrap();
                assert!(figures.tokens <= budget);
                figures
            });
        });
    }
    group.finish();
}

criterion_group!(benches, fold, append, compaction);
criterion_main!(benches);
