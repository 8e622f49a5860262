//! The reader of Responses items: role, parts, places, keys.

use satchel_core::ErrorKind;
use satchel_core::dialect::{Dialect, detect};
use satchel_core::message::{Field, PartKind, Place, Role};
use serde_json::{Value, json};

use crate::dialect::{failure, keys, parts, read};

const RESPONSES: Dialect = Dialect::Responses;

#[test]
fn messages_in_all_their_forms() {
    let image = json!({"type": "input_image", "image_url": "https://example.org/a.png"});
    let file = json!({"type": "input_file", "file_id": "f"});
    let refusal = json!({"type": "refusal", "refusal": "No."});
    let message = read(
        RESPONSES,
        &json!({"role": "user", "content": [{"type": "input_text", "text": "Look:"}, image, file]}),
    )
    .unwrap();
    assert_eq!(message.role, Role::User);
    assert_eq!(
        parts(&message),
        [
            (PartKind::Text, Place::BlockText(0), "Look:".into()),
            (PartKind::Image, Place::Block(1), image.to_string()),
            (PartKind::File, Place::Block(2), file.to_string()),
        ]
    );
    let answer = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "A cat.", "annotations": []}, refusal]});
    let answer = read(RESPONSES, &answer).unwrap();
    assert_eq!(answer.role, Role::Assistant);
    assert_eq!(
        parts(&answer),
        [
            (PartKind::Text, Place::BlockText(0), "A cat.".into()),
            (PartKind::Opaque, Place::Block(1), refusal.to_string()),
        ]
    );
    let plain = read(
        RESPONSES,
        &json!({"role": "developer", "content": "Be brief."}),
    )
    .unwrap();
    assert_eq!(plain.role, Role::Developer);
    assert_eq!(
        parts(&plain),
        [(PartKind::Text, Place::Content, "Be brief.".into())]
    );
}

/// Role, kind, place, page, id and name of an item of one part.
fn only(
    item: &Value,
) -> (
    Role,
    PartKind,
    Place,
    String,
    Option<String>,
    Option<String>,
) {
    let message = read(RESPONSES, item).unwrap();
    let [(kind, place, page)] = &parts(&message)[..] else {
        panic!("one part")
    };
    let key = keys(&message).first().copied().unwrap_or_default();
    let owned = |text: Option<&str>| text.map(str::to_owned);
    (
        message.role,
        *kind,
        *place,
        page.clone(),
        owned(key.0),
        owned(key.1),
    )
}

#[test]
fn calls_of_every_kind() {
    let action = json!({"type": "exec", "command": ["ls"]});
    let fixed = Place::Field;
    for (item, place, page, name) in [
        (
            json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "look",
                "arguments": "{\"a\":1}"}),
            Place::Arguments,
            r#"{"a":1}"#.to_owned(),
            Some("look"),
        ),
        (
            json!({"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "free"}),
            Place::Input,
            "free".to_owned(),
            Some("patch"),
        ),
        (
            json!({"type": "local_shell_call", "id": "x", "call_id": "c", "action": action}),
            fixed(Field::LocalShellAction),
            action.to_string(),
            None,
        ),
        (
            json!({"type": "shell_call", "call_id": "c", "action": action}),
            fixed(Field::ShellAction),
            action.to_string(),
            None,
        ),
        (
            json!({"type": "computer_call", "call_id": "c", "actions": [action]}),
            fixed(Field::ComputerActions),
            json!([action]).to_string(),
            None,
        ),
        (
            json!({"type": "apply_patch_call", "call_id": "c", "operation": {"path": "a"}}),
            fixed(Field::Operation),
            r#"{"path":"a"}"#.to_owned(),
            None,
        ),
        (
            json!({"type": "tool_search_call", "call_id": "c", "arguments": {"paths": []}}),
            fixed(Field::Arguments),
            r#"{"paths":[]}"#.to_owned(),
            None,
        ),
        (
            json!({"type": "program", "id": "p", "call_id": "c", "code": "f()", "fingerprint": "x"}),
            fixed(Field::Code),
            "f()".to_owned(),
            None,
        ),
        (
            json!({"type": "mcp_approval_request", "id": "c", "name": "rm", "arguments": "{}",
                "server_label": "disk"}),
            fixed(Field::Arguments),
            "{}".to_owned(),
            Some("rm"),
        ),
    ] {
        let expected = (
            Role::Assistant,
            PartKind::Call,
            place,
            page,
            Some("c".to_owned()),
            name.map(str::to_owned),
        );
        assert_eq!(only(&item), expected, "{item}");
    }
}

#[test]
fn outputs_of_every_kind() {
    let shell =
        json!([{"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]);
    let screen = json!({"type": "computer_screenshot", "image_url": "data:image/png;base64,AA=="});
    let blocks = json!([{"type": "input_text", "text": "42"}]);
    for (item, place, page, id) in [
        (
            json!({"type": "function_call_output", "call_id": "c", "output": "42"}),
            Place::Output,
            "42".to_owned(),
            Some("c"),
        ),
        (
            json!({"type": "function_call_output", "call_id": "c", "output": blocks}),
            Place::Output,
            blocks.to_string(),
            Some("c"),
        ),
        (
            json!({"type": "custom_tool_call_output", "call_id": "c", "output": "done"}),
            Place::Output,
            "done".to_owned(),
            Some("c"),
        ),
        // It carries only its own id: it answers the first open call.
        (
            json!({"type": "local_shell_call_output", "id": "x", "output": "{}"}),
            Place::OutputText,
            "{}".to_owned(),
            None,
        ),
        (
            json!({"type": "shell_call_output", "call_id": "c", "output": shell}),
            Place::ShellOutput,
            shell.to_string(),
            Some("c"),
        ),
        (
            json!({"type": "apply_patch_call_output", "call_id": "c", "status": "failed",
                "output": "no such file"}),
            Place::OutputText,
            "no such file".to_owned(),
            Some("c"),
        ),
        (
            json!({"type": "computer_call_output", "call_id": "c", "output": screen}),
            Place::Field(Field::Output),
            screen.to_string(),
            Some("c"),
        ),
        (
            json!({"type": "tool_search_output", "call_id": null, "tools": []}),
            Place::Field(Field::Tools),
            "[]".to_owned(),
            None,
        ),
        (
            json!({"type": "program_output", "id": "po", "call_id": "c", "result": "7"}),
            Place::ResultText,
            "7".to_owned(),
            Some("c"),
        ),
        (
            json!({"type": "mcp_approval_response", "approval_request_id": "c", "approve": true}),
            Place::Field(Field::Approve),
            "true".to_owned(),
            Some("c"),
        ),
    ] {
        let id = id.map(str::to_owned);
        let expected = (Role::Tool, PartKind::Result, place, page, id, None);
        assert_eq!(only(&item), expected, "{item}");
        let failed = item["status"] == "failed";
        assert_eq!(read(RESPONSES, &item).unwrap().parts[0].is_error, failed);
    }
}

#[test]
fn other_items_stay_whole() {
    let reasoning =
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gA"});
    let page = reasoning.to_string();
    let expected = (
        Role::Assistant,
        PartKind::Reasoning,
        Place::Item,
        page,
        None,
        None,
    );
    assert_eq!(only(&reasoning), expected);
    for item in [
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
        json!({"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "output": "x"}),
        json!({"type": "item_reference", "id": "msg_1"}),
        json!({"id": "msg_1"}),
        json!({"type": "hologram", "depth": 3}),
    ] {
        let page = item.to_string();
        let expected = (
            Role::Assistant,
            PartKind::Opaque,
            Place::Item,
            page,
            None,
            None,
        );
        assert_eq!(only(&item), expected, "{item}");
    }
    // What declares tools or settings stays in force, and so does what stands for the history.
    for item in [
        json!({"type": "compaction", "id": "cmp", "encrypted_content": "gA"}),
        json!({"type": "additional_tools", "role": "developer", "tools": []}),
        json!({"type": "configuration_update", "reasoning": {"effort": "low"}}),
    ] {
        assert_eq!(only(&item).0, Role::Developer, "{item}");
    }
    // Kinds to come pair by their names and ids.
    let call = only(&json!({"type": "quantum_call", "call_id": "q", "qubits": 3}));
    assert_eq!((call.1, call.4.as_deref()), (PartKind::Call, Some("q")));
    let output = only(&json!({"type": "quantum_call_output", "call_id": "q", "spin": "up"}));
    assert_eq!(
        (output.1, output.4.as_deref()),
        (PartKind::Result, Some("q"))
    );
}

#[test]
fn errors_name_the_path() {
    assert_eq!(
        failure(RESPONSES, &json!({"type": 3})),
        "message 7: type must be a string, got a number"
    );
    assert_eq!(
        failure(RESPONSES, &json!({"content": "x"})),
        "message 7: type must be a string, got null"
    );
    assert_eq!(
        failure(RESPONSES, &json!({"type": "function_call", "call_id": 4})),
        "message 7: call_id must be a string, got a number"
    );
    assert_eq!(
        failure(
            RESPONSES,
            &json!({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text"}]})
        ),
        "message 7: output[0].text must be a string, got null"
    );
    for foreign in [
        json!({"role": "tool", "tool_call_id": "a", "content": "x"}),
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}),
    ] {
        let error = read(RESPONSES, &foreign).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DialectChanged, "{foreign}");
    }
}

#[test]
fn told_by_items_and_blocks() {
    let user = json!({"role": "user", "content": "hi"});
    let system = json!({"role": "system", "content": "Be brief."});
    assert_eq!(detect([&user]), None);
    assert_eq!(detect([&system, &user]), Some(Dialect::OpenAi));
    for sign in [
        json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}),
        json!({"type": "reasoning", "summary": []}),
        json!({"type": "message", "role": "user", "content": "hi"}),
        json!({"role": "user", "content": [{"type": "input_text", "text": "hi"}]}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}),
    ] {
        assert_eq!(detect([&sign]), Some(RESPONSES), "{sign}");
        // Plain messages with instructions in front look the same in both.
        assert_eq!(detect([&system, &user, &sign]), Some(RESPONSES), "{sign}");
    }
    // An answer as Anthropic's client dumps it.
    let answer = json!({"type": "message", "role": "assistant", "id": "msg_1",
        "content": [{"type": "text", "text": "hi"}]});
    assert_eq!(detect([&answer]), None);
}
