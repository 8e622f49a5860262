//! Pruning of old tool outputs: the first characters and a note of the full length.
//!
//! Decides on lengths alone, so the bindings can cut the caller's own strings. Characters are
//! Unicode scalar values. Invariant: what was pruned is recognised by its note and left as it is,
//! so pruning twice gives what pruning once gives.

use crate::node::MAX_DEPTH;

/// Whether the result at `index` of `len` messages is old enough to be pruned: more than
/// `keep_last` places from the end.
pub fn is_old(index: usize, len: usize, keep_last: usize) -> bool {
    len.saturating_sub(index) > keep_last
}

/// The note behind a pruned output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Characters that were kept before the note.
    pub kept: u64,
    /// Characters of the whole output before it was pruned.
    pub full: u64,
}

/// Longest note in characters (both numbers at 20 digits); the tail to give to [`Note::find`].
pub const MAX_NOTE_CHARS: usize = OPEN.len() + OF.len() + CLOSE.len() + 40;

const OPEN: &str = "\n[tool output pruned: first ";
const OF: &str = " of ";
const CLOSE: &str = " characters kept]";

impl Note {
    /// The note as it stands in the message; ASCII only, so bytes are characters.
    pub fn text(self) -> String {
        format!("{OPEN}{}{OF}{}{CLOSE}", self.kept, self.full)
    }

    /// The note at the very end of `tail`, which must hold the last [`MAX_NOTE_CHARS`] characters
    /// of the text, or all of it.
    pub fn find(tail: &str) -> Option<Self> {
        let body = tail.strip_suffix(CLOSE)?;
        let (_, numbers) = body.rsplit_once(OPEN)?;
        let (kept, full) = numbers.split_once(OF)?;
        let note = Self {
            kept: kept.parse().ok()?,
            full: full.parse().ok()?,
        };
        // Only the spelling that `text` writes counts: no sign, no leading zero.
        (tail.ends_with(&note.text()) && note.kept < note.full).then_some(note)
    }
}

/// What becomes of one text block of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Stays as it is.
    Keep,
    /// Its first `chars` characters, then the note.
    Shorten(usize),
    /// Goes: it lies wholly behind the cut.
    Drop,
}

/// The cut of an output whose text blocks have these lengths in characters, taken as one text.
///
/// `found` is the note at the end of the last block, if any. Returns one [`Cut`] per block and the
/// note to write, or `None` if the output stays as it is: at most `max_chars` long, or pruned
/// before to at most `max_chars`. An output that was pruned to more than `max_chars` is cut again
/// and keeps the full length of its note.
///
/// # Example
/// ```
/// use satchel_core::prune::outputs::{Cut, Note, cut};
/// let (cuts, note) = cut(&[100, 40, 300, 7], None, 150).unwrap();
/// assert_eq!(cuts, [Cut::Keep, Cut::Keep, Cut::Shorten(10), Cut::Drop]);
/// assert_eq!(note, Note { kept: 150, full: 447 });
/// assert_eq!(cut(&[150], None, 150), None);
/// ```
pub fn cut(lengths: &[usize], found: Option<Note>, max_chars: usize) -> Option<(Vec<Cut>, Note)> {
    let total: usize = lengths.iter().sum();
    if total <= max_chars {
        return None;
    }
    // A note counts only if it tells the truth about what stands before it.
    let before = found.filter(|note| {
        let body = total.checked_sub(note.text().len());
        body.is_some_and(|body| body as u64 == note.kept)
    });
    let (body, full) = match before {
        Some(note) if note.kept <= max_chars as u64 => return None,
        Some(note) => (note.kept as usize, note.full),
        None => (total, total as u64),
    };
    let mut left = max_chars.min(body);
    let mut noted = false;
    let cuts = lengths
        .iter()
        .map(|length| {
            if noted {
                Cut::Drop
            } else if *length < left {
                left -= length;
                Cut::Keep
            } else {
                // The cut falls into this block or right behind it; the note goes here.
                noted = true;
                Cut::Shorten(left)
            }
        })
        .collect();
    let kept = max_chars.min(body) as u64;
    Some((cuts, Note { kept, full }))
}

/// Prunes one text to its first `max_chars` characters and a note; `None` if it stays as it is.
///
/// # Example
/// ```
/// use satchel_core::prune::outputs::prune_text;
/// let pruned = prune_text("0123456789", 4).unwrap();
/// assert_eq!(pruned, "0123\n[tool output pruned: first 4 of 10 characters kept]");
/// assert_eq!(prune_text(&pruned, 4), None);
/// ```
pub fn prune_text(text: &str, max_chars: usize) -> Option<String> {
    let length = text.chars().count();
    let (cuts, note) = cut(&[length], Note::find(text), max_chars)?;
    match cuts.first() {
        Some(Cut::Shorten(chars)) => {
            let end = text.char_indices().nth(*chars).map(|(at, _)| at);
            let head = text.get(..end.unwrap_or(text.len())).unwrap_or(text);
            Some(format!("{head}{}", note.text()))
        }
        _ => None,
    }
}

/// `text` without the object keys `names`, at any depth, if it is JSON and holds one of them.
///
/// The rest is written as compact JSON with the order of keys and the digits of numbers kept.
/// Text that is no JSON object or array, or nested deeper than the reader's limit, gives `None`.
///
/// # Example
/// ```
/// use satchel_core::prune::outputs::strip_keys;
/// let text = r#"{"id": 7, "raw": "…", "rows": [{"raw": 1, "total": 2.50}]}"#;
/// let names = ["raw".to_owned()];
/// assert_eq!(strip_keys(text, &names).unwrap(), r#"{"id":7,"rows":[{"total":2.50}]}"#);
/// assert_eq!(strip_keys("raw", &names), None);
/// ```
pub fn strip_keys(text: &str, names: &[String]) -> Option<String> {
    let start = text.trim_start();
    if names.is_empty() || !(start.starts_with('{') || start.starts_with('[')) {
        return None;
    }
    let mut value = serde_json::from_str(text).ok()?;
    remove(&mut value, names, 0).then(|| value.to_string())
}

fn remove(value: &mut serde_json::Value, names: &[String], depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    let mut removed = false;
    match value {
        serde_json::Value::Object(fields) => {
            fields.retain(|key, _| {
                let keep = !names.iter().any(|name| name == key);
                removed |= !keep;
                keep
            });
            for field in fields.values_mut() {
                removed |= remove(field, names, depth + 1);
            }
        }
        serde_json::Value::Array(items) => {
            for item in items {
                removed |= remove(item, names, depth + 1);
            }
        }
        _ => {}
    }
    removed
}
