//! What a provider would reject, found before it is sent.
//!
//! One catalogue of rules with stable codes; one checker per dialect that walks the messages once.
//! A finding, not an error: linting is total, and a message that cannot be read is a finding too
//! (what stands around it is then not judged). Pairing is positional, because ids repeat in real
//! histories. Costs time in proportion to the messages; texts are only looked at for blankness.

mod anthropic;
mod openai;

use super::{Dialect, read_message, read_system};
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Body, CallKey, Message, Part};
use crate::node::{Node, Text, Value};

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

/// A rule of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// A message of the wrong shape.
    InvalidMessage,
    /// A message nested too deep.
    TooDeep,
    /// `openai`: a call without its result.
    Oc1UnansweredCall,
    /// `openai`: a result without its call.
    Oc2OrphanResult,
    /// `openai`: a message without content.
    Oc4MissingContent,
    /// `anthropic`: a call without its result.
    An1UnansweredCall,
    /// `anthropic`: something before the results.
    An1ResultsNotFirst,
    /// `anthropic`: a result without its call.
    An2OrphanResult,
    /// `anthropic`: two results for one call.
    An3DuplicateResult,
    /// `anthropic`: an empty message.
    An10EmptyMessage,
    /// `anthropic`: a blank text.
    An11BlankText,
    /// `anthropic`: the conversation does not start with the user.
    FirstNotUser,
    /// `anthropic`: neighbours with one role.
    SameRole,
    /// `anthropic`: text behind results.
    TextAfterResults,
    /// A call of a tool that is not declared.
    UndeclaredTool,
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

impl Rule {
    /// The catalogue, in order.
    pub const ALL: [Self; 15] = [
        Self::InvalidMessage,
        Self::TooDeep,
        Self::Oc1UnansweredCall,
        Self::Oc2OrphanResult,
        Self::Oc4MissingContent,
        Self::An1UnansweredCall,
        Self::An1ResultsNotFirst,
        Self::An2OrphanResult,
        Self::An3DuplicateResult,
        Self::An10EmptyMessage,
        Self::An11BlankText,
        Self::FirstNotUser,
        Self::SameRole,
        Self::TextAfterResults,
        Self::UndeclaredTool,
    ];

    /// Its entry in the catalogue.
    pub fn entry(self) -> RuleEntry {
        let (code, id, sentence, provider_error) = match self {
            Self::InvalidMessage => (
                "invalid_message",
                "",
                "a message has a role, and content of a known shape",
                "",
            ),
            Self::TooDeep => ("too_deep", "", "a message nests at most 128 levels", ""),
            Self::Oc1UnansweredCall => (
                "oc1_unanswered_call",
                "OC1",
                "an assistant message with calls is followed at once by a tool message for each",
                "must be followed by tool messages responding to each",
            ),
            Self::Oc2OrphanResult => (
                "oc2_orphan_result",
                "OC2",
                "a tool message answers an open call of the assistant message before it",
                "must be a response to a preceeding message with 'tool_calls'",
            ),
            Self::Oc4MissingContent => (
                "oc4_missing_content",
                "OC4",
                "content is missing or null only beside calls",
                "expected a string, got null",
            ),
            Self::An1UnansweredCall => (
                "an1_unanswered_call",
                "AN1",
                "each tool_use has its tool_result in the next user message",
                "ids were found without `tool_result` blocks immediately after",
            ),
            Self::An1ResultsNotFirst => (
                "an1_results_not_first",
                "AN1",
                "results come first in the user message that answers calls",
                "ids were found without `tool_result` blocks immediately after",
            ),
            Self::An2OrphanResult => (
                "an2_orphan_result",
                "AN2",
                "each tool_result has its tool_use in the assistant message before it",
                "unexpected `tool_use_id` found in `tool_result` blocks",
            ),
            Self::An3DuplicateResult => (
                "an3_duplicate_result",
                "AN3",
                "each tool_use has one result",
                "each tool_use must have a single result",
            ),
            Self::An10EmptyMessage => (
                "an10_empty_message",
                "AN10",
                "every message but a last one of the assistant has content",
                "all messages must have non-empty content",
            ),
            Self::An11BlankText => (
                "an11_blank_text",
                "AN11",
                "every text has something else than white space",
                "text content blocks must",
            ),
            Self::FirstNotUser => (
                "first_not_user",
                "G1",
                "the first message is the user's",
                "",
            ),
            Self::SameRole => (
                "same_role",
                "G11",
                "roles alternate: the provider merges neighbours with one role",
                "",
            ),
            Self::TextAfterResults => (
                "text_after_results",
                "G4",
                "text behind results teaches the model to end its turn: a later message is better",
                "",
            ),
            Self::UndeclaredTool => (
                "undeclared_tool",
                "G9",
                "tools that the history calls stay declared",
                "",
            ),
        };
        RuleEntry {
            code,
            id,
            severity: self.severity(),
            sentence,
            provider_error,
        }
    }

    fn severity(self) -> Severity {
        match self {
            Self::SameRole | Self::TextAfterResults | Self::UndeclaredTool => Severity::Warning,
            _ => Severity::Error,
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule that is broken.
    pub rule: Rule,
    /// Raw index of the message; `None` for the system argument and the tools.
    pub index: Option<usize>,
    /// What is wrong, without any content of the conversation.
    pub message: String,
}

/// Checks a request: its messages, its `system` argument, its tools.
///
/// Findings come in the order of the messages, those without a message first.
///
/// # Example
/// ```
/// # use satchel_core::dialect::{Dialect, lint::{Rule, lint}};
/// let messages = [
///     serde_json::json!({"role": "user", "content": "hi"}),
///     serde_json::json!({"role": "tool", "tool_call_id": "a", "content": "42"}),
/// ];
/// let found = lint(Dialect::OpenAi, &messages, None, None);
/// assert_eq!((found[0].rule, found[0].index), (Rule::Oc2OrphanResult, Some(1)));
/// ```
pub fn lint<N: Node>(
    dialect: Dialect,
    messages: impl IntoIterator<Item = N>,
    system: Option<&N>,
    tools: Option<&N>,
) -> Vec<Violation> {
    let messages: Vec<_> = messages
        .into_iter()
        .enumerate()
        .map(|(index, message)| read_message(dialect, &message, index))
        .collect();
    let mut found = Vec::new();
    let system = system
        .filter(|system| !system.is_null())
        .and_then(|system| match read_system(system) {
            Ok(system) => Some(system),
            Err(error) => {
                found.push(unreadable(None, &error));
                None
            }
        });
    let tools = tools
        .filter(|tools| !tools.is_null())
        .and_then(|tools| match tools.capture() {
            Ok(tools) => Some(tools),
            Err(error) => {
                found.push(unreadable(None, &error));
                None
            }
        });
    found.extend(lint_messages(
        dialect,
        &messages,
        system.as_ref(),
        tools.as_ref(),
    ));
    found
}

/// [`lint`] for messages that are read already; what could not be read stands as its error.
pub fn lint_messages<T: Text>(
    dialect: Dialect,
    messages: &[Result<Message<T>>],
    system: Option<&Message<T>>,
    tools: Option<&Value<T>>,
) -> Vec<Violation> {
    let mut found = Findings::default();
    for (index, message) in messages.iter().enumerate() {
        if let Err(error) = message {
            found.0.push(unreadable(Some(index), error));
        }
    }
    match dialect {
        Dialect::OpenAi => openai::check(messages, &mut found),
        Dialect::Anthropic => anthropic::check(messages, system, &mut found),
        Dialect::Responses | Dialect::Gemini | Dialect::Bedrock => {}
    }
    if let Some(tools) = tools {
        check_declared(messages, tools, &mut found);
    }
    found.0.sort_by_key(|violation| violation.index);
    found.0
}

fn unreadable(index: Option<usize>, error: &Error) -> Violation {
    let rule = match error.kind() {
        ErrorKind::TooDeep => Rule::TooDeep,
        _ => Rule::InvalidMessage,
    };
    let message = error.to_string();
    // The index stands beside it.
    let prefix = index.map(|index| format!("message {index}: "));
    let message = match prefix.and_then(|prefix| message.strip_prefix(&prefix).map(str::to_owned)) {
        Some(message) => message,
        None => message,
    };
    Violation {
        rule,
        index,
        message,
    }
}

#[derive(Default)]
struct Findings(Vec<Violation>);

impl Findings {
    #[cold]
    fn add(&mut self, rule: Rule, index: usize, message: impl Into<String>) {
        self.0.push(Violation {
            rule,
            index: Some(index),
            message: message.into(),
        });
    }
}

/// A call that waits for its result, or has it.
struct Call<'a, T> {
    key: Option<&'a CallKey<T>>,
    /// Raw index of its message.
    index: usize,
    /// Its number in that message, from 1, and how many calls there are.
    number: usize,
    total: usize,
    is_answered: bool,
}

/// The calls of a message.
fn calls_of<T>(message: &Message<T>, index: usize) -> impl Iterator<Item = Call<'_, T>> {
    let is_call = |part: &&Part<T>| part.kind == crate::message::PartKind::Call;
    let total = message.parts.iter().filter(is_call).count();
    let calls = message.parts.iter().filter(is_call);
    calls.enumerate().map(move |(at, part)| Call {
        key: part.key.as_deref(),
        index,
        number: at + 1,
        total,
        is_answered: false,
    })
}

/// What a result finds among the calls before it.
enum Answer {
    /// The first open call with its id; it is answered now.
    Open,
    /// Only answered calls have its id.
    Answered,
    /// No call has its id.
    Unknown,
}

/// Pairs a result with a call, by id and position: of several with one id the first open one.
fn answer<T: Text>(calls: &mut [Call<'_, T>], result: Option<&CallKey<T>>) -> Answer {
    let id = result.and_then(|key| key.id.as_ref());
    let mut found = Answer::Unknown;
    for call in calls {
        let same = match (call.key.and_then(|key| key.id.as_ref()), id) {
            (Some(call), Some(result)) => call.with(|call| result.with(|result| call == result)),
            (None, None) => true,
            _ => false,
        };
        if same && !call.is_answered {
            call.is_answered = true;
            return Answer::Open;
        }
        if same {
            found = Answer::Answered;
        }
    }
    found
}

fn is_blank<T: Text>(text: &T) -> bool {
    text.with(|text| text.trim_start().is_empty())
}

fn is_empty<T: Text>(body: &Body<T>) -> bool {
    match body {
        Body::Text(text) => text.with(str::is_empty),
        Body::Empty => true,
        Body::Value(_) => false,
    }
}

fn check_declared<T: Text>(
    messages: &[Result<Message<T>>],
    tools: &Value<T>,
    found: &mut Findings,
) {
    let names: Vec<&T> = tools
        .items()
        .iter()
        .filter_map(|tool| {
            let tool = tool
                .get("function")
                .or_else(|| tool.get("custom"))
                .unwrap_or(tool);
            tool.get("name")?.as_text()
        })
        .collect();
    for (index, message) in messages.iter().enumerate() {
        let Ok(message) = message else { continue };
        let undeclared = calls_of(message, index).find(|call| {
            let name = call.key.and_then(|key| key.name.as_ref());
            name.is_some_and(|name| {
                name.with(|name| !names.iter().any(|known| known.with(|known| known == name)))
            })
        });
        if let Some(Call { number, total, .. }) = undeclared {
            let message = format!("call {number} of {total} names a tool that is not declared");
            found.add(Rule::UndeclaredTool, index, message);
        }
    }
}
