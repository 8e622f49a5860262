//! The history of one conversation as it is folded: read and counted once, whatever is asked of it.

use super::{Source, has_words};
use crate::dialect::read_system;
use crate::error::Result;
use crate::message::Message;
use crate::node::Node as _;
use crate::readers::json::JsonText;
use crate::tokens::Counter;
use crate::tokens::chat::{ChatRules, count_message_parts, message_overhead};
use crate::tokens::tools::{ToolRules, tool_tokens};

/// Counted messages, and what stands around them.
#[derive(Clone, Debug)]
pub(super) struct History {
    pub(super) messages: Vec<Message<JsonText>>,
    /// Tokens of each beside its parts.
    pub(super) overheads: Vec<u32>,
    /// Tokens of the system prompt, where it stands outside the messages.
    pub(super) system_tokens: u64,
    /// Tokens of the tool definitions.
    pub(super) tools_tokens: u64,
    request_tokens: u32,
}

impl History {
    /// Counts messages that were read.
    ///
    /// # Errors
    /// As [`read_system`]; `counter_failed`, only from a foreign counter.
    pub(super) fn counted(
        source: &Source,
        mut messages: Vec<Message<JsonText>>,
        counter: &Counter,
    ) -> Result<Self> {
        let rules = ChatRules::for_counter(source.dialect, counter);
        count_message_parts(&mut messages, counter)?;
        let overheads = messages
            .iter()
            .map(|message| message_overhead(message, &rules, counter))
            .collect::<Result<_>>()?;
        let mut system_tokens = 0;
        if let Some(system) = &source.system {
            let mut read = [read_system(&system)?];
            count_message_parts(&mut read, counter)?;
            let [read] = read;
            system_tokens = tokens_of(&read) + u64::from(message_overhead(&read, &rules, counter)?);
        }
        let tools_tokens = match &source.tools {
            Some(tools) => {
                let rules = ToolRules::for_counter(source.dialect, counter);
                tool_tokens(&(&tools).capture()?, &rules, counter)?.tokens
            }
            None => 0,
        };
        Ok(Self {
            messages,
            overheads,
            system_tokens,
            tools_tokens: u64::from(tools_tokens),
            request_tokens: rules.request_tokens(),
        })
    }

    /// Input tokens that a share of the conversation gives its windows: what is pinned from the
    /// start, and that share of the rest, at least its largest message. And those of the whole
    /// conversation.
    pub(super) fn budgets(&self, share: f64, counter: &Counter) -> (u64, u64) {
        let mut pinned = self.system_tokens + self.tools_tokens + u64::from(self.request_tokens);
        let (mut rest, mut largest) = (0, 0);
        let (mut is_opening, mut has_goal) = (true, false);
        for (message, overhead) in self.messages.iter().zip(&self.overheads) {
            let tokens = tokens_of(message) + u64::from(*overhead);
            is_opening &= message.role.is_instruction();
            let is_goal = !has_goal && has_words(message);
            has_goal |= is_goal;
            if is_opening || is_goal {
                pinned += tokens;
            } else {
                rest += tokens;
                largest = largest.max(tokens);
            }
        }
        let free = ((rest as f64 * share) as u64).max(largest);
        let upper = |tokens: u64| (tokens as f64 * (1.0 + counter.margin())).ceil() as u64;
        // Placeholders for calls that are open at the end, and what a repair may put in, come on
        // top.
        let all = upper(pinned + rest) + upper(pinned + rest) / 4 + 1_000;
        (upper(pinned + free).max(1), all)
    }
}

/// Tokens of the parts of a message.
fn tokens_of(message: &Message<JsonText>) -> u64 {
    let parts = message.parts.iter().map(|part| u64::from(part.tokens));
    parts.sum()
}
