//! Python bindings: convert, detach, convert.
#![deny(unsafe_code)]

mod argument;
mod budget;
mod calibration;
mod callback;
mod columns;
mod content;
mod convert;
mod counter;
mod describe;
mod error;
mod gil;
mod json_scan;
mod json_values;
mod langchain;
mod likelihood;
mod lint;
mod log_events;
mod message_tokens;
mod node;
mod page_results;
mod prune;
mod pytext;
mod readers;
mod redact;
mod render;
mod repair;
mod replay;
mod repr;
mod resident;
mod rewrite;
mod score;
mod sendable;
mod stored_messages;
mod stored_text;
mod terms;
mod trim;
mod utf8;
mod window;
mod working_set;

/// The native half of the `satchel` package.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::budget::allocate_budget;
    #[pymodule_export]
    use crate::calibration::PyCalibration;
    #[pymodule_export]
    use crate::columns::{column_scores, column_windows};
    #[pymodule_export]
    use crate::convert::convert_messages;
    #[pymodule_export]
    use crate::counter::PyCounter;
    #[pymodule_export]
    use crate::describe::{describe_json, describe_message, describe_text, detect_dialect};
    #[pymodule_export]
    use crate::error::error_codes;
    #[pymodule_export]
    use crate::json_values::json_values;
    #[pymodule_export]
    use crate::langchain::approximate_fit;
    #[pymodule_export]
    use crate::likelihood::{identifiers_of, likelihood_rows};
    #[pymodule_export]
    use crate::lint::{PyLintProgress, lint_rows, lint_rules};
    #[pymodule_export]
    use crate::message_tokens::PyMessageTokens;
    #[pymodule_export]
    use crate::prune::prune_tool_outputs;
    #[pymodule_export]
    use crate::readers::{PyTranscriptReader, transcript_formats};
    #[pymodule_export]
    use crate::redact::{redact_text, redact_texts, redaction_kinds, redaction_placeholder};
    #[pymodule_export]
    use crate::repair::{repair_messages, repair_placeholders};
    #[pymodule_export]
    use crate::replay::{replay_baselines, replay_run};
    #[pymodule_export]
    use crate::resident::PyResident;
    #[pymodule_export]
    use crate::rewrite::{PyRewriteReader, PyRewriter, count_line_ends, has_rows_of};
    #[pymodule_export]
    use crate::score::score_messages;
    #[pymodule_export]
    use crate::stored_messages::PyStoredMessages;
    #[pymodule_export]
    use crate::terms::{analyse, analyse_many, stop_words, term_counts};
    #[pymodule_export]
    use crate::trim::{text_structure, text_structures, trim_text};
    #[pymodule_export]
    use crate::window::{sliding_window, token_window};
    #[pymodule_export]
    use crate::working_set::PyWorkingSet;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let column_names = crate::working_set::column_names(module.py())?;
        module.add("column_names", column_names)?;
        let (roles, signals) = crate::columns::names();
        module.add("role_names", roles)?;
        module.add("signal_names", signals)?;
        // Benchmarks refuse to trust a debug build; see `satchel.testing.require_release`.
        module.add("debug_build", cfg!(debug_assertions))
    }
}
