"""The ways to arrive at one conversation, and whether they show the same.

Live, loaded at once, paged in any size, evicted and paged again, reconnected: what is shown must
depend on the events alone. Here live these paths and `Shown`, which is what they are compared by.
Not here: playing a recording (`running`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Definition, GroupDefinition, Node
from assembler.engine.events import Event
from assembler.recordings.matching import Difference, first_difference

__all__ = ["PATHS", "Facts", "Shown", "arrive", "disagreement", "way_of"]

PAGE_SIZES = (1, 2, 3, 7, 50)
_DIGITS_MAX = 9

Definitions = Sequence[Definition | GroupDefinition]


class Facts(Struct, frozen=True):
    """What is known for good: durable events without a hole, whether older ones exist, liveness."""

    events: tuple[Event, ...]
    has_more: bool = False
    live: bool | None = None

    def between(self, first: int, last: int, *, has_more: bool) -> Facts:
        """The part with the seqs `first` to `last`."""
        events = tuple(event for event in self.events if first <= event.seq <= last)
        return Facts(events, has_more, self.live)


class Shown(Struct, frozen=True):
    """What an Assembler shows in its views, for comparing: no group keys, no incidents."""

    nodes: Mapping[str, tuple[Node, ...]]
    groups: Mapping[str, list[dict[str, Any]]]
    findings: list[dict[str, Any]]

    @staticmethod
    def by(assembler: Assembler, views: Iterable[str]) -> Shown:
        """What `assembler`, flushed before, shows in those views. O(what it shows)."""
        views = tuple(views)
        return Shown(
            {view: tuple(assembler.view(view).nodes) for view in views},
            {view: [_keyless(group) for group in assembler.view(view).groups] for view in views},
            sorted((odd.to_json() for odd in assembler.findings()), key=str),
        )

    def difference(self, other: Shown) -> Difference | None:
        """The first difference; None when both show the same."""
        for view, nodes in self.nodes.items():
            found = _node_difference(nodes, other.nodes[view])
            if found:
                return found
        return first_difference(
            {"groups": self.groups, "findings": self.findings},
            {"groups": other.groups, "findings": other.findings},
        )


def _keyless(group: Any) -> dict[str, Any]:
    return {name: value for name, value in group.to_json().items() if name != "key"}


def _node_difference(left: Sequence[Node], right: Sequence[Node]) -> Difference | None:
    ours_in_order, theirs_in_order = ([node.key for node in nodes] for nodes in (left, right))
    found = first_difference(ours_in_order, theirs_in_order, "nodes")
    if found:
        return found
    for ours, theirs in zip(left, right, strict=True):
        if not ours.equals(theirs):
            return first_difference(ours.to_json(), theirs.to_json(), ours.key)
    return None


# The paths. Each takes an Assembler that has seen nothing, and flushes behind every operation.


def _at_once(assembler: Assembler, facts: Facts) -> None:
    assembler.load(facts.events, has_more=facts.has_more)
    assembler.flush()


def _one_by_one(assembler: Assembler, facts: Facts) -> None:
    if facts.has_more and facts.events:
        _at_once(assembler, Facts(facts.events[:1], has_more=True))
    for event in facts.events[1 if facts.has_more else 0 :]:
        assembler.append(event)
        assembler.flush()


def _paged(assembler: Assembler, facts: Facts, size: int) -> None:
    """The newest page, then the older ones."""
    for number, (page, has_more) in enumerate(_pages(facts, size)):
        take = assembler.prepend if number else assembler.load
        take(page, has_more=has_more)
        assembler.flush()


def _pages(facts: Facts, size: int) -> Iterator[tuple[Sequence[Event], bool]]:
    end = len(facts.events)
    while end > 0:
        start = max(0, end - size)
        yield facts.events[start:end], facts.has_more or start > 0
        end = start


def _evicted(assembler: Assembler, facts: Facts, keep: float) -> None:
    """All, then only the newest part of it, then the rest again in pages."""
    _at_once(assembler, facts)
    if not facts.events:
        return
    kept = int(len(facts.events) * keep)
    assembler.evict(facts.events[-kept].seq if kept else facts.events[-1].seq + 1)
    assembler.flush()
    _page_older(assembler, facts, 3)


def _page_older(assembler: Assembler, facts: Facts, size: int) -> None:
    first = assembler.window.first
    if first is None:
        first = facts.events[-1].seq + 1
    older = facts.between(0, first - 1, has_more=facts.has_more)
    for page, has_more in _pages(older, size):
        assembler.prepend(page, has_more=has_more)
        assembler.flush()


def _reconnected(assembler: Assembler, facts: Facts, page: int) -> None:
    """The newest page as of two thirds of the events, the later ones live, then the older rest."""
    middle = len(facts.events) * 2 // 3
    start = max(0, middle - page)
    newest = facts.events[start:middle]
    if newest:
        assembler.load(newest, has_more=facts.has_more or start > 0)
        assembler.flush()
        for event in facts.events[middle:]:
            assembler.append(event)
            assembler.flush()
        _page_older(assembler, facts, len(facts.events))
    else:
        _at_once(assembler, facts)


Way = Callable[[Assembler, Facts], None]

PATHS: Mapping[str, Way] = {
    "history": _at_once,
    "append": _one_by_one,
    **{f"pages:{size}": partial(_paged, size=size) for size in PAGE_SIZES},
    "evict:half": partial(_evicted, keep=0.5),
    "evict:all": partial(_evicted, keep=0),
    "reconnect:1": partial(_reconnected, page=1),
    "reconnect:5": partial(_reconnected, page=5),
}
"""Every way but the live one, by name."""


def way_of(path: str) -> Way:
    """The way of that name; `KeyError` for none. Beside those of `PATHS`: `pages:N` of any size."""
    way = PATHS.get(path)
    if way is not None:
        return way
    name, _, size = path.partition(":")
    is_number = size.isascii() and size.isdecimal() and len(size) <= _DIGITS_MAX
    if name != "pages" or not is_number or int(size) < 1:
        raise KeyError(path)
    return partial(_paged, size=int(size))


def arrive(
    path: str, facts: Facts, definitions: Definitions, views: Iterable[str] = ("chat",)
) -> Assembler:
    """An Assembler that has come to `facts` by that path; `KeyError` as of `way_of`."""
    way = way_of(path)
    assembler = Assembler(definitions, views=tuple(views))
    assembler.liveness(facts.live)
    way(assembler, facts)
    assembler.flush()
    return assembler


def disagreement(
    live: Assembler,
    facts: Facts,
    definitions: Definitions,
    views: Iterable[str] = ("chat",),
    paths: Iterable[str] = tuple(PATHS),
) -> tuple[str, Difference] | None:
    """The first of `paths` that shows something else than `live`, and where; None: all agree.

    `live` holds no deltas. Where its window is only a part of the facts, it is compared with a
    load of just that part, and the paths with a load of all.
    """
    views = tuple(views)
    shown = Shown.by(live, views)
    window = live.window
    whole = [facts.events[0].seq, facts.events[-1].seq] if facts.events else [None, None]
    if [window.first, window.last, window.has_more] != [*whole, facts.has_more]:
        part = facts.between(window.first or 0, window.last or -1, has_more=window.has_more)
        found = shown.difference(Shown.by(arrive("history", part, definitions, views), views))
        if found:
            return "history", found
        shown = Shown.by(arrive("history", facts, definitions, views), views)
    for path in paths:
        found = shown.difference(Shown.by(arrive(path, facts, definitions, views), views))
        if found:
            return path, found
    return None
