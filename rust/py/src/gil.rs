//! The one door to native work: detach from the interpreter, run, translate the error.

use pyo3::prelude::*;
use satchel_core::error::Error;

use crate::error::PyError;

/// Runs `work` with the interpreter released. Nothing inside may touch Python.
pub(crate) fn run<T, F>(py: Python<'_>, work: F) -> PyResult<T>
where
    T: Send,
    F: FnOnce() -> Result<T, Error> + Send,
{
    py.detach(work).map_err(|error| PyError(error).into())
}
