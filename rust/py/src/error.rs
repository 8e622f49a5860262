//! The only conversion from the core's error to Python's exceptions.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use satchel_core::error::{Error, ErrorGroup, ErrorKind};

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
            let raised = match build(&class_of(py, error.kind()), &error) {
                Ok(exception) => Self::from_value(exception),
                Err(failure) => failure,
            };
            if error.kind() == ErrorKind::CounterFailed {
                crate::callback::with_cause(py, raised)
            } else {
                raised
            }
        })
    }
}

/// An `InputError` with code `invalid_value`: an argument of the wrong type or out of range.
#[cold]
pub(crate) fn invalid_value(message: &str) -> PyErr {
    PyError(Error::new(ErrorKind::InvalidValue, message)).into()
}

/// The exception class of every error code, in the order of the catalogue.
#[pyfunction]
pub(crate) fn error_codes(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let classes = PyDict::new(py);
    for kind in ErrorKind::ALL {
        classes.set_item(kind.code(), class_of(py, kind))?;
    }
    Ok(classes)
}

fn class_of(py: Python<'_>, kind: ErrorKind) -> Bound<'_, PyType> {
    match kind.group() {
        ErrorGroup::Input => py.get_type::<InputError>(),
        ErrorGroup::Budget => py.get_type::<BudgetError>(),
        ErrorGroup::Page => py.get_type::<PageNotFoundError>(),
        ErrorGroup::Usage => py.get_type::<UsageError>(),
    }
}

fn build<'py>(class: &Bound<'py, PyType>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let context = PyDict::new(class.py());
    context.set_item("code", error.code())?;
    context.set_item("index", error.index())?;
    context.set_item("value", error.value())?;
    context.set_item("limit", error.limit())?;
    class.call((error.to_string(),), Some(&context))
}
