//! `satchel.replay`: one recorded run under several policies, detached from the interpreter.

use pyo3::prelude::*;
use satchel_core::dialect::Dialect;
use satchel_core::error::{Error, ErrorKind};
use satchel_core::policy::Policy;
use satchel_core::readers::json::{Json, parse};
use satchel_core::replay::{
    Baseline, Contender, Limit, Options, Prices, Recording, Run, replay, replay_planted,
};

use crate::counter::PyCounter;
use crate::gil::run;

/// The names of the baselines, in the order of tables.
#[pyfunction]
pub(crate) fn replay_baselines() -> Vec<&'static str> {
    Baseline::ALL.into_iter().map(Baseline::name).collect()
}

/// Replays one run under each policy; everything goes in and comes back as JSON text.
///
/// `contenders` are names of baselines, or policies as JSON objects.
#[pyfunction]
#[pyo3(signature = (messages, dialect, *, system, tools, contenders, counter, share, tokens, prices, seed, trace, worst))]
#[allow(
    clippy::too_many_arguments,
    reason = "a border function takes its options one by one; Python names them"
)]
pub(crate) fn replay_run(
    py: Python<'_>,
    messages: &str,
    dialect: &str,
    system: Option<&str>,
    tools: Option<&str>,
    contenders: Vec<String>,
    counter: &PyCounter,
    share: Option<f64>,
    tokens: Option<u64>,
    prices: (f64, f64, f64),
    seed: u64,
    trace: bool,
    worst: usize,
) -> PyResult<String> {
    let counter = counter.0.clone();
    run(py, move || {
        let recorded = Run {
            dialect: Dialect::from_name(dialect)?,
            messages: match read(messages)? {
                Json::List(messages) => messages,
                _ => return Err(invalid("messages must be a list")),
            },
            system: system.map(read).transpose()?,
            tools: tools.map(read).transpose()?,
        };
        let limit = match (share, tokens) {
            (Some(share), None) => Limit::Share(share),
            (None, Some(tokens)) => Limit::Tokens(tokens),
            _ => return Err(invalid("a budget is a share or a number of tokens")),
        };
        let options = Options {
            prices: Prices {
                read: prices.0,
                write: prices.1,
                output: prices.2,
            },
            seed,
            trace,
            worst,
        };
        let recording = Recording::new(&recorded, &counter, limit)?;
        let mut outcomes = Vec::with_capacity(contenders.len());
        for name in &contenders {
            let contender = contender(name)?;
            let mut outcome = replay(&recording, &contender, &options)?;
            // Who only looks at what actions will take has no use for instructions.
            if !contender.is_clairvoyant() {
                (outcome.planted_read, outcome.planted) =
                    replay_planted(&recorded, &counter, &recording, &contender, seed)?;
            }
            outcomes.push(outcome);
        }
        let found = serde_json::json!({
            "messages": recording.len(),
            "calls": recording.calls().len(),
            "tokens": recording.total_tokens(),
            "pinned_tokens": recording.pinned_tokens(),
            "budget": recording.budget(),
            "sizes": if trace { recording.sizes() } else { Vec::new() },
            "outcomes": outcomes,
        });
        Ok(found.to_string())
    })
}

fn contender(name: &str) -> Result<Contender, Error> {
    if let Some(baseline) = Baseline::ALL.into_iter().find(|known| known.name() == name) {
        return Ok(Contender::Baseline(baseline));
    }
    let policy: Policy = serde_json::from_str(name)
        .map_err(|error| invalid(&format!("a policy cannot be read: {error}")))?;
    policy.validate()?;
    Ok(Contender::Satchel(Box::new(policy)))
}

fn read(text: &str) -> Result<Json, Error> {
    parse(text).map_err(|_| invalid("a value is no JSON"))
}

#[cold]
fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidValue, message)
}
