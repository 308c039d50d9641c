"""What it costs to be told by another process, and what conversations cost that nobody uses.

    python -m tests.benchmarks.telling [ROUNDS] [CONVERSATIONS]

A delta that another process shows and answers by one of its own, beside a bare message over the
same NATS server that is answered likewise: medians of `ROUNDS`. Then the memory of so many idle
`CONVERSATIONS` in a Hub, without and with NATS. Not part of the goals: it needs a server.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from statistics import median, quantiles
from time import perf_counter

from nats.aio.client import Client
from nats.aio.msg import Msg

from assembler import Assembler, Draft
from assembler.live import Hub, Live, Publisher, Session
from assembler.live.nats import NatsLive
from assembler.stores import MemoryStore
from tests.benchmarks.measure import resident
from tests.live.desk import toys
from tests.nats_server import nats_server

BEGUN = [Draft("turn/start", {"turn": 1}), Draft("step/start", {"turn": 1, "step": 1})]


@asynccontextmanager
async def talking(url: str, number: int) -> AsyncGenerator[tuple[Session, Client]]:
    """One of two processes: its Session, with an attempt of that number, and a bare client."""
    client = Client()
    await client.connect(url)
    store = MemoryStore()
    await store.append("c", BEGUN, 0)
    publisher = Publisher(Assembler(toys()), frame_ms=0)
    async with NatsLive(url) as live, Session(store, "c", publisher, live=live) as session:
        yield session, client
    await client.close()


def newest(session: Session) -> dict[str, int]:
    """The last value of each toy that is shown."""
    return {node.id: node.data["v"][-1] for node in session.assembler.view("chat").nodes}


async def echo(url: str) -> None:
    """Answer every delta that is shown, and every bare message, until the other one leaves."""
    async with talking(url, 2) as (session, client):
        attempt = session.attempt(1, 1, number=0)

        async def bare(message: Msg) -> None:
            await client.publish("bare.back", message.data)

        await client.subscribe("bare.to", cb=bare)
        await client.flush()
        print("ready", flush=True)
        async with session.subscribe() as view:
            async for _ in view:
                shown = newest(session)
                if shown.get("x") == -1:
                    return
                if shown.get("x") != shown.get("y"):
                    attempt.emit("toy", {"id": "y", "v": shown["x"]})


async def told(url: str, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of each way there and back: of a delta until it is shown, and of a bare message."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.benchmarks.telling", "echo", url),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    deltas: list[float] = []
    bares: list[float] = []
    async with talking(url, 1) as (session, client), session.subscribe() as view:
        back: asyncio.Queue[Msg] = asyncio.Queue()
        await client.subscribe("bare.back", cb=back.put)
        attempt = session.attempt(1, 1, number=1)
        for at in range(rounds):
            began = perf_counter()
            await client.publish("bare.to", b"x" * 200)
            await back.get()
            bares.append(perf_counter() - began)
            began = perf_counter()
            attempt.emit("toy", {"id": "x", "v": at})
            async for _ in view:
                if newest(session).get("y") == at:
                    break
            deltas.append(perf_counter() - began)
        attempt.emit("toy", {"id": "x", "v": -1})
        await process.wait()
    return deltas, bares


async def idle(live: Live | None, conversations: int) -> tuple[float, float]:
    """KiB for each conversation that is awake and that nobody uses, and seconds for all."""
    store = MemoryStore()
    for at in range(conversations):
        await store.append(f"c{at}", BEGUN, 0)
    gc.collect()
    before, began = resident(), perf_counter()
    async with Hub(store, toys(), live=live, idle_ms=3_600_000) as hub:
        for at in range(conversations):
            async with hub.use(f"c{at}"):
                pass
        took = perf_counter() - began
        gc.collect()
        return (resident() - before) / conversations / 1024, took


async def main(rounds: int = 500, conversations: int = 10_000) -> None:
    with nats_server() as server:
        deltas, bares = await told(server.url, rounds)
        for name, times in (("a delta, shown and answered", deltas), ("a bare message", bares)):
            worst = quantiles(times, n=100)[-1]
            print(f"{name}: {median(times) * 1_000:.2f} ms, 99 of 100 {worst * 1_000:.2f} ms")
        print(f"ratio of the medians: {median(deltas) / median(bares):.1f}")
        await apart("-", conversations)
        await apart(server.url, conversations // 10)


async def apart(url: str, conversations: int) -> None:
    """`idle` in a process of its own, whose memory nobody has used before."""
    command = [sys.executable, "-m", "tests.benchmarks.telling", "idle", url, str(conversations)]
    process = await asyncio.create_subprocess_exec(*command)
    await process.wait()


async def tell_idle(url: str, conversations: str) -> None:
    if url == "-":
        kib, took = await idle(None, int(conversations))
    else:
        async with NatsLive(url, name="idle") as live:
            kib, took = await idle(live, int(conversations))
    where = "" if url == "-" else ", with NATS"
    print(f"idle{where}: {kib:.1f} KiB each, {conversations} in {took:.1f} s", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["echo"]:
        asyncio.run(echo(sys.argv[2]))
    elif sys.argv[1:2] == ["idle"]:
        asyncio.run(tell_idle(*sys.argv[2:]))
    else:
        asyncio.run(main(*map(int, sys.argv[1:])))
