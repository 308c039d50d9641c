"""A question to people before a call runs, and what became of it.

Not here: what all questions of one call come to (`approval`), the call itself (`tool`).
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from assembler.engine.definition import (
    START,
    UPDATE,
    Context,
    Definition,
    Match,
    Node,
    Reader,
    Role,
    Scope,
)
from assembler.engine.events import Event
from assembler.engine.locations import Status
from assembler.engine.values import Json, Object
from definitions.events import named, request_of
from definitions.nodes import node
from definitions.shared import ToolState, shown_input

__all__ = ["Permission", "PermissionState"]


class PermissionState(Struct, frozen=True, gc=False):
    """What was asked, and the first answer to it."""

    request: Object | None = None
    answer: Object | None = None


class Permission(Definition):
    """One question. The id is `request_id@call_id`: request numbers restart with a connection."""

    kind = "permission"
    target = "chat"
    takes = frozenset({"permission/request", "permission/answer"})

    def match(self, item: Event) -> tuple[str, Role] | None:
        if type(item) is not Event:
            return None
        call_id, request = named(item.data, "call_id"), request_of(item.data)
        if call_id is None or request is None:
            return None
        return f"{request}@{call_id}", START if item.type == "permission/request" else UPDATE

    def start(self, match: Match, reader: Reader) -> PermissionState:
        return PermissionState(match.data)

    def update(self, state: PermissionState, match: Match) -> PermissionState:
        if match.type == "permission/request" or state.answer is not None:
            return state
        return replace(state, answer=match.data)

    def build(self, context: Context, scope: Scope) -> Node | None:
        state: PermissionState | None = context.state
        if state is None or state.request is None:
            return None
        call_id, asked, answer = state.request["call_id"], state.request.get("input"), state.answer
        tool: ToolState | None = None
        if answer is None or not asked:
            tool = scope.other("tool", call_id)
        fields = {
            "call_id": call_id,
            "request_id": request_of(state.request),
            "input": shown_input(asked, tool),
            "decision": _decision(answer, call_id, tool, scope),
            "updated_input": None if answer is None else answer.get("updated_input"),
        }
        return node("permission", context.id, fields)


def _decision(answer: Object | None, call_id: str, tool: ToolState | None, scope: Scope) -> Json:
    if answer is not None:
        return answer.get("decision")
    if _has_result(call_id, tool, scope):
        return "closed"
    # Where its own turn is on an older page, that of its call decides.
    asked_in = scope.turn_status if scope.turn is not None else None
    if asked_in is None:
        asked_in = scope.turn_status_of("tool", call_id)
    if asked_in is Status.CLOSED or scope.live is False:
        return "withdrawn"
    return "pending"


def _has_result(call_id: str, tool: ToolState | None, scope: Scope) -> bool:
    """Whether the call has its result, also where the call itself is not loaded."""
    if tool is not None:
        return tool.result is not None
    return any(match.type == "tool/result" for match in scope.unstarted("tool", call_id))
