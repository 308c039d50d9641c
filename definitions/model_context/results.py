"""The outcome of each call, and what is said where there is none.

Not here: which calls there are (`history`), how a result is spelled (the formats).
"""

from __future__ import annotations

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Context
from assembler.engine.values import Json, Object, freeze_object
from definitions.events import named
from definitions.model_context.turns import Result
from definitions.permission import PermissionState
from definitions.shared import ToolState, TurnState

__all__ = ["CANCELLED", "DENIED", "NOT_RUN", "NO_RESULT", "NO_RESULT_YET", "Results"]

DENIED = "The call was denied. It did not run."
NOT_RUN = "The call did not run."
CANCELLED = "The turn was cancelled before the call had a result."
NO_RESULT = "The call has no result: whether it ran to its end is not known."
NO_RESULT_YET = "The call has no result yet."


class Results:
    """Results by call. A stand-in is said to the model alone, and stored nowhere: the real result
    may still come, and then it stands in its place."""

    __slots__ = ("_denied", "_ends", "_live", "_newest")

    def __init__(self, assembler: Assembler) -> None:
        self._live = assembler.live
        self._ends: dict[int, Object] = {}
        self._newest = 0
        for context in assembler.contexts("turn-tail"):
            turn, tail = int(context.id), context.state
            self._newest = max(self._newest, turn)
            if isinstance(tail, TurnState) and tail.end is not None:
                self._ends[turn] = tail.end
        self._denied = frozenset(
            state.request.get("call_id")
            for context in assembler.contexts("permission")
            if (state := _answered(context)) is not None
            and state.request is not None
            and state.answer is not None
            and state.answer.get("decision") == "deny"
        )

    def of(self, call_id: str, context: Context | None, turn: int | None) -> Result:
        """Give what came of a call that a message of `turn` names."""
        told = None if context is None else _result(context)
        if told is not None:
            return _real(told)
        if call_id in self._denied:
            return _instead(DENIED)
        end = None if turn is None else self._ends.get(turn)
        if end is not None and end.get("reason") == "cancelled":
            return _instead(CANCELLED if _ran(context) else NOT_RUN)
        over = end is not None or self._live is False or (turn or 0) < self._newest
        if not over:
            return _instead(NO_RESULT_YET, is_error=False)
        return _instead(NO_RESULT if _ran(context) else NOT_RUN)


def _answered(context: Context) -> PermissionState | None:
    state: PermissionState | None = context.state
    return state


def _ran(context: Context | None) -> bool:
    """Whether it was handed over."""
    state: ToolState | None = None if context is None else context.state
    return state is not None and state.call is not None


def _result(context: Context) -> Object | None:
    """Give the result that counts, also of a call that was never told of: a real one first."""
    state: ToolState | None = context.state
    if state is not None:
        return state.result
    results = [match.data for match in context.matches if match.type == "tool/result"]
    real = [result for result in results if not result.get("synthetic")]
    return next(iter([*real, *results]), None)


def _real(told: Object) -> Result:
    content, error = told.get("content"), told.get("error")
    blocks: tuple[Object, ...] = ()
    if type(content) is str:
        blocks = (_text(content),)
    elif type(content) is tuple:
        blocks = tuple([block for block in content if type(block) is Object])
    if not blocks and error is not None:
        blocks = (_text(_words(error)),)
    return Result(blocks, is_error=bool(told.get("is_error")) or error is not None)


def _words(error: Json) -> str:
    """Give what an error says; at least its name."""
    if type(error) is not Object:
        return error if type(error) is str else ""
    return ": ".join(each for field in ("name", "message") if (each := named(error, field)))


def _instead(words: str, *, is_error: bool = True) -> Result:
    return Result((_text(words),), is_error)


def _text(text: str) -> Object:
    return freeze_object({"type": "text", "text": text})
