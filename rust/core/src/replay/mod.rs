//! Replay: how good are a policy's windows? Recorded runs are played again call by call, and each
//! window is asked whether what the agent really used next could still be read. No model is needed.
//!
//! At each recorded call a policy gives the window that it would send, within
//! `pinned + share × rest` (pinned: system, tools, framing, leading instructions, the first user
//! message; the free part is at least the largest message). [`Reference`] says what counts as
//! used; [`Outcome`] has a figure for each metric. Figures are sums, so that runs can be added.
//!
//! Invariant: a recording is never changed by a replay, and equal input gives equal figures. Cost
//! of a call: what comes into the window or leaves it, not what is in it; a policy that changes its
//! window at every call pays for its messages, never for their texts.

mod baseline;
mod contender;
mod oracle;
mod outcome;
mod packed;
mod planted;
mod recording;
mod texts;
mod unit;
mod window;

pub use baseline::CLEARED;
pub use contender::{Baseline, Contender};
pub use outcome::{Outcome, Prices, Shot, Worst};
pub use planted::{PLANTED, with_planted};
pub use recording::{Call, LONG_AGE, Recording, Reference};

use self::outcome::Tally;
use self::packed::Packed;
use self::unit::View;
use self::window::Player;
use crate::dialect::Dialect;
use crate::error::Result;
use crate::policy::Policy;
use crate::readers::json::Json;
use crate::salience::rows::LikelihoodRow;
use crate::tokens::Counter;

/// A recorded run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The dialect of the messages.
    pub dialect: Dialect,
    /// The messages.
    pub messages: Vec<Json>,
    /// The system prompt, where it stands outside the messages.
    pub system: Option<Json>,
    /// The tool definitions, a list.
    pub tools: Option<Json>,
}

/// What a window may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// The pinned part and this share of the rest of the whole run, at least its largest message.
    Share(f64),
    /// So many tokens.
    Tokens(u64),
}

/// How a replay is done.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What the tokens cost.
    pub prices: Prices,
    /// Seed of the random baseline.
    pub seed: u64,
    /// Whether each call is described in [`Outcome::shots`].
    pub trace: bool,
    /// How many of the worst losses are told with their text.
    pub worst: usize,
}

/// Replays one policy over a recording.
///
/// # Errors
/// As [`Recording::new`] and [`WorkingSet::append`](crate::working_set::WorkingSet::append);
/// `invalid_value` for a policy that is out of range.
pub fn replay(recording: &Recording, contender: &Contender, options: &Options) -> Result<Outcome> {
    let mut player = Player::new(recording, contender, options.seed)?;
    let mut view = View::new(recording);
    let mut tally = Tally::new(recording, contender, options);
    for call in recording.calls() {
        let proposal = player.window(call.at as usize)?;
        let is_compacted = proposal.is_compacted;
        let account = proposal.tokens;
        let overlap = view.update(proposal.keep, proposal.tail);
        let tokens = account.unwrap_or_else(|| view.tokens());
        tally.call(call, &mut view, &player, tokens, overlap, is_compacted);
    }
    tally.finish(&player)
}

/// What weights are fitted to: features and uses of the identifiers of a recording, at every
/// `every`-th reply.
///
/// # Errors
/// As [`replay`].
pub fn likelihood_rows(recording: &Recording, every: usize) -> Result<Vec<LikelihoodRow>> {
    Packed::new(recording, &Policy::default())?.likelihood_rows(every)
}

/// How many of the planted instructions can be read in the window after the whole run, and how
/// many were planted.
///
/// The run is played apart with a few user messages more: the recorded calls are measured on the
/// run as it was.
///
/// # Errors
/// As [`replay`].
pub fn replay_planted(
    run: &Run,
    counter: &Counter,
    recording: &Recording,
    contender: &Contender,
    seed: u64,
) -> Result<(u32, u32)> {
    planted::play(run, counter, recording, contender, seed)
}
