//! What is said about one window: a row of figures, as JSON.

use crate::dialect::Dialect;
use crate::dialect::convert::LossKind;
use crate::readers::json::Json;

/// What input costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Dollars for a million tokens.
    pub input: f64,
    /// A request of more tokens than this costs more for all of them.
    pub long_above: Option<u64>,
    /// How many times as much.
    pub long_input: f64,
}

impl Price {
    /// Dollars for a request of so many input tokens, none of them from a cache.
    pub fn of(self, tokens: u64) -> f64 {
        let is_long = self.long_above.is_some_and(|limit| tokens > limit);
        let factor = if is_long { self.long_input } else { 1.0 };
        tokens as f64 * self.input * factor / 1e6
    }
}

/// Figures of one window.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Number of messages of the packed history before the window.
    pub at: usize,
    /// The dialect of the window.
    pub dialect: Dialect,
    /// Messages of the conversation as it was read; conversion and repair may make more or less.
    pub source_messages: usize,
    /// Messages of the history up to the window.
    pub messages_before: usize,
    /// Messages of the window.
    pub messages_after: usize,
    /// Tokens of a request with the whole history up to the window.
    pub tokens_before: u64,
    /// Tokens of the request with the window.
    pub tokens_after: u64,
    /// Their upper estimate; equal for an exact counter.
    pub tokens_upper: u64,
    /// Input tokens that the window may have.
    pub budget: u64,
    /// Steps by level: verbatim, trimmed, stub, gone.
    pub steps: [u32; 4],
    /// Compactions up to the window.
    pub compactions: u32,
    /// Findings in the conversation as it was read that its provider would reject.
    pub violations: u32,
    /// Such findings that are left in the window.
    pub violations_left: u32,
    /// Whether history or window were repaired.
    pub repaired: bool,
    /// What a conversion could not carry over, counted by kind.
    pub losses: Vec<(LossKind, u32)>,
    /// Values that placeholders stand for in the conversation; `None` if none were looked for.
    pub redacted: Option<u64>,
    /// Dollars for the input of the request with the whole history, nothing cached.
    pub cost_before: Option<f64>,
    /// Dollars for the input of the request with the window.
    pub cost_after: Option<f64>,
}

impl Report {
    /// The report as fields of a JSON object.
    pub(super) fn fields(&self) -> Vec<(&'static str, Json)> {
        let number = |number: u64| Json::Int(i64::try_from(number).unwrap_or(i64::MAX));
        let dollars = |cost: Option<f64>| {
            cost.filter(|cost| cost.is_finite())
                .map_or(Json::Null, |cost| Json::Number(format!("{cost:.9}").into()))
        };
        let [verbatim, trimmed, stub, gone] = self.steps.map(|steps| number(steps.into()));
        let losses = self.losses.iter();
        let losses = losses.map(|(kind, count)| (kind.code().into(), number((*count).into())));
        let mut fields = vec![
            ("at", self.at.into()),
            ("dialect", self.dialect.name().into()),
            ("source_messages", self.source_messages.into()),
            ("messages_before", self.messages_before.into()),
            ("messages_after", self.messages_after.into()),
            ("tokens_before", number(self.tokens_before)),
            ("tokens_after", number(self.tokens_after)),
            ("tokens_upper", number(self.tokens_upper)),
            ("budget", number(self.budget)),
            (
                "steps",
                Json::map([
                    ("verbatim", verbatim),
                    ("trimmed", trimmed),
                    ("stub", stub),
                    ("gone", gone),
                ]),
            ),
            ("compactions", number(self.compactions.into())),
            ("violations", number(self.violations.into())),
            ("violations_left", number(self.violations_left.into())),
            ("repaired", Json::Bool(self.repaired)),
            ("losses", Json::Map(losses.collect())),
            ("cost_before", dollars(self.cost_before)),
            ("cost_after", dollars(self.cost_after)),
        ];
        fields.extend(self.redacted.map(|count| ("redacted", number(count))));
        fields
    }
}
