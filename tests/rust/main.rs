//! What the core promises, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod counter;
mod encoder;
