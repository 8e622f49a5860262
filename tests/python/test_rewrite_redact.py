"""Stored conversations written anew without personal data and secrets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from satchel.batch import rewrite, rewrite_batches
from satchel.errors import InputError
from satchel.testing import generate_history

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "gpt-4o"
MAIL, PHONE, KEY = "kim@example.com", "010-1234-5678", "password=hunter22"


def written(tmp_path: Path, record: object, **options: Any) -> tuple[dict[str, Any], str]:
    """The first record, and all that was written."""
    given = tmp_path / "in.jsonl"
    given.write_text(f"{json.dumps(record)}\n{json.dumps(record)}\n", encoding="utf-8")
    out = tmp_path / "out.jsonl"
    pages = tmp_path / "pages.jsonl"
    chosen: dict[str, Any] = {"model": MODEL, "budget": 20_000, "redact": True, **options}
    rewrite(given, out, pages=pages, restart=True, **chosen)
    texts = [path.read_text(encoding="utf-8") for path in tmp_path.glob("*.jsonl") if path != given]
    return json.loads(out.read_text(encoding="utf-8").splitlines()[0]), "\n".join(texts)


def call(arguments: str) -> dict[str, Any]:
    function = {"name": "mail", "arguments": arguments}
    return {"id": "c1", "type": "function", "function": function}


def tool_history(arguments: str, result: str) -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": f"You answer for {MAIL}."},
        {"role": "user", "content": f"Write to {MAIL}, or call {PHONE}."},
        {"role": "assistant", "content": None, "tool_calls": [call(arguments)]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]


def test_a_value_has_one_placeholder_in_the_whole_conversation(tmp_path: Path) -> None:
    given = tool_history(json.dumps({"to": [MAIL], "cc": "lee@example.com"}), f"sent to {MAIL}")
    record, everything = written(tmp_path, {"messages": given})
    messages = record["messages"]
    assert messages[0]["content"] == "You answer for [EMAIL_1]."
    assert messages[1]["content"] == "Write to [EMAIL_1], or call [PHONE_1]."
    arguments = json.loads(messages[2]["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"to": ["[EMAIL_1]"], "cc": "[EMAIL_2]"}
    assert messages[3]["content"] == "sent to [EMAIL_1]"
    assert MAIL not in everything
    report = json.loads((tmp_path / "out.jsonl.report.jsonl").read_text("utf-8").splitlines()[0])
    assert report["redacted"] == 6
    assert report["violations_left"] == 0


def test_without_it_nothing_is_looked_for(tmp_path: Path) -> None:
    given = tool_history(json.dumps({"to": MAIL}), f"sent to {MAIL}")
    record, _ = written(tmp_path, {"messages": given}, redact=False)
    assert record["messages"] == given
    assert "redacted" not in (tmp_path / "out.jsonl.report.jsonl").read_text("utf-8")


def test_kinds_are_chosen(tmp_path: Path) -> None:
    given = [{"role": "user", "content": f"{MAIL} has {KEY}"}]
    record, _ = written(tmp_path, {"messages": given}, redact=["secrets"])
    assert record["messages"][0]["content"] == f"{MAIL} has password=[PASSWORD_1]"
    with pytest.raises(InputError, match="kinds"):
        written(tmp_path, {"messages": given}, redact=["names"])


@pytest.mark.parametrize(
    "arguments",
    [
        {"card": 4111111111111111},
        {"text": f"Dear\n{MAIL}"},
        {"password": "hunter22xyz", "note": 'a "quoted" word'},
        {"deep": [{"mail": MAIL}, None, True, 1.5]},
    ],
)
def test_arguments_stay_json(tmp_path: Path, arguments: dict[str, Any]) -> None:
    record, everything = written(
        tmp_path, {"messages": tool_history(json.dumps(arguments), "done")}
    )
    found = json.loads(record["messages"][2]["tool_calls"][0]["function"]["arguments"])
    assert found.keys() == arguments.keys()
    assert found != arguments
    for value in (MAIL, "4111111111111111", "hunter22xyz"):
        assert value not in everything


def test_placeholders_that_stand_there_already_are_not_given_again(tmp_path: Path) -> None:
    given = [
        {"role": "user", "content": f"From {MAIL}"},
        {"role": "assistant", "content": "I know [EMAIL_1] only."},
        {"role": "user", "content": "And?"},
    ]
    record, _ = written(tmp_path, {"messages": given})
    assert record["messages"][0]["content"] == "From [EMAIL_2]"


def test_ids_and_payloads_stay_and_signed_reasoning_goes(tmp_path: Path) -> None:
    image = {"type": "base64", "media_type": "image/png", "data": "kim@example.com"}
    given: list[dict[str, Any]] = [
        {
            "role": "user",
            "content": [{"type": "text", "text": MAIL}, {"type": "image", "source": image}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": f"It is {MAIL}.", "signature": "s1"},
                {"type": "thinking", "thinking": "Nothing here.", "signature": "s2"},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "t1", "name": "find", "input": {"name": MAIL}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": MAIL}],
        },
    ]
    record, _ = written(
        tmp_path, {"messages": given, "system": f"For {MAIL}"}, model="claude-sonnet-4-5"
    )
    assert record["system"] == "For [EMAIL_1]"
    first, answer, result = record["messages"]
    assert first["content"][0]["text"] == "[EMAIL_1]"
    assert first["content"][1]["source"] == image
    assert [block["type"] for block in answer["content"]] == ["thinking", "text", "tool_use"]
    assert answer["content"][0]["signature"] == "s2"
    assert answer["content"][2] == {**given[1]["content"][3], "input": {"name": "[EMAIL_1]"}}
    assert result["content"][0]["content"] == "[EMAIL_1]"


def test_windows_that_shrink_are_clean_and_valid(tmp_path: Path) -> None:
    history = generate_history(80, seed=4)
    for index, message in enumerate(history):
        if message["role"] == "tool":
            message["content"] += f"\nasked by user{index % 5}@example.com"
    record, everything = written(tmp_path, {"messages": history}, budget=3_000)
    assert "@example.com" not in everything
    found = satchel.lint(record["messages"], "openai")
    assert not [one for one in found if one.severity == "error"]
    again, _ = written(tmp_path, {"messages": history}, budget=3_000)
    assert again == record


def test_batches_are_redacted_too() -> None:
    pyarrow: Any = pytest.importorskip("pyarrow")
    texts = [json.dumps([{"role": "user", "content": f"mail {MAIL}"}])]
    batch = pyarrow.record_batch({"messages": texts})
    [found] = rewrite_batches([batch], model=MODEL, redact=True)
    assert json.loads(found["messages"][0].as_py())[0]["content"] == "mail [EMAIL_1]"
