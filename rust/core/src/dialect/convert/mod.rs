//! A history in the form of another dialect, complete or with a list of what was lost.
//!
//! Messages are read by the reader of their dialect into turns ([`turn`]), calls are put beside
//! their results by position ([`pair`]), and one writer per target writes them. What the target
//! has no form for becomes text or goes, and is listed either way. Reasoning, signatures and what
//! is encrypted never travel to another provider. Calls get ids that the target takes, unique and
//! a pure function of what came before; a damaged history comes out paired, with marked
//! placeholders. Costs time in proportion to the messages.

mod alternate;
mod anthropic;
mod base64;
mod bedrock;
mod gemini;
mod loss;
mod media;
mod names;
mod openai;
mod pair;
mod read;
mod responses;
mod schema;
mod tools;
mod turn;

use serde_json::{Value as Json, json};

use self::loss::Losses;
pub use self::loss::{Loss, LossKind};
use self::media::{Media, Written};
use self::names::Names;
use self::pair::Block;
use self::tools::Tool;
use self::turn::{Arguments, Piece, Turn};
use super::Dialect;
pub use super::flaws::arguments::RAW_ARGUMENTS;
use super::flaws::arguments::{is_fit, raw};
use crate::error::Result;
use crate::node::Node;

/// A history in another dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// The messages; bytes (Bedrock) are strings of base64.
    pub messages: Vec<Json>,
    /// The system argument in the target's form, where it wants one: a string or a list of text
    /// blocks, in Gemini an object with `parts`.
    pub system: Option<Json>,
    /// The tool definitions, a list; `None` if there are none.
    pub tools: Option<Json>,
    /// What could not be carried over, by message; what belongs to none comes first.
    pub losses: Vec<Loss>,
}

/// A history between two dialects: read, and ready to be written.
#[derive(Debug)]
pub struct Conversation {
    source: Dialect,
    system: Option<Turn>,
    turns: Vec<Turn>,
    tools: Vec<Tool>,
    losses: Losses,
}

/// Converts a request: its messages, its `system` argument, its tools.
///
/// With `source == target` the result is the input.
///
/// # Errors
/// As [`Conversation::read`].
///
/// # Example
/// ```
/// # use satchel_core::dialect::{Dialect, convert::convert};
/// let messages = [
///     serde_json::json!({"role": "system", "content": "Be brief."}),
///     serde_json::json!({"role": "user", "content": "hi"}),
/// ];
/// let nodes: Vec<_> = messages.iter().collect();
/// let found = convert(Dialect::OpenAi, Dialect::Anthropic, &nodes, None, None).unwrap();
/// assert_eq!(found.system.unwrap(), "Be brief.");
/// assert_eq!(found.messages, [serde_json::json!({"role": "user", "content": "hi"})]);
/// assert!(found.losses.is_empty());
/// ```
pub fn convert<N: Node>(
    source: Dialect,
    target: Dialect,
    messages: &[N],
    system: Option<&N>,
    tools: Option<&N>,
) -> Result<Converted> {
    if source != target {
        return Ok(Conversation::read(source, messages, system, tools)?.write(target));
    }
    let mut losses = Losses::default();
    let mut same = |node: &N, index| {
        let value = node.capture()?;
        Ok(read::json_of(&value, index, &mut losses))
    };
    let messages = messages.iter().enumerate();
    let messages = messages.map(|(index, message)| same(message, Some(index)));
    let messages = messages.collect::<Result<_>>()?;
    let system = system.map(|system| same(system, None)).transpose()?;
    let tools = tools.map(|tools| same(tools, None)).transpose()?;
    Ok(Converted {
        messages,
        system: system.filter(|system| !system.is_null()),
        tools: tools.filter(|tools| !tools.is_null()),
        losses: losses.0,
    })
}

impl Conversation {
    /// Reads a request of the dialect `source`.
    ///
    /// # Errors
    /// `invalid_message`, `too_deep`, `dialect_changed` as
    /// [`read_message`](super::read_message), with the index of the message; the system argument
    /// and the tools without one.
    pub fn read<N: Node>(
        source: Dialect,
        messages: &[N],
        system: Option<&N>,
        tools: Option<&N>,
    ) -> Result<Self> {
        let mut losses = Losses::default();
        let system = system.filter(|system| !system.is_null());
        let system = system.map(|system| read::read_argument(source, system, &mut losses));
        let tools = tools.filter(|tools| !tools.is_null());
        let tools = match tools {
            Some(tools) => {
                let captured = tools
                    .capture()
                    .map_err(|error| error.of_argument("tools"))?;
                let tools = read::json_of(&captured, None, &mut losses);
                tools::read(&tools, &mut losses)?
            }
            None => Vec::new(),
        };
        let turns = messages
            .iter()
            .enumerate()
            .map(|(index, message)| read::read_turn(source, message, index, &mut losses))
            .collect::<Result<_>>()?;
        Ok(Self {
            source,
            system: system.transpose()?,
            turns,
            tools,
            losses,
        })
    }

    /// Writes it in the dialect `target`; also in the one it was read from, then normalised.
    pub fn write(self, target: Dialect) -> Converted {
        let mut losses = self.losses;
        let merges = self.source != Dialect::OpenAi;
        let mut blocks = pair::blocks(self.turns, merges, &mut losses);
        let mut names = Names::default();
        let tools = tools::write(self.tools, target, &mut names, &mut losses);
        names::assign(&mut blocks, target, &mut names, &mut losses);
        let mut sink = Sink {
            target,
            messages: Vec::with_capacity(blocks.len()),
            losses,
        };
        let system = match target {
            Dialect::OpenAi => {
                openai::write(self.system, blocks, &mut sink);
                None
            }
            Dialect::Responses => responses::write(self.system, blocks, &mut sink),
            Dialect::Anthropic => anthropic::write(self.system, blocks, &mut sink),
            Dialect::Gemini => gemini::write(self.system, blocks, &mut sink),
            Dialect::Bedrock => bedrock::write(self.system, blocks, &mut sink),
        };
        let mut losses = sink.losses.0;
        losses.sort_by_key(|loss| loss.index);
        Converted {
            messages: sink.messages,
            system,
            tools,
            losses,
        }
    }
}

/// Where a writer puts messages and losses.
struct Sink {
    target: Dialect,
    messages: Vec<Json>,
    losses: Losses,
}

impl Sink {
    /// A piece as text, where nothing else can stand.
    fn text(&mut self, piece: Piece, index: Option<usize>) -> Option<String> {
        match piece {
            Piece::Text(text) => Some(text),
            Piece::Refusal(text) => {
                self.losses.add(index, LossKind::Refusal, "became text");
                Some(text)
            }
            Piece::Media(media) => {
                let detail = "left out: only a user's message holds one";
                self.losses.add(index, media.medium.loss(), detail);
                Some(media.note())
            }
            Piece::Call(_) | Piece::Outcome(_) => None,
        }
    }

    /// A medium in the target's form; `is_result` inside a result.
    fn medium(&mut self, media: &Media, is_result: bool, index: Option<usize>) -> Written {
        let written = media.write(self.target, is_result);
        let detail = match written {
            Written::Block(_) => return written,
            Written::Text(_) => "became text",
            Written::Nothing => "left out: the target takes none of this kind or source",
        };
        self.losses.add(index, media.medium.loss(), detail);
        written
    }

    /// Arguments as the object that most dialects want.
    fn object(&mut self, arguments: Arguments, index: Option<usize>) -> Json {
        let text = match arguments {
            Arguments::Json(json) if is_fit(&json) => return json,
            Arguments::Json(json) => json.to_string(),
            Arguments::Text(text) if text.trim().is_empty() => return json!({}),
            Arguments::Text(text) => match serde_json::from_str::<Json>(&text) {
                Ok(json) if is_fit(&json) => return json,
                _ => text,
            },
            Arguments::Free(text) => {
                let detail = "a custom tool became one with the parameter input";
                self.losses.add(index, LossKind::CallKind, detail);
                return json!({"input": text});
            }
        };
        let detail = format!("no JSON object: kept as {RAW_ARGUMENTS}");
        self.losses.add(index, LossKind::Arguments, detail);
        raw(&text)
    }

    /// Arguments as a string of JSON.
    fn string(arguments: Arguments) -> String {
        match arguments {
            Arguments::Text(text) => text,
            Arguments::Json(json) => match unwrapped(&json) {
                Some(raw) => raw.to_owned(),
                None => json.to_string(),
            },
            Arguments::Free(text) => json!({"input": text}).to_string(),
        }
    }

    fn lose_blank(&mut self, index: Option<usize>) {
        let detail = "white space that the target refuses went";
        self.losses.add(index, LossKind::Blank, detail);
    }

    fn lose_name(&mut self, block: &mut Block) {
        if block.name.take().is_some_and(|name| !name.is_empty()) {
            self.losses.add(block.index, LossKind::Name, "name");
        }
    }

    /// The content of a result without blank texts.
    fn without_blanks(&mut self, content: Vec<Piece>, index: Option<usize>) -> Vec<Piece> {
        let mut kept = Vec::with_capacity(content.len());
        for piece in content {
            match &piece {
                Piece::Text(text) if text.is_empty() => {}
                Piece::Text(text) if text.trim().is_empty() => self.lose_blank(index),
                _ => kept.push(piece),
            }
        }
        kept
    }
}

/// The raw arguments that [`Sink::object`] wrapped, and nothing that it would not have wrapped.
fn unwrapped(json: &Json) -> Option<&str> {
    let object = json.as_object().filter(|object| object.len() == 1)?;
    let raw = object.get(RAW_ARGUMENTS)?.as_str()?;
    let is_object = serde_json::from_str::<Json>(raw).is_ok_and(|json| json.is_object());
    (!is_object).then_some(raw)
}
