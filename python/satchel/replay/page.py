"""The page of a report: one HTML file that needs nothing from elsewhere.

All content travels as JSON in a block that no browser runs, and the page's own script writes it
with ``textContent`` only. A content security policy names that script by its hash and forbids
everything else, so that nothing in a transcript can act.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from satchel.replay.measures import LIMIT, MEASURES, REFERENCE
from satchel.replay.spread import listed_runs, spread

if TYPE_CHECKING:
    from satchel.replay.outcome import Outcome, RunResult
    from satchel.replay.report import ReplayReport

__all__ = ["page"]

_MOST_SKIPPED: Final = 500

_MOST_PICTURED: Final = 3_000_000
"""Characters of the pictures; those of the longest runs are left out beyond."""

_TOLD: Final = 200
"""Characters of a name or title that are shown."""


def page(report: ReplayReport) -> str:
    """The page as text."""
    folder = resources.files("satchel.replay")
    script = "".join(
        folder.joinpath(name).read_text(encoding="utf-8") for name in ("runs.js", "page.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    title = f"satchel replay: {len(report.runs):,} runs at {report.budget}"
    parts = {
        "title": html.escape(title),
        "hash": digest,
        "style": folder.joinpath("page.css").read_text(encoding="utf-8"),
        "data": _embedded(_data(report)),
        "script": script,
    }
    # One pass over the template: what is put in is never looked at again.
    template = folder.joinpath("page.html").read_text(encoding="utf-8")
    pieces = template.split("{{")
    return pieces[0] + "".join(_filled(piece, parts) for piece in pieces[1:])


def _filled(piece: str, parts: dict[str, str]) -> str:
    name, _, rest = piece.partition("}}")
    return parts[name] + rest


def _embedded(data: dict[str, Any]) -> str:
    """JSON that cannot end the block it stands in, whatever it says."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(report: ReplayReport) -> dict[str, Any]:
    shown = listed_runs(report)
    pictures = _pictures(report.runs)
    return {
        "budget": report.budget,
        "counter": report.counter,
        "model": report.model,
        "reference": REFERENCE,
        "limit": LIMIT,
        "clairvoyant": ["oracle", LIMIT],
        "policies": list(report.policies),
        "measures": [
            {"key": one.key, "title": one.title, "meaning": one.meaning, "kind": one.kind}
            | {"better": one.better}
            for one in MEASURES
        ],
        "totals": {
            name: {
                key: [_number(figure.value), _number(figure.low), _number(figure.high)]
                for key, figure in row.items()
            }
            for name, row in report.totals.items()
        },
        "runs": [_run(run, report.policies) for run in shown],
        "runs_in_all": len(report.runs),
        "calls_in_all": sum(run.calls for run in report.runs),
        "spread": spread(report),
        "pictures": pictures,
        "skipped": [
            [one.source[-_TOLD:], one.index, one.reason[:_TOLD]]
            for one in report.skipped[:_MOST_SKIPPED]
        ],
        "skipped_in_all": len(report.skipped),
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 5)


def _run(run: RunResult, policies: tuple[str, ...]) -> dict[str, Any]:
    full = run.outcomes[REFERENCE].cost
    return {
        "name": _name(run),
        "title": None if run.title is None else run.title[:_TOLD],
        "format": run.format,
        "messages": run.messages,
        "calls": run.calls,
        "tokens": run.tokens,
        "budget": run.budget,
        "long": run.outcomes[REFERENCE].long_references,
        "cost": round(full, 6),
        "by_policy": [_figures(run.outcomes[name], full) for name in policies],
    }


def _figures(one: Outcome, full: float) -> list[float | None]:
    price = round(one.cost / full, 4) if full else None
    return [one.long_read_in_line, price, one.lost, one.over_budget, one.compactions]


def _pictures(runs: tuple[RunResult, ...]) -> list[dict[str, Any]]:
    """The runs that were kept in detail, the longest first, as far as there is room."""
    detailed = sorted((run for run in runs if run.sizes), key=lambda run: -run.calls)
    found: list[dict[str, Any]] = []
    room = _MOST_PICTURED
    for run in detailed:
        picture = _picture(run)
        room -= len(json.dumps(picture, separators=(",", ":")))
        if room < 0:
            room += len(json.dumps(picture, separators=(",", ":")))
            continue
        found.append(picture)
    return found


def _name(run: RunResult) -> str:
    return f"{run.source[-_TOLD:]} #{run.index}"


def _picture(run: RunResult) -> dict[str, Any]:
    return {
        "name": _name(run),
        "messages": run.messages,
        "budget": run.budget,
        "pinned": run.pinned_tokens,
        "roles": [role for role, _ in run.sizes],
        "tokens": [tokens for _, tokens in run.sizes],
        "policies": {name: _shots(one) for name, one in run.outcomes.items()},
    }


def _shots(one: Outcome) -> dict[str, Any]:
    return {
        "at": [shot.at for shot in one.shots],
        "tokens": [shot.tokens for shot in one.shots],
        "cached": [shot.cached for shot in one.shots],
        "cost": [round(shot.cost, 6) for shot in one.shots],
        "compacted": [position for position, shot in enumerate(one.shots) if shot.compacted],
        "missed": [
            [position, shot.long[1]] for position, shot in enumerate(one.shots) if shot.long[1]
        ],
        "changes": [[number for change in shot.changes for number in change] for shot in one.shots],
        "long": [one.long_references, one.long_read_in_line],
        "worst": [
            {
                "name": loss.name,
                "misses": loss.misses,
                "at": loss.at,
                "newest": loss.newest,
                "line": loss.line,
                "action": loss.action,
                "pointer": loss.behind_pointer,
            }
            for loss in one.worst
        ],
    }
