//! The division of a total among sections.

use proptest::prelude::*;
use satchel_core::ErrorKind;
use satchel_core::budget::{MAX_TOTAL, Shares, allocate_budget};

fn sections(total: u64, shares: &Shares) -> [u64; 5] {
    let budget = allocate_budget(total, shares).unwrap();
    assert_eq!(budget.total, total);
    [
        budget.system_prompt,
        budget.memory_summary,
        budget.retrieved_context,
        budget.recent_messages,
        budget.output_reserve,
    ]
}

#[test]
fn the_founding_figures() {
    let shares = Shares::default();
    assert_eq!(
        sections(128_000, &shares),
        [12_800, 12_800, 25_600, 44_800, 32_000]
    );
    assert_eq!(sections(180, &shares), [18, 18, 36, 62, 45]);
    assert_eq!(sections(0, &shares), [0; 5]);
    assert_eq!(sections(9, &shares), [0, 0, 1, 3, 2]);
}

#[test]
fn a_share_can_be_set_by_name() {
    let mut shares = Shares::default();
    shares.set("recent_messages", 0.0).unwrap();
    assert_eq!(sections(1000, &shares), [100, 100, 200, 0, 250]);
    for name in Shares::NAMES {
        shares.set(name, 0.2).unwrap();
    }
    assert_eq!(sections(1000, &shares), [200; 5]);
}

#[test]
fn invalid_values_are_refused() {
    let mut shares = Shares::default();
    let error = shares.set("recent", 0.1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidValue);
    assert!(error.to_string().contains("'recent'"));
    for share in [-0.1, f64::NAN, f64::INFINITY] {
        assert_eq!(
            shares.set("recent_messages", share).unwrap_err().code(),
            "invalid_value"
        );
    }
    assert_eq!(shares, Shares::default());
    shares.set("recent_messages", 0.36).unwrap();
    assert_eq!(
        allocate_budget(10, &shares).unwrap_err().code(),
        "invalid_value"
    );
    let error = allocate_budget(MAX_TOTAL + 1, &Shares::default()).unwrap_err();
    assert_eq!(error.limit(), Some(MAX_TOTAL));
}

proptest! {
    #[test]
    fn sections_never_exceed_the_total(total in 0..MAX_TOTAL) {
        let sum: u64 = sections(total, &Shares::default()).iter().sum();
        prop_assert!(sum <= total);
        prop_assert!(total - sum <= 5);
    }
}
