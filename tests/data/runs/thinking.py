"""An Anthropic run with reasoning: a database migration is reviewed, calls in parallel, errors.

Reasoning blocks carry made-up signatures; one step has redacted reasoning.
"""

# ruff: noqa: E501 - the words of the conversation, kept in one piece

from __future__ import annotations

import json
from typing import Any

from runs.run import Call, Run, number, schema, text

SYSTEM = """You review schema migrations for the clinic scheduler Carillon (PostgreSQL 16).
You have a read-only replica. Never propose a statement that takes an ACCESS EXCLUSIVE lock on
`appointments` for more than one second: the wards book around the clock. The retention of
`audit_log` is a legal duty (ten years); nothing may shorten it."""

TOOLS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "sql",
        "Run a read-only statement on the replica.",
        schema(
            ("statement",),
            statement=text("one statement"),
            options=schema((), timeout_ms=number("limit"), explain={"type": "boolean"}),
        ),
    ),
    ("read_migration", "The text of a migration.", schema(("name",), name=text("file name"))),
]
MIGRATION = """-- 0187_slot_ranges.sql
ALTER TABLE appointments ADD COLUMN slot tstzrange;
UPDATE appointments SET slot = tstzrange(starts_at, ends_at, '[)');
ALTER TABLE appointments ALTER COLUMN slot SET NOT NULL;
ALTER TABLE appointments
    ADD CONSTRAINT no_double_booking EXCLUDE USING gist (room_id WITH =, slot WITH &&);
DROP INDEX appointments_starts_at_idx;
"""


def sql(statement: str, result: Any, *, is_error: bool = False) -> Call:
    """A statement and its answer."""
    shown = result if isinstance(result, str) else json.dumps(result)
    return Call(
        "sql", {"statement": statement, "options": {"timeout_ms": 5_000}}, shown, is_error=is_error
    )


def build() -> Run:
    """The run."""
    run = Run("thinking", "Review of a migration that locks too much", SYSTEM, TOOLS)
    run.user(
        "Please review 0187_slot_ranges.sql. It is planned for tonight, 23:30. Can it go out as it is?"
    )
    run.call(
        "I read the migration and the table's size at once.",
        Call("read_migration", {"name": "0187_slot_ranges.sql"}, MIGRATION),
        sql(
            "SELECT reltuples::bigint, pg_total_relation_size(oid) FROM pg_class WHERE relname = 'appointments'",
            {
                "columns": ["reltuples", "pg_total_relation_size"],
                "rows": [[41_207_332, 19_833_651_200]],
            },
        ),
        sql(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'appointments'",
            {
                "columns": ["indexname", "indexdef"],
                "rows": [
                    ["appointments_pkey", "CREATE UNIQUE INDEX ... USING btree (id)"],
                    ["appointments_starts_at_idx", "CREATE INDEX ... USING btree (starts_at)"],
                    [
                        "appointments_patient_idx",
                        "CREATE INDEX ... USING btree (patient_id, starts_at)",
                    ],
                ],
            },
        ),
        thinking="The exclusion constraint needs btree_gist for room_id, and building it scans the table under "
        "a strong lock. The size decides how bad that is. I should also check who uses the index on starts_at.",
    )
    run.call(
        "",
        sql(
            "SELECT count(*) FROM appointments WHERE ends_at <= starts_at",
            "ERROR: canceling statement due to statement timeout (5000 ms)",
            is_error=True,
        ),
        sql(
            "SELECT extname FROM pg_extension",
            {"columns": ["extname"], "rows": [["plpgsql"], ["pg_trgm"]]},
        ),
        thinking="41 million rows, 20 GB: the UPDATE rewrites everything, and SET NOT NULL scans again. If some "
        "row ends before it starts, tstzrange raises an error and the whole thing rolls back at the end.",
    )
    run.call(
        "The count timed out; I use the partition of this year.",
        sql(
            "SELECT count(*) FROM appointments WHERE starts_at >= '2026-01-01' AND ends_at < starts_at",
            {"columns": ["count"], "rows": [[37]]},
        ),
        sql(
            "SELECT query, calls FROM pg_stat_statements WHERE query ILIKE '%starts_at%' ORDER BY calls DESC LIMIT 3",
            {
                "columns": ["query", "calls"],
                "rows": [
                    ["SELECT ... WHERE starts_at BETWEEN $1 AND $2 AND ward_id = $3", 18_220_417],
                    ["DELETE FROM reminders WHERE appointment_id IN (... starts_at < $1)", 90_112],
                    ["SELECT max(starts_at) FROM appointments WHERE room_id = $1", 71_020],
                ],
            },
        ),
        thinking="btree_gist is missing, so the constraint would fail at once with 'data type integer has no "
        "default operator class for access method gist'. And there may be reversed rows.",
        redacted=True,
    )
    run.say(
        "No, please not tonight. Four findings:\n"
        "1. `btree_gist` is not installed: the constraint fails at once.\n"
        "2. 37 appointments of this year end before they start; `tstzrange` raises an error for them.\n"
        "3. The UPDATE and the constraint hold the table (41,207,332 rows, 20 GB) for many minutes: against "
        "the rule of one second.\n"
        "4. `appointments_starts_at_idx` serves 18,220,417 calls; do not drop it.",
        thinking="37 reversed rows this year. The index is used heavily. That is enough for a no.",
    )
    run.user(
        "Ouch, thanks. Propose a plan that respects the lock rule. The 37 rows: the wards will correct them by "
        "hand, don't touch them. And confirm that audit_log isn't affected."
    )
    run.call(
        "",
        sql(
            "SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'appointments'::regclass AND NOT tgisinternal",
            {"columns": ["tgname", "tgenabled"], "rows": [["appointments_audit", "O"]]},
        ),
        sql(
            "SELECT conname FROM pg_constraint WHERE confrelid = 'audit_log'::regclass",
            {"columns": ["conname"], "rows": []},
        ),
        thinking="An audit trigger: each updated row writes an audit row. A backfill of 41 million rows would add "
        "41 million audit rows. That does not shorten retention, but it floods the log. Worth saying.",
    )
    run.say(
        "Plan, each step under a second of lock:\n"
        "1. Day 1: `CREATE EXTENSION btree_gist`; add `slot` without NOT NULL; a trigger fills it for new rows.\n"
        "2. Days 1 to 4: fill old rows in batches of 5,000, skipping reversed ones.\n"
        "3. When the wards have corrected the 37 rows: `CHECK (slot IS NOT NULL) NOT VALID`, then VALIDATE.\n"
        "4. An exclusion constraint cannot be added NOT VALID, so build it on new partitions only, from "
        "2027-01-01 on; older months stay without it.\n"
        "5. Keep `appointments_starts_at_idx`.\n\n"
        "`audit_log` is not changed, but `appointments_audit` fires for each filled row: 41 million entries. "
        "Nothing is shortened; whether the log may grow by that much is your decision.",
        thinking="Exclusion constraints cannot be NOT VALID or built concurrently. Restricting it to new "
        "partitions is the honest way. I must not propose to disable the audit trigger.",
    )
    run.user("Decision: leave the trigger on, the log may grow. Write the ticket title, please.")
    run.say(
        "0187: slot ranges in steps under one second, double booking refused from 2027-01-01 on",
        thinking="Short title, both facts.",
    )
    return run
