//! One conversation, written in each of the five dialects.

use proptest::prelude::*;
use proptest::sample::Index;
use satchel_core::dialect::Dialect;
use serde_json::{Value as Json, json};

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Act {
    /// Texts, and whether a picture comes with them.
    User(Vec<String>, bool),
    /// Texts, and whether it reasoned before.
    Assistant(Vec<String>, bool),
    /// Instructions in the middle; in dialects without them nothing.
    System(String),
    Tools {
        text: Option<String>,
        thinks: bool,
        /// Arguments, texts of the result, whether it failed.
        calls: Vec<(Json, Vec<String>, bool)>,
    },
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z]{4,9}( [a-z]{1,9}){0,4}",
        1 => "[가-힣]{2,6}( [가-힣]{1,6}){0,3}",
        1 => r#"[{"]{1,2}[a-z]{3,5}[\\":}]{1,3}[a-z]\n"#.prop_map(|text| text + "end"),
    ]
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![3 => prop::collection::vec(text(), 1..2), 1 => prop::collection::vec(text(), 2..4)]
}

fn arguments() -> impl Strategy<Value = Json> {
    let value = prop_oneof![
        text().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        (-1e9..1e9).prop_map(Json::from),
        Just(Json::Null),
        prop::collection::vec(text(), 0..3).prop_map(Json::from),
    ];
    prop::collection::btree_map("[a-z]{1,6}", value, 0..3).prop_map(|map| json!(map))
}

fn act() -> impl Strategy<Value = Act> {
    let call = (
        arguments(),
        prop::collection::vec(text(), 0..3),
        prop::bool::weighted(0.2),
    );
    prop_oneof![
        2 => (texts(), any::<bool>()).prop_map(|(texts, image)| Act::User(texts, image)),
        2 => (texts(), any::<bool>()).prop_map(|(texts, thinks)| Act::Assistant(texts, thinks)),
        1 => text().prop_map(Act::System),
        5 => (prop::option::of(text()), any::<bool>(), prop::collection::vec(call, 1..4))
            .prop_map(|(text, thinks, calls)| Act::Tools { text, thinks, calls }),
    ]
}

/// A conversation that starts with the user and whose turns alternate.
pub fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    (texts(), prop::collection::vec(act(), 0..most)).prop_map(|(goal, acts)| {
        let mut found = vec![Act::User(goal, false)];
        let mut is_users = false;
        for act in acts {
            let fits = match &act {
                Act::User(..) => is_users,
                Act::Assistant(..) | Act::System(_) | Act::Tools { .. } => !is_users,
            };
            if fits {
                is_users = match &act {
                    Act::Assistant(..) => true,
                    Act::User(..) | Act::Tools { .. } | Act::System(_) => false,
                };
                found.push(act);
            }
        }
        // So that a conversation can follow another.
        if !is_users {
            found.push(Act::Assistant(vec!["done".into()], false));
        }
        found
    })
}

/// The conversation in a dialect, valid there.
pub fn write(dialect: Dialect, acts: &[Act]) -> Vec<Json> {
    match dialect {
        Dialect::OpenAi => openai(acts),
        Dialect::Responses => responses(acts),
        Dialect::Anthropic => anthropic(acts),
        Dialect::Gemini => gemini(acts),
        Dialect::Bedrock => bedrock(acts),
        _ => unreachable!("a sixth dialect"),
    }
}

const PICTURE: &str = "iVBORw0KGgo=";

fn openai(acts: &[Act]) -> Vec<Json> {
    let mut out = Vec::new();
    let parts = |texts: &[String]| -> Vec<Json> {
        texts
            .iter()
            .map(|text| json!({"type": "text", "text": text}))
            .collect()
    };
    for (number, act) in acts.iter().enumerate() {
        match act {
            Act::User(texts, image) => {
                let mut content = parts(texts);
                if *image {
                    content.push(json!({"type": "image_url", "image_url": {
                        "url": format!("data:image/png;base64,{PICTURE}")}}));
                }
                out.push(json!({"role": "user", "content": content}));
            }
            Act::Assistant(texts, thinks) => {
                let mut message = json!({"role": "assistant", "content": parts(texts)});
                if *thinks {
                    message["reasoning_content"] = json!("SECRET");
                }
                out.push(message);
            }
            Act::System(text) => out.push(json!({"role": "developer", "content": text})),
            Act::Tools { text, calls, .. } => {
                let id = |call: usize| format!("c{number}_{call}");
                let tool_calls = calls.iter().enumerate().map(|(call, (arguments, ..))| {
                    json!({"id": id(call), "type": "function",
                        "function": {"name": "look", "arguments": arguments.to_string()}})
                });
                let tool_calls: Vec<Json> = tool_calls.collect();
                out.push(json!({"role": "assistant", "content": text, "tool_calls": tool_calls}));
                for (call, (_, texts, _)) in calls.iter().enumerate() {
                    let content = match &texts[..] {
                        [] => json!(""),
                        [one] => json!(one),
                        many => json!(parts(many)),
                    };
                    out.push(json!({"role": "tool", "tool_call_id": id(call), "content": content}));
                }
            }
        }
    }
    out
}

fn responses(acts: &[Act]) -> Vec<Json> {
    let mut out = Vec::new();
    let parts = |texts: &[String], kind: &str| -> Vec<Json> {
        texts
            .iter()
            .map(|text| json!({"type": kind, "text": text}))
            .collect()
    };
    let reasoning = |number: usize| {
        json!({"type": "reasoning", "id": format!("rs_{number}"), "summary": [],
            "encrypted_content": "SECRET"})
    };
    for (number, act) in acts.iter().enumerate() {
        match act {
            Act::User(texts, image) => {
                let mut content = parts(texts, "input_text");
                if *image {
                    content.push(json!({"type": "input_image",
                        "image_url": format!("data:image/png;base64,{PICTURE}")}));
                }
                out.push(json!({"role": "user", "content": content}));
            }
            Act::Assistant(texts, thinks) => {
                out.extend(thinks.then(|| reasoning(number)));
                out.push(
                    json!({"type": "message", "role": "assistant", "id": format!("msg_{number}"),
                    "status": "completed", "content": parts(texts, "output_text")}),
                );
            }
            Act::System(text) => out.push(json!({"role": "developer", "content": text})),
            Act::Tools {
                text,
                thinks,
                calls,
            } => {
                let id = |call: usize| format!("c{number}_{call}");
                out.extend(thinks.then(|| reasoning(number)));
                if let Some(text) = text {
                    out.push(json!({"role": "assistant", "content": text}));
                }
                for (call, (arguments, ..)) in calls.iter().enumerate() {
                    out.push(
                        json!({"type": "function_call", "call_id": id(call), "name": "look",
                        "arguments": arguments.to_string()}),
                    );
                }
                for (call, (_, texts, _)) in calls.iter().enumerate() {
                    let output = match &texts[..] {
                        [] => json!(""),
                        [one] => json!(one),
                        many => json!(parts(many, "input_text")),
                    };
                    out.push(json!({"type": "function_call_output", "call_id": id(call), "output": output}));
                }
            }
        }
    }
    out
}

fn anthropic(acts: &[Act]) -> Vec<Json> {
    let mut out = Vec::new();
    let parts = |texts: &[String]| -> Vec<Json> {
        texts
            .iter()
            .map(|text| json!({"type": "text", "text": text}))
            .collect()
    };
    let thinking = json!({"type": "thinking", "thinking": "SECRET", "signature": "c2lnbmVk"});
    for (number, act) in acts.iter().enumerate() {
        match act {
            Act::User(texts, image) => {
                let mut content = parts(texts);
                if *image {
                    content.push(json!({"type": "image", "source": {
                        "type": "base64", "media_type": "image/png", "data": PICTURE}}));
                }
                out.push(json!({"role": "user", "content": content}));
            }
            Act::Assistant(texts, thinks) => {
                let mut content: Vec<Json> = thinks.then(|| thinking.clone()).into_iter().collect();
                content.extend(parts(texts));
                out.push(json!({"role": "assistant", "content": content}));
            }
            Act::System(_) => {}
            Act::Tools {
                text,
                thinks,
                calls,
            } => {
                let id = |call: usize| format!("c{number}_{call}");
                let mut content: Vec<Json> = thinks.then(|| thinking.clone()).into_iter().collect();
                content.extend(
                    text.iter()
                        .map(|text| json!({"type": "text", "text": text})),
                );
                let mut answers = Vec::new();
                for (call, (arguments, texts, failed)) in calls.iter().enumerate() {
                    content.push(json!({"type": "tool_use", "id": id(call), "name": "look", "input": arguments}));
                    let mut answer = json!({"type": "tool_result", "tool_use_id": id(call)});
                    if !texts.is_empty() {
                        answer["content"] = json!(parts(texts));
                    }
                    if *failed {
                        answer["is_error"] = json!(true);
                    }
                    answers.push(answer);
                }
                out.push(json!({"role": "assistant", "content": content}));
                out.push(json!({"role": "user", "content": answers}));
            }
        }
    }
    out
}

fn gemini(acts: &[Act]) -> Vec<Json> {
    let mut out = Vec::new();
    let parts = |texts: &[String]| -> Vec<Json> {
        texts.iter().map(|text| json!({"text": text})).collect()
    };
    let thought = json!({"text": "SECRET", "thought": true});
    for act in acts {
        match act {
            Act::User(texts, image) => {
                let mut content = parts(texts);
                if *image {
                    content.push(json!({"inlineData": {"mimeType": "image/png", "data": PICTURE}}));
                }
                out.push(json!({"role": "user", "parts": content}));
            }
            Act::Assistant(texts, thinks) => {
                let mut content: Vec<Json> = thinks.then(|| thought.clone()).into_iter().collect();
                content.extend(parts(texts));
                out.push(json!({"role": "model", "parts": content}));
            }
            Act::System(_) => {}
            Act::Tools {
                text,
                thinks,
                calls,
            } => {
                let mut content: Vec<Json> =
                    text.iter().map(|text| json!({"text": text})).collect();
                let mut answers = Vec::new();
                for (number, (arguments, texts, failed)) in calls.iter().enumerate() {
                    // Without ids: by name and order.
                    let mut call = json!({"functionCall": {"name": "look", "args": arguments}});
                    if number == 0 && *thinks {
                        call["thoughtSignature"] = json!("c2lnbmVk");
                    }
                    content.push(call);
                    let key = if *failed { "error" } else { "output" };
                    let response = match &texts[..] {
                        [] if *failed => json!({"error": ""}),
                        [] => json!({}),
                        [one] => json!({key: one}),
                        many => json!({key: many}),
                    };
                    answers
                        .push(json!({"functionResponse": {"name": "look", "response": response}}));
                }
                out.push(json!({"role": "model", "parts": content}));
                out.push(json!({"role": "user", "parts": answers}));
            }
        }
    }
    out
}

fn bedrock(acts: &[Act]) -> Vec<Json> {
    let mut out = Vec::new();
    let parts = |texts: &[String]| -> Vec<Json> {
        texts.iter().map(|text| json!({"text": text})).collect()
    };
    let thought =
        json!({"reasoningContent": {"reasoningText": {"text": "SECRET", "signature": "c2lnbmVk"}}});
    for (number, act) in acts.iter().enumerate() {
        match act {
            Act::User(texts, image) => {
                let mut content = parts(texts);
                if *image {
                    content.push(json!({"image": {"format": "png", "source": {"bytes": PICTURE}}}));
                }
                out.push(json!({"role": "user", "content": content}));
            }
            Act::Assistant(texts, thinks) => {
                let mut content: Vec<Json> = thinks.then(|| thought.clone()).into_iter().collect();
                content.extend(parts(texts));
                out.push(json!({"role": "assistant", "content": content}));
            }
            Act::System(_) => {}
            Act::Tools {
                text,
                thinks,
                calls,
            } => {
                let id = |call: usize| format!("c{number}_{call}");
                let mut content: Vec<Json> = thinks.then(|| thought.clone()).into_iter().collect();
                content.extend(text.iter().map(|text| json!({"text": text})));
                let mut answers = Vec::new();
                for (call, (arguments, texts, failed)) in calls.iter().enumerate() {
                    content.push(json!({"toolUse": {"toolUseId": id(call), "name": "look", "input": arguments}}));
                    let status = if *failed { "error" } else { "success" };
                    answers.push(json!({"toolResult": {
                        "toolUseId": id(call), "content": parts(texts), "status": status}}));
                }
                out.push(json!({"role": "assistant", "content": content}));
                out.push(json!({"role": "user", "content": answers}));
            }
        }
    }
    out
}

/// Breaks something, so that every message can still be read.
pub fn damage(dialect: Dialect, messages: &mut Vec<Json>, how: usize, at: Index, other: Index) {
    if messages.is_empty() {
        return;
    }
    let (at, other) = (at.index(messages.len()), other.index(messages.len()));
    let key = if dialect == Dialect::Gemini {
        "parts"
    } else {
        "content"
    };
    match how {
        0 => {
            messages.remove(at);
        }
        1 => messages.insert(other, messages[at].clone()),
        2 => messages.swap(at, other),
        3 if messages[at][key].is_array() => messages[at][key] = json!([]),
        _ => {
            let blank = match dialect {
                Dialect::Gemini => json!({"role": "user", "parts": [{"text": " "}]}),
                Dialect::Bedrock => json!({"role": "assistant", "content": [{"text": " \n"}]}),
                _ => json!({"role": "assistant", "content": " \n"}),
            };
            messages.insert(at, blank);
        }
    }
}

/// The words of a message by which it can be found again.
pub fn words(message: &Json) -> Vec<String> {
    match message {
        Json::Object(map) => {
            let values = map.iter().filter(|(key, _)| {
                !matches!(
                    key.as_str(),
                    "type"
                        | "role"
                        | "id"
                        | "status"
                        | "url"
                        | "image_url"
                        | "data"
                        | "bytes"
                        | "mimeType"
                        | "media_type"
                        | "format"
                        | "arguments"
                        | "input"
                        | "args"
                        | "name"
                        | "call_id"
                        | "tool_call_id"
                        | "tool_use_id"
                        | "toolUseId"
                        | "thoughtSignature"
                        | "signature"
                        | "encrypted_content"
                )
            });
            values.flat_map(|(_, value)| words(value)).collect()
        }
        Json::Array(items) => items.iter().flat_map(words).collect(),
        Json::String(text) => text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.len() > 3)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}
