//! Conversion between the dialects: each kind of part, and random histories in every direction.

use proptest::prelude::*;
use satchel_core::dialect::convert::{Converted, LossKind, convert};
use satchel_core::dialect::lint::{Severity, lint};
use satchel_core::dialect::{Dialect, read_message};
use satchel_core::message::{Body, Message, PartKind, Role};
use serde_json::{Value as Json, json};

use crate::spoken::{self, Act};

pub const OPENAI: Dialect = Dialect::OpenAi;
pub const RESPONSES: Dialect = Dialect::Responses;
pub const ANTHROPIC: Dialect = Dialect::Anthropic;
pub const GEMINI: Dialect = Dialect::Gemini;
pub const BEDROCK: Dialect = Dialect::Bedrock;

/// The dialects whose turns alternate.
pub const ALTERNATING: [Dialect; 3] = [ANTHROPIC, GEMINI, BEDROCK];

pub fn directions() -> impl Iterator<Item = (Dialect, Dialect)> {
    let pairs = Dialect::ALL.into_iter();
    pairs
        .flat_map(|source| Dialect::ALL.map(|target| (source, target)))
        .filter(|(source, target)| source != target)
}

pub fn run(source: Dialect, target: Dialect, messages: &[Json]) -> Converted {
    let nodes: Vec<&Json> = messages.iter().collect();
    convert(source, target, &nodes, None, None).unwrap()
}

/// The messages of a conversion without losses.
pub fn clean(source: Dialect, target: Dialect, messages: &[Json]) -> Vec<Json> {
    let found = run(source, target, messages);
    assert_eq!(found.losses, [], "{source} to {target}");
    check(target, &found);
    found.messages
}

pub fn kinds(found: &Converted) -> Vec<(Option<usize>, LossKind)> {
    found
        .losses
        .iter()
        .map(|loss| (loss.index, loss.kind))
        .collect()
}

pub fn page(message: &Message<Box<str>>, part: usize) -> String {
    String::from_utf8(message.parts[part].body.page_bytes()).unwrap()
}

pub fn read_all(dialect: Dialect, messages: &[Json]) -> Vec<Message<Box<str>>> {
    let messages = messages.iter().enumerate();
    let read = messages.map(|(index, message)| read_message(dialect, &message, index).unwrap());
    read.collect()
}

pub fn ids(message: &Message<Box<str>>, kind: PartKind) -> Vec<String> {
    let parts = message.parts.iter().filter(|part| part.kind == kind);
    parts
        .map(|part| part.key.as_ref().unwrap().id.clone().unwrap().into())
        .collect()
}

/// What every converted history holds to, whatever `lint` knows of its dialect.
pub fn check(dialect: Dialect, found: &Converted) {
    let system = found.system.as_ref();
    let tools = found.tools.as_ref();
    let errors: Vec<_> = lint(dialect, &found.messages, system.as_ref(), tools.as_ref())
        .into_iter()
        .filter(|violation| violation.rule.entry().severity == Severity::Error)
        .collect();
    assert!(
        errors.is_empty(),
        "{dialect}: {errors:?}\n{:#?}",
        found.messages
    );
    let messages = read_all(dialect, &found.messages);
    let mut taken = std::collections::BTreeSet::new();
    let mut waiting: Vec<String> = Vec::new();
    let mut before = None;
    for message in &messages {
        assert!(!message.parts.is_empty(), "{dialect}");
        if ALTERNATING.contains(&dialect) {
            assert_ne!(
                before,
                Some(message.role),
                "{dialect}: {:#?}",
                found.messages
            );
            assert!(before.is_some() || message.role == Role::User, "{dialect}");
            before = Some(message.role);
            // Results come first.
            let kinds: Vec<bool> = message
                .parts
                .iter()
                .map(|part| part.kind == PartKind::Result)
                .collect();
            assert!(kinds.is_sorted_by(|a, b| a >= b));
            for part in &message.parts {
                if let (PartKind::Text, Body::Text(text)) = (part.kind, &part.body) {
                    assert!(!text.trim().is_empty(), "{dialect}");
                }
            }
        }
        let results = ids(message, PartKind::Result);
        let calls = ids(message, PartKind::Call);
        if results.is_empty() {
            // Responses has a message for each call of a turn.
            assert!(
                waiting.is_empty() || (dialect == RESPONSES && !calls.is_empty()),
                "{dialect}: {waiting:?}"
            );
        } else {
            let answered: Vec<String> = waiting.drain(..results.len()).collect();
            assert_eq!(answered, results, "{dialect}");
        }
        for id in calls {
            assert!(id.len() <= 40 && !id.is_empty());
            assert!(
                id.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
            );
            assert!(taken.insert(id.clone()), "{dialect}: {id} twice");
            waiting.push(id);
        }
    }
    assert!(waiting.is_empty(), "{dialect}: {waiting:?}");
    // What only its own provider can use.
    let everything = json!(found.messages).to_string();
    for secret in ["SECRET", "c2lnbmVk"] {
        assert!(!everything.contains(secret), "{dialect}: {everything}");
    }
}

/// One thing that is said, in a form all dialects share.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    Text(Role, String),
    Image(String),
    Call(String, Json),
    Result(String),
}

/// The texts of a result's body, joined.
fn result_text(dialect: Dialect, json: &Json) -> String {
    let strings = |json: &Json| match json {
        Json::String(text) => text.clone(),
        Json::Array(items) => items
            .iter()
            .filter_map(|item| item.as_str().or_else(|| item.get("text")?.as_str()))
            .collect::<Vec<_>>()
            .join("|"),
        other => other.to_string(),
    };
    if dialect != GEMINI {
        return strings(json);
    }
    let wrapped = json.get("output").or_else(|| json.get("error"));
    match json.as_object().unwrap().len() {
        0 => String::new(),
        1 if wrapped.is_some_and(|it| it.is_string() || it.is_array()) => strings(wrapped.unwrap()),
        _ => json.to_string(),
    }
}

pub fn said(dialect: Dialect, messages: &[Json]) -> Vec<Said> {
    let mut found = Vec::new();
    for message in read_all(dialect, messages) {
        for (at, part) in message.parts.iter().enumerate() {
            let text = page(&message, at);
            let json = || match &part.body {
                Body::Text(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
                Body::Value(_) => serde_json::from_str(&text).unwrap(),
                Body::Empty => json!({}),
            };
            match part.kind {
                PartKind::Text => found.push(Said::Text(message.role, text)),
                PartKind::Image => found.push(Said::Image(
                    // The one thing in common of all forms of an image.
                    text.contains("iVBORw0KGgo=").to_string(),
                )),
                PartKind::Call => {
                    let name = part.key.as_ref().unwrap().name.clone().unwrap();
                    found.push(Said::Call(name.into(), json()));
                }
                PartKind::Result => found.push(Said::Result(match &part.body {
                    Body::Text(text) => text.to_string(),
                    Body::Empty => String::new(),
                    Body::Value(_) => result_text(dialect, &json()),
                })),
                PartKind::Reasoning | PartKind::Opaque | PartKind::Audio | PartKind::File => {}
            }
        }
    }
    found
}

/// Everything but the instructions in the middle, which only two dialects have.
pub fn plain(said: Vec<Said>) -> Vec<Said> {
    let is_instruction = |said: &Said| match said {
        Said::Text(role, text) => role.is_instruction() || text.starts_with("[system message]"),
        _ => false,
    };
    said.into_iter()
        .filter(|said| !is_instruction(said))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn valid_histories_in_every_direction(acts in spoken::acts(8)) {
        for (source, target) in directions() {
            let messages = spoken::write(source, &acts);
            let found = run(source, target, &messages);
            check(target, &found);
            prop_assert_eq!(
                plain(said(source, &messages)),
                plain(said(target, &found.messages)),
                "{} to {}", source, target
            );
            // Reasoning, error flags, signatures and instructions are all there is to lose.
            let is_expected = |kind| matches!(kind, LossKind::Reasoning | LossKind::ErrorFlag
                | LossKind::Signature | LossKind::Instruction);
            prop_assert!(found.losses.iter().all(|loss| is_expected(loss.kind)), "{:?}", found.losses);
            let nothing = Converted { messages: Vec::new(), system: None, tools: None, losses: Vec::new() };
            prop_assert_eq!(run(source, target, &[]), nothing);
        }
    }

    #[test]
    fn there_and_back(acts in spoken::acts(8)) {
        for (source, target) in directions() {
            let messages = spoken::write(source, &acts);
            let there = run(source, target, &messages);
            let back = run(target, source, &there.messages);
            check(source, &back);
            prop_assert_eq!(
                plain(said(source, &messages)),
                plain(said(source, &back.messages)),
                "{} by {}", source, target
            );
        }
    }

    #[test]
    fn damaged_histories_come_out_valid(
        acts in spoken::acts(6),
        damage in prop::collection::vec((0..5_usize, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..5),
    ) {
        for (source, target) in directions() {
            let mut messages = spoken::write(source, &acts);
            for (how, at, other) in &damage {
                spoken::damage(source, &mut messages, *how, *at, *other);
            }
            let nodes: Vec<&Json> = messages.iter().collect();
            let before = messages.clone();
            let found = convert(source, target, &nodes, None, None).unwrap();
            check(target, &found);
            prop_assert_eq!(&before, &messages);
            prop_assert_eq!(&found, &convert(source, target, &nodes, None, None).unwrap());
            // Whatever is not there is listed with its message.
            let everything = json!([found.messages, found.system]).to_string();
            for (index, message) in messages.iter().enumerate() {
                for word in spoken::words(message) {
                    let is_listed = found.losses.iter().any(|loss| loss.index == Some(index));
                    prop_assert!(everything.contains(&word) || is_listed, "{} of {}", word, index);
                }
            }
        }
    }

    #[test]
    fn more_messages_change_no_earlier_id(acts in spoken::acts(6), more in spoken::acts(3)) {
        let all: Vec<Act> = acts.iter().chain(&more).cloned().collect();
        for (source, target) in directions() {
            let first = spoken::write(source, &acts);
            let both = spoken::write(source, &all);
            prop_assert_eq!(&both[..first.len()], &first[..]);
            let first = run(source, target, &first).messages;
            let both = run(source, target, &both).messages;
            // The last message may be merged with what follows.
            let same = first.len().saturating_sub(1);
            prop_assert_eq!(&both[..same], &first[..same]);
        }
    }
}

pub fn user(text: &str) -> Json {
    json!({"role": "user", "content": text})
}

#[test]
fn the_same_dialect_is_the_same_request() {
    let messages = [json!({"role": "tool", "tool_call_id": "a", "content": "late"})];
    let system = json!("Be brief.");
    let nodes: Vec<&Json> = messages.iter().collect();
    let found = convert(OPENAI, OPENAI, &nodes, Some(&&system), None).unwrap();
    assert_eq!(found.messages, messages);
    assert_eq!(found.system, Some(system));
    assert_eq!(found.losses, []);
}

#[test]
fn instructions_go_where_the_target_wants_them() {
    let messages = [
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "developer", "content": [{"type": "text", "text": "Be kind."}]}),
        user("hi"),
    ];
    let hi = json!([{"role": "user", "content": "hi"}]);
    for (target, system, rest) in [
        (
            ANTHROPIC,
            json!([{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]),
            hi.clone(),
        ),
        (
            GEMINI,
            json!({"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}),
            json!([{"role": "user", "parts": [{"text": "hi"}]}]),
        ),
        (
            BEDROCK,
            json!([{"text": "Be brief."}, {"text": "Be kind."}]),
            json!([{"role": "user", "content": [{"text": "hi"}]}]),
        ),
    ] {
        let found = run(OPENAI, target, &messages);
        assert_eq!(found.system, Some(system.clone()));
        assert_eq!(json!(found.messages), rest);
        assert_eq!(found.losses, []);
        // And back: the argument becomes a message, or stays one where there is such an argument.
        let nodes: Vec<&Json> = found.messages.iter().collect();
        let back = convert(target, OPENAI, &nodes, Some(&&system), None).unwrap();
        let texts =
            json!([{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]);
        assert_eq!(
            back.messages,
            [json!({"role": "system", "content": texts}), user("hi")]
        );
        let back = convert(target, RESPONSES, &nodes, Some(&&system), None).unwrap();
        assert_eq!(back.system, Some(json!("Be brief.\n\nBe kind.")));
    }
    let items = clean(OPENAI, RESPONSES, &messages);
    assert_eq!(
        items[1],
        json!({"role": "developer", "content": "Be kind."})
    );
}

#[test]
fn later_instructions_are_the_users_text_where_they_must() {
    let messages = [
        user("hi"),
        json!({"role": "system", "content": "From now on in Korean."}),
        json!({"role": "assistant", "content": "네"}),
    ];
    let found = run(OPENAI, ANTHROPIC, &messages);
    check(ANTHROPIC, &found);
    assert_eq!(kinds(&found), [(Some(1), LossKind::Instruction)]);
    assert_eq!(
        found.messages[0],
        json!({"role": "user", "content": [
            {"type": "text", "text": "hi"},
            {"type": "text", "text": "[system message]\nFrom now on in Korean."},
        ]})
    );
    let items = clean(OPENAI, RESPONSES, &messages);
    assert_eq!(items[1]["role"], "system");
    // A text that looks like the label is no way to become a system message.
    let back = run(ANTHROPIC, OPENAI, &found.messages);
    assert!(
        back.messages
            .iter()
            .all(|message| message["role"] != "system")
    );
}

#[test]
fn refusals_names_and_marks() {
    let messages = [
        json!({"role": "user", "name": "kim", "content": [
            {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}),
        json!({"role": "assistant", "content": null, "refusal": "No."}),
    ];
    let items = run(OPENAI, RESPONSES, &messages);
    assert_eq!(
        kinds(&items),
        [(Some(0), LossKind::CacheMark), (Some(0), LossKind::Name)]
    );
    assert_eq!(
        items.messages[1]["content"],
        json!([{"type": "refusal", "refusal": "No."}])
    );
    assert_eq!(clean(RESPONSES, OPENAI, &items.messages)[1], messages[1]);
    let found = run(OPENAI, ANTHROPIC, &messages);
    assert_eq!(found.losses.last().unwrap().kind, LossKind::Refusal);
    assert_eq!(found.messages[1]["content"][0]["text"], "No.");
}

#[test]
fn blank_messages_go() {
    let messages = [
        user("hi"),
        json!({"role": "assistant", "content": ""}),
        user("   "),
        json!({"role": "assistant", "content": "yo  "}),
    ];
    let found = run(OPENAI, ANTHROPIC, &messages);
    check(ANTHROPIC, &found);
    assert_eq!(
        found.messages,
        [user("hi"), json!({"role": "assistant", "content": "yo"})]
    );
    assert_eq!(
        kinds(&found),
        [
            (Some(1), LossKind::EmptyMessage),
            (Some(2), LossKind::Blank),
            (Some(2), LossKind::EmptyMessage),
            (Some(3), LossKind::Blank),
        ]
    );
}

#[test]
fn server_blocks_of_anthropic() {
    let messages = [
        user("go"),
        json!({"role": "assistant", "content": [
            {"type": "redacted_thinking", "data": "SECRET"},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "cats"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
                {"type": "web_search_result", "title": "Cats", "url": "https://example.org", "encrypted_content": "SECRET"}]},
            {"type": "text", "text": "Cats.", "citations": [{"encrypted_index": "SECRET"}]},
            {"type": "compaction", "content": "So far: cats."}]}),
    ];
    for target in [OPENAI, RESPONSES, GEMINI, BEDROCK] {
        let found = run(ANTHROPIC, target, &messages);
        check(target, &found);
        let text = json!(found.messages).to_string();
        for piece in [
            "web_search",
            "https://example.org",
            "Cats.",
            "So far: cats.",
        ] {
            assert!(text.contains(piece), "{target}: {piece}");
        }
        let kinds: Vec<LossKind> = found.losses.iter().map(|loss| loss.kind).collect();
        assert_eq!(
            kinds,
            [
                LossKind::Citations,
                LossKind::Opaque,
                LossKind::Opaque,
                LossKind::Opaque,
                LossKind::Reasoning,
            ]
        );
    }
}

#[test]
fn what_cannot_be_read_is_an_error_with_its_index() {
    let messages = [user("hi"), json!({"role": "critic", "content": "boo"})];
    let nodes: Vec<&Json> = messages.iter().collect();
    let error = convert(OPENAI, GEMINI, &nodes, None, None).unwrap_err();
    assert_eq!((error.code(), error.index()), ("invalid_message", Some(1)));
    let tools = json!("look");
    let error = convert(OPENAI, GEMINI, &nodes[..1], None, Some(&&tools)).unwrap_err();
    assert_eq!(error.code(), "invalid_message");
}
