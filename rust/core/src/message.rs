//! A message as a dialect reader gives it: a role and its parts, each with its place.
//!
//! A [`Place`] says where in the caller's object a part's content lives, so that an edit can be
//! applied to the caller's own object, whatever its representation.

use crate::node::{Text, Value};

/// Who speaks. `function` messages read as [`Role::Tool`], Gemini's `model` as assistant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Role {
    /// Instructions of the application.
    System,
    /// Instructions of the application, in the newer `OpenAI` spelling.
    Developer,
    /// The person, or whoever stands for one.
    User,
    /// The model.
    Assistant,
    /// A tool's answer in its own message.
    Tool,
}

impl Role {
    /// The lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// Whether it is `system` or `developer`.
    pub fn is_instruction(self) -> bool {
        matches!(self, Self::System | Self::Developer)
    }
}

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PartKind {
    /// Plain text.
    Text,
    /// An image.
    Image,
    /// A sound.
    Audio,
    /// A document.
    File,
    /// A call of a tool; its body is the arguments.
    Call,
    /// The answer to a call; its body is the content.
    Result,
    /// Reasoning; kept byte-identical or dropped with its step.
    Reasoning,
    /// Something this version does not know; kept as it is or dropped with its step.
    Opaque,
}

/// Where in the caller's message the content of a part lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `message["content"]`, a string or the whole list.
    Content,
    /// `message["content"][i]["text"]`.
    BlockText(u32),
    /// `message["content"][i]`, a block that is replaced whole.
    Block(u32),
    /// `message["content"][i]["content"]`: the content of a result block.
    BlockContent(u32),
    /// `message["content"][i]["input"]`: the arguments of a call block.
    BlockInput(u32),
    /// `message["tool_calls"][i]["function"]["arguments"]`.
    CallArguments(u32),
    /// `item["arguments"]`: the arguments of a call item, a string.
    Arguments,
    /// `item["input"]`: the free text of a custom call item.
    Input,
    /// `item["output"]`: a string or a list of blocks.
    Output,
    /// `item["output"]`, only a string.
    OutputText,
    /// `item["output"]` of a shell: a list of objects with `stdout` and `stderr`.
    ShellOutput,
    /// `item["result"]`, a string.
    ResultText,
    /// `message["parts"]`, the whole list.
    Parts,
    /// `message["parts"][i]["text"]`.
    PartText(u32),
    /// `message["parts"][i]`, a part that is replaced whole.
    Part(u32),
    /// `message["parts"][i]`, never replaced: a signature is bound to it.
    SignedPart(u32),
    /// `message["parts"][i]["functionCall"]["args"]`.
    PartArgs(u32),
    /// `message["parts"][i]["function_call"]["args"]`.
    PartArgsSnake(u32),
    /// `message["parts"][i]["functionResponse"]["response"]`.
    PartResponse(u32),
    /// `message["parts"][i]["function_response"]["response"]`.
    PartResponseSnake(u32),
    /// `message["content"][i]["toolUse"]["input"]`.
    ToolUseInput(u32),
    /// `message["content"][i]["toolResult"]["content"]`.
    ToolResultContent(u32),
    /// The whole message, never replaced.
    Item,
    /// A field of the message itself that is never replaced.
    Field(Field),
}

/// A field of a message that is kept as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Field {
    /// `reasoning_content`, as `DeepSeek` and others return it.
    ReasoningContent,
    /// `reasoning`.
    Reasoning,
    /// `reasoning_details`.
    ReasoningDetails,
    /// `thinking_blocks`.
    ThinkingBlocks,
    /// `refusal`.
    Refusal,
    /// `audio`.
    Audio,
    /// `function_call`, the legacy single call.
    FunctionCall,
    /// `tool_calls`, around a custom call.
    ToolCalls,
    /// `action` of a call of the old local shell.
    LocalShellAction,
    /// `action` of a shell call.
    ShellAction,
    /// `action` of a computer call.
    ComputerAction,
    /// `actions` of a newer computer call.
    ComputerActions,
    /// `operation` of a patch.
    Operation,
    /// `code` of a program, whose own calls follow before its output.
    Code,
    /// `arguments` that are an object, or that a person approves.
    Arguments,
    /// `output` of a fixed shape.
    Output,
    /// `tools` that a search found.
    Tools,
    /// `approve`, a person's answer.
    Approve,
}

impl Field {
    /// The key.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReasoningContent => "reasoning_content",
            Self::Reasoning => "reasoning",
            Self::ReasoningDetails => "reasoning_details",
            Self::ThinkingBlocks => "thinking_blocks",
            Self::Refusal => "refusal",
            Self::Audio => "audio",
            Self::FunctionCall => "function_call",
            Self::ToolCalls => "tool_calls",
            Self::LocalShellAction | Self::ShellAction | Self::ComputerAction => "action",
            Self::ComputerActions => "actions",
            Self::Operation => "operation",
            Self::Code => "code",
            Self::Arguments => "arguments",
            Self::Output => "output",
            Self::Tools => "tools",
            Self::Approve => "approve",
        }
    }
}

/// One step of the path to a value inside a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// A field.
    Key(&'static str),
    /// An item.
    Index(u32),
}

impl Place {
    /// The path from the message to the content.
    pub fn path(self) -> Vec<PathStep> {
        use PathStep::{Index, Key};
        match self {
            Self::Content => vec![Key("content")],
            Self::BlockText(i) => vec![Key("content"), Index(i), Key("text")],
            Self::Block(i) => vec![Key("content"), Index(i)],
            Self::BlockContent(i) => vec![Key("content"), Index(i), Key("content")],
            Self::BlockInput(i) => vec![Key("content"), Index(i), Key("input")],
            Self::CallArguments(i) => {
                vec![
                    Key("tool_calls"),
                    Index(i),
                    Key("function"),
                    Key("arguments"),
                ]
            }
            Self::Arguments => vec![Key("arguments")],
            Self::Input => vec![Key("input")],
            Self::Output | Self::OutputText | Self::ShellOutput => vec![Key("output")],
            Self::Parts => vec![Key("parts")],
            Self::ResultText => vec![Key("result")],
            Self::PartText(i) => vec![Key("parts"), Index(i), Key("text")],
            Self::Part(i) | Self::SignedPart(i) => vec![Key("parts"), Index(i)],
            Self::PartArgs(i) => {
                vec![Key("parts"), Index(i), Key("functionCall"), Key("args")]
            }
            Self::PartArgsSnake(i) => {
                vec![Key("parts"), Index(i), Key("function_call"), Key("args")]
            }
            Self::PartResponse(i) => vec![
                Key("parts"),
                Index(i),
                Key("functionResponse"),
                Key("response"),
            ],
            Self::PartResponseSnake(i) => vec![
                Key("parts"),
                Index(i),
                Key("function_response"),
                Key("response"),
            ],
            Self::ToolUseInput(i) => {
                vec![Key("content"), Index(i), Key("toolUse"), Key("input")]
            }
            Self::ToolResultContent(i) => {
                vec![Key("content"), Index(i), Key("toolResult"), Key("content")]
            }
            Self::Item => Vec::new(),
            Self::Field(field) => vec![Key(field.name())],
        }
    }

    /// Whether a shorter content may stand there instead.
    pub fn is_replaceable(self) -> bool {
        !matches!(self, Self::Field(_) | Self::Item | Self::SignedPart(_))
    }
}

/// The content of a part, captured.
#[derive(Clone, Debug)]
pub enum Body<T> {
    /// A text.
    Text(T),
    /// Anything else; its page is canonical JSON.
    Value(Value<T>),
    /// Nothing (`null` content).
    Empty,
}

impl<T: Text> Body<T> {
    /// The bytes a page of this part holds: the text as it is, anything else as canonical JSON.
    pub fn page_bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.to_bytes(),
            Self::Value(value) => value.to_json().into_bytes(),
            Self::Empty => Vec::new(),
        }
    }
}

/// The identity of a call or a result.
#[derive(Clone, Debug)]
pub struct CallKey<T> {
    /// The id, where there is one. Ids repeat in real data: pairing is positional.
    pub id: Option<T>,
    /// The tool's name (calls; results where the dialect repeats it).
    pub name: Option<T>,
}

/// One typed piece of a message.
#[derive(Clone, Debug)]
pub struct Part<T> {
    /// What it is.
    pub kind: PartKind,
    /// Whether a result says that its call failed.
    pub is_error: bool,
    /// Where its content lives in the message.
    pub place: Place,
    /// Its tokens, without the message's overhead; 0 until counted.
    pub tokens: u32,
    /// Its content.
    pub body: Body<T>,
    /// Identity of a call or a result.
    pub key: Option<Box<CallKey<T>>>,
}

/// One entry of the history as the dialect reader gives it.
#[derive(Clone, Debug)]
pub struct Message<T> {
    /// Who speaks.
    pub role: Role,
    /// The parts in order.
    pub parts: Vec<Part<T>>,
    /// The `name` field (counted by the chat formula).
    pub name: Option<T>,
}

impl<T> Message<T> {
    /// Whether any part is a call.
    pub fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| part.kind == PartKind::Call)
    }

    /// Whether any part is a result.
    pub fn has_results(&self) -> bool {
        self.parts.iter().any(|part| part.kind == PartKind::Result)
    }
}
