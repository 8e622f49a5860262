//! Aider's chat history: a Markdown file with one chat after the other.
//!
//! Lines that begin with `#### ` are the user's, lines that begin with `> ` are what the program
//! wrote to the terminal, all others are the model's. Read into the `openai` dialect: what the
//! program wrote is the result of a call of the tool `console` with a numbered id, so that it is
//! treated as the output it is; the file holds no calls of its own. The model is taken from what the
//! program says about it. The text of a quotation inside a reply cannot be told from the program's.

use super::json::Json;
use super::log::{Log, call};
use super::{Conversation, Format};

const HEAD: &str = "# aider chat started at ";

/// The tool whose results are what the program wrote.
const CONSOLE: &str = "console";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voice {
    User,
    Program,
    Model,
}

/// Whether a text is such a history.
pub(super) fn is_history(text: &[u8]) -> bool {
    let has = |what: &[u8]| memchr::memmem::find(text, what).is_some();
    let begins = text.starts_with(HEAD.as_bytes()) || text.starts_with(b"#### ");
    (begins || has(b"\n# aider chat started at ") || has(b"\n#### ")) && !text.contains(&0)
}

/// The chats of a history; those in which nothing was said are left out.
pub(super) fn read(text: &str) -> Vec<Conversation> {
    let mut found = Vec::new();
    let mut chat = Chat::new(1, None);
    for (at, line) in text.lines().enumerate() {
        if let Some(started) = line.strip_prefix(HEAD) {
            found.extend(chat.finish());
            chat = Chat::new(at + 1, Some(started.trim()));
        } else {
            chat.take(line);
        }
    }
    found.extend(chat.finish());
    found
}

struct Chat<'a> {
    line: usize,
    started: Option<&'a str>,
    log: Log,
    voice: Voice,
    block: Vec<&'a str>,
    model: Option<&'a str>,
}

impl<'a> Chat<'a> {
    fn new(line: usize, started: Option<&'a str>) -> Self {
        Self {
            line,
            started,
            log: Log::default(),
            voice: Voice::Model,
            block: Vec::new(),
            model: None,
        }
    }

    fn take(&mut self, line: &'a str) {
        let (voice, text) = if let Some(text) = line.strip_prefix("#### ") {
            (Voice::User, text)
        } else if let Some(text) = line.strip_prefix("> ") {
            (Voice::Program, text)
        } else {
            (Voice::Model, line)
        };
        if voice == Voice::Program {
            self.model = self.model.or_else(|| model(text));
        }
        let is_blank = text.trim().is_empty();
        if voice != self.voice && !is_blank {
            self.end_block();
            self.voice = voice;
        }
        if !(self.block.is_empty() && is_blank) {
            self.block.push(text);
        }
    }

    fn end_block(&mut self) {
        while self.block.last().is_some_and(|line| line.trim().is_empty()) {
            self.block.pop();
        }
        let lines = std::mem::take(&mut self.block);
        if lines.is_empty() {
            return;
        }
        let text = Json::from(lines.join("\n"));
        match self.voice {
            Voice::User => self.log.say("user", text),
            Voice::Model => self.log.answer(text, None, Vec::new()),
            Voice::Program => {
                let id = self.log.new_id();
                self.log.add_call(call(&id, CONSOLE, "{}".into()));
                // The call was made a line before.
                let _ = self.log.result(Some(&id), text);
            }
        }
    }

    fn finish(mut self) -> Option<Conversation> {
        self.end_block();
        if self.log.messages.is_empty() {
            return None;
        }
        let mut conversation = Conversation::new(Format::Aider, "openai", self.log.messages);
        conversation.line = self.line;
        conversation.name_model(self.model);
        conversation.note("started", self.started.map_or(Json::Null, Json::from));
        Some(conversation)
    }
}

/// The model in a line such as `Model: gpt-4o with diff edit format`.
fn model(line: &str) -> Option<&str> {
    let named = line
        .strip_prefix("Main model: ")
        .or_else(|| line.strip_prefix("Model: "))?;
    named.split_whitespace().next()
}
