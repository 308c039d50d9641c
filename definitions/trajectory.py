"""How a step reads on the view `trajectory`: one Node for people who look into what happened.

A step is a model call with its attempts, and the calls it made. Not here: what is known of it
(`request` folds it), rows of a chat.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.engine.definition import Node, Scope
from assembler.engine.events import Position, pair
from assembler.engine.values import Json, Object
from definitions.events import named, total_usage
from definitions.nodes import node
from definitions.shared import CallSummary, DraftState, RequestState, StepMark, TurnState

__all__ = ["step_node"]


def step_node(step: str, state: RequestState, scope: Scope) -> Node:
    """Make the Node of a step. O(its attempts and calls); growing text is not looked at."""
    over = scope.closed or scope.live is False
    calls: Mapping[str, CallSummary] = scope.step_values("tool")
    in_order = sorted(calls, key=lambda call: calls[call].at)
    failure = _failure(state, scope)
    fields = {
        "status": _status(state, scope, failed=failure is not None) if over else "running",
        "error": None if failure is None else failure.get("error"),
        "started": state.started,
        "ended": _ended(state, scope),
        "request": _request(state),
        "usage": _usage(step, state, scope),
        "attempts": _attempts(state, over=over),
        "calls": tuple(in_order),
        "events": _events(state, calls),
    }
    return node("step", step, fields)


def _status(state: RequestState, scope: Scope, *, failed: bool) -> str | None:
    """Say how it ended: with its message, or without. Its message may be on an older page."""
    if failed:
        return "failed"
    if not scope.closed:
        return "interrupted"
    if state.message is not None:
        return "interrupted" if state.message.get("interrupted") else "settled"
    return "interrupted" if state.started is not None or scope.complete else None


def _failure(state: RequestState, scope: Scope) -> Object | None:
    """Give the end of its turn, where that says that this step failed: the turn ended in an error,
    this is its last step, and it has no whole message."""
    if state.message is not None and not state.message.get("interrupted"):
        return None
    if not scope.closed or scope.turn is None or scope.step is None:
        return None
    turn: TurnState | None = scope.other("turn-tail", str(scope.turn))
    if turn is None or turn.end is None or turn.end.get("reason") != "error":
        return None
    return turn.end if _next_step(scope, scope.step) is None else None


def _ended(state: RequestState, scope: Scope) -> int | None:
    """Give the time of its end; without one, that of what closed it: the next step, its turn's
    end, the next turn."""
    if state.ended is not None or not scope.closed or scope.turn is None or scope.step is None:
        return state.ended
    next_step = _next_step(scope, scope.step)
    if next_step is not None and next_step.started is not None:
        return next_step.started
    turn: TurnState | None = scope.other("turn-tail", str(scope.turn))
    if turn is not None and turn.ended is not None:
        return turn.ended
    next_turn: TurnState | None = scope.other("turn-tail", str(scope.turn + 1))
    return None if next_turn is None else next_turn.started


def _next_step(scope: Scope, step: int) -> StepMark | None:
    """Find the next step of its turn. O(1) where its number is the next one, else O(steps)."""
    state: RequestState | None = scope.other("request", f"{scope.turn}.{step + 1}")
    if state is not None:
        return StepMark(step + 1, state.started)
    marks: Mapping[str, StepMark] = scope.turn_values("request")
    later = [mark for mark in marks.values() if mark.step > step]
    return min(later, key=lambda mark: mark.step, default=None)


def _request(state: RequestState) -> dict[str, Json]:
    """Say what was asked of whom, and how it answered. A message may name its model itself, or in
    its `source`; else the last fallback named one."""
    message = state.message if state.message is not None else Object({}, ())
    source = message.get("source")
    told = source if type(source) is Object else message
    model = named(message, "model") or named(told, "model")
    return {
        "provider": named(message, "provider") or named(told, "provider"),
        "model": model or (state.given_up[-1].next_model if state.given_up else None),
        "message_id": message.get("message_id"),
        "stop_reason": message.get("stop_reason"),
        "stop_detail": message.get("stop_detail"),
    }


def _usage(step: str, state: RequestState, scope: Scope) -> dict[str, Any] | None:
    """Give what its message used, else what is told so far; apart from it what was lost."""
    used: Json = None
    if state.message is not None:
        used = state.message.get("usage")
    elif state.spoke:
        draft: DraftState | None = scope.other("draft", step)
        used = None if draft is None else draft.shown
    known = dict(used) if type(used) is Object else None
    lost = [given.usage for given in state.given_up if given.usage is not None]
    if known is None and not lost:
        return None
    return {**(known or {}), "lost": total_usage(lost) if lost else None}


def _attempts(state: RequestState, *, over: bool) -> tuple[dict[str, Json], ...]:
    """List the attempts that are known: those given up, then the one that speaks or has spoken.

    A log does not number the attempt that a message is of: it is the next one.
    """
    shown, number = [], 0
    for given in state.given_up:
        number = number + 1 if given.number is None else given.number
        shown.append(_attempt(number, given.by, given.reason, given.model))
    message = state.message
    if message is not None and not _is_of_given_up(message, state):
        outcome = "interrupted" if message.get("interrupted") else "completed"
        shown.append(_attempt(state.spoke or number + 1, outcome))
    elif state.spoke:
        shown.append(_attempt(state.spoke, "interrupted" if over else None))
    return tuple(shown)


def _is_of_given_up(message: Object, state: RequestState) -> bool:
    """Whether it is what an attempt left that was given up then."""
    late = bool(state.given_up) and state.given_up[-1].at > state.message_at
    return late and bool(message.get("interrupted"))


def _attempt(
    number: int, outcome: str | None, reason: Json = None, model: Json = None
) -> dict[str, Json]:
    return {"number": number, "outcome": outcome, "reason": reason, "model": model}


def _events(state: RequestState, calls: Mapping[str, CallSummary]) -> tuple[int, int] | None:
    """Give the first and the last seq that are known to be its own, results of its calls too."""
    known: list[Position] = [state.first, state.ended_at, state.message_at]
    known += [given.at for given in state.given_up]
    for call in calls.values():
        known += [call.at, call.result_at]
    loaded = [pair(at)[0] for at in known if at]
    return (min(loaded), max(loaded)) if loaded else None
