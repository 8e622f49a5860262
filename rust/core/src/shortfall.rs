//! Why a window cannot be made: what must stay in it, added up.
//!
//! One message is blamed only if the window would fit without it. Else the sentence says what all of
//! it takes together: the framing of tens of thousands of messages is nobody's fault in particular.

use crate::error::Error;
use crate::level::Level;
use crate::node::Text;
use crate::plan::{Plan, Settings};
use crate::transcript::Transcript;

/// What did not fit, although everything that may fall has fallen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// The largest message that must stay and its tokens, if there is any.
    pub largest: Option<(usize, u64)>,
    /// Messages in the smallest window, and their tokens.
    pub messages: usize,
    /// Tokens of these messages that are roles and other framing.
    pub framing: u64,
    /// Tokens of system prompt, tools and the overhead of a request.
    pub base: u64,
    /// Tokens of the smallest window there is.
    pub smallest: u64,
}

impl Shortfall {
    /// What a plan that does not fit consists of; `smallest` as above.
    pub fn of<T: Text>(
        plan: &Plan,
        transcript: &Transcript<T>,
        settings: &Settings,
        smallest: u64,
    ) -> Self {
        let mut largest: Option<(usize, u64)> = None;
        let mut messages = 0;
        for shown in plan.shown.iter() {
            let bounds = transcript.steps()[shown.step as usize];
            let single = bounds.end - bounds.first == 1;
            messages += (bounds.end - bounds.first) as usize;
            for message in bounds.first..bounds.end {
                // A lowered step is blamed as a whole, on its first message.
                let tokens = u64::from(if single || shown.level != Level::Verbatim {
                    shown.tokens
                } else {
                    transcript.rows()[message as usize].tokens
                });
                if largest.is_none_or(|(_, most)| tokens > most) {
                    largest = Some((message as usize, tokens));
                }
            }
        }
        Self {
            largest,
            messages,
            framing: messages as u64 * u64::from(settings.message_tokens),
            base: settings.base_tokens(),
            smallest,
        }
    }

    /// The error of a window that cannot be made.
    pub fn error(self, settings: &Settings) -> Error {
        let smallest = settings.upper(self.smallest);
        let over = smallest.saturating_sub(settings.budget);
        let of_part = |tokens| settings.upper_part(tokens);
        let (base, framing) = (of_part(self.base), of_part(self.framing));
        let largest = self.largest.map(|(index, tokens)| (index, of_part(tokens)));
        let rest = match largest {
            Some((index, tokens)) => {
                format!("the largest is message {index} with {tokens}, framing takes {framing}")
            }
            None => format!("framing takes {framing}"),
        };
        let why = format!(
            "the smallest valid window needs {smallest} tokens: {base} for system, tools and \
             overhead, the rest for {} messages; {rest}",
            self.messages
        );
        match largest {
            Some((index, tokens)) if tokens >= over && tokens >= base => {
                Error::over_budget(Some(index), tokens, settings.budget, &why)
            }
            _ if base >= over => {
                Error::over_budget(None, settings.upper(self.base), settings.budget, &why)
            }
            _ => Error::whole_over_budget(smallest, settings.budget, &why),
        }
    }
}
