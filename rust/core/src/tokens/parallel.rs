//! Counting many texts on all cores. Long texts are cut where counts add up, so one huge text
//! spreads out as well as many small ones.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::encoder::Encoder;

/// Bytes below which threads cost more than they save: starting one takes as long as counting
/// about 10 KB.
const MIN_BYTES: usize = 128 * 1024;

/// Bytes that a thread takes at a time.
const UNIT_BYTES: usize = 32 * 1024;

/// A part of one text.
struct Part<'a> {
    index: usize,
    text: &'a str,
}

/// Tokens of each text.
pub(super) fn count_many(encoder: &dyn Encoder, texts: &[&str]) -> Vec<u32> {
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let threads = if bytes < MIN_BYTES {
        1
    } else {
        thread::available_parallelism().map_or(1, usize::from)
    };
    if threads == 1 {
        return texts.iter().map(|text| encoder.count(text)).collect();
    }
    let units = units(encoder, texts);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut counts = Vec::new();
        while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
            counts.extend(
                unit.iter()
                    .map(|part| (part.index, encoder.count(part.text))),
            );
        }
        counts
    };
    let mut totals = vec![0_u32; texts.len()];
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(units.len()))
            .filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut add = |counts: Vec<(usize, u32)>| {
            for (index, tokens) in counts {
                totals[index] += tokens;
            }
        };
        add(work());
        for other in others {
            match other.join() {
                Ok(counts) => add(counts),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    totals
}

/// Groups of parts of about [`UNIT_BYTES`].
fn units<'a>(encoder: &dyn Encoder, texts: &[&'a str]) -> Vec<Vec<Part<'a>>> {
    let mut units = Vec::new();
    let mut unit = Vec::new();
    let mut bytes = 0;
    for (index, &text) in texts.iter().enumerate() {
        let mut rest = text;
        while !rest.is_empty() {
            let at = encoder.next_cut(rest, UNIT_BYTES);
            let (part, tail) = rest.split_at(at);
            rest = tail;
            bytes += part.len();
            unit.push(Part { index, text: part });
            if bytes >= UNIT_BYTES {
                units.push(std::mem::take(&mut unit));
                bytes = 0;
            }
        }
    }
    units.push(unit);
    units
}
