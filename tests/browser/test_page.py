"""The inspector page in a real browser: what people see, and what they can do.

Not here: what is shown (`tests/definitions`), the server's answers (`tests/server`).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assembler import Draft
from assembler.stores import SQLiteStore
from tests.browser.support import (
    appended,
    conversation,
    in_files,
    in_memory,
    spoken,
    write,
)

Opening = Callable[..., Any]
STEP = {"turn": 1, "step": 1}


def row(page: Any, key: str) -> Any:
    return page.locator(f'article[data-key="{key}"]')


def keys(page: Any) -> list[str]:
    return [
        str(key)
        for key in page.locator("article").evaluate_all("all => all.map(e => e.dataset.key)")
    ]


def until(page: Any, holds: str) -> None:
    """Wait until an expression holds. The policy of the page lets nobody evaluate text in it, so
    that the expression is sent as code."""
    page.evaluate(
        f"""new Promise((done, fail) => {{
          const look = () => ({holds}) ? done() : requestAnimationFrame(look);
          setTimeout(() => fail(new Error("it never held")), 20000);
          look();
        }})"""
    )


def settled(page: Any) -> None:
    """Wait for two frames in which nothing is drawn any more."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def travelled(page: Any, moment: int) -> None:
    until(page, f"assembler.past && assembler.past.revision === {moment}")
    settled(page)


# -- live ---------------------------------------------------------------------------------------


def user(id: str, text: str) -> Draft:
    return Draft("user/message", {"message_id": id, "content": [{"type": "text", "text": text}]})


async def begun(served: Any, name: str) -> Any:
    """A conversation in an open step, in use until the server ends."""
    session = await served._stack.enter_async_context(served.hub.use(name))
    await session.append(
        Draft("turn/start", {"turn": 1}), user("m1", "hello"), Draft("step/start", STEP)
    )
    return session


def piece(**data: Any) -> dict[str, Any]:
    return {"block": 1, **data}


def test_a_call_is_prepared_grows_runs_and_ends(open_page: Opening) -> None:
    with in_memory() as served:
        session = served.do(begun(served, "live"))
        page = open_page(served.url + "#/live")
        row(page, "user:m1").wait_for()

        async def speak(type_: str, **data: Any) -> None:
            attempt.emit(type_, piece(**data))

        async def attempted() -> Any:
            return session.attempt(1, 1)

        attempt = served.do(attempted())
        served.do(speak("tool-call", call_id="c1", name="write_file"))
        call = row(page, "tool:c1")
        call.locator(".stage", has_text="preparing").wait_for()
        start = '{"path": "src/a.py", "content": "first line\\nsecond line'
        served.do(speak("tool-call", call_id="c1", arguments=start))
        call.locator(".summary", has_text="src/a.py").wait_for()
        call.locator(".peek", has_text="second line").wait_for()
        assert call.locator("button.open").count() == 0  # there is nothing to open yet
        served.do(speak("tool-call", call_id="c1", arguments='\\nthird"}'))
        call.locator(".peek", has_text="third").wait_for()

        async def dispatched() -> None:
            fields = {**STEP, "call_id": "c1", "name": "write_file"}
            arguments = '{"path": "src/a.py", "content": "x"}'
            await session.append(Draft("tool/call", {**fields, "arguments": arguments}))

        served.do(dispatched())
        call.locator(".stage", has_text="running").wait_for()

        async def finished() -> None:
            content = [{"type": "text", "text": "wrote it"}]
            await session.append(
                Draft("tool/result", {**STEP, "call_id": "c1", "content": content}),
                Draft("step/end", STEP),
                Draft("turn/end", {"turn": 1, "reason": "completed"}),
            )

        served.do(finished())
        call.locator(".stage", has_text="succeeded").wait_for()
        row(page, "turn-tail:1").wait_for()
        said = page.locator('[role="status"]')
        until(page, "document.querySelector('[role=status]').textContent !== ''")
        assert "block" not in said.text_content()
        before = page.locator("article").all_text_contents()
        page.reload()
        row(page, "turn-tail:1").wait_for()
        assert page.locator("article").all_text_contents() == before


def test_a_retry_withdraws_what_was_prepared(open_page: Opening) -> None:
    with in_memory() as served:
        session = served.do(begun(served, "live"))
        page = open_page(served.url + "#/live")

        async def speak() -> str:
            attempt = session.attempt(1, 1)
            attempt.emit("tool-call", piece(call_id="c1", name="read_file"))
            return str(attempt.name)

        name = served.do(speak())
        row(page, "tool:c1").wait_for()

        async def again() -> None:
            fields = {"retry_id": "r1", "attempt": name, "number": 1, "reason": "busy"}
            await session.append(Draft("llm/retry", {**STEP, **fields}))

        served.do(again())
        row(page, "tool:c1").wait_for(state="detached")
        row(page, "retry:r1").wait_for() if page.locator('[data-key^="retry:"]').count() else None
        page.locator('[role="status"]', has_text="withdrawn").wait_for(state="attached")


def test_two_tabs_agree(open_page: Opening) -> None:
    with in_memory() as served:
        session = served.do(begun(served, "live"))
        one = open_page(served.url + "#/live")
        two = open_page(served.url + "#/live", one.context)
        for page in (one, two):
            row(page, "user:m1").wait_for()

        async def speak(word: str) -> None:
            spoken_by[0].emit("text", {"block": 0, "text": word})

        async def attempted() -> None:
            spoken_by.append(session.attempt(1, 1))

        spoken_by: list[Any] = []
        served.do(attempted())
        text = ""
        for word in ("One ", "and ", "two."):
            text += word
            served.do(speak(word))
            for page in (one, two):
                row(page, "assistant:1.1").get_by_text(text.strip()).wait_for()
        assert keys(one) == keys(two)


def test_what_another_process_writes_is_shown(open_page: Opening, tmp_path: Path) -> None:
    file = tmp_path / "chat.db"
    with SQLiteStore(file).sync as store:
        store.append("demo", [Draft("turn/start", {"turn": 1}), user("m1", "first")], 0)
        serving = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "assembler", "serve", str(file), "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert serving.stdout is not None
            url = serving.stdout.readline().split()[-1]
            page = open_page(url + "#/demo")
            row(page, "user:m1").wait_for()
            store.append("demo", [user("m2", "from elsewhere")], 2)
            row(page, "user:m2").get_by_text("from elsewhere").wait_for()
        finally:
            serving.terminate()
            serving.wait(20)
            serving.stdout.close()


# -- history ------------------------------------------------------------------------------------


def test_scrolling_up_pages_and_keeps_the_place(open_page: Opening, tmp_path: Path) -> None:
    file = write(tmp_path / "long.jsonl", conversation(60))
    with in_files(file, page_events=100) as served:
        page = open_page(served.url + "#/long.jsonl")
        row(page, "turn-tail:60").wait_for()
        loaded = page.evaluate("assembler.live.order.length")
        box = page.locator(".scroller")
        place = """() => {
          const top = document.querySelector('.scroller').getBoundingClientRect().top;
          const first = [...document.querySelectorAll('article')].find(
            (each) => each.getBoundingClientRect().bottom > top + 40);
          return [first.dataset.key, Math.round(first.getBoundingClientRect().top - top)];
        }"""
        asked: list[Any] = []
        page.route("**/older", lambda route: asked.append(route))  # noqa: PLW0108
        with page.expect_request("**/older"):
            box.evaluate("box => box.scrollTo(0, 300)")
        settled(page)
        before = page.evaluate(place)
        assert page.evaluate("assembler.live.order.length") == loaded
        asked[0].continue_()
        page.unroute("**/older")
        until(page, f"assembler.live.order.length > {loaded}")
        settled(page)
        settled(page)
        after = page.evaluate(place)
        assert after[0] == before[0]
        assert abs(after[1] - before[1]) <= 2
        # And so on up to the first one.
        for _ in range(40):
            loaded = page.evaluate("assembler.live.order.length")
            if not page.evaluate("assembler.live.window.has_more"):
                break
            box.evaluate("box => box.scrollTo(0, 0)")
            until(page, f"assembler.live.order.length > {loaded} && !assembler.paging")
        page.keyboard.press("g")
        row(page, "user:m1").wait_for()
        assert page.evaluate("assembler.live.order.length") == 60 * 6


def test_what_is_drawn_before_a_scroll_is_heard_of_does_not_undo_it(
    open_page: Opening, tmp_path: Path
) -> None:
    file = write(tmp_path / "long.jsonl", conversation(60))
    with in_files(file, page_events=1_000) as served:
        page = open_page(served.url + "#/long.jsonl")
        row(page, "turn-tail:60").wait_for()
        until(page, "assembler.state.moments")
        settled(page)
        page.evaluate(
            "document.querySelector('.scroller').scrollTo(0, 300);"
            "assembler.list.current.forceUpdate()"  # in the same frame
        )
        settled(page)
        assert page.evaluate("document.querySelector('.scroller').scrollTop") < 400


def test_groups_fold_and_stay_folded(open_page: Opening, tmp_path: Path) -> None:
    file = write(tmp_path / "groups.jsonl", conversation(3))
    with in_files(file) as served:
        page = open_page(served.url + "#/groups.jsonl")
        row(page, "tool:c2.1").wait_for()
        head = page.locator("article.head button.fold").nth(1)
        head.click()
        row(page, "tool:c2.1").wait_for(state="detached")
        assert head.get_attribute("aria-expanded") == "false"
        assert row(page, "tool:c1.1").count() == 1
        page.reload()
        row(page, "tool:c3.1").wait_for()
        assert row(page, "tool:c2.1").count() == 0
        page.locator("article.head button.fold").nth(1).click()
        row(page, "tool:c2.1").wait_for()


# -- time travel --------------------------------------------------------------------------------


def test_the_recorded_session_prepares_in_the_browser_and_reloads_to_the_same(
    open_page: Opening,
) -> None:
    with in_files() as served:
        page = open_page(served.url + "#/parallel-writes.jsonl/chat?at=300")
        travelled(page, 300)
        for key, path in (("tool:c3", "src/recipes/units.py"), ("tool:c4", "tests/test_units.py")):
            row(page, key).locator(".stage", has_text="preparing").wait_for()
            assert path in row(page, key).locator(".summary").text_content()
        page.keyboard.press("]")
        travelled(page, 301)
        page.keyboard.press("[")
        travelled(page, 300)
        page.locator(".now-live").click()
        row(page, "tool:c3").locator(".stage", has_text="succeeded").wait_for()
        before = page.locator("article").all_text_contents()
        page.reload()
        row(page, "turn-tail:1").wait_for()
        assert page.locator("article").all_text_contents() == before
        last = page.evaluate("assembler.state.moments.length - 1")
        page.evaluate("assembler.travel(1e9)")
        travelled(page, last)
        assert page.locator("article").all_text_contents() == before


def test_playing_goes_from_the_beginning_to_the_end(open_page: Opening) -> None:
    with in_files() as served:
        page = open_page(served.url + "#/retry-in-mid-call.jsonl")
        until(page, "assembler.state.moments")
        for _ in range(5):
            page.keyboard.press("s")
        assert page.locator(".speed").text_content() == "32\u00d7"
        page.evaluate("window.seen = new Set()")
        page.evaluate(
            "const draw = assembler.componentDidUpdate;"
            "assembler.componentDidUpdate = function (...all) {"
            "  for (const each of document.querySelectorAll('.stage')) seen.add(each.textContent);"
            "  return draw.apply(this, all); }; null"
        )
        page.keyboard.press("p")
        until(page, "!assembler.state.playing && assembler.past?.revision === 18")
        assert {"preparing", "running"} & set(page.evaluate("[...seen]"))


def test_the_next_mark_is_a_key_away_and_says_what_it_is(open_page: Opening) -> None:
    with in_files() as served:
        page = open_page(served.url + "#/retry-in-mid-call.jsonl/chat?at=0")
        travelled(page, 0)
        page.keyboard.press("}")
        travelled(page, 9)
        assert page.locator(".flag").all_text_contents() == ["retry", "withdrawn"]
        page.keyboard.press("}")
        travelled(page, 10)
        assert "anomaly" in page.locator(".flag").all_text_contents()
        page.keyboard.press("Escape")
        page.locator(".now-live.on").wait_for()


def test_the_timeline_can_be_dragged_and_moved_by_keys(open_page: Opening) -> None:
    with in_files() as served:
        page = open_page(served.url + "#/parallel-writes.jsonl")
        strip = page.get_by_role("slider")
        strip.wait_for()
        box = strip.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 20)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 20, steps=8)
        page.mouse.up()
        until(page, "assembler.past && assembler.past.revision === assembler.target")
        moment = page.evaluate("assembler.target")
        assert 95 <= moment <= 105
        strip.press("ArrowLeft")
        travelled(page, moment - 1)
        strip.press("Home")
        travelled(page, 0)
        assert strip.get_attribute("aria-valuetext").startswith("moment 0 of 399, the beginning")


def test_the_address_is_changed_when_travelling_rests(open_page: Opening) -> None:
    with in_files() as served:
        page = open_page(served.url + "#/parallel-writes.jsonl/chat?at=100")
        travelled(page, 100)
        until(page, "location.hash.endsWith('at=100')")
        page.evaluate(
            "window.written = 0; const replace = history.replaceState;"
            "history.replaceState = function (...all) {"
            "  written++; return replace.apply(this, all); }; null"
        )
        page.evaluate("for (let at = 101; at <= 140; at++) assembler.travel(at)")
        travelled(page, 140)
        until(page, "location.hash.endsWith('at=140')")
        assert page.evaluate("written") == 1


def test_a_link_leads_to_a_node_at_a_moment(open_page: Opening) -> None:
    with in_files() as served:
        page = open_page(served.url + "#/parallel-writes.jsonl/chat?node=tool%3Ac3&at=300")
        travelled(page, 300)
        detail = page.locator("aside.detail")
        detail.locator(".stage", has_text="preparing").wait_for()
        page.locator("aside.detail:not(.stale)").wait_for()
        detail.get_by_role("tab", name="changes").click()
        assert detail.locator(".changes li").count() == 3
        detail.get_by_role("tab", name="events").click()
        assert detail.locator(".events li").count() == 106
        assert page.evaluate("location.hash").endswith("?node=tool%3Ac3&at=300")
        page.reload()
        detail.locator(".stage", has_text="preparing").wait_for()


def test_time_is_counted_from_when_it_is_known(open_page: Opening, tmp_path: Path) -> None:
    began = 1_700_000_000_000
    events = [
        {"seq": seq, "type": "note", "data": {}, **({"time": time} if time else {})}
        for seq, time in enumerate((None, began, began + 61_000), 1)
    ]
    lines = [{"op": "append", "event": event} for event in events]
    file = write(tmp_path / "late.jsonl", lines)
    with in_files(file) as served:
        page = open_page(served.url + "#/late.jsonl/chat")
        page.locator(".timeline .time", has_text="1 min 1 s").wait_for()


def test_a_link_to_what_is_not_loaded_pages_for_it(open_page: Opening, tmp_path: Path) -> None:
    file = write(tmp_path / "long.jsonl", conversation(60))
    with in_files(file, page_events=100) as served:
        page = open_page(served.url + "#/long.jsonl/chat?node=tool%3Ac20.1")
        row(page, "tool:c20.1").wait_for()
        page.locator("aside.detail").get_by_text("src/part_20_1.py").first.wait_for()
        page = open_page(served.url + "#/long.jsonl/chat?node=tool%3Ac9.1&at=600")
        travelled(page, 600)
        row(page, "tool:c9.1").wait_for()


def test_back_and_forward_go_between_conversations_and_views(open_page: Opening) -> None:
    with in_files() as served:
        page = open_page(served.url + "#/every-kind.jsonl")
        row(page, "turn-tail:2").wait_for()
        page.locator(".conversation", has_text="Three files").click()
        row(page, "tool:c3").wait_for()
        until(page, "assembler.state.moments")
        page.keyboard.press("[")
        travelled(page, 398)
        page.keyboard.press("Escape")
        page.keyboard.press("v")
        row(page, "step:1.1").wait_for()
        page.go_back()
        row(page, "tool:c3").wait_for()
        page.go_back()  # no step for the moment in between
        row(page, "turn-tail:2").wait_for()
        page.go_forward()
        row(page, "tool:c3").wait_for()


def test_what_failed_is_a_key_away(open_page: Opening) -> None:
    with in_files() as served:
        page = open_page(served.url + "#/every-kind.jsonl")
        page.locator(".failures").wait_for()
        count = int(page.locator(".failures").text_content().split()[0])
        assert count >= 2
        seen = []
        for _ in range(count):
            page.keyboard.press("x")
            settled(page)
            seen.append(page.evaluate("assembler.state.selected"))
        assert len(set(seen)) == count
        assert any(key.startswith("turn-error:") for key in seen)
        page.locator(".failures").click()
        assert page.evaluate("assembler.state.selected") == seen[0]


def test_a_row_leads_to_the_conversation_that_is_called_as_it(
    open_page: Opening, tmp_path: Path
) -> None:
    call = {**STEP, "call_id": "c1", "name": "Task", "arguments": '{"description": "look"}'}
    lines = [appended("turn/start", turn=1), appended("step/start", **STEP)]
    write(tmp_path / "main.jsonl", [*lines, appended("tool/call", **call)])
    write(tmp_path / "other.jsonl", [spoken("m1", "inside")], title="c1")
    with in_files(tmp_path) as served:
        page = open_page(served.url + "#/main.jsonl/chat?node=tool%3Ac1")
        page.get_by_role("button", name="Open its own conversation").click()
        row(page, "user:m1").get_by_text("inside").wait_for()
        page.go_back()
        row(page, "tool:c1").wait_for()


def test_output_has_the_colours_of_a_terminal_and_no_codes(
    open_page: Opening, tmp_path: Path
) -> None:
    content = [{"type": "text", "text": "\x1b[1;31mbad\x1b[0m \x1b[38;5;31mplain\x1b[39m <b>"}]
    call = {**STEP, "call_id": "c1", "name": "bash", "arguments": '{"command": "make"}'}
    lines = [appended("turn/start", turn=1), appended("step/start", **STEP)]
    lines.append(appended("tool/call", **call))
    lines.append(appended("tool/result", **STEP, call_id="c1", content=content))
    file = write(tmp_path / "colours.jsonl", lines)
    with in_files(file) as served:
        page = open_page(served.url + "#/colours.jsonl")
        row(page, "tool:c1").locator("button.open").click()
        output = row(page, "tool:c1").locator(".output pre")
        assert output.text_content().strip() == "bad plain <b>"
        assert output.locator(".bold.c1").text_content() == "bad"


def test_all_rows_are_printed(open_page: Opening, tmp_path: Path) -> None:
    file = write(tmp_path / "long.jsonl", conversation(60))
    with in_files(file, page_events=1_000) as served:
        page = open_page(served.url + "#/long.jsonl")
        row(page, "turn-tail:60").wait_for()
        assert row(page, "user:m1").count() == 0
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        row(page, "user:m1").wait_for()
        assert row(page, "turn-tail:60").count() == 1
        assert page.evaluate("document.documentElement.scrollHeight") > 5_000
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.emulate_media(media="screen")
        row(page, "user:m1").wait_for(state="detached")


def test_a_conversation_beyond_the_list_has_its_title(open_page: Opening, tmp_path: Path) -> None:
    for number in range(70):
        write(tmp_path / f"c{number:02}.jsonl", [spoken("m1", "hello")], title=f"Number {number}")
    with in_files(tmp_path) as served:
        page = open_page(served.url + "#/c00.jsonl")
        page.locator("h1", has_text="Number 0").wait_for()


# -- people -------------------------------------------------------------------------------------


def test_all_can_be_done_by_keyboard(open_page: Opening) -> None:
    with in_files() as served:
        page = open_page(served.url)
        press = page.keyboard.press
        page.locator(".conversation").first.wait_for()
        press("c")
        page.keyboard.type("parallel")
        until(page, "document.querySelectorAll('.conversation').length === 1")
        press("Enter")
        row(page, "turn-tail:1").wait_for()
        page.keyboard.press("Escape")
        press("g")
        until(page, "document.activeElement.dataset.key === 'user:m1'")
        press("j")
        press("j")
        until(page, "document.activeElement.matches('article.head')")
        press("Enter")
        row(page, "tool:c1").wait_for(state="detached")
        press("o")
        row(page, "tool:c1").wait_for()
        press("j")
        press("o")
        row(page, "tool:c1").locator(".body").wait_for()
        press("Enter")
        page.locator("aside.detail").wait_for()
        press("Escape")
        page.locator("aside.detail").wait_for(state="detached")
        until(page, "document.activeElement.dataset.key === 'tool:c1'")
        press("/")
        page.keyboard.type("units.md")
        page.locator(".hits", has_text="/").wait_for()
        press("Enter")
        press("Escape")
        press("v")
        page.locator('.views [aria-pressed="true"]', has_text="trajectory").wait_for()
        press("?")
        page.get_by_role("dialog").wait_for()
        press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
        press("t")
        assert page.evaluate("document.documentElement.dataset.theme") == "light"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["wide", "narrow"])
def test_axe_finds_nothing_serious(
    open_page: Opening, axe: str, scheme: str, size: tuple[int, int]
) -> None:
    viewport = {"width": size[0], "height": size[1]}
    with in_files() as served:
        page = open_page(
            served.url + "#/parallel-writes.jsonl/chat?node=tool%3Ac3&at=330",
            viewport=viewport,
            color_scheme=scheme,
            reduced_motion="reduce",
        )
        travelled(page, 330)
        for address in (None, "#/every-kind.jsonl", "#/parallel-writes.jsonl/trajectory"):
            if address:
                page.evaluate(f"location.hash = '{address}'")
                page.locator("article").first.wait_for()
                until(page, "assembler.state.moments")
            settled(page)
            page.evaluate(axe)
            assert serious(page) == [], address
        page.keyboard.press("?")
        page.get_by_role("dialog").wait_for()
        assert serious(page) == []
        page.keyboard.press("Escape")
        page.keyboard.press("k")
        page.keyboard.press("Enter")
        for tab in ("content", "changes", "events", "state", "json"):
            page.get_by_role("tab", name=tab).click()
            page.locator(f'[role="tabpanel"][aria-labelledby="tab-{tab}"]').wait_for()
            assert page.locator("#panel > *").count() > 0, tab
            assert serious(page) == [], tab


def serious(page: Any) -> list[Any]:
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        (each["id"], [node["html"][:200] for node in each["nodes"]][:3])
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def test_narrow_screens_show_one_thing_at_a_time(open_page: Opening) -> None:
    with in_files() as served:
        page = open_page(served.url, viewport={"width": 390, "height": 844})
        page.locator(".conversation", has_text="Three files").click()
        row(page, "turn-tail:1").wait_for()
        until(page, "getComputedStyle(document.querySelector('.sidebar')).visibility === 'hidden'")
        row(page, "tool:c3").dblclick()
        page.locator("aside.detail").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


# -- hostile ------------------------------------------------------------------------------------

BAD = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked=1'>",
    "\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link",
    "\u202etxt.exe\u202c \u2066inside",
    "data:text/html,<script>window.hacked=1</script> javascript:window.hacked=1",
    "</textarea></style></template><svg onload=window.hacked=1>",
    "\x00\x07\x7f\x9b",
)


def hostile() -> list[Any]:
    lines: list[Any] = [appended("turn/start", turn=1), appended("step/start", **STEP)]
    lines += [spoken(f"m{nth}", text) for nth, text in enumerate(BAD)]
    for nth, text in enumerate(BAD):
        call = {"call_id": f"c{nth}", "name": f"tool {text}", "arguments": '{"path": "<b>x</b>"}'}
        lines.append(appended("tool/call", **STEP, **call))
        content = [{"type": "text", "text": text}]
        lines.append(appended("tool/result", **STEP, call_id=f"c{nth}", content=content))
    lines.append(spoken("huge", "x" * 5_000_000))
    lines.append(appended("<i>odd</i>", **{"<b>": "<u>text</u>"}))
    return lines


def test_hostile_content_stays_text(open_page: Opening, tmp_path: Path) -> None:
    file = write(tmp_path / "hostile.jsonl", hostile(), title="<script>window.hacked=1</script>")
    with in_files(file) as served:
        page = open_page(served.url + "#/hostile.jsonl")
        row(page, "user:huge").wait_for()
        assert (
            row(page, "user:huge").locator(".more").text_content().strip()
            == "5.0 M characters more"
        )
        page.keyboard.press("g")
        row(page, "user:m0").wait_for()
        assert BAD[0] in row(page, "user:m0").text_content()
        said = row(page, "user:m2").text_content()
        assert "\u202e" not in said
        assert "202E" in said
        assert "\x1b" not in row(page, "user:m1").text_content()
        tools = page.evaluate("assembler.live.order.filter((key) => key.startsWith('tool:'))")
        for key in tools[:2]:
            page.evaluate("key => assembler.openDetail(key)", key)
            for tab in ("content", "events", "json"):
                page.get_by_role("tab", name=tab).click()
        assert page.evaluate("window.hacked") is None
        assert (
            page.evaluate("document.querySelectorAll('.main img, .main script, .main a').length")
            == 0
        )
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        page.evaluate("key => assembler.list.current.show(key)", "user:huge")
        began = page.evaluate("performance.now()")
        row(page, "user:huge").locator(".more").click()
        until(page, "document.querySelectorAll('.chunk').length > 500")
        assert page.evaluate("performance.now()") - began < 8_000
        page.keyboard.press("g")
        row(page, "user:m0").wait_for()


def test_the_policy_holds(open_page: Opening) -> None:
    with in_files() as served:
        page = open_page(served.url + "#/every-kind.jsonl")
        page.locator("article").first.wait_for()
        page.evaluate(
            "window.refused = [];"
            "addEventListener('securitypolicyviolation', (e) => refused.push(e.violatedDirective))"
        )
        loaded = page.evaluate(
            "performance.getEntriesByType('resource').map((each) => new URL(each.name).origin)"
        )
        assert set(loaded) == {served.url.rstrip("/")}
        for key in "jjoGkvvft":
            page.keyboard.press(key)
        settled(page)
        assert page.evaluate("refused") == []


def test_ten_thousand_calls_are_searched_and_scrolled_at_once(
    open_page: Opening, tmp_path: Path
) -> None:
    file = write(tmp_path / "many.jsonl", conversation(200, calls=50))
    with in_files(file, page_events=30_000) as served:
        page = open_page(served.url + "#/many.jsonl")
        row(page, "turn-tail:200").wait_for(timeout=60_000)
        assert page.evaluate("assembler.live.order.length") == 200 * 53
        assert page.locator("article").count() < 120
        page.keyboard.press("/")
        for letter in "part_150_4":
            page.keyboard.type(letter)
        row(page, "tool:c150.49").wait_for()  # the newest place comes first
        assert page.evaluate("assembler.soughtMs") < 100  # the goal is 16: see the benchmarks
        page.keyboard.press("Escape")
        page.keyboard.press("g")
        row(page, "user:m1").wait_for()
        page.keyboard.press("f")
        row(page, "tool:c1.0").wait_for(state="detached")
        assert page.locator("article").count() < 120
        until(page, "assembler.state.moments")  # a server that ends meanwhile would refuse them


def test_a_conversation_that_was_removed_says_so_and_stays_readable(
    open_page: Opening, tmp_path: Path
) -> None:
    file = write(tmp_path / "gone.jsonl", [spoken("m1", "hello")])
    write(tmp_path / "whole.jsonl", [spoken("m1", "hello")])
    with in_files(tmp_path) as served:
        page = open_page(served.url + "#/gone.jsonl")
        row(page, "user:m1").wait_for()
        until(page, "assembler.state.moments")
        file.unlink()
        page.evaluate("assembler.refresh()")
        page.locator(".badge", has_text="removed").wait_for()
        assert row(page, "user:m1").count() == 1


def test_what_cannot_be_opened_says_why(open_page: Opening, tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text('{"recording": 1}\n{"op": "nothing"}\n', "utf-8")
    write(tmp_path / "whole.jsonl", [spoken("m1", "hello")])
    with in_files(tmp_path) as served:
        page = open_page(served.url)
        fault = page.locator(".conversation .fault")
        fault.wait_for()
        assert "op: expected one of" in fault.text_content()
        row(page, "user:m1").wait_for()
