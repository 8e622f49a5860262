//! Any bytes as a transcript file: no panic, and the same in pieces as in one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use satchel_core::readers::{Format, Reader, read};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let format = Format::ALL.get(usize::from(choice)).copied();
    let whole: Vec<String> = read(bytes, format).map(|item| format!("{item:?}")).collect();
    let mut reader = Reader::new(format);
    let mut pieces = Vec::new();
    let cut = bytes.len() / 3;
    for piece in [&bytes[..cut], &bytes[cut..]] {
        pieces.extend(reader.feed(piece));
    }
    pieces.extend(reader.finish());
    let pieces: Vec<String> = pieces.iter().map(|item| format!("{item:?}")).collect();
    assert_eq!(whole, pieces);
});
