"""A conversation as one HTML file: opened from the disk, read, unfolded, printed, never fooled.

What stands in the file's bytes is looked at in `tests/replay/test_export_html.py`.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assembler.cli import main
from tests.browser.support import OURS, conversation, spoken, write

Opening = Callable[..., Any]


@pytest.fixture
def opened(open_page: Opening, tmp_path: Path) -> Opening:
    """Give a function that exports a recording and opens the file; nothing may be asked for."""
    asked: list[str] = []

    def opening(recording: Path, **options: Any) -> Any:
        file = tmp_path / f"{recording.stem}.html"
        assert main(["export", "--to", "html", str(recording), "-o", str(file)]) == 0
        page = open_page("about:blank", **options)
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        assert asked == [file.as_uri()]
        asked.clear()
        return page

    return opening


def keys(page: Any) -> list[str]:
    every: list[str] = page.eval_on_selector_all(".row", "rows => rows.map(row => row.dataset.key)")
    return every


def shown(recording: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    main(["state", str(recording), "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", sorted(path.stem for path in OURS.glob("*.jsonl")))
def test_rows_are_those_of_the_view(
    opened: Opening, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = OURS / f"{name}.jsonl"
    page = opened(recording)
    view = shown(recording, capsys)
    heads = {group["key"] for group in view["groups"] if len(group["members"]) > 1}
    assert [key for key in keys(page) if key not in heads] == [
        node["key"] for node in view["nodes"]
    ]
    assert {key for key in keys(page) if key in heads} == heads


def test_a_row_opens_to_its_arguments_and_its_result(opened: Opening) -> None:
    page = opened(OURS / "parallel-writes.jsonl")
    row = page.locator(".row", has_text="src/recipes/__init__.py").first
    assert "from recipes.book import" not in row.inner_text()
    row.locator("button.open").click()
    assert "from recipes.book import Book, Recipe" in row.inner_text()


def test_a_group_folds_and_keys_alone_do_it_too(opened: Opening) -> None:
    page = opened(OURS / "parallel-writes.jsonl")
    before = len(keys(page))
    page.locator("button.fold").first.click()
    assert len(keys(page)) < before
    page.keyboard.press("f")
    page.keyboard.press("f")
    assert len(keys(page)) == before
    page.keyboard.press("g")
    for _ in range(3):
        page.keyboard.press("j")
    page.keyboard.press("o")
    assert page.locator(".row[tabindex='0'] .body").count() == 1


def test_a_link_leads_to_a_row(opened: Opening) -> None:
    page = opened(OURS / "parallel-writes.jsonl")
    last = keys(page)[-1]
    page.evaluate("key => { location.hash = new URLSearchParams({node: key}) }", last)
    page.wait_for_function("key => document.activeElement.dataset.key === key", arg=last)


def test_print_shows_what_is_folded_and_closed(opened: Opening) -> None:
    page = opened(OURS / "parallel-writes.jsonl", color_scheme="dark")
    page.keyboard.press("f")
    folded = len(keys(page))
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print", color_scheme="dark")
    ink = page.evaluate("getComputedStyle(document.querySelector('.prose')).color")
    assert max(map(int, re.findall(r"\d+", ink))) < 60, "dark on white paper"
    assert len(keys(page)) > folded
    assert "from recipes.book import Book, Recipe" in page.locator(".rows").inner_text()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert len(keys(page)) == folded


HOSTILE = (
    "</script><script>document.title = 'owned'</script>"
    "<img src=x onerror=\"document.title = 'owned'\"><!-- ]]> \u202edlrow\u2028 &lt;b&gt;"
)


def test_what_a_conversation_says_stays_text(opened: Opening, tmp_path: Path) -> None:
    call = {"turn": 1, "step": 1, "call_id": HOSTILE[:20], "name": HOSTILE}
    lines = [
        spoken("m1", HOSTILE),
        {"op": "append", "event": {"type": "odd/<b>", "data": {HOSTILE: HOSTILE}}},
        {
            "op": "append",
            "event": {
                "type": "tool/call",
                "data": {**call, "arguments": json.dumps({"path": HOSTILE})},
            },
        },
    ]
    page = opened(write(tmp_path / "hostile.jsonl", lines, title=HOSTILE))
    page.keyboard.press("e")
    assert page.title().startswith("</script><script>")
    assert page.locator("img, iframe, object, b").count() == 0
    assert page.locator("script").count() == 2
    assert "⟨202E⟩dlrow" in page.locator(".row").first.inner_text()
    assert page.locator(".summary", has_text="\u202e").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_axe_finds_nothing_serious(
    opened: Opening, axe: str, scheme: str, size: tuple[int, int]
) -> None:
    page = opened(
        OURS / "every-kind.jsonl",
        color_scheme=scheme,
        viewport={"width": size[0], "height": size[1]},
        bypass_csp=True,
    )
    page.keyboard.press("e")
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [
        (each["id"], [node["target"] for node in each["nodes"]][:3])
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ] == []


def test_nothing_is_wider_than_a_narrow_window(opened: Opening) -> None:
    page = opened(OURS / "parallel-writes.jsonl", viewport={"width": 360, "height": 700})
    page.keyboard.press("e")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_ten_thousand_nodes_stay_usable(
    opened: Opening, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    recording = write(tmp_path / "many.jsonl", conversation(1_667))
    page = opened(recording)
    page.locator("[role=feed][aria-busy=false]").wait_for()
    assert len(keys(page)) > 10_000
    # What is out of sight costs no layout: a few rows are drawn, whatever the length.
    began = time.perf_counter()
    page.keyboard.press("G")
    page.wait_for_function("scrollY > 100_000")
    page.keyboard.press("o")
    page.evaluate("new Promise(requestAnimationFrame)")
    record_property("seconds_to_the_end", time.perf_counter() - began)
    hidden = page.eval_on_selector_all(
        ".row",
        "rows => rows.filter(row => !row.firstChild.checkVisibility"
        "({contentVisibilityAuto: true})).length",
    )
    assert hidden > 9_000
