"""The public names of the bridges, frozen in ``public_api.json`` beside this file.

Written as the other contract: run this file as a program, with tests/python on the path.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path

from test_public_api import Description, public_api

CONTRACT = Path(__file__).with_name("public_api.json")
MODULES = ("satchel.openai_agents", "satchel.pydantic_ai")


def found() -> Description:
    return public_api(*(importlib.import_module(name) for name in MODULES))


def test_public_api_of_the_bridges_is_the_contract() -> None:
    assert found() == json.loads(CONTRACT.read_text(encoding="utf-8"))


if __name__ == "__main__":
    CONTRACT.write_text(json.dumps(found(), indent=2) + "\n", encoding="utf-8")
