"""When: the two calls that a Publisher needs of an event loop, so that a test can be the clock.

Not here: what is done then (`publisher`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Handle", "Scheduler", "running_loop"]


class Handle(Protocol):
    """A call that is to come."""

    def cancel(self) -> object: ...


class Scheduler(Protocol):
    """Calls back later, in the thread of the caller. Any asyncio event loop is one."""

    def call_soon(self, callback: Callable[[], Any]) -> Handle:
        """Call when what runs now is done, in the same turn of the loop."""

    def call_later(self, delay: float, callback: Callable[[], Any]) -> Handle:
        """Call when `delay` seconds have passed."""


def running_loop() -> Scheduler | None:
    """The event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
