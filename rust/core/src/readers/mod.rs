//! Transcript files of many programs: bytes in, conversations out, nothing decided by a file's name.
//!
//! [`read`] takes the bytes of a file, [`Reader`] the same bytes piece by piece. Where a file has a
//! conversation a line each is given as soon as its line is read; every other form is held in
//! memory once. A broken line is a [`Problem`] with its line number between the conversations: the
//! caller raises it or goes on. Reading never panics and costs in proportion to the bytes.
//!
//! | format | one conversation is | dialect |
//! |---|---|---|
//! | `openai`, `openai-responses`, `anthropic`, `gemini`, `bedrock` | a list of messages, a request, a recorded exchange, a line of such, or a file with a message a line | itself |
//! | `langchain` | a list of serialised messages, or a state that holds one | `openai` |
//! | `claude-code` | a session file; each side chain is one of its own | `anthropic` |
//! | `codex` | a rollout file | `openai-responses` |
//! | `gemini-cli` | a session file | `gemini` |
//! | `pi` | a session file | `anthropic` if its thinking is Anthropic's, else `openai` |
//! | `kimi` | a wire file | `openai` |
//! | `openhands` | a list of events, or a row with a `history` | `openai` |
//! | `swe-agent`, `mini-swe-agent` | a trajectory | `openai` |
//! | `inspect` | a sample of a log | `openai` |
//! | `aider` | a chat of the Markdown history | `openai` |
//! | `intercode` | a task | `openai` |
//! | `sharegpt` | a list of turns, or a row with one | `openai` |
//!
//! Programs that keep messages in a form of their own are read into `openai`, unless signed thinking
//! makes another dialect the only one that can hold it. Messages of a provider's own format are
//! passed on as they are. Nothing is mended: a call that was never answered stays unanswered.

pub mod json;

mod aider;
mod claude_code;
mod codex;
mod detect;
mod exchange;
mod gemini_cli;
mod inspect;
mod intercode;
mod kimi;
mod langchain;
mod log;
mod long_list;
mod openhands;
mod pi;
mod request;
mod row;
mod sharegpt;
mod sse;
mod stream;
mod swe_agent;
mod usage;

use std::fmt;

use crate::error::{Error, ErrorKind, Result};
use json::Json;

pub use stream::{Reader, has_rows};
pub use usage::Usage;

/// What kind of file a conversation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `OpenAI` Chat Completions.
    OpenAi,
    /// `OpenAI` Responses.
    Responses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini contents.
    Gemini,
    /// Bedrock Converse.
    Bedrock,
    /// Serialised `LangChain` messages.
    LangChain,
    /// A Claude Code session.
    ClaudeCode,
    /// A Codex rollout.
    Codex,
    /// A Gemini CLI session.
    GeminiCli,
    /// A pi session.
    Pi,
    /// A Kimi wire file.
    Kimi,
    /// `OpenHands` events.
    OpenHands,
    /// A SWE-agent trajectory.
    SweAgent,
    /// A mini-SWE-agent trajectory.
    MiniSweAgent,
    /// An Inspect log.
    Inspect,
    /// An Aider chat history.
    Aider,
    /// An `InterCode` log.
    InterCode,
    /// `ShareGPT` turns.
    ShareGpt,
}

impl Format {
    /// Every format, in the order of the documentation.
    pub const ALL: [Self; 18] = [
        Self::OpenAi,
        Self::Responses,
        Self::Anthropic,
        Self::Gemini,
        Self::Bedrock,
        Self::LangChain,
        Self::ClaudeCode,
        Self::Codex,
        Self::GeminiCli,
        Self::Pi,
        Self::Kimi,
        Self::OpenHands,
        Self::SweAgent,
        Self::MiniSweAgent,
        Self::Inspect,
        Self::Aider,
        Self::InterCode,
        Self::ShareGpt,
    ];

    /// The public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
            Self::LangChain => "langchain",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::Pi => "pi",
            Self::Kimi => "kimi",
            Self::OpenHands => "openhands",
            Self::SweAgent => "swe-agent",
            Self::MiniSweAgent => "mini-swe-agent",
            Self::Inspect => "inspect",
            Self::Aider => "aider",
            Self::InterCode => "intercode",
            Self::ShareGpt => "sharegpt",
        }
    }

    /// The format of this name.
    ///
    /// # Errors
    /// `invalid_value`.
    pub fn from_name(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| {
                let known = Self::ALL.map(Self::name).join(", ");
                let message = format!("no format of that name; known: {known}");
                Error::new(ErrorKind::InvalidValue, message)
            })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One conversation of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// What kind of file it comes from.
    pub format: Format,
    /// The dialect of the messages, where the file tells it; `None` if the messages would read the
    /// same in several.
    pub dialect: Option<Box<str>>,
    /// The messages.
    pub messages: Vec<Json>,
    /// The system prompt, where it stands outside the messages.
    pub system: Option<Json>,
    /// The tool definitions, a list.
    pub tools: Option<Json>,
    /// The model that was called.
    pub model: Option<Box<str>>,
    /// What the provider reported about its calls, in their order.
    pub usage: Vec<Usage>,
    /// What else is worth knowing: ids, titles, the places of compactions.
    pub metadata: Vec<(&'static str, Json)>,
    /// The line on which the conversation begins, from 1.
    pub line: usize,
}

impl Conversation {
    fn new(format: Format, dialect: &str, messages: Vec<Json>) -> Self {
        Self {
            format,
            dialect: Some(dialect.into()),
            messages,
            system: None,
            tools: None,
            model: None,
            usage: Vec::new(),
            metadata: Vec::new(),
            line: 1,
        }
    }

    fn note(&mut self, key: &'static str, value: Json) {
        if !value.is_null() {
            self.metadata.push((key, value));
        }
    }

    /// Notes the string at `key` of `record`, if there is one.
    fn note_str(&mut self, name: &'static str, record: &Json, key: &str) {
        if let Some(text @ Json::Text(_)) = record.get(key) {
            self.note(name, text.clone());
        }
    }

    fn name_model(&mut self, model: Option<&str>) {
        if let Some(model) = model.filter(|model| !model.is_empty()) {
            self.model = Some(model.into());
        }
    }

    /// The first number that no request can hold, as a sentence.
    fn bad_number(&self) -> Option<String> {
        let outside = self.system.iter().chain(&self.tools);
        self.messages
            .iter()
            .chain(outside)
            .find_map(Json::bad_number)
    }
}

/// Why a line, or a whole file, could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; `None` where the whole file is meant.
    pub line: Option<usize>,
    /// What is wrong: a sentence without a full stop and without any of the content.
    pub message: String,
}

impl Problem {
    #[cold]
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            message: message.into(),
        }
    }

    /// The problem as an error of the library, with code `invalid_file`.
    pub fn into_error(self) -> Error {
        Error::new(ErrorKind::InvalidFile, self.to_string())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Problem {}

/// One thing that a file holds.
pub type Item = Result<Conversation, Problem>;

/// The conversations of a file, lazily where it has one a line; `None` detects the format.
///
/// # Example
/// ```
/// # use satchel_core::readers::read;
/// let file = br#"{"messages": [{"role": "tool", "tool_call_id": "a", "content": "42"}]}"#;
/// let found: Vec<_> = read(file, None).map(|item| item.unwrap()).collect();
/// assert_eq!(found[0].dialect.as_deref(), Some("openai"));
/// ```
pub fn read(bytes: &[u8], format: Option<Format>) -> Conversations<'_> {
    Conversations {
        reader: Some(Reader::new(format)),
        rest: bytes,
        ready: Vec::new().into_iter(),
    }
}

/// The conversations that stand in one JSON value, as a line of a file would hold it.
pub fn read_value(value: json::Json, format: Option<Format>, line: usize) -> Vec<Item> {
    stream::value(value, format, line)
}

/// The iterator that [`read`] returns.
#[derive(Debug)]
pub struct Conversations<'a> {
    reader: Option<Reader>,
    rest: &'a [u8],
    ready: std::vec::IntoIter<Item>,
}

/// Bytes that are read at a time: enough for most lines, little enough to wait for.
const PIECE: usize = 1 << 20;

impl Iterator for Conversations<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.ready.next() {
                return Some(item);
            }
            let (piece, rest) = self.rest.split_at(self.rest.len().min(PIECE));
            self.rest = rest;
            let items = if piece.is_empty() {
                self.reader.take()?.finish()
            } else {
                self.reader.as_mut()?.feed(piece)
            };
            self.ready = items.into_iter();
        }
    }
}
