//! Conversion of tool definitions and their schemas.

use satchel_core::dialect::Dialect;
use satchel_core::dialect::convert::{Converted, LossKind, convert};
use serde_json::{Value as Json, json};

use crate::convert::{ANTHROPIC, BEDROCK, GEMINI, OPENAI, RESPONSES, check, kinds};

fn definitions(source: Dialect, target: Dialect, tools: &Json) -> Converted {
    let none: [&Json; 0] = [];
    convert(source, target, &none, None, Some(&tools)).unwrap()
}

#[test]
fn tools_in_every_direction() {
    let schema =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let forms = [
        (
            OPENAI,
            json!([{"type": "function", "function": {
            "name": "look", "description": "Looks.", "parameters": schema}}]),
        ),
        (
            RESPONSES,
            json!([{"type": "function", "name": "look", "description": "Looks.",
            "parameters": schema, "strict": false}]),
        ),
        (
            ANTHROPIC,
            json!([{"name": "look", "description": "Looks.", "input_schema": schema}]),
        ),
        (
            GEMINI,
            json!([{"functionDeclarations": [
            {"name": "look", "description": "Looks.", "parameters": schema}]}]),
        ),
        (
            BEDROCK,
            json!([{"toolSpec": {"name": "look", "description": "Looks.",
            "inputSchema": {"json": schema}}}]),
        ),
    ];
    for (source, tools) in &forms {
        for (target, expected) in &forms {
            if source != target {
                let found = definitions(*source, *target, tools);
                assert_eq!(found.tools.as_ref(), Some(expected), "{source} to {target}");
                assert_eq!(found.losses, [], "{source} to {target}");
            }
        }
    }
    let config = json!({"tools": forms[4].1, "toolChoice": {"auto": {}}});
    let found = definitions(BEDROCK, OPENAI, &config);
    assert_eq!(found.tools.as_ref(), Some(&forms[0].1));
    assert_eq!(kinds(&found), [(None, LossKind::ToolOption)]);
}

#[test]
fn tools_of_servers_are_listed() {
    for (source, tools, names) in [
        (
            ANTHROPIC,
            json!([{"type": "web_search_20250305", "name": "web_search"}]),
            ["web_search_20250305"],
        ),
        (
            RESPONSES,
            json!([{"type": "code_interpreter", "container": {"type": "auto"}}]),
            ["code_interpreter"],
        ),
        (GEMINI, json!([{"googleSearch": {}}]), ["googleSearch"]),
    ] {
        let found = definitions(source, BEDROCK, &tools);
        assert_eq!(found.tools, None);
        let details: Vec<&str> = found
            .losses
            .iter()
            .map(|loss| loss.detail.as_str())
            .collect();
        assert_eq!(details, names);
        assert_eq!(kinds(&found), [(None, LossKind::ServerTool)]);
    }
}

#[test]
fn custom_tools_take_an_input() {
    let custom = json!([{"type": "custom", "custom": {"name": "patch", "format": {
        "type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}}}}]);
    let found = definitions(OPENAI, RESPONSES, &custom);
    let flat = json!([{"type": "custom", "name": "patch",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}}]);
    assert_eq!(found.tools.as_ref(), Some(&flat));
    assert_eq!(
        definitions(RESPONSES, OPENAI, &flat).tools,
        Some(custom.clone())
    );
    let found = definitions(OPENAI, ANTHROPIC, &custom);
    assert_eq!(
        found.tools.unwrap()[0]["input_schema"]["required"],
        json!(["input"])
    );
}

#[test]
fn names_of_tools_are_the_same_in_definition_and_call() {
    let long = "a.b/".repeat(30);
    let tools = json!([{"functionDeclarations": [{"name": "fs.read"}, {"name": "fs_read"}, {"name": long}]}]);
    let messages = [
        json!({"role": "user", "parts": [{"text": "go"}]}),
        json!({"role": "model", "parts": [{"functionCall": {"name": "fs_read"}}, {"functionCall": {"name": "fs.read"}}]}),
        json!({"role": "user", "parts": [{"functionResponse": {"name": "fs_read"}}, {"functionResponse": {"name": "fs.read"}}]}),
    ];
    let nodes: Vec<&Json> = messages.iter().collect();
    let found = convert(GEMINI, OPENAI, &nodes, None, Some(&&tools)).unwrap();
    check(OPENAI, &found);
    let tools = found.tools.unwrap();
    let names: Vec<&str> = (0..3)
        .map(|at| tools[at]["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..2], ["fs_read", "fs_read_2"]);
    assert_eq!(names[2].len(), 64);
    let calls = &found.messages[1]["tool_calls"];
    assert_eq!(calls[0]["function"]["name"], "fs_read_2");
    assert_eq!(calls[1]["function"]["name"], "fs_read");
}

#[test]
fn schemas_for_gemini() {
    let schema = json!({
        "type": "object",
        "$defs": {
            "place": {"type": "object", "properties": {"city": {"type": "string", "format": "uri"}}},
            "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}},
        },
        "properties": {
            "where": {"$ref": "#/$defs/place", "description": "Where to look."},
            "tree": {"$ref": "#/$defs/node"},
            "count": {"type": ["integer", "null"], "exclusiveMinimum": 0},
            "mode": {"const": "fast"},
            "level": {"enum": [1, 2]},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["where", "gone"],
        "additionalProperties": false,
    });
    let tools = json!([{"name": "look", "input_schema": schema}]);
    let found = definitions(ANTHROPIC, GEMINI, &tools);
    assert_eq!(
        found.tools.unwrap()[0]["functionDeclarations"][0]["parameters"],
        json!({
            "type": "object",
            "properties": {
                "where": {"type": "object", "properties": {"city": {"type": "string"}},
                    "description": "Where to look."},
                "tree": {"type": "object", "properties": {"next": {"type": "object"}}},
                "count": {"type": "integer", "nullable": true},
                "mode": {"enum": ["fast"], "type": "string"},
                "level": {},
                "either": {"nullable": true, "type": "string"},
            },
            "required": ["where"],
        })
    );
    let dropped: Vec<&str> = found
        .losses
        .iter()
        .map(|loss| loss.detail.as_str())
        .collect();
    assert_eq!(
        dropped,
        [
            "$ref",
            "additionalProperties",
            "enum",
            "exclusiveMinimum",
            "format"
        ]
    );
    // References that multiply end.
    let mut definitions_of = serde_json::Map::new();
    for level in 0..20 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        let both = json!({"type": "object", "properties": {"a": next, "b": next}});
        definitions_of.insert(format!("d{level}"), both);
    }
    let schema = json!({"$defs": definitions_of, "properties": {"root": {"$ref": "#/$defs/d0"}}});
    let found = definitions(
        ANTHROPIC,
        GEMINI,
        &json!([{"name": "look", "input_schema": schema}]),
    );
    assert!(json!(found.tools).to_string().len() < 2_000_000);
    // And back, from Gemini's words.
    let tools = json!([{"functionDeclarations": [{"name": "look", "parameters": {"type": "OBJECT",
        "properties": {"a": {"type": "ARRAY", "minItems": "1", "items": {"type": "STRING", "nullable": true}}}}}]}]);
    let found = definitions(GEMINI, OPENAI, &tools);
    assert_eq!(
        found.tools.unwrap()[0]["function"]["parameters"],
        json!({"type": "object", "properties": {
            "a": {"type": "array", "minItems": 1, "items": {"type": ["string", "null"]}}}})
    );
}
