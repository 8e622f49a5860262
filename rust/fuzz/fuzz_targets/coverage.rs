//! Lines, groups and a capacity: within it, each line once, and within the bound it reports.
#![no_main]

use libfuzzer_sys::fuzz_target;
use satchel_core::coverage::{Group, Instance, Line, cover};

/// Names that there are.
const NAMES: u32 = 16;

fuzz_target!(|data: &[u8]| {
    let Some((&[capacity, groups], rest)) = data.split_first_chunk::<2>() else { return };
    let mut instance = Instance {
        values: (0..NAMES).map(|name| f64::from(name + 1) / 16.0).collect(),
        ..Instance::default()
    };
    for group in 0..=groups % 8 {
        instance.groups.push(Group {
            tokens: u32::from(group) * 3,
            names: 0..0,
            is_open: group == 3,
        });
    }
    for line in rest.chunks_exact(4) {
        let start = instance.names.len() as u32;
        let held = u16::from_le_bytes([line[2], line[3]]);
        instance.names.extend((0..NAMES).filter(|name| held >> name & 1 == 1));
        instance.lines.push(Line {
            group: u32::from(line[0]) % instance.groups.len() as u32,
            tokens: u32::from(line[1]),
            names: start..instance.names.len() as u32,
        });
    }
    let found = cover(&instance, u64::from(capacity) * 4);
    assert!(found.tokens <= u64::from(capacity) * 4);
    assert!(found.upper_bound >= found.value);
    assert!(found.value <= instance.values.iter().sum::<f64>() + 1e-9);
    let mut once = found.lines.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), found.lines.len());
});
