//! Turns of user and assistant that alternate, as three of the dialects want them.

use super::Sink;
use super::loss::LossKind;
use super::pair::Block;
use super::turn::{Call, Outcome, Piece, Turn};
use crate::dialect::repair::NO_USER_MESSAGE;
use crate::message::Role;

/// One message of an alternating conversation.
pub(super) struct Exchange {
    pub(super) role: Role,
    /// The results of the message before it.
    pub(super) outcomes: Vec<Outcome>,
    /// Texts and media, each with the raw index of its message.
    pub(super) pieces: Vec<(Option<usize>, Piece)>,
    pub(super) calls: Vec<(Call, Option<usize>)>,
}

impl Exchange {
    fn new(role: Role) -> Self {
        Self {
            role,
            outcomes: Vec::new(),
            pieces: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// The only text, if there is nothing else.
    pub(super) fn only_text(&self) -> Option<&str> {
        match &self.pieces[..] {
            [(_, Piece::Text(text))] if self.outcomes.is_empty() && self.calls.is_empty() => {
                Some(text)
            }
            _ => None,
        }
    }
}

/// The texts of the system argument and the leading instructions, and the blocks behind them.
pub(super) fn system_texts(
    system: Option<Turn>,
    blocks: Vec<Block>,
    sink: &mut Sink,
) -> (Vec<String>, Vec<Block>) {
    let mut texts = Vec::new();
    let mut add = |pieces: Vec<Piece>, index, sink: &mut Sink| {
        for piece in pieces {
            texts.extend(sink.text(piece, index).filter(|text| {
                let is_blank = text.trim().is_empty();
                if is_blank {
                    sink.lose_blank(index);
                }
                !is_blank
            }));
        }
    };
    if let Some(system) = system {
        add(system.pieces, None, sink);
    }
    let mut rest = Vec::with_capacity(blocks.len());
    let mut is_leading = true;
    for mut block in blocks {
        is_leading &= block.role.is_instruction();
        if is_leading {
            sink.lose_name(&mut block);
            add(block.pieces, block.index, sink);
        } else {
            rest.push(block);
        }
    }
    (texts, rest)
}

/// The blocks as messages that alternate and start with the user. Blank texts go; later
/// instructions become a user's text.
pub(super) fn exchanges(blocks: Vec<Block>, sink: &mut Sink) -> Vec<Exchange> {
    let mut found: Vec<Exchange> = Vec::new();
    for mut block in blocks {
        sink.lose_name(&mut block);
        let index = block.index;
        let is_instruction = block.role.is_instruction();
        let role = if is_instruction {
            Role::User
        } else {
            block.role
        };
        let had_pieces = !block.pieces.is_empty();
        let mut pieces = Vec::with_capacity(block.pieces.len());
        for piece in block.pieces {
            let is_blank = match &piece {
                Piece::Text(text) | Piece::Refusal(text) => text.trim().is_empty(),
                _ => false,
            };
            if !is_blank {
                pieces.push((index, piece));
            } else if !matches!(&piece, Piece::Text(text) | Piece::Refusal(text) if text.is_empty())
            {
                sink.lose_blank(index);
            }
        }
        if pieces.is_empty() && block.calls.is_empty() {
            if had_pieces {
                let detail = "a message without content went";
                sink.losses.add(index, LossKind::EmptyMessage, detail);
            }
            continue;
        }
        if is_instruction {
            let detail = "instructions in the middle became a text of the user";
            sink.losses.add(index, LossKind::Instruction, detail);
            for (index, piece) in &mut pieces {
                let taken = std::mem::replace(piece, Piece::Text(String::new()));
                let text = sink.text(taken, *index).unwrap_or_default();
                *piece = Piece::Text(format!("[system message]\n{text}"));
            }
        }
        if found.is_empty() && role == Role::Assistant {
            let detail = "a marked message of the user was put before the first one";
            sink.losses.add(index, LossKind::Placeholder, detail);
            let mut first = Exchange::new(Role::User);
            let text = Piece::Text(NO_USER_MESSAGE.to_owned());
            first.pieces.push((None, text));
            found.push(first);
        }
        if found.last().is_none_or(|last| last.role != role) {
            found.push(Exchange::new(role));
        }
        let Some(last) = found.last_mut() else {
            continue;
        };
        last.pieces.append(&mut pieces);
        if !block.calls.is_empty() {
            let mut answers = Exchange::new(Role::User);
            for (call, outcome) in block.calls {
                last.calls.push((call, index));
                answers.outcomes.push(outcome);
            }
            found.push(answers);
        }
    }
    found
}
