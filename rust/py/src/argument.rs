//! Arguments of the wrong type as the errors of this package.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;

use crate::error::invalid_value;
use crate::utf8::wrong_type;

/// The argument `name` as what it has to be; `expected` says that in words.
///
/// # Errors
/// `invalid_value` with the name, what is expected, and the type that was found.
pub(crate) fn argument<T>(value: &Bound<'_, PyAny>, name: &str, expected: &str) -> PyResult<T>
where
    T: for<'py> FromPyObjectOwned<'py>,
{
    value
        .extract()
        .map_err(|_| invalid_value(&wrong_type(name, expected, value)))
}

/// The same for one that may be left out.
pub(crate) fn optional<T>(
    value: Option<&Bound<'_, PyAny>>,
    name: &str,
    expected: &str,
) -> PyResult<Option<T>>
where
    T: for<'py> FromPyObjectOwned<'py>,
{
    value
        .map(|value| argument(value, name, expected))
        .transpose()
}
