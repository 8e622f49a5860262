//! JSON as Python values: the payloads of a log, many at a time.
//!
//! Keys and short strings are made once; the rest is found by the scanner and handed over as it is.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::json_scan::{Found, Maker, Scanner};

/// Bytes up to which a string is kept for the next time that it comes.
const SHORT: usize = 32;

/// Strings that are kept at a time.
const KNOWN: usize = 64;

/// The values of a run of JSON texts with commas between them; `None` if one is out of the ordinary.
#[pyfunction]
#[pyo3(signature = (joined, /))]
pub(crate) fn json_values<'py>(py: Python<'py>, joined: &[u8]) -> Option<Bound<'py, PyList>> {
    let values = Scanner::new(joined, Objects::new(py)).values()?;
    PyList::new(py, values).ok()
}

/// The value of one JSON text; `None` if it is out of the ordinary.
pub(crate) fn json_value<'py>(py: Python<'py>, text: &[u8]) -> Option<Bound<'py, PyAny>> {
    Scanner::new(text, Objects::new(py)).one(0, text.len())
}

type Known<'a, 'py> = Option<(&'a [u8], Bound<'py, PyString>)>;

/// Makes Python objects.
struct Objects<'a, 'py> {
    py: Python<'py>,
    known: [Known<'a, 'py>; KNOWN],
}

impl<'py> Objects<'_, 'py> {
    fn new(py: Python<'py>) -> Self {
        Self {
            py,
            known: [const { None }; KNOWN],
        }
    }
}

impl<'a, 'py> Maker<'a> for Objects<'a, 'py> {
    type Value = Bound<'py, PyAny>;
    type Map = Bound<'py, PyDict>;
    type Key = Bound<'py, PyString>;

    fn null(&mut self) -> Self::Value {
        self.py.None().into_bound(self.py)
    }

    fn bool(&mut self, value: bool) -> Self::Value {
        PyBool::new(self.py, value).to_owned().into_any()
    }

    fn int(&mut self, value: i64) -> Option<Self::Value> {
        Some(PyInt::new(self.py, value).into_any())
    }

    fn float(&mut self, value: f64, _at: usize, _text: &'a str) -> Option<Self::Value> {
        Some(PyFloat::new(self.py, value).into_any())
    }

    fn text(&mut self, found: Found<'a, '_>) -> Option<Self::Value> {
        self.key(found).map(Bound::into_any)
    }

    fn list(&mut self, items: Vec<Self::Value>) -> Option<Self::Value> {
        PyList::new(self.py, items).ok().map(Bound::into_any)
    }

    fn map(&mut self) -> Self::Map {
        PyDict::new(self.py)
    }

    fn key(&mut self, found: Found<'a, '_>) -> Option<Self::Key> {
        let plain = match found {
            Found::Unescaped(bytes) => return PyString::from_bytes(self.py, bytes).ok(),
            Found::Plain(_, plain) if plain.len() > SHORT => {
                return PyString::from_bytes(self.py, plain).ok();
            }
            Found::Plain(_, plain) => plain,
        };
        let place = slot(plain);
        if let Some((bytes, text)) = self.known.get(place)?
            && *bytes == plain
        {
            return Some(text.clone());
        }
        let text = PyString::from_bytes(self.py, plain).ok()?;
        *self.known.get_mut(place)? = Some((plain, text.clone()));
        Some(text)
    }

    fn entry(&mut self, map: &mut Self::Map, key: Self::Key, value: Self::Value) -> Option<()> {
        map.set_item(key, value).ok()
    }

    fn finish(&mut self, map: Self::Map) -> Option<Self::Value> {
        Some(map.into_any())
    }
}

fn slot(text: &[u8]) -> usize {
    let byte = |place: usize| text.get(place).map_or(0, |byte| usize::from(*byte));
    let last = text.len().saturating_sub(1);
    (text.len() + 7 * byte(0) + 31 * byte(last / 2) + 101 * byte(last)) % KNOWN
}
