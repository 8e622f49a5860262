//! Which boundaries of a conversation are asked for their window.

use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Message, Role};
use crate::node::Text;
use crate::step::{Attachment, Pairing};

/// Where windows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Behind the last message: the window of the next call.
    End,
    /// Before every reply of the model: the windows of all calls that were made.
    EveryCall,
    /// Before the first reply in the turn of this number, from 1; below 0 from the end. Behind the
    /// last message if that turn has no reply yet.
    Turn(i64),
}

impl At {
    /// The place of this name: `end`, `every-call`, `turn:K`.
    ///
    /// # Errors
    /// `invalid_value`.
    pub fn from_name(name: &str) -> Result<Self> {
        let turn = || name.strip_prefix("turn:")?.parse().ok();
        match name {
            "end" => Ok(Self::End),
            "every-call" => Ok(Self::EveryCall),
            _ => turn()
                .filter(|turn| *turn != 0)
                .map(Self::Turn)
                .ok_or_else(|| {
                    let message = "the place must be end, every-call, or turn:K with K not 0";
                    Error::new(ErrorKind::InvalidValue, message)
                }),
        }
    }
}

/// Numbers of messages before the wanted boundaries, rising.
///
/// # Errors
/// `invalid_value` if there is none; `orphan_result`, `duplicate_result` as pairing finds them.
pub(super) fn boundaries<T: Text>(
    messages: &[Message<T>],
    dialect: Dialect,
    at: At,
) -> Result<Vec<usize>> {
    if at == At::End {
        return Ok(vec![messages.len()]);
    }
    let replies = replies(messages, dialect)?;
    let At::Turn(wanted) = at else {
        if replies.is_empty() {
            return Err(missing("no reply before which there is a window"));
        }
        return Ok(replies);
    };
    let starts = messages.iter().enumerate();
    let starts: Vec<usize> = starts
        .filter(|(_, message)| super::has_words(message))
        .map(|(index, _)| index)
        .collect();
    let number = if wanted > 0 {
        usize::try_from(wanted - 1).ok()
    } else {
        usize::try_from(wanted.unsigned_abs())
            .ok()
            .and_then(|back| starts.len().checked_sub(back))
    };
    let Some(number) = number.filter(|number| *number < starts.len()) else {
        let turns = starts.len();
        return Err(missing(&format!("no turn {wanted}, there are {turns}")));
    };
    let (start, next) = (starts.get(number), starts.get(number + 1));
    let end = next.copied().unwrap_or(messages.len());
    let first = replies
        .iter()
        .copied()
        .find(|reply| start.is_none_or(|start| reply > start));
    Ok(vec![first.filter(|first| *first < end).unwrap_or(end)])
}

/// Indices of the messages that begin a reply of the model, with something before them.
fn replies<T: Text>(messages: &[Message<T>], dialect: Dialect) -> Result<Vec<usize>> {
    let mut pairing = Pairing::new(dialect.glue());
    let mut found = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let joins = pairing.attachment(message) == Attachment::Joins;
        pairing
            .push(index, message)
            .map_err(|error| error.at(index))?;
        if index > 0 && message.role == Role::Assistant && !joins {
            found.push(index);
        }
    }
    Ok(found)
}

#[cold]
fn missing(what: &str) -> Error {
    Error::new(ErrorKind::InvalidValue, what)
}
