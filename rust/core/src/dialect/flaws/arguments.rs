//! Arguments as the object that most dialects want.

use serde_json::{Map, Value as Json};

/// The key that holds arguments which are no JSON object, where an object is asked for.
pub const RAW_ARGUMENTS: &str = "_raw_arguments";

/// Deepest nesting of arguments that stay an object: a message adds a few levels of its own.
pub(in crate::dialect) const MAX_DEPTH: usize = 100;

/// The object that a text of JSON says, an empty one for a blank text; anything else, such as the
/// piece that a cut stream leaves, is kept word for word under [`RAW_ARGUMENTS`].
pub(in crate::dialect) fn object_of(text: &str) -> Json {
    if text.trim().is_empty() {
        return Json::Object(Map::new());
    }
    match serde_json::from_str::<Json>(text) {
        Ok(json) if is_fit(&json) => json,
        _ => raw(text),
    }
}

/// A text under [`RAW_ARGUMENTS`].
pub(in crate::dialect) fn raw(text: &str) -> Json {
    let mut wrapped = Map::new();
    wrapped.insert(RAW_ARGUMENTS.to_owned(), Json::from(text));
    Json::Object(wrapped)
}

/// Whether this is an object that nests no deeper than a message may.
pub(in crate::dialect) fn is_fit(json: &Json) -> bool {
    json.is_object() && depth(json) <= MAX_DEPTH
}

fn depth(json: &Json) -> usize {
    match json {
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Json::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
