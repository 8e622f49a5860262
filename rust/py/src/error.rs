//! The only conversion from the core's error to Python's exceptions.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use satchel_core::error::{Error, ErrorGroup};

pyo3::import_exception!(satchel.errors, BudgetError);
pyo3::import_exception!(satchel.errors, InputError);
pyo3::import_exception!(satchel.errors, PageNotFoundError);
pyo3::import_exception!(satchel.errors, UsageError);

/// Wraps the core's error so that `?` turns it into a Python exception.
#[derive(Debug)]
pub(crate) struct PyError(pub(crate) Error);

impl From<Error> for PyError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<PyError> for PyErr {
    fn from(PyError(error): PyError) -> Self {
        Python::attach(|py| {
            let class = match error.kind().group() {
                ErrorGroup::Input => py.get_type::<InputError>(),
                ErrorGroup::Budget => py.get_type::<BudgetError>(),
                ErrorGroup::Page => py.get_type::<PageNotFoundError>(),
                ErrorGroup::Usage => py.get_type::<UsageError>(),
            };
            match build(&class.into_any(), &error) {
                Ok(exception) => Self::from_value(exception),
                Err(failure) => failure,
            }
        })
    }
}

fn build<'py>(class: &Bound<'py, PyAny>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let context = PyDict::new(class.py());
    context.set_item("code", error.code())?;
    context.set_item("index", error.index())?;
    context.set_item("value", error.value())?;
    context.set_item("limit", error.limit())?;
    class.call((error.to_string(),), Some(&context))
}
