//! What tool definitions cost.
//!
//! The `openai` dialect follows a formula that reproduces published counts for flat schemas. What
//! it does not cover (nested objects, arrays, `$ref`, alternatives, strict mode, other keywords) is
//! counted as the JSON of that piece, on top, and the result is not exact. The other dialects have
//! no formula: the JSON of every definition, in `anthropic` plus the preamble of the model.

use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind, Result};
use crate::node::{Text, Value};
use crate::tokens::Counter;

/// The constants of the formula. A value, so that the figures of one model can replace the
/// dialect's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolRules {
    /// For each function.
    pub per_function: u32,
    /// For each function that has properties.
    pub per_properties: u32,
    /// For each property.
    pub per_property: u32,
    /// Taken off a property that is an enumeration.
    pub off_enum: u32,
    /// For each item of an enumeration.
    pub per_enum_item: u32,
    /// Once, if there is any tool.
    pub per_request: u32,
}

impl ToolRules {
    /// The constants of a dialect; `openai` as for the gpt-4o family.
    ///
    /// # Source
    /// `openai`: the `OpenAI` cookbook, how to count tokens. `anthropic`: documentation of tool
    /// use, 2026-08-21: the preamble depends on the model and the tool choice; here the highest
    /// figure that is published, 804.
    pub fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::OpenAi => Self {
                per_function: 7,
                per_properties: 3,
                per_property: 3,
                off_enum: 3,
                per_enum_item: 3,
                per_request: 12,
            },
            Dialect::Anthropic => Self {
                per_request: 804,
                ..Self::json_alone()
            },
            Dialect::Responses | Dialect::Gemini | Dialect::Bedrock => Self::json_alone(),
        }
    }

    /// No constants: the definitions cost what their JSON does.
    fn json_alone() -> Self {
        Self {
            per_function: 0,
            per_properties: 0,
            per_property: 0,
            off_enum: 0,
            per_enum_item: 0,
            per_request: 0,
        }
    }

    /// The same for gpt-3.5 and gpt-4, whose functions cost 10.
    #[must_use]
    pub fn of_gpt4(self) -> Self {
        Self {
            per_function: 10,
            ..self
        }
    }
}

/// The cost of the tools of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolTokens {
    /// Tokens of all definitions, the fixed ones included.
    pub tokens: u32,
    /// Whether the formula covers all of them.
    pub exact: bool,
}

/// Tokens of the `tools` argument of a request: a list of definitions, or nothing.
///
/// # Errors
/// `invalid_message` if it is no list of objects; `counter_failed`, only from a foreign counter.
pub fn tool_tokens<T: Text>(
    dialect: Dialect,
    tools: &Value<T>,
    rules: &ToolRules,
    counter: &Counter,
) -> Result<ToolTokens> {
    let tools = match tools {
        Value::Null => &[],
        Value::List(tools) => &tools[..],
        _ => return Err(invalid("tools must be a list")),
    };
    if tools.is_empty() {
        return Ok(ToolTokens {
            tokens: 0,
            exact: true,
        });
    }
    let mut bill = Bill {
        texts: Vec::new(),
        fixed: i64::from(rules.per_request),
        exact: dialect == Dialect::OpenAi,
    };
    for (at, tool) in tools.iter().enumerate() {
        if !matches!(tool, Value::Map(_)) {
            return Err(invalid(&format!("tools[{at}] must be an object")));
        }
        match dialect {
            Dialect::OpenAi => bill.add_openai(tool, rules),
            _ => bill.texts.push(tool.to_json()),
        }
    }
    bill.total(counter)
}

#[cold]
fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidMessage, message)
}

/// Texts to be counted, and what comes on top.
struct Bill {
    texts: Vec<String>,
    fixed: i64,
    exact: bool,
}

impl Bill {
    fn total(self, counter: &Counter) -> Result<ToolTokens> {
        let views: Vec<&str> = self.texts.iter().map(String::as_str).collect();
        let counts = counter.count_many(&views)?;
        let sum = self.fixed + counts.into_iter().map(i64::from).sum::<i64>();
        Ok(ToolTokens {
            tokens: u32::try_from(sum.max(0)).unwrap_or(u32::MAX),
            exact: self.exact,
        })
    }

    /// What the formula does not cover: its JSON.
    fn add_uncovered<T: Text>(&mut self, piece: &Value<T>) {
        self.exact = false;
        self.texts.push(piece.to_json());
    }

    fn add_openai<T: Text>(&mut self, tool: &Value<T>, rules: &ToolRules) {
        // Either the wrapper of today or the bare function of the legacy argument.
        let function = tool.get("function").unwrap_or(tool);
        let Some(name) = string(function, "name") else {
            return self.add_uncovered(tool);
        };
        self.fixed += i64::from(rules.per_function);
        self.texts.push(line(name, &description(function)));
        if let Value::Map(entries) = function {
            for (key, value) in entries {
                match key.with(Keyword::of_function) {
                    Keyword::Covered => {}
                    Keyword::Strict => self.exact &= !matches!(value, Value::Bool(true)),
                    Keyword::Other => self.add_uncovered(value),
                }
            }
        }
        let Some(parameters @ Value::Map(entries)) = function.get("parameters") else {
            return;
        };
        for (key, value) in entries {
            if key.with(Keyword::of_schema) == Keyword::Other {
                self.add_uncovered(value);
            }
        }
        if let Some(Value::Map(properties)) = parameters.get("properties") {
            if !properties.is_empty() {
                self.fixed += i64::from(rules.per_properties);
            }
            for (name, property) in properties {
                name.with(|name| self.add_property(name, property, rules));
            }
        }
    }

    fn add_property<T: Text>(&mut self, name: &str, property: &Value<T>, rules: &ToolRules) {
        self.fixed += i64::from(rules.per_property);
        let kind = string(property, "type").unwrap_or_default();
        self.texts
            .push(line(format!("{name}:{kind}"), &description(property)));
        let Value::Map(entries) = property else {
            return self.add_uncovered(property);
        };
        if kind.is_empty() {
            self.exact = false;
        }
        for (key, value) in entries {
            match (key.with(Keyword::of_property), value) {
                (Keyword::Covered, Value::Text(_)) => {}
                (Keyword::Covered, Value::List(items)) if key.with(|key| key == "enum") => {
                    self.fixed -= i64::from(rules.off_enum);
                    for item in items {
                        self.fixed += i64::from(rules.per_enum_item);
                        match item {
                            Value::Text(item) => self.texts.push(item.with(str::to_owned)),
                            other => self.add_uncovered(other),
                        }
                    }
                }
                (_, value) => self.add_uncovered(value),
            }
        }
    }
}

/// Whether the formula says what a field of a definition costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keyword {
    Covered,
    Strict,
    Other,
}

impl Keyword {
    fn of_function(key: &str) -> Self {
        match key {
            "type" | "name" | "description" | "parameters" | "function" => Self::Covered,
            "strict" => Self::Strict,
            _ => Self::Other,
        }
    }

    fn of_schema(key: &str) -> Self {
        match key {
            // Which properties are required, and that there are no others, costs nothing.
            "type" | "properties" | "required" | "additionalProperties" | "title" | "$schema" => {
                Self::Covered
            }
            _ => Self::Other,
        }
    }

    fn of_property(key: &str) -> Self {
        match key {
            "type" | "description" | "enum" | "title" => Self::Covered,
            _ => Self::Other,
        }
    }
}

fn string<T: Text>(value: &Value<T>, key: &str) -> Option<String> {
    let text = value.get(key)?.as_text()?;
    Some(text.with(str::to_owned))
}

/// A line of the formula. Where there is no description its colon is not counted either: so the
/// formula gives what a recorded request to gpt-4o cost.
fn line(mut subject: String, description: &str) -> String {
    if !description.is_empty() {
        subject.push(':');
        subject.push_str(description);
    }
    subject
}

/// The description without one full stop at its end.
fn description<T: Text>(value: &Value<T>) -> String {
    let mut text = string(value, "description").unwrap_or_default();
    if text.ends_with('.') {
        text.pop();
    }
    text
}
