//! Source code: signatures and what they enclose, by light lexical rules for many languages.

use super::Unit;
use super::line;

const TOP_SIGNATURE: f32 = 0.7;
const SIGNATURE: f32 = 0.55;
/// Further lines of a signature that spans several.
const SIGNATURE_REST: f32 = 0.45;
/// A constant or a setting at the top level.
const TOP_LEVEL: f32 = 0.3;
/// The first lines of a comment.
const COMMENT: f32 = 0.2;
const LATER_COMMENT: f32 = 0.06;
const LEAVING: f32 = 0.2;
const IMPORT: f32 = 0.12;
const BODY: f32 = 0.1;
const CLOSING: f32 = 0.03;
const FIRST: [f32; 2] = [0.6, 0.3];
const LAST: [f32; 2] = [0.45, 0.2];

/// Signatures inside signatures that are followed.
const DEEPEST: usize = 24;

/// Lines that a signature may span.
const LONGEST_SIGNATURE: u32 = 10;

/// Words that may stand before the one that declares.
fn is_modifier(word: &[u8]) -> bool {
    matches!(
        word,
        b"pub"
            | b"export"
            | b"default"
            | b"async"
            | b"static"
            | b"public"
            | b"private"
            | b"protected"
            | b"final"
            | b"abstract"
            | b"override"
            | b"virtual"
            | b"inline"
            | b"extern"
            | b"unsafe"
            | b"open"
            | b"internal"
            | b"sealed"
            | b"data"
            | b"suspend"
            | b"partial"
            | b"declare"
            | b"const"
            | b"readonly"
            | b"local"
            | b"synchronized"
            | b"constexpr"
            | b"explicit"
            | b"mut"
            | b"native"
    )
}

/// Words that declare a function, a type or a module.
fn is_keyword(word: &[u8]) -> bool {
    matches!(
        word,
        b"def"
            | b"class"
            | b"fn"
            | b"func"
            | b"function"
            | b"impl"
            | b"interface"
            | b"trait"
            | b"struct"
            | b"enum"
            | b"type"
            | b"module"
            | b"mod"
            | b"namespace"
            | b"macro_rules!"
            | b"object"
            | b"protocol"
            | b"record"
            | b"union"
            | b"fun"
            | b"sub"
            | b"actor"
            | b"primitive"
            | b"typedef"
            | b"function*"
            | b"template"
            | b"CREATE"
            | b"extension"
    )
}

/// Words before a bracket that open no signature.
fn is_statement(word: &[u8]) -> bool {
    matches!(
        word,
        b"if"
            | b"for"
            | b"while"
            | b"switch"
            | b"catch"
            | b"else"
            | b"return"
            | b"with"
            | b"match"
            | b"when"
            | b"throw"
            | b"await"
            | b"new"
            | b"assert"
            | b"elif"
            | b"do"
    )
}

/// The word at the start: letters, digits, `_`, `!`, `*`.
fn word(line: &[u8]) -> &[u8] {
    let length = line
        .iter()
        .take_while(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'!' | b'*' | b'$')
        })
        .count();
    &line[..length]
}

/// Whether a line (without its indentation) declares a function, a type or a module.
fn is_signature(line: &[u8], is_indented: bool) -> bool {
    if !line
        .first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'~' | b'#'))
    {
        return false;
    }
    let mut rest = line;
    let mut modified = false;
    let mut is_const = false;
    for _ in 0..8 {
        let first = word(rest);
        if is_keyword(first) {
            // `type: string` is a field, `type = 3` a variable, `class` in prose has no name behind.
            let behind = rest[first.len()..].trim_ascii_start();
            return rest
                .get(first.len())
                .is_some_and(|byte| matches!(byte, b' ' | b'<'))
                && behind.first().is_some_and(|byte| {
                    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'(' | b'<' | b'$' | 128..)
                });
        }
        if first.is_empty() || !is_modifier(first) {
            break;
        }
        modified = true;
        is_const |= matches!(first, b"const" | b"export" | b"local");
        rest = &rest[first.len()..];
        // `pub(crate)`
        if rest.starts_with(b"(") {
            let close = rest.iter().position(|byte| *byte == b')');
            rest = close.map_or(rest, |close| &rest[close + 1..]);
        }
        rest = rest.trim_ascii_start();
    }
    let Some(&last) = line.last() else {
        return false;
    };
    if is_const && memchr::memmem::find(line, b"=>").is_some() {
        return true;
    }
    let Some(bracket) = rest.iter().position(|byte| *byte == b'(') else {
        return false;
    };
    let before = &rest[..bracket];
    let first = word(rest);
    if is_statement(first)
        || before
            .iter()
            .any(|byte| matches!(byte, b'=' | b'.' | b'"' | b'\''))
    {
        return false;
    }
    let opens = matches!(last, b'{' | b'(' | b',');
    if modified {
        return opens || matches!(last, b')' | b';');
    }
    // A method of TypeScript or JavaScript: `name(…) {`.
    if before == first && !first.is_empty() {
        return is_indented && last == b'{';
    }
    // A function of C and its like: at the margin, a type before the name.
    !is_indented && before.contains(&b' ') && (last == b'{' || last == b')')
}

fn is_comment(line: &[u8]) -> bool {
    matches!(
        line,
        [b'/', b'/' | b'*', ..]
            | [b'*', b' ' | b'/', ..]
            | [b'*']
            | [b'-', b'-', b' ', ..]
            | [b'#', b' ', ..]
    ) || line.starts_with(b"\"\"\"")
        || line.starts_with(b"<!--")
}

fn is_import(line: &[u8]) -> bool {
    let starts = |start: &str| line.starts_with(start.as_bytes());
    match line.first() {
        Some(b'i') => starts("import "),
        Some(b'f') => starts("from "),
        Some(b'u') => starts("use ") || starts("using "),
        Some(b'#') => starts("#include"),
        Some(b'r') => starts("require"),
        Some(b'p') => starts("package "),
        Some(b'e') => starts("export {") || starts("export *"),
        _ => false,
    }
}

/// Whether a line of the sample looks like code.
pub(crate) fn looks_like_code(line: &[u8]) -> bool {
    let trimmed = line.trim_ascii();
    let is_indented = trimmed.len() < line.len();
    let Some(&last) = trimmed.last() else {
        return false;
    };
    if is_signature(trimmed, is_indented) {
        return true;
    }
    if matches!(trimmed, [b'*', b'*', ..] | [b'#', b'#', ..]) {
        return false;
    }
    if is_import(trimmed) {
        return matches!(last, b';' | b'"' | b'\'' | b'>' | b'{')
            || trimmed.starts_with(b"import ")
            || memchr::memmem::find(trimmed, b" import ").is_some();
    }
    if matches!(trimmed, [b'/', b'/' | b'*', ..] | [b'*', b' ' | b'/', ..]) {
        return is_indented || !trimmed.starts_with(b"* ");
    }
    let first = word(trimmed);
    let is_known = matches!(
        first,
        b"return"
            | b"if"
            | b"for"
            | b"while"
            | b"let"
            | b"const"
            | b"var"
            | b"self"
            | b"this"
            | b"else"
            | b"elif"
            | b"try"
            | b"raise"
            | b"throw"
            | b"assert"
            | b"yield"
            | b"end"
            | b"case"
    ) && trimmed
        .iter()
        .any(|byte| matches!(byte, b'(' | b'=' | b'.' | b':' | b'{' | b';'));
    is_known
        || matches!(last, b'{' | b';' | b'}')
        || (is_indented && matches!(last, b')' | b']' | b'(' | b'[' | b','))
        || trimmed.starts_with(b"@")
        || (is_indented && memchr::memmem::find(trimmed, b" = ").is_some())
}

/// Columns before the content; a tab counts four.
fn indent(line: &[u8]) -> usize {
    line.iter()
        .map_while(|byte| match byte {
            b' ' => Some(1),
            b'\t' => Some(4),
            _ => None,
        })
        .sum()
}

pub(crate) fn weigh(text: &str, units: &mut [Unit]) {
    // Signatures that enclose the line, from the outside inwards: indentation and index.
    let mut open: Vec<(usize, u32)> = Vec::with_capacity(DEEPEST);
    // The signature that is not finished, and how many lines it has.
    let mut unfinished: Option<(u32, u32)> = None;
    let mut comments = 0;
    for (index, unit) in units.iter_mut().enumerate() {
        let whole = line::without_number(line::of(text, unit));
        let trimmed = whole.trim_ascii_start();
        let here = index as u32;
        unit.group = open.last().map_or(0, |(_, index)| *index);
        if trimmed.is_empty() {
            comments = 0;
            continue;
        }
        let columns = indent(whole);
        if let Some((signature, lines)) = unfinished {
            unit.parent = Some(signature);
            unit.group = signature;
            unit.weight = SIGNATURE_REST;
            unfinished = (lines < LONGEST_SIGNATURE && !ends_signature(trimmed))
                .then_some((signature, lines + 1));
            continue;
        }
        // A bracket at the column of a signature still belongs to it.
        let is_bracket = matches!(trimmed[0], b'{' | b'}' | b')');
        while open
            .last()
            .is_some_and(|(outer, _)| *outer > columns || (*outer == columns && !is_bracket))
        {
            open.pop();
        }
        let enclosing = open.last().map(|(_, index)| *index);
        unit.parent = enclosing;
        unit.group = enclosing.unwrap_or(0);
        let is_comment = is_comment(trimmed);
        if !is_comment && is_signature(trimmed, columns > 0) {
            unit.weight = if columns == 0 {
                TOP_SIGNATURE
            } else {
                SIGNATURE
            };
            unit.group = here;
            if open.len() < DEEPEST {
                open.push((columns, here));
            }
            if !ends_signature(trimmed) {
                unfinished = Some((here, 1));
            }
            comments = 0;
            continue;
        }
        unit.weight = if is_comment {
            comments += 1;
            if comments <= 2 {
                COMMENT
            } else {
                LATER_COMMENT
            }
        } else if trimmed.iter().all(|byte| !byte.is_ascii_alphanumeric()) && trimmed.is_ascii() {
            CLOSING
        } else if is_import(trimmed) {
            IMPORT
        } else if matches!(
            word(trimmed),
            b"return" | b"raise" | b"throw" | b"yield" | b"panic" | b"panic!"
        ) {
            LEAVING
        } else if columns == 0 {
            TOP_LEVEL
        } else {
            BODY
        };
        if !is_comment {
            comments = 0;
        }
    }
    line::raise_ends(text, units, &FIRST, &LAST);
}

/// Whether the last line of a signature is this one.
fn ends_signature(line: &[u8]) -> bool {
    let brackets = line.iter().fold(0i32, |open, byte| match byte {
        b'(' | b'[' => open + 1,
        b')' | b']' => open - 1,
        _ => open,
    });
    brackets <= 0 && (brackets < 0 || !line.ends_with(b","))
}
