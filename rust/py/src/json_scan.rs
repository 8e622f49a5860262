//! A scanner of stored JSON: one pass over the bytes, which hands what it finds to a [`Maker`].
//!
//! A log is many short objects with the same few keys and a long text each. Strings are found by
//! their closing quote and handed over as they are. Whatever is unusual (a key that begins with
//! `$`, half of a surrogate pair, deep nesting, an integer of many digits, anything that is no
//! JSON) is refused as a whole: callers have slower readers that know what to do with it. Linear in
//! the bytes.

use memchr::memchr2;

/// Levels of nesting that are read; deeper values are refused.
const MAX_DEPTH: u32 = 64;

/// Digits that surely fit into an `i64`.
const MAX_DIGITS: usize = 18;

/// Words of eight bytes that are looked at one by one before a search of longer runs begins.
const NEAR: usize = 6;

/// A string between its quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'a, 's> {
    /// Without escapes: its bytes stand at this place.
    Plain(usize, &'a [u8]),
    /// With its escapes replaced.
    Unescaped(&'s [u8]),
}

/// Makes values of what is scanned; `None` refuses one, and with it the whole.
pub(crate) trait Maker<'a> {
    /// A value.
    type Value;
    /// An object that is being read.
    type Map;
    /// The key of an entry.
    type Key;

    fn null(&mut self) -> Self::Value;
    fn bool(&mut self, value: bool) -> Self::Value;
    fn int(&mut self, value: i64) -> Option<Self::Value>;
    /// A finite number with a fraction or an exponent, which stands at `at` as `text`.
    fn float(&mut self, value: f64, at: usize, text: &'a str) -> Option<Self::Value>;
    fn text(&mut self, found: Found<'a, '_>) -> Option<Self::Value>;
    fn list(&mut self, items: Vec<Self::Value>) -> Option<Self::Value>;
    fn map(&mut self) -> Self::Map;
    fn key(&mut self, found: Found<'a, '_>) -> Option<Self::Key>;
    fn entry(&mut self, map: &mut Self::Map, key: Self::Key, value: Self::Value) -> Option<()>;
    fn finish(&mut self, map: Self::Map) -> Option<Self::Value>;
}

/// Where a scan stands.
#[derive(Debug)]
pub(crate) struct Scanner<'a, M> {
    pub(crate) make: M,
    bytes: &'a [u8],
    at: usize,
    unescaped: Vec<u8>,
}

impl<'a, M: Maker<'a>> Scanner<'a, M> {
    /// A scan of `bytes`.
    pub(crate) fn new(bytes: &'a [u8], make: M) -> Self {
        Self {
            make,
            bytes,
            at: 0,
            unescaped: Vec::new(),
        }
    }

    /// The values of a run of JSON texts with commas between them; `None` if one is refused.
    pub(crate) fn values(&mut self) -> Option<Vec<M::Value>> {
        let mut values = Vec::new();
        self.skip_blanks();
        if self.peek().is_none() {
            return Some(values);
        }
        loop {
            values.push(self.value(0)?);
            self.skip_blanks();
            match self.next() {
                Some(b',') => {}
                Some(_) => return None,
                None => return Some(values),
            }
        }
    }

    /// The one value between `start` and `end`; `None` if it is refused, or if there are more.
    pub(crate) fn one(&mut self, start: usize, end: usize) -> Option<M::Value> {
        let all = self.bytes;
        self.bytes = all.get(..end)?;
        self.at = start;
        let value = self.value(0);
        self.skip_blanks();
        let is_all = self.at == end;
        self.bytes = all;
        value.filter(|_| is_all)
    }

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

    fn value(&mut self, depth: u32) -> Option<M::Value> {
        self.skip_blanks();
        match self.peek()? {
            b'"' => {
                self.at += 1;
                self.string(M::text)
            }
            b'{' => self.object(depth),
            b'[' => self.list(depth),
            b't' => {
                self.take(b"true")?;
                Some(self.make.bool(true))
            }
            b'f' => {
                self.take(b"false")?;
                Some(self.make.bool(false))
            }
            b'n' => {
                self.take(b"null")?;
                Some(self.make.null())
            }
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: u32) -> Option<M::Value> {
        if depth == MAX_DEPTH {
            return None;
        }
        self.at += 1;
        let mut map = self.make.map();
        self.skip_blanks();
        if self.take(b"}").is_some() {
            return self.make.finish(map);
        }
        loop {
            self.skip_blanks();
            self.take(b"\"")?;
            if self.peek() == Some(b'$') {
                return None;
            }
            let key = self.string(M::key)?;
            self.skip_blanks();
            self.take(b":")?;
            let value = self.value(depth + 1)?;
            self.make.entry(&mut map, key, value)?;
            self.skip_blanks();
            match self.next()? {
                b',' => {}
                b'}' => return self.make.finish(map),
                _ => return None,
            }
        }
    }

    fn list(&mut self, depth: u32) -> Option<M::Value> {
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
        self.make.list(found)
    }

    /// A string whose opening quote is behind.
    fn string<T>(&mut self, make: impl FnOnce(&mut M, Found<'a, '_>) -> Option<T>) -> Option<T> {
        let from = self.at;
        let plain = self.plain()?;
        self.at += plain.len() + 1;
        if self.bytes.get(self.at - 1) == Some(&b'"') {
            return make(&mut self.make, Found::Plain(from, plain));
        }
        self.unescape(plain)?;
        make(&mut self.make, Found::Unescaped(&self.unescaped))
    }

    /// The bytes up to the next quote or backslash; `None` if there is none, or if what must be
    /// escaped stands before it.
    fn plain(&self) -> Option<&'a [u8]> {
        let rest = self.rest();
        let mut near = 0;
        // Keys end soon, and code and JSON inside a string have an escape every few bytes.
        for word in rest.as_chunks().0.iter().take(NEAR) {
            let plain = plain_bytes(*word);
            near += plain;
            if plain < word.len() {
                return match rest.get(near) {
                    Some(b'"' | b'\\') => rest.get(..near),
                    _ => None,
                };
            }
        }
        let far = rest.get(near..)?;
        let end = memchr2(b'"', b'\\', far)?;
        if has_control(far.get(..end)?) {
            return None;
        }
        rest.get(..near + end)
    }

    /// Goes behind a string whose first backslash is behind, `before` being what stands before it,
    /// and leaves what it says in `unescaped`.
    fn unescape(&mut self, before: &[u8]) -> Option<()> {
        self.unescaped.clear();
        self.unescaped.extend_from_slice(before);
        loop {
            self.escape()?;
            let plain = self.plain()?;
            self.unescaped.extend_from_slice(plain);
            self.at += plain.len() + 1;
            if self.bytes.get(self.at - 1) == Some(&b'"') {
                return Some(());
            }
        }
    }

    /// What an escape stands for, whose backslash is behind.
    fn escape(&mut self) -> Option<()> {
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
                return Some(());
            }
            _ => return None,
        };
        self.unescaped.push(byte);
        Some(())
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

    fn number(&mut self) -> Option<M::Value> {
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
        let from = self.at;
        self.at += end;
        if is_whole {
            let number = (digits <= MAX_DIGITS).then(|| text.parse().ok())??;
            return self.make.int(number);
        }
        let number: f64 = text.parse().ok()?;
        if !number.is_finite() {
            return None;
        }
        self.make.float(number, from, text)
    }
}

/// How many bytes of a word stand before the first quote, backslash or control character.
fn plain_bytes(word: [u8; 8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    // The sign bit of each byte that is below `least`: bytes above the first of them may be wrong,
    // which nobody asks for.
    let below =
        |word: u64, least: u8| word.wrapping_sub(ONES * u64::from(least)) & !word & (ONES * 0x80);
    let word = u64::from_le_bytes(word);
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let special = equal(b'"') | equal(b'\\') | below(word, 0x20);
    special.trailing_zeros() as usize / 8
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
