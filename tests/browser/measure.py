"""How fast the page is, on this machine: `python -m tests.browser.measure`.

Prints one line for each goal. Not here: what must hold (`test_page`).
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from assembler import Draft
from tests.browser.conftest import ARGUMENTS, WIDE
from tests.browser.support import conversation, in_files, in_memory, write

STEP = {"turn": 1, "step": 1}

FIRST_ROWS = """async () => {
  const text = JSON.stringify(await (await fetch(
    "conversations/" + encodeURIComponent(assembler.state.name)
  )).json().then((each) => each.snapshot));
  const median = (all) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)];
  const parses = [], firsts = [];
  for (let again = 0; again < 15; again++) {
    let from = performance.now();
    JSON.parse(text);
    parses.push(performance.now() - from);
    assembler.live = null; assembler.rowsOf = null;
    assembler.setState({ connected: "opening" });
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    from = performance.now();
    assembler.loaded(assembler.state.name, JSON.parse(text));
    await new Promise((done) => {
      const look = () => document.querySelector("article") ? done() : Promise.resolve().then(look);
      look();
    });
    document.querySelector("article").getBoundingClientRect();
    firsts.push(performance.now() - from);
  }
  return [text.length, median(parses), median(firsts), assembler.live.order.length];
}"""

SEARCH = """async () => {
  const field = assembler.find.current, times = [];
  for (const word of ["part_150_4", "nothing like that", "line 3"]) {
    for (let end = 1; end <= word.length; end++) {
      const from = performance.now();
      assembler.seekHere({ target: { value: word.slice(0, end) } });
      await Promise.resolve();
      times.push(performance.now() - from);
      await new Promise(requestAnimationFrame);
    }
  }
  return times;
}"""

SCRUB = """async () => {
  const times = [], last = assembler.state.moments.length - 1;
  const reached = () => new Promise((done) => {
    const there = () => assembler.past?.revision === assembler.target;
    const look = () => there() ? done() : setTimeout(look);
    look();
  });
  for (let again = 0; again < 60; again++) {
    const next = Math.min(last, (assembler.target || 0) + 1);
    const to = again % 2 ? next : Math.floor(Math.random() * last);
    const from = performance.now();
    assembler.travel(to);
    await reached();
    times.push([again % 2, performance.now() - from]);
  }
  return times;
}"""


def main() -> None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        found = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        page = browser.new_page(viewport=WIDE)
        page.set_default_timeout(120_000)
        _first_rows(page, Path(folder))
        _search(page, Path(folder))
        _scrub(page, Path(folder))
        _memory(page)
        browser.close()


def _first_rows(page: Any, folder: Path) -> None:
    file = write(folder / "thousand.jsonl", conversation(100, calls=7, text="Please look. " * 20))
    with in_files(file, page_events=9_000) as served:
        page.goto(served.url + "#/thousand.jsonl")
        page.locator("article").first.wait_for()
        size, parse, first, nodes = page.evaluate(FIRST_ROWS)
        print(
            f"first rows of {nodes} Nodes ({size / 1e6:.1f} MB): {first:.1f} ms, their JSON parse "
            f"{parse:.1f} ms: {first / parse:.1f} times"
        )


def _search(page: Any, folder: Path) -> None:
    file = write(folder / "many.jsonl", conversation(200, calls=47))
    with in_files(file, page_events=30_000) as served:
        page.goto(served.url + "#/many.jsonl")
        page.locator("article").first.wait_for()
        page.wait_for_timeout(3_000)  # texts are made ready in idle time
        times = page.evaluate(SEARCH)
        print(
            f"search in {page.evaluate('assembler.live.order.length')} Nodes, per key: median "
            f"{statistics.median(times):.1f} ms, worst {max(times):.1f} ms"
        )
        page.goto("about:blank")


def _scrub(page: Any, folder: Path) -> None:
    file = write(folder / "scrub.jsonl", conversation(333, calls=12)[:10_000])
    with in_files(file) as served:
        page.goto(served.url + "#/scrub.jsonl")
        page.get_by_role("slider").wait_for()
        times = page.evaluate(SCRUB)
        for what, kind in (("a jump", 0), ("a step", 1)):
            each = [time for odd, time in times if odd == kind]
            print(
                f"scrubbing {page.evaluate('assembler.state.moments.length - 1')} operations, "
                f"{what}, request and drawing: median {statistics.median(each):.1f} ms, "
                f"worst {max(each):.1f} ms"
            )
        page.goto("about:blank")


def _memory(page: Any) -> None:
    with in_memory() as served:

        async def begun() -> Any:
            session = await served._stack.enter_async_context(served.hub.use("stream"))
            await session.append(Draft("turn/start", {"turn": 1}), Draft("step/start", STEP))
            return session, session.attempt(1, 1)

        _, attempt = served.do(begun())
        page.goto(served.url + "#/stream")
        page.wait_for_timeout(500)
        client = page.context.new_cdp_session(page)

        def used() -> float:
            client.send("HeapProfiler.collectGarbage")
            return float(page.evaluate("performance.memory.usedJSHeapSize")) / 1e6

        async def speak(count: int) -> None:
            for _ in range(count):
                attempt.emit("text", {"block": 0, "text": "a word or two "})

        sizes = [used()]
        for _ in range(64):
            served.do(speak(1_000))
            page.wait_for_timeout(60)
            if _ % 16 == 15:
                page.wait_for_timeout(400)
                sizes.append(used())
        length = page.evaluate(
            "[...assembler.live.nodes.values()].at(-1).data.blocks[0].text.length"
        )
        rows = page.evaluate("document.querySelectorAll('*').length")
        print(
            f"64,000 deltas ({length / 1e6:.1f} M characters shown): heap after each quarter "
            f"{json.dumps([round(size, 1) for size in sizes])} MB, {rows} elements"
        )


if __name__ == "__main__":
    main()
