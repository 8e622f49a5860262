//! The bound that spares most of the looks at identifiers.

use proptest::prelude::*;
use satchel_core::dialect::Dialect;
use satchel_core::policy::Policy;
use satchel_core::salience::index::{Index, Names, is_read, scan};
use satchel_core::salience::likelihood::Moment;
use satchel_core::shrink::with_text;
use satchel_core::working_set::WorkingSet;

use crate::histories::acts;
use crate::working_set::{dialects, json_of, read, settings};

fn check(dialect: Dialect, messages: &[serde_json::Value]) -> usize {
    let mut set: WorkingSet<Box<str>> =
        WorkingSet::new(settings(dialect, 100_000, Policy::default())).unwrap();
    set.append(read(dialect, messages)).unwrap();
    let transcript = set.transcript();
    let mut index = Index::default();
    index.advance(transcript, transcript.len());
    let (policy, nothing) = (Policy::default(), Names::default());
    let mut looked_at = 0;
    for weights in [&policy.likelihood.agent, &policy.likelihood.dialogue] {
        let moment = Moment {
            weights,
            index: &index,
            messages: transcript.len() as u32,
            newest_words: &nothing,
            newest_names: &nothing,
        };
        for part in transcript.all_parts().iter().filter(|part| is_read(part)) {
            with_text(&part.body, |text| {
                for found in scan(part, text) {
                    // The keys of a call's arguments are not in the index.
                    let Some(known) = index.get(found.hash) else {
                        continue;
                    };
                    let row = transcript.rows()[known.newest as usize];
                    let value = moment.likelihood_unread(found.hash, known, &row);
                    assert!(moment.ceiling_unread(known) >= value - 1e-12);
                    looked_at += 1;
                }
            });
        }
    }
    looked_at
}

proptest! {
    #[test]
    fn no_identifier_is_likelier_than_its_ceiling(acts in acts(24), dialect in dialects()) {
        check(dialect, &json_of(dialect, &acts));
    }
}

#[test]
fn the_ceiling_is_looked_at_for_every_kind_of_identifier() {
    let text = "src/pay_order.rs getName HTTPServer 4711 C-1042 a.b\nsnake_case v1.2.3";
    let mut messages = vec![serde_json::json!({"role": "user", "content": text})];
    for number in 0..40 {
        let role = if number % 2 == 0 { "assistant" } else { "user" };
        let said = format!("{text} and order_{number} at line {}", number * 137);
        messages.push(serde_json::json!({"role": role, "content": said}));
    }
    assert!(check(Dialect::OpenAi, &messages) > 600);
}
