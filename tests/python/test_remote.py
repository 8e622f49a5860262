"""Files that lie elsewhere: read, listed and written by URL; partitioned Parquet in and out."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from commands import run as command
from satchel import _remote
from satchel.batch import rewrite
from satchel.errors import InputError
from satchel.reading import read_transcripts, transcript_files
from satchel.replay import run
from satchel.replay.table import check_results
from satchel.testing import generate_history

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

HISTORIES = [generate_history(24, seed=seed) for seed in range(6)]
ENDS = ("", ".report.jsonl", ".rejects.jsonl")


@pytest.fixture
def memory() -> Generator[Any]:
    """An object store in this process."""
    system = import_module("fsspec").filesystem("memory")
    yield system
    system.rm("/", recursive=True)


def lines(histories: list[Any]) -> bytes:
    return b"".join(json.dumps({"messages": one}).encode() + b"\n" for one in histories)


def local_files(folder: Path) -> None:
    (folder / "day=1").mkdir()
    (folder / "day=2").mkdir()
    (folder / "day=1" / "a.jsonl").write_bytes(lines(HISTORIES[:3]) + b"{broken\n")
    (folder / "day=2" / "b.jsonl").write_bytes(lines(HISTORIES[3:]))


def test_a_store_gives_what_a_folder_gives(memory: Any, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    local_files(source)
    for file in ("day=1/a.jsonl", "day=2/b.jsonl"):
        memory.pipe(f"/bucket/in/{file}", (source / file).read_bytes())
    memory.pipe("/bucket/in/notes.txt", b"no transcript")
    options: dict[str, Any] = {"model": "gpt-4o", "budget": "25%"}
    here = rewrite(source, tmp_path / "out.jsonl", **options)
    there = rewrite(
        "memory://bucket/in", "memory://bucket/out.jsonl", staging=tmp_path / "staging", **options
    )
    assert there == here
    assert (here.conversations, here.rejected) == (6, 1)
    for end in ENDS:
        local = (tmp_path / f"out.jsonl{end}").read_text(encoding="utf-8")
        remote = memory.cat(f"/bucket/out.jsonl{end}").decode()
        assert remote.replace("memory://bucket/in", str(source)) == local
    assert list((tmp_path / "staging").iterdir()) == []  # nothing is left behind
    # Again, the outputs now in the folder that is read: they are not read.
    assert rewrite("memory://bucket", "memory://bucket/out.jsonl", **options) == here


def test_a_copy_that_fails_is_made_by_the_next_call(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.pipe("/bucket/in.jsonl", lines(HISTORIES))
    given: dict[str, Any] = {"model": "gpt-4o", "budget": "25%", "staging": tmp_path}
    url = "memory://bucket/out.parquet"
    with monkeypatch.context() as patched:

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        patched.setattr(_remote, "_copy", full)
        with pytest.raises(InputError, match="cannot be written") as caught:
            rewrite("memory://bucket/in.jsonl", url, **given)
        assert caught.value.code == "invalid_file"
        assert not memory.exists("/bucket/out.parquet")
    # Only the copy is left to do: a rewriter would fail now.
    monkeypatch.setattr("satchel.batch.running._in_order", None)
    done = rewrite("memory://bucket/in.jsonl", url, **given)
    assert done.windows == pq.read_table(memory.open("/bucket/out.parquet")).num_rows == 6


def test_readers_take_urls(memory: Any, tmp_path: Path) -> None:
    local_files(tmp_path)
    memory.pipe("/m/day=1/a.jsonl", lines(HISTORIES[:3]))
    url = tmp_path.as_uri()
    assert [file.removeprefix(url) for file in transcript_files(url)] == [
        "/day=1/a.jsonl",
        "/day=2/b.jsonl",
    ]
    [first, *_] = read_transcripts("memory://m")
    assert first.messages == HISTORIES[0]
    assert (first.source, first.index) == ("memory://m/day=1/a.jsonl", 0)
    report = run(f"{url}/day=2/b.jsonl", policies="adaptive")
    assert [one.index for one in report.runs] == [0, 1, 2]
    with pytest.raises(InputError, match="no such file"):
        list(read_transcripts("memory://m/nothing.jsonl"))
    with pytest.raises(InputError) as caught:
        list(read_transcripts("nosuchscheme://bucket/file.jsonl"))
    assert caught.value.code == "invalid_file"


def test_a_url_holds_no_password(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="environment") as caught:
        rewrite("s3://name:word@bucket/key", tmp_path / "out.jsonl", model="gpt-4o")
    assert "word@" not in str(caught.value)


def test_object_stores_are_known_by_their_url() -> None:
    system, path = _remote.file_system("s3://bucket/folder/key.jsonl?region=eu-west-1")
    assert (system.type_name, system.region, path) == ("s3", "eu-west-1", "bucket/folder/key.jsonl")


def test_partitioned_parquet_in_and_out(memory: Any, tmp_path: Path) -> None:
    """Rows keep their partition; what has none is in the default one, as other engines name it."""
    source = tmp_path / "in"
    for folder, histories in (
        ("day=1/lang=en", HISTORIES[:2]),
        ("day=2/lang=a%2Fb", HISTORIES[2:5]),
    ):
        (source / folder).mkdir(parents=True)
        table = pa.table({"messages": [json.dumps(one) for one in histories]})
        pq.write_table(table, source / folder / "part-0.parquet")
    (source / "loose.jsonl").write_bytes(lines(HISTORIES[5:]))
    out = tmp_path / "out"
    options: dict[str, Any] = {"model": "gpt-4o", "budget": "25%"}
    done = rewrite(source, out, partition_by=["day", "lang"], **options)
    assert done.windows == 6
    names = sorted(str(file.relative_to(out)) for file in out.rglob("*.parquet"))
    nobody = "__HIVE_DEFAULT_PARTITION__"
    assert names == [
        "day=1/lang=en/part-0.parquet",
        "day=2/lang=a%2Fb/part-0.parquet",
        f"day={nobody}/lang={nobody}/part-0.parquet",
    ]
    table = pq.read_table(out)
    assert sorted(table.column_names) == ["day", "lang", "messages", "report", "system", "tools"]
    rows = {row["messages"]: (row["day"], row["lang"]) for row in table.to_pylist()}
    plain = rewrite(source, tmp_path / "flat.parquet", **options)
    assert plain == done
    flat = pq.read_table(tmp_path / "flat.parquet").to_pylist()
    assert {row["messages"] for row in flat} == set(rows)
    assert sorted(map(str, rows.values())) == sorted(
        map(str, [(1, "en")] * 2 + [(2, "a/b")] * 3 + [(None, None)])
    )
    # The written folder is an input like any other, for every reader.
    assert len(list(read_transcripts(out))) == 6
    assert rewrite(out, tmp_path / "again.jsonl", **options).conversations == 6
    with pytest.raises(InputError, match="is there already"):
        rewrite(source, out, partition_by="day", restart=True, **options)
    url = "memory://lake/out"
    rewrite(source, url, partition_by="day", staging=tmp_path / "staging", **options)
    assert memory.exists("/lake/out/day=2/part-0.parquet")
    with pytest.raises(InputError, match="memory://lake/out: is there already"):
        rewrite(source, url, partition_by="day", staging=tmp_path / "staging", **options)
    memory.pipe("/lake/in/day=1/a.jsonl", lines(HISTORIES[:2]))
    inside = "memory://lake/in/out"
    rewrite("memory://lake/in", inside, partition_by="day", staging=tmp_path / "other", **options)
    assert memory.exists("/lake/in/out/day=1/part-0.parquet")


def test_the_query_of_a_url_is_told_nowhere(tmp_path: Path) -> None:
    """It may be a signature: whoever has it has the file."""
    folder, out = tmp_path / "in", tmp_path / "out.jsonl"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(lines(HISTORIES[:2]) + b"{broken\n")
    (folder / "b.jsonl.gz").write_bytes(b"\x1f\x8b damaged")
    (folder / "c.parquet").write_bytes(b"PAR1 damaged")
    pq.write_table(pa.table({"messages": [json.dumps(HISTORIES[2])]}), folder / "d.parquet")
    url = f"{folder.as_uri()}?sig=SECRET"
    assert transcript_files(url)
    done = rewrite(url, out, model="gpt-4o", pages=tmp_path / "pages", policy="token-window")
    assert (done.windows, done.rejected) == (3, 3)
    written = {file.name: file.read_text("utf-8") for file in tmp_path.iterdir() if file.is_file()}
    assert folder.as_uri() in written["out.jsonl"]
    assert not [name for name, text in written.items() if "SECRET" in text]
    with pytest.raises(InputError) as caught:
        rewrite(url, out, model="gpt-4o", on_error="raise")
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://localhost:9/out", "HTTPS://localhost:9/out"])
def test_a_scheme_that_cannot_be_written_is_refused_before_the_work(
    url: str, tmp_path: Path
) -> None:
    (tmp_path / "in.jsonl").write_bytes(lines(HISTORIES[:1]))
    for keys in ((), "day"):
        with pytest.raises(InputError, match="for reading only") as caught:
            rewrite(tmp_path / "in.jsonl", url, model="gpt-4o", partition_by=keys)
        assert caught.value.code == "invalid_file"
    with pytest.raises(InputError, match="for reading only"):
        check_results(url, [], is_folder=False)
    report = run(tmp_path / "in.jsonl", policies="adaptive", min_calls=1)
    with pytest.raises(InputError, match="for reading only"):
        report.to_parquet(url)


def test_a_store_that_turns_out_to_be_read_only(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.pipe("/m/in.jsonl", lines(HISTORIES[:1]))

    def refused(*_: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(_remote, "_copy", refused)
    with pytest.raises(InputError, match=r"m/out\.jsonl: its scheme is for reading only"):
        rewrite("memory://m/in.jsonl", "memory://m/out.jsonl", model="gpt-4o", staging=tmp_path)


def test_more_partitions_than_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("satchel.batch.partitions._OPEN", 2)
    for day in range(4):
        (tmp_path / "in" / f"day={day}").mkdir(parents=True)
        for name in ("a", "b"):
            file = tmp_path / "in" / f"day={day}" / f"{name}.jsonl"
            file.write_bytes(lines(HISTORIES[day : day + 1]))
    source = [tmp_path / "in" / f"day={day}" / f"{name}.jsonl" for name in "ab" for day in range(4)]
    rewrite(source, tmp_path / "out", model="gpt-4o", partition_by="day")
    assert pq.read_table(tmp_path / "out").num_rows == 8
    assert len(list((tmp_path / "out").rglob("part-1.parquet"))) == 4


@pytest.mark.parametrize("keys", [["day", "day"], ["a/b"], ["a=b"], [""], [3]])
def test_partition_keys_are_checked(keys: list[Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="partition_by"):
        rewrite(tmp_path, tmp_path / "out", model="gpt-4o", partition_by=keys)


def test_parquet_is_read_like_lines(tmp_path: Path) -> None:
    """Message lists, whole conversations, plain system prompts, rows that are damaged."""
    rows = [
        json.dumps(HISTORIES[0], indent=1),
        json.dumps({"messages": HISTORIES[1], "title": "whole"}),
        "{broken",
        None,
    ]
    system = ["Be brief.", None, None, None]
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"messages": rows, "system": system}), file)
    with pytest.warns(match="rows.parquet"):
        first, second = read_transcripts(file, on_error="skip")
    assert (first.messages, first.system) == (HISTORIES[0], "Be brief.")
    assert second.messages == HISTORIES[1]
    assert [first.index, second.index] == [0, 1]
    nested = pa.table({"conversation": [HISTORIES[0][:1], HISTORIES[1][:1]]})
    pq.write_table(nested, tmp_path / "nested.parquet")
    [one, two] = read_transcripts(tmp_path / "nested.parquet")
    assert [one.messages, two.messages] == [HISTORIES[0][:1], HISTORIES[1][:1]]
    pq.write_table(pa.table({"text": ["x"]}), tmp_path / "other.parquet")
    with pytest.raises(InputError, match="no column"):
        list(read_transcripts(tmp_path / "other.parquet"))


def test_a_signed_url_is_replayed_and_told_nowhere(tmp_path: Path) -> None:
    """Figures, pages, results, errors, the command: each reads by it, none says it."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(lines(HISTORIES[:3]) + b"{broken\n")
    (folder / "b.jsonl").write_bytes(lines(HISTORIES[3:]))
    options: dict[str, Any] = {"policies": "adaptive", "min_calls": 1, "pictures": 2}
    url = f"{folder.as_uri()}?sig=SECRET"
    with pytest.warns(match="line 4") as caught:
        signed = run(url, **options)
    with pytest.warns(match="line 4"):
        plain = run(folder, **options)
    with pytest.warns(match="line 4"):
        drawn = run(url, **options, sample=4)
    with pytest.warns(match="line 4"):
        assert drawn.to_json() == run(folder.as_uri(), **options, sample=4).to_json()
    assert len(signed.runs) == len(plain.runs) > 3
    assert signed.runs[0].source == f"{folder.as_uri()}/a.jsonl"
    told = [signed.to_json(), signed.to_html(), repr(signed), *(str(one.message) for one in caught)]
    signed.to_parquet(tmp_path / "results.parquet")
    told.append(str(pq.read_table(tmp_path / "results.parquet").to_pylist()))
    [first, *_] = read_transcripts(f"{folder.as_uri()}/b.jsonl?sig=SECRET")
    told.append(repr(first))
    assert first.source == f"{folder.as_uri()}/b.jsonl"
    with pytest.raises(InputError) as refused:
        run(url, **options, on_error="raise")
    told.append(str(refused.value))
    other = f"{folder.as_uri()}/b.jsonl?sig=SECRET"
    for code, *arguments in (
        (2, "lint", url, "--json"),
        (2, "lint", url),
        (2, "count", url, "--json"),
        (2, "count", url),
        (2, "repair", url, "--json"),
        (0, "lint", other, "--json"),
        (0, "count", other),
        (0, "window", other, "--model", "gpt-4o"),
        (2, "window", other, "--model", "gpt-4o", "--budget", "9"),
        (2, "window", f"{folder.as_uri()}/no.jsonl?sig=SECRET", "--model", "gpt-4o", "--json"),
    ):
        ran = command(*map(str, arguments), code=int(code))
        assert ran.out + ran.err
        told += [ran.out, ran.err]
    assert not [text for text in told if "SECRET" in text]


def test_an_interrupted_run_keeps_no_query(tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(_: object) -> None:
        raise StopError

    (tmp_path / "in.jsonl").write_bytes(lines(HISTORIES))
    url = f"{(tmp_path / 'in.jsonl').as_uri()}?sig=SECRET"
    out = f"{(tmp_path / 'out.jsonl').as_uri()}?sig=SECRET"
    with pytest.raises(StopError):
        rewrite(url, out, model="gpt-4o", staging=tmp_path / "staging", progress=stop)
    left = [path for path in (tmp_path / "staging").rglob("*") if path.is_file()]
    assert any(path.name.endswith(".resume.json") for path in left)
    assert not [path for path in left if "SECRET" in path.name + path.read_text("utf-8")]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://host/a/b.jsonl?sig=x", "https://host/a/b.jsonl"),
        ("https://host?sig=x", "https://host"),
        ("s3://name:word@bucket/key", "s3://bucket/key"),
        ("s3://name:w@rd@bucket/key@2?x=/y@z", "s3://bucket/key@2"),
        ("simplecache::https://name@host/a?sig=x", "simplecache::https://host/a"),
        ("s3://AKIA:ab/cd@bucket/x", "s3://bucket/x"),
        ("s3://AKIA:ab/cd", "s3://..."),
        ("https://u:p?q@h/x", "https://h/x"),
        ("https://h:80/a@b?c", "https://h:80/a@b"),
        ("https://[::1]:80/a@b", "https://[::1]:80/a@b"),
        ("/local/what?.jsonl", "/local/what?.jsonl"),
        ("-", "-"),
    ],
)
def test_a_url_as_it_may_be_told(url: str, told: str) -> None:
    assert _remote.without_query(url) == told
