"""The harness: interleaved rounds, ratios within one run, and the table.

Every figure is a ratio of contenders that were measured in turns within one run, so that a busy
or slow machine moves both. Not here: what is measured (`goals`) and out of what (`workloads`).
"""

from __future__ import annotations

import gc
import os
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import log
from pathlib import Path
from statistics import median
from time import process_time
from types import FrameType
from typing import Any

from msgspec import Struct

__all__ = [
    "Pauses",
    "Prepare",
    "Row",
    "Times",
    "calls",
    "exponent",
    "interleaved",
    "resident",
    "seconds",
    "table",
    "traced",
]

Clock = Callable[[], float]
Run = Callable[[], object]
Prepare = Callable[[], Run]
"""Makes fresh what one round needs, which is not measured, and gives what is."""


class Row(Struct, frozen=True):
    """One line of the table: what was measured, and the most it may be (None: only told)."""

    goal: str
    what: str
    measured: float
    limit: float | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.limit is None:
            return ""
        return "met" if self.measured <= self.limit else "MISSED"


class Times(Struct, frozen=True):
    """Seconds (of the processor, unless said otherwise) by contender, round by round."""

    rounds: Mapping[str, Sequence[float]]

    def best(self, name: str) -> float:
        return min(self.rounds[name])

    def ratio(self, name: str, over: str) -> float:
        """Minimum over minimum: what is left when others disturb."""
        return self.best(name) / self.best(over)

    def middle(self, name: str, over: str) -> float:
        """The median of the ratios within each round."""
        pairs = zip(self.rounds[name], self.rounds[over], strict=True)
        return median(mine / other for mine, other in pairs)

    def row(self, goal: str, what: str, name: str, over: str, limit: float | None = None) -> Row:
        note = f"median {self.middle(name, over):.2f}, {self.best(name) * 1e3:.1f} ms"
        return Row(goal, what, self.ratio(name, over), limit, note)


def seconds(run: Run, clock: Clock = process_time) -> float:
    """Seconds of one call. Garbage of before is collected first, its own counts."""
    gc.collect()
    begin = clock()
    run()
    return clock() - begin


def interleaved(
    contenders: Mapping[str, Prepare], rounds: int, clock: Clock = process_time
) -> Times:
    """Measure each contender once per round, the order turned round every time.

    The clock is another one where somebody else works, and is waited for.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for _ in range(rounds):
        for name in names:
            times[name].append(seconds(contenders[name](), clock))
        names.reverse()
    return Times(times)


def exponent(small: float, large: float, factor: float) -> float:
    """How cost grows with size: 1 is linear."""
    return log(large / small) / log(factor)


def calls(run: Run) -> int:
    """How many calls, of Python and of C functions, one run makes: the same on any machine."""
    count = 0

    def tell(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(tell)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


class Pauses:
    """How long each garbage collection takes while it is entered."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._begin = 0.0

    def _tell(self, phase: str, _info: Mapping[str, int]) -> None:
        if phase == "start":
            self._begin = process_time()
        else:
            self.seconds.append(process_time() - self._begin)

    @contextmanager
    def watched(self) -> Iterator[None]:
        gc.callbacks.append(self._tell)
        try:
            yield
        finally:
            gc.callbacks.remove(self._tell)

    @property
    def worst(self) -> float:
        return max(self.seconds, default=0.0)


def traced(make: Callable[[], object]) -> tuple[int, object]:
    """Bytes that what `make` gives holds, as Python allocated them, and the thing itself."""
    gc.collect()
    tracemalloc.start()
    try:
        made = make()
        gc.collect()
        return tracemalloc.get_traced_memory()[0], made
    finally:
        tracemalloc.stop()


def resident() -> int:
    """Resident bytes of this process; 0 where the system does not tell."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def table(rows: Iterable[Row]) -> str:
    """The rows as a table of Markdown."""
    lines = ["| goal | what | measured | at most | verdict | |", "|---|---|---:|---:|---|---|"]
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:g}"
        cells = (row.goal, row.what, f"{row.measured:.2f}", limit, row.verdict, row.note)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
