"""The window: the contiguous range of events that is loaded, and what lies around it.

Decides whether an event or a page is next, repeated, in conflict or beyond a gap. Knows nothing
of what the events mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from assembler.engine.errors import ConflictError, GapError
from assembler.engine.events import Event, same_event
from assembler.engine.values import Object, freeze_object

__all__ = ["Loaded", "Window", "WindowView", "check_page"]


class Loaded(Struct, gc=False, eq=False):
    """One loaded event and the Contexts that hold it (one, or a tuple, or None)."""

    event: Event
    owners: Any = None


class WindowView(Struct, frozen=True, gc=False):
    """What is loaded: seqs `first` to `last` (None: nothing), and whether older events exist."""

    first: int | None
    last: int | None
    has_more: bool

    def to_json(self) -> dict[str, Any]:
        return {"first": self.first, "last": self.last, "has_more": self.has_more}


def check_page(events: Sequence[Event]) -> None:
    """`GapError` for a hole inside, `ConflictError` for a seq that goes back or stays."""
    for before, after in pairwise(events):
        if after.seq > before.seq + 1:
            raise GapError(before.seq + 1, after.seq - 1)
        if after.seq <= before.seq:
            raise ConflictError(
                f"seq: event {after.seq} stands behind event {before.seq}",
                before.seq + 1,
                after.seq,
            )


class Window:
    """Events by seq, in one contiguous range. Every call here is O(1) but `evict` and `events`."""

    __slots__ = ("_wire", "end", "first", "has_more", "loaded")

    def __init__(self) -> None:
        self.loaded: dict[int, Loaded] = {}
        self.first = 0
        self.end: int | None = None
        """The seq behind which the next event goes; kept when the window is emptied."""
        self.has_more = False
        self._wire: tuple[WindowView, Object] | None = None

    def __len__(self) -> int:
        return len(self.loaded)

    def __getitem__(self, seq: int) -> Event:
        return self.loaded[seq].event

    @property
    def view(self) -> WindowView:
        if not self.loaded:
            return WindowView(None, None, self.has_more)
        return WindowView(self.first, self.end, self.has_more)

    def wire(self) -> Object:
        """The wire form of `view`: the same object while nothing changed."""
        view = self.view
        if self._wire is None or self._wire[0] != view:
            self._wire = view, freeze_object(view.to_json())
        return self._wire[1]

    def events(self) -> Iterator[Event]:
        """All loaded events, oldest first."""
        if self.loaded and self.end is not None:
            for seq in range(self.first, self.end + 1):
                yield self.loaded[seq].event

    # -- what may come next --------------------------------------------------------------

    def is_next(self, event: Event) -> bool | None:
        """True: take it; False: a repeat, equal to what is loaded; None: below the window.

        Raises `GapError` or `ConflictError`.
        """
        if self.end is None or event.seq == self.end + 1:
            return True
        if event.seq > self.end:
            raise GapError(self.end + 1, event.seq - 1)
        return self._is_known(event)

    def _is_known(self, event: Event) -> bool | None:
        held = self.loaded.get(event.seq)
        if held is None:
            return None
        if not same_event(held.event, event):
            raise ConflictError(
                f"event {event.seq} is loaded with another content", held.event, event
            )
        return False

    def older(self, page: Sequence[Event]) -> Sequence[Event]:
        """The events of `page` that lie before the (not empty) window.

        Raises `GapError` or `ConflictError`; compares what overlaps.
        """
        check_page(page)
        if page[-1].seq < self.first - 1:
            raise GapError(page[-1].seq + 1, self.first - 1)
        for event in reversed(page):
            if event.seq < self.first:
                break
            self._is_known(event)
        return page[: max(0, self.first - page[0].seq)]

    # -- changes -------------------------------------------------------------------------

    def replace(self, events: Sequence[Event], *, has_more: bool) -> None:
        self.loaded = {event.seq: Loaded(event) for event in events}
        self.first = events[0].seq if events else 0
        self.end = events[-1].seq if events else None
        self.set_has_more(has_more=has_more)

    def append(self, event: Event) -> Loaded:
        if not self.loaded:
            self.first = event.seq
            if self.end is None:
                self.has_more = event.seq != 1
        self.end = event.seq
        held = self.loaded[event.seq] = Loaded(event)
        return held

    def prepend(self, events: Sequence[Event]) -> list[Loaded]:
        held = [Loaded(event) for event in events]
        self.loaded.update(zip([event.seq for event in events], held, strict=True))
        self.first = events[0].seq
        return held

    def set_has_more(self, *, has_more: bool) -> None:
        self.has_more = has_more and not (self.loaded and self.first == 1)

    def evict(self, before: int) -> list[Loaded]:
        """Forget the events below `before`; what was forgotten, oldest first."""
        if not self.loaded or self.end is None:
            return []
        end = self.end
        gone = [self.loaded.pop(seq) for seq in range(self.first, min(before, end + 1))]
        if gone:
            self.first += len(gone)
            self.has_more = True
        return gone
