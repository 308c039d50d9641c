"""One piece of code for both worlds: with an event loop, and without.

What is to be done is written once, as a generator that yields what it wants to ask and is sent the
answer. Here is who goes on asking: at once, or waiting in a loop. Not here: what can be asked, and
who answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

from assembler.stores import SyncStore

__all__ = ["Ask", "Steps", "drive", "drive_async"]

T = TypeVar("T")
A = TypeVar("A")
Ask = Callable[[SyncStore], Any]
"""What a Session asks: a plain function of its store."""
Steps = Generator[Ask, Any, T]


def drive(steps: Generator[A, Any, T], answer: Callable[[A], Any]) -> T:
    """Do all of it now. An error of `answer` is raised inside; interrupted, it stops there."""
    try:
        ask = next(steps)
        while True:
            try:
                got = answer(ask)
            except Exception as error:
                ask = steps.throw(error)
            else:
                ask = steps.send(got)
    except StopIteration as done:
        value: T = done.value
        return value
    finally:
        steps.close()


async def drive_async(steps: Generator[A, Any, T], answer: Callable[[A], Awaitable[Any]]) -> T:
    """The same, and wait for each answer. Cancelled, it stops where it waits."""
    try:
        ask = next(steps)
        while True:
            try:
                got = await answer(ask)
            except Exception as error:
                ask = steps.throw(error)
            else:
                ask = steps.send(got)
    except StopIteration as done:
        value: T = done.value
        return value
    finally:
        steps.close()
