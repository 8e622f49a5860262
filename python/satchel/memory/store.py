"""Long-term memory: what is kept across sessions, and found again by what it means."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self, cast

from satchel._arguments import fraction, invalid, listed, one_of, plain_text, whole_number
from satchel.counting import Counter
from satchel.counting import counter as counter_of
from satchel.errors import StoreError
from satchel.memory.analysis import ANALYSER, terms_of
from satchel.memory.backend import Draft, Filter, Footing, Scope, Selection
from satchel.memory.item import KINDS, MemoryItem, draft_of
from satchel.memory.labels import label_of, said_text
from satchel.memory.namespaces import checked_namespace
from satchel.memory.ranking import Ranking
from satchel.memory.recalling import Recall
from satchel.memory.redaction import redacted, redactor_of
from satchel.stores.base import check_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from satchel.counting import AnyCounter
    from satchel.memory.backend import MemoryBackend
    from satchel.memory.embedders.base import CachedEmbedder
    from satchel.memory.item import Kind, Recalled
    from satchel.memory.namespaces import Namespace

    Items = list[MemoryItem]
    Drafts = list[Draft]

__all__ = ["Memory"]

_UPDATABLE: Final = frozenset(
    {"text", "kind", "status", "confidence", "key", "time", "expires_at", "user_id", "metadata"}
)


class Memory:
    """Long-term memory; made by `open_memory`, used within ``async with``.

    Safe to use from several tasks of one event loop.
    """

    def __init__(
        self,
        backend: MemoryBackend,
        *,
        embedder: CachedEmbedder | None,
        redactor: object = ...,
        counter: AnyCounter | None = None,
        ranking: Ranking | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._backend: Final = backend
        self._embedder: Final = embedder
        self._redactor: Final = redactor_of(redactor)
        if counter is None:
            self._counter = counter_of("o200k_base")
        else:
            self._counter = counter if isinstance(counter, Counter) else Counter(counter)
        self._ranking: Final = Ranking() if ranking is None else ranking
        self._clock: Final = clock
        self._settled = False
        self._is_closed = False

    async def __aenter__(self) -> Self:
        """Opens the store.

        Raises:
            StoreError: ``embedder_mismatch`` if its vectors are another embedder's (then
                `reembed` is what makes them anew); whatever the store says.
        """
        self._is_closed = False
        try:
            await self._check(await self._backend.footing())
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Lets go of the store; twice does no harm."""
        self._is_closed = True
        await self._backend.close()

    @property
    def _reached(self) -> MemoryBackend:
        """The backend.

        Raises:
            StoreError: ``store_closed`` after `close`.
        """
        if self._is_closed:
            message = "the memory was closed: use it within `async with`"
            raise StoreError(message, code="store_closed")
        return self._backend

    @property
    def counter(self) -> Counter:
        """What counts budgets."""
        return self._counter

    # --- writing ----------------------------------------------------------------------------------

    async def remember(
        self, namespace: Sequence[str], items: object, *, user_id: str | None = None
    ) -> list[MemoryItem]:
        """Writes items, all or none.

        Secrets and personal numbers are masked first. An item under a ``key`` is an entry of a
        profile: a newer fact supersedes the older, which stays as history. Episodic items of one
        session are neighbours in the order in which they are written.

        Args:
            namespace: where; segments that isolate tenants.
            items: one or several: a text, a mapping with the fields of `MemoryItem` and `Source`,
                or a `MemoryItem`. One with the ``id`` of an item here takes its place.
            user_id: whom they are about, where an item does not say so itself.

        Returns:
            The items as they stand, in order.

        Raises:
            InputError: ``invalid_value``.
            EmbeddingError: the embedder failed; nothing is written then.
            StoreError: ``id_taken``, ``embedder_mismatch``; whatever the store says. Likewise.
        """
        where = checked_namespace(namespace)
        is_one = isinstance(items, str | Mapping | MemoryItem)
        given = cast("Iterable[object]", (items,) if is_one else items)
        drafts = [draft_of(one) for one in listed("items", given)]
        if user_id is not None:
            check_id("user_id", user_id)
            drafts = [
                replace(one, user_id=user_id) if one.user_id is None else one for one in drafts
            ]
        now = self._clock()
        ready = [self._prepared(one, where, now) for one in drafts]
        return await self._written(ready) if ready else []

    async def update(self, namespace: Sequence[str], item_id: str, **changes: Any) -> MemoryItem:  # noqa: ANN401 - values of an item's fields
        """Changes fields of one item; everything else of it stays, in the metadata too.

        Args:
            namespace: where it is, or a namespace above.
            item_id: its id.
            changes: new values of fields; ``metadata`` is merged, a value None removes a name.

        Raises:
            InputError: ``invalid_value``.
            StoreError: ``memory_not_found``; as in `remember`, and the old item stays.
        """
        unknown = sorted(changes.keys() - _UPDATABLE)
        if unknown:
            message = f"{unknown[0][:32]!r} cannot be updated; {', '.join(sorted(_UPDATABLE))} can"
            raise invalid(message)
        old = await self.get(namespace, id=item_id)
        if old is None:
            message = "there is no such item in this namespace"
            raise StoreError(message, code="memory_not_found")
        if "metadata" in changes:
            merged = {**old.metadata, **changes["metadata"]}
            changes["metadata"] = {name: one for name, one in merged.items() if one is not None}
        fresh = draft_of(replace(old, **changes))
        written = await self._written([redacted(fresh, self._redactor)])
        return written[0]

    async def forget(
        self,
        namespace: Sequence[str],
        *,
        ids: Sequence[str] | None = None,
        key: str | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
        everything: bool = False,
    ) -> int:
        """Removes items of a namespace and below it for good: from tables, indexes and logs.

        What is named must all be true of an item. History goes with what superseded it only if it
        is named too: by key, session or user. Backups of the store are the application's.

        Args:
            namespace: where.
            ids: items by id.
            key: entries of profiles under this key, history included.
            session_id: what comes from this session.
            user_id: what is about this user.
            everything: all of the namespace; must be said, for nothing else would name it.

        Returns:
            How many items are gone.

        Raises:
            InputError: ``invalid_value`` if nothing is named.
            StoreError: whatever the store says.
        """
        named = (ids, key, session_id, user_id)
        if everything == any(one is not None for one in named):
            message = "name ids, a key, a session or a user, or say everything=True alone"
            raise invalid(message)
        selection = self._selection(namespace, ids, key, session_id, user_id)
        if self._embedder is not None:
            self._embedder.clear()
        return await self._reached.forget(selection)

    async def reembed(self) -> int:
        """Makes all terms and vectors anew with this memory's embedder; how many items.

        To be called before entering, or within: the one method that a mismatch does not refuse.
        Everything is embedded before anything is written, so a failure changes nothing.

        Raises:
            EmbeddingError: the embedder failed.
            StoreError: ``version_conflict`` if somebody wrote meanwhile; whatever the store says.
        """
        everywhere = Selection(scope=Scope(b"", b"\xff"))
        rows = await self._reached.find(everywhere, None, after=0, limit=None)
        drafts = await self._drafts([item for _, item in rows])
        await self._reached.renew(self._footing(), drafts)
        self._settled = True
        return len(drafts)

    # --- reading ----------------------------------------------------------------------------------

    async def recall(
        self,
        namespace: Sequence[str],
        query: str,
        *,
        k: int = 5,
        kinds: Sequence[Kind] | None = None,
        min_confidence: float | None = None,
        token_budget: int | None = None,
        include_claims: bool = False,
        ranking: Ranking | None = None,
    ) -> list[Recalled]:
        """The items that answer a question best; of a blank one, the newest.

        Filters come before the ranking: what is not asked for takes nobody's place. Only facts that
        hold now are recalled, unless claims are asked for; no text comes twice.

        Args:
            namespace: where to look; what is below it counts too.
            query: the question, in any words.
            k: most items.
            kinds: only these kinds; None for all.
            min_confidence: least confidence; None for any.
            token_budget: most tokens of all texts, by the memory's counter; None for any. An item
                that does not fit is left out, and the next one tried.
            include_claims: whether unconfirmed claims count too; their status says so.
            ranking: other weights than the memory's.

        Returns:
            The best first.

        Raises:
            InputError: ``invalid_value``.
            EmbeddingError: the embedder failed.
            StoreError: whatever the store says.
        """
        scope = Scope.of(checked_namespace(namespace))
        plain_text("query", query)
        whole_number("k", k)
        if token_budget is not None:
            whole_number("token_budget", token_budget)
        filters = self._filter(kinds, min_confidence, include_claims=include_claims)
        work = Recall(self._reached, self._embedder, ranking or self._ranking, self._check_again)
        return await work.run(
            scope, filters, query, k=k, budget=token_budget, counter=self._counter
        )

    async def get(
        self,
        namespace: Sequence[str],
        key: str | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the word for it everywhere
    ) -> MemoryItem | None:
        """One item: the current fact under a key of exactly this namespace, or the item of an id.

        Args:
            namespace: where; for an id, a namespace above will do.
            key: the key of a profile's entry.
            id: or the id of any item: of history and claims too.

        Returns:
            None if there is none, or it has expired.

        Raises:
            InputError: ``invalid_value`` unless exactly one of key and id is given.
        """
        if (key is None) == (id is None):
            message = "give a key or an id"
            raise invalid(message)
        ids = None if id is None else (id,)
        selection = self._selection(namespace, ids, key, None, None)
        selection = replace(selection, exact=key is not None)
        filters = self._filter(None, None, include_claims=id is not None, history=id is not None)
        found = await self._reached.find(selection, filters, after=0, limit=None)
        return found[-1][1] if found else None

    async def list(
        self,
        namespace: Sequence[str],
        *,
        key: str | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
        kinds: Sequence[Kind] | None = None,
        include_claims: bool = False,
        include_history: bool = False,
        limit: int | None = None,
    ) -> list[MemoryItem]:
        """Items of a namespace and below it, in the order in which they were written first.

        Args:
            namespace: where.
            key: only entries under this key.
            session_id: only what comes from this session.
            user_id: only what is about this user.
            kinds: only these kinds.
            include_claims: unconfirmed claims too.
            include_history: what was superseded too.
            limit: most items; None for all.

        Raises:
            InputError: ``invalid_value``.
        """
        selection = self._selection(namespace, None, key, session_id, user_id)
        most = None if limit is None else whole_number("limit", limit)
        filters = self._filter(kinds, None, include_claims=include_claims, history=include_history)
        found = await self._reached.find(selection, filters, after=0, limit=most)
        return [item for _, item in found]

    # --- within -----------------------------------------------------------------------------------

    def _prepared(self, item: MemoryItem, namespace: Namespace, now: float) -> MemoryItem:
        source = replace(
            item.source,
            speaker=_storable(item.source.speaker),
            origin=_storable(item.source.origin),
        )
        fresh = replace(
            item,
            text=_storable(item.text) or "",
            source=source,
            id=check_id("id", item.id) if item.id else secrets.token_hex(12),
            namespace=namespace,
            created_at=now,
            time=now if item.time is None else float(item.time),
            superseded_by=None,
            superseded_at=None,
        )
        return redacted(fresh, self._redactor)

    async def _written(self, items: Items) -> Items:
        drafts = await self._drafts(items)
        if not self._settled:
            await self._check(await self._reached.settle(self._footing()))
            self._settled = True
        return await self._reached.write(drafts)

    async def _drafts(self, items: Items) -> Drafts:
        vectors: Any = [None] * len(items)
        if self._embedder is not None and items:
            vectors = await self._embedder.embed([said_text(item.text) for item in items])
        return [
            Draft(item=item, terms=tuple(terms_of(item.text)), vector=vector, label=label_of(item))
            for item, vector in zip(items, vectors, strict=True)
        ]

    def _footing(self) -> Footing:
        embedder = self._embedder
        if embedder is None:
            return Footing(ANALYSER)
        return Footing(ANALYSER, embedder.name, embedder.dimension)

    async def _check(self, stored: Footing | None) -> None:
        """Refuses a store whose terms or vectors cannot be compared with ours."""
        mine = self._footing()
        if stored is None or (stored.analyser, stored.embedder) == (mine.analyser, mine.embedder):
            same = stored is None or None in (stored.dimension, mine.dimension)
            if same or (stored is not None and stored.dimension == mine.dimension):
                return
        message = (
            f"the store was made with {stored}, not with {mine}: "
            "open it with that embedder, or call reembed()"
        )
        raise StoreError(message, code="embedder_mismatch")

    async def _check_again(self, stored: Footing | None) -> None:
        """As `_check`; what was read some moments ago is read anew before it is refused."""
        try:
            await self._check(stored)
        except StoreError:
            await self._check(await self._reached.footing())

    def _selection(
        self,
        namespace: Sequence[str],
        ids: Sequence[str] | None,
        key: str | None,
        session_id: str | None,
        user_id: str | None,
    ) -> Selection:
        for name, value in (("key", key), ("session_id", session_id), ("user_id", user_id)):
            if value is not None:
                check_id(name, value)
        chosen = (
            None
            if ids is None
            else tuple(check_id("id", one) for one in listed("ids", ids, of="str"))
        )
        return Selection(
            scope=Scope.of(checked_namespace(namespace)),
            ids=chosen,
            key=key,
            session_id=session_id,
            user_id=user_id,
        )

    def _filter(
        self,
        kinds: Sequence[Kind] | None,
        min_confidence: float | None,
        *,
        include_claims: bool = False,
        history: bool = False,
    ) -> Filter:
        if kinds is not None:
            for kind in listed("kinds", kinds, of="str"):
                one_of("kind", kind, KINDS)
        return Filter(
            now=self._clock(),
            kinds=None if kinds is None else tuple(kinds),
            min_confidence=0.0
            if min_confidence is None
            else fraction("min_confidence", min_confidence),
            with_claims=include_claims,
            with_history=history,
        )


def _storable(text: str | None) -> str | None:
    """The text without NUL, which a database cannot keep."""
    return None if text is None else text.replace("\x00", "\ufffd")
