"""The evaluation set of recall: long made-up conversations, and questions about single turns.

Two people talk for 420 turns. Somewhere in the small talk stand scenes that tell one thing about
one of them; often the other tells the like of themselves, so that a question must be understood to
its end. Questions are worded differently from their evidence. The texts are in
``tests/data/recall``; a seed decides what is said where, so everybody has the same set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

__all__ = ["Conversation", "Question", "conversations"]

TEXTS = Path(__file__).resolve().parents[2] / "tests" / "data" / "recall"
TURNS = 420
SESSIONS = 20
SCENES = 34
NEAR = 0.75
"""Share of questions that have a word in common with their evidence, in one form or another."""

NAMES = {
    "en": (
        ("Marlene", "Tobias"), ("Ada", "Kwame"), ("Sunita", "Elliot"), ("Greta", "Hugo"),
        ("Imani", "Rafael"), ("Nell", "Viktor"), ("Odile", "Samir"),
    ),
    "ko": (
        ("지우", "현서"), ("도윤", "서연"), ("민재", "가은"), ("예린", "태오"), ("시우", "나래"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Question:
    """A question, and the numbers of the turns that answer it."""

    text: str
    evidence: tuple[int, ...]


@dataclass
class Conversation:
    """Turns as ``speaker: text``, the session of each, and questions about them."""

    language: Literal["en", "ko"]
    turns: list[str] = field(default_factory=list[str])
    sessions: list[int] = field(default_factory=list[int])
    questions: list[Question] = field(default_factory=list[Question])


@dataclass
class Scene:
    turns: list[tuple[str, str, bool]] = field(default_factory=list[tuple[str, str, bool]])
    near: list[str] = field(default_factory=list[str])
    far: list[str] = field(default_factory=list[str])
    slots: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


def conversations() -> list[Conversation]:
    """All conversations, always the same."""
    found: list[Conversation] = []
    for language in ("en", "ko"):
        scenes, talk = _read(language)
        for number, names in enumerate(NAMES[language]):
            rng = Random(f"{language}-{number}")  # noqa: S311 - made-up talk needs a seed
            found.append(_conversation(rng, language, names, scenes, talk))
    return found


def _conversation(
    rng: Random,
    language: Literal["en", "ko"],
    names: tuple[str, str],
    scenes: list[Scene],
    talk: Scene,
) -> Conversation:
    made = Conversation(language)
    chosen = rng.sample(scenes, min(len(scenes), SCENES - 8))
    again = rng.sample(chosen, 8)
    blocks: list[Scene | None] = [*chosen, *again]
    told = sum(len(scene.turns) for scene in blocks if scene)
    blocks += [None] * ((TURNS - told) // 2)
    rng.shuffle(blocks)
    first_teller: dict[int, int] = {}
    used: dict[int, dict[str, str]] = {}
    for place, scene in enumerate(blocks):
        session = place * SESSIONS // len(blocks)
        source = scene or talk
        teller = rng.randrange(2)
        if scene is not None:
            # Told a second time, it is the other's turn, with other particulars.
            teller = 1 - first_teller[id(scene)] if id(scene) in first_teller else teller
            first_teller.setdefault(id(scene), teller)
        said = {"A": names[teller], "B": names[1 - teller]}
        before = used.get(id(source), {}) if scene else {}
        values = {
            slot: rng.choice([one for one in choices if one != before.get(slot)] or choices)
            for slot, choices in source.slots.items()
        }
        if scene is not None:
            used[id(scene)] = values
        start = rng.randrange(0, len(talk.turns) // 2) * 2
        turns = scene.turns if scene else talk.turns[start : start + 2]
        evidence: list[int] = []
        for speaker, text, is_evidence in turns:
            if is_evidence:
                evidence.append(len(made.turns))
            made.turns.append(f"{said[speaker]}: {text.format(**values, **said)}")
            made.sessions.append(session)
        if scene is not None:
            asked = rng.choice(scene.near if rng.random() < NEAR else scene.far)
            made.questions.append(Question(asked.format(**values, **said), tuple(evidence)))
    return made


def _read(language: str) -> tuple[list[Scene], Scene]:
    content = (TEXTS / f"{language}.txt").read_text(encoding="utf-8")
    body = "\n".join(line for line in content.splitlines() if not line.startswith("#"))
    scenes, talk = body.split("%%\n")
    return [_scene(part) for part in re.split(r"^== .*\n", scenes, flags=re.MULTILINE)[1:]], _scene(
        talk
    )


def _scene(text: str) -> Scene:
    scene = Scene()
    for line in text.splitlines():
        if line.startswith("= "):
            name, _, choices = line[2:].partition(":")
            scene.slots[name] = [one.strip() for one in choices.split("|")]
        elif line.startswith(("? ", "+ ")):
            (scene.far if line[0] == "?" else scene.near).append(line[2:])
        elif line.strip():
            marked = line.startswith("*")
            speaker, _, said = line.lstrip("*").partition(": ")
            scene.turns.append((speaker, said, marked))
    return scene
