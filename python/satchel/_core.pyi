"""The native half of the package: types and functions as Rust defines them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Protocol, Self, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from satchel.counting import BatchEncoder, TextEncoder
from satchel.errors import SatchelError

__all__ = [
    "Calibration",
    "Counter",
    "LintProgress",
    "MessageTokens",
    "Resident",
    "RewriteReader",
    "Rewriter",
    "StoredMessages",
    "TranscriptReader",
    "WorkingSet",
    "__version__",
    "allocate_budget",
    "analyse",
    "analyse_many",
    "approximate_fit",
    "column_names",
    "column_scores",
    "column_windows",
    "convert_messages",
    "count_line_ends",
    "debug_build",
    "describe_json",
    "describe_message",
    "describe_text",
    "detect_dialect",
    "error_codes",
    "has_rows_of",
    "identifiers_of",
    "json_values",
    "likelihood_rows",
    "lint_rows",
    "lint_rules",
    "prune_tool_outputs",
    "redact_text",
    "redact_texts",
    "redaction_kinds",
    "redaction_placeholder",
    "repair_messages",
    "repair_placeholders",
    "replay_baselines",
    "replay_run",
    "role_names",
    "score_messages",
    "signal_names",
    "sliding_window",
    "stop_words",
    "term_counts",
    "text_structure",
    "text_structures",
    "token_window",
    "transcript_formats",
    "trim_text",
]

__version__: str
debug_build: bool

_T = TypeVar("_T")

class _CountsText(Protocol):
    def count(self, text: str, /) -> int: ...

@final
class Counter:
    """Counts texts in tokens. Immutable, shared between threads; compares and hashes by value.

    Args:
        encoding: the name of an encoding or estimator, or what counts: a ``tiktoken.Encoding``,
            an object with ``count(text)``, or a callable ``text -> int``. An object may state
            ``encoding``, ``exact`` and ``margin``.
        exact: whether the counts are the provider's own; default: what the encoding says.
        margin: share by which the provider's count may lie above; default likewise.
        rules: the figures of a model as JSON, as ``satchel.counter`` fills them in: what its
            messages, calls, tools and images cost, and its factors by kind of content.

    Raises:
        InputError: ``unknown_encoding``; ``invalid_value`` for the wrong type, a negative margin,
            or rules that cannot be read.

    The ranks of a ``tiktoken.Encoding`` whose pattern is that of ``o200k_base`` or ``cl100k_base``
    feed the native encoder; of any other encoding ``encode_ordinary`` is called.

    A lone surrogate counts as U+FFFD and a surrogate pair as its character, as in tiktoken; what
    `truncate` returns has these in their place. Every method raises ``InputError``:
    ``invalid_value`` for an argument of the wrong type or a text of 4 GiB or more;
    ``counter_failed`` if the caller's own counter raised (its exception is the cause) or returned
    anything but an int from 0.
    """

    def __new__(
        cls,
        encoding: str | TextEncoder | BatchEncoder | _CountsText | Callable[[str], int],
        /,
        *,
        exact: bool | None = None,
        margin: float | None = None,
        rules: str | None = None,
    ) -> Counter: ...
    @property
    def exact(self) -> bool:
        """Whether the count is the provider's own."""
    @property
    def name(self) -> str:
        """What settings call it: the model's name, else that of the encoding."""
    @property
    def encoding(self) -> str:
        """Name of the encoding or estimator."""
    @property
    def rules(self) -> str | None:
        """The figures of its model as JSON; None if it is not the counter of one."""
    @property
    def margin(self) -> float:
        """Share by which the true count may lie above: ``ceil(tokens * (1 + margin))``."""
    def count(self, text: str, /) -> int:
        """Tokens of ``text``; text that looks like a special token is ordinary text."""
    def count_many(self, texts: Iterable[str], /) -> NDArray[np.uint32]:
        """Tokens of each text, ``(len(texts),)``; all cores, unless the counter is a caller's."""
    def fits(self, text: str, max_tokens: int) -> bool:
        """Whether ``text`` has at most ``max_tokens`` tokens; stops counting soon after."""
    def truncate(
        self, text: str, max_tokens: int, *, keep: Literal["head", "tail", "both"] = "head"
    ) -> str:
        """``text`` cut to at most ``max_tokens`` by this counter's own count.

        Never splits a character. ``"both"`` keeps half of the tokens from each end and puts
        nothing between. A counter of the caller's own must count empty text as 0.
        """
    def count_messages(
        self,
        messages: Iterable[object],
        /,
        *,
        system: object = None,
        tools: object = None,
        dialect: str | None = None,
        calibration: object = None,
    ) -> MessageTokens:
        """Tokens of the messages of a request.

        Args:
            messages: the messages, as dicts or SDK objects.
            system: the ``system`` argument of the request: a string or a list of text blocks.
            tools: the tool definitions of the request.
            dialect: ``"openai"`` or ``"anthropic"``; default: what the messages give away,
                ``"openai"`` if they would read the same in both.
            calibration: a `Calibration`, or what has ``factor`` and ``offset``; ``total`` is then
                ``ceil(factor * total + offset)``.

        Raises:
            InputError: ``invalid_message`` or ``too_deep`` with the index of the message,
                ``unknown_dialect``, ``counter_failed``, ``invalid_value`` for a wrong calibration.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[object], dict[str, object]]: ...

def error_codes() -> dict[str, type[SatchelError]]:
    """The exception class of every error code, in the order of the catalogue."""

def sliding_window(messages: list[_T], max_messages: int, /, *, dialect: str | None) -> list[_T]:
    """All instructions, then the newest steps of at most ``max_messages`` messages together."""

def token_window(
    messages: list[_T],
    max_tokens: int,
    /,
    *,
    counter: Counter,
    dialect: str | None,
    model_dialect: str | None,
) -> list[_T]:
    """All instructions, then the newest steps that fit into what they leave of ``max_tokens``.

    ``model_dialect`` asks for the chat formula, and is the dialect of messages that do not tell
    theirs; ``None`` counts content text.
    """

def analyse(text: str, /) -> list[str]:
    """The terms of a text, in order, as recall stores them. A lone surrogate separates."""

def analyse_many(texts: list[str], /) -> list[list[str]]:
    """The terms of each text."""

def stop_words() -> list[str]:
    """The terms that are stop words, sorted."""

def term_counts(texts: list[str], terms: list[str], /) -> tuple[NDArray[np.int64], ...]:
    """How often each term is in each text of spaced terms, ``(n, t)``, and the texts' lengths."""

def redact_text(text: str, /, *, kinds: list[str]) -> tuple[str, list[tuple[str, int, int, int]]]:
    """The text without values of ``kinds``, and of each value its kind, start, end and number."""

def redact_texts(
    texts: list[str], /, *, kinds: list[str]
) -> list[tuple[str, list[tuple[str, int, int, int]]]]:
    """The same for each text."""

def redaction_kinds() -> list[str]:
    """The names of all kinds."""

def redaction_placeholder(kind: str, number: int, /) -> str:
    """What stands for a value."""

def allocate_budget(
    total_tokens: int, shares: list[tuple[str, float]], /
) -> tuple[int, int, int, int, int]:
    """Tokens of the five sections, in the order of their names."""

def approximate_fit(
    messages: list[Any],
    kinds: dict[type, str],
    /,
    *,
    chars_per_token: float,
    extra: float,
    image: float,
    with_name: bool,
    start: float,
    limit: float,
    backward: bool,
) -> tuple[int, float] | None:
    """LangChain's estimate over a list of its messages, from the first or the last one on.

    Args:
        messages: message objects of LangChain.
        kinds: the classes whose fields can be read natively, as ``"human"``, ``"ai"``, ``"tool"``,
            ``"system"``, ``"function"`` or ``"chat"``.
        chars_per_token: characters (Unicode scalar values or surrogates) of a token.
        extra: tokens of each message.
        image: tokens of an image block.
        with_name: whether a message's name counts.
        start: what the running count starts at.
        limit: most tokens.
        backward: whether to go from the last message to the first.

    Returns:
        How many messages have a running count whose ceiling is at most ``limit``, and the running
        count up to the first that has not. None if a figure is not positive, or a message or field
        is of a kind that only Python can count.
    """

def score_messages(
    messages: list[object],
    /,
    *,
    weights: list[tuple[str, float]] | None,
    query: str | None,
    counter: Counter,
) -> NDArray[np.float32]:
    """One score per message, from 0 to 1; ``weights`` None: the keyword formula, else replaced."""

def column_windows(
    tokens: NDArray[np.uint32],
    protected: NDArray[np.bool_],
    limits: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    /,
) -> NDArray[np.int64]:
    """Indices of the messages in the window of each conversation, rising."""

def column_scores(
    roles: NDArray[np.uint8],
    tokens: NDArray[np.uint32],
    signals: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    /,
    *,
    weights: list[tuple[str, float]] | None,
) -> NDArray[np.float32]:
    """One score per message, from 0 to 1; ``weights`` as in `score_messages`."""

def trim_text(
    text: str,
    /,
    *,
    limit: int,
    counter: Counter | None,
    pointer: str,
    matching: list[str],
) -> tuple[str, str, int]:
    """The text within ``limit`` tokens (no counter: chars), its structure, and lines left out."""

def text_structure(text: str, /) -> str:
    """The name of the structure of a text."""

def text_structures() -> list[str]:
    """The names of all structures."""

def prune_tool_outputs(
    messages: list[_T], /, *, max_chars: int, keep_last: int, strip: list[str]
) -> list[_T]:
    """The messages with old, long tool outputs cut to ``max_chars`` characters and a note."""

@final
class Calibration:
    """What was learnt from the usage that a provider reported; a value that never changes.

    A line ``factor * counted + offset`` goes through the newest report, so the next estimate is
    anchored on it and only what was added since is estimated. The factor comes from the growth
    between reports; what a client sends beside the messages shifts them all alike and ends up in
    the offset. A report that does not fit counts for little, and the factor stays within 0.5 to 2.

    Start with ``Calibration()``; the arguments are for copies and pickles.

    Example:
        >>> from satchel import Calibration
        >>> learnt = Calibration().observe(10_000, 12_000).observe(20_000, 24_000)
        >>> learnt.estimate(21_000)
        25200
    """

    def __new__(
        cls,
        *,
        factor: float = 1.0,
        offset: float = 0.0,
        n: int = 0,
        estimated: int = 0,
        reported: int = 0,
        counted_growth: float = 0.0,
        reported_growth: float = 0.0,
        error: float = 0.0,
    ) -> Calibration: ...
    @property
    def factor(self) -> float:
        """Tokens reported for each one counted."""
    @property
    def offset(self) -> float:
        """Tokens on top."""
    @property
    def n(self) -> int:
        """Reports so far."""
    @property
    def margin(self) -> float | None:
        """Share that the truth may lie above, by how far reports were off; None below three."""
    def observe(self, estimated: object, usage: object, /) -> Calibration:
        """What is known after one more report.

        Args:
            estimated: what was counted for the request, without a calibration: an int, a `Window`
                (its ``tokens``) or `MessageTokens` (its ``total``).
            usage: what the provider reported: the input tokens, cached ones included, or a `Usage`.

        Returns:
            A new value; its line meets this report.

        Raises:
            InputError: ``invalid_value`` if either is 0 or of the wrong type.
        """
    def estimate(self, tokens: int, /) -> int:
        """The estimate for a count."""
    def event(self) -> dict[str, Any]:
        """The event for ``WorkingSet.apply``: its budget is in reported tokens from then on."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, float]]: ...

@final
class MessageTokens:
    """What the messages of one request cost, in tokens. Immutable.

    Without a calibration ``total == per_message.sum() + system + tools + overhead``.
    """

    def __new__(
        cls,
        *,
        per_message: NDArray[np.uint32],
        total: int,
        upper: int,
        system: int,
        tools: int,
        overhead: int,
        exact: bool,
    ) -> MessageTokens: ...
    @property
    def per_message(self) -> NDArray[np.uint32]:
        """Tokens of each message with its framing, shape ``(len(messages),)``; read-only."""
    @property
    def total(self) -> int:
        """Input tokens of the whole request; scaled, if a calibration was given."""
    @property
    def upper(self) -> int:
        """``total`` with the counter's margin: ``ceil(total * (1 + margin))``."""
    @property
    def system(self) -> int:
        """Tokens of the ``system`` argument."""
    @property
    def tools(self) -> int:
        """Tokens of the tool definitions, fixed ones included."""
    @property
    def overhead(self) -> int:
        """Tokens that a request costs beside all of these."""
    @property
    def exact(self) -> bool:
        """Whether ``total`` is the provider's own count.

        True for plain text and flat tool schemas in the ``openai`` dialect with an exact counter.
        Calls, results, reasoning, media and other dialects are documented estimates.
        """
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]: ...

def identifiers_of(text: str, /) -> list[str]:
    """The identifiers of a text, in order, each as often as it stands there."""

def json_values(joined: bytes, /) -> list[Any] | None:
    """The values of JSON texts with commas between them; None if one is out of the ordinary."""

def likelihood_rows(
    messages: str, dialect: str, /, *, counter: Counter, every: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
    """What the weights of ``Likelihood`` are fitted to, at every ``every``-th reply of a run.

    Messages are a JSON list. Returns for n identifiers their features, ``(n, 28)`` in the order of
    the weights; whether an action used each at least six messages after its newest copy and before
    any other; whether the conversation looked like a dialogue; and for how many rows each stands.
    """

def lint_rows(
    messages: Iterable[object],
    /,
    dialect: str,
    *,
    traits: list[str],
    system: object = None,
    tools: object = None,
    previous: Iterable[object] | None = None,
    same_prompt: bool = True,
) -> list[tuple[str, Literal["error", "warning"], int | None, str, str]]:
    """The findings of ``satchel.lint`` as rows: the fields of a ``Violation``."""

@final
class LintProgress:
    """Whether windows that grow at their end are right, at the price of what is new."""

    def __new__(cls, dialect: str, traits: list[str]) -> Self: ...
    @property
    def start(self) -> int:
        """Index of the first message that the next check needs."""
    def is_valid(self, messages: list[Any], system: object, tools: object, /) -> bool:
        """Whether the last call's messages, and more behind them, are surely without an error."""

def lint_rules() -> list[tuple[str, str, Literal["error", "warning"], str, str]]:
    """The catalogue of ``satchel.lint`` as rows: the fields of a ``Rule``."""

def convert_messages(
    messages: Iterable[object],
    /,
    source: str,
    target: str,
    *,
    system: object = None,
    tools: object = None,
) -> tuple[list[Any], Any, Any, list[tuple[int | None, str, str]]]:
    """Messages, system, tools and losses of ``satchel.convert``; bytes are base64 strings.

    In the same dialect everything is the caller's own.
    """

def repair_messages(
    messages: Iterable[Any],
    /,
    dialect: str,
    *,
    mode: str,
    traits: list[str],
    system: object = None,
    tools: object = None,
    for_planner: bool = False,
) -> list[Any]:
    """The messages of ``satchel.repair``; with ``for_planner`` as steps, the last one open."""

def repair_placeholders() -> list[str]:
    """Every text that ``satchel.repair`` may put in."""

def detect_dialect(messages: list[Any], /) -> str | None:
    """The dialect that messages give away; None if they would read the same in several."""

def describe_message(message: object, /, dialect: str) -> dict[str, Any]:
    """What the reader of ``dialect`` makes of one message: role, name and parts.

    Each part has ``kind``, ``place`` (a path), ``is_error``, ``id``, ``tool`` and ``page`` (bytes).
    """

def describe_json(json: str, /, dialect: str) -> dict[str, Any]:
    """:func:`describe_message` for a message that is still JSON text."""

def describe_text(text: str, /) -> dict[str, Any]:
    """How a string is kept: ``object`` (itself), ``utf8`` as counted, ``page`` bytes, ``json``."""

@final
class Resident:
    """Rows of a scope of memories as columns, searched exactly. Holds no text; safe in threads.

    Example:
        >>> Resident().statistics(["tea"])[:2]
        (0, 0)
    """

    def __new__(cls) -> Self: ...
    def __len__(self) -> int: ...
    def size(self) -> int:
        """Bytes of memory, about."""

    def counts(self, paths: list[bytes], /) -> list[int]:
        """Rows of each path."""

    def put(
        self,
        names: tuple[
            list[int],
            list[bytes],
            list[bytes],
            list[int | None],
            list[str],
            list[str | None],
        ],
        flags: tuple[
            list[float],
            list[float | None],
            list[float],
            list[int],
            list[bool],
            list[bool],
        ],
        vectors: NDArray[np.float32],
        /,
    ) -> None:
        """Takes in rows; one whose number is here takes its place.

        Args:
            names: numbers, paths, sessions, places, terms with blanks between them, labels.
            flags: times, expiries, confidences, kinds, claims, superseded ones.
            vectors: ``(n, d)``, rows contiguous; zeros for one without.

        Raises:
            InputError: ``invalid_value`` if a number comes twice or lengths differ.
        """

    def retain(self, paths: list[bytes], numbers: list[int], /) -> None:
        """Removes the rows of these paths whose numbers are not named."""

    def statistics(self, terms: list[str], /) -> tuple[int, int, NDArray[np.int64]]:
        """Rows, the sum of their lengths in terms, and how many hold each term."""

    def candidates(
        self,
        passing: tuple[float, float, int, bool, bool],
        /,
        *,
        terms: list[str],
        weights: NDArray[np.float32],
        mean_terms: float,
        vector: NDArray[np.float32] | None,
        most: int,
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.float32],
        NDArray[np.float32],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.float64],
        NDArray[np.float32],
        list[str | None],
    ]:
        """Rows that may answer and their neighbours, by ascending number.

        Args:
            passing: the moment, the least confidence, a bit for each kind that counts, whether
                claims and superseded rows count too.
            terms: terms that count, each once.
            weights: what each is worth.
            mean_terms: mean length of a row.
            vector: what the query means, of length 1; None for words alone.
            most: rows by words, and as many by meaning.

        Returns:
            Numbers, BM25, products with the vector, places of the rows before and after among
            these (-1 for none), times, confidences, labels.

        Raises:
            InputError: ``invalid_value`` if lengths differ.
        """

@final
class TranscriptReader:
    """Reads the bytes of one transcript file; ``satchel.read_transcripts`` is the public face.

    Args:
        file_format: what kind of file it is; None tells it by the content.

    What it gives are the fields of each conversation as a dict, and for each line that cannot be
    read the line, or None for the whole file, and a sentence.
    """

    def __new__(cls, file_format: str | None = None) -> TranscriptReader: ...
    def feed(self, piece: bytes) -> list[dict[str, Any] | tuple[int | None, str]]:
        """Takes the next bytes and gives what they complete."""
    def finish(self) -> list[dict[str, Any] | tuple[int | None, str]]:
        """Ends the file and gives what is left."""

def transcript_formats() -> list[str]:
    """Names of the formats, in the order of the documentation."""

def replay_baselines() -> list[str]:
    """Names of the policies that are no plan of satchel's, in the order of tables."""

def replay_run(
    messages: str,
    dialect: str,
    *,
    system: str | None,
    tools: str | None,
    contenders: list[str],
    counter: Counter,
    share: float | None,
    tokens: int | None,
    prices: tuple[float, float, float],
    seed: int,
    trace: bool,
    worst: int,
) -> str:
    """Replays one run under each contender, with the interpreter released.

    Messages, system prompt and tools are JSON; contenders are names of baselines, or policies as
    JSON objects. Prices are dollars a million tokens: cache reads, other input, output. Returns
    JSON: figures of the run, and ``outcomes`` with the figures of each contender.

    Raises:
        InputError: what reading the messages raises; ``orphan_result`` and ``duplicate_result`` for
            runs that must be repaired first; ``invalid_value`` for a policy that cannot be read.
    """

column_names: dict[str, tuple[str, ...]]
role_names: list[str]
signal_names: list[str]

_Figures: TypeAlias = tuple[int, int, int, int, int, int, int, int, int, int, float, float]
_Explained: TypeAlias = tuple[int, int, str, str, int, int, float, str, str, int]

@final
class StoredMessages:
    """The messages of a stored log; objects are made of them when they are wanted.

    `add` takes a block of entries and gives its events: their JSON with commas between, bytes of
    each, a byte for each (odd: an event), and what reads an event, or the extraordinary, by place.
    """

    def __new__(cls) -> Self: ...
    def add(
        self, joined: bytes, lengths: Sequence[int], forms: bytes, read: Callable[[int], Any]
    ) -> list[Any]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...

@final
class WorkingSet:
    """The fold over one log; ``satchel.WorkingSet`` is the public face.

    ``settings`` is event 0 and ``events`` the list of further ones, as JSON; ``counters`` are those
    that settings among them name; ``opening`` says how many messages another working set handed on,
    and what was gone from it: steps, tokens, the note. With ``checkpoint``, which may be empty,
    checkpoints are kept, and the fold goes on from that one if it is of this log.
    """

    def __new__(
        cls,
        counter: Counter,
        settings: str,
        messages: Iterable[object],
        events: str,
        counters: list[Counter] = ...,
        opening: tuple[int, tuple[int, int, str] | None] | None = None,
        checkpoint: str | None = None,
    ) -> WorkingSet: ...
    def checkpoint(self, known: int) -> tuple[int, str] | None:
        """The number of the newest checkpoint's compaction, if not ``known``, and its JSON."""
    def checkpointed(self) -> int:
        """The number of the newest checkpoint's compaction; 0 if there is none."""
    def resumed(self) -> int | None:
        """Raw messages before the checkpoint that the fold went on from; None without one."""
    def hand_on(
        self,
    ) -> tuple[list[tuple[int, int, str, bool, bool, list[Any]]], tuple[int, int, str] | None]:
        """What goes on when the dialect changes, and what is gone: ``(steps, tokens, note)``.

        A step is ``(first, end, role, is leading, is pinned, messages)``.
        """
    def unchanged_tail(self) -> int | None:
        """Messages behind the newest change of a window's older part; None if it never changed."""
    def summary_range(self, keep: int) -> tuple[int, int] | None:
        """First and end of the raw messages that a summary may cover; the newest ``keep`` stay."""
    def index_pointer(self) -> str:
        """The pointer of the index of everything that is gone."""
    def append(self, messages: Iterable[object]) -> None:
        """Appends messages; all or, on an error, none."""
    def may_compact_within(self, chars: int) -> bool:
        """Whether levels may fall while messages of so many characters are appended."""
    def apply(self, event: str, counter: Counter | None = None) -> None:
        """Folds one event, given as JSON, at the end of the log; ``counter`` if it names one."""
    def window(self, *, synthesize: bool, query: str | None = None) -> tuple[list[Any], _Figures]:
        """The messages of the window at the pending boundary (for a question), and its figures.

        The figures are tokens, upper estimate, stable prefix tokens, compactions, raw messages,
        revision, the number of steps that are verbatim, trimmed, stubs and gone, what the newest
        compaction's choice is worth, and what no choice could exceed.
        """
    def __len__(self) -> int:
        """Number of raw messages."""
    def messages(self, first: int = 0, end: int | None = None) -> list[Any]:
        """The raw messages from ``first`` up to ``end``, the caller's own objects."""
    def page_in(self, pointer: str, *, pattern: str | None, lines: tuple[int, int] | None) -> str:
        """The content behind a pointer."""
    def page_source(self, pointer: str) -> tuple[str, int | None, int, str, str]:
        """A page as a model reads it, and where it is from.

        Its text (of a list of blocks, their texts), raw index of the message, index of the part in
        it, role, kind. The index page has no message and the kind ``index``.
        """
    def gone_pages(self) -> list[tuple[str, int]]:
        """Pointer and raw message of everything gone from the newest window, oldest first."""
    def rewrites(self, first: int = 0) -> list[tuple[int, Any, int, int, int, float, int]]:
        """What each compaction from number ``first`` on cost, as the fields of `Rewrite`."""
    def recalls(self) -> list[str]:
        """The texts that were brought back and are in the newest window, fenced as there."""
    def pointers(self) -> list[tuple[str, int | None, int]]:
        """What the newest window points to: pointer, message, tokens of the original."""
    def explain(self, index: int | None = None) -> list[_Explained]:
        """What happened to each step, or to the step of one message."""
    def columns(self) -> dict[str, Any]:
        """The same as numpy arrays by name, one entry per step."""

def count_line_ends(data: bytes, /) -> int:
    """How many lines end in these bytes."""

def has_rows_of(head: bytes, file_format: str | None) -> bool:
    """Whether a file that begins with these lines, at least two, has a conversation a line."""

_Texts: TypeAlias = tuple[NDArray[np.int64], bytes]

@final
class Rewriter:
    """Writes conversations anew. Immutable, shared between threads; see ``satchel.batch``.

    It writes a dict: ``records``, ``pages`` and ``rejects`` (bytes, a JSON object a line);
    ``messages``, ``system``, ``tools`` and ``reports`` (int64 offsets and bytes); ``lines`` (int64,
    of each window); ``first_reject`` (line, conversation, code, sentence, or None); and counts.
    """

    def __new__(
        cls,
        model: str,
        *,
        traits: list[str],
        prefix_bound: bool,
        counter: Counter,
        policy: str,
        share: float | None,
        tokens: int | None,
        at: str,
        target: str | None,
        prices: str,
        price: tuple[float, int | None, float] | None,
        pages: bool,
        redact: list[str],
    ) -> Rewriter: ...
    def lines(
        self, lines: bytes, source: str, line: int, file_format: str | None, *, columns: bool
    ) -> dict[str, Any]:
        """Rewrites lines that hold a conversation each; the first has the number ``line``."""
    def file(self, source: str, file_format: str | None, *, columns: bool) -> RewriteReader:
        """A reader of a whole file of any format."""
    def rows(
        self,
        messages: _Texts,
        system: _Texts | None,
        tools: _Texts | None,
        dialects: _Texts | None,
        source: str,
        row: int,
        file_format: str | None,
        *,
        columns: bool,
    ) -> dict[str, Any]:
        """Rewrites rows of columns: offsets and UTF-8; the first has the number ``row``."""

@final
class RewriteReader:
    """Reads one file piece by piece and writes its conversations anew; used by one thread."""

    def feed(self, piece: bytes) -> None:
        """Takes the next bytes."""
    def fail(self, what: str) -> None:
        """Notes that the rest of the file cannot be read."""
    def finish(self) -> dict[str, Any]:
        """Ends the file; gives everything that came out, as the rewriter's own methods do."""
