//! Settings that change while a log goes on: all that an event names, or nothing.

use std::sync::Arc;

use super::WorkingSet;
use super::recall::around;
use crate::error::{Error, ErrorKind, Result};
use crate::event::SettingsChange;
use crate::node::Text;
use crate::page::PageKey;
use crate::placeholder::placeholder_tokens;
use crate::render::recall_place;
use crate::tokens::Counter;
use crate::tokens::chat::ChatRules;

impl<T: Text> WorkingSet<T> {
    pub(super) fn change_settings(&mut self, change: &SettingsChange) -> Result<()> {
        if let Some(dialect) = &change.dialect
            && dialect != self.settings.dialect.name()
        {
            return Err(Error::new(
                ErrorKind::DialectChanged,
                format!(
                    "the log is in dialect {}, not {dialect}",
                    self.settings.dialect.name()
                ),
            ));
        }
        if let Some(policy) = &change.policy {
            policy.validate()?;
        }
        if let Some(budget) = change.budget {
            check_budget(budget)?;
        }
        if let Some(prices) = &change.prices {
            prices.validate()?;
        }
        check_tokens("system_tokens", change.system_tokens.unwrap_or(0))?;
        check_tokens("tools_tokens", change.tools_tokens.unwrap_or(0))?;
        let key = change.page_key.as_deref().map(PageKey::new);
        if key.is_some_and(|key| !self.transcript.is_empty() && key != self.settings.key) {
            return Err(Error::new(
                ErrorKind::InvalidEvent,
                "the page key is set by event 0 and cannot change",
            ));
        }
        if let Some(name) = &change.counter
            && name != self.settings.counter.name()
        {
            self.change_counter(name)?;
        }
        // Everything was checked: an event changes all that it names, or nothing.
        if let Some(budget) = change.budget {
            self.settings.budget = budget;
        }
        if let Some(policy) = &change.policy {
            self.settings.policy = Arc::new(policy.clone());
        }
        if let Some(prices) = change.prices {
            self.settings.prices = prices;
        }
        if change.model.is_some() && !self.transcript.is_empty() {
            // Another model has nothing in its cache.
            self.plan.is_cold = true;
        }
        if change.system_tokens.or(change.tools_tokens).is_some() {
            // What stands before every message is another one.
            self.changed_at = Some(self.transcript.len() as u32);
        }
        if let Some(tokens) = change.system_tokens {
            self.settings.system_tokens = tokens;
        }
        if let Some(tokens) = change.tools_tokens {
            self.settings.tools_tokens = tokens;
        }
        if let Some(key) = &change.page_key {
            self.settings.key = PageKey::new(key);
        }
        Ok(())
    }

    /// Counts what is not gone again by another counter; what is gone keeps its counts. What was
    /// learnt about the old one's counts is forgotten.
    fn change_counter(&mut self, name: &str) -> Result<()> {
        let offered = self.counters.iter().find(|known| known.name() == name);
        let counter = match offered {
            Some(counter) => counter.clone(),
            None => Counter::named(name)?,
        };
        self.settings.counter = counter.clone();
        self.settings.calibration = None;
        let framing = self.rules.inserted_message_tokens();
        self.rules = ChatRules::for_counter(self.settings.dialect, &counter);
        self.settings.request_tokens = self.rules.request_tokens();
        self.settings.message_tokens = self.rules.inserted_message_tokens();
        let change = i64::from(self.settings.message_tokens) - i64::from(framing);
        for shown in Arc::make_mut(&mut self.plan.shown) {
            let bounds = self.transcript.steps()[shown.step as usize];
            for message in bounds.first as usize..bounds.end as usize {
                self.transcript.recount(message, &counter, change)?;
            }
            shown.tokens = self.transcript.steps()[shown.step as usize].tokens;
            if shown.placeholder_tokens > 0 {
                shown.placeholder_tokens =
                    placeholder_tokens(&self.settings, &self.transcript, shown.step);
                shown.tokens += shown.placeholder_tokens;
            }
            let mut edits = shown.edits.to_vec();
            for edit in &mut edits {
                let part = &self.transcript.all_parts()[edit.part as usize];
                edit.tokens = crate::shrink::edited_tokens(part, &edit.text, &counter)?;
                shown.tokens = shown.tokens - part.tokens + edit.tokens;
            }
            shown.edits = edits.into();
        }
        for recall in &mut self.plan.recalls {
            let place = recall_place(&self.transcript, self.settings.dialect, recall.at as usize);
            recall.tokens = counter.count(&recall.text)? + around(place, &self.settings);
        }
        for recall in &mut self.waiting {
            recall.tokens = counter.count(&recall.text)?;
        }
        self.recount_notes()?;
        self.plan.sum();
        Ok(())
    }
}

pub(super) fn check_budget(budget: u64) -> Result<()> {
    if budget == 0 {
        return Err(Error::new(
            ErrorKind::InvalidValue,
            "budget is 0, must be at least 1 token",
        )
        .with_limit(0, 1));
    }
    Ok(())
}

/// The most tokens that a system prompt or tool definitions can be said to have.
pub const MAX_TOKENS: u64 = 1 << 53;

pub(super) fn check_tokens(name: &str, tokens: u64) -> Result<()> {
    if tokens > MAX_TOKENS {
        return Err(Error::new(
            ErrorKind::InvalidValue,
            format!("{name} is {tokens}, must be at most {MAX_TOKENS}"),
        )
        .with_limit(tokens, MAX_TOKENS));
    }
    Ok(())
}
