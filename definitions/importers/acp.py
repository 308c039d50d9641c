"""What agents said in ACP, made into recordings: logs of a connection, and snapshots of updates.

A file holds messages of JSON-RPC (of the agent alone, or of both sides), calls of an adapter
(`{method, args}`), or updates of a session by themselves; one a line, one behind another, or in a
list. Not here: what a message means (`definitions.providers.acp_agent`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assembler.plugins import Importer, Sample
from definitions.importers.agents import AgentTranscript
from definitions.importers.reading import sequence
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation
from definitions.providers.acp_agent import AcpAgent
from definitions.providers.reading import array, is_object, mapping, text

__all__ = ["ACP", "acp"]

Message = Mapping[str, Any]

_METHODS = {"sessionUpdate": "session/update", "requestPermission": "session/request_permission"}
"""From the methods of an adapter's connection to those of the protocol."""
_WRAPPERS = ("message", "payload", "data")
"""Where logs have the message, when something stands around it."""
_TIMES = ("timestamp", "time", "ts", "at")


class _Session(AgentTranscript):
    """One session of a file: a conversation."""

    def __init__(self, name: str | None, conversation: str | None) -> None:
        self.acp = AcpAgent(session=name, keeps_all=True)
        super().__init__(self.acp, conversation)


def acp(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn a file into the operations of a recording, the header first; O(size).

    Each session but the first is a conversation of its own, named by its id.
    """
    about = "Imported from messages of the Agent Client Protocol."
    first = _Session(None, None)
    sessions: dict[str, _Session] = {}
    last = first
    yield first.header(name, about)
    number = 0
    for _, value in sequence(lines, name):
        for message, time in _messages(value, None):
            number += 1
            told = text(mapping(message.get("params")).get("sessionId"))
            if told and told not in sessions:
                sessions[told] = first if not sessions else _Session(told, told)
                if sessions[told] is not first:
                    yield sessions[told].header(name, about)
            waiting = [each for each in sessions.values() if each.acp.waits_for(message)]
            last = sessions[told] if told else next(iter(waiting), last)
            last.at(str(number), time)
            yield from last.feed(message)
    for session in {id(each): each for each in (first, *sessions.values())}.values():
        yield from session.finish()


def _messages(value: object, time: int | None) -> Iterator[tuple[Message, int | None]]:
    """Give the messages of JSON-RPC that a value of a file stands for, and when they were sent."""
    if isinstance(value, list):
        for each in value:
            yield from _messages(each, time)
        return
    told = mapping(value)
    found = (milliseconds(told.get(key)) for key in _TIMES)
    time = next((each for each in found if each is not None), time)
    if text(told.get("sessionUpdate")):
        yield {"method": "session/update", "params": {"update": told}}, time
    elif text(told.get("method")) in _METHODS and isinstance(told.get("args"), list):
        for each in told["args"]:
            yield {"method": _METHODS[told["method"]], "params": each}, time
    elif _is_message(told):
        yield told, time
    elif inner := [told[key] for key in _WRAPPERS if is_object(told.get(key))]:
        yield from _messages(inner, time)
    else:
        yield (told or {"value": value}), time


def _is_message(told: Message) -> bool:
    return "jsonrpc" in told or "method" in told or ("id" in told and "result" in told)


def _recognises(sample: Sample) -> bool:
    """Whether one of the first values speaks of a session as ACP does."""
    return any(map(_is_acp, sample.records))


def _is_acp(record: Message) -> bool:
    method, result = text(record.get("method")), mapping(record.get("result"))
    update = mapping(record.get("payload"))
    return (
        method.startswith("session/")
        or (method in _METHODS and isinstance(record.get("args"), list))
        or (bool(text(record.get("sessionUpdate"))) and "type" not in record)
        or bool(text(update.get("sessionUpdate")))
        or ("jsonrpc" in record and type(result.get("protocolVersion")) is int)
        or (record.get("eventType") == "request" and method.startswith(("turn/", "thread/")))
        or _is_list_of_sessions(record)
        or any(_is_acp(mapping(record.get(key))) for key in _WRAPPERS if is_object(record.get(key)))
    )


def _is_list_of_sessions(record: Message) -> bool:
    sessions = [mapping(each) for each in array(record.get("sessions"))]
    named = any("sessionId" in each and "cwd" in each for each in sessions)
    return "nextCursor" in record and named


ACP = Importer("messages of agents that speak ACP", acp, _recognises)
