"""The record of what was odd but survivable: bounded, counted for ever."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from assembler.engine.definition import Anomaly

__all__ = ["AnomalyLog"]


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
