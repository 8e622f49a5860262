//! The choice of lines: the same as an obvious greedy's, near the best there is, within its bound.

use proptest::prelude::*;
use satchel_core::coverage::{Cover, EXACT_LINES, Group, Instance, Line, cover};

/// A choice as plain sets of names, as the oracles see it.
struct Plain<'a> {
    instance: &'a Instance,
    covered: Vec<bool>,
    open: Vec<bool>,
    tokens: u64,
    value: f64,
}

impl<'a> Plain<'a> {
    fn new(instance: &'a Instance) -> Self {
        let mut plain = Self {
            instance,
            covered: vec![false; instance.values.len()],
            open: vec![false; instance.groups.len()],
            tokens: 0,
            value: 0.0,
        };
        for (group, content) in instance.groups.iter().enumerate() {
            if content.is_open {
                plain.open[group] = true;
                for name in plain.names(content.names.clone()) {
                    plain.covered[name] = true;
                }
            }
        }
        for &line in &instance.forced {
            plain.take(line as usize);
        }
        plain
    }

    fn names(&self, range: std::ops::Range<u32>) -> Vec<usize> {
        let names = &self.instance.names[range.start as usize..range.end as usize];
        names.iter().map(|&name| name as usize).collect()
    }

    /// Value and tokens of a line now.
    fn figures(&self, line: usize) -> (f64, u64) {
        let line = &self.instance.lines[line];
        let mut names = self.names(line.names.clone());
        let mut tokens = u64::from(line.tokens);
        let group = &self.instance.groups[line.group as usize];
        if !self.open[line.group as usize] {
            tokens += u64::from(group.tokens);
            for name in self.names(group.names.clone()) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let mut value = 0.0;
        for name in names {
            if !self.covered[name] {
                value += self.instance.values[name];
            }
        }
        (value, tokens)
    }

    fn take(&mut self, line: usize) {
        let (value, tokens) = self.figures(line);
        self.tokens += tokens;
        self.value += value;
        let line = &self.instance.lines[line];
        let group = line.group as usize;
        for name in self.names(line.names.clone()) {
            self.covered[name] = true;
        }
        if !self.open[group] {
            self.open[group] = true;
            for name in self.names(self.instance.groups[group].names.clone()) {
                self.covered[name] = true;
            }
        }
    }
}

/// Looks at every line at every step and takes the best. What does not fit is out, unless its group
/// opens later and makes it cheaper.
fn slow_greedy(instance: &Instance, capacity: u64) -> Vec<u32> {
    let mut plain = Plain::new(instance);
    let mut taken = instance.forced.clone();
    let mut left: Vec<usize> = (0..instance.lines.len())
        .filter(|line| !taken.contains(&(*line as u32)))
        .collect();
    let mut aside: Vec<usize> = Vec::new();
    loop {
        let offers = left.iter().map(|&line| {
            let (value, tokens) = plain.figures(line);
            (value / tokens.max(1) as f64, value, tokens, line)
        });
        let best = offers.filter(|offer| offer.1 > 0.0).max_by(|a, b| {
            a.0.total_cmp(&b.0)
                .then(a.1.total_cmp(&b.1))
                .then(b.3.cmp(&a.3))
        });
        let Some((_, _, tokens, line)) = best else {
            return taken;
        };
        let group = instance.lines[line].group;
        left.retain(|&other| other != line);
        if plain.tokens + tokens > capacity {
            if !plain.open[group as usize] {
                aside.push(line);
            }
            continue;
        }
        let opens = !plain.open[group as usize];
        plain.take(line);
        taken.push(line as u32);
        if opens {
            let waits = |line: &&usize| instance.lines[**line].group == group;
            left.extend(aside.iter().filter(waits));
            aside.retain(|line| instance.lines[*line].group != group);
        }
    }
}

fn brute_force(instance: &Instance, capacity: u64) -> f64 {
    let free: Vec<usize> = (0..instance.lines.len())
        .filter(|line| !instance.forced.contains(&(*line as u32)))
        .collect();
    (0u32..1 << free.len())
        .filter_map(|set| {
            let mut plain = Plain::new(instance);
            let forced = plain.tokens;
            for (bit, &line) in free.iter().enumerate() {
                if set >> bit & 1 == 1 {
                    plain.take(line);
                }
            }
            (plain.tokens <= capacity.max(forced)).then_some(plain.value)
        })
        .fold(0.0, f64::max)
}

fn instances(most_lines: usize) -> impl Strategy<Value = (Instance, u64)> {
    let names = prop::collection::btree_set(0u32..14, 0..5);
    let groups = prop::collection::vec((0u32..30, names.clone(), prop::bool::weighted(0.2)), 1..6);
    let lines = prop::collection::vec(
        (any::<prop::sample::Index>(), 1u32..40, names),
        0..most_lines,
    );
    // Sums of these are exact, so that equal choices tie in any order of adding.
    let values =
        prop::collection::vec((1u32..1000).prop_map(|value| f64::from(value) / 1024.0), 14);
    (groups, lines, values, prop::bool::weighted(0.3), 0u64..250).prop_map(
        |(groups, lines, values, forces, capacity)| {
            let mut instance = Instance {
                values,
                ..Instance::default()
            };
            let push = |all: &mut Vec<u32>, names: std::collections::BTreeSet<u32>| {
                let start = all.len() as u32;
                all.extend(names);
                start..all.len() as u32
            };
            for (tokens, names, is_open) in groups {
                let names = push(&mut instance.names, names);
                instance.groups.push(Group {
                    tokens,
                    names,
                    is_open,
                });
            }
            for (group, tokens, names) in lines {
                let names = push(&mut instance.names, names);
                let group = group.index(instance.groups.len()) as u32;
                instance.lines.push(Line {
                    group,
                    tokens,
                    names,
                });
            }
            if forces && !instance.lines.is_empty() {
                instance.forced = vec![0];
            }
            (instance, capacity)
        },
    )
}

fn check(instance: &Instance, capacity: u64, cover: &Cover) {
    let mut plain = Plain::new(instance);
    let forced = plain.tokens;
    for &line in &cover.lines[instance.forced.len()..] {
        plain.take(line as usize);
    }
    assert_eq!(plain.tokens, cover.tokens);
    assert!((plain.value - cover.value).abs() < 1e-9);
    assert!(cover.tokens <= capacity.max(forced));
    let mut once = cover.lines.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), cover.lines.len());
}

proptest! {
    #[test]
    fn matches_the_slow_greedy((instance, capacity) in instances(60)) {
        prop_assume!(instance.lines.len() > EXACT_LINES);
        let found = cover(&instance, capacity);
        check(&instance, capacity, &found);
        prop_assert_eq!(&found.lines, &slow_greedy(&instance, capacity));
        prop_assert!(found.upper_bound >= found.value);
    }

    #[test]
    fn is_near_brute_force((instance, capacity) in instances(EXACT_LINES + 1)) {
        let found = cover(&instance, capacity);
        check(&instance, capacity, &found);
        let best = brute_force(&instance, capacity);
        prop_assert!(found.value >= 0.95 * best - 1e-9, "{} of {best}", found.value);
        prop_assert!(found.upper_bound >= best - 1e-9, "bound {} below {best}", found.upper_bound);
    }
}

#[test]
fn a_line_that_fell_is_looked_at_again() {
    // Line 1 seems second best; once line 0 holds its name, line 2 is better.
    let instance = Instance {
        groups: vec![Group {
            is_open: true,
            ..Group::default()
        }],
        lines: [(10, 0..2), (10, 2..4), (10, 4..5)]
            .into_iter()
            .cycle()
            .take(15)
            .map(|(tokens, names)| Line {
                group: 0,
                tokens,
                names,
            })
            .collect(),
        names: vec![0, 1, 1, 2, 3],
        values: vec![1.0, 0.9, 0.1, 0.5],
        forced: vec![],
    };
    let found = cover(&instance, 20);
    assert_eq!(found.lines, [0, 2]);
}

#[test]
fn an_open_group_makes_its_lines_cheaper() {
    // Alone, line 1 is worth less per token than line 2; in the open group it is worth more.
    let mut lines: Vec<Line> = vec![
        Line {
            group: 0,
            tokens: 10,
            names: 0..1,
        },
        Line {
            group: 0,
            tokens: 10,
            names: 1..2,
        },
        Line {
            group: 1,
            tokens: 20,
            names: 2..3,
        },
    ];
    // More lines than are searched exactly, all without a name.
    lines.extend((0..EXACT_LINES).map(|_| Line {
        group: 1,
        tokens: 1,
        names: 0..0,
    }));
    let instance = Instance {
        groups: vec![
            Group {
                tokens: 30,
                ..Group::default()
            },
            Group::default(),
        ],
        lines,
        names: vec![0, 1, 2],
        values: vec![9.0, 0.8, 0.9],
        forced: vec![],
    };
    assert_eq!(cover(&instance, 55).lines, [0, 1]);
    assert_eq!(cover(&instance, 1000).lines, [0, 1, 2]);
}

#[test]
fn forced_lines_stay_whatever_they_cost() {
    let instance = Instance {
        groups: vec![Group {
            tokens: 5,
            ..Group::default()
        }],
        lines: vec![
            Line {
                group: 0,
                tokens: 50,
                names: 0..0,
            },
            Line {
                group: 0,
                tokens: 1,
                names: 0..1,
            },
        ],
        names: vec![0],
        values: vec![1.0],
        forced: vec![0],
    };
    let found = cover(&instance, 10);
    assert_eq!((found.lines, found.tokens), (vec![0], 55));
    assert_eq!(cover(&instance, 56).lines, [0, 1]);
}
