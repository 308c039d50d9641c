"""One piece of code for both worlds: with an event loop, and without.

What a Session does with its store is written once, as a generator that yields what it wants to
ask the store (a plain function of it) and is sent the answer. Here is who asks: at once, or in the
store's thread while the loop goes on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

from assembler.stores import SyncStore

__all__ = ["Ask", "Steps", "drive", "drive_async"]

T = TypeVar("T")
Ask = Callable[[SyncStore], Any]
Steps = Generator[Ask, Any, T]


def drive(steps: Steps[T], store: SyncStore) -> T:
    """Do all of it now; what the store raises is raised inside."""
    try:
        ask = next(steps)
        while True:
            try:
                answer = ask(store)
            except Exception as error:
                ask = steps.throw(error)
            else:
                ask = steps.send(answer)
    except StopIteration as done:
        value: T = done.value
        return value


async def drive_async(steps: Steps[T], run: Callable[[Ask], Awaitable[Any]]) -> T:
    """The same, and wait for each answer. Cancelled, it stops where it waits."""
    try:
        ask = next(steps)
        while True:
            try:
                answer = await run(ask)
            except Exception as error:
                ask = steps.throw(error)
            else:
                ask = steps.send(answer)
    except StopIteration as done:
        value: T = done.value
        return value
    finally:
        steps.close()
