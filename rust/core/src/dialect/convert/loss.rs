//! What a conversion could not carry over.

/// What kind of thing was lost or changed. [`LossKind::code`] is the stable name of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LossKind {
    /// Reasoning: it stays with the provider that produced it.
    Reasoning,
    /// A signature on a text or a call.
    Signature,
    /// An image became a note, or moved out of a result.
    Image,
    /// A sound likewise.
    Audio,
    /// A document likewise.
    Document,
    /// A video likewise.
    Video,
    /// A refusal became plain text.
    Refusal,
    /// The `name` of a speaker.
    Name,
    /// A result no longer says that its call failed.
    ErrorFlag,
    /// A block of unknown or server-side kind became text, or went.
    Opaque,
    /// Instructions in the middle of the conversation became a user's text.
    Instruction,
    /// Arguments that are no JSON object were wrapped.
    Arguments,
    /// A call in a form that only the source has became a function call.
    CallKind,
    /// A result without a call, or a second one, became text.
    StrayResult,
    /// A placeholder was put in.
    Placeholder,
    /// A text of white space only, or white space that the target refuses, went.
    Blank,
    /// A message without content went.
    EmptyMessage,
    /// Half a surrogate pair became U+FFFD; a number without JSON form became a string.
    Character,
    /// A cache mark.
    CacheMark,
    /// Citations or annotations of a text.
    Citations,
    /// Another field of a message.
    Field,
    /// The name of a tool was changed to one that the target takes.
    ToolName,
    /// A tool that the provider itself runs.
    ServerTool,
    /// A setting of a tool.
    ToolOption,
    /// A keyword of a tool's schema.
    Schema,
}

impl LossKind {
    /// The stable `snake_case` name.
    pub fn code(self) -> &'static str {
        match self {
            Self::Reasoning => "reasoning",
            Self::Signature => "signature",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Document => "document",
            Self::Video => "video",
            Self::Refusal => "refusal",
            Self::Name => "name",
            Self::ErrorFlag => "error_flag",
            Self::Opaque => "opaque",
            Self::Instruction => "instruction",
            Self::Arguments => "arguments",
            Self::CallKind => "call_kind",
            Self::StrayResult => "stray_result",
            Self::Placeholder => "placeholder",
            Self::Blank => "blank",
            Self::EmptyMessage => "empty_message",
            Self::Character => "character",
            Self::CacheMark => "cache_mark",
            Self::Citations => "citations",
            Self::Field => "field",
            Self::ToolName => "tool_name",
            Self::ServerTool => "server_tool",
            Self::ToolOption => "tool_option",
            Self::Schema => "schema",
        }
    }
}

/// One thing that the target could not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Raw index of the source message; `None` for the system argument and the tools.
    pub index: Option<usize>,
    /// What kind of thing it was.
    pub kind: LossKind,
    /// What became of it; names fields, kinds and tools, never text of the conversation.
    pub detail: String,
}

/// The losses of one conversion, while it runs.
#[derive(Debug, Default)]
pub(super) struct Losses(pub(super) Vec<Loss>);

impl Losses {
    pub(super) fn add(&mut self, index: Option<usize>, kind: LossKind, detail: impl Into<String>) {
        self.0.push(Loss {
            index,
            kind,
            detail: detail.into(),
        });
    }
}

/// A kind or key as it may stand in a detail: what does not look like a name is not repeated.
pub(super) fn plain_name(name: &str) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.$".contains(&byte);
    if name.len() <= 64 && !name.is_empty() && name.bytes().all(is_plain) {
        name
    } else {
        "unknown"
    }
}
