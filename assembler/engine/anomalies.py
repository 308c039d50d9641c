"""The record of what was odd but survivable: bounded, counted for ever."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from assembler.engine.definition import Anomaly

__all__ = ["AnomalyLog"]


class AnomalyLog:
    """The newest anomalies, oldest of them first, and how many there ever were by kind."""

    def __init__(self, anomalies_max: int) -> None:
        self._newest: deque[Anomaly] = deque(maxlen=anomalies_max)
        self._found: set[Anomaly] = set()
        self._counts: dict[str, int] = {}

    def __iter__(self) -> Iterator[Anomaly]:
        return iter(tuple(self._newest))

    def __len__(self) -> int:
        return len(self._newest)

    @property
    def counts(self) -> dict[str, int]:
        """How many there ever were, by kind."""
        return dict(self._counts)

    @property
    def total(self) -> int:
        """How many there ever were."""
        return sum(self._counts.values())

    def incident(self, anomaly: Anomaly) -> None:
        """Enter something that happened: at each occurrence."""
        self._newest.append(anomaly)
        self._counts[anomaly.kind] = self._counts.get(anomaly.kind, 0) + 1

    def findings(self, anomalies: Iterable[Anomaly]) -> None:
        """Enter what holds now: each only when it is first found."""
        for anomaly in anomalies:
            if anomaly not in self._found:
                self._found.add(anomaly)
                self.incident(anomaly)

    def copy(self) -> AnomalyLog:
        twin = AnomalyLog(self._newest.maxlen or 1)
        twin._newest.extend(self._newest)
        twin._found = set(self._found)
        twin._counts = dict(self._counts)
        return twin
