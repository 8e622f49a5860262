"""Every recorded conversation is linted, repaired, converted and packed: shared data, if there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import satchel
from sweep_transcripts import Sweep, check_convert, check_repair, check_windows, sweep_transcripts

if TYPE_CHECKING:
    from collections.abc import Callable


def recorded() -> list[Path]:
    """The folders of recordings, one for each format."""
    root = os.environ.get("SATCHEL_SHARED")
    roots = [Path(root)] if root else [up / "shared" for up in Path(__file__).resolve().parents]
    folders = [root / "data" / "dev" for root in roots]
    return sorted(path for folder in folders if folder.is_dir() for path in folder.iterdir())


def test_every_recording() -> None:
    folders = [str(path) for path in recorded() if path.is_dir()]
    if not folders:
        pytest.skip("no shared data: real transcripts are not part of the repository")
    formats = sweep_transcripts(folders)
    assert sum(sweep.counts["conversations"] for sweep in formats.values()) > 800
    assert [found for sweep in formats.values() for found in sweep.failures] == []


@pytest.mark.parametrize("check", [check_repair, check_convert, check_windows])
def test_the_samples(check: Callable[[satchel.Transcript, Sweep], None]) -> None:
    folder = Path(__file__).resolve().parents[1] / "data"
    sweep = Sweep()
    transcripts = list(satchel.read_transcripts(sorted(folder.glob("*.json"))))
    for transcript in transcripts:
        check(transcript, sweep)
    assert len(transcripts) > 5
    assert sweep.failures == []
    assert max(sweep.counts.values()) >= 3 * len(transcripts)


def test_a_sweep_tells_what_it_finds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nothing(messages: list[object], *_args: object, **_options: object) -> list[object]:
        return list(messages)

    file = tmp_path / "run.json"
    file.write_text(
        '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": null, '
        '"tool_calls": [{"id": "a", "type": "function", "function": '
        '{"name": "look", "arguments": "{}"}}]}, {"role": "user", "content": "well?"}]}'
    )
    assert sweep_transcripts([str(file)])["openai"].failures == []
    monkeypatch.setattr(satchel, "repair", nothing)
    sweep = sweep_transcripts([str(file)])["openai"]
    assert sweep.counts["recorded with errors"] == 1
    assert len(sweep.failures) == 3
    assert "oc1_unanswered_call" in sweep.failures[0]
