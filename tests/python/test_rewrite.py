"""Stored conversations written anew: the same windows, in order, whole, whatever interrupts."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import satchel
from satchel.batch import Progress, rewrite, rewrite_batches
from satchel.errors import BudgetError, InputError
from satchel.reading import read_transcripts
from satchel.testing import generate_history

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

DIALECTS = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")
DATA = Path(__file__).parents[1] / "data"
SAMPLES = sorted(DATA.glob("*.json"))
MODEL = "gpt-4o"


def rows(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def reports(out: Path) -> list[dict[str, Any]]:
    return rows(out.with_name(out.name + ".report.jsonl"))


def rejects(out: Path) -> list[dict[str, Any]]:
    return rows(out.with_name(out.name + ".rejects.jsonl"))


def lines_file(path: Path, count: int, messages: int = 40, seed: int = 0) -> Path:
    """Conversations a line, of which every seventh line is broken."""
    with path.open("w", encoding="utf-8") as file:
        for index in range(count):
            if index % 7 == 3:
                file.write('{"messages": [{"role"\n')
                continue
            history = generate_history(messages, seed=seed + index)
            file.write(json.dumps({"messages": history}) + "\n")
    return path


# --- windows --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_record_is_the_window_of_the_next_call(path: Path, tmp_path: Path) -> None:
    [given] = read_transcripts(path)
    out = tmp_path / "out.jsonl"
    tokens = satchel.counter(MODEL).count_messages(
        given.messages, system=given.system, tools=given.tools, dialect=given.dialect
    )
    budget = max(2_500, tokens.total // 2)
    done = rewrite(path, out, model=MODEL, budget=budget)
    assert (done.conversations, done.rejected) == (1, 0)
    packer = satchel.Assembler(MODEL, budget=budget, dialect=given.dialect)
    window = packer.assemble(
        given.messages, system=given.system, tools=given.tools, open_calls="synthesize"
    )
    [record], [row] = rows(out), reports(out)
    assert record["messages"] == window.messages
    assert record.get("system") == given.system
    assert row["tokens_after"] == window.tokens <= budget
    assert row["tokens_before"] == tokens.total
    assert row["steps"] == window.report.steps
    assert row["compactions"] == window.report.compactions


def test_every_call_gets_the_window_it_would_have_had(tmp_path: Path) -> None:
    path = DATA / "coding.openai.json"
    [given] = read_transcripts(path)
    out = tmp_path / "out.jsonl"
    rewrite(path, out, model=MODEL, budget=11_000, at="every-call")
    packer = satchel.Assembler(MODEL, budget=11_000)
    working_set = packer.working_set(system=given.system, tools=given.tools)
    found = {record["metadata"]["at"]: record["messages"] for record in rows(out)}
    assert len(found) > 10
    for at, message in enumerate(given.messages):
        if at in found:
            assert message["role"] == "assistant"
            assert found[at] == working_set.window().messages
        working_set.append(message)


@pytest.mark.parametrize(("at", "index"), [("turn:1", 2), ("turn:2", 4), ("turn:-1", 6)])
def test_a_turn_ends_before_its_reply(tmp_path: Path, at: str, index: int) -> None:
    messages = [{"role": "system", "content": "Be brief."}]
    for number in range(3):
        messages.append({"role": "user", "content": f"question {number}"})
        messages.append({"role": "assistant", "content": f"answer {number}"})
    path = tmp_path / "in.json"
    path.write_text(json.dumps(messages), encoding="utf-8")
    out = tmp_path / "out.jsonl"
    rewrite(path, out, model=MODEL, at=at)
    assert rows(out)[0]["messages"] == messages[:index]
    assert rewrite(path, out, model=MODEL, at="turn:4").rejected == 1
    assert "no turn 4, there are 3" in rejects(out)[0]["message"]


def test_lone_surrogates_and_long_numbers_stay(tmp_path: Path) -> None:
    text = (
        '[{"role":"user","content":"half \\ud83d"},'
        '{"role":"assistant","content":"x","n":12345678901234567890.10}]'
    )
    path, out = tmp_path / "in.json", tmp_path / "out.jsonl"
    path.write_text(text, encoding="utf-8")
    rewrite(path, out, model=MODEL)
    assert f'"messages":{text}' in out.read_text(encoding="utf-8")


def test_a_damaged_conversation_is_repaired_and_says_so(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "tool", "tool_call_id": "gone", "content": "42"},
    ]
    path, out = tmp_path / "in.json", tmp_path / "out.jsonl"
    path.write_text(json.dumps(messages), encoding="utf-8")
    done = rewrite(path, out, model=MODEL)
    assert (done.repaired, done.violations, done.violations_left) == (1, 1, 0)
    assert not satchel.lint(rows(out)[0]["messages"], "openai")


def test_pages_lead_from_a_pointer_to_the_original(tmp_path: Path) -> None:
    path, out, pages = DATA / "coding.openai.json", tmp_path / "o.jsonl", tmp_path / "p.jsonl"
    [given] = read_transcripts(path)
    rewrite(path, out, model=MODEL, budget="20%", pages=pages)
    found = {row["pointer"]: row for row in rows(pages)}
    [report] = reports(out)
    packer = satchel.Assembler(MODEL, budget=report["budget"])
    working_set = packer.working_set(given.messages, system=given.system, tools=given.tools)
    window = working_set.window(open_calls="synthesize")
    assert {page.pointer for page in window.pages} <= found.keys()
    for page in window.pages:
        assert found[page.pointer]["text"] == working_set.page_in(page.pointer)
    assert sum(row["message"] is None for row in found.values()) == 1


@pytest.mark.parametrize("target", DIALECTS)
def test_windows_of_another_dialect_are_valid_and_fit(tmp_path: Path, target: str) -> None:
    out = tmp_path / "out.jsonl"
    done = rewrite(DATA, out, model=MODEL, budget="25%", convert=target)
    assert (done.rejected, done.violations_left) == (0, 0)
    for record, row in zip(rows(out), reports(out), strict=True):
        found = satchel.lint(
            record["messages"], target, system=record.get("system"), tools=record.get("tools")
        )
        assert [one for one in found if one.severity == "error"] == []
        assert row["tokens_upper"] <= row["budget"]
        assert row["dialect"] == record["dialect"] == target
    assert [found.dialect for found in read_transcripts(out)] == [target] * done.windows


# --- files ----------------------------------------------------------------------------------------


def test_bytes_do_not_depend_on_threads_or_packing(tmp_path: Path) -> None:
    path = lines_file(tmp_path / "in.jsonl", 60)
    assert path.stat().st_size > 1_500_000
    plain = path.read_bytes()
    options: dict[str, Any] = {"model": MODEL, "budget": 3_000, "policy": "token-window"}
    out = tmp_path / "out.jsonl"
    done = rewrite(path, out, threads=1, **options)
    assert (done.conversations, done.rejected) == (51, 9)
    first = [out.read_bytes(), reports(out), rejects(out)]
    lines = [row["line"] for row in reports(out)] + [row["line"] for row in rejects(out)]
    assert sorted(lines) == list(range(1, 61))
    rewrite(path, out, threads=4, **options)
    assert first == [out.read_bytes(), reports(out), rejects(out)]
    for packed in (gzip.compress(plain), pa.compress(plain, "zstd", asbytes=True)):
        path.write_bytes(packed)
        rewrite(path, out, threads=2, **options)
        assert first == [out.read_bytes(), reports(out), rejects(out)]


def test_lines_are_read_as_read_transcripts_reads_them(tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    hello = [{"role": "user", "content": "hi"}]
    for text in (
        "\ufeff" + json.dumps(hello) + "\n\n" + json.dumps({"messages": hello}) + "\r\n",
        "broken\n" + (json.dumps(hello) + "\n") * 2,
        json.dumps([hello, hello]) + "\n" + json.dumps(hello),
        json.dumps(hello) + "\n",
        "[\n" + json.dumps(hello) + "\n]",
        json.dumps(hello[0]) + "\n" + json.dumps(hello[0]) + "\n",
        json.dumps(hello) + "\n5\n{}\n",
        "",
    ):
        path.write_text(text, encoding="utf-8")
        with (
            pytest.warns(satchel.TranscriptWarning)
            if "broken" in text or not text or "5" in text
            else _nothing()
        ):
            wanted = [found.messages for found in read_transcripts(path, on_error="skip")]
        rewrite(path, out, model=MODEL)
        assert [record["messages"] for record in rows(out)] == wanted


class _nothing:  # noqa: N801 - stands for a context
    def __enter__(self) -> None:
        """Nothing."""

    def __exit__(self, *_: object) -> None:
        """Nothing."""


def test_bad_files_are_rejected_and_stop_nothing(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out.jsonl"
    folder.mkdir()
    (folder / "a.json").write_text('{"messages": 5}', encoding="utf-8")
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(b"x" * 10_000)[:-12])
    (folder / "c.json").write_text('[{"role": "user", "content": "hi"}]', encoding="utf-8")
    done = rewrite([folder, tmp_path / "missing.json"], out, model=MODEL)
    assert (done.conversations, done.rejected) == (1, 3)
    assert [Path(row["source"]).name for row in rejects(out)] == [
        "a.json",
        "b.jsonl.gz",
        "missing.json",
    ]
    with pytest.raises(InputError, match=r"a\.json, line 1"):
        rewrite(folder, out, model=MODEL, on_error="raise", restart=True)


def test_parquet_in_and_out(tmp_path: Path) -> None:
    histories = [generate_history(30, seed=seed) for seed in range(5)]
    given = pa.table({"messages": [json.dumps(one) for one in histories], "id": list(range(5))})
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(given, path)
    rewrite(path, out, model=MODEL, budget=4_000)
    found = pq.read_table(out)
    assert found.column_names == ["messages", "system", "tools", "report"]
    packer = satchel.Assembler(MODEL, budget=4_000)
    for row, history in zip(found.to_pylist(), histories, strict=True):
        assert json.loads(row["messages"]) == packer.assemble(history).messages
        assert row["system"] is None
    assert [json.loads(text)["line"] for text in found["report"].to_pylist()] == [1, 2, 3, 4, 5]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "in.parquet",
        "out.parquet",
        "out.parquet.rejects.jsonl",
        "out.parquet.report.jsonl",
    ]


def test_batches_keep_the_columns_of_their_rows() -> None:
    hello = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    batches = [
        pa.record_batch({"messages": [json.dumps(hello), None, "5"], "id": ["a", "b", "c"]}),
        pa.record_batch(
            {"messages": [hello, hello * 2], "system": ["Be brief.", None], "id": ["d", "e"]}
        ),
    ]
    found = list(rewrite_batches(iter(batches), model=MODEL, at="every-call"))
    assert [batch["id"].to_pylist() for batch in found] == [["a"], ["d", "e", "e"]]
    assert json.loads(found[1]["messages"][0].as_py()) == hello[:1]
    assert json.loads(found[1]["system"][0].as_py()) == "Be brief."
    with pytest.raises(InputError):
        list(rewrite_batches(batches, model=MODEL, on_error="raise"))
    sliced = batches[0].slice(0, 1)
    assert next(rewrite_batches([sliced], model=MODEL))["id"].to_pylist() == ["a"]
    with pytest.raises(InputError, match="no column"):
        next(rewrite_batches([pa.record_batch({"x": [1]})], model=MODEL))


# --- interruptions --------------------------------------------------------------------------------

RUN = """
import os, signal, sys
from satchel.batch import checkpoint, rewrite, running
running._SAVE_S = 0
left, append = int(sys.argv[3]), checkpoint.Outputs.append
def dying(self, name, data):
    global left
    left -= 1
    if left <= 0 and name in self._files:
        self._files[name].write(data[: len(data) // 2])
        self._files[name].flush()
        os.kill(os.getpid(), signal.SIGKILL)
    append(self, name, data)
checkpoint.Outputs.append = dying
rewrite(sys.argv[1], sys.argv[2], model="gpt-4o", budget=3000, policy="token-window")
"""


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path: Path, ending: str) -> None:
    path = lines_file(tmp_path / "in.jsonl", 70)
    whole, out = tmp_path / f"whole.{ending}", tmp_path / f"out.{ending}"
    rewrite(path, whole, model=MODEL, budget=3_000, policy="token-window")
    rng = random.Random(5)  # noqa: S311 - the same kills every time
    kills = [rng.randint(1, 7) for _ in range(3)]
    for left in [*kills, 10_000]:
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-c", RUN, str(path), str(out), str(left)], check=False
        )
        assert done.returncode == (-signal.SIGKILL if left < 10_000 else 0)
        assert out.exists() == (left == 10_000)
    for end in ("", ".report.jsonl", ".rejects.jsonl"):
        assert Path(f"{out}{end}").read_bytes() == Path(f"{whole}{end}").read_bytes()
    assert not list(tmp_path.glob("*.part")) + list(tmp_path.glob("*.resume.json"))


def test_another_run_does_not_go_on(tmp_path: Path) -> None:
    path, out = lines_file(tmp_path / "in.jsonl", 40), tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        rewrite(path, out, model=MODEL, progress=stop)
    with pytest.raises(InputError, match="interrupted here"):
        rewrite(path, out, model=MODEL, budget=3_000)
    found = rewrite(path, out, model=MODEL, budget=3_000, policy="token-window", restart=True)
    assert found.conversations == 34
    with pytest.raises(InputError, match="would be replaced"):
        rewrite(path, path, model=MODEL)


def stop(_: Progress) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet", "parts"])
@pytest.mark.parametrize("restart", [False, True])
def test_an_output_in_the_folder_that_is_read_is_not_read(
    tmp_path: Path, name: str, *, restart: bool
) -> None:
    """Whatever an interrupted run left there: state, parts, what was made of them."""
    folder, keys = tmp_path / "in", "day" if name == "parts" else ()
    (folder / "day=1").mkdir(parents=True)
    path, out = lines_file(folder / "day=1" / "in.jsonl", 40), folder / name
    with pytest.raises(KeyboardInterrupt):
        rewrite(folder, out, model=MODEL, partition_by=keys, progress=stop)
    made = Path(f"{out}.part.parquet")
    if keys:
        (made / "day=1").mkdir(parents=True)
        made = made / "day=1" / "part-0.parquet"
    if name != "out.jsonl":
        pq.write_table(pa.table({"messages": [path.read_text("utf-8").split("\n")[0]]}), made)
    done = rewrite(folder, out, model=MODEL, partition_by=keys, restart=restart)
    assert (done.conversations, done.rejected) == (34, 6)


FULL = """
import resource, signal, sys
from satchel.batch import rewrite, running
from satchel.errors import InputError
running._SAVE_S = float(sys.argv[4])
most = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
try:
    rewrite(sys.argv[1], sys.argv[2], model="gpt-4o", policy="token-window")
except InputError as error:
    print(error.code, error)
"""


@pytest.mark.parametrize(("most", "save_s"), [(0, 60), (10, 0), (700_000, 0), (700_000, 60)])
def test_a_full_disk_is_an_error_of_ours_and_the_next_run_goes_on(
    tmp_path: Path, most: int, save_s: int
) -> None:
    path = lines_file(tmp_path / "in.jsonl", 70)
    whole, out = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    rewrite(path, whole, model=MODEL, policy="token-window")
    assert whole.stat().st_size > 700_000
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", FULL, str(path), str(out), str(most), str(save_s)],
        check=True,
        capture_output=True,
    )
    assert done.stdout.decode().startswith("invalid_file ")
    assert done.stdout.decode().strip().endswith("file too large")
    rewrite(path, out, model=MODEL, policy="token-window")
    assert out.read_bytes() == whole.read_bytes()


def test_an_output_that_is_a_folder_is_an_error_of_ours(tmp_path: Path) -> None:
    path, out = lines_file(tmp_path / "in.jsonl", 2), tmp_path / "out.jsonl"
    (out / "kept").mkdir(parents=True)
    with pytest.raises(InputError, match=r"out\.jsonl: ") as caught:
        rewrite(path, out, model=MODEL)
    assert caught.value.code == "invalid_file"


def test_names_that_are_no_utf_8_are_told_escaped(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    for name in ("day=\udcff.jsonl", "\udcfe.json"):
        lines_file(tmp_path / "rows.jsonl", 4).rename(tmp_path / name)
    (tmp_path / "\udcfd.jsonl.gz").write_bytes(gzip.compress(b"{}")[:9])
    names = [str(path) for path in sorted(tmp_path.iterdir())]
    done = rewrite(names, out, model=MODEL, policy="token-window")
    assert (done.conversations, done.rejected) == (6, 3)
    sources = {Path(row["metadata"]["source"]).name for row in rows(out)}
    assert sources == {"day=\\udcff.jsonl", "\\udcfe.json"}
    assert any("\\udcfd" in row["source"] for row in rejects(out))


def test_budgets_beyond_every_window_are_refused(tmp_path: Path) -> None:
    wrong: list[Any] = [2**63, 10**30, str(2**63), "9" * 5_000, 10**5_000, -(10**30)]
    for budget in wrong:
        with pytest.raises(InputError) as caught:
            rewrite(DATA / "chat.openai.json", tmp_path / "out.jsonl", model=MODEL, budget=budget)
        assert caught.value.code == "invalid_value"
    assert not list(tmp_path.iterdir())


def test_options_are_checked(tmp_path: Path) -> None:
    path, out = DATA / "chat.openai.json", tmp_path / "out.jsonl"
    wrong: list[dict[str, Any]] = [
        {"budget": 0},
        {"budget": "many"},
        {"at": "turn:0"},
        {"at": "now"},
        {"convert": "esperanto"},
        {"format": "paper"},
        {"on_error": "ignore"},
        {"threads": 0},
        {"policy": "none"},
        {"report": out},
    ]
    for options in wrong:
        given: dict[str, Any] = {"model": MODEL, **options}
        with pytest.raises(InputError):
            rewrite(path, out, **given)
    with pytest.raises(BudgetError):
        rewrite(path, out, model=MODEL, budget=1, on_error="raise")
    with pytest.raises(InputError, match="standard input"):
        rewrite("-", out, model=MODEL)


def test_progress_tells_rate_and_time_left(tmp_path: Path) -> None:
    path, told = lines_file(tmp_path / "in.jsonl", 40), list[Progress]()
    done = rewrite(
        path, tmp_path / "o.jsonl", model=MODEL, policy="token-window", progress=told.append
    )
    assert told[-1].summary == done
    assert done.bytes_read == told[-1].bytes_total == path.stat().st_size
    assert told[-1].left_s == 0
    assert [one.summary.conversations for one in told] == sorted(
        one.summary.conversations for one in told
    )


# --- recorded transcripts -------------------------------------------------------------------------


def _recorded() -> Path | None:
    root = os.environ.get("SATCHEL_SHARED")
    places = [Path(root)] if root else [up / "shared" for up in Path(__file__).parents]
    return next((place / "data/dev" for place in places if (place / "data/dev").is_dir()), None)


@pytest.mark.parametrize("target", DIALECTS)
def test_recorded_transcripts_to_every_dialect(tmp_path: Path, target: str) -> None:
    folder = _recorded()
    if folder is None:
        pytest.skip("recorded transcripts are not here: set SATCHEL_SHARED")
    out = tmp_path / "out.jsonl"
    done = rewrite(folder, out, model=MODEL, budget="25%", convert=target)
    assert done.conversations > 500
    assert done.violations_left == 0
    for record in rows(out):
        found = satchel.lint(
            record["messages"], target, system=record.get("system"), tools=record.get("tools")
        )
        assert [one for one in found if one.severity == "error"] == []
