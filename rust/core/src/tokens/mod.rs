//! Tokens: exact counting in public vocabularies, estimates for the rest, cuts at a limit.
//!
//! Everything here is immutable and shared freely between threads. Counting is linear in the text
//! (`n log n` within one piece without a break), looks each text at once and allocates nothing
//! unless a single piece is longer than 64 bytes.

mod cache;
mod calibration;
pub mod chat;
mod classes;
mod counter;
mod encoder;
mod estimate;
mod factors;
mod image_size;
pub mod images;
mod merge;
mod numbers;
mod parallel;
mod ranks;
mod rules;
mod split;
mod table;
pub mod tools;
mod truncate;
mod vocabulary;

pub use calibration::{Calibration, Scale};
pub use counter::{CountTexts, Counter};
pub use encoder::Encoder;
pub use factors::Factors;
pub use image_size::{image_size, sound_seconds};
pub use rules::{CallRules, MediaRules, ModelRules, ReasoningRules};
pub use truncate::Keep;
