"""Conversations of several processes: what one leaves open when it dies is closed by another."""

from __future__ import annotations

import asyncio

from assembler.live import MemoryLive
from assembler.stores import MemoryStore
from definitions import catalog
from definitions.backend import Conversations


def test_a_turn_whose_process_died_is_closed_once_by_those_who_are_left() -> None:
    async def inside() -> None:
        live, store, cat = MemoryLive(), MemoryStore(), list(catalog())
        dying = live.beside()
        async with (
            Conversations(store, cat, live=live) as left,
            Conversations(store, cat, live=live.beside()) as other,
            Conversations(store, cat, live=dying) as gone,
        ):
            one = await gone.open("c")
            turn = one.turn("hello")
            await turn.__aenter__()
            two = await left.open("c")
            await other.open("c")
            assert two.session.live is True
            dying.die()
            async with asyncio.timeout(20):
                while two.session.open_now is not None:
                    await asyncio.sleep(0)
            turn._core.is_open = False
        assert [each.type for each in store.sync.read("c")].count("turn/end") == 1

    asyncio.run(inside())
