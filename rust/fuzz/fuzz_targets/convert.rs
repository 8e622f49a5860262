//! Any JSON as messages of every dialect: no panic, and the target takes what comes out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use satchel_core::dialect::Dialect;
use satchel_core::dialect::convert::convert;
use satchel_core::dialect::lint::{Severity, lint};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok(json) = serde_json::from_slice::<Value>(data) else { return };
    let messages = json.as_array().cloned().unwrap_or_else(|| vec![json.clone()]);
    let nodes: Vec<&Value> = messages.iter().collect();
    for source in Dialect::ALL {
        for target in Dialect::ALL {
            if source == target {
                continue;
            }
            let Ok(converted) = convert(source, target, &nodes, None, None) else { continue };
            for violation in lint(target, &converted.messages, None, None) {
                let entry = violation.rule.entry();
                assert!(entry.severity != Severity::Error, "{source:?} {target:?} {}", entry.code);
            }
        }
    }
});
