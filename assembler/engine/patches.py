"""Snapshots and patches: what a View is on the wire, and how one becomes the next.

`apply` and `merge` are public: they are what a client or a publisher does. Not here: finding out
what changed (`views`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from assembler.engine.definition import Group, Node
from assembler.engine.errors import ConflictError, InputError
from assembler.engine.events import Position, pair, position
from assembler.engine.values import (
    Object,
    Text,
    freeze,
    freeze_object,
    same,
    thaw,
    utf16_units,
)

__all__ = [
    "Move",
    "Op",
    "Patch",
    "Put",
    "PutGroup",
    "Remove",
    "RemoveGroup",
    "Snapshot",
    "TextOp",
    "apply",
    "merge",
    "text_changes",
]

Path = tuple[str | int, ...]


class Remove(Struct, frozen=True, gc=False):
    """A Node is gone."""

    key: str

    def to_json(self) -> dict[str, Any]:
        return {"op": "remove", "key": self.key}


class Put(Struct, frozen=True, gc=False):
    """A Node is new or changed, and stands behind `after` (None: first)."""

    node: Node
    after: str | None

    @property
    def key(self) -> str:
        return self.node.key

    def to_json(self) -> dict[str, Any]:
        return {"op": "put", "node": self.node.to_json(), "after": self.after}


class Move(Struct, frozen=True, gc=False):
    """A Node, otherwise unchanged, stands behind `after` now; `position` is its new anchor."""

    key: str
    after: str | None
    position: Position

    def to_json(self) -> dict[str, Any]:
        anchor = list(pair(self.position))
        return {"op": "move", "key": self.key, "after": self.after, "anchor": anchor}


class TextOp(Struct, frozen=True, gc=False):
    """`text` was added to the text at `path`, which had `at` UTF-16 units so far."""

    key: str
    path: Path
    at: int
    text: str

    def to_json(self) -> dict[str, Any]:
        path = list(self.path)
        return {"op": "text", "key": self.key, "path": path, "at": self.at, "text": self.text}


class PutGroup(Struct, frozen=True, gc=False):
    """A group is new or changed."""

    group: Group

    @property
    def key(self) -> str:
        return self.group.key

    def to_json(self) -> dict[str, Any]:
        return {"op": "put-group", "group": self.group.to_json()}


class RemoveGroup(Struct, frozen=True, gc=False):
    """A group is gone."""

    key: str

    def to_json(self) -> dict[str, Any]:
        return {"op": "remove-group", "key": self.key}


Op = Remove | Put | Move | TextOp | PutGroup | RemoveGroup

_UNCHANGED: Any = Object({}, ())
"""In a Patch's `window`, `live` and `open`: as before. (Compared by identity.)"""


class Snapshot(Struct, frozen=True, gc=False, eq=False):
    """A whole View: its Nodes in order, its groups in order of their first members."""

    view: str
    revision: int
    nodes: tuple[Node, ...]
    groups: tuple[Group, ...]
    window: Any = Object({}, ())
    live: bool | None = None
    open: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and same(self.to_json(), other.to_json())

    def __ne__(self, other: object) -> bool:  # a Struct has one, which does not ask `==`
        return not self.__eq__(other)

    def __hash__(self) -> int:
        return hash((self.view, self.revision))

    def to_json(self) -> dict[str, Any]:
        """The wire form, as plain JSON values. O(size)."""
        return {
            "view": self.view,
            "revision": self.revision,
            "nodes": [node.to_json() for node in self.nodes],
            "groups": [group.to_json() for group in self.groups],
            "window": thaw(self.window),
            "live": self.live,
            "open": thaw(self.open),
        }

    @staticmethod
    def from_json(wire: Mapping[str, Any]) -> Snapshot:
        """The Snapshot of a wire form; `InputError` names a missing field."""
        with _Naming("snapshot"):
            return Snapshot(
                wire["view"],
                wire["revision"],
                tuple(_node(node) for node in wire["nodes"]),
                tuple(_group(group) for group in wire["groups"]),
                freeze(wire["window"]),
                wire["live"],
                freeze(wire["open"]),
            )


class Patch(Struct, frozen=True, gc=False, eq=False):
    """What leads a View from `revision_from` to `revision_to`. False when nothing changed.

    `window`, `live` and `open` are there when they changed (`to_json`).
    """

    view: str
    revision_from: int
    revision_to: int
    ops: tuple[Op, ...] = ()
    window: Any = _UNCHANGED
    live: Any = _UNCHANGED
    open: Any = _UNCHANGED

    def __bool__(self) -> bool:
        return self.revision_from != self.revision_to

    def to_json(self) -> dict[str, Any]:
        """The wire form, as plain JSON values. O(size)."""
        wire = {
            "view": self.view,
            "from": self.revision_from,
            "to": self.revision_to,
            "ops": [op.to_json() for op in self.ops],
        }
        for name in ("window", "live", "open"):
            value = getattr(self, name)
            if value is not _UNCHANGED:
                wire[name] = thaw(value)
        return wire

    @staticmethod
    def from_json(wire: Mapping[str, Any]) -> Patch:
        """The Patch of a wire form; `InputError` names a missing or unknown field."""
        with _Naming("patch"):
            return Patch(
                wire["view"],
                wire["from"],
                wire["to"],
                tuple(_op(op) for op in wire["ops"]),
                freeze(wire["window"]) if "window" in wire else _UNCHANGED,
                wire.get("live", _UNCHANGED),
                freeze(wire["open"]) if "open" in wire else _UNCHANGED,
            )


# -- from the wire -------------------------------------------------------------------------


class _Naming:
    """Turns a missing or malformed field into an `InputError` that says which."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KeyError):
            raise InputError(f"{self._what}: the field {error} is missing") from None
        if isinstance(error, (TypeError, ValueError, AttributeError, IndexError)):
            raise InputError(f"{self._what}: {error}") from None


def _node(wire: Mapping[str, Any]) -> Node:
    after, index = wire["anchor"]
    return Node(
        wire["kind"],
        wire["id"],
        freeze_object(wire["data"]),
        wire["key"],
        position(after, index),
        wire["turn"],
        wire["step"],
    )


def _group(wire: Mapping[str, Any]) -> Group:
    members = wire["members"]
    if not isinstance(members, (list, tuple)):
        raise TypeError("members: expected a list of keys")
    data = {key: wire[key] for key in wire if key not in ("key", "kind", "members")}
    return Group(wire["key"], wire["kind"], tuple(members), freeze_object(data))


def _op(wire: Mapping[str, Any]) -> Op:
    name = wire["op"]
    if name == "put":
        return Put(_node(wire["node"]), wire["after"])
    if name == "text":
        return _text_op(wire)
    if name == "move":
        return Move(wire["key"], wire["after"], position(*wire["anchor"]))
    if name == "put-group":
        return PutGroup(_group(wire["group"]))
    if name == "remove":
        return Remove(wire["key"])
    if name == "remove-group":
        return RemoveGroup(wire["key"])
    raise InputError(f"op: expected an operation of a patch, got {name!r}")


def _text_op(wire: Mapping[str, Any]) -> TextOp:
    path, at, text = wire["path"], wire["at"], wire["text"]
    steps = isinstance(path, (list, tuple)) and all(type(step) in (str, int) for step in path)
    if not (steps and type(at) is int and isinstance(text, str)):
        raise TypeError("text: expected a path of keys and indexes, a length `at`, and a text")
    return TextOp(wire["key"], tuple(path), at, text)


# -- differences ---------------------------------------------------------------------------


def text_changes(old: Any, new: Any, path: Path = ("data",)) -> list[tuple[Path, int, str]] | None:
    """How `new` differs from `old` when it differs by appended text alone: `(path, at, text)`.

    Empty: they are equal as JSON. None: it differs otherwise. O(size of what is another object).
    """
    if old is new:
        return []
    kind = type(new)
    if type(old) is not kind:
        return [] if same(old, new) else None
    if kind is Text:
        if old == new:
            return []
        suffix = new.suffix_of(old)
        return None if suffix is None else [(path, old.units, suffix)]
    if kind is Object:
        if old._shape is not new._shape:
            return [] if same(old, new) else None
        keys: Iterable[str | int] = old._shape
        olds, news = old._values, new._values
    elif kind is tuple:
        if len(old) != len(new):
            return None
        keys, olds, news = range(len(new)), old, new
    else:
        return [] if same(old, new) else None
    found: list[tuple[Path, int, str]] = []
    for key, before, after in zip(keys, olds, news, strict=False):
        if before is after:
            continue
        inner = text_changes(before, after, (*path, key))
        if inner is None:
            return None
        found += inner
    return found


# -- applying ------------------------------------------------------------------------------


class _Order:
    """Keys in order, as a linked ring, so that a put costs no search."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._next: dict[str | None, str | None] = {None: None}
        self._before: dict[str | None, str | None] = {None: None}
        last: str | None = None
        for key in keys:
            self.insert(key, last)
            last = key

    def insert(self, key: str, after: str | None) -> None:
        if after not in self._next:
            raise ConflictError(f"the patch puts {key!r} behind {after!r}, which is not there")
        behind = self._next[after]
        self._next[after], self._next[key] = key, behind
        self._before[key], self._before[behind] = after, key

    def remove(self, key: str) -> None:
        before, behind = self._before.pop(key), self._next.pop(key)
        self._next[before], self._before[behind] = behind, before

    def __iter__(self) -> Any:
        key = self._next[None]
        while key is not None:
            yield key
            key = self._next[key]


def _grow(value: Any, path: Path, op: TextOp) -> Any:
    """`value` with the text of `op` appended at `path`."""
    if not path:
        if not isinstance(value, (str, Text)):
            raise ConflictError(f"the patch adds text to {op.key!r} where no text is")
        units = value.units if isinstance(value, Text) else utf16_units(value)
        if units != op.at:
            raise ConflictError(
                f"the patch adds text to {op.key!r} at {op.at}, which has {units} units",
                units,
                op.at,
            )
        return (value if isinstance(value, Text) else Text(value)).append(op.text)
    head, rest = path[0], path[1:]
    try:
        if isinstance(value, tuple) and isinstance(head, int) and head >= 0:
            return (*value[:head], _grow(value[head], rest, op), *value[head + 1 :])
        return freeze_object(
            {key: _grow(item, rest, op) if key == head else item for key, item in value.items()}
            if head in value
            else value[head]
        )
    except (KeyError, IndexError, AttributeError, TypeError):
        raise ConflictError(
            f"the patch adds text to {op.key!r} at a path that is not there"
        ) from None


def grown(node: Node, op: TextOp) -> Node:
    """`node` with the text of `op` appended; `ConflictError` when it does not fit."""
    data = _grow(node.data, op.path[1:], op)
    return replace(node, data=data)


def apply(
    snapshot: Snapshot | Mapping[str, Any], patch: Patch | Mapping[str, Any]
) -> Snapshot | dict[str, Any]:
    """The Snapshot behind `patch`. Takes and gives wire forms (dicts) as well.

    Raises `ConflictError` when the patch does not lead on from this snapshot (another revision,
    an unknown neighbour, another length of text). O(size of the snapshot).
    """
    if not isinstance(snapshot, Snapshot):
        return _apply(Snapshot.from_json(snapshot), patch).to_json()
    return _apply(snapshot, patch)


def _apply(snapshot: Snapshot, patch: Patch | Mapping[str, Any]) -> Snapshot:
    if not isinstance(patch, Patch):
        patch = Patch.from_json(patch)
    if (patch.view, patch.revision_from) != (snapshot.view, snapshot.revision):
        raise ConflictError(
            f"the patch leads on from {patch.view} {patch.revision_from}, the snapshot is "
            f"{snapshot.view} {snapshot.revision}",
            snapshot.revision,
            patch.revision_from,
        )
    nodes = {node.key: node for node in snapshot.nodes}
    groups = {group.key: group for group in snapshot.groups}
    order = _Order(nodes)
    for op in patch.ops:
        _apply_op(op, nodes, groups, order)
    for group in groups.values():
        if not group.members or not nodes.keys() >= set(group.members):
            raise ConflictError(f"the group {group.key!r} has a member that is not there")
    kept = tuple(nodes[key] for key in order)
    places = {node.key: at for at, node in enumerate(kept)}
    return Snapshot(
        snapshot.view,
        patch.revision_to,
        kept,
        tuple(sorted(groups.values(), key=lambda group: (places[group.members[0]], group.kind))),
        snapshot.window if patch.window is _UNCHANGED else patch.window,
        snapshot.live if patch.live is _UNCHANGED else patch.live,
        snapshot.open if patch.open is _UNCHANGED else patch.open,
    )


def _apply_op(op: Op, nodes: dict[str, Node], groups: dict[str, Group], order: _Order) -> None:
    if type(op) is Put:
        if op.key in nodes:
            order.remove(op.key)
        order.insert(op.key, op.after)
        nodes[op.key] = op.node
    elif type(op) is PutGroup:
        groups[op.key] = op.group
    elif type(op) is RemoveGroup:
        groups.pop(op.key, None)
    elif op.key not in nodes:
        raise ConflictError(f"the patch changes {op.key!r}, which is not there")
    elif type(op) is TextOp:
        nodes[op.key] = grown(nodes[op.key], op)
    else:
        order.remove(op.key)
        if type(op) is Move:
            order.insert(op.key, op.after)
            node = nodes[op.key]
            nodes[op.key] = node.placed(op.position, node.turn, node.step)
        else:
            del nodes[op.key]


# -- merging -------------------------------------------------------------------------------


def merge(first: Patch, second: Patch) -> Patch:
    """One Patch for two that follow each other; `ConflictError` when they do not.

    Applying it equals applying both, and it does not grow with the number of patches: of what
    changed twice the last is kept, text that grew twice is one append. O(their ops).
    """
    if (first.view, first.revision_to) != (second.view, second.revision_from):
        raise ConflictError(
            f"a patch from {second.revision_from} does not follow one to {first.revision_to}",
            first.revision_to,
            second.revision_from,
        )
    merging = _Merging(first.ops)
    for op in second.ops:
        merging.add(op)
    return Patch(
        first.view,
        first.revision_from,
        second.revision_to,
        tuple(op for op in merging.ops if op is not None),
        first.window if second.window is _UNCHANGED else second.window,
        first.live if second.live is _UNCHANGED else second.live,
        first.open if second.open is _UNCHANGED else second.open,
    )


def _slot(op: Op) -> tuple[str, str]:
    return "group" if isinstance(op, (PutGroup, RemoveGroup)) else "node", op.key


class _Merging:
    """Ops in order, without those that later ones make idle.

    A View is ordered by anchor and key, so that a Node with the anchor it had is where it was.
    An op that put or moved a Node may go only if no op behind it names that Node as its neighbour.
    """

    def __init__(self, ops: Iterable[Op]) -> None:
        self.ops: list[Op | None] = []
        self._of: dict[tuple[str, str], list[int]] = {}
        self._named: dict[str, int] = {}
        for op in ops:
            self._append(_slot(op), op)

    def add(self, op: Op) -> None:
        slot = _slot(op)
        if isinstance(op, (PutGroup, RemoveGroup)):
            self._drop_last(slot)
            self._append(slot, op)
        elif isinstance(op, TextOp):
            self._grow(slot, op)
        elif isinstance(op, Move):
            self._place(slot, op, op.position)
        else:
            while isinstance(self._last(slot), TextOp):
                self._drop_last(slot)
            if isinstance(op, Put):
                self._place(slot, op, op.node.position)
            else:
                self._remove(slot, op)

    def _last(self, slot: tuple[str, str]) -> Op | None:
        history = self._of.get(slot)
        return self.ops[history[-1]] if history else None

    def _append(self, slot: tuple[str, str], op: Op) -> None:
        self._of.setdefault(slot, []).append(len(self.ops))
        if isinstance(op, (Put, Move)) and op.after is not None:
            self._named[op.after] = len(self.ops)
        self.ops.append(op)

    def _drop_last(self, slot: tuple[str, str]) -> None:
        history = self._of.get(slot)
        if history:
            self.ops[history.pop()] = None

    def _grow(self, slot: tuple[str, str], op: TextOp) -> None:
        for at in reversed(self._of.get(slot, ())):
            before = self.ops[at]
            if type(before) is Put:
                self.ops[at] = Put(grown(before.node, op), before.after)
                return
            if type(before) is Remove:
                break
            if type(before) is TextOp and before.path == op.path:
                self.ops[at] = TextOp(op.key, op.path, before.at, before.text + op.text)
                return
        self._append(slot, op)

    def _place(self, slot: tuple[str, str], op: Put | Move, position: Position) -> None:
        """A Node is put or moved: what put or moved it before is idle, or is made into this."""
        history = self._of.get(slot, [])
        at = next((at for at in reversed(history) if type(self.ops[at]) is not TextOp), None)
        before = None if at is None else self.ops[at]
        if at is None or not isinstance(before, (Put, Move)):
            self._append(slot, op)
            return
        if position == (before.node.position if isinstance(before, Put) else before.position):
            if isinstance(op, Put):
                self.ops[at] = Put(op.node, before.after)
            return
        if self._named.get(op.key, -1) > at:
            self._append(slot, op)
            return
        history.remove(at)
        self.ops[at] = None
        if isinstance(op, Move) and isinstance(before, Put):
            node = before.node
            op = Put(node.placed(position, node.turn, node.step), op.after)
        self._append(slot, op)

    def _remove(self, slot: tuple[str, str], op: Remove) -> None:
        """A Node goes: where it went before and came again, it just went."""
        history = self._of.get(slot, [])
        before = self._last(slot)
        idle = bool(history) and self._named.get(op.key, -1) <= history[-1]
        went = len(history) > 1 and type(self.ops[history[-2]]) is Remove
        if idle and (type(before) is Move or (type(before) is Put and went)):
            self._drop_last(slot)
        if not (idle and type(before) is Put and went):
            self._append(slot, op)
