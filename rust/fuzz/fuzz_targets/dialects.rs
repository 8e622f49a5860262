//! Any JSON as messages of every dialect: reading, counting and linting never panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use satchel_core::dialect::{Dialect, read_message};
use satchel_core::tokens::Counter;
use satchel_core::tokens::chat::{ChatRules, count_message_parts, message_overhead};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok(json) = serde_json::from_slice::<Value>(data) else { return };
    let messages = json.as_array().cloned().unwrap_or_else(|| vec![json.clone()]);
    let Ok(counter) = Counter::named("o200k_base") else { return };
    for dialect in Dialect::ALL {
        let rules = ChatRules::of(dialect);
        for (index, message) in messages.iter().enumerate() {
            let Ok(message) = read_message(dialect, &message, index) else { continue };
            let mut one = [message];
            let counted = count_message_parts(&mut one, &counter);
            assert!(counted.is_ok() && message_overhead(&one[0], &rules, &counter).is_ok());
        }
    }
});
