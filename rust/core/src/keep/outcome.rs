//! The choice made and written down: which lines, then whose edits, counted exactly.

use std::ops::Range;

use super::plain::lowered;
use super::rules::Ruling;
use super::structure::explained;
use super::{FRAGMENT_BYTES, GAP_BYTES, Keeper, Kept, Outcome, Piece, Placed, Squeeze, UNIT};
use crate::coverage::{Cover, Instance, Line, cover, worth};
use crate::elements::Elements;
use crate::error::Result;
use crate::level::Level;
use crate::node::Text;
use crate::salience::index::{is_read, scan};
use crate::shrink::{PartEdit, Span, Wanted, edited, with_text};

/// Identifiers that a stub may name.
const NAMES: usize = 4;

/// An identifier on a long line with what stands right around it.
fn reach(place: Span, line: Span) -> Span {
    let reach = FRAGMENT_BYTES as u32;
    Span::new(
        place.start.saturating_sub(reach).max(line.start),
        place.end.saturating_add(reach).min(line.end),
    )
}

/// A new text, and what was wanted of it.
type Written = (Wanted, PartEdit);

impl<T: Text> Keeper<'_, T> {
    /// Standing instructions within their share, those first that have the form of one, then the
    /// newest.
    fn force_standing(&mut self) {
        let free = 0.4 * self.room.free as f64;
        let share = (0.1 * self.room.budget as f64).min(free) as u64 * UNIT;
        let mut tokens = 0;
        let mut is_open: Vec<bool> = self
            .instance
            .groups
            .iter()
            .map(|group| group.is_open)
            .collect();
        self.standing.sort_unstable();
        for &(_, line) in self.standing.iter().rev() {
            let Line {
                group, tokens: own, ..
            } = self.instance.lines[line as usize];
            let mut cost = u64::from(own);
            if !is_open[group as usize] {
                cost += u64::from(self.instance.groups[group as usize].tokens);
            }
            if tokens + cost > share {
                continue;
            }
            tokens += cost;
            is_open[group as usize] = true;
            self.instance.forced.push(line);
        }
        self.instance.forced.sort_unstable();
        self.instance.forced.dedup();
    }

    pub(super) fn choose(mut self) -> Result<Outcome> {
        self.force_standing();
        let open: u64 = self
            .instance
            .groups
            .iter()
            .filter(|group| group.is_open)
            .map(|group| u64::from(group.tokens))
            .sum();
        let capacity = match self.squeeze {
            Squeeze::All => 0,
            _ => (self.room.target * UNIT).saturating_sub(open),
        };
        let mut taken = cover(&self.instance, capacity);
        if self.squeeze != Squeeze::All {
            self.add_fragments(&mut taken, capacity);
        }
        self.limit(&mut taken);
        let mut made = Vec::new();
        let mut outcome = self.outcome(&taken, &mut made)?;
        // Tokens of lines are estimates: take back the last lines until the count is right.
        for _ in 0..4 {
            if outcome.tokens <= self.room.target.max(1)
                || taken.lines.len() <= self.instance.forced.len()
            {
                break;
            }
            let over = (outcome.tokens - self.room.target) * UNIT;
            self.take_back(&mut taken, over + over / 8);
            taken.value = worth(&self.instance, &taken.lines);
            outcome = self.outcome(&taken, &mut made)?;
        }
        Ok(outcome)
    }

    /// Spends what is left on pieces of long lines, each worth less than in a whole line: after
    /// them, since pieces win by value per token and no complete record would survive.
    fn add_fragments(&mut self, taken: &mut Cover, capacity: u64) {
        let left = capacity.saturating_sub(taken.tokens);
        if self.places.is_empty() || left < UNIT {
            return;
        }
        let mut rest = Instance {
            groups: self.instance.groups.clone(),
            values: self.instance.values.clone(),
            ..Instance::default()
        };
        let covers = |range: &Range<u32>| range.start as usize..range.end as usize;
        for value in &mut rest.values {
            *value *= self.settings.policy.fragment;
        }
        let mut is_taken = vec![false; self.instance.lines.len()];
        for &line in &taken.lines {
            is_taken[line as usize] = true;
            let line = &self.instance.lines[line as usize];
            rest.groups[line.group as usize].is_open = true;
            for &name in &self.instance.names[covers(&line.names)] {
                rest.values[name as usize] = 0.0;
            }
        }
        for group in &mut rest.groups {
            for &name in &self.instance.names[covers(&group.names)] {
                if group.is_open {
                    rest.values[name as usize] = 0.0;
                }
            }
            group.names = 0..0;
        }
        let first = self.instance.lines.len() as u32;
        let mut places = std::mem::take(&mut self.places);
        places.retain(|place| {
            !is_taken[place.line as usize] && rest.values[place.name as usize] > 0.0
        });
        for of_part in places.chunk_by(|a, b| a.part == b.part) {
            let content = &self.transcript.all_parts()[of_part[0].part as usize];
            let elements = with_text(&content.body, Elements::of);
            let span_of = |place: &Placed| {
                let whole = self.spans[place.line as usize];
                elements
                    .as_ref()
                    .and_then(|elements| elements.around(place.span))
                    .unwrap_or_else(|| reach(place.span, whole))
            };
            let mut pieces: Vec<(u32, Span, u32)> = of_part
                .iter()
                .map(|place| (place.line, span_of(place), place.name))
                .collect();
            pieces.sort_unstable();
            pieces.dedup();
            for same in pieces.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
                let (number, span, _) = same[0];
                let line = &self.instance.lines[number as usize];
                let whole = self.spans[number as usize];
                let share = u64::from(line.tokens) * u64::from(span.bytes());
                let tokens = share / u64::from(whole.bytes().max(1)) + UNIT / 2;
                let start = rest.names.len() as u32;
                rest.names.extend(same.iter().map(|(_, _, name)| *name));
                rest.lines.push(Line {
                    group: line.group,
                    tokens: tokens as u32,
                    names: start..rest.names.len() as u32,
                });
                self.fragments.push((number, span));
            }
        }
        let more = cover(&rest, left);
        taken
            .lines
            .extend(more.lines.iter().map(|line| first + line));
        taken.tokens += more.tokens;
        taken.value += more.value;
        taken.upper_bound = taken.upper_bound.max(taken.value);
        self.fragment_lines = rest.lines;
    }

    /// Drops what rules for tools allow no room for, the last lines first.
    fn limit(&self, taken: &mut Cover) {
        for (part, ruling) in &self.rulings {
            let Ruling::AtMost(most) = ruling else {
                continue;
            };
            let at = self.pieces.partition_point(|piece| piece.part < *part);
            let Some(piece) = self.pieces.get(at).filter(|piece| piece.part == *part) else {
                continue;
            };
            let mut left = u64::from(*most) * UNIT;
            taken.lines.retain(|&number| {
                let whole = match (number as usize).checked_sub(self.instance.lines.len()) {
                    None => number,
                    Some(fragment) => self.fragments[fragment].0,
                };
                if !piece.lines.contains(&whole) {
                    return true;
                }
                let tokens = u64::from(self.line(number).tokens);
                let fits = tokens <= left;
                left -= if fits { tokens } else { 0 };
                fits
            });
        }
    }

    fn line(&self, line: u32) -> &Line {
        match self.instance.lines.get(line as usize) {
            Some(line) => line,
            None => &self.fragment_lines[line as usize - self.instance.lines.len()],
        }
    }

    /// Drops the last lines that were taken, forced ones apart, until `tokens` are saved.
    fn take_back(&self, taken: &mut Cover, tokens: u64) {
        let group_of = |line: u32| self.line(line).group as usize;
        let mut members = vec![0u32; self.instance.groups.len()];
        for &line in &taken.lines {
            members[group_of(line)] += 1;
        }
        let mut saved = 0;
        while saved < tokens && taken.lines.len() > self.instance.forced.len() {
            let Some(line) = taken.lines.pop() else {
                return;
            };
            let group = group_of(line);
            members[group] -= 1;
            saved += u64::from(self.line(line).tokens);
            if members[group] == 0 && !self.instance.groups[group].is_open {
                saved += u64::from(self.instance.groups[group].tokens);
            }
        }
    }

    /// The new texts with what was wanted, sorted by part; those in `before` are not made again.
    fn written(&self, mut wanted: Vec<Wanted>, before: &[Written]) -> Result<Vec<Written>> {
        let known = |all: &[Written], one: &Wanted| {
            let at = all.binary_search_by_key(&one.part, |(made, _)| made.part);
            let found = at.ok().and_then(|at| all.get(at));
            found.filter(|(made, _)| made == one).cloned()
        };
        let same: Vec<_> = wanted.iter().filter_map(|one| known(before, one)).collect();
        wanted.retain(|one| known(&same, one).is_none());
        let new = edited(self.transcript, self.settings, &wanted)?;
        let mut all: Vec<_> = wanted.into_iter().zip(new).chain(same).collect();
        all.sort_unstable_by_key(|(one, _)| one.part);
        Ok(all)
    }

    /// Makes the texts, and counts them exactly. `made` holds those of the choice before, of which
    /// the same are taken, and then those of this one.
    fn outcome(&self, taken: &Cover, made: &mut Vec<Written>) -> Result<Outcome> {
        let count = self.instance.lines.len();
        let mut is_taken = vec![false; count + self.fragments.len()];
        let mut is_open: Vec<bool> = self
            .instance
            .groups
            .iter()
            .map(|group| group.is_open)
            .collect();
        for &line in &taken.lines {
            is_taken[line as usize] = true;
            is_open[self.line(line).group as usize] = true;
        }
        let mut fragments: Vec<(u32, Span)> = (count..)
            .zip(&self.fragments)
            .filter(|(line, _)| is_taken[*line])
            .map(|(_, fragment)| *fragment)
            .collect();
        fragments.sort_unstable();
        let mut wanted = Vec::new();
        for (group, step) in self.steps.iter().enumerate() {
            if is_open[group] && !step.is_whole {
                let pieces = self.pieces[step.pieces.clone()].iter();
                wanted.extend(pieces.filter_map(|piece| self.wanted(piece, &is_taken, &fragments)));
            }
        }
        // What is shown already is neither made nor counted again.
        wanted.retain(|one| {
            self.shown_edit(one.part).is_none_or(|edit| {
                edit.kept[..] != one.kept[..] || (one.is_least && edit.tokens > self.marker)
            })
        });
        *made = self.written(wanted, made)?;
        let mut new = made.iter().map(|(_, edit)| edit.clone()).peekable();
        let mut outcome = Outcome {
            density: taken.density * UNIT as f64,
            value: taken.value,
            upper_bound: taken.upper_bound,
            ..Outcome::default()
        };
        for (group, step) in self.steps.iter().enumerate() {
            let shown = &self.plan.shown[step.shown];
            let bounds = self.transcript.steps()[shown.step as usize];
            let parts = self.transcript.part_range(bounds.first as usize).start
                ..self.transcript.part_range(bounds.end as usize - 1).end;
            let mut fresh = Vec::new();
            while let Some(edit) = new.next_if(|edit| (edit.part as usize) < parts.end) {
                fresh.push(edit);
            }
            let kept = if is_open[group] {
                Kept {
                    is_recent: step.is_recent,
                    ..lowered(self.transcript, step.shown, shown, fresh)
                }
            } else {
                Kept {
                    shown: step.shown,
                    level: Level::Gone,
                    tokens: 0,
                    edits: Vec::new(),
                    is_recent: false,
                }
            };
            outcome.tokens += u64::from(kept.tokens);
            outcome.steps.push(kept);
        }
        Ok(outcome)
    }

    /// How a part is shown now, if it is edited.
    fn shown_edit(&self, part: u32) -> Option<&PartEdit> {
        let message = self.transcript.message_of_part(part as usize);
        let step = self.transcript.rows()[message].step;
        let shown = self.plan.find(step)?;
        shown.edits.iter().find(|edit| edit.part == part)
    }

    /// The new text that a piece of an open step asks for, given the lines and the fragments (in
    /// order) that were taken; `None` for what is kept whole.
    fn wanted(
        &self,
        piece: &Piece,
        is_taken: &[bool],
        fragments: &[(u32, Span)],
    ) -> Option<Wanted> {
        let mut spans: Vec<Span> = (piece.lines.start..piece.lines.end)
            .filter(|&line| is_taken[line as usize])
            .map(|line| self.spans[line as usize])
            .filter(|span| piece.is_call || span.bytes() > 0)
            .collect();
        if piece.is_call && !spans.is_empty() {
            return None;
        }
        let from = fragments.partition_point(|(line, _)| *line < piece.lines.start);
        let own = fragments[from..].iter();
        let own = own.take_while(|(line, _)| *line < piece.lines.end);
        spans.extend(own.map(|(_, span)| *span));
        spans.sort_unstable();
        let shown = self.shown_edit(piece.part);
        if !piece.is_call {
            let kept = shown.map(|edit| &edit.kept[..]);
            let content = &self.transcript.all_parts()[piece.part as usize];
            spans = with_text(&content.body, |text| {
                let mut memo = self.memo.borrow_mut();
                explained(text, &spans, kept, || memo.units(piece.part, text))
            });
        }
        // A line as short as the sign of a gap fills it, if it is still there.
        let slack = if shown.is_none() { GAP_BYTES } else { 0 };
        let spans = Span::merged(&spans, slack);
        // What is kept whole needs no new text.
        if matches!(spans[..], [all] if all.start == 0 && all.end >= piece.bytes) {
            return None;
        }
        let names = if spans.is_empty() && !piece.is_call {
            let mut likely = self.likely.borrow_mut();
            let names = likely.entry(piece.part);
            names.or_insert_with(|| self.likely_names(piece)).clone()
        } else {
            Vec::new()
        };
        Some(Wanted {
            part: piece.part,
            message: piece.message,
            kept: spans,
            names: Some(names),
            is_least: self.squeeze == Squeeze::All,
            elements: None,
        })
    }

    /// Identifiers whose newest copy is in this part, the likeliest needed again first.
    fn likely_names(&self, piece: &Piece) -> Vec<String> {
        let content = &self.transcript.all_parts()[piece.part as usize];
        let row = self.transcript.rows()[piece.message as usize];
        if !is_read(content) || self.squeeze == Squeeze::All {
            return Vec::new();
        }
        with_text(&content.body, |text| {
            let mut found: Vec<(f64, usize, &str)> = Vec::new();
            for one in scan(content, text) {
                let known = self.moment.index.get(one.hash);
                let known = known.filter(|known| {
                    known.newest == piece.message && !self.pinned.contains(&one.hash)
                });
                if let Some(known) = known {
                    let value = self.moment.likelihood_unread(one.hash, known, &row);
                    found.push((value, one.start, &text[one.start..one.end]));
                }
            }
            found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            found.dedup_by_key(|(_, _, name)| *name);
            let names = found.into_iter().map(|(_, _, name)| name.to_owned());
            names.take(NAMES).collect()
        })
    }
}
