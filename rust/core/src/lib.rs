//! Packs an agent's context window: tokens, steps, budget, plan, pages.
//!
//! The core is a pure function of its input: no I/O, no clock, no randomness, no model.
#![forbid(unsafe_code)]

pub mod analyse;
pub mod budget;
pub mod columns;
pub mod compaction;
pub mod content;
pub mod coverage;
pub mod dialect;
mod elements;
pub mod error;
pub mod event;
pub mod explain;
mod fence;
mod keep;
pub mod level;
mod marker;
pub mod message;
mod need;
pub mod node;
pub mod page;
pub mod placeholder;
pub mod plan;
pub mod policy;
pub mod prune;
pub mod readers;
pub mod redact;
pub mod render;
pub mod replay;
pub mod resident;
pub mod rewrite;
pub mod root;
pub mod salience;
pub mod shortfall;
pub mod shrink;
pub mod step;
pub mod strategy;
pub mod tokens;
mod tool_use;
pub mod transcript;
pub mod window;
pub mod working_set;

pub use error::{Error, ErrorKind, Result};
