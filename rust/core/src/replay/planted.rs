//! Standing instructions that are planted into a run, to see whether they outlive it.

use super::contender::Contender;
use super::recording::{Recording, lines_of};
use super::texts::read_texts;
use super::unit::View;
use super::window::Player;
use super::{Limit, Run};
use crate::error::Result;
use crate::readers::json::{Json, parse};
use crate::tokens::Counter;

/// What is planted: a user's words that hold from then on, on a tenth, three and five tenths of
/// the way through the calls.
pub const PLANTED: [&str; 3] = [
    "Never touch deploy/keep-4107.yaml without asking me first.",
    "From now on always write the tag QX-2291 into every summary.",
    "Do not use the account ops_reserve_36 unless I say so.",
];

/// Share of the budget that the planted messages may take: a window keeps standing instructions up
/// to that share.
const SHARE: f64 = 0.1;

/// The run with instructions of the user between its steps, and which messages they are. Fewer
/// than all where they would take more than a tenth of the budget.
pub fn with_planted(run: &Run, recording: &Recording) -> Result<(Run, Vec<usize>)> {
    let (mut messages, mut places) = (Vec::with_capacity(run.messages.len() + 3), Vec::new());
    let calls = recording.calls();
    let goal = recording.goal.map_or(u32::MAX, |goal| goal);
    let mut tokens = 0;
    let mut chosen = Vec::new();
    for (text, tenth) in PLANTED.iter().zip([1, 3, 5]) {
        let first = calls.len() * tenth / 10;
        // Not between a call and its results, and not before there is a goal.
        let is_free = |at: u32| {
            at > goal
                && recording.is_closed_before(at)
                && chosen.iter().all(|(place, _)| *place < at)
        };
        let place = calls
            .get(first..)
            .and_then(|calls| calls.iter().map(|call| call.at).find(|&at| is_free(at)));
        let Some(at) = place else { continue };
        tokens += u64::from(recording.counter.count(text)? + recording.message_tokens);
        if recording.upper(tokens) as f64 > SHARE * recording.budget as f64 {
            break;
        }
        chosen.push((at, *text));
    }
    let mut chosen = chosen.into_iter().peekable();
    for (at, message) in run.messages.iter().enumerate() {
        if let Some((_, text)) = chosen.next_if(|(place, _)| *place as usize == at) {
            let message = recording.dialect.user_message(text, true);
            places.push(messages.len());
            messages.push(parse(&message.to_string()).unwrap_or(Json::Null));
        }
        messages.push(message.clone());
    }
    let planted = Run {
        messages,
        ..run.clone()
    };
    Ok((planted, places))
}

/// How many of the planted instructions can be read in the window after the last message, and how
/// many there were.
pub(super) fn play(
    run: &Run,
    counter: &Counter,
    recording: &Recording,
    contender: &Contender,
    seed: u64,
) -> Result<(u32, u32)> {
    let (planted, places) = with_planted(run, recording)?;
    if places.is_empty() {
        return Ok((0, 0));
    }
    // The budget is that of the run as it was.
    let recording = Recording::new(&planted, counter, Limit::Tokens(recording.budget()))?;
    let mut player = Player::new(&recording, contender, seed)?;
    let mut view = View::new(&recording);
    let ends = recording.calls().iter().map(|call| call.at as usize);
    for at in ends.chain([recording.len()]) {
        let proposal = player.window(at)?;
        view.update(proposal.keep, proposal.tail);
    }
    let mut read = 0;
    for &place in &places {
        let mut is_read = true;
        read_texts(&recording.read(place)?, &mut |text| {
            is_read &= lines_of(text).all(|line| {
                let names = recording.lines.get(line).map(|line| &line.names);
                names.is_some_and(|names| names.iter().any(|&name| view.holds_line(name)))
            });
        });
        read += u32::from(is_read);
    }
    Ok((read, places.len() as u32))
}
