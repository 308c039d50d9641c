"""The page's files and what it asks for, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from assembler import apply, plugins
from assembler.recordings import Recording
from assembler.server import FilesSource, Inspecting, create_app, recordings_of
from definitions import catalog
from tests.server.support import desk, inside, local, said, served

OURS = Path(__file__).parents[2] / "recordings"
ONE = "inspect/parallel-writes.jsonl"


def asking(test: Callable[[httpx.AsyncClient], Awaitable[None]]) -> Callable[[], None]:
    """Run a test with a client of an inspector over our own recordings."""

    @inside
    async def run() -> None:
        source = FilesSource([OURS], catalog())
        inspecting = Inspecting(
            recordings_of(source),
            catalog(),
            marks=plugins.marks(),
            module=plugins.page_module(),
        )
        async with (
            create_app(source, inspecting=inspecting, hosts=None) as app,
            local(app, base_url="http://localhost/", timeout=30) as client,
        ):
            await test(client)
        await source.aclose()

    run.__name__ = test.__name__
    return run


@asking
async def test_the_page_and_its_modules_are_served_and_kept_by_tag(
    client: httpx.AsyncClient,
) -> None:
    page = await client.get("")
    assert page.status_code == 200
    assert "text/html" in page.headers["content-type"]
    assert "'unsafe" not in page.headers["content-security-policy"]
    for name in ("app.js", "style.css", "vendor/preact.js", "icon.svg", "plugin.js"):
        file = await client.get(f"page/{name}")
        assert file.status_code == 200, name
        tag = {"if-none-match": file.headers["etag"]}
        assert (await client.get(f"page/{name}", headers=tag)).status_code == 304
    assert b"export function present" in (await client.get("page/plugin.js")).content


@asking
async def test_no_other_file_can_be_had(client: httpx.AsyncClient) -> None:
    for name in ("nothing.js", "../app.py", "..%2fapp.py", "vendor/LICENSE-htm", "%00"):
        assert (await client.get(f"page/{name}")).status_code == 404, name


@asking
async def test_nothing_in_the_page_is_inline_or_from_elsewhere(client: httpx.AsyncClient) -> None:
    text = (await client.get("")).text
    assert "<style" not in text
    assert "<script>" not in text
    assert " style=" not in text
    assert "//" not in text.replace("<!doctype html>", "")


@asking
async def test_moments_snapshots_and_patches_between_them(client: httpx.AsyncClient) -> None:
    told = (await client.get(f"{ONE}/moments")).json()
    assert told["views"] == ["chat", "trajectory"]
    assert told["moments"][0] == ["begin", "", "", None, []]
    assert any("permission" in marks for *_, marks in told["moments"])
    first = (await client.get(f"{ONE}/at?at=60&view=chat")).json()
    patch = (await client.get(f"{ONE}/at?at=300&from=60&view=chat")).json()
    last = (await client.get(f"{ONE}/at?at=300&view=chat")).json()
    assert apply(first, patch) == last


@asking
async def test_what_is_behind_a_node(client: httpx.AsyncClient) -> None:
    told = (await client.get(f"{ONE}/node?key=tool:c3&at=300")).json()
    assert told["items_count"] == 106
    now = (await client.get(f"{ONE}/node?key=tool:c3")).json()
    assert [item["type"] for item in now["items"]] == ["tool/call", "tool/result"]


@asking
async def test_what_is_not_there_is_refused_in_one_line(client: httpx.AsyncClient) -> None:
    for path, status in (
        ("inspect/nothing.jsonl/moments", 404),
        (f"{ONE}/nothing", 404),
        (f"{ONE}/at", 400),
        (f"{ONE}/at?at=-1", 400),
        (f"{ONE}/at?at=1e9", 400),
        (f"{ONE}/at?at=4000", 400),
        (f"{ONE}/at?at=1&from=4000", 400),
        (f"{ONE}/at?at=1&view=none", 400),
        (f"{ONE}/node?key=tool:none&at=3", 404),
        (f"{ONE}/node?key=tool:c3&at=4000", 400),
    ):
        answer = await client.get(path)
        assert answer.status_code == status, path
        assert answer.json()["error"]["message"]


@inside
async def test_without_leave_nothing_of_the_past_can_be_asked_for() -> None:
    async with desk() as made:
        await made.store.append("c", [said("m1")], 0)
        async with served(made.app) as client:
            assert (await client.get("/")).status_code == 200
            assert (await client.get("/inspect/c/moments")).status_code == 404


@inside
async def test_who_may_not_read_a_conversation_may_not_inspect_it() -> None:
    source = FilesSource([OURS], catalog())
    inspecting = Inspecting(recordings_of(source), catalog())
    app = create_app(
        source, inspecting=inspecting, hosts=None, authorize=lambda request, name: False
    )
    async with (
        app,
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://localhost/"
        ) as client,
    ):
        assert (await client.get(f"{ONE}/moments")).status_code == 404
    await source.aclose()


@inside
async def test_a_server_that_stops_waits_for_no_pass() -> None:
    begun, passing = asyncio.Event(), asyncio.Event()

    async def recording(_: str) -> Recording:
        begun.set()
        await passing.wait()  # as long as a pass lasts
        raise AssertionError

    source = FilesSource([OURS], catalog())
    async with (
        create_app(source, inspecting=Inspecting(recording, catalog()), hosts=None) as app,
        local(app, base_url="http://localhost/", timeout=30) as client,
    ):
        asked = asyncio.ensure_future(client.get(f"{ONE}/moments"))
        await begun.wait()
        app.end_streams()
        assert (await asked).status_code == 503
    await source.aclose()


def test_a_catalog_without_a_module_has_none() -> None:
    assert plugins.page_module("none") == b""
    assert dict(plugins.marks("none")) == {}
