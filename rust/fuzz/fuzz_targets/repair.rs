//! Any JSON as messages of every dialect: repair gives what lint accepts, and gives it again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use satchel_core::dialect::lint::{Severity, lint};
use satchel_core::dialect::repair::{Around, Mode, repair_json};
use satchel_core::dialect::{Dialect, Traits};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok(json) = serde_json::from_slice::<Value>(data) else { return };
    let messages = json.as_array().cloned().unwrap_or_else(|| vec![json.clone()]);
    for dialect in Dialect::ALL {
        for mode in Mode::ALL {
            let mend = |messages: &[Value]| {
                repair_json(dialect, messages, mode, Traits::default(), Around::default())
            };
            let Ok(mended) = mend(&messages) else { continue };
            for violation in lint(dialect, &mended, None, None) {
                let entry = violation.rule.entry();
                assert!(entry.severity != Severity::Error, "{dialect:?} {mode:?} {}", entry.code);
            }
            assert!(mend(&mended).is_ok_and(|again| again == mended), "{dialect:?} {mode:?}");
        }
    }
});
