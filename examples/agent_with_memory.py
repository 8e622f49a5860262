"""An agent that remembers across conversations. Runs offline: the model is a few lines of Python.

    python examples/agent_with_memory.py

Replace `offline_model` by a call of your provider's client with ``**window.as_kwargs()``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import satchel
from satchel.memory import AgentWithMemory

if TYPE_CHECKING:
    from satchel import Window


async def offline_model(window: Window) -> dict[str, Any]:
    """Answers from what it was shown, as a model would, and says what that was."""
    newest = window.messages[-1]["content"]
    notes = [line[2:] for line in newest.splitlines() if line.startswith("- ")]
    said = "From what you told me before: " + " / ".join(notes) if notes else "Noted."
    return {"role": "assistant", "content": said}


async def main() -> None:
    """Two conversations of one user, a week apart."""
    async with satchel.open_memory("memory://") as memory:
        for session_id, questions in (
            ("monday", ["Hi, my name is Ana.", "I'm allergic to peanuts. Keep that in mind!"]),
            ("sunday", ["What should you leave out when you cook for me?"]),
        ):
            async with satchel.open_session(
                "memory://", session_id=session_id, user_id="ana", model="gpt-4o", budget=4_000
            ) as session:
                agent = AgentWithMemory(
                    session,
                    memory,
                    namespace=("users", "ana"),
                    model=offline_model,
                    system="You help with cooking.",
                )
                for question in questions:
                    turn = await agent.ask(question)
                    print(f"ana:   {question}")
                    print(f"agent: {turn.reply['content']}")
        profile = await memory.get(("users", "ana"), "name")
        print("profile:", profile.text if profile else None)


if __name__ == "__main__":
    asyncio.run(main())
