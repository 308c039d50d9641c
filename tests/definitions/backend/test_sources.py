"""An agent that runs by itself, followed: what it says is stored, shown live, and there again."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from typing import Any

import pytest

from assembler import AssemblerError, ConflictError
from assembler.stores import MemoryStore
from definitions import AcpAgent, ClaudeCodeAgent, Conversation, catalog
from definitions.backend import SyncConversations
from tests.definitions.backend.support import (
    WaitingStore,
    answer,
    backend,
    boundaries,
    check_log,
    check_shown,
    inside,
    log,
    message,
    names,
    text,
    types,
)
from tests.definitions.claude_code_frames import (
    allowed,
    asked,
    call,
    ended,
    flat,
    init,
    prompt,
    returned,
    said,
    streamed,
)
from tests.definitions.claude_code_frames import text as words

Json = dict[str, Any]


def update(what: str, **fields: Any) -> Json:
    params = {"sessionId": "s", "update": {"sessionUpdate": what, **fields}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


CLAUDE_CODE = list(
    flat(
        [
            prompt("Look"),
            init(),
            streamed("m1", words("I look."), call("c1", command="ls")),
            asked("r1", "c1", input={"command": "ls"}),
            allowed("r1"),
            returned("c1", "a"),
            streamed("m2", words("One file.")),
            ended(),
        ]
    )
)
ACP: list[Json] = [
    {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "session/prompt",
        "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "Look"}]},
    },
    update("agent_message_chunk", content={"type": "text", "text": "I look."}),
    update("tool_call", toolCallId="c1", title="ls", kind="execute", status="pending"),
    update("tool_call_update", toolCallId="c1", rawInput={"command": "ls"}, status="in_progress"),
    update("tool_call_update", toolCallId="c1", status="completed", rawOutput="a"),
    update("agent_message_chunk", content={"type": "text", "text": "One file."}),
    {"jsonrpc": "2.0", "id": 7, "result": {"stopReason": "end_turn"}},
]
AGENTS = pytest.mark.parametrize(
    ("agent", "story"), [(ClaudeCodeAgent, CLAUDE_CODE), (AcpAgent, ACP)], ids=["claude", "acp"]
)


def line(told: Json) -> bytes:
    return json.dumps(told).encode() + b"\n"


def rows(some: Any) -> list[tuple[str, Any]]:
    """What people see: kinds, and how far each has come."""
    told = ("stage", "status", "decision")
    return [(node.kind, next(filter(None, map(node.data.get, told)), None)) for node in some.view()]


@AGENTS
def test_what_an_agent_says_is_stored_and_shown(agent: Any, story: list[Json]) -> None:
    @inside
    async def follow() -> None:
        store = WaitingStore()
        async with backend(store) as conversations:
            some = await conversations.open("c")
            async with some.agent(agent) as source:
                for told in story:
                    await source.feed(line(told))
            if agent is ClaudeCodeAgent:  # ACP tells no answer that makes a call
                check_log(log(store))
            check_shown(some)
            seen = rows(some)
            kinds = [kind for kind, _ in seen if kind != "permission"]
            assert kinds == ["user", "assistant", "tool", "assistant", "turn-tail"]
        async with backend(store) as again:
            assert rows(await again.open("c")) == seen

    follow()


@AGENTS
def test_the_same_without_a_loop(agent: Any, story: list[Json]) -> None:
    @inside
    async def in_a_loop() -> MemoryStore:
        store = MemoryStore()
        async with backend(store) as conversations:
            async with (await conversations.open("c")).agent(agent) as source:
                await source.feed(b"".join(map(line, story)))
        told.append([(event.type, event.data) for event in log(store)])
        return store

    told: list[Any] = []
    in_a_loop()
    store = MemoryStore()
    with SyncConversations(store.sync, catalog(), names=names()) as conversations:
        with conversations.open("c").agent(agent) as source:
            for each in story:
                source.feed(each)
    assert [(event.type, event.data) for event in log(store)] == told[0]


@AGENTS
def test_rows_appear_while_it_speaks(agent: Any, story: list[Json]) -> None:
    @inside
    async def follow() -> None:
        async with backend(MemoryStore()) as conversations:
            some = await conversations.open("c")
            stages, said_so_far = [], []
            async with some.agent(agent) as source:
                for told in story:
                    await source.feed(told)
                    for node in some.view():
                        if node.kind == "tool" and node.data["stage"] not in stages:
                            stages.append(node.data["stage"])
                        if node.kind == "assistant":
                            said_so_far.append(node.data["status"])
            assert stages == ["preparing", "start", "result"]
            assert said_so_far[0] == "running"

    follow()


@AGENTS
def test_bytes_cut_anywhere_are_the_same(agent: Any, story: list[Json]) -> None:
    data = b"".join(map(line, story))
    told = []
    for size in (1, 7, 1_000, len(data)):
        store = MemoryStore()
        with SyncConversations(store.sync, catalog(), names=names()) as conversations:
            with conversations.open("c").agent(agent) as source:
                for at in range(0, len(data), size):
                    source.feed(data[at : at + size])
        told.append([(event.type, event.data) for event in log(store)])
    assert all(each == told[0] for each in told)


@inside
async def test_a_turn_may_begin_and_end_in_one_chunk() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.agent(ClaudeCodeAgent) as source:
            await source.feed(line(prompt("Hi")) + line(ended()))
            await source.feed(line(prompt("Hi")) + line(said("m1")) + line(ended(result="Hello.")))
    begun = ["turn", "completed"]
    assert boundaries(store) == [*begun, "turn", "step start", "step end", "completed"]


@inside
async def test_what_a_tool_prints_is_shown_beside_the_answer() -> None:
    shown = {"type": "content", "content": {"type": "text", "text": "half of it"}}
    async with backend(MemoryStore()) as conversations:
        some = await conversations.open("c")
        async with some.agent(AcpAgent) as source:
            for told in ACP[:4]:
                await source.feed(told)
            await source.feed(update("tool_call_update", toolCallId="c1", content=[shown]))
            (tool,) = [node for node in some.view() if node.kind == "tool"]
            assert tool.data["output"] == "half of it"
            assert [live.number for live in some.session.attempts][-1:] == [0]
            assert some.statistics()["turn"] == 1


@inside
async def test_a_subagent_has_a_conversation_beside() -> None:
    store = WaitingStore()
    story = [
        prompt("Find it"),
        said("m1", call("a1", "Task", prompt="look")),
        prompt("look", parent="a1"),
        said("s1", words("I look."), parent="a1"),
        said("s1", call("c1", "Read", path="a"), parent="a1"),
        returned("c1", "x", parent="a1"),
        returned("a1", "Found."),
        ended(),
    ]
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.agent(ClaudeCodeAgent) as source:
            for told in story[:-3]:
                await source.feed(told)
            beside = await conversations.open("c/a1")
            assert rows(beside) == [("user", None), ("assistant", "running"), ("tool", "preparing")]
            for told in story[-3:]:
                await source.feed(told)
        check_shown(beside)
        assert boundaries(store, "c/a1") == ["turn", "step start", "step end", "completed"]
        inner = next(node for node in some.view() if node.id == "c1")
        assert (inner.data["parent"], inner.data["outcome"]) == ("a1", "succeeded")
    plainly = MemoryStore()
    with SyncConversations(plainly.sync, catalog(), names=names()) as others:
        with others.open("c").agent(ClaudeCodeAgent) as follows:
            for told in story:
                follows.feed(told)
    assert types(plainly, "c/a1") == types(store, "c/a1")


@inside
async def test_tasks_that_feed_at_once_are_written_in_order() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.agent(ClaudeCodeAgent) as source:
            await source.feed(said("m1", call("a1", "Task")))
            told = [prompt(str(number), parent="a1") for number in range(4)]
            await asyncio.gather(*map(source.feed, told))
    said_beside = [
        event.data["content"][0]["text"]
        for event in log(store, "c/a1")
        if event.type == "user/message"
    ]
    assert said_beside == ["0", "1", "2", "3"]


BROKEN = [prompt("Look"), *streamed("m1", words("I was"), call("c1", x=1), end=False)]


@pytest.mark.parametrize(
    ("error", "reason"),
    [(None, "interrupted"), (KeyError("x"), "error"), (asyncio.CancelledError(), "cancelled")],
)
def test_leaving_it_ends_the_turn_and_keeps_what_was_read(error: Any, reason: str) -> None:
    @inside
    async def follow() -> None:
        store = WaitingStore()
        async with backend(store) as conversations:
            some = await conversations.open("c")
            with pytest.raises(type(error)) if error is not None else nullcontext():
                async with some.agent(ClaudeCodeAgent) as source:
                    for told in BROKEN:
                        await source.feed(told)
                    if error is not None:
                        raise error
            assert boundaries(store) == ["turn", "step start", "step end", reason]
            (kept,) = [event for event in log(store) if event.type == "assistant/message"]
            assert kept.data["interrupted"] is True
            assert "tool/call" not in types(store)
            check_shown(some)
            assert some.session.attempts == []
            await source.feed(prompt("Late"))
            assert boundaries(store)[-1] == reason

    follow()


@inside
async def test_a_task_that_is_cancelled_leaves_a_closed_turn() -> None:
    store = WaitingStore()

    async def follow(some: Conversation) -> None:
        async with some.agent(ClaudeCodeAgent) as source:
            for told in BROKEN:
                await source.feed(told)
            waits.set()
            await asyncio.Event().wait()

    async with backend(store) as conversations:
        waits = asyncio.Event()
        some = await conversations.open("c")
        task = asyncio.create_task(follow(some))
        await waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert boundaries(store)[-1] == "cancelled"
        check_shown(some)


@inside
async def test_meanwhile_nobody_else_begins_a_turn() -> None:
    store = MemoryStore()
    hello = message(text("hello"))
    async with backend(store) as conversations:
        some = await conversations.open("c")
        await answer(some, [hello], "one")
        async with some.agent(ClaudeCodeAgent) as source:
            await source.feed(prompt("two"))
            with pytest.raises(ConflictError):
                await answer(some, [hello], "three")
            with pytest.raises(ConflictError):
                async with some.agent(ClaudeCodeAgent):
                    pass
            await source.feed(said("m1", words("a")))
            await source.feed(ended())
        with pytest.raises(ConflictError):
            async with source:
                pass
        await answer(some, [hello], "four")
        turns = [event.data["turn"] for event in log(store) if event.type == "turn/start"]
        assert turns == [1, 2, 3]
        check_log(log(store))


@inside
async def test_an_answer_that_people_gave_is_not_given_twice() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.agent(ClaudeCodeAgent) as source:
            for told in CLAUDE_CODE[: CLAUDE_CODE.index(allowed("r1"))]:
                await source.feed(told)
            assert ("permission", "pending") in rows(some)
            await some.answer("c1", "r1", "allow")
            await source.feed(allowed("r1"))
            assert types(store).count("permission/answer") == 1
            await source.feed(asked("r2", "c1"))
            await source.feed(allowed("r2"))
            assert types(store).count("permission/answer") == 2


@inside
async def test_a_turn_that_others_closed_is_not_closed_again() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        async with some.agent(ClaudeCodeAgent) as source:
            for told in BROKEN:
                await source.feed(told)
            await some.session.append({"type": "turn/end", "data": {"turn": 1, "reason": "error"}})
    assert boundaries(store) == ["turn", "step start", "error"]


@inside
async def test_a_crash_leaves_a_turn_that_the_next_source_closes() -> None:
    store = MemoryStore()
    crashed = backend(store)
    source = (await crashed.open("c")).agent(ClaudeCodeAgent)
    await source.__aenter__()
    await source.feed(prompt("one"))
    async with backend(store, "m") as conversations:
        async with (await conversations.open("c")).agent(ClaudeCodeAgent) as other:
            await other.feed(prompt("two"))
            await other.feed(ended())
    assert boundaries(store) == ["turn", "interrupted", "turn", "completed"]


@inside
async def test_a_store_that_fails_is_told_and_nothing_stays_live() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        with pytest.raises(AssemblerError):
            async with some.agent(ClaudeCodeAgent) as source:
                for told in BROKEN:
                    await source.feed(told)
                await store.close()
                await source.feed(ended())
        assert some.session.attempts == []
        assert all(node.kind != "tool" for node in some.view())


@inside
async def test_the_face_without_waiting_says_who_follows_an_agent() -> None:
    async with backend(MemoryStore()) as conversations:
        some = await conversations.open("c")
        with pytest.raises(AssemblerError, match="by the conversation"):
            some.sync.agent(ClaudeCodeAgent)
