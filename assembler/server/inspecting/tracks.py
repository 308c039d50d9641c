"""A value over time: what it was at any moment, kept as its changes alone.

Moments are numbered: at 0 nothing has happened yet, at `k` the first `k` operations have. Not here:
what the values are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Generic, TypeVar

__all__ = ["Track"]

T = TypeVar("T")


class Track(Generic[T]):
    """One value over time. Values are immutable and shared, so that a change costs one slot."""

    __slots__ = ("moments", "values")

    def __init__(self, first: T) -> None:
        self.moments: list[int] = [0]
        """When it became each of `values`, rising."""
        self.values: list[T] = [first]

    def put(self, moment: int, value: T) -> bool:
        """It is `value` from `moment` on (the newest so far); whether that is a change. O(1)."""
        if value is self.values[-1]:
            return False
        if self.moments[-1] == moment:
            self.values[-1] = value
            return True
        self.moments.append(moment)
        self.values.append(value)
        return True

    def at(self, moment: int) -> T:
        """What it was. O(log changes)."""
        return self.values[bisect_right(self.moments, moment) - 1]

    def until(self, moment: int) -> Iterator[tuple[int, T]]:
        """Every value that it had up to `moment`, with when it became so."""
        end = bisect_right(self.moments, moment)
        return zip(self.moments[:end], self.values[:end], strict=True)
