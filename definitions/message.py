"""What was said to the assistant: by a person, or by something that gives it context.

Not here: what waits in a queue (`inbox`), and so the kind `steering`, which needs it.
"""

from __future__ import annotations

from assembler.engine.definition import START, Context, Definition, Match, Node, Reader, Role, Scope
from assembler.engine.events import Event
from assembler.engine.values import Json, Object
from definitions.events import named
from definitions.nodes import node

__all__ = ["Message"]

_PERSONS = frozenset({"user", "person", "human"})


class Message(Definition):
    """An input. The id is its message id; its State is the payload of the first event."""

    kind = "message"
    target = "chat"
    takes = frozenset({"user/message"})
    shows = frozenset({"user", "context"})

    def match(self, item: Event) -> tuple[str, Role] | None:
        if type(item) is not Event:
            return None
        message_id = named(item.data, "message_id")
        return None if message_id is None else (message_id, START)

    def start(self, match: Match, reader: Reader) -> Object:
        data: Object = match.data
        return data

    def update(self, state: Object, match: Match) -> Object:
        return state

    def build(self, context: Context, scope: Scope) -> Node | None:
        state: Object | None = context.state
        if state is None:
            return None
        content, source = state.get("content"), state.get("source")
        kind = "user" if _is_person(source) else "context"
        fields = {"content": content if type(content) is tuple else (), "source": source}
        return node(kind, context.id, fields)


def _is_person(source: Json) -> bool:
    """Whether a person said it; a source that does not say what it is is none."""
    kind = source.get("kind") if type(source) is Object else None
    return kind is None or (type(kind) is str and kind in _PERSONS)
