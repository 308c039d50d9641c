"""Opening conversations: each once, after a crash, in pages, redacted, counted, and logged."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from assembler import AssemblerError, ConflictError, Node
from assembler.stores import MemoryStore, StoreError
from definitions import Conversation, Dispatch
from tests.definitions.backend.support import (
    WaitingStore,
    answer,
    backend,
    boundaries,
    call,
    check_log,
    check_shown,
    inside,
    log,
    message,
    pump,
    text,
    types,
)

HELLO = message(text("hello"))
SCRIPT = [
    message(text("I will"), call("u1"), end=False),
    message(text("I look"), call("u1", at="sky"), call("u2", index=2)),
    message(text("done")),
]


def asking(some: Conversation) -> Any:
    """A tool that asks, and is allowed by somebody at once."""

    async def asks(tool: Dispatch) -> None:
        waits = asyncio.ensure_future(tool.ask())
        await pump()
        await some.answer(tool.call.call_id, "1", "allow")
        await waits
        tool.result("seen")

    return asks


@inside
async def test_a_conversation_is_opened_once() -> None:
    store = WaitingStore()
    async with backend(store) as conversations:
        first, second = await asyncio.gather(conversations.open("c"), conversations.open("c"))
        assert first is second is await conversations.open("c")
        assert await conversations.open("d") is not first
        await conversations.close("c")
        assert await conversations.open("c") is not first
    with pytest.raises(AssemblerError):
        await conversations.open("c")


@inside
async def test_an_opening_that_failed_is_tried_again() -> None:
    class Failing(MemoryStore):
        fails = 1

        async def run(self, ask: Any) -> Any:
            if self.fails:
                self.fails -= 1
                raise StoreError("not now")
            return await super().run(ask)

    async with backend(Failing()) as conversations:
        with pytest.raises(StoreError):
            await conversations.open("c")
        await answer(await conversations.open("c"), [HELLO])


def recorded() -> list[Any]:
    """The log of a whole run, with everything in it."""
    store = WaitingStore()

    async def run() -> None:
        async with backend(store) as conversations:
            some = await conversations.open("c")
            await answer(some, SCRIPT, tool=asking(some))

    asyncio.run(run())
    assert {"llm/retry", "permission/answer", "tool/result"} <= set(types(store))
    return log(store)


def test_after_a_crash_at_any_event_whoever_comes_first_closes_the_turn_once() -> None:
    events = recorded()
    check_log(events)

    async def run(last: int) -> None:
        store = WaitingStore()
        drafts = [{"type": each.type, "data": each.data} for each in events[:last]]
        await store.append("c", drafts, 0)
        async with backend(store, "x") as ours, backend(store, "y") as theirs:
            some, other = await asyncio.gather(ours.open("c", page=2), theirs.open("c", page=3))
            ends = boundaries(store).count("interrupted")
            assert ends == (0 < last < len(events))
            assert len(log(store)) == last + ends, "history starts nothing"
            assert some.statistics()["interrupted"] + other.statistics()["interrupted"] == ends
            check_shown(some)
            check_shown(other)
            await answer(some, SCRIPT, tool=asking(some))
            await other.session.catch_up()
            check_shown(some)
            check_shown(other)
            check_log(log(store))

    for last in range(len(events) + 1):
        asyncio.run(run(last))


@inside
async def test_a_turn_that_somebody_may_be_working_on_is_left_alone() -> None:
    store = MemoryStore()
    await store.append("c", [{"type": "turn/start", "data": {"turn": 1}}], 0)
    for elsewhere in (None, True):
        async with backend(store, elsewhere=elsewhere) as conversations:
            some = await conversations.open("c")
            with pytest.raises(AssemblerError):
                await answer(some, [HELLO])
            assert types(store) == ["turn/start"]
    async with backend(store, elsewhere=None) as conversations:
        some = await conversations.open("c")
        some.session.elsewhere = False
        await answer(some, [HELLO])
        assert boundaries(store)[1] == "interrupted"


def test_what_is_loaded_hands_over_nothing_and_asks_nothing() -> None:
    asyncio.run(_loaded(recorded()))


async def _loaded(events: list[Any]) -> None:
    asked = next(each.seq for each in events if each.type == "permission/request")
    store = MemoryStore()
    await store.append("c", [{"type": e.type, "data": e.data} for e in events[:asked]], 0)
    async with backend(store) as conversations:
        some = await conversations.open("c")
        assert some.statistics()["waiting_questions"] == 0
        assert some.statistics()["calls"] == 0
        with pytest.raises(ConflictError, match="is not open"):  # with its turn it was withdrawn
            await some.answer("u1", "1", "allow")
        assert types(store)[-1] == "turn/end"
        assert some.view()["tool:u1"].data["outcome"] == "unsettled"


@inside
async def test_pages_and_followers() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        for _ in range(4):
            await answer(some, [HELLO])
    async with backend(store, "m") as conversations:
        some = await conversations.open("c", page=4)
        async with some.subscribe() as view:
            first = len(view.snapshot.nodes)
            while await some.older(3):
                pass
            patch = await anext(view)
            assert len(patch.ops) > 0
        assert len(some.view()) > first
        check_shown(some)


@inside
async def test_what_is_hidden_or_redacted_is_seen_at_no_stage() -> None:
    store = MemoryStore()
    seen: list[str] = []

    def redact(node: Node) -> Node | None:
        if node.kind == "assistant":
            return Node(node.kind, node.id, {**node.data, "blocks": ()})
        return node

    for hidden in ({"todo_write"}, lambda name: name.startswith("todo")):
        async with backend(store, redact=redact, hidden=hidden) as conversations:
            some = await conversations.open("c")

            async def follow(some: Any = some) -> None:
                async with some.subscribe() as view:
                    seen.append(str(view.snapshot.to_json()))
                    async for patch in view:
                        seen.append(str(patch.to_json()))

            follows = asyncio.ensure_future(follow())
            await asyncio.sleep(0)
            turn = message(text("secret"), call("u1", "todo_write"), call("u2", "look", 2))
            await answer(some, [turn, HELLO])
        await follows
    assert "'look'" in str(seen)
    assert "secret" not in str(seen)
    assert "todo" not in str(seen)


@inside
async def test_counts_for_an_operator() -> None:
    store = MemoryStore()
    async with backend(store) as conversations:
        some = await conversations.open("c")
        await answer(some, SCRIPT)
        told = conversations.statistics()["c"]
        assert told == some.statistics()
        wanted = {"turns": 1, "steps": 2, "attempts": 3, "held": 2, "lost": 1, "calls": 2}
        assert wanted.items() <= told.items()
        assert told["results"] == 2
        assert told["session"]["last"] == len(log(store))


@inside
async def test_logs_hold_no_contents(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    with caplog.at_level(logging.DEBUG):
        async with backend(store) as conversations:
            some = await conversations.open("c")
            secret = OSError("the secret")
            broken = [*message(text("the secret"), call("u1", at="the secret")), secret]
            with pytest.raises(OSError, match="secret"):
                await answer(some, [broken] * 3, "the secret")
            with pytest.raises(OSError, match="secret"):
                async with some.turn("the secret"):
                    await store.close()
                    raise secret
    logged = [record.getMessage() for record in caplog.records if record.name != "asyncio"]
    assert logged
    assert "secret" not in str(logged)
    assert any(record.name == "definitions.backend" for record in caplog.records)


@inside
async def test_an_older_answer_of_a_model_is_no_news() -> None:
    """A second process reads what the first wrote, and its remembered things as well."""
    store = MemoryStore()
    async with backend(store) as ours, backend(store, "m", elsewhere=None) as theirs:
        some, other = await ours.open("c"), await theirs.open("c")
        await answer(some, [message(call("call_0", index=0)), HELLO])
        await other.session.catch_up()
        await answer(other, [message(call("call_0", index=0)), HELLO])
        ids = [each.data["call_id"] for each in log(store) if each.type == "tool/call"]
        assert len(set(ids)) == 2
        check_log(log(store))


@inside
async def test_a_server_uses_the_session_that_is_open_and_sees_what_is_live() -> None:
    store = MemoryStore()
    async with backend(store) as some:
        assert some.store is store
        assert some.awake("c") is None
        async with some.use("c") as session:
            assert session is (await some.open("c")).session
        assert some.awake("c") is session  # it stays open
        await some.close("c")
        assert some.awake("c") is None


@inside
async def test_conversations_that_nobody_uses_any_more_are_closed() -> None:
    async with backend(WaitingStore(), idle_max=3) as conversations:
        held = await conversations.open("held")
        async with conversations.using("working") as working:
            turn = working.turn("go")
            await turn.__aenter__()
        for number in range(200):
            async with conversations.use(f"c{number}"):
                pass
        await pump()
        left = conversations.statistics()
        assert left.keys() == {"held", "working", "c198", "c199"}
        async with conversations.use("held") as session:
            assert session is held.session  # who opened it may hold it
        assert await conversations.open("working") is working
        await turn.__aexit__(None, None, None)
        await answer(held, [HELLO])


@inside
async def test_who_comes_while_one_is_closed_waits_and_has_it_anew() -> None:
    async with backend(WaitingStore(), idle_max=0) as conversations:
        async with conversations.using("c") as first:
            await answer(first, [HELLO])
        async with conversations.using("c") as second, conversations.use("c") as session:
            assert second is not first
            assert session is second.session
            await answer(second, [HELLO])
        with pytest.raises(AssemblerError):
            await first.turn("late").__aenter__()


@inside
async def test_one_that_does_not_open_is_not_kept() -> None:
    class Broken(MemoryStore):
        async def run(self, ask: Any) -> Any:
            raise StoreError("broken")

    async with backend(Broken()) as conversations:
        with pytest.raises(StoreError):
            async with conversations.use("c"):
                raise AssertionError
        assert not conversations._open
