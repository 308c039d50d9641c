"""What is odd but survivable: the findings that hold now, and the record of all there ever was.

The record is bounded and counts for ever. Not here: what is odd.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator

from assembler.engine.definition import Anomaly

__all__ = ["AnomalyLog", "Findings"]


class Findings:
    """The findings that hold, as of the last `settle`. A change costs what came and went."""

    __slots__ = ("_changes", "_held")

    def __init__(self) -> None:
        self._held: dict[Anomaly, int] = {}
        """Of each finding how many say so."""
        self._changes: list[tuple[Anomaly, int]] = []

    def __iter__(self) -> Iterator[Anomaly]:
        return iter(tuple(self._held))

    def expected(self) -> set[Anomaly]:
        """What the next `settle` will leave. O(their number)."""
        held = Counter(self._held)
        for anomaly, step in self._changes:
            held[anomaly] += step
        return set(+held)

    def succeed(self, old: Findings) -> None:
        """Stand in the place of `old`: what that one held holds until the next `settle`, no longer
        unless somebody says so again."""
        self._held = dict(old._held)
        self._changes = [(anomaly, -count) for anomaly, count in self._held.items()]

    def change(self, before: Iterable[Anomaly], now: Iterable[Anomaly]) -> None:
        """Something that said `before` says `now`; from the next `settle` on."""
        self._changes += [(anomaly, -1) for anomaly in before]
        self._changes += [(anomaly, 1) for anomaly in now]

    def settle(self) -> list[Anomaly]:
        """Take the changes over, and give what holds now of them."""
        changed = dict.fromkeys(anomaly for anomaly, _ in self._changes)
        for anomaly, step in self._changes:
            self._held[anomaly] = self._held.get(anomaly, 0) + step
        self._changes.clear()
        for anomaly in changed:
            if not self._held[anomaly]:
                del self._held[anomaly]
        return [anomaly for anomaly in changed if anomaly in self._held]


class AnomalyLog:
    """The newest anomalies, oldest of them first, and how many there ever were by kind."""

    __slots__ = ("_counts", "_found", "_max", "_newest")

    def __init__(self, anomalies_max: int) -> None:
        self._max = anomalies_max
        # Most conversations have none, so that most need no place for them.
        self._newest: deque[Anomaly] | None = None
        self._found: set[Anomaly] | None = None
        self._counts: dict[str, int] | None = None

    def __iter__(self) -> Iterator[Anomaly]:
        return iter(tuple(self._newest or ()))

    def __len__(self) -> int:
        return len(self._newest or ())

    @property
    def counts(self) -> dict[str, int]:
        """How many there ever were, by kind."""
        return dict(self._counts or {})

    @property
    def total(self) -> int:
        """How many there ever were."""
        return sum(self.counts.values())

    def incident(self, anomaly: Anomaly) -> None:
        """Enter something that happened: at each occurrence."""
        if self._newest is None or self._counts is None:
            self._newest, self._counts = deque(maxlen=self._max), {}
        self._newest.append(anomaly)
        self._counts[anomaly.kind] = self._counts.get(anomaly.kind, 0) + 1

    def findings(self, anomalies: Iterable[Anomaly]) -> None:
        """Enter what holds now: each only when it is first found."""
        found = self._found or set()
        for anomaly in anomalies:
            if anomaly not in found:
                found.add(anomaly)
                self.incident(anomaly)
        self._found = found or None

    def copy(self) -> AnomalyLog:
        """Another log with the same content, which changes by itself."""
        twin = AnomalyLog(self._max)
        twin._newest = None if self._newest is None else self._newest.copy()
        twin._found = None if self._found is None else set(self._found)
        twin._counts = None if self._counts is None else dict(self._counts)
        return twin
