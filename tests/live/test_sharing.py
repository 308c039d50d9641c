"""Sessions of several processes on one conversation, told of each other by a live backend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from assembler import Assembler, ConflictError, Draft, Outcome
from assembler.live import Hub, Live, MemoryLive, Open, Session
from assembler.stores import MemoryStore, Store
from tests.live.desk import counting, pump, toy, toys
from tests.live.support import Client
from tests.live.test_session import END, STEP, TURN, inside, said, types


@asynccontextmanager
async def sessions(
    *lives: Live, store: Store | None = None, **options: Any
) -> AsyncGenerator[list[Session]]:
    """One Session of conversation `c` in each process."""
    store = store or MemoryStore()
    made = [
        Session(
            store,
            "c",
            Assembler(toys()),
            now=lambda: 1_000,
            names=counting(f"p{at}-"),
            live=live,
            **options,
        )
        for at, live in enumerate(lives)
    ]
    try:
        for each in made:
            await each.open()
        yield made
    finally:
        for each in made:
            await each.close()


async def until(holds: Callable[[], object]) -> None:
    """Let the loop run until it holds; a test that waits too long has failed."""
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0)


def three() -> tuple[MemoryLive, MemoryLive, MemoryLive]:
    live = MemoryLive()
    return live, live.beside(), live.beside()


@inside
async def test_what_one_emits_all_see_and_what_it_settles_all_withdraw() -> None:
    async with sessions(*three()) as (one, two, three_):
        with one.working():
            await one.append(TURN, STEP)
            attempt = one.attempt(1, 1)
            attempt.emit("toy", {"id": "x", "v": 1})
            attempt.emit("toy", {"id": "x", "v": 2})
            await until(lambda: said(two) == said(three_) == {"x": [1, 2]})
            assert two.live is three_.live is True
            attempt.settle("failed")
            await until(lambda: said(two) == said(three_) == {})
            again = one.attempt(1, 1)
            again.emit("toy", {"id": "x", "v": 3})
            again.settle()
            await one.append(toy(4))
            await until(lambda: said(two) == said(three_) == said(one) == {"x": [3, 4]})
            await one.append(END)
        await until(lambda: two.live is three_.live is False)
        assert said(one) == said(two) == said(three_) == {"x": [4]}
        assert (
            two.statistics()["assembler"]["anomalies"] == one.statistics()["assembler"]["anomalies"]
        )


@inside
async def test_who_joins_in_the_middle_sees_the_attempt_whole() -> None:
    live, store = MemoryLive(), MemoryStore()
    async with sessions(live, store=store) as (one,):
        await one.append(TURN, STEP)
        lost = one.attempt(1, 1)
        lost.emit("toy", {"id": "lost"})
        lost.settle("failed")
        held = one.attempt(1, 1)
        held.emit("toy", {"id": "held", "v": 1})
        held.settle()
        side = one.attempt(1, 1, number=0)
        side.emit("toy", {"id": "side", "v": 1})
        async with sessions(live.beside(), store=store) as (two,):
            assert said(two) == {"held": [1], "side": [1]}
            assert two.live is True
            assert two.orphan is None
            assert two.attempt(1, 1).number == 3, "it knows the number of the one given up as well"
            side.emit("toy", {"id": "side", "v": 2})
            await until(lambda: said(two)["side"] == [1, 2])
        await one.append(END)
        async with sessions(live.beside(), store=store) as (late,):
            assert said(late) == {}
        assert live.statistics()["held"] == 0


@inside
async def test_a_follower_is_sent_what_another_process_emits() -> None:
    live = MemoryLive()
    async with sessions(live, live.beside()) as (one, two), two.subscribe() as view:
        client = Client(view)
        await one.append(TURN, STEP)
        one.attempt(1, 1).emit("toy", {"id": "x", "v": 1})
        async with asyncio.timeout(20):
            while not client.shown["nodes"]:
                client.take(await anext(view))
        assert client.shown["nodes"][0]["data"]["v"] == [1]


@inside
async def test_when_an_owner_dies_it_is_withdrawn_once_and_closed_once() -> None:
    live, store = MemoryLive(), MemoryStore()
    dying = live.beside()
    async with sessions(dying, live, live.beside(), store=store) as (one, two, three_):
        left: list[Open] = []
        for each in (two, three_):
            each.on_orphan(closes(each, left))
        with one.working():
            await one.append(TURN, STEP)
            attempt = one.attempt(1, 1)
            attempt.emit("toy", {"id": "x", "v": 1})
            await until(lambda: said(two) == said(three_) == {"x": [1]})
            dying.die()
            await until(lambda: len(left) == 2 and len(types(store)) == 3)
            await pump()
            assert left == [Open(1, 1, 5), Open(1, 1, 5)]
            assert types(store) == ["turn/start", "step/start", "turn/end"]
            assert said(two) == said(three_) == {}
            attempt.emit("toy", {"id": "x", "v": 2})
            await pump()
            assert said(two) == {}
    async with sessions(live.beside(), store=store) as (late,):
        assert said(late) == {}


def closes(some: Session, left: list[Open]) -> Callable[[Open], None]:
    def orphaned(open: Open) -> None:
        left.append(open)
        tasks.append(asyncio.ensure_future(some.decide(lambda: END if some.orphan else None)))

    tasks: list[Awaitable[Any]] = []
    return orphaned


@inside
async def test_a_turn_that_another_process_works_on_is_no_orphan() -> None:
    live, store = MemoryLive(), MemoryStore()
    async with sessions(live, store=store) as (one,):
        with one.working():
            await one.append(TURN)
            async with sessions(live.beside(), store=store) as (two,):
                left: list[Open] = []
                two.on_orphan(left.append)
                assert two.live is True
                assert two.elsewhere is True
                assert two.orphan is None
                await one.append(END)
                await one.append(Draft("turn/start", {"turn": 2}))
                await until(lambda: two.last == one.last)
                await pump()
                assert two.orphan is None
                await one.append(Draft("turn/end", {"turn": 2}))
                assert left == []


@inside
async def test_a_turn_left_without_an_owner_is_told_to_who_opens_it() -> None:
    store = MemoryStore()
    await store.append("c", [TURN, STEP], 0)
    async with sessions(MemoryLive(), store=store) as (one,):
        assert one.elsewhere is False
        assert one.orphan == Open(1, 1, 5)


@inside
async def test_who_was_taken_for_dead_learns_that_its_attempt_is_given_up() -> None:
    live = MemoryLive()
    async with sessions(live, live.beside()) as (one, two):
        await one.append(TURN, STEP)
        attempt = one.attempt(1, 1)
        attempt.emit("toy", {"id": "x", "v": 1})
        await until(lambda: said(two) == {"x": [1]})
        seat = two._core.seat
        assert seat is not None
        seat.lose("memory-1")
        await until(lambda: attempt.outcome is not None)
        assert attempt.outcome is Outcome.INTERRUPTED
        assert said(one) == said(two) == {}
        with pytest.raises(ConflictError, match="has ended"):
            attempt.emit("toy", {"id": "x", "v": 2})


@inside
async def test_a_session_that_closes_withdraws_what_it_had_going_everywhere() -> None:
    live = MemoryLive()
    async with sessions(live, live.beside()) as (one, two):
        await one.append(TURN, STEP)
        with one.working():
            one.attempt(1, 1).emit("toy", {"id": "x", "v": 1})
            await until(lambda: said(two) == {"x": [1]})
            await one.close()
            await until(lambda: said(two) == {} and two.orphan == Open(1, 1, 5))


@inside
async def test_the_hubs_of_two_processes_close_once_what_a_third_one_left() -> None:
    live, store = MemoryLive(), MemoryStore()
    dying = live.beside()
    async with (
        Hub(store, toys(), live=live, closing=lambda left: END) as hub,
        Hub(store, toys(), live=live.beside(), closing=lambda left: END) as other,
        hub.use("c") as two,
        other.use("c") as three_,
        sessions(dying, store=store) as (one,),
    ):
        with one.working():
            await one.append(TURN, STEP)
            one.attempt(1, 1).emit("toy", {"id": "x"})
            await until(lambda: said(two) and said(three_))
            dying.die()
            await until(lambda: two.open_now is None and three_.open_now is None)
        assert types(store) == ["turn/start", "step/start", "turn/end"]


@inside
async def test_a_hub_closes_what_was_left_before_it_came() -> None:
    store = MemoryStore()
    await store.append("c", [TURN, STEP], 0)
    for live in (None, MemoryLive()):
        async with (
            Hub(store, toys(), live=live, closing=lambda left: END) as hub,
            hub.use("c") as some,
        ):
            assert some.open_now is None
    assert types(store) == ["turn/start", "step/start", "turn/end"]
