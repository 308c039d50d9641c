"""A Hub: Sessions that are shared, wake, and go to sleep."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from assembler import AssemblerError, InputError, LimitError
from assembler.live import Hub
from assembler.stores import MemoryStore, Store, StoreError
from tests.live.desk import GatedStore, counting, pump, toy, toys
from tests.live.support import Clock
from tests.live.test_session import inside, said


def hub(store: Store, clock: Clock | None = None, **options: Any) -> Hub:
    clock = clock or Clock()
    given = {"now": lambda: 1_000, "names": counting(), "scheduler": clock, **options}
    return Hub(store, toys(), clock=lambda: clock.ms, **given)


def awake(some: Hub) -> int:
    count: int = some.statistics()["awake"]
    return count


@inside
async def test_two_users_share_one_session() -> None:
    async with Hub(MemoryStore(), toys()) as some, some.use("c") as first, some.use("c") as second:
        assert first is second
        async with first.subscribe() as view:
            await second.append(toy(1))
            assert view.snapshot.nodes == ()
            assert (await anext(view)).ops
        assert some.statistics()["users"] == 2
        async with some.use("d") as other:
            assert other is not first


@inside
async def test_users_who_come_while_it_wakes_wait_for_the_same_session() -> None:
    store = GatedStore()
    async with hub(store) as some:
        store.behind.clear()
        users = [asyncio.ensure_future(enter(some)) for _ in range(3)]
        await pump()
        users[0].cancel()
        await pump()
        store.behind.set()
        first, second = await users[1], await users[2]
        assert first is second
        assert some.statistics()["woken"] == 1


async def enter(some: Hub, name: str = "c") -> Any:
    async with some.use(name) as session:
        return session


@inside
async def test_one_that_nobody_uses_sleeps_after_its_time_and_wakes_with_what_is_stored() -> None:
    clock = Clock()
    async with hub(MemoryStore(), clock, idle_ms=100) as some:
        async with some.use("c") as session:
            await session.append(toy(1))
            clock.turn(1_000)
            assert awake(some) == 1
        clock.turn(99)
        async with some.use("c") as again:
            assert again is session
        clock.turn(99)
        assert awake(some) == 1, "its time began anew"
        clock.turn(1)
        assert awake(some) == 0
        async with some.use("c") as woken:
            assert woken is not session
            assert said(woken) == {"x": [1]}
        with pytest.raises(AssemblerError, match="closed"):
            await session.append(toy(2))


@inside
async def test_each_sleeps_at_its_own_time() -> None:
    clock = Clock()
    async with hub(MemoryStore(), clock, idle_ms=100) as some:
        for name in "abc":
            await enter(some, name)
            clock.turn(10)
        clock.turn(70)
        assert list(some._awake) == ["b", "c"]
        clock.turn(10)
        clock.turn(10)
        assert awake(some) == 0
        assert clock.waiting == 0


@inside
async def test_the_one_left_longest_ago_sleeps_for_a_new_one() -> None:
    async with hub(MemoryStore(), conversations_max=2) as some:
        await enter(some, "a")
        await enter(some, "b")
        await enter(some, "a")
        async with some.use("c"):
            assert list(some._awake) == ["a", "c"]
            async with some.use("a"):
                with pytest.raises(LimitError, match="conversations_max"):
                    await enter(some, "d")
            await enter(some, "d")


@inside
async def test_one_that_somebody_works_on_does_not_sleep() -> None:
    clock = Clock()
    async with hub(MemoryStore(), clock, idle_ms=100, conversations_max=1) as some:
        async with some.use("c") as session:
            attempt = session.attempt(1, 1)
            attempt.emit("toy", {"id": "x", "v": 1})
        clock.turn(100)
        with pytest.raises(LimitError):
            await enter(some, "d")
        async with some.use("c") as same:
            assert same is session
        attempt.settle("failed")
        clock.turn(100)
        assert awake(some) == 0


@inside
async def test_waking_waits_for_the_one_that_goes_to_sleep() -> None:
    store, clock = GatedStore(), Clock()
    async with hub(store, clock, idle_ms=0) as some:
        async with some.use("c") as session:
            store.behind.clear()
            adding = asyncio.ensure_future(session.append(toy(1)))
            await pump()
            adding.cancel()
        clock.turn()
        await pump()
        assert awake(some) == 0
        woken = asyncio.ensure_future(enter(some, "c"))
        await pump()
        assert not woken.done()
        store.behind.set()
        assert said(await woken) == {"x": [1]}, "what was being stored is not lost"


@inside
async def test_one_that_cannot_be_opened_is_tried_again() -> None:
    class Broken(MemoryStore):
        broken = True

        async def run(self, ask: Any) -> Any:
            if self.broken:
                raise StoreError("no disk")
            return await super().run(ask)

    store = Broken()
    async with hub(store) as some:
        users = [asyncio.ensure_future(enter(some)) for _ in range(2)]
        assert [type(error) for error in await asyncio.gather(*users, return_exceptions=True)] == [
            StoreError,
            StoreError,
        ]
        assert awake(some) == 0
        store.broken = False
        await enter(some)


@inside
async def test_closing_ends_what_is_followed_and_what_is_used_then_is_refused() -> None:
    store = MemoryStore()
    some = hub(store)
    async with some.use("c") as session, session.subscribe() as view:
        await some.close()
        await some.close()
        assert [patch async for patch in view] == []
    with pytest.raises(AssemblerError, match="the hub is closed"):
        await enter(some)
    await store.append("c", [toy(1)], 0)


@inside
async def test_what_is_stored_is_listed_awake_or_not() -> None:
    async with hub(MemoryStore()) as some:
        for time, name in enumerate("abc"):
            await some.store.append(name, [toy(1, time=time)], 0)
        first = await some.conversations(limit=2)
        assert [each.conversation for each in first] == ["c", "b"]
        rest = await some.conversations(before=first[-1], newest=("toy",))
        assert [(each.conversation, each.newest["toy"].time) for each in rest] == [("a", 0)]
        assert awake(some) == 0


@inside
async def test_views_and_redaction_are_those_of_the_hub() -> None:
    async with hub(MemoryStore(), redact=lambda node: None) as some, some.use("c") as session:
        await session.append(toy(1))
        assert len(session.view().nodes) == 0


@pytest.mark.parametrize("options", [{"page_events": 0}, {"conversations_max": 0}, {"idle_ms": -1}])
def test_a_limit_that_is_none_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        hub(MemoryStore(), **options)


@inside
async def test_a_look_at_a_session_wakes_nobody() -> None:
    async with hub(MemoryStore()) as some:
        assert some.awake("c") is None
        async with some.use("c") as session:
            assert some.awake("c") is session
        assert some.statistics()["woken"] == 1
