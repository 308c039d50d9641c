"""Events of old versions are read as the newest, at every way out; what is stored stays."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from assembler import Draft, InputError
from assembler.stores import MemoryStore, SQLiteStore, StoreError

UPCASTERS: Any = {"a": [lambda data: {"two": data["one"]}, lambda data: {"three": data["two"]}]}


def test_every_way_out_gives_the_newest_version(tmp_path: Path) -> None:
    async def run() -> None:
        async with SQLiteStore(tmp_path / "c.db", upcasters=UPCASTERS) as store:
            batch = [Draft("a", {"one": 1}, id="i"), Draft("a", {"two": 1}, v=2), Draft("b")]
            log = await store.append("c", batch, 0)
            assert [(event.v, event.data) for event in log[:2]] == [(3, {"three": 1})] * 2
            assert log[2].v == 1
            assert await store.append("c", batch[:1], 0) == log[:1]
            assert await store.read("c") == log
            assert (await store.page("c")).events == tuple(log)
            assert await store.newest("c", ["a"]) == {"a": log[1]}
            assert (await store.conversations(newest=["a"]))[0].newest == {"a": log[1]}
            async with store.subscribe("c") as feed:
                assert [await anext(feed) for _ in log] == log
        with SQLiteStore(tmp_path / "c.db").sync as plain:
            assert [event.v for event in plain.read("c")] == [1, 2, 1]

    asyncio.run(run())


def test_an_upcaster_that_raises_is_told_without_contents() -> None:
    store = MemoryStore(upcasters=UPCASTERS).sync
    with pytest.raises(StoreError, match="version 1: an upcaster raised KeyError") as told:
        store.append("c", [Draft("a", {"secret": 1})], 0)
    assert "secret" not in str(told.value)
    assert store.last("c") == 0


@pytest.mark.parametrize("wrong", [[], {"a": "text"}, {"a": [1]}, {"": []}], ids=str)
def test_what_is_no_chain_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="upcasters"):
        MemoryStore(upcasters=wrong)
