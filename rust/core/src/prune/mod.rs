//! Shortening of content: what is kept of a text, and the note that says how much there was.

pub mod outputs;
pub mod structure;
pub mod text;
