//! How much a step matters for the next call.

pub mod signals;
