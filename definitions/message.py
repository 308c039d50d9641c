"""What was said to the assistant: by a person, by a person while it works, or as context.

Not here: what waits in a queue and is claimed from it (`inbox`).
"""

from __future__ import annotations

from msgspec import Struct

from assembler.engine.definition import START, Context, Definition, Match, Node, Reader, Role, Scope
from assembler.engine.events import Event
from assembler.engine.values import Json, Object
from definitions.events import named
from definitions.nodes import node
from definitions.shared import InboxState

__all__ = ["Message", "MessageState"]

_PERSONS = frozenset({"user", "person", "human"})
_STEERS = "next-step"
_JUST_BEHIND = 4
"""Where the log writes a claim behind its message, it is among so many next events: messages that
are claimed together, and the step that they open."""


class MessageState(Struct, frozen=True, gc=False):
    """The payload of the first event, its seq, and the queue that a claim before it names."""

    data: Object
    seq: int
    queue: str | None = None


class Message(Definition):
    """An input. The id is its message id."""

    kind = "message"
    target = "chat"
    takes = frozenset({"user/message"})
    shows = frozenset({"user", "steering", "context"})

    def match(self, item: Event) -> tuple[str, Role] | None:
        if type(item) is not Event:
            return None
        message_id = named(item.data, "message_id")
        return None if message_id is None else (message_id, START)

    def start(self, match: Match, reader: Reader) -> MessageState:
        before = reader.previous("inbox")
        inbox: InboxState | None = None if before is None else before[1]
        event: Event = match.item  # type: ignore[assignment]  # `match` takes no delta
        queue = None if inbox is None else inbox.queue_of(event.data["message_id"])
        return MessageState(event.data, event.seq, queue)

    def update(self, state: MessageState, match: Match) -> MessageState:
        return state

    def build(self, context: Context, scope: Scope) -> Node | None:
        state: MessageState | None = context.state
        if state is None:
            return None
        content, source = state.data.get("content"), state.data.get("source")
        queue = state.queue or _claimed_behind(context.id, state.seq, scope)
        kind = "user" if _is_person(source) else "context"
        if queue == _STEERS:
            kind = "steering"
        fields = {"content": content if type(content) is tuple else (), "source": source}
        return node(kind, context.id, fields)


def _claimed_behind(message_id: str, seq: int, scope: Scope) -> str | None:
    """Give the queue that a claim just behind the message names. O(1)."""
    for at in range(seq + 1, seq + 1 + _JUST_BEHIND):
        inbox: InboxState | None = scope.other("inbox", str(at))
        queue = None if inbox is None else inbox.queue_of(message_id)
        if queue is not None:
            return queue
    return None


def _is_person(source: Json) -> bool:
    """Whether a person said it; a source that does not say what it is is none."""
    kind = source.get("kind") if type(source) is Object else None
    return kind is None or (type(kind) is str and kind in _PERSONS)
