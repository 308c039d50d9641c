"""Recordings and transcripts as conversations to read: told by content, and read when looked at."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from assembler.server import FilesSource, create_app
from definitions import catalog
from definitions.catalog import TITLES
from tests.server.support import Reader, inside, local, served

ROOT = Path(__file__).parents[2]
HEAD = '{"recording":1,"title":"%s","about":""}\n'
SAID = (
    '{"op":"append","event":{"type":"user/message","time":%d,'
    '"data":{"message_id":"m%d","content":[]}}}\n'
)
STREAM = (
    '{"type":"message_start","message":{"id":"m","model":"x","role":"assistant","content":[]}}\n'
    '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n'
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}\n'
    '{"type":"content_block_stop","index":0}\n'
    '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}\n'
    '{"type":"message_stop"}\n'
)


def recording(title: str, count: int = 3) -> str:
    return HEAD % title + "".join(SAID % (1_000 * n, n) for n in range(1, count + 1))


@asynccontextmanager
async def reading(*paths: Path, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    source = FilesSource(paths, catalog(), **options)
    try:
        async with create_app(source) as app, local(app) as client:
            yield client
    finally:
        await source.aclose()


def path(name: str) -> str:
    return "/conversations/" + quote(name, safe="")


async def listed(client: httpx.AsyncClient, **asked: Any) -> dict[str, dict[str, Any]]:
    answer = (await client.get("/conversations", params=asked)).json()
    return {each["conversation"]: each for each in answer["conversations"]}


def test_a_folder_is_looked_through_and_every_file_told_by_its_content(tmp_path: Path) -> None:
    deep = tmp_path / "deep" / "deeper"
    deep.mkdir(parents=True)
    (tmp_path / "one.jsonl").write_text(recording("First"))
    (deep / "two.jsonl").write_text(recording("Second", 5))
    (deep / "stream.json").write_text(STREAM)
    (tmp_path / "broken.jsonl").write_text(HEAD % "Broken" + '{"op":"nonsense"}\n')
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "notes.md").write_text("no conversation")
    (tmp_path / ".hidden.jsonl").write_text(recording("Hidden"))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "one.jsonl").write_text(recording("Hidden"))

    @inside
    async def test() -> None:
        async with reading(tmp_path) as client:
            found = await listed(client)
            assert set(found) == {
                "one.jsonl",
                "deep/deeper/two.jsonl",
                "deep/deeper/stream.json",
                "broken.jsonl",
                "empty.jsonl",
            }
            one, two = found["one.jsonl"], found["deep/deeper/two.jsonl"]
            assert (one["title"], one["events"], one["fault"]) == ("First", 3, None)
            assert (two["events"], two["first_time"], two["last_time"]) == (5, 1_000, 5_000)
            for name in ("broken.jsonl", "empty.jsonl"):
                fault = found[name]["fault"]
                assert "\n" not in fault
                assert fault.startswith(f"{name}:")
                assert str(tmp_path) not in fault
                refused = await client.get(path(name))
                assert refused.status_code == 400
                assert str(tmp_path) not in refused.text
            kinds = [
                node["kind"]
                for node in (await client.get(path("deep/deeper/stream.json"))).json()["snapshot"][
                    "nodes"
                ]
            ]
            assert "assistant" in kinds

    test()


def test_several_recordings_of_one_file_are_several_conversations(tmp_path: Path) -> None:
    (tmp_path / "many.jsonl").write_text(recording("First") + recording("Second", 1))

    @inside
    async def test() -> None:
        async with reading(tmp_path / "many.jsonl") as client:
            found = await listed(client)
            assert {name: each["title"] for name, each in found.items()} == {
                "many.jsonl": "First",
                "many.jsonl#2": "Second",
            }
            second = (await client.get(path("many.jsonl#2"))).json()["snapshot"]
            assert len(second["nodes"]) == 1
            assert (await client.get(path("many.jsonl#3"))).status_code == 404

    test()


def test_a_long_one_is_read_page_by_page(tmp_path: Path) -> None:
    (tmp_path / "long.jsonl").write_text(recording("Long", 25))

    @inside
    async def test() -> None:
        async with reading(tmp_path, page_events=10) as client:
            shown = (await client.get(path("long.jsonl"))).json()
            assert (len(shown["snapshot"]["nodes"]), shown["has_more"]) == (10, True)
            older = path("long.jsonl") + "/older"
            assert (await client.post(older)).json() == {"has_more": True}
            assert (await client.post(older)).json() == {"has_more": False}
            assert (await client.post(older)).json() == {"has_more": False}
            shown = (await client.get(path("long.jsonl"))).json()
            assert (len(shown["snapshot"]["nodes"]), shown["has_more"]) == (25, False)

    test()


def test_hundreds_of_files_are_listed_part_by_part_the_newest_first(tmp_path: Path) -> None:
    for number in range(300):
        file = tmp_path / f"{number:03}.jsonl"
        file.write_text(recording(f"Title {number}"))
        os.utime(file, ns=(0, (number // 7) * 1_000_000_000))

    @inside
    async def test() -> None:
        async with reading(tmp_path) as client:
            found: list[str] = []
            before: str | None = None
            while True:
                asked = {"limit": 40} if before is None else {"limit": 40, "before": before}
                part = (await client.get("/conversations", params=asked)).json()
                found += [each["conversation"] for each in part["conversations"]]
                before = part["next"]
                if before is None:
                    break
            expected = sorted(range(300), key=lambda n: (-(n // 7), n))
            assert found == [f"{number:03}.jsonl" for number in expected]
            assert set(await listed(client, search="title 299")) == {"299.jsonl"}
            assert set(await listed(client, search="12", limit=200)) == {
                f"{n:03}.jsonl" for n in range(300) if "12" in f"{n:03}"
            }

    test()


def test_what_is_too_long_to_be_read_for_a_list_is_listed_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "big.jsonl").write_text(recording("Big", 100))

    @inside
    async def test() -> None:
        async with reading(tmp_path, reading_bytes_max=100) as client:
            assert (await listed(client))["big.jsonl"]["title"] is None
            assert (await client.get(path("big.jsonl"))).status_code == 200

    test()


def test_a_search_reads_so_much_at_once_and_goes_on_where_it_was(tmp_path: Path) -> None:
    for number in range(40):
        file = tmp_path / f"{number:03}.jsonl"
        file.write_text(recording(f"Title {number}"))
        os.utime(file, ns=(0, (number // 7) * 1_000_000_000))
    size = file.stat().st_size

    @inside
    async def test() -> None:
        async with reading(tmp_path, reading_bytes_max=5 * size) as client:
            found: list[list[str]] = []
            before: str | None = None
            while not found or before is not None:
                asked = {"search": "title 3", **({} if before is None else {"before": before})}
                part = (await client.get("/conversations", params=asked)).json()
                found.append([each["conversation"] for each in part["conversations"]])
                before = part["next"]
            assert len(found) >= 40 / 6
            flat = [each for part in found for each in part]
            assert len(flat) == len(set(flat))
            assert set(flat) == {f"{n:03}.jsonl" for n in range(40) if str(n).startswith("3")}
            assert set(await listed(client, search="title 3")) == set(flat)  # all are known now

    test()


def test_a_file_that_is_longer_than_a_search_reads_at_once_is_searched(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_text(recording(f"Title {number}"))

    @inside
    async def test() -> None:
        async with reading(tmp_path, reading_bytes_max=1) as client:
            parts, before = [], ""
            while before is not None:
                asked = {"search": "title", "before": before}
                part = (await client.get("/conversations", params=asked)).json()
                parts.append(len(part["conversations"]))
                before = part["next"]
            assert parts == [1, 1, 1]

    test()


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    file.write_text(recording("Before"))

    @inside
    async def test() -> None:
        async with reading(tmp_path) as client:
            assert (await listed(client))["one.jsonl"]["title"] == "Before"
            file.write_text(recording("Afterwards", 9))
            assert (await listed(client))["one.jsonl"]["events"] == 9
            file.unlink()
            assert await listed(client) == {}

    test()


def test_a_file_that_grows_is_followed_and_one_that_is_another_is_opened_anew(
    tmp_path: Path,
) -> None:
    file = tmp_path / "one.jsonl"
    file.write_text(recording("One", 2))

    @inside
    async def test() -> None:
        source = FilesSource([tmp_path], catalog(), poll_ms=1)
        async with create_app(source) as app, served(app) as client:
            reader = Reader(client, path("one.jsonl") + "/stream")
            async with reader.connected() as told:
                await reader.read(told)
                file.write_text(recording("One", 2) + '{"op":"app')  # it is being written
                file.write_text(recording("One", 4))
                while len(reader.shown["nodes"]) < 4:
                    await reader.read(told)
                assert reader.snapshots == 1
                file.write_text(recording("One", 4).replace("m3", "other"))
                async for _ in told:
                    pass
            assert reader.reason == "closed"
            async with reader.connected() as told:
                await reader.read(told)
            assert [node["id"] for node in reader.shown["nodes"]] == ["m1", "m2", "other", "m4"]
        await source.aclose()

    test()


@pytest.mark.parametrize("name", ["../secret.jsonl", "/etc/passwd", "a/../../secret.jsonl"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.jsonl").write_text(recording("Secret"))
    (tmp_path / "open").mkdir()

    @inside
    async def test() -> None:
        async with reading(tmp_path / "open") as client:
            answer = await client.get(path(name))
            assert answer.status_code in (404, 405)
            assert "Secret" not in answer.text

    test()


def test_our_own_recordings_all_open_and_end_as_they_were_played() -> None:
    @inside
    async def test() -> None:
        async with reading(ROOT / "recordings") as client:
            found = await listed(client)
            assert len(found) >= 9
            for name, each in found.items():
                assert each["fault"] is None
                for view in ("chat", "trajectory"):
                    answer = await client.get(path(name), params={"view": view})
                    assert answer.json()["snapshot"]["nodes"], name
            await asyncio.sleep(0)

    test()


def test_a_transcript_is_called_as_it_says_and_a_recording_as_its_header(tmp_path: Path) -> None:
    titled = {"op": "append", "event": {"type": "conversation/title", "data": {"title": "Bees"}}}
    for name, title in (("a.jsonl", "a.jsonl"), ("b.jsonl", "Kept"), ("c.jsonl", "c.jsonl")):
        lines = [{"recording": 1, "title": title}, *([titled] if name != "c.jsonl" else [])]
        (tmp_path / name).write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")

    @inside
    async def listed() -> None:
        source = FilesSource([tmp_path], catalog(), titles=TITLES)
        told = {
            each.conversation: each.title for each in (await source.conversations()).conversations
        }
        assert told == {"a.jsonl": "Bees", "b.jsonl": "Kept", "c.jsonl": None}
        await source.aclose()

    listed()
