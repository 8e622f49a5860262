"""Replay: how good are the windows that a policy makes? Asked of recorded runs, without a model.

`run` plays recorded runs again call by call under several policies and reports, for each, how much
of what the agent really used next could still be read, and what the windows cost.
"""

from __future__ import annotations

from satchel.replay.measures import MEASURES, Figure, Measure
from satchel.replay.options import BASELINES, DEFAULT_POLICIES
from satchel.replay.outcome import Outcome, RunResult, Shot, Skipped, Worst
from satchel.replay.report import ReplayReport
from satchel.replay.running import Progress, run

__all__ = [
    "BASELINES",
    "DEFAULT_POLICIES",
    "MEASURES",
    "Figure",
    "Measure",
    "Outcome",
    "Progress",
    "ReplayReport",
    "RunResult",
    "Shot",
    "Skipped",
    "Worst",
    "run",
]
