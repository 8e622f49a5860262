//! JSON messages and a budget: no panic, within budget or a typed error, incremental as rebuilt.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use satchel_core::dialect::{Dialect, read_message};
use satchel_core::message::Message;
use satchel_core::page::PageKey;
use satchel_core::plan::Settings;
use satchel_core::policy::Policy;
use satchel_core::tokens::Counter;
use satchel_core::tokens::chat::ChatRules;
use satchel_core::working_set::WorkingSet;
use serde_json::Value;

fn working_set(dialect: Dialect, budget: u64) -> Option<WorkingSet<Box<str>>> {
    let rules = ChatRules::of(dialect);
    WorkingSet::new(Settings {
        dialect,
        counter: Counter::named("chars4").ok()?,
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
    .ok()
}

fuzz_target!(|data: &[u8]| {
    let Some((&budget, json)) = data.split_first() else { return };
    let Ok(Value::Array(messages)) = serde_json::from_slice::<Value>(json) else { return };
    for dialect in Dialect::ALL {
        let read = |index: usize| -> Option<Message<Box<str>>> {
            read_message(dialect, &&messages[index], index).ok()
        };
        let budget = 40 + 8 * u64::from(budget);
        let (Some(mut set), Some(mut rebuilt)) =
            (working_set(dialect, budget), working_set(dialect, budget))
        else {
            return;
        };
        let mut taken = Vec::new();
        for index in 0..messages.len() {
            let Some(message) = read(index) else { continue };
            if set.append(vec![message]).is_ok() {
                taken.push(index);
                if let Ok(figures) = set.window(true) {
                    assert!(figures.tokens_upper <= budget);
                }
            }
        }
        // Indices are those of the messages that were taken.
        let again: Vec<_> = taken.iter().filter_map(|&index| read(index)).collect();
        if rebuilt.append(again).is_ok() {
            let (left, right) = (set.window(true), rebuilt.window(true));
            assert_eq!(left.map(|f| f.tokens).ok(), right.map(|f| f.tokens).ok());
            assert_eq!(set.explain(), rebuilt.explain());
        }
    }
});
