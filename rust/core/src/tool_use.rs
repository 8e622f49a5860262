//! Tool uses: a call and its result, and what it was about in a few words.

use crate::marker::one_line;
use crate::message::{Body, Part, PartKind};
use crate::node::{Text, Value};
use crate::step::affinity;
use crate::transcript::Transcript;

/// A call and its result, by their indices in [`Transcript::all_parts`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolUse {
    pub(crate) result: u32,
    pub(crate) result_message: u32,
    pub(crate) call: Option<u32>,
    pub(crate) call_message: u32,
    pub(crate) tool: Option<String>,
}

/// A call that waits for its result while a step is read.
struct OpenCall {
    part: u32,
    message: u32,
    id: Option<String>,
    name: Option<String>,
}

/// The tool uses of a step that have a result, in order of the results. Pairing is positional, and
/// by id or name inside the step, as everywhere.
pub(crate) fn tool_uses<T: Text>(transcript: &Transcript<T>, step: u32) -> Vec<ToolUse> {
    let bounds = transcript.steps()[step as usize];
    let mut calls: Vec<OpenCall> = Vec::new();
    let mut uses = Vec::new();
    // An empty id or name is none.
    let owned = |text: Option<&T>| {
        text.map(|text| text.with(str::to_owned))
            .filter(|text| !text.is_empty())
    };
    let ids = |part: u32| {
        let key = transcript.all_parts()[part as usize].key.as_deref();
        let id = owned(key.and_then(|key| key.id.as_ref()));
        (id, owned(key.and_then(|key| key.name.as_ref())))
    };
    for message in bounds.first..bounds.end {
        for part in transcript.part_range(message as usize) {
            let part = part as u32;
            match transcript.all_parts()[part as usize].kind {
                PartKind::Call => {
                    let (id, name) = ids(part);
                    calls.push(OpenCall {
                        part,
                        message,
                        id,
                        name,
                    });
                }
                PartKind::Result => {
                    let (id, name) = ids(part);
                    let fit = |call: &OpenCall| {
                        let (call_id, call_name) = (call.id.as_deref(), call.name.as_deref());
                        affinity(id.as_deref(), name.as_deref(), call_id, call_name)
                    };
                    // Results mostly come in the order of the calls.
                    let at = if calls.first().and_then(fit) == Some(0) {
                        Some(0)
                    } else {
                        let all = calls.iter().enumerate();
                        let ranked = all.filter_map(|(at, call)| Some((fit(call)?, at)));
                        ranked.min().map(|(_, at)| at)
                    };
                    let call = at.map(|at| calls.remove(at));
                    uses.push(ToolUse {
                        result: part,
                        result_message: message,
                        call: call.as_ref().map(|call| call.part),
                        call_message: call.as_ref().map_or(message, |call| call.message),
                        tool: call.and_then(|call| call.name).or(name),
                    });
                }
                _ => {}
            }
        }
    }
    uses
}

/// The name of the tool that reads pages.
pub(crate) const PAGE_TOOL: &str = "page_in";

/// Arguments that say what a call was about, the most telling first.
const TELLING: [&str; 14] = [
    "path",
    "file_path",
    "file",
    "filename",
    "command",
    "cmd",
    "query",
    "pattern",
    "url",
    "code",
    "id",
    "name",
    "title",
    "input",
];

/// Bytes of arguments above which they are not read.
const MOST_BYTES: usize = 1 << 16;

/// Characters of an argument that are told.
const ARGUMENT_CHARS: usize = 40;

/// The argument that says most about a call, on one line; empty if there is none.
pub(crate) fn key_argument<T: Text>(call: &Part<T>) -> String {
    let json = match &call.body {
        Body::Text(text) => text.with(|text| (text.len() <= MOST_BYTES).then(|| text.to_owned())),
        Body::Value(value @ Value::Map(_)) => Some(value.to_json()),
        _ => None,
    };
    let json = json
        .filter(|json| json.len() <= MOST_BYTES)
        .unwrap_or_default();
    let Ok(serde_json::Value::Object(arguments)) = serde_json::from_str(&json) else {
        return one_line(&json, ARGUMENT_CHARS);
    };
    let told = TELLING.iter().filter_map(|name| arguments.get(*name));
    let all = arguments.values();
    let text = told.chain(all).find_map(|value| match value {
        serde_json::Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        serde_json::Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    one_line(&text.unwrap_or_default(), ARGUMENT_CHARS)
}
