//! Pages and pointers: how removed content is named, found and read.
//!
//! A page is a part of the transcript; nothing is copied. Its pointer is a keyed hash of (page
//! key, message index, part, content), so a pointer of another session finds nothing, and the same
//! content has the same pointer in every replay of its log.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::error::{Error, ErrorKind, Result};
use crate::message::{Part, PartKind};
use crate::node::Text;
use crate::transcript::Transcript;

/// Digits of a pointer after `p_`: 59 bits of the hash, so that 100,000 pages collide with a
/// probability of 10⁻⁸. Digits, since the public tokenizers read three of them as one token: six
/// tokens a pointer, where as many bits in letters take nine and cost ten times as much to count.
const POINTER_DIGITS: usize = 18;
const KEY_CONTEXT: &str = "satchel page pointer, version 1";

/// The key under which a log's pointers are made.
#[derive(Clone, PartialEq, Eq)]
pub struct PageKey([u8; 32]);

impl std::fmt::Debug for PageKey {
    /// The key is a secret: it never reaches logs or errors.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PageKey(…)")
    }
}

impl PageKey {
    /// The key made from a secret; the empty one for logs that are not stored.
    pub fn new(secret: &str) -> Self {
        Self(blake3::derive_key(KEY_CONTEXT, secret.as_bytes()))
    }

    /// The pointer of part `part` of message `message`.
    pub fn pointer<T: Text>(&self, message: usize, part: usize, content: &Part<T>) -> Pointer {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&(message as u64).to_le_bytes());
        hasher.update(&(part as u64).to_le_bytes());
        hasher.update(&content.body.page_bytes());
        Pointer::from_hash(&hasher.finalize())
    }

    /// The pointer of the index page, one for the whole log.
    pub fn index_pointer(&self) -> Pointer {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"index page");
        Pointer::from_hash(&hasher.finalize())
    }
}

/// The stable name of a page: `p_` and 18 digits of a keyed hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pointer(u64);

impl Pointer {
    fn from_hash(hash: &blake3::Hash) -> Self {
        let mut bits = 0u128;
        for &byte in &hash.as_bytes()[..16] {
            bits = bits << 8 | u128::from(byte);
        }
        Self((bits % 10u128.pow(POINTER_DIGITS as u32)) as u64)
    }

    /// Reads a pointer as it stands in a window.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.trim().strip_prefix("p_")?;
        let is_name =
            digits.len() == POINTER_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_name.then(|| digits.parse().ok().map(Self)).flatten()
    }
}

impl std::fmt::Display for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p_{:0width$}", self.0, width = POINTER_DIGITS)
    }
}

impl std::fmt::Debug for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// Which part each pointer names; filled up to the end of the transcript when it is asked.
#[derive(Clone, Debug, Default)]
pub struct PageDirectory {
    pages: BTreeMap<Pointer, u32>,
    seen_parts: usize,
}

impl PageDirectory {
    /// Index of the part in [`Transcript::all_parts`] that `pointer` names.
    ///
    /// # Errors
    /// `page_not_found`.
    pub fn find<T: Text>(
        &mut self,
        pointer: Pointer,
        transcript: &Transcript<T>,
        key: &PageKey,
    ) -> Result<usize> {
        while self.seen_parts < transcript.all_parts().len() {
            let part = self.seen_parts;
            let message = transcript.message_of_part(part);
            let offset = part - transcript.part_range(message).start;
            let name = key.pointer(message, offset, &transcript.all_parts()[part]);
            self.pages.entry(name).or_insert(part as u32);
            self.seen_parts += 1;
        }
        self.pages
            .get(&pointer)
            .map(|&part| part as usize)
            .ok_or_else(|| not_found(pointer))
    }
}

/// The error for a pointer without a page.
#[cold]
pub fn not_found(pointer: Pointer) -> Error {
    Error::new(
        ErrorKind::PageNotFound,
        format!("no page {pointer} in this log"),
    )
}

/// The error for a text that is no pointer.
#[cold]
pub fn not_a_pointer(chars: usize) -> Error {
    Error::new(
        ErrorKind::PageNotFound,
        format!("a pointer is p_ and {POINTER_DIGITS} digits, got a text of {chars} characters"),
    )
}

/// What a page holds, in one word for the index.
fn kind_name(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Text => "text",
        PartKind::Image => "image",
        PartKind::Audio => "audio",
        PartKind::File => "file",
        PartKind::Call => "call",
        PartKind::Result => "result",
        PartKind::Reasoning => "reasoning",
        PartKind::Opaque => "block",
    }
}

/// Characters of a page's first line that the index shows.
const CLAIM_CHARS: usize = 72;

/// The first line that says something, cut to `max_chars` characters.
pub fn first_line(text: &str, max_chars: usize) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("");
    match line.char_indices().nth(max_chars) {
        None => line.to_owned(),
        Some((cut, _)) => {
            let cut = line[..cut]
                .rfind(char::is_whitespace)
                .filter(|&at| at > cut / 2)
                .unwrap_or(cut);
            format!("{}…", line[..cut].trim_end())
        }
    }
}

/// The index page: a line for every part of every step that is gone, with its pointer.
pub fn index_page<T: Text>(
    transcript: &Transcript<T>,
    key: &PageKey,
    gone: impl Iterator<Item = usize>,
) -> String {
    let mut out = String::from(
        "Content that is paged out, one line a part: message, role, kind, tokens, pointer, first line.\n",
    );
    for step in gone {
        let Some(step) = transcript.steps().get(step) else {
            continue;
        };
        for message in step.first as usize..step.end as usize {
            let row = transcript.rows()[message];
            for (offset, part) in transcript.parts(message).iter().enumerate() {
                let pointer = key.pointer(message, offset, part);
                // Writing to a String cannot fail.
                let _ = write!(
                    out,
                    "{message} {} {} {} {pointer}",
                    row.role.name(),
                    kind_name(part.kind),
                    part.tokens
                );
                if let Some(name) = part.key.as_ref().and_then(|key| key.name.as_ref()) {
                    name.with(|name| {
                        out.push(' ');
                        out.push_str(&first_line(name, CLAIM_CHARS));
                    });
                }
                if let crate::message::Body::Text(text) = &part.body {
                    text.with(|text| {
                        out.push(' ');
                        out.push_str(&first_line(text, CLAIM_CHARS));
                    });
                }
                out.push('\n');
            }
        }
    }
    out
}

/// The lines of `text` that hold the literal `pattern` and stand in `lines` (from 1, inclusive).
/// Each keeps its own line end; everything if neither is given.
pub fn select_lines(text: &str, pattern: Option<&str>, lines: Option<(usize, usize)>) -> String {
    if pattern.is_none() && lines.is_none() {
        return text.to_owned();
    }
    text.split_inclusive('\n')
        .enumerate()
        .filter(|(number, line)| {
            lines.is_none_or(|(first, last)| (first..=last).contains(&(number + 1)))
                && pattern.is_none_or(|pattern| line.contains(pattern))
        })
        .map(|(_, line)| line)
        .collect()
}
