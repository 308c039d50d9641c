"""One small Definition whose methods a test replaces, and short ways to write items.

Not here: tests, and Definitions that use everything at once (`tests/convergence/toys.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from assembler.engine.assembler import Assembler
from assembler.engine.definition import (
    START,
    UPDATE,
    Context,
    Definition,
    GroupDefinition,
    Match,
    Members,
    Node,
    Reader,
    Role,
    Scope,
)
from assembler.engine.events import Delta, Event, Item
from assembler.testing import compare

__all__ = [
    "Band",
    "Toy",
    "delta",
    "event",
    "everything",
    "fresh",
    "same_as_fresh",
    "shown",
    "wire",
]


class Toy(Definition):
    """Events `kind` and deltas `kind-piece` start a Context, `kind/more` and `kind-more` update it.

    The item's `id` says which one. Its State is the `v` of all its Matches. `methods` replace
    methods of the contract; who was asked what is counted (`asked`).
    """

    def __init__(
        self,
        kind: str = "toy",
        target: str | None = "chat",
        takes: Iterable[str] = (),
        **methods: Callable[..., Any],
    ) -> None:
        self.kind = kind  # type: ignore[misc]
        self.target = target
        own = {kind, f"{kind}/more", f"{kind}-piece", f"{kind}-more"}
        self.takes = frozenset(takes) or frozenset(own)
        self.calls: list[tuple[str, str]] = []
        for name in ("match", "start", "update", "build"):
            setattr(self, name, self._counted(name, methods.pop(name, getattr(self, name))))
        for name, method in methods.items():
            setattr(self, name, self._counted(name, method))

    def _counted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.calls.append((name, _id_of(arguments[name in ("update", "extend")])))
            return method(*arguments)

        return call

    def asked(self, name: str) -> list[str]:
        """The ids that `name` was asked about since this was last read."""
        found = [id_ for called, id_ in self.calls if called == name]
        self.calls = [call for call in self.calls if call[0] != name]
        return found

    def match(self, item: Item) -> tuple[str, Role] | None:
        id_ = item.data.get("id")
        return id_ and (id_, UPDATE if item.type.endswith("more") else START)

    def start(self, match: Match, reader: Reader) -> Any:
        return (match.data.get("v"),)

    def update(self, state: Any, match: Match) -> Any:
        return (*state, match.data.get("v"))

    def build(self, context: Context, scope: Scope) -> Node | None:
        return Node(self.kind, context.id, {"v": context.state})


def _id_of(what: Any) -> str:
    if isinstance(what, (list, tuple)):
        return "+".join(map(_id_of, what))
    return what.id if hasattr(what, "matches") else str(what.data.get("id"))


class Band(GroupDefinition):
    """Neighbours whose data has one `band` stand together. Counts who was asked."""

    kind = "band"
    target = "chat"

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def asked(self, name: str) -> list[str]:
        found = [key for called, key in self.calls if called == name]
        self.calls = [call for call in self.calls if call[0] != name]
        return found

    def joins(self, node: Node) -> Any:
        self.calls.append(("joins", node.id))
        return node.data.get("band")

    def tells(self, node: Node) -> Any:
        self.calls.append(("tells", node.id))
        return node.id

    def summary(self, members: Members) -> Mapping[str, Any]:
        self.calls.append(("summary", "".join(sorted(members.told))))
        return {"n": members.size}


def event(seq: int, type_: str = "toy", /, **data: Any) -> Event:
    """Event `seq`; of a toy's type it is about `x` unless it says whom."""
    return Event(seq, type_, _about(type_, data), time=seq * 10)


def delta(ordinal: int = 0, type_: str = "toy-piece", /, **fields: Any) -> Delta:
    """The delta `ordinal` of attempt `a` in step 1.1, at live counter `ordinal + 1`.

    Fields of a Delta go there, all others into its data.
    """
    own = {name: fields.pop(name) for name in Delta.__struct_fields__ if name in fields}
    place = {"attempt": "a", "turn": 1, "step": 1, "ordinal": ordinal, "index": ordinal + 1}
    return Delta(**{**place, "type": type_, "data": _about(type_, fields), **own})


def _about(type_: str, data: dict[str, Any]) -> dict[str, Any]:
    boundary = type_.startswith(("turn/", "step/"))
    return data if boundary or "id" in data else {"id": "x", **data}


def shown(assembler: Assembler, view: str = "chat") -> dict[str, Any]:
    """What a view shows after a flush: the wire form of each Node's data by its id, in order."""
    assembler.flush()
    return {node.id: node.to_json()["data"] for node in assembler.view(view).nodes}


def wire(assembler: Assembler, view: str = "chat") -> dict[str, Any]:
    return assembler.view(view).snapshot().to_json()


def everything(assembler: Assembler) -> dict[str, Any]:
    """All that can be read of an Assembler without changing it: for "nothing has changed"."""
    return {
        "views": {name: wire(assembler, name) for name in assembler.statistics()["nodes"]},
        "window": assembler.window,
        "events": [each.seq for each in assembler.events],
        "deltas": [(each.attempt, each.ordinal) for each in assembler.deltas],
        "live": assembler.live,
        "anomalies": list(assembler.anomalies),
        "findings": assembler.findings(),
        "statistics": assembler.statistics(),
    }


def fresh(assembler: Assembler, definitions: Iterable[Any]) -> Assembler:
    """Another Assembler with the same facts."""
    other = Assembler(definitions, assembler.statistics()["nodes"])
    other.load(assembler.events, assembler.window.has_more)
    other.liveness(assembler.live)
    for each in assembler.deltas:
        other.emit(each)
    other.flush()
    return other


def same_as_fresh(assembler: Assembler, definitions: Iterable[Any]) -> None:
    """It shows what its facts alone show, and finds nothing wrong with itself."""
    definitions = list(definitions)
    views = list(assembler.statistics()["nodes"])
    assembler.flush()
    compare(assembler, fresh(assembler, definitions), definitions=definitions, views=views)
    assert assembler.audit() == []
