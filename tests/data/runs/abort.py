"""Parallel calls of a home-energy agent; the user stops a step half way and goes on.

The interrupted call is never answered, so the run breaks the providers' rule about answers on
purpose; everything before and after it is valid.
"""

# ruff: noqa: E501 - the words of the conversation, kept in one piece

from __future__ import annotations

import json
from typing import Any

from runs.run import Call, Run, number, schema, text

SYSTEM = """You are the energy agent of a house in Tromvik with solar panels, a battery and a heat pump.
- Never switch off the freezer circuit (K7) or the aquarium (K11).
- Keep at least 25 % in the battery between 17:00 and 21:00.
- Ask before any change that costs more than 3 EUR a day.
- Read-only tools may be called in parallel."""

TOOLS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "read_meter",
        "Power and energy of one circuit over a period.",
        schema(
            ("circuit",),
            circuit=text("K1 to K14, or 'grid', 'solar', 'battery'"),
            hours=number("how far back", minimum=1, maximum=168, default=24),
        ),
    ),
    (
        "forecast",
        "Weather and price forecast.",
        schema(("kind",), kind=text("which", enum=["sun", "temperature", "price"])),
    ),
    (
        "set_schedule",
        "Replace a circuit's schedule.",
        schema(
            ("circuit", "slots"),
            circuit=text("the circuit"),
            slots={
                "type": "array",
                "description": "local time slots",
                "items": schema(
                    ("start", "end", "mode"),
                    start=text("HH:MM", pattern="^[0-2][0-9]:[0-5][0-9]$"),
                    end=text("HH:MM"),
                    mode=text("mode", enum=["on", "off", "eco", "boost"]),
                    limit_kw={"anyOf": [{"type": "number"}, {"type": "null"}]},
                ),
            },
        ),
    ),
    (
        "simulate",
        "Simulate a week with a proposed schedule; slow, up to three minutes.",
        schema(("scenario",), scenario=text("name of the scenario")),
    ),
]


def _hours(circuit: str, base: float, swing: list[float]) -> str:
    rows: list[dict[str, Any]] = [
        {"hour": f"{hour:02d}:00", "kwh": round(max(0.0, base * (1 + swing[hour % len(swing)])), 3)}
        for hour in range(24)
    ]
    return json.dumps(
        {
            "circuit": circuit,
            "from": "2026-11-04T00:00+01:00",
            "rows": rows,
            "sum_kwh": round(sum(row["kwh"] for row in rows), 3),
        }
    )


# The day-ahead price of each hour, in cents.
CENTS = "9 8 8 7 8 11 19 27 31 26 21 18 17 16 18 22 29 38 41 37 30 22 15 11"


def _prices() -> str:
    cents = [int(cent) for cent in CENTS.split()]
    return json.dumps(
        {"unit": "ct/kWh", "day": "2026-11-06", "hourly": cents, "source": "day-ahead"}
    )


def build() -> Run:
    """The run."""
    run = Run("abort", "Parallel meter readings, a step interrupted by the user", SYSTEM, TOOLS)
    run.user(
        "The bill for October was 214 euro, twice last year's. Find out why and fix what you can."
    )
    run.call(
        "I read the big consumers and the supply side at once.",
        Call(
            "read_meter",
            {"circuit": "grid", "hours": 24},
            _hours("grid", 1.31, [0.1, -0.2, 0.6, 0.9]),
        ),
        Call(
            "read_meter",
            {"circuit": "solar", "hours": 24},
            _hours("solar", 0.11, [-1, -1, 0.5, 2.2]),
        ),
        Call("read_meter", {"circuit": "K3", "hours": 24}, _hours("K3", 0.92, [0.02, 0.01, -0.01])),
        Call("read_meter", {"circuit": "K7", "hours": 24}, _hours("K7", 0.06, [0.3, -0.3])),
    )
    run.call(
        "K3, the heat pump, draws almost the same every hour, day and night: that is not how a heat "
        "pump behaves. Perhaps its electric backup heater is running.",
        Call(
            "read_meter",
            {"circuit": "K4", "hours": 168},
            json.dumps(
                {
                    "circuit": "K4",
                    "name": "heat pump backup heater, 3 kW",
                    "on_hours": 131.5,
                    "sum_kwh": 394.5,
                    "since": "2026-10-29T22:10+01:00",
                    "note": "forced on by panel, code H-62",
                }
            ),
        ),
        Call("forecast", {"kind": "price"}, _prices()),
        Call(
            "forecast",
            {"kind": "temperature"},
            json.dumps({"unit": "C", "min": [-3, -1, 2, 1, -6], "max": [2, 4, 5, 3, -1]}),
        ),
    )
    run.say(
        "Found it: the backup heater K4 has been forced on since 29 October (code H-62), 394.5 kWh in "
        "a week, about 87 EUR. I can put it back to automatic. Shall I, and may I also move the hot "
        "water to the cheap hours 01:00 to 05:00? Neither costs anything."
    )
    run.user(
        "Wow. Yes both! But guests from Friday, so hot water must also last for evening showers."
    )
    run.call(
        "Both schedules, and then a simulation of the week with four guests.",
        Call(
            "set_schedule",
            {
                "circuit": "K4",
                "slots": [{"start": "00:00", "end": "24:00", "mode": "eco", "limit_kw": None}],
            },
            json.dumps({"circuit": "K4", "accepted": True, "panel_code": "cleared H-62"}),
        ),
        Call(
            "set_schedule",
            {
                "circuit": "K5",
                "slots": [
                    {"start": "01:00", "end": "05:00", "mode": "boost", "limit_kw": 2.0},
                    {"start": "05:00", "end": "01:00", "mode": "eco", "limit_kw": 0.8},
                ],
            },
            json.dumps({"circuit": "K5", "accepted": True}),
        ),
    )
    # The user stops here: the simulation never answers.
    run.call(
        "Now the simulation; this takes a few minutes.",
        Call("simulate", {"scenario": "guests-2026-11-06"}, None),
    )
    run.user(
        "Stop, don't simulate, I have to leave. Just tell me whether the showers are safe, and never "
        "touch K5 again this weekend once the guests are here."
    )
    run.call(
        "",
        Call(
            "read_meter",
            {"circuit": "K5", "hours": 1},
            json.dumps({"circuit": "K5", "tank_c": 58.2, "litres_at_40c": 241, "kw": 1.98}),
        ),
    )
    run.say(
        "Safe: the tank has 58.2 degrees, about 241 litres at 40 degrees, which is five showers, and it "
        "is being heated at 2 kW. I will leave K5 alone while your guests are there. The backup heater "
        "is back on automatic (H-62 cleared)."
    )
    run.user("Great, thanks!")
    run.say("Have a good journey. The simulation did not run; nothing depends on it.")
    return run
