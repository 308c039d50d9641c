"""Streams, through uvicorn on loopback: whoever follows, however often they are cut, sees all."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from assembler import Delta, Draft, InputError, Patch
from assembler.engine.patches import TextOp
from assembler.live import Session, SharedPatch
from assembler.server import ServerLimits, StoreSource, create_app
from assembler.server.rooms import PatchLog
from assembler.server.streams import EventStream
from assembler.stores import MemoryStore
from definitions import Conversations, catalog
from tests.server.support import Desk, Reader, desk, inside, listening, said, served, turn

PATH = "/conversations/c/stream"


def shown(session: Session) -> Any:
    return session.view().snapshot().to_json()


async def begin(some: Desk) -> None:
    await some.store.append("c", [turn(1), Draft("step/start", {"turn": 1, "step": 1})], 0)


def grow(session: Session, ordinal: int) -> None:
    data = {"block": 0, "text": f"piece {ordinal} "}
    session.receive_delta(
        Delta("a1", 1, 1, "text", data, ordinal=ordinal, after=2, index=ordinal + 1)
    )


def same(reader: Reader, session: Session) -> bool:
    mine, theirs = dict(reader.shown), shown(session)
    return mine.pop("revision") <= theirs.pop("revision") and mine == theirs


@asynccontextmanager
async def writing(**options: Any) -> AsyncGenerator[tuple[Desk, Session, Any]]:
    async with desk(**options) as some:
        await begin(some)
        async with some.session() as session, served(some.app) as client:
            yield some, session, client


@inside
async def test_a_snapshot_then_patches_and_growing_text_is_appended() -> None:
    async with writing() as (_, session, client):
        reader = Reader(client, PATH)
        async with reader.connected() as told:
            await reader.read(told)
            assert reader.snapshots == 1
            for ordinal in range(5):
                grow(session, ordinal)
                session.publisher.flush()
                await reader.read(told)
            assert same(reader, session)
            assert reader.patches == 5


@inside
async def test_cut_at_every_patch_and_resumed_it_ends_with_the_same_view() -> None:
    async with writing() as (_, session, client):
        reader = Reader(client, PATH)
        await reader.until(lambda _: True)
        for ordinal in range(12):
            # What happens while nobody is connected, and what happens while somebody is.
            grow(session, 2 * ordinal)
            session.publisher.flush()
            grow(session, 2 * ordinal + 1)
            session.publisher.flush()
            async with reader.connected() as told:
                await reader.read(told)  # the first of two that were missed, and cut again
            async with reader.connected() as told:
                await reader.read(told)
            assert same(reader, session)
        assert reader.snapshots == 1
        assert reader.patches == 24


@inside
async def test_what_is_shown_only_because_a_reader_comes_back_is_no_gap() -> None:
    async with writing(hub={"frame_ms": 1_000_000}) as (_, session, client):
        reader = Reader(client, PATH)
        await reader.until(lambda _: True)
        grow(session, 0)
        session.publisher.flush()
        grow(session, 1)  # waits for its frame, or for the next reader
        async with reader.connected() as told:
            await reader.read(told, 2)
        assert (reader.snapshots, reader.patches) == (1, 2)
        assert same(reader, session)


@inside
async def test_a_gap_that_is_too_old_is_closed_by_a_snapshot() -> None:
    limits = ServerLimits(log_patches_max=3, linger_ms=10_000)
    async with writing(limits=limits) as (_, session, client):
        reader = Reader(client, PATH)
        await reader.until(lambda _: True)
        for ordinal in range(5):
            grow(session, ordinal)
            session.publisher.flush()
            await asyncio.sleep(0)
        async with reader.connected() as told:
            await reader.read(told)
        assert (reader.snapshots, reader.patches) == (2, 0)
        assert same(reader, session)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        ".",
        "0.0",
        "a.b.c",
        "\u00e9.1",
        "deadbeef.1",
        "1" * 2000,
        "abc.99999999999999999999",
    ],
)
def test_a_cursor_that_means_nothing_gives_a_snapshot(cursor: str) -> None:
    @inside
    async def test() -> None:
        async with writing() as (_, _, client):
            headers = {"last-event-id": cursor.encode()}
            async with client.stream("GET", PATH, headers=headers) as answer:
                assert answer.status_code == 200
                reader = Reader(client, PATH)
                async with aclosing(reader._frames(answer)) as told:
                    await reader.read(told)
            assert (reader.snapshots, reader.patches) == (1, 0)

    test()


@inside
async def test_a_cursor_from_the_future_gives_a_snapshot() -> None:
    async with writing() as (_, _, client):
        reader = Reader(client, PATH)
        await reader.until(lambda _: True)
        epoch, _, _ = (reader.cursor or "").partition(".")
        reader.cursor = f"{epoch}.999"
        async with reader.connected() as told:
            await reader.read(told)
        assert reader.snapshots == 2


@inside
async def test_a_stream_goes_on_from_the_cursor_of_a_snapshot() -> None:
    async with writing() as (_, session, client):
        answer = (await client.get("/conversations/c")).json()
        grow(session, 0)
        session.publisher.flush()
        reader = Reader(client, f"{PATH}?cursor={answer['cursor']}")
        reader.shown = answer["snapshot"]
        async with reader.connected() as told:
            await reader.read(told)
        assert (reader.snapshots, reader.patches) == (0, 1)
        assert same(reader, session)


@inside
async def test_older_rows_come_through_the_stream() -> None:
    async with desk(hub={"page_events": 2}) as some:
        await some.store.append("c", [turn(1), *(said(f"m{n}") for n in range(5))], 0)
        async with some.session() as session, served(some.app) as client:
            reader = Reader(client, PATH)
            async with reader.connected() as told:
                await reader.read(told)
                assert len(reader.shown["nodes"]) == 2
                assert reader.shown["window"]["has_more"]
                assert (await client.post("/conversations/c/older")).json() == {"has_more": False}
                while reader.shown["window"]["has_more"]:
                    await reader.read(told)
            assert same(reader, session)
            assert len(reader.shown["nodes"]) == 5


@inside
async def test_a_stream_with_nothing_to_say_shows_that_it_is_there() -> None:
    async with writing(limits=ServerLimits(heartbeat_ms=1)) as (_, session, client):
        reader = Reader(client, PATH)
        async with reader.connected() as told:
            await reader.read(told, 4)
            assert reader.comments == 3
            grow(session, 0)
            while not reader.patches:
                await reader.read(told)
        assert same(reader, session)


@inside
async def test_a_server_that_ends_says_so_to_everybody() -> None:
    async with desk() as some:
        await begin(some)
        async with served(some.app) as client:
            readers = [Reader(client, PATH) for _ in range(3)]

            async def follow(reader: Reader) -> None:
                async with reader.connected() as told:
                    async for _ in told:
                        pass

            following = [asyncio.ensure_future(follow(reader)) for reader in readers]
            while some.app.statistics()["streams"] < 3:
                await asyncio.sleep(0)
            some.app.end_streams()
            await asyncio.gather(*following)
            assert [reader.reason for reader in readers] == ["closed"] * 3
            assert (await client.get(PATH)).status_code == 503


@inside
async def test_a_hub_that_closes_ends_its_streams() -> None:
    async with desk() as some:
        await begin(some)
        async with served(some.app) as client:
            reader = Reader(client, PATH)
            async with reader.connected() as told:
                await reader.read(told)
                await some.hub.close()
                async for _ in told:
                    pass
            assert reader.reason == "closed"


@inside
async def test_a_conversation_that_was_closed_is_opened_anew_for_the_next_reader() -> None:
    async with (
        MemoryStore() as store,
        Conversations(store, catalog()) as conversations,
        create_app(StoreSource(conversations)) as app,
        served(app) as client,
    ):
        await store.append("c", [turn(1), said("m1")], 0)
        reader = Reader(client, PATH)
        async with reader.connected() as told:
            await reader.read(told)
            await conversations.close("c")
            async for _ in told:
                pass
        assert reader.reason == "closed"
        async with reader.connected() as told:
            await reader.read(told)
        assert (reader.snapshots, reader.patches) == (2, 0)


@inside
async def test_more_streams_than_may_be_open_are_refused() -> None:
    async with writing(limits=ServerLimits(streams_max=1)) as (_, _, client):
        reader = Reader(client, PATH)
        async with reader.connected() as told:
            await reader.read(told)
            assert (await client.get(PATH)).status_code == 503


@inside
async def test_whoever_vanishes_leaves_nothing_behind() -> None:
    async with writing() as (some, session, client):
        for _ in range(5):
            reader = Reader(client, PATH)
            async with reader.connected() as told:
                await reader.read(told)
        while some.app.statistics()["streams"]:
            await asyncio.sleep(0)
        counts = session.statistics()["publisher"]["views"]["chat"]
        assert counts["subscribers"] == 1  # the log


@inside
async def test_a_view_that_there_is_not_is_refused_before_the_stream_begins() -> None:
    async with writing() as (_, _, client):
        answer = await client.get(f"{PATH}?view=nothing")
        assert answer.status_code == 400
        assert "chat" in answer.json()["error"]["message"]


# Protocols


@inside
async def test_a_client_of_a_protocol_is_sent_its_frames() -> None:
    async with writing() as (_, session, client):
        grow(session, 0)
        async with client.stream("GET", "/conversations/c/protocols/acp") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            told: list[Any] = []
            async with aclosing(answer.aiter_lines()) as lines:
                async for line in lines:
                    if line.startswith("data: "):
                        told.append(json.loads(line.removeprefix("data: ")))
                        grow(session, len(told))
                    if len(told) == 3:
                        break
        assert {frame["sessionUpdate"] for frame in told} == {"agent_message_chunk"}
        text = "".join(frame["content"]["text"] for frame in told)
        assert text == "piece 0 piece 1 piece 2 "


@inside
async def test_a_protocol_that_nobody_speaks_is_refused() -> None:
    async with writing() as (some, _, client):
        answer = await client.get("/conversations/c/protocols/nothing")
        assert answer.status_code == 404
        assert "acp" in answer.json()["error"]["message"]
        assert (await client.post("/conversations/c/protocols/acp")).status_code == 404
        assert (await client.get("/conversations/nobody/protocols/acp")).status_code == 404
        assert some.app.statistics()["streams"] == 0


@inside
async def test_what_a_backend_does_not_take_is_the_answer_and_leaves_no_stream() -> None:
    async def hears(conversation: str, protocol: str, body: dict[str, Any]) -> None:
        raise InputError(f"{conversation} {protocol} {body['text']}: expected sense")

    async with desk(source={"empty": True}, hears=hears) as some, served(some.app) as client:
        path = "/conversations/c/protocols/ag-ui"
        answer = await client.post(path, json={"text": "x"})
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == "c ag-ui x: expected sense"
        answer = await client.post(path, json={})  # its words may hold contents
        assert (answer.status_code, answer.json()["error"]["message"]) == (500, "the server failed")
        assert (await client.post(path, json=[])).status_code == 400
        assert (await client.post(path, content=b"{}")).status_code == 415
        assert some.app.statistics()["streams"] == 0


@inside
async def test_who_may_only_read_says_nothing() -> None:
    heard: list[str] = []

    async def hears(conversation: str, protocol: str, body: dict[str, Any]) -> None:
        heard.append(conversation)

    def reads(request: Any, conversation: str) -> bool:
        return bool(request.method == "GET")

    given: dict[str, Any] = {"hears": hears, "authorize": reads}
    async with desk(source={"empty": True}, **given) as some, served(some.app) as client:
        answer = await client.post("/conversations/c/protocols/ai-sdk", json={})
        assert (answer.status_code, heard) == (404, [])


# Slow readers


@inside
async def test_a_reader_that_stops_gets_one_patch_for_many_when_it_reads_on() -> None:
    async with desk() as some:
        await begin(some)
        async with (
            some.session() as session,
            listening(some.app) as port,
            connected(port) as slow,
        ):
            for ordinal in range(8_000):
                session.receive_delta(
                    Delta(
                        "a1",
                        1,
                        1,
                        "text",
                        {"block": 0, "text": "x" * 1_000},
                        ordinal=ordinal,
                        after=2,
                        index=ordinal + 1,
                    )
                )
                session.publisher.flush()
                await asyncio.sleep(0)
            reader = await slow.read_until(lambda reader: same(reader, session))
            assert reader.patches < 8_000 / 2
            assert session.publisher.statistics()["merges"] >= 1


@inside
async def test_a_reader_that_takes_nothing_is_dropped_and_told_why_when_it_reads_on() -> None:
    gate = asyncio.Event()
    sent: list[bytes] = []

    async def send(message: Any) -> None:
        if len(sent) == 3:
            await gate.wait()
        sent.append(message.get("body", b""))

    async def pieces() -> AsyncGenerator[bytes, None]:
        try:
            for number in range(10):
                yield b"%d" % number
        finally:
            gate.set()  # it is let go, and now it reads on

    stream = EventStream(pieces(), ServerLimits(stall_ms_max=1), asyncio.Event())
    await stream.send(never, send, {})
    assert sent == [b"", b"retry: 1000\n\n", b"0", b'event: end\ndata: {"reason":"slow"}\n\n']


@inside
async def test_a_reader_that_never_reads_on_is_given_up() -> None:
    async def send(message: Any) -> None:
        if message["type"] != "http.response.start":
            await asyncio.Event().wait()

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"x"

    stream = EventStream(pieces(), ServerLimits(stall_ms_max=1), asyncio.Event())
    await stream.send(never, send, {})


async def never() -> Any:
    await asyncio.Event().wait()


class Wire:
    """A connection that reads when it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.incoming = reader
        self.writer = writer
        self.told = Reader(None, "")  # type: ignore[arg-type]

    async def head(self) -> None:
        await self.incoming.readuntil(b"\r\n\r\n")

    async def read_until(self, holds: Callable[[Reader], bool]) -> Reader:
        rest = b""
        while self.told.shown is None or not holds(self.told):
            size = int(await self.incoming.readline(), 16)
            part = await self.incoming.readexactly(size + 2)
            *whole, rest = (rest + part[:-2]).split(b"\n\n")
            for frame in whole:
                self.told.take(frame.decode())
        return self.told


@asynccontextmanager
async def connected(port: int) -> AsyncGenerator[Wire]:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=made, limit=1 << 12)
    writer.write(f"GET {PATH} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    wire = Wire(reader, writer)
    try:
        await wire.head()
        yield wire
    finally:
        writer.close()


@inside
async def test_a_stream_that_lasts_long_enough_ends_and_goes_on_where_it_was() -> None:
    async with writing(limits=ServerLimits(stream_ms_max=1)) as (_, session, client):
        reader = Reader(client, PATH)
        while reader.reason is None:
            async with reader.connected() as told:
                async for _ in told:
                    pass
        assert reader.reason == "closed"
        grow(session, 0)
        session.publisher.flush()
        while not reader.patches:
            async with reader.connected() as told:
                async for _ in told:
                    pass
        assert same(reader, session)


@inside
async def test_a_long_frame_is_sent_in_pieces_and_whole_even_to_who_stalls_within_it() -> None:
    long = b"id: 1\ndata: " + b"x" * 300_000 + b"\n\n"
    gate, sent = asyncio.Event(), []

    async def send(message: Any) -> None:
        if len(sent) == 4:
            await gate.wait()
        sent.append(message.get("body", b""))

    async def pieces() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield long
        finally:
            gate.set()

    await EventStream(pieces(), ServerLimits(stall_ms_max=1), asyncio.Event()).send(never, send, {})
    assert max(map(len, sent)) <= 1 << 16
    assert b"".join(sent[2:-1]) == long
    assert b"slow" in sent[-1]


# The log by itself


def test_a_log_gives_what_leads_from_one_revision_to_another_or_nothing() -> None:
    async def test() -> None:
        log = PatchLog(ServerLimits(log_patches_max=4))
        log.begin(0)
        for start, end in ((0, 1), (1, 2), (2, 5), (5, 6), (6, 7)):
            log.add(SharedPatch.of(Patch("chat", start, end)))
        assert [each.revision_to for each in log.between(2, 7) or []] == [5, 6, 7]
        assert log.between(7, 7) == []
        assert log.between(0, 7) is None  # the first is gone
        assert log.between(3, 7) is None  # within a merged one
        assert log.between(2, 4) is None
        assert log.revision(log.cursor(5)) == 5

    asyncio.run(test())


def test_a_log_is_bounded_in_bytes() -> None:
    log = PatchLog(ServerLimits(log_bytes_max=1_000))
    log.begin(0)
    for number in range(50):
        op = TextOp("k", ("a",), 0, "x" * 100)
        log.add(SharedPatch.of(Patch("chat", number, number + 1, (op,))))
    assert log.statistics()["bytes"] <= 1_000
    assert log.between(49, 50)
