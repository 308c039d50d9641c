"""The group of what an assistant does between what it says.

Reads Nodes, never events. Not here: the line that sums a group up for people (its `title`, later).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from assembler.engine.definition import GroupDefinition, Node
from assembler.engine.values import Json, Object
from definitions.events import visible
from definitions.families import category_of

__all__ = ["Process"]

_MEMBERS = frozenset({"tool", "retry", "permission"})
_GOING_ON = frozenset({"pending", "running", "waiting"})


class Process(GroupDefinition):
    """Consecutive tools, retries, permissions and answers of reasoning alone, of one turn."""

    kind = "process"
    target = "chat"

    def joins(self, node: Node) -> Hashable | None:
        if node.kind in _MEMBERS or (node.kind == "assistant" and _only_reasons(node)):
            return node.turn
        return None

    def summary(self, members: Sequence[Node]) -> Mapping[str, Any]:
        counts: dict[str, int] = {}
        goes_on = False
        for member in members:
            goes_on = goes_on or _goes_on(member)
            name = member.data.get("name") if member.kind == "tool" else None
            if name:
                category = category_of(name)
                counts[category] = counts.get(category, 0) + 1
        return {"counts": counts, "status": "open" if goes_on else "closed", "title": None}


def _only_reasons(node: Node) -> bool:
    """Whether reasoning is all that can be seen of an answer."""
    blocks: Json = node.data.get("blocks") or ()
    seen = [block for block in blocks if visible(block)]
    return bool(seen) and all(
        type(block) is Object and block.get("type") == "reasoning" for block in seen
    )


def _goes_on(node: Node) -> bool:
    """Whether it prepares, runs or waits."""
    data: Mapping[str, Json] = node.data
    if node.kind != "tool":
        return data.get("decision" if node.kind == "permission" else "status") in _GOING_ON
    stage = data.get("stage")
    if stage == "result":
        return False
    return stage == "preparing" or data.get("outcome") is None or data.get("waiting") is not None
