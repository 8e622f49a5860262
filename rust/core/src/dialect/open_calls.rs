//! Calls that wait for their results, found by id or by name without a look at those answered.
//!
//! Every question has one answer: of the calls that match, the first of the newest turn with an
//! open one. A history costs time in proportion to its calls and results, times the logarithm of
//! its different ids, however often one id repeats.

use std::collections::BTreeMap;

/// What a result finds among the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The first open call of the newest turn that has one.
    Open(usize),
    /// No open call matches; this is the last one that was.
    Answered(usize),
    /// No call matches.
    Unknown,
}

/// The calls of a history, by number; classes `C` tell apart what a result without an id may ask.
#[derive(Clone, Debug)]
pub(crate) struct OpenCalls<C> {
    /// Of each call, whether it has no result yet.
    is_open: Vec<bool>,
    by_id: BTreeMap<String, Queue>,
    classes: BTreeMap<C, Class>,
}

#[derive(Clone, Debug, Default)]
struct Class {
    all: Queue,
    nameless: Queue,
    by_name: BTreeMap<String, Queue>,
}

/// Calls in order, those of one turn together.
#[derive(Clone, Debug, Default)]
struct Queue {
    turns: Vec<Turn>,
    last: Option<usize>,
}

#[derive(Clone, Debug)]
struct Turn {
    number: usize,
    calls: Vec<usize>,
    /// How many of the first calls are known to have their results.
    passed: usize,
}

impl Queue {
    fn push(&mut self, turn: usize, call: usize) {
        self.last = Some(call);
        match self.turns.last_mut().filter(|last| last.number == turn) {
            Some(last) => last.calls.push(call),
            None => self.turns.push(Turn {
                number: turn,
                calls: vec![call],
                passed: 0,
            }),
        }
    }

    /// Turn and number of the first open call of the newest turn. Calls do not open again, so what
    /// is passed here is never looked at a second time.
    fn first(&mut self, is_open: &[bool]) -> Option<(usize, usize)> {
        while let Some(turn) = self.turns.last_mut() {
            while let Some(&call) = turn.calls.get(turn.passed) {
                if is_open.get(call).copied().unwrap_or(false) {
                    return Some((turn.number, call));
                }
                turn.passed += 1;
            }
            self.turns.pop();
        }
        None
    }
}

/// The queue under a key.
fn queue_of<'a>(queues: &'a mut BTreeMap<String, Queue>, key: &str) -> &'a mut Queue {
    queues.entry(key.to_owned()).or_default()
}

impl<C> Default for OpenCalls<C> {
    fn default() -> Self {
        Self {
            is_open: Vec::new(),
            by_id: BTreeMap::new(),
            classes: BTreeMap::new(),
        }
    }
}

impl<C: Copy + Ord> OpenCalls<C> {
    /// Takes in a call; its number is how many came before it. Turns must not go back.
    pub(crate) fn push(&mut self, turn: usize, id: Option<&str>, class: C, name: Option<&str>) {
        let call = self.is_open.len();
        self.is_open.push(true);
        if let Some(id) = id {
            queue_of(&mut self.by_id, id).push(turn, call);
        }
        let class = self.classes.entry(class).or_default();
        class.all.push(turn, call);
        let Some(name) = name else {
            class.nameless.push(turn, call);
            return;
        };
        queue_of(&mut class.by_name, name).push(turn, call);
    }

    /// Marks a call as answered.
    pub(crate) fn close(&mut self, call: usize) {
        if let Some(is_open) = self.is_open.get_mut(call) {
            *is_open = false;
        }
    }

    /// Whether a call has no result yet.
    pub(crate) fn is_open(&self, call: usize) -> bool {
        self.is_open.get(call).copied().unwrap_or(false)
    }

    /// The call with this id.
    pub(crate) fn with_id(&mut self, id: &str) -> Found {
        let Some(queue) = self.by_id.get_mut(id) else {
            return Found::Unknown;
        };
        match (queue.first(&self.is_open), queue.last) {
            (Some((_, call)), _) => Found::Open(call),
            (None, Some(call)) => Found::Answered(call),
            (None, None) => Found::Unknown,
        }
    }

    /// The open call of this class and exactly this name.
    pub(crate) fn named(&mut self, class: C, name: &str) -> Option<usize> {
        let class = self.classes.get_mut(&class)?;
        let queue = class.by_name.get_mut(name)?;
        queue.first(&self.is_open).map(|(_, call)| call)
    }

    /// The call of one of these classes whose name fits: it is the same, or one side has none.
    pub(crate) fn fitting(&mut self, classes: &[C], name: Option<&str>) -> Found {
        let mut open: Option<(usize, usize)> = None;
        let mut answered = None;
        for class in classes {
            let Some(class) = self.classes.get_mut(class) else {
                continue;
            };
            let queues = match name {
                None => [Some(&mut class.all), None],
                Some(name) => [class.by_name.get_mut(name), Some(&mut class.nameless)],
            };
            for queue in queues.into_iter().flatten() {
                answered = answered.max(queue.last);
                let Some((turn, call)) = queue.first(&self.is_open) else {
                    continue;
                };
                let is_better = open
                    .is_none_or(|(newest, first)| turn > newest || turn == newest && call < first);
                if is_better {
                    open = Some((turn, call));
                }
            }
        }
        match (open, answered) {
            (Some((_, call)), _) => Found::Open(call),
            (None, Some(call)) => Found::Answered(call),
            (None, None) => Found::Unknown,
        }
    }
}

/// Calls whose class is whether they have an id.
impl OpenCalls<bool> {
    /// The open call that a result answers best: one of its id; else, of those whose name fits, one
    /// without an id, or, where the result has none, any. The first of several.
    pub(crate) fn best(&mut self, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        if let Some(id) = id
            && let Found::Open(call) = self.with_id(id)
        {
            return Some(call);
        }
        let classes: &[bool] = if id.is_some() {
            &[false]
        } else {
            &[false, true]
        };
        classes
            .iter()
            .find_map(|class| match self.fitting(&[*class], name) {
                Found::Open(call) => Some(call),
                _ => None,
            })
    }
}
