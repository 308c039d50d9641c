"""Views: the ordered, keyed Nodes of one target, and the Patch between two flushes.

Here the Nodes that were made again are compared with those that stand, put into order, and
grouped. Not here: making them (`assembler`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace
from sortedcontainers import SortedList

from assembler.engine.definition import Anomaly, Group, GroupDefinition, Node
from assembler.engine.grouping import Grouping, Regrouped
from assembler.engine.patches import (
    Move,
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
from assembler.engine.values import Object, same

__all__ = ["Change", "View", "difference"]


_NO_WINDOW = Object({}, ())


class Change:
    """What one flush does to a View: between `prepare` and `commit` or `roll_back`."""

    __slots__ = ("gone", "groups", "put", "texts")

    def __init__(self) -> None:
        self.gone: dict[str, Node] = {}
        self.put: dict[str, tuple[Node | None, Node]] = {}
        self.texts: dict[str, list[tuple[Any, int, str]]] = {}
        """Which of `put` differ by appended text alone, and by which."""
        self.groups: list[tuple[Grouping, Regrouped]] = []


class View:
    """What one target shows since the last flush. Read-only for everybody but the Assembler."""

    __slots__ = (
        "__weakref__",
        "_groupings",
        "_live",
        "_nodes",
        "_open",
        "_order",
        "_window",
        "name",
        "revision",
    )

    def __init__(
        self,
        name: str,
        groups: Iterable[GroupDefinition] = (),
        *,
        window: Any = _NO_WINDOW,
        live: bool | None = None,
        open_now: Any = None,
        strict: bool = False,
    ) -> None:
        self.name = name
        self.revision = 0
        self._nodes: dict[str, Node] = {}
        self._order: Any = SortedList()
        self._groupings = [
            Grouping(each, self._order, self._nodes, strict=strict) for each in groups
        ]
        self._window: Any = window
        self._live: bool | None = live
        self._open: Any = open_now

    # -- reading -------------------------------------------------------------------------

    @property
    def nodes(self) -> list[Node]:
        """The visible Nodes in order, as a new list. O(n)."""
        nodes = self._nodes
        return [nodes[key] for _, key in self._order]

    def __getitem__(self, key: str) -> Node:
        """The visible Node of this key. O(1); `KeyError` when there is none."""
        return self._nodes[key]

    def get(self, key: str) -> Node | None:
        return self._nodes.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._nodes

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def groups(self) -> list[Group]:
        """The groups in the order of their first members, as a new list. O(g log g)."""
        nodes = self._nodes
        groups = [group for grouping in self._groupings for group in grouping.groups.values()]
        return sorted(groups, key=lambda g: (nodes[g.members[0]].position, g.members[0], g.kind))

    @property
    def rest(self) -> tuple[Any, bool | None, Any]:
        """The window, liveness and what is open, as a Snapshot says them. O(1)."""
        return self._window, self._live, self._open

    def findings(self) -> list[Anomaly]:
        """What the Group Definitions raised at."""
        return [odd for grouping in self._groupings for odd in grouping.findings()]

    def snapshot(self) -> Snapshot:
        """All of it. O(n)."""
        return Snapshot(
            self.name,
            self.revision,
            tuple(self.nodes),
            tuple(self.groups),
            self._window,
            self._live,
            self._open,
        )

    # -- the flush -----------------------------------------------------------------------

    def prepare(self, made: Mapping[str, Node | None], went: Collection[str]) -> Change:
        """Put the Nodes that were `made` (None: not visible any more) into their places, and
        find the groups around them.

        A key that `went` and came again is removed before it is put. A Group Definition may
        raise (under `strict`), and then nothing has changed. Either `commit` or `roll_back`
        comes next. O(changes · log n), plus the groups around them.
        """
        change = Change()
        for key, node in made.items():
            self._compare(change, key, node, came_again=key in went)
        self._shift(change)
        try:
            self._regroup(change)
        except BaseException:
            self.roll_back(change)
            raise
        return change

    def _compare(self, change: Change, key: str, node: Node | None, *, came_again: bool) -> None:
        old = self._nodes.get(key)
        if node is None:
            if old is not None:
                change.gone[key] = old
        elif old is None:
            change.put[key] = None, node
        elif came_again:
            change.gone[key] = old
            change.put[key] = None, node
        elif (old.position, old.turn, old.step) != (node.position, node.turn, node.step):
            change.put[key] = old, node
        else:
            grown = text_changes(old.data, node.data)
            if grown is None:
                change.put[key] = old, node
            elif grown:
                change.put[key] = old, node
                change.texts[key] = grown

    def _shift(self, change: Change) -> None:
        """Take what is gone out of the order, and put what is new or moved into it."""
        order, nodes = self._order, self._nodes
        for key, node in change.gone.items():
            order.remove((node.position, key))
            del nodes[key]
        for key, (old, node) in change.put.items():
            if old is None or old.position != node.position:
                if old is not None:
                    order.remove((old.position, key))
                order.add((node.position, key))
            nodes[key] = node

    def roll_back(self, change: Change) -> None:
        """Put everything back to where it was before `prepare`."""
        back = Change()
        for key, (old, node) in change.put.items():
            if old is None:
                back.gone[key] = node
            else:
                back.put[key] = node, old
        back.put.update({key: (None, node) for key, node in change.gone.items()})
        self._shift(back)

    def _regroup(self, change: Change) -> None:
        if not self._groupings or not (change.put or change.gone):
            return
        seams = [(node.position, key) for key, node in change.gone.items()]
        seams += [
            (old.position, key)
            for key, (old, new) in change.put.items()
            if old is not None and old.position != new.position
        ]
        for grouping in self._groupings:
            touched = [
                key
                for key in change.put
                if key not in change.texts or grouping.grew(self._nodes[key])
            ]
            if touched or change.gone:
                change.groups.append((grouping, grouping.regroup(touched, seams, set(change.gone))))

    def commit(
        self,
        change: Change,
        window: Any,
        live: bool | None,
        open_now: Any,
    ) -> Patch:
        """Take a prepared change over, and say what it was. Cannot fail."""
        ops: list[Op] = [Remove(key) for key in change.gone]
        # From left to right, so that every left neighbour already stands where it belongs.
        for spot in sorted((node.position, key) for key, (_, node) in change.put.items()):
            old, node = change.put[spot[1]]
            grown = change.texts.get(node.key)
            if grown is None:
                ops.append(self._op_of(old, node, spot))
            else:
                ops += [TextOp(node.key, path, at, text) for path, at, text in grown]
        for grouping, found in change.groups:
            grouping.install(found)
            ops += [RemoveGroup(key) for key in found.dissolved]
            ops += [PutGroup(group) for group in found.put]
        return self._patch(ops, window, live, open_now)

    def _op_of(self, old: Node | None, node: Node, spot: tuple[int, str]) -> Op:
        before = next(self._order.irange(None, spot, (True, False), reverse=True), None)
        after = None if before is None else before[1]
        if (
            old is not None
            and (old.turn, old.step) == (node.turn, node.step)
            and old.position != node.position
            and same(old.data, node.data)
        ):
            return Move(node.key, after, node.position)
        return Put(node, after)

    def _patch(self, ops: list[Op], window: Any, live: bool | None, open_now: Any) -> Patch:
        extra: dict[str, Any] = {}
        if window is not self._window and not same(window, self._window):
            extra["window"] = self._window = window
        if live is not self._live:
            extra["live"] = self._live = live
        if open_now is not self._open and not same(open_now, self._open):
            extra["open"] = self._open = open_now
        before = self.revision
        if ops or extra:
            self.revision += 1
        return Patch(self.name, before, self.revision, tuple(ops), **extra)

    def check(self) -> list[str]:
        """What is wrong with it, in words."""
        wrong = []
        expected = sorted((node.position, key) for key, node in self._nodes.items())
        if list(self._order) != expected:
            return [f"view {self.name}: its order is not that of its Nodes"]
        for grouping in self._groupings:
            wrong += grouping.check()
        return wrong


def difference(before: Snapshot, after: Snapshot, went: Collection[str] = ()) -> Patch:
    """The Patch from one Snapshot of a view to a later one: what many flushes would have sent,
    sent at once.

    A key that `went` in between and came again is removed before it is put. O(n log n).
    """
    old = {node.key: node for node in before.nodes}
    view = View(before.view, window=before.window, live=before.live, open_now=before.open)
    view.prepare(old, ())
    made: dict[str, Node | None] = dict.fromkeys(old)
    made.update({node.key: node for node in after.nodes})
    news = {key: node for key, node in made.items() if key in went or node is not old.get(key)}
    patch = view.commit(view.prepare(news, went), after.window, after.live, after.open)
    groups = {group.key: group for group in before.groups}
    put = [group for group in after.groups if _is_news(group, groups.pop(group.key, None))]
    ops: list[Op] = [*patch.ops, *map(RemoveGroup, groups), *map(PutGroup, put)]
    return replace(patch, revision_from=before.revision, revision_to=after.revision, ops=tuple(ops))


def _is_news(group: Group, before: Group | None) -> bool:
    return before is None or not group.equals(before)
