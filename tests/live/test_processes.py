"""Several processes over PostgreSQL and NATS, killed while they work: all show the same.

`--turns N` sets how many turns they begin together.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import Counter
from secrets import token_hex
from typing import Any

import pytest

from assembler import Assembler, ConflictError, Draft
from assembler.codec import encode
from assembler.live import Session
from assembler.live.nats import NatsLive
from assembler.stores import PostgresStore
from assembler.testing import Oracle, compare
from definitions import catalog
from tests.definitions.backend.support import check_log, inside
from tests.live.desk import toy, toys
from tests.live.test_session import TURN
from tests.live.worker import NAMES
from tests.nats_server import NatsServer, nats_server
from tests.postgres_server import PostgresServer

PROCESSES = 4
TURNS_A_KILL = 25
HANGS_S = 300


class Process:
    """A worker, and what it has said."""

    def __init__(self, process: asyncio.subprocess.Process, counts: Counter[str]) -> None:
        self.process = process
        self.counts = counts
        self.said: dict[str, Any] = {}
        self.reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            if not line.endswith(b"\n"):
                return  # it was killed while it spoke
            told = json.loads(line)
            self.said |= told
            if "turn" in told:
                self.counts[f"turns {told['turn']}"] += 1
                self.counts["turns"] += told["turn"] != "told"
            self.counts["retries"] += "retry" in told

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")

    async def until(self, word: str) -> Any:
        while word not in self.said:
            assert not self.reading.done(), "a worker has ended by itself"
            await asyncio.sleep(0.01)
        return self.said

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()
        await self.reading


class Processes:
    """Some workers over one log and one stream."""

    def __init__(self, postgres: PostgresServer, nats: NatsServer) -> None:
        self.schema = f"s{token_hex(8)}"
        self.where = [postgres.dsn, self.schema, nats.url, self.schema]
        self.started = 0
        self.counts: Counter[str] = Counter()
        self.running: list[Process] = []

    async def start(self) -> None:
        self.started += 1
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.live.worker", *self.where, str(self.started)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 28,
        )
        self.running.append(Process(process, self.counts))

    async def reach(self, turns: int) -> None:
        while self.counts["turns"] < turns:
            assert not any(each.reading.done() for each in self.running), "one has ended"
            await asyncio.sleep(0.01)

    async def finish(self) -> list[dict[str, Any]]:
        """What each of them shows when all have done what they began."""
        for word, said in (("quiet", "quiet"), ("show", "views")):
            for each in self.running:
                each.tell(word)
            told = [await each.until(said) for each in self.running]
        for each in self.running:
            each.tell("end")
            await each.process.wait()
        return told

    async def end(self) -> None:
        for each in self.running:
            if each.process.returncode is None:
                await each.kill()


def test_four_processes_and_those_who_follow_show_the_same_whoever_is_killed(
    postgres: PostgresServer, pytestconfig: pytest.Config
) -> None:
    turns = pytestconfig.getoption("turns")

    async def test(nats: NatsServer) -> None:
        chance = random.Random(11)  # noqa: S311 - who is killed when, the same each time
        work = Processes(postgres, nats)
        try:
            for _ in range(PROCESSES):
                await work.start()
            for each in work.running:
                await each.until("turn")
            for kill in range(1, turns // TURNS_A_KILL):
                await work.reach(kill * TURNS_A_KILL + chance.randrange(10))
                await work.running.pop(chance.randrange(PROCESSES)).kill()
                work.counts["kills"] += 1
                await work.start()
                if kill % 3 == 2:
                    nats.stop()
                    await work.reach(work.counts["turns"] + 5)  # they go on without it
                    nats.start()
                    work.counts["restarts of NATS"] += 1
            await work.reach(turns)
            told = await work.finish()
            await check(work, told)
        finally:
            await work.end()

    with nats_server() as nats:
        asyncio.run(asyncio.wait_for(test(nats), HANGS_S))


async def check(work: Processes, told: list[dict[str, Any]]) -> None:
    counts, definitions = work.counts, list(catalog())
    async with PostgresStore(work.where[0], schema=work.schema) as store:
        for name in NAMES:
            events = await store.read(name, 0)
            counts["events"] += len(events)
            check_log(events)
            ended = [each.data["turn"] for each in events if each.type == "turn/end"]
            assert len(ended) == len(set(ended)), "a turn is closed once"
            counts["interrupted"] += sum(
                each.type == "turn/end" and each.data["reason"] == "interrupted" for each in events
            )
            fresh, oracle = Assembler(definitions), Oracle(definitions)
            for each in (fresh, oracle):
                each.load(events)
                each.liveness(False)
            fresh.flush()
            compare(fresh, oracle, definitions=definitions)
            shown = json.loads(encode(fresh.view("chat").snapshot()))
            for process in told:
                assert process["views"][name]["nodes"] == shown["nodes"]
    live: Counter[str] = Counter()
    for process in told:
        live.update(process["live"])
        counts.update({f"anomaly {name}": n for name, n in process["anomalies"].items()})
    print(f"\n{dict(counts)}\nlive, of the last processes: {dict(live)}")
    assert not [name for name in counts if name.startswith("turns ") and "(" in name], counts
    assert counts["interrupted"] <= counts["kills"] * 3, "who lives is not taken for dead"


@inside
async def test_two_processes_that_write_at_once_both_succeed_or_one_is_told(
    postgres: PostgresServer, nats: NatsServer
) -> None:
    schema = f"s{token_hex(8)}"
    async with (
        PostgresStore(postgres.dsn, schema=schema) as store,
        PostgresStore(postgres.dsn, schema=schema) as other,
        NatsLive(nats.url, name=schema) as live,
        NatsLive(nats.url, name=schema) as beside,
        Session(store, "c", Assembler(toys()), live=live) as one,
        Session(other, "c", Assembler(toys()), live=beside) as two,
    ):
        await one.append(TURN)
        tried = await asyncio.gather(
            *(some.append(toy(at)) for at in range(20) for some in (one, two)),
            return_exceptions=True,
        )
        told = [each for each in tried if isinstance(each, BaseException)]
        assert all(type(each) is ConflictError for each in told)
        again = [some.append(toy(at), retry=True) for at in range(20) for some in (one, two)]
        await asyncio.gather(*again)
        await one.append(Draft("turn/end", {"turn": 1}), retry=True)
        await two.catch_up()
        log = await store.read("c", 0)
        assert len(log) == 2 + 40 - len(told) + 40
        assert one.view().nodes == two.view().nodes
