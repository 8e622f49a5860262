//! What providers report about their calls, from the many shapes that programs record.

use super::json::Json;

/// The tokens of one call, as the provider reported them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// How many messages the call was given: the index of the first message of its reply.
    pub index: usize,
    /// All input tokens: what was read from a cache and written to one included.
    pub input: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
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
    // Where the provider compacts on its side, the figures beside `iterations` leave that out.
    let iterations = record.items_at("iterations").iter();
    let parts: Vec<Figures> = iterations.map(figures).collect();
    let found = if parts.iter().any(|part| *part != Figures::default()) {
        parts.into_iter().fold(Figures::default(), Figures::plus)
    } else {
        figures(record)
    };
    if found == Figures::default() {
        return None;
    }
    Some(Usage {
        index,
        input: found.input,
        cache_read: found.read,
        cache_write: found.write,
        output: found.output,
        model: model.filter(|model| !model.is_empty()).map(Into::into),
        record: record.clone(),
    })
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figures {
    input: u64,
    read: u64,
    write: u64,
    output: u64,
}

impl Figures {
    fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            read: self.read.saturating_add(other.read),
            write: self.write.saturating_add(other.write),
            output: self.output.saturating_add(other.output),
        }
    }
}

fn figures(record: &Json) -> Figures {
    let number = |path: &[&str]| record.at(path).and_then(Json::as_u64);
    let first = |paths: &[&[&str]]| paths.iter().find_map(|path| number(path)).unwrap_or(0);
    let read = first(&[
        &["prompt_tokens_details", "cached_tokens"],
        &["input_tokens_details", "cached_tokens"],
        &["input_token_details", "cache_read"],
        &["cache_read_input_tokens"],
        &["cachedContentTokenCount"],
        &["cached_input_tokens"],
        &["prompt_cache_hit_tokens"],
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
    let given = first(&[
        &["prompt_tokens"],
        &["input_tokens"],
        &["promptTokenCount"],
        &["inputTokens"],
        &["inputOther"],
        &["input"],
    ]);
    let output = first(&[
        &["completion_tokens"],
        &["output_tokens"],
        &["candidatesTokenCount"],
        &["outputTokens"],
        &["output"],
    ]);
    let input = if includes_cache(record) {
        given
    } else {
        given.saturating_add(read).saturating_add(write)
    };
    Figures {
        input: input.saturating_add(first(&[&["toolUsePromptTokenCount"]])),
        read,
        write,
        // Gemini counts thoughts beside the answer.
        output: output.saturating_add(first(&[&["thoughtsTokenCount"], &["thoughts"]])),
    }
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
