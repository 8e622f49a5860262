//! The length of a `repr`, without making it.
//!
//! Exact types of JSON are measured here: a call and its arguments are little else. Whatever else
//! there is, or is nested deeply, writes itself out.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

/// Nesting that is followed; a cycle ends there too, and Python knows how to write that.
const DEEPEST: usize = 16;

/// Characters of `repr(object)`; `None` if that raises.
pub(crate) fn repr_length(object: &Bound<'_, PyAny>) -> Option<usize> {
    measured(object, 0).or_else(|| object.repr().ok()?.len().ok())
}

/// `None` for what Python must write.
fn measured(object: &Bound<'_, PyAny>, depth: usize) -> Option<usize> {
    if depth > DEEPEST {
        return None;
    }
    if let Ok(text) = object.cast_exact::<PyString>() {
        return quoted(text.to_str().ok()?).or_else(|| text.repr().ok()?.len().ok());
    }
    if let Ok(entries) = object.cast_exact::<PyDict>() {
        // Braces; a colon and a blank in each entry, a comma and a blank between two.
        let mut length = 2;
        for (key, value) in entries {
            length += measured(&key, depth + 1)? + measured(&value, depth + 1)? + 4;
        }
        return Some(if length > 2 { length - 2 } else { length });
    }
    if let Ok(items) = object.cast_exact::<PyList>() {
        let mut length = 2;
        for item in items {
            length += measured(&item, depth + 1)? + 2;
        }
        return Some(if length > 2 { length - 2 } else { length });
    }
    if object.is_none() {
        return Some(4);
    }
    // Of a container, one part alone may be Python's to write; of a cycle, only the whole.
    let is_scalar = object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyFloat>();
    if is_scalar {
        return object.repr().ok()?.len().ok();
    }
    None
}

/// Characters of a printable ASCII text in quotes; `None` for any other.
fn quoted(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_plain = |byte: &u8| (b' '..0x7f).contains(byte) && *byte != b'\\' && *byte != b'\'';
    // One kind of quotes needs the other around it, or escapes.
    bytes.iter().all(is_plain).then_some(bytes.len() + 2)
}
