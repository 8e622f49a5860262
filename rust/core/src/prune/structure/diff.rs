//! Unified diffs: files, hunks, changed lines.

use memchr::memmem;

use super::Unit;
use super::line;

const FILE: f32 = 0.9;
const HUNK: f32 = 0.6;
/// Changed lines of a hunk: the first three, the next five, the rest. Every hunk has its say first.
const CHANGE: [f32; 3] = [0.5, 0.4, 0.3];
/// Lines around a change.
const CONTEXT: f32 = 0.15;
/// What happened to the file as a whole: new, deleted, renamed.
const FATE: f32 = 0.6;
const PREAMBLE: f32 = 0.4;
const GENERATED: f32 = 0.08;

/// Signs of files that programs write.
const GENERATED_NAMES: [&str; 9] = [
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "Cargo.lock",
    "poetry.lock",
    "uv.lock",
    "go.sum",
    ".min.js",
    ".snap",
];

/// Whether a line is a hunk header.
pub(crate) fn is_hunk(line: &[u8]) -> bool {
    line.starts_with(b"@@ -") && memmem::find(line, b" @@").is_some()
}

pub(crate) fn weigh(text: &str, units: &mut [Unit]) {
    let mut file: Option<u32> = None;
    let mut names: Option<u32> = None;
    let mut hunk: Option<u32> = None;
    let mut group = 0;
    let mut changes = 0;
    let mut is_generated = false;
    for index in 0..units.len() {
        let content = line::of(text, &units[index]);
        let next_is_new = units
            .get(index + 1)
            .is_some_and(|next| line::of(text, next).starts_with(b"+++ "));
        let starts_file = content.starts_with(b"diff --git ")
            || content.starts_with(b"Index: ")
            || (content.starts_with(b"--- ") && next_is_new && (file.is_none() || hunk.is_some()));
        let here = index as u32;
        let (weight, parent) = if starts_file {
            // The first file has a group too, apart from what stands before.
            group = here;
            file = Some(here);
            names = Some(here);
            hunk = None;
            is_generated = is_generated_name(content);
            (FILE, None)
        } else if content.starts_with(b"--- ") && next_is_new && hunk.is_none() {
            let parent = names;
            names = Some(here);
            (FILE, parent)
        } else if content.starts_with(b"+++ ") && hunk.is_none() {
            let parent = names;
            names = Some(here);
            is_generated |= is_generated_name(content);
            (FILE, parent)
        } else if is_hunk(content) {
            hunk = Some(here);
            changes = 0;
            (if is_generated { GENERATED } else { HUNK }, names)
        } else if hunk.is_some() {
            let weight = match content.first() {
                Some(b'+' | b'-') if is_generated => GENERATED,
                Some(b'+' | b'-') if content.len() > 1 => {
                    changes += 1;
                    match changes {
                        ..=3 => CHANGE[0],
                        4..=8 => CHANGE[1],
                        _ => CHANGE[2],
                    }
                }
                _ => CONTEXT,
            };
            (weight, hunk)
        } else if file.is_some() {
            let is_fate = [
                "new file",
                "deleted file",
                "rename ",
                "similarity",
                "Binary",
            ]
            .iter()
            .any(|start| content.starts_with(start.as_bytes()));
            (if is_fate { FATE } else { CONTEXT }, file)
        } else {
            (if content.is_empty() { 0.0 } else { PREAMBLE }, None)
        };
        let unit = &mut units[index];
        unit.weight = weight;
        unit.parent = parent;
        unit.group = group;
    }
}

fn is_generated_name(line: &[u8]) -> bool {
    GENERATED_NAMES
        .iter()
        .any(|name| line.ends_with(name.as_bytes()))
}
