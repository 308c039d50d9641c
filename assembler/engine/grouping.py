"""Groups of consecutive Nodes, found again only around what changed.

A group keeps its key while one of its members stays: on a split the part with its earliest old
member keeps it, on a merge the group that was formed first. Not here: what belongs together and
what a group says (a `GroupDefinition`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain, count
from typing import Any

from assembler.engine.definition import Anomaly, Group, GroupDefinition, Node
from assembler.engine.errors import DefinitionError
from assembler.engine.values import Object, freeze_object

__all__ = ["Grouping", "Regrouped"]

Spot = tuple[int, str]


class Regrouped:
    """What one regrouping found: to be installed, or dropped as a whole."""

    __slots__ = ("ages", "brackets", "dissolved", "failed", "groups", "left", "put", "unsummed")

    def __init__(self) -> None:
        self.brackets: dict[str, Hashable] = {}
        self.left: set[str] = set()
        self.groups: list[Group] = []
        self.ages: dict[str, int] = {}
        self.put: list[Group] = []
        self.dissolved: list[str] = []
        self.failed: set[str] = set()
        """Nodes whose `joins` raised."""
        self.unsummed: set[str] = set()
        """Groups whose `summary` raised."""


class Grouping:
    """The groups of one Group Definition over one ordered View."""

    __slots__ = (
        "_ages",
        "_brackets",
        "_failed",
        "_formed",
        "_nodes",
        "_of",
        "_order",
        "_strict",
        "_unsummed",
        "definition",
        "groups",
    )

    def __init__(
        self,
        definition: GroupDefinition,
        order: Any,
        nodes: dict[str, Node],
        *,
        strict: bool,
    ) -> None:
        self.definition = definition
        self._strict = strict
        self.groups: dict[str, Group] = {}
        self._order = order
        self._nodes = nodes
        self._failed: set[str] = set()
        self._unsummed: set[str] = set()
        self._of: dict[str, str] = {}
        self._brackets: dict[str, Hashable] = {}
        self._ages: dict[str, int] = {}
        self._formed = 0

    def grew(self, node: Node) -> bool:
        """Whether a Node whose text alone grew now belongs elsewhere."""
        bracket, failed = self._ask(node)
        return bracket != self._brackets.get(node.key) or failed != (node.key in self._failed)

    def findings(self) -> list[Anomaly]:
        """What this Group Definition raised at: Nodes, and the first members of groups."""
        keys = [*self._failed, *(self.groups[key].members[0] for key in self._unsummed)]
        return [Anomaly("definition-error", key, self._nodes[key].position) for key in keys]

    def regroup(self, touched: Iterable[str], seams: Iterable[Spot], gone: set[str]) -> Regrouped:
        """Find the groups around `touched` Nodes (present: new, changed or moved), the old
        places (`seams`) of what went or moved, and without what is `gone`.

        O(members of the groups around). Changes nothing: `install` does.
        """
        found = Regrouped()
        seeds: dict[str, None] = {}
        for key in touched:
            found.brackets[key], failed = self._ask(self._nodes[key])
            if failed:
                found.failed.add(key)
            self._around((self._nodes[key].position, key), seeds)
        for spot in seams:
            self._around(spot, seeds)
        runs = self._runs(seeds, found)
        found.left = gone
        involved = {self._of[key] for key in found.brackets if key in self._of}
        involved |= {self._of[key] for key in gone if key in self._of}
        for run in runs:
            involved |= {self._of[key] for key in run if key in self._of}
        self._name(runs, involved, found)
        return found

    def _ask(self, node: Node) -> tuple[Hashable, bool]:
        """The bracket of a Node, and whether the Definition raised instead."""
        try:
            bracket = self.definition.joins(node)
            hash(bracket)
        except Exception as error:
            if self._strict:
                raise self._blame(error, "joins", node.key) from error
            return None, True
        return bracket, False

    def _blame(self, error: Exception, site: str, key: str) -> DefinitionError:
        kind, name = self.definition.kind, type(error).__name__
        return DefinitionError(
            f"Group Definition {kind!r} raised {name} in {site} at {key}: {error}"
        )

    def _around(self, spot: Spot, seeds: dict[str, None]) -> None:
        order = self._order
        at = order.bisect_left(spot)
        for _, key in order.islice(max(0, at - 1), at + 2):
            seeds[key] = None

    def _runs(self, seeds: dict[str, None], found: Regrouped) -> list[list[str]]:
        """The whole runs of equal brackets that hold the seeds, in view order."""
        order, new, old = self._order, found.brackets, self._brackets

        def bracket(at: int) -> Hashable:
            key = order[at][1]
            return new[key] if key in new else old.get(key)

        runs: dict[int, list[str]] = {}
        done: set[str] = set()
        for key in seeds:
            if key in done:
                continue
            at = order.index((self._nodes[key].position, key))
            mine = bracket(at)
            if mine is None:
                continue
            first = last = at
            while first > 0 and bracket(first - 1) == mine:
                first -= 1
            while last + 1 < len(order) and bracket(last + 1) == mine:
                last += 1
            runs[first] = [spot[1] for spot in order.islice(first, last + 1)]
            done.update(runs[first])
        return [runs[first] for first in sorted(runs)]

    def _name(self, runs: list[list[str]], involved: set[str], found: Regrouped) -> None:
        claims: dict[int, list[str]] = {}
        claimed: set[str] = set()
        for at, run in enumerate(runs):
            for key in run:
                group = None if key in found.left else self._of.get(key)
                if group is not None and group not in claimed:
                    claimed.add(group)
                    claims.setdefault(at, []).append(group)
        kept = {at: min(groups, key=self._ages.__getitem__) for at, groups in claims.items()}
        used = set(kept.values())
        formed = self._formed
        for at, run in enumerate(runs):
            if at in kept:
                key = kept[at]
                found.ages[key] = self._ages[key]
            else:
                key = self._free(run, used, involved)
                used.add(key)
                formed += 1
                found.ages[key] = formed
            self._add(key, run, found)
        mine = {group.key for group in found.groups}
        found.dissolved = sorted(involved - mine)

    def _free(self, run: list[str], used: set[str], involved: set[str]) -> str:
        """A key for a new group: of its first member, unless another group still has it."""
        kind = self.definition.kind
        names = chain(run, (f"{run[0]}~{number}" for number in count(2)))
        return next(
            key
            for key in (f"{kind}:{name}" for name in names)
            if key not in used and (key in involved or key not in self.groups)
        )

    def _add(self, key: str, run: list[str], found: Regrouped) -> None:
        members = [self._nodes[member] for member in run]
        try:
            data = freeze_object(self.definition.summary(members))
        except Exception as error:
            if self._strict:
                raise self._blame(error, "summary", run[0]) from error
            found.unsummed.add(key)
            data = Object({}, ())
        group = Group(key, self.definition.kind, tuple(run), data)
        old = self.groups.get(key)
        if old is not None and old.equals(group):
            group = old
        else:
            found.put.append(group)
        found.groups.append(group)

    def install(self, found: Regrouped) -> None:
        """Take a regrouping over. Cannot fail."""
        for key in found.dissolved:
            del self.groups[key]
            del self._ages[key]
            self._unsummed.discard(key)
        for key in found.left:
            self._of.pop(key, None)
            self._brackets.pop(key, None)
            self._failed.discard(key)
        for key, bracket in found.brackets.items():
            self._of.pop(key, None)
            self._failed.discard(key)
            if bracket is None:
                self._brackets.pop(key, None)
            else:
                self._brackets[key] = bracket
        self._failed |= found.failed
        for group in found.groups:
            self._unsummed.discard(group.key)
            self.groups[group.key] = group
            self._ages[group.key] = found.ages[group.key]
            self._formed = max(self._formed, found.ages[group.key])
            for member in group.members:
                self._of[member] = group.key
        self._unsummed |= found.unsummed

    def check(self) -> list[str]:
        """What is wrong with it, in words: every run once, no other."""
        wrong = []
        runs: list[list[str]] = []
        last: Hashable = None
        for _, key in self._order:
            if key not in self._nodes:
                return [f"groups of {self.definition.kind}: {key} is in order and not there"]
            mine, _ = self._ask(self._nodes[key])
            if mine is not None and mine == last:
                runs[-1].append(key)
            elif mine is not None:
                runs.append([key])
            last = mine
        held = sorted(group.members for group in self.groups.values())
        if held != sorted(tuple(run) for run in runs):
            wrong.append(f"groups of {self.definition.kind}: {held} instead of {runs}")
        members = {key: group.key for group in self.groups.values() for key in group.members}
        if members != self._of:
            wrong.append(f"groups of {self.definition.kind}: a Node does not know its group")
        return wrong
