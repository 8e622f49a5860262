//! What a stretch of a file becomes: records, reports, pages and rejects as JSON a line, or columns.

use std::sync::Arc;

use super::report::Report;
use super::{Options, Page, Rewritten, Window, rewrite};
use crate::dialect::Dialect;
use crate::error::ErrorKind;
use crate::readers::json::Json;
use crate::readers::{Conversation, Item, Problem};

/// The form of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A JSON object a line, which every command reads again.
    Lines,
    /// Columns of JSON texts.
    Columns,
}

/// Texts one after the other, with where each begins and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The texts.
    pub text: String,
    /// Where each begins, in bytes, and the end of the last: one more than there are texts.
    pub offsets: Vec<i64>,
}

impl Default for Column {
    fn default() -> Self {
        Self {
            text: String::new(),
            offsets: vec![0],
        }
    }
}

impl Column {
    fn end(&mut self) {
        self.offsets.push(signed(self.text.len()));
    }
}

/// How much was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Conversations that were written anew.
    pub conversations: u64,
    /// Their windows.
    pub windows: u64,
    /// Conversations and lines that were rejected.
    pub rejected: u64,
    /// Messages of the conversations as they were read.
    pub messages: u64,
    /// Tokens of the requests with the whole histories.
    pub tokens_before: u64,
    /// Tokens of the requests with the windows.
    pub tokens_after: u64,
    /// Findings in the conversations that a provider would reject.
    pub violations: u64,
    /// Such findings that are left in the windows.
    pub violations_left: u64,
    /// Conversations that were repaired.
    pub repaired: u64,
    /// Things that conversions could not carry over.
    pub losses: u64,
}

/// Why something has no window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The line on which it begins, from 1; `None` where the whole file is meant.
    pub line: Option<usize>,
    /// Which conversation of that line it is, from 0; `None` for what could not be read.
    pub conversation: Option<usize>,
    /// The code of the error.
    pub code: &'static str,
    /// Its sentence, which holds no content.
    pub message: String,
}

/// What came out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// Windows as lines of JSON; empty in columns.
    pub records: String,
    /// Lists of messages, in columns.
    pub messages: Column,
    /// System prompts, in columns; an empty text where there is none.
    pub system: Column,
    /// Tool definitions, in columns; an empty text where there are none.
    pub tools: Column,
    /// A report for each window: a line each, which in columns ends without a line feed.
    pub reports: Column,
    /// The line of the conversation of each window.
    pub lines: Vec<i64>,
    /// A line for each page.
    pub pages: String,
    /// A line for each reject.
    pub rejects: String,
    /// The first reject.
    pub first: Option<Rejected>,
    /// How much was done.
    pub counts: Counts,
}

/// Writes conversations of one file anew as they are read.
#[derive(Debug)]
pub struct Lines {
    options: Arc<Options>,
    source: Box<str>,
    form: Form,
    /// The line of the last conversation, and which of that line it was.
    last: Option<(usize, usize)>,
    output: Output,
}

impl Lines {
    /// Nothing yet, of the file `source`.
    pub fn new(options: Arc<Options>, source: &str, form: Form) -> Self {
        Self {
            options,
            source: source.into(),
            form,
            last: None,
            output: Output::default(),
        }
    }

    /// Takes what a reader found.
    pub fn take(&mut self, items: impl IntoIterator<Item = Item>) {
        for item in items {
            match item {
                Ok(conversation) => self.conversation(conversation),
                Err(problem) => self.problem(problem),
            }
        }
    }

    /// All that came out.
    pub fn finish(self) -> Output {
        self.output
    }

    fn problem(&mut self, problem: Problem) {
        self.reject(Rejected {
            line: problem.line,
            conversation: None,
            code: ErrorKind::InvalidFile.code(),
            message: problem.message,
        });
    }

    fn conversation(&mut self, conversation: Conversation) {
        let line = conversation.line;
        let number = match self.last {
            Some((last, number)) if last == line => number + 1,
            _ => 0,
        };
        self.last = Some((line, number));
        let format = conversation.format.name();
        match rewrite(conversation, &self.options) {
            Ok(found) => self.write(&found, format, line, number),
            Err(error) => self.reject(Rejected {
                line: Some(line),
                conversation: Some(number),
                code: error.code(),
                message: error.to_string(),
            }),
        }
    }

    fn reject(&mut self, rejected: Rejected) {
        let number = |number: Option<usize>| number.map_or(Json::Null, Json::from);
        let row = Json::map([
            ("source", self.source.as_ref().into()),
            ("line", number(rejected.line)),
            ("conversation", number(rejected.conversation)),
            ("code", rejected.code.into()),
            ("message", rejected.message.as_str().into()),
        ]);
        row.write_json(&mut self.output.rejects);
        self.output.rejects.push('\n');
        self.output.counts.rejected += 1;
        self.output.first.get_or_insert(rejected);
    }

    fn write(&mut self, found: &Rewritten, format: &'static str, line: usize, number: usize) {
        let counts = &mut self.output.counts;
        counts.conversations += 1;
        counts.windows += found.windows.len() as u64;
        if let Some(window) = found.windows.first() {
            let report = &window.report;
            counts.messages += report.source_messages as u64;
            counts.violations += u64::from(report.violations);
            counts.losses += report
                .losses
                .iter()
                .map(|(_, count)| u64::from(*count))
                .sum::<u64>();
        }
        let is_repaired = found.windows.iter().any(|window| window.report.repaired);
        counts.repaired += u64::from(is_repaired);
        let place = [
            ("source", Json::from(self.source.as_ref())),
            ("line", line.into()),
            ("conversation", number.into()),
        ];
        for window in &found.windows {
            let counts = &mut self.output.counts;
            counts.tokens_before += window.report.tokens_before;
            counts.tokens_after += window.report.tokens_after;
            counts.violations_left += u64::from(window.report.violations_left);
            self.output.lines.push(signed(line));
            match self.form {
                Form::Lines => self.line(found, window, &place),
                Form::Columns => self.columns(found, window),
            }
            self.report(&window.report, format, &place);
        }
        for page in &found.pages {
            self.page(page, &place);
        }
    }

    fn line(&mut self, found: &Rewritten, window: &Window, place: &[(&'static str, Json)]) {
        let out = &mut self.output.records;
        let mut field = |key: &str, value: &dyn Fn(&mut String)| {
            out.push_str(key);
            value(out);
        };
        field("{\"dialect\":", &|out| name(found.dialect, out));
        let model = Json::from(self.options.model.as_str());
        field(",\"model\":", &|out| model.write_json(out));
        if let Some(system) = &found.system {
            field(",\"system\":", &|out| system.write_json(out));
        }
        if let Some(tools) = &found.tools {
            field(",\"tools\":", &|out| tools.write_json(out));
        }
        field(",\"messages\":", &|out| write_list(&window.messages, out));
        let at = ("at", Json::from(window.report.at));
        let metadata = object(place.iter().cloned().chain([at]));
        field(",\"metadata\":", &|out| metadata.write_json(out));
        out.push_str("}\n");
    }

    fn columns(&mut self, found: &Rewritten, window: &Window) {
        let output = &mut self.output;
        write_list(&window.messages, &mut output.messages.text);
        output.messages.end();
        for (column, value) in [
            (&mut output.system, &found.system),
            (&mut output.tools, &found.tools),
        ] {
            if let Some(value) = value {
                value.write_json(&mut column.text);
            }
            column.end();
        }
    }

    fn report(&mut self, report: &Report, format: &'static str, place: &[(&'static str, Json)]) {
        let format = ("format", Json::from(format));
        let fields = place.iter().cloned().chain([format]);
        let row = object(fields.chain(report.fields()));
        let reports = &mut self.output.reports;
        row.write_json(&mut reports.text);
        if self.form == Form::Lines {
            reports.text.push('\n');
        }
        reports.end();
    }

    fn page(&mut self, page: &Page, place: &[(&'static str, Json)]) {
        let row = object(place.iter().cloned().chain(page.fields()));
        row.write_json(&mut self.output.pages);
        self.output.pages.push('\n');
    }
}

fn object(fields: impl Iterator<Item = (&'static str, Json)>) -> Json {
    Json::Map(fields.map(|(key, value)| (key.into(), value)).collect())
}

/// A length or number as Arrow has it; no text in memory is longer.
fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn name(dialect: Dialect, out: &mut String) {
    Json::from(dialect.name()).write_json(out);
}

fn write_list(items: &[Json], out: &mut String) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        item.write_json(out);
    }
    out.push(']');
}
