"""The examples in the docstrings of every module run and give what they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

import satchel
from satchel import models

if TYPE_CHECKING:
    from collections.abc import Iterator

# The native module's docstrings have no examples of their own: the public faces show them.
# What the second environment is for is tried there, in tests/bridges.
ELSEWHERE = {"pydantic_ai"}
MODULES = ["satchel"] + [
    f"satchel.{found.name}"
    for found in pkgutil.iter_modules(satchel.__path__)
    if found.name not in ELSEWHERE
]
FINDER = doctest.DocTestFinder(exclude_empty=True)


def examples(name: str) -> list[doctest.DocTest]:
    module = importlib.import_module(name)
    return [test for test in FINDER.find(module, name) if test.examples]


@pytest.fixture(autouse=True)
def no_model_stays_registered() -> Iterator[None]:
    yield
    with suppress(satchel.InputError):  # what the example of `register` has added
        models.unregister("acme-7b")


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name: str) -> None:
    for test in examples(name):
        said: list[str] = []
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
        assert "".join(said) == ""


def test_the_front_page_and_the_main_classes_have_examples() -> None:
    having = {test.name for name in MODULES for test in examples(name)}
    assert {
        "satchel",
        "satchel.assembler.Assembler",
        "satchel.counting.counter",
        "satchel.linting.lint",
        "satchel.models.get",
        "satchel.windows.token_window",
    } <= having
