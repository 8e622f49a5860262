"""A window in a terminal and in a notebook: its messages begin there, and act on nothing."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any, NoReturn

import pytest

import satchel
from commands import HOSTILE, hidden_characters
from satchel.testing import generate_history

HTML = "<script>alert(1)</script><img src=x onerror=alert(1)> & \"quoted\" 'text'"


def packed(messages: list[Any], dialect: str | None = None) -> satchel.Window:
    return satchel.Assembler("gpt-4o", budget=20_000, dialect=dialect).assemble(messages)


class Tags(HTMLParser):
    """Collects tags and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def html_of(window: satchel.Window) -> str:
    return window._repr_html_()  # pyright: ignore[reportPrivateUsage] - the name that notebooks call


def test_a_terminal_shows_figures_and_beginnings() -> None:
    window = packed(
        [{"role": "user", "content": "Hello there"}, {"role": "assistant", "content": "x"}]
    )
    first, *rest = repr(window).split("\n")
    assert f"{window.tokens:,} of 20,000 tokens" in first
    assert "2 openai messages for gpt-4o" in first
    assert rest == ["   0  user       Hello there", "   1  assistant  x"]


def test_many_messages_are_told_by_the_first_and_the_last() -> None:
    window = packed([{"role": "user", "content": f"number {at}"} for at in range(100)])
    lines = repr(window).split("\n")
    assert len(lines) == 42
    assert lines[21].split() == ["…", "60", "more", "messages"]
    assert "number 99" in lines[-1]


def test_hostile_content_acts_on_nothing() -> None:
    messages = [{"role": "user", "content": text} for text in (HOSTILE, HTML)]
    window = packed(messages)
    assert not hidden_characters(repr(window))
    tags = Tags()
    tags.feed(html_of(window))
    assert tags.tags == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert any(HTML[:60] in text for text in tags.texts)
    assert not hidden_characters(html_of(window))


@pytest.mark.parametrize(
    "dialect", ["openai", "anthropic", "openai-responses", "gemini", "bedrock"]
)
def test_every_dialect_is_shown(dialect: Any) -> None:
    given = satchel.convert(generate_history(30), "openai", dialect)
    window = satchel.Assembler("gpt-4o", budget=200_000, dialect=dialect).assemble(
        given.messages, system=given.system, tools=given.tools
    )
    lines = repr(window).split("\n")[1:]
    assert len(lines) == min(41, len(window.messages))
    # Some items begin with nothing that can be shown; most do not.
    assert sum(len(line.split()) > 2 for line in lines) > len(lines) // 2


def columns() -> Any:
    packer = satchel.Assembler("gpt-4o", budget=4_000)
    working_set = packer.working_set(generate_history(60))
    working_set.window(open_calls="synthesize")
    return working_set.columns


def test_columns_become_an_arrow_table() -> None:
    pytest.importorskip("pyarrow")
    given = columns()
    found = given.to_arrow()
    assert found.num_rows == len(given.level)
    assert found["tokens"].to_pylist() == given.tokens.tolist()
    names = [given.level_names[at] for at in given.level]
    assert found["level"].to_pylist() == names
    assert set(names) > {"verbatim"}
    assert found.column_names == [
        *("first", "end", "tokens", "original_tokens", "salience", "compaction"),
        *("level", "fidelity", "reason"),
    ]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_columns_become_frames(package: str) -> None:
    given = columns()
    found = getattr(given, f"to_{package}")()
    assert list(found["level"]) == [given.level_names[at] for at in given.level]
    assert list(found["tokens"]) == given.tokens.tolist()


@pytest.mark.parametrize("name", ["arrow", "pandas", "polars"])
def test_a_missing_package_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = {"arrow": "pyarrow"}.get(name, name)

    def missing(wanted: str) -> NoReturn:
        raise ImportError(wanted)

    given = columns()
    monkeypatch.setattr("satchel._frames.import_module", missing)
    with pytest.raises(ImportError, match=f"to_{name} needs {package}"):
        getattr(given, f"to_{name}")()
