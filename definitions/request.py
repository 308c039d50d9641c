"""The model call of one step: when it ran, which attempts spoke, which were given up, its message.

State by step, which `retry`, `turn_limit` and `turn_tail` read, and which is shown on the view of
steps. Of an attempt its first delta is enough, so that a long answer costs nothing here. Not here:
what an attempt says (`assistant`, `tool`, `draft`), how a step reads (`trajectory`).
"""

from __future__ import annotations

from msgspec.structs import replace

from assembler.engine.definition import (
    FRAME,
    NONE,
    START,
    Cadence,
    Context,
    Definition,
    Match,
    Node,
    Reader,
    Role,
    Scope,
)
from assembler.engine.events import Delta, Event, Position
from assembler.engine.values import Object
from definitions.events import DELTA_TYPES, is_int, named, step_of
from definitions.shared import GivenUp, RequestState, StepMark, StepUsage
from definitions.trajectory import step_node

__all__ = ["Request"]

_GIVES_UP = {"llm/retry": "retry", "llm/fallback": "fallback"}
_BOUNDS = ("step/start", "step/end")
_NOWHERE = Position(0)


class Request(Definition):
    """One model call with all its attempts. The id is `turn.step`.

    Whatever names its step may be the first that is known of it: a window may begin anywhere.
    """

    kind = "request"
    target = "trajectory"
    takes = frozenset({*DELTA_TYPES, *_BOUNDS, *_GIVES_UP, "assistant/message", "tool/call"})
    shows = frozenset({"step"})

    def match(self, item: Event | Delta) -> tuple[str, Role] | None:
        if type(item) is Delta and (item.ordinal != 0 or item.number < 1):
            return None  # not the first of an attempt, or a side stream
        step = step_of(item)
        return None if step is None else (step, START)

    def start(self, match: Match, reader: Reader) -> RequestState:
        return self.update(RequestState(), match)

    def update(self, state: RequestState, match: Match) -> RequestState:
        if type(match.item) is Delta:
            spoke = max(state.spoke, match.item.number)
            return state if spoke == state.spoke else replace(state, spoke=spoke)
        if state.first == _NOWHERE:
            state = replace(state, first=match.position)
        if match.type == "tool/call":
            return state  # which calls it made its calls say
        if match.type in _BOUNDS:
            return _bound(state, match)
        return _give_up(state, match) if match.type in _GIVES_UP else _settle(state, match)

    def place(self, context: Context, scope: Scope) -> StepUsage | StepMark | None:
        state: RequestState | None = context.state
        if state is None:
            return None
        if scope.step is None:
            return StepMark(int(context.id.rpartition(".")[2]), state.started)
        told = None if state.message is None else state.message.get("usage")
        usage = told if type(told) is Object else None
        lost = tuple([given.usage for given in state.given_up if given.usage is not None])
        return StepUsage(usage, lost) if usage is not None or lost else None

    def build(self, context: Context, scope: Scope) -> Node | None:
        state: RequestState | None = context.state
        return None if state is None else step_node(context.id, state, scope)

    def cadence(self, match: Match) -> Cadence:
        return NONE if type(match.item) is Delta else FRAME


def _bound(state: RequestState, match: Match) -> RequestState:
    """Take the first of each boundary."""
    if match.type == "step/start":
        return state if state.started is not None else replace(state, started=match.time)
    if state.ended is not None:
        return state
    return replace(state, ended=match.time, ended_at=match.position)


def _give_up(state: RequestState, match: Match) -> RequestState:
    """Count an attempt once, however often it is said that it is given up."""
    data = match.data
    attempt, usage, number = named(data, "attempt"), data.get("usage"), data.get("number")
    new = GivenUp(
        attempt,
        match.position,
        usage if type(usage) is Object else None,
        by=_GIVES_UP[match.type],
        number=number if is_int(number) else None,
        reason=data.get("reason"),
        model=named(data, "from_model"),
        next_model=named(data, "to_model"),
    )
    for at, old in enumerate(state.given_up):
        if attempt is not None and old.attempt == attempt:
            if old.usage is not None or new.usage is None:
                return state
            known = replace(old, usage=new.usage)
            given_up = (*state.given_up[:at], known, *state.given_up[at + 1 :])
            return replace(state, given_up=given_up)
    return replace(state, given_up=(*state.given_up, new))


def _settle(state: RequestState, match: Match) -> RequestState:
    """Take the first message; an interrupted one gives way to one that is not."""
    message = state.message
    if message is not None and (not message.get("interrupted") or match.data.get("interrupted")):
        return state
    return replace(state, message=match.data, message_at=match.position)
