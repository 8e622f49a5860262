//! Where something may start: one pass with an automaton over the prefixes and names, one over the
//! digits.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::{Span, blocks, digits, email, iban, keys, named, urls};

/// What a found piece of text starts.
#[derive(Clone, Copy, Debug)]
enum Trigger {
    At,
    Url,
    Block,
    Jwt,
    Key(usize),
    Bearer(named::Scheme),
    Name(named::Sort),
}

struct Table {
    automaton: Option<AhoCorasick>,
    triggers: Vec<Trigger>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut patterns: Vec<&[u8]> = Vec::new();
    let mut triggers = Vec::new();
    let mut add = |pattern: &'static str, trigger| {
        patterns.push(pattern.as_bytes());
        triggers.push(trigger);
    };
    add("@", Trigger::At);
    add("%40", Trigger::At);
    add("://", Trigger::Url);
    add("-----BEGIN ", Trigger::Block);
    add("eyJ", Trigger::Jwt);
    for (index, rule) in keys::RULES.iter().enumerate() {
        add(rule.prefix, Trigger::Key(index));
    }
    for (name, scheme) in named::SCHEMES {
        add(name, Trigger::Bearer(scheme));
    }
    for (name, sort) in named::NAMES {
        add(name, Trigger::Name(sort));
    }
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostFirst)
        .kind(Some(AhoCorasickKind::DFA))
        .build(&patterns)
        .ok();
    Table {
        automaton,
        triggers,
    }
});

/// Every value of every kind, in no order, maybe overlapping.
pub(super) fn scan(text: &[u8]) -> Vec<Span> {
    let mut found = Vec::new();
    let table = &*TABLE;
    let Some(automaton) = &table.automaton else {
        return found;
    };
    // One past the newest value that a name or a URL gave: what is inside is not read again.
    let mut read = 0;
    for hit in automaton.find_iter(text) {
        let (start, end) = (hit.start(), hit.end());
        let Some(trigger) = table.triggers.get(hit.pattern().as_usize()) else {
            continue;
        };
        let before = found.len();
        match *trigger {
            Trigger::Url | Trigger::Name(_) if start < read => {}
            Trigger::At => email::find(text, start, end, &mut found),
            Trigger::Url => urls::find(text, start, end, &mut found),
            Trigger::Block => blocks::find(text, start, end, &mut found),
            Trigger::Jwt => keys::find_jwt(text, start, &mut found),
            Trigger::Key(index) => keys::find(text, start, index, &mut found),
            Trigger::Bearer(scheme) => named::find_bearer(text, start, end, scheme, &mut found),
            Trigger::Name(sort) => named::find(text, start, end, sort, &mut found),
        }
        if let (Trigger::Url | Trigger::Name(_), Some(span)) = (trigger, found.get(before)) {
            read = span.end;
        }
    }
    digits::find_all(text, &mut found);
    iban::find_all(text, &mut found);
    found
}
