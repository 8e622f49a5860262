//! Columns of memories, searched without the interpreter.

use std::sync::{PoisonError, RwLock};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use satchel_core::resident::{Facts, Passing, Query, Resident, Row};

use crate::error::invalid_value;
use crate::gil::run;

/// Numbers, BM25, products, places before and after, times, confidences, labels.
type Found<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f32>>,
    Vec<Option<String>>,
);

/// The numbers, paths, sessions, places, words and labels of rows, one list each.
type Names = (
    Vec<i64>,
    Vec<PyBackedBytes>,
    Vec<PyBackedBytes>,
    Vec<Option<i64>>,
    Vec<PyBackedStr>,
    Vec<Option<PyBackedStr>>,
);

/// The times, expiries, confidences, kinds, claims and superseded ones among rows, likewise.
type Flags = (
    Vec<f64>,
    Vec<Option<f64>>,
    Vec<f64>,
    Vec<u8>,
    Vec<bool>,
    Vec<bool>,
);

#[pyclass(name = "Resident", frozen, module = "satchel._core")]
#[derive(Debug, Default)]
pub(crate) struct PyResident(RwLock<Resident>);

#[pymethods]
impl PyResident {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |resident| Ok(resident.len()))
    }

    /// Bytes of memory, about.
    fn size(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |resident| Ok(resident.size()))
    }

    /// Rows of each path.
    #[pyo3(signature = (paths, /))]
    #[allow(
        clippy::needless_pass_by_value,
        reason = "arguments as Python gives them"
    )]
    fn counts(&self, py: Python<'_>, paths: Vec<PyBackedBytes>) -> PyResult<Vec<usize>> {
        self.read(py, |resident| {
            Ok(paths.iter().map(|path| resident.count(path)).collect())
        })
    }

    /// Takes in rows; one whose number is here takes its place.
    #[pyo3(signature = (names, flags, vectors, /))]
    #[allow(
        clippy::needless_pass_by_value,
        reason = "arguments as Python gives them"
    )]
    fn put(
        &self,
        py: Python<'_>,
        names: Names,
        flags: Flags,
        vectors: PyReadonlyArray2<'_, f32>,
    ) -> PyResult<()> {
        let dimension = vectors.as_array().ncols();
        let count = vectors.as_array().nrows();
        let values = vectors.as_slice();
        let values = values.map_err(|_| invalid_value("vectors must be contiguous"))?;
        // Another thread may write to an array while the interpreter is released.
        let values = values.to_vec();
        let (numbers, paths, sessions, places, words, labels) = names;
        let (times, expiries, confidences, kinds, claims, superseded) = flags;
        let lengths = [
            numbers.len(),
            paths.len(),
            sessions.len(),
            places.len(),
            words.len(),
            labels.len(),
            times.len(),
            expiries.len(),
            confidences.len(),
            kinds.len(),
            claims.len(),
            superseded.len(),
        ];
        if lengths.iter().any(|length| *length != count) {
            return Err(invalid_value("columns must be of one length"));
        }
        run(py, move || {
            let facts = (times.iter().zip(&expiries).zip(&confidences))
                .zip(kinds.iter().zip(&claims).zip(&superseded))
                .map(
                    |(((time, expires), confidence), ((kind, claim), superseded))| Facts {
                        time: *time,
                        expires: expires.unwrap_or(f64::INFINITY),
                        confidence: *confidence,
                        kind: *kind,
                        is_claim: *claim,
                        is_superseded: *superseded,
                    },
                );
            let rows: Vec<Row<'_>> = (numbers.iter().zip(&paths).zip(sessions.iter().zip(&places)))
                .zip(words.iter().zip(&labels).zip(facts))
                .enumerate()
                .map(
                    |(at, (((number, path), (session, place)), ((words, label), facts)))| Row {
                        number: *number,
                        path,
                        session,
                        place: *place,
                        words,
                        label: label.as_deref(),
                        vector: values
                            .get(at * dimension..(at + 1) * dimension)
                            .unwrap_or_default(),
                        facts,
                    },
                )
                .collect();
            let mut resident = self.0.write().unwrap_or_else(PoisonError::into_inner);
            resident.put(&rows)
        })
    }

    /// Removes the rows of these paths whose numbers are not named.
    #[pyo3(signature = (paths, numbers, /))]
    fn retain(&self, py: Python<'_>, paths: Vec<PyBackedBytes>, numbers: Vec<i64>) -> PyResult<()> {
        run(py, move || {
            let paths: Vec<&[u8]> = paths.iter().map(|path| &**path).collect();
            let mut resident = self.0.write().unwrap_or_else(PoisonError::into_inner);
            resident.retain(&paths, &numbers);
            Ok(())
        })
    }

    /// Rows, the sum of their lengths in terms, and how many hold each term.
    #[pyo3(signature = (terms, /))]
    fn statistics<'py>(
        &self,
        py: Python<'py>,
        terms: Vec<PyBackedStr>,
    ) -> PyResult<(usize, u64, Bound<'py, PyArray1<i64>>)> {
        let found = self.read(py, move |resident| {
            let terms: Vec<&str> = terms.iter().map(|term| &**term).collect();
            Ok(resident.statistics(&terms))
        })?;
        Ok((found.rows, found.terms, found.holding.into_pyarray(py)))
    }

    /// Rows that may answer and their neighbours, by ascending number.
    ///
    /// `passing` is the moment, the least confidence, a bit for each kind that counts, and whether
    /// claims and superseded rows count too.
    #[pyo3(signature = (passing, /, *, terms, weights, mean_terms, vector, most))]
    #[allow(
        clippy::needless_pass_by_value,
        clippy::too_many_arguments,
        reason = "arguments as Python gives them: the parts of a query"
    )]
    fn candidates<'py>(
        &self,
        py: Python<'py>,
        passing: (f64, f64, u32, bool, bool),
        terms: Vec<String>,
        weights: PyReadonlyArray1<'py, f32>,
        mean_terms: f64,
        vector: Option<PyReadonlyArray1<'py, f32>>,
        most: usize,
    ) -> PyResult<Found<'py>> {
        let (now, confidence, kinds, with_claims, with_history) = passing;
        let passing = Passing {
            now,
            confidence,
            kinds,
            with_claims,
            with_history,
        };
        let query = Query {
            terms,
            weights: weights.as_array().to_vec(),
            mean_terms,
            vector: vector.map(|vector| vector.as_array().to_vec()),
            most,
        };
        let found = self.read(py, move |resident| resident.candidates(&passing, &query))?;
        Ok((
            found.numbers.into_pyarray(py),
            found.lexical.into_pyarray(py),
            found.dense.into_pyarray(py),
            found.previous.into_pyarray(py),
            found.following.into_pyarray(py),
            found.times.into_pyarray(py),
            found.confidences.into_pyarray(py),
            found.labels,
        ))
    }
}

impl PyResident {
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Resident) -> Result<T, satchel_core::Error> + Send,
    ) -> PyResult<T> {
        run(py, || {
            work(&self.0.read().unwrap_or_else(PoisonError::into_inner))
        })
    }
}
