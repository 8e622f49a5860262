//! The reader of Bedrock Converse messages: role, parts, places, keys.

use satchel_core::ErrorKind;
use satchel_core::dialect::{Dialect, detect, read_system};
use satchel_core::message::{PartKind, Place, Role};
use serde_json::json;

use crate::dialect::{failure, keys, parts, read};

const BEDROCK: Dialect = Dialect::Bedrock;

#[test]
fn blocks_keep_their_place() {
    let image = json!({"image": {"format": "png", "source": {"bytes": "AA=="}}});
    let paper = json!({"document": {"format": "pdf", "name": "a", "source": {"bytes": "AA=="}}});
    let film = json!({"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://a"}}}});
    let point = json!({"cachePoint": {"type": "default"}});
    let guard = json!({"guardContent": {"text": {"text": "hi"}}});
    let message = read(
        BEDROCK,
        &json!({"role": "user", "content": [{"text": "Look:"}, image, paper, film, point, guard]}),
    )
    .unwrap();
    assert_eq!(message.role, Role::User);
    assert_eq!(
        parts(&message),
        [
            (PartKind::Text, Place::BlockText(0), "Look:".into()),
            (PartKind::Image, Place::Block(1), image.to_string()),
            (PartKind::File, Place::Block(2), paper.to_string()),
            (PartKind::File, Place::Block(3), film.to_string()),
            (PartKind::Opaque, Place::Block(4), point.to_string()),
            (PartKind::Opaque, Place::Block(5), guard.to_string()),
        ]
    );
}

#[test]
fn calls_results_and_reasoning() {
    let thought =
        json!({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}});
    let call = json!({"role": "assistant", "content": [
        thought, {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"a": 1}}},
    ]});
    let call = read(BEDROCK, &call).unwrap();
    assert_eq!(call.role, Role::Assistant);
    assert_eq!(
        parts(&call),
        [
            (PartKind::Reasoning, Place::Block(0), thought.to_string()),
            (PartKind::Call, Place::ToolUseInput(1), r#"{"a":1}"#.into()),
        ]
    );
    assert_eq!(keys(&call), [(Some("c1"), Some("look"))]);
    let content = json!([{"text": "42"}, {"json": {"n": 42}}]);
    let results = json!({"role": "user", "content": [
        {"toolResult": {"toolUseId": "c1", "content": content, "status": "error"}},
        {"toolResult": {"toolUseId": "c2", "content": null}},
    ]});
    let results = read(BEDROCK, &results).unwrap();
    assert_eq!(
        parts(&results),
        [
            (
                PartKind::Result,
                Place::ToolResultContent(0),
                content.to_string()
            ),
            (PartKind::Result, Place::ToolResultContent(1), String::new()),
        ]
    );
    assert!(results.parts[0].is_error);
    assert!(!results.parts[1].is_error);
}

#[test]
fn wrong_messages() {
    assert_eq!(
        failure(BEDROCK, &json!({"role": "user", "content": "hi"})),
        "message 7: content must be a list, got a string"
    );
    assert_eq!(
        failure(BEDROCK, &json!({"role": "system", "content": []})),
        "message 7: role must be user or assistant, got a string"
    );
    assert_eq!(
        failure(
            BEDROCK,
            &json!({"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": "42"}}]})
        ),
        "message 7: content[0].toolResult.content must be a list, got a string"
    );
    let foreign = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]});
    let error = read(BEDROCK, &foreign).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DialectChanged);
}

#[test]
fn told_by_blocks_without_a_type() {
    for block in [
        json!({"text": "hi"}),
        json!({"toolUse": {"toolUseId": "c", "name": "f", "input": {}}}),
        json!({"toolResult": {"toolUseId": "c", "content": []}}),
    ] {
        let message = json!({"role": "user", "content": [block]});
        assert_eq!(detect([&message]), Some(BEDROCK), "{block}");
    }
}

#[test]
fn system_blocks_may_hold_cache_points() {
    let system = json!([{"text": "Be brief."}, {"cachePoint": {"type": "default"}}]);
    let read = read_system(&&system).unwrap();
    assert_eq!(read.parts[0].kind, PartKind::Text);
    assert_eq!(read.parts[1].kind, PartKind::Opaque);
}
