"""Attempts that are given up, and whether another one has followed.

`retires` tells the engine which attempt an `llm/retry` or `llm/fallback` gives up; a retry has a
row, a fallback names none. Not here: what the attempts of a step have come to (`request`).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from assembler.engine.definition import START, Context, Definition, Match, Node, Reader, Role, Scope
from assembler.engine.events import Event, Position
from assembler.engine.values import Json
from definitions.events import is_int, named, step_of
from definitions.nodes import node
from definitions.shared import RequestState

__all__ = ["Retry", "RetryState", "Try"]


class Try(Struct, frozen=True, gc=False):
    """One attempt that is given up, as one `llm/retry` says it."""

    attempt: str | None
    number: int | None
    reason: Json
    delay_ms: Json
    step: str | None
    at: Position


class RetryState(Struct, frozen=True, gc=False):
    """What one retry gives up, in order."""

    tries: tuple[Try, ...] = ()


class Retry(Definition):
    """A retry of a step: all that is given up under one name. The id is its retry id."""

    kind = "retry"
    target = "chat"
    takes = frozenset({"llm/retry", "llm/fallback"})

    def match(self, item: Event) -> tuple[str, Role] | None:
        if type(item) is not Event or item.type != "llm/retry":
            return None
        retry_id = named(item.data, "retry_id")
        return None if retry_id is None else (retry_id, START)

    def start(self, match: Match, reader: Reader) -> RetryState:
        return self.update(RetryState(), match)

    def update(self, state: RetryState, match: Match) -> RetryState:
        data = match.data
        number, attempt = data.get("number"), named(data, "attempt")
        new = Try(
            attempt,
            number if is_int(number) else None,
            data.get("reason"),
            data.get("delay_ms"),
            step_of(match.item),
            match.position,
        )
        same = (new.attempt, new.number, new.step)
        if any((old.attempt, old.number, old.step) == same for old in state.tries):
            return state  # said again
        return replace(state, tries=(*state.tries, new))

    def build(self, context: Context, scope: Scope) -> Node | None:
        state: RetryState | None = context.state
        if state is None:
            return None
        last = state.tries[-1]
        status = _status(last, scope)
        attempts = [_shown(given, "done") for given in state.tries[:-1]]
        fields = {"attempts": (*attempts, _shown(last, status)), "status": status}
        return node("retry", context.id, fields)

    def retires(self, event: Event) -> str | None:
        return named(event.data, "attempt")


def _status(last: Try, scope: Scope) -> str:
    """Say what became of it. A message or another retry is final; what is open is read last."""
    request: RequestState | None = scope.other("request", last.step) if last.step else None
    if request is not None and _is_over(last, request):
        return "done"
    if scope.closed or scope.live is False:
        return "cancelled"
    if request is not None and request.spoke > (last.number or 0):
        return "running"
    return "waiting"


def _is_over(last: Try, request: RequestState) -> bool:
    """Whether the step has its message, or gave up another attempt since.

    An interrupted message from before is that of the attempt that was given up.
    """
    message = request.message
    if message is not None and (not message.get("interrupted") or request.message_at > last.at):
        return True
    return bool(request.given_up) and request.given_up[-1].at > last.at


def _shown(given: Try, state: str) -> Mapping[str, Json]:
    return {
        "number": given.number,
        "reason": given.reason,
        "delay_ms": given.delay_ms,
        "state": state,
    }
