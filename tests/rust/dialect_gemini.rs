//! The reader of Gemini contents: role, parts, places, keys, in both spellings.

use satchel_core::dialect::{Dialect, detect, read_system};
use satchel_core::message::{PartKind, Place, Role};
use serde_json::json;

use crate::dialect::{failure, keys, parts, read};

const GEMINI: Dialect = Dialect::Gemini;

#[test]
fn parts_keep_their_place() {
    let image = json!({"inlineData": {"mimeType": "image/png", "data": "AA=="}});
    let sound = json!({"file_data": {"mime_type": "audio/wav", "file_uri": "gs://a"}});
    let paper = json!({"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b"}});
    let novel = json!({"hologram": {"depth": 3}});
    let message = read(
        GEMINI,
        &json!({"role": "user", "parts": [{"text": "Look:"}, image, sound, paper, novel]}),
    )
    .unwrap();
    assert_eq!(message.role, Role::User);
    assert_eq!(
        parts(&message),
        [
            (PartKind::Text, Place::PartText(0), "Look:".into()),
            (PartKind::Image, Place::Part(1), image.to_string()),
            (PartKind::Audio, Place::Part(2), sound.to_string()),
            (PartKind::File, Place::Part(3), paper.to_string()),
            (PartKind::Opaque, Place::SignedPart(4), novel.to_string()),
        ]
    );
}

#[test]
fn calls_and_responses_in_both_spellings() {
    let model = json!({"role": "model", "parts": [
        {"functionCall": {"id": "c1", "name": "look", "args": {"a": 1}}},
        {"function_call": {"name": "ping", "args": null}},
    ]});
    let model = read(GEMINI, &model).unwrap();
    assert_eq!(model.role, Role::Assistant);
    assert_eq!(
        parts(&model),
        [
            (PartKind::Call, Place::PartArgs(0), r#"{"a":1}"#.into()),
            (PartKind::Call, Place::PartArgsSnake(1), String::new()),
        ]
    );
    assert_eq!(
        keys(&model),
        [(Some("c1"), Some("look")), (None, Some("ping"))]
    );
    let results = json!({"role": "function", "parts": [
        {"functionResponse": {"id": "c1", "name": "look", "response": {"output": "42"}}},
        {"function_response": {"name": "ping", "response": {"error": "gone"}}},
    ]});
    let results = read(GEMINI, &results).unwrap();
    assert_eq!(results.role, Role::Tool);
    assert_eq!(
        parts(&results),
        [
            (
                PartKind::Result,
                Place::PartResponse(0),
                r#"{"output":"42"}"#.into()
            ),
            (
                PartKind::Result,
                Place::PartResponseSnake(1),
                r#"{"error":"gone"}"#.into()
            ),
        ]
    );
    assert!(!results.parts[0].is_error);
    assert!(results.parts[1].is_error);
}

#[test]
fn what_a_signature_is_bound_to_stays() {
    let thought = json!({"text": "hm", "thought": true});
    let message = json!({"role": "model", "parts": [
        thought,
        {"text": "So:", "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "look", "args": {}}, "thought_signature": "c2ln"},
        {"text": "", "thoughtSignature": "c2ln"},
        {"text": "open", "thoughtSignature": null, "thought": null},
    ]});
    let message = read(GEMINI, &message).unwrap();
    assert_eq!(
        parts(&message),
        [
            (
                PartKind::Reasoning,
                Place::SignedPart(0),
                thought.to_string()
            ),
            (PartKind::Text, Place::SignedPart(1), "So:".into()),
            (PartKind::Call, Place::SignedPart(2), "{}".into()),
            (PartKind::Text, Place::SignedPart(3), String::new()),
            (PartKind::Text, Place::PartText(4), "open".into()),
        ]
    );
    // Media of a result stand beside its response.
    let result = json!({"functionResponse": {"name": "shot", "response": {"ok": true},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}]}});
    let message = read(GEMINI, &json!({"role": "user", "parts": [result]})).unwrap();
    assert_eq!(message.parts[0].place, Place::SignedPart(0));
}

#[test]
fn empty_contents_and_wrong_ones() {
    for empty in [
        json!({"role": "model"}),
        json!({"parts": null}),
        json!({"role": "user", "parts": []}),
    ] {
        assert!(read(GEMINI, &empty).unwrap().parts.is_empty());
    }
    assert_eq!(
        failure(GEMINI, &json!({"role": "user", "content": "hi"})),
        "message 7: parts must be a list, got null"
    );
    assert_eq!(
        failure(GEMINI, &json!({"role": "critic", "parts": []})),
        "message 7: role must be user, model or function, got a string"
    );
    assert_eq!(
        failure(
            GEMINI,
            &json!({"parts": [{"functionCall": {"name": "f", "args": "{}"}}]})
        ),
        "message 7: parts[0].functionCall.args must be an object, got a string"
    );
    assert_eq!(
        failure(GEMINI, &json!({"parts": ["hi"]})),
        "message 7: parts[0] must be an object, got a string"
    );
}

#[test]
fn told_by_parts_and_by_the_model() {
    for sign in [
        json!({"role": "user", "parts": [{"text": "hi"}]}),
        json!({"parts": [{"text": "hi"}]}),
        json!({"role": "model", "parts": null}),
    ] {
        assert_eq!(detect([&sign]), Some(GEMINI), "{sign}");
    }
}

#[test]
fn system_instructions() {
    for system in [
        json!({"parts": [{"text": "Be brief."}]}),
        json!(["Be brief."]),
        json!([{"text": "Be brief."}]),
        json!("Be brief."),
    ] {
        let read = read_system(&&system).unwrap();
        assert_eq!(read.parts[0].body.page_bytes(), b"Be brief.", "{system}");
    }
}
