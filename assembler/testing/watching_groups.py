"""Group Definitions under watch. Not here: what is looked for in each call (`careful`)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from msgspec.structs import replace

from assembler.engine.definition import GroupDefinition, Members, Node
from assembler.engine.values import NODE_DEPTH_MAX, Object, Text, freeze, freeze_object, same
from assembler.testing.careful import Careful
from assembler.testing.witnesses import Witness

__all__ = ["WatchedGroup"]


class WatchedGroup(GroupDefinition, Careful):
    """A Group Definition that answers as the author's does, and tells a Witness what it sees."""

    def __init__(self, definition: GroupDefinition, witness: Witness) -> None:
        Careful.__init__(self, definition, witness)
        self.kind = definition.kind  # type: ignore[misc] # one class stands for many kinds
        self.target = definition.target  # type: ignore[misc]

    def joins(self, node: Node) -> Hashable | None:
        found = self._hashable("joins", node)
        if found is not None:
            self.witness.joined += 1
        return found

    def tells(self, node: Node) -> Hashable | None:
        found = self._hashable("tells", node)
        grown, ask = _grown(node), self.definition
        if ask.joins(grown) == ask.joins(node):
            self._compare("tells", "reads-text", found, ask.tells(grown), "when text grew")
        return found

    def _hashable(self, method: str, node: Node) -> Hashable | None:
        ask = getattr(self.definition, method)
        found: Hashable | None = self.twice(method, [("node", node)], lambda: ask(node))
        try:
            hash(found)
        except TypeError:
            self.wrong(method, found, "something hashable, or None")
        return found

    def summary(self, members: Members) -> Any:
        given, ask = [("members", members)], self.definition.summary
        found: Any = self.twice("summary", given, lambda: ask(members))
        if not isinstance(found, Mapping):
            self.wrong("summary", found, "a mapping of JSON values")
            return found
        try:
            freeze_object(found)
        except Exception as error:  # whatever it is that is no mapping of JSON values
            self.witness.tell("no-json", [("data", found)], method="summary", error=error)
            return found
        grown = replace(members, first=_grown(members.first), last=_grown(members.last))
        self._compare("summary", "reads-text", found, ask(grown), "when text grew")
        turned = replace(members, told=dict(reversed(list(members.told.items()))))
        self._compare("summary", "reads-order", found, ask(turned), "in another order")
        return found

    def _compare(self, method: str, problem: str, found: Any, again: Any, when: str) -> None:
        if not same(found, again):
            self.witness.tell(problem, [("it gave", found), (when, again)], method=method)


def _grown(node: Node) -> Node:
    """The Node as it may be a moment later: every growing text is longer."""
    return replace(node, data=_longer(node.data))


def _longer(value: Any) -> Any:
    if type(value) is Text:
        return Text(f"{value} and more")
    if type(value) is Object:
        return freeze({key: _longer(item) for key, item in value.items()}, NODE_DEPTH_MAX)
    return tuple([_longer(item) for item in value]) if type(value) is tuple else value
