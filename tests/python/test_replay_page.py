"""The page of a replay: it stands alone, draws its pictures, and nothing in a run can act in it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from browser import browser
from satchel.replay import ReplayReport, run

if TYPE_CHECKING:
    from pathlib import Path

OWN = "window.owned=1;document.title='owned'"
HOSTILE = (
    f"</script><script>{OWN}</script>",
    f'<img src="x" onerror="{OWN}">',
    f'<svg onload="{OWN}">&lt;b&gt; \u2028 \ud800 -->]]><!--',
    f"javascript:{OWN}",
    "{{script}} {{data}} ${OWN} `+OWN+`",
)
LISTING = "\n".join(f"src/module_{number}.py holds order-{4000 + number}" for number in range(12))


def hostile_run() -> list[dict[str, Any]]:
    """A run that takes names out of early results, on lines that try to act in a browser."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Begin. {HOSTILE[0]}"}]

    def act(number: int, arguments: dict[str, Any], output: str) -> None:
        call = {"name": "edit", "arguments": json.dumps(arguments)}
        messages.append(
            {
                "role": "assistant",
                "content": HOSTILE[number % len(HOSTILE)],
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
            }
        )
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": output})

    act(0, {"path": "."}, "\n".join(f"key_{n} {text}" for n, text in enumerate(HOSTILE)))
    for number in range(1, 16):
        act(number, {"note": f"look {number}"}, f"{LISTING}\n{number} {HOSTILE[1]}\n" * 6)
    for number in range(16, 21):
        act(number, {"use": f"key_{number - 16} {HOSTILE[0]}"}, f"done {HOSTILE[2]}")
    return messages


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> ReplayReport:
    folder = tmp_path_factory.mktemp("runs") / "<img src=x onerror=alert(1)>"
    folder.mkdir()
    path = folder / "run.jsonl"
    path.write_text(json.dumps({"messages": hostile_run()}) + "\n", encoding="utf-8")
    return run(path, budget="25%")


def test_content_is_only_data(report: ReplayReport) -> None:
    text = report.to_html()
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert block is not None
    assert not re.search(r"[<>&]", block[1])
    data = json.loads(block[1])
    losses = [loss for one in data["pictures"][0]["policies"].values() for loss in one["worst"]]
    assert any(loss["line"].startswith(f"key_0 {HOSTILE[0]}") for loss in losses)
    outside = text.replace(block[1], "")
    assert "owned" not in outside
    assert "onerror" not in outside
    assert outside.count("<script") == 2
    assert not re.search(r"(?:src|href)=\"(?!data:)", outside)


def test_the_page_in_a_browser(report: ReplayReport, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(report.to_html(), encoding="utf-8")
    with browser() as tab:
        tab.prefer("light")
        tab.open(path)
        assert tab.evaluate("document.documentElement.dataset.drawn") == "yes"
        assert tab.evaluate("document.title").startswith("satchel replay: 1 runs")
        assert tab.evaluate("typeof window.owned") == "undefined"
        assert tab.evaluate("document.querySelectorAll('script').length") == 2
        assert tab.evaluate("document.querySelectorAll('img, svg[onload], iframe').length") == 0
        # Hostile text is there to be read, as text.
        told = tab.evaluate("""
            [...document.querySelectorAll('#pictures figure')].map((figure) => {
                figure.click();
                return document.getElementById('detail').textContent;
            }).join()""")
        assert f"key_0 {HOSTILE[0]}" in told
        assert "<img src=x onerror=alert(1)>" in tab.evaluate("byId('runs').textContent")
        assert tab.evaluate("document.querySelectorAll('img, svg[onload], iframe').length") == 0
        assert tab.evaluate("typeof window.owned") == "undefined"
        policies = len(report.policies)
        assert tab.evaluate("document.querySelectorAll('#totals tbody tr').length") == policies
        assert tab.evaluate("document.querySelectorAll('#plane circle').length") == policies
        assert tab.evaluate("document.querySelectorAll('canvas').length") == policies
        # Each picture has what is kept and, unless everything is, what is not.
        colours = """
            [...document.querySelectorAll('canvas')].map((canvas) => {
                const pen = canvas.getContext('2d');
                const dots = pen.getImageData(0, 0, canvas.width, canvas.height).data;
                const found = new Set();
                for (let at = 0; at < dots.length; at += 4) {
                    found.add(dots.slice(at, at + 4).join());
                }
                return found.size;
            })"""
        assert all(found >= 2 for found in tab.evaluate(colours))
        assert tab.evaluate("document.querySelectorAll('#detail polygon').length") == 2
        # Another policy's detail, by keyboard.
        tab.evaluate(
            "document.querySelectorAll('#pictures figure')[2]"
            ".dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))"
        )
        name = tab.evaluate("document.querySelectorAll('#pictures b')[2].textContent")
        assert tab.evaluate("document.querySelector('#detail h3').textContent").startswith(name)
        paper = "getComputedStyle(document.body).backgroundColor"
        light = tab.evaluate(paper)
        tab.prefer("dark")
        assert tab.evaluate(paper) != light
        assert tab.errors == []
        assert [url for url in tab.requests if not url.startswith(("file:", "data:"))] == []
