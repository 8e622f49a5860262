//! `satchel.Calibration`.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use satchel_core::tokens::Calibration;

use crate::argument::{argument, optional};
use crate::error::{PyError, invalid_value};
use crate::utf8::wrong_type;

/// What was learnt from reported usage; a value that never changes.
#[pyclass(name = "Calibration", module = "satchel", frozen, eq)]
#[derive(Debug, PartialEq)]
pub(crate) struct PyCalibration(pub(crate) Calibration);

#[pymethods]
impl PyCalibration {
    #[new]
    #[allow(
        clippy::too_many_arguments,
        reason = "the keyword arguments of one Python constructor"
    )]
    #[pyo3(
        signature = (
            *, factor=None, offset=None, n=None, estimated=None, reported=None,
            counted_growth=None, reported_growth=None, error=None
        ),
        text_signature = "(*, factor=1.0, offset=0.0, n=0, estimated=0, reported=0, \
                          counted_growth=0.0, reported_growth=0.0, error=0.0)"
    )]
    #[allow(
        clippy::too_many_arguments,
        reason = "one keyword for each field, for copies and pickles"
    )]
    fn new(
        factor: Option<&Bound<'_, PyAny>>,
        offset: Option<&Bound<'_, PyAny>>,
        n: Option<&Bound<'_, PyAny>>,
        estimated: Option<&Bound<'_, PyAny>>,
        reported: Option<&Bound<'_, PyAny>>,
        counted_growth: Option<&Bound<'_, PyAny>>,
        reported_growth: Option<&Bound<'_, PyAny>>,
        error: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let calibration = Calibration {
            factor: real(factor, "factor")?.unwrap_or(1.0),
            offset: real(offset, "offset")?.unwrap_or(0.0),
            n: optional(n, "n", "a 32-bit int from 0")?.unwrap_or(0),
            estimated: optional(estimated, "estimated", WHOLE)?.unwrap_or(0),
            reported: optional(reported, "reported", WHOLE)?.unwrap_or(0),
            counted_growth: real(counted_growth, "counted_growth")?.unwrap_or(0.0),
            reported_growth: real(reported_growth, "reported_growth")?.unwrap_or(0.0),
            error: real(error, "error")?.unwrap_or(0.0),
        };
        calibration.check().map_err(PyError)?;
        Ok(Self(calibration))
    }

    #[getter]
    fn factor(&self) -> f64 {
        self.0.factor
    }

    #[getter]
    fn offset(&self) -> f64 {
        self.0.offset
    }

    #[getter]
    fn n(&self) -> u32 {
        self.0.n
    }

    #[getter]
    fn margin(&self) -> Option<f64> {
        self.0.scale().margin
    }

    #[pyo3(signature = (estimated, usage, /))]
    fn observe(&self, estimated: &Bound<'_, PyAny>, usage: &Bound<'_, PyAny>) -> PyResult<Self> {
        let estimated = tokens(estimated, "total", "estimated")?;
        let reported = tokens(usage, "input", "usage")?;
        Ok(Self(self.0.observe(estimated, reported).map_err(PyError)?))
    }

    #[pyo3(signature = (tokens, /))]
    fn estimate(&self, tokens: &Bound<'_, PyAny>) -> PyResult<u64> {
        let tokens = argument(tokens, "tokens", WHOLE)?;
        Ok(self.0.scale().estimate(tokens))
    }

    /// The event that tells a working set about it.
    fn event<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let scale = self.0.scale();
        let event = PyDict::new(py);
        event.set_item("kind", "calibration")?;
        event.set_item("factor", scale.factor)?;
        event.set_item("offset", scale.offset)?;
        if let Some(margin) = scale.margin {
            event.set_item("margin", margin)?;
        }
        Ok(event)
    }

    fn __hash__(&self) -> u64 {
        self.0.factor.to_bits() ^ self.0.offset.to_bits().rotate_left(17) ^ u64::from(self.0.n)
    }

    fn __repr__(&self) -> String {
        let Calibration {
            factor, offset, n, ..
        } = self.0;
        format!("Calibration(factor={factor:.4}, offset={offset:.1}, n={n})")
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((), Bound<'py, PyDict>)> {
        let fields = PyDict::new(py);
        fields.set_item("factor", self.0.factor)?;
        fields.set_item("offset", self.0.offset)?;
        fields.set_item("n", self.0.n)?;
        fields.set_item("estimated", self.0.estimated)?;
        fields.set_item("reported", self.0.reported)?;
        fields.set_item("counted_growth", self.0.counted_growth)?;
        fields.set_item("reported_growth", self.0.reported_growth)?;
        fields.set_item("error", self.0.error)?;
        Ok(((), fields))
    }
}

/// An int, or that attribute of what holds one (`MessageTokens`, `Window`, `Usage`).
fn tokens(value: &Bound<'_, PyAny>, attribute: &str, name: &str) -> PyResult<u64> {
    if !value.is_instance_of::<PyBool>() {
        if let Ok(tokens) = value.extract() {
            return Ok(tokens);
        }
        for attribute in [attribute, "tokens"] {
            if let Ok(tokens) = value.getattr(attribute).and_then(|tokens| tokens.extract()) {
                return Ok(tokens);
            }
        }
    }
    let expected = format!("an int from 0 or an object with `{attribute}`");
    Err(invalid_value(&wrong_type(name, &expected, value)))
}

const WHOLE: &str = "a 64-bit int from 0";

fn real(value: Option<&Bound<'_, PyAny>>, name: &str) -> PyResult<Option<f64>> {
    optional(value, name, "a number")
}
