//! International bank account numbers (ISO 13616): country, two check digits, and an account of
//! the country's length, together 1 modulo 97.

use super::digits::is_end;
use super::edges::{byte_at, is_start};
use super::{Kind, Span};

/// Countries and the lengths of their numbers, from SWIFT's IBAN registry; sorted.
const LENGTHS: [(&[u8; 2], usize); 82] = [
    (b"AD", 24),
    (b"AE", 23),
    (b"AL", 28),
    (b"AT", 20),
    (b"AZ", 28),
    (b"BA", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BH", 22),
    (b"BI", 27),
    (b"BR", 29),
    (b"BY", 28),
    (b"CH", 21),
    (b"CR", 22),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DJ", 27),
    (b"DK", 18),
    (b"DO", 28),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FK", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GE", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"GT", 28),
    (b"HN", 28),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IQ", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"JO", 30),
    (b"KW", 30),
    (b"KZ", 20),
    (b"LB", 28),
    (b"LC", 32),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"LY", 25),
    (b"MC", 27),
    (b"MD", 24),
    (b"ME", 22),
    (b"MK", 19),
    (b"MN", 20),
    (b"MR", 27),
    (b"MT", 31),
    (b"MU", 30),
    (b"NI", 28),
    (b"NL", 18),
    (b"NO", 15),
    (b"OM", 23),
    (b"PK", 24),
    (b"PL", 28),
    (b"PS", 29),
    (b"PT", 25),
    (b"QA", 29),
    (b"RO", 24),
    (b"RS", 22),
    (b"RU", 33),
    (b"SA", 24),
    (b"SC", 31),
    (b"SD", 18),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"SO", 23),
    (b"ST", 25),
    (b"TR", 26),
    (b"UA", 29),
];

/// Every number of a text. A digit behind two capitals is looked for, which is rare.
pub(super) fn find_all(text: &[u8], found: &mut Vec<Span>) {
    let mut at = 0;
    while let Some(window) = text.get(at..at + 4) {
        let &[first, second, third, fourth] = window else {
            return;
        };
        if !second.is_ascii_uppercase() {
            // Neither here nor one further.
            at += 2;
            continue;
        }
        let is_head =
            first.is_ascii_uppercase() && third.is_ascii_digit() && fourth.is_ascii_digit();
        if is_head
            && is_start(text, at)
            && let Some(end) = end_of_number(text, at, [first, second])
        {
            found.push(Span {
                kind: Kind::Iban,
                start: at,
                end,
            });
            at = end;
        } else {
            at += 1;
        }
    }
}

fn end_of_number(text: &[u8], start: usize, country: [u8; 2]) -> Option<usize> {
    let index = LENGTHS
        .binary_search_by(|(code, _)| (**code).cmp(&country))
        .ok()?;
    let (_, length) = LENGTHS.get(index)?;
    let mut number = [0_u8; 34];
    let (mut at, mut count) = (start, 0);
    let is_grouped = byte_at(text, start + 4) == b' ';
    while count < *length {
        if is_grouped && count > 0 && count.is_multiple_of(4) {
            if byte_at(text, at) != b' ' {
                return None;
            }
            at += 1;
        }
        let byte = byte_at(text, at);
        if !byte.is_ascii_uppercase() && !byte.is_ascii_digit() {
            return None;
        }
        *number.get_mut(count)? = byte;
        count += 1;
        at += 1;
    }
    let number = number.get(..count)?;
    let moved = number.get(4..)?.iter().chain(number.get(..4)?);
    let rest = moved.fold(0_u32, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + u32::from(byte - b'A') + 10) % 97,
    });
    (rest == 1 && is_end(text, at)).then_some(at)
}
