//! The division of a token total among the sections of a request.

use pyo3::prelude::*;
use satchel_core::budget::{self, Shares};

use crate::error::PyError;

/// Tokens of the five sections, in the order of their names.
#[pyfunction]
#[pyo3(signature = (total_tokens, shares, /))]
pub(crate) fn allocate_budget(
    total_tokens: u64,
    shares: Vec<(String, f64)>,
) -> PyResult<(u64, u64, u64, u64, u64)> {
    let mut all = Shares::default();
    for (name, share) in shares {
        all.set(&name, share).map_err(PyError)?;
    }
    let budget = budget::allocate_budget(total_tokens, &all).map_err(PyError)?;
    Ok((
        budget.system_prompt,
        budget.memory_summary,
        budget.retrieved_context,
        budget.recent_messages,
        budget.output_reserve,
    ))
}
