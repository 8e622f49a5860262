//! The events of a log, as JSON.

use satchel_core::Error;
use satchel_core::dialect::Dialect;
use satchel_core::error::ErrorKind;
use satchel_core::event::{Event, EventKind, SettingsChange};
use satchel_core::page::PageKey;
use satchel_core::plan::Settings;
use satchel_core::tokens::chat::ChatRules;

use crate::counter::PyCounter;

/// Events must stand in order, none behind the last message.
pub(crate) fn check_order(events: &[Event], messages: usize) -> Result<(), Error> {
    let mut last = 0;
    for (position, event) in events.iter().enumerate() {
        if event.at < last || event.at > messages {
            let place = event.at;
            // Event 0 is the settings, which came apart.
            let position = position + 1;
            return Err(Error::new(
                ErrorKind::InvalidEvent,
                format!(
                    "event {position} is at message {place}, must be from {last} to {messages}"
                ),
            ));
        }
        last = event.at;
    }
    Ok(())
}

pub(crate) fn parse_json(text: &str) -> Result<serde_json::Value, Error> {
    serde_json::from_str(text).map_err(|error| {
        Error::new(
            ErrorKind::InvalidEvent,
            format!("an event is no JSON: {error}"),
        )
    })
}

pub(crate) fn read_events(text: &str) -> Result<Vec<Event>, Error> {
    let json = parse_json(text)?;
    let list = json.as_array().map(Vec::as_slice).unwrap_or_default();
    // Event 0 is the settings, which the caller hands over apart.
    list.iter()
        .enumerate()
        .map(|(at, event)| Event::from_json(event, at + 1))
        .collect()
}

pub(crate) fn read_settings(counter: &PyCounter, text: &str) -> Result<Settings, Error> {
    let change: SettingsChange = match Event::from_json(&parse_json(text)?, 0)?.kind {
        EventKind::Settings(change) => *change,
        _ => {
            return Err(Error::new(
                ErrorKind::InvalidEvent,
                "event 0 must be settings",
            ));
        }
    };
    let missing = |name: &str| {
        Error::new(
            ErrorKind::InvalidEvent,
            format!("event 0 (settings) misses {name}"),
        )
    };
    let dialect = Dialect::from_name(&change.dialect.ok_or_else(|| missing("dialect"))?)?;
    let rules = ChatRules::for_counter(dialect, &counter.0);
    let prices = change.prices.unwrap_or_default();
    prices.validate()?;
    Ok(Settings {
        dialect,
        counter: counter.0.clone(),
        budget: change.budget.ok_or_else(|| missing("budget"))?,
        policy: change.policy.ok_or_else(|| missing("policy"))?.into(),
        system_tokens: change.system_tokens.unwrap_or(0),
        tools_tokens: change.tools_tokens.unwrap_or(0),
        request_tokens: rules.request_tokens(),
        message_tokens: rules.inserted_message_tokens(),
        calibration: None,
        key: PageKey::new(&change.page_key.unwrap_or_default()),
        prices,
    })
}
