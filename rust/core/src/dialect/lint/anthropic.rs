//! Results right after their calls and first, one each, nothing blank; reasoning signed; roles and
//! instructions where they may stand; server tools paired by the server itself.
//!
//! The provider merges neighbours with one role, so runs of user or assistant messages are judged
//! as one.

use super::{Answer, Call, Calls, Findings, Rule, calls_of, has_blank_text, is_blank, is_empty};
use crate::dialect::Traits;
use crate::dialect::open_calls::{Found, OpenCalls};
use crate::dialect::repair::{is_unsigned, is_void};
use crate::error::Result;
use crate::message::{Body, Message, Part, PartKind, Place, Role};
use crate::node::{Text, Value};

pub(super) fn check<T: Text>(
    messages: &[Result<Message<T>>],
    system: Option<&Message<T>>,
    traits: Traits,
    found: &mut Findings,
) {
    for part in system.iter().flat_map(|system| &system.parts) {
        if matches!(&part.body, Body::Text(text) if is_blank(text)) {
            found.add_outside(
                Rule::An11BlankText,
                "a text of the system argument is blank",
            );
        }
    }
    if let Some(Ok(first)) = messages.first()
        && !matches!(first.role, Role::User | Role::System)
    {
        let role = first.role.name();
        let message = format!("the first message is of role {role}");
        found.add(Rule::FirstNotUser, 0, message);
    }
    let mut run = Run::new();
    for (index, message) in messages.iter().enumerate() {
        let Ok(message) = message else {
            run = Run::new();
            run.is_blind = true;
            continue;
        };
        let is_last = index + 1 == messages.len();
        check_content(message, index, is_last, found);
        run.enter(message.role, index, found);
        match message.role {
            Role::User => run.read_user(message, index, found),
            Role::Assistant => run.read_assistant(message, index, found),
            _ => {}
        }
    }
    run.close(found);
    run.close_turn(found);
    check_systems(messages, found);
    check_end(messages, traits, found);
    check_images(messages, found);
}

/// AN16: an instruction behind a turn of the user, and last or before one of the assistant.
fn check_systems<T>(messages: &[Result<Message<T>>], found: &mut Findings) {
    let role = |message: &Result<Message<T>>| message.as_ref().map_or(Role::User, |m| m.role);
    // The system messages from `start` on wait for what follows them.
    let mut start = 0;
    let mut before = None;
    for end in 0..=messages.len() {
        let after = messages.get(end).map(role);
        if after == Some(Role::System) {
            continue;
        }
        let is_right =
            before == Some(Role::User) && after.is_none_or(|after| after == Role::Assistant);
        for index in (start..end).filter(|_| !is_right) {
            let message = "a system message stands where none may";
            found.add(Rule::An16SystemPosition, index, message);
        }
        start = end + 1;
        before = after;
    }
}

/// AN7, AN12, AN13: what the last turn of the assistant must be.
fn check_end<T: Text>(messages: &[Result<Message<T>>], traits: Traits, found: &mut Findings) {
    let Some((index, Ok(last))) = messages.iter().enumerate().next_back() else {
        return;
    };
    if last.role == Role::Assistant {
        if traits.no_prefill {
            let message = "the last message is the assistant's";
            found.add(Rule::An13Prefill, index, message);
        }
        if let Some(Part {
            kind: PartKind::Text,
            body: Body::Text(text),
            ..
        }) = last.parts.last()
            && text.with(|text| text.trim_end().len() < text.len() && !text.trim().is_empty())
        {
            let message = "the last message is the assistant's and ends in white space";
            found.add(Rule::An12TrailingSpace, index, message);
        }
    }
    let newest = messages
        .iter()
        .rposition(|message| matches!(message, Ok(message) if message.role == Role::Assistant));
    if let Some(newest) = newest
        && let Ok(message) = &messages[newest]
    {
        let is_reasoning = |part: &Part<T>| part.kind == PartKind::Reasoning;
        let first = message.parts.iter().position(is_reasoning);
        if first.is_some_and(|first| first > 0) {
            let message = "something stands before the reasoning";
            found.add(Rule::An7ReasoningNotFirst, newest, message);
        }
    }
}

/// AN17: beyond twenty images, old turns and results included, a lower limit of size holds.
fn check_images<T: Text>(messages: &[Result<Message<T>>], found: &mut Findings) {
    const MOST: usize = 20;
    let mut count = 0;
    for (index, message) in messages.iter().enumerate() {
        let Ok(message) = message else { continue };
        let before = count;
        for part in &message.parts {
            count += match (part.kind, &part.body) {
                (PartKind::Image, _) => 1,
                (PartKind::Result, Body::Value(Value::List(blocks))) => blocks
                    .iter()
                    .filter(|block| is_type(block, "image"))
                    .count(),
                _ => 0,
            };
        }
        if before <= MOST && count > MOST {
            let message = "with this message there are more than 20 images";
            found.add(Rule::An17ManyImages, index, message);
        }
    }
}

fn is_type<T: Text>(block: &Value<T>, name: &str) -> bool {
    let kind = block.get("type").and_then(Value::as_text);
    kind.is_some_and(|kind| kind.with(|kind| kind == name))
}

/// What a block has to do with a tool that runs on the server.
pub(in crate::dialect) enum ServerTool<'a, T> {
    /// It calls one.
    Call(&'a T),
    /// It is the result.
    Result(&'a T),
}

/// The server tool's call or result that an opaque block is.
pub(in crate::dialect) fn server_tool<T: Text>(block: &Value<T>) -> Option<ServerTool<'_, T>> {
    let field = |name| block.get(name).and_then(Value::as_text);
    let kind = field("type")?;
    if kind.with(|kind| matches!(kind, "server_tool_use" | "mcp_tool_use")) {
        return field("id").map(ServerTool::Call);
    }
    if kind.with(|kind| kind.ends_with("_tool_result")) {
        return field("tool_use_id").map(ServerTool::Result);
    }
    None
}

/// Server tools that wait for their results, and where they stand.
pub(in crate::dialect) struct Pending<P> {
    places: Vec<P>,
    open: OpenCalls<()>,
}

impl<P> Default for Pending<P> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            open: OpenCalls::default(),
        }
    }
}

impl<P> Pending<P> {
    /// Takes in a call.
    pub(in crate::dialect) fn push<T: Text>(&mut self, id: &T, place: P) {
        id.with(|id| self.open.push(0, Some(id), (), None));
        self.places.push(place);
    }

    /// Whether a call of this id waits; the first of them does not any more.
    pub(in crate::dialect) fn settle<T: Text>(&mut self, id: &T) -> bool {
        let Found::Open(call) = id.with(|id| self.open.with_id(id)) else {
            return false;
        };
        self.open.close(call);
        true
    }

    /// Takes out where those stand that wait.
    pub(in crate::dialect) fn drain(&mut self) -> impl Iterator<Item = P> + use<P> {
        let open = std::mem::take(&mut self.open);
        let places = std::mem::take(&mut self.places).into_iter().enumerate();
        places.filter_map(move |(at, place)| open.is_open(at).then_some(place))
    }
}

/// A run of messages with one role, and the calls that it must answer or that it made.
struct Run<'a, T> {
    role: Option<Role>,
    calls: Calls<'a, T>,
    has_results: bool,
    has_others: bool,
    /// A message before it could not be read: any result may be right.
    is_blind: bool,
    /// Server tools that have no result yet, by raw index.
    pending: Pending<usize>,
    /// Whether the run is of reasoning alone so far, and its last message.
    hollow: Option<usize>,
}

impl<'a, T: Text> Run<'a, T> {
    fn new() -> Self {
        Self {
            role: None,
            calls: Calls::new(false),
            has_results: false,
            has_others: false,
            is_blind: false,
            pending: Pending::default(),
            hollow: None,
        }
    }

    /// Goes on with a message of `role`.
    fn enter(&mut self, role: Role, index: usize, found: &mut Findings) {
        if self.role == Some(role) {
            if role != Role::System {
                let role = role.name();
                let message = format!("the {role} message follows another of its role");
                found.add(Rule::SameRole, index, message);
            }
            return;
        }
        self.close_turn(found);
        // The calls of an assistant run pass on to the user run behind it, and only there.
        let passes_on = self.role == Some(Role::Assistant) && role == Role::User;
        if !passes_on {
            self.close(found);
        }
        if self.role.is_some() {
            self.is_blind = false;
        }
        self.role = Some(role);
        self.has_results = false;
        self.has_others = false;
    }

    fn close(&mut self, found: &mut Findings) {
        for call in self.calls.drain_open() {
            let Call { number, total, .. } = call;
            let message = format!("call {number} of {total} has no result in the next message");
            found.add(Rule::An1UnansweredCall, call.index, message);
        }
    }

    /// Ends a turn of the assistant.
    fn close_turn(&mut self, found: &mut Findings) {
        if let Some(index) = self.hollow.take() {
            let message = "the turn has nothing but reasoning";
            found.add(Rule::ReasoningOnly, index, message);
        }
    }

    fn read_server_tools(&mut self, message: &'a Message<T>, index: usize, found: &mut Findings) {
        for part in &message.parts {
            let (PartKind::Opaque, Body::Value(block)) = (part.kind, &part.body) else {
                continue;
            };
            match server_tool(block) {
                Some(ServerTool::Call(id)) => self.pending.push(id, index),
                Some(ServerTool::Result(id)) => {
                    let has_call = self.pending.settle(id);
                    if !has_call && !self.is_blind {
                        let message = "a result of a server tool has no call";
                        found.add(Rule::An5PendingServerTool, index, message);
                    }
                }
                None => {}
            }
        }
    }

    fn read_assistant(&mut self, message: &'a Message<T>, index: usize, found: &mut Findings) {
        let is_reasoning = |part: &Part<T>| part.kind == PartKind::Reasoning;
        let is_first = !self.has_others;
        self.has_others = true;
        if !message.parts.is_empty() {
            let is_hollow = message.parts.iter().all(is_reasoning);
            self.hollow = (is_hollow && (is_first || self.hollow.is_some())).then_some(index);
        }
        self.read_server_tools(message, index, found);
        calls_of(message, index).for_each(|call| self.calls.push(call));
        if message.has_results() {
            let message = "a result is in an assistant message";
            found.add(Rule::An2OrphanResult, index, message);
        }
    }

    fn read_user(&mut self, message: &Message<T>, index: usize, found: &mut Findings) {
        if message.has_calls() {
            let message = "a call is in a user message, where nothing answers it";
            found.add(Rule::An1UnansweredCall, index, message);
        }
        let mut is_late = false;
        let mut is_text_after = false;
        for part in &message.parts {
            if part.kind != PartKind::Result {
                is_text_after |= self.has_results && part.kind == PartKind::Text;
                self.has_others = true;
                for at in self.pending.drain() {
                    let message = "a server tool waits for its result, and something else follows";
                    found.add(Rule::An5PendingServerTool, at, message);
                }
                continue;
            }
            match self.calls.answer(part.key.as_deref()) {
                Answer::Open => {
                    self.has_results = true;
                    is_late |= self.has_others;
                }
                Answer::Answered => {
                    let message = "a call has its result already";
                    found.add(Rule::An3DuplicateResult, index, message);
                }
                Answer::Unknown if self.is_blind => {}
                Answer::Unknown => {
                    let message = "a result answers no call of the message before it";
                    found.add(Rule::An2OrphanResult, index, message);
                }
            }
        }
        if is_late {
            let message = "something stands before the results";
            found.add(Rule::An1ResultsNotFirst, index, message);
        }
        if is_text_after {
            let message = "a text stands behind the results";
            found.add(Rule::TextAfterResults, index, message);
        }
    }
}

fn check_content<T: Text>(message: &Message<T>, index: usize, is_last: bool, found: &mut Findings) {
    let is_empty = match &message.parts[..] {
        [] => true,
        [only] => only.place == Place::Content && is_empty(&only.body),
        _ => false,
    };
    if is_empty {
        // The provider leaves an empty prefill at the end alone.
        if !(is_last && message.role == Role::Assistant) {
            let role = message.role.name();
            let message = format!("the {role} message is empty");
            found.add(Rule::An10EmptyMessage, index, message);
        }
        return;
    }
    if message.parts.iter().any(has_blank_text) {
        found.add(Rule::An11BlankText, index, "a text is blank");
    }
    for part in &message.parts {
        match (part.kind, &part.body) {
            (PartKind::Reasoning, Body::Value(block)) if is_unsigned(block) => {
                let message = "reasoning has no signature";
                found.add(Rule::An8UnsignedReasoning, index, message);
            }
            (PartKind::Opaque, Body::Value(block)) if is_void(block) => {
                let message = "a compaction block has an empty text";
                found.add(Rule::An20EmptyCompaction, index, message);
            }
            _ => {}
        }
    }
}
