//! What tool definitions cost.
//!
//! Models of `OpenAI` are billed by a formula that reproduces published counts for flat schemas. It
//! is carried on to what it does not cover, and the result is not exact then: an object or the items
//! of an array inside a property count like properties of the function, alternatives like items of
//! an enumeration, `$ref` as what it names (once on each path), other keywords as a line of their
//! key and value; `strict`, `required`, titles and unused definitions are free. For other models
//! there is no formula: the JSON of every definition plus the preamble of the model.

use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind, Result};
use crate::node::{Text, Value};
use crate::tokens::Counter;

/// How definitions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolStyle {
    /// By the formula of `OpenAI`.
    Formula,
    /// As their JSON.
    Json,
}

/// The constants of the formula. A value, so that the figures of one model can replace the
/// dialect's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRules {
    /// How definitions are counted.
    pub style: ToolStyle,
    /// For each function.
    pub per_function: u32,
    /// For each function that has properties.
    pub per_properties: u32,
    /// For each property.
    pub per_property: u32,
    /// For a property that is an enumeration; below 0.
    pub per_enum: i32,
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
                style: ToolStyle::Formula,
                per_function: 7,
                per_properties: 3,
                per_property: 3,
                per_enum: -3,
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
            style: ToolStyle::Json,
            per_function: 0,
            per_properties: 0,
            per_property: 0,
            per_enum: 0,
            per_enum_item: 0,
            per_request: 0,
        }
    }

    /// The constants that a counter goes by: those of its model, else the dialect's, with gpt-4's
    /// for its vocabulary.
    pub fn for_counter(dialect: Dialect, counter: &Counter) -> Self {
        let rules = Self::of(dialect);
        match counter.rules() {
            Some(model) => model.tools,
            None if rules.style == ToolStyle::Formula && counter.encoding() == "cl100k_base" => {
                rules.of_gpt4()
            }
            None => rules,
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
        exact: rules.style == ToolStyle::Formula,
    };
    for (at, tool) in tools.iter().enumerate() {
        if !matches!(tool, Value::Map(_)) {
            return Err(invalid(&format!("tools[{at}] must be an object")));
        }
        match rules.style {
            ToolStyle::Formula => bill.add_function(tool, rules),
            ToolStyle::Json => bill.texts.push(tool.to_json()),
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

    fn add_function<T: Text>(&mut self, tool: &Value<T>, rules: &ToolRules) {
        // Either the wrapper of today or the bare function of the legacy argument.
        let function = tool.get("function").unwrap_or(tool);
        let Some(name) = string(function, "name") else {
            return self.add_uncovered(tool);
        };
        self.fixed += i64::from(rules.per_function);
        self.texts.push(line(name, &description(function)));
        if let Value::Map(entries) = function {
            for (key, value) in entries {
                key.with(|key| match key {
                    "type" | "name" | "description" | "parameters" | "function" => {}
                    "strict" => self.exact &= !matches!(value, Value::Bool(true)),
                    _ => self.add_keyword(key, value),
                });
            }
        }
        if let Some(parameters @ Value::Map(entries)) = function.get("parameters") {
            let mut schema = Schema {
                bill: self,
                rules,
                root: parameters,
                inside: Vec::new(),
            };
            for (key, value) in entries {
                key.with(|key| match key {
                    // Which properties are required, and that there are no others, is free.
                    "type" | "required" | "title" | "$schema" | "$defs" | "definitions" => {}
                    "additionalProperties" if matches!(value, Value::Bool(_)) => {}
                    "properties" => schema.add_properties(value),
                    _ => schema.add_keyword(key, value),
                });
            }
        }
    }

    /// A keyword that says more about a value: a line of its own.
    fn add_keyword<T: Text>(&mut self, key: &str, value: &Value<T>) {
        self.exact = false;
        self.texts.push(format!("{key}:{}", plain(value)));
    }
}

/// Deepest nesting of a schema that is looked into; what lies below counts as its JSON.
const MAX_SCHEMA_DEPTH: usize = 32;

/// Adds a schema to a bill, and finds what its references name.
struct Schema<'a, 'b, T> {
    bill: &'b mut Bill,
    rules: &'a ToolRules,
    root: &'a Value<T>,
    /// References that are being followed, and levels that are open.
    inside: Vec<Option<String>>,
}

impl<'a, T: Text> Schema<'a, '_, T> {
    fn add_properties(&mut self, properties: &'a Value<T>) {
        let Value::Map(properties) = properties else {
            return self.bill.add_uncovered(properties);
        };
        if !properties.is_empty() {
            self.bill.fixed += i64::from(self.rules.per_properties);
        }
        for (name, property) in properties {
            self.bill.fixed += i64::from(self.rules.per_property);
            let kind = string(property, "type").unwrap_or_default();
            let subject = name.with(|name| format!("{name}:{kind}"));
            self.bill.texts.push(line(subject, &description(property)));
            self.bill.exact &= !kind.is_empty();
            self.add_rest(property);
        }
    }

    /// A schema without a name: the items of an array, one of several alternatives.
    fn add_unnamed(&mut self, schema: &'a Value<T>) {
        self.bill.exact = false;
        let kind = string(schema, "type").unwrap_or_default();
        let text = line(kind, &description(schema));
        if !text.is_empty() {
            self.bill.texts.push(text);
        }
        self.add_rest(schema);
    }

    /// Everything of a schema but its type and its description.
    fn add_rest(&mut self, schema: &'a Value<T>) {
        let Value::Map(entries) = schema else {
            return self.bill.add_uncovered(schema);
        };
        if self.inside.len() >= MAX_SCHEMA_DEPTH {
            return self.bill.add_uncovered(schema);
        }
        self.inside.push(None);
        for (key, value) in entries {
            key.with(|key| match (key, value) {
                ("type" | "description", Value::Text(_)) | ("title", _) => {}
                ("enum", Value::List(items)) => {
                    self.bill.fixed += i64::from(self.rules.per_enum);
                    for item in items {
                        self.bill.fixed += i64::from(self.rules.per_enum_item);
                        self.bill.exact &= matches!(item, Value::Text(_));
                        self.bill.texts.push(plain(item));
                    }
                }
                _ => self.add_keyword(key, value),
            });
        }
        self.inside.pop();
    }

    fn add_keyword(&mut self, key: &str, value: &'a Value<T>) {
        match (key, value) {
            ("properties", Value::Map(_)) => {
                self.bill.exact = false;
                self.add_properties(value);
            }
            // `items` may be one schema for each place.
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::List(items)) => {
                for item in items {
                    self.bill.fixed += i64::from(self.rules.per_enum_item);
                    self.add_unnamed(item);
                }
            }
            ("items" | "additionalProperties" | "not", Value::Map(_)) => self.add_unnamed(value),
            ("$ref", Value::Text(reference)) => {
                let reference = reference.with(str::to_owned);
                self.add_reference(reference);
            }
            ("type", Value::List(kinds)) => {
                self.bill.exact = false;
                for kind in kinds {
                    self.bill.fixed += i64::from(self.rules.per_enum_item);
                    self.bill.texts.push(plain(kind));
                }
            }
            ("required" | "$schema" | "$defs" | "definitions", _)
            | ("additionalProperties", Value::Bool(_)) => self.bill.exact = false,
            _ => self.bill.add_keyword(key, value),
        }
    }

    fn add_reference(&mut self, reference: String) {
        self.bill.exact = false;
        let target = reference.strip_prefix("#/").and_then(|path| {
            path.split('/')
                .try_fold(self.root, |value, key| value.get(key))
        });
        let is_open = self
            .inside
            .iter()
            .any(|open| open.as_deref() == Some(reference.as_str()));
        match target {
            Some(target) if !is_open => {
                self.inside.push(Some(reference));
                self.add_unnamed(target);
                self.inside.pop();
            }
            // A schema that contains itself, or stands elsewhere: its name.
            _ => self.bill.texts.push(reference),
        }
    }
}

/// A text as it is, anything else as JSON.
fn plain<T: Text>(value: &Value<T>) -> String {
    match value {
        Value::Text(text) => text.with(str::to_owned),
        other => other.to_json(),
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
