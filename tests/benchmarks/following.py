"""Many follow one conversation: what it costs to send them all the same Patches.

Not here: sizes and limits (`goals`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from assembler import codec
from assembler.engine.assembler import Assembler
from assembler.live import Publisher, Subscription
from tests.benchmarks.measure import Prepare, Run

__all__ = ["Frame", "encoded_once", "followed", "frames", "handed"]

Frame = Callable[[Any], object]
"""What comes between two flushes: operations of an Assembler, or of a Publisher."""


def frames(call: str, items: Sequence[Any], size: int) -> list[Frame]:
    """`items`, so many at a time, each given to the operation `call`."""

    def frame(some: Sequence[Any]) -> Frame:
        def do(target: Any) -> None:
            operation = getattr(target, call)
            for item in some:
                operation(item)

        return do

    return [frame(items[at : at + size]) for at in range(0, len(items), size)]


def encoded_once(make: Callable[[], Assembler], changes: Iterable[Frame]) -> Prepare:
    """Every Patch made and encoded, and sent to nobody."""

    def prepare() -> Run:
        assembler = make()
        assembler.flush()

        def run() -> None:
            for change in changes:
                change(assembler)
                codec.encode(assembler.flush()["chat"])

        return run

    return prepare


def handed(make: Callable[[], Assembler], changes: Iterable[Frame], followers: int) -> Prepare:
    """Each Patch queued for all, taken and encoded for each, without a task and its switches."""

    def take(view: Subscription) -> bytes:
        try:
            view.__anext__().send(None)  # type: ignore[attr-defined]
        except StopIteration as taken:
            return taken.value.encoded
        raise AssertionError

    async def join(live: Publisher) -> list[Subscription]:
        return [await live.subscribe().__aenter__() for _ in range(followers)]

    def prepare() -> Run:
        live = Publisher(make())
        views = asyncio.run(join(live))

        def run() -> None:
            for change in changes:
                change(live)
                live.flush()
                for view in views:
                    take(view)

        return run

    return prepare


def followed(
    make: Callable[[], Assembler], changes: Iterable[Frame], followers: int, stalled: int = 0
) -> Prepare:
    """`followers` tasks take the bytes of every Patch as it comes; some never look."""

    async def follow(live: Publisher) -> None:
        async with live.subscribe() as view:
            async for patch in view:
                assert patch.encoded

    async def stall(live: Publisher) -> Subscription:
        return await live.subscribe().__aenter__()

    async def settle(live: Publisher, tasks: list[asyncio.Task[None]]) -> list[Subscription]:
        tasks += [asyncio.create_task(follow(live)) for _ in range(followers)]
        await asyncio.sleep(0)
        return [await stall(live) for _ in range(stalled)]

    async def drive(live: Publisher, tasks: list[asyncio.Task[None]]) -> None:
        for change in changes:
            change(live)
            live.flush()
            await asyncio.sleep(0)
        live.close()
        await asyncio.gather(*tasks)

    def prepare() -> Run:
        runner, tasks = asyncio.Runner(), list[asyncio.Task[None]]()
        live = Publisher(make())
        stuck = runner.run(settle(live, tasks))

        def run() -> None:
            with runner:
                runner.run(drive(live, tasks))
            assert all(view.snapshot for view in stuck)

        return run

    return prepare
