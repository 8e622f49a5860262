//! A limit and a text: the cut is within the limit by its own count, and made of the original.
#![no_main]

use libfuzzer_sys::fuzz_target;
use satchel_core::tokens::{Counter, Keep};

fuzz_target!(|data: &[u8]| {
    let Some((head, rest)) = data.split_first_chunk::<2>() else { return };
    let limit = u32::from(u16::from_le_bytes(*head)) % 300;
    let text = String::from_utf8_lossy(rest);
    for name in ["o200k_base", "cl100k_base", "chars3", "scripts"] {
        let Ok(counter) = Counter::named(name) else { continue };
        let whole = counter.count(&text).unwrap_or(u32::MAX);
        assert_eq!(counter.fits(&text, limit).ok(), Some(whole <= limit));
        for keep in [Keep::Head, Keep::Tail, Keep::Both] {
            let Ok(cut) = counter.truncate(&text, limit, keep) else { continue };
            assert!(counter.count(&cut).is_ok_and(|tokens| tokens <= limit));
            match keep {
                Keep::Head => assert!(text.starts_with(&cut)),
                Keep::Tail => assert!(text.ends_with(&cut)),
                Keep::Both => assert!(cut.len() <= text.len()),
            }
            if whole <= limit {
                assert_eq!(cut, text);
            }
        }
    }
});
