"""A store that waits when a test says so, and sessions over toys.

Not here: tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeVar

from assembler import Assembler, Draft
from assembler.live import Session
from assembler.stores import MemoryStore, Store, SyncStore
from tests.engine.support import Band, Toy

__all__ = ["GatedStore", "counting", "pump", "session", "toy", "toys"]

T = TypeVar("T")


class GatedStore(MemoryStore):
    """Stops before and behind what it does, while its gates are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.before = asyncio.Event()
        self.behind = asyncio.Event()
        self.before.set()
        self.behind.set()

    async def run(self, ask: Callable[[SyncStore], T]) -> T:
        await self.before.wait()
        answer = await super().run(ask)
        await self.behind.wait()
        return answer


def toys() -> list[Any]:
    return [Toy(), Band()]


def counting(prefix: str = "a") -> Callable[[], str]:
    numbers: Iterator[int] = count(1)
    return lambda: f"{prefix}{next(numbers)}"


def session(store: Store, name: str = "c", **options: Any) -> Session:
    """Over toys, with a clock that stands at 1,000 and attempts `a1`, `a2`."""
    given: dict[str, Any] = {"now": lambda: 1_000, "names": counting(), **options}
    return Session(store, name, Assembler(toys()), **given)


def toy(v: object, id: str = "x", **fields: Any) -> Draft:
    return Draft("toy", {"id": id, "v": v}, **fields)


async def pump() -> None:
    """Let everything run that can run without news from outside."""
    for _ in range(20):
        await asyncio.sleep(0)
