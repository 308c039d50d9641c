"""Who looks backward at whom: started Contexts by start position, for the kinds that are asked.

When a start comes, goes or changes its State, only the askers between it and the next start of
its kind can get another answer. Finding them is a look-up in two sorted lists; whether the answer
is another one is asked when all that starts before them is folded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from sortedcontainers import SortedList

from assembler.engine.contexts import Entry, Tables, order_key

__all__ = ["Lookup", "Predecessors"]

Spot = tuple[int, str, str]
Answer = tuple[str, Any] | None


class Predecessors:
    """Indexes only the kinds that somebody asked for, from the first question on."""

    __slots__ = ("_asked", "_askers", "_starts", "_tables", "ask_complete")

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._starts: dict[str, Any] = {}
        self._askers: dict[str, Any] = {}
        self._asked: dict[str, dict[str, Entry]] = {}
        self.ask_complete: dict[Entry, bool] = {}
        """Whose start asked whether older history exists, and what it was told."""

    @property
    def kinds(self) -> Collection[str]:
        """The kinds that somebody asked for."""
        return self._starts

    # -- asking --------------------------------------------------------------------------

    def previous(self, asker: Entry, kind: str) -> Answer:
        """The nearest started Context before the asker; question and answer are recorded."""
        if kind not in self._tables.kinds:
            return None
        answer = self._answer(asker, kind)
        self._record(asker, kind, answer)
        return answer

    def _answer(self, asker: Entry, kind: str) -> Answer:
        starts = self._index(kind)
        at = starts.bisect_left((*order_key(asker.lead), ""))
        if at == 0:
            return None
        ident = starts[at - 1][2]
        return ident, self._tables[kind][ident].state

    def answered_otherwise(self, asker: Entry, *, complete: bool) -> bool:
        """Whether the questions of a start would get other answers now."""
        if self.ask_complete.get(asker, complete) is not complete:
            return True
        for kind, before in asker.asks:
            now = self._answer(asker, kind)
            if now is None or before is None:
                if now is not before:
                    return True
            elif now[0] != before[0] or now[1] is not before[1]:
                return True
        return False

    def _index(self, kind: str) -> Any:
        starts = self._starts.get(kind)
        if starts is None:
            spots = []
            for entry in self._tables[kind].values():
                if entry.start_at is not None and entry.failure is None:
                    entry.indexed = (*order_key(entry.lead), entry.id)
                    spots.append(entry.indexed)
            starts = self._starts[kind] = SortedList(spots)
            self._askers[kind] = SortedList()
            self._asked[kind] = {}
        return starts

    def _record(self, asker: Entry, kind: str, answer: Answer) -> None:
        if any(asked == kind for asked, _ in asker.asks):
            return
        asker.asks = (*asker.asks, (kind, answer))
        self._asked[kind][asker.key] = asker
        self._askers[kind].add((*order_key(asker.lead), asker.key))

    def forget(self, asker: Entry, spot: tuple[int, str] | None) -> None:
        """The asker is about to ask again (from another place), or goes."""
        for kind, _ in asker.asks:
            del self._asked[kind][asker.key]
            if spot is not None:
                self._askers[kind].discard((*spot, asker.key))
        asker.asks = ()
        self.ask_complete.pop(asker, None)

    # -- answers that change -------------------------------------------------------------

    def moved(self, entry: Entry) -> Iterator[Entry]:
        """The start of `entry` came, went or moved: whose answers change."""
        kind = entry.spec.kind
        starts = self._starts.get(kind)
        if starts is None:
            return
        started = not entry.gone and entry.start_at is not None and entry.failure is None
        spot = (*order_key(entry.lead), entry.id) if started else None
        if spot == entry.indexed:
            return
        if entry.indexed is not None:
            starts.remove(entry.indexed)
            yield from self._behind(kind, entry.indexed)
        entry.indexed = spot
        if spot is not None:
            starts.add(spot)
            yield from self._behind(kind, spot)

    def changed(self, entry: Entry) -> Iterator[Entry]:
        """The State of `entry` changed: who looks at it."""
        if entry.indexed is not None and entry.spec.kind in self._starts:
            yield from self._behind(entry.spec.kind, entry.indexed)

    def _behind(self, kind: str, spot: Spot) -> Iterator[Entry]:
        starts = self._starts[kind]
        at = starts.bisect_right((spot[0], spot[1], "\U0010ffff"))
        low = (spot[0], spot[1], "\U0010ffff")
        high = (*starts[at][:2], "\U0010ffff") if at < len(starts) else None
        asked = self._asked[kind]
        for found in list(self._askers[kind].irange(low, high)):
            yield asked[found[2]]

    def check(self) -> list[str]:
        """What is wrong with it, in words, when all is settled."""
        wrong = []
        for kind, starts in self._starts.items():
            expected = sorted(
                (*order_key(entry.lead), entry.id)
                for entry in self._tables[kind].values()
                if entry.start_at is not None and entry.failure is None
            )
            if list(starts) != expected:
                wrong.append(f"predecessors: the starts of {kind} are not those that hold")
            askers = sorted(
                (*entry.asked_at, entry.key)
                for table in self._tables.values()
                for entry in table.values()
                if any(asked == kind for asked, _ in entry.asks)
            )
            if list(self._askers[kind]) != askers or len(self._asked[kind]) != len(askers):
                wrong.append(f"predecessors: who asks for {kind} is not known")
        return wrong


class Lookup:
    """The Reader of one `start`. Good for that call alone."""

    __slots__ = ("_complete", "_entry", "_open", "_predecessors")

    def __init__(self, predecessors: Predecessors, entry: Entry, *, complete: bool) -> None:
        self._predecessors = predecessors
        self._entry = entry
        self._complete = complete
        self._open = True

    def previous(self, kind: str) -> Answer:
        return self._predecessors.previous(self._entry, kind) if self._open else None

    @property
    def complete(self) -> bool:
        if self._open:
            self._predecessors.ask_complete[self._entry] = self._complete
        return self._complete

    def close(self) -> None:
        self._open = False
