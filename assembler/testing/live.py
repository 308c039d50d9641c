"""What every live backend promises, as checks to run against yours.

Not here: what a Session makes of it (`assembler.live.session`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from assembler.engine.events import Delta, Outcome
from assembler.live import Live
from assembler.live.base import Ended

__all__ = ["check_live", "live_checks"]

MakeLives = Callable[[], Sequence[Live]]
Check = Callable[[Live, Live], Awaitable[None]]
HANGS_S = 60
"""A check that waits longer has failed."""


def check_live(make_lives: MakeLives) -> None:
    """Fail with an `AssertionError` that names the promise which a backend does not keep.

    `make_lives()` gives two over the same conversations, as two processes have them, with nothing
    in them; it is called for every check, inside its loop. Not to be called from within a loop.
    """
    for check in live_checks:
        try:
            asyncio.run(_checked(check, make_lives))
        except TimeoutError:
            raise AssertionError(f"it waits for ever: {check.__doc__}") from None
        except AssertionError as error:
            error.add_note(f"broken promise: {check.__doc__}")
            raise


async def _checked(check: Check, make_lives: MakeLives) -> None:
    one, two = make_lives()
    async with asyncio.timeout(HANGS_S), one, two:
        await check(one, two)


class _Ears:
    """Remembers what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, object]] = []

    def delta(self, delta: Delta) -> None:
        self.heard.append((delta.attempt, delta.ordinal))

    def ended(self, ended: Ended) -> None:
        self.heard.append((ended.attempt, ended.outcome))

    def elsewhere(self) -> None:
        return

    def stored(self, seq: int) -> None:
        """A notice may be lost: nothing is asked of it."""
        del seq

    async def until(self, *expected: tuple[str, object]) -> None:
        while len(self.heard) < len(expected):
            await asyncio.sleep(0)
        assert self.heard == list(expected)


def _delta(ordinal: int, attempt: str = "a") -> Delta:
    return Delta(attempt, 1, 1, "x", {"n": 1.0}, 1, ordinal, 0, ordinal + 1)


async def _follows(one: Live, two: Live) -> None:
    """What one tells the other hears, in order and once; names may hold anything."""
    told, ears = await one.join("c.* >\u00e9", _Ears()), _Ears()
    await two.join("c.* >\u00e9", ears)
    for ordinal in range(100):
        told.emit(_delta(ordinal, "a.*> "))
    await ears.until(*(("a.*> ", ordinal) for ordinal in range(100)))


async def _joins(one: Live, two: Live) -> None:
    """Who joins hears live and completed attempts whole, and nothing of one that was given up."""
    told, first = await one.join("c", _Ears()), _Ears()
    for name in ("lost", "held"):
        told.emit(_delta(0, name))
    told.settle("lost", 1, 1, 1, Outcome.FAILED)
    told.settle("held", 1, 1, 1, Outcome.COMPLETED)
    told.emit(_delta(0, "side"))
    await two.join("c", first)
    while ("side", 0) not in first.heard:
        await asyncio.sleep(0)
    late = _Ears()
    await two.join("c", late)
    assert ("lost", 0) not in late.heard
    assert {("held", 0), ("held", Outcome.COMPLETED), ("side", 0)} <= set(late.heard)


async def _dies(one: Live, two: Live) -> None:
    """When an owner dies, what it had going is withdrawn once."""
    told, ears = await one.join("c", _Ears()), _Ears()
    seat = await two.join("c", ears)
    told.claim(busy=True)
    told.emit(_delta(0))
    await ears.until(("a", 0))
    await _die(one)
    await ears.until(("a", 0), ("a", Outcome.INTERRUPTED))
    while seat.elsewhere is not False:
        await asyncio.sleep(0)


async def _die(live: Live) -> None:
    died = getattr(live, "die")()  # noqa: B009 - what a backend for tests has beside the contract
    if died is not None:
        await died


live_checks: tuple[Check, ...] = (_follows, _joins, _dies)
