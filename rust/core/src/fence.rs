//! Tags around text that is data: none that the text itself writes. Linear in the text, however
//! many tags it makes up.

use std::collections::BTreeSet;

/// Where a tag's name must not occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Anywhere in the text.
    Text,
    /// Behind `<` or `</`: the name is a plain word that texts may hold.
    Tags,
}

/// The first of `base`, `base-2`, `base-3` and so on that `text` does not hold, not even as the
/// start of a longer number.
pub(crate) fn free_tag(base: &str, text: &str, reach: Reach) -> String {
    let mut is_taken = false;
    let mut taken = BTreeSet::new();
    let step = base.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    // Occurrences may overlap: what matches does not skip a whole name.
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(base)) {
        let at = from + at;
        from = at + step;
        let before = &text[..at];
        if reach == Reach::Tags && !before.ends_with('<') && !before.ends_with("</") {
            continue;
        }
        is_taken = true;
        let number = text[at + base.len()..].strip_prefix('-').unwrap_or("");
        let digits = number.bytes().take_while(u8::is_ascii_digit).take(18);
        // A tag must not even begin like one of the text's: 2 is taken by 27.
        let mut number = 0;
        for digit in digits {
            number = number * 10 + u64::from(digit - b'0');
            taken.insert(number);
        }
    }
    // One number more than there are taken ones: one is always free.
    let mut numbers = 2..taken.len() as u64 + 3;
    let free = numbers.find(|number| !taken.contains(number));
    match free.filter(|_| is_taken) {
        Some(number) => format!("{base}-{number}"),
        None => base.to_owned(),
    }
}
