"""``import satchel`` is cheap: each name, and what it needs, is loaded on first use."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys

import pytest

import satchel

HEAVY = ("numpy", "pydantic", "tiktoken", "langchain_core", "typer", "rich", "asyncio")
OWN = ("satchel._core", "satchel.models", "satchel.errors")


def loaded_after(code: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after running ``code``."""
    program = f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(  # noqa: S603 - the program is written here
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_import_loads_nothing_heavy() -> None:
    loaded = loaded_after("import satchel")
    assert "satchel" in loaded
    assert not loaded & {*HEAVY, *OWN}


def test_model_figures_need_neither_the_native_half_nor_numpy() -> None:
    loaded = loaded_after("import satchel; satchel.models.get('gpt-4o')")
    assert "satchel.models" in loaded
    assert not loaded & {*HEAVY, "satchel._core"}


def test_first_exact_count_needs_no_package_of_others() -> None:
    loaded = loaded_after("import satchel; assert satchel.counter('gpt-4o').count('hello') == 1")
    assert "satchel._core" in loaded
    assert not loaded & set(HEAVY)


@pytest.mark.parametrize("name", satchel.__all__)
def test_every_public_name_loads(name: str) -> None:
    assert getattr(satchel, name) is not None
    assert name in dir(satchel)


def test_checkers_and_interpreter_see_the_same_names() -> None:
    tree = ast.parse(inspect.getsource(satchel))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    homes: dict[str, str] = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        assert node.module is not None
        homes |= {alias.name: node.module.removeprefix("satchel.") for alias in node.names}
    assert sorted(homes) == sorted(satchel.__all__)
    modules = {name for name, home in homes.items() if home == "satchel"}
    loaded_from = {name: home for name, home in homes.items() if name not in modules}
    assert loaded_from == vars(satchel)["_HOME_OF"]
    assert satchel.__all__ == sorted(satchel.__all__)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'sliding_widow'"):
        getattr(satchel, "sliding_widow")  # noqa: B009 - the checkers must not see the misspelling
