//! Repair: a damaged history as one that its provider accepts.
//!
//! Pure, deterministic and idempotent. The result is a list of edits of the caller's own objects
//! ([`Entry`]): what was right stays the same object. Pairing is positional ([`pair`]); the results
//! of a turn come back together right behind it; what cannot stay tool traffic becomes labelled
//! text or goes, as the [`Mode`] says. Nothing is invented but marked placeholders
//! ([`PLACEHOLDERS`]). Costs time in proportion to the messages.

mod blocks;
mod draft;
mod edit;
mod finish;
mod flat;
mod flatten;
pub(crate) mod ids;
pub(crate) mod items;
pub(crate) mod marks;
mod pair;
mod shape;
mod work;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use self::draft::{Draft, Piece, Source};
pub use self::edit::{Base, Block, Edit, Entry, Path, apply_to_json};
use self::ids::IdRule;
use self::items::Item;
use self::pair::{Pairs, pair};
use self::work::{Asked, Work};
use super::form::{OPENER, PLACEHOLDER};
use super::lint::{Request, Rule, Severity, check_read, read_all};
use super::{Dialect, Traits, flaws};
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Body, Field, Message, PartKind, PathStep, Place, Role};
use crate::node::{Node, Text, Value};

/// What stands where a user's message must be and none is.
pub const NO_USER_MESSAGE: &str = "[no message: a message of the user must stand here]";

/// Every text that repair may put in.
pub const PLACEHOLDERS: [&str; 3] = [PLACEHOLDER, OPENER, NO_USER_MESSAGE];

/// What becomes of tool traffic that cannot stay as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A call without a result gets a placeholder; a result without a call becomes text.
    Synthesize,
    /// Both go, and a start without a user goes.
    Drop,
    /// Both become text.
    Flatten,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Synthesize, Self::Drop, Self::Flatten];

    /// The public name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Synthesize => "synthesize",
            Self::Drop => "drop",
            Self::Flatten => "flatten",
        }
    }

    /// The mode of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// What the request has around its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// Cache marks of the system prompt and the tools.
    pub marks: usize,
    /// Whether it says that there are no tools.
    pub no_tools: bool,
    /// Whether it goes on to the planner: calls of the last step may stay open, since their
    /// results are still to come, and results stand before further words of the assistant.
    pub for_planner: bool,
}

/// What a repair comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Edits inside single messages, by index, for [`apply_to_json`] and its like: they come first,
    /// then another look is needed.
    Mends(Vec<(usize, Vec<Edit>)>),
    /// The messages of the result.
    Entries(Vec<Entry>),
}

/// Most looks that mends may ask for: values of the wrong type, what they hide, and to spare.
pub const MOST_LOOKS: usize = 4;

/// What there is to do about `messages`: nothing at all where lint finds no error in them, mends
/// inside messages, or the entries of the result.
///
/// What makes a warning is mended along with errors, and not without one: a history that its
/// provider accepts keeps its bytes, and with them the prompt cache. Only the first message is a
/// user's in any case. Who hands on to the planner
/// ([`Around::for_planner`]) gets the order that the planner asks for in any case.
///
/// # Errors
/// `invalid_message`, `too_deep` and `dialect_changed` as [`read_message`](super::read_message), with the index: what a
/// message of the wrong type means is not guessed.
///
/// # Example
/// ```
/// # use satchel_core::dialect::{Dialect, Traits, repair::{Around, Mode, Plan, plan}};
/// let call = serde_json::json!({"role": "assistant", "content": null, "tool_calls": [
///     {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}]});
/// let messages = [serde_json::json!({"role": "user", "content": "hi"}), call];
/// let nodes: Vec<_> = messages.iter().collect();
/// let plan = plan(Dialect::OpenAi, &nodes, Mode::Synthesize, Traits::default(), Around::default());
/// let Ok(Plan::Entries(entries)) = plan else { panic!() };
/// assert_eq!(entries.len(), 3);
/// assert_eq!(entries[1].original(), Some(1));
/// ```
pub fn plan<N: Node>(
    dialect: Dialect,
    messages: &[N],
    mode: Mode,
    traits: Traits,
    around: Around,
) -> Result<Plan> {
    let read = read_all(dialect, messages);
    let verdict = if around.for_planner {
        Verdict::Unknown
    } else {
        judge(dialect, messages, &read, traits, around)
    };
    if verdict == Verdict::Right {
        let same = |index: usize| Entry {
            base: Base::Own(index as u32),
            edits: Vec::new(),
        };
        return Ok(Plan::Entries((0..messages.len()).map(same).collect()));
    }
    let mut mends = Vec::new();
    let may_mend = verdict != Verdict::WrongAround;
    for (index, message) in read.iter().enumerate().filter(|_| may_mend) {
        let node = &messages[index];
        let edits = match message {
            Ok(message) => flaws::mend(dialect, node, message, index as u32),
            Err(_) => shape::mend(dialect, node, index),
        };
        if !edits.is_empty() {
            mends.push((index, edits));
        }
    }
    if mends.is_empty() {
        let read = read.into_iter().collect::<Result<Vec<_>>>()?;
        let entries = repair_read(dialect, messages, &read, mode, traits, around);
        return Ok(Plan::Entries(entries));
    }
    Ok(Plan::Mends(mends))
}

/// What lint says about a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// There is no error, and what stands around the messages asks for nothing else.
    Right,
    /// All errors are between messages.
    WrongAround,
    /// Nobody looked, or there are errors inside messages.
    Unknown,
}

fn judge<N: Node>(
    dialect: Dialect,
    messages: &[N],
    read: &[Result<Message<N::Text>>],
    traits: Traits,
    around: Around,
) -> Verdict {
    let request = Request {
        messages,
        system: None,
        tools: None,
        traits,
        previous: None,
        same_prompt: true,
    };
    let found = check_read(dialect, &request, read);
    // That a user opens the conversation is asked for wherever a provider may be changed.
    let mut errors = found
        .iter()
        .filter(|one| {
            one.rule == Rule::StartsWithoutUser || one.rule.entry().severity == Severity::Error
        })
        .peekable();
    if errors.peek().is_some() {
        return if errors.any(|one| flaws::is_inside(one.rule)) {
            Verdict::Unknown
        } else {
            Verdict::WrongAround
        };
    }
    let has_tools = |message: &Message<N::Text>| message.has_calls() || message.has_results();
    if around.no_tools && dialect == Dialect::Bedrock && read.iter().flatten().any(has_tools) {
        return Verdict::WrongAround;
    }
    if around.marks > 0 {
        let inside = marks::find(dialect, messages, around.marks).inside;
        if inside.values().map(Vec::len).sum::<usize>() + around.marks > marks::MOST_MARKS {
            return Verdict::WrongAround;
        }
    }
    Verdict::Right
}

/// Repairs messages in which nothing is left for a mend.
fn repair_read<N: Node>(
    dialect: Dialect,
    messages: &[N],
    read: &[Message<N::Text>],
    mode: Mode,
    traits: Traits,
    around: Around,
) -> Vec<Entry> {
    let mut drafts: Vec<_> = read
        .iter()
        .enumerate()
        .map(|(index, message)| Draft::of(dialect, index, message))
        .collect();
    match dialect {
        Dialect::Responses => items::settle(&mut drafts, messages),
        Dialect::OpenAi => {
            for (draft, node) in drafts.iter_mut().zip(messages) {
                draft.is_legacy = is_legacy_result(node);
            }
        }
        _ => {}
    }
    let last = drafts.len().saturating_sub(1);
    let mut at = 0;
    drafts.retain_mut(|draft| {
        let is_kept = clean(dialect, draft, at == last);
        at += 1;
        is_kept
    });
    let mut pairs = pair(&drafts, |before, after| joins(dialect, before, after));
    if around.for_planner {
        pairs.leave_open(&drafts);
        pairs.expect_nothing_elsewhere();
    }
    rename(dialect, &mut drafts, &mut pairs);
    let mut work = Work::new(drafts, pairs.calls.len());
    let asked = Asked {
        dialect,
        reasoning: dialect == Dialect::OpenAi && traits.reasoning_with_calls,
        no_calls: dialect == Dialect::Bedrock && around.no_tools,
    };
    work.settle(&pairs, mode, asked);
    let placed = if is_flat(dialect) {
        flat::place(work, &pairs, mode, dialect)
    } else {
        blocks::place(work, &pairs, mode, dialect, around.for_planner)
    };
    let marks = marks::find(dialect, messages, around.marks);
    let finished = finish::finish(placed, dialect, mode, traits, &marks);
    finished
        .iter()
        .map(|draft| write::entry(draft, read, dialect))
        .collect()
}

/// Repairs messages of parsed JSON.
///
/// # Errors
/// As [`plan`].
pub fn repair_json(
    dialect: Dialect,
    messages: &[Json],
    mode: Mode,
    traits: Traits,
    around: Around,
) -> Result<Vec<Json>> {
    let mut messages = std::borrow::Cow::Borrowed(messages);
    for _ in 0..MOST_LOOKS {
        let nodes: Vec<&Json> = messages.iter().collect();
        match plan(dialect, &nodes, mode, traits, around)? {
            Plan::Entries(entries) => {
                let written = entries.iter();
                return Ok(written
                    .map(|entry| apply_to_json(&messages, entry))
                    .collect());
            }
            Plan::Mends(mends) => {
                let mut mended = messages.to_vec();
                for (index, edits) in mends {
                    let base = Base::Own(index as u32);
                    mended[index] = apply_to_json(&messages, &Entry { base, edits });
                }
                messages = std::borrow::Cow::Owned(mended);
            }
        }
    }
    Err(unmended())
}

/// The error for messages in which every look finds something else to mend.
#[cold]
pub fn unmended() -> Error {
    Error::new(
        ErrorKind::InvalidMessage,
        "the messages have values of the wrong type that no mend reaches",
    )
}

/// Whether a message of `openai` is the result of the single call of old.
pub(in crate::dialect) fn is_legacy_result<N: Node>(message: &N) -> bool {
    message
        .get("role")
        .is_some_and(|role| role.is_str("function"))
}

/// Whether results stand in messages of their own.
fn is_flat(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::OpenAi | Dialect::Responses)
}

/// Whether a draft goes on with the turn of the draft before it.
fn joins<T: Text>(dialect: Dialect, before: &Draft<'_, T>, after: &Draft<'_, T>) -> bool {
    !matches!(dialect, Dialect::OpenAi)
        && before.role == Role::Assistant
        && after.role == Role::Assistant
}

/// Takes out what is empty; false if nothing is left.
fn clean<T: Text>(dialect: Dialect, draft: &mut Draft<'_, T>, is_last: bool) -> bool {
    let is_string =
        |piece: &Piece<'_, T>| piece.part.is_some_and(|part| part.place.path().len() == 1);
    let has_more = dialect == Dialect::OpenAi
        && draft.pieces.iter().any(|piece| {
            piece.kind != PartKind::Reasoning && !(piece.kind == PartKind::Text && is_string(piece))
        });
    draft.pieces.retain(|piece| {
        let Some(part) = piece.part else { return true };
        match (&part.body, piece.kind) {
            // An empty string beside calls is as good as null.
            (Body::Text(text), PartKind::Text) => !is_blank(text) || (has_more && is_string(piece)),
            (Body::Value(value), PartKind::Reasoning) if dialect == Dialect::Anthropic => {
                !is_unsigned(value)
            }
            (Body::Value(value), PartKind::Opaque) => !is_void(value),
            _ => true,
        }
    });
    if matches!(dialect, Dialect::Anthropic | Dialect::Bedrock) {
        for piece in &mut draft.pieces {
            strip_blank(piece);
        }
    }
    if dialect == Dialect::OpenAi {
        for piece in &mut draft.pieces {
            write_texts(piece);
        }
    }
    let is_empty = if dialect == Dialect::OpenAi {
        draft.is_hollow()
    } else {
        draft.pieces.is_empty()
    };
    // The provider leaves an empty prefill at the end alone.
    !is_empty
        || (is_last
            && dialect == Dialect::Anthropic
            && draft.role == Role::Assistant
            && draft.whole == 0)
}

pub(super) fn is_blank<T: Text>(text: &T) -> bool {
    text.with(|text| text.trim_start().is_empty())
}

/// Whether a thinking block has no signature: the provider takes it for forged.
pub(in crate::dialect) fn is_unsigned<T: Text>(block: &Value<T>) -> bool {
    let field = |name| block.get(name).and_then(Value::as_text);
    let is = |name: &str| field("type").is_some_and(|kind| kind.with(|kind| kind == name));
    let has = |name| field(name).is_some_and(|text| !text.with(str::is_empty));
    (is("thinking") && !has("signature")) || (is("redacted_thinking") && !has("data"))
}

/// Whether it is a compaction block of an empty text, which its provider refuses.
pub(in crate::dialect) fn is_void<T: Text>(block: &Value<T>) -> bool {
    let field = |name| block.get(name).and_then(Value::as_text);
    field("type").is_some_and(|kind| kind.with(|kind| kind == "compaction"))
        && field("content").is_some_and(|text| text.with(str::is_empty))
}

/// Arguments that are data become the JSON text that the provider asks for; a result without
/// content has an empty one.
fn write_texts<T: Text>(piece: &mut Piece<'_, T>) {
    if piece.is_result()
        && piece
            .part
            .is_some_and(|part| matches!(part.body, Body::Empty))
    {
        let path = vec![PathStep::Key("content")];
        piece.edits.push(Edit::Set(path, draft::string("")));
        return;
    }
    let (true, Some(part)) = (piece.is_call(), piece.part) else {
        return;
    };
    let Body::Value(value) = &part.body else {
        return;
    };
    let key = PathStep::Key;
    let path = match part.place {
        // A custom tool, and the single call of old.
        Place::Field(Field::ToolCalls) => vec![key("custom"), key("input")],
        Place::Field(_) => vec![key("arguments")],
        _ => piece.content_path(),
    };
    piece
        .edits
        .push(Edit::Set(path, draft::string(value.to_json())));
}

/// Takes blank texts out of the content of a result.
fn strip_blank<T: Text>(piece: &mut Piece<'_, T>) {
    let (Some(part), Source::Part(message, _)) = (piece.part, &piece.source) else {
        return;
    };
    let (true, Body::Value(Value::List(items))) = (piece.is_result(), &part.body) else {
        return;
    };
    let is_bad = |item: &Value<T>| {
        item.get("text")
            .and_then(Value::as_text)
            .is_some_and(is_blank)
    };
    if !items.iter().any(is_bad) {
        return;
    }
    let path = part.place.path();
    let kept = items.iter().enumerate().filter(|(_, item)| !is_bad(item));
    let blocks = kept.map(|(at, _)| {
        let mut path = path.clone();
        path.push(PathStep::Index(at as u32));
        Block::Own(*message, path, Vec::new())
    });
    let inner = piece.content_path();
    piece.edits.push(Edit::Blocks(inner, blocks.collect()));
}

/// Gives calls ids that the dialect takes, and their results the same.
fn rename<T: Text>(dialect: Dialect, drafts: &mut [Draft<'_, T>], pairs: &mut Pairs) {
    let rule = IdRule::of(dialect);
    if dialect == Dialect::Gemini {
        return;
    }
    let mut taken = BTreeSet::new();
    let mut numbers = BTreeMap::new();
    let mut turn = None;
    for call in &mut pairs.calls {
        // Chat Completions takes an id again in a later message.
        if dialect == Dialect::OpenAi && turn != Some(call.turn) {
            taken.clear();
        }
        turn = Some(call.turn);
        let draft = &drafts[call.draft];
        let piece = &draft.pieces[call.piece];
        let is_legacy = piece.part.is_some_and(pair::is_legacy);
        let mut id = call.id.clone();
        let old = call.id.as_deref().unwrap_or_default();
        let is_item = draft.item.is_some_and(|item| !item.needs_no_result());
        if (rule.is_needed || is_item || !old.is_empty()) && !is_legacy {
            if !rule.takes(old) || (rule.is_unique && taken.contains(old)) {
                // Where it stands makes an id that is missing; later messages do not change that.
                let seed = if old.is_empty() {
                    format!("call_{}_{}", draft.base.unwrap_or(0), call.piece)
                } else {
                    old.to_owned()
                };
                id = Some(rule.mend(&seed, &taken, &mut numbers));
            }
            if rule.is_unique
                && let Some(id) = &id
            {
                taken.insert(id.clone());
            }
        }
        call.new_id.clone_from(&id);
        let Some(id) = id else { continue };
        if Some(&id) != call.id.as_ref() {
            // A request for approval has the id of the item; a search for tools has no name.
            let is_request = draft.item == Some(Item::Question) && call.name.is_some();
            let path = if is_request {
                vec![PathStep::Key("id")]
            } else {
                write::call_id(dialect)
            };
            drafts[call.draft].pieces[call.piece]
                .edits
                .push(Edit::Set(path, draft::string(id.as_str())));
        }
        if let Some((draft, piece)) = call.answer {
            let result = &drafts[draft].pieces[piece];
            let key = result.part.and_then(|part| part.key.as_deref());
            let is_same = match pair::identity(key).0 {
                Some(old) => old == id,
                // The output of an old local shell has none, which is not an empty one.
                None => {
                    drafts[call.draft].item == Some(Item::LocalShell)
                        && key.is_none_or(|key| key.id.is_none())
                }
            };
            if !is_same {
                let is_approval = result
                    .part
                    .is_some_and(|part| part.place == Place::Field(Field::Approve));
                let path = if is_approval {
                    vec![PathStep::Key("approval_request_id")]
                } else {
                    write::result_id(dialect)
                };
                let edit = Edit::Set(path, draft::string(id));
                drafts[draft].pieces[piece].edits.push(edit);
            }
        }
    }
}
