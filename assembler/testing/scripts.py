"""Conversations and what is done to an Assembler, as values.

Here live `Operation` (one call), `Conversation` (what happened, live) and making a history
smaller. Not here: making them up (`strategies`), delivering them badly (`delivery`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from assembler.engine.errors import AssemblerError
from assembler.engine.events import Delta, Event

__all__ = ["OUTCOMES", "Conversation", "Operation", "items_of", "reduced"]

_PAGES = frozenset(("load", "prepend"))
OUTCOMES = ("completed", "failed", "interrupted", "abandoned")


class Operation(Struct, frozen=True):
    """One call of an Assembler (or Oracle), as a value that prints as what it does."""

    call: str
    arguments: tuple[Any, ...]

    def perform(self, target: Any) -> type[AssemblerError] | None:
        """Do it to `target`; the class of the error when it was refused."""
        try:
            getattr(target, self.call)(*self.arguments)
        except AssemblerError as error:
            return type(error)
        return None

    def __repr__(self) -> str:
        return f"{self.call}({', '.join(map(repr, self.arguments))})"


class Conversation(Struct, frozen=True):
    """A conversation as it happens live, in the order in which it happens."""

    script: tuple[Operation, ...]

    @classmethod
    def of(cls, *happened: Event | Delta | tuple[Any, ...]) -> Conversation:
        """One written by hand: Events, Deltas, and other calls as `(name, argument, …)`."""
        return cls(tuple(map(_operation, happened)))

    @property
    def log(self) -> tuple[Event, ...]:
        """Its durable events."""
        return tuple(each.arguments[0] for each in self.script if each.call == "append")

    @property
    def deltas(self) -> tuple[Delta, ...]:
        """All deltas of all its attempts."""
        return tuple(each.arguments[0] for each in self.script if each.call == "emit")


def _operation(happened: Any) -> Operation:
    if isinstance(happened, Event):
        return Operation("append", (happened,))
    if isinstance(happened, Delta):
        return Operation("emit", (happened,))
    call = happened[0] if isinstance(happened, tuple) and happened else None
    if not isinstance(call, str):
        raise TypeError(
            f"Conversation.of: expected an Event, a Delta or a tuple like ('settle', 'a1', "
            f"'failed'), got {happened!r}"
        )
    return Operation(call, happened[1:])


# --- leaving something out


def reduced(
    history: tuple[Operation, ...], fails: Callable[[tuple[Operation, ...]], bool]
) -> tuple[Operation, ...]:
    """A history that still `fails`, and that does not without any one operation or event.

    The events behind one that is left out are numbered anew, so that no gap stays. Costs about
    as many tries as there are operations, and as many again for each few that must stay.
    """
    size = len(history) // 2
    while size:
        for at in range(len(history), 0, -size):
            less = history[: max(at - size, 0)] + history[at:]
            history = less if fails(less) else history
        size //= 2
    before = None
    while before != history:
        before = history
        for less in _without_one(history):
            if fails(less):
                history = less
                break
    return history


def _without_one(history: tuple[Operation, ...]) -> Iterator[tuple[Operation, ...]]:
    """Without an event, or a number that nobody bears; without an operation; without a page,
    whose events come one by one."""
    highest = max((event.seq for each in history for event in _events(each)), default=0)
    for seq in range(highest, 0, -1):
        kept = tuple(_without(each, seq) for each in history)
        yield tuple(each for each in kept if each is not None)
    for at in reversed(range(len(history))):
        yield history[:at] + history[at + 1 :]
    for at, each in enumerate(history):
        if each.call in _PAGES:
            one_by_one = tuple(Operation("append", (event,)) for event in each.arguments[0])
            yield history[:at] + one_by_one + history[at + 1 :]


def items_of(operation: Operation) -> Iterable[Event | Delta]:
    """The events and deltas that an operation brings."""
    if operation.call in {"append", "emit"}:
        return operation.arguments[:1]
    return operation.arguments[0] if operation.call in _PAGES else ()


def _events(operation: Operation) -> Iterator[Event]:
    return (item for item in items_of(operation) if isinstance(item, Event))


def _without(operation: Operation, seq: int) -> Operation | None:
    """The operation in a world in which event `seq` never happened; None: it says nothing now."""
    call, arguments = operation.call, operation.arguments
    if call == "append":
        (event,) = arguments
        return None if event.seq == seq else Operation(call, (_earlier(event, seq),))
    if call in _PAGES:
        page, *rest = arguments
        left = tuple(_earlier(event, seq) for event in page if event.seq != seq)
        return Operation(call, (left, *rest)) if left or not page else None
    if call == "emit":
        (delta,) = arguments
        return Operation(call, (replace(delta, after=delta.after - (delta.after >= seq)),))
    if call == "evict" and isinstance(arguments[0], int):
        return Operation(call, (arguments[0] - (arguments[0] > seq),))
    return operation


def _earlier(event: Event, seq: int) -> Event:
    if event.seq < seq:
        return event
    # A conversation that is made up has an event each second.
    time = event.time - 1_000 if event.time == event.seq * 1_000 else event.time
    return replace(event, seq=event.seq - 1, time=time)
