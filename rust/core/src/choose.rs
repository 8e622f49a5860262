//! The choice: one option per item, as much value as possible, within a capacity.
//!
//! This is the multiple-choice knapsack problem. Options are first reduced to their upper convex
//! hull, then upgraded in order of value gained per token, skipping what does not fit. Few items
//! (where one misfit weighs most) get an exact search with the greedy value as its first bound.
//! Cost: O(k log k) for k options in all; the exact search is bounded by [`MAX_NODES`].

/// One way to keep an item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// What it costs.
    pub tokens: u32,
    /// What it preserves; finite and not negative.
    pub value: f64,
}

/// Items up to this number are searched exactly.
pub const EXACT_ITEMS: usize = 16;

/// Nodes the exact search may visit before it settles for the best found.
pub const MAX_NODES: u32 = 20_000;

/// What was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// The index of the chosen option, one per item.
    pub options: Vec<usize>,
    /// Tokens of the chosen options.
    pub tokens: u64,
    /// Value of the chosen options.
    pub value: f64,
    /// Whether the capacity holds them. If not, every item has its cheapest option.
    pub fits: bool,
    /// No choice within the capacity is worth more than this.
    pub upper_bound: f64,
}

/// An upgrade along the hull of one item.
#[derive(Clone, Copy, Debug)]
struct Upgrade {
    item: usize,
    option: usize,
    tokens: u32,
    value: f64,
}

/// Chooses one option of each item within `capacity` tokens.
///
/// Each item has at least one option; the cheapest is what it falls back to. Ties go to the later
/// item (the newer step).
pub fn choose<O: AsRef<[Choice]>>(items: &[O], capacity: u64) -> Chosen {
    let floors: Vec<usize> = items.iter().map(|item| cheapest(item.as_ref())).collect();
    let floor = total(items, &floors);
    if floor.0 > capacity {
        return Chosen {
            options: floors,
            tokens: floor.0,
            value: floor.1,
            fits: false,
            upper_bound: floor.1,
        };
    }
    let mut upgrades = Vec::new();
    for (item, options) in items.iter().enumerate() {
        hull(item, options.as_ref(), floors[item], &mut upgrades);
    }
    // Hulls are concave, so this order never takes an item's second upgrade before its first.
    upgrades.sort_by(|a, b| {
        let left = a.value * f64::from(b.tokens);
        let right = b.value * f64::from(a.tokens);
        right
            .total_cmp(&left)
            .then(b.item.cmp(&a.item))
            .then(a.option.cmp(&b.option))
    });
    let mut chosen = floors.clone();
    let mut room = capacity - floor.0;
    let mut value = floor.1;
    let mut bound = floor.1;
    let mut bound_room = room;
    let mut blocked = vec![false; items.len()];
    for upgrade in &upgrades {
        // The bound takes the upgrades in order and a fraction of the first that does not fit.
        if bound_room > 0 {
            let taken = u64::from(upgrade.tokens).min(bound_room);
            bound += upgrade.value * taken as f64 / f64::from(upgrade.tokens.max(1));
            bound_room -= taken;
        }
        if blocked[upgrade.item] || u64::from(upgrade.tokens) > room {
            blocked[upgrade.item] = true;
            continue;
        }
        chosen[upgrade.item] = upgrade.option;
        room -= u64::from(upgrade.tokens);
        value += upgrade.value;
    }
    fill(items, &mut chosen, &mut room, &mut value);
    if items.len() <= EXACT_ITEMS {
        let mut search = Search {
            items: items.iter().map(AsRef::as_ref).collect(),
            upgrades: &upgrades,
            best: chosen,
            best_value: value,
            current: floors,
            nodes: 0,
        };
        search.run(capacity);
        chosen = search.best;
    }
    let (tokens, value) = total(items, &chosen);
    Chosen {
        options: chosen,
        tokens,
        value,
        fits: true,
        upper_bound: bound.max(value),
    }
}

/// Spends what is left: for each item, newest first, the best option that still fits.
fn fill<O: AsRef<[Choice]>>(items: &[O], chosen: &mut [usize], room: &mut u64, value: &mut f64) {
    for (item, options) in items.iter().enumerate().rev() {
        let now = options.as_ref()[chosen[item]];
        let limit = *room + u64::from(now.tokens);
        let better =
            options.as_ref().iter().enumerate().filter(|(_, option)| {
                option.value > now.value && u64::from(option.tokens) <= limit
            });
        if let Some((index, option)) = better.max_by(|a, b| a.1.value.total_cmp(&b.1.value)) {
            *room = limit - u64::from(option.tokens);
            *value += option.value - now.value;
            chosen[item] = index;
        }
    }
}

fn cheapest(options: &[Choice]) -> usize {
    let mut best = 0;
    for (index, option) in options.iter().enumerate() {
        let now = options[best];
        if option.tokens < now.tokens || (option.tokens == now.tokens && option.value > now.value) {
            best = index;
        }
    }
    best
}

fn total<O: AsRef<[Choice]>>(items: &[O], chosen: &[usize]) -> (u64, f64) {
    items
        .iter()
        .zip(chosen)
        .fold((0, 0.0), |(tokens, value), (item, &option)| {
            let option = item.as_ref()[option];
            (tokens + u64::from(option.tokens), value + option.value)
        })
}

/// Appends the upgrades along the upper hull of one item, starting at its floor.
fn hull(item: usize, options: &[Choice], floor: usize, upgrades: &mut Vec<Upgrade>) {
    let mut order: Vec<usize> = (0..options.len()).collect();
    order.sort_by(|&a, &b| {
        options[a]
            .tokens
            .cmp(&options[b].tokens)
            .then(options[b].value.total_cmp(&options[a].value))
    });
    let start = upgrades.len();
    for option in order {
        let mut from = upgrades[start..]
            .last()
            .map_or(floor, |upgrade| upgrade.option);
        if options[option].value <= options[from].value {
            continue;
        }
        // Drop the last corner while the line to the new point passes above it.
        while upgrades.len() > start {
            let last = upgrades[upgrades.len() - 1];
            let gain = options[option].value - options[from].value;
            let cost = f64::from(options[option].tokens - options[from].tokens);
            if gain * f64::from(last.tokens) < last.value * cost {
                break;
            }
            upgrades.pop();
            from = upgrades[start..]
                .last()
                .map_or(floor, |upgrade| upgrade.option);
        }
        upgrades.push(Upgrade {
            item,
            option,
            tokens: options[option].tokens - options[from].tokens,
            value: options[option].value - options[from].value,
        });
    }
}

/// Depth-first search over the items with the fractional bound of the items that are left.
struct Search<'a> {
    items: Vec<&'a [Choice]>,
    upgrades: &'a [Upgrade],
    best: Vec<usize>,
    best_value: f64,
    current: Vec<usize>,
    nodes: u32,
}

impl Search<'_> {
    fn run(&mut self, capacity: u64) {
        self.visit(0, capacity, 0.0);
    }

    fn visit(&mut self, item: usize, room: u64, value: f64) {
        if self.nodes >= MAX_NODES {
            return;
        }
        self.nodes += 1;
        if item == self.items.len() {
            if value > self.best_value {
                self.best_value = value;
                self.best.clone_from(&self.current);
            }
            return;
        }
        if self.bound(item, room, value) <= self.best_value {
            return;
        }
        let options = self.items[item];
        let mut order: Vec<usize> = (0..options.len()).collect();
        order.sort_by(|&a, &b| options[b].value.total_cmp(&options[a].value));
        for option in order {
            let tokens = u64::from(options[option].tokens);
            if tokens <= room {
                self.current[item] = option;
                self.visit(item + 1, room - tokens, value + options[option].value);
            }
        }
    }

    /// What the items from `item` on could add at best; negative infinity if they cannot fit.
    fn bound(&self, item: usize, room: u64, value: f64) -> f64 {
        let mut value = value;
        let mut room = room;
        for options in &self.items[item..] {
            let floor = options[cheapest(options)];
            if u64::from(floor.tokens) > room {
                return f64::NEG_INFINITY;
            }
            room -= u64::from(floor.tokens);
            value += floor.value;
        }
        for upgrade in self.upgrades.iter().filter(|upgrade| upgrade.item >= item) {
            let taken = u64::from(upgrade.tokens).min(room);
            value += upgrade.value * taken as f64 / f64::from(upgrade.tokens.max(1));
            room -= taken;
            if room == 0 {
                break;
            }
        }
        value
    }
}
