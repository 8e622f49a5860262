//! Words that are in nearly every text and so tell little about one.

/// The stop words as [`super::analyse`] gives them, sorted: English function words, and Korean
/// words that refer and connect.
pub const STOP_WORDS: [&str; 138] = [
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "ani", "are", "as", "at",
    "be", "been", "befor", "both", "but", "by", "can", "could", "did", "do", "doe", "done", "down",
    "each", "few", "for", "from", "further", "had", "has", "have", "he", "her", "here", "him",
    "his", "how", "i", "if", "in", "into", "is", "it", "just", "me", "more", "most", "my", "no",
    "nor", "not", "now", "of", "off", "on", "onc", "onli", "or", "other", "our", "out", "over",
    "own", "same", "she", "should", "so", "some", "such", "than", "that", "the", "their", "them",
    "then", "there", "these", "they", "this", "those", "through", "to", "too", "under", "until",
    "up", "veri", "was", "we", "were", "what", "when", "where", "whi", "which", "while", "who",
    "whom", "whose", "will", "with", "would", "you", "your", "경우", "그것", "그래", "그러",
    "그런", "그리", "니다", "대해", "때문", "떻게", "래서", "러나", "런데", "리고", "습니", "어떤",
    "어떻", "우리", "위해", "이것", "이다", "입니", "있는", "있다", "저것", "지만", "통해", "하",
    "하지", "합니", "했다",
];

/// Whether a term is a stop word.
///
/// # Example
/// ```
/// use satchel_core::analyse::is_stop_word;
/// assert!(is_stop_word("the") && !is_stop_word("budget"));
/// ```
pub fn is_stop_word(term: &str) -> bool {
    STOP_WORDS.binary_search(&term).is_ok()
}
