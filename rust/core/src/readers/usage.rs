//! What providers report about their calls, from the many shapes that programs record.

use super::json::Json;

/// The tokens of one call, as the provider reported them.
///
/// `input + cache_read + cache_write` is the whole input of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// How many messages the call was given: the index of the first message of its reply.
    pub index: usize,
    /// Input tokens outside the cache.
    pub input: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_write: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// The model that answered, where it is recorded.
    pub model: Option<Box<str>>,
    /// The record itself.
    pub record: Json,
}

/// The tokens of one usage record; `None` if it is no such record or reports nothing.
pub(super) fn usage(index: usize, model: Option<&str>, record: &Json) -> Option<Usage> {
    if !record.is_map() {
        return None;
    }
    let number = |path: &[&str]| record.at(path).and_then(Json::as_u64);
    let first = |paths: &[&[&str]]| paths.iter().find_map(|path| number(path)).unwrap_or(0);
    let read = first(&[
        &["prompt_tokens_details", "cached_tokens"],
        &["input_tokens_details", "cached_tokens"],
        &["input_token_details", "cache_read"],
        &["cache_read_input_tokens"],
        &["cachedContentTokenCount"],
        &["cached_input_tokens"],
        &["input_tokens_cache_read"],
        &["cacheReadInputTokens"],
        &["cacheRead"],
        &["inputCacheRead"],
        &["cached"],
    ]);
    let write = first(&[
        &["input_token_details", "cache_creation"],
        &["cache_creation_input_tokens"],
        &["input_tokens_cache_write"],
        &["cacheWriteInputTokens"],
        &["cacheWrite"],
        &["inputCacheCreation"],
    ]);
    let thoughts = first(&[&["thoughtsTokenCount"], &["thoughts"]]);
    let output = thoughts
        + first(&[
            &["completion_tokens"],
            &["output_tokens"],
            &["candidatesTokenCount"],
            &["outputTokens"],
            &["output"],
        ]);
    let given = first(&[
        &["prompt_tokens"],
        &["input_tokens"],
        &["promptTokenCount"],
        &["inputTokens"],
        &["inputOther"],
        &["input"],
    ]);
    let input = if includes_cache(record) {
        given.saturating_sub(read.saturating_add(write))
    } else {
        given
    };
    if input == 0 && read == 0 && write == 0 && output == 0 {
        return None;
    }
    Some(Usage {
        index,
        input,
        cache_read: read,
        cache_write: write,
        output,
        model: model.filter(|model| !model.is_empty()).map(Into::into),
        record: record.clone(),
    })
}

/// Whether the input tokens of this record include the cached ones: so with `OpenAI`, Gemini and
/// `LangChain`, not so with Anthropic, Bedrock and the programs that follow them.
fn includes_cache(record: &Json) -> bool {
    [
        "prompt_tokens",
        "input_tokens_details",
        "input_token_details",
        "promptTokenCount",
        "cached_input_tokens",
        "cached",
    ]
    .iter()
    .any(|key| record.has(key))
}
