"""Long-term memory: alike on every backend, apart by namespace, gone when it is forgotten."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import satchel
from memory_stores import BACKENDS, Clock, fresh_database, memory_of, room
from satchel.memory import CallableEmbedder, MemoryItem, Ranking, Recalled, Source
from satchel.memory.namespaces import is_within, path_end, path_of

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def texts(hits: list[Recalled]) -> list[str]:
    return [hit.text for hit in hits]


@pytest.mark.parametrize("backend", BACKENDS)
def test_namespaces_are_compared_by_whole_segments(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with memory_of(backend, tmp_path) as memory:
            tenant = room()
            for segments, text in (
                (("acme",), "A"),
                (("acme-corp",), "B"),
                (("acme", "sub"), "C"),
                (("ac_e",), "D"),
                (("acme%",), "E"),
            ):
                await memory.remember((tenant, *segments), text)
            assert set(texts(await memory.recall((tenant, "acme"), ""))) == {"A", "C"}
            assert texts(await memory.recall((tenant, "ac_e"), "")) == ["D"]
            assert texts(await memory.recall((tenant, "acme%"), "")) == ["E"]
            assert await memory.recall((tenant, "acm"), "") == []

    run(work())


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_filter_comes_before_the_ranking(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with memory_of(backend, tmp_path) as memory:
            tenant = room()
            await memory.remember((tenant, "u1"), "pin is blue")
            await memory.remember((tenant, "u1.x"), "pin is red")
            await memory.remember((tenant, "u3"), [f"pin is green {n}" for n in range(50)])
            unsure = [{"text": f"pin is pale {n}", "confidence": 0.2} for n in range(500)]
            await memory.remember((tenant, "u1"), unsure)
            found = await memory.recall((tenant, "u1"), "pin", k=5, min_confidence=0.5)
            assert texts(found) == ["pin is blue"]
            assert found[0].item.namespace == (tenant, "u1")

    run(work())


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_newer_fact_supersedes_and_history_stays(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        clock = Clock()
        async with memory_of(backend, tmp_path, clock=clock) as memory:
            where = (room(), "ana")
            [old] = await memory.remember(where, {"text": "my name is Ana", "key": "name"})
            clock.now += 10
            [new] = await memory.remember(where, {"text": "my name is Eva", "key": "name"})
            assert texts(await memory.recall(where, "name")) == ["my name is Eva"]
            assert (await memory.get(where, "name")) == new
            history = await memory.list(where, include_history=True)
            assert [item.superseded_by for item in history] == [new.id, None]
            assert history[0].id == old.id
            assert history[0].superseded_at == clock.now
            # What was true before does not take the place of what is true now.
            late = {"text": "my name was Ida", "key": "name", "time": 500_000.0}
            [older] = await memory.remember(where, late)
            assert older.superseded_by == new.id
            # A claim supersedes nothing, and is not recalled.
            await memory.remember(where, {"text": "name: Bo", "key": "name", "status": "claim"})
            assert texts(await memory.recall(where, "name")) == ["my name is Eva"]
            claims = await memory.recall(where, "name", include_claims=True)
            assert {hit.item.status for hit in claims} == {"fact", "claim"}

    run(work())


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_update_changes_only_what_is_given(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        clock = Clock()
        async with memory_of(backend, tmp_path, clock=clock) as memory:
            where = (room(), "u")
            source = Source(session_id="s", message=3, speaker="user")
            metadata = {"bucket": "b7", "source": "mail"}
            item = MemoryItem(text="a", metadata=metadata, source=source, confidence=0.75)
            [old] = await memory.remember(where, item, user_id="ana")
            clock.now += 5
            await memory.update(where, old.id, text="b")
            new = await memory.get(where, id=old.id)
            assert new is not None
            assert (new.text, new.metadata, new.source) == ("b", metadata, source)
            assert (new.created_at, new.time, new.user_id) == (old.created_at, old.time, "ana")
            await memory.update(where, old.id, metadata={"bucket": None, "more": [1]})
            changed = await memory.get(where, id=old.id)
            assert changed is not None
            assert changed.metadata == {"source": "mail", "more": [1]}
            with pytest.raises(satchel.StoreError) as caught:
                await memory.update((room(),), old.id, text="c")
            assert caught.value.code == "memory_not_found"
            with pytest.raises(satchel.StoreError) as caught:
                await memory.remember((room(),), {"id": old.id, "text": "stolen"})
            assert caught.value.code == "id_taken"
            assert (await memory.get(where, id=old.id)) == changed

    run(work())


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_expired_or_is_of_another_kind_is_not_recalled(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        clock = Clock()
        async with memory_of(backend, tmp_path, clock=clock) as memory:
            where = (room(),)
            await memory.remember(
                where,
                [
                    {"text": "the code word is plum", "expires_at": clock.now + 5},
                    {"text": "the code word is kept in the safe", "kind": "procedural"},
                    {"text": "the code word was changed", "kind": "semantic"},
                ],
            )
            assert len(await memory.recall(where, "code word")) == 3
            found = await memory.recall(where, "code word", kinds=("semantic",))
            assert texts(found) == ["the code word was changed"]
            clock.now += 10
            assert "the code word is plum" not in texts(await memory.recall(where, "code word"))
            assert len(await memory.list(where)) == 2

    run(work())


@pytest.mark.parametrize("backend", BACKENDS)
def test_forgetting_by_id_source_and_user(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with memory_of(backend, tmp_path) as memory:
            where = (room(),)
            items = [
                {"text": "one about rain", "session_id": "s1"},
                {"text": "two about rain", "session_id": "s1", "user_id": "ana"},
                {"text": "three about rain", "session_id": "s2", "user_id": "ana"},
                {"text": "four about rain", "session_id": "s2"},
                {"text": "five about rain", "key": "weather"},
            ]
            written = await memory.remember(where, items)
            assert await memory.forget((room(),), ids=[written[0].id]) == 0
            assert await memory.forget(where, ids=[written[0].id]) == 1
            assert await memory.forget(where, user_id="ana", session_id="s1") == 1
            assert await memory.forget(where, user_id="ana") == 1
            assert texts(await memory.recall(where, "rain")) == [
                "four about rain",
                "five about rain",
            ]
            assert await memory.get(where, id=written[1].id) is None
            with pytest.raises(satchel.InputError):
                await memory.forget(where)
            assert await memory.forget(where, everything=True) == 2
            assert await memory.recall(where, "rain") == []
            assert await memory.list(where, include_history=True, include_claims=True) == []

    run(work())


def test_what_is_forgotten_is_not_in_the_file(tmp_path: Path) -> None:
    def held(word: bytes) -> bool:
        return any(word in file.read_bytes() for file in tmp_path.iterdir())

    async def work() -> None:
        url = f"sqlite:///{tmp_path / 'memory.db'}"
        async with satchel.open_memory(url) as memory:
            filler = [f"remark {number} about gardens" for number in range(200)]
            await memory.remember(("u",), filler)
            secret = {"text": "the quokkaxyz hides at Zanzibar9", "metadata": {"w": "wombat7"}}
            [item] = await memory.remember(("u",), secret)
            await memory.remember(("u",), [f"later {number}" for number in range(200)])
            words = (b"quokkaxyz", b"zanzibar", b"Zanzibar9", b"wombat7", item.id.encode())
            assert all(map(held, (b"quokkaxyz", b"wombat7", item.id.encode())))
            assert await memory.forget(("u",), ids=[item.id]) == 1
            assert not any(map(held, words))
            assert len(await memory.list(("u",))) == 400
        assert not any(map(held, words))

    run(work())


def test_another_process_s_writes_are_seen(tmp_path: Path) -> None:
    async def work() -> None:
        url = f"sqlite:///{tmp_path / 'memory.db'}"
        async with satchel.open_memory(url) as mine, satchel.open_memory(url) as theirs:
            await mine.remember(("u",), "the kettle is blue")
            assert texts(await theirs.recall(("u",), "kettle")) == ["the kettle is blue"]
            await theirs.remember(("u",), "the kettle is loud")
            assert len(await mine.recall(("u",), "kettle")) == 2
            assert await theirs.forget(("u",), everything=True) == 2
            assert await mine.recall(("u",), "kettle") == []

    run(work())


@pytest.mark.parametrize("backend", BACKENDS)
def test_budget_and_doubles(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with memory_of(backend, tmp_path) as memory:
            where = (room(),)
            long = "Harbour lights " + "and more of them " * 40
            await memory.remember(
                where, ["Harbour lights at  dusk", "harbour lights at dusk", long, "Harbour"]
            )
            hits = await memory.recall(where, "harbour lights", token_budget=12)
            assert len(hits) == 2
            assert sum(hit.tokens for hit in hits) <= 12
            assert all(hit.tokens == memory.counter.count(hit.text) for hit in hits)
            assert len(await memory.recall(where, "harbour lights")) == 3
            assert await memory.recall(where, "harbour", k=0) == []

    run(work())


SEGMENTS = st.one_of(
    st.sampled_from(
        ["a", "ab", "a\x00", "a\x00\x01", "\x01", "a%", "a_", "a/b", "a\xff", "A", "é"]
    ),
    st.text(
        st.sampled_from(" \x00") | st.characters(exclude_categories=("C", "Z")),
        min_size=1,
        max_size=6,
    ),
)
NAMESPACES = st.lists(SEGMENTS, min_size=1, max_size=4).map(tuple)


@given(NAMESPACES, NAMESPACES)
def test_a_path_lies_in_a_range_just_if_the_namespace_lies_in_the_scope(
    namespace: tuple[str, ...], scope: tuple[str, ...]
) -> None:
    start = path_of(scope)
    assert (start <= path_of(namespace) < path_end(start)) == is_within(namespace, scope)


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=10)
@given(data=st.data())
def test_no_namespace_sees_another(
    backend: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    namespaces = data.draw(st.lists(NAMESPACES, min_size=2, max_size=6, unique=True))

    async def work() -> None:
        tenant = room()
        folder = tmp_path_factory.mktemp("memories")
        # The server's tables are the default embedder's; elsewhere words alone are quicker.
        embedder = None if backend.startswith("postgres") else "none"
        async with memory_of(backend, folder, embedder=embedder) as memory:
            for number, namespace in enumerate(namespaces):
                await memory.remember((tenant, *namespace), {"text": f"note {number}", "key": "k"})
            for scope in namespaces:
                inside = {
                    f"note {number}"
                    for number, namespace in enumerate(namespaces)
                    if namespace[: len(scope)] == scope
                }
                for query in ("note", ""):
                    found = await memory.recall((tenant, *scope), query, k=50)
                    assert set(texts(found)) == inside
                assert {item.text for item in await memory.list((tenant, *scope))} == inside
                one = await memory.get((tenant, *scope), "k")
                assert one is not None
                assert one.namespace == (tenant, *scope)
            gone = namespaces[0]
            await memory.forget((tenant, *gone), everything=True)
            left = {item.namespace[1:] for item in await memory.list((tenant,))}
            assert left == {one for one in namespaces if one[: len(gone)] != gone}

    run(work())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("junk", ["raises", "short", "shape", "nan"])
def test_an_embedder_that_fails_writes_nothing(backend: str, junk: str, tmp_path: Path) -> None:
    broken = [False]

    def embed(given_texts: list[str]) -> Any:
        rows = np.ones((len(given_texts), 8), np.float32)
        if not broken[0]:
            return rows
        if junk == "raises":
            raise ValueError(given_texts[0])
        rows[0, 0] = np.nan
        return {"short": rows[:-1], "shape": rows[:, :5], "nan": rows}[junk]

    async def work() -> None:
        embedder = CallableEmbedder(embed, name="constant", dimension=8)
        where = (room(),)
        # The tables of the tests' own database are the default embedder's.
        opened = (
            satchel.open_memory(fresh_database(), embedder=embedder)
            if backend.startswith("postgres")
            else memory_of(backend, tmp_path, embedder=embedder)
        )
        async with opened as memory:
            await memory.remember(where, ["first", "second"])
            broken[0] = True
            with pytest.raises(satchel.EmbeddingError) as caught:
                await memory.remember(where, ["third secret", "fourth"])
            assert caught.value.code == "embedding_failed"
            assert "secret" not in str(caught.value)
            with pytest.raises(satchel.EmbeddingError):
                await memory.update(where, (await memory.list(where))[0].id, text="changed")
            broken[0] = False
            assert [item.text for item in await memory.list(where)] == ["first", "second"]

    run(work())


def test_another_embedder_is_refused_until_all_is_embedded_anew(tmp_path: Path) -> None:
    def embed(size: int) -> CallableEmbedder:
        def rows(given_texts: list[str]) -> Any:
            return [[float(len(text)), *[1.0] * (size - 1)] for text in given_texts]

        return CallableEmbedder(rows, name=f"length-{size}", dimension=size)

    async def work() -> None:
        url = f"sqlite:///{tmp_path / 'memory.db'}"
        async with satchel.open_memory(url, embedder=embed(4)) as memory:
            await memory.remember(("u",), ["one", "three"])
        with pytest.raises(satchel.StoreError) as caught:
            async with satchel.open_memory(url, embedder=embed(6)):
                pass
        assert caught.value.code == "embedder_mismatch"
        newer = satchel.open_memory(url, embedder=embed(6))
        assert await newer.reembed() == 2
        async with newer as memory:
            assert len(await memory.recall(("u",), "one")) == 2
        with pytest.raises(satchel.StoreError):
            async with satchel.open_memory(url, embedder=embed(4)):
                pass

    run(work())


def test_options_of_the_ranking() -> None:
    async def work() -> None:
        clock = Clock()
        async with satchel.open_memory("memory://", clock=clock) as memory:
            items = [
                {"text": "lunch was soup at the harbour", "time": clock.now - 9e6},
                {"text": "lunch was soup at the station", "time": clock.now, "confidence": 0.3},
                {"text": "a note on trains", "time": clock.now},
            ]
            await memory.remember(("u",), [{**one, "kind": "semantic"} for one in items])
            plain = texts(await memory.recall(("u",), "soup for lunch", k=2))
            assert set(plain) == {items[0]["text"], items[1]["text"]}
            for ranking, first in (
                (Ranking(recency=1.0), items[1]["text"]),
                (Ranking(confidence=3.0), items[0]["text"]),
            ):
                found = await memory.recall(("u",), "soup for lunch", k=2, ranking=ranking)
                assert found[0].text == first
            diverse = Ranking(diversity=0.9)
            found = await memory.recall(("u",), "soup for lunch", k=2, ranking=diverse)
            assert texts(found) == [plain[0], items[2]["text"]]

    run(work())


def test_urls_and_arguments_that_are_refused(tmp_path: Path) -> None:
    for url, code in (
        ("redis://host/0", "unsupported_store"),
        ("mongodb://host", "unknown_store"),
        ("sqlite://host/file.db", "unknown_store"),
    ):
        with pytest.raises(satchel.InputError) as caught:
            satchel.open_memory(url)
        assert caught.value.code == code

    async def work() -> None:
        async with memory_of("sqlite", tmp_path) as memory:
            wrong: list[Any] = ["u", (), ("",), ("a", 3), (b"a",)]
            for namespace in wrong:
                with pytest.raises(satchel.InputError):
                    await memory.remember(namespace, "text")
            for item in (3, {"txt": "a"}, {"kind": "semantic"}, {"text": "a", "confidence": 2}):
                with pytest.raises(satchel.InputError):
                    await memory.remember(("u",), [item])
            assert await memory.list(("u",)) == []
            with pytest.raises(satchel.InputError):
                await memory.get(("u",))

    run(work())


@pytest.mark.parametrize("backend", BACKENDS)
def test_secrets_are_masked_before_they_are_written(backend: str, tmp_path: Path) -> None:
    async def work() -> None:
        mail = "ada.lovelace@example.org"
        async with memory_of(backend, tmp_path) as memory:
            where = (room(),)
            item = {"text": f"Write to {mail}.", "metadata": {"seen": [{"at": mail}]}}
            [written] = await memory.remember(where, item)
            assert "[EMAIL_1]" in written.text
            assert mail not in str(await memory.list(where))
            await memory.update(where, written.id, text=f"Or to {mail}, again.")
            assert mail not in str(await memory.list(where))

    run(work())
    assert not any(b"ada.lovelace" in file.read_bytes() for file in tmp_path.iterdir())


def test_a_redactor_of_one_s_own_and_none() -> None:
    async def work() -> None:
        for redactor, text in ((str.upper, "CALL A@B.ORG"), (None, "call a@b.org")):
            async with satchel.open_memory("memory://", redactor=redactor) as memory:
                [written] = await memory.remember(("u",), "call a@b.org")
                assert written.text == text

    run(work())


def test_texts_that_a_database_finds_hard(tmp_path: Path) -> None:
    async def work() -> None:
        hard = ["nul \x00 inside", "'; DROP TABLE x; --", 'quote " and \\ slash', "🦦 otter", "ﬁne"]
        for backend in BACKENDS:
            async with memory_of(backend, tmp_path) as memory:
                where = (room(), "a\x00b", '";\\')
                written = await memory.remember(
                    where, [{"text": text, "metadata": {"x": text}} for text in hard]
                )
                assert [item.text for item in written] == [
                    text.replace("\x00", "\ufffd") for text in hard
                ]
                assert await memory.list(where) == written
                hits = await memory.recall(where, "otter")
                assert hits[0].text == "🦦 otter"

    run(work())
