"""What follows when an answer ends, a call is taken over, a result comes: the rules, once.

A response that is whole becomes a message and its ready calls are handed over; one that was cut
becomes a message alone; any other is given up. Here: which events follow, how the attempt settles,
and which call ids are in use. Pure, so that recordings and the async facade follow the same rules.
Not here: appending and settling (whoever drives), reading streams (`providers`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from assembler.engine.events import Draft, Event, Outcome
from assembler.engine.values import Json, Object
from definitions.events import named
from definitions.providers import Call, Incident, Response, Why, call_data, message_data

__all__ = [
    "CallIdsInUse",
    "Ending",
    "GivenUp",
    "call_draft",
    "ended",
    "given_up",
    "result_draft",
]

GivenUp = Literal["retry", "fallback", "cancel", "error"]
"""Why an attempt is given up: another follows, with another model, somebody stopped, it failed."""

_OUTCOMES: Mapping[GivenUp, Outcome] = {
    "retry": Outcome.ABANDONED,
    "fallback": Outcome.ABANDONED,
    "cancel": Outcome.INTERRUPTED,
    "error": Outcome.FAILED,
}
_STOP_REASONS: Mapping[GivenUp, str] = {"cancel": "cancelled", "error": "error"}
"""Who reads the text so far keeps it; where another attempt follows, it writes its own."""


class Ending(Struct, frozen=True):
    """What to do now that an attempt is over, in this order.

    Append `drafts`, settle the attempt with `outcome`, enter `incidents`, hand over `handed_over`.
    `calls` are all calls of the answer; `why` says why the response is not whole.
    """

    drafts: tuple[Draft, ...]
    outcome: Outcome
    handed_over: tuple[Call, ...] = ()
    calls: tuple[Call, ...] = ()
    incidents: tuple[Incident, ...] = ()
    why: Why | None = None


def ended(response: Response, turn: int, step: int) -> Ending:
    """No more of an answer comes. What is not whole and not merely cut is given up."""
    if not (response.whole or response.cut):
        return given_up(response, "error", turn, step)
    message = _message(response, turn, step)
    return Ending(
        drafts=(message, *_ran(response, turn, step)),
        outcome=Outcome.COMPLETED,
        handed_over=tuple(call for call in response.calls if call.ready and call.ran_by == "host"),
        calls=response.calls,
        incidents=response.incidents,
        why=response.why,
    )


def given_up(response: Response, reason: GivenUp, turn: int, step: int) -> Ending:
    """An attempt is given up: nothing of it runs. What people have read stays, unless another
    attempt follows."""
    drafts: tuple[Draft, ...] = ()
    if reason in _STOP_REASONS and response.said:
        drafts = (
            _message(
                replace(response, content=response.said, stop_reason=_STOP_REASONS[reason]),
                turn,
                step,
                interrupted=True,
            ),
        )
    why = response.why or "stream-error"
    return Ending(
        drafts=drafts,
        outcome=_OUTCOMES[reason],
        calls=tuple(_withdrawn(call, why) for call in response.calls),
        why=why,
    )


def call_draft(call: Call, turn: int, step: int) -> Draft:
    """A call is taken over: before a permission is asked, before it runs."""
    return Draft("tool/call", {"turn": turn, "step": step, **call_data(call)})


def result_draft(
    call_id: str, content: Json, *, is_error: bool = False, error: Json = None
) -> Draft:
    """A call has its outcome; `error` is `{name, message}`."""
    data = {"call_id": call_id, "content": content}
    if is_error:
        data["is_error"] = True
    if error is not None:
        data["error"] = error
    return Draft("tool/result", data)


def _withdrawn(call: Call, why: Why) -> Call:
    return replace(call, ready=False, arguments=None, why=call.why or why)


def _message(response: Response, turn: int, step: int, *, interrupted: bool = False) -> Draft:
    data = message_data(response, turn, step)
    if interrupted:
        data["interrupted"] = True
    return Draft("assistant/message", data)


def _ran(response: Response, turn: int, step: int) -> Iterator[Draft]:
    """What the provider did by itself is told when the answer is."""
    for ran in response.ran:
        place = {"turn": turn, "step": step} if ran.type == "tool/call" else {}
        yield Draft(ran.type, {**place, **ran.data})


class CallIdsInUse:
    """The call ids of one conversation, each with who uses it: attempts, or the log.

    An id stays in use for ever, unless every attempt that used it is given up.
    """

    __slots__ = ("_ids", "_owners")

    _LOG = ""  # no attempt has this name

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._owners: dict[str, set[str]] = {}
        self._ids: dict[str, set[str]] = {}
        """What each attempt that may still be given up uses."""
        for event in events:
            self.learn(event)

    def learn(self, event: Event) -> None:
        """A durable event names calls, dispatched ones and those of a message, or an attempt that
        is given up."""
        if event.type in ("llm/retry", "llm/fallback"):
            self.give_up(named(event.data, "attempt") or self._LOG)
            return
        for call_id in _named_in(event):
            self.claim(self._LOG, call_id)

    def claim(self, attempt: str, call_id: str) -> None:
        """An attempt uses an id."""
        self._owners.setdefault(call_id, set()).add(attempt)
        if attempt != self._LOG:
            self._ids.setdefault(attempt, set()).add(call_id)

    def give_up(self, attempt: str) -> None:
        """An attempt is given up: what it alone used is free again. O(its ids)."""
        for call_id in self._ids.pop(attempt, ()):
            owners = self._owners[call_id]
            owners.discard(attempt)
            if not owners:
                del self._owners[call_id]

    def outside(self, attempt: str) -> Container[str]:
        """What `adapter` takes as `in_use`: the ids that somebody else than `attempt` uses."""
        return _Outside(self._owners, attempt)


class _Outside(Container[str]):
    __slots__ = ("_attempt", "_owners")

    def __init__(self, owners: Mapping[str, set[str]], attempt: str) -> None:
        self._owners = owners
        self._attempt = attempt

    def __contains__(self, call_id: object) -> bool:
        owners = self._owners.get(call_id) if isinstance(call_id, str) else None
        return owners is not None and owners != {self._attempt}


def _named_in(event: Event) -> Iterator[str]:
    if event.type == "tool/call":
        call_id = named(event.data, "call_id")
        if call_id is not None:
            yield call_id
    elif event.type == "assistant/message":
        content = event.data.get("content")
        for block in content if isinstance(content, tuple) else ():
            if type(block) is Object and block.get("type") == "tool-call":
                call_id = named(block, "call_id")
                if call_id is not None:
                    yield call_id
