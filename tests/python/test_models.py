"""Names find the right row, the caller's data wins, and the shipped data keeps its own rules."""

from __future__ import annotations

import pickle
import tomllib
import warnings
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from genai_prices import data_snapshot
from hypothesis import given
from hypothesis import strategies as st

from satchel import models
from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DATA: dict[str, Any] = tomllib.loads(
    Path(models.__file__).with_name("models.toml").read_text(encoding="utf-8")
)
# Windows of models that nobody starts with today; the cautious window does not go down to theirs.
RETIRED = ("gpt-3.5", "gpt-35", "gpt-4", "gpt-4-32k", "claude-2", "claude-instant")


@pytest.fixture
def register() -> Iterator[Callable[..., None]]:
    """`models.register`, taken back after the test."""
    names: list[str] = []

    def remembering(name: str, **fields: Any) -> None:
        models.register(name, **fields)
        names.append(name)

    yield remembering
    for name in dict.fromkeys(names):
        models.unregister(name)


def quiet(name: str) -> models.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", models.UnknownModelWarning)
        return models.get(name)


@pytest.mark.parametrize(
    ("name", "family", "dialect", "encoding", "exact", "window"),
    [
        ("gpt-4o", "openai", "openai", "o200k_base", True, 128_000),
        ("gpt-4o-mini", "openai", "openai", "o200k_base", True, 128_000),
        ("GPT-4o", "openai", "openai", "o200k_base", True, 128_000),
        ("gpt-4.1-nano", "openai", "openai", "o200k_base", True, 1_047_576),
        ("gpt-5", "openai", "openai", "o200k_base", True, 400_000),
        ("gpt-5-mini-2025-08-07", "openai", "openai", "o200k_base", True, 400_000),
        ("gpt-5-chat-latest", "openai", "openai", "o200k_base", True, 128_000),
        ("gpt-5.6-sol", "openai", "openai", "o200k_base", True, 1_050_000),
        ("o1", "openai", "openai", "o200k_base", True, 200_000),
        ("o3-mini", "openai", "openai", "o200k_base", True, 200_000),
        ("o1-mini", "openai", "openai", "o200k_base", True, 128_000),
        ("gpt-4", "openai", "openai", "cl100k_base", True, 8_192),
        ("gpt-4-turbo-2024-04-09", "openai", "openai", "cl100k_base", True, 128_000),
        ("gpt-3.5-turbo", "openai", "openai", "cl100k_base", True, 16_385),
        ("gpt-oss-20b", "gpt-oss", "openai", "o200k_harmony", True, 128_000),
        ("claude-3-haiku-20240307", "claude", "anthropic", "o200k_base", False, 200_000),
        ("claude-3-5-sonnet-latest", "claude", "anthropic", "o200k_base", False, 200_000),
        ("claude-sonnet-4-20250514", "claude", "anthropic", "o200k_base", False, 200_000),
        ("claude-opus-4-1-20250805", "claude", "anthropic", "o200k_base", False, 200_000),
        ("claude-sonnet-4-6", "claude", "anthropic", "o200k_base", False, 1_000_000),
        ("claude-opus-5-5", "claude", "anthropic", "o200k_base", False, 1_000_000),
        ("gemini-2.5-pro", "gemini", "gemini", "o200k_base", False, 1_048_576),
        ("gemini-3-pro-preview", "gemini", "gemini", "o200k_base", False, 1_048_576),
    ],
)
def test_known_names(
    name: str, family: str, dialect: str, encoding: str, exact: bool, window: int
) -> None:
    model = models.get(name)
    assert (model.family, model.dialect, model.encoding) == (family, dialect, encoding)
    assert (model.exact, model.window, model.known) == (exact, window, True)


@pytest.mark.parametrize(
    ("routed", "bare", "dialect"),
    [
        ("openai/gpt-4o", "gpt-4o", "openai"),
        ("openai:gpt-4o", "gpt-4o", "openai"),
        ("azure/gpt-35-turbo", "gpt-3.5-turbo", "openai"),
        ("ft:gpt-4o-mini-2024-07-18:acme::9aBcD", "gpt-4o-mini", "openai"),
        ("anthropic:claude-sonnet-4-6", "claude-sonnet-4-6", "anthropic"),
        ("vertex_ai/claude-sonnet-4-5@20250929", "claude-sonnet-4-5", "anthropic"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5", "openai"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet", "bedrock"),
        ("us.anthropic.claude-opus-4-6-v1", "claude-opus-4-6", "bedrock"),
        ("bedrock/eu-central-1/anthropic.claude-opus-4-7", "claude-opus-4-7", "bedrock"),
        ("models/gemini-2.5-flash", "gemini-2.5-flash", "gemini"),
        ("vertex_ai/gemini-3.1-pro-preview", "gemini-3.1-pro", "gemini"),
        ("us-gov.openai.gpt-oss-20b-1:0", "gpt-oss-20b", "openai"),
        ("gpt-oss:120b", "gpt-oss-120b", "openai"),
        ("claude-opus-4-7[1m]", "claude-opus-4-7", "anthropic"),
    ],
)
def test_a_route_changes_only_the_dialect(routed: str, bare: str, dialect: str) -> None:
    found, expected = models.get(routed), models.get(bare)
    assert found.dialect == dialect
    for field in ("family", "window", "output_limit", "encoding", "factor", "margin", "tools"):
        assert getattr(found, field) == getattr(expected, field)


def test_the_longest_name_wins() -> None:
    assert models.get("gpt-4o-2024-05-13").output_limit == 4_096
    assert models.get("gpt-4o-2024-08-06").output_limit == 16_384
    assert models.get("gpt-5-pro").output_limit == 272_000


@pytest.mark.parametrize(
    ("name", "preamble", "forced"),
    [
        ("claude-3-5-haiku", 264, 355),
        ("claude-opus-4-1", 313, 315),
        ("claude-sonnet-4", 313, 315),
        ("claude-haiku-4-5", 496, 588),
        ("claude-opus-4-6", 497, 589),
        ("claude-opus-4-7", 675, 804),
        ("claude-opus-4-8", 290, 410),
        ("claude-opus-5", 286, 406),
        ("claude-sonnet-5", 354, 474),
    ],
)
def test_tool_preambles_of_claude(name: str, preamble: int, forced: int) -> None:
    tools = models.get(name).tools
    assert (tools.preamble, tools.preamble_forced) == (preamble, forced)


@pytest.mark.parametrize(("name", "published"), [("gpt-4o", 68), ("gpt-4", 71)])
def test_tool_costs_give_the_published_count_of_the_weather_tool(name: str, published: int) -> None:
    # One tool with two properties, one of them an enum of two. Its texts are 11 tokens (name and
    # description), 14 and 8 (properties), 2 and 2 (enum items) under both vocabularies.
    costs = models.get(name).tools
    overhead = costs.init + costs.properties + 2 * costs.property
    overhead += costs.enum + 2 * costs.enum_item + costs.end
    assert overhead + 11 + 14 + 8 + 2 + 2 == published


@pytest.mark.parametrize(
    "name", ["gpt-5.9", "gpt-7", "o9", "claude-opus-6", "claude-nova-1", "gemini-9-pro", "gemini-x"]
)
def test_unknown_version_is_cautious_and_warns(name: str) -> None:
    with pytest.warns(models.UnknownModelWarning, match=name):
        model = models.get(name)
    assert not model.known
    assert not model.exact
    assert model.margin > 0
    for row in DATA["families"][model.family]["models"]:
        known = quiet(row["names"][0] + (f"-{row['from']}" if "from" in row else ""))
        assert known.known
        assert model.factor * (1 + model.margin) >= known.factor * (1 + known.margin)
        assert model.message_overhead >= known.message_overhead or known.tag == "U"
        assert model.request_overhead >= known.request_overhead
        assert model.tools.init >= known.tools.init
        assert model.tools.preamble >= known.tools.preamble
        assert model.tools.preamble_forced >= known.tools.preamble_forced
        if not row["names"][0].startswith(RETIRED) or row["names"][0] == "gpt-4o":
            assert model.window <= known.window


def test_a_version_between_known_ones_has_the_floor_only_up_to_its_top() -> None:
    assert models.get("gemini-3.3-flash").known
    assert not quiet("claude-opus-4-3").known
    assert not quiet("claude-opus-5-6").known


def test_unknown_family_says_how_to_register() -> None:
    with pytest.raises(InputError, match=r"satchel\.models\.register\('mystery-1'") as caught:
        models.get("mystery-1")
    assert caught.value.code == "unknown_model"


@pytest.mark.parametrize("name", ["", "   ", 7, None])
def test_a_name_is_a_text(name: Any) -> None:
    with pytest.raises(InputError) as caught:
        models.get(name)
    assert caught.value.code == "invalid_value"


@given(st.text())
def test_any_name_is_a_model_or_a_typed_error(name: str) -> None:
    try:
        found = str(quiet(name).window > 0)
    except InputError as error:
        found = error.code
    assert found in {"True", "unknown_model", "invalid_value"}


def test_input_budget_keeps_the_output_limit_up_to_a_quarter() -> None:
    assert models.get("gpt-4o").input_budget() == 128_000 - 16_384
    assert models.get("o3").input_budget() == 200_000 - 50_000
    assert models.get("gpt-5").input_budget() == 272_000  # the vendor's own limit on input
    assert models.get("gpt-4o").input_budget(reserve_tokens=4_000) == 124_000
    assert models.get("gpt-4o").input_budget(reserve_tokens=200_000) == 0
    with pytest.raises(InputError) as caught:
        models.get("gpt-4o").input_budget(reserve_tokens=-1)
    assert (caught.value.code, caught.value.value) == ("invalid_value", -1)


def test_a_model_is_a_value() -> None:
    model = models.get("gpt-4o")
    assert pickle.loads(pickle.dumps(model)) == model
    assert models.get("gpt-4o") is model
    with pytest.raises(FrozenInstanceError):
        model.window = 1  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue] - frozen


def test_registered_figures_win(register: Callable[..., None]) -> None:
    register("gpt-4o", window=64_000)
    model = models.get("openai/gpt-4o-2024-08-06")
    assert (model.window, model.output_limit, model.encoding) == (64_000, 16_384, "o200k_base")
    assert (model.exact, model.source) == (True, "the caller's own data")
    register("claude-opus-9", window=500_000)
    assert models.get("claude-opus-9").window == 500_000  # known now: no warning


def test_registered_encoding_drops_the_shipped_factor(register: Callable[..., None]) -> None:
    register("claude-sonnet-4-5", encoding="chars3", margin=0.3)
    model = models.get("claude-sonnet-4-5-20250929")
    assert (model.encoding, model.factor, model.margin, model.exact) == ("chars3", 1.0, 0.3, False)


def test_registered_figures_of_counting_replace_what_depends_on_them(
    register: Callable[..., None],
) -> None:
    register("gpt-4o", margin=0.1)
    assert (models.get("gpt-4o").exact, models.get("gpt-4o").margin) == (False, 0.1)
    register("claude-sonnet-4-5", factor=1.4)
    model = models.get("claude-sonnet-4-5")
    assert (model.factors.prose, model.factors.cjk, model.margin) == (1.4, 1.4, 0.28)
    register("claude-sonnet-4-5", exact=True)
    model = models.get("claude-sonnet-4-5")
    assert (model.factor, model.margin, model.encoding) == (1.0, 0.0, "o200k_base")


def test_a_new_family_needs_a_window_and_an_encoding(register: Callable[..., None]) -> None:
    register("acme-7b", window=32_000, encoding="chars4")
    model = models.get("acme-7b-2026-01-01")
    assert (model.family, model.dialect, model.output_limit) == ("acme-7b", "openai", 8_000)
    assert not model.exact
    with pytest.raises(InputError, match="needs encoding") as caught:
        register("acme-8b", window=32_000)
    assert caught.value.code == "invalid_value"
    with pytest.raises(InputError):
        models.get("acme-8b")


def test_a_row_with_a_route_applies_to_that_route_only(register: Callable[..., None]) -> None:
    register("acme/gpt-4o", window=32_000)
    assert models.get("acme/gpt-4o").window == 32_000
    assert models.get("gpt-4o").window == 128_000


def test_unregister_takes_back(register: Callable[..., None]) -> None:
    register("gpt-4o", window=64_000)
    models.unregister("gpt-4o")
    assert models.get("gpt-4o").window == 128_000
    with pytest.raises(InputError) as caught:
        models.unregister("gpt-4o")
    assert caught.value.code == "unknown_model"
    register("gpt-4o", window=64_000)  # so that the fixture finds something to take back


@pytest.mark.parametrize(
    "fields",
    [
        {"window": 0},
        {"window": "big"},
        {"window": True},
        {"output_limit": -1},
        {"encoding": ""},
        {"exact": 1},
        {"factor": -0.5},
        {"factor": float("inf")},
        {"margin": "some"},
        {"factors": {"prose": 1.0}},
        {"factors": {"prose": 1, "code": 1, "json": 1, "cjk": "x"}},
        {"exact": True, "margin": 0.1},
        {"colour": "red"},
    ],
)
def test_a_field_out_of_range_is_refused(
    fields: dict[str, Any], register: Callable[..., None]
) -> None:
    with pytest.raises(InputError) as caught:
        register("gpt-4o", **fields)
    assert caught.value.code == "invalid_value"
    assert models.get("gpt-4o").window == 128_000


def test_a_file_registers_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[models."acme-1"]\nwindow = 10_000\nencoding = "chars3"\n'
        '[models."gpt-4o"]\nwindow = 99_000\n',
        encoding="utf-8",
    )
    assert models.register_file(path) == ["acme-1", "gpt-4o"]
    try:
        assert models.get("acme-1").window == 10_000
        assert models.get("gpt-4o").window == 99_000
    finally:
        models.unregister("acme-1")
        models.unregister("gpt-4o")
    path.write_text(
        '[models."acme-1"]\nwindow = 10_000\nencoding = "chars3"\n[models."acme-2"]\nwindow = 1\n',
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="acme-2"):
        models.register_file(path)
    with pytest.raises(InputError):
        models.get("acme-1")


@pytest.mark.parametrize(
    "text", [None, "not toml [", "x = 1", "[models]\na = 1", '[models."a"]\nx = 1', "models = 3"]
)
def test_a_bad_file_is_a_typed_error(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        models.register_file(path)
    assert caught.value.code == "invalid_value"


def shipped_rows() -> list[Any]:
    return [
        pytest.param(family, row, id="-".join([row["names"][0], *filter(None, [row.get("from")])]))
        for family in DATA["families"].values()
        for row in family["models"]
    ]


@pytest.mark.parametrize(("family", "row"), shipped_rows())
def test_every_shipped_row_is_sound(family: dict[str, Any], row: dict[str, Any]) -> None:
    fields = DATA["defaults"] | family["base"] | row
    assert fields["tag"] in "DSM3U"
    assert fields["source"] in DATA["sources"]
    assert DATA["tokenizers"][fields["tokenizer"]]["source"] in DATA["sources"]
    for name in row["names"]:
        model = models.get(f"{name}-{row['from']}" if "from" in row else name)
        assert model.known
        assert model.output_limit <= model.window or model.family == "gpt-oss"
        assert model.input_limit is None or model.input_limit <= model.window
        assert model.input_budget() > 0
        assert len(model.read) == len("2026-11-29")
        upper = model.factor * (1 + model.margin)
        assert upper >= max(model.factors) - 1e-9
        assert not model.exact or upper == 1


# --- prices, caches, images -----------------------------------------------------------------------


def test_every_detail_belongs_to_a_known_version() -> None:
    for name in DATA["details"]:
        model = quiet(name)
        assert model.known, name
        priced = "input_price" in DATA["details"][name]
        assert (model.prices is not None) == priced or model.prices is None


@pytest.mark.parametrize(
    ("name", "minimum"),
    [
        ("claude-opus-5", 512),
        ("claude-fable-5-1", 512),
        ("claude-opus-4-8", 1_024),
        ("claude-sonnet-4-5-20250929", 1_024),
        ("claude-opus-4-1", 1_024),
        ("claude-sonnet-4-20250514", 1_024),
        ("claude-opus-4-7", 2_048),
        ("claude-3-5-haiku", 2_048),
        ("claude-mythos-preview", 2_048),
        ("claude-haiku-4-5", 4_096),
        ("us.anthropic.claude-opus-4-6-v1", 4_096),
        ("claude-haiku-5-5", 4_096),
        ("gpt-4o", 1_024),
        ("gpt-5.6-sol", 1_024),
        ("gemini-2.5-pro", 2_048),
        ("gemini-3.1-pro", 4_096),
    ],
)
def test_cache_minimums(name: str, minimum: int) -> None:
    assert models.get(name).cache.min_prefix == minimum


@pytest.mark.parametrize(
    ("name", "read", "write"),
    [
        ("claude-sonnet-4-5", 0.1, (1.25, 2.0)),
        ("claude-fable-5-1", 0.025, (1.25, 2.0)),
        ("claude-opus-5-5", 0.05, (1.25, 2.0)),
        ("gpt-4o", 0.5, (1.0, 1.0)),
        ("gpt-5", 0.1, (1.0, 1.0)),
        ("gpt-5.6-terra", 0.1, (1.25,)),
    ],
)
def test_cache_prices(name: str, read: float, write: tuple[float, ...]) -> None:
    cache = models.get(name).cache
    assert (cache.read, cache.write) == (read, write)
    assert len(cache.ttl_s) == len(cache.write)


def test_reasoning_that_is_bound_to_its_prefix() -> None:
    bound = ["claude-fable-5-1", "claude-mythos-5-2", "claude-opus-5-5", "claude-haiku-5-5"]
    free = ["claude-fable-5", "claude-opus-5", "claude-sonnet-4-6", "gpt-5", "gemini-3-pro"]
    assert all(models.get(name).prefix_bound for name in bound)
    assert not any(models.get(name).prefix_bound for name in free)
    assert quiet("claude-opus-9").prefix_bound


def test_a_caller_s_images_and_cache(register: Callable[..., None]) -> None:
    register(
        "acme-sees",
        window=8_000,
        encoding="chars4",
        images={"kind": "tiles", "base": 1, "tile": 2},
        cache="anthropic",
        cache_min_prefix=99,
        input_price=1,
        output_price=2.5,
    )
    model = models.get("acme-sees")
    assert (model.images.kind, model.images.base, model.images.tile) == ("tiles", 1, 2)
    assert (model.cache.min_prefix, model.cache.breakpoints) == (99, 4)
    assert model.prices is not None
    assert (model.prices.input, model.prices.output) == (1, 2.5)
    wrong_fields: list[dict[str, Any]] = [
        {"images": "no-such"},
        {"images": {"base": 1}},
        {"images": {"kind": "tiles", "dots": 1}},
        {"images": 5},
        {"cache": "no-such"},
        {"cache": {"read": 1.0}},
        {"tool_style": "poem"},
        {"prefix_bound": 1},
    ]
    any_register: Any = models.register
    for wrong in wrong_fields:
        with pytest.raises(InputError) as caught:
            any_register("acme-sees-not", window=1, encoding="chars4", **wrong)
        assert caught.value.code == "invalid_value"


def test_prices_agree_with_a_public_table() -> None:
    """Where both know a model; the table is only a check, prices are our own data."""
    vendors = {"claude": "anthropic", "gemini": "google", "deepseek": "deepseek"}
    # After introductory rates, and within the hours that cost more.
    when = datetime(2027, 1, 4, 8, tzinfo=UTC)
    snapshot = data_snapshot.get_snapshot()
    compared = 0
    for name, details in DATA["details"].items():
        vendor = vendors.get(name.partition("-")[0], "openai")
        try:
            _, found = snapshot.find_provider_model(name, None, vendor, None)
        except LookupError:
            continue
        prices = found.get_prices(when)
        shown: list[Any] = [
            getattr(price, "base", price) for price in (prices.input_mtok, prices.output_mtok)
        ]
        ours = [details.get("input_price"), details.get("output_price")]
        assert [float(price or 0) for price in shown] == pytest.approx(ours), name
        compared += 1
    assert compared >= 80
