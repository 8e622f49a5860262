//! Phone numbers: Korean ones, North American ones, international ones with `+` or `00`, and any
//! grouped number that is called one.

use super::digits::Groups;
use super::edges::{byte_at, byte_before, ends_escape, is_word};

/// Words before a number that call it a phone number, in lower case.
const NAMES: [&str; 22] = [
    "phone",
    "tel",
    "mobile",
    "cell",
    "call",
    "fax",
    "whatsapp",
    "sms",
    "전화",
    "전화번호",
    "연락처",
    "휴대폰",
    "핸드폰",
    "휴대전화",
    "팩스",
    "번호는",
    "電話",
    "携帯",
    "电话",
    "手机",
    "☎",
    "📞",
];

/// Bytes before a number in which its name may stand.
const REACH: usize = 24;

/// Start and end of the phone number whose first digit is at `start`.
pub(super) fn find(text: &[u8], start: usize, groups: &Groups) -> Option<(usize, usize)> {
    let before = byte_before(text, start);
    if before == b'+' || before == b'(' && byte_before(text, start - 1) == b'+' {
        let plus = if before == b'+' { start - 1 } else { start - 2 };
        let is_free = !is_word(byte_before(text, plus)) || ends_escape(text, plus);
        return is_free
            .then(|| international(groups))
            .flatten()
            .map(|count| (plus, groups.end(count)));
    }
    let is_bracketed = before == b'(' && groups.before(1) == b')';
    let from = start - usize::from(is_bracketed);
    let count = korean(groups)
        .or_else(|| american(groups, is_bracketed))
        .or_else(|| from_abroad(groups))
        .or_else(|| called(text, from, groups))?;
    Some((from, groups.end(count)))
}

/// The Korean plan: mobiles 010 (bare too), 011 and 016 to 019; areas 02 and 031 to 064; 070, 080
/// and 050.
fn korean(groups: &Groups) -> Option<usize> {
    let digits = groups.digits(groups.count());
    let (&[0, second, ..], lengths) = (digits, groups.lengths()) else {
        return None;
    };
    let third = digits.get(2).copied().unwrap_or(0);
    let is_mobile = second == 1 && matches!(third, 0 | 1 | 6..=9);
    match lengths {
        [11, ..] if is_mobile && third == 0 => return Some(1),
        [3, 3 | 4, 4, ..] if is_mobile => return Some(3),
        [3, 8, ..] if is_mobile && third == 0 => return Some(2),
        _ => {}
    }
    if groups.before(1) == b' ' || groups.before(2) == b' ' {
        return None;
    }
    match lengths {
        [2, 3 | 4, 4, ..] if second == 2 => Some(3),
        [3, 3 | 4, 4, ..] => {
            let is_area = match second {
                3 => (1..=3).contains(&third),
                4 | 6 => (1..=4).contains(&third),
                5 => (1..=5).contains(&third),
                7 | 8 => third == 0,
                _ => false,
            };
            is_area.then_some(3)
        }
        [4, 3 | 4, 4, ..] if second == 5 && third == 0 => Some(3),
        _ => None,
    }
}

/// The North American plan: area and exchange start with 2 to 9. Spaces alone do not make one.
fn american(groups: &Groups, is_bracketed: bool) -> Option<usize> {
    let (skip, count) = match groups.lengths() {
        [3, 3, 4, ..] => (0, 3),
        [1, 3, 3, 4, ..] if groups.digits(1) == [1] => (1, 4),
        _ => return None,
    };
    let is_joined = is_bracketed
        || (matches!(groups.before(count - 1), b'-' | b'.') && groups.joint(count).is_some());
    (is_joined && is_american(groups.digits(count).get(skip..)?)).then_some(count)
}

fn is_american(digits: &[u8]) -> bool {
    let &[area, second, _, exchange, _, _, _, _, _, _] = digits else {
        return false;
    };
    area >= 2 && second != 9 && exchange >= 2
}

/// A number with the prefix 00 for abroad, grouped: `0082-10-1234-5678`.
fn from_abroad(groups: &Groups) -> Option<usize> {
    let [first, others @ ..] = groups.lengths();
    (3..=groups.count()).rev().find(|count| {
        let rest = groups.digits(*count).strip_prefix(&[0, 0]);
        let is_grouped = others.iter().take(count - 1).all(|length| *length <= 4);
        (3..=5).contains(&first) && is_grouped && rest.is_some_and(has_country)
    })
}

/// Groups of the number behind a `+`: the most that make one (ITU-T E.164).
fn international(groups: &Groups) -> Option<usize> {
    (1..=groups.count())
        .rev()
        .find(|count| has_country(groups.digits(*count)))
}

/// Whether digits are a country code and as many more as its numbers have.
fn has_country(digits: &[u8]) -> bool {
    let total = digits.len();
    match *digits {
        [1, ref rest @ ..] => is_american(rest),
        [7, ..] => total == 11,
        [8, 2, 1..=9, ..] => (10..=12).contains(&total),
        [8, 1 | 2 | 6, ..] | [4, 4, ..] => (11..=13).contains(&total),
        [2, 0 | 7, ..]
        | [3, 0..=4 | 6 | 9, ..]
        | [4, 0 | 1 | 3..=9, ..]
        | [5, 1..=8, ..]
        | [6, 0..=6, ..]
        | [8, 4, ..]
        | [9, 0..=5 | 8, ..] => (9..=14).contains(&total),
        [2, 1..=6 | 8 | 9, ..]
        | [3, 5 | 7 | 8, ..]
        | [4, 2, ..]
        | [5, 0 | 9, ..]
        | [6, 7..=9, ..]
        | [8, 0 | 5 | 7 | 8, ..]
        | [9, 6 | 7 | 9, ..] => (9..=15).contains(&total),
        _ => false,
    }
}

/// A number of 8 to 13 digits that a word before it calls a phone number.
fn called(text: &[u8], start: usize, groups: &Groups) -> Option<usize> {
    let count = (1..=groups.count())
        .rev()
        .find(|count| (8..=13).contains(&groups.digits(*count).len()))?;
    let head = text.get(start.saturating_sub(REACH)..start)?;
    let head = head.to_ascii_lowercase();
    let line = head
        .rsplit(|byte| matches!(byte, b'\n' | b',' | b';'))
        .next()?;
    let is_called = NAMES.iter().any(|name| {
        memchr::memmem::rfind(line, name.as_bytes()).is_some_and(|at| {
            let behind = line.get(at + name.len()..).unwrap_or_default();
            let is_whole = !byte_before(line, at).is_ascii_alphabetic();
            // Another number may stand between: then that one was meant.
            is_whole && !behind.iter().any(u8::is_ascii_digit) && !behind.contains(&b'=')
        })
    });
    let is_plain = byte_at(text, groups.end(count)) != b'%';
    (is_called && is_plain).then_some(count)
}
