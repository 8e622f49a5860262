//! `satchel.Calibration`.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use satchel_core::tokens::Calibration;

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
    #[pyo3(signature = (
        *, factor=1.0, offset=0.0, n=0, estimated=0, reported=0,
        counted_growth=0.0, reported_growth=0.0, error=0.0
    ))]
    fn new(
        factor: f64,
        offset: f64,
        n: u32,
        estimated: u64,
        reported: u64,
        counted_growth: f64,
        reported_growth: f64,
        error: f64,
    ) -> PyResult<Self> {
        let calibration = Calibration {
            factor,
            offset,
            n,
            estimated,
            reported,
            counted_growth,
            reported_growth,
            error,
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
    fn estimate(&self, tokens: u64) -> u64 {
        self.0.scale().estimate(tokens)
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
