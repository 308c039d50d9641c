"""The error that ended a turn. Not here: how a turn went otherwise (`turn_tail`)."""

from __future__ import annotations

from assembler.engine.definition import START, Context, Definition, Match, Node, Reader, Role, Scope
from assembler.engine.events import Event
from assembler.engine.values import Object
from definitions.events import is_int
from definitions.nodes import node

__all__ = ["TurnError"]


class TurnError(Definition):
    """Shows at a `turn/end` whose reason is `error`. The id is the turn."""

    kind = "turn-error"
    target = "chat"
    takes = frozenset({"turn/end"})

    def match(self, item: Event) -> tuple[str, Role] | None:
        if type(item) is not Event or item.data.get("reason") != "error":
            return None
        turn = item.data.get("turn")
        return (str(turn), START) if is_int(turn) else None

    def start(self, match: Match, reader: Reader) -> Object:
        data: Object = match.data
        return data

    def update(self, state: Object, match: Match) -> Object:
        return state

    def build(self, context: Context, scope: Scope) -> Node | None:
        state: Object | None = context.state
        if state is None:
            return None
        return node("turn-error", context.id, {"error": state.get("error")})
