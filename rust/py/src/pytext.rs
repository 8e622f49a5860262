//! A caller's `str`, kept by reference and read without the interpreter where that is free.
//!
//! `CPython` stores ASCII strings as UTF-8 already: their bytes are borrowed for as long as the
//! reference is held. For any other string the interpreter would make a second, permanent copy
//! inside the object when asked for its UTF-8, so such strings are encoded on demand instead and
//! the copy is dropped after the reading: one transient copy per reading, none kept.

use std::fmt::{self, Write as _};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyString};
use satchel_core::node::{Text, write_json_chars, write_json_string};

use crate::stored_text::StoredText;

/// A text of the core that is a Python `str`. 24 bytes; may be dropped on any thread.
pub(crate) enum PyText {
    /// Its UTF-8 is inside the object.
    Ascii(PyBackedStr),
    /// Its UTF-8 is made when it is read.
    Other(Py<PyString>),
    /// A payload that a client keeps as bytes; as a text it is base64, the form it is sent in.
    Bytes(Py<PyBytes>),
    /// A text of a stored log, of which no `str` was made.
    Stored(StoredText),
}

impl PyText {
    /// Keeps `text`; nothing is copied.
    pub(crate) fn new(text: Bound<'_, PyString>) -> Self {
        if is_ascii(&text) {
            let unbound = text.clone().unbind();
            return PyBackedStr::try_from(text).map_or(Self::Other(unbound), Self::Ascii);
        }
        Self::Other(text.unbind())
    }

    /// The caller's own object.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        match self {
            Self::Ascii(text) => text.as_py_str().bind(py).clone(),
            Self::Other(text) => text.bind(py).clone(),
            Self::Bytes(bytes) => PyString::new(py, &base64(bytes.as_bytes(py))),
            Self::Stored(text) => PyString::new(py, text.as_str()),
        }
    }

    /// Its length in characters, without reading it; of a payload or a stored text, in bytes.
    pub(crate) fn chars(&self, py: Python<'_>) -> usize {
        match self {
            Self::Ascii(text) => text.len(),
            // By the type's own length: a subclass may have replaced it, with an error or a lie.
            Self::Other(text) => text.bind(py).code_point_len().unwrap_or_default(),
            Self::Bytes(bytes) => bytes.as_bytes(py).len(),
            Self::Stored(text) => text.as_str().len(),
        }
    }

    /// Keeps a payload; nothing is copied.
    pub(crate) fn of_bytes(bytes: Bound<'_, PyBytes>) -> Self {
        Self::Bytes(bytes.unbind())
    }
}

impl Text for PyText {
    fn with<R>(&self, read: impl FnOnce(&str) -> R) -> R {
        match self {
            Self::Ascii(text) => read(text),
            Self::Other(text) => {
                // Read after the interpreter is let go again: counting a long text takes a while.
                let text = Python::attach(|py| to_utf8(text.bind(py)));
                read(&text)
            }
            Self::Bytes(bytes) => {
                let text = Python::attach(|py| base64(bytes.as_bytes(py)));
                read(&text)
            }
            Self::Stored(text) => read(text.as_str()),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Ascii(text) => text.is_empty(),
            // An empty string is ASCII.
            Self::Other(_) => false,
            Self::Bytes(bytes) => Python::attach(|py| bytes.as_bytes(py).is_empty()),
            Self::Stored(text) => text.as_str().is_empty(),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Ascii(text) => text.as_bytes().to_vec(),
            Self::Other(text) => Python::attach(|py| to_surrogate_bytes(text.bind(py))),
            Self::Bytes(_) | Self::Stored(_) => self.with(|text| text.as_bytes().to_vec()),
        }
    }

    fn write_json(&self, out: &mut String) {
        match self {
            Self::Ascii(text) => write_json_string(text, out),
            Self::Other(text) => Python::attach(|py| write_json(text.bind(py), out)),
            Self::Bytes(_) | Self::Stored(_) => self.with(|text| write_json_string(text, out)),
        }
    }
}

impl fmt::Debug for PyText {
    /// Never the content: what is logged must not carry a conversation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ascii(_) => "PyText(ascii)",
            Self::Other(_) => "PyText(other)",
            Self::Bytes(_) => "PyText(bytes)",
            Self::Stored(_) => "PyText(stored)",
        })
    }
}

/// Calls `read` with a string of the caller that is not kept.
pub(crate) fn with_text<R>(text: &Bound<'_, PyString>, read: impl FnOnce(&str) -> R) -> R {
    // The names that readers compare are short; what the interpreter keeps of those is no matter.
    const SHORT: usize = 32;
    let is_short = text.code_point_len().is_ok_and(|chars| chars <= SHORT);
    if (is_short || is_ascii(text))
        && let Ok(text) = text.to_str()
    {
        return read(text);
    }
    read(&to_utf8(text))
}

/// Whether a string has a UTF-8 form: no half of a surrogate pair is in it.
pub(crate) fn is_sendable(text: &Bound<'_, PyString>) -> bool {
    // As in `with_text`.
    const SHORT: usize = 32;
    if text.code_point_len().is_ok_and(|chars| chars <= SHORT) {
        return text.to_str().is_ok();
    }
    is_ascii(text) || text.encode_utf8().is_ok()
}

/// RFC 4648 base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = (bits >> (18 - 6 * at) & 63) as usize;
            let is_padding = at > chunk.len();
            out.push(if is_padding {
                '='
            } else {
                char::from(DIGITS[digit])
            });
        }
    }
    out
}

fn is_ascii(text: &Bound<'_, PyString>) -> bool {
    // A flag of the object; the limited API has no other way to it.
    text.call_method0(intern!(text.py(), "isascii"))
        .and_then(|is_ascii| is_ascii.extract())
        .unwrap_or(false)
}

/// UTF-8 as the reference tokenizer sees the string: surrogate pairs as their character, lone
/// surrogates as U+FFFD.
pub(crate) fn to_utf8(text: &Bound<'_, PyString>) -> String {
    if let Ok(bytes) = text.encode_utf8()
        && let Ok(text) = std::str::from_utf8(bytes.as_bytes())
    {
        return text.to_owned();
    }
    decode_pairs(text)
        .into_iter()
        .map(|found| found.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// The characters of a string with surrogates: pairs joined, lone ones as they are.
fn decode_pairs(text: &Bound<'_, PyString>) -> Vec<Result<char, u16>> {
    let bytes = encode(text, "utf-16-le");
    let units = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    char::decode_utf16(units)
        .map(|found| found.map_err(|error| error.unpaired_surrogate()))
        .collect()
}

fn write_json(text: &Bound<'_, PyString>, out: &mut String) {
    if let Ok(bytes) = text.encode_utf8()
        && let Ok(text) = std::str::from_utf8(bytes.as_bytes())
    {
        return write_json_string(text, out);
    }
    out.push('"');
    for found in decode_pairs(text) {
        match found {
            Ok(char) => write_json_chars(char.encode_utf8(&mut [0; 4]), out),
            Err(lone) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{lone:04x}");
            }
        }
    }
    out.push('"');
}

/// UTF-8 of every character; halves of surrogate pairs in three bytes each.
pub(crate) fn to_surrogate_bytes(text: &Bound<'_, PyString>) -> Vec<u8> {
    match text.encode_utf8() {
        Ok(bytes) => bytes.as_bytes().to_vec(),
        Err(_) => encode(text, "utf-8"),
    }
}

/// Encodes with `surrogatepass`, which no `str` fails.
fn encode(text: &Bound<'_, PyString>, encoding: &str) -> Vec<u8> {
    let py = text.py();
    // By the type's own method: a subclass may have replaced it.
    py.get_type::<PyString>()
        .call_method1(intern!(py, "encode"), (text, encoding, "surrogatepass"))
        .ok()
        .and_then(|bytes| Some(bytes.cast::<PyBytes>().ok()?.as_bytes().to_vec()))
        .unwrap_or_default()
}
