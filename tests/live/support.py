"""A clock that a test turns, a Definition that says its own cadence, and a client.

Not here: tests.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from assembler import FRAME, NONE, NOW, Assembler, Cadence, Match, apply
from assembler.live import Publisher, SharedPatch, Subscription
from tests.engine.support import Band, Toy, event

__all__ = ["Client", "Clock", "Said", "publisher", "say", "take", "takes"]

URGENCY = {"none": NONE, "frame": FRAME, "now": NOW}


class Call:
    """A call that is to come."""

    def __init__(self, due: float, callback: Callable[[], Any]) -> None:
        self.due = due
        self.callback: Callable[[], Any] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Clock:
    """A scheduler whose time passes when a test says so."""

    def __init__(self) -> None:
        self.ms = 0.0
        self.calls: list[Call] = []

    def call_soon(self, callback: Callable[[], Any]) -> Call:
        return self.call_later(0, callback)

    def call_later(self, delay: float, callback: Callable[[], Any]) -> Call:
        self.calls.append(Call(self.ms + delay * 1_000, callback))
        return self.calls[-1]

    @property
    def waiting(self) -> int:
        """How many calls are still to come."""
        return sum(call.callback is not None for call in self.calls)

    def turn(self, ms: float = 0) -> None:
        """Let `ms` pass, and call what is due by then."""
        self.ms += ms
        due = [call for call in self.calls if call.due <= self.ms]
        self.calls = [call for call in self.calls if call.due > self.ms]
        for call in due:
            if call.callback is not None:
                call.callback()


class Said(Toy):
    """A Toy whose items say how urgent they are (`how`; without it: now)."""

    def cadence(self, match: Match) -> Cadence:
        return URGENCY[match.data.get("how", "now")]


def publisher(clock: Clock | None = None, *definitions: Any, **options: Any) -> Publisher:
    """Of a `Said` Toy, unless other Definitions are given."""
    assembler = Assembler(definitions or [Said(), Band()])
    return Publisher(assembler, scheduler=clock or Clock(), **options)


def take(view: Subscription) -> SharedPatch | None:
    """The next Patch if it is there; else a wait that is given up at once. In a loop only."""
    waiting: Coroutine[Any, Any, SharedPatch] = view.__anext__()
    try:
        waiting.send(None)
    except StopIteration as done:
        patch: SharedPatch = done.value
        return patch
    waiting.close()
    return None


def takes(view: Subscription) -> list[SharedPatch]:
    """All Patches that are there."""
    found = []
    while (patch := take(view)) is not None:
        found.append(patch)
    return found


class Client:
    """Applies what a Subscription gives, over the wire."""

    def __init__(self, view: Subscription) -> None:
        self.view = view
        self.shown: Any = view.snapshot.to_json()
        self.patches: list[SharedPatch] = []

    def take(self, patch: SharedPatch) -> None:
        self.patches.append(patch)
        self.shown = apply(self.shown, patch.to_json())

    def catch_up(self) -> None:
        for patch in takes(self.view):
            self.take(patch)

    async def follow(self) -> None:
        async for patch in self.view:
            self.take(patch)


def say(target: Publisher, seq: int, **data: Any) -> Cadence:
    """Append event `seq`."""
    return target.append(event(seq, **data))
