"""The public names and signatures, frozen in ``public_api.json``.

A change of the contract is made on purpose: run this file as a program to write the new contract,
read the difference, and tell it in the changelog.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

CONTRACT = Path(__file__).with_name("public_api.json")
MODULES = (
    "satchel",
    "satchel.anthropic",
    "satchel.arrays",
    "satchel.batch",
    "satchel.clients",
    "satchel.guards",
    "satchel.langchain",
    "satchel.langgraph",
    "satchel.litellm",
    "satchel.memory",
    "satchel.models",
    "satchel.openai",
    "satchel.replay",
    "satchel.self_summary",
    "satchel.state",
    "satchel.stores",
    "satchel.summarize",
    "satchel.sync",
    "satchel.telemetry",
    "satchel.testing",
)

# A default that only says "not given" shows its address.
SENTINEL = re.compile(r"<[\w.]+ object at 0x[0-9a-f]+>")

Description = dict[str, Any]


def signature(callable_: Any) -> str:
    """Parameter names, kinds and defaults; annotations are the type checkers' business."""
    found = inspect.signature(callable_)
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in found.parameters.values()
    ]
    shown = str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return SENTINEL.sub("...", shown)


def members(cls: type) -> Description:
    """The public members that a class gets from this package, by name."""
    found: Description = {}
    for base in reversed(cls.__mro__):
        if not base.__module__.startswith("satchel"):
            continue
        names = {*vars(base), *vars(base).get("__annotations__", {})}
        for name in names:
            if name.startswith("_"):
                continue
            value: Any = inspect.getattr_static(base, name, None)
            if isinstance(value, (staticmethod, classmethod)):
                value = getattr(base, name)
            found[name] = signature(value) if inspect.isroutine(value) else "attribute"
    return dict(sorted(found.items()))


def describe(value: Any) -> str | Description:
    if inspect.isclass(value):
        return {"class": [base.__name__ for base in value.__bases__], "members": members(value)}
    if inspect.isroutine(value):
        return signature(value)
    return "module" if inspect.ismodule(value) else type(value).__name__


def public_api(*given: Any) -> Description:
    # A module of a bridge may load what it bridges to; what that warns of is its own business, and
    # litellm takes the model list of its package: nothing is fetched.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = given or [import_module(name) for name in MODULES]
        return {
            module.__name__: {
                name: describe(getattr(module, name)) for name in sorted(module.__all__)
            }
            for module in modules
        }


def test_public_api_is_the_contract() -> None:
    contract: Description = json.loads(CONTRACT.read_text(encoding="utf-8"))
    assert public_api() == contract


if __name__ == "__main__":
    CONTRACT.write_text(json.dumps(public_api(), indent=2) + "\n", encoding="utf-8")
