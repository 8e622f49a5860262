//! The integration tests of the core: one binary, a module per noun.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed and says where"
)]

mod chat;
mod dialect;
mod lint;
