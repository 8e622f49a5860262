//! One error for the whole core: a kind with a stable code, a sentence, and the place.
//!
//! Messages are lower case without a full stop, name the value and the limit, and never carry the
//! text of a conversation. Codes are public and stable; new kinds may be added.

use std::fmt;

/// Result of every fallible operation of the core.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. [`ErrorKind::code`] is the stable name of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value has the wrong type or misses a field.
    InvalidMessage,
    /// Nested deeper than the limit, or cyclic.
    TooDeep,
    /// A result without a call before it.
    OrphanResult,
    /// A second result for one call.
    DuplicateResult,
    /// The last step still waits for results.
    OpenCalls,
    /// The dialect is not known.
    UnknownDialect,
    /// One log holds messages of two dialects.
    DialectChanged,
    /// The model is not known.
    UnknownModel,
    /// The encoding is not known.
    UnknownEncoding,
    /// A number or name outside its range.
    InvalidValue,
    /// An event that cannot be read.
    InvalidEvent,
    /// A transcript file that cannot be read.
    InvalidFile,
    /// The caller's counter raised or returned something that is no count.
    CounterFailed,
    /// What must stay does not fit the budget.
    OverBudget,
    /// No page has this pointer.
    PageNotFound,
    /// Used from two threads at the same time.
    ConcurrentUse,
}

/// Which exception a kind becomes in Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorGroup {
    /// The input is at fault.
    Input,
    /// The budget is too small.
    Budget,
    /// A page is missing.
    Page,
    /// The call order is at fault.
    Usage,
}

impl ErrorKind {
    /// Every kind, in the order of the catalogue.
    pub const ALL: [Self; 16] = [
        Self::InvalidMessage,
        Self::TooDeep,
        Self::OrphanResult,
        Self::DuplicateResult,
        Self::OpenCalls,
        Self::UnknownDialect,
        Self::DialectChanged,
        Self::UnknownModel,
        Self::UnknownEncoding,
        Self::InvalidValue,
        Self::InvalidEvent,
        Self::InvalidFile,
        Self::CounterFailed,
        Self::OverBudget,
        Self::PageNotFound,
        Self::ConcurrentUse,
    ];

    /// The stable `snake_case` code.
    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidMessage => "invalid_message",
            Self::TooDeep => "too_deep",
            Self::OrphanResult => "orphan_result",
            Self::DuplicateResult => "duplicate_result",
            Self::OpenCalls => "open_calls",
            Self::UnknownDialect => "unknown_dialect",
            Self::DialectChanged => "dialect_changed",
            Self::UnknownModel => "unknown_model",
            Self::UnknownEncoding => "unknown_encoding",
            Self::InvalidValue => "invalid_value",
            Self::InvalidEvent => "invalid_event",
            Self::InvalidFile => "invalid_file",
            Self::CounterFailed => "counter_failed",
            Self::OverBudget => "over_budget",
            Self::PageNotFound => "page_not_found",
            Self::ConcurrentUse => "concurrent_use",
        }
    }

    /// Which exception it becomes in Python.
    pub fn group(self) -> ErrorGroup {
        match self {
            Self::OverBudget => ErrorGroup::Budget,
            Self::PageNotFound => ErrorGroup::Page,
            Self::ConcurrentUse => ErrorGroup::Usage,
            _ => ErrorGroup::Input,
        }
    }
}

/// A name that the caller gave, for a sentence: quoted, escaped, its first 60 characters.
#[cold]
pub fn shown_name(name: &str) -> String {
    const MOST: usize = 60;
    let mut shown: String = name
        .chars()
        .take(MOST)
        .flat_map(char::escape_debug)
        .collect();
    if name.chars().nth(MOST).is_some() {
        shown.push_str("...");
    }
    format!("'{shown}'")
}

/// A sentence of another library about the caller's value, which it may quote in full.
#[cold]
pub fn bounded(mut sentence: String) -> String {
    const MOST: usize = 200;
    if let Some((end, _)) = sentence.char_indices().nth(MOST) {
        sentence.truncate(end);
        sentence.push_str("...");
    }
    sentence
}

/// The error of the core: kind, sentence and context, one pointer wide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Context>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Context {
    kind: ErrorKind,
    message: String,
    index: Option<usize>,
    value: Option<u64>,
    limit: Option<u64>,
}

impl Error {
    /// An error of `kind` whose sentence is `message`.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Context {
            kind,
            message: message.into(),
            index: None,
            value: None,
            limit: None,
        }))
    }

    /// The same error at a raw message index, which the sentence then starts with.
    #[cold]
    #[must_use]
    pub fn at(mut self, index: usize) -> Self {
        if self.0.index.is_none() {
            self.0.index = Some(index);
            self.0.message = format!("message {index}: {}", self.0.message);
        }
        self
    }

    /// The same error about an argument of a call, whose name the sentence then starts with.
    #[cold]
    #[must_use]
    pub fn of_argument(mut self, name: &str) -> Self {
        self.0.message = format!("{name}: {}", self.0.message);
        self
    }

    /// The same error with the value that was found and the limit it met.
    #[cold]
    #[must_use]
    pub fn with_limit(mut self, value: u64, limit: u64) -> Self {
        self.0.value = Some(value);
        self.0.limit = Some(limit);
        self
    }

    /// The hard part of a window does not fit: `message 7 has 9000 tokens, budget 8192: why`.
    /// Without an index it is what every request carries beside messages.
    #[cold]
    pub fn over_budget(index: Option<usize>, tokens: u64, budget: u64, why: &str) -> Self {
        let what = match index {
            Some(index) => format!("message {index} has"),
            None => "system, tools and overhead have".to_owned(),
        };
        let message = format!("{what} {tokens} tokens, budget {budget}: {why}");
        let mut error = Self::new(ErrorKind::OverBudget, message).with_limit(tokens, budget);
        error.0.index = index;
        error
    }

    /// The hard part of a window does not fit, and no single part of it is to blame.
    #[cold]
    pub fn whole_over_budget(tokens: u64, budget: u64, why: &str) -> Self {
        let message = format!("what must stay has {tokens} tokens, budget {budget}: {why}");
        Self::new(ErrorKind::OverBudget, message).with_limit(tokens, budget)
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The stable code of the kind.
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// The raw message index, where one is to blame.
    pub fn index(&self) -> Option<usize> {
        self.0.index
    }

    /// The value that was found, where the error is about a limit.
    pub fn value(&self) -> Option<u64> {
        self.0.value
    }

    /// The limit that was met.
    pub fn limit(&self) -> Option<u64> {
        self.0.limit
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}
