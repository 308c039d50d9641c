"""Events that nobody here knows: kept, and shown as they are.

Not here: the list of what is known (`events`), of what is kept without a row (`quiet`).
"""

from __future__ import annotations

from collections.abc import Container

from msgspec import Struct

from assembler.engine.definition import (
    START,
    UNNAMED,
    Context,
    Definition,
    Match,
    Node,
    Reader,
    Role,
    Scope,
)
from assembler.engine.events import Event
from assembler.engine.values import Object
from definitions.events import VOCABULARY
from definitions.nodes import node

__all__ = ["Fallback", "UnknownState"]


class UnknownState(Struct, frozen=True, gc=False):
    """The event as it came."""

    type: str
    data: Object


class Fallback(Definition):
    """An event whose type no vocabulary names. The id is its seq."""

    kind = "unknown"
    target = "chat"
    takes = frozenset({UNNAMED})
    names = VOCABULARY

    def __init__(self, *, quiet: Container[str] = ()) -> None:
        self._quiet = quiet

    def match(self, item: Event) -> tuple[str, Role] | None:
        if type(item) is not Event or item.type in self._quiet:
            return None
        return str(item.seq), START

    def start(self, match: Match, reader: Reader) -> UnknownState:
        return UnknownState(match.type, match.data)

    def update(self, state: UnknownState, match: Match) -> UnknownState:
        return state

    def build(self, context: Context, scope: Scope) -> Node | None:
        state: UnknownState | None = context.state
        if state is None:
            return None
        return node("unknown", context.id, {"type": state.type, "data": state.data})
