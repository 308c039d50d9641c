"""An answer that was cut because it became too long. Not here: the answer itself (`assistant`)."""

from __future__ import annotations

from assembler.engine.definition import START, Context, Definition, Match, Node, Reader, Role, Scope
from assembler.engine.events import Event
from assembler.engine.values import Object
from definitions.events import step_of
from definitions.nodes import node
from definitions.shared import RequestState

__all__ = ["TurnLimit"]

_CUT = "length"


class TurnLimit(Definition):
    """Shows at a message whose stop reason is `length`. The id is `turn.step`.

    Of several messages of its step it heeds the one that counts (`request`).
    """

    kind = "turn-limit"
    target = "chat"
    takes = frozenset({"assistant/message"})

    def match(self, item: Event) -> tuple[str, Role] | None:
        if type(item) is not Event or item.data.get("stop_reason") != _CUT:
            return None
        step = step_of(item)
        return None if step is None else (step, START)

    def start(self, match: Match, reader: Reader) -> Object:
        data: Object = match.data
        return data

    def update(self, state: Object, match: Match) -> Object:
        return state

    def build(self, context: Context, scope: Scope) -> Node | None:
        request: RequestState | None = scope.other("request", context.id)
        message = None if request is None else request.message
        if context.state is None or message is None or message.get("stop_reason") != _CUT:
            return None
        return node("turn-limit", context.id, {"stop_reason": _CUT})
