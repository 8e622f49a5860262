//! The windows of the one-call functions: all instructions first, then the newest steps that fit.
//!
//! Invariant: a step is kept whole or not at all, and the order of the history is kept. The walk
//! goes from the newest message back and ends at the first step that does not fit; older steps are
//! not tried, however small. Cost: one look at each message of the window, plus one.

/// How a message takes part in the steps of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Link {
    /// A system or developer message: always kept, in front.
    Instruction,
    /// A step of its own.
    #[default]
    Plain,
    /// An assistant message with calls: begins a step that takes in the results right after it.
    Calls,
    /// Results of the calls before it; a step of its own where none stand there.
    Results,
    /// A call or reasoning that is an item of its own: it goes with the items after it, up to
    /// their results.
    Item,
}

/// Collects a window from the newest message back, step by step, within a limit.
///
/// Offer the messages that are no instructions in reverse order until [`Fill::offer`] says no,
/// then [`Fill::finish`]. Results wait until the message before them tells whose they are, so a
/// step never enters in part.
#[derive(Debug)]
pub struct Fill {
    left: u64,
    kept: Vec<u32>,
    // `kept` up to here is a window in itself; the results behind it still wait for their calls.
    whole: usize,
    // The newest items kept: older ones may belong to them.
    is_open: bool,
    cut: bool,
}

impl Fill {
    /// An empty window with room for `limit` (tokens, or messages).
    pub fn new(limit: u64) -> Self {
        Self {
            left: limit,
            kept: Vec::new(),
            whole: 0,
            is_open: false,
            cut: false,
        }
    }

    /// What is left of the limit.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Offers the next older message, which takes `cost` of the limit; `None` says that it takes
    /// more than is left. Returns whether older messages are wanted.
    pub fn offer(&mut self, index: u32, link: Link, cost: Option<u64>) -> bool {
        if self.is_open && link != Link::Item {
            // The step of the items began with the last of them.
            self.whole = self.kept.len();
            self.is_open = false;
        }
        match cost.and_then(|cost| self.left.checked_sub(cost)) {
            Some(left) if !self.cut => {
                self.left = left;
                self.kept.push(index);
                match link {
                    Link::Results => {}
                    Link::Item => self.is_open = true,
                    Link::Instruction | Link::Plain | Link::Calls => self.whole = self.kept.len(),
                }
            }
            // The step is larger than the room; what waited for it goes too.
            _ => self.cut = true,
        }
        !self.cut
    }

    /// The kept indices in the order of the history. Where the walk was cut, results at the cut
    /// whose calls are not in the window are left out.
    pub fn finish(mut self) -> Vec<u32> {
        if self.cut {
            self.kept.truncate(self.whole);
        }
        self.kept.reverse();
        self.kept
    }
}

/// Indices of a window of at most `max_messages` messages besides the instructions.
///
/// All instructions come first, then the newest whole steps, each part in the order of the
/// history. Without calls and results these are simply the newest `max_messages` messages.
///
/// # Example
/// ```
/// use satchel_core::window::{Link::{Calls, Instruction, Plain, Results}, sliding_window};
/// let links = [Instruction, Plain, Calls, Results, Plain];
/// assert_eq!(sliding_window(&links, 3), [0, 2, 3, 4]);
/// assert_eq!(sliding_window(&links, 2), [0, 4]);
/// ```
pub fn sliding_window(links: &[Link], max_messages: u64) -> Vec<u32> {
    fill(links, max_messages, |_| 1)
}

/// Indices of a window of at most `max_tokens` tokens, the instructions included.
///
/// The instructions are all kept, even where they alone exceed the limit; what they leave is
/// filled with the newest whole steps. `tokens[i]` and `links[i]` describe message `i`; where one
/// column is shorter, the messages beyond it do not exist.
///
/// # Example
/// ```
/// use satchel_core::window::{Link::{Instruction, Plain}, token_window};
/// let links = [Plain, Instruction, Plain, Plain];
/// assert_eq!(token_window(&[1, 5, 9, 2], &links, 8), [1, 3]);
/// assert_eq!(token_window(&[1, 5, 9, 2], &links, 16), [1, 2, 3]);
/// ```
pub fn token_window(tokens: &[u32], links: &[Link], max_tokens: u64) -> Vec<u32> {
    let links = links.get(..tokens.len()).unwrap_or(links);
    let instructions: u64 = links
        .iter()
        .zip(tokens)
        .filter(|(link, _)| **link == Link::Instruction)
        .map(|(_, tokens)| u64::from(*tokens))
        .sum();
    match max_tokens.checked_sub(instructions) {
        Some(limit) => fill(links, limit, |index| {
            u64::from(tokens.get(index).copied().unwrap_or(0))
        }),
        None => instruction_indices(links),
    }
}

/// Indices of the instructions, in order.
pub fn instruction_indices(links: &[Link]) -> Vec<u32> {
    (0..)
        .zip(links)
        .filter(|(_, link)| **link == Link::Instruction)
        .map(|(index, _)| index)
        .collect()
}

fn fill(links: &[Link], limit: u64, cost: impl Fn(usize) -> u64) -> Vec<u32> {
    let mut fill = Fill::new(limit);
    for (index, link) in links.iter().enumerate().rev() {
        if *link != Link::Instruction && !fill.offer(index as u32, *link, Some(cost(index))) {
            break;
        }
    }
    let mut window = instruction_indices(links);
    window.extend(fill.finish());
    window
}
