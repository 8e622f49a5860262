//! Scripts whose words are not told by spaces alone: pairs of characters.

use super::{Class, class_of};

/// What stands at the end of a Korean word and says its part in the sentence, longest first where
/// one ends with another, and what must stand before it.
const PARTICLES: [(&str, Before); 43] = [
    ("에서부터", Before::Any),
    ("으로부터", Before::Any),
    ("에게서", Before::Any),
    ("에서는", Before::Any),
    ("에서도", Before::Any),
    ("에서의", Before::Any),
    ("에게는", Before::Any),
    ("으로는", Before::Any),
    ("으로서", Before::Any),
    ("으로써", Before::Any),
    ("으로도", Before::Any),
    ("까지는", Before::Any),
    ("까지도", Before::Any),
    ("이라고", Before::Any),
    ("이라는", Before::Any),
    ("보다는", Before::Any),
    ("한테서", Before::Any),
    ("에서", Before::Any),
    ("에게", Before::Any),
    ("에는", Before::Any),
    ("에도", Before::Any),
    ("으로", Before::Any),
    ("로는", Before::Any),
    ("로서", Before::Any),
    ("로써", Before::Any),
    ("과의", Before::Any),
    ("와의", Before::Any),
    ("와는", Before::Any),
    ("까지", Before::Any),
    ("부터", Before::Any),
    ("보다", Before::Any),
    ("처럼", Before::Any),
    ("한테", Before::Any),
    ("은", Before::Consonant),
    ("는", Before::Vowel),
    ("을", Before::Consonant),
    ("를", Before::Vowel),
    ("이", Before::Consonant),
    ("가", Before::Vowel),
    ("과", Before::Consonant),
    ("와", Before::Vowel),
    ("의", Before::Any),
    ("에", Before::Any),
];

/// Particles that many nouns end with too: taken off only behind three syllables or more.
const DOUBTFUL: [&str; 3] = ["도", "로", "만"];

/// The particles that stand behind a single syllable often enough.
const CERTAIN: [&str; 4] = ["은", "는", "을", "를"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Any,
    Consonant,
    Vowel,
}

/// One run of characters, read and then given as terms.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    run: String,
    term: String,
}

impl Pairs {
    /// Reads the run of `class` at the start of a text; what is left of it.
    pub(super) fn read<'a>(&mut self, text: &'a str, class: Class) -> &'a str {
        self.run.clear();
        for (at, char) in text.char_indices() {
            match class_of(char) {
                Class::Mark => {}
                found if found == class => self.run.push(char),
                _ => return text.get(at..).unwrap_or_default(),
            }
        }
        ""
    }

    /// The terms of a Korean word. `number` is the number it stands behind (`3월`); behind a word
    /// (`is_glued`) a particle alone is no term.
    pub(super) fn give_hangul(
        &mut self,
        number: Option<&str>,
        is_glued: bool,
        found: &mut impl FnMut(&str),
    ) {
        if is_glued && is_particle(&self.run) {
            return;
        }
        if let (Some(number), Some(unit)) = (number, self.run.chars().next()) {
            self.term.clear();
            self.term.push_str(number);
            self.term.push(unit);
            found(&self.term);
        }
        pairs_of(without_particle(&self.run), found);
    }

    /// The terms of a run without spaces. A Han character alone between kana is often a word.
    pub(super) fn give_dense(&mut self, found: &mut impl FnMut(&str)) {
        pairs_of(&self.run, found);
        let mut chars = self.run.char_indices().peekable();
        let mut before_is_han = false;
        while let Some((at, char)) = chars.next() {
            let is_han = !is_kana(char);
            let next = chars.peek().copied();
            let after_is_han = next.is_some_and(|(_, next)| !is_kana(next));
            let is_only = at == 0 && next.is_none();
            if is_han && !before_is_han && !after_is_han && !is_only {
                found(self.run.get(at..at + char.len_utf8()).unwrap_or_default());
            }
            before_is_han = is_han;
        }
    }
}

fn is_kana(char: char) -> bool {
    matches!(char, '\u{3040}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}')
}

/// Each two neighbours; one character alone is a term itself.
fn pairs_of(run: &str, found: &mut impl FnMut(&str)) {
    let mut starts = run.char_indices().map(|(at, _)| at);
    let (mut first, mut second) = (starts.next(), starts.next());
    if second.is_none() && first.is_some() {
        found(run);
    }
    while let (Some(from), Some(middle)) = (first, second) {
        let next = starts.next();
        let end = next.unwrap_or(run.len());
        found(run.get(from..end).unwrap_or_default());
        (first, second) = (Some(middle), next);
    }
}

fn is_particle(run: &str) -> bool {
    DOUBTFUL.contains(&run) || PARTICLES.iter().any(|(particle, _)| *particle == run)
}

/// A Korean word without the particle at its end. What is left has two syllables, one where the
/// particle is certain.
fn without_particle(word: &str) -> &str {
    for (particle, before) in PARTICLES {
        let Some(stem) = word.strip_suffix(particle) else {
            continue;
        };
        let Some(last) = stem.chars().next_back() else {
            continue;
        };
        let has_consonant = ends_in_consonant(last);
        let agrees = match before {
            Before::Any => true,
            Before::Consonant => has_consonant,
            Before::Vowel => !has_consonant,
        };
        let is_long = stem.chars().nth(1).is_some();
        if agrees && (is_long || CERTAIN.contains(&particle)) {
            return stem;
        }
    }
    DOUBTFUL
        .iter()
        .find_map(|particle| word.strip_suffix(particle))
        .filter(|stem| stem.chars().nth(2).is_some())
        .unwrap_or(word)
}

/// Whether a syllable has a final consonant: 28 codes for each pair of initial and vowel, the first
/// of them without one (The Unicode Standard, section 3.12).
fn ends_in_consonant(syllable: char) -> bool {
    u32::from(syllable)
        .checked_sub(0xAC00)
        .is_some_and(|code| code % 28 != 0)
}
