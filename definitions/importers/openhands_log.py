"""Requests that OpenHands logged: one document with a request, all that was said before it, and the
answer.

Where the model makes no calls of its own, OpenHands writes them into texts; the document then has
both, and the messages with calls are read (`raw_messages`). Not here: how messages are spelled
(`chat_messages`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assembler.plugins import Importer, Sample
from definitions.importers.chat_messages import answer_blocks, content_blocks, stop_of, usage_of
from definitions.importers.errors import ImportFault
from definitions.importers.reading import document
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript
from definitions.providers.reading import array, mapping, text

__all__ = ["OPENHANDS_LOG", "openhands_log"]

Record = Mapping[str, Any]

_SAID = ("role", "content", "tool_calls")


def openhands_log(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one logged request into a recording, the header first. Holds the document."""
    told = mapping(document(lines, name))
    field = "raw_messages" if isinstance(told.get("raw_messages"), list) else "messages"
    if not isinstance(told.get(field), list):
        raise ImportFault(name, 1, "messages", "what was sent to the model, as a list")
    transcript = Transcript()
    yield transcript.header(name, "Imported from a request that OpenHands logged.")
    transcript.at("request")
    about = {key: each for key, each in told.items() if key not in (field, "response")}
    yield transcript.kept("openhands-llm-log/request", about)
    for number, each in enumerate(told[field], 1):
        transcript.at(f"message-{number}")
        yield from _message(transcript, mapping(each) or {"content": each}, f"call-{number}")
    transcript.at("response", milliseconds(told.get("timestamp")))
    yield from _response(transcript, mapping(told.get("response")))
    yield transcript.finish()


def _message(transcript: Transcript, message: Record, minted: str) -> Iterator[Operation]:
    role = text(message.get("role"))
    more = {key: each for key, each in message.items() if key not in _SAID}
    if role == "assistant":
        yield from transcript.answer(answer_blocks(message, minted), more=more)
        return
    blocks = content_blocks(message.get("content"))
    if role == "user":
        yield from transcript.user(blocks, more=more)
    elif role == "tool" and "tool_call_id" in message:
        yield transcript.result(text(message["tool_call_id"]), blocks)
    else:
        yield transcript.message(blocks, source={"kind": role or "odd"}, more=more)


def _response(transcript: Transcript, response: Record) -> Iterator[Operation]:
    """Write the answer; without a call nothing follows it."""
    about = {key: each for key, each in response.items() if key not in ("choices", "usage")}
    choices = [mapping(each) for each in array(response.get("choices"))]
    if not choices:
        if about:
            yield transcript.kept("openhands-llm-log/response", about)
        return
    blocks = answer_blocks(mapping(choices[0].get("message")), "call")
    stop = stop_of(choices[0].get("finish_reason"), blocks)
    usage = usage_of(response.get("usage"))
    rest = {"choices": choices[1:]} if choices[1:] else {}
    yield from transcript.answer(blocks, stop_reason=stop, usage=usage, more={**about, **rest})
    if stop == "end_turn":
        yield from transcript.end_turn()


def _recognises(sample: Sample) -> bool:
    first = sample.records[0] if len(sample.values) == 1 and sample.records else {}
    is_log = isinstance(first.get("messages"), list) and isinstance(first.get("response"), dict)
    return is_log and "latency_sec" in first and "choices" in first["response"]


OPENHANDS_LOG = Importer("requests to models that OpenHands logged", openhands_log, _recognises)
