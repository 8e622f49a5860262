"""What of a conversation becomes a memory, and what stays a claim.

An extractor proposes; this module decides. What a rule reads off a plain statement of the user
about themselves is a fact. Everything else, whatever a model is sure of, is a claim: it is left
out, or, where the settings say so, kept apart as one that recall does not see. Each finding names
the message it is from and quotes it; what quotes nothing that was said is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Literal, Protocol, runtime_checkable

from satchel._arguments import fraction, invalid, name_of_type, whole_number
from satchel.errors import ExtractionError, SatchelError
from satchel.memory.item import MemoryItem, Source
from satchel.memory.rules import RuleExtractor
from satchel.stores.codec import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.memory.findings import Finding, Said
    from satchel.memory.store import Memory

__all__ = ["ExtractionReport", "ExtractionSettings", "Extractor", "extract_memories"]

Outcome = Literal["written", "nothing_found", "too_short"]


@runtime_checkable
class Extractor(Protocol):
    """Finds what is worth keeping."""

    @property
    def name(self) -> str:
        """What the source of an item calls it."""
        ...

    async def extract(self, said: Sequence[Said], /) -> Sequence[Finding]:
        """What it finds in a stretch of a conversation.

        Raises:
            ExtractionError: a model refused, or answered with something else.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionSettings:
    """When to extract, and what of it to keep.

    Attributes:
        min_confidence: findings below it are dropped.
        min_chars: an extractor that asks a model is asked only if the user said at least as much;
            rules cost nothing and always read.
        max_chars: of what was said, the most that a model is given: the newest.
        keep_claims: whether what no rule confirms is stored as a claim; else it is dropped.
    """

    min_confidence: float = 0.7
    min_chars: int = 24
    max_chars: int = 12_000
    keep_claims: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= fraction("min_confidence", self.min_confidence) <= 1.0:
            message = "min_confidence must be from 0 to 1"
            raise invalid(message)
        whole_number("min_chars", self.min_chars)
        whole_number("max_chars", self.max_chars, least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionReport:
    """What an extraction came to.

    Attributes:
        outcome: ``written``, ``nothing_found``, or ``too_short`` if nobody was asked and no rule
            found anything.
        facts: what was written as facts.
        claims: what was written as claims.
        dropped: findings that were not written: unsure, without a quote, claims not kept.
    """

    outcome: Outcome
    facts: tuple[MemoryItem, ...] = ()
    claims: tuple[MemoryItem, ...] = ()
    dropped: int = 0


_RULES: Final = RuleExtractor()


async def extract_memories(
    memory: Memory,
    namespace: Sequence[str],
    said: Sequence[Said],
    *,
    extractor: Extractor | None = None,
    settings: ExtractionSettings | None = None,
    session_id: str | None = None,
    user_id: str | None = None,
) -> ExtractionReport:
    """Extracts from a stretch of a conversation and writes what is kept, all of it or nothing.

    Args:
        memory: where to.
        namespace: of the items.
        said: the messages, oldest first.
        extractor: who proposes beside the rules; None for the rules alone.
        settings: what to keep.
        session_id: the session that the messages are from.
        user_id: whom they are about.

    Raises:
        ExtractionError: ``extraction_failed`` or what the extractor says; nothing is written then,
            and nothing of the conversation is touched.
        EmbeddingError: likewise.
        StoreError: likewise.
    """
    chosen = ExtractionSettings() if settings is None else settings
    confirmed = list(await _RULES.extract(said))
    proposed: list[Finding] = []
    spoken = sum(len(one.text) for one in said if one.role == "user")
    asks = extractor is not None and spoken >= chosen.min_chars
    if extractor is not None and asks:
        proposed = await _proposed(extractor, _newest(said, chosen.max_chars))
    facts, claims, dropped = _sorted(confirmed, proposed, said, chosen)
    if not facts and not claims:
        none: Outcome = "nothing_found" if asks or extractor is None else "too_short"
        return ExtractionReport(outcome=none, dropped=dropped)
    origin = _RULES.name if extractor is None else extractor.name
    items = [
        _item(one, status, who, session_id)
        for some, status, who in ((facts, "fact", _RULES.name), (claims, "claim", origin))
        for one in some
    ]
    items = [replace(one, id=_id_of(one, namespace)) for one in items]
    known: dict[str, MemoryItem] = {}
    for one in items:
        found = await memory.get(namespace, id=one.id) if one.id else None
        if found is not None:
            # The same stretch was extracted from before: what was written may be out of date by
            # now, and must not take the place of what is newer.
            known[one.id] = found
    fresh = [one for one in items if one.id not in known]
    written = iter(await memory.remember(namespace, fresh, user_id=user_id))
    stand = [known[one.id] if one.id in known else next(written) for one in items]
    return ExtractionReport(
        outcome="written",
        facts=tuple(stand[: len(facts)]),
        claims=tuple(stand[len(facts) :]),
        dropped=dropped,
    )


async def _proposed(extractor: Extractor, said: Sequence[Said]) -> list[Finding]:
    try:
        return list(await extractor.extract(said))
    except SatchelError:
        raise
    except Exception as error:
        message = f"the extractor {extractor.name!r} failed: {name_of_type(error)}"
        raise ExtractionError(message, code="extraction_failed") from error


def _sorted(
    confirmed: Sequence[Finding],
    proposed: Sequence[Finding],
    said: Sequence[Said],
    settings: ExtractionSettings,
) -> tuple[list[Finding], list[Finding], int]:
    """Facts, claims, and how many findings are neither."""
    facts = [one for one in confirmed if one.confidence >= settings.min_confidence]
    claims: list[Finding] = []
    text_of = {one.index: one.text for one in said}
    known = {_same(one.text) for one in facts}
    covered = {(one.message, _same(one.quote)) for one in facts}
    dropped = len(confirmed) - len(facts)
    for one in proposed:
        quoted = _same(one.quote)
        is_quoted = bool(quoted) and quoted in _same(text_of.get(one.message, ""))
        if not is_quoted or one.confidence < settings.min_confidence:
            dropped += 1
        elif _same(one.text) in known or _is_covered(one, quoted, covered):
            known.add(_same(one.text))  # a rule says the same, and says it for sure
        elif settings.keep_claims:
            known.add(_same(one.text))
            claims.append(one)
        else:
            dropped += 1
    return facts, claims, dropped


def _is_covered(one: Finding, quoted: str, covered: set[tuple[int, str]]) -> bool:
    return any(index == one.message and quoted in quote for index, quote in covered)


def _item(one: Finding, status: str, origin: str, session_id: str | None) -> MemoryItem:
    source = Source(session_id=session_id, message=one.message, speaker=one.speaker, origin=origin)
    item = MemoryItem(
        text=one.text,
        kind=one.kind,
        confidence=one.confidence,
        key=one.key if status == "fact" else None,
        time=one.time,
        source=source,
        metadata={"quote": one.quote},
    )
    return replace(item, status="fact" if status == "fact" else "claim")


def _id_of(item: MemoryItem, namespace: Sequence[str]) -> str:
    """The same for the same finding of a message; empty where nothing says which message."""
    source = item.source
    if source.session_id is None or source.message is None:
        return ""
    parts = (*namespace, source.session_id, source.message, item.kind, item.status, item.text)
    return blake2b(encode(parts), digest_size=16).hexdigest()


def _newest(said: Sequence[Said], max_chars: int) -> list[Said]:
    kept: list[Said] = []
    left = max_chars
    for one in reversed(said):
        left -= len(one.text)
        if left < 0 and kept:
            break
        kept.append(one)
    return kept[::-1]


def _same(text: str) -> str:
    return " ".join(text.split()).casefold()
