//! Checkpoints: a fold that goes on from one comes to the same windows as one that read everything.

use proptest::prelude::*;
use satchel_core::dialect::Dialect;
use satchel_core::event::{Event, EventKind, SettingsChange, Summary};
use satchel_core::message::Message;
use satchel_core::policy::Policy;
use satchel_core::working_set::{Checkpoint, WindowFigures, WorkingSet};
use serde_json::Value as Json;

use crate::histories::{Act, acts};
use crate::working_set::{dialects, json_of, policies, read, read_one, recount, render, settings};

type Set = WorkingSet<Box<str>>;

/// What happens to a log beside its messages.
#[derive(Clone, Debug)]
enum Change {
    Pin(prop::sample::Index),
    Page(prop::sample::Index),
    Budget(u64),
    Cold,
    Summary(prop::sample::Index),
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, Change)>> {
    let index = || any::<prop::sample::Index>();
    let change = prop_oneof![
        index().prop_map(Change::Pin),
        index().prop_map(Change::Page),
        (300u64..2500).prop_map(Change::Budget),
        Just(Change::Cold),
        index().prop_map(Change::Summary),
    ];
    prop::collection::vec((index(), change), 0..5)
}

fn kind_of(set: &Set, change: &Change) -> EventKind {
    let messages = set.transcript().len();
    match change {
        Change::Pin(index) => EventKind::Pin {
            index: index.index(messages),
        },
        Change::Page(index) => EventKind::PageIn {
            pointer: set
                .pointer_of(index.index(set.transcript().all_parts().len()))
                .to_string(),
            range: None,
        },
        Change::Budget(budget) => EventKind::Settings(Box::new(SettingsChange {
            budget: Some(*budget),
            ..SettingsChange::default()
        })),
        Change::Cold => EventKind::Cache { cold: true },
        Change::Summary(index) => {
            let steps = set.transcript().steps();
            let end = steps[index.index(steps.len())].end as usize;
            EventKind::Summary(Box::new(Summary {
                covers: (0, end),
                text: "What came before.".to_owned(),
                receipts: Vec::new(),
            }))
        }
    }
}

fn new_set(dialect: Dialect, budget: u64, policy: &Policy) -> Set {
    let mut set = WorkingSet::new(settings(dialect, budget, policy.clone())).unwrap();
    set.keep_checkpoints();
    set
}

/// The log of a set, one message at a time, with its events.
struct Told {
    messages: Vec<Json>,
    events: Vec<Event>,
}

impl Told {
    fn parts(&self, dialect: Dialect, end: usize) -> (Vec<Message<Box<str>>>, Vec<Event>) {
        let events = self.events.iter().filter(|event| event.at <= end);
        (
            read(dialect, &self.messages[..end]),
            events.cloned().collect(),
        )
    }
}

/// Appends message `index` and what happens behind it.
fn tell(
    set: &mut Set,
    dialect: Dialect,
    index: usize,
    message: &Json,
    changes: &[(prop::sample::Index, Change)],
    (count, events): (usize, &mut Vec<Event>),
) {
    set.append(read_one(dialect, message, index)).unwrap();
    for (place, change) in changes {
        if place.index(count) == index && !set.transcript().all_parts().is_empty() {
            let event = Event {
                at: index + 1,
                kind: kind_of(set, change),
            };
            if set.apply(&event).is_ok() {
                events.push(event);
            }
        }
    }
}

fn same(left: &mut Set, right: &mut Set, messages: &[Json]) -> Result<(), TestCaseError> {
    // The number of a revision only tells one state from another.
    let plain = |figures: WindowFigures| WindowFigures {
        revision: 0,
        ..figures
    };
    match (left.window(true), right.window(true)) {
        (Ok(one), Ok(two)) => {
            prop_assert_eq!(plain(one), plain(two));
            prop_assert_eq!(render(left, messages), render(right, messages));
        }
        (one, two) => prop_assert_eq!(one.err(), two.err()),
    }
    prop_assert_eq!(left.explain(), right.explain());
    prop_assert_eq!(left.unchanged_tail(), right.unchanged_tail());
    prop_assert_eq!(left.plan().rewrites(), right.plan().rewrites());
    Ok(())
}

proptest! {
    #[test]
    fn going_on_from_a_checkpoint_is_the_same(
        acts in acts(30), dialect in dialects(), policy in policies(), budget in 200u64..1500,
        changes in changes(), cut in any::<prop::sample::Index>(), asks in any::<bool>(),
    ) {
        let messages = json_of(dialect, &acts);
        let mut told = Told { messages: messages.clone(), events: Vec::new() };
        let mut set = new_set(dialect, budget, &policy);
        let cut = cut.index(messages.len());
        for (index, message) in messages.iter().enumerate().take(cut + 1) {
            let place = (messages.len(), &mut told.events);
            tell(&mut set, dialect, index, message, &changes, place);
            if asks {
                let _ = set.window(true);
            }
        }
        let Some(checkpoint) = set.checkpoint() else { return Ok(()) };
        let json = checkpoint.to_json();
        let (before, events) = told.parts(dialect, cut + 1);
        let mut resumed = new_set(dialect, budget, &policy);
        resumed.resume_from(&json);
        resumed.replay(before, &events).unwrap();
        prop_assert!(!resumed.is_resuming(), "{json}");
        prop_assert!(resumed.resumed().is_some());
        prop_assert_eq!(resumed.checkpoint().map(Checkpoint::to_json), Some(json));
        same(&mut set, &mut resumed, &messages[..=cut])?;
        for (index, message) in messages.iter().enumerate().skip(cut + 1) {
            let mut others = Vec::new();
            let place = (messages.len(), &mut told.events);
            tell(&mut set, dialect, index, message, &changes, place);
            tell(&mut resumed, dialect, index, message, &changes, (messages.len(), &mut others));
            same(&mut set, &mut resumed, &messages[..=index])?;
        }
    }

    #[test]
    fn a_damaged_checkpoint_is_not_used_or_counts_right(
        acts in acts(24), budget in 200u64..900, from in any::<prop::sample::Index>(),
        length in 0usize..6, with in "[0-9,\\[\\]{}\"a-z]{0,4}", fewer in 0usize..4,
    ) {
        let dialect = Dialect::OpenAi;
        let messages = json_of(dialect, &acts);
        let policy = Policy::default();
        let mut set = new_set(dialect, budget, &policy);
        set.append(read(dialect, &messages)).unwrap();
        let Some(checkpoint) = set.checkpoint() else { return Ok(()) };
        let mut json: Vec<char> = checkpoint.to_json().chars().collect();
        let at = from.index(json.len());
        let end = json.len().min(at + length);
        json.splice(at..end, with.chars());
        let json: String = json.into_iter().collect();
        let messages = &messages[..messages.len() - fewer.min(messages.len() - 1)];
        let mut resumed = new_set(dialect, budget, &policy);
        resumed.resume_from(&json);
        let Ok(history) = std::panic::catch_unwind(|| read(dialect, messages)) else { return Ok(()) };
        resumed.replay(history, &[]).unwrap();
        if !resumed.is_resuming() && let Ok(figures) = resumed.window(true) {
            let window = render(&resumed, messages);
            prop_assert_eq!(figures.tokens, recount(&resumed, &window));
        }
    }
}

#[test]
fn a_text_that_is_no_checkpoint_folds_everything() {
    for text in ["", "null", "{}", "[1]", "\u{0}", "{\"format\":2}"] {
        let mut set = new_set(Dialect::OpenAi, 900, &Policy::default());
        set.resume_from(text);
        assert!(!set.is_resuming());
        let messages = json_of(Dialect::OpenAi, &[Act::User("a question".to_owned())]);
        set.replay(read(Dialect::OpenAi, &messages), &[]).unwrap();
        assert_eq!(set.window(false).unwrap().messages, messages.len());
    }
}
