"""Windows and working sets against LangChain's ``trim_messages``, and against counting alone.

All sides get the same messages and the same budget. LangChain's counters count content, satchel's
working set the whole request with roles and overhead, so satchel's windows are the stricter ones.
What is returned is checked: by tiktoken, and where both promise the same messages, message by
message.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import rivals
import satchel
from figures import Line, Samples, cpu_seconds
from satchel.testing import generate_chat, generate_history

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from effort import Effort

__all__ = ["assemble_lines", "loop_lines", "token_window_line", "working_set_lines"]

MODEL = "gpt-4o"
BUDGET = 32_000
SHARE = 4  # a budget of 25 % is the tokens of all messages over this

Message = dict[str, Any]


def all_tokens(messages: Sequence[Message]) -> int:
    """Content tokens of plain chat messages."""
    return int(satchel.counter("o200k_base").count_many([m["content"] for m in messages]).sum())


def token_window_line(effort: Effort) -> Line:
    """``token_window`` on dicts."""
    ours: list[float] = []
    theirs: list[float] = []
    size = effort.messages
    for seed in range(effort.slow_repetitions):
        budget = all_tokens(generate_chat(size, seed=seed)) // SHARE
        for_us, for_them = generate_chat(size, seed=seed), generate_chat(size, seed=seed)
        windows: list[list[Any]] = []
        ours.append(cpu_seconds(lambda: windows.append(satchel.token_window(for_us, budget))))
        theirs.append(cpu_seconds(lambda: windows.append(rivals.trim_exact(for_them, budget))))
        assert [m["content"] for m in windows[0]] == [m.content for m in windows[1]]
        assert 0 < len(windows[0]) < size
    return Line(
        f"token_window/{size}/langchain",
        f"token_window: {size:,} dicts of ≈ 400 characters, budget 25 %",
        Samples.of_seconds("ms", ours),
        "LangChain, tiktoken counter",
        Samples.of_seconds("ms", theirs),
        note="same messages returned",
    )


def agent_loop(messages: Sequence[Message], budget: int) -> list[satchel.Window]:
    """Appends one message at a time and asks for the window each time."""
    working_set = satchel.Assembler(MODEL, budget=budget).working_set()
    windows: list[satchel.Window] = []
    for message in messages:
        working_set.append(message)
        windows.append(working_set.window())
    return windows


def langchain_loop(
    messages: Sequence[Any], budget: int, trim: Callable[[Sequence[Any], int], list[Any]]
) -> list[Any]:
    """The same with LangChain; ``messages`` are its own objects already."""
    history: list[Any] = []
    window: list[Any] = []
    for message in messages:
        history.append(message)
        window = trim(history, budget)
    return window


def check_window(window: satchel.Window) -> None:
    """The window's own count is tiktoken's, and within the budget."""
    assert window.tokens == rivals.request_tokens(window.messages)
    assert window.tokens <= window.budget


def loop_lines(effort: Effort) -> list[Line]:
    """The agent loop against both of LangChain's counters."""
    size = effort.loop
    ours: list[float] = []
    exact: list[float] = []
    approximate: list[float] = []
    for seed in range(effort.slow_repetitions):
        for_us = generate_chat(size, seed=seed)
        budget = all_tokens(generate_chat(size, seed=seed)) // SHARE
        windows: list[satchel.Window] = []
        ours.append(cpu_seconds(lambda: windows.extend(agent_loop(for_us, budget))))
        assert len(windows) == size
        assert all(window.tokens <= budget for window in windows)
        check_window(windows[-1])
        history = rivals.to_langchain(generate_chat(size, seed=seed))
        last: list[list[Any]] = []
        approximate.append(
            cpu_seconds(
                lambda: last.append(langchain_loop(history, budget, rivals.trim_approximate))
            )
        )
        if seed == 0:  # most of a minute
            exact.append(
                cpu_seconds(lambda: last.append(langchain_loop(history, budget, rivals.trim_exact)))
            )
            kept = rivals.list_counter()(last[-1])
            assert 0 < kept <= budget
    samples = Samples.of_seconds("ms", ours)
    measure = f"agent loop: {size:,} times append and window, exact, budget 25 %"
    return [
        Line(
            f"loop/{size}/langchain-tiktoken",
            measure,
            samples,
            "LangChain, tiktoken counter",
            Samples.of_seconds("ms", exact),
        ),
        Line(
            f"loop/{size}/langchain-approximate",
            measure,
            samples,
            "LangChain, approximate counter",
            Samples.of_seconds("ms", approximate),
        ),
    ]


def append_and_window(effort: Effort, size: int, *, tools: bool = False) -> list[float]:
    """CPU seconds of single appends with a window each, on a history of ``size`` messages."""
    count = size + effort.appends
    messages = generate_history(count, seed=1) if tools else generate_chat(count, seed=1)
    working_set = satchel.Assembler(MODEL, budget=BUDGET).working_set(messages[:size])
    working_set.window(open_calls="synthesize")
    seconds: list[float] = []
    window = None
    for message in messages[size:]:
        start = time.process_time_ns()
        working_set.append(message)
        window = working_set.window(open_calls="synthesize")
        seconds.append((time.process_time_ns() - start) / 1e9)
        assert window.tokens <= BUDGET
    assert window is not None
    if not tools:
        check_window(window)
    return seconds


def working_set_lines(effort: Effort) -> list[Line]:
    """One more message on long histories."""
    small, middle, large = effort.messages // 10, effort.messages, effort.longest
    samples = {
        size: Samples.of_seconds("us", append_and_window(effort, size))
        for size in (small, middle, large)
    }

    def measure(size: int, what: str = "") -> str:
        return f"append + window: on {size:,} messages{what}, budget 32k"

    def mean(size: int) -> str:
        values = samples[size].values
        return f"mean {sum(values) / len(values):,.0f} us, compactions included"

    history = rivals.to_langchain(generate_chat(middle, seed=1))
    trims = [
        cpu_seconds(lambda: rivals.trim_approximate(history, BUDGET))
        for _ in range(effort.slow_repetitions)
    ]
    with_tools = Samples.of_seconds("us", append_and_window(effort, middle, tools=True))
    average = sum(with_tools.values) / len(with_tools.values)
    return [
        Line(f"working_set/{small}", measure(small), samples[small], note=mean(small)),
        Line(
            f"working_set/{middle}/{small}",
            measure(middle),
            samples[middle],
            f"on {small:,} messages",
            samples[small],
            note=mean(middle),
        ),
        Line(
            f"working_set/{large}/{small}",
            measure(large),
            samples[large],
            f"on {small:,} messages",
            samples[small],
            note=mean(large),
        ),
        Line(
            f"working_set/{middle}/langchain-approximate",
            measure(middle),
            samples[middle],
            "LangChain, approximate counter",
            Samples.of_seconds("us", trims),
        ),
        Line(
            f"working_set/{middle}/tools",
            measure(middle, " with tool calls"),
            with_tools,
            note=f"mean {average:,.0f} us; heavy-tailed results, open calls closed",
        ),
    ]


def _chat(count: int, seed: int) -> list[Message]:
    return generate_chat(count, seed=seed)


def _tool_history(count: int, seed: int) -> list[Message]:
    return generate_history(count, seed=seed)


HISTORIES: Mapping[str, Callable[[int, int], list[Message]]] = {
    "chat": _chat,
    "tool history": _tool_history,
}


def text_of(message: Message) -> list[str]:
    """Content and call arguments of an OpenAI message."""
    texts = [message["content"]] if message["content"] else []
    return texts + [call["function"]["arguments"] for call in message.get("tool_calls", ())]


def assemble_lines(effort: Effort) -> list[Line]:
    """A cold window, counting included, beside tiktoken's counting alone."""
    size = effort.messages
    lines: list[Line] = []
    for name, make in HISTORIES.items():
        alone: list[float] = []
        totals: list[int] = []
        for seed in range(effort.slow_repetitions):
            texts = [text for message in make(size, seed) for text in text_of(message)]
            counted: list[int] = []
            alone.append(cpu_seconds(lambda: counted.append(rivals.count_alone(texts))))
            totals += counted
        for budget_name in ("32k", "25 %"):
            ours: list[float] = []
            compactions = 0
            for seed, total in enumerate(totals):
                messages = make(size, seed)
                budget = BUDGET if budget_name == "32k" else total // SHARE
                windows: list[satchel.Window] = []
                assembler = satchel.Assembler(MODEL, budget=budget)
                ours.append(
                    cpu_seconds(
                        lambda: windows.append(
                            assembler.assemble(messages, open_calls="synthesize")
                        )
                    )
                )
                assert windows[0].tokens <= budget
                if name == "chat":
                    check_window(windows[0])
                compactions = windows[0].report.compactions
            lines.append(
                Line(
                    f"assemble/{size}/{name}/{budget_name}",
                    f"cold assemble: {size:,} messages, {name}, budget {budget_name}",
                    Samples.of_seconds("ms", ours),
                    "tiktoken, counting alone",
                    Samples.of_seconds("ms", alone),
                    note=f"{compactions} compactions in the last repetition",
                )
            )
    return [*lines, _growth_line(effort)]


def _growth_line(effort: Effort) -> Line:
    size = effort.messages
    assembler = satchel.Assembler(MODEL, budget=BUDGET)
    once: list[float] = []
    twice: list[float] = []
    for seed in range(effort.slow_repetitions):
        for count, seconds in ((size, once), (2 * size, twice)):
            messages = generate_chat(count, seed=seed)
            seconds.append(cpu_seconds(lambda: assembler.assemble(messages)))
    return Line(
        f"assemble/{2 * size}/{size}",
        f"cold assemble: {2 * size:,} messages, chat, budget 32k",
        Samples.of_seconds("ms", twice),
        f"{size:,} messages",
        Samples.of_seconds("ms", once),
        note="0.5 is linear growth",
    )
