//! Shortening a text to a number of tokens without splitting a character.
//!
//! The result never counts more than the limit: a cut moves until its own count says so, because a
//! shorter text may be split into other pieces at its new end. With a vocabulary the cost follows
//! the limit, not the text: work goes from one safe cut to the next (see [`Encoder::next_cut`]).

use super::encoder::Encoder;
use crate::error::Result;

/// Which part of a text survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Keep {
    /// The beginning.
    Head,
    /// The end.
    Tail,
    /// Half of the tokens from the beginning (one more if odd), the rest from the end.
    Both,
}

/// What a cut needs to know of a counter.
pub(super) trait Cut {
    /// Tokens of a text.
    fn count(&self, text: &str) -> Result<u32>;

    /// Length in bytes of the longest beginning found that has at most `max` tokens.
    fn head(&self, text: &str, max: u32) -> Result<usize>;

    /// Start of the longest end found that has at most `max` tokens.
    fn tail(&self, text: &str, max: u32) -> Result<usize>;
}

/// `text` cut to at most `max` tokens; `text` itself must be longer.
pub(super) fn truncate(cut: &impl Cut, text: &str, max: u32, keep: Keep) -> Result<String> {
    match keep {
        Keep::Head => Ok(text[..cut.head(text, max)?].to_owned()),
        Keep::Tail => Ok(text[cut.tail(text, max)?..].to_owned()),
        Keep::Both => both(cut, text, max),
    }
}

fn both(cut: &impl Cut, text: &str, max: u32) -> Result<String> {
    let mut head = max.div_ceil(2);
    let mut tail = max - head;
    loop {
        let (first, rest) = text.split_at(cut.head(text, head)?);
        let mut joined = first.to_owned();
        joined.push_str(&rest[cut.tail(rest, tail)?..]);
        let count = cut.count(&joined)?;
        if count <= max || (head == 0 && tail == 0) {
            return Ok(joined);
        }
        // The seam made new pieces: give up as much of the end, then of the beginning.
        let excess = count - max;
        if tail > 0 {
            tail = tail.saturating_sub(excess);
        } else {
            head = head.saturating_sub(excess);
        }
    }
}

/// Cuts by token ids.
pub(super) struct ById<'a>(pub(super) &'a dyn Encoder);

impl Cut for ById<'_> {
    fn count(&self, text: &str) -> Result<u32> {
        Ok(self.0.count(text))
    }

    fn head(&self, text: &str, max: u32) -> Result<usize> {
        let mut left = max as usize;
        let mut start = 0;
        let mut ids = Vec::new();
        while left > 0 && start < text.len() {
            let mut end = self.0.next_cut(text, start.saturating_add(window(left)));
            ids.clear();
            self.0.encode(&text[start..end], &mut ids);
            if ids.len() <= left {
                left -= ids.len();
                start = end;
                continue;
            }
            while ids.len() > left {
                let kept: usize = ids.iter().take(left).map(|&id| self.length(id)).sum();
                end = text.floor_char_boundary((start + kept).min(end - 1));
                ids.clear();
                self.0.encode(&text[start..end], &mut ids);
            }
            return Ok(end);
        }
        Ok(start)
    }

    fn tail(&self, text: &str, max: u32) -> Result<usize> {
        let mut left = max as usize;
        let mut end = text.len();
        let mut ids = Vec::new();
        while left > 0 && end > 0 {
            let mut start = self.0.previous_cut(text, end.saturating_sub(window(left)));
            ids.clear();
            self.0.encode(&text[start..end], &mut ids);
            if ids.len() <= left {
                left -= ids.len();
                end = start;
                continue;
            }
            while ids.len() > left {
                let kept: usize = ids.iter().rev().take(left).map(|&id| self.length(id)).sum();
                start = text.ceil_char_boundary(end.saturating_sub(kept).max(start + 1));
                ids.clear();
                self.0.encode(&text[start..end], &mut ids);
            }
            return Ok(start);
        }
        Ok(end)
    }
}

impl ById<'_> {
    fn length(&self, id: u32) -> usize {
        self.0.token(id).map_or(0, <[u8]>::len)
    }
}

/// Bytes that are looked at for `tokens` more tokens: about what they need, so that the last step
/// encodes little that is then cut off.
fn window(tokens: usize) -> usize {
    tokens.saturating_mul(4).saturating_add(64)
}

/// Cuts by bisection, for counters that only count: about `log2(len)` counts.
pub(super) struct ByCount<F>(pub(super) F);

impl<F: Fn(&str) -> Result<u32>> Cut for ByCount<F> {
    fn count(&self, text: &str) -> Result<u32> {
        (self.0)(text)
    }

    fn head(&self, text: &str, max: u32) -> Result<usize> {
        bisect(text.len(), |length| {
            let at = text.floor_char_boundary(length);
            Ok((at, (self.0)(&text[..at])? <= max))
        })
    }

    fn tail(&self, text: &str, max: u32) -> Result<usize> {
        let length = bisect(text.len(), |length| {
            let at = text.ceil_char_boundary(text.len() - length);
            Ok((text.len() - at, (self.0)(&text[at..])? <= max))
        })?;
        Ok(text.len() - length)
    }
}

/// The greatest length up to `longest` that `fits` approved; it is given a length, and answers with
/// the length rounded down to whole characters and whether that fits. Length 0 needs no approval.
fn bisect(longest: usize, fits: impl Fn(usize) -> Result<(usize, bool)>) -> Result<usize> {
    let mut approved = 0;
    let mut low = 0;
    let mut high = longest + 1;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match fits(middle)? {
            (length, true) => {
                approved = length;
                low = middle;
            }
            (_, false) => high = middle,
        }
    }
    Ok(approved)
}
