"""A conversation of the catalog, delivered in every plain way, checked after every operation.

What is checked is `tests.convergence.support.Bench`. Not here: tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assembler.engine.assembler import Assembler
from assembler.engine.events import Delta, Event
from definitions import catalog
from tests.convergence.support import Bench

__all__ = ["VIEWS", "data_of", "every_way", "keys_of", "live"]

VIEWS = ("chat", "trajectory")


def live(*items: Event | Delta | tuple[Any, ...]) -> Bench:
    """A bench that all this happened to, one by one; a tuple is an operation by its name."""
    bench = Bench(catalog, VIEWS)
    for item in items:
        if isinstance(item, tuple):
            bench.do(*item)
        else:
            bench.do("append" if isinstance(item, Event) else "emit", item)
        bench.check()
    return bench


def every_way(events: Sequence[Event]) -> Bench:
    """Live, in pages of 1, 2 and 3 from the end, and forgotten and paged again: all checked, and
    all the same at the end."""
    first = live(*events)
    for size in (1, 2, 3):
        paged = Bench(catalog, VIEWS)
        at = max(len(events) - size, 0)
        paged.do("load", events[at:], at > 0)
        paged.check()
        while at:
            start = max(at - size, 0)
            paged.do("prepend", events[start:at], start > 0)
            paged.check()
            at = start
        for view in VIEWS:
            assert paged.snapshots[view]["nodes"] == first.snapshots[view]["nodes"]
    for before in range(2, len(events) + 2):
        first.do("evict", before)
        first.check()
        first.do("prepend", events[: before - 1], False)
        first.check()
    return first


def keys_of(side: Bench | Assembler, view: str = "chat") -> list[str]:
    assembler = side.assembler if isinstance(side, Bench) else side
    return [node.key for node in assembler.view(view).nodes]


def data_of(side: Bench | Assembler, key: str, view: str = "chat") -> Any:
    assembler = side.assembler if isinstance(side, Bench) else side
    data: Any = assembler.view(view)[key].to_json()["data"]
    return data
