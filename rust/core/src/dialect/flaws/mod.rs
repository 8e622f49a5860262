//! What is wrong inside one message, whatever stands around it, and what mends it.
//!
//! Lint and repair both ask here, so that neither sees what the other does not. A message without
//! a flaw costs a look at each of its parts and allocates nothing.

pub(super) mod arguments;
mod media;
pub(super) mod names;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use self::arguments::object_of;
use super::Dialect;
use super::form::{PIXEL, PLACEHOLDER};
use super::lint::Rule;
use super::repair::{Block, Edit, Path, is_legacy_result};
use crate::message::{Body, Field, Message, Part, PartKind, PathStep, Place, Role};
use crate::node::{Node, Shape, Text, Value};

/// One thing that is wrong.
#[derive(Debug)]
pub(super) struct Flaw {
    /// The rule that it breaks.
    pub(super) rule: Rule,
    /// What is wrong and where, without any content.
    pub(super) message: String,
    fix: Fix,
}

/// What mends a flaw; paths lead from the message.
#[derive(Debug)]
enum Fix {
    /// Nothing inside the message does.
    None,
    /// The value at this path becomes this one.
    Set(Path, Json),
    /// The field at the end of this path goes.
    Remove(Path),
    /// The item of a list at the end of this path goes.
    Drop(Path),
}

/// Whether a rule is about the inside of a message: one that could not be read included.
pub(super) fn is_inside(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::InvalidMessage
            | Rule::TooDeep
            | Rule::MissingName
            | Rule::InvalidName
            | Rule::MissingData
            | Rule::EmptyCalls
            | Rule::InputNotObject
            | Rule::ArgumentsNotText
            | Rule::MissingOutput
            | Rule::Ge7EmptyPart
    )
}

const fn key(name: &'static str) -> PathStep {
    PathStep::Key(name)
}

/// What is wrong inside a message that could be read.
pub(super) fn find<N: Node>(dialect: Dialect, node: &N, message: &Message<N::Text>) -> Vec<Flaw> {
    let mut finder = Finder {
        dialect,
        node,
        listed_calls: 0,
        found: Vec::new(),
    };
    if dialect == Dialect::OpenAi && message.role == Role::Assistant {
        finder.empty_calls();
    }
    for part in &message.parts {
        match part.kind {
            PartKind::Text | PartKind::Reasoning => {}
            PartKind::Call => finder.call(part),
            PartKind::Result => finder.result(part),
            PartKind::Image | PartKind::Audio | PartKind::File | PartKind::Opaque => {
                finder.block(part);
            }
        }
    }
    finder.found
}

/// The edits that take the flaws out of message `index`. Each list is put together once, however
/// many of its items change.
pub(super) fn mend<N: Node>(
    dialect: Dialect,
    node: &N,
    message: &Message<N::Text>,
    index: u32,
) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut inner: BTreeMap<&'static str, BTreeMap<u32, Vec<Fix>>> = BTreeMap::new();
    for flaw in find(dialect, node, message) {
        let (Fix::Set(path, _) | Fix::Remove(path) | Fix::Drop(path)) = &flaw.fix else {
            continue;
        };
        if let [PathStep::Key(list), PathStep::Index(at), ..] = path[..] {
            let fixes = inner.entry(list).or_default();
            fixes.entry(at).or_default().push(flaw.fix);
            continue;
        }
        match flaw.fix {
            Fix::Set(path, value) => edits.push(Edit::Set(path, value)),
            Fix::Remove(path) => edits.push(Edit::Remove(path)),
            Fix::Drop(_) | Fix::None => {}
        }
    }
    for (list, mut fixes) in inner {
        let count = node.get(list).map_or(0, |items| items.len());
        let blocks = (0..count as u32).filter_map(|at| {
            let path = vec![key(list), PathStep::Index(at)];
            let item = node.get(list)?.item(at as usize)?;
            let edits = match fixes.remove(&at) {
                Some(fixes) => inside(&item, index, &path, fixes)?,
                None => Vec::new(),
            };
            Some(Block::Own(index, path, edits))
        });
        edits.push(Edit::Blocks(vec![key(list)], blocks.collect()));
    }
    edits
}

/// The edits of one item of a list, whose way from the message is `path`; `None` if it goes.
fn inside<N: Node>(item: &N, index: u32, path: &[PathStep], fixes: Vec<Fix>) -> Option<Vec<Edit>> {
    let mut edits = Vec::new();
    // The list inside it that loses items, and which.
    let mut list: Path = Vec::new();
    let mut gone = BTreeSet::new();
    for fix in fixes {
        let rest = |whole: &Path| whole.get(path.len()..).unwrap_or_default().to_vec();
        match fix {
            Fix::Set(whole, value) => edits.push(Edit::Set(rest(&whole), value)),
            Fix::Remove(whole) => edits.push(Edit::Remove(rest(&whole))),
            Fix::Drop(whole) => {
                let mut way = rest(&whole);
                let Some(PathStep::Index(at)) = way.pop() else {
                    return None;
                };
                gone.insert(at);
                list = way;
            }
            Fix::None => {}
        }
    }
    if gone.is_empty() {
        return Some(edits);
    }
    let mut inner = None;
    for step in &list {
        let PathStep::Key(name) = *step else { continue };
        inner = match &inner {
            None => item.get(name),
            Some(inner) => N::get(inner, name),
        };
    }
    let count = inner.map_or(0, |inner| inner.len());
    let kept = (0..count as u32).filter(|at| !gone.contains(at)).map(|at| {
        let way = [path, &list, &[PathStep::Index(at)]].concat();
        Block::Own(index, way, Vec::new())
    });
    let kept = kept.collect();
    edits.push(Edit::Blocks(list, kept));
    Some(edits)
}

struct Finder<'a, N> {
    dialect: Dialect,
    node: &'a N,
    /// Calls of `tool_calls` so far.
    listed_calls: u32,
    found: Vec<Flaw>,
}

impl<N: Node> Finder<'_, N> {
    #[cold]
    fn add(&mut self, rule: Rule, message: impl Into<String>, fix: Fix) {
        self.found.push(Flaw {
            rule,
            message: message.into(),
            fix,
        });
    }

    fn empty_calls(&mut self) {
        const CALLS: &str = "tool_calls";
        if self.node.field_count() == Some(2) {
            return;
        }
        let calls = self.node.get(CALLS);
        if calls.is_some_and(|calls| calls.shape() == Shape::List && calls.is_empty()) {
            let message = "tool_calls is an empty list";
            self.add(Rule::EmptyCalls, message, Fix::Remove(vec![key(CALLS)]));
        }
    }

    fn call<T: Text>(&mut self, part: &Part<T>) {
        let path = self.call_path(part);
        let name = part.key.as_deref().and_then(|key| key.name.as_ref());
        if lacks_name(self.dialect, part) {
            let message = format!("{} has no name", spelled(&path));
            self.add(Rule::MissingName, message, Fix::None);
        } else if let Some(name) = name.filter(|_| has_name(self.dialect, part)) {
            self.name(name, &path);
        }
        self.arguments(part, path);
    }

    /// The way to what holds the name and the arguments of a call.
    fn call_path<T>(&mut self, part: &Part<T>) -> Path {
        match part.place {
            Place::CallArguments(at) => {
                self.listed_calls = at + 1;
                vec![key("tool_calls"), PathStep::Index(at), key("function")]
            }
            Place::Field(Field::ToolCalls) => {
                let at = self.listed_calls;
                self.listed_calls += 1;
                vec![key("tool_calls"), PathStep::Index(at), key("custom")]
            }
            Place::Field(Field::FunctionCall) => vec![key("function_call")],
            Place::ToolUseInput(at) => {
                vec![key("content"), PathStep::Index(at), key("toolUse")]
            }
            Place::PartArgs(at) => vec![key("parts"), PathStep::Index(at), key("functionCall")],
            Place::PartArgsSnake(at) => {
                vec![key("parts"), PathStep::Index(at), key("function_call")]
            }
            Place::SignedPart(at) => self.signed(at, ["functionCall", "function_call"]),
            Place::BlockInput(at) => vec![key("content"), PathStep::Index(at)],
            _ => Vec::new(),
        }
    }

    /// The way to the one of two fields that a signed part has.
    fn signed(&self, at: u32, [camel, snake]: [&'static str; 2]) -> Path {
        let parts = self.node.get("parts");
        let part = parts.and_then(|parts| parts.item(at as usize));
        let has_camel = part.is_some_and(|part| part.get(camel).is_some_and(|it| !it.is_null()));
        let name = if has_camel { camel } else { snake };
        vec![key("parts"), PathStep::Index(at), key(name)]
    }

    /// A name in the alphabet and the length of the dialect.
    fn name<T: Text>(&mut self, name: &T, holder: &[PathStep]) {
        let dialect = self.dialect;
        if name.with(|name| names::takes(dialect, name)) {
            return;
        }
        let path = [holder, &[key("name")]].concat();
        let message = format!(
            "{} is too long or has characters that may not be in it",
            spelled(&path)
        );
        let mended = name.with(|name| names::mended(dialect, name));
        self.add(Rule::InvalidName, message, Fix::Set(path, mended.into()));
    }

    fn arguments<T: Text>(&mut self, part: &Part<T>, mut path: Path) {
        let json = |value: &Value<T>| Json::String(value.to_json());
        let (rule, field, value) = match (part.place, &part.body) {
            (Place::BlockInput(_) | Place::ToolUseInput(_), body) => {
                let value = match body {
                    Body::Value(Value::Map(_)) => return,
                    Body::Value(value) => object_of(&value.to_json()),
                    Body::Text(text) => text.with(object_of),
                    Body::Empty => json!({}),
                };
                (Rule::InputNotObject, "input", value)
            }
            (Place::CallArguments(_) | Place::Field(Field::FunctionCall), Body::Empty) => {
                (Rule::ArgumentsNotText, "arguments", json!("{}"))
            }
            (Place::Field(Field::ToolCalls), Body::Empty) => {
                (Rule::ArgumentsNotText, "input", json!(""))
            }
            (Place::Arguments, Body::Empty) => (Rule::ArgumentsNotText, "arguments", json!("{}")),
            (Place::Arguments, Body::Value(value)) => {
                (Rule::ArgumentsNotText, "arguments", json(value))
            }
            (Place::Input, Body::Empty) => (Rule::ArgumentsNotText, "input", json!("")),
            (Place::Input, Body::Value(value)) => (Rule::ArgumentsNotText, "input", json(value)),
            _ => return,
        };
        path.push(key(field));
        let asked = if rule == Rule::InputNotObject {
            "an object"
        } else {
            "a string"
        };
        let message = format!("{} is not {asked}", spelled(&path));
        self.add(rule, message, Fix::Set(path, value));
    }

    fn result<T: Text>(&mut self, part: &Part<T>) {
        let name = part.key.as_deref().and_then(|key| key.name.as_ref());
        if let Some(name) = name.filter(|name| !name.with(str::is_empty)) {
            let holder = match part.place {
                Place::PartResponse(at) => {
                    vec![key("parts"), PathStep::Index(at), key("functionResponse")]
                }
                Place::PartResponseSnake(at) => {
                    vec![key("parts"), PathStep::Index(at), key("function_response")]
                }
                Place::SignedPart(at) => self.signed(at, ["functionResponse", "function_response"]),
                _ => Vec::new(),
            };
            let counts = self.dialect == Dialect::Gemini || is_legacy_result(self.node);
            if counts {
                self.name(name, &holder);
            }
        }
        if self.dialect == Dialect::Responses && matches!(part.body, Body::Empty) {
            self.output(part.place);
        }
        let Body::Value(Value::List(items)) = &part.body else {
            return;
        };
        for (at, item) in items.iter().enumerate() {
            if !media::is_there(self.dialect, item) {
                let mut path = part.place.path();
                path.push(PathStep::Index(at as u32));
                self.empty(path);
            }
        }
    }

    /// The output of an item that has none.
    fn output(&mut self, place: Place) {
        let (field, value) = match place {
            // A patch may say nothing.
            Place::OutputText => {
                let kind = self.node.get("type");
                if kind.is_some_and(|kind| kind.is_str("apply_patch_call_output")) {
                    return;
                }
                ("output", json!(""))
            }
            Place::Output => ("output", json!("")),
            Place::ResultText => ("result", json!("")),
            Place::ShellOutput => ("output", json!([])),
            Place::Field(Field::Output) => {
                let value = json!({"type": "computer_screenshot", "image_url": PIXEL});
                ("output", value)
            }
            Place::Field(Field::Tools) => ("tools", json!([])),
            Place::Field(Field::Approve) => {
                let path = vec![key("reason")];
                let message = "approve is missing: nobody agreed";
                let fix = Fix::Set(path, json!(PLACEHOLDER));
                self.add(Rule::MissingOutput, message, fix);
                ("approve", json!(false))
            }
            _ => return,
        };
        let message = format!("{field} is missing");
        self.add(
            Rule::MissingOutput,
            message,
            Fix::Set(vec![key(field)], value),
        );
    }

    fn block<T: Text>(&mut self, part: &Part<T>) {
        let (Place::Block(at) | Place::Part(at) | Place::SignedPart(at), Body::Value(block)) =
            (part.place, &part.body)
        else {
            return;
        };
        if !media::is_there(self.dialect, block) {
            let path = part.place.path();
            // What is signed stays: an empty text may carry the signature.
            if self.dialect == Dialect::Gemini && media::is_signature(block) {
                let message = format!("{} has a signature and no data", spelled(&path));
                let fix = Fix::Set([&path[..], &[key("text")]].concat(), json!(""));
                self.add(Rule::Ge7EmptyPart, message, fix);
                return;
            }
            self.empty(path);
        } else if self.dialect == Dialect::OpenAi && !media::is_known(block) {
            let message = format!("content[{at}] is of a type that not every server knows");
            self.add(Rule::UnknownPart, message, Fix::None);
        }
    }

    /// Something that should hold data and holds none.
    #[cold]
    fn empty(&mut self, path: Path) {
        let rule = match self.dialect {
            Dialect::Gemini => Rule::Ge7EmptyPart,
            _ => Rule::MissingData,
        };
        let message = format!("{} has no data", spelled(&path));
        self.add(rule, message, Fix::Drop(path));
    }
}

/// Whether a call of this kind has the name of a tool.
fn has_name<T>(dialect: Dialect, part: &Part<T>) -> bool {
    dialect != Dialect::Responses || matches!(part.place, Place::Arguments | Place::Input)
}

/// Whether a call should have a name and has none.
pub(super) fn lacks_name<T: Text>(dialect: Dialect, part: &Part<T>) -> bool {
    let name = part.key.as_deref().and_then(|key| key.name.as_ref());
    part.kind == PartKind::Call
        && has_name(dialect, part)
        && name.is_none_or(|name| name.with(str::is_empty))
}

/// A path as people read it: `content[2].source`.
fn spelled(path: &[PathStep]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            PathStep::Key(name) if out.is_empty() => out.push_str(name),
            PathStep::Key(name) => {
                out.push('.');
                out.push_str(name);
            }
            PathStep::Index(at) => {
                out.push('[');
                out.push_str(&at.to_string());
                out.push(']');
            }
        }
    }
    if out.is_empty() {
        out.push_str("the item");
    }
    out
}
