"""Where conversations come from: what the server asks, whoever answers.

A `Source` lists conversations and opens them; one that can be written to has a `Writer`. Not here:
any source (`stored`, `files`), and who may see what (`app`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from msgspec import Struct

from assembler.engine.errors import AssemblerError, InputError, LimitError
from assembler.engine.events import Delta, Draft, Event, Outcome
from assembler.live import Subscription
from assembler.server.limits import natural

__all__ = [
    "BusyError",
    "Entry",
    "Listing",
    "Opened",
    "Place",
    "Source",
    "UnknownError",
    "Writer",
    "matches",
]

_TIME_MAX = 2**63
BEFORE = r"^-?[0-9]{1,18}\.[0-9]{1,9}$"
"""What a `before` looks like, for who describes it."""
_PASSED_MAX = 2**31


class UnknownError(AssemblerError):
    """There is no such conversation, or none that may be seen."""


class BusyError(LimitError):
    """Too much is going on already: later it may be done."""


class Entry(Struct, frozen=True):
    """One conversation in a list. What is not known (yet) is None.

    `events` is their number; the times are those of the first and the last event, in milliseconds.
    `live`: whether somebody works on it now. `fault`: why it cannot be opened, in one line.
    """

    conversation: str
    title: str | None = None
    events: int | None = None
    first_time: int | None = None
    last_time: int | None = None
    live: bool | None = None
    fault: str | None = None


class Listing(Struct, frozen=True):
    """A part of a list, and the text with which it goes on (`before`); None: that was all."""

    conversations: tuple[Entry, ...]
    next: str | None = None


class Opened(Protocol):
    """One conversation while somebody reads it: a Session, for one."""

    def subscribe(self, view: str = "chat") -> Subscription:
        """Follow a view: a snapshot, then patches."""

    async def older(self) -> bool:
        """Load the page before what is loaded; whether still older events exist."""


class Writer(ABC):
    """What a remote process may write. Errors are those of a store and of an Assembler."""

    @abstractmethod
    async def append(
        self, conversation: str, drafts: Iterable[Draft | Mapping[str, Any]], expected_seq: int
    ) -> Sequence[Event]:
        """Store drafts behind event `expected_seq`, all or none. Raises `ConflictError`."""

    @abstractmethod
    async def emit(self, conversation: str, deltas: Sequence[Delta]) -> None:
        """Show deltas of attempts that another process makes: their `type` and `data`, in the order
        of their `ordinal`; their place they are given here. A repeat changes nothing.

        Raises `ConflictError` with the ordinal that is `expected` when earlier ones are missing;
        what stands before it is shown.
        """

    @abstractmethod
    async def settle(self, conversation: str, attempt: str, outcome: Outcome) -> bool:
        """Say how an attempt of another process ended; whether there is one of that name."""


class Source(ABC):
    """Where conversations come from. For one event loop; its owner opens and closes it."""

    @property
    @abstractmethod
    def views(self) -> Sequence[str]:
        """The views that every conversation has; the first is what is shown unless asked."""

    @property
    def writer(self) -> Writer | None:
        """What writes to it; None: it can only be read."""
        return None

    @abstractmethod
    async def conversations(
        self, *, search: str = "", before: str | None = None, limit: int = 50
    ) -> Listing:
        """At most `limit` conversations, the newest first; `before` is the `next` of a Listing.

        It may give fewer and a `next`, when it has looked at enough for one request.
        `search`: those alone whose name or title has this text, in whatever case. Raises
        `InputError` for a `before` that it never gave.
        """

    @abstractmethod
    def open(self, conversation: str) -> AbstractAsyncContextManager[Opened]:
        """A conversation, open while the block lasts. Entering raises `UnknownError`."""


class Place(Struct, frozen=True):
    """How far a list has come: `passed` entries of this `time`, and all that are newer.

    It names no conversation: whoever reads a list may not know all that it leads past.
    """

    time: int
    passed: int

    def __str__(self) -> str:
        return f"{self.time}.{self.passed}"

    @staticmethod
    def of(before: str) -> Place:
        """The Place that a text says. Raises `InputError`."""
        time, _, passed = before.partition(".")
        sign = -1 if time.startswith("-") else 1
        numbers = natural(time.removeprefix("-"), _TIME_MAX), natural(passed, _PASSED_MAX)
        if numbers[0] is None or numbers[1] is None:
            raise InputError("before: expected the next of a list")
        return Place(sign * numbers[0], numbers[1])

    def then(self, time: int) -> Place:
        """Behind one more entry, of this time."""
        return Place(time, self.passed + 1 if time == self.time else 1)


def matches(entry: Entry, search: str) -> bool:
    """Whether the name or the title of an entry has the text `search`, in whatever case."""
    wanted = search.casefold()
    return wanted in entry.conversation.casefold() or wanted in (entry.title or "").casefold()
