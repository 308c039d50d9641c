"""One process of several that work on the same conversations, for `test_processes.py`.

    python -m tests.live.worker DSN SCHEMA NATS_URL STREAM SEED

It says in JSON lines what it does, and is told by lines what to do: `quiet` (begin no more turns),
`show` (say what every conversation shows, once all is over). It may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

from assembler import ConflictError, apply
from assembler.codec import encode
from assembler.live import LiveError
from assembler.live.nats import NatsLimits, NatsLive
from assembler.stores import PostgresStore
from definitions import Conversation, Conversations, catalog
from tests.definitions.backend.support import call, message, text

T = TypeVar("T")
NAMES = [f"conversation {at}/*" for at in range(20)]
SIDE_BY_SIDE = 3


class BrokenError(Exception):
    """The model's answer broke off."""


def say(**told: Any) -> None:
    print(json.dumps(told), flush=True)


class Watcher:
    """A client that follows one conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.shown: dict[str, Any] = {}
        self.task = asyncio.ensure_future(self._follow())

    async def _follow(self) -> None:
        async with self.conversation.subscribe("chat") as view:
            self.shown = json.loads(view.snapshot.encoded)
            async for patch in view:
                self.shown = apply(self.shown, json.loads(patch.encoded))

    @property
    def viewed(self) -> dict[str, Any]:
        told = json.loads(encode(self.conversation.session.view("chat").snapshot()))
        return {"nodes": told["nodes"], "live": told["live"]}

    async def over(self, store: PostgresStore) -> dict[str, Any]:
        """What it shows when nothing goes on any more, and the client has seen all of it."""
        session = self.conversation.session
        while (
            session.open_now is not None
            or session.live is not False
            or session.last != await store.last(session.conversation)
            or self.viewed != {"nodes": self.shown["nodes"], "live": self.shown["live"]}
        ):
            if self.task.done():
                self.task.result()
            await asyncio.sleep(0.02)
        return self.viewed


class Worker:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - the same ones each time
        self.is_quiet = False
        self.watchers: dict[str, Watcher] = {}

    async def work(self) -> None:
        while not self.is_quiet:
            conversation = self.watchers[self.chance.choice(NAMES)].conversation
            turn = asyncio.ensure_future(self.turn(conversation))
            if self.chance.random() < 0.2:
                await asyncio.wait([turn], timeout=self.chance.uniform(0, 0.05))
                turn.cancel()
            await asyncio.wait([turn])
            if turn.cancelled():
                say(turn="cancelled")
            elif isinstance(turn.exception(), ConflictError):
                say(turn="told")  # somebody else has it
                await asyncio.sleep(0.01)
            elif turn.exception() is not None:
                say(turn=repr(turn.exception()))
            else:
                say(turn="completed")

    async def turn(self, conversation: Conversation) -> None:
        async with conversation.turn("hello") as turn:
            while not turn.done:
                async with turn.step() as step:
                    while not step.answered:
                        try:
                            async with step.attempt(provider="anthropic", model="small") as attempt:
                                await self.answer(attempt)
                        except BrokenError as lost:
                            say(retry=1)
                            await step.retry(lost)
                    for ready in step.calls:
                        async with step.dispatch(ready) as tool:
                            tool.result("seen")

    async def answer(self, attempt: Any) -> None:
        chance = self.chance
        blocks = [text(f"{word} ", at) for at, word in enumerate(["well", "so", "then"])]
        if chance.random() < 0.3:
            blocks.append(call(f"call_{uuid4().hex}", index=3, path="a"))
        for chunk in message(*blocks):
            attempt.feed(chunk)
            if chance.random() < 0.5:
                await asyncio.sleep(chance.uniform(0, 0.01))
            if chance.random() < 0.02:
                raise BrokenError


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask again while NATS is down: the tests stop it at any moment."""
    while True:
        try:
            return await ask()
        except LiveError:
            await asyncio.sleep(0.05)


async def main(dsn: str, schema: str, url: str, stream: str, seed: str) -> None:
    worker = Worker(int(seed))
    live = NatsLive(url, name=stream, limits=NatsLimits(lease_ms=3_000))
    await patiently(live.open)
    async with (
        PostgresStore(dsn, schema=schema) as store,
        live,
        Conversations(store, catalog(), live=live, history=False) as conversations,
    ):
        for name in NAMES:
            opened = await patiently(partial(conversations.open, name, page=10_000))
            worker.watchers[name] = Watcher(opened)
        say(ready=True)
        working = [asyncio.ensure_future(worker.work()) for _ in range(SIDE_BY_SIDE)]
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
        )
        await lines.readline()
        worker.is_quiet = True
        await asyncio.gather(*working)
        say(quiet=True)
        await lines.readline()
        views = {name: await each.over(store) for name, each in worker.watchers.items()}
        anomalies: Counter[str] = Counter()
        for each in worker.watchers.values():
            counted = each.conversation.session.statistics()["assembler"]["anomalies"]
            anomalies.update(counted)
        say(views=views, live=live.statistics(), anomalies=anomalies)
        await lines.readline()
        for each in worker.watchers.values():
            each.task.cancel()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(main(*sys.argv[1:]))
