//! Ways to make room beside the choice by lines: what a named preset does, when, and what a rewrite
//! of the prompt cache costs.

pub(crate) mod clearing;
pub mod price;
pub(crate) mod relevant;

pub use clearing::{AtLeast, ClearInputs, Clearing, Trigger};
