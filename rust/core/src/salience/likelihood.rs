//! How likely an identifier is needed again: a logistic function of what is known about it.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::identifiers::{Form, name_parts};
use super::index::{Index, Known, Names};
use super::line::{LineSigns, signs_of};
use crate::message::Role;
use crate::transcript::Row;

/// Features of an identifier.
pub const FEATURES: usize = 28;

/// Tokens below which a message is short.
const SHORT_TOKENS: u32 = 80;

/// Weights of a logistic function: the likelihood that an identifier is used again at least six
/// messages later is `1 / (1 + e^−s)`, s the sum of weight times feature.
///
/// # Source
/// Logistic regression on recorded runs: [`Likelihood::AGENT`] on 425 runs of agents that fixed
/// issues in code (149 in Java, 276 in Python); [`Likelihood::DIALOGUE`] on recorded
/// customer-service dialogues, which are few and short: signs of its small weights are unstable.
/// Features are raw, all from the past.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Likelihood {
    /// Always 1.
    pub bias: f64,
    /// The name is a path.
    pub path: f64,
    /// It has a dot in its last part.
    pub dotted: f64,
    /// It has digits and no letters.
    pub number: f64,
    /// It has digits and letters.
    pub digits: f64,
    /// It is written in camel case.
    pub camel: f64,
    /// It is written in snake case.
    pub snake: f64,
    /// ln(1 + messages since its newest copy).
    pub age: f64,
    /// ln(messages that hold it).
    pub seen: f64,
    /// It stood in an action before.
    pub acted: f64,
    /// ln(1 + actions it stood in).
    pub times_acted: f64,
    /// Its newest copy is the assistant's.
    pub by_assistant: f64,
    /// Its newest copy is the user's.
    pub by_user: f64,
    /// It stands in the action of the message of its newest copy.
    pub in_action: f64,
    /// ln(1 + identifiers of that message).
    pub crowd: f64,
    /// The shortest line with it speaks of an error.
    pub error_line: f64,
    /// That line defines something.
    pub definition_line: f64,
    /// That line is the head of a file.
    pub header_line: f64,
    /// That line is among the first two or the last three of its text.
    pub edge_line: f64,
    /// ln(1 + bytes of that line).
    pub line_length: f64,
    /// Share of its words that the task holds.
    pub in_task: f64,
    /// Share of its words that the newest messages hold (see [`Moment`]).
    pub in_newest: f64,
    /// Other identifiers of that line in the newest messages, at most 3, divided by 3.
    pub company: f64,
    /// Its newest copy is in a message of fewer than 80 tokens.
    pub short_message: f64,
    /// A user wrote it at some time.
    pub ever_by_user: f64,
    /// It was first seen in an action.
    pub first_in_action: f64,
    /// It came up again five messages or more after its copy before.
    pub reused: f64,
    /// ln(1 + messages so far).
    pub history: f64,
}

impl Likelihood {
    /// Runs of agents.
    pub const AGENT: Self = Self {
        bias: -4.54,
        path: -0.57,
        dotted: 0.18,
        number: -1.18,
        digits: -1.71,
        camel: 0.01,
        snake: -0.47,
        age: -0.05,
        seen: 0.21,
        acted: 2.40,
        times_acted: 0.02,
        by_assistant: 1.14,
        by_user: -1.55,
        in_action: -0.26,
        crowd: -0.16,
        error_line: -0.02,
        definition_line: 0.19,
        header_line: 0.51,
        edge_line: -0.11,
        line_length: -0.09,
        in_task: 0.27,
        in_newest: -0.43,
        company: 0.18,
        short_message: 0.09,
        ever_by_user: 1.04,
        first_in_action: 0.59,
        reused: 0.98,
        history: -0.14,
    };

    /// Dialogues: more than a fifth of the messages begin a turn of the user's.
    pub const DIALOGUE: Self = Self {
        bias: -4.54,
        path: -0.04,
        dotted: -0.88,
        number: 1.09,
        digits: 1.71,
        camel: -0.11,
        snake: 0.39,
        age: 0.17,
        seen: 0.50,
        acted: 0.61,
        times_acted: -0.58,
        by_assistant: 1.10,
        by_user: 0.44,
        in_action: 0.27,
        crowd: 0.01,
        error_line: -2.33,
        definition_line: -0.61,
        header_line: 0.00,
        edge_line: 1.33,
        line_length: 0.02,
        in_task: 1.43,
        in_newest: -0.23,
        company: 0.04,
        short_message: -0.79,
        ever_by_user: 0.15,
        first_in_action: 0.29,
        reused: 0.59,
        history: -0.54,
    };

    /// Every weight, in the order of the fields.
    pub fn weights(&self) -> [f64; FEATURES] {
        [
            self.bias,
            self.path,
            self.dotted,
            self.number,
            self.digits,
            self.camel,
            self.snake,
            self.age,
            self.seen,
            self.acted,
            self.times_acted,
            self.by_assistant,
            self.by_user,
            self.in_action,
            self.crowd,
            self.error_line,
            self.definition_line,
            self.header_line,
            self.edge_line,
            self.line_length,
            self.in_task,
            self.in_newest,
            self.company,
            self.short_message,
            self.ever_by_user,
            self.first_in_action,
            self.reused,
            self.history,
        ]
    }
}

/// What an identifier's likelihood is judged against: the same for all of one boundary.
///
/// The newest messages are three at a compaction, as in the fit. Lines that may come back between
/// two compactions are judged by the newest two, by which they are also looked for.
#[derive(Debug)]
pub struct Moment<'a> {
    /// The weights that fit the conversation.
    pub weights: &'a Likelihood,
    /// The index.
    pub index: &'a Index,
    /// Messages so far.
    pub messages: u32,
    /// Words of the newest messages.
    pub newest_words: &'a Names,
    /// Identifiers of the newest messages.
    pub newest_names: &'a Names,
}

/// The line an identifier stands on, looked at once for all that stand there.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    signs: LineSigns,
    length: f64,
    is_edge: bool,
    company: f64,
}

impl Moment<'_> {
    /// What the line says: its words, its place (line `number` of `lines`), its length, and how
    /// many of its identifiers the newest messages hold.
    pub fn spot(line: &str, number: u32, lines: u32, company: u32) -> Spot {
        Spot {
            signs: signs_of(line),
            length: (1.0 + line.len() as f64).ln(),
            is_edge: number < 2 || number.saturating_add(3) >= lines,
            company: f64::from(company),
        }
    }

    /// How likely the identifier is used again.
    pub fn likelihood(&self, name: &str, hash: u64, known: &Known, row: &Row, spot: Spot) -> f64 {
        logistic(self.sum(name, hash, known, row, spot))
    }

    fn sum(&self, name: &str, hash: u64, known: &Known, row: &Row, spot: Spot) -> f64 {
        let features = self.features(name, hash, known, row, spot);
        let terms = self.weights.weights().into_iter().zip(features);
        terms.map(|(weight, feature)| weight * feature).sum()
    }

    /// [`Moment::likelihood`] without a look at the text: as if the line spoke of nothing.
    pub fn likelihood_unread(&self, hash: u64, known: &Known, row: &Row) -> f64 {
        let spot = Spot {
            signs: LineSigns::default(),
            length: ln_next(known.line.bytes()),
            is_edge: false,
            company: 0.0,
        };
        let task = self.weights.in_task * f64::from(known.in_task);
        logistic(self.sum("", hash, known, row, spot) + task)
    }

    /// The features of an identifier, in the order of [`Likelihood::weights`].
    pub fn features(
        &self,
        name: &str,
        hash: u64,
        known: &Known,
        row: &Row,
        spot: Spot,
    ) -> [f64; FEATURES] {
        let is_number = known.form.contains(Form::NUMBER);
        let age = self.messages.saturating_sub(known.newest).saturating_sub(1);
        let (mut words, mut task, mut newest) = (0.0f64, 0.0, 0.0);
        for word in name_parts(name) {
            words += 1.0;
            task += flag(self.index.task().contains(&word));
            newest += flag(self.newest_words.contains(&word));
        }
        let words = words.max(1.0);
        let own = flag(self.newest_names.contains(&hash));
        let crowd = self.index.count_of(known.newest as usize);
        [
            1.0,
            flag(known.form.contains(Form::PATH)),
            flag(known.form.contains(Form::DOTTED)),
            flag(is_number),
            flag(known.form.contains(Form::DIGITS) && !is_number),
            flag(known.form.contains(Form::CAMEL)),
            flag(known.form.contains(Form::SNAKE)),
            ln_next(age),
            ln_next(known.seen.saturating_sub(1)),
            flag(known.acted > 0),
            ln_next(known.acted),
            flag(row.role == Role::Assistant),
            flag(row.is_user),
            flag(known.in_action),
            ln_next(crowd),
            flag(spot.signs.is_error),
            flag(spot.signs.is_definition),
            flag(spot.signs.is_header),
            flag(spot.is_edge),
            spot.length,
            task / words,
            newest / words,
            (spot.company - own).clamp(0.0, 3.0) / 3.0,
            flag(row.tokens < SHORT_TOKENS),
            flag(known.by_user),
            flag(known.first_in_action),
            flag(known.reused),
            ln_next(self.messages),
        ]
    }
}

/// ln(1 + n). Identifiers are judged by the thousand, and most of what is counted is small.
fn ln_next(n: u32) -> f64 {
    static SMALL: LazyLock<[f64; 1024]> =
        LazyLock::new(|| std::array::from_fn(|n| (1.0 + n as f64).ln()));
    let small = SMALL.get(n as usize).copied();
    small.unwrap_or_else(|| (1.0 + f64::from(n)).ln())
}

fn logistic(sum: f64) -> f64 {
    1.0 / (1.0 + (-sum).exp())
}

fn flag(is_set: bool) -> f64 {
    f64::from(u8::from(is_set))
}
