"""A response that is over: which of its calls are ready, why the others are not, its message.

Not here: reading what comes (`answer`), what follows from a response (`definitions.answering`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assembler.engine.values import Object, freeze_object
from definitions.providers.blocks import Block, CallBlock, RawBlock, TextBlock
from definitions.providers.outcome import Call, Incident, Ran, Response, Why
from definitions.providers.witnesses import Verdict

__all__ = [
    "call_data",
    "calls_of",
    "content_of",
    "incidents_of",
    "message_data",
    "ran_of",
    "said_of",
]


def calls_of(blocks: Iterable[Block], why: Why | None) -> dict[int, Call]:
    """Give the calls by the number of their block; `why`: why the response is not whole."""
    return {block.number: _settled(block, why) for block in blocks if isinstance(block, CallBlock)}


def _settled(call: CallBlock, response_why: Why | None) -> Call:
    verdict = call.judge()
    why = response_why or _why_not(call, verdict)
    ready = why is None
    assert call.id is not None  # noqa: S101 - every call that is left has one
    return Call(
        call_id=call.id,
        name=call.name or None,
        ready=ready,
        arguments=verdict.arguments if ready else None,
        arguments_text=(verdict.text or "{}") if ready else verdict.text,
        why=why,
        ran_by=call.ran_by,
        provider_call_id=call.hint or None,
        parent_call_id=call.parent or None,
    )


def _why_not(call: CallBlock, verdict: Verdict) -> Why | None:
    """Say why a call of a whole response is not ready."""
    if not call.closed:
        return "incomplete"
    if verdict.why == "invalid-json":
        return verdict.why
    return verdict.why if call.name else "no-name"


def said_of(blocks: Iterable[Block]) -> tuple[Object, ...]:
    """Give what people read: text and reasoning that is not blank."""
    return tuple(
        block.value()
        for block in blocks
        if isinstance(block, TextBlock) and any(one.strip() for one in block.fragments)
    )


def content_of(blocks: Iterable[Block], calls: Mapping[int, Call]) -> tuple[Object, ...]:
    """Give the blocks of the message; text that never came is none of them."""
    content = []
    for block in blocks:
        if isinstance(block, CallBlock):
            content.append(_call_value(calls[block.number], block.extra))
        elif isinstance(block, RawBlock) or any(block.fragments) or block.extra:
            content.append(block.value())
    return tuple(content)


def _call_value(call: Call, extra: Mapping[str, Any]) -> Object:
    fields: dict[str, Any] = {
        "type": "tool-call",
        "call_id": call.call_id,
        "name": call.name or "",
        "arguments": call.arguments_text,
    }
    if call.provider_call_id not in (None, call.call_id):
        fields["provider_call_id"] = call.provider_call_id
    if call.parent_call_id is not None:
        fields["parent_call_id"] = call.parent_call_id
    if call.ran_by == "provider":
        fields["ran_by"] = "provider"
    return freeze_object({**fields, **extra})


def ran_of(blocks: Sequence[Block], calls: Mapping[int, Call]) -> tuple[Ran, ...]:
    """Give what the provider did by itself, in the order of the answer.

    A call whose arguments broke off never ran, unless its result says that it did.
    """
    ran = []
    answered = {block.call for block in blocks if isinstance(block, RawBlock)}
    for block in blocks:
        if isinstance(block, CallBlock):
            call = calls[block.number]
            did_run = block.closed or call.call_id in answered
            if call.ran_by == "provider" and call.name and did_run:
                ran.append(Ran("tool/call", call_data(call)))
        elif isinstance(block, RawBlock) and block.call is not None:
            data = {"call_id": block.call, "content": block.content}
            ran.append(Ran("tool/result", {**data, "is_error": True} if block.is_error else data))
    return tuple(ran)


def call_data(call: Call) -> dict[str, Any]:
    """Give the data of a `tool/call`, but for its turn and step."""
    data: dict[str, Any] = {
        "call_id": call.call_id,
        "name": call.name,
        "arguments": call.arguments_text,
    }
    if call.provider_call_id is not None:
        data["provider_call_id"] = call.provider_call_id
    if call.parent_call_id is not None:
        data["parent_call_id"] = call.parent_call_id
    if call.ran_by == "provider":
        data["ran_by"] = "provider"
    return data


def message_data(response: Response, turn: int, step: int) -> dict[str, Any]:
    """Give the data of the `assistant/message` that an answer becomes."""
    data: dict[str, Any] = {
        "turn": turn,
        "step": step,
        "message_id": response.message_id,
        "content": response.content,
        "stop_reason": response.stop_reason,
        "provider": response.source,
    }
    if response.stop_detail is not None:
        data["stop_detail"] = response.stop_detail
    if response.usage is not None:
        data["usage"] = response.usage
    return data


def incidents_of(blocks: Sequence[Block], calls: Mapping[int, Call]) -> tuple[Incident, ...]:
    """Give what was odd about the calls of a whole response."""
    incidents = []
    for block in blocks:
        if not isinstance(block, CallBlock):
            continue
        call = calls[block.number]
        if block.judge().disagree:
            incidents.append(Incident("arguments-disagree", call.call_id))
        if call.why == "invalid-json" and call.ran_by == "host":
            incidents.append(Incident("unparsed-arguments", call.call_id))
    return tuple(incidents)
