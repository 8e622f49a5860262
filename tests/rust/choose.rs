//! The choice against brute force, and the bound it reports.

use proptest::prelude::*;
use satchel_core::choose::{Choice, EXACT_ITEMS, choose};

fn items(most: usize) -> impl Strategy<Value = Vec<Vec<Choice>>> {
    let choice = (0u32..400, 0u32..1000).prop_map(|(tokens, value)| Choice {
        tokens,
        value: f64::from(value) / 1000.0,
    });
    prop::collection::vec(prop::collection::vec(choice, 1..4), 0..most)
}

/// Every combination, the slow and obvious way.
fn brute_force(items: &[Vec<Choice>], capacity: u64) -> Option<f64> {
    let Some((first, rest)) = items.split_first() else {
        return Some(0.0);
    };
    first
        .iter()
        .filter(|choice| u64::from(choice.tokens) <= capacity)
        .filter_map(|choice| {
            brute_force(rest, capacity - u64::from(choice.tokens)).map(|value| value + choice.value)
        })
        .max_by(f64::total_cmp)
}

fn sums(items: &[Vec<Choice>], chosen: &[usize]) -> (u64, f64) {
    items
        .iter()
        .zip(chosen)
        .fold((0, 0.0), |(tokens, value), (item, &option)| {
            (
                tokens + u64::from(item[option].tokens),
                value + item[option].value,
            )
        })
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn matches_oracle_on_few_items(items in items(10), capacity in 0u64..1500) {
        let chosen = choose(&items, capacity);
        match brute_force(&items, capacity) {
            None => prop_assert!(!chosen.fits),
            Some(best) => {
                prop_assert!(chosen.fits);
                prop_assert!(chosen.value >= 0.95 * best - 1e-9, "{} of {best}", chosen.value);
                prop_assert!(chosen.upper_bound >= best - 1e-9);
            }
        }
    }

    #[test]
    fn adds_up_on_many_items(items in items(120), capacity in 0u64..30_000) {
        let chosen = choose(&items, capacity);
        let (tokens, value) = sums(&items, &chosen.options);
        prop_assert_eq!(tokens, chosen.tokens);
        prop_assert!((value - chosen.value).abs() < 1e-9);
        prop_assert_eq!(chosen.fits, tokens <= capacity);
        prop_assert!(chosen.value <= chosen.upper_bound + 1e-9);
        prop_assert_eq!(choose(&items, capacity), chosen);
    }
}

#[test]
fn greedy_alone_is_close_to_its_bound() {
    let items: Vec<Vec<Choice>> = (0..200u32)
        .map(|item| {
            let tokens = 40 + (item * 7919) % 300;
            let value = f64::from((item * 104_729) % 1000) / 1000.0;
            vec![
                Choice {
                    tokens: 0,
                    value: 0.0,
                },
                Choice {
                    tokens: tokens / 5,
                    value: value * 0.3,
                },
                Choice { tokens, value },
            ]
        })
        .collect();
    assert!(items.len() > EXACT_ITEMS);
    let chosen = choose(&items, 8_000);
    assert!(chosen.fits);
    assert!(chosen.value >= 0.99 * chosen.upper_bound, "{chosen:?}");
}
