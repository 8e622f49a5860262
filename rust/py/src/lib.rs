//! Python bindings: convert, detach, convert.
#![deny(unsafe_code)]

use pyo3::prelude::*;

mod error;
mod gil;

/// The native half of the `satchel` package.
#[pymodule(gil_used = false)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::error::error_codes;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        // Benchmarks refuse to trust a debug build; see `satchel.testing.require_release`.
        module.add("debug_build", cfg!(debug_assertions))
    }
}
