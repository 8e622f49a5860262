//! What identifiers are and what their weights are fitted to.

use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use satchel_core::dialect::Dialect;
use satchel_core::error::{Error, ErrorKind};
use satchel_core::readers::json::{Json, parse};
use satchel_core::replay::{self, Limit, Recording, Run};
use satchel_core::salience::identifiers::identifiers;
use satchel_core::salience::likelihood::FEATURES;

use crate::counter::PyCounter;
use crate::error::PyError;
use crate::gil::run;
use crate::utf8::text_of;

/// The identifiers of a text, in order, each as often as it stands there.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn identifiers_of(py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let text = text_of(text, "text")?;
    run(py, move || {
        let text = text.as_str();
        let names = identifiers(text).map(|one| text[one.start..one.end].to_owned());
        Ok(names.collect())
    })
}

type Rows<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<f64>>,
);

/// Features, uses, kinds and weights of the identifiers of one conversation at every `every`-th
/// reply.
#[pyfunction]
#[pyo3(signature = (messages, dialect, /, *, counter, every))]
pub(crate) fn likelihood_rows<'py>(
    py: Python<'py>,
    messages: &str,
    dialect: &str,
    counter: &PyCounter,
    every: usize,
) -> PyResult<Rows<'py>> {
    let counter = counter.0.clone();
    let rows = run(py, move || {
        let wrong = || Error::new(ErrorKind::InvalidValue, "messages must be a JSON list");
        let Ok(Json::List(messages)) = parse(messages) else {
            return Err(wrong());
        };
        let recorded = Run {
            dialect: Dialect::from_name(dialect)?,
            messages,
            system: None,
            tools: None,
        };
        let recording = Recording::new(&recorded, &counter, Limit::Share(1.0))?;
        replay::likelihood_rows(&recording, every)
    })?;
    let features: Vec<Vec<f64>> = rows.iter().map(|row| row.features.to_vec()).collect();
    let features = if features.is_empty() {
        PyArray2::zeros(py, [0, FEATURES], false)
    } else {
        PyArray2::from_vec2(py, &features)
            .map_err(|error| PyError(Error::new(ErrorKind::InvalidValue, error.to_string())))?
    };
    Ok((
        features,
        PyArray1::from_iter(py, rows.iter().map(|row| row.is_used)),
        PyArray1::from_iter(py, rows.iter().map(|row| row.is_dialogue)),
        PyArray1::from_iter(py, rows.iter().map(|row| row.weight)),
    ))
}
