//! Secrets that only their name tells: `password=...`, `"api_key": "..."`, `Bearer ...`, and a
//! password that somebody says.
//!
//! A value counts if it is written out: no variable, call, type, or hint to fill in.

use super::edges::{Mix, byte_at, byte_before, is_start, is_word};
use super::{Kind, Span};

/// What a name promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// A password: short, any characters.
    Password,
    /// `pwd` and `pass`, which have other meanings.
    Short,
    /// A key or token: long, random.
    Secret,
}

/// A scheme of HTTP authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Bearer,
    /// A common word: only behind `authorization`.
    Basic,
}

pub(super) const SCHEMES: [(&str, Scheme); 2] =
    [("bearer ", Scheme::Bearer), ("basic ", Scheme::Basic)];

/// Names, longer ones first.
pub(super) const NAMES: [(&str, Sort); 42] = [
    ("password", Sort::Password),
    ("passwd", Sort::Password),
    ("passphrase", Sort::Password),
    ("passcode", Sort::Password),
    ("비밀번호", Sort::Password),
    ("패스워드", Sort::Password),
    ("비번", Sort::Password),
    ("パスワード", Sort::Password),
    ("密码", Sort::Password),
    ("密碼", Sort::Password),
    // JSON in ASCII writes the two Korean ones so.
    ("\\ube44\\ubc00\\ubc88\\ud638", Sort::Password),
    ("\\ud328\\uc2a4\\uc6cc\\ub4dc", Sort::Password),
    ("_password", Sort::Password),
    ("_passwd", Sort::Password),
    ("_passphrase", Sort::Password),
    ("_passcode", Sort::Password),
    ("_pass", Sort::Short),
    ("pwd", Sort::Short),
    ("secret_access_key", Sort::Secret),
    ("secretaccesskey", Sort::Secret),
    ("secret-access-key", Sort::Secret),
    ("secret access key", Sort::Secret),
    ("secret_key", Sort::Secret),
    ("secretkey", Sort::Secret),
    ("secret-key", Sort::Secret),
    ("secret", Sort::Secret),
    ("api_key", Sort::Secret),
    ("apikey", Sort::Secret),
    ("api-key", Sort::Secret),
    ("api key", Sort::Secret),
    ("api_token", Sort::Secret),
    ("access_key", Sort::Secret),
    ("accesskey", Sort::Secret),
    ("access-key", Sort::Secret),
    ("account_key", Sort::Secret),
    ("accountkey", Sort::Secret),
    ("auth_key", Sort::Secret),
    ("encryption_key", Sort::Secret),
    ("signing_key", Sort::Secret),
    ("private_key", Sort::Secret),
    ("webhook_key", Sort::Secret),
    ("token", Sort::Secret),
];

/// The longest value.
const MOST: usize = 512;

/// What stands between a password and its name when somebody says it.
const SAYING: [&str; 11] = [
    " is: ", " is ", " was ", "는 ", "은 ", "는: ", "\\ub294 ", "\\uc740 ", " は ", "は", "是",
];

/// Spaces around an operator at most.
const MOST_SPACES: usize = 8;

/// Words that stand where a value would; in lower case.
const BLANK: [&str; 36] = [
    "none",
    "null",
    "nil",
    "true",
    "false",
    "undefined",
    "string",
    "str",
    "text",
    "bytes",
    "password",
    "passwd",
    "secret",
    "token",
    "required",
    "optional",
    "hidden",
    "redacted",
    "removed",
    "masked",
    "field",
    "input",
    "example",
    "placeholder",
    "value",
    "invalid",
    "incorrect",
    "wrong",
    "missing",
    "expired",
    "valid",
    "empty",
    "unknown",
    "varchar",
    "secretstr",
    "encrypted",
];

/// The password or key named at `start..end`.
pub(super) fn find(text: &[u8], start: usize, end: usize, sort: Sort, found: &mut Vec<Span>) {
    // `_pass` and `DB_PWD` are names; `cpwd` is not.
    let before = byte_before(text, start);
    let is_part = byte_at(text, start) == b'_' || before == b'_' || is_start(text, start);
    if sort == Sort::Short && !is_part {
        return;
    }
    if sort == Sort::Secret && is_cursor(text, start) {
        return;
    }
    let Some((at, how)) = operator(text, start, end, sort) else {
        return;
    };
    let Some(value) = value_at(text, at) else {
        return;
    };
    let bytes = text.get(value.start..value.end).unwrap_or_default();
    if is_blank(bytes) {
        return;
    }
    let is_found = match sort {
        Sort::Secret => is_key(text, bytes, &value),
        Sort::Password | Sort::Short => is_password(text, bytes, &value, start, how),
    };
    if is_found {
        found.push(Span {
            kind: if sort == Sort::Secret {
                Kind::ApiKey
            } else {
                Kind::Password
            },
            start: value.start,
            end: value.end,
        });
    }
}

/// What a scheme at `start..end` is followed by.
pub(super) fn find_bearer(
    text: &[u8],
    start: usize,
    end: usize,
    scheme: Scheme,
    found: &mut Vec<Span>,
) {
    if !is_start(text, start) {
        return;
    }
    if scheme == Scheme::Basic {
        let head = text
            .get(start.saturating_sub(24)..start)
            .unwrap_or_default();
        let head = head.to_ascii_lowercase();
        if memchr::memmem::find(&head, b"authorization").is_none() {
            return;
        }
    }
    let rest = text.get(end..).unwrap_or_default();
    let is_token = |byte: &&u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b'-')
    };
    let run = rest.iter().take(8192).take_while(is_token).count();
    let mut token = rest.get(..run).unwrap_or_default();
    while let [head @ .., b'.'] = token {
        token = head;
    }
    let mix = Mix::of(token);
    let dots = memchr::memchr_iter(b'.', token).count();
    let is_random = (mix.digits > 0 && mix.letters() > 0)
        || dots >= 2
        || (token.len() >= 16 && mix.capitals > 1 && mix.small > 1)
        || (token.len() >= 32 && mix.others == 0);
    let is_long = token.len() >= 8 || (scheme == Scheme::Basic && token.len() >= 4);
    if is_long && (is_random || scheme == Scheme::Basic) {
        found.push(Span {
            kind: Kind::BearerToken,
            start: end,
            end: end + token.len(),
        });
    }
}

/// Whether a value is a hint, a variable, or one character many times.
pub(super) fn is_blank(value: &[u8]) -> bool {
    let Some((first, rest)) = value.split_first() else {
        return true;
    };
    let next = rest.first().copied().unwrap_or(0);
    let is_variable = match first {
        b'$' => next.is_ascii_uppercase() || matches!(next, b'_' | b'{' | b'('),
        b'{' => value.ends_with(b"}"),
        b'<' => true,
        b'[' => value.ends_with(b"]") || next.is_ascii_uppercase(),
        b'%' => matches!(next, b's' | b'(' | b'd') || value.ends_with(b"%"),
        _ => false,
    };
    let is_one = value.iter().all(|byte| byte == first);
    let lower = value
        .get(..value.len().min(24))
        .unwrap_or_default()
        .to_ascii_lowercase();
    is_variable
        || is_one
        || BLANK.iter().any(|word| word.as_bytes() == lower)
        || [&b"your"[..], b"xxx", b"***", b"...", b"example_"]
            .iter()
            .any(|head| lower.starts_with(head))
}

/// Whether a `token` only says where to read on.
fn is_cursor(text: &[u8], start: usize) -> bool {
    let head = text.get(start.saturating_sub(5)..start).unwrap_or_default();
    let head = head.to_ascii_lowercase();
    let head = head
        .strip_suffix(b"_")
        .or(head.strip_suffix(b"-"))
        .unwrap_or(&head);
    head.ends_with(b"page") || head.ends_with(b"sync")
}

/// How a value is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// `=` without spaces.
    Tight,
    /// `=` or `:`.
    Set,
    /// In words.
    Said,
    /// `--password value`, `<password>value`.
    Marked,
}

/// Where the value may start, and how it is given.
fn operator(text: &[u8], start: usize, end: usize, sort: Sort) -> Option<(usize, How)> {
    let before = byte_before(text, start);
    if byte_at(text, end) == b'>' && (before == b'<' || is_word(before) || before == b':') {
        return Some((end + 1, How::Marked));
    }
    let closed = skip(text, end, 4, |byte| {
        matches!(byte, b'\\' | b'"' | b'\'' | b']' | b'`')
    });
    let at = skip(text, closed, MOST_SPACES, |byte| {
        byte == b' ' || byte == b'\t'
    });
    let rest = text.get(at..)?;
    let is_tight = at == end;
    for (sign, how) in [
        (&b":="[..], How::Set),
        (b"=>", How::Set),
        (b"=", if is_tight { How::Tight } else { How::Set }),
        (b":", How::Set),
        ("：".as_bytes(), How::Set),
    ] {
        let Some(behind) = rest.strip_prefix(sign) else {
            continue;
        };
        if matches!(behind.first(), Some(b'=' | b':' | b'~')) {
            return None;
        }
        let value = skip(text, at + sign.len(), MOST_SPACES, |byte| {
            byte == b' ' || byte == b'\t'
        });
        let how = if value == at + sign.len() {
            how
        } else {
            How::Set
        };
        return Some((value, how));
    }
    let is_escape = byte_at(text, end) == b'\\' && byte_at(text, end + 1) == b'u';
    if closed != end && !is_escape {
        return None;
    }
    if is_flag(text, start) && at > end {
        return Some((at, How::Marked));
    }
    let said = text.get(end..)?;
    for word in SAYING {
        if said.starts_with(word.as_bytes()) && (sort != Sort::Short) {
            return Some((end + word.len(), How::Said));
        }
    }
    None
}

/// Whether the name is that of a `--flag`.
fn is_flag(text: &[u8], start: usize) -> bool {
    let before = text
        .get(start.saturating_sub(16)..start)
        .unwrap_or_default();
    let name = before.iter().rev();
    let count = name
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-')
        .count();
    before
        .get(before.len() - count..)
        .is_some_and(|flag| flag.starts_with(b"--"))
}

fn skip(text: &[u8], start: usize, most: usize, accepts: impl Fn(u8) -> bool) -> usize {
    super::edges::end_of(text, start, most, accepts)
}

/// A value in a text.
#[derive(Clone, Copy, Debug)]
struct Value {
    start: usize,
    end: usize,
    is_quoted: bool,
}

fn value_at(text: &[u8], at: usize) -> Option<Value> {
    // The prefix of a string in code: `b"..."`.
    let is_prefixed = matches!(byte_at(text, at), b'b' | b'r' | b'u' | b'f')
        && matches!(byte_at(text, at + 1), b'"' | b'\'');
    let at = at + usize::from(is_prefixed);
    let escape = skip(text, at, 3, |byte| byte == b'\\');
    let quote = byte_at(text, escape);
    if matches!(quote, b'"' | b'\'' | b'`') {
        let start = escape + 1;
        let body = text.get(start..)?.iter().take(MOST);
        let closes = |byte: &u8| *byte == quote || matches!(byte, b'\n' | b'\r');
        let length = body.take(MOST).position(closes)?;
        let mut end = start + length;
        if byte_at(text, end) != quote {
            return None;
        }
        // The escapes of the closing quote.
        while escape > at && end > start && byte_before(text, end) == b'\\' {
            end -= 1;
        }
        return Some(Value {
            start,
            end,
            is_quoted: true,
        });
    }
    let is_inside = |byte: u8| {
        byte.is_ascii_graphic()
            && !matches!(
                byte,
                b',' | b';'
                    | b'&'
                    | b'"'
                    | b'\''
                    | b'<'
                    | b'>'
                    | b')'
                    | b']'
                    | b'}'
                    | b'|'
                    | b'`'
                    | b'\\'
            )
    };
    let opens = matches!(byte_at(text, at), b'<' | b'[' | b'{');
    let start = at;
    let mut end = skip(text, at + usize::from(opens), MOST, is_inside);
    while end > start && matches!(byte_before(text, end), b'.' | b':') {
        end -= 1;
    }
    (end > start).then_some(Value {
        start,
        end,
        is_quoted: false,
    })
}

/// Whether a value is a random key.
fn is_key(text: &[u8], bytes: &[u8], value: &Value) -> bool {
    let accepts = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'.' | b'~' | b'-' | b':')
    };
    let mix = Mix::of(bytes);
    let least = if value.is_quoted { 12 } else { 16 };
    if bytes.len() < least || !bytes.iter().all(accepts) || mix.digits == 0 || mix.letters() == 0 {
        return false;
    }
    let is_place =
        bytes.starts_with(b"/") && mix.digits < 4 || memchr::memmem::find(bytes, b"://").is_some();
    let is_code = !value.is_quoted
        && (matches!(byte_at(text, value.end), b'(' | b'[')
            || (mix.digits < 3 && !(mix.capitals > 1 && mix.small > 1)));
    !is_place && !is_code
}

/// Whether a value is a password.
fn is_password(text: &[u8], bytes: &[u8], value: &Value, name: usize, how: How) -> bool {
    if bytes.len() < 4 || bytes.len() > 128 || bytes.contains(&b' ') {
        return false;
    }
    if value.is_quoted {
        return true;
    }
    let mix = Mix::of(bytes);
    let is_call =
        bytes.contains(&b'(') || bytes.contains(&b'[') || byte_at(text, value.end) == b'(';
    let is_path = bytes.starts_with(b"/") || bytes.starts_with(b"./") || bytes.starts_with(b"~/");
    if is_call || is_path {
        return false;
    }
    let signs = bytes
        .iter()
        .filter(|byte| {
            matches!(
                byte,
                b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'*' | b'?' | b'~'
            )
        })
        .count();
    // `8-16 characters`, `3.5`: a figure.
    let is_figure = mix.letters() == 0 && signs == 0 && bytes.len() < 6;
    if how != How::Tight && is_figure {
        return false;
    }
    if mix.digits > 0 || (signs > 0 && mix.letters() > 0) {
        return true;
    }
    // Letters alone are a variable, unless it is a line of settings, a query, or marked up.
    let is_plain = bytes.iter().all(u8::is_ascii_alphanumeric);
    match how {
        How::Marked => is_plain,
        How::Tight => {
            let line = text.get(name.saturating_sub(40)..name).unwrap_or_default();
            let word = line
                .rsplit(|byte| !is_word(*byte) && *byte != b'-')
                .next()
                .unwrap_or_default();
            let head = line.get(..line.len() - word.len()).unwrap_or_default();
            let starts_line = head.is_empty() && name < 40 || head.ends_with(b"\n");
            let is_query = head.ends_with(b"?") || head.ends_with(b"&");
            let is_upper = (name..name + 2).any(|at| byte_at(text, at).is_ascii_uppercase());
            let ends_line = matches!(byte_at(text, value.end), 0 | b'\n' | b'\r');
            is_plain && (is_query || is_upper || (starts_line && ends_line))
        }
        How::Set | How::Said => false,
    }
}
