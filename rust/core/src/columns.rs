//! The windows and scores of many conversations at once, over plain columns.
//!
//! A column has a value for each message of all conversations, one after the other; offsets say
//! where each begins, as in an Arrow list: one more than there are conversations, rising. Messages
//! before the first and behind the last offset belong to none. Cost: one pass over the columns.

use crate::error::{Error, ErrorKind, Result};
use crate::message::Role;
use crate::salience::Signals;
use crate::salience::features::SHORT_BELOW;
use crate::salience::score::{Row, Weights, keywords_of, weighted_of};

/// Roles by the number that stands for them in a column.
pub const ROLES: [Role; 5] = [
    Role::System,
    Role::Developer,
    Role::User,
    Role::Assistant,
    Role::Tool,
];

/// Bits of a column of signals, with their names.
pub const SIGNALS: [(&str, Signals); 4] = [
    ("decision", Signals::DECISION),
    ("constraint", Signals::CONSTRAINT),
    ("error", Signals::ERROR),
    ("code", Signals::CODE),
];

/// Indices of the messages in the window of each conversation, rising.
///
/// A window holds what is protected, even where that alone is above the limit, and fills what it
/// leaves from the newest message back, up to the first that does not fit. `limits` holds one for
/// each conversation, or one for all of them.
///
/// # Errors
/// `invalid_value` if the columns differ in length, offsets fall or lead beyond them, or the limits
/// are neither one nor one each.
///
/// # Example
/// ```
/// use satchel_core::columns::token_window;
/// let protected = [true, false, false, false, false];
/// let found = token_window(&[2, 5, 3, 4, 4], &protected, &[6], &[0, 3, 5]).unwrap();
/// assert_eq!(found, [0, 2, 4]);
/// ```
pub fn token_window(
    tokens: &[u32],
    protected: &[bool],
    limits: &[u64],
    offsets: &[i64],
) -> Result<Vec<i64>> {
    same_length("protected", protected.len(), tokens.len())?;
    let bounds = bounds(offsets, tokens.len())?;
    if limits.len() != 1 && limits.len() != bounds.len() {
        let message = format!(
            "max_tokens has {} limits for {} conversations",
            limits.len(),
            bounds.len()
        );
        return Err(invalid(message));
    }
    let mut found = Vec::new();
    let each = limits.iter().cycle();
    for ((start, end), limit) in bounds.into_iter().zip(each) {
        let (tokens, protected) = (part(tokens, start, end), part(protected, start, end));
        let rows = || tokens.iter().zip(protected);
        let pinned: u64 = rows()
            .filter(|(_, protected)| **protected)
            .map(|(tokens, _)| u64::from(*tokens))
            .sum();
        // Of what is not protected, the newest so many stay.
        let mut newest = 0usize;
        if let Some(mut left) = limit.checked_sub(pinned) {
            let others = rows().rev().filter(|(_, protected)| !**protected);
            for (tokens, _) in others {
                let Some(rest) = left.checked_sub(u64::from(*tokens)) else {
                    break;
                };
                left = rest;
                newest += 1;
            }
        }
        let others = protected.iter().filter(|protected| !**protected).count();
        let mut older = others - newest;
        for (at, protected) in (start..).zip(protected) {
            let is_older = !protected && older > 0;
            older -= usize::from(is_older);
            if !is_older {
                found.push(i64::try_from(at).unwrap_or(i64::MAX));
            }
        }
    }
    Ok(found)
}

/// How much each message matters for the next call, 0 to 1; 0 for those of no conversation.
///
/// `roles` holds positions in [`ROLES`], `signals` the bits of [`SIGNALS`]. With `weights` the
/// default score without what only texts tell: `references` and `query` are 0, and a message is
/// brief if it has fewer than ten tokens and no signal. Without, the keyword formula.
///
/// # Errors
/// `invalid_value` if the columns differ in length, offsets fall or lead beyond them, or a role or
/// signal is none.
///
/// # Example
/// ```
/// use satchel_core::columns::score;
/// let found = score(&[0, 3, 2], &[40, 12, 3], &[0, 0, 0], None, &[0, 3]).unwrap();
/// assert_eq!(found, [0.2, 0.2, 0.21]);
/// ```
pub fn score(
    roles: &[u8],
    tokens: &[u32],
    signals: &[u8],
    weights: Option<&Weights>,
    offsets: &[i64],
) -> Result<Vec<f32>> {
    same_length("tokens", tokens.len(), roles.len())?;
    same_length("signals", signals.len(), roles.len())?;
    let mut scores = vec![0.0; roles.len()];
    for (start, end) in bounds(offsets, roles.len())? {
        let length = end - start;
        let rows = part(roles, start, end)
            .iter()
            .zip(part(tokens, start, end))
            .zip(part(signals, start, end))
            .zip(scores.iter_mut().skip(start));
        for (index, (((role, tokens), bits), score)) in rows.enumerate() {
            let at = start + index;
            let Some(role) = ROLES.get(usize::from(*role)) else {
                return Err(invalid(format!(
                    "roles[{at}] is {role}, must be below {}",
                    ROLES.len()
                )));
            };
            let signals = signals_of(*bits).ok_or_else(|| {
                invalid(format!(
                    "signals[{at}] is {bits}, which has bits of no signal"
                ))
            })?;
            let row = Row {
                index,
                length,
                role: Some(*role),
                tokens: *tokens,
                signals,
                references: 0.0,
                query: 0.0,
                brief: *tokens < SHORT_BELOW && *bits == 0,
            };
            *score = match weights {
                Some(weights) => weighted_of(&row, weights),
                None => keywords_of(&row),
            };
        }
    }
    Ok(scores)
}

/// The values of one conversation.
fn part<T>(column: &[T], start: usize, end: usize) -> &[T] {
    column.get(start..end).unwrap_or_default()
}

/// The signals of these bits; `None` if there are further ones.
fn signals_of(bits: u8) -> Option<Signals> {
    let known = SIGNALS.iter().enumerate();
    let (mut found, mut left) = (Signals::default(), bits);
    for (at, (_, signal)) in known {
        if bits & (1 << at) != 0 {
            found = found.union(*signal);
            left &= !(1 << at);
        }
    }
    (left == 0).then_some(found)
}

/// Where each conversation begins and ends.
fn bounds(offsets: &[i64], length: usize) -> Result<Vec<(usize, usize)>> {
    if offsets.is_empty() {
        return Err(invalid("offsets must hold at least one value".to_owned()));
    }
    let place = |offset: i64| {
        usize::try_from(offset)
            .ok()
            .filter(|offset| *offset <= length)
    };
    let pairs = offsets.iter().zip(offsets.iter().skip(1));
    let found: Option<Vec<_>> = pairs
        .map(|(start, end)| {
            place(*start)
                .zip(place(*end))
                .filter(|(start, end)| start <= end)
        })
        .collect();
    found.ok_or_else(|| {
        let message = format!("offsets must rise from 0 or more to at most {length}");
        invalid(message)
    })
}

fn same_length(name: &str, length: usize, wanted: usize) -> Result<()> {
    if length == wanted {
        return Ok(());
    }
    Err(invalid(format!(
        "{name} has {length} values, the first column {wanted}"
    )))
}

#[cold]
fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidValue, message)
}
