"""The bench: an Assembler and an Oracle side by side, and all that must hold after each step.

Not here: inputs (`toys`, `assembler.testing.strategies`) and tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Group, Node
from assembler.engine.patches import apply
from assembler.engine.values import same
from assembler.testing import Operation, Oracle, compare
from tests.convergence.toys import toys

__all__ = ["VIEWS", "Bench", "fresh_from"]

VIEWS = ("chat", "trajectory")
INCIDENTS = frozenset(("late-delta", "torn-attempt", "stale-event"))


def fresh_from(
    oracle: Oracle, definitions: Callable[[], Iterable[Any]] = toys, *, whole: bool = True
) -> Assembler:
    """A new Assembler of the facts alone: E, L, and D in position order (The law, 1)."""
    fresh = Assembler(definitions(), sorted(oracle.views))
    fresh.load(oracle.events, oracle.has_more)
    fresh.liveness(oracle.live)
    for delta in sorted(oracle.deltas, key=lambda each: (each.position, each.attempt)):
        fresh.emit(delta)
    fresh.flush()
    refused = [odd for odd in fresh.anomalies if odd.kind in INCIDENTS]
    assert not (whole and refused), f"the fresh one does not take all of D: {refused}"
    return fresh


class Bench:
    """Does each operation to both, then checks everything that the law promises."""

    def __init__(
        self,
        definitions: Callable[[], Iterable[Any]] = toys,
        views: Sequence[str] = VIEWS,
        *,
        fresh: bool = True,
    ) -> None:
        self.make = definitions
        self.fresh = fresh
        self.assembler = Assembler(definitions(), views)
        self.oracle = Oracle(definitions(), views)
        self.assembler.flush()
        self.snapshots = {view: self.snapshot(view) for view in views}
        self.nodes: dict[str, dict[str, Node]] = {view: self.by_key(view) for view in views}
        self.groups: dict[str, Sequence[Group]] = dict.fromkeys(views, ())
        self.history: list[Operation] = []

    # --- doing

    def do(self, call: str, *arguments: Any) -> type[Exception] | None:
        """One operation on both; the error that both raised."""
        return self.perform(Operation(call, arguments))

    def perform(self, operation: Operation) -> type[Exception] | None:
        self.history.append(operation)
        ours, theirs = operation.perform(self.assembler), operation.perform(self.oracle)
        assert ours is theirs, f"{operation} raised {ours}, not {theirs}"
        return ours

    def activate(self, view: str) -> None:
        for side in (self.assembler, self.oracle):
            side.activate(view)
        self.snapshots[view] = self.snapshot(view)  # still empty: the next patch fills it
        self.nodes[view] = self.by_key(view)
        self.groups[view] = ()

    def deactivate(self, view: str) -> None:
        for side in (self.assembler, self.oracle):
            side.deactivate(view)
        for shown in (self.snapshots, self.nodes, self.groups):
            del shown[view]

    # --- checking

    def check(self, *, identity: bool = True) -> None:
        """Flush, and compare with everything that it must equal.

        Without `identity`, Nodes may be other objects than before: after several operations they
        may have gone and come again.
        """
        patches = self.assembler.flush()
        assert sorted(patches) == sorted(self.snapshots), "one patch for each active view"
        compare(self.assembler, self.oracle)
        problems = self.assembler.audit()
        assert not problems, problems
        self.check_incidents()
        for view, patch in patches.items():
            self.check_patch(view, patch)
            went = {op["key"] for op in patch.to_json()["ops"] if op["op"] == "remove"}
            if identity:
                self.check_identity(view, went)
                self.check_group_keys(view, went)
            self.nodes[view] = self.by_key(view)
            self.groups[view] = tuple(self.assembler.view(view).groups)
        again = self.assembler.flush()
        assert not any(again.values()), f"a second flush changes something: {again}"
        if self.fresh:
            fresh = fresh_from(self.oracle, self.make)
            known, views = self.oracle.definitions, self.oracle.views
            compare(self.assembler, fresh, definitions=known, views=views)

    def check_incidents(self) -> None:
        ours = [odd for odd in self.assembler.anomalies if odd.kind in INCIDENTS]
        theirs = self.oracle.incidents
        assert ours == theirs, f"incidents: {ours}, not {theirs}"

    def snapshot(self, view: str) -> Any:
        return self.assembler.view(view).snapshot().to_json()

    def check_patch(self, view: str, patch: Any) -> None:
        present = self.snapshot(view)
        applied = apply(self.snapshots[view], patch.to_json())
        assert same(applied, present), f"patched:\n  {applied}\nis:\n  {present}"
        self.snapshots[view] = present

    def by_key(self, view: str) -> dict[str, Node]:
        nodes = self.assembler.view(view).nodes
        found = {node.key: node for node in nodes}
        assert len(found) == len(nodes), "a key is shown twice"
        return found

    def check_identity(self, view: str, went: set[str]) -> None:
        """An unchanged Node is the same object after any number of flushes."""
        before, now = self.nodes[view], self.by_key(view)
        for key, node in now.items():
            assert self.assembler.view(view)[key] is node
            old = before.get(key)
            if old is not None and key not in went and old.equals(node):
                assert old is node, f"{key} is equal and another object"

    def check_group_keys(self, view: str, went: set[str]) -> None:
        """A group's key stays with its members: the cases in which there is but one answer.

        A member that went and came again did not stay.
        """
        now = tuple(self.assembler.view(view).groups)
        before = [
            replace(group, members=tuple(key for key in group.members if key not in went))
            for group in self.groups[view]
        ]
        keys = [group.key for group in now]
        assert len(set(keys)) == len(keys), f"a group key is used twice: {keys}"
        for old in before:
            heirs = [group for group in now if _related(old, group)]
            rivals = [group for group in before if any(_related(group, heir) for heir in heirs)]
            if heirs and len(rivals) == 1:
                # The part with its earliest old member, as they stand now.
                assert heirs[0].key == old.key, f"{heirs[0].key} should have kept {old.key}"
            if len(heirs) == 1:
                assert heirs[0].key in [group.key for group in rivals], f"{old.key} is forgotten"


def _related(left: Group, right: Group) -> bool:
    return left.kind == right.kind and bool(set(left.members) & set(right.members))
