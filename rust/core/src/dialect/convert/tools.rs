//! Tool definitions in the five forms. A definition is told by its shape, whatever the dialect.

use serde_json::{Map, Value as Json, json};

use super::loss::{LossKind, Losses, plain_name};
use super::names::Names;
use super::schema;
use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind, Result};

/// A function that the application runs.
#[derive(Debug)]
pub(super) struct Tool {
    name: String,
    description: Option<String>,
    schema: Option<Schema>,
    is_strict: bool,
    /// The `format` of a custom tool, which takes free text.
    custom: Option<Json>,
}

#[derive(Debug)]
enum Schema {
    Json(Json),
    /// In Gemini's own words.
    Gemini(Json),
}

/// Fields that a definition may have without loss.
const KNOWN: [&str; 13] = [
    "type",
    "name",
    "description",
    "parameters",
    "input_schema",
    "inputSchema",
    "parametersJsonSchema",
    "parameters_json_schema",
    "strict",
    "format",
    "function",
    "custom",
    "cache_control",
];

/// Reads the tools of a request: a list, or Bedrock's `toolConfig`.
pub(super) fn read(tools: &Json, losses: &mut Losses) -> Result<Vec<Tool>> {
    let list = match tools {
        Json::Object(config) => config.get("tools").and_then(Json::as_array),
        other => other.as_array(),
    };
    let Some(list) = list else {
        let message = "tools must be a list of objects";
        return Err(Error::new(ErrorKind::InvalidMessage, message));
    };
    if let Some(choice) = tools.get("toolChoice")
        && !choice.is_null()
    {
        losses.add(None, LossKind::ToolOption, "toolChoice");
    }
    let mut found = Vec::with_capacity(list.len());
    for (at, tool) in list.iter().enumerate() {
        let Some(object) = tool.as_object() else {
            let message = format!("tools[{at}] must be an object");
            return Err(Error::new(ErrorKind::InvalidMessage, message));
        };
        read_tool(object, &mut found, losses);
    }
    Ok(found)
}

fn read_tool(tool: &Map<String, Json>, found: &mut Vec<Tool>, losses: &mut Losses) {
    let declarations = ["functionDeclarations", "function_declarations"];
    let present = |key: &&String| !tool.get(*key).is_none_or(Json::is_null);
    for key in tool.keys().filter(present) {
        match key.as_str() {
            key if declarations.contains(&key) => {
                let list = tool.get(key).and_then(Json::as_array);
                for declaration in list.into_iter().flatten().filter_map(Json::as_object) {
                    read_function(declaration, true, found, losses);
                }
                // What else a Gemini tool holds is a tool of the server.
                let others = tool.keys().filter(present);
                for other in others.filter(|other| !declarations.contains(&other.as_str())) {
                    losses.add(None, LossKind::ServerTool, plain_name(other));
                }
                return;
            }
            "toolSpec" => {
                if let Some(spec) = tool.get(key).and_then(Json::as_object) {
                    read_function(spec, false, found, losses);
                }
                return;
            }
            "cachePoint" => {
                losses.add(None, LossKind::CacheMark, "cachePoint");
                return;
            }
            _ => {}
        }
    }
    if tool
        .get("cache_control")
        .is_some_and(|mark| !mark.is_null())
    {
        losses.add(None, LossKind::CacheMark, "cache_control");
    }
    let kind = tool.get("type").and_then(Json::as_str);
    let nested = |key: &str| tool.get(key).and_then(Json::as_object);
    match kind {
        Some("custom") if tool.contains_key("input_schema") => {
            read_function(tool, false, found, losses);
        }
        Some("custom") => {
            let custom = nested("custom").unwrap_or(tool);
            let Some(name) = custom.get("name").and_then(Json::as_str) else {
                return losses.add(None, LossKind::ServerTool, "custom");
            };
            let format = custom.get("format").cloned().unwrap_or(Json::Null);
            found.push(Tool {
                name: name.to_owned(),
                description: description(custom),
                schema: None,
                is_strict: false,
                custom: Some(format),
            });
        }
        Some("function") | None if nested("function").is_some() => {
            if let Some(function) = nested("function") {
                read_function(function, false, found, losses);
            }
        }
        Some("function") => read_function(tool, false, found, losses),
        None if tool.get("name").is_some_and(Json::is_string) => {
            read_function(tool, false, found, losses);
        }
        None => {
            let key = tool.keys().find(present).map_or("unknown", String::as_str);
            losses.add(None, LossKind::ServerTool, plain_name(key));
        }
        Some(kind) => losses.add(None, LossKind::ServerTool, plain_name(kind)),
    }
}

fn description(tool: &Map<String, Json>) -> Option<String> {
    tool.get("description")?.as_str().map(str::to_owned)
}

fn read_function(
    function: &Map<String, Json>,
    is_gemini: bool,
    found: &mut Vec<Tool>,
    losses: &mut Losses,
) {
    let Some(name) = function.get("name").and_then(Json::as_str) else {
        return losses.add(None, LossKind::ServerTool, "a tool without a name");
    };
    for (key, value) in function {
        let is_set = !matches!(value, Json::Null | Json::Bool(false));
        if is_set && !KNOWN.contains(&key.as_str()) {
            losses.add(None, LossKind::ToolOption, plain_name(key));
        }
    }
    let get = |keys: &[&str]| {
        let mut values = keys.iter().filter_map(|key| function.get(*key));
        values.find(|value| value.is_object()).cloned()
    };
    let schema = match get(&[
        "parametersJsonSchema",
        "parameters_json_schema",
        "input_schema",
    ]) {
        Some(schema) => Some(Schema::Json(schema)),
        None => match get(&["inputSchema"]) {
            Some(mut outer) => outer.get_mut("json").map(Json::take).map(Schema::Json),
            None if is_gemini => get(&["parameters"]).map(Schema::Gemini),
            None => get(&["parameters"]).map(Schema::Json),
        },
    };
    found.push(Tool {
        name: name.to_owned(),
        description: description(function),
        schema,
        is_strict: function.get("strict") == Some(&Json::Bool(true)),
        custom: None,
    });
}

/// The definitions in the target's form; `None` if there are none.
pub(super) fn write(
    tools: Vec<Tool>,
    target: Dialect,
    names: &mut Names,
    losses: &mut Losses,
) -> Option<Json> {
    let written: Vec<Json> = tools
        .into_iter()
        .map(|tool| write_tool(tool, target, names, losses))
        .collect();
    if written.is_empty() {
        return None;
    }
    Some(match target {
        Dialect::Gemini => json!([{"functionDeclarations": written}]),
        _ => Json::Array(written),
    })
}

fn write_tool(tool: Tool, target: Dialect, names: &mut Names, losses: &mut Losses) -> Json {
    let name = names.of(&tool.name, target, None, losses);
    let takes_custom = matches!(target, Dialect::OpenAi | Dialect::Responses);
    if let (Some(format), true) = (&tool.custom, takes_custom) {
        return write_custom(&name, tool.description.as_deref(), format, target);
    }
    let schema = match tool.schema {
        _ if tool.custom.is_some() => {
            let detail = "a custom tool became one with the parameter input";
            losses.add(None, LossKind::ToolOption, detail);
            json!({"type": "object", "properties": {"input": {"type": "string"}},
                "required": ["input"]})
        }
        Some(Schema::Json(schema)) => schema,
        Some(Schema::Gemini(schema)) if target == Dialect::Gemini => schema,
        Some(Schema::Gemini(schema)) => schema::from_gemini(schema),
        None => json!({"type": "object", "properties": {}}),
    };
    if tool.is_strict && !takes_custom {
        losses.add(None, LossKind::ToolOption, "strict");
    }
    let mut written = Map::new();
    let mut put = |key: &str, value: Json| written.insert(key.to_owned(), value);
    if target == Dialect::Responses {
        put("type", json!("function"));
    }
    put("name", json!(name));
    if let Some(description) = tool.description.filter(|text| !text.is_empty()) {
        put("description", json!(description));
    }
    match target {
        Dialect::OpenAi | Dialect::Responses => {
            put("parameters", schema);
            if tool.is_strict || target == Dialect::Responses {
                // Without a word the Responses API takes every tool for strict.
                put("strict", json!(tool.is_strict));
            }
        }
        Dialect::Anthropic => {
            put("input_schema", with_type(schema));
        }
        Dialect::Gemini => {
            if let Some(schema) = schema::to_gemini(&schema, losses) {
                put("parameters", schema);
            }
        }
        Dialect::Bedrock => {
            put("inputSchema", json!({"json": with_type(schema)}));
        }
    }
    let written = Json::Object(written);
    match target {
        Dialect::OpenAi => json!({"type": "function", "function": written}),
        Dialect::Bedrock => json!({"toolSpec": written}),
        _ => written,
    }
}

fn write_custom(name: &str, description: Option<&str>, format: &Json, target: Dialect) -> Json {
    let mut custom = Map::new();
    let is_chat = target == Dialect::OpenAi;
    if !is_chat {
        custom.insert("type".to_owned(), json!("custom"));
    }
    custom.insert("name".to_owned(), json!(name));
    if let Some(description) = description {
        custom.insert("description".to_owned(), json!(description));
    }
    if !format.is_null() {
        custom.insert("format".to_owned(), custom_format(format, is_chat));
    }
    if is_chat {
        json!({"type": "custom", "custom": custom})
    } else {
        Json::Object(custom)
    }
}

/// A grammar stands in an object of its own in Chat Completions, flat in Responses.
fn custom_format(format: &Json, is_chat: bool) -> Json {
    if format.get("type").and_then(Json::as_str) != Some("grammar") {
        return format.clone();
    }
    let grammar = format.get("grammar").unwrap_or(format);
    let field = |key: &str| grammar.get(key).cloned().unwrap_or(Json::Null);
    let (syntax, definition) = (field("syntax"), field("definition"));
    if is_chat {
        json!({"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}})
    } else {
        json!({"type": "grammar", "syntax": syntax, "definition": definition})
    }
}

/// The schema says that it is one of an object.
fn with_type(mut schema: Json) -> Json {
    if let Some(object) = schema.as_object_mut()
        && !object.contains_key("type")
    {
        object.insert("type".to_owned(), json!("object"));
    }
    schema
}
