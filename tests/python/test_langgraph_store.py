"""`satchel.langgraph.MemoryStore`: LangGraph's store over satchel's backends, its own as oracle."""

# The peers are typed in part, and what they return is looked at as it comes.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false
# pyright: reportPrivateUsage=false, reportDeprecated=false

from __future__ import annotations

import asyncio
import hashlib
import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.config import get_store
from langgraph.graph import START, StateGraph
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from typing_extensions import TypedDict

from memory_stores import fresh_database
from satchel.errors import EmbeddingError, InputError
from satchel.langgraph import MemoryStore
from satchel.memory import open_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BACKENDS = ("memory", "sqlite", "postgres")
NUMBERS = itertools.count()


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def url_of(backend: str, folder: Path) -> str:
    if backend == "memory":
        return f"memory://langgraph-{next(NUMBERS)}"
    if backend == "sqlite":
        return f"sqlite:///{folder / 'store.db'}"
    return fresh_database()


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[MemoryStore]:
    with MemoryStore(url) as found:
        yield found


def embed(texts: list[str]) -> list[list[float]]:
    """A meaning for each text, the same every time."""
    rows: list[list[float]] = []
    for text in texts:
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        rows.append([byte - 127.5 for byte in digest])
    return rows


INDEX: Any = {"dims": 8, "embed": embed, "fields": ["text", "tags[*]"]}


# --- the oracle -----------------------------------------------------------------------------------

LABELS = st.sampled_from(["a", "ab", "acme", "acme-corp", "%", "_", "한", "*", "x y"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
PREFIXES = st.lists(LABELS, max_size=3).map(tuple)
KEYS = st.sampled_from(["k", "kk", "", "K", "k.k", "%", "ключ"]).filter(bool)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from(["", "red", "2", "\u0000", "한"])
)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(-3, 3),
        "text": st.sampled_from(["one", "two words", "drei"]),
        "tags": st.lists(st.sampled_from(["x", "y", "z"]), max_size=3, unique=True),
        "deep": st.dictionaries(st.sampled_from(["p", "q"]), SCALARS, max_size=2),
        "$odd": SCALARS,
    },
)
SIZES = st.dictionaries(
    st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]),
    st.integers(-3, 3),
    min_size=1,
    max_size=2,
)
FILTERS = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {},
        optional={
            "size": st.one_of(st.integers(-3, 3), SIZES),
            "text": st.sampled_from(["one", "two words"]),
            "tags": st.lists(st.sampled_from(["x", "y"]), max_size=2),
            "deep": st.dictionaries(st.sampled_from(["p", "q"]), SCALARS, max_size=1),
        },
    ),
)
KINDS: Any = st.sampled_from(["prefix", "suffix"])
CONDITIONS = st.lists(
    st.tuples(KINDS, PREFIXES).map(lambda given: MatchCondition(given[0], given[1])),
    max_size=2,
).map(tuple)
OPS = st.one_of(
    st.tuples(NAMESPACES, KEYS, VALUES).map(lambda given: PutOp(*given)),
    st.tuples(NAMESPACES, KEYS, st.one_of(VALUES, st.none())).map(lambda given: PutOp(*given)),
    st.tuples(NAMESPACES, KEYS).map(lambda given: GetOp(*given)),
    st.tuples(PREFIXES, FILTERS).map(lambda given: SearchOp(*given, limit=1_000)),
    st.tuples(CONDITIONS, st.one_of(st.none(), st.integers(1, 3))).map(
        lambda given: ListNamespacesOp(*given, limit=1_000)
    ),
)
BATCHES = st.lists(st.lists(OPS, max_size=6), max_size=8)


def shown(result: Any) -> Any:
    """What two stores must agree on; the order of a search without query is each store's own."""
    if result is None:
        return None
    if isinstance(result, list):
        if result and isinstance(result[0], tuple):
            return result
        return sorted(
            ((one.namespace, one.key, repr(one.value), one.score) for one in result), key=repr
        )
    return (result.namespace, result.key, result.value)


def plain_of(oracle: InMemoryStore, op: Any, result: Any) -> Any:
    """The oracle's result without namespaces that hold nothing, which it lists for ever."""
    if not isinstance(op, ListNamespacesOp):
        return shown(result)
    for namespace in [one for one, items in oracle._data.items() if not items]:
        del oracle._data[namespace]
    return shown(oracle._handle_list_namespaces(op))


def comparable(op: Any, oracle: InMemoryStore) -> bool:
    """Whether the oracle can answer: it raises where a field to be compared is missing."""
    return not isinstance(op, SearchOp) or all(
        not (isinstance(wanted, dict) and any(str(name).startswith("$") for name in wanted))
        or all("size" in item.value for items in oracle._data.values() for item in items.values())
        for wanted in (op.filter or {}).values()
    )


def compare(url: str, batches: list[list[Any]]) -> None:
    oracle = InMemoryStore()
    with MemoryStore(url) as store:
        for at, batch in enumerate(batches):
            ops = [op for op in batch if comparable(op, oracle)]
            # What the oracle lists must be asked for before it writes.
            expected = [
                plain_of(oracle, op, oracle.batch([op])[0])
                for op in ops
                if not isinstance(op, PutOp)
            ]
            oracle.batch([op for op in ops if isinstance(op, PutOp)])
            found = store.batch(ops) if at % 2 else asyncio.run(store.abatch(ops))
            reads = [
                shown(one) for op, one in zip(ops, found, strict=True) if not isinstance(op, PutOp)
            ]
            assert reads == expected
            assert all(
                one is None for op, one in zip(ops, found, strict=True) if isinstance(op, PutOp)
            )


@given(batches=BATCHES)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_it_answers_as_langgraphs_own_store(batches: list[list[Any]]) -> None:
    compare(f"memory://oracle-{next(NUMBERS)}", batches)


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_it_does_so_in_a_database(backend: str, tmp_path: Path) -> None:
    folders = itertools.count()

    @given(batches=BATCHES)
    @settings(
        max_examples=12, suppress_health_check=[HealthCheck.too_slow], deadline=None, database=None
    )
    def run(batches: list[list[Any]]) -> None:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        compare(url_of(backend, folder), batches)

    run()


@given(
    puts=st.lists(st.tuples(NAMESPACES, KEYS, VALUES), min_size=1, max_size=12),
    query=st.sampled_from(["one", "y", "else"]),
    prefix=PREFIXES,
)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_it_ranks_by_meaning_as_langgraphs_own_store(
    puts: list[Any], query: str, prefix: tuple[str, ...]
) -> None:
    oracle = InMemoryStore(index=INDEX)
    with MemoryStore(f"memory://oracle-{next(NUMBERS)}", index=INDEX) as store:
        for namespace, key, value in puts:
            # The oracle keeps vectors of what was overwritten.
            oracle.batch([PutOp(namespace, key, None)])
            for one in (oracle, store):
                one.put(namespace, key, value)
        wanted = oracle.search(prefix, query=query, limit=1_000)
        found = store.search(prefix, query=query, limit=1_000)
        scores = {(one.namespace, one.key): one.score for one in wanted}
        assert {(one.namespace, one.key) for one in found} == set(scores)
        assert [one.score for one in found] == [
            pytest.approx(scores[one.namespace, one.key]) for one in found
        ]
        ranked = [one.score for one in found if one.score is not None]
        assert ranked == sorted(ranked, reverse=True)


# --- what peers got wrong -------------------------------------------------------------------------


def test_a_prefix_is_made_of_whole_labels(store: MemoryStore) -> None:
    # langgraphjs#2721: a prefix that was compared as text showed other tenants' items.
    for tenant in ("acme", "acme-corp", "acmes"):
        store.put((tenant, "facts"), "k", {"of": tenant})
    assert [one.value["of"] for one in store.search(("acme",))] == ["acme"]
    assert store.list_namespaces(prefix=("acme",)) == [("acme", "facts")]
    assert store.get(("acme",), "k") is None


def test_an_item_keeps_the_time_when_it_was_made(url: str) -> None:
    # #7411: overwriting an item made it new.
    clock = Clock()
    with MemoryStore(url, clock=clock) as store:
        store.put(("a",), "k", {"n": 1})
        clock.now += 60
        store.put(("a",), "k", {"n": 2})
        found = store.get(("a",), "k")
    assert found is not None
    assert found.created_at.timestamp() == 1_000_000.0
    assert found.updated_at.timestamp() == 1_000_060.0
    assert found.value == {"n": 2}


def test_the_fields_of_the_index_are_those_that_are_looked_at(url: str) -> None:
    # #8808: the fields of an index were ignored, and all of an item was embedded.
    seen: list[str] = []

    def noted(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return embed(texts)

    index: Any = {"dims": 8, "embed": noted, "fields": ["title"]}
    with MemoryStore(url, index=index) as store:
        store.put(("a",), "one", {"title": "ships", "body": "secret"})
        store.put(("a",), "two", {"title": "cars", "body": "roads"}, index=["body"])
        store.put(("a",), "three", {"title": "planes"}, index=False)
        assert sorted(seen) == ["roads", "ships"]
        [first, *rest] = store.search(("a",), query="ships")
    assert first.key == "one"
    assert first.score == pytest.approx(1.0)
    assert [one.score for one in rest if one.key == "three"] == [None]


@pytest.mark.parametrize("query", [None, "one"])
def test_pages_hold_every_item_once(url: str, query: str | None) -> None:
    # #8977: what has no vector was shown on every page, or on none.
    with MemoryStore(url, index=INDEX) as store:
        for at in range(25):
            store.put(
                ("a", str(at % 3)), f"k{at}", {"text": f"t{at}"}, index=None if at % 2 else False
            )
        pages = [
            [one.key for one in store.search(("a",), query=query, limit=4, offset=offset)]
            for offset in range(0, 28, 4)
        ]
    flat = [key for page in pages for key in page]
    assert sorted(flat) == sorted(f"k{at}" for at in range(25))
    assert [len(page) for page in pages] == [4, 4, 4, 4, 4, 4, 1]


def test_what_has_expired_is_not_shown(url: str) -> None:
    # #8902: expired items came back until somebody swept them.
    clock = Clock()
    ttl: Any = {"default_ttl": 10, "refresh_on_read": True}
    with MemoryStore(url, ttl=ttl, clock=clock) as store:
        store.put(("a",), "default", {})
        store.put(("a",), "short", {}, ttl=1)
        store.put(("a", "b"), "read", {}, ttl=3)
        clock.now += 120
        assert store.get(("a",), "short") is None
        assert store.get(("a", "b"), "read") is not None  # which sets its time anew
        clock.now += 120
        assert [one.key for one in store.search(("a",), refresh_ttl=False)] == ["default", "read"]
        clock.now += 480
        assert store.search(("a",)) == []
        assert store.list_namespaces() == []
        assert store.sweep_ttl() == 3
        assert store.sweep_ttl() == 0


def test_the_nearest_comes_first_and_no_length_misleads(url: str) -> None:
    # A store that ranked by distance with the farthest first, or by length.
    vectors = {"near": [2.0, 0.1], "far": [-9.0, 0.0], "none": [0.0, 0.0], "q": [1.0, 0.0]}
    index: Any = {
        "dims": 2,
        "embed": lambda texts: [vectors[text] for text in texts],
        "fields": ["t"],
    }
    with MemoryStore(url, index=index) as store:
        for name in ("far", "none", "near"):
            store.put(("a",), name, {"t": name})
        assert [one.key for one in store.search(("a",), query="q")] == ["near", "none", "far"]


# --- the contract ---------------------------------------------------------------------------------


def test_a_batch_reads_before_it_writes_and_the_last_put_wins(store: MemoryStore) -> None:
    put, get = PutOp(("a",), "k", {"n": 1}), GetOp(("a",), "k")
    assert store.batch([put, get, PutOp(("a",), "k", {"n": 2})]) == [None, None, None]
    [found, *_] = store.batch([get, PutOp(("a",), "k", None), SearchOp(("a",))])
    assert found is not None
    assert getattr(found, "value", None) == {"n": 2}
    assert store.get(("a",), "k") is None


def test_values_are_copies(store: MemoryStore) -> None:
    value = {"list": [1]}
    store.put(("a",), "k", value)
    value["list"].append(2)
    first = store.get(("a",), "k")
    assert first is not None
    first.value["list"].append(3)
    second = store.get(("a",), "k")
    assert second is not None
    assert second.value == {"list": [1]}


@pytest.mark.parametrize("namespace", [(), ("",), ("a.b",), ("langgraph", "x"), (1,)])
def test_labels_are_those_of_langgraph(store: MemoryStore, namespace: Any) -> None:
    oracle = InMemoryStore()
    for one in (oracle, store):
        with pytest.raises((InvalidNamespaceError, ValueError)):
            one.put(namespace, "k", {})


@pytest.mark.parametrize(
    "op",
    [
        PutOp(("a",), "", {}),
        PutOp(("a",), "\ud800", {}),
        PutOp(("a",), "k", {"set": object()}),
        PutOp(("a",), "k", "text"),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a wrong type
        SearchOp(("a",), limit=-1),
        SearchOp(("a",), offset=-1),
        SearchOp(("a",), filter={"n": {"$like": "x"}}),
        SearchOp(("a",), filter={"n": {"$gt": "x"}}),
        ListNamespacesOp(limit=-1),
        "op",
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(store: MemoryStore, op: Any) -> None:
    store.put(("a",), "there", {"n": 1})
    with pytest.raises(InputError):
        store.batch([PutOp(("a",), "new", {}), op])
    assert [one.key for one in store.search(("a",))] == ["there"]


def test_a_broken_embedder_writes_nothing(url: str) -> None:
    def broken(_: list[str]) -> list[list[float]]:
        raise ZeroDivisionError

    index: Any = {"dims": 2, "embed": broken}
    with MemoryStore(url, index=index) as store:
        with pytest.raises(EmbeddingError):
            store.put(("a",), "k", {"text": "secret"})
        with pytest.raises(EmbeddingError):
            store.search(("a",), query="x")
        assert store.search(("a",)) == []


@pytest.mark.parametrize(
    "vector",
    [None, "text", [], 3.0, [[1.0]], [1.0, float("nan")], [1e300], [10**400], [None], [object()]],
)
def test_what_is_no_vector_is_the_embedders_failure(vector: Any) -> None:
    index: Any = {"dims": 1, "embed": lambda texts: [vector for _ in texts]}
    with MemoryStore(index=index) as store:
        for act in (lambda: store.put(("a",), "k", {"n": 1}), lambda: store.search((), query="x")):
            with pytest.raises(EmbeddingError) as caught:
                act()
            assert caught.value.code == "embedding_failed"
        assert store.search(()) == []


@pytest.mark.parametrize("vectors", [None, 3, [], [[1.0], [2.0]]])
def test_so_is_another_number_of_vectors(vectors: Any) -> None:
    index: Any = {"dims": 1, "embed": lambda _: vectors}
    with MemoryStore(index=index) as store, pytest.raises(EmbeddingError):
        store.put(("a",), "k", {"n": 1})


@pytest.mark.parametrize(
    "minutes", ["x", pytest.param(10**400, id="huge"), 1e308, float("nan"), True]
)
def test_a_time_that_does_not_end_is_refused(minutes: Any) -> None:
    with MemoryStore() as store:
        with pytest.raises(InputError):
            store.put(("a",), "k", {"n": 1}, ttl=minutes)
        assert store.search(()) == []
    with pytest.raises(InputError):
        MemoryStore(ttl={"default_ttl": minutes})


def test_memories_and_items_of_one_database_do_not_meet(url: str) -> None:
    async def run() -> tuple[list[Any], list[Any]]:
        async with open_memory(url, embedder="none") as memory:
            await memory.remember(("acme",), "ada likes tea")
            with_items = await memory.recall(("acme",), "tea", k=10)
            return with_items, await memory.list(("acme",))

    with MemoryStore(url) as store:
        store.put(("acme",), "k", {"text": "ada likes tea"})
        recalled, listed = asyncio.run(run())
        assert len(recalled) == len(listed) == 1
        assert [one.key for one in store.search(("acme",))] == ["k"]


def test_items_outlive_the_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with MemoryStore(url) as store:
        store.put(("a", "b"), "k", {"n": 1})
    with MemoryStore(url) as store:
        found = store.get(("a", "b"), "k")
    assert found is not None
    assert found.value == {"n": 1}


def test_threads_and_loops_share_a_store(store: MemoryStore) -> None:
    async def put(number: int) -> None:
        await asyncio.gather(*(store.aput(("a",), f"{number}-{at}", {"n": at}) for at in range(10)))

    threads = [threading.Thread(target=asyncio.run, args=(put(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.search(("a",), limit=100)) == 40


def test_a_graph_reads_and_writes_it() -> None:
    class State(TypedDict):
        """A number."""

        n: int

    def remember(state: State) -> State:
        store = get_store()
        store.put(("users", "ada"), "n", {"n": state["n"]})
        found = store.search(("users",))
        return {"n": state["n"] + len(found)}

    graph: Any = StateGraph(State)
    graph.add_node("remember", remember)
    graph.add_edge(START, "remember")
    with MemoryStore() as store:
        app = graph.compile(store=store)
        assert app.invoke({"n": 1}) == {"n": 1 + len(store.search(("users",)))}
        found = store.get(("users", "ada"), "n")
    assert found is not None


@pytest.mark.parametrize(
    "options",
    [
        {"url": 3},
        {"url": "redis://x"},
        {"url": "file.db"},
        {"index": 3},
        {"ttl": "ten"},
        {"clock": 5},
    ],
)
def test_settings_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        MemoryStore(**options)
