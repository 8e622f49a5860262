//! Conversion of images, sounds and documents, also in results.

use satchel_core::dialect::Dialect;
use satchel_core::dialect::convert::LossKind;
use serde_json::{Value as Json, json};

use crate::convert::{
    ANTHROPIC, BEDROCK, GEMINI, OPENAI, RESPONSES, check, clean, kinds, run, user,
};
use crate::convert_calls::result;

pub fn pictures() -> [(Dialect, Json); 5] {
    let data = "iVBORw0KGgo=";
    let url = format!("data:image/png;base64,{data}");
    [
        (
            OPENAI,
            json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}}),
        ),
        (
            RESPONSES,
            json!({"type": "input_image", "image_url": url, "detail": "low"}),
        ),
        (
            ANTHROPIC,
            json!({"type": "image", "source": {
            "type": "base64", "media_type": "image/png", "data": data}}),
        ),
        (
            GEMINI,
            json!({"inlineData": {"mimeType": "image/png", "data": data}}),
        ),
        (
            BEDROCK,
            json!({"image": {"format": "png", "source": {"bytes": data}}}),
        ),
    ]
}

fn said_by_user(dialect: Dialect, block: &Json) -> Json {
    let text = match dialect {
        OPENAI | ANTHROPIC => json!({"type": "text", "text": "Look:"}),
        RESPONSES => json!({"type": "input_text", "text": "Look:"}),
        _ => json!({"text": "Look:"}),
    };
    let key = if dialect == GEMINI {
        "parts"
    } else {
        "content"
    };
    json!({"role": "user", key: [text, block]})
}

#[test]
fn pictures_in_every_direction() {
    for (source, picture) in pictures() {
        for (target, mut expected) in pictures() {
            if source == target {
                continue;
            }
            let has_detail = [OPENAI, RESPONSES].contains(&source);
            if !has_detail && target == OPENAI {
                expected["image_url"]
                    .as_object_mut()
                    .unwrap()
                    .remove("detail");
            } else if !has_detail && target == RESPONSES {
                expected.as_object_mut().unwrap().remove("detail");
            }
            let found = clean(source, target, &[said_by_user(source, &picture)]);
            assert_eq!(
                found,
                [said_by_user(target, &expected)],
                "{source} to {target}"
            );
        }
    }
}

#[test]
fn other_media() {
    let web = json!({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}});
    let sound =
        json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}});
    let paper = json!({"type": "file", "file": {"filename": "Q3 report, final.pdf",
        "file_data": "data:application/pdf;base64,JVBERi0="}});
    let stored = json!({"type": "file", "file": {"file_id": "file-1"}});
    for (block, target, expected) in [
        (
            &web,
            ANTHROPIC,
            Ok(json!({"type": "image", "source": {
            "type": "url", "url": "https://example.org/a.png"}})),
        ),
        (
            &web,
            RESPONSES,
            Ok(json!({"type": "input_image", "image_url": "https://example.org/a.png"})),
        ),
        (
            &web,
            BEDROCK,
            Err("[image left out: https://example.org/a.png]"),
        ),
        (
            &web,
            GEMINI,
            Err("[image left out: https://example.org/a.png]"),
        ),
        (
            &sound,
            GEMINI,
            Ok(json!({"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}})),
        ),
        (
            &sound,
            BEDROCK,
            Ok(json!({"audio": {"format": "wav", "source": {"bytes": "UklGRg=="}}})),
        ),
        (&sound, ANTHROPIC, Err("[audio left out: audio/wav]")),
        (
            &paper,
            ANTHROPIC,
            Ok(json!({"type": "document", "source": {
            "type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
            "title": "Q3 report, final.pdf"})),
        ),
        (
            &paper,
            BEDROCK,
            Ok(
                json!({"document": {"format": "pdf", "name": "Q3 report final pdf",
            "source": {"bytes": "JVBERi0="}}}),
            ),
        ),
        (
            &paper,
            RESPONSES,
            Ok(
                json!({"type": "input_file", "filename": "Q3 report, final.pdf",
            "file_data": "data:application/pdf;base64,JVBERi0="}),
            ),
        ),
        (&stored, ANTHROPIC, Err("[document left out: file file-1]")),
    ] {
        let found = run(OPENAI, target, &[said_by_user(OPENAI, block)]);
        check(target, &found);
        match expected {
            Ok(expected) => {
                assert_eq!(found.losses, []);
                assert_eq!(found.messages, [said_by_user(target, &expected)]);
            }
            Err(note) => {
                assert_eq!(found.losses.len(), 1, "{target}");
                assert!(json!(found.messages).to_string().contains(note), "{target}");
            }
        }
    }
    // A text document is text wherever there is no form for it.
    let notes = json!({"type": "document", "title": "Notes", "source": {
        "type": "text", "media_type": "text/plain", "data": "Buy milk."}});
    let found = run(ANTHROPIC, OPENAI, &[said_by_user(ANTHROPIC, &notes)]);
    assert_eq!(
        found.messages[0]["content"][1]["text"],
        "[document: Notes]\nBuy milk."
    );
    let notes = json!({"inline_data": {"mime_type": "text/plain", "data": "QnV5IG1pbGsu"}});
    let found = clean(GEMINI, ANTHROPIC, &[said_by_user(GEMINI, &notes)]);
    assert_eq!(found[0]["content"][1]["source"]["data"], "Buy milk.");
    // Two documents of one name, and none without a text.
    let paper = json!({"type": "document", "source": {
        "type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}});
    let found = clean(
        ANTHROPIC,
        BEDROCK,
        &[json!({"role": "user", "content": [paper, paper]})],
    );
    let content = &found[0]["content"];
    assert_eq!(content[0], json!({"text": "[document]"}));
    assert_eq!(content[1]["document"]["name"], "document");
    assert_eq!(content[2]["document"]["name"], "document 2");
}

#[test]
fn media_in_results() {
    let messages = [
        user("go"),
        json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "a", "name": "shot", "input": {}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": true,
            "content": [{"type": "text", "text": "here"}, pictures()[2].1]}]}),
    ];
    let bedrock = clean(ANTHROPIC, BEDROCK, &messages);
    assert_eq!(
        bedrock[2]["content"][0]["toolResult"],
        json!({"toolUseId": "a", "content": [{"text": "here"}, pictures()[4].1], "status": "error"})
    );
    assert_eq!(clean(BEDROCK, ANTHROPIC, &bedrock)[2], messages[2]);
    let chat = run(ANTHROPIC, OPENAI, &messages);
    check(OPENAI, &chat);
    assert_eq!(
        kinds(&chat),
        [(Some(2), LossKind::Image), (Some(2), LossKind::ErrorFlag)]
    );
    assert_eq!(chat.messages[2], result("a", "here"));
    assert_eq!(chat.messages[3]["role"], "user");
    let gemini = run(ANTHROPIC, GEMINI, &messages);
    check(GEMINI, &gemini);
    assert_eq!(kinds(&gemini), [(Some(2), LossKind::Image)]);
    let parts = &gemini.messages[2]["parts"];
    assert_eq!(
        parts[0]["functionResponse"]["response"],
        json!({"error": "here"})
    );
    assert_eq!(parts[1], pictures()[3].1);
    // Gemini's own results may hold media.
    let own = [
        gemini.messages[1].clone(),
        json!({"role": "user", "parts": [{"functionResponse": {"id": "a", "name": "shot",
            "response": {"output": "here"}, "parts": [pictures()[3].1]}}]}),
    ];
    let found = run(GEMINI, ANTHROPIC, &own);
    check(ANTHROPIC, &found);
    assert_eq!(
        found.messages[2]["content"][0]["content"][1],
        pictures()[2].1
    );
}

/// A medium of each form that holds nothing: no target takes it, so it is named instead.
#[test]
fn media_without_data() {
    let empty = [
        (
            OPENAI,
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}),
        ),
        (
            OPENAI,
            json!({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}),
        ),
        (
            RESPONSES,
            json!({"type": "input_file", "file_data": "data:application/pdf;base64,"}),
        ),
        (
            ANTHROPIC,
            json!({"type": "image", "source": {
            "type": "base64", "media_type": "image/png", "data": ""}}),
        ),
        (
            ANTHROPIC,
            json!({"type": "document", "source": {
            "type": "text", "media_type": "text/plain", "data": ""}}),
        ),
        (
            GEMINI,
            json!({"inlineData": {"mimeType": "image/png", "data": ""}}),
        ),
        (
            BEDROCK,
            json!({"document": {"format": "txt", "name": "a", "source": {"text": ""}}}),
        ),
    ];
    for (source, block) in &empty {
        for target in Dialect::ALL.into_iter().filter(|target| target != source) {
            let converted = run(*source, target, &[said_by_user(*source, block)]);
            check(target, &converted);
        }
    }
}
