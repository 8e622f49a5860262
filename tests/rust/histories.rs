//! Random histories in every dialect: well-formed, or with steps that were aborted.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// One thing that happens in a conversation.
#[derive(Clone, Debug)]
pub enum Act {
    User(String),
    Assistant(String),
    System(String),
    /// Text, results (size and whether it arrived), thinking.
    Tools {
        text: String,
        results: Vec<(String, bool)>,
        thinks: bool,
    },
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z]{1,9}( [a-z]{1,9}){0,12}",
        1 => "[가-힣]{1,6}( [가-힣]{1,6}){0,8}",
        1 => (1usize..60).prop_map(|lines| {
            let line = |line| format!("line {line}: value_{} = {}\n", line * 7, line * 31);
            (0..lines).map(line).collect::<Vec<_>>().concat()
        }),
        1 => (1usize..900).prop_map(|count| "x".repeat(count)),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => text().prop_map(Act::User),
        2 => text().prop_map(Act::Assistant),
        1 => text().prop_map(Act::System),
        6 => (text(), prop::collection::vec((text(), prop::bool::weighted(0.9)), 1..4), any::<bool>())
            .prop_map(|(text, results, thinks)| Act::Tools { text, results, thinks }),
    ]
}

/// A history that starts with a user message.
pub fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    (text(), prop::collection::vec(act(), 0..most)).prop_map(|(goal, mut acts)| {
        acts.insert(0, Act::User(goal));
        acts
    })
}

/// The history in the `openai` dialect, with a leading system message.
pub fn openai(acts: &[Act]) -> Vec<Json> {
    let mut out = vec![json!({"role": "system", "content": "Answer briefly."})];
    for (number, act) in acts.iter().enumerate() {
        match act {
            Act::User(text) => out.push(json!({"role": "user", "content": text})),
            Act::Assistant(text) => out.push(json!({"role": "assistant", "content": text})),
            Act::System(text) => out.push(json!({"role": "system", "content": text})),
            Act::Tools { text, results, .. } => {
                let calls: Vec<Json> = (0..results.len())
                    .map(|call| {
                        json!({"id": format!("c{call}"), "type": "function", "function": {
                            "name": "look", "arguments": json!({"path": format!("src/f{number}.rs")}).to_string(),
                        }})
                    })
                    .collect();
                out.push(json!({"role": "assistant", "content": text, "tool_calls": calls}));
                for (call, (result, arrived)) in results.iter().enumerate() {
                    if *arrived {
                        out.push(json!({"role": "tool", "tool_call_id": format!("c{call}"), "content": result}));
                    }
                }
            }
        }
    }
    out
}

/// The history in the `anthropic` dialect; system acts are left out.
pub fn anthropic(acts: &[Act]) -> Vec<Json> {
    let mut out = Vec::new();
    for (number, act) in acts.iter().enumerate() {
        match act {
            Act::User(text) => out.push(json!({"role": "user", "content": text})),
            Act::Assistant(text) => {
                out.push(json!({"role": "assistant", "content": [{"type": "text", "text": text}]}));
            }
            Act::System(_) => {}
            Act::Tools {
                text,
                results,
                thinks,
            } => {
                let mut blocks = Vec::new();
                if *thinks {
                    blocks.push(json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"}));
                }
                blocks.push(json!({"type": "text", "text": text}));
                let mut answers = Vec::new();
                for (call, (result, arrived)) in results.iter().enumerate() {
                    let id = format!("c{number}_{call}");
                    blocks.push(json!({"type": "tool_use", "id": id, "name": "look",
                        "input": {"path": format!("src/f{number}.rs")}}));
                    if *arrived {
                        answers.push(
                            json!({"type": "tool_result", "tool_use_id": id, "content": result}),
                        );
                    }
                }
                out.push(json!({"role": "assistant", "content": blocks}));
                if !answers.is_empty() {
                    out.push(json!({"role": "user", "content": answers}));
                }
            }
        }
    }
    out
}

/// The history in the `openai-responses` dialect: reasoning, text and calls are items.
pub fn responses(acts: &[Act]) -> Vec<Json> {
    let mut out = vec![json!({"role": "system", "content": "Answer briefly."})];
    let said = |text: &String| {
        json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": text}]})
    };
    for (number, act) in acts.iter().enumerate() {
        match act {
            Act::User(text) if number % 2 == 0 => {
                out.push(json!({"role": "user", "content": text}));
            }
            Act::User(text) => out.push(json!({"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": text}]})),
            Act::Assistant(text) => out.push(said(text)),
            Act::System(text) => out.push(json!({"role": "system", "content": text})),
            Act::Tools {
                text,
                results,
                thinks,
            } => {
                if *thinks {
                    out.push(json!({"type": "reasoning", "id": format!("rs_{number}"),
                        "summary": [], "encrypted_content": "gAAA"}));
                }
                if number % 3 == 0 {
                    out.push(said(text));
                }
                let custom = |call: usize| (number + call) % 4 == 3;
                for call in 0..results.len() {
                    let id = format!("call_{number}_{call}");
                    out.push(if custom(call) {
                        json!({"type": "custom_tool_call", "call_id": id, "name": "patch",
                            "input": text})
                    } else {
                        json!({"type": "function_call", "call_id": id, "name": "look",
                            "arguments": json!({"path": format!("src/f{number}.rs")}).to_string()})
                    });
                }
                for (call, (result, arrived)) in results.iter().enumerate() {
                    let id = format!("call_{number}_{call}");
                    if *arrived && custom(call) {
                        out.push(json!({"type": "custom_tool_call_output", "call_id": id,
                            "output": [{"type": "input_text", "text": result}]}));
                    } else if *arrived {
                        out.push(json!({"type": "function_call_output", "call_id": id,
                            "output": result}));
                    }
                }
            }
        }
    }
    out
}

/// The history in the `gemini` dialect; system acts are left out. Ids are there in every second
/// step, signatures on the first call of a step that thinks.
pub fn gemini(acts: &[Act]) -> Vec<Json> {
    let mut out = Vec::new();
    for (number, act) in acts.iter().enumerate() {
        match act {
            Act::User(text) => out.push(json!({"role": "user", "parts": [{"text": text}]})),
            Act::Assistant(text) => out.push(json!({"role": "model", "parts": [{"text": text}]})),
            Act::System(_) => {}
            Act::Tools {
                text,
                results,
                thinks,
            } => {
                let mut parts = vec![json!({"text": text})];
                let mut answers = Vec::new();
                for (call, (result, arrived)) in results.iter().enumerate() {
                    let path = format!("src/f{number}.rs");
                    let mut ask = json!({"name": format!("look{call}"), "args": {"path": path}});
                    let mut answer =
                        json!({"name": format!("look{call}"), "response": {"output": result}});
                    if number % 2 == 0 {
                        ask["id"] = json!(format!("c{call}"));
                        answer["id"] = json!(format!("c{call}"));
                    }
                    let mut part = json!({"functionCall": ask});
                    if *thinks && call == 0 {
                        part["thoughtSignature"] = json!("c2ln");
                    }
                    parts.push(part);
                    if *arrived {
                        answers.push(json!({"functionResponse": answer}));
                    }
                }
                out.push(json!({"role": "model", "parts": parts}));
                if !answers.is_empty() {
                    out.push(json!({"role": "user", "parts": answers}));
                }
            }
        }
    }
    out
}

/// The history in the `bedrock` dialect; system acts are left out.
pub fn bedrock(acts: &[Act]) -> Vec<Json> {
    let mut out = Vec::new();
    for (number, act) in acts.iter().enumerate() {
        match act {
            Act::User(text) => out.push(json!({"role": "user", "content": [{"text": text}]})),
            Act::Assistant(text) => {
                out.push(json!({"role": "assistant", "content": [{"text": text}]}));
            }
            Act::System(_) => {}
            Act::Tools {
                text,
                results,
                thinks,
            } => {
                let mut blocks = Vec::new();
                if *thinks {
                    blocks.push(json!({"reasoningContent": {"reasoningText": {
                        "text": "hm", "signature": "c2ln"}}}));
                }
                blocks.push(json!({"text": text}));
                let mut answers = Vec::new();
                for (call, (result, arrived)) in results.iter().enumerate() {
                    let id = format!("t{number}_{call}");
                    blocks.push(json!({"toolUse": {"toolUseId": id, "name": "look",
                        "input": {"path": format!("src/f{number}.rs")}}}));
                    if *arrived {
                        answers.push(json!({"toolResult": {"toolUseId": id,
                            "content": [{"text": result}]}}));
                    }
                }
                out.push(json!({"role": "assistant", "content": blocks}));
                if !answers.is_empty() {
                    out.push(json!({"role": "user", "content": answers}));
                }
            }
        }
    }
    out
}
