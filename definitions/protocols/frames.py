"""What every protocol shares: a frame, what an encoder is, and how frames are sent.

Not here: what any one protocol says.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

from assembler.engine.patches import Patch, Snapshot

__all__ = ["Encoder", "Frame", "send_each"]

Frame = dict[str, Any]
"""One message to a client: plain JSON values, owned by who gets it."""


class Encoder(Protocol):
    """Says in frames what a view shows. One for each client that is connected; no I/O.

    It is fed what the view gives: nothing yet or a Snapshot first, then every Patch in order. A
    Snapshot in between brings the client to where the view is, after Patches were missed.
    """

    def feed(self, update: Snapshot | Patch) -> list[Frame]:
        """The frames that a client needs now, in the order in which they are to be sent."""
        ...


async def send_each(
    frames: Iterable[Frame], send: Callable[[Frame], Awaitable[object]]
) -> list[Exception]:
    """Send frames one by one. One that fails does not stop the others; gives what was raised.

    A cancellation is no failure and goes on.
    """
    failures = []
    for frame in frames:
        try:
            await send(frame)
        except Exception as failure:  # whatever a transport raises
            failures.append(failure)
    return failures
