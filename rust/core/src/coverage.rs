//! Budgeted coverage: which lines to keep, so that what they hold is worth most within a capacity.
//!
//! A line is worth the names on it that nothing kept holds yet; the first line of a group also pays
//! for opening the group and brings along the names that come with it. The greedy takes the line
//! with the most uncovered value per token, again and again. It is lazy: a line whose figure fell
//! since it was last looked at goes back into the heap; when a group opens, its lines become cheaper
//! and enter anew. Cost: O(n log n) in practice, and every look at a line is paid by a name covered
//! or a group opened. Few lines are searched exactly.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Lines up to this number are searched exactly.
pub const EXACT_LINES: usize = 12;

/// Names up to this number, since every choice that is looked at looks at all of them.
const EXACT_NAMES: usize = 512;

/// Lines that open together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Tokens of opening it.
    pub tokens: u32,
    /// Names that come with it, as a range of [`Instance::names`], ascending.
    pub names: Range<u32>,
    /// Whether it is open from the start, so that its lines cost only themselves.
    pub is_open: bool,
}

/// A line that may be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Index of its group.
    pub group: u32,
    /// Tokens it takes.
    pub tokens: u32,
    /// Names on it, as a range of [`Instance::names`], ascending.
    pub names: Range<u32>,
}

/// What may be kept and what it is worth.
#[derive(Clone, Debug, Default)]
pub struct Instance {
    /// The groups.
    pub groups: Vec<Group>,
    /// The lines, in order of the history.
    pub lines: Vec<Line>,
    /// Names of groups and lines, one list after the other; indices of `values`.
    pub names: Vec<u32>,
    /// What each name is worth: finite, not negative; 0 for what is covered already.
    pub values: Vec<f64>,
    /// Lines that are kept whatever they cost, each at most once.
    pub forced: Vec<u32>,
}

/// What was kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cover {
    /// Indices of the lines, in the order in which they were taken.
    pub lines: Vec<u32>,
    /// Tokens of the lines and of the groups that they opened.
    pub tokens: u64,
    /// Value of the names they hold.
    pub value: f64,
    /// No choice within the capacity is worth more.
    pub upper_bound: f64,
    /// Value per token of the last line that was taken; 0 if none was.
    pub density: f64,
}

/// An entry of the heap; its figure is an upper bound of the line's.
struct Offer {
    density: f64,
    value: f64,
    line: u32,
}

impl PartialEq for Offer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Offer {}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Offer {
    /// By value per token, then value, then the older line.
    fn cmp(&self, other: &Self) -> Ordering {
        self.density
            .total_cmp(&other.density)
            .then(self.value.total_cmp(&other.value))
            .then(other.line.cmp(&self.line))
    }
}

/// The state of a choice: what is covered and open.
#[derive(Clone, Debug)]
struct State<'a> {
    instance: &'a Instance,
    covered: Vec<bool>,
    open: Vec<bool>,
}

impl<'a> State<'a> {
    fn new(instance: &'a Instance) -> Self {
        let mut state = Self {
            instance,
            covered: vec![false; instance.values.len()],
            open: instance.groups.iter().map(|group| group.is_open).collect(),
        };
        for group in instance.groups.iter().filter(|group| group.is_open) {
            state.cover(&group.names);
        }
        state
    }

    fn names(&self, range: &Range<u32>) -> &'a [u32] {
        let range = range.start as usize..range.end as usize;
        self.instance.names.get(range).unwrap_or(&[])
    }

    fn value_of(&self, name: u32) -> f64 {
        self.instance
            .values
            .get(name as usize)
            .copied()
            .unwrap_or(0.0)
    }

    fn is_covered(&self, name: u32) -> bool {
        self.covered.get(name as usize).copied().unwrap_or(true)
    }

    fn is_open(&self, group: u32) -> bool {
        self.open.get(group as usize).copied().unwrap_or(true)
    }

    /// Covers names and returns what that adds.
    fn cover(&mut self, range: &Range<u32>) -> f64 {
        let mut value = 0.0;
        for &name in self.names(range) {
            if !self.is_covered(name) {
                value += self.value_of(name);
                self.covered[name as usize] = true;
            }
        }
        value
    }

    /// What a line would add and cost now.
    fn figures(&self, line: &Line) -> (f64, u64) {
        let own = self.names(&line.names);
        let sum = |names: &[u32], but: &[u32]| {
            names
                .iter()
                .filter(|name| !self.is_covered(**name) && but.binary_search(name).is_err())
                .map(|&name| self.value_of(name))
                .sum::<f64>()
        };
        let mut value = sum(own, &[]);
        let mut tokens = u64::from(line.tokens);
        if !self.is_open(line.group)
            && let Some(group) = self.instance.groups.get(line.group as usize)
        {
            tokens += u64::from(group.tokens);
            value += sum(self.names(&group.names), own);
        }
        (value, tokens)
    }

    fn offer(&self, at: u32) -> Option<Offer> {
        let line = self.instance.lines.get(at as usize)?;
        let (value, tokens) = self.figures(line);
        (value > 0.0).then(|| Offer {
            density: value / tokens.max(1) as f64,
            value,
            line: at,
        })
    }

    fn take(&mut self, at: u32) -> (f64, u64) {
        let Some(line) = self.instance.lines.get(at as usize) else {
            return (0.0, 0);
        };
        let (_, tokens) = self.figures(line);
        let mut value = self.cover(&line.names);
        if !self.is_open(line.group) {
            self.open[line.group as usize] = true;
            if let Some(group) = self.instance.groups.get(line.group as usize) {
                value += self.cover(&group.names);
            }
        }
        (value, tokens)
    }
}

/// Takes lines within `capacity` tokens, as much value as possible.
///
/// Ties go to the more valuable, then to the older line.
///
/// # Example
/// ```
/// use satchel_core::coverage::{Group, Instance, Line, cover};
/// // Two lines with the same name, and one with another: the second copy is worth nothing.
/// let instance = Instance {
///     groups: vec![Group { tokens: 2, names: 0..0, is_open: false }],
///     lines: vec![
///         Line { group: 0, tokens: 4, names: 0..1 },
///         Line { group: 0, tokens: 5, names: 1..2 },
///         Line { group: 0, tokens: 5, names: 2..3 },
///     ],
///     names: vec![0, 0, 1],
///     values: vec![0.9, 0.5],
///     forced: vec![],
/// };
/// let cover = cover(&instance, 20);
/// assert_eq!(cover.lines, [0, 2]);
/// assert_eq!(cover.tokens, 2 + 4 + 5);
/// ```
pub fn cover(instance: &Instance, capacity: u64) -> Cover {
    let mut best = greedy(instance, capacity);
    if instance.lines.len() <= EXACT_LINES && instance.names.len() <= EXACT_NAMES {
        search(instance, capacity, &mut best);
    }
    best.upper_bound = upper_bound(instance, &best.lines, capacity).max(best.value);
    best
}

/// What some lines of an instance are worth together, with the groups that they open; numbers
/// beyond its lines count nothing.
pub fn worth(instance: &Instance, lines: &[u32]) -> f64 {
    let mut state = State::new(instance);
    lines.iter().map(|&line| state.take(line).0).sum()
}

/// Only the forced lines.
fn forced(state: &mut State<'_>) -> Cover {
    let mut found = Cover::default();
    let count = state.instance.lines.len();
    let known = |line: &&u32| (**line as usize) < count;
    for &line in state.instance.forced.iter().filter(known) {
        let (value, tokens) = state.take(line);
        found.lines.push(line);
        found.tokens += tokens;
        found.value += value;
    }
    found
}

fn greedy(instance: &Instance, capacity: u64) -> Cover {
    let mut state = State::new(instance);
    let mut found = forced(&mut state);
    let by_group = lines_by_group(instance);
    let count = instance.lines.len() as u32;
    // The newest figure of each line; older entries of the heap are stale.
    let mut newest = vec![0.0f64; instance.lines.len()];
    let mut is_taken = vec![false; instance.lines.len()];
    for &line in &found.lines {
        is_taken[line as usize] = true;
    }
    let mut heap: BinaryHeap<Offer> = (0..count)
        .filter(|&at| !is_taken[at as usize])
        .filter_map(|at| state.offer(at))
        .collect();
    for offer in &heap {
        newest[offer.line as usize] = offer.density;
    }
    while let Some(offer) = heap.pop() {
        let at = offer.line as usize;
        if is_taken[at] || newest[at].total_cmp(&offer.density) != Ordering::Equal {
            continue;
        }
        let Some(now) = state.offer(offer.line) else {
            continue;
        };
        if now < offer {
            newest[at] = now.density;
            heap.push(now);
            continue;
        }
        let line = &instance.lines[at];
        let (_, tokens) = state.figures(line);
        if found.tokens + tokens > capacity {
            continue;
        }
        let opens = !state.is_open(line.group);
        let (value, tokens) = state.take(offer.line);
        is_taken[at] = true;
        found.lines.push(offer.line);
        found.tokens += tokens;
        found.value += value;
        found.density = offer.density;
        if opens {
            let (starts, members) = &by_group;
            let group = line.group as usize;
            for &member in &members[starts[group] as usize..starts[group + 1] as usize] {
                if is_taken[member as usize] {
                    continue;
                }
                if let Some(offer) = state.offer(member) {
                    newest[member as usize] = offer.density;
                    heap.push(offer);
                }
            }
        }
    }
    found
}

/// The lines of each group: where each group's begin, and the lines.
fn lines_by_group(instance: &Instance) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0u32; instance.groups.len() + 1];
    for line in &instance.lines {
        if let Some(count) = starts.get_mut(line.group as usize + 1) {
            *count += 1;
        }
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut next = starts.clone();
    let mut members = vec![0; starts.last().map_or(0, |&end| end as usize)];
    for (at, line) in (0..).zip(&instance.lines) {
        if let Some(place) = next.get_mut(line.group as usize)
            && let Some(slot) = members.get_mut(*place as usize)
        {
            *slot = at;
            *place += 1;
        }
    }
    (starts, members)
}

/// Looks through all choices of few lines; `best` is what must be beaten.
fn search(instance: &Instance, capacity: u64, best: &mut Cover) {
    let mut state = State::new(instance);
    let base = forced(&mut state);
    let room = capacity.saturating_sub(base.tokens);
    let before = best.value;
    let mut taken = base.lines.clone();
    visit(&state, 0, room, base.value, &mut taken, best);
    if best.value > before {
        (best.lines, best.density) = in_order(state, base.lines, &best.lines);
    }
}

/// The lines of `chosen` behind those taken already, the best value per token first, and the figure
/// of the last.
fn in_order(mut state: State<'_>, mut taken: Vec<u32>, chosen: &[u32]) -> (Vec<u32>, f64) {
    let mut left: Vec<u32> = chosen[taken.len()..].to_vec();
    let mut density = 0.0;
    while let Some(at) = (0..left.len()).max_by(|&a, &b| {
        let [a, b] = [a, b].map(|at| state.offer(left[at]));
        a.cmp(&b)
    }) {
        let line = left.remove(at);
        density = state.offer(line).map_or(0.0, |offer| offer.density);
        state.take(line);
        taken.push(line);
    }
    (taken, density)
}

fn visit(
    state: &State<'_>,
    at: u32,
    room: u64,
    value: f64,
    taken: &mut Vec<u32>,
    best: &mut Cover,
) {
    // Rounding must not make an equal choice look better.
    if value > best.value * (1.0 + 1e-12) {
        best.value = value;
        best.lines.clone_from(taken);
        best.tokens = total_tokens(state.instance, taken);
        best.density = 0.0;
    }
    let lines = &state.instance.lines;
    let rest: f64 = (at as usize..lines.len())
        .map(|line| state.figures(&lines[line]).0)
        .sum();
    if at as usize >= lines.len() || value + rest <= best.value {
        return;
    }
    let (_, tokens) = state.figures(&lines[at as usize]);
    let is_forced = state.instance.forced.contains(&at);
    if tokens <= room && !is_forced {
        let mut with = state.clone();
        let (more, tokens) = with.take(at);
        taken.push(at);
        visit(&with, at + 1, room - tokens, value + more, taken, best);
        taken.pop();
    }
    visit(state, at + 1, room, value, taken, best);
}

fn total_tokens(instance: &Instance, lines: &[u32]) -> u64 {
    let mut state = State::new(instance);
    lines.iter().map(|&line| state.take(line).1).sum()
}

/// What no choice within `capacity` can exceed: the value of `taken`, and what is left by value
/// per token as if groups cost nothing to open.
fn upper_bound(instance: &Instance, taken: &[u32], capacity: u64) -> f64 {
    let mut state = State::new(instance);
    let mut bound: f64 = taken.iter().map(|&line| state.take(line).0).sum();
    // Names that come with a closed group are free: they count at once.
    for group in 0..instance.groups.len() {
        if !state.open[group] {
            state.open[group] = true;
            bound += state.cover(&instance.groups[group].names);
        }
    }
    let mut rest: Vec<(f64, u32)> = (0..instance.lines.len() as u32)
        .filter_map(|at| {
            let line = &instance.lines[at as usize];
            let (value, tokens) = state.figures(line);
            (value > 0.0).then_some((value, tokens as u32))
        })
        .collect();
    rest.sort_by(|a, b| (b.0 * f64::from(a.1)).total_cmp(&(a.0 * f64::from(b.1))));
    let mut room = capacity;
    for (value, tokens) in rest {
        let part = u64::from(tokens).min(room);
        bound += if tokens == 0 {
            value
        } else {
            value * part as f64 / f64::from(tokens)
        };
        room -= part;
    }
    bound
}
