"""Counters of models: their rules everywhere, and counts against what providers reported."""

from __future__ import annotations

import pickle
import statistics
import warnings
from typing import Any

import pytest

import accounting_usage
import satchel
from samples import NAMES, load_sample
from satchel import models

MODELS = ["gpt-4o", "gpt-5-mini", "claude-sonnet-4-5", "claude-opus-4-8", "gemini-3-pro", "o1"]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_s_counter_is_found_again_by_its_name(name: str) -> None:
    own = satchel.counter(name)
    assert own.name == name
    assert satchel.counter(own.name) == own
    assert pickle.loads(pickle.dumps(own)) == own
    assert own != satchel.counter(own.encoding)
    assert satchel.counter(own.encoding).rules is None


def test_estimates_are_told_apart() -> None:
    rows = {name: satchel.counter(name) for name in MODELS}
    exact = {name for name, own in rows.items() if own.exact}
    assert exact == {"gpt-4o"}
    assert rows["gpt-4o"].margin == 0
    assert all(own.margin > 0 for name, own in rows.items() if name not in exact)


def test_factors_scale_the_public_vocabulary() -> None:
    plain, claude = satchel.counter("o200k_base"), satchel.counter("claude-sonnet-4-5")
    prose = "They walked down to the river and waited for the ferry " * 20
    code = "if (a[i] != b[j]) { swap(&a[i], &b[j]); i++; } else { j--; }\n" * 20
    korean = "우리는 강가로 내려가 배를 기다렸다 " * 20
    factors = models.get("claude-sonnet-4-5").factors
    for text, factor in ((prose, factors.prose), (code, factors.code), (korean, factors.cjk)):
        assert claude.count(text) / plain.count(text) == pytest.approx(factor, rel=0.03)


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gpt-5-mini", "gemini-3-pro"])
@pytest.mark.parametrize("name", NAMES)
def test_windows_count_as_the_counter_does(name: str, model: str) -> None:
    sample = load_sample(name)
    dialect, system, tools = sample["dialect"], sample.get("system"), sample.get("tools")
    own = satchel.counter(model)
    whole = own.count_messages(sample["messages"], system=system, tools=tools, dialect=dialect)
    for share in (0.4, 2.0):
        packer = satchel.Assembler(model, dialect=dialect, budget=int(whole.upper * share))
        try:
            window = packer.assemble(
                sample["messages"], system=system, tools=tools, open_calls="synthesize"
            )
        except satchel.BudgetError:
            continue
        again = own.count_messages(window.messages, system=system, tools=tools, dialect=dialect)
        assert (again.total, again.upper) == (window.tokens, window.tokens_upper)
        assert window.tokens_upper <= packer.budget


def test_a_log_may_change_to_a_model_s_counter() -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Write the file."}]},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "c", "name": "write", "input": {"text": "a\nb\n" * 50}}
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]},
    ]
    packer = satchel.Assembler("gpt-4o", dialect="anthropic")
    working_set = packer.working_set(messages)
    working_set.apply({"kind": "settings", "counter": "claude-sonnet-4-5"})
    claude = satchel.counter("claude-sonnet-4-5")
    window = working_set.window()
    counted = claude.count_messages(window.messages, dialect="anthropic")
    assert window.tokens == counted.total
    log = list(working_set.events)
    rebuilt = satchel.Assembler("claude-sonnet-4-5").working_set(messages, events=log)
    assert rebuilt.window().tokens == counted.total


def image(width: int, height: int, **more: Any) -> dict[str, Any]:
    """A user message with a PNG of this size: its header is all that is looked at."""
    import base64  # noqa: PLC0415 - only images need it

    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4) + height.to_bytes(4)
    url = "data:image/png;base64," + base64.b64encode(header + bytes(9_000)).decode()
    block = {"type": "image_url", "image_url": {"url": url, **more}}
    return {"role": "user", "content": [block]}


@pytest.mark.parametrize(
    ("model", "size", "more", "tokens"),
    [
        ("gpt-4o", (1024, 1024), {}, 765),
        ("gpt-4o", (2048, 4096), {"detail": "high"}, 1_105),
        ("gpt-4o", (2048, 4096), {"detail": "low"}, 85),
        ("gpt-4o-mini", (512, 512), {}, 2_833 + 5_667),
        ("gpt-5", (1024, 1024), {}, 70 + 4 * 140),
        ("o1", (1024, 1024), {}, 75 + 4 * 150),
        ("gpt-5-mini", (1024, 1024), {}, 1_659),
        ("gpt-5-nano", (1024, 1024), {}, 2_520),
        ("o4-mini", (1024, 1024), {}, 1_762),
        ("gpt-5.2", (1800, 2400), {}, 1_452),
        ("gpt-5.4", (3200, 2400), {"detail": "original"}, 7_500),
        ("gpt-5.5", (3200, 2400), {}, 7_500),
        ("gpt-5.6-sol", (3200, 2400), {}, 7_500),
        ("claude-sonnet-4-5", (1920, 1080), {}, 1_560),
        ("claude-opus-4-8", (1920, 1080), {}, 2_691),
        ("gemini-2.5-pro", (1600, 1600), {}, 9 * 258),
        ("gemini-3-pro", (1600, 1600), {}, 1_120),
    ],
)
def test_images_by_the_model_s_formula(
    model: str, size: tuple[int, int], more: dict[str, Any], tokens: int
) -> None:
    own = satchel.counter(model)
    counted = own.count_messages([image(*size, **more)], dialect="openai")
    assert counted.per_message.tolist() == [4 + tokens]
    assert not counted.exact


def test_a_payload_is_never_text() -> None:
    for name in MODELS:
        own = satchel.counter(name)
        counted = own.count_messages([image(100, 100)], dialect="openai")
        assert counted.total < 2_000


def test_unknown_versions_cost_the_most() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", models.UnknownModelWarning)
        unknown = models.get("claude-opus-9")
    known = [models.get(name) for name in ("claude-opus-4-5", "claude-opus-5", "claude-sonnet-5-5")]
    assert unknown.prefix_bound
    for model in known:
        assert unknown.factor >= model.factor
        assert unknown.cache.min_prefix >= model.cache.min_prefix
        assert unknown.prices is not None
        assert model.prices is not None
        assert unknown.prices.input >= model.prices.input
        assert (unknown.images.max_tokens or 0) >= (model.images.max_tokens or 0)


def test_counts_against_reported_usage() -> None:
    root = accounting_usage.folder()
    if root is None:
        pytest.skip("no shared data: recorded requests are not part of the repository")
    rows, _ = accounting_usage.measure(root)
    claude = [row for name, row in rows.items() if "claude" in name]
    plain = [error for row in claude for error in row.plain]
    assert len(plain) >= 100
    assert statistics.median(map(abs, plain)) <= 0.15
    for row in rows.values():
        if len(row.calibrated) >= 20:
            assert statistics.median(map(abs, row.calibrated)) <= 0.02
    # Sessions whose client adds nothing of its own between calls.
    whole = [row for name, row in rows.items() if "claude" in name and "claude_code" not in name]
    held = sum(row.upper_held for row in whole) / sum(len(row.plain) for row in whole)
    assert held >= 0.99
