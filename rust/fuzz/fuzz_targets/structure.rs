//! Any bytes as a text of any structure: units in order, kept ones verbatim, never longer, JSON stays JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use satchel_core::prune::structure::{Structure, detect, outline, render, stub_line, trim, units};

fuzz_target!(|data: &[u8]| {
    let Some((&[choice, share, seed], bytes)) = data.split_first_chunk::<3>() else { return };
    let text = String::from_utf8_lossy(bytes);
    let structure = Structure::ALL
        .get(usize::from(choice))
        .copied()
        .unwrap_or_else(|| detect(&text));
    let units = units(&text, structure);
    let mut end = 0;
    for unit in &units {
        assert!(unit.start >= end && unit.end > unit.start);
        end = unit.end;
        assert!(text.get(unit.start as usize..unit.end as usize).is_some());
    }
    let every = (0..units.len() as u32).filter(|at| (at * 7 + u32::from(seed)) % 5 < 2).collect();
    let outlined = outline(&text, structure, &units, text.len() * usize::from(share) / 255);
    for kept in [every, outlined] {
        let kept: Vec<u32> = kept;
        let short = render(&text, structure, &units, &kept, "p_1");
        assert!(short.len() <= text.len());
        let mut rest = short.as_str();
        for &at in &kept {
            let piece = units[at as usize].text(&text);
            let found = rest.find(piece);
            assert!(found.is_some());
            rest = &rest[found.unwrap_or(0) + piece.len()..];
        }
        if structure == Structure::Json && serde_json::from_str::<serde_json::Value>(&text).is_ok() {
            assert!(serde_json::from_str::<serde_json::Value>(&short).is_ok());
        }
    }
    assert!(!stub_line(&text, structure, "tool", "p_1").contains('\n'));
    let limit = usize::from(share);
    let fits = |text: &str| Ok(text.len() <= limit);
    let trimmed = trim(&text, limit, &["a"], "p_1", &fits);
    assert!(trimmed.is_ok_and(|trimmed| trimmed.text.len() <= limit));
});
