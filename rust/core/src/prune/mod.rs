//! Shortening content, one file per kind.

pub mod text;
