"""How a turn went: shown at its end, from what its steps and calls publish.

Nothing is summed up before the turn ends. Not here: the error that ended it (`turn_error`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from assembler.engine.definition import START, Context, Definition, Match, Node, Reader, Role, Scope
from assembler.engine.events import Event
from definitions.events import is_int, total_usage
from definitions.nodes import node
from definitions.shared import CallSummary, StepUsage, TurnState

__all__ = ["TurnTail"]


class TurnTail(Definition):
    """Shows at `turn/end`, and stands there. The id is the turn.

    What it adds up is not known (None) while the beginning of the turn is on an older page: sums of
    a part would be wrong, and made again with every page.
    """

    kind = "turn-tail"
    target = "chat"
    takes = frozenset({"turn/start", "turn/end"})

    def match(self, item: Event) -> tuple[str, Role] | None:
        turn = item.data.get("turn")
        return (str(turn), START) if type(item) is Event and is_int(turn) else None

    def start(self, match: Match, reader: Reader) -> TurnState:
        return self.update(TurnState(), match)

    def update(self, state: TurnState, match: Match) -> TurnState:
        """Take the first of each."""
        if match.type == "turn/start":
            return state if state.started is not None else replace(state, started=match.time)
        return state if state.end is not None else replace(state, end=match.data, ended=match.time)

    def anchor(self, context: Context) -> Match:
        matches = context.matches
        return next((match for match in matches if match.type == "turn/end"), matches[0])

    def build(self, context: Context, scope: Scope) -> Node | None:
        state: TurnState | None = context.state
        if state is None or state.end is None:
            return None
        fields = {"status": state.end.get("reason"), "duration_ms": _duration(state)}
        if state.started is not None or scope.complete:
            fields.update(_totals(scope))
        return node("turn-tail", context.id, fields)


def _duration(state: TurnState) -> int | None:
    if state.started is None or state.ended is None:
        return None
    return max(state.ended - state.started, 0)


def _totals(scope: Scope) -> dict[str, Any]:
    """Add up the whole turn. O(what it published)."""
    calls: Mapping[str, CallSummary] = scope.step_values("tool")
    return {
        "usage": _usage(scope.step_values("request").values()),
        "calls": _counts(calls.values()),
        "failed": sum(call.failed for call in calls.values()),
        "files": tuple(dict.fromkeys(path for call in calls.values() for path in call.files)),
    }


def _usage(steps: Iterable[StepUsage]) -> dict[str, Any] | None:
    """Add up what the steps used, and apart from it what was lost; None when nobody told."""
    steps = tuple(steps)
    if not steps:
        return None
    lost = [usage for step in steps for usage in step.lost]
    used = total_usage(step.usage for step in steps if step.usage is not None)
    return {**used, "lost": total_usage(lost) if lost else None}


def _counts(calls: Iterable[CallSummary]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for call in calls:
        if call.name is not None:
            counts[call.name] = counts.get(call.name, 0) + 1
    return counts
