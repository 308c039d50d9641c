"""What the oracle shows, made in one go from the facts alone.

Here lives matching, folding, placing and building in their plainest form: each step goes through
everything. Not here: how the facts came about (`oracle`), turns and steps (`brackets`), and what
a Definition may read while it is asked (`asking`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from assembler.engine.definition import (
    START,
    Anomaly,
    Definition,
    Group,
    GroupDefinition,
    Match,
    Members,
    Node,
)
from assembler.engine.errors import DefinitionError
from assembler.engine.events import Delta, Event, Item, Position, position
from assembler.engine.locations import Location
from assembler.engine.values import freeze_object
from assembler.testing.asking import Known, Reader, Scope, Seen, reaches
from assembler.testing.brackets import Brackets

__all__ = ["Facts", "Picture", "Shown"]


class Facts(NamedTuple):
    """All that decides what is shown: E and `has_more`, D, L, and who is asked for which views."""

    events: tuple[Event, ...]
    has_more: bool
    deltas: tuple[Delta, ...]
    live: bool | None
    definitions: tuple[Definition, ...]
    groupings: tuple[GroupDefinition, ...]
    views: frozenset[str]


class Shown(NamedTuple):
    """One view: its Nodes in order and its groups (whose keys mean nothing here)."""

    nodes: list[Node]
    groups: list[Group]


class Picture:
    """Everything that is shown, in `views` and `findings`; the Contexts are in `known`.

    The Definitions are asked in the order of what they may read: match, fold (in the order of
    the starts), anchor, place for the step, place for the turn, notes, build, group.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        complete = not facts.has_more
        self.brackets = Brackets(facts.events, facts.deltas, complete=complete)
        self.known = known = Known(self.brackets, live=facts.live, complete=complete)
        self.findings: set[Anomaly] = set()
        known.contexts = list(self._matched())
        self._fold_all()
        for seen in known.contexts:
            seen.anchor = self._anchor(seen)
        known.step_values = self._place_all(lambda at: None if at.step is None else at)
        known.turn_values = self._place_all(
            lambda at: None if at.turn is None else Location(at.turn, None)
        )
        for seen in known.contexts:
            self._note_all(seen)
        self.views = {view: self._show(view) for view in sorted(facts.views)}

    # --- Contexts and their States

    def _matched(self) -> Iterator[Seen]:
        named = {name for each in self.facts.definitions for name in each.takes | each.names}
        for definition in self.facts.definitions:
            found: dict[str, list[Match]] = {}
            items: list[Item] = [*self.facts.events, *self.facts.deltas]
            for item in items:
                if reaches(definition, item, named):
                    self._match(definition, item, found)
            for id_, matches in found.items():
                matches.sort(key=_order)
                start = next((match for match in matches if match.role is START), None)
                at = self.brackets.location((start or matches[0]).item)
                yield Seen(definition, id_, tuple(matches), start, at)

    def _match(self, definition: Definition, item: Item, found: dict[str, list[Match]]) -> None:
        at = position(item.seq, 0) if isinstance(item, Event) else item.position
        key = f"{definition.kind}:"
        if isinstance(item, Event):
            self._ask(lambda: definition.retires(item), key, at)
        answer = self._ask(lambda: definition.match(item), key, at)
        if answer is not None:
            id_, role = answer
            match = Match(at, item, role)
            found.setdefault(id_, []).append(match)
            self._ask(lambda: definition.cadence(match), f"{key}{id_}", at)

    def _fold_all(self) -> None:
        started = [(_order(seen.start), seen) for seen in self.known.contexts if seen.start]
        started.sort(key=lambda each: each[0])
        for order, seen in started:
            earlier = [other for at, other in started if at < order]
            self._fold(seen, Reader(earlier, complete=self.known.complete))

    def _fold(self, seen: Seen, reader: Reader) -> None:
        start = seen.start
        assert start is not None
        first = seen.matches.index(start)
        early, later = seen.matches[:first], seen.matches[first + 1 :]
        for match in early:
            self._note("early-update", seen.key, match.position)
        match, method = start, "start"
        try:
            state = seen.definition.start(start, reader)
            method = "update"
            for match in early + later:
                state = seen.definition.update(state, match)
        except Exception as error:
            self._note("definition-error", seen.key, match.position)
            seen.failure = type(error).__name__, method
        else:
            seen.state = state

    # --- places and notes

    def _anchor(self, seen: Seen) -> Position:
        default = (seen.start or seen.matches[0]).position
        if seen.failure is not None:
            return default
        found: Position = self._ask(
            lambda: seen.definition.anchor(seen).position, seen.key, default, default
        )
        return found

    def _place_all(self, scope: Callable[[Location], Location | None]) -> list[tuple[Seen, Any]]:
        placed = []
        for seen in self.known.contexts:
            at = scope(seen.location)
            if at is not None and seen.failure is None:
                value = self._place(seen, Scope(self.known, at))
                if value is not None:
                    placed.append((seen, value))
        return sorted(placed, key=lambda each: (each[0].anchor, each[0].key))

    def _place(self, seen: Seen, scope: Scope) -> Any:
        return self._ask(lambda: seen.definition.place(seen, scope), seen.key, seen.anchor)

    def _note_all(self, seen: Seen) -> None:
        if seen.failure is None:
            scope = Scope(self.known, seen.location)
            notes = self._ask(
                lambda: list(seen.definition.notes(seen, scope)), seen.key, seen.anchor, []
            )
            for kind, at in notes:
                self._note(kind, seen.key, at)

    # --- Nodes and groups

    def _show(self, view: str) -> Shown:
        shown = [seen for seen in self.known.contexts if seen.definition.target == view]
        nodes = [node for node in map(self._node, shown) if node is not None]
        nodes.sort(key=lambda node: (node.position, node.key))
        groups = [
            (nodes.index(members[0]), nth, self._group(grouping, members))
            for nth, grouping in enumerate(self.facts.groupings)
            if grouping.target == view
            for members in self._together(grouping, nodes)
        ]
        groups.sort(key=lambda each: each[:2])
        return Shown(nodes, [group for _, _, group in groups])

    def _node(self, seen: Seen) -> Node | None:
        at, failure = seen.location, seen.failure
        if failure is None:
            try:
                node = seen.definition.build(seen, Scope(self.known, at))
                if node is None:
                    return None
                _check_node(seen, node)
                return node.placed(seen.anchor, at.turn, at.step)
            except Exception as error:
                self._note("definition-error", seen.key, seen.anchor)
                failure = type(error).__name__, "build"
        data = {"error": {"name": failure[0], "in": failure[1]}}
        return Node(seen.kind, seen.id, data).placed(seen.anchor, at.turn, at.step)

    def _together(self, grouping: GroupDefinition, nodes: list[Node]) -> list[list[Node]]:
        """Runs of neighbours with an equal bracket that is not None."""
        runs = groupby(
            nodes, lambda node: self._ask(lambda: grouping.joins(node), node.key, node.position)
        )
        return [list(run) for bracket, run in runs if bracket is not None]

    def _group(self, grouping: GroupDefinition, members: list[Node]) -> Group:
        def tells(node: Node) -> Hashable | None:
            told: Hashable | None = self._ask(lambda: grouping.tells(node), node.key, node.position)
            return told

        first, keys = members[0], tuple(node.key for node in members)
        told = Counter(answer for answer in map(tells, members) if answer is not None)
        summed = Members(told, first, members[-1], len(members))
        data = self._ask(
            lambda: freeze_object(grouping.summary(summed)), first.key, first.position, {}
        )
        return Group("", grouping.kind, keys, data)

    # --- isolation

    def _note(self, kind: str, key: str, at: Position) -> None:
        self.findings.add(Anomaly(kind, key, at))

    def _ask(self, call: Callable[[], Any], key: str, at: Position, instead: Any = None) -> Any:
        try:
            return call()
        except Exception:
            self._note("definition-error", key, at)
            return instead


def _order(match: Match) -> tuple[int, str]:
    return match.position, match.attempt or ""


def _check_node(seen: Seen, node: Node) -> None:
    definition = seen.definition
    if node.id != seen.id or node.kind not in (definition.shows or {definition.kind}):
        raise DefinitionError(f"{seen.key} built the Node {node.kind}:{node.id}")
