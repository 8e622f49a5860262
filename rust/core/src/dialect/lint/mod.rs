//! What a provider would reject, found before it is sent.
//!
//! One catalogue of rules with stable codes; one checker per dialect that walks the messages once.
//! A finding, not an error: linting is total, and a message that cannot be read is a finding too
//! (what stands around it is then not judged). Pairing is positional, because ids repeat in real
//! histories. Costs time in proportion to the messages; texts are only looked at for blankness.

pub(super) mod anthropic;
mod calls;
mod catalogue;
mod marks;
mod openai;
mod previous;
mod progress;
mod responses;
mod turns;

use self::calls::{Answer, Call, Calls, calls_of};
pub use self::catalogue::{Rule, RuleEntry, Severity};
pub use self::marks::count_marks;
pub use self::progress::Progress;
use super::repair::ids::IdRule;
use super::{Dialect, Traits, flaws, read_message, read_system};
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Body, Field, Message, Part, PartKind, Place, Role};
use crate::node::{Node, Text, Value};

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

/// A request as it is checked.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a, N> {
    /// Its messages.
    pub messages: &'a [N],
    /// Its `system` argument.
    pub system: Option<&'a N>,
    /// Its tool definitions.
    pub tools: Option<&'a N>,
    /// What its model asks for.
    pub traits: Traits,
    /// The messages of the request before it.
    pub previous: Option<&'a [N]>,
    /// Whether system and tools are those of the request before it.
    pub same_prompt: bool,
}

/// Checks messages, the `system` argument and the tools of a request to any model.
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
    let messages: Vec<N> = messages.into_iter().collect();
    check(
        dialect,
        &Request {
            messages: &messages,
            system,
            tools,
            traits: Traits::default(),
            previous: None,
            same_prompt: true,
        },
    )
}

/// Checks a request; findings as [`lint`].
pub fn check<N: Node>(dialect: Dialect, request: &Request<'_, N>) -> Vec<Violation> {
    check_read(dialect, request, &read_all(dialect, request.messages))
}

pub(crate) fn read_all<N: Node>(dialect: Dialect, messages: &[N]) -> Vec<Result<Message<N::Text>>> {
    let messages = messages.iter().enumerate();
    messages
        .map(|(index, message)| read_message(dialect, message, index))
        .collect()
}

/// Checks a request whose messages are read.
pub(crate) fn check_read<N: Node>(
    dialect: Dialect,
    request: &Request<'_, N>,
    read: &[Result<Message<N::Text>>],
) -> Vec<Violation> {
    let mut found = Findings::default();
    for (index, message) in read.iter().enumerate() {
        match message {
            Ok(message) => {
                for flaw in flaws::find(dialect, &request.messages[index], message) {
                    found.add(flaw.rule, index, flaw.message);
                }
            }
            Err(error) => found.0.push(unreadable(Some(index), error)),
        }
    }
    let is_instruction = |message: &Result<Message<N::Text>>| matches!(message, Ok(message) if message.role.is_instruction());
    if read.iter().all(is_instruction) {
        let message = "there is no message besides instructions yet";
        found.add_outside(Rule::NoMessages, message);
    }
    let system = request.system.filter(|system| !system.is_null());
    let system = system.and_then(|system| found.readable(read_system(system)));
    let tools = request.tools.filter(|tools| !tools.is_null());
    let tools = tools.and_then(|tools| {
        // The `toolConfig` of Converse has its list inside.
        let list = tools.get("tools");
        found.readable(list.as_ref().unwrap_or(tools).capture())
    });
    match dialect {
        Dialect::OpenAi => openai::check(read, request.messages, request.traits, &mut found),
        Dialect::Anthropic => {
            anthropic::check(read, system.as_ref(), request.traits, &mut found);
        }
        Dialect::Responses => responses::check(read, request.messages, &mut found),
        Dialect::Gemini => turns::check_gemini(read, request.traits, &mut found),
        Dialect::Bedrock => {
            turns::check_bedrock(read, tools.as_ref(), &mut found);
        }
    }
    check_ids(dialect, read, &mut found);
    if let Some(tools) = tools {
        check_declared(read, &tools, &mut found);
    }
    marks::check(dialect, request, &mut found);
    if let Some(previous) = request.previous {
        previous::check(dialect, request, previous, &mut found);
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
    /// The value, or a finding without a message.
    fn readable<V>(&mut self, value: Result<V>) -> Option<V> {
        value
            .map_err(|error| self.0.push(unreadable(None, &error)))
            .ok()
    }

    #[cold]
    fn add_outside(&mut self, rule: Rule, message: impl Into<String>) {
        self.0.push(Violation {
            rule,
            index: None,
            message: message.into(),
        });
    }

    #[cold]
    fn add(&mut self, rule: Rule, index: usize, message: impl Into<String>) {
        self.0.push(Violation {
            rule,
            index: Some(index),
            message: message.into(),
        });
    }
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

/// Ids of calls: there, in the alphabet and the length of the dialect, and different where it asks
/// for that.
fn check_ids<T: Text>(dialect: Dialect, messages: &[Result<Message<T>>], found: &mut Findings) {
    let rule = IdRule::of(dialect);
    let mut taken = std::collections::BTreeSet::new();
    // Elsewhere an id may come again in a later message, but not in the same one.
    let is_unique_inside = matches!(dialect, Dialect::OpenAi | Dialect::Bedrock);
    for (index, message) in messages.iter().enumerate() {
        let Ok(message) = message else { continue };
        if message.role != Role::Assistant {
            continue;
        }
        let is_call = |part: &&Part<T>| part.kind == PartKind::Call;
        let has_several = is_unique_inside && message.parts.iter().filter(is_call).nth(1).is_some();
        if has_several {
            taken.clear();
        }
        for part in &message.parts {
            let is_listed = part.place != Place::Field(Field::FunctionCall);
            if part.kind != PartKind::Call || !is_listed {
                continue;
            }
            let id = part.key.as_deref().and_then(|key| key.id.as_ref());
            let Some(id) = id.filter(|id| !id.with(str::is_empty)) else {
                if !rule.is_needed {
                    continue;
                }
                found.add(Rule::MissingId, index, "a call has no id");
                continue;
            };
            if !id.with(|id| rule.takes(id)) {
                let (code, what) = match dialect {
                    Dialect::OpenAi => (Rule::Oc3LongId, "the id of a call is too long"),
                    Dialect::Anthropic => (
                        Rule::An4InvalidId,
                        "the id of a call has characters that may not be in it",
                    ),
                    _ => (
                        Rule::InvalidId,
                        "the id of a call is too long or has characters that may not be in it",
                    ),
                };
                found.add(code, index, what);
            }
            if is_unique_inside {
                if has_several && !taken.insert(id.with(str::to_owned)) {
                    let message = "two calls of the message have one id";
                    found.add(Rule::RepeatedId, index, message);
                }
            } else if rule.is_unique && !taken.insert(id.with(str::to_owned)) {
                let message = "a call has the id of an earlier one";
                found.add(Rule::An4RepeatedId, index, message);
            }
        }
    }
}

fn check_declared<T: Text>(
    messages: &[Result<Message<T>>],
    tools: &Value<T>,
    found: &mut Findings,
) {
    let mut names = std::collections::BTreeSet::new();
    // One definition alone is taken like a list of it.
    let alone = matches!(tools, Value::Map(_)).then(|| std::slice::from_ref(tools));
    for tool in alone.unwrap_or_else(|| tools.items()) {
        // A group of functions: Gemini's declarations, a namespace of Responses.
        let group = ["functionDeclarations", "function_declarations", "tools"]
            .iter()
            .find_map(|key| tool.get(key));
        let several = group.map_or(std::slice::from_ref(tool), Value::items);
        names.extend(several.iter().filter_map(|tool| {
            let tool = ["function", "custom", "toolSpec"]
                .iter()
                .find_map(|key| tool.get(key))
                .unwrap_or(tool);
            let name = tool.get("name")?.as_text()?;
            Some(name.with(str::to_owned))
        }));
    }
    for (index, message) in messages.iter().enumerate() {
        let Ok(message) = message else { continue };
        let undeclared = calls_of(message, index).find(|call| {
            let name = call.key.and_then(|key| key.name.as_ref());
            name.is_some_and(|name| !name.with(|name| names.contains(name)))
        });
        if let Some(Call { number, total, .. }) = undeclared {
            let message = format!("call {number} of {total} names a tool that is not declared");
            found.add(Rule::UndeclaredTool, index, message);
        }
    }
}

/// Whether a part is a blank text, or a result with one in it.
fn has_blank_text<T: Text>(part: &Part<T>) -> bool {
    match (part.kind, &part.body) {
        (PartKind::Text, Body::Text(text)) => is_blank(text),
        (PartKind::Result, Body::Value(Value::List(blocks))) => blocks.iter().any(|block| {
            let text = block.get("text").and_then(Value::as_text);
            text.is_some_and(is_blank)
        }),
        _ => false,
    }
}
