"""Python objects and parsed JSON read the same; strings are kept by reference, never copied."""

from __future__ import annotations

import base64
import collections
import dataclasses
import enum
import json
import random
import sys
import types
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from satchel import _core, errors

DIALECTS = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")


def outcome(read: Any, message: Any, dialect: str) -> Any:
    """What a reader made of a message, or the code and sentence of its error."""
    try:
        return read(message, dialect)
    except errors.InputError as error:
        return error.code, str(error)


words = st.sampled_from(
    [
        "role", "content", "type", "text", "user", "assistant", "tool", "system", "function",
        "tool_calls", "function_call", "arguments", "id", "name", "tool_call_id", "tool_use",
        "tool_result", "tool_use_id", "input", "is_error", "thinking", "refusal", "image",
        "function_call_output", "call_id", "output", "reasoning", "shell_call", "model", "parts",
        "functionCall", "functionResponse", "args", "response", "thought", "toolUse", "toolResult",
        "toolUseId",
    ],
)  # fmt: skip
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words
    | st.text(max_size=8)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5),
    max_leaves=20,
)
messages = st.dictionaries(words, values, max_size=4).flatmap(
    lambda fields: st.sampled_from(["user", "assistant", "tool", "system"]).map(
        lambda role: {**fields, "role": role},
    ),
)


@given(messages | values, st.sampled_from(DIALECTS))
def test_objects_and_json_read_the_same(message: Any, dialect: str) -> None:
    text = json.dumps(message, ensure_ascii=False)
    from_objects = outcome(_core.describe_message, message, dialect)
    assert from_objects == outcome(_core.describe_json, text, dialect)


@given(st.text(), st.sampled_from(DIALECTS))
def test_a_text_is_kept_byte_for_byte(text: str, dialect: str) -> None:
    message = {
        "gemini": {"role": "user", "parts": [{"text": text}]},
        "bedrock": {"role": "user", "content": [{"text": text}]},
    }.get(dialect, {"role": "user", "content": text})
    described = _core.describe_message(message, dialect)
    assert described["parts"][0]["page"] == text.encode()


lone = st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF)


@given(st.text() | st.lists(lone | st.characters(), max_size=8).map("".join))
def test_strings_cross_threads_without_the_interpreter(text: str) -> None:
    described = _core.describe_text(text)
    as_counted = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert described["object"] is text
    assert described["utf8"].decode() == as_counted
    assert described["page"] == text.encode("utf-8", "surrogatepass")
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert json.loads(described["json"]) == joined


@pytest.mark.parametrize("text", ["안녕하세요 " * 500, "naïve " * 500, "🙂" * 500, "plain " * 500])
def test_reading_leaves_no_second_copy_in_the_string(text: str) -> None:
    text = text[:-1]
    before = sys.getsizeof(text)
    _core.describe_text(text)
    _core.describe_message({"role": "user", "content": text}, "openai")
    _core.detect_dialect([{"role": text, "content": text}])
    assert sys.getsizeof(text) == before


def test_references_are_given_back() -> None:
    text = f"held {object!s} by reference"
    before = sys.getrefcount(text)
    for _ in range(100):
        _core.describe_text(text)
        _core.describe_message({"role": "user", "content": text}, "openai")
    after = sys.getrefcount(text)
    assert after == before


class Name(str):
    """A string class as frameworks have them."""

    __slots__ = ()

    def isascii(self) -> bool:
        """Lie."""
        raise RuntimeError

    def encode(self, encoding: str = "", errors: str = "") -> bytes:  # noqa: ARG002 - as str has it
        """Lie."""
        raise RuntimeError


class Speaker(enum.StrEnum):
    """A role as frameworks spell it."""

    USER = "user"


def test_string_subclasses() -> None:
    described = _core.describe_message(
        {"role": Speaker.USER, "content": Name("hi\ud800")}, "openai"
    )
    assert described["role"] == "user"
    assert described["parts"][0]["page"] == b"hi\xed\xa0\x80"


class Function(pydantic.BaseModel):
    """As in the SDKs."""

    name: str
    arguments: str


class Call(pydantic.BaseModel):
    """As in the SDKs."""

    id: str
    function: Function
    type: str = "function"


class Reply(pydantic.BaseModel):
    """As in the SDKs: fields without a value are None."""

    model_config = pydantic.ConfigDict(extra="allow")

    role: str
    content: str | list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None


def test_objects_with_fields_read_as_their_dicts() -> None:
    call = Call(id="c1", function=Function(name="look", arguments="{}"))
    reply = Reply(role="assistant", content="Looking.", tool_calls=[call])
    as_dict = reply.model_dump()
    assert _core.describe_message(reply, "openai") == _core.describe_message(as_dict, "openai")

    @dataclasses.dataclass(slots=True)
    class Block:
        type: str
        thinking: str
        signature: str

    block = Block("thinking", "Hm.", "c2ln")
    reply = Reply(role="assistant", content=[block])
    described = _core.describe_message(reply, "anthropic")
    assert json.loads(described["parts"][0]["page"]) == dataclasses.asdict(block)


def test_an_object_is_captured_as_it_would_be_sent() -> None:
    class Thought(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        type: str
        thinking: str
        citations: list[str] | None = None

    thought = Thought.model_validate({"type": "thinking", "thinking": "Hm.", "new": 1})
    described = _core.describe_message({"role": "assistant", "content": [thought]}, "anthropic")
    page = json.loads(described["parts"][0]["page"])
    assert page == thought.model_dump(exclude_unset=True)


@pytest.mark.parametrize(
    "message",
    [
        collections.UserDict({"role": "user", "content": "hi"}),
        types.MappingProxyType({"role": "user", "content": "hi"}),
        collections.OrderedDict[str, str](role="user", content="hi"),
        types.SimpleNamespace(role="user", content="hi"),
    ],
)
def test_other_mappings(message: Any) -> None:
    described = _core.describe_message(message, "openai")
    assert (described["role"], described["parts"][0]["page"]) == ("user", b"hi")


def page_of(value: Any) -> str:
    """The canonical JSON of a captured value."""
    message = {"role": "assistant", "content": [{"type": "tool_use", "input": {"v": value}}]}
    page: bytes = _core.describe_message(message, "anthropic")["parts"][0]["page"]
    return page.decode()[len('{"v":') : -1]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**63, "9223372036854775808"),
        (-(10**40), "-1" + "0" * 40),
        (True, "true"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (enum.IntEnum("Level", "LOW").LOW, "1"),  # type: ignore[attr-defined] # made by the call
        ((1, ("a", None)), '[1,["a",null]]'),
        (b"bytes", '"Ynl0ZXM="'),
        ({"ü": 'q"\\\n\x01'}, '{"ü":"q\\"\\\\\\n\\u0001"}'),
    ],
)
def test_captured_values(value: Any, expected: str) -> None:
    assert page_of(value) == expected


@pytest.mark.parametrize("value", [{1: "x"}, {"x": object()}, {1, 2}, 1j, print, int, [10**5000]])
def test_what_has_no_json_form(value: Any) -> None:
    with pytest.raises(errors.InputError, match="no JSON form") as caught:
        page_of(value)
    assert caught.value.code == "invalid_message"


def test_cycles_are_too_deep() -> None:
    loop: list[Any] = []
    loop.append({"again": loop})
    with pytest.raises(errors.InputError) as caught:
        page_of(loop)
    assert caught.value.code == "too_deep"
    assert (caught.value.index, caught.value.value, caught.value.limit) == (0, 129, 128)


def test_fields_that_raise_are_errors_with_their_place() -> None:
    class Hostile:
        role = "user"

        @property
        def content(self) -> str:
            raise ValueError

    with pytest.raises(errors.InputError, match="content must be") as caught:
        _core.describe_message(Hostile(), "openai")
    assert caught.value.index == 0


@pytest.mark.parametrize("dialect", ["klingon", "", "OpenAI"])
def test_unknown_dialect(dialect: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        _core.describe_message({}, dialect)
    assert caught.value.code == "unknown_dialect"


def test_detection() -> None:
    plain = {"role": "user", "content": "hi"}
    assert _core.detect_dialect([plain] * 3) is None
    assert _core.detect_dialect([plain, {"role": "tool", "content": "x"}]) == "openai"
    message: dict[str, Any] = {"role": "assistant", "content": [{"type": "tool_use"}]}
    assert _core.detect_dialect([plain, message]) == "anthropic"


@pytest.mark.parametrize("size", range(7))
def test_bytes_are_payloads_and_read_as_base64(size: int) -> None:
    payload = bytes(range(250, 250 + size)) if size < 6 else random.Random(0).randbytes(1_000)  # noqa: S311 - not for secrets
    block = {"image": {"format": "png", "source": {"bytes": payload}}}
    message = {"role": "user", "content": [block]}
    page: bytes = _core.describe_message(message, "bedrock")["parts"][0]["page"]
    found = json.loads(page)["image"]["source"]["bytes"]
    assert base64.b64decode(found) == payload
    window = satchel.Assembler("gpt-4o", dialect="bedrock", budget=5_000).assemble([message])
    assert window.messages[0] is message
