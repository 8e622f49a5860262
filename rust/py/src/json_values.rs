//! JSON as Python values: the payloads of a log, many at a time.
//!
//! A log is many short objects with the same few keys and a long text each. So keys and short
//! strings are made once, and long ones are found by their closing quote and handed over as they
//! are. Whatever is unusual (a key that begins with `$`, half of a surrogate pair, deep nesting, an
//! integer of many digits, anything that is no JSON) is refused as a whole: the caller has slower
//! readers that know what to do with it. One pass, linear in the bytes.

use memchr::memchr2;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

/// Levels of nesting that are read; deeper values are refused.
const MAX_DEPTH: u32 = 64;

/// Bytes up to which a string is kept for the next time that it comes.
const SHORT: usize = 32;

/// Strings that are kept at a time.
const KNOWN: usize = 64;

/// Digits that surely fit into an `i64`.
const MAX_DIGITS: usize = 18;

/// The values of a run of JSON texts with commas between them; `None` if one is out of the ordinary.
#[pyfunction]
#[pyo3(signature = (joined, /))]
pub(crate) fn json_values<'py>(py: Python<'py>, joined: &[u8]) -> Option<Bound<'py, PyList>> {
    let mut reader = Reader {
        py,
        bytes: joined,
        at: 0,
        known: [const { None }; KNOWN],
        unescaped: Vec::new(),
    };
    let mut values = Vec::new();
    reader.skip_blanks();
    if reader.peek().is_none() {
        return Some(PyList::empty(py));
    }
    loop {
        values.push(reader.value(0)?);
        reader.skip_blanks();
        match reader.next() {
            Some(b',') => {}
            Some(_) => return None,
            None => return PyList::new(py, values).ok(),
        }
    }
}

type Known<'a, 'py> = Option<(&'a [u8], Bound<'py, PyString>)>;

struct Reader<'a, 'py> {
    py: Python<'py>,
    bytes: &'a [u8],
    at: usize,
    known: [Known<'a, 'py>; KNOWN],
    unescaped: Vec<u8>,
}

impl<'a, 'py> Reader<'a, 'py> {
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Goes behind `word`, if it comes next.
    fn take(&mut self, word: &[u8]) -> Option<()> {
        self.rest().starts_with(word).then(|| self.at += word.len())
    }

    fn value(&mut self, depth: u32) -> Option<Bound<'py, PyAny>> {
        self.skip_blanks();
        match self.peek()? {
            b'"' => {
                self.at += 1;
                self.string().map(Bound::into_any)
            }
            b'{' => self.object(depth),
            b'[' => self.list(depth),
            b't' => {
                self.take(b"true")?;
                Some(PyBool::new(self.py, true).to_owned().into_any())
            }
            b'f' => {
                self.take(b"false")?;
                Some(PyBool::new(self.py, false).to_owned().into_any())
            }
            b'n' => {
                self.take(b"null")?;
                Some(self.py.None().into_bound(self.py))
            }
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: u32) -> Option<Bound<'py, PyAny>> {
        if depth == MAX_DEPTH {
            return None;
        }
        self.at += 1;
        let found = PyDict::new(self.py);
        self.skip_blanks();
        if self.take(b"}").is_some() {
            return Some(found.into_any());
        }
        loop {
            self.skip_blanks();
            self.take(b"\"")?;
            if self.peek() == Some(b'$') {
                return None;
            }
            let key = self.string()?;
            self.skip_blanks();
            self.take(b":")?;
            let value = self.value(depth + 1)?;
            found.set_item(key, value).ok()?;
            self.skip_blanks();
            match self.next()? {
                b',' => {}
                b'}' => return Some(found.into_any()),
                _ => return None,
            }
        }
    }

    fn list(&mut self, depth: u32) -> Option<Bound<'py, PyAny>> {
        if depth == MAX_DEPTH {
            return None;
        }
        self.at += 1;
        let mut found = Vec::new();
        self.skip_blanks();
        if self.take(b"]").is_none() {
            loop {
                found.push(self.value(depth + 1)?);
                self.skip_blanks();
                match self.next()? {
                    b',' => {}
                    b']' => break,
                    _ => return None,
                }
            }
        }
        PyList::new(self.py, found).ok().map(Bound::into_any)
    }

    /// A string whose opening quote is behind.
    fn string(&mut self) -> Option<Bound<'py, PyString>> {
        let rest = self.rest();
        let end = memchr2(b'"', b'\\', rest)?;
        let plain = rest.get(..end)?;
        if rest.get(end) == Some(&b'\\') {
            return self.escaped();
        }
        self.at += end + 1;
        if has_control(plain) {
            return None;
        }
        if plain.len() > SHORT {
            return PyString::from_bytes(self.py, plain).ok();
        }
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

    /// As `string`, for one with escapes.
    fn escaped(&mut self) -> Option<Bound<'py, PyString>> {
        self.unescaped.clear();
        loop {
            let rest = self.rest();
            let end = memchr2(b'"', b'\\', rest)?;
            let plain = rest.get(..end)?;
            if has_control(plain) {
                return None;
            }
            self.unescaped.extend_from_slice(plain);
            self.at += end + 1;
            if rest.get(end) == Some(&b'"') {
                return PyString::from_bytes(self.py, &self.unescaped).ok();
            }
            let byte = match self.next()? {
                byte @ (b'"' | b'\\' | b'/') => byte,
                b'b' => 0x08,
                b'f' => 0x0C,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'u' => {
                    let found = self.code_point()?;
                    let mut utf8 = [0; 4];
                    let utf8 = found.encode_utf8(&mut utf8);
                    self.unescaped.extend_from_slice(utf8.as_bytes());
                    continue;
                }
                _ => return None,
            };
            self.unescaped.push(byte);
        }
    }

    /// The character of `\uXXXX`, or of two that are a surrogate pair.
    fn code_point(&mut self) -> Option<char> {
        let first = self.unit()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first);
        }
        self.take(b"\\u")?;
        let second = self.unit()?;
        if !(0xDC00..0xE000).contains(&second) {
            return None;
        }
        char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00))
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Option<u32> {
        let mut found = 0;
        for _ in 0..4 {
            found = (found << 4) | char::from(self.next()?).to_digit(16)?;
        }
        Some(found)
    }

    fn number(&mut self) -> Option<Bound<'py, PyAny>> {
        let rest = self.rest();
        let digits_of = |from: usize| {
            let behind = rest.get(from..).unwrap_or_default();
            let end = behind.iter().position(|byte| !byte.is_ascii_digit());
            end.unwrap_or(behind.len())
        };
        let start = usize::from(rest.first() == Some(&b'-'));
        let digits = digits_of(start);
        let begins_with_zero = rest.get(start) == Some(&b'0');
        if digits == 0 || (begins_with_zero && digits > 1) {
            return None;
        }
        let mut end = start + digits;
        let mut is_whole = true;
        if rest.get(end) == Some(&b'.') {
            let fraction = digits_of(end + 1);
            if fraction == 0 {
                return None;
            }
            end += 1 + fraction;
            is_whole = false;
        }
        if matches!(rest.get(end), Some(b'e' | b'E')) {
            end += 1 + usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits_of(end);
            if exponent == 0 {
                return None;
            }
            end += exponent;
            is_whole = false;
        }
        let text = str::from_utf8(rest.get(..end)?).ok()?;
        self.at += end;
        if is_whole {
            let number: i64 = (digits <= MAX_DIGITS).then(|| text.parse().ok())??;
            return Some(PyInt::new(self.py, number).into_any());
        }
        let number: f64 = text.parse().ok()?;
        number
            .is_finite()
            .then(|| PyFloat::new(self.py, number).into_any())
    }
}

/// Whether a string holds what must be escaped; many bytes at a time, without a branch for each.
fn has_control(text: &[u8]) -> bool {
    let (lanes, rest) = text.as_chunks::<64>();
    let found = lanes.iter().any(|lane| any_control(lane));
    found || any_control(rest)
}

#[inline]
fn any_control(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .map(|byte| u8::from(*byte < b' '))
        .fold(0, |found, byte| found | byte)
        != 0
}

fn slot(text: &[u8]) -> usize {
    let byte = |place: usize| text.get(place).map_or(0, |byte| usize::from(*byte));
    let last = text.len().saturating_sub(1);
    (text.len() + 7 * byte(0) + 31 * byte(last / 2) + 101 * byte(last)) % KNOWN
}
