"""Many readers of many live conversations in one process, slow and vanishing ones among them."""

from __future__ import annotations

import asyncio
import itertools
import resource
import socket
import tracemalloc
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import pytest

from assembler import Delta, Draft
from assembler.codec import encode
from assembler.live import Session
from assembler.server import ServerLimits
from tests.server.support import Reader, desk, inside, listening, served, turn

PIECES = 160
WORDS = "some words of an answer that grows while everybody looks on, " * 15


@contextmanager
def many_files(readers: int) -> Iterator[None]:
    """Room for both ends of every connection, where the machine allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * readers + 200
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"needs {wanted} open files, and {hard} are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Watcher:
    """One connection that reads when it is allowed to, and applies what it reads."""

    def __init__(self, port: int, conversation: str, kind: str, go: asyncio.Event) -> None:
        self.port = port
        self.conversation = conversation
        self.kind = kind
        self.go = go
        self.told = Reader(None, "")  # type: ignore[arg-type]
        self.connected = asyncio.Event()

    async def watch(self) -> None:
        made = socket.socket()
        if self.kind == "slow":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", self.port))
        incoming, outgoing = await asyncio.open_connection(sock=made, limit=1 << 12)
        try:
            path = f"/conversations/{self.conversation}/stream"
            outgoing.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
            assert b" 200 " in await incoming.readuntil(b"\r\n\r\n")
            self.connected.set()
            await self._read(incoming)
        finally:
            outgoing.close()

    async def _read(self, incoming: asyncio.StreamReader) -> None:
        rest = b""
        while size := int((await incoming.readline()).strip() or b"0", 16):
            part = (await incoming.readexactly(size + 2))[:-2]
            *whole, rest = (rest + part).split(b"\n\n")
            for frame in whole:
                self.told.take(frame.decode())
            if self.kind == "vanishing" and self.told.patches > 3:
                return
            if self.kind == "slow":
                await self.go.wait()


def piece(ordinal: int, text: str = WORDS) -> Delta:
    data = {"block": 0, "text": f"{ordinal} {text}"}
    return Delta("a1", 1, 1, "text", data, ordinal=ordinal, after=2, index=ordinal + 1)


PER_CONVERSATION = 10
KINDS = ("steady", "steady", "steady", "slow", "vanishing")


@pytest.mark.parametrize("conversations", [4, pytest.param(50, marks=pytest.mark.deep)])
def test_everybody_who_stays_ends_with_what_is_shown(conversations: int) -> None:
    readers = PER_CONVERSATION * conversations
    limits = ServerLimits(heartbeat_ms=20_000, log_bytes_max=100_000)

    @inside
    async def test() -> None:
        go = asyncio.Event()
        async with desk(limits=limits) as some, AsyncExitStack() as stack:
            sessions: list[Session] = []
            for number in range(conversations):
                step = Draft("step/start", {"turn": 1, "step": 1})
                await some.store.append(f"c{number}", [turn(1), step], 0)
                sessions.append(await stack.enter_async_context(some.session(f"c{number}")))
            port = await stack.enter_async_context(listening(some.app, buffer=4_096))
            watchers = [
                Watcher(port, f"c{at % conversations}", KINDS[at // conversations % 5], go)
                for at in range(readers)
            ]
            watching = [asyncio.ensure_future(each.watch()) for each in watchers]
            for each in watchers:
                await each.connected.wait()
            assert some.app.statistics()["streams"] == readers
            assert some.app.statistics()["rooms"] == conversations
            await write(sessions)
            ends = [session.view().snapshot().to_json() for session in sessions]
            staying = [each for each in watchers if each.kind != "vanishing"]
            await caught_up([each for each in staying if each.kind == "steady"], ends)
            told = [session.publisher.statistics()["views"]["chat"] for session in sessions]
            slow = sum(each.kind == "slow" for each in watchers)
            assert sum(counts["behind"] for counts in told) == slow
            assert sum(counts["queued"] for counts in told) <= 64 * slow
            go.set()
            await caught_up(staying, ends)
            some.app.end_streams()
            await asyncio.gather(*watching)
            for each in staying:
                expected = ends[int(each.conversation[1:])]
                assert each.told.reason == "closed"
                assert each.told.shown["nodes"] == expected["nodes"], each.kind
            assert sum(each.told.snapshots for each in watchers) == readers
            assert some.app.statistics()["streams"] == 0

    with many_files(readers):
        test()


async def caught_up(watchers: list[Watcher], ends: list[Any]) -> None:
    for each in watchers:
        end = ends[int(each.conversation[1:])]["revision"]
        while each.told.shown is None or each.told.shown["revision"] < end:
            await asyncio.sleep(0)


async def write(sessions: list[Session]) -> None:
    for ordinal in range(PIECES):
        for session in sessions:
            session.receive_delta(piece(ordinal))
            session.publisher.flush()
        await asyncio.sleep(0)


def test_what_is_sent_for_a_delta_does_not_grow_with_the_text_so_far() -> None:
    @inside
    async def test() -> None:
        async with desk() as some:
            step = Draft("step/start", {"turn": 1, "step": 1})
            await some.store.append("c", [turn(1), step], 0)
            async with some.session("c") as session, served(some.app) as client:
                reader = Reader(client, "/conversations/c/stream")
                sizes: list[int] = []
                whole = 0
                async with reader.connected() as told:
                    await reader.read(told)
                    for ordinal in range(200):
                        before = reader.bytes
                        session.receive_delta(piece(ordinal))
                        session.publisher.flush()
                        await reader.read(told)
                        sizes.append(reader.bytes - before)
                        whole += sum(len(encode(node)) for node in session.view().nodes)
            early, late = sum(sizes[10:60]), sum(sizes[150:200])
            assert late < early * 1.05 + 50 * 4  # the numbers in it have more digits
            assert sum(sizes) * 10 < whole
            print(f"{sum(sizes) / 200:.0f} bytes a delta; whole Nodes: {whole / 200:.0f}")

    test()


@pytest.mark.deep
def test_readers_that_come_and_go_for_long_leave_no_memory_behind() -> None:
    index = itertools.count(1)

    async def rounds(port: int, session: Session, first: int, count: int) -> None:
        for number in range(first, first + count):
            watchers = [Watcher(port, "c", "vanishing", asyncio.Event()) for _ in range(10)]
            watching = [asyncio.ensure_future(each.watch()) for each in watchers]
            ordinal = itertools.count()
            while not all(task.done() for task in watching):
                data = {"block": 0, "text": "word "}
                name, place = f"a{number}", (next(ordinal), 2, next(index))
                session.receive_delta(Delta(name, 1, 1, "text", data, number, *place))
                session.publisher.flush()
                await asyncio.sleep(0)
            session.receive_settlement(f"a{number}", "abandoned")

    @inside
    async def test() -> None:
        limits = ServerLimits(log_bytes_max=50_000)
        async with desk(limits=limits) as some:
            step = Draft("step/start", {"turn": 1, "step": 1})
            await some.store.append("c", [turn(1), step], 0)
            async with some.session("c") as session, listening(some.app) as port:
                await rounds(port, session, 1, 10)
                tracemalloc.start()
                try:
                    await rounds(port, session, 11, 20)
                    first = tracemalloc.get_traced_memory()[0]
                    await rounds(port, session, 31, 20)
                    second = tracemalloc.get_traced_memory()[0]
                finally:
                    tracemalloc.stop()
                print(f"{(second - first) / 20:.0f} bytes a round of ten readers")
                assert second - first < 500_000

    test()
