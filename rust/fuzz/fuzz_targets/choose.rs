//! Options and a capacity: at least 95 % of brute force, and within the bound it reports.
#![no_main]

use libfuzzer_sys::fuzz_target;
use satchel_core::choose::{Choice, choose};

fn best(items: &[Vec<Choice>], capacity: u64) -> Option<f64> {
    let Some((first, rest)) = items.split_first() else { return Some(0.0) };
    let fitting = first.iter().filter(|choice| u64::from(choice.tokens) <= capacity);
    fitting
        .filter_map(|choice| {
            best(rest, capacity - u64::from(choice.tokens)).map(|value| value + choice.value)
        })
        .max_by(f64::total_cmp)
}

fuzz_target!(|data: &[u8]| {
    let Some((head, rest)) = data.split_first_chunk::<2>() else { return };
    let capacity = u64::from(u16::from_le_bytes(*head)) % 800;
    let choices: Vec<Choice> = rest
        .chunks_exact(2)
        .map(|pair| Choice { tokens: u32::from(pair[0]), value: f64::from(pair[1]) / 255.0 })
        .collect();
    let items: Vec<Vec<Choice>> = choices.chunks(3).take(8).map(<[_]>::to_vec).collect();
    let chosen = choose(&items, capacity);
    match best(&items, capacity) {
        None => assert!(!chosen.fits),
        Some(value) => {
            assert!(chosen.fits && chosen.tokens <= capacity);
            assert!(chosen.value >= 0.95 * value - 1e-9);
            assert!(chosen.upper_bound >= value - 1e-9);
        }
    }
});
