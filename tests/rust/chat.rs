//! Cost of messages and tools: the published examples, the sums, the batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use satchel_core::dialect::{Dialect, read_message};
use satchel_core::message::Message;
use satchel_core::node::Node;
use satchel_core::tokens::chat::{
    CALL_TOKENS, ChatRules, FILE_TOKENS, TOOL_USE_TOKENS, count_message_parts, is_exact,
    message_overhead,
};
use satchel_core::tokens::images::IMAGE_TOKENS;
use satchel_core::tokens::tools::{ToolRules, ToolTokens, tool_tokens};
use satchel_core::tokens::{CountTexts, Counter};
use satchel_core::{Error, ErrorKind, Result};
use serde_json::{Value, json};

use crate::dialect::arb_message;

fn o200k() -> Counter {
    Counter::named("o200k_base").unwrap()
}

fn read(dialect: Dialect, json: &Value) -> Message<Box<str>> {
    read_message(dialect, &json, 0).unwrap()
}

/// Tokens of the only part of a message.
fn part_tokens(dialect: Dialect, json: &Value) -> u32 {
    let mut messages = [read(dialect, json)];
    count_message_parts(&mut messages, &o200k()).unwrap();
    let [part] = &messages[0].parts[..] else {
        panic!("one part expected: {json}");
    };
    part.tokens
}

fn request_tokens(dialect: Dialect, messages: &[Value], counter: &Counter) -> u32 {
    let rules = ChatRules::of(dialect);
    let mut messages: Vec<_> = messages.iter().map(|json| read(dialect, json)).collect();
    count_message_parts(&mut messages, counter).unwrap();
    let sum: u32 = messages
        .iter()
        .map(|message| {
            let parts: u32 = message.parts.iter().map(|part| part.tokens).sum();
            message_overhead(message, &rules, counter).unwrap() + parts
        })
        .sum();
    sum + rules.request_tokens()
}

fn tools_of(tools: &Value, rules: &ToolRules, counter: &Counter) -> ToolTokens {
    tool_tokens(&tools.capture().unwrap(), rules, counter).unwrap()
}

fn weather_tool() -> Value {
    json!([{"type": "function", "function": {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {
                    "type": "string",
                    "description": "The city and state, e.g. San Francisco, CA",
                },
                "unit": {
                    "type": "string",
                    "description": "The unit of temperature to return",
                    "enum": ["celsius", "fahrenheit"],
                },
            },
            "required": ["location"],
        },
    }}])
}

fn weather_messages() -> [Value; 2] {
    [
        json!({"role": "system", "content":
            "You are a helpful assistant that can answer to questions about the weather."}),
        json!({"role": "user", "content": "What's the weather like in San Francisco?"}),
    ]
}

#[test]
fn the_published_example_of_gpt_4o() {
    let rules = ToolRules::of(Dialect::OpenAi);
    let tools = tools_of(&weather_tool(), &rules, &o200k());
    let expected = ToolTokens {
        tokens: 68,
        exact: true,
    };
    assert_eq!(tools, expected);
    let messages = request_tokens(Dialect::OpenAi, &weather_messages(), &o200k());
    assert_eq!((messages, messages + tools.tokens), (33, 101));
}

#[test]
fn the_published_example_of_gpt_4() {
    let counter = Counter::named("cl100k_base").unwrap();
    let rules = ToolRules::of(Dialect::OpenAi).of_gpt4();
    let tools = tools_of(&weather_tool(), &rules, &counter);
    assert!(tools.exact);
    let messages = request_tokens(Dialect::OpenAi, &weather_messages(), &counter);
    assert_eq!((messages, tools.tokens), (34, 71));
    assert_eq!(messages + tools.tokens, 105);
}

#[test]
fn a_recorded_request_to_gpt_4o() {
    // 68 tokens by its usage record: two functions, one of them without any description.
    let tools = json!([
        {"type": "function", "function": {"name": "get_user_country", "description": "",
            "parameters": {"additionalProperties": false, "properties": {}, "type": "object"}}},
        {"type": "function", "function": {"name": "final_result",
            "description": "The final response which ends this conversation",
            "parameters": {"properties": {"city": {"type": "string"}, "country": {"type": "string"}},
                           "required": ["city", "country"], "type": "object"}}},
    ]);
    let question =
        json!({"role": "user", "content": "What is the largest city in the user country?"});
    let rules = ToolRules::of(Dialect::OpenAi);
    let tools = tools_of(&tools, &rules, &o200k());
    let messages = request_tokens(Dialect::OpenAi, &[question], &o200k());
    assert_eq!((messages + tools.tokens, tools.exact), (68, true));
}

#[test]
fn one_full_stop_of_a_description_is_free() {
    let rules = ToolRules::of(Dialect::OpenAi);
    let tokens = |description: &str| {
        let tools = json!([{"name": "f", "description": description}]);
        tools_of(&tools, &rules, &o200k()).tokens
    };
    assert_eq!(tokens("Find it."), tokens("Find it"));
    assert!(tokens("Find it..") > tokens("Find it"));
}

#[test]
fn a_name_costs_one_more_than_its_text() {
    let plain = json!({"role": "user", "content": "hi"});
    let named = json!({"role": "user", "content": "hi", "name": "Ada"});
    let plain = request_tokens(Dialect::OpenAi, &[plain], &o200k());
    let named = request_tokens(Dialect::OpenAi, &[named], &o200k());
    assert_eq!(named - plain, 1 + o200k().count("Ada").unwrap());
}

#[test]
fn no_tools_cost_nothing() {
    for tools in [json!([]), json!(null)] {
        for dialect in Dialect::ALL {
            let rules = ToolRules::of(dialect);
            assert_eq!(tools_of(&tools, &rules, &o200k()).tokens, 0);
        }
    }
}

#[test]
fn what_the_formula_does_not_cover_goes_on_in_its_way() {
    let rules = ToolRules::of(Dialect::OpenAi);
    let base = weather_tool();
    let flat = tools_of(&base, &rules, &o200k()).tokens;
    let text = |text: &str| o200k().count(text).unwrap();
    let string = text("string");
    let location = "/0/function/parameters/properties/location";
    for (key, value, more) in [
        ("items", json!({"type": "string"}), string),
        // Like the properties of the function: 3 if there are any, 3 for each.
        (
            "properties",
            json!({"city": {"type": "string"}, "zip": {"type": "string"}}),
            3 + 3 + text("city:string") + 3 + text("zip:string"),
        ),
        // Like the items of an enumeration: 3 for each.
        (
            "anyOf",
            json!([{"type": "string"}, {"type": "null"}]),
            3 + string + 3 + text("null"),
        ),
        ("$ref", json!("#/elsewhere"), text("#/elsewhere")),
        ("minLength", json!(3), text("minLength:3")),
        ("default", json!("Bonn"), text("default:Bonn")),
        ("required", json!(["city"]), 0),
    ] {
        let mut tools = base.clone();
        tools.pointer_mut(location).unwrap()[key] = value.clone();
        let found = tools_of(&tools, &rules, &o200k());
        assert_eq!((found.tokens, found.exact), (flat + more, false), "{key}");
    }
    let mut strict = base.clone();
    strict[0]["function"]["strict"] = json!(true);
    let found = tools_of(&strict, &rules, &o200k());
    assert_eq!((found.tokens, found.exact), (flat, false));
}

#[test]
fn references_cost_what_they_name_once_on_each_path() {
    let rules = ToolRules::of(Dialect::OpenAi);
    let tool = |parameters: Value| json!([{"name": "f", "parameters": parameters}]);
    let place = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let inline = tool(
        json!({"type": "object", "properties": {"from": {"items": place},
        "to": {"items": place}}}),
    );
    let named = tool(
        json!({"type": "object", "$defs": {"Place": place}, "properties": {
        "from": {"items": {"$ref": "#/$defs/Place"}}, "to": {"items": {"$ref": "#/$defs/Place"}}}}),
    );
    let (inline, named) = (
        tools_of(&inline, &rules, &o200k()).tokens,
        tools_of(&named, &rules, &o200k()).tokens,
    );
    assert_eq!(inline, named);
    let tree = tool(
        json!({"type": "object", "$defs": {"Node": {"type": "object", "properties": {
        "left": {"$ref": "#/$defs/Node"}, "right": {"$ref": "#/$defs/Node"}}}},
        "properties": {"root": {"$ref": "#/$defs/Node"}}}),
    );
    let found = tools_of(&tree, &rules, &o200k());
    assert!(!found.exact && found.tokens < 100, "{found:?}");
}

#[test]
fn anthropic_tools_are_their_json_and_a_preamble() {
    let tools =
        json!([{"name": "look", "description": "Look.", "input_schema": {"type": "object"}}]);
    let rules = ToolRules {
        per_request: 290,
        ..ToolRules::of(Dialect::Anthropic)
    };
    let found = tools_of(&tools, &rules, &o200k());
    let json = o200k().count(&tools[0].to_string()).unwrap();
    assert_eq!((found.tokens, found.exact), (290 + json, false));
}

#[test]
fn tools_of_the_wrong_shape() {
    for tools in [json!("x"), json!({"name": "f"}), json!(["f"])] {
        let rules = ToolRules::of(Dialect::OpenAi);
        let captured = (&tools).capture().unwrap();
        let error = tool_tokens(&captured, &rules, &o200k()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidMessage);
    }
}

#[test]
fn a_call_is_its_name_its_arguments_and_a_frame() {
    let arguments = "{\"city\":\"Bonn\"}";
    let name = o200k().count("weather").unwrap();
    let text = o200k().count(arguments).unwrap();
    let openai = json!({"role": "assistant", "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "weather", "arguments": arguments}}]});
    // The result carries the name again.
    let expected = 2 * name + text + CALL_TOKENS;
    assert_eq!(part_tokens(Dialect::OpenAi, &openai), expected);
    let anthropic = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "c", "name": "weather", "input": {"city": "Bonn"}}]});
    let expected = name + text + TOOL_USE_TOKENS;
    assert_eq!(part_tokens(Dialect::Anthropic, &anthropic), expected);
}

#[test]
fn a_result_is_the_sum_of_its_blocks() {
    let blocks = json!([
        {"type": "text", "text": "first line"},
        {"type": "image", "source": {"type": "base64", "data": "A".repeat(40_000)}},
        {"type": "text", "text": "last line"},
    ]);
    let json = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": blocks}]});
    let text = o200k().count("first line").unwrap() + o200k().count("last line").unwrap();
    assert_eq!(part_tokens(Dialect::Anthropic, &json), text + IMAGE_TOKENS);
    let empty = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]});
    assert_eq!(part_tokens(Dialect::Anthropic, &empty), 0);
}

#[test]
fn payloads_are_never_text() {
    let payload = "QUJD".repeat(25_000);
    let url = format!("data:image/png;base64,{payload}");
    let user = |block: Value| json!({"role": "user", "content": [block]});
    let rows = [
        (
            Dialect::OpenAi,
            json!({"type": "image_url", "image_url": {"url": url}}),
            // The most that the tile formula gives.
            85 + 8 * 170,
        ),
        (
            Dialect::OpenAi,
            json!({"type": "input_audio", "input_audio": {"data": payload}}),
            // 75,000 bytes at 64 kbit a second, 32 tokens a second.
            300,
        ),
        (
            Dialect::OpenAi,
            json!({"type": "file", "file": {"file_data": payload}}),
            FILE_TOKENS,
        ),
        (
            Dialect::Anthropic,
            json!({"type": "image", "source": {"type": "base64", "data": payload}}),
            IMAGE_TOKENS,
        ),
        (
            Dialect::Anthropic,
            json!({"type": "document", "source": {"type": "base64", "data": payload}}),
            FILE_TOKENS,
        ),
        (
            Dialect::Anthropic,
            json!({"type": "document", "source": {"type": "text", "data": "one two"}}),
            2,
        ),
        (
            Dialect::Anthropic,
            json!({"type": "thinking", "thinking": "one two", "signature": payload}),
            2,
        ),
        (
            Dialect::Anthropic,
            json!({"type": "redacted_thinking", "data": payload}),
            18_750,
        ),
    ];
    for (dialect, block, expected) in rows {
        assert_eq!(part_tokens(dialect, &user(block)), expected);
    }
    let unknown = json!({"type": "hologram", "source": {"data": payload}, "poster": url,
                         "signature": payload, "encrypted_content": payload, "note": "one two"});
    let tokens = part_tokens(Dialect::Anthropic, &user(unknown));
    let fixed = 2 * IMAGE_TOKENS + 18_750;
    assert!((fixed + 20..fixed + 60).contains(&tokens), "{tokens}");
}

#[test]
fn arguments_with_a_field_called_data_are_text() {
    let data = "QUJD".repeat(500);
    let json = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "c", "name": "save", "input": {"data": data}}]});
    let text = o200k().count(&json!({"data": data}).to_string()).unwrap();
    let name = o200k().count("save").unwrap();
    assert_eq!(
        part_tokens(Dialect::Anthropic, &json),
        text + name + TOOL_USE_TOKENS
    );
}

#[test]
fn only_plain_text_of_openai_is_exact() {
    let openai = ChatRules::of(Dialect::OpenAi);
    let rows = [
        (json!({"role": "user", "content": "hi"}), true),
        (
            json!({"role": "user", "content": "hi", "name": "Ada"}),
            true,
        ),
        (
            json!({"role": "user", "content": [{"type": "text", "text": "hi"}]}),
            true,
        ),
        (
            json!({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}),
            false,
        ),
        (
            json!({"role": "tool", "tool_call_id": "c", "content": "hi"}),
            false,
        ),
        (
            json!({"role": "assistant", "content": "hi", "refusal": "no"}),
            false,
        ),
        (
            json!({"role": "assistant", "content": "hi", "reasoning_content": "hm"}),
            false,
        ),
    ];
    for (json, exact) in rows {
        assert_eq!(
            is_exact(&read(Dialect::OpenAi, &json), &openai),
            exact,
            "{json}"
        );
    }
    let plain = read(
        Dialect::Anthropic,
        &json!({"role": "user", "content": "hi"}),
    );
    assert!(!is_exact(&plain, &ChatRules::of(Dialect::Anthropic)));
}

/// A counter of the caller's own: bytes, and how often it was asked.
#[derive(Debug, Default)]
struct Bytes {
    asked: AtomicUsize,
    fails: bool,
}

impl CountTexts for Bytes {
    fn count_texts(&self, texts: &[&str]) -> Result<Vec<u32>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.fails {
            return Err(Error::new(ErrorKind::CounterFailed, "no"));
        }
        Ok(texts.iter().map(|text| text.len() as u32).collect())
    }
}

#[test]
fn a_foreign_counter_is_asked_once() {
    let bytes = Arc::new(Bytes::default());
    let counter = Counter::foreign("bytes", true, bytes.clone());
    let mut messages = vec![
        read(
            Dialect::OpenAi,
            &json!({"role": "user", "content": "12345"}),
        ),
        read(
            Dialect::OpenAi,
            &json!({"role": "assistant", "content": "123", "tool_calls": [
            {"id": "c", "function": {"name": "12", "arguments": "1234"}}]}),
        ),
    ];
    count_message_parts(&mut messages, &counter).unwrap();
    let tokens: Vec<Vec<u32>> = messages
        .iter()
        .map(|message| message.parts.iter().map(|part| part.tokens).collect())
        .collect();
    assert_eq!(tokens, [vec![5], vec![3, 8 + CALL_TOKENS]]);
    assert_eq!(bytes.asked.load(Ordering::Relaxed), 1);
}

#[test]
fn a_failing_counter_changes_nothing() {
    let failing = Bytes {
        fails: true,
        ..Bytes::default()
    };
    let counter = Counter::foreign("failing", true, Arc::new(failing));
    let mut messages = [read(
        Dialect::OpenAi,
        &json!({"role": "user", "content": "hi"}),
    )];
    let error = count_message_parts(&mut messages, &counter).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CounterFailed);
    assert_eq!(messages[0].parts[0].tokens, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn one_by_one_or_in_a_batch(json in prop::collection::vec(arb_message(), 0..6)) {
        for dialect in Dialect::ALL {
            let readable = || json.iter().filter_map(|json| read_message(dialect, &json, 0).ok());
            let mut one_by_one: Vec<_> = readable().collect();
            let mut batch: Vec<_> = readable().collect();
            let foreign = Counter::foreign("chars3", false, Arc::new(Native));
            count_message_parts(&mut one_by_one, &Counter::named("chars3").unwrap()).unwrap();
            count_message_parts(&mut batch, &foreign).unwrap();
            for (left, right) in one_by_one.iter().zip(&batch) {
                let tokens = |message: &Message<Box<str>>| -> Vec<u32> {
                    message.parts.iter().map(|part| part.tokens).collect()
                };
                prop_assert_eq!(tokens(left), tokens(right));
            }
        }
    }

    #[test]
    fn tools_never_panic(tools in crate::dialect::arb_json()) {
        for dialect in Dialect::ALL {
            let captured = (&tools).capture().unwrap();
            let counter = Counter::named("chars4").unwrap();
            match tool_tokens(&captured, &ToolRules::of(dialect), &counter) {
                Ok(_) => {}
                Err(error) => prop_assert_eq!(error.kind(), ErrorKind::InvalidMessage),
            }
        }
    }
}

/// The native estimator behind the foreign interface.
#[derive(Debug)]
struct Native;

impl CountTexts for Native {
    fn count_texts(&self, texts: &[&str]) -> Result<Vec<u32>> {
        Counter::named("chars3")?.count_many(texts)
    }
}
