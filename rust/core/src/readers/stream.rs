//! The reader of one file: pieces of bytes in, conversations and problems out.
//!
//! The first line that is not blank decides. If it is a JSON value and another line follows, the
//! file is JSON Lines; if nothing follows, or the value goes on over several lines, it is one JSON
//! document; if it is no JSON, it may be a Markdown history. Lines are looked at until one tells
//! what the file is.

use super::detect::{Kind, classify, is_message, is_row};
use super::json::{Json, JsonError, TOO_NESTED, parse};
use super::long_list::{LONG, LongList, Progress};
use super::{Conversation, Format, Item, Problem, aider, exchange, request, row};

/// Lines that may go by before one tells what the file is.
const MOST_UNTOLD: usize = 256;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One line of a JSON Lines file.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) line: usize,
    pub(super) value: Json,
}

/// Reads one file from its beginning.
#[derive(Debug)]
pub struct Reader {
    format: Option<Format>,
    /// Bytes that are not read yet.
    buffer: Vec<u8>,
    /// Bytes at the start of the buffer that hold no line feed.
    searched: usize,
    /// Number of the line at the start of the buffer, from 1.
    line: usize,
    state: State,
    items: Vec<Item>,
}

#[derive(Debug)]
enum State {
    /// No line yet that is not blank.
    Start,
    /// One value so far, which is the whole file or its first line.
    First(Record),
    /// One text over several lines: everything stays in the buffer.
    Document,
    /// A list that begins with a long line, read so far.
    Long(LongList),
    /// A record a line, what they are is not known yet.
    Untold(Vec<Record>),
    /// A record a line of a session.
    Session(Format, Vec<Record>),
    /// A message a line.
    Messages(Vec<Record>),
    /// A recorded exchange a line.
    Exchanges(Vec<Record>),
    /// A conversation a line.
    Rows,
    /// Not to be read any further.
    Failed,
}

impl Reader {
    /// A reader of a file in `format`; `None` detects it.
    pub fn new(format: Option<Format>) -> Self {
        Self {
            format,
            buffer: Vec::new(),
            searched: 0,
            line: 1,
            state: State::Start,
            items: Vec::new(),
        }
    }

    /// A reader of a stretch of a file with a conversation a line; `line` is the number of its first
    /// line, from 1.
    pub fn rows(format: Option<Format>, line: usize) -> Self {
        Self {
            line,
            state: State::Rows,
            ..Self::new(format)
        }
    }

    /// Takes the next bytes and gives what they complete, in the order of the file.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Item> {
        self.buffer.extend_from_slice(bytes);
        self.read_lines(false);
        std::mem::take(&mut self.items)
    }

    /// Takes whole lines, the last of which may have no line feed: as [`Reader::feed`], but nothing
    /// is copied. For readers made by [`Reader::rows`]; `take` gets what each line gives.
    pub fn feed_rows(&mut self, bytes: &[u8], mut take: impl FnMut(Item)) {
        let mut from = 0;
        while from < bytes.len() {
            let rest = bytes.get(from..).unwrap_or_default();
            let end = memchr::memchr(b'\n', rest).map_or(bytes.len(), |at| from + at + 1);
            self.read_line(bytes.get(from..end).unwrap_or_default());
            self.line += 1;
            from = end;
            for item in self.items.drain(..) {
                take(item);
            }
        }
    }

    /// Ends the file and gives what is left.
    pub fn finish(&mut self) -> Vec<Item> {
        self.read_lines(true);
        if !matches!(self.state, State::Document) {
            // A file of one line was as long as it: what comes now should not have it beside itself.
            self.buffer = Vec::new();
        }
        let state = std::mem::replace(&mut self.state, State::Failed);
        match state {
            State::Start => self.items.push(Err(Problem {
                line: None,
                message: "the file is empty".into(),
            })),
            State::First(record) => match classify(&record.value, self.format) {
                Some(Kind::Session(format)) => self.read_session(format, vec![record]),
                _ => self.read_value(record),
            },
            State::Document => self.read_document(),
            State::Untold(records) => self.give_up(&records),
            State::Session(format, records) => self.read_session(format, records),
            State::Messages(records) => self.read_messages(records),
            State::Exchanges(records) => {
                let found = exchange::cassette(records, self.format);
                self.push_all(found, 1);
            }
            State::Rows | State::Long(_) | State::Failed => {}
        }
        std::mem::take(&mut self.items)
    }

    // --- lines ----------------------------------------------------------------------------------

    fn read_lines(&mut self, is_end: bool) {
        if matches!(self.state, State::Long(_)) {
            self.read_long(is_end);
        }
        if matches!(self.state, State::Document | State::Long(_)) {
            return;
        }
        let buffer = std::mem::take(&mut self.buffer);
        let mut from = 0;
        let mut searched = std::mem::take(&mut self.searched);
        while from < buffer.len() {
            let rest = buffer.get(from + searched..).unwrap_or_default();
            let end = match memchr::memchr(b'\n', rest) {
                Some(at) => from + searched + at + 1,
                None if is_end => buffer.len(),
                None => break,
            };
            searched = 0;
            let line = buffer.get(from..end).unwrap_or_default();
            self.read_line(line);
            if matches!(self.state, State::Document) {
                break;
            }
            self.line += 1;
            from = end;
        }
        self.buffer = buffer;
        self.buffer.drain(..from);
        if matches!(self.state, State::Document) {
            return;
        }
        self.searched = self.buffer.len();
        let is_long = !is_end && self.buffer.len() >= LONG && self.format != Some(Format::Aider);
        if is_long && matches!(self.state, State::Start) && LongList::begins(&self.buffer) {
            self.searched = 0;
            self.state = State::Long(LongList::default());
            self.read_lines(is_end);
        }
    }

    /// Reads more of a long list; behind its end the file goes on as lines.
    fn read_long(&mut self, is_end: bool) {
        let State::Long(list) = &mut self.state else {
            return;
        };
        if is_end {
            // So that what is missing at the end is missing on the last line, not below it.
            let end = self.buffer.trim_ascii_end().len();
            self.buffer.truncate(end);
        } else if !list.wants(self.buffer.len()) {
            return;
        }
        let progress = list.read(&mut self.buffer, is_end);
        let (lines, chars) = list.place();
        let is_document = list.is_document();
        let line = self.line;
        let fault = match progress {
            Progress::Open(_) if !is_end => return,
            Progress::Open(fault) => fault,
            Progress::Closed(items, end) => {
                self.line += lines;
                self.buffer.drain(..end);
                let value = Json::List(items);
                self.state = State::First(Record { line, value });
                return;
            }
        };
        self.line += lines;
        let text = std::mem::take(&mut self.buffer);
        let (at, message) = match std::str::from_utf8(&text) {
            Ok(text) => not_json(text, fault, chars),
            Err(error) => not_utf8(&text, error),
        };
        if message == TOO_NESTED {
            return self.fail(TOO_NESTED);
        }
        self.state = State::Failed;
        let problem = Problem::new(self.line + at, message);
        if is_document {
            return self.items.push(Err(problem));
        }
        if let Err(problem) = self.read_after_the_first(&text, Some(problem)) {
            self.items.extend(problem.map(Err));
        }
    }

    /// Reads one line; a document leaves it where it is.
    fn read_line(&mut self, line: &[u8]) {
        let mut text = line;
        if self.line == 1 {
            text = text.strip_prefix(BOM).unwrap_or(text);
        }
        if is_blank(text) {
            return;
        }
        match std::mem::replace(&mut self.state, State::Failed) {
            State::Start => self.start(text),
            State::Failed => {}
            State::First(first) => {
                self.state = State::Untold(Vec::new());
                self.take_record(first);
                self.read_record(text);
            }
            state => {
                self.state = state;
                self.read_record(text);
            }
        }
    }

    fn start(&mut self, line: &[u8]) {
        if line.starts_with(b"\xff\xfe") || line.starts_with(b"\xfe\xff") {
            return self.fail("the text is UTF-16, expected UTF-8");
        }
        if self.format == Some(Format::Aider) {
            self.state = State::Document;
            return;
        }
        match std::str::from_utf8(line).map(parse) {
            Ok(Ok(value)) => {
                let record = Record {
                    line: self.line,
                    value,
                };
                self.state = State::First(record);
            }
            Ok(Err(error)) if error.expected == TOO_NESTED => self.fail(TOO_NESTED),
            // So it is one text over several lines, or broken.
            _ => self.state = State::Document,
        }
    }

    #[cold]
    fn fail(&mut self, what: &str) {
        self.items.push(Err(Problem::new(self.line, what)));
        self.state = State::Failed;
    }

    fn read_record(&mut self, line: &[u8]) {
        match parsed(line) {
            Ok(value) => {
                let record = Record {
                    line: self.line,
                    value,
                };
                self.take_record(record);
            }
            Err((at, message)) => {
                let line = self.line + at;
                self.items.push(Err(Problem::new(line, message)));
            }
        }
    }

    fn take_record(&mut self, record: Record) {
        match &mut self.state {
            State::Untold(records) => {
                let kind = classify(&record.value, self.format);
                records.push(record);
                let records = std::mem::take(records);
                match kind {
                    Some(kind) => self.settle(kind, records),
                    None if records.len() >= MOST_UNTOLD => self.give_up(&records),
                    None => self.state = State::Untold(records),
                }
            }
            State::Session(_, records) | State::Exchanges(records) => records.push(record),
            State::Messages(records) => {
                if let Some(what) = no_message(&record.value) {
                    self.items.push(Err(Problem::new(record.line, what)));
                } else {
                    records.push(record);
                }
            }
            State::Rows if is_message(&record.value) && !is_row(&record.value) => {
                let what = "expected a list of messages or an object with messages, as on the \
                            first line";
                self.items.push(Err(Problem::new(record.line, what)));
            }
            State::Rows => self.read_value(record),
            State::Start | State::First(_) | State::Document | State::Long(_) | State::Failed => {}
        }
    }

    fn settle(&mut self, kind: Kind, records: Vec<Record>) {
        self.state = match kind {
            Kind::Session(format) => State::Session(format, Vec::new()),
            Kind::Message => State::Messages(Vec::new()),
            Kind::Exchange => State::Exchanges(Vec::new()),
            Kind::Row => State::Rows,
        };
        for record in records {
            self.take_record(record);
        }
    }

    #[cold]
    fn give_up(&mut self, records: &[Record]) {
        let line = records.first().map_or(self.line, |record| record.line);
        let what = "expected a message with a role, or an object with messages";
        self.items.push(Err(Problem::new(line, what)));
        self.state = State::Failed;
    }

    fn read_session(&mut self, format: Format, records: Vec<Record>) {
        // A session in which nothing was said yet is no conversation.
        let found = row::session(format, records)
            .into_iter()
            .filter(|conversation| !conversation.messages.is_empty());
        self.push_all(found.map(Ok), 1);
    }

    fn read_messages(&mut self, records: Vec<Record>) {
        let line = records.first().map_or(1, |record| record.line);
        let values = records.into_iter().map(|record| record.value).collect();
        let found = request::from_messages(values, self.format);
        self.push_all([Ok(found)], line);
    }

    // --- values ---------------------------------------------------------------------------------

    fn read_value(&mut self, record: Record) {
        let found = row::read(record.value, self.format);
        self.push_all(found, record.line);
    }

    fn push_all(
        &mut self,
        found: impl IntoIterator<Item = Result<Conversation, String>>,
        line: usize,
    ) {
        for item in found {
            let item = item.and_then(|conversation| match conversation.bad_number() {
                Some(what) => Err(what),
                None => Ok(conversation),
            });
            self.items.push(match item {
                Ok(mut conversation) => {
                    conversation.line = conversation.line.max(line);
                    Ok(conversation)
                }
                Err(what) => Err(Problem::new(line, what)),
            });
        }
    }

    // --- documents ------------------------------------------------------------------------------

    fn read_document(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        let text = buffer.strip_prefix(BOM).unwrap_or(&buffer);
        if self.format != Some(Format::Aider) {
            let (at, message) = match parsed(text) {
                Ok(value) => {
                    drop(buffer);
                    let line = self.line;
                    return self.read_value(Record { line, value });
                }
                Err(problem) => problem,
            };
            if self.read_after_the_first(text, None).is_ok() {
                return;
            }
            if self.format.is_some() || !aider::is_history(text) {
                let line = self.line + at;
                self.items.push(Err(Problem::new(line, message)));
                return;
            }
        }
        match std::str::from_utf8(text) {
            Ok(text) => {
                let found = aider::read(text);
                self.push_all(found.into_iter().map(Ok), 1);
            }
            Err(error) => {
                let (at, message) = not_utf8(text, error);
                let line = self.line + at;
                self.items.push(Err(Problem::new(line, message)));
            }
        }
    }

    /// Reads the text as JSON Lines whose first line is broken, if that is what it is; `problem` says
    /// how, if that is known, and comes back if the text is something else.
    fn read_after_the_first(
        &mut self,
        text: &[u8],
        problem: Option<Problem>,
    ) -> Result<(), Option<Problem>> {
        let Some(end) = memchr::memchr(b'\n', text).map(|at| at + 1) else {
            return Err(problem);
        };
        let (first, rest) = text.split_at(end);
        let second = rest
            .split(|byte| *byte == b'\n')
            .find(|line| !is_blank(line));
        let holds_record = second
            .and_then(|line| parsed(line).ok())
            .is_some_and(|value| classify(&value, self.format).is_some());
        if !holds_record {
            return Err(problem);
        }
        self.state = State::Untold(Vec::new());
        match problem {
            Some(problem) => self.items.push(Err(problem)),
            None => self.read_record(first),
        }
        self.line += 1;
        rest.clone_into(&mut self.buffer);
        let before = std::mem::take(&mut self.items);
        let after = self.finish();
        self.items = before;
        self.items.extend(after);
        Ok(())
    }
}

/// The conversations of a value on this line.
pub(super) fn value(value: Json, format: Option<Format>, line: usize) -> Vec<Item> {
    let mut reader = Reader::rows(format, line);
    reader.read_value(Record { line, value });
    reader.items
}

/// Whether a file that begins like this has a conversation a line, so that each line can be read by
/// itself, with [`Reader::rows`]. `head` must hold two lines that are not blank, else the answer is
/// no; a broken line does not hide what those after it are.
pub fn has_rows(head: &[u8], format: Option<Format>) -> bool {
    if format == Some(Format::Aider) {
        return false;
    }
    let head = head.strip_prefix(BOM).unwrap_or(head);
    let Some(end) = memchr::memrchr(b'\n', head) else {
        return false;
    };
    let (lines, rest) = head.split_at(end + 1);
    let mut lines = lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !is_blank(line));
    let is_row = |line: &[u8]| {
        let value = parsed(line).ok();
        value.is_some_and(|value| classify(&value, format) == Some(Kind::Row))
    };
    let Some(first) = lines.next() else {
        return false;
    };
    if is_row(first) {
        // A file of one line is one document.
        return lines.next().is_some() || !is_blank(rest);
    }
    // A list may be written with an item a line, each but the last with a comma.
    parsed(first).is_err() && lines.next().is_some_and(is_row) && lines.next().is_some_and(is_row)
}

/// What is wrong with a line among messages.
fn no_message(value: &Json) -> Option<String> {
    if !is_message(value) || value.has("messages") {
        return Some("expected a message, as on the first line".into());
    }
    value.bad_number()
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

/// The value of a JSON text, or how many lines down it is broken and how.
fn parsed(text: &[u8]) -> Result<Json, (usize, String)> {
    // So that what is missing at the end is missing on the last line, not below it.
    let text = text.trim_ascii_end();
    match std::str::from_utf8(text) {
        Ok(text) => parse(text).map_err(|error| not_json(text, error, 0)),
        Err(error) => Err(not_utf8(text, error)),
    }
}

#[cold]
fn not_utf8(text: &[u8], error: std::str::Utf8Error) -> (usize, String) {
    let lines = lines_before(text, error.valid_up_to());
    if text.contains(&0) {
        return (lines, "binary data, expected JSON".into());
    }
    (lines, "the text is not UTF-8".into())
}

/// `chars` stand before the text on its first line.
#[cold]
fn not_json(text: &str, error: JsonError, chars: usize) -> (usize, String) {
    let bytes = text.as_bytes();
    let before = bytes.get(..error.at).unwrap_or(bytes);
    let lines = lines_before(bytes, error.at);
    if bytes.contains(&0) {
        return (lines, "binary data, expected JSON".into());
    }
    if error.expected == TOO_NESTED {
        return (lines, TOO_NESTED.into());
    }
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let column = text
        .get(start..error.at)
        .map_or(0, |line| line.chars().count())
        + if start == 0 { chars } else { 0 }
        + 1;
    let expected = error.expected;
    (
        lines,
        format!("not valid JSON: expected {expected} (column {column})"),
    )
}

fn lines_before(text: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', text.get(..at).unwrap_or(text)).count()
}
