"""The naive oracle: the engine's promises in their plainest form, for tests only.

`Oracle` takes the same operations as the `Assembler` and raises the same errors. Here live the
window, liveness and looking; deltas and what is remembered of attempts are its base, `memory`.
What is shown is made from the facts, from scratch, whenever somebody looks (`picture`). No index,
no increment, nothing shared with the engine but its values. Not here: comparing the two
(`compare`), and inputs for them (`strategies`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from assembler.engine.definition import Anomaly, Definition, GroupDefinition
from assembler.engine.errors import ConflictError, GapError, InputError
from assembler.engine.events import Event, as_event, position, same_event
from assembler.engine.locations import Status
from assembler.testing.asking import Seen
from assembler.testing.memory import Memory
from assembler.testing.picture import Facts, Picture, Shown

__all__ = ["Oracle", "Seen", "Shown", "Span"]


class Span(NamedTuple):
    """The loaded window: its first and last seq (None when empty), and whether there is more."""

    first: int | None
    last: int | None
    has_more: bool


class Oracle(Memory):
    """The same operations as the Assembler, in the plainest form; O(everything) per look."""

    def __init__(
        self,
        definitions: Iterable[Definition | GroupDefinition],
        views: Iterable[str] = ("chat",),
        *,
        settled_ahead_max: int = 1_000,
    ) -> None:
        given = tuple(definitions)
        asked = tuple(each for each in given if isinstance(each, Definition))
        super().__init__(asked, settled_ahead_max)
        self.groupings = tuple(each for each in given if isinstance(each, GroupDefinition))
        self.views = set(views)
        # The facts: E and L. D is in the memory, because it ends with the attempts.
        self.events: list[Event] = []
        self.has_more = False
        self.live: bool | None = None
        self.end: int | None = None  # the newest seq there was, evicted or not
        self._picture: Picture | None = None

    # --- operations: events

    def load(self, events: Iterable[Any], has_more: bool = False) -> None:
        """Replace the window."""
        page = _page(events)
        self._replace(page, has_more)
        self.end = page[-1].seq if page else None
        self._learn(page)

    def append(self, event: Any) -> None:
        """The next event; a repeated one is compared, an older one noted."""
        taken = as_event(event)
        if self.end is not None and taken.seq <= self.end:
            if not self.events or taken.seq < self.events[0].seq:
                self._incident("stale-event", f"event:{taken.seq}", position(taken.seq, 0))
            else:
                self._check_same([taken])
            return
        if self.end is not None and taken.seq > self.end + 1:
            raise GapError(self.end + 1, taken.seq - 1)
        more = self.has_more if self.end is not None else True
        self._replace([*self.events, taken], more)
        self.end = taken.seq
        self._learn([taken])

    def prepend(self, events: Iterable[Any], has_more: bool) -> None:
        """The page before the window; what overlaps is compared, what is beyond ignored."""
        page = _page(events)
        if not page:
            self._replace(self.events, has_more)
        elif not self.events:
            self.load(page, has_more)
        else:
            first = self.events[0].seq
            if page[-1].seq < first - 1:
                raise GapError(page[-1].seq + 1, first - 1)
            self._check_same(page)
            older = [event for event in page if event.seq < first]
            reaches = page[0].seq <= first
            self._replace([*older, *self.events], has_more if reaches else self.has_more)
            self._learn(older)

    def evict(self, before: int) -> None:
        """Forget loaded events older than `before`, but nothing from an open step on."""
        if type(before) is not int:
            raise InputError(f"before: expected an integer, got {before!r}")
        brackets = self._look().brackets
        stop = before
        for event in self.events:
            at = brackets.location(event)
            if at.step is not None and brackets.status(at) is not Status.CLOSED:
                stop = min(stop, event.seq)
        kept = [event for event in self.events if event.seq >= stop]
        if len(kept) < len(self.events):
            self._replace(kept, True)

    def _replace(self, events: list[Event], has_more: bool) -> None:
        self.events = events
        self.has_more = has_more and not (events and events[0].seq == 1)

    def _check_same(self, page: Sequence[Event]) -> None:
        loaded = {event.seq: event for event in self.events}
        for event in page:
            if event.seq in loaded and not same_event(event, loaded[event.seq]):
                raise ConflictError(f"event {event.seq} is loaded with another content")

    def liveness(self, live: bool | None) -> None:
        """Whether anybody still works on this conversation."""
        if live is not None and type(live) is not bool:
            raise InputError(f"live: expected true, false or null, got {live!r}")
        self.live = live

    # --- looking

    def activate(self, view: str) -> None:
        """Show `view` from now on."""
        self.views.add(view)

    def deactivate(self, view: str) -> None:
        """Show `view` no more."""
        self.views.discard(view)

    @property
    def window(self) -> Span:
        first, last = (self.events[0].seq, self.events[-1].seq) if self.events else (None, None)
        return Span(first, last, self.has_more)

    def contexts(self, kind: str) -> list[Seen]:
        """All Contexts of `kind`."""
        return [seen for seen in self._look().known.contexts if seen.kind == kind]

    def state(self, kind: str, id: str) -> Any:
        """A State, or None."""
        seen = self._look().known.find(kind, id)
        return None if seen is None else seen.state

    def findings(self) -> list[Anomaly]:
        """What is odd now, in order of position, key and kind."""
        return sorted(self._look().findings, key=lambda odd: (odd.position, odd.key, odd.kind))

    def view(self, name: str) -> Shown:
        """The Nodes and groups of an active view."""
        return self._look().views[name]

    def _look(self) -> Picture:
        """The picture of the present facts: the last one, when they are still the same."""
        facts = Facts(
            tuple(self.events),
            self.has_more,
            tuple(self.deltas),
            self.live,
            self.definitions,
            self.groupings,
            frozenset(self.views),
        )
        if self._picture is None or self._picture.facts != facts:
            self._picture = Picture(facts)
        return self._picture


def _page(events: Iterable[Any]) -> list[Event]:
    page = [as_event(event) for event in events]
    for nth in range(1, len(page)):
        left, right = page[nth - 1], page[nth]
        if right.seq > left.seq + 1:
            raise GapError(left.seq + 1, right.seq - 1)
        if right.seq <= left.seq:
            raise ConflictError(f"event {right.seq} stands behind event {left.seq}")
    return page
