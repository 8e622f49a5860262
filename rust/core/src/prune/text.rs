//! Shortening plain text: head and tail, cut at line boundaries where there are any.

/// The head and the tail of `text` that together take about `max_bytes`, two thirds of it head,
/// and whether anything was left out between them.
///
/// Cuts fall after a line end if one lies in the last half of the piece, else at white space, else
/// between characters. Returns `None` if nothing would be left out.
pub fn head_and_tail(text: &str, max_bytes: usize) -> Option<(&str, &str)> {
    if text.len() <= max_bytes {
        return None;
    }
    let head = cut_head(text, max_bytes * 2 / 3);
    let tail = cut_tail(&text[head.len()..], max_bytes - max_bytes * 2 / 3);
    (head.len() + tail.len() < text.len()).then_some((head, tail))
}

fn cut_head(text: &str, max_bytes: usize) -> &str {
    let end = text.floor_char_boundary(max_bytes);
    let piece = &text[..end];
    let half = piece.len() / 2;
    if let Some(at) = piece.rfind('\n').filter(|&at| at >= half) {
        return &piece[..=at];
    }
    match piece
        .char_indices()
        .rfind(|(_, character)| character.is_whitespace())
    {
        Some((at, _)) if at >= half => &piece[..at],
        _ => piece,
    }
}

fn cut_tail(text: &str, max_bytes: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(max_bytes));
    let piece = &text[start..];
    let half = piece.len() / 2;
    if let Some(at) = piece.find('\n').filter(|&at| at < half) {
        return &piece[at + 1..];
    }
    match piece
        .char_indices()
        .find(|(_, character)| character.is_whitespace())
    {
        Some((at, space)) if at < half => &piece[at + space.len_utf8()..],
        _ => piece,
    }
}
