//! The catalogue of rules: stable codes, severities, sentences, the provider's own words.

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The provider rejects the request.
    Error,
    /// The provider accepts it, and it is still wrong.
    Warning,
}

impl Severity {
    /// The lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// What the catalogue says about a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleEntry {
    /// Stable, `snake_case`, public.
    pub code: &'static str,
    /// Its id in the table of provider rules; empty for our own.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What it asks for.
    pub sentence: &'static str,
    /// A piece of the provider's own error, to be matched without regard to case; empty where the
    /// provider accepts the request or no text is known.
    pub provider_error: &'static str,
}

/// Writes the enumeration, its list and its entries from one table, so that none can be forgotten.
macro_rules! catalogue {
    ($($(#[doc = $doc:literal])* $name:ident: $severity:ident, $code:literal, $id:literal,
        $sentence:literal, $error:literal;)*) => {
        /// A rule of the catalogue.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[doc = $doc])* $name,)*
        }

        impl Rule {
            /// The catalogue, in order.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its entry in the catalogue.
            pub fn entry(self) -> RuleEntry {
                match self {
                    $(Self::$name => RuleEntry {
                        code: $code,
                        id: $id,
                        severity: Severity::$severity,
                        sentence: $sentence,
                        provider_error: $error,
                    },)*
                }
            }
        }
    };
}

catalogue! {
    /// A message of the wrong shape.
    InvalidMessage: Error, "invalid_message", "",
        "a message has a role, and content of a known shape",
        "";
    /// A message nested too deep.
    TooDeep: Error, "too_deep", "",
        "a message nests at most 128 levels",
        "";
    /// A call without an id.
    MissingId: Error, "missing_id", "G5",
        "every call has an id, and its result the same",
        "";
    /// An id that the provider cannot have given.
    InvalidId: Error, "invalid_id", "G5",
        "the id of a call has letters, digits, _ and - only, and not too many",
        "";
    /// A value that no JSON text can say.
    NotJson: Error, "not_json", "",
        "numbers are finite, strings are Unicode without half surrogate pairs, bytes are base64",
        "";
    /// A call without the name of its tool.
    MissingName: Error, "missing_name", "",
        "every call names its tool, and a result that repeats the name has one",
        "";
    /// A name that no tool can have.
    InvalidName: Error, "invalid_name", "",
        "the name of a tool has letters, digits, _ and - only, and not too many",
        "";
    /// Two calls of one message with one id.
    RepeatedId: Error, "repeated_id", "G5",
        "no two calls of one message share an id",
        "";
    /// An image, a file or another block without what it should hold.
    MissingData: Error, "missing_data", "",
        "an image, a sound or a file holds its data or says where it is",
        "";
    /// `openai`: a list of no calls.
    EmptyCalls: Error, "empty_calls", "",
        "tool_calls is left out where there are none",
        "Expected an array with minimum length 1";
    /// `openai`: a part of a type that only some servers know.
    UnknownPart: Warning, "unknown_part", "",
        "parts are text, image_url, input_audio, file or refusal: other servers know more",
        "";
    /// Arguments that are no object.
    InputNotObject: Error, "input_not_object", "",
        "the input of a tool_use or toolUse is an object",
        "";
    /// `openai-responses`: an output item without output.
    MissingOutput: Error, "missing_output", "",
        "an output item has its output, which may be empty",
        "";
    /// `openai`: a call without its result.
    Oc1UnansweredCall: Error, "oc1_unanswered_call", "OC1",
        "an assistant message with calls is followed at once by a tool message for each",
        "must be followed by tool messages responding to each";
    /// `openai`: a result without its call.
    Oc2OrphanResult: Error, "oc2_orphan_result", "OC2",
        "a tool message answers an open call of the assistant message before it",
        "must be a response to a preceeding message with 'tool_calls'";
    /// `openai`: an id that is too long.
    Oc3LongId: Error, "oc3_long_id", "OC3",
        "the id of a call has at most 40 characters",
        "Expected a string with maximum length 40";
    /// `openai`: a message without content.
    Oc4MissingContent: Error, "oc4_missing_content", "OC4",
        "content is missing or null only beside calls",
        "expected a string, got null";
    /// `openai`: calls without the reasoning that the model wants back.
    Oc5LostReasoning: Error, "oc5_lost_reasoning", "OC5",
        "calls of a model that asks for it keep the reasoning that came with them",
        "The `reasoning_content` in the thinking mode must be passed back";
    /// `openai` and `openai-responses`: arguments that are no string.
    ArgumentsNotText: Error, "arguments_not_text", "",
        "the arguments of a call are JSON in a string",
        "";
    /// `anthropic`: a call without its result.
    An1UnansweredCall: Error, "an1_unanswered_call", "AN1",
        "each tool_use has its tool_result in the next user message",
        "ids were found without `tool_result` blocks immediately after";
    /// `anthropic`: something before the results.
    An1ResultsNotFirst: Error, "an1_results_not_first", "AN1",
        "results come first in the user message that answers calls",
        "ids were found without `tool_result` blocks immediately after";
    /// `anthropic`: a result without its call.
    An2OrphanResult: Error, "an2_orphan_result", "AN2",
        "each tool_result has its tool_use in the assistant message before it",
        "unexpected `tool_use_id` found in `tool_result` blocks";
    /// `anthropic`: two results for one call.
    An3DuplicateResult: Error, "an3_duplicate_result", "AN3",
        "each tool_use has one result",
        "each tool_use must have a single result";
    /// `anthropic`: an id with other characters.
    An4InvalidId: Error, "an4_invalid_id", "AN4",
        "the id of a call has letters, digits, _ and - only",
        "String should match pattern '^[a-zA-Z0-9_-]+$'";
    /// `anthropic`: an id that comes again.
    An4RepeatedId: Error, "an4_repeated_id", "AN4",
        "no two calls of a request share an id",
        "ids must be unique";
    /// `anthropic`: a server tool's call or result that stands alone.
    An5PendingServerTool: Error, "an5_pending_server_tool", "AN5",
        "a call of a server tool has its result, or only results come before it",
        "was found without a corresponding";
    /// `anthropic`: the newest reasoning was changed.
    An6ChangedReasoning: Error, "an6_changed_reasoning", "AN6",
        "the reasoning of the newest assistant message is sent back as it came",
        "blocks in the latest assistant message cannot be modified";
    /// `anthropic`: reasoning behind something else in the newest turn.
    An7ReasoningNotFirst: Warning, "an7_reasoning_not_first", "AN7",
        "the newest assistant turn starts with its reasoning where thinking is set by hand",
        "";
    /// `anthropic`: reasoning without a signature.
    An8UnsignedReasoning: Error, "an8_unsigned_reasoning", "AN8",
        "reasoning has the signature it came with",
        "Invalid `signature` in `thinking` block";
    /// `anthropic`: something before kept reasoning was changed.
    An9ChangedPrefix: Error, "an9_changed_prefix", "AN9",
        "nothing before reasoning that is bound to it has changed since it was made",
        "bound to a different conversation";
    /// `anthropic`: a turn of nothing but reasoning.
    ReasoningOnly: Error, "reasoning_only", "G6",
        "a turn of the assistant has something beside reasoning",
        "";
    /// `anthropic`: an empty message.
    An10EmptyMessage: Error, "an10_empty_message", "AN10",
        "every message but a last one of the assistant has content",
        "all messages must have non-empty content";
    /// `anthropic`: a blank text.
    An11BlankText: Error, "an11_blank_text", "AN11",
        "every text has something else than white space",
        "text content blocks must";
    /// `anthropic`: a prefill that ends in white space.
    An12TrailingSpace: Error, "an12_trailing_space", "AN12",
        "a last message of the assistant does not end in white space",
        "final assistant content cannot end with";
    /// `anthropic`: a last message of the assistant.
    An13Prefill: Error, "an13_prefill", "AN13",
        "the last message is not the assistant's where the model takes no prefill",
        "does not support assistant message prefill";
    /// `anthropic`: too many cache marks.
    An14TooManyMarks: Error, "an14_too_many_marks", "AN14",
        "a request has at most 4 cache marks",
        "A maximum of 4 blocks with cache_control";
    /// `anthropic`: a long cache mark behind a short one.
    An15MarkOrder: Error, "an15_mark_order", "AN15",
        "cache marks of an hour stand before those of five minutes",
        "must not come after a ttl='5m'";
    /// `anthropic`: an instruction where none may stand.
    An16SystemPosition: Error, "an16_system_position", "AN16",
        "a system message follows a user's turn and comes last or before the assistant's",
        "";
    /// `anthropic`: so many images that their size is limited.
    An17ManyImages: Warning, "an17_many_images", "AN17",
        "with more than 20 images each side has at most 2000 pixels",
        "";
    /// `anthropic`: a compaction block of an empty text.
    An20EmptyCompaction: Error, "an20_empty_compaction", "AN20",
        "the text of a compaction block is not empty",
        "";
    /// `openai-responses`: a call without its output.
    Or1UnansweredCall: Error, "or1_unanswered_call", "OR1",
        "every call has its output",
        "No tool output found for function call";
    /// `openai-responses`: an output without its call.
    Or2OrphanOutput: Error, "or2_orphan_output", "OR2",
        "every output has its call before it",
        "No tool call found for function call output";
    /// `openai-responses`: reasoning that nothing follows.
    Or3LoneReasoning: Error, "or3_lone_reasoning", "OR3",
        "reasoning is followed by the item it led to",
        "was provided without its required following item";
    /// `openai-responses`: two items with one id.
    Or6RepeatedItem: Error, "or6_repeated_item", "OR6",
        "no two items share an id",
        "Duplicate item found with id";
    /// `openai-responses`: an id of another kind of item.
    Or7InvalidItemId: Error, "or7_invalid_item_id", "OR7",
        "the id of an item starts as its kind asks for and has at most 64 plain characters",
        "Expected an ID that begins with";
    /// `openai-responses`: something between calls and outputs.
    OutputsApart: Warning, "outputs_apart", "G2",
        "outputs come right behind their calls",
        "";
    /// `gemini`: calls behind something else than the user.
    Ge1CallPosition: Error, "ge1_call_position", "GE1",
        "calls come right behind a user's turn or results",
        "function call turn comes immediately after";
    /// `gemini`: responses that are not right behind their calls.
    Ge2ResponsePosition: Error, "ge2_response_position", "GE2",
        "responses come right behind their calls",
        "function response turn comes immediately after";
    /// `gemini`: more or fewer responses than calls.
    Ge3ResponseCount: Error, "ge3_response_count", "GE3",
        "one content has exactly one response for each call before it",
        "number of function response parts";
    /// `gemini`: a call without its signature.
    Ge4LostSignature: Error, "ge4_lost_signature", "GE4",
        "the first call of each step of the current turn keeps its signature",
        "missing a thought_signature in functionCall parts";
    /// `gemini`: a content without parts.
    Ge7EmptyContent: Error, "ge7_empty_content", "GE7",
        "every content has at least one part",
        "must include at least one parts field";
    /// `gemini`: a part without data.
    Ge7EmptyPart: Error, "ge7_empty_part", "GE7",
        "every part has data: a text, a call, a response, media",
        "must have one initialized field";
    /// `bedrock`: a call without its result.
    Br1UnansweredCall: Error, "br1_unanswered_call", "BR1",
        "each toolUse has its toolResult in the next message",
        "Expected toolResult blocks at";
    /// `bedrock`: a result too many.
    Br2ExtraResult: Error, "br2_extra_result", "BR2",
        "each toolResult answers a toolUse of the message before",
        "exceeds the number of toolUse blocks of previous turn";
    /// `bedrock`: a start without the user.
    Br3FirstNotUser: Error, "br3_first_not_user", "BR3",
        "the conversation starts with a user message",
        "A conversation must start with a user message";
    /// `bedrock`: neighbours with one role.
    Br4SameRole: Error, "br4_same_role", "BR4",
        "roles alternate",
        "must alternate between user and assistant roles";
    /// `bedrock`: a blank text.
    Br5BlankText: Error, "br5_blank_text", "BR5",
        "every text has something else than white space",
        "is blank. Add text to the text field";
    /// `bedrock`: an empty message.
    Br6EmptyMessage: Error, "br6_empty_message", "BR6",
        "every message has content",
        "is empty. Add a ContentBlock object";
    /// `bedrock`: tool blocks in a request without tools.
    Br7ToolsNotDeclared: Error, "br7_tools_not_declared", "BR7",
        "tools are declared whenever the history has tool blocks",
        "The toolConfig field must be defined when using";
    /// Nothing to send yet.
    NoMessages: Warning, "no_messages", "G10",
        "a request has a message besides instructions",
        "";
    /// The conversation does not start with the user.
    FirstNotUser: Error, "first_not_user", "G1",
        "the first message is the user's",
        "";
    /// The same, where the provider accepts it.
    StartsWithoutUser: Warning, "starts_without_user", "G1",
        "the first message besides instructions is better the user's",
        "";
    /// Neighbours with one role.
    SameRole: Warning, "same_role", "G11",
        "roles alternate: the provider merges neighbours with one role",
        "";
    /// Text behind results.
    TextAfterResults: Warning, "text_after_results", "G4",
        "text behind results teaches the model to end its turn: a later message is better",
        "";
    /// A blank text, where the provider accepts it.
    BlankText: Warning, "blank_text", "G6",
        "every text has something else than white space",
        "";
    /// A call of a tool that is not declared.
    UndeclaredTool: Warning, "undeclared_tool", "G9",
        "tools that the history calls stay declared",
        "";
}
