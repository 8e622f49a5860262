"""How room is made in a window: settings that are data, and the presets by name."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from os import PathLike
from typing import Annotated, Any, ClassVar, Final, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from satchel._arguments import invalid, name_of_type, shown
from satchel.errors import InputError

__all__ = [
    "Cache",
    "ClearTrigger",
    "Clearing",
    "Likelihood",
    "Likelihoods",
    "Policy",
    "SalienceWeights",
    "SummarySettings",
    "Thinking",
    "ToolRule",
    "planned_policy",
    "planner_settings",
]

_Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, le=2**53)]
_Price = Annotated[float, Field(ge=0.0, le=1_000.0, allow_inf_nan=False)]
_Names = Annotated[tuple[str, ...], Field(max_length=1_000)]
_Weight = Annotated[float, Field(ge=-100.0, le=100.0, allow_inf_nan=False)]


class SalienceWeights(BaseModel):
    """How a step's salience is put together; each weight multiplies a figure from 0 to 1.

    Salience describes steps in `StepReport` and `Columns`. No strategy chooses by it: what decides
    is what lines are worth (`Likelihood`).

    Attributes:
        recency: newness, ``1 / (1 + age / half_life)`` with the age in steps.
        half_life: age in steps at which newness has fallen to one half.
        role: who speaks: user 1, assistant text 0.6, tool traffic 0.4.
        decision: a decision or a standing instruction in what user or assistant said.
        error: an error among the newest steps; an old one has usually been dealt with.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    recency: _Share = 0.5
    half_life: Annotated[float, Field(ge=0.01, le=1e9)] = 12.0
    role: _Share = 0.25
    decision: _Share = 0.15
    error: _Share = 0.1


class Likelihood(BaseModel):
    """How likely an identifier is needed again: weights of a logistic function.

    The likelihood that an identifier is used in an action at least six messages after its newest
    copy is ``1 / (1 + exp(-s))`` with ``s`` the sum of weight times feature. Below, "that message"
    is the one of its newest copy, and "that line" the shortest line there with it. The default
    weights are a logistic regression on recorded runs.

    Attributes:
        bias: always 1.
        path: the name is a path.
        dotted: it has a dot in its last part.
        number: it has digits and no letters.
        digits: it has digits and letters.
        camel: it is written in camel case.
        snake: it is written in snake case.
        age: ``ln(1 + messages since its newest copy)``.
        seen: ``ln(messages that hold it)``.
        acted: it stood in an action before.
        times_acted: ``ln(1 + actions it stood in)``.
        by_assistant: its newest copy is the assistant's.
        by_user: its newest copy is the user's.
        in_action: it stands in the action of that message.
        crowd: ``ln(1 + identifiers of that message)``.
        error_line: that line speaks of an error.
        definition_line: that line defines something.
        header_line: that line is the head of a file.
        edge_line: that line is among the first two or the last three of its text.
        line_length: ``ln(1 + bytes of that line)``.
        in_task: share of its words that the task holds.
        in_newest: share of its words that the newest messages hold: three at a compaction, two
            for lines that may come back between two.
        company: other identifiers of that line in the newest messages, at most 3, divided by 3.
        short_message: its newest copy is in a message of fewer than 80 tokens.
        ever_by_user: a user wrote it at some time.
        first_in_action: it was first seen in an action.
        reused: it came up again five messages or more after its copy before.
        history: ``ln(1 + messages so far)``.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    bias: _Weight = -4.54
    path: _Weight = -0.57
    dotted: _Weight = 0.18
    number: _Weight = -1.18
    digits: _Weight = -1.71
    camel: _Weight = 0.01
    snake: _Weight = -0.47
    age: _Weight = -0.05
    seen: _Weight = 0.21
    acted: _Weight = 2.4
    times_acted: _Weight = 0.02
    by_assistant: _Weight = 1.14
    by_user: _Weight = -1.55
    in_action: _Weight = -0.26
    crowd: _Weight = -0.16
    error_line: _Weight = -0.02
    definition_line: _Weight = 0.19
    header_line: _Weight = 0.51
    edge_line: _Weight = -0.11
    line_length: _Weight = -0.09
    in_task: _Weight = 0.27
    in_newest: _Weight = -0.43
    company: _Weight = 0.18
    short_message: _Weight = 0.09
    ever_by_user: _Weight = 1.04
    first_in_action: _Weight = 0.59
    reused: _Weight = 0.98
    history: _Weight = -0.14


_DIALOGUE: Final = Likelihood(
    bias=-4.54,
    path=-0.04,
    dotted=-0.88,
    number=1.09,
    digits=1.71,
    camel=-0.11,
    snake=0.39,
    age=0.17,
    seen=0.5,
    acted=0.61,
    times_acted=-0.58,
    by_assistant=1.1,
    by_user=0.44,
    in_action=0.27,
    crowd=0.01,
    error_line=-2.33,
    definition_line=-0.61,
    header_line=0.0,
    edge_line=1.33,
    line_length=0.02,
    in_task=1.43,
    in_newest=-0.23,
    company=0.04,
    short_message=-0.79,
    ever_by_user=0.15,
    first_in_action=0.29,
    reused=0.59,
    history=-0.54,
)


class Likelihoods(BaseModel):
    """The likelihoods for the two kinds of conversation.

    Attributes:
        agent: runs of agents; fitted to 425 runs that fixed issues in code (Java and Python).
        dialogue: conversations where more than a fifth of the messages begin a turn of the user's;
            fitted to recorded customer-service dialogues, which are few and short: the signs of
            small weights are unstable.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    agent: Likelihood = Likelihood()
    dialogue: Likelihood = _DIALOGUE


class SummarySettings(BaseModel):
    """When a session has a part of its history summarised, and how.

    Attributes:
        above_messages: only with more messages than this behind the last summary; None: any.
        above_share: only if the window takes more than this share of the budget; None: any.
        count_pruned_to: None: ``above_share`` is about what the window takes. Otherwise it is about
            the content of system prompt, summary and the messages behind it, with tool outputs that
            are not among the newest three messages counted as if cut to so many characters.
        keep_messages: the newest messages that no summary covers; with 0 the newest one.
        cover_messages: the most messages that one summary takes in, the oldest first; None: all
            but those that are kept.
        max_tokens: the most tokens of a summary; a longer one is written again, shorter.
        receipt_tokens: the most tokens of what is quoted word for word beside it.
        background: whether windows are given out while a summary is being written, which comes in
            as soon as it is there; else ``window()`` waits for it.
        request: ``separate``: a request with a transcript of what is covered, to any model.
            ``suffix``: one instruction at the end of the newest request, to its own model, so that
            the provider reads nearly all of it from its cache; where that gives no summary, or the
            summarizer cannot do it, the separate request.
        fallback: whether the extractive summary steps in where every summarizer failed; without it
            the compaction fails then and the history stays as it is.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    above_messages: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    above_share: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)] | None = 0.8
    count_pruned_to: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    keep_messages: Annotated[int, Field(ge=0, le=2**32 - 1)] = 10
    cover_messages: Annotated[int, Field(ge=1, le=2**32 - 1)] | None = None
    max_tokens: Annotated[int, Field(ge=16, le=2**20)] = 300
    receipt_tokens: Annotated[int, Field(ge=0, le=2**20)] = 200
    background: bool = True
    request: Literal["separate", "suffix"] = "separate"
    fallback: bool = True


class ClearTrigger(BaseModel):
    """When tool uses begin to be cleared, in the words of Anthropic's context editing.

    Attributes:
        type: ``input_tokens``: the request has more tokens than ``value``, by the counter;
            ``tool_uses``: more tool uses than ``value`` are whole in the window.
        value: the number.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    type: Literal["input_tokens", "tool_uses"] = "input_tokens"
    value: _Count = 100_000


class Clearing(BaseModel):
    """Which tool uses are cleared, and when; for the strategy ``clear-tool-uses``.

    A tool use is a call and its result. Of a cleared one the result becomes a line with a pointer;
    the call stays. What that would not shorten stays as it is. Uses of pinned steps stay too.

    Names, defaults and meaning: ``clear_tool_uses_20250919`` on Anthropic's context editing page,
    read 2026-08-21. Other than there, what is cleared stays cleared, and the tokens that are
    compared with the trigger are those of the window, not of the whole history.

    Attributes:
        trigger: when clearing begins.
        keep: the newest tool uses that stay whole. Those of excluded tools count.
        clear_at_least: tokens; see ``clear_at_least_as``. Ignored where the budget wants room.
        clear_at_least_as: ``gate``: nothing is cleared unless this much can be (Anthropic).
            ``stop``: clearing ends once this much is cleared, oldest first; 0 clears all
            (LangChain's ``ClearToolUsesEdit``).
        exclude_tools: names of tools whose uses are never cleared, at most 1,000.
        clear_tool_inputs: whether the arguments of the call are cleared with the result: of all
            tools, or of those named.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    trigger: ClearTrigger = ClearTrigger()
    keep: Annotated[int, Field(ge=0, le=2**32 - 1)] = 3
    clear_at_least: _Count = 0
    clear_at_least_as: Literal["gate", "stop"] = "gate"
    exclude_tools: _Names = ()
    clear_tool_inputs: bool | _Names = False


class Thinking(BaseModel):
    """How much of the model's earlier reasoning stays in the window.

    Names and meaning: ``clear_thinking_20251015`` on Anthropic's context editing page, read
    2026-08-21. Turns are told by the user's messages that are no results, so that reasoning of the
    running tool loop always stays. What a window leaves out stays in the history. It is thinking
    blocks in ``anthropic`` and ``bedrock``, ``reasoning`` items in ``openai-responses`` (what
    follows them loses its ids), thoughts in ``gemini``, and in ``openai`` the
    ``reasoning_content`` of messages without calls, since with calls it is asked back.

    Attributes:
        keep: the newest turns with reasoning before the running one that keep it, or ``all``;
            ``model`` for what Anthropic does with the model: ``all`` from Claude Opus 4.5 and
            Sonnet 4.6 on, else 1.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    keep: Annotated[int, Field(ge=1, le=2**32 - 1)] | Literal["all", "model"] = "model"


class ToolRule(BaseModel):
    """What holds for the results of one tool when levels fall by lines.

    Of several settings that apply the first counts: superseded or excluded, protected, limited.
    Results of ``page_in`` that were read again are superseded without a rule.

    Attributes:
        protect: its results stay whole while there is room for what is protected.
        exclude: nothing of its results is kept once their step is lowered.
        supersede_key: an argument that says what a call is about, such as ``path``: of calls with
            an equal one only the newest result keeps anything.
        max_tokens: tokens of lines that a lowered result keeps at most.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    protect: bool = False
    exclude: bool = False
    supersede_key: Annotated[str, Field(max_length=200)] | None = None
    max_tokens: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None


class Cache(BaseModel):
    """How the provider's prompt cache is weighed.

    Removing R tokens writes the S tokens behind them again. With a write at ``write`` and a read at
    ``read`` times the input price that pays after more than ``(write - read) S / (read R)`` calls.
    Where the model's reasoning is bound to what stands before it, the L tokens of reasoning behind
    the edit are lost too: ``((write - read) (S - L) + output L) / (read (R + L))``.

    Attributes:
        priced: levels may also fall between ``target`` and ``trigger``, where that is expected to
            pay. Off: on 108 recorded runs it cost 0.63 instead of 0.57 of the price of sending
            everything, at windows of 25 %, with LRR-line .915 instead of .918.
        remaining_calls: calls still to come; None for as many as there were so far.
        read: None for the model's.
        write: None for the model's, for its shortest time to live.
        min_prefix: fewest tokens that are cached; None for the model's.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    priced: bool = False
    remaining_calls: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    read: _Price | None = None
    write: _Price | None = None
    min_prefix: _Count | None = None


class Policy(BaseModel):
    """Settings of the planner; immutable, compares by value.

    ``trigger``, ``target``, ``small_target``, ``recent``, ``newest`` and ``recall`` are shares of
    the free part of the budget, which is the budget less what is pinned (system, tools, overhead,
    hard messages).

    Attributes:
        name: name of the preset, or your own.
        strategy: ``adaptive`` keeps the lines that hold what is most likely needed again, per token
            and without doubles; what is kept of a step makes its level. ``sliding-window`` keeps
            the newest ``max_messages`` messages, ``token-window`` the newest that fit.
            ``clear-tool-uses`` makes old tool results lines with a pointer, as ``clearing`` says;
            where that is not enough for the budget it goes on as ``adaptive``. All of them keep the
            hard parts and page out the rest.
        max_messages: most messages besides system messages, the note about what is gone counted
            where it is a message; ``sliding-window`` only.
        trigger: share above which levels fall. 1.0, since the check runs before the call.
        target: share down to which they fall; a ceiling, not a quota.
        small_target: the same in a conversation (three messages of the user or more) where the free
            part is small, and a note takes as much as a line. In an agent's run a compaction makes
            room for one call more, at most a tenth below ``target``.
        small_tokens: tokens of the free part below which it is small; the target goes from
            ``target`` here to ``small_target`` at a quarter of it.
        recent: share up to which the newest steps stay whole together.
        recent_steps: most of the newest steps that stay whole; one in a conversation where the free
            part is small.
        newest: share up to which the newest message stays whole; of a longer one head and tail do.
        fragment: what an identifier is worth in a piece of a long line, beside a whole line.
        recall: share for lines that come back between two compactions, when the newest messages
            need what only they hold; 0 for none.
        summary: when sessions summarise; None for never. The planner makes room in any case, with
            a summary or without.
        salience: how the salience that reports show is put together; it decides nothing.
        likelihood: how likely an identifier is needed again: what a line is worth.
        clearing: which tool uses are cleared, and when; ``clear-tool-uses`` only.
        tools: what holds for the results of single tools, by their names; at most 1,000. For
            ``adaptive``, and where other strategies go on as it.
        thinking: how much earlier reasoning stays; None for all that its step allows.
        server: the provider edits, not satchel: windows are whole, whatever the budget, and
            ``as_kwargs()`` asks for the edits. With ``clear-tool-uses`` or ``thinking`` that is
            ``context_management`` (``anthropic``, beta ``context-management-2025-06-27``), with
            ``token-window`` it is ``truncation`` (``openai-responses``).
        cache: how the prompt cache is weighed.
        select: ``sticky``: windows only grow until levels fall. ``relevant``, for histories that
            are asked questions: at every call the passages that are out of the window and fit the
            question best come back as one block right before the newest user message, the best
            last. The question is ``query``, or else that message. Such windows are not
            prefix-stable, and no question changes a level.
        relevant: share for those passages; levels fall within the rest.

    Raises:
        pydantic.ValidationError: a ``ValueError``, for a setting out of range.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    name: str = "adaptive"
    strategy: Literal["adaptive", "sliding-window", "token-window", "clear-tool-uses"] = "adaptive"
    max_messages: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    trigger: Annotated[float, Field(ge=0.05, le=1.0, allow_inf_nan=False)] = 1.0
    target: _Share = 0.8
    small_target: _Share = 0.97
    small_tokens: Annotated[int, Field(ge=0, le=2**32 - 1)] = 8_000
    recent: _Share = 0.3
    recent_steps: Annotated[int, Field(ge=0, le=2**32 - 1)] = 4
    newest: _Share = 0.3
    fragment: _Share = 0.6
    recall: _Share = 0.06
    summary: SummarySettings | None = None
    salience: SalienceWeights = SalienceWeights()
    likelihood: Likelihoods = Likelihoods()
    clearing: Clearing = Clearing()
    tools: Annotated[dict[str, ToolRule], Field(max_length=1_000)] = Field(default_factory=dict)
    thinking: Thinking | None = None
    server: bool = False
    cache: Cache = Cache()
    select: Literal["sticky", "relevant"] = "sticky"
    relevant: Annotated[float, Field(ge=0.0, le=0.9, allow_inf_nan=False)] = 0.5

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.target > self.trigger:
            message = f"target is {self.target}, must be at most trigger ({self.trigger})"
            raise ValueError(message)
        if self.strategy == "sliding-window" and self.max_messages is None:
            message = "strategy sliding-window needs max_messages"
            raise ValueError(message)
        edits = self.strategy in {"clear-tool-uses", "token-window"} or self.thinking is not None
        if self.server and not edits:
            message = f"no provider edits as {self.strategy} does"
            raise ValueError(message)
        return self

    @classmethod
    def preset(cls, name: str) -> Policy:
        """A preset by its name.

        ============================== =========================================================
        ``adaptive``                   the default
        ``sliding-window``             the newest 10 messages
        ``token-window``               the newest that fit
        ``rolling-summary``            at more than 10 messages the oldest 8 go into the summary of
                                       at most 300 tokens
        ``rolling-summary:manager``    above 80 % of the budget, tool outputs counted as pruned to
                                       150 characters, all but the newest 10 messages do
        ``rolling-summary:graph``      at more than 8 messages all but the newest 2 do, at most 200
                                       tokens; windows wait for it
        ``truncate-oldest``            drops the oldest steps until the rest fits, before any call:
                                       OpenAI's ``truncation="auto"``, but for the hard parts
        ``observation-masking``        the newest 10 tool results stay whole
        ``clear-tool-uses``            above 100,000 tokens all tool results but 3, as Anthropic's
                                       ``clear_tool_uses_20250919``
        ``clear-thinking``             as the default, with less reasoning of earlier turns, as
                                       ``clear_thinking_20251015``: see `Thinking`
        ``relevant``                   as the default, with ``select="relevant"``
        ``clear-tool-uses:langchain``  the same as LangChain's ``ClearToolUsesEdit``
        ``clear-tool-uses:server``     left to the provider, as are ``clear-thinking:server`` and
                                       ``truncate-oldest:server``: see ``server``
        ============================== =========================================================

        Raises:
            InputError: ``invalid_value`` for any other name.
        """
        if not isinstance(cast("object", name), str) or name not in _PRESETS:
            message = f"no policy {shown(name)}; presets: {', '.join(_PRESETS)}"
            raise invalid(message)
        return cls.model_validate({"name": name, **_PRESETS[name]})

    @classmethod
    def from_toml(cls, source: str | PathLike[str]) -> Policy:
        """A policy from TOML text, or from a file if ``source`` is a path object.

        Raises:
            InputError: ``invalid_value`` for what is no TOML or no policy; the sentence names the
                setting.
            OSError: the file cannot be read.
        """
        try:
            if isinstance(source, str):
                settings = tomllib.loads(source)
            elif not isinstance(cast("object", source), PathLike):
                message = f"source must be TOML text or a path, not {name_of_type(source)}"
                raise invalid(message)
            else:
                with open(source, "rb") as file:  # noqa: PTH123 - any os.PathLike, not only Path
                    settings = tomllib.load(file)
            return cls.model_validate(settings)
        except tomllib.TOMLDecodeError as error:
            message = f"the policy is no TOML: {error}"
            raise InputError(message, code="invalid_value") from error
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(key) for key in first["loc"]) or "policy"
            message = f"policy {place}: {first['msg']}"
            raise InputError(message, code="invalid_value") from error

    def to_toml(self) -> str:
        """The policy as TOML text; ``from_toml`` reads it back to an equal policy."""
        lines: list[str] = []
        settings = self.model_dump(mode="json", exclude_none=True)
        tables: list[tuple[str, dict[str, Any]]] = [("", settings)]
        for name, table in tables:
            if name and not all(isinstance(one, dict) for one in table.values()):
                lines += ["", f"[{name}]"]
            for key, value in table.items():
                if isinstance(value, dict):
                    inner = cast("dict[str, Any]", value)
                    quoted = key if _BARE.fullmatch(key) else json.dumps(key)
                    tables.append((f"{name}.{quoted}" if name else quoted, inner))
                else:
                    lines.append(f"{key} = {_toml(value)}")
        return "\n".join(lines) + "\n"


_BARE: Final = re.compile("[A-Za-z0-9_-]+")
"""Keys that TOML takes without quotes."""

_PRESETS: Final[Mapping[str, Mapping[str, object]]] = {
    "adaptive": {},
    "sliding-window": {"strategy": "sliding-window", "max_messages": 10},
    "token-window": {"strategy": "token-window"},
    "rolling-summary": {
        "summary": {
            "above_messages": 10,
            "above_share": None,
            "keep_messages": 2,
            "cover_messages": 8,
        }
    },
    "rolling-summary:manager": {
        "summary": {"above_messages": 10, "above_share": 0.8, "count_pruned_to": 150}
    },
    "rolling-summary:graph": {
        "summary": {
            "above_messages": 8,
            "above_share": None,
            "keep_messages": 2,
            "max_tokens": 200,
            "background": False,
        }
    },
    "truncate-oldest": {"strategy": "token-window", "target": 1.0, "small_target": 1.0},
    "observation-masking": {
        "strategy": "clear-tool-uses",
        "clearing": {"trigger": {"type": "tool_uses", "value": 10}, "keep": 10},
    },
    "clear-tool-uses": {"strategy": "clear-tool-uses"},
    "clear-thinking": {"thinking": {}},
    "relevant": {"select": "relevant"},
    "clear-tool-uses:server": {"strategy": "clear-tool-uses", "server": True},
    "clear-thinking:server": {"thinking": {}, "server": True},
    "truncate-oldest:server": {"strategy": "token-window", "server": True},
    "clear-tool-uses:langchain": {
        "strategy": "clear-tool-uses",
        "clearing": {"clear_at_least_as": "stop"},
    },
}


_OURS: Final = {"thinking", "server"}
"""Settings that the planner does not know: they concern what is sent."""


def planner_settings(policy: Policy) -> dict[str, Any]:
    """The policy as the planner reads it; where the provider edits, the planner does not."""
    settings = policy.model_dump(mode="json", exclude_none=True, exclude=_OURS)
    return {**settings, "strategy": "adaptive"} if policy.server else settings


def planned_policy(policy: object) -> object:
    """The policy of a settings event as the planner reads it, given as `Policy.model_dump` does.

    Raises:
        InputError: ``invalid_event`` for settings that only an `Assembler` can have.
    """
    if not isinstance(policy, Mapping):
        return policy
    said = dict(cast("Mapping[str, Any]", policy))
    for name in sorted(_OURS & said.keys()):
        if said.pop(name):
            message = f"policy.{name} is a setting of the assembler, an event cannot change it"
            raise InputError(message, code="invalid_event")
    return said


def _toml(value: str | float | list[str]) -> str:
    # Settings are strings, numbers and lists of strings, whose JSON form is valid TOML as well.
    return json.dumps(value, ensure_ascii=False)
