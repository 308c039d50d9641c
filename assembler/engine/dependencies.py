"""Who read what: from a key that was read to the Contexts whose values or Nodes read it.

Keys are texts, because a tuple would make the garbage collector walk a whole dict of
them each time one is new. A reader that is made again forgets what it read before. Not here: what
the keys stand for (`scopes`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sortedcontainers import SortedList

from assembler.engine.contexts import Entry
from assembler.engine.locations import TURN_END, Floor

__all__ = ["COMPLETE", "LIVE", "PHASES", "Dependencies", "Key", "Phase"]

Phase = int
STEP_VALUE, TURN_VALUE, BUILD = PHASES = (0, 1, 2)

Key = str
LIVE: Key = "live"
COMPLETE: Key = "complete"
_STATUS = "status:"


class Dependencies:
    """Readers by key and phase. Recording and forgetting one read is O(1), a status O(log open)."""

    __slots__ = ("_readers", "_statuses")

    def __init__(self) -> None:
        # One reader stands for itself, several are a dict: most keys have one.
        self._readers: tuple[dict[Key, Any], ...] = ({}, {}, {})
        self._statuses: Any = None
        # Made when the first status is read: an idle conversation has none.

    def record(self, entry: Entry, phase: Phase, keys: tuple[Key, ...]) -> None:
        """`entry` read exactly `keys` in this phase."""
        reads = entry.reads
        before = reads[phase] if reads is not None else ()
        if before == keys:
            return
        readers = self._readers[phase]
        for key in before:
            if key not in keys:
                self._remove(readers, key, entry)
        for key in keys:
            if key not in before:
                self._insert(readers, key, entry)
        if reads is None:
            reads = ((), (), ())
        reads = (*reads[:phase], keys, *reads[phase + 1 :])
        entry.reads = None if reads == ((), (), ()) else reads

    def forget(self, entry: Entry) -> None:
        """The reader goes."""
        for phase in PHASES:
            self.record(entry, phase, ())

    def _insert(self, readers: dict[Key, Any], key: Key, entry: Entry) -> None:
        held = readers.get(key)
        if held is None:
            readers[key] = entry
            if key.startswith(_STATUS):
                if self._statuses is None:
                    self._statuses = SortedList()
                self._statuses.add(_place_of(key))
        elif type(held) is dict:
            held[entry] = None
        else:
            readers[key] = {held: None, entry: None}

    def _remove(self, readers: dict[Key, Any], key: Key, entry: Entry) -> None:
        held = readers[key]
        if type(held) is dict:
            del held[entry]
            if held:
                return
        del readers[key]
        if key.startswith(_STATUS):
            self._statuses.remove(_place_of(key))

    def mark(self, key: Key, dirty: tuple[dict[Entry, None], ...]) -> bool:
        """Put everybody who read `key` among the `dirty` of their phases; whether there is
        anybody. O(readers)."""
        marked = False
        for readers, found in zip(self._readers, dirty, strict=True):
            held = readers.get(key)
            if held is None:
                continue
            marked = True
            if type(held) is dict:
                found.update(held)
            else:
                found[held] = None
        return marked

    @property
    def has_statuses(self) -> bool:
        """Whether anybody read the status of a turn or step that was not closed."""
        return bool(self._statuses)

    def statuses(self, above: Floor, upto: Floor) -> list[Key]:
        """The keys of statuses that were read with `above < place <= upto`."""
        if not self._statuses:
            return []
        found = self._statuses.irange(above, upto, inclusive=(False, True))
        return [f"{_STATUS}{turn}:{step}" for turn, step in dict.fromkeys(found)]

    def check(self, entries: Iterable[Entry]) -> list[str]:
        """What is wrong with it, in words, if `entries` are all that read."""
        expected: tuple[dict[Key, set[Entry]], ...] = ({}, {}, {})
        for entry in entries:
            for phase, keys in enumerate(entry.reads or ()):
                for key in keys:
                    expected[phase].setdefault(key, set()).add(entry)
        held = tuple(
            {key: set(who) if type(who) is dict else {who} for key, who in readers.items()}
            for readers in self._readers
        )
        return [] if held == expected else ["dependencies: readers and what they read differ"]


def status_key(turn: int, step: int | None) -> Key:
    """The status of a turn or step."""
    return f"{_STATUS}{turn}:{TURN_END if step is None else step}"


def _place_of(key: Key) -> Floor:
    """The place of a status, which sorts like the floor."""
    _, turn, step = key.split(":")
    return int(turn), int(step)
