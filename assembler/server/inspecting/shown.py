"""What a view showed at each moment, and the Patch between any two of them, forwards or backwards.

Nodes and Groups are immutable, so that keeping every one that was ever shown costs their number,
and a moment is looked up instead of made again. Not here: making them (the engine).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assembler.engine.definition import Group, Node
from assembler.engine.patches import (
    Op,
    Patch,
    Put,
    PutGroup,
    Remove,
    RemoveGroup,
    Snapshot,
    TextOp,
    text_changes,
)
from assembler.engine.views import View
from assembler.server.inspecting.tracks import Track

__all__ = ["ShownTrack"]

_FEW = 64
"""So many Nodes are put into their places one by one; for more the whole order is made."""

Spot = tuple[int, str]


class ShownTrack:
    """One view over time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: dict[str, Track[Node | None]] = {}
        self._groups: dict[str, Track[Group | None]] = {}
        self._touched: list[tuple[int, frozenset[str], frozenset[str]]] = []
        """Moments at which something changed: the keys of Nodes, and of groups."""
        self._rest: Track[tuple[Any, Any, Any]] = Track(({}, None, None))
        self._spots: list[Spot] | None = None
        """Every place at which a Node ever stood, in order."""
        self._revision: int | None = None
        self._view: View | None = None

    # -- taking --------------------------------------------------------------------------

    def take(self, moment: int, view: View, patch: Patch | None) -> None:
        """What a flush changed: `patch`, or all where it does not follow the one before."""
        follows = self._view is view and patch is not None
        nodes, groups = (
            _named(patch)
            if follows and patch is not None and patch.revision_from == self._revision
            else self._all(view)
        )
        self._view, self._revision = view, view.revision
        moved = [key for key in nodes if self._put(self.nodes, moment, key, view.get(key))]
        regrouped = [
            key for key, group in groups.items() if self._put(self._groups, moment, key, group)
        ]
        if moved or regrouped:
            self._touched.append((moment, frozenset(moved), frozenset(regrouped)))
        self._take_rest(moment, view)

    def _all(self, view: View) -> tuple[Iterable[str], Mapping[str, Group | None]]:
        nodes = {*self.nodes, *(node.key for node in view.nodes)}
        groups: dict[str, Group | None] = dict.fromkeys(self._groups)
        return nodes, groups | {group.key: group for group in view.groups}

    @staticmethod
    def _put(tracks: dict[str, Track[Any]], moment: int, key: str, value: Any) -> bool:
        track = tracks.get(key)
        if track is None:
            if value is None:
                return False
            track = tracks[key] = Track(None)
        return track.put(moment, value)

    def _take_rest(self, moment: int, view: View) -> None:
        """The window, liveness and what is open: small, and seldom another."""
        rest = view.rest
        if rest != self._rest.values[-1]:
            self._rest.put(moment, rest)

    # -- reading -------------------------------------------------------------------------

    def snapshot(self, moment: int) -> Snapshot:
        """All that it showed; its revision is the moment. O(n log n) in all Nodes ever."""
        nodes = tuple(node for _, _, node in self._standing(moment))
        groups = self._groups_at(moment, {node.key: at for at, node in enumerate(nodes)})
        return Snapshot(self.name, moment, nodes, tuple(groups), *self._rest.at(moment))

    def patch(self, before: int, after: int) -> Patch:
        """What leads from one moment to another, whichever is earlier.

        O(what differs · log n); between distant moments O(n log n).
        """
        keys, group_keys = self._between(before, after)
        pairs = {
            key: (track.at(before), track.at(after))
            for key in keys
            if (track := self.nodes[key]).at(before) is not track.at(after)
        }
        ops: list[Op] = [Remove(key) for key, (_, new) in pairs.items() if new is None]
        ops += self._puts(pairs, after)
        for key in group_keys:
            old, new = (self._groups[key].at(moment) for moment in (before, after))
            if new is None and old is not None:
                ops.append(RemoveGroup(key))
            elif new is not None and new is not old:
                ops.append(PutGroup(new))
        rests = zip(_REST, self._rest.at(before), self._rest.at(after), strict=True)
        extra: dict[str, Any] = {name: new for name, old, new in rests if old != new}
        return Patch(self.name, before, after, tuple(ops), **extra)

    def changed(self, key: str, moment: int) -> list[tuple[int, Node | None]]:
        """Every Node of one key up to a moment, with when it came (None: it was gone)."""
        track = self.nodes.get(key)
        return [] if track is None else list(track.until(moment))[1:]

    def _between(self, before: int, after: int) -> tuple[Iterable[str], Iterable[str]]:
        """The keys of the Nodes and groups that changed in between."""
        low, high = sorted((before, after))
        touched = self._touched
        start = bisect_right(touched, low, key=lambda each: each[0])
        end = bisect_right(touched, high, key=lambda each: each[0])
        part = touched[start:end]
        return (
            frozenset().union(*(nodes for _, nodes, _ in part)),
            frozenset().union(*(groups for _, _, groups in part)),
        )

    def _puts(
        self, pairs: Mapping[str, tuple[Node | None, Node | None]], after: int
    ) -> Iterable[Op]:
        """From left to right, so that every left neighbour already stands where it belongs."""
        put = [(new.position, key, old, new) for key, (old, new) in pairs.items() if new]
        put.sort()  # keys are unique, so that no Nodes are compared
        order = self._order(after) if len(put) > _FEW else None
        for position, key, old, new in put:
            grown = _grown(old, new)
            if grown is None:
                yield Put(new, self._left_of((position, key), after, order))
            else:
                yield from (TextOp(key, path, at, text) for path, at, text in grown)

    def _order(self, moment: int) -> list[Spot]:
        return [(position, key) for position, key, _ in self._standing(moment)]

    def _standing(self, moment: int) -> Sequence[tuple[int, str, Node]]:
        """What stood there, in order."""
        found = [
            (node.position, key, node)
            for key, track in self.nodes.items()
            if (node := track.at(moment)) is not None
        ]
        found.sort()  # keys are unique, so that no Nodes are compared
        return found

    def _left_of(self, spot: Spot, moment: int, order: Sequence[Spot] | None) -> str | None:
        if order is not None:
            at = bisect_left(order, spot)
            return order[at - 1][1] if at else None
        if self._spots is None or self._touched[-1][0] > self._spots_of:
            self._spots = self._all_spots()
            self._spots_of = self._touched[-1][0]
        for position, key in reversed(self._spots[: bisect_left(self._spots, spot)]):
            node = self.nodes[key].at(moment)
            if node is not None and node.position == position:
                return key
        return None

    _spots_of = -1

    def _all_spots(self) -> list[Spot]:
        return sorted(
            {
                (node.position, key)
                for key, track in self.nodes.items()
                for node in track.values
                if node is not None
            }
        )

    def _groups_at(self, moment: int, places: Mapping[str, int]) -> list[Group]:
        found = [
            group for track in self._groups.values() if (group := track.at(moment)) is not None
        ]
        return sorted(found, key=lambda group: (places[group.members[0]], group.kind))


_REST = ("window", "live", "open")


def _named(patch: Patch) -> tuple[Iterable[str], Mapping[str, Group | None]]:
    """The keys of the Nodes that a patch names, and what it makes of groups."""
    nodes: dict[str, None] = {}
    groups: dict[str, Group | None] = {}
    for op in patch.ops:
        if type(op) is PutGroup:
            groups[op.key] = op.group
        elif type(op) is RemoveGroup:
            groups[op.key] = None
        else:
            nodes[op.key] = None
    return nodes, groups


def _grown(old: Node | None, new: Node) -> list[tuple[Any, int, str]] | None:
    """The texts that were added, where nothing else differs; None: it does."""
    if old is None or (old.position, old.turn, old.step) != (new.position, new.turn, new.step):
        return None
    return text_changes(old.data, new.data)
