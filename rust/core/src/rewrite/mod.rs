//! Stored conversations written anew: each in, its windows out.
//!
//! A conversation is converted if another dialect is wanted, repaired if it cannot be packed as it
//! is, folded as in production (the same [`WorkingSet`]), and asked for its windows at the chosen
//! boundaries. Every window is then what the library promises of one: valid in its dialect and
//! within the budget; else the conversation is an error and has no window at all. A pure function
//! of conversation and options, so the order of work and the number of threads change nothing.
//! Costs time in proportion to the messages, and to the windows.

mod apply;
mod boundary;
mod history;
mod lines;
mod pages;
mod redaction;
mod report;
mod unbound;

use std::borrow::Cow;
use std::sync::Arc;

pub use self::boundary::At;
use self::boundary::boundaries;
use self::history::History;
pub use self::lines::{Column, Counts, Form, Lines, Output, Rejected};
pub use self::pages::Page;
use self::pages::Pages;
pub use self::report::{Price, Report};
use crate::dialect::convert::{self, LossKind};
use crate::dialect::lint::{Request as LintRequest, Severity, check_read, count_marks, read_all};
use crate::dialect::repair::{Around, Base, Entry, MOST_LOOKS, Mode, Plan, plan, unmended};
use crate::dialect::{Dialect, Traits};
use crate::error::{Error, ErrorKind, Result};
use crate::message::{Message, PartKind, Role};
use crate::page::PageKey;
use crate::plan::Settings;
use crate::policy::Policy;
use crate::readers::Conversation;
use crate::readers::json::{Json, JsonText};
use crate::redact::Kinds;
use crate::replay::Limit;
use crate::strategy::price::Prices;
use crate::tokens::Counter;
use crate::tokens::chat::ChatRules;
use crate::working_set::WorkingSet;

/// What is the same for every conversation.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the model that the windows are for.
    pub model: String,
    /// What the model asks for beside its dialect.
    pub traits: Traits,
    /// Whether its reasoning is only valid while nothing before it changes.
    pub prefix_bound: bool,
    /// Counts every text.
    pub counter: Counter,
    /// How room is made.
    pub policy: Arc<Policy>,
    /// What a window may have.
    pub limit: Limit,
    /// Which boundaries are asked for their window.
    pub at: At,
    /// The dialect that is wanted; `None` keeps each conversation's own.
    pub target: Option<Dialect>,
    /// What the cache costs, by which compactions are priced.
    pub prices: Prices,
    /// What input costs, where that is known.
    pub price: Option<Price>,
    /// Whether the content that left a window is listed.
    pub pages: bool,
    /// What is replaced by placeholders before anything else happens.
    pub redact: Kinds,
}

/// One window of a conversation.
#[derive(Clone, Debug)]
pub struct Window {
    /// The messages.
    pub messages: Vec<Json>,
    /// What is said about it.
    pub report: Report,
}

/// A conversation that was written anew.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The dialect of the windows.
    pub dialect: Dialect,
    /// The system prompt of every window, where it stands outside the messages.
    pub system: Option<Json>,
    /// The tool definitions of every window.
    pub tools: Option<Json>,
    /// The windows, in the order of their boundaries; at least one.
    pub windows: Vec<Window>,
    /// What left the windows, if that is wanted.
    pub pages: Vec<Page>,
}

/// Writes one conversation anew.
///
/// # Errors
/// `unknown_dialect`; `invalid_message`, `too_deep`, `dialect_changed` for messages that no repair
/// makes readable; `over_budget` if what must stay does not fit; `invalid_value` if it has no such
/// boundary, or for a policy out of range; `counter_failed`, only from a foreign counter.
///
/// # Example
/// ```
/// # use std::sync::Arc;
/// # use satchel_core::dialect::{Dialect, Traits};
/// # use satchel_core::policy::Policy;
/// # use satchel_core::readers::read;
/// # use satchel_core::redact::Kinds;
/// # use satchel_core::replay::Limit;
/// # use satchel_core::rewrite::{At, Options, rewrite};
/// # use satchel_core::strategy::price::Prices;
/// # use satchel_core::tokens::Counter;
/// let file = br#"{"messages": [{"role": "system", "content": "Be brief."},
///     {"role": "user", "content": "hi"}]}"#;
/// let conversation = read(file, None).next().unwrap().unwrap();
/// let options = Options {
///     model: "claude-sonnet-4-5".into(),
///     traits: Traits::default(),
///     prefix_bound: false,
///     counter: Counter::named("chars4").unwrap(),
///     policy: Arc::new(Policy::default()),
///     limit: Limit::Tokens(1_000),
///     at: At::End,
///     target: Some(Dialect::Anthropic),
///     prices: Prices::default(),
///     price: None,
///     pages: false,
///     redact: Kinds::NONE,
/// };
/// let found = rewrite(conversation, &options).unwrap();
/// assert_eq!(found.system.unwrap().as_str(), Some("Be brief."));
/// assert_eq!(found.windows[0].messages.len(), 1);
/// ```
pub fn rewrite(conversation: Conversation, options: &Options) -> Result<Rewritten> {
    let mut source = Source::of(conversation)?;
    let redacted = (options.redact != Kinds::NONE).then(|| source.redact(options.redact));
    let mut read = source.read();
    let violations = source.errors(&source.messages, &read, options.traits);
    let mut losses = Vec::new();
    if let Some(target) = options.target.filter(|target| *target != source.dialect) {
        losses = source.convert(target, options.traits)?;
        read = source.read();
    }
    let mut repaired = false;
    let packed = match pack(&source, read, options) {
        Err(error) if is_damage(&error) => {
            source.messages = source.repaired(&source.messages, options.traits, true)?;
            repaired = true;
            pack(&source, source.read(), options)?
        }
        packed => packed?,
    };
    let (mut windows, pages) = packed;
    for window in &mut windows {
        window.report.violations = violations;
        window.report.repaired |= repaired;
        window.report.losses.clone_from(&losses);
        window.report.redacted = redacted;
    }
    Ok(Rewritten {
        dialect: source.dialect,
        system: source.system,
        tools: source.tools,
        windows,
        pages,
    })
}

/// Whether a history cannot be packed as it is, and may be after a repair.
fn is_damage(error: &Error) -> bool {
    let is_kind = matches!(
        error.kind(),
        ErrorKind::InvalidMessage | ErrorKind::OrphanResult | ErrorKind::DuplicateResult
    );
    is_kind && error.index().is_some()
}

/// A request as it is packed.
#[derive(Debug)]
struct Source {
    dialect: Dialect,
    messages: Vec<Json>,
    system: Option<Json>,
    tools: Option<Json>,
    /// Messages as they were read, before anything was changed.
    given: usize,
}

impl Source {
    fn of(conversation: Conversation) -> Result<Self> {
        let dialect = match &conversation.dialect {
            Some(name) => Dialect::from_name(name)?,
            // As the readers of files guess.
            None if conversation.system.is_some() => Dialect::Anthropic,
            None => Dialect::OpenAi,
        };
        Ok(Self {
            dialect,
            given: conversation.messages.len(),
            messages: conversation.messages,
            system: conversation.system.filter(|system| !system.is_null()),
            tools: conversation.tools.filter(|tools| !tools.is_null()),
        })
    }

    /// Takes personal data and secrets out; how many values there were.
    fn redact(&mut self, kinds: Kinds) -> u64 {
        // As one list, from which signed reasoning may go.
        let mut messages = Json::List(std::mem::take(&mut self.messages));
        let outside = [&mut self.system, &mut self.tools];
        let outside = outside.into_iter().flatten();
        let count = redaction::redact(outside.chain([&mut messages]), kinds);
        self.messages = messages.into_items();
        count
    }

    /// The messages as parts. Each is read once, for lint and planner alike.
    fn read(&self) -> Vec<Result<Message<JsonText>>> {
        let nodes: Vec<&Json> = self.messages.iter().collect();
        read_all(self.dialect, &nodes)
    }

    /// Findings in these messages that the provider would reject.
    fn errors(&self, messages: &[Json], read: &[Result<Message<JsonText>>], traits: Traits) -> u32 {
        let nodes: Vec<&Json> = messages.iter().collect();
        let system = self.system.as_ref();
        let tools = self.tools.as_ref();
        let found = check_read(
            self.dialect,
            &LintRequest {
                messages: &nodes,
                system: system.as_ref(),
                tools: tools.as_ref(),
                traits,
                previous: None,
                same_prompt: true,
            },
            read,
        );
        let errors = found
            .iter()
            .filter(|one| one.rule.entry().severity == Severity::Error);
        errors.count() as u32
    }

    /// Brings the request into another dialect; what could not be carried over, counted by kind.
    fn convert(&mut self, target: Dialect, traits: Traits) -> Result<Vec<(LossKind, u32)>> {
        let read = |messages: &[Json]| {
            let nodes: Vec<&Json> = messages.iter().collect();
            let (system, tools) = (self.system.as_ref(), self.tools.as_ref());
            convert::Conversation::read(self.dialect, &nodes, system.as_ref(), tools.as_ref())
        };
        let conversation = match read(&self.messages) {
            Err(error) if is_damage(&error) => {
                read(&self.repaired(&self.messages, traits, true)?)?
            }
            conversation => conversation?,
        };
        self.messages = Vec::new();
        let written = conversation.write(target);
        self.dialect = target;
        self.messages = written
            .messages
            .into_iter()
            .map(apply::from_serde)
            .collect();
        self.system = written.system.map(apply::from_serde);
        self.tools = written.tools.map(apply::from_serde);
        let mut losses: Vec<(LossKind, u32)> = Vec::new();
        for loss in written.losses {
            match losses.iter_mut().find(|(kind, _)| *kind == loss.kind) {
                Some((_, count)) => *count += 1,
                None => losses.push((loss.kind, 1)),
            }
        }
        losses.sort_unstable();
        Ok(losses)
    }

    /// These messages as the provider takes them, with everything that a repair can do.
    fn repaired(&self, messages: &[Json], traits: Traits, for_planner: bool) -> Result<Vec<Json>> {
        let outside = [self.system.as_ref(), self.tools.as_ref()];
        let around = Around {
            marks: outside.iter().flatten().map(count_marks).sum(),
            no_tools: self.tools.as_ref().is_some_and(|tools| {
                let list = tools.get("tools").unwrap_or(tools);
                list.is_list() && list.items().is_empty()
            }),
            for_planner,
        };
        let mut readable = Cow::Borrowed(messages);
        for _ in 0..MOST_LOOKS {
            let nodes: Vec<&Json> = readable.iter().collect();
            match plan(self.dialect, &nodes, Mode::Synthesize, traits, around)? {
                Plan::Entries(entries) => {
                    let entries = entries.into_iter();
                    return Ok(entries
                        .map(|entry| apply::repaired(&readable, entry))
                        .collect());
                }
                Plan::Mends(mends) => {
                    let mut mended = readable.to_vec();
                    for (index, edits) in mends {
                        let base = Base::Own(index as u32);
                        let entry = Entry { base, edits };
                        if let Some(message) = mended.get_mut(index) {
                            *message = apply::repaired(&readable, entry);
                        }
                    }
                    readable = Cow::Owned(mended);
                }
            }
        }
        Err(unmended())
    }
}

/// Folds the messages and asks for the windows. A budget that is a share grows until what must stay
/// fits: a share of little is less than any window.
fn pack(
    source: &Source,
    read: Vec<Result<Message<JsonText>>>,
    options: &Options,
) -> Result<(Vec<Window>, Vec<Page>)> {
    let messages = read.into_iter().collect::<Result<Vec<_>>>()?;
    let history = History::counted(source, messages, &options.counter)?;
    let share = match options.limit {
        Limit::Tokens(budget) => return pack_within(source, history, options, budget),
        Limit::Share(share) => share,
    };
    let (mut budget, all) = history.budgets(share, &options.counter);
    loop {
        match pack_within(source, history.clone(), options, budget) {
            Err(error) if error.kind() == ErrorKind::OverBudget && budget < all => {
                budget = (budget + budget / 4 + 16).min(all);
            }
            packed => return packed,
        }
    }
}

fn pack_within(
    source: &Source,
    history: History,
    options: &Options,
    budget: u64,
) -> Result<(Vec<Window>, Vec<Page>)> {
    let rules = ChatRules::for_counter(source.dialect, &options.counter);
    let settings = Settings {
        dialect: source.dialect,
        counter: options.counter.clone(),
        budget,
        policy: options.policy.clone(),
        system_tokens: history.system_tokens,
        tools_tokens: history.tools_tokens,
        request_tokens: rules.request_tokens(),
        message_tokens: rules.inserted_message_tokens(),
        calibration: None,
        key: PageKey::new(""),
        prices: options.prices,
    };
    let places = boundaries(&history.messages, source.dialect, options.at)?;
    let mut set = WorkingSet::new(settings)?;
    let mut tokens_before = set.settings().base_tokens();
    let mut messages = history.messages.into_iter();
    let mut overheads = history.overheads.into_iter();
    let mut windows = Vec::with_capacity(places.len());
    let mut pages = Pages::default();
    for at in places {
        let seen = set.transcript().len();
        let more = at - seen;
        set.append_counted(
            messages.by_ref().take(more).collect(),
            overheads.by_ref().take(more).collect(),
        )?;
        let rows = set.transcript().rows().iter().skip(seen);
        tokens_before += rows.map(|row| u64::from(row.tokens)).sum::<u64>();
        windows.push(window(&mut set, source, options, tokens_before)?);
        if options.pages {
            pages.note(&set);
        }
    }
    let pages = pages.finish(&set);
    Ok((windows, pages))
}

/// Whether the user says something in it, rather than handing over results.
fn has_words<T>(message: &Message<T>) -> bool {
    message.role == Role::User
        && (message.parts.is_empty()
            || !message
                .parts
                .iter()
                .all(|part| part.kind == PartKind::Result))
}

/// The window at the pending boundary.
fn window(
    set: &mut WorkingSet<JsonText>,
    source: &Source,
    options: &Options,
    tokens_before: u64,
) -> Result<Window> {
    let figures = set.window(true)?;
    let mut messages = Vec::new();
    for entry in set.entries(0) {
        apply::push_entry(&mut messages, &source.messages, source.dialect, entry);
    }
    let (mut tokens, mut upper) = (figures.tokens, figures.tokens_upper);
    let has_signed = matches!(source.dialect, Dialect::Anthropic | Dialect::Bedrock);
    let tail = if options.prefix_bound && has_signed {
        set.unchanged_tail()
    } else {
        None
    };
    if let Some(tail) = tail {
        let saved = unbound::unbind(&mut messages, tail, source.dialect, &options.counter)?;
        tokens -= saved.min(tokens);
        upper = set.settings().upper(tokens);
    }
    let mut is_mended = false;
    let errors = |messages: &[Json]| {
        let nodes: Vec<&Json> = messages.iter().collect();
        source.errors(messages, &read_all(source.dialect, &nodes), options.traits)
    };
    if errors(&messages) > 0 {
        messages = source.repaired(&messages, options.traits, false)?;
        is_mended = true;
        tokens = set.settings().base_tokens();
        for message in &messages {
            tokens += unbound::tokens(message, source.dialect, &options.counter)?;
        }
        upper = set.settings().upper(tokens);
        if upper > set.settings().budget {
            let budget = set.settings().budget;
            return Err(Error::over_budget(
                None,
                upper,
                budget,
                "the repaired window",
            ));
        }
    }
    let cost = |tokens| options.price.map(|price| price.of(tokens));
    let report = Report {
        at: figures.messages,
        dialect: source.dialect,
        source_messages: source.given,
        messages_before: figures.messages,
        messages_after: messages.len(),
        tokens_before,
        tokens_after: tokens,
        tokens_upper: upper,
        budget: set.settings().budget,
        steps: figures.steps,
        compactions: figures.compactions,
        violations: 0,
        violations_left: if is_mended { errors(&messages) } else { 0 },
        repaired: is_mended,
        losses: Vec::new(),
        redacted: None,
        cost_before: cost(tokens_before),
        cost_after: cost(tokens),
    };
    Ok(Window { messages, report })
}
