//! Streamed responses: the events of a recorded stream, put together to the response that the
//! provider would have sent in one piece.

use super::json::{Json, JsonText, parse};

/// The response that a recorded stream of server-sent events makes; null if it makes none.
///
/// A stream that breaks off gives what it said so far.
pub(super) fn assemble(text: &str) -> Json {
    let mut stream = Stream::default();
    for line in text.lines() {
        let Some(data) = line.strip_prefix("data:") else {
            continue;
        };
        if let Ok(event) = parse(data.trim()) {
            stream.take(event);
        }
    }
    stream.finish()
}

#[derive(Debug, Default)]
struct Stream {
    /// A whole response, where the stream ends with one.
    whole: Option<Json>,
    /// Items or blocks so far.
    blocks: Vec<Json>,
    /// Pieces of a text, each for the block of this number and its field.
    pieces: Vec<(usize, &'static str, JsonText)>,
    /// Fields of the response beside its content.
    head: Vec<(&'static str, Json)>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Nothing,
    Chat,
    Responses,
    Anthropic,
    Gemini,
}

impl Stream {
    fn take(&mut self, mut event: Json) {
        if event.has_list("choices") {
            return self.chat(event);
        }
        if event.has_list("candidates") {
            return self.gemini(event);
        }
        let Some(kind) = event.str_at("type").map(str::to_owned) else {
            return;
        };
        if kind.starts_with("response.") {
            self.kind = Kind::Responses;
            match kind.as_str() {
                "response.completed" | "response.incomplete" => {
                    self.whole = event.take_some("response");
                }
                "response.created" => {
                    let id = event.at(&["response", "id"]).cloned();
                    self.set("id", id);
                    let model = event.at(&["response", "model"]).cloned();
                    self.set("model", model);
                }
                "response.output_item.done" => self.blocks.extend(event.take_some("item")),
                _ => {}
            }
        } else {
            self.anthropic(&kind, event);
        }
    }

    fn set(&mut self, key: &'static str, value: Option<Json>) {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.head.retain(|(name, _)| *name != key);
            self.head.push((key, value));
        }
    }

    fn anthropic(&mut self, kind: &str, mut event: Json) {
        let index = event.u64_at("index").unwrap_or(0) as usize;
        match kind {
            "message_start" => {
                self.kind = Kind::Anthropic;
                let mut message = event.take_some("message").unwrap_or_default();
                for key in ["id", "type", "role", "model", "usage"] {
                    let value = message.take(key);
                    self.set(key, value);
                }
            }
            "content_block_start" => self.blocks.extend(event.take_some("content_block")),
            "content_block_delta" => {
                let mut delta = event.take_some("delta").unwrap_or_default();
                for (from, to) in [
                    ("text", "text"),
                    ("partial_json", "input"),
                    ("thinking", "thinking"),
                    ("signature", "signature"),
                ] {
                    if let Some(Json::Text(piece)) = delta.take(from) {
                        self.pieces.push((index, to, piece));
                    }
                }
                if let (Some(citation), Some(block)) =
                    (delta.take_some("citation"), self.blocks.get_mut(index))
                {
                    append(block, "citations", citation);
                }
            }
            "message_delta" => {
                // Later figures replace the earlier ones, field by field.
                let old = self.head.iter().position(|(key, _)| *key == "usage");
                let mut usage = old.map_or(Json::Null, |at| self.head.remove(at).1);
                match event.take_some("usage") {
                    Some(Json::Map(new)) if usage.is_map() => {
                        for (key, value) in new {
                            usage.set(&key, value);
                        }
                    }
                    Some(new) => usage = new,
                    None => {}
                }
                self.set("usage", Some(usage));
            }
            _ => {}
        }
    }

    fn chat(&mut self, mut event: Json) {
        self.kind = Kind::Chat;
        for key in ["id", "model", "usage"] {
            let value = event.take(key);
            self.set(key, value);
        }
        let choices = event.take("choices").unwrap_or_default().into_items();
        let Some(mut choice) = choices
            .into_iter()
            .find(|choice| choice.u64_at("index").unwrap_or(0) == 0)
        else {
            return;
        };
        let mut delta = choice.take_some("delta").unwrap_or_default();
        for key in ["content", "reasoning_content", "reasoning", "refusal"] {
            if let Some(Json::Text(piece)) = delta.take(key) {
                self.pieces.push((0, key, piece));
            }
        }
        let calls = delta.take("tool_calls").unwrap_or_default().into_items();
        for mut call in calls {
            let index = call
                .u64_at("index")
                .map_or(self.blocks.len(), |index| index as usize);
            call.remove("index");
            let mut function = call.take_some("function").unwrap_or_default();
            if let Some(Json::Text(piece)) = function.take("arguments") {
                self.pieces.push((index + 1, "arguments", piece));
            }
            if index >= self.blocks.len() {
                call.set("function", function);
                self.blocks.push(call);
            }
        }
    }

    fn gemini(&mut self, mut event: Json) {
        self.kind = Kind::Gemini;
        for key in ["usageMetadata", "modelVersion", "responseId"] {
            let value = event.take(key);
            self.set(key, value);
        }
        let candidates = event.take("candidates").unwrap_or_default().into_items();
        let content = candidates
            .into_iter()
            .next()
            .and_then(|mut first| first.take("content"));
        let parts = content.and_then(|mut content| content.take("parts"));
        // Parts stay apart: a signed part must never be merged with another.
        self.blocks.extend(parts.unwrap_or_default().into_items());
    }

    /// The pieces of one text, joined.
    fn joined(&self, block: usize, field: &str) -> Option<JsonText> {
        let mut pieces = self
            .pieces
            .iter()
            .filter(|(at, name, _)| *at == block && *name == field)
            .map(|(_, _, piece)| piece)
            .peekable();
        pieces.peek().is_some().then(|| JsonText::concat(pieces))
    }

    fn finish(mut self) -> Json {
        if self.kind == Kind::Nothing {
            return Json::Null;
        }
        if let Some(whole) = self.whole.take() {
            return whole;
        }
        let blocks = std::mem::take(&mut self.blocks);
        let (key, content) = match self.kind {
            Kind::Chat => ("choices", self.chat_choices(blocks)),
            Kind::Gemini => ("candidates", candidates(blocks)),
            Kind::Anthropic => ("content", self.anthropic_content(blocks)),
            Kind::Responses | Kind::Nothing => ("output", Json::List(blocks)),
        };
        let mut response = Json::Map(Vec::new());
        for (key, value) in self.head {
            response.set(key, value);
        }
        response.set(key, content);
        response
    }

    fn chat_choices(&self, calls: Vec<Json>) -> Json {
        let mut message = Json::map([("role", "assistant".into()), ("content", Json::Null)]);
        for key in ["content", "reasoning_content", "reasoning", "refusal"] {
            if let Some(text) = self.joined(0, key) {
                message.set(key, Json::Text(text));
            }
        }
        let calls: Vec<Json> = calls
            .into_iter()
            .enumerate()
            .map(|(index, mut call)| {
                let mut function = call.take("function").unwrap_or_default();
                let arguments = self.joined(index + 1, "arguments");
                function.set(
                    "arguments",
                    Json::Text(arguments.unwrap_or_else(|| "".into())),
                );
                call.set("function", function);
                call
            })
            .collect();
        if !calls.is_empty() {
            message.set("tool_calls", Json::List(calls));
        }
        Json::List(vec![Json::map([("message", message)])])
    }

    fn anthropic_content(&self, mut blocks: Vec<Json>) -> Json {
        for (index, block) in blocks.iter_mut().enumerate() {
            for field in ["text", "thinking", "signature"] {
                if let Some(text) = self.joined(index, field) {
                    block.set(field, Json::Text(text));
                }
            }
            if let Some(text) = self.joined(index, "input") {
                // A stream that broke off leaves half an object: kept as it came.
                let input = text.as_str().map(parse);
                let input = match input {
                    Some(Ok(input)) => input,
                    _ if text.is_blank() => Json::Map(Vec::new()),
                    _ => Json::map([("partial_json", Json::Text(text))]),
                };
                block.set("input", input);
            }
        }
        Json::List(blocks)
    }
}

fn candidates(parts: Vec<Json>) -> Json {
    let content = Json::map([("role", "model".into()), ("parts", Json::List(parts))]);
    Json::List(vec![Json::map([("content", content)])])
}

fn append(block: &mut Json, key: &str, item: Json) {
    let mut items = block.take_some(key).unwrap_or_default().into_items();
    items.push(item);
    block.set(key, Json::List(items));
}
