"""Node payloads: the fields of each kind, in their order, and `ToolNode`.

Data and one lazy property. Not here: what the fields are filled with (each Definition), how a call
reads on one line (`rows`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.engine.definition import Node
from assembler.engine.values import Fragments, Json, Text
from definitions.arguments import PartialArguments, PartialView

__all__ = ["FIELDS", "PartialReader", "ToolNode", "node"]

FIELDS: Mapping[str, Mapping[str, Json]] = {
    "user": {"content": (), "source": None},
    "steering": {"content": (), "source": None},
    "context": {"content": (), "source": None},
    "assistant": {"status": None, "blocks": (), "usage": None, "stop_reason": None},
    "tool": {
        "stage": None,
        "name": None,
        "arguments": None,
        "arguments_text": None,
        "outcome": None,
        "waiting": None,
        "content": None,
        "error": None,
        "output": "",
        "prepared": None,
        "started": None,
        "finished": None,
        "parent": None,
        "parent_loaded": None,
        "ran_by": None,
        "description": None,
        "row": None,
    },
    "permission": {
        "call_id": None,
        "request_id": None,
        "input": None,
        "decision": None,
        "updated_input": None,
    },
    "retry": {"attempts": (), "status": None},
    "turn-error": {"error": None},
    "turn-limit": {"stop_reason": None},
    "turn-tail": {
        "status": None,
        "duration_ms": None,
        "usage": None,
        "calls": None,
        "failed": None,
        "files": None,
    },
    "compaction": {"status": None, "summary": None, "before_seq": None},
    "command": {"name": None, "arguments": None, "status": None, "output": None},
    "unknown": {"type": None, "data": None},
    # of the view `trajectory`, all others are of `chat`
    "step": {
        "status": None,
        "error": None,
        "started": None,
        "ended": None,
        "request": None,
        "usage": None,
        "attempts": (),
        "calls": (),
        "events": None,
    },
}
"""For each kind its fields, in the order of the wire, with what stands there while unknown."""


class PartialReader:
    """Reads the partial view of one growing text, going on where it stopped.

    A cache and nothing else: it says nothing about its text, so any two are equal. The Nodes of
    one text share it, so that reading after every delta is linear in the text.
    """

    __slots__ = ("_fragments", "_parser")

    def __init__(self) -> None:
        self._fragments: Fragments | None = None
        self._parser: PartialArguments | None = None

    def view(self, text: Text) -> PartialView:
        """Give the partial view of `text`. Costs what was added since the last time."""
        fragments, count = text.fragments
        known = self._fragments is not None and self._fragments.is_of(fragments)
        if self._parser is None or not known:
            self._fragments, self._parser = fragments, PartialArguments()
        return self._parser.advance(fragments, count)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartialReader)

    def __hash__(self) -> int:
        return hash(PartialReader)

    def __repr__(self) -> str:
        return "PartialReader()"


class ToolNode(Node, frozen=True, gc=False, eq=False):
    """The Node of a tool call, with a view of arguments that are not complete yet."""

    reader: PartialReader | None = None

    @property
    def partial(self) -> PartialView:
        """What of the argument text can be shown, at every stage; computed when read."""
        text = self.data.get("arguments_text")
        if type(text) is Text:
            return (self.reader or PartialReader()).view(text)
        return PartialArguments.of((text,) if text else ()).value


def node(kind: str, name: str, fields: Mapping[str, Any]) -> Node:
    """Make the Node of a kind with the id `name`; fields not given are as in `FIELDS`."""
    return Node(kind, name, {**FIELDS[kind], **fields})
