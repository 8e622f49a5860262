"""Any value for any argument of the public surface: a result, or an error of this package.

Every function, constructor and method is walked by its signature, so that a new parameter is
either covered or makes a test fail. What a caller's own object raises comes out as it is, or as
the cause of an error of ours.
"""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import pytest

import satchel
from satchel import models, replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
MOST_CHARS = 1_000
"""Characters of an error's text, however large the value that it is about."""


class BoomError(Exception):
    """What the hostile objects raise."""


def _boom(*_: object) -> NoReturn:
    raise BoomError


class SilentRepr:
    """No value of any kind, and one that cannot be shown."""

    __repr__ = __str__ = _boom  # pyright: ignore[reportAssignmentType] - hostile


class Raising(dict[str, Any]):
    """A dict that cannot be read through its methods."""

    keys = items = values = get = __getitem__ = __iter__ = __contains__ = _boom  # pyright: ignore[reportAssignmentType] - hostile


class RaisingMapping:
    """A mapping that cannot be read."""

    keys = items = __getitem__ = __iter__ = _boom


class RaisingFields:
    """An object whose attributes raise."""

    @property
    def role(self) -> str:
        """Never comes back."""
        raise BoomError

    content = name = id = type = role


def _midway() -> Iterator[dict[str, str]]:
    yield {"role": "user", "content": "Is the ferry late?"}
    raise BoomError


def _cyclic_list() -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


def _cyclic_dict() -> dict[str, Any]:
    cycle: dict[str, Any] = {"role": "user"}
    cycle["content"] = cycle
    return cycle


def _cyclic_reply() -> dict[str, Any]:
    cycle: dict[str, Any] = {"role": "assistant", "object": "response"}
    for key in ("content", "parts", "output", "tool_calls"):
        cycle[key] = [cycle]
    return cycle


def _deep() -> list[Any]:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


HOSTILE: dict[str, Callable[[], object]] = {
    "none": lambda: None,
    "bool": lambda: True,
    "int": lambda: 7,
    "negative": lambda: -1,
    "huge": lambda: 10**5_000,
    "float": lambda: 0.5,
    "nan": lambda: float("nan"),
    "bytes": lambda: b"bytes" * 10_000,
    "text": lambda: "no such thing " * 10_000,
    "surrogate": lambda: "half \ud83d",
    "nul": lambda: "nul \0",
    "set": lambda: {"one"},
    "cyclic list": _cyclic_list,
    "cyclic dict": _cyclic_dict,
    "cyclic reply": _cyclic_reply,
    "list of cyclic": lambda: [_cyclic_dict()],
    "deep": _deep,
    "list of deep": lambda: [{"role": "user", "content": _deep()}],
    "silent": SilentRepr,
    "list of silent": lambda: [SilentRepr()],
    "raising dict": lambda: Raising(role="user", content="x"),
    "list of raising dicts": lambda: [Raising(role="user", content="x")],
    "raising mapping": RaisingMapping,
    "list of raising mappings": lambda: [RaisingMapping()],
    "list of raising fields": lambda: [RaisingFields()],
    "raising midway": _midway,
    "int keys": lambda: {1: 2},
    "type": lambda: dict,
    "function": lambda: _boom,
    "object": object,
}


class Subject(NamedTuple):
    """Something to call with one argument replaced: ``make`` gives it, ``valid`` the arguments."""

    make: Callable[[], Callable[..., object]]
    valid: dict[str, Any]


MESSAGES = [{"role": "user", "content": "Is the ferry late?"}]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CALL = {"id": "a", "type": "function", "function": {"name": "page_in", "arguments": "{}"}}
REQUEST = {"messages": MESSAGES, "system": None, "tools": [TOOL]}
RUN = ROOT / "tests/data/service.openai.json"
GIVEN: dict[str, object] = {"summary": None, "memories": (), "query": None}


def packer() -> satchel.Assembler:
    return satchel.Assembler("gpt-4o", budget=2_000)


def working_set() -> satchel.WorkingSet:
    return packer().working_set(MESSAGES)


def _read(**given: Any) -> list[satchel.Transcript]:
    return list(satchel.read_transcripts(**given))


def _register(**given: Any) -> None:
    models.register(**given)
    models.unregister(given["name"])  # for the tests behind this one


SUBJECTS: dict[str, Subject] = {
    "Assembler": Subject(
        lambda: satchel.Assembler,
        {
            "model": "gpt-4o",
            "budget": 2_000,
            "policy": "adaptive",
            "counter": "o200k_base",
            "dialect": "openai",
            "on_damage": "repair",
        },
    ),
    "Assembler.assemble": Subject(
        lambda: packer().assemble,
        {**REQUEST, **GIVEN, "events": (), "stakes": "normal", "open_calls": "raise"},
    ),
    "Assembler.working_set": Subject(lambda: packer().working_set, {**REQUEST, "events": ()}),
    "Assembler.settings_event": Subject(
        lambda: packer().settings_event, {"system_tokens": 0, "tools_tokens": 0}
    ),
    "Budget": Subject(
        lambda: satchel.Budget, {"tokens": None, "reserve_tokens": None, "memory_tokens": None}
    ),
    "Budget.resolve": Subject(lambda: satchel.Budget().resolve, {"model": models.get("gpt-4o")}),
    "Calibration": Subject(
        lambda: satchel.Calibration,
        {
            "factor": 1.0,
            "offset": 0.0,
            "n": 0,
            "estimated": 0,
            "reported": 0,
            "counted_growth": 0.0,
            "reported_growth": 0.0,
            "error": 0.0,
        },
    ),
    "Calibration.observe": Subject(
        lambda: satchel.Calibration().observe, {"estimated": 100, "usage": 110}
    ),
    "Calibration.estimate": Subject(lambda: satchel.Calibration().estimate, {"tokens": 100}),
    "Counter": Subject(
        lambda: satchel.Counter,
        {"encoding": "o200k_base", "exact": None, "margin": None, "rules": None},
    ),
    "Counter.count": Subject(lambda: satchel.counter("gpt-4o").count, {"text": "x"}),
    "Counter.count_many": Subject(lambda: satchel.counter("gpt-4o").count_many, {"texts": ["x"]}),
    "Counter.fits": Subject(lambda: satchel.counter("gpt-4o").fits, {"text": "x", "max_tokens": 4}),
    "Counter.truncate": Subject(
        lambda: satchel.counter("gpt-4o").truncate,
        {"text": "x", "max_tokens": 4, "keep": "head"},
    ),
    "Counter.count_messages": Subject(
        lambda: satchel.counter("gpt-4o").count_messages,
        {**REQUEST, "dialect": "openai", "calibration": None},
    ),
    "Policy.preset": Subject(lambda: satchel.Policy.preset, {"name": "adaptive"}),
    "Policy.from_toml": Subject(lambda: satchel.Policy.from_toml, {"source": ""}),
    "WorkingSet": Subject(
        lambda: satchel.WorkingSet, {"assembler": packer(), **REQUEST, "events": ()}
    ),
    "WorkingSet.append": Subject(lambda: working_set().append, {"messages": MESSAGES}),
    "WorkingSet.apply": Subject(
        lambda: working_set().apply, {"event": {"kind": "pin", "index": 0}}
    ),
    "WorkingSet.explain": Subject(lambda: working_set().explain, {"index": 0}),
    "WorkingSet.handle_page_call": Subject(
        lambda: working_set().handle_page_call, {"call": CALL, "max_tokens": 500}
    ),
    "WorkingSet.handle_page_calls": Subject(
        lambda: working_set().handle_page_calls,
        {"reply": {"role": "assistant", "content": "x"}, "max_tokens": 500},
    ),
    "WorkingSet.page_in": Subject(
        lambda: working_set().page_in,
        {"pointer": "p_000000000000000000", "pattern": None, "lines": None},
    ),
    "WorkingSet.pin": Subject(lambda: working_set().pin, {"index": 0}),
    "WorkingSet.unpin": Subject(lambda: working_set().unpin, {"index": 0}),
    "WorkingSet.window": Subject(
        lambda: working_set().window,
        {**GIVEN, "system": None, "tools": None, "stakes": "normal", "open_calls": "raise"},
    ),
    "Window.as_kwargs": Subject(lambda: working_set().window().as_kwargs, {"store": None}),
    "Window.diff": Subject(lambda: working_set().window().diff, {"other": working_set().window()}),
    "allocate_budget": Subject(
        lambda: satchel.allocate_budget, {"total_tokens": 100, "shares": None}
    ),
    "convert": Subject(
        lambda: satchel.convert, {**REQUEST, "source": "openai", "target": "anthropic"}
    ),
    "counter": Subject(
        lambda: satchel.counter, {"model_or_encoding": "gpt-4o", "tokenizer": "o200k_base"}
    ),
    "is_overflow_error": Subject(lambda: satchel.is_overflow_error, {"error": "x"}),
    "lint": Subject(
        lambda: satchel.lint,
        {**REQUEST, "dialect": "openai", "model": None, "previous": None},
    ),
    "overflow_details": Subject(lambda: satchel.overflow_details, {"error": "x"}),
    "page_tool": Subject(lambda: satchel.page_tool, {"dialect": "openai"}),
    "prune_tool_outputs": Subject(
        lambda: satchel.prune_tool_outputs,
        {"messages": MESSAGES, "max_chars": 150, "keep_last": 3, "strip": ()},
    ),
    "redact": Subject(
        lambda: satchel.redact, {"text": "ada@example.org", "kinds": None, "keep_originals": False}
    ),
    "redact_many": Subject(
        lambda: satchel.redact_many, {"texts": ["x"], "kinds": None, "keep_originals": False}
    ),
    "read_transcripts": Subject(
        lambda: _read,
        {
            "paths": str(RUN),
            "format": "auto",
            "on_error": "raise",
            "on_read": None,
        },
    ),
    "repair": Subject(
        lambda: satchel.repair,
        {**REQUEST, "dialect": "openai", "model": None, "mode": "synthesize"},
    ),
    "score_messages": Subject(
        lambda: satchel.score_messages,
        {"messages": MESSAGES, "weights": None, "query": None, "model": None, "counter": None},
    ),
    "sliding_window": Subject(
        lambda: satchel.sliding_window,
        {"messages": MESSAGES, "max_messages": 3, "dialect": None},
    ),
    "token_window": Subject(
        lambda: satchel.token_window,
        {
            "messages": MESSAGES,
            "max_tokens": 100,
            "model": None,
            "counter": None,
            "dialect": None,
        },
    ),
    "trim_text": Subject(
        lambda: satchel.trim_text,
        {
            "text": "x",
            "max_tokens": 100,
            "max_chars": None,
            "counter": None,
            "pointer": None,
            "matching": (),
        },
    ),
    "usage_tokens": Subject(lambda: satchel.usage_tokens, {"response": {"usage": {}}}),
    "models.get": Subject(lambda: models.get, {"name": "gpt-4o"}),
    "models.register": Subject(
        lambda: _register,
        {"name": "acme", "window": 1_000, "encoding": "chars4"},
    ),
    "models.register_file": Subject(lambda: models.register_file, {"path": Path("no such file")}),
    "models.unregister": Subject(lambda: models.unregister, {"name": "no-such-model"}),
    "Model.input_budget": Subject(
        lambda: models.get("gpt-4o").input_budget, {"reserve_tokens": None}
    ),
    "replay.run": Subject(
        lambda: replay.run,
        {
            "paths": str(RUN),
            "policies": ["sliding-window"],
            "budget": 0.5,
            "model": None,
            "counter": "chars4",
            "format": "auto",
            "min_calls": 2,
            "pictures": 0,
            "seed": 0,
            "threads": 1,
            "on_error": "raise",
            "progress": None,
        },
    ),
}
POSITIONAL: dict[str, tuple[str, ...]] = {
    "Calibration.observe": ("estimated", "usage"),
    "Calibration.estimate": ("tokens",),
    "Counter": ("encoding",),
    "Counter.count": ("text",),
    "Counter.count_many": ("texts",),
    "Counter.count_messages": ("messages",),
}
APART = {"open_session", "open_memory"}
"""Asynchronous: their arguments are tested with the stores and the memories."""

UNSIGNED = {"models.register", "read_transcripts"}
CALLED = {"on_read", "progress"}
"""Functions of the caller's, whose own errors come out."""

UNTYPED = {
    ("usage_tokens", "response"),
    ("is_overflow_error", "error"),
    ("overflow_details", "error"),
    ("lint", "messages"),
    ("lint", "system"),
    ("lint", "tools"),
    ("repair", "system"),
    ("repair", "tools"),
}
"""What may be anything: a finding of `lint` says what is wrong, `repair` counts marks."""

SHAPES = {"system", "tools", "calibration", "lines", "event", "messages", "max_chars", "keep"}
"""Whose errors say what is accepted, and not always the class that was found."""

WORDS = {("Counter", "encoding"): "counter", ("Policy.preset", "name"): "policy"}
ITERATED = {"messages", "events", "paths", "policies", "matching", "strip", "previous"}
"""Arguments that are gone through: what a generator raises on the way comes out."""


def _call(name: str, replaced: str, value: object) -> object:
    make, valid = SUBJECTS[name]
    given = {**valid, replaced: value}
    first = [given.pop(key) for key in POSITIONAL.get(name, ())]
    return make()(*first, **given)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("name", "parameter"), [(name, one) for name, row in SUBJECTS.items() for one in row.valid]
)
def test_a_wrong_value_gives_a_typed_error(name: str, parameter: str) -> None:
    for kind, make in HOSTILE.items():
        if parameter in CALLED and kind == "type":
            continue  # a class is a function too, and what it raises is the caller's
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a model that is not known
            try:
                _call(name, parameter, make())
            except satchel.SatchelError as error:
                text = str(error)
                assert text.isprintable(), (kind, text[:200])
                assert len(text) <= MOST_CHARS, (kind, text[:200])
                raised = any(isinstance(one, BoomError) for one in _causes(error))
                assert raised or parameter not in ITERATED or kind != "raising midway", text
            except BoomError:
                pass  # the caller's own
            else:
                assert parameter not in ITERATED or kind != "raising midway"


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        (name, one)
        for name, row in SUBJECTS.items()
        for one in row.valid
        if (name, one) not in UNTYPED
    ],
)
def test_an_error_names_the_argument(name: str, parameter: str) -> None:
    with pytest.raises(satchel.SatchelError) as raised:
        _call(name, parameter, SilentRepr())
    assert WORDS.get((name, parameter), parameter) in str(raised.value)
    assert "SilentRepr" in str(raised.value) or parameter in SHAPES


def _parameters(called: Callable[..., object]) -> set[str]:
    return {
        parameter.name
        for parameter in inspect.signature(called).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }


def test_every_public_function_and_parameter_is_covered() -> None:
    modules = {"": satchel, "models.": models, "replay.": replay}
    functions = {
        f"{prefix}{name}": value
        for prefix, module in modules.items()
        for name in module.__all__
        if inspect.isroutine(value := getattr(module, name))
    }
    assert functions.keys() - APART <= SUBJECTS.keys()
    for name, row in SUBJECTS.items():
        called = functions.get(name) or row.make()
        if name in UNSIGNED:
            continue
        missing = _parameters(called) - row.valid.keys()
        assert missing == set(), name


def test_every_method_is_covered() -> None:
    classes = [satchel.Assembler, satchel.Budget, satchel.Calibration, satchel.Counter]
    classes += [satchel.WorkingSet, satchel.Window]
    for one in classes:
        for name, value in vars(one).items():
            if name.startswith("_") or not inspect.isroutine(value):
                continue
            if _parameters(value) - {"self"}:
                assert f"{one.__name__}.{name}" in SUBJECTS


def test_the_callers_own_exception_is_not_taken_for_the_end() -> None:
    with pytest.raises(BoomError):
        satchel.lint(_midway(), "openai")
    with pytest.raises(BoomError):
        satchel.repair(_midway(), "openai")
    with pytest.raises(BoomError):
        satchel.convert(_midway(), "openai", "anthropic")
    with pytest.raises(BoomError):
        packer().assemble(_midway())


def test_a_list_in_itself_is_no_reply() -> None:
    for wrong in (_cyclic_list(), _cyclic_reply(), _deep()):
        with pytest.raises(satchel.InputError, match=r"no call or reply|one call"):
            working_set().handle_page_call(wrong)
