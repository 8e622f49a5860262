//! Packs an agent's context window: tokens, steps, budget, plan, pages.
//!
//! The core is a pure function of its input: no I/O, no clock, no randomness, no model.
#![forbid(unsafe_code)]

pub mod budget;
pub mod content;
pub mod dialect;
pub mod error;
pub mod message;
pub mod node;
pub mod prune;
pub mod salience;
pub mod tokens;
pub mod window;

pub use error::{Error, ErrorKind, Result};
