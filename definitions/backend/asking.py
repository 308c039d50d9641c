"""What the rules ask for, so that they are written once for both worlds: with a loop, and without.

A rule is a generator that yields what it needs and is sent the answer. Here are the things it can
need, and who does them without a loop. Not here: the rules (`turns`, `attempts`, `dispatches`), the
driver that awaits (`clerk`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from msgspec import Struct

from assembler.engine.events import Draft
from assembler.live import SyncSession, drive
from assembler.stores import SyncStore

__all__ = ["Ask", "Decide", "Older", "Read", "Work", "do"]

T = TypeVar("T")


class Decide(Struct, frozen=True):
    """Store what `drafts()` says after looking at what is loaded; asked again when another writer
    was quicker. The answer is a list of events."""

    drafts: Callable[[], list[Draft]]


class Older(Struct, frozen=True):
    """Load an older page. The answer: whether still older events exist."""

    events: int


class Read(Struct, frozen=True):
    """Read `limit` events behind seq `after`, without loading them."""

    after: int
    limit: int


Ask = Decide | Older | Read
Work = Generator[Ask, Any, T]


def do(work: Work[T], session: SyncSession, store: SyncStore) -> T:
    """Do all of it now."""
    return drive(work, lambda ask: _answer(ask, session, store))


def _answer(ask: Ask, session: SyncSession, store: SyncStore) -> object:
    if isinstance(ask, Decide):
        return session.decide(ask.drafts)
    if isinstance(ask, Older):
        return session.older(ask.events)
    return store.read(session.conversation, ask.after, ask.limit)
