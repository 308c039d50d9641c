"""What a conversation remembers of its whole log, however little of it is loaded.

Call ids in use, refusals that were to be remembered, questions without an answer, input that waits.
Fed with each event once, in any order, so that older pages may come later. Not here: who reads the
log (`desk`), what to do because of it.
"""

from __future__ import annotations

from typing import Any

from assembler.engine.events import Event
from assembler.engine.values import Json, Object, thaw
from definitions.answering import CallIdsInUse
from definitions.events import named, request_of

__all__ = ["Known", "Waiting"]

Waiting = dict[str, Any]
"""An input that waits: its `message_id`, `content` and `source`."""


class Known:
    """O(1) for each event; holds ids and names, and what waits."""

    def __init__(self) -> None:
        self.ids = CallIdsInUse()
        self._names: dict[str, str] = {}
        self._refused: set[str] = set()
        """Calls that were refused for ever."""
        self._asked: dict[str, set[str]] = {}
        """The questions about each call."""
        self._answered: set[tuple[str, str]] = set()
        self._turns: dict[str, int] = {}
        """The turn of each call that was taken over."""
        self._settled: set[str] = set()
        """Calls that have their result."""
        self._waiting: dict[str, tuple[int, str, Waiting]] = {}
        """By message id: the seq of its event, its queue, and what it is."""
        self._claimed: set[str] = set()

    def learn(self, event: Event) -> None:
        """Take an event. Seen again, it changes nothing."""
        self.ids.learn(event)
        learn = _LEARN.get(event.type)
        if learn is not None:
            learn(self, event)

    def refuses(self, name: str) -> bool:
        """Whether a tool of this name was refused, and that was to be remembered. O(refusals)."""
        return any(self._names.get(call_id) == name for call_id in self._refused)

    def asked(self, call_id: str) -> int:
        """How many questions were asked about a call."""
        return len(self._asked.get(call_id, ()))

    def was_asked(self, call_id: str, request_id: str) -> bool:
        """Whether a question was asked, answered or not."""
        return request_id in self._asked.get(call_id, ())

    def is_pending(self, call_id: str, request_id: str) -> bool:
        """Whether a question was asked and has no answer, and its call has no result."""
        if not self.was_asked(call_id, request_id) or call_id in self._settled:
            return False
        return (call_id, request_id) not in self._answered

    def turn_of(self, call_id: str) -> int | None:
        """The turn that a call was taken over in; None: it was not, as far as is known."""
        return self._turns.get(call_id)

    def waiting(self, queue: str) -> list[Waiting]:
        """What waits in a queue, in the order in which it came. O(what waits)."""
        found = [(seq, what) for seq, where, what in self._waiting.values() if where == queue]
        return [what for _, what in sorted(found, key=lambda entry: entry[0])]

    # -- one for each type that is remembered --------------------------------------------

    def _call(self, event: Event) -> None:
        call_id, name = named(event.data, "call_id"), named(event.data, "name")
        if call_id and name:
            self._names.setdefault(call_id, name)
        turn = event.data.get("turn")
        if call_id and type(turn) is int:
            self._turns.setdefault(call_id, turn)

    def _result(self, event: Event) -> None:
        call_id = named(event.data, "call_id")
        if call_id:
            self._settled.add(call_id)

    def _request(self, event: Event) -> None:
        call_id, request = named(event.data, "call_id"), request_of(event.data)
        if call_id and request:
            self._asked.setdefault(call_id, set()).add(request)

    def _answer(self, event: Event) -> None:
        call_id, request = named(event.data, "call_id"), request_of(event.data)
        if not (call_id and request) or (call_id, request) in self._answered:
            return  # the first answer counts
        self._answered.add((call_id, request))
        if event.data.get("decision") == "deny" and event.data.get("remember") is True:
            self._refused.add(call_id)

    def _spliced(self, event: Event) -> None:
        for message_id in _array(event.data.get("claimed")):
            if isinstance(message_id, str):
                self._claimed.add(message_id)
                self._waiting.pop(message_id, None)
        queue = named(event.data, "queue")
        for message in _array(event.data.get("messages")):
            message_id = named(message, "message_id") if type(message) is Object else None
            if queue and message_id and message_id not in self._claimed:
                self._waiting[message_id] = (event.seq, queue, thaw(message))


def _array(value: Json) -> tuple[Json, ...]:
    return value if type(value) is tuple else ()


_LEARN = {
    "tool/call": Known._call,  # noqa: SLF001 - of this file
    "tool/result": Known._result,  # noqa: SLF001
    "permission/request": Known._request,  # noqa: SLF001
    "permission/answer": Known._answer,  # noqa: SLF001
    "inbox/spliced": Known._spliced,  # noqa: SLF001
}
