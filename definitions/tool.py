"""The tool call: preparing, dispatched, settled; one lifecycle for each call id.

Here lives how deltas, `tool/call` and `tool/result` of one id add up and are shown. Not here:
permissions (`approval`, `permission`), how a call reads on one line (`rows`), groups (`process`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from assembler.engine.definition import (
    FRAME,
    NOW,
    START,
    UPDATE,
    Cadence,
    Context,
    Definition,
    Match,
    Node,
    Reader,
    Role,
    Scope,
)
from assembler.engine.errors import AssemblerError
from assembler.engine.events import Delta, Event, Position
from assembler.engine.locations import Status
from assembler.engine.values import Json, Object, Text, freeze_object, same
from definitions.arguments import InvalidArguments, complete, same_json
from definitions.events import named, runs, text_of
from definitions.families import files_of
from definitions.nodes import FIELDS, PartialReader, ToolNode
from definitions.rows import RowReader, row_of
from definitions.shared import (
    ApprovalState,
    CallSummary,
    DescriptionState,
    Preview,
    Question,
    ToolState,
    shown_input,
)

__all__ = ["Tool"]

_NOTHING = ToolState()
_DELTAS = {"tool-call": START, "tool-output": UPDATE, "block-end": UPDATE}
_EVENTS = {"tool/call": START, "tool/result": UPDATE}


class Tool(Definition):
    """A call, from its first streamed piece to its result. The id is its call id."""

    kind = "tool"
    target = "chat"
    takes = frozenset({*_DELTAS, *_EVENTS})

    def match(self, item: Event | Delta) -> tuple[str, Role] | None:
        data = item.data
        if type(item) is Delta:
            role = _DELTAS.get(item.type)
            if item.type == "block-end":
                data = data.get("value")
                if type(data) is not Object or data.get("type") != "tool-call":
                    return None
        else:
            role = _EVENTS.get(item.type)
        if role is None:
            return None
        call_id = data.get("call_id")
        return (call_id, role) if type(call_id) is str and call_id else None

    def start(self, match: Match, reader: Reader) -> ToolState:
        return self.update(_NOTHING, match)

    def update(self, state: ToolState, match: Match) -> ToolState:
        return _fold(state, [match])

    def extend(self, state: ToolState, matches: Sequence[Match]) -> ToolState:
        for run in runs(matches):
            state = _fold(state, run)
        return state

    def place(self, context: Context, scope: Scope) -> CallSummary | None:
        state: ToolState | None = context.state
        if state is None or state.call is None or scope.step is None:
            return None
        return _summary(state, scope, context.id)

    def notes(self, context: Context, scope: Scope) -> Sequence[tuple[str, Position]]:
        state = _state(context)
        if state.result is not None and state.call is None and scope.complete:
            return (*state.odd, ("unmatched-result", state.result_at))
        return state.odd

    def build(self, context: Context, scope: Scope) -> Node | None:
        state = _state(context)
        if not _is_shown(state, scope, started=context.start is not None):
            return None
        fields = dict(FIELDS["tool"])
        preview = _newest(state.previews)
        if state.call is not None:
            _show_call(fields, state.call, state)
        elif preview is not None:
            fields["arguments_text"] = preview.text
            fields["parent"] = preview.parent
            fields["name"] = _name(state)
        fields["stage"] = _stage(state)
        fields["outcome"] = _outcome(state, scope)
        fields["output"] = state.output or ""
        fields["prepared"] = state.prepared
        if state.result is not None:
            _show_result(fields, state.result, state)
        _show_approval(fields, state, scope.other("approval", context.id), scope, context.id)
        described: DescriptionState | None = scope.other("description", context.id)
        if described is not None:
            fields["description"] = _description(described, state, scope)
        if fields["parent"] is not None:
            fields["parent_loaded"] = scope.has("tool", fields["parent"])
        fields["row"] = _row(fields, preview, state.call)
        return ToolNode("tool", context.id, fields, reader=preview.reader if preview else None)

    def cadence(self, match: Match) -> Cadence:
        if type(match.item) is Event or (match.type == "tool-call" and match.data.get("name")):
            return NOW
        return FRAME


def _state(context: Context) -> ToolState:
    """Fold what there is also when no start is loaded: a result whose call is on an older page."""
    state = context.state
    if state is None:
        state = _NOTHING
        for run in runs(context.matches):
            state = _fold(state, run)
    return state  # type: ignore[no-any-return]


def _fold(state: ToolState, run: list[Match]) -> ToolState:
    """Add a run: deltas of one type and attempt, or one event."""
    kind = run[0].item.type
    if kind == "tool-call":
        return _prepare(state, run)
    if kind == "tool-output":
        return _print(state, run)
    for match in run:
        if kind == "block-end":
            state = _end_block(state, match)
        elif kind == "tool/call":
            state = _dispatch(state, match)
        else:
            state = _settle(state, match)
    return state


def _prepare(state: ToolState, run: list[Match]) -> ToolState:
    """Add pieces of the call. Behind its dispatch they say nothing new."""
    if state.call is not None:
        return state
    name = parent = None
    fragments = []
    for match in run:
        data = match.item.data
        text = data.get("arguments")
        if text and type(text) is str:
            fragments.append(text)
        if "name" in data:
            name = named(data, "name") or name
        if "parent_call_id" in data:
            parent = named(data, "parent_call_id") or parent
    attempt = run[0].attempt or ""
    old = _preview_of(state.previews, attempt)
    new = old or Preview(attempt, PartialReader(), RowReader(), Text())
    if fragments or (name or new.name) != new.name or (parent or new.parent) != new.parent:
        new = Preview(
            attempt,
            new.reader,
            new.row,
            new.text.extend(fragments) if fragments else new.text,
            name or new.name,
            parent or new.parent,
        )
    if new is old:
        return state
    prepared = run[0].item.time if state.prepared is None else state.prepared
    return replace(state, previews=_with(state.previews, old, new), prepared=prepared)


def _end_block(state: ToolState, match: Match) -> ToolState:
    """Take the whole block in the place of the pieces of its attempt."""
    if state.call is not None:
        return state
    value = match.data["value"]
    attempt = match.attempt or ""
    old = _preview_of(state.previews, attempt)
    new = old or Preview(attempt, PartialReader(), RowReader(), Text())
    text = value.get("arguments")
    text = Text(text) if type(text) is str and new.text != text else new.text
    name = named(value, "name") or new.name
    if old is not None and text is old.text and name == old.name:
        return state
    new = Preview(attempt, new.reader, new.row, text, name, new.parent)
    return replace(state, previews=_with(state.previews, old, new))


def _preview_of(previews: tuple[Preview, ...], attempt: str) -> Preview | None:
    return next((preview for preview in previews if preview.attempt == attempt), None)


def _with(previews: tuple[Preview, ...], old: Preview | None, new: Preview) -> tuple[Preview, ...]:
    if old is None:
        return (*previews, new)
    return tuple([new if preview is old else preview for preview in previews])


def _print(state: ToolState, run: list[Match]) -> ToolState:
    """Add what the running tool printed. Behind its result it says nothing new."""
    if state.result is not None:
        return state
    fragments = [text for match in run if (text := text_of(match.item.data.get("text")))]
    if not fragments:
        return state
    return replace(state, output=(state.output or Text()).extend(fragments))


def _dispatch(state: ToolState, match: Match) -> ToolState:
    """Take the first `tool/call`; another is a replay, or the id was used again."""
    data = match.data
    arguments = _parse(data.get("arguments"))
    if state.call is not None:
        if _same_arguments(state, data, arguments):
            return state
        return _note(state, "reused-call-id", match)
    if arguments is None:
        state = _note(state, "unparsed-arguments", match)
    return replace(
        state,
        call=data,
        call_at=match.position,
        arguments=arguments,
        started=match.time,
        previews=(),
    )


def _parse(text: Json) -> Object | None:
    """Read complete arguments; None when they are no object, or hold what no value can hold."""
    if type(text) is not str:
        return None
    try:
        return freeze_object(complete(text))
    except (InvalidArguments, AssemblerError):
        return None


def _same_arguments(state: ToolState, data: Object, arguments: Object | None) -> bool:
    """Compare as JSON values; texts that are no object have nothing but themselves to compare."""
    if arguments is None or state.arguments is None:
        text = state.call.get("arguments") if state.call is not None else None
        return arguments is state.arguments and same_json(text, data.get("arguments"))
    return same_json(state.arguments, arguments)


def _settle(state: ToolState, match: Match) -> ToolState:
    """Take the first real result; a synthetic one holds the place until a real one comes."""
    data = match.data
    synthetic = bool(data.get("synthetic"))
    if state.result is not None:
        if synthetic:
            return state
        if not state.result.get("synthetic"):
            return _note(state, "duplicate-result", match)
    return replace(state, result=data, result_at=match.position, finished=match.time)


def _note(state: ToolState, kind: str, match: Match) -> ToolState:
    return replace(state, odd=(*state.odd, (kind, match.position)))


def _row(fields: dict[str, Any], preview: Preview | None, call: Object | None) -> Object:
    """Make the row: a preparation's by what was read of it before, so that it costs what is new."""
    prepared = None if preview is None else preview.row.row(preview.text, fields["name"])
    if prepared is not None and fields["stage"] == "preparing":
        return prepared
    return row_of(fields, prepared, text_of(call.get("title")) if call is not None else "")


def _name(state: ToolState) -> str | None:
    if state.call is not None:
        return named(state.call, "name")
    return next((p.name for p in reversed(state.previews) if p.name is not None), None)


def _newest(previews: tuple[Preview, ...]) -> Preview | None:
    """Choose what is shown of attempts that stand side by side: the one that began last."""
    return previews[-1] if previews else None


def _is_shown(state: ToolState, scope: Scope, *, started: bool) -> bool:
    """Whether it has a row: a call, a named preparation, a result whose call may be older.

    The end of a block starts nothing, whatever it names.
    """
    if state.call is not None or (started and _name(state) is not None):
        return True
    return state.result is not None and not scope.complete


def _stage(state: ToolState) -> str:
    if state.result is not None:
        return "result"
    return "preparing" if state.call is None else "start"


def _outcome(state: ToolState, scope: Scope) -> str | None:
    """Derive how it ended. What is open is read only where it decides."""
    if state.result is not None:
        return "failed" if _failed(state.result) else "succeeded"
    if state.call is None:
        return None
    return "unsettled" if scope.closed or scope.live is False else None


def _failed(result: Object) -> bool:
    return bool(result.get("is_error")) or result.get("error") is not None


def _summary(state: ToolState, scope: Scope, call_id: str) -> CallSummary:
    """Say what the call was for its turn and step; files are those of a call that succeeded."""
    name, failed = _name(state), state.result is not None and _failed(state.result)
    files: tuple[str, ...] = ()
    if name is not None and state.result is not None and not failed:
        files = files_of(name, state.arguments)
    if files:
        approval: ApprovalState | None = scope.other("approval", call_id)
        runs_instead = None if approval is None else approval.updated_input
        files = files_of(name or "", runs_instead or state.arguments)
    return CallSummary(name, failed, files, state.call_at, state.result_at)


def _show_call(fields: dict[str, Any], call: Object, state: ToolState) -> None:
    fields["name"] = _name(state)
    fields["arguments"] = state.arguments
    text = call.get("arguments")
    fields["arguments_text"] = text if type(text) is str else None
    fields["started"] = state.started
    fields["parent"] = named(call, "parent_call_id")
    fields["ran_by"] = "provider" if call.get("ran_by") == "provider" else "host"


def _show_result(fields: dict[str, Any], result: Object, state: ToolState) -> None:
    content = result.get("content")
    fields["content"] = content if type(content) is tuple else ()
    fields["error"] = result.get("error")
    fields["finished"] = state.finished


def _show_approval(
    fields: dict[str, Any],
    state: ToolState,
    approval: ApprovalState | None,
    scope: Scope,
    call_id: str,
) -> None:
    """Show what was decided: the arguments that run, and the question that is still open."""
    if approval is None:
        return
    if state.call is not None and approval.updated_input is not None:
        fields["arguments"] = approval.updated_input
    if state.result is None and approval.unanswered and scope.live is not False:
        fields["waiting"] = _waiting(approval.unanswered, scope, call_id)


def _waiting(unanswered: tuple[str, ...], scope: Scope, call_id: str) -> str | None:
    """Name the first question that is still open: as its own row says it (`permission`)."""
    for request in unanswered:
        asked_in = scope.turn_status_of("permission", f"{request}@{call_id}")
        if (scope.turn_status if asked_in is None else asked_in) is not Status.CLOSED:
            return f"permission:{request}@{call_id}"
    return None


def _description(described: DescriptionState, state: ToolState, scope: Scope) -> Json:
    """Show what is described, from which input. A text that was made from anything else than what
    the approval shows is none of it, and nobody goes on with what is over."""
    if described.status is None and not described.questions:
        return None
    status, text = described.status or "none", described.text
    asked = shown_input(described.requested, state)
    is_of_other = (
        described.status is not None and described.is_requested and not same(described.input, asked)
    )
    is_over = state.result is not None or scope.closed or scope.live is False
    if is_of_other or (is_over and status == "describing"):
        status, text = "withdrawn", None
    is_void = is_over or is_of_other
    questions = tuple([_question(each, is_void=is_void) for each in described.questions])
    if any(each["status"] == "open" for each in questions):
        status = "questions-open"
    return {"status": status, "text": text, "input": described.input, "questions": questions}


def _question(question: Question, *, is_void: bool) -> dict[str, Json]:
    is_open = question.status == "open"
    return {
        "inquiry_id": question.inquiry_id,
        "question": question.question,
        "status": "withdrawn" if is_open and is_void else question.status,
        "answer": question.answer,
    }
