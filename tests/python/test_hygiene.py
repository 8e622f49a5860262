"""What no file of the repository may hold: other people's hosts, machine paths, loose ends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (".ci", "benches", "docs", "examples", "python", "rust", "tests")
CODE = {".rs", ".py", ".pyi"}
TEXT = CODE | {".toml", ".md", ".json", ".txt", "", ".jsonl", ".html"}
BUILT = {"target", "__pycache__", "results"}
LONGEST = 700
LONGEST_STUB = 900
"""An extension module has one stub, however many nouns it exports."""


def pattern(*pieces: str) -> re.Pattern[str]:
    """Any of the pieces; a ``~`` in them keeps this file from matching itself."""
    return re.compile("|".join(pieces).replace("~", ""), re.IGNORECASE)


HOSTS = pattern(
    r"py~pi\.org",
    r"python~hosted",
    r"crates~\.io",
    r"npm~js\.",
    r"deb\.~debian",
    r"proxy\.~golang",
)
MACHINE = pattern(r"(?<![\w.])/(?:wo~rk|ro~ot|ho~me/\w+|us~ers/\w+)/")
LOOSE_ENDS = re.compile(r"\b(?:TOD[O]|FIXM[E]|X{3})\b")
VAGUE = {"utils", "util", "helpers", "helper", "manager", "misc", "common"}


def files() -> list[Path]:
    """Every text file of the repository, without what a build leaves behind."""
    found = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    return sorted(
        path
        for path in found
        if path.suffix in TEXT and not BUILT & set(path.relative_to(ROOT).parts)
    )


def lines_with(wanted: re.Pattern[str], chosen: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in chosen
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if wanted.search(line)
    ]


def test_the_walk_sees_the_sources() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in files()}
    assert {"Makefile", ".ci/run", "python/satchel/errors.py", "rust/core/src/lib.rs"} <= names


def test_no_registry_host() -> None:
    # Cargo.lock names its registry on every line; nothing else may.
    assert lines_with(HOSTS, [path for path in files() if path.name != "Cargo.lock"]) == []


def test_no_path_of_somebody_s_machine() -> None:
    # Transcripts in tests/data tell of made-up machines.
    chosen = [path for path in files() if ROOT / "tests" / "data" not in path.parents]
    assert lines_with(MACHINE, chosen) == []


def test_no_loose_end() -> None:
    chosen = [path for path in files() if path.suffix in CODE]
    assert lines_with(LOOSE_ENDS, chosen) == []


def test_every_exemption_has_a_reason() -> None:
    bare = re.compile(
        r"#\s*noqa(?!: [A-Z]+\d+(?:, [A-Z]+\d+)* - \w)|#\s*type: ignore(?!\[[\w, -]+\]\s+#)|"
        r"#\s*pyright: ignore(?!\[\w+(?:, \w+)*\] - \w)|#!?\[allow\((?!.*reason)"
    )
    chosen = [path for path in files() if path.suffix in CODE and path != Path(__file__)]
    # rustfmt may put the reason of a long list on its own line
    assert [line for line in lines_with(bare, chosen) if not line.endswith(("(", ","))] == []


@pytest.mark.parametrize("suffix", sorted(CODE))
def test_one_noun_a_file(suffix: str) -> None:
    chosen = [path for path in files() if path.suffix == suffix]
    long = {
        path.relative_to(ROOT).as_posix(): count
        for path in chosen
        if (count := len(path.read_text(encoding="utf-8").splitlines()))
        > (LONGEST_STUB if suffix == ".pyi" else LONGEST)
    }
    assert long == {}
    assert [path.as_posix() for path in chosen if path.stem in VAGUE] == []


def test_ci_runs_only_make_targets() -> None:
    steps = [
        line
        for line in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    assert [line for line in steps if not line.startswith(("set ", "cd "))] == [
        "make check",
        "make browser",
        "make test",
    ]
