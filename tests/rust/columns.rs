//! Many conversations on columns are each of them alone.

use proptest::prelude::*;
use satchel_core::columns::{ROLES, score, token_window};
use satchel_core::salience::Weights;
use satchel_core::window::{self, Link};

fn offset(at: usize) -> i64 {
    i64::try_from(at).unwrap()
}

proptest! {
    #[test]
    fn windows_are_those_of_each_conversation(
        rows in prop::collection::vec((0u32..30, any::<bool>()), 0..40),
        cuts in prop::collection::vec(0usize..41, 1..6),
        limit in 0u64..120,
    ) {
        let (tokens, protected): (Vec<u32>, Vec<bool>) = rows.into_iter().unzip();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(tokens.len())).collect();
        cuts.sort_unstable();
        let mut wanted = Vec::new();
        for bounds in cuts.windows(2) {
            let range = bounds[0]..bounds[1];
            let links: Vec<Link> = protected[range.clone()]
                .iter()
                .map(|kept| if *kept { Link::Instruction } else { Link::Plain })
                .collect();
            let mut window = window::token_window(&tokens[range], &links, limit);
            window.sort_unstable();
            wanted.extend(window.into_iter().map(|at| offset(bounds[0]) + i64::from(at)));
        }
        let offsets: Vec<i64> = cuts.into_iter().map(offset).collect();
        prop_assert_eq!(token_window(&tokens, &protected, &[limit], &offsets).unwrap(), wanted);
    }

    #[test]
    fn scores_do_not_depend_on_the_neighbours(
        rows in prop::collection::vec((0u8..5, 0u32..200, 0u8..16), 1..30),
        cut in 0usize..30,
    ) {
        let roles: Vec<u8> = rows.iter().map(|row| row.0).collect();
        let tokens: Vec<u32> = rows.iter().map(|row| row.1).collect();
        let signals: Vec<u8> = rows.iter().map(|row| row.2).collect();
        let cut = cut.min(rows.len());
        let weights = Weights::default();
        for weights in [None, Some(&weights)] {
            let all = [0, offset(cut), offset(rows.len())];
            let both = score(&roles, &tokens, &signals, weights, &all).unwrap();
            let alone = |range: std::ops::Range<usize>| {
                let length = offset(range.len());
                let (roles, tokens) = (&roles[range.clone()], &tokens[range.clone()]);
                score(roles, tokens, &signals[range], weights, &[0, length]).unwrap()
            };
            prop_assert_eq!(&both[..cut], &alone(0..cut)[..]);
            prop_assert_eq!(&both[cut..], &alone(cut..rows.len())[..]);
            prop_assert!(both.iter().all(|score| (0.0..=1.0).contains(score)));
        }
    }
}

#[test]
fn what_is_no_column_is_refused() {
    assert_eq!(ROLES.len(), 5);
    for offsets in [&[][..], &[0, 2], &[1, 0], &[-1, 1]] {
        assert!(token_window(&[1], &[true], &[5], offsets).is_err());
        assert!(score(&[0], &[1], &[0], None, offsets).is_err());
    }
    assert!(token_window(&[1], &[], &[5], &[0, 1]).is_err());
    assert!(token_window(&[1], &[true], &[5, 5], &[0, 1]).is_err());
    assert!(score(&[5], &[1], &[0], None, &[0, 1]).is_err());
    assert!(score(&[0], &[1], &[16], None, &[0, 1]).is_err());
    assert!(token_window(&[], &[], &[5], &[0]).unwrap().is_empty());
}
