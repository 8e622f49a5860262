//! The core's own tests: one binary, one module per noun.
#![allow(
    clippy::unwrap_used,
    reason = "a test that meets an unexpected error should stop there"
)]
#![allow(missing_docs, reason = "tests are named after what they hold")]
#![allow(
    unreachable_pub,
    reason = "modules of one test binary share their items"
)]

mod analyse;
mod budget;
mod calibration;
mod chat;
mod checkpoint;
mod columns;
mod convert;
mod convert_calls;
mod convert_media;
mod convert_tools;
mod counter;
mod coverage;
mod dialect;
mod dialect_bedrock;
mod dialect_gemini;
mod dialect_responses;
mod dialect_windows;
mod encoder;
mod histories;
mod identifiers;
mod images;
mod keep;
mod large;
mod lint;
mod lint_rules;
mod long_list;
mod page;
mod prune;
mod readers;
mod redact;
mod repair;
mod replay;
mod resident;
mod rewrite;
mod rules;
mod score;
mod spoken;
mod strategy;
mod structure;
mod structure_samples;
mod window;
mod working_set;
