"""Sessions that are told of each other by a real NATS server."""

from __future__ import annotations

from collections.abc import Generator
from itertools import count

import pytest

pytest.importorskip("nats")

from assembler.live import LiveError
from assembler.live.nats import NatsLimits, NatsLive
from assembler.stores import MemoryStore
from tests.live.test_session import END, STEP, TURN, inside, said
from tests.live.test_sharing import sessions, until
from tests.nats_server import NatsServer, nats_server

SERVER: list[NatsServer] = []
NAMES = count(1)


@pytest.fixture(scope="module", autouse=True)
def _server() -> Generator[None]:
    with nats_server() as server:
        SERVER.append(server)
        yield
    SERVER.clear()


def processes(number: int) -> list[NatsLive]:
    """So many processes that share a stream of their own."""
    name, limits = f"test-{next(NAMES)}", NatsLimits(lease_ms=600)
    return [NatsLive(SERVER[0].url, name=name, limits=limits) for _ in range(number)]


@inside
async def test_what_one_process_emits_the_others_see_and_who_joins_sees_it_whole() -> None:
    first, second, third = processes(3)
    store = MemoryStore()
    async with first, second, third, sessions(first, second, store=store) as (one, two):
        with one.working():
            await one.append(TURN, STEP)
            lost = one.attempt(1, 1)
            lost.emit("toy", {"id": "lost"})
            await until(lambda: "lost" in said(two))
            lost.settle("failed")
            attempt = one.attempt(1, 1)
            attempt.emit("toy", {"id": "x", "v": 1})
            await until(lambda: said(two) == {"x": [1]})
            attempt.settle()
            async with sessions(third, store=store) as (late,):
                assert said(late) == {"x": [1]}
                assert late.live is True
                await one.append(END)
                await until(lambda: said(late) == said(two) == {})


@inside
async def test_when_a_process_dies_it_is_withdrawn() -> None:
    first, second = processes(2)
    async with second, sessions(first, second) as (one, two):
        with one.working():
            await one.append(TURN, STEP)
            one.attempt(1, 1).emit("toy", {"id": "x", "v": 1})
            await until(lambda: said(two) == {"x": [1]})
            await first.die()
            await until(lambda: said(two) == {} and two.orphan is not None)


@inside
async def test_a_server_that_cannot_be_reached_is_one_clear_error() -> None:
    live = NatsLive("nats://user:secret@127.0.0.1:1", limits=NatsLimits(connect_ms=300))
    with pytest.raises(LiveError, match=r"NATS at 127\.0\.0\.1:1 cannot be used") as told:
        await live.open()
    assert "secret" not in str(told.value)


@inside
async def test_a_server_that_was_away_loses_and_repeats_nothing() -> None:
    first, second = processes(2)
    server = SERVER[0]
    async with first, second, sessions(first, second) as (one, two):
        with one.working():
            await one.append(TURN, STEP)
            attempt = one.attempt(1, 1)
            attempt.emit("toy", {"id": "x", "v": 1})
            await until(lambda: said(two) == {"x": [1]})
            server.stop()
            await until(lambda: not (first.is_connected or second.is_connected))
            attempt.emit("toy", {"id": "x", "v": 2})
            server.start()
            await until(lambda: said(two) == {"x": [1, 2]})
            attempt.emit("toy", {"id": "x", "v": 3})
            await until(lambda: said(two) == {"x": [1, 2, 3]})
            assert two.live is True
            assert two.orphan is None


@inside
async def test_nothing_is_held_once_all_is_closed() -> None:
    first, second = processes(2)
    async with first, second, sessions(first, second) as (one, two):
        await one.append(TURN, STEP)
        one.attempt(1, 1).emit("toy", {"id": "x", "v": 1})
        await until(lambda: said(two) == {"x": [1]})
        await one.append(END)
        await first._outbox.emptied()
        stream = await first._jetstream.stream_info(first._name, subjects_filter="*.*.a.>")
        assert not stream.state.subjects
