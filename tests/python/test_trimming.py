"""`satchel.trim_text`: within its limit, whole lines, valid JSON, and what tells most."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from satchel import _core, trimming
from satchel.errors import InputError
from satchel.trimming import trim_text

DATA = Path(__file__).resolve().parents[1] / "data"

LOG = (
    "2026-03-01 09:00:00 INFO 시작합니다\n"
    + "".join(f"2026-03-01 09:00:{at:02} INFO GET /items/{at} 200\n" for at in range(1, 50))
    + "2026-03-01 09:01:00 ERROR 결제 실패: card 4471\n"
    + "2026-03-01 09:01:01 INFO exited with code 3\n"
)

ROWS = [
    {"id": at, "city": "서울", "price": 10 + at % 3, "note": "문 앞에 두세요"} for at in range(60)
]


def outputs() -> list[str]:
    """Every tool output of the sample runs of chat messages."""
    found: list[str] = []
    for path in sorted(DATA.glob("*.openai.json")):
        run = cast("dict[str, Any]", json.loads(path.read_text(encoding="utf-8")))
        found += [
            message["content"]
            for message in run["messages"]
            if message["role"] == "tool" and isinstance(message["content"], str)
        ]
    return found


OUTPUTS = outputs()


def test_the_names_of_structures_are_those_of_the_core() -> None:
    assert get_args(trimming.Structure) == tuple(_core.text_structures())


def test_what_fits_is_returned_as_it_is() -> None:
    trimmed = trim_text(LOG, max_chars=len(LOG))
    assert trimmed.text == LOG
    assert (trimmed.structure, trimmed.left_out_lines) == ("log", 0)


def test_a_log_keeps_failures_outcomes_and_one_of_each_kind() -> None:
    trimmed = trim_text(LOG, max_tokens=140, pointer="p_7")
    assert satchel.counter("o200k_base").count(trimmed.text) <= 140
    for kept in (
        "시작합니다\n",
        "결제 실패: card 4471\n",
        "exited with code 3\n",
        'page_in("p_7")',
    ):
        assert kept in trimmed.text
    lines = trimmed.text.splitlines(keepends=True)
    markers = [line for line in lines if line.startswith("[… ")]
    assert all(line in LOG for line in lines if line not in markers)
    assert len(lines) - len(markers) + trimmed.left_out_lines == len(LOG.splitlines())


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_json_stays_json(indent: int | None, ensure_ascii: bool) -> None:
    rows = [*ROWS, {"id": 60, "error": "카드가 거절되었습니다"}]
    text = json.dumps({"total": 61, "rows": rows}, indent=indent, ensure_ascii=ensure_ascii)
    trimmed = trim_text(text, max_chars=900, matching=["거절"])
    assert trimmed.structure == "json"
    assert len(trimmed.text) <= 900
    value = json.loads(trimmed.text)
    assert value["total"] == 61
    left = cast("list[object]", value["rows"])
    kept = [row for row in left if not isinstance(row, str)]
    markers = [row for row in left if isinstance(row, str)]
    assert all(row in rows for row in kept)
    assert rows[0] in kept
    assert rows[60] in kept
    assert len(kept) + sum(int(marker.split()[1]) for marker in markers) == 61
    assert trimmed.left_out_lines == 61 - len(kept)


def test_literals_are_kept_first() -> None:
    plain = trim_text(LOG, max_chars=340)
    wanted = trim_text(LOG, max_chars=340, matching=("items/31 ", "items/44 "))
    assert "items/31 " not in plain.text
    assert "GET /items/31 200\n" in wanted.text
    assert "GET /items/44 200\n" in wanted.text


def test_another_counter_counts() -> None:
    called: list[str] = []

    def count(text: str) -> int:
        called.append(text)
        return len(text.split())

    trimmed = trim_text(LOG, max_tokens=40, counter=count)
    assert len(trimmed.text.split()) <= 40
    assert trimmed.text in called
    counter = satchel.counter("cl100k_base")
    trimmed = trim_text(LOG, max_tokens=90, counter=counter)
    assert counter.count(trimmed.text) <= 90
    assert trim_text(LOG, max_tokens=60, counter="chars4").left_out_lines > 0


def test_a_failing_counter_says_so() -> None:
    def count(_: str) -> int:
        raise LookupError

    with pytest.raises(InputError) as caught:
        trim_text(LOG, max_tokens=9, counter=count)
    assert caught.value.code == "counter_failed"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_tokens": 1, "max_chars": 1},
        {"max_chars": -1},
        {"max_chars": 1.5},
        {"max_chars": True},
        {"max_tokens": "9"},
        {"max_chars": 1, "matching": "one string"},
        {"max_chars": 1, "matching": [1]},
        {"max_chars": 1, "matching": 7},
        {"max_chars": 1, "pointer": 7},
    ],
)
def test_wrong_arguments(options: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        trim_text("text", **options)
    assert caught.value.code == "invalid_value"


def test_a_text_that_is_none() -> None:
    with pytest.raises(InputError):
        trim_text(cast("str", b"bytes"), max_chars=3)


def test_lone_surrogates_become_replacement_characters() -> None:
    assert trim_text("a\ud800b", max_chars=9).text == "a\ufffdb"


@given(st.sampled_from(OUTPUTS), st.integers(0, 1500), st.booleans())
def test_within_the_limit(text: str, limit: int, by_tokens: bool) -> None:
    counter = satchel.counter("o200k_base")
    if by_tokens:
        trimmed = trim_text(text, max_tokens=limit, pointer="p_123456789012345678")
        assert counter.count(trimmed.text) <= limit
    else:
        trimmed = trim_text(text, max_chars=limit, pointer="p_123456789012345678")
        assert len(trimmed.text) <= limit
    assert len(trimmed.text) <= len(text)
    assert trim_text(trimmed.text, max_chars=len(text)).text == trimmed.text
    if trimmed.structure == "json" and limit > 200:
        json.loads(trimmed.text)
    if trimmed.left_out_lines and limit > 100:
        assert "p_123456789012345678" in trimmed.text


def test_the_sample_runs_hold_many_structures() -> None:
    found = {trim_text(text, max_chars=len(text)).structure for text in OUTPUTS if len(text) > 200}
    assert {"json", "log", "code", "search", "listing", "diff"} <= found


def recorded_texts() -> list[str]:
    """Texts of 1,000 characters and more in recorded runs; skips where there is no data."""
    root = os.environ.get("SATCHEL_SHARED")
    roots = [Path(root)] if root else [up / "shared" for up in Path(__file__).resolve().parents]
    folders = [folder for root in roots if (folder := root / "data" / "dev").is_dir()]
    if not folders:
        pytest.skip("no shared data: recorded runs are not part of the repository")
    found: set[str] = set()
    names = ("pi_session", "claude_code", "codex_rollout", "swe_agent_traj", "gemini_cli")
    for path in sorted(path for name in names for path in (folders[0] / name).iterdir()):
        for transcript in satchel.read_transcripts([path]):
            collect(transcript.messages, found)
    return sorted(found)


def collect(value: object, found: set[str]) -> None:
    """Adds every long string inside a message."""
    if isinstance(value, str):
        if len(value) >= 1000:
            found.add(value)
    elif isinstance(value, dict):
        for inside in cast("dict[str, object]", value).values():
            collect(inside, found)
    elif isinstance(value, list):
        for inside in cast("list[object]", value):
            collect(inside, found)


def test_recorded_texts_within_a_quarter() -> None:
    texts = recorded_texts()
    assert len(texts) > 100
    seen: set[str] = set()
    for text in texts:
        limit = len(text) // 4
        trimmed = trim_text(text, max_chars=limit, pointer="p_123456789012345678")
        seen.add(trimmed.structure)
        assert len(trimmed.text) <= limit
        assert trimmed.left_out_lines > 0 or "characters left out" in trimmed.text
        assert "p_123456789012345678" in trimmed.text
        if trimmed.structure == "json":
            json.loads(trimmed.text)
    assert {"code", "log", "text", "search", "listing"} <= seen
