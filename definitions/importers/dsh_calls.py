"""Records of a session log about calls: of a model, of a program that a call runs, and approvals.

Here lives one function for each type. Not here: calls that are still being written (`dsh_chunks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from definitions.importers.dsh_log import Call, Log, Operation, Record, kept
from definitions.importers.dsh_values import (
    arguments_of,
    content_of,
    implied,
    input_of,
    is_repaired,
    place_of,
)
from definitions.importers.reading import Data, Fields

__all__ = ["CALLS"]


def _tool_call(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    call = Call(place_of(data), data.text("name"), arguments_of(data.values.get("arguments")))
    yield _called(log, data.text("callId"), call, data.rest("callId"))


def _called(log: Log, call_id: str, call: Call, rest: Data) -> Operation:
    log.calls[call_id] = call
    where = {} if call.place is None else {"turn": call.place[0], "step": call.place[1]}
    told = {"call_id": call_id, "name": call.name, "arguments": call.arguments}
    return log.event("tool/call", {**where, **told}, rest)


def _tool_result(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    if "message" not in data.values:  # the older dialect
        yield _returned(log, data, data.text("callId"), data.rest("callId"))
        return
    message = data.inner("message")
    # The source of the message names the call once more.
    about = message.rest("id", "content", "source", *implied(message, "user"))
    rest = data.rest("message") | about | log.message_id(message.values.get("id"))
    key = "content"
    results = message.each(key)
    if not results:
        raise message.fault(key, "at least one tool-result block")
    for result in results:
        beside = result.rest("type", "toolCallId")
        yield _returned(log, result, result.text("toolCallId"), {**beside, **rest})


def _returned(log: Log, result: Fields, call_id: str, rest: Data) -> Operation:
    failed = rest.pop("isError", None) is True
    told = {
        "call_id": call_id,
        "content": content_of(result),
        **({"is_error": True} if failed else {}),
        **({"synthetic": True} if is_repaired(rest.get("error")) else {}),
    }
    return log.event("tool/result", told, rest)


def _dispatch_start(log: Log, record: Record) -> Iterator[Operation]:
    yield _dispatched(log, record.data)


def _dispatched(log: Log, data: Fields) -> Operation:
    """Append a call that a program made: it belongs to the step of the outermost one."""
    parent = data.text("parentCallId")
    root = data.text("rootCallId") if "rootCallId" in data.values else parent
    outer = log.calls.get(root) or log.calls.get(parent)
    place = None if outer is None else outer.place
    call = Call(place, data.text("name"), arguments_of(data.values.get("arguments")))
    rest = data.rest("subCallId", "parentCallId", "isError", "content")
    return _called(log, data.text("subCallId"), call, {"parent_call_id": parent, **rest})


def _dispatch(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    call_id = data.text("subCallId")
    parent = data.text("parentCallId")
    if call_id not in log.calls and "name" in data.values and "arguments" in data.values:
        # Without a start the record itself is the evidence of the call, and says all of it.
        yield _dispatched(log, data)
    rest = data.rest("subCallId", "parentCallId", "arguments")
    call = log.calls.get(call_id)
    arguments = arguments_of(data.values.get("arguments"))
    if call is None or call.arguments != arguments:
        rest["arguments"] = arguments
    yield _returned(log, data, call_id, {"parent_call_id": parent, **rest})


def _asked(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    request_id, call_id = data.text("id"), data.values.get("callId")
    if not isinstance(call_id, str):  # asks about something that is no call
        yield from kept(log, record)
        return
    log.asked[request_id] = call_id
    call = log.calls.get(call_id)
    asked = {"call_id": call_id, "request_id": request_id}
    what = {"input": {} if call is None else input_of(call.arguments)}
    yield log.event("permission/request", {**asked, **what}, data.rest("id", "callId"))


def _decided(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    request_id = data.text("id")
    call_id = log.asked.get(request_id, data.values.get("callId"))
    if not isinstance(call_id, str):
        yield from kept(log, record)
        return
    outcome = data.text("outcome")
    # Whatever does not allow (rejected, cancelled, nobody there to ask) does not run.
    told = {
        "call_id": call_id,
        "request_id": request_id,
        "decision": "allow" if outcome.startswith("allow") else "deny",
        **({"remember": True} if "always" in outcome else {}),
    }
    yield log.event("permission/answer", told, data.rest("id", "callId"))


CALLS: Mapping[str, Callable[[Log, Record], Iterator[Operation]]] = {
    "tool/call": _tool_call,
    "tool/result": _tool_result,
    "tool/code-dispatch-start": _dispatch_start,
    "tool/code-dispatch": _dispatch,
    "approval/asked": _asked,
    "approval/decided": _decided,
}
