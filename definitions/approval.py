"""What was asked and answered about one call, by call id: State alone, shown by nobody.

Requests may come before their call is seen, so they are no Matches of the tool; `tool` reads this
State instead. Not here: the permission's own row (`permission`).
"""

from __future__ import annotations

from msgspec.structs import replace

from assembler.engine.definition import START, Definition, Match, Reader, Role
from assembler.engine.events import Delta, Event
from assembler.engine.values import Object
from definitions.events import named, request_of
from definitions.shared import ApprovalState

__all__ = ["Approval"]


class Approval(Definition):
    """All permissions of one call. The id is its call id."""

    kind = "approval"
    takes = frozenset({"permission/request", "permission/answer"})

    def match(self, item: Event | Delta) -> tuple[str, Role] | None:
        call_id = named(item.data, "call_id")
        if call_id is None or request_of(item.data) is None:
            return None
        return call_id, START

    def start(self, match: Match, reader: Reader) -> ApprovalState:
        return self.update(ApprovalState(), match)

    def update(self, state: ApprovalState, match: Match) -> ApprovalState:
        request = request_of(match.data) or ""
        if match.type == "permission/request":
            if request in state.asked:
                return state
            return replace(state, asked=(*state.asked, request))
        if request in state.answered:
            return state  # the first answer to a question counts
        runs = _what_runs(match.data)
        return ApprovalState(
            state.asked,
            (*state.answered, request),
            state.updated_input if runs is None else runs,
        )


def _what_runs(answer: Object) -> Object | None:
    """Give the input that an answer puts in the place of the call's; a refusal runs nothing."""
    updated = answer.get("updated_input")
    return updated if type(updated) is Object and answer.get("decision") != "deny" else None
