"""A data analyst over an invented bike-rental table: queries that answer with JSON, true sums."""

# ruff: noqa: E501 - the words of the conversation, kept in one piece

from __future__ import annotations

import json
from collections import defaultdict
from random import Random
from typing import Any

from runs.run import Call, Run, number, schema, text

SYSTEM = """You analyse the rentals of Velaria, a bike-sharing firm in four towns.
- Use the tools; never estimate a number that can be queried.
- Revenue is net of VAT (19 %). Always say which period a number covers.
- Never output rider ids; they are personal data.
- Queries return at most 200 rows. Ask for aggregates where you can.
- Round money to whole EUR in text, keep cents in tables."""

FILTER = schema(
    ("field", "op", "value"),
    field=text("column", enum=["day", "town", "bike", "minutes", "gross_cents", "rider", "end"]),
    op=text("comparison", enum=["=", "!=", "<", "<=", ">", ">=", "in"]),
    value={"description": "a value, or a list for 'in'"},
)
TOOLS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "query_rentals",
        "Rows of the rentals table, or aggregates of them.",
        schema(
            (),
            where={"type": "array", "items": FILTER, "description": "all must hold"},
            group_by={"type": "array", "items": text("column"), "description": "for aggregates"},
            measures={
                "type": "array",
                "description": "what to compute per group",
                "items": schema(
                    ("function",), function=text("sum, count, mean, p90"), of=text("column")
                ),
            },
            order_by=text("column, '-' in front for descending"),
            limit=number("rows", minimum=1, maximum=200, default=50),
        ),
    ),
    ("describe_table", "Columns, types and ranges.", schema()),
    (
        "chart",
        "Draw a chart and return its id.",
        schema(
            ("kind", "series"),
            kind=text("form", enum=["line", "bar", "heatmap"]),
            title=text("title"),
            series={
                "type": "array",
                "items": schema(
                    ("name", "points"),
                    name=text("legend"),
                    points={
                        "type": "array",
                        "items": {"type": "array", "items": {"type": "number"}},
                    },
                ),
            },
        ),
    ),
]
TOWNS = ("Elsova", "Havmark", "Lindtal", "Corvik")
ENDS = ("station", "station", "station", "station", "free", "lost", "broken")


def rentals(rng: Random) -> list[dict[str, Any]]:
    """Four weeks of rentals; Havmark's bikes of batch 7 break more often."""
    rows: list[dict[str, Any]] = []
    for at in range(2_400):
        town = rng.choice((*TOWNS, *TOWNS, "Elsova", "Lindtal", "Corvik"))
        bike = f"{town[0]}{rng.choice((3, 5, 7))}-{rng.randrange(100, 180)}"
        batch = bike[1]
        end = (
            "broken"
            if town == "Havmark" and batch == "7" and rng.random() < 0.3
            else rng.choice(ENDS)
        )
        minutes = max(1, round(rng.lognormvariate(2.9, 0.7)))
        rows.append(
            {
                "id": 880_000 + at,
                "day": f"2026-10-{1 + at * 28 // 2_400:02}",
                "town": town,
                "bike": bike,
                "minutes": minutes,
                "gross_cents": 119 + minutes * 17,
                "rider": f"r{rng.getrandbits(32):08x}",
                "end": end,
            }
        )
    return rows


def grouped(rows: list[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """Counts, minutes and revenue per group, as the query tool gives them."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return [
        dict(zip(keys, group, strict=True))
        | {
            "rentals": len(members),
            "minutes": sum(r["minutes"] for r in members),
            "net_cents": round(sum(r["gross_cents"] for r in members) / 1.19),
            "broken": sum(r["end"] == "broken" for r in members),
        }
        for group, members in sorted(groups.items())
    ]


def answer(rows: list[dict[str, Any]], total: int, *, indent: int | None = None) -> str:
    """The tool's envelope around rows."""
    return json.dumps(
        {"rows": rows, "returned": len(rows), "matched": total, "took_ms": 7 + total % 91},
        indent=indent,
    )


def build() -> Run:
    """The run."""
    rng = Random(28)
    rows = rentals(rng)
    run = Run("analysis", "Bike rentals: why Havmark earns less", SYSTEM, TOOLS)
    run.user(
        "Havmark's revenue looks weak this October (1st to 28th). Find out why, with numbers. Important: "
        "the board only wants net figures, and no rider ids anywhere."
    )
    columns = [
        {
            "name": k,
            "type": type(v).__name__,
            "nulls": 0,
            "example": v if k != "rider" else "(hidden)",
        }
        for k, v in rows[0].items()
    ]
    run.call(
        "I look at the table and at the towns.",
        Call(
            "describe_table",
            {},
            json.dumps({"table": "rentals", "rows": len(rows), "columns": columns}),
        ),
        Call(
            "query_rentals",
            {
                "group_by": ["town"],
                "measures": [{"function": "count"}, {"function": "sum", "of": "gross_cents"}],
            },
            answer(grouped(rows, "town"), len(rows), indent=2),
        ),
    )
    towns = {row["town"]: row for row in grouped(rows, "town")}
    run.call(
        "Now by day and town, to see whether it is the whole month or an event.",
        Call(
            "query_rentals",
            {"group_by": ["day", "town"], "measures": [{"function": "count"}], "limit": 200},
            answer(grouped(rows, "day", "town"), len(rows)),
        ),
    )
    run.call(
        "No single event. So perhaps it is the bikes: the broken endings per bike in Havmark.",
        Call(
            "query_rentals",
            {
                "where": [{"field": "town", "op": "=", "value": "Havmark"}],
                "group_by": ["bike"],
                "measures": [{"function": "count"}, {"function": "sum", "of": "minutes"}],
                "order_by": "-broken",
                "limit": 200,
            },
            answer(
                sorted(
                    grouped([r for r in rows if r["town"] == "Havmark"], "bike"),
                    key=lambda r: -r["broken"],
                )[:200],
                towns["Havmark"]["rentals"],
            ),
        ),
    )
    seven = [r for r in rows if r["town"] == "Havmark" and r["bike"].startswith("H7")]
    broken = [r for r in seven if r["end"] == "broken"]
    run.call(
        "Batch 7 stands out. I read the raw rows of its broken rentals to see what they have in common.",
        Call(
            "query_rentals",
            {
                "where": [
                    {"field": "town", "op": "=", "value": "Havmark"},
                    {"field": "end", "op": "=", "value": "broken"},
                    {"field": "bike", "op": "in", "value": ["H7-*"]},
                ],
                "limit": 200,
            },
            json.dumps({"error": "bad_value", "detail": "wildcards are not allowed in 'in'"}),
            is_error=True,
        ),
    )
    run.call(
        "",
        Call(
            "query_rentals",
            {
                "where": [
                    {"field": "end", "op": "=", "value": "broken"},
                    {"field": "bike", "op": ">=", "value": "H7-100"},
                    {"field": "bike", "op": "<", "value": "H7-180"},
                ],
                "limit": 200,
            },
            answer([r | {"rider": "(hidden)"} for r in broken], len(broken), indent=1),
        ),
    )
    share = 100 * len(broken) / len(seven)
    others = [r for r in rows if r not in seven]
    rest = 100 * sum(r["end"] == "broken" for r in others) / len(others)
    per = {t: round(v["net_cents"] / v["rentals"]) for t, v in towns.items()}
    run.say(
        f"Bikes of batch 7 in Havmark end as broken in {share:.1f} % of rentals ({len(broken)} of "
        f"{len(seven)}), everything else in {rest:.1f} %. Net revenue in Havmark, 1 to 28 October: "
        f"{towns['Havmark']['net_cents'] / 100:,.0f} EUR from {towns['Havmark']['rentals']} rentals, "
        f"{per['Havmark']} cents each. Revenue per rental is about the same in all towns, so what is "
        "missing are rentals that never happen because the bike stands in the workshop."
    )
    run.user(
        "How sure is that? Compare batch 7 across towns, and make a chart of broken share per batch."
    )
    by_batch: list[dict[str, Any]] = [
        {
            "town": town,
            "batch": batch,
            "rentals": len(mine),
            "broken": sum(r["end"] == "broken" for r in mine),
        }
        for town in TOWNS
        for batch in "357"
        if (mine := [r for r in rows if r["town"] == town and r["bike"][1] == batch])
    ]
    points = [
        {
            "name": town,
            "points": [
                [int(b["batch"]), round(100 * b["broken"] / b["rentals"], 2)]
                for b in by_batch
                if b["town"] == town
            ],
        }
        for town in TOWNS
    ]
    run.call(
        "",
        Call(
            "query_rentals",
            {"group_by": ["town", "batch"], "measures": [{"function": "count"}]},
            answer(by_batch, len(rows)),
        ),
    )
    run.call(
        "",
        Call(
            "chart",
            {"kind": "bar", "title": "Broken share per batch, 1-28 Oct 2026, %", "series": points},
            json.dumps({"chart_id": "ch-5d20", "width": 960, "height": 420}),
        ),
    )
    run.say(
        "Batch 7 is normal in the other three towns, so it is not the batch alone but batch 7 in "
        "Havmark. The chart is ch-5d20. Next I would compare the workshop's delivery notes; the table "
        "has no column for that."
    )
    run.user(
        "Agreed. We decided to recall Havmark's batch 7. List the ten bikes with most broken rides."
    )
    worst = sorted(grouped(broken, "bike"), key=lambda r: (-r["broken"], r["bike"]))[:10]
    run.call(
        "",
        Call(
            "query_rentals",
            {
                "where": [{"field": "end", "op": "=", "value": "broken"}],
                "group_by": ["bike"],
                "order_by": "-broken",
                "limit": 10,
            },
            answer(worst, len(broken)),
        ),
    )
    table = "\n".join(
        f"| {r['bike']} | {r['broken']} | {r['net_cents'] / 100:.2f} |" for r in worst
    )
    run.say(
        f"| bike | broken | net EUR of those rides |\n|---|---|---|\n{table}\n\nPeriod: 1 to 28 October."
    )
    return run
