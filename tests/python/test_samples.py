"""The sample transcripts and the generators: valid by a checker of their own, and as documented."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import re
import struct
import subprocess
import sys
import types
import warnings
import zlib
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import satchel
from satchel import testing

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).parents[1] / "data"
FILES = sorted(path.name for path in DATA.glob("*.json*"))
DIALECTS: tuple[Literal["openai", "anthropic"], ...] = ("openai", "anthropic")
ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
Message = dict[str, Any]


def load(name: str) -> tuple[str, list[Message], Message]:
    """A sample's dialect, messages and head (empty for JSON lines)."""
    text = (DATA / name).read_text(encoding="utf-8")
    if name.endswith(".jsonl"):
        return name.split(".")[1], [json.loads(line) for line in text.splitlines()], {}
    head = json.loads(text)
    return head["dialect"], head["messages"], head


def violations(messages: list[Message], dialect: str, *, repeats: bool = False) -> list[str]:
    """What is wrong with a history; an independent reading of the providers' rules."""
    found = _openai(messages) if dialect == "openai" else _anthropic(messages)
    ids = [call_id for message in messages for call_id, _, _ in calls(message)]
    found += [f"bad id {i!r}" for i in ids if not (isinstance(i, str) and ID.fullmatch(i))]
    if not repeats and len({*ids}) < len(ids):
        found.append("repeated id")
    return found


def calls(message: Message) -> Iterator[tuple[Any, str, Any]]:
    """Id, name and arguments of each call of a message."""
    tool_calls: list[Message] = message.get("tool_calls") or []
    for call in tool_calls:
        yield call["id"], call["function"]["name"], call["function"]["arguments"]
    for block in blocks(message):
        if block["type"] == "tool_use":
            yield block["id"], block["name"], block["input"]


def blocks(message: Message) -> list[Message]:
    """The content of a message as a list of parts; a string is none."""
    content = message.get("content")
    return cast("list[Message]", content) if isinstance(content, list) else []


def results(messages: list[Message]) -> list[str]:
    """The text of every tool result."""
    texts: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            content = message["content"]
            texts.append(
                content if isinstance(content, str) else "".join(p["text"] for p in content)
            )
        texts += [b["content"] for b in blocks(message) if b["type"] == "tool_result"]
    return texts


def _openai(messages: list[Message]) -> list[str]:  # noqa: C901 - a rule per branch
    found: list[str] = []
    open_ids: list[str] = []
    talk = [m for m in messages if m["role"] not in ("system", "developer")]
    if talk and talk[0]["role"] != "user":
        found.append("does not begin with the user")
    for at, message in enumerate(messages):
        role, content = message["role"], message.get("content")
        if role == "tool":
            if message["tool_call_id"] in open_ids:
                open_ids.remove(message["tool_call_id"])
            else:
                found.append(f"{at}: result without a call")
            continue
        if open_ids:
            found.append(f"{at}: unanswered {open_ids}")
        open_ids = [call_id for call_id, _, _ in calls(message)]
        if role not in ("system", "developer", "user", "assistant"):
            found.append(f"{at}: role {role!r}")
        if content is None and not open_ids:
            found.append(f"{at}: null content")
        if content == []:
            found.append(f"{at}: empty list")
        if any(not isinstance(arguments, str) for _, _, arguments in calls(message)):
            found.append(f"{at}: arguments are not a string")
    if open_ids:
        found.append(f"end: unanswered {open_ids}")
    return found


def _anthropic(messages: list[Message]) -> list[str]:  # noqa: C901 - a rule per branch
    found: list[str] = []
    if messages and messages[0]["role"] != "user":
        found.append("does not begin with the user")
    for before, after in pairwise(messages):
        if before["role"] == after["role"]:
            found.append("roles do not alternate")
    previous: list[str] = []
    for at, message in enumerate(messages):
        content = message["content"]
        if content == [] or (isinstance(content, str) and not content.strip()):
            found.append(f"{at}: empty")
        kinds = [block["type"] for block in blocks(message)]
        answers = [b["tool_use_id"] for b in blocks(message) if b["type"] == "tool_result"]
        if kinds[: len(answers)] != ["tool_result"] * len(answers):
            found.append(f"{at}: results are not first")
        if missing := [i for i in previous if i not in answers]:
            found.append(f"{at}: unanswered {missing}")
        if len(answers) > len({*answers} & {*previous}):
            found.append(f"{at}: result without a call")
        for block in blocks(message):
            if block["type"] == "text" and not block["text"].strip():
                found.append(f"{at}: blank text")
            if block["type"] == "thinking" and not block["signature"]:
                found.append(f"{at}: no signature")
        previous = [call_id for call_id, _, _ in calls(message)]
    if previous:
        found.append(f"end: unanswered {previous}")
    return found


@pytest.mark.parametrize("name", FILES)
def test_sample_is_valid(name: str) -> None:
    dialect, messages, _ = load(name)
    found = violations(messages, dialect, repeats=name.startswith("odd"))
    if name.startswith("abort"):
        (only,) = found
        assert re.fullmatch(r"\d+: unanswered \['[a-zA-Z0-9_]+'\]", only)
    else:
        assert found == []


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".json")])
def test_sample_has_a_head_and_declares_its_tools(name: str) -> None:
    dialect, messages, head = load(name)
    assert name.split(".")[1] == dialect
    assert (head["source"], head["licence"]) == ("written for satchel", "Apache-2.0")
    assert head["title"]
    assert head["model"]
    assert ("system" in head) == (dialect == "anthropic")
    schemas: dict[str, Message] = {}
    for tool in head["tools"]:
        entry = tool["function"] if dialect == "openai" else tool
        schemas[entry["name"]] = entry["parameters" if dialect == "openai" else "input_schema"]
    for message in messages:
        for _, tool_name, arguments in calls(message):
            schema = schemas[tool_name]
            if name.startswith("odd"):
                continue
            values = json.loads(arguments) if dialect == "openai" else arguments
            assert {*schema["required"]} <= {*values} <= {*schema["properties"]}


def test_samples_cover_what_they_are_for() -> None:
    runs = Counter(name.split(".")[0] for name in FILES)
    assert len(runs) >= 10
    assert sum(count > 1 for count in runs.values()) >= 3
    assert sum((DATA / name).stat().st_size for name in FILES) <= 3_000_000
    assert len(load("ops.openai.json")[1]) > 300
    large = [
        text for text in results(load("coding.openai.json")[1]) if 5_000 <= len(text) <= 40_000
    ]
    assert len({*large}) >= 5
    assert not load("chat.openai.json")[2]["tools"]
    korean = json.dumps(load("korean.openai.json")[1], ensure_ascii=False)
    assert all(word in korean for word in ("결정", "확정", "중요", "반드시"))
    thinking = [b for m in load("thinking.anthropic.json")[1] for b in blocks(m)]
    kinds = Counter(block["type"] for block in thinking)
    assert kinds["thinking"] > 3
    assert kinds["redacted_thinking"] == 1
    assert any(block.get("is_error") for block in thinking)


def test_the_long_run_states_its_instructions_early() -> None:
    messages = load("ops.openai.json")[1]
    early = json.dumps(messages[:2])
    for rule in (
        "Never restart mx-07 without asking",
        "never run `relayctl purge`",
        "times in UTC",
    ):
        assert rule in early
    plans = [m["content"] for m in messages if m["role"] == "tool" and "# TW-2291" in m["content"]]
    assert len({*plans}) >= 4


@pytest.mark.parametrize("run", ["abort", "coding", "korean", "ops", "service"])
def test_both_forms_of_a_run_say_the_same(run: str) -> None:
    chat, blocked = load(f"{run}.openai.json")[1], load(f"{run}.anthropic.json")[1]
    assert results(chat) == results(blocked)
    shown = [(name, json.loads(arguments)) for m in chat for _, name, arguments in calls(m)]
    assert shown == [(name, arguments) for m in blocked for _, name, arguments in calls(m)]


def test_odd_shapes_are_there() -> None:
    messages = load("odd.openai.json")[1]
    assert {message["role"] for message in messages} == {"developer", "user", "assistant", "tool"}
    ids = Counter(call_id for message in messages for call_id, _, _ in calls(message))
    assert ids["call_0"] > 3
    assert any(m["role"] == "tool" and m["content"] == "" for m in messages)
    images = [
        b["image_url"]["url"] for m in messages for b in blocks(m) if b["type"] == "image_url"
    ]
    assert len(images) == 2
    for url in images:
        data = base64.b64decode(url.removeprefix("data:image/png;base64,"), validate=True)
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        at = 8
        while at < len(data):
            (length,) = struct.unpack_from(">I", data, at)
            body = data[at + 4 : at + 8 + length]
            assert struct.unpack_from(">I", data, at + 8 + length) == (zlib.crc32(body),)
            at += 12 + length


def test_readme_lists_every_sample_with_its_size() -> None:
    rows: dict[str, tuple[int, int]] = {}
    for line in (DATA / "README.md").read_text(encoding="utf-8").splitlines():
        if match := re.match(r"\| `([a-z.]+)` \| ([\d,]+) \| ([\d,]+) \|", line):
            rows[match[1]] = (int(match[2].replace(",", "")), int(match[3].replace(",", "")))
    found = {name: (len(load(name)[1]), (DATA / name).stat().st_size) for name in FILES}
    assert rows == found


def test_samples_are_what_the_script_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(DATA), *sys.path])
    spec = importlib.util.spec_from_file_location("make_samples", DATA / "make_samples.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    made: dict[str, str] = script.contents()
    assert sorted(made) == FILES
    for name, text in made.items():
        assert (DATA / name).read_bytes() == text.encode(), f"{name}: run make_samples.py again"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("count", [*range(12), 100, 4_001])
def test_generated_history_is_valid(count: int, dialect: Literal["openai", "anthropic"]) -> None:
    for seed in range(3):
        messages = testing.generate_history(count, seed=seed, dialect=dialect, result_chars=90)
        assert len(messages) == count
        assert violations(messages, dialect) == []


@pytest.mark.parametrize("dialect", get_args(testing.Dialect))
@pytest.mark.parametrize("count", [*range(6), 101, 2_000])
def test_generated_history_breaks_no_rule(count: int, dialect: testing.Dialect) -> None:
    messages = testing.generate_history(count, seed=4, dialect=dialect, result_chars=90)
    assert len(messages) == count
    # The shortest have nothing to send yet.
    expected = {"no_messages"} if count < 2 else set[str]()
    assert {found.code for found in satchel.lint(messages, dialect)} <= expected


@pytest.mark.parametrize("dialect", DIALECTS)
def test_generated_sizes_are_heavy_tailed(dialect: Literal["openai", "anthropic"]) -> None:
    sizes: list[int] = []
    for message in testing.iter_history(50_000, seed=5, dialect=dialect):
        sizes += [len(text) for text in results([message])]
    sizes.sort()
    quantile = {share: sizes[int(len(sizes) * share)] for share in (0.5, 0.9, 0.99)}
    # Tolerances are three standard errors of these quantiles at this many results.
    assert quantile[0.5] == pytest.approx(212, rel=0.06)
    assert quantile[0.9] == pytest.approx(5_163, rel=0.07)
    assert quantile[0.99] == pytest.approx(39_905, rel=0.14)
    assert sizes[0] >= 1
    assert sizes[-1] <= testing.LARGEST_RESULT


def test_generated_texts_are_new_and_identifiers_recur() -> None:
    messages = testing.generate_history(6_000, seed=1)
    longer = [text for text in results(messages) if len(text) > 200]
    assert len({*longer}) == len(longer)
    paths: Counter[str] = Counter()
    for message in messages:
        for _, name, arguments in calls(message):
            if name == "read_file":
                paths[json.loads(arguments)["path"]] += 1
    assert paths.most_common(1)[0][1] > 20
    assert any("가" <= letter <= "힣" for text in longer for letter in text)
    records = [text for text in longer if text.startswith('{"id"')]
    assert len(records) > 100
    assert all(isinstance(json.loads(text)["records"], list) for text in records)


def test_generated_history_has_the_turns_asked_for() -> None:
    messages = testing.generate_history(3_000, seed=2, turns=30, result_chars=50)
    assert 20 <= sum(message["role"] == "user" for message in messages) <= 40
    sizes = [len(text) for text in results(messages)]
    assert 37 <= min(sizes) <= max(sizes) <= 63


def test_generators_are_deterministic_in_every_process() -> None:
    code = (
        "import hashlib, json; from satchel import testing as t;"
        "made = [t.generate_history(400, seed=9), t.generate_history(400, seed=9,"
        " dialect='anthropic'), t.generate_chat(200, seed=9)];"
        "print(hashlib.sha256(json.dumps(made).encode()).hexdigest())"
    )
    root = str(Path(testing.__file__).parents[2])
    digests = {
        subprocess.run(  # noqa: S603 - our own interpreter and code
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": root, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("0", "1", "4242")
    }
    made = [
        testing.generate_history(400, seed=9),
        testing.generate_history(400, seed=9, dialect="anthropic"),
        testing.generate_chat(200, seed=9),
    ]
    assert digests == {hashlib.sha256(json.dumps(made).encode()).hexdigest()}
    assert testing.generate_history(400, seed=10) != made[0]


def test_iter_history_streams_the_same_messages() -> None:
    stream = testing.iter_history(10**9, seed=4, result_chars=40)
    assert list(islice(stream, 50)) == testing.generate_history(10**3, seed=4, result_chars=40)[:50]


def test_generated_chat_alternates_and_has_the_size_asked_for() -> None:
    messages = testing.generate_chat(2_000, seed=3)
    assert [m["role"] for m in messages[:4]] == ["user", "assistant", "user", "assistant"]
    sizes = [len(message["content"]) for message in messages]
    assert 300 <= min(sizes) <= max(sizes) <= 500
    assert sum(sizes) / len(sizes) == pytest.approx(400, rel=0.02)
    assert len({message["content"] for message in messages}) == len(messages)
    assert violations(messages, "anthropic") == []


@pytest.mark.parametrize(
    "arguments", [{"count": -1}, {"count": 5, "turns": 0}, {"count": 5, "result_chars": 0}]
)
def test_generators_refuse_bad_arguments(arguments: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="least"):
        testing.iter_history(**arguments)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - on purpose
    with pytest.raises(ValueError, match="least"):
        testing.generate_chat(3, chars=0)
    with pytest.raises(ValueError, match="known are"):
        testing.iter_history(3, dialect="latin")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - on purpose


@pytest.mark.parametrize("dialect", DIALECTS)
def test_undamaged_histories_are_valid(dialect: Literal["openai", "anthropic"]) -> None:
    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(testing.histories(dialect))
    def check(messages: list[Message]) -> None:
        assert violations(messages, dialect) == []
        json.dumps(messages).encode()

    check()


DAMAGES = {
    "orphan": r'"content": "late"',
    "repeated id": r'"id": "call_0".*"id": "call_0"',
    "empty content": r'"content": (null|\[\]|""|" )',
    "unknown block": r'"hologram"',
    "wrong type": r'"content": 7|"role": 3',
    "bytes": r"b'raw'",
    "not finite": r"NaN|Infinity",
    "block of nothing": r"\{\}",
    "lone surrogate": r"half \\ud8[0-9a-f]{2}",
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_reaches_every_kind(damage: str, dialect: Literal["openai", "anthropic"]) -> None:
    broken = find(
        testing.histories(dialect, damage=True),
        lambda messages: re.search(DAMAGES[damage], json.dumps(messages, default=repr)) is not None,
        settings=settings(
            max_examples=20_000, database=None, derandomize=True, phases=[Phase.generate]
        ),
    )
    assert all(isinstance(message, dict) for message in broken)


def test_strategies_compose() -> None:
    pair = st.tuples(testing.histories(max_steps=2), testing.histories("anthropic", max_steps=2))
    both = find(pair, lambda two: bool(two[0]) and bool(two[1]))
    assert both[1][0]["role"] == "user"


@pytest.mark.parametrize("debug", [True, False])
def test_require_release_warns_about_a_debug_build(
    monkeypatch: pytest.MonkeyPatch, *, debug: bool
) -> None:
    core = types.ModuleType("satchel._core")
    monkeypatch.setattr(core, "debug_build", debug, raising=False)
    monkeypatch.setitem(sys.modules, "satchel._core", core)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        testing.require_release()
    assert [warning.category for warning in caught] == [RuntimeWarning] * debug


def test_testing_imports_nothing_heavy() -> None:
    code = (
        "import sys, satchel.testing as t; t.generate_chat(3);"
        "heavy = ('hypothesis', 'numpy', 'pydantic', 'satchel._core');"
        "print([name for name in heavy if name in sys.modules])"
    )
    root = str(Path(testing.__file__).parents[2])
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
