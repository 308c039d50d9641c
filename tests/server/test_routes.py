"""What the routes answer, without a socket."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from assembler import Delta, Draft, Outcome
from assembler.codec import plain
from assembler.server import ServerLimits
from assembler.stores import MemoryStore
from tests.server.support import LIMITS, desk, inside, local, said, turn

NAMES = (
    "plain",
    "a/b",
    "a/stream",
    "ü ö",
    "%2F",
    "?x=1#y",
    "..x",
    "🙂",
    "a\\b",
    "//",
    "\n",
    "'\"<b>",
)


def path(name: str, action: str = "") -> str:
    return f"/conversations/{quote(name, safe='')}" + (f"/{action}" if action else "")


async def fill(store: Any, name: str, *texts: str, title: str | None = None, at: int = 0) -> None:
    drafts = [turn(1), *(said(f"m{n}", text) for n, text in enumerate(texts))]
    if title is not None:
        drafts.append(Draft("conversation/title", {"title": title}, time=at))
    await store.append(name, drafts, 0)


@inside
async def test_a_view_is_shown_with_the_cursor_that_goes_on_from_it() -> None:
    async with desk() as some, local(some.app) as client:
        await fill(some.store, "c", "hello")
        answer = (await client.get("/conversations/c")).json()
        assert [node["key"] for node in answer["snapshot"]["nodes"]] == ["user:m0"]
        assert answer["snapshot"]["view"] == "chat"
        assert answer["has_more"] is False
        assert answer["cursor"]


@inside
async def test_any_text_may_be_the_name_of_a_conversation() -> None:
    async with desk() as some, local(some.app) as client:
        for name in NAMES:
            await fill(some.store, name, name)
        listed = (await client.get("/conversations?limit=100")).json()["conversations"]
        assert {each["conversation"] for each in listed} == set(NAMES)
        for name in NAMES:
            shown = (await client.get(path(name))).json()["snapshot"]["nodes"]
            assert shown[0]["data"]["content"][0]["text"] == name
            assert (await client.post(path(name, "older"))).json() == {"has_more": False}


@inside
async def test_a_name_stands_below_any_prefix() -> None:
    async with desk() as some:
        outer = Starlette(routes=[Mount("/deep/conversations", some.app)])
        async with local(outer) as client:
            await fill(some.store, "a/b", "hello")
            found = await client.get("/deep/conversations" + path("a/b"))
            assert found.json()["snapshot"]["nodes"]
            assert (await client.get("/deep/conversations/health")).json()["status"] == "ok"


@inside
async def test_the_list_goes_on_where_it_ended_and_never_names_what_it_passed() -> None:
    async with desk() as some, local(some.app) as client:
        for n in range(25):
            await fill(some.store, f"c{n:02}", "x", title=f"Title {n}", at=n // 4)
        found: list[str] = []
        url = "/conversations?limit=4"
        while True:
            part = (await client.get(url)).json()
            found += [each["conversation"] for each in part["conversations"]]
            if part["next"] is None:
                break
            assert "c" not in part["next"]
            url = f"/conversations?limit=4&before={part['next']}"
        assert found == [
            listed.conversation for listed in await some.store.conversations(limit=100)
        ]


@inside
async def test_a_list_is_searched_by_title_and_by_name() -> None:
    async with desk() as some, local(some.app) as client:
        await fill(some.store, "one", "x", title="The Photo folder")
        await fill(some.store, "photo-2", "x")
        await fill(some.store, "three", "photo")
        answer = await client.get("/conversations", params={"search": "PHOTO"})
        listed = {each["conversation"]: each for each in answer.json()["conversations"]}
        assert set(listed) == {"one", "photo-2"}
        assert listed["one"]["title"] == "The Photo folder"
        assert listed["one"]["events"] == 3


@inside
async def test_older_pages_come_until_there_are_none() -> None:
    async with desk(hub={"page_events": 3}) as some, local(some.app) as client:
        await fill(some.store, "c", *map(str, range(9)))
        first = (await client.get("/conversations/c")).json()
        assert first["has_more"]
        assert len(first["snapshot"]["nodes"]) == 3
        assert (await client.post("/conversations/c/older")).json() == {"has_more": False}
        whole = (await client.get("/conversations/c")).json()
        assert len(whole["snapshot"]["nodes"]) == 9
        assert not whole["has_more"]


@inside
async def test_no_more_is_loaded_than_may_be() -> None:
    limits = ServerLimits(window_events_max=4)
    async with desk(hub={"page_events": 3}, limits=limits) as some, local(some.app) as client:
        await fill(some.store, "c", *map(str, range(100)))
        assert (await client.post("/conversations/c/older")).json() == {"has_more": True}
        answer = await client.post("/conversations/c/older")
        assert answer.status_code == 413
        assert "window_events_max" in answer.json()["error"]["message"]


@inside
async def test_a_conversation_that_nobody_wrote_to_is_unknown() -> None:
    async with desk() as some, local(some.app) as client:
        for action in ("", "/stream"):
            answer = await client.get(f"/conversations/nobody{action}")
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "not-found"
        assert (await client.post("/conversations/nobody/older")).status_code == 404
        assert some.hub.statistics()["users"] == 0
    async with desk(source={"empty": True}) as some, local(some.app) as client:
        assert (await client.get("/conversations/nobody")).json()["snapshot"]["nodes"] == []


@inside
async def test_a_remote_writer_stores_shows_and_ends() -> None:
    async with desk(source={"writes": True}) as some, local(some.app) as client:
        answer = await client.post(
            "/conversations/c/append",
            json={"drafts": [plain(turn(1)), plain(said("m1"))], "expected_seq": 0},
        )
        assert [event["seq"] for event in answer.json()["events"]] == [1, 2]
        step = {"type": "step/start", "data": {"turn": 1, "step": 1}}
        await client.post("/conversations/c/append", json={"drafts": [step], "expected_seq": 2})
        delta = Delta("a1", 1, 1, "text", {"block": 0, "text": "Let me"}, after=3)
        assert (
            await client.post("/conversations/c/emit", json={"deltas": [plain(delta)]})
        ).json() == {"taken": 1}
        shown = (await client.get("/conversations/c")).json()["snapshot"]
        assert [node["key"] for node in shown["nodes"]] == ["user:m1", "assistant:1.1"]
        assert shown["live"] is True
        listed = (await client.get("/conversations")).json()["conversations"]
        assert [each["live"] for each in listed] == [True]
        settled = {"attempt": "a1", "outcome": Outcome.ABANDONED.value}
        await client.post("/conversations/c/settle", json=settled)
        shown = (await client.get("/conversations/c")).json()["snapshot"]
        assert [node["key"] for node in shown["nodes"]] == ["user:m1"]
        end = {"type": "turn/end", "data": {"turn": 1, "reason": "cancelled"}}
        await client.post("/conversations/c/append", json={"drafts": [end], "expected_seq": 3})
        assert (await client.get("/conversations/c")).json()["snapshot"]["live"] is False


@inside
async def test_a_writer_who_was_too_slow_is_told_where_the_log_stands() -> None:
    async with desk(source={"writes": True}) as some, local(some.app) as client:
        await fill(some.store, "c", "hello")
        answer = await client.post(
            "/conversations/c/append", json={"drafts": [plain(turn(2))], "expected_seq": 1}
        )
        assert answer.status_code == 409
        error = answer.json()["error"]
        assert (error["expected"], error["actual"]) == (1, 2)
        assert await some.store.last("c") == 2


@inside
async def test_pieces_that_come_again_change_nothing_and_missing_ones_are_asked_for() -> None:
    async with desk(source={"writes": True}) as some, local(some.app) as client:
        await some.store.append("c", [turn(1), Draft("step/start", {"turn": 1, "step": 1})], 0)

        async def emit(*ordinals: int) -> Any:
            deltas = [
                {
                    "attempt": "a1",
                    "turn": 1,
                    "step": 1,
                    "type": "text",
                    "data": {"block": 0, "text": f"{ordinal} "},
                    "ordinal": ordinal,
                }
                for ordinal in ordinals
            ]
            return await client.post("/conversations/c/emit", json={"deltas": deltas})

        assert (await emit(0, 1)).status_code == 200
        assert (await emit(0, 1, 2)).status_code == 200
        missing = await emit(3, 5)
        assert missing.status_code == 409
        assert (missing.json()["error"]["expected"], missing.json()["error"]["actual"]) == (4, 5)
        shown = (await client.get("/conversations/c")).json()["snapshot"]["nodes"]
        assert shown[0]["data"]["blocks"][0]["text"] == "0 1 2 3 "
        settled = {"attempt": "a1", "outcome": "completed"}
        for name, taken in (("a1", 1), ("a1", 1), ("another", 0)):
            answer = await client.post("/conversations/c/settle", json={**settled, "attempt": name})
            assert answer.json() == {"taken": taken}
        assert (await emit(4)).status_code == 409


@inside
async def test_a_writer_that_falls_silent_is_taken_for_dead() -> None:
    given = {"writes": True, "silence_ms_max": 1}
    async with desk(source=given) as some, local(some.app) as client, some.session() as session:
        await some.store.append("c", [turn(1), Draft("step/start", {"turn": 1, "step": 1})], 0)
        await session.catch_up()
        async with session.subscribe() as view:
            delta = Delta("a1", 1, 1, "text", {"block": 0, "text": "Let me"}, after=2)
            await client.post("/conversations/c/emit", json={"deltas": [plain(delta)]})
            async for _ in view:
                if not session.view().nodes and session.live is False:
                    break


@inside
async def test_what_can_only_be_read_refuses_writers() -> None:
    async with desk() as some, local(some.app) as client:
        for action, body in (
            ("append", {"drafts": [], "expected_seq": 0}),
            ("emit", {"deltas": []}),
            ("settle", {"attempt": "a", "outcome": "failed"}),
        ):
            answer = await client.post(f"/conversations/c/{action}", json=body)
            assert answer.status_code == 403


@inside
async def test_a_room_stays_open_for_a_while_and_no_more_than_so_many_do() -> None:
    limits = ServerLimits(rooms_idle_max=2, linger_ms=1_000_000)
    async with desk(limits=limits) as some, local(some.app) as client:
        for name in "abcd":
            await fill(some.store, name, "x")
            await client.get(f"/conversations/{name}")
        counts = (await client.get("/health")).json()
        assert counts["rooms"] == 2
        assert counts["readers"] == 0


@inside
async def test_more_conversations_than_may_be_open_are_refused() -> None:
    async with desk(limits=ServerLimits(rooms_max=1)) as some, local(some.app) as client:
        await fill(some.store, "a", "x")
        await fill(some.store, "b", "x")
        async with some.app.service.rooms.enter("a"):
            answer = await client.get("/conversations/b")
            assert answer.status_code == 503
            assert "rooms_max" in answer.json()["error"]["message"]
        assert (await client.get("/conversations/b")).status_code == 200


@inside
async def test_a_hub_that_is_closed_is_no_fault_of_who_asks() -> None:
    async with desk() as some, local(some.app) as client:
        await fill(some.store, "c", "x")
        await some.hub.close()
        assert (await client.get("/conversations/c")).status_code == 503


class Broken(MemoryStore):
    async def conversations(self, **_: Any) -> Any:
        raise RuntimeError("secret words")


@inside
async def test_what_fails_inside_says_nothing_of_it() -> None:
    async with desk(store=Broken()) as some, local(some.app) as client:
        answer = await client.get("/conversations")
        assert answer.status_code == 500
        assert "secret" not in answer.text


@pytest.mark.parametrize("limit", ["0", "-1", "201", "x", "1e3", "9" * 5000, "", "\uff11"])
def test_a_limit_out_of_range_is_refused(limit: str) -> None:
    @inside
    async def test() -> None:
        async with desk(limits=LIMITS) as some, local(some.app) as client:
            answer = await client.get("/conversations", params={"limit": limit})
            assert answer.status_code == 400
            assert len(answer.content) < 200

    test()
