//! How much of a step is in the window, and why.

/// How much of a step is in the window; ordered, lower is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Listed only in the index page.
    Gone,
    /// One line a part: claim and pointer.
    Stub,
    /// Shortened.
    Trimmed,
    /// All of it.
    Verbatim,
}

impl Level {
    /// The lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Stub => "stub",
            Self::Trimmed => "trimmed",
            Self::Verbatim => "verbatim",
        }
    }
}

/// Whether a step may be approximated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fidelity {
    /// Its wording counts: what a user or the application said.
    Exact,
    /// Its meaning suffices.
    Approximate,
}

impl Fidelity {
    /// The lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Approximate => "approximate",
        }
    }
}

/// Why a step has its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// A system or developer message.
    Instruction,
    /// The first user message.
    Goal,
    /// The newest user message.
    NewestUser,
    /// Pinned by an event.
    Pinned,
    /// Among the newest steps that stay whole.
    Recent,
    /// Nothing had to go since it came.
    NoPressure,
    /// A compaction found its lines worth their tokens and left it as it was.
    Unchanged,
    /// Lowered, since lines of others were worth more per token.
    Outranked,
    /// Dropped as one of the oldest.
    Oldest,
    /// A summary stands for it.
    Summarized,
    /// Its tool uses were cleared.
    Cleared,
}

impl Reason {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Instruction,
        Self::Goal,
        Self::NewestUser,
        Self::Pinned,
        Self::Recent,
        Self::NoPressure,
        Self::Unchanged,
        Self::Outranked,
        Self::Oldest,
        Self::Summarized,
        Self::Cleared,
    ];

    /// A few words for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Instruction => "instruction",
            Self::Goal => "goal",
            Self::NewestUser => "newest user message",
            Self::Pinned => "pinned",
            Self::Recent => "recent",
            Self::NoPressure => "no pressure yet",
            Self::Unchanged => "unchanged",
            Self::Outranked => "outranked",
            Self::Oldest => "oldest",
            Self::Summarized => "summarized",
            Self::Cleared => "cleared",
        }
    }
}
