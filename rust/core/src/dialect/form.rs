//! What tells dialects apart when a window is made: how satchel's own texts are written in each,
//! and what the provider asks of the order of messages.

use serde_json::{Value as Json, json};

use super::Dialect;
use crate::message::{Field, Place, Role};

/// What stands as the result of a call that nobody answered.
pub const PLACEHOLDER: &str = "[no result: the call was interrupted]";

/// What stands before an assistant message that would open the window where a user must.
pub const OPENER: &str = "[the conversation begins with the assistant]";

/// A picture of one transparent pixel: a screen that nobody saw.
pub(super) const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/// Which assistant messages continue the one before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glue {
    /// Only what follows reasoning that stands alone.
    #[default]
    Reasoning,
    /// Also further calls while calls are open: the provider merges neighbours.
    OpenCalls,
    /// Every item of one answer that belongs to its reasoning or its calls.
    Answer,
}

/// How a text block is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// `{"type": …, "text": …}`.
    Typed(&'static str),
    /// `{"text": …}`.
    Bare,
}

impl TextForm {
    /// A block that holds `text`.
    pub fn block(self, text: &str) -> Json {
        match self {
            Self::Typed(kind) => json!({"type": kind, "text": text}),
            Self::Bare => json!({"text": text}),
        }
    }
}

/// A message as its neighbours see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// Who speaks.
    pub role: Role,
    /// Whether it holds results.
    pub has_results: bool,
}

impl Side {
    /// A user message that satchel puts in.
    pub const NOTE: Self = Self {
        role: Role::User,
        has_results: false,
    };
}

/// A call that waits for its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The id, if it has one.
    pub id: Option<String>,
    /// The tool's name.
    pub name: Option<String>,
    /// Where its arguments live: this tells its kind.
    pub place: Place,
    /// The `type` of a call of a kind to come.
    pub kind: Option<String>,
}

impl Dialect {
    /// Which assistant messages continue the one before them.
    pub fn glue(self) -> Glue {
        match self {
            Self::OpenAi => Glue::Reasoning,
            Self::Responses => Glue::Answer,
            Self::Anthropic | Self::Gemini | Self::Bedrock => Glue::OpenCalls,
        }
    }

    /// Whether satchel's notes are further blocks of a user message, since messages of their own
    /// would make two user turns.
    pub fn notes_inside(self) -> bool {
        matches!(self, Self::Anthropic | Self::Gemini | Self::Bedrock)
    }

    /// Whether the first message must be a user's.
    pub fn user_first(self) -> bool {
        matches!(self, Self::Anthropic | Self::Gemini | Self::Bedrock)
    }

    /// Whether neighbours are written as one message: the provider takes them only so.
    pub fn joins(self, before: Side, next: Side) -> bool {
        let is_model = |side: Side| side.role == Role::Assistant;
        match self {
            Self::Bedrock => is_model(before) == is_model(next),
            // Two turns of the model may hide a call from the turn it must follow; the results of
            // one turn stand in one content.
            Self::Gemini => {
                is_model(before) && is_model(next) || before.has_results && next.has_results
            }
            _ => false,
        }
    }

    /// Whether [`Dialect::joins`] is ever true.
    pub fn may_join(self) -> bool {
        matches!(self, Self::Gemini | Self::Bedrock)
    }

    /// Where the list of a message's blocks is.
    pub fn blocks(self) -> Place {
        if self == Self::Gemini {
            Place::Parts
        } else {
            Place::Content
        }
    }

    /// How a text block of `role` is written.
    pub fn text_form(self, role: Role) -> TextForm {
        match self {
            Self::OpenAi | Self::Anthropic => TextForm::Typed("text"),
            Self::Responses if role == Role::Assistant => TextForm::Typed("output_text"),
            Self::Responses => TextForm::Typed("input_text"),
            Self::Gemini | Self::Bedrock => TextForm::Bare,
        }
    }

    /// A user message that satchel puts in; `plain` asks for the short form where there are two.
    pub fn user_message(self, text: &str, plain: bool) -> Json {
        match self {
            Self::Responses if !plain => json!({
                "type": "message", "role": "user",
                "content": [{"type": "input_text", "text": text}],
            }),
            Self::OpenAi | Self::Responses | Self::Anthropic => {
                json!({"role": "user", "content": text})
            }
            Self::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            Self::Bedrock => json!({"role": "user", "content": [{"text": text}]}),
        }
    }

    /// A user message of these blocks.
    pub(crate) fn message_of(self, blocks: &[Json]) -> Json {
        if self == Self::Gemini {
            json!({"role": "user", "parts": blocks})
        } else {
            json!({"role": "user", "content": blocks})
        }
    }

    /// Whether results are blocks of a user message.
    pub fn results_are_blocks(self) -> bool {
        matches!(self, Self::Anthropic | Self::Gemini | Self::Bedrock)
    }

    /// The result that stands for the missing one: a block, or a message of its own.
    pub fn placeholder(self, call: &OpenCall) -> Json {
        let OpenCall { id, name, .. } = call;
        match self {
            Self::OpenAi => match id {
                Some(id) => json!({"role": "tool", "tool_call_id": id, "content": PLACEHOLDER}),
                None => json!({"role": "function", "name": name, "content": PLACEHOLDER}),
            },
            Self::Anthropic => json!({
                "type": "tool_result", "tool_use_id": id, "content": PLACEHOLDER, "is_error": true,
            }),
            Self::Bedrock => json!({"toolResult": {
                "toolUseId": id, "content": [{"text": PLACEHOLDER}], "status": "error",
            }}),
            Self::Gemini => {
                let mut response = json!({"name": name, "response": {"error": PLACEHOLDER}});
                if let Some(id) = id {
                    response["id"] = Json::from(id.as_str());
                }
                match call.place {
                    Place::PartArgsSnake(_) => json!({"function_response": response}),
                    _ => json!({"functionResponse": response}),
                }
            }
            Self::Responses => item_placeholder(call),
        }
    }
}

fn item_placeholder(call: &OpenCall) -> Json {
    let id = &call.id;
    match call.place {
        Place::Input => {
            json!({"type": "custom_tool_call_output", "call_id": id, "output": PLACEHOLDER})
        }
        Place::Field(Field::LocalShellAction) => {
            json!({"type": "local_shell_call_output", "id": id, "output": PLACEHOLDER})
        }
        Place::Field(Field::ShellAction) => json!({
            "type": "shell_call_output", "call_id": id,
            "output": [{
                "stdout": "", "stderr": PLACEHOLDER,
                "outcome": {"type": "exit", "exit_code": 1},
            }],
        }),
        Place::Field(Field::ComputerAction | Field::ComputerActions) => json!({
            "type": "computer_call_output", "call_id": id,
            "output": {"type": "computer_screenshot", "image_url": PIXEL},
        }),
        Place::Field(Field::Operation) => json!({
            "type": "apply_patch_call_output", "call_id": id, "status": "failed",
            "output": PLACEHOLDER,
        }),
        Place::Field(Field::Code) => json!({
            "type": "program_output", "id": id, "call_id": id, "result": PLACEHOLDER,
            "status": "incomplete",
        }),
        // A request for approval has a name, a search for tools has none.
        Place::Field(Field::Arguments) if call.name.is_some() => json!({
            "type": "mcp_approval_response", "approval_request_id": id, "approve": false,
            "reason": PLACEHOLDER,
        }),
        Place::Field(Field::Arguments) => json!({
            "type": "tool_search_output", "call_id": id, "tools": [], "status": "incomplete",
        }),
        _ => {
            let kind = call.kind.as_deref().unwrap_or("function_call");
            json!({"type": format!("{kind}_output"), "call_id": id, "output": PLACEHOLDER})
        }
    }
}

/// The new content of a replaced part, as its place takes it; `None` for a plain string.
pub(crate) fn replacement(
    place: Place,
    is_error: bool,
    text: &str,
    form: TextForm,
) -> Option<Json> {
    match place {
        Place::Block(_) | Place::Part(_) => Some(form.block(text)),
        Place::PartResponse(_) | Place::PartResponseSnake(_) if is_error => {
            Some(json!({"error": text}))
        }
        Place::PartResponse(_) | Place::PartResponseSnake(_) => Some(json!({"output": text})),
        Place::ToolResultContent(_) => Some(json!([{"text": text}])),
        Place::ShellOutput => Some(json!([{
            "stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0},
        }])),
        _ => None,
    }
}
