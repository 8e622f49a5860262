//! Numbers: registration numbers and cards here, phone numbers in their own file.
//!
//! A number is read as groups of digits with one separator between them. Every group that can start
//! one is tried, with at most [`MOST_GROUPS`] behind it, so the cost is linear.

use super::edges::{byte_at, byte_before, is_start, is_word};
use super::phone;
use super::{Kind, Span};

/// Groups and digits looked at from one start; more digits are no number of any kind here.
const MOST_GROUPS: usize = 6;
const MOST_DIGITS: usize = 24;

/// Groups of digits from one start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Groups {
    digits: [u8; MOST_DIGITS],
    /// For each group: digits up to its end, byte after it, and the separator before it (0 for the
    /// first and `~` for one beyond ASCII).
    ends: [(usize, usize, u8); MOST_GROUPS],
    count: usize,
}

impl Groups {
    /// The digits of the first `count` groups.
    pub(super) fn digits(&self, count: usize) -> &[u8] {
        let (digits, _, _) = self.group(count.saturating_sub(1));
        self.digits.get(..digits).unwrap_or_default()
    }

    /// Lengths of the first groups.
    pub(super) fn lengths(&self) -> [usize; MOST_GROUPS] {
        let mut lengths = [0; MOST_GROUPS];
        let mut before = 0;
        for (length, (end, _, _)) in lengths.iter_mut().zip(self.ends).take(self.count) {
            *length = end - before;
            before = end;
        }
        lengths
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// One past the last byte of the first `count` groups.
    pub(super) fn end(&self, count: usize) -> usize {
        self.group(count.saturating_sub(1)).1
    }

    /// The separator between the first `count` groups, if it is the same everywhere.
    pub(super) fn joint(&self, count: usize) -> Option<u8> {
        let joint = self.group(1).2;
        (1..count)
            .all(|index| self.group(index).2 == joint)
            .then_some(joint)
    }

    /// The separator before a group.
    pub(super) fn before(&self, index: usize) -> u8 {
        self.group(index).2
    }

    fn group(&self, index: usize) -> (usize, usize, u8) {
        self.ends.get(index).copied().unwrap_or_default()
    }
}

/// The separators of groups, as (bytes, what it counts as).
const JOINTS: [(&[u8], u8); 10] = [
    (b"-", b'-'),
    (b" ", b' '),
    (b".", b'.'),
    (b") ", b')'),
    (b")-", b')'),
    (b")", b')'),
    // No-break space, hyphen and non-breaking hyphen, en dash, minus.
    ("\u{A0}".as_bytes(), b' '),
    ("\u{2011}".as_bytes(), b'-'),
    ("\u{2013}".as_bytes(), b'-'),
    ("\u{2010}".as_bytes(), b'-'),
];

fn joint_at(text: &[u8], at: usize) -> Option<(usize, u8)> {
    let rest = text.get(at..)?;
    match *rest.first()? {
        b'-' | b' ' | b'.' | b')' | 0xC2 | 0xE2 => {}
        _ => return None,
    }
    JOINTS.iter().find_map(|(bytes, joint)| {
        let behind = rest.strip_prefix(*bytes)?;
        // `+1 (415)` has a bracket behind the space.
        let bracket = usize::from(*joint == b' ' && behind.first() == Some(&b'('));
        let next = behind.get(bracket)?;
        next.is_ascii_digit()
            .then_some((bytes.len() + bracket, *joint))
    })
}

/// The groups from a digit on; None if the first run of digits is too long.
pub(super) fn read(text: &[u8], start: usize) -> Option<Groups> {
    let mut groups = Groups::default();
    let (mut at, mut digits, mut joint) = (start, 0, 0);
    loop {
        let begin = digits;
        let mut end = at;
        while byte_at(text, end).is_ascii_digit() {
            let Some(slot) = groups.digits.get_mut(digits) else {
                // This group is too long; what stands before it may be a number.
                return (groups.count > 0).then_some(groups);
            };
            *slot = byte_at(text, end) - b'0';
            digits += 1;
            end += 1;
        }
        if digits == begin || is_word(byte_at(text, end)) {
            return (groups.count > 0).then_some(groups);
        }
        let Some(slot) = groups.ends.get_mut(groups.count) else {
            return Some(groups);
        };
        *slot = (digits, end, joint);
        groups.count += 1;
        let Some((length, next)) = joint_at(text, end) else {
            return Some(groups);
        };
        (at, joint) = (end + length, next);
    }
}

/// Every number of a text.
pub(super) fn find_all(text: &[u8], found: &mut Vec<Span>) {
    let mut at = 0;
    while let Some(step) = text
        .get(at..)
        .and_then(|rest| rest.iter().position(u8::is_ascii_digit))
    {
        let start = at + step;
        let run = text.get(start..).unwrap_or_default();
        let length = run.iter().take_while(|byte| byte.is_ascii_digit()).count();
        at = start + length;
        // A single digit starts nothing but `+1` and `1-800`.
        if length > MOST_DIGITS || !is_start(text, start) {
            continue;
        }
        if let Some(end) = find_at(text, start, found) {
            at = end.max(at);
        }
    }
}

/// The number that starts at a digit; its end if there is one.
fn find_at(text: &[u8], start: usize, found: &mut Vec<Span>) -> Option<usize> {
    let before = byte_before(text, start);
    // The tail of a longer number or name: `550e-4466`, `3.14`, `ORD-123`.
    let is_tail = matches!(before, b'-' | b'.')
        && is_word(byte_before(text, start - 1))
        && !is_key(text, start - 1);
    if is_tail {
        return None;
    }
    let groups = read(text, start)?;
    let span = |kind, start, end| Span { kind, start, end };
    let one = resident(&groups)
        .map(|count| span(Kind::ResidentNumber, start, groups.end(count)))
        .or_else(|| card(&groups).map(|count| span(Kind::Card, start, groups.end(count))))
        .filter(|found| is_end(text, found.end))
        .or_else(|| {
            let (from, end) = phone::find(text, start, &groups)?;
            is_end(text, end).then_some(span(Kind::Phone, from, end))
        })?;
    found.push(one);
    Some(one.end)
}

/// Whether the letters before a `-` end a name of a field rather than begin an id: `tel-`.
fn is_key(text: &[u8], dash: usize) -> bool {
    let head = text.get(dash.saturating_sub(5)..dash).unwrap_or_default();
    [&b"tel"[..], b"phone", b"card"]
        .iter()
        .any(|key| head.to_ascii_lowercase().ends_with(key))
}

/// Whether a number can end here: no digit or letter follows, not even behind a `-` or a `.`.
pub(super) fn is_end(text: &[u8], end: usize) -> bool {
    let next = byte_at(text, end);
    let behind = byte_at(text, end + 1);
    let goes_on = matches!(next, b'-' | b'.' | b'/') && behind.is_ascii_digit();
    !is_word(next) && !goes_on
}

/// Groups of a Korean registration number at the start: `yymmdd-snnnnnn`, where `s` tells century,
/// sex, and from 5 on a foreigner. With a hyphen the date is enough, since numbers given out since
/// October 2020 have no check digit; without one the check digit must be right too.
fn resident(groups: &Groups) -> Option<usize> {
    let lengths = groups.lengths();
    let count = match lengths {
        [13, ..] => 1,
        [6, 7, ..] => 2,
        _ => return None,
    };
    let &[y1, y2, m1, m2, d1, d2, code, ..] = groups.digits(count) else {
        return None;
    };
    let century = match code {
        1 | 2 | 5 | 6 => 1900,
        3 | 4 | 7 | 8 => 2000,
        _ => return None,
    };
    let pair = |tens: u8, ones: u8| u32::from(tens) * 10 + u32::from(ones);
    let is_date = is_date(century + pair(y1, y2), pair(m1, m2), pair(d1, d2));
    let is_hyphenated = count == 2 && groups.before(1) == b'-';
    let is_one = count == 1 || groups.before(1) == b' ';
    let is_checked = is_one && has_check_digit(groups.digits(count), code >= 5);
    (is_date && (is_hyphenated || is_checked)).then_some(count)
}

fn is_date(year: u32, month: u32, day: u32) -> bool {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// The weighted sum modulo 11; foreigners' numbers count from 13 instead of 11.
fn has_check_digit(digits: &[u8], is_foreigner: bool) -> bool {
    let weights = [2_u32, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5];
    let sum: u32 = digits
        .iter()
        .zip(weights)
        .map(|(digit, weight)| u32::from(*digit) * weight)
        .sum();
    let base = if is_foreigner { 13 } else { 11 };
    digits.get(12).map(|digit| u32::from(*digit)) == Some((base - sum % 11) % 10)
}

/// Groups of a payment card at the start: one run, or grouped as on the card by one separator.
fn card(groups: &Groups) -> Option<usize> {
    let count = match groups.lengths() {
        [14..=16 | 19, ..] => 1,
        [4, 6, 4 | 5, ..] => 3,
        [4, 4, 4, 4, 3, ..] => 5,
        [4, 4, 4, 1..=4, ..] => 4,
        _ => return None,
    };
    if count > 1 && !matches!(groups.joint(count), Some(b'-' | b' ')) {
        return None;
    }
    let digits = groups.digits(count);
    (is_brand(digits, count > 1) && passes_luhn(digits)).then_some(count)
}

/// Whether a brand gives out numbers of that start and length (ISO/IEC 7812 issuer ranges as the
/// brands publish them). Of the rare lengths 13 and 19 only grouped ones count, but `UnionPay`'s.
fn is_brand(digits: &[u8], is_grouped: bool) -> bool {
    let head = digits
        .iter()
        .take(4)
        .fold(0_u32, |head, digit| head * 10 + u32::from(*digit));
    match (digits.len(), head) {
        (
            16,
            2200..=2204
            | 2221..=2720
            | 3528..=3589
            | 4000..=4999
            | 5100..=5599
            | 6011
            | 6440..=6599,
        )
        | (15, 3400..=3499 | 3700..=3799)
        | (14, 3000..=3059 | 3600..=3699 | 3800..=3999)
        | (16..=19, 6200..=6299) => true,
        (13 | 19, 4000..=4999) | (19, 6011 | 6440..=6599) => is_grouped,
        _ => false,
    }
}

/// ISO/IEC 7812-1, annex B.
fn passes_luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| {
            let value = u32::from(*digit) << (place % 2);
            if value > 9 { value - 9 } else { value }
        })
        .sum();
    sum.is_multiple_of(10)
}
