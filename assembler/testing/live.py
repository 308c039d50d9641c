"""What every live backend promises, as checks to run against yours.

`check_live(make, die=...)` runs them all; `live_checks` and `away_live_checks` are the same, one by
one, for a test runner that wants to name them. Not here: what a Session makes of what it hears
(`assembler.live.session`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from assembler.engine.events import Delta, Outcome
from assembler.live import Live, LiveError, Seat
from assembler.live.base import Ended

__all__ = ["away_live_checks", "check_live", "live_checks"]

MakeLives = Callable[[], Sequence[Live]]
Die = Callable[[Live], Awaitable[None]]
Away = Callable[[Sequence[Live]], AbstractAsyncContextManager[None]]
Check = Callable[["Stage"], Awaitable[None]]
HANGS_S = 60
"""A check that waits longer has failed."""


def check_live(make: MakeLives, *, die: Die, away: Away | None = None) -> None:
    """Fail with an `AssertionError` that names the promise which a backend does not keep.

    `make()` gives three over the same conversations, as three processes have them, with nothing in
    them; it is called for every check, inside its loop. `await die(live)` ends one as the end of
    its process does: nobody says goodbye. `async with away(lives):` cuts them off from their server
    while the block goes on; it may start that anew, with nothing in it. Not to be called from
    within a loop.
    """
    for check in live_checks:
        check(make, die)
    for check in away_live_checks if away is not None else ():
        check(make, die, away)


class Stage:
    """Three processes, and what may happen to them."""

    def __init__(self, lives: Sequence[Live], die: Die, away: Away | None) -> None:
        self.one, self.two, self.three = lives
        self.die = die
        self._lives = lives
        self._away = away

    def away(self) -> AbstractAsyncContextManager[None]:
        assert self._away is not None
        return self._away(self._lives)


def _named(check: Check) -> Callable[..., None]:
    """`check` as a plain function that runs it on new backends, inside a loop."""

    async def inside(make: MakeLives, die: Die, away: Away | None) -> None:
        lives = make()
        async with asyncio.timeout(HANGS_S), lives[0], lives[1], lives[2]:
            await check(Stage(lives, die, away))

    def run(make: MakeLives, die: Die, away: Away | None = None) -> None:
        try:
            asyncio.run(inside(make, die, away))
        except TimeoutError:
            raise AssertionError(f"it waits for ever: {check.__doc__}") from None
        except AssertionError as error:
            error.add_note(f"broken promise: {check.__doc__}")
            raise

    run.__name__ = check.__name__.lstrip("_")
    run.__doc__ = check.__doc__
    return run


# -- who tells, and who hears ------------------------------------------------------------


class _Ears:
    """Remembers what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, object]] = []

    def delta(self, delta: Delta) -> None:
        self.heard.append((delta.attempt, delta.ordinal))

    def ended(self, ended: Ended) -> None:
        self.heard.append((ended.attempt, ended.outcome))

    def elsewhere(self) -> None:
        """Asked for where it is needed."""

    def stored(self, seq: int) -> None:
        """A notice may be lost: nothing is asked of it."""

    def of(self, attempt: str) -> list[object]:
        return [what for name, what in self.heard if name == attempt]

    async def until(self, *expected: tuple[str, object]) -> None:
        """Wait until so much was heard, and nothing else."""
        await _until(lambda: len(self.heard) >= len(expected))
        assert self.heard == list(expected)


async def _until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0)


def _delta(ordinal: int, attempt: str = "a", step: int = 1) -> Delta:
    return Delta(attempt, 1, step, "x", {"n": 1.0}, 1, ordinal, 0, ordinal + 1)


def _counted(attempt: str, *ordinals: int) -> list[tuple[str, object]]:
    return [(attempt, ordinal) for ordinal in ordinals]


async def _late(live: Live, conversation: str = "c") -> list[tuple[str, object]]:
    """What somebody hears who comes now."""
    ears = _Ears()
    seat = await live.join(conversation, ears)
    await seat.leave()
    return ears.heard


def _elsewhere(seat: Seat) -> bool | None:
    """Asked anew: it changes between two looks."""
    return seat.elsewhere


async def _held_here(seat: Seat, live: Live) -> None:
    """Wait until all that `seat` has told is held: a last attempt of its own says so."""
    seat.emit(_delta(0, "mark", step=99))
    while ("mark", 0) not in await _late(live):
        await asyncio.sleep(0)


# -- promises ----------------------------------------------------------------------------


async def _follows(stage: Stage) -> None:
    """What one tells all others hear, in order and once; names may hold anything."""
    name, attempt = "c.* >\u00e9\t/" + "long" * 500, "a.*> "
    told, ears, more = await stage.one.join(name, _Ears()), _Ears(), _Ears()
    await stage.two.join(name, ears)
    await stage.three.join(name, more)
    await stage.three.join("another", nothing := _Ears())
    for ordinal in range(100):
        told.emit(_delta(ordinal, attempt))
    for each in (ears, more):
        await each.until(*_counted(attempt, *range(100)))
    assert nothing.heard == []


async def _joins(stage: Stage) -> None:
    """Who joins while it goes on hears what is held, whole and in order, then what follows."""
    told = await stage.one.join("c", _Ears())
    ears = [_Ears() for _ in range(3)]
    for ordinal in range(50):
        told.emit(_delta(ordinal))
    joining = [asyncio.ensure_future(stage.two.join("c", each)) for each in ears]
    ordinal = 50
    while not all(task.done() for task in joining):
        told.emit(_delta(ordinal))
        ordinal += 1
        await asyncio.sleep(0)
    for more in range(ordinal, ordinal + 50):
        told.emit(_delta(more))
    for each in ears:
        await each.until(*_counted("a", *range(ordinal + 50)))


async def _gives_up(stage: Stage) -> None:
    """Of an attempt that was given up, who follows hears the end once, and who joins no delta."""
    told, ears = await stage.one.join("c", _Ears()), _Ears()
    await stage.two.join("c", ears)
    for ordinal in range(3):
        told.emit(_delta(ordinal, "lost"))
    told.settle("lost", 1, 1, 1, Outcome.FAILED)
    told.settle("lost", 1, 1, 1, Outcome.FAILED)
    told.emit(_delta(3, "lost"))
    await _held_here(told, stage.three)
    late = await _late(stage.three)
    assert [what for name, what in late if name == "lost"] in ([], [Outcome.FAILED])
    await _until(lambda: ("mark", 0) in ears.heard)
    assert ears.of("lost").count(Outcome.FAILED) == 1
    assert ears.of("lost")[-1] is Outcome.FAILED, "nothing follows its end"


async def _holds(stage: Stage) -> None:
    """A completed attempt is held until its step closes, and only until then."""
    told, follower = await stage.one.join("c", _Ears()), _Ears()
    seat = await stage.two.join("c", follower)
    whole = [*_counted("held", 0, 1), ("held", Outcome.COMPLETED)]
    told.emit(_delta(0, "held"))
    told.emit(_delta(1, "held"))
    told.settle("held", 1, 1, 1, Outcome.COMPLETED)
    told.emit(_delta(0, "next", step=2))
    await follower.until(*whole, ("next", 0))
    assert await _late(stage.three) == [*whole, ("next", 0)]
    # Somebody else may write what closes it.
    told.retire((1, 1), wrote=False)
    seat.retire((1, 1), wrote=True)
    while (late := await _late(stage.three)) != [("next", 0)]:
        assert late == [*whole, ("next", 0)] or "held" not in dict(late) or late[-1][0] == "next"
    assert follower.heard == [*whole, ("next", 0)], "to be forgotten is nothing to hear"


async def _claims(stage: Stage) -> None:
    """That somebody works is known elsewhere once it is held, and no longer when he stops."""
    told = await stage.one.join("c", _Ears())
    seat = await stage.two.join("c", _Ears())
    assert _elsewhere(seat) is False
    for _ in range(3):
        told.claim(busy=True)
        await told.claimed()
        await seat.fence()
        assert _elsewhere(seat) is True
        assert _elsewhere(told) is False
        late = await stage.three.join("c", _Ears())
        assert _elsewhere(late) is True
        told.claim(busy=False)
        await _until(lambda late=late: not (seat.elsewhere or late.elsewhere))  # type: ignore[misc]
        await late.leave()
    told.claim(busy=True)
    await _until(lambda: seat.elsewhere)
    await told.leave()
    await _until(lambda: not seat.elsewhere)


async def _dies(stage: Stage) -> None:
    """When an owner dies, what it had going is withdrawn, once for each who follows; what it had
    completed stays."""
    told, ears, more = await stage.one.join("c", _Ears()), _Ears(), _Ears()
    seats = [await stage.two.join("c", ears), await stage.three.join("c", more)]
    await _leave_behind(told, ears, more)
    await stage.die(stage.one)
    await _until(lambda: all(seat.elsewhere is False for seat in seats))
    for each in (ears, more):
        await _until(lambda each=each: Outcome.INTERRUPTED in each.of("a"))  # type: ignore[misc]
        assert each.of("a") == [0, Outcome.INTERRUPTED]
        assert each.of("held") == [0, Outcome.COMPLETED]
    await _is_buried(stage.two)
    for each in (ears, more):
        assert each.of("a") == [0, Outcome.INTERRUPTED], "and not again"


async def _dies_alone(stage: Stage) -> None:
    """When an owner dies whom nobody follows, who comes later sees nothing of it, at last."""
    told, ears = await stage.one.join("c", _Ears()), _Ears()
    seat = await stage.two.join("c", ears)
    await _leave_behind(told, ears)
    await seat.leave()
    await stage.die(stage.one)
    await _is_buried(stage.three)


async def _leave_behind(told: Seat, *ears: _Ears) -> None:
    told.claim(busy=True)
    told.emit(_delta(0, "held"))
    told.settle("held", 1, 1, 1, Outcome.COMPLETED)
    told.emit(_delta(0))
    for each in ears:
        await _until(lambda each=each: ("a", 0) in each.heard)  # type: ignore[misc]


async def _is_buried(live: Live) -> None:
    while True:
        ears = _Ears()
        seat = await live.join("c", ears)
        if ("a", 0) not in ears.heard and seat.elsewhere is False:
            break
        await _until(lambda seat=seat: seat.elsewhere is False)  # type: ignore[misc]
        await seat.leave()
    assert ears.of("held") == [0, Outcome.COMPLETED]


async def _closes(stage: Stage) -> None:
    """A backend that is closed takes with it all that it had going, and nobody joins it."""
    told, ears = await stage.one.join("c", _Ears()), _Ears()
    seat = await stage.two.join("c", ears)
    told.claim(busy=True)
    told.emit(_delta(0))
    await ears.until(("a", 0))
    await stage.one.close()
    await stage.one.close()
    await ears.until(("a", 0), ("a", Outcome.INTERRUPTED))
    await _until(lambda: seat.elsewhere is False)
    try:
        await stage.one.join("c", _Ears())
    except LiveError:
        return
    raise AssertionError("a closed backend gives seats")


# -- promises of those that have a server ------------------------------------------------


async def _comes_back(stage: Stage) -> None:
    """Cut off, nobody is taken for dead, and what goes on is told when it is over: without loss,
    without repeat."""
    told, ears = await stage.one.join("c", _Ears()), _Ears()
    seat = await stage.two.join("c", ears)
    told.claim(busy=True)
    told.emit(_delta(0))
    await ears.until(("a", 0))
    async with stage.away():
        for ordinal in range(1, 20):
            told.emit(_delta(ordinal))
        assert seat.elsewhere is not False
    for ordinal in range(20, 40):
        told.emit(_delta(ordinal))
    await ears.until(*_counted("a", *range(40)))
    await _until(lambda: seat.elsewhere is True)
    assert await _late(stage.three) == _counted("a", *range(40))


async def _comes_back_to_ends(stage: Stage) -> None:
    """What ended or was forgotten while one was cut off is so when that is over."""
    told, ears = await stage.one.join("c", _Ears()), _Ears()
    seat = await stage.two.join("c", ears)
    told.claim(busy=True)
    for name in ("lost", "closed"):
        told.emit(_delta(0, name, step=2 if name == "lost" else 1))
    told.settle("closed", 1, 1, 1, Outcome.COMPLETED)
    before = [("lost", 0), ("closed", 0), ("closed", Outcome.COMPLETED)]
    await ears.until(*before)
    async with stage.away():
        told.settle("lost", 1, 2, 1, Outcome.FAILED)
        told.retire((1, 1), wrote=True)
        told.claim(busy=False)
    told.emit(_delta(0, "next", step=3))
    await ears.until(*before, ("lost", Outcome.FAILED), ("next", 0))
    await _until(lambda: seat.elsewhere is False)
    while (late := dict[str, Any](await _late(stage.three))) != {"lost": Outcome.FAILED, "next": 0}:
        assert late.get("lost") != 0
        await asyncio.sleep(0)


live_checks = tuple(
    _named(each)
    for each in (
        _follows,
        _joins,
        _gives_up,
        _holds,
        _claims,
        _dies,
        _dies_alone,
        _closes,
    )
)
away_live_checks = tuple(_named(each) for each in (_comes_back, _comes_back_to_ends))
