//! Scores: the keyword formula to the digit, the default weights by their signs.

use proptest::prelude::*;
use satchel_core::content::{self, Content};
use satchel_core::salience::{Features, Signals, Weights, score};
use satchel_core::tokens::Counter;
use serde_json::{Value, json};

fn read(messages: &[Value]) -> Vec<Content<Box<str>>> {
    messages
        .iter()
        .map(|message| content::read(&message, None, true))
        .collect()
}

fn keyword_scores(messages: &[Value]) -> Vec<f32> {
    let counter = Counter::named("chars3").unwrap();
    score::keywords(&Features::keywords(&read(messages), &counter).unwrap())
}

fn features(messages: &[Value], query: Option<&str>) -> Features {
    let counter = Counter::named("chars3").unwrap();
    Features::read(&read(messages), query, &counter).unwrap()
}

fn close(found: f32, expected: f64) {
    assert!(
        (f64::from(found) - expected).abs() < 1e-6,
        "{found} is not {expected}"
    );
}

#[test]
fn the_keyword_formula() {
    let messages = [
        json!({"role": "system", "content": "You help with travel bookings, politely and briefly."}),
        json!({"role": "user", "content": "예산은 반드시 200만원 이하로 결정했습니다. 항공권과 숙소를 찾아 주세요."}),
        json!({"role": "assistant", "content": "ok"}),
        json!({"role": "tool", "content": "x".repeat(303)}),
        json!({"role": "tool", "content": "x".repeat(300)}),
        json!({"role": "assistant", "content": "```\nprint(1)\n``` 코드 중요 확정 ............"}),
    ];
    let scores = keyword_scores(&messages);
    assert_eq!(scores.len(), 6);
    close(scores[0], 0.2);
    close(scores[1], 0.3 / 6.0 + 0.16 + 0.15 + 0.10);
    close(scores[2], 0.1 + 0.1 - 0.15);
    close(scores[3], 0.15 + 0.1 + 0.05);
    // 100 tokens are not more than 100.
    close(scores[4], 0.2 + 0.1);
    close(scores[5], 0.25 + 0.1 + 0.15 + 0.10 + 0.10);
}

#[test]
fn keyword_scores_are_clamped() {
    close(
        keyword_scores(&[json!({"role": "assistant", "content": ""})])[0],
        0.0,
    );
    assert!(keyword_scores(&[]).is_empty());
}

#[test]
fn what_comes_up_again_counts() {
    let features = features(
        &[
            json!({"role": "user", "content": "Please refund order ORD-10023 and keep BK77."}),
            json!({"role": "user", "content": "The weather is nice."}),
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type":
                "function", "function": {"name": "refund", "arguments": "{\"order\":\"ORD-10023\"}"}}]}),
        ],
        None,
    );
    close(features.references[0], 1.0 / 3.0);
    assert_eq!(features.references[1..], [0.0, 0.0]);
}

#[test]
fn signals_depend_on_who_speaks() {
    let text = "You must never do that; it was decided. It failed with an error.";
    let rows =
        ["user", "assistant", "tool", "system"].map(|role| json!({"role": role, "content": text}));
    let found = features(&rows, None).signals;
    let both = Signals::DECISION.union(Signals::CONSTRAINT);
    assert_eq!(found, [both, Signals::DECISION, Signals::ERROR, both]);
}

#[test]
fn korean_signals() {
    let rows = [
        json!({"role": "user", "content": "예산은 절대 넘기면 안 됩니다. 그렇게 합의했어요."}),
        json!({"role": "tool", "content": "처리 중 오류가 발생했습니다"}),
        json!({"role": "user", "content": "네 좋아요"}),
    ];
    let found = features(&rows, None);
    let both = Signals::DECISION.union(Signals::CONSTRAINT);
    assert_eq!(found.signals, [both, Signals::ERROR, Signals::default()]);
    assert_eq!(found.brief, [false, false, true]);
}

#[test]
fn an_exception_is_a_failure() {
    let rows = [json!({"role": "tool", "content": "KeyError: 'total'"})];
    assert!(features(&rows, None).signals[0].contains(Signals::ERROR));
}

#[test]
fn the_query_is_found_in_either_script() {
    let rows = [
        json!({"role": "user", "content": "The invoice total was wrong."}),
        json!({"role": "user", "content": "항공권 예약을 바꿔 주세요."}),
        json!({"role": "user", "content": "Nothing of note."}),
    ];
    let english = features(&rows, Some("What is the INVOICE total?")).query;
    close(english[0], 1.0);
    assert_eq!(english[1..], [0.0, 0.0]);
    let korean = features(&rows, Some("예약은 언제?")).query;
    close(korean[0], 0.0);
    close(korean[1], 1.0);
    assert_eq!(features(&rows, Some("the of is")).query, [0.0; 3]);
    assert_eq!(features(&rows, Some("zebra")).query, [0.0; 3]);
}

#[test]
fn tiny_acknowledgements_score_least() {
    let rows = [
        json!({"role": "user", "content": "Never book hotels above 120 euros per night, please."}),
        json!({"role": "assistant", "content": "Understood, I have noted the limit for the hotels."}),
        json!({"role": "user", "content": "ok thanks"}),
        json!({"role": "user", "content": "Find one in Lyon for the second week of the month."}),
    ];
    let scores = score::weighted(&features(&rows, None), &Weights::default());
    let lowest = (0..4).min_by(|a, b| scores[*a].total_cmp(&scores[*b]));
    assert_eq!(lowest, Some(2));
}

#[test]
fn weights_are_set_by_name() {
    let mut weights = Weights::default();
    for name in Weights::NAMES {
        weights.set(name, 0.0).unwrap();
    }
    let rows = [json!({"role": "user", "content": "must"})];
    assert_eq!(score::weighted(&features(&rows, None), &weights), [0.0]);
    weights.set("constraint", 0.4).unwrap();
    close(score::weighted(&features(&rows, None), &weights)[0], 0.4);
    let error = weights.set("age", 1.0).unwrap_err();
    assert_eq!(error.code(), "invalid_value");
    assert!(error.to_string().contains("'age'"));
    assert_eq!(
        weights.set("role", f64::NAN).unwrap_err().code(),
        "invalid_value"
    );
}

proptest! {
    #[test]
    fn scores_are_finite_and_within_bounds(
        texts in prop::collection::vec((0usize..5, any::<String>()), 0..12),
        query in any::<Option<String>>(),
        extreme in prop_oneof![Just(0.0), Just(f64::MAX), Just(f64::MIN)],
    ) {
        let roles = ["system", "user", "assistant", "tool", "?"];
        let rows: Vec<Value> = texts
            .iter()
            .map(|(role, text)| json!({"role": roles[*role], "content": text}))
            .collect();
        let features = features(&rows, query.as_deref());
        let mut weights = Weights::default();
        weights.set("recency", extreme).unwrap();
        weights.set("role", -extreme).unwrap();
        for scores in [score::weighted(&features, &weights), keyword_scores(&rows)] {
            prop_assert_eq!(scores.len(), rows.len());
            prop_assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)));
        }
    }
}
