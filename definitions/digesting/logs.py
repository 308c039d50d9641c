"""A session log of another program: what was streamed, and what was stored of it.

The log is imported; its live half and its durable half must say the same of each call and of each
answer, and a listing beside it counts the calls. Not here: the importer, and whether every way of
arriving shows the same (`assembler verify` of the imported recording).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from assembler.engine.values import same
from assembler.plugins import Odd
from definitions.digesting.listing import Counting, Row, compare_calls
from definitions.digesting.plainly import decoded
from definitions.importers import IMPORTERS, ImportFault
from definitions.providers import Call

__all__ = ["Log", "log"]

_THEIR_WORDS = {"cancelled": "aborted"}
"""Why a turn ended: our word, where the log has another one."""


class Log:
    """What one log says, operation by operation."""

    def __init__(self) -> None:
        self.fault: ImportFault | None = None
        self.answers = 0
        self.stored: dict[str, dict[str, Any]] = {}
        """The calls of messages and of dispatches."""
        self.streamed: dict[tuple[str, str], dict[str, Any]] = {}
        """The calls of attempts; arguments joined."""
        self.odd: list[Odd] = []
        self._texts: dict[tuple[Any, Any], dict[str, str]] = {}
        self._turns: dict[str, None] = {}
        self._finishes: dict[str, None] = {}

    def take(self, operation: Mapping[str, Any]) -> None:
        """Read one operation of the imported recording."""
        if operation.get("op") == "delta":
            self._on_delta(operation)
        elif operation.get("op") == "append":
            self._on_event(operation["event"])

    def _on_delta(self, delta: Mapping[str, Any]) -> None:
        data, place = delta["data"], (delta["turn"], delta["step"])
        if delta["type"] == "finish":
            self._finishes[str(data["reason"].get("kind"))] = None
        elif delta["type"] == "tool-call":
            key = delta["attempt"], data["call_id"]
            call = self.streamed.setdefault(key, {"name": None, "arguments": ""})
            call["name"] = data.get("name", call["name"])
            call["arguments"] += data["arguments"]
        elif delta["type"] in ("text", "reasoning"):
            said = self._texts.get(place)
            if said is None or said["attempt"] != delta["attempt"]:
                said = self._texts[place] = defaultdict(str, attempt=delta["attempt"])
            said[delta["type"]] += data["text"]

    def _on_event(self, event: Mapping[str, Any]) -> None:
        data = event["data"]
        if event["type"] == "turn/end":
            reason = str(data.get("reason"))
            self._turns[_THEIR_WORDS.get(reason, reason)] = None
        elif event["type"] == "tool/call":
            self.stored[data["call_id"]] = {**self.stored.get(data["call_id"], {}), **data}
        elif event["type"] == "assistant/message":
            self.answers += 1
            self._on_message(f"event {event['seq']}", data)

    def _on_message(self, where: str, data: Mapping[str, Any]) -> None:
        streamed = self._texts.pop((data.get("turn"), data.get("step")), {})
        for kind in ("text", "reasoning"):
            stored = "".join(
                block.get("text", "") for block in data["content"] if block["type"] == kind
            )
            if kind in streamed and streamed[kind] != stored:
                self.odd.append(Odd(where, kind, streamed[kind], stored))
        for block in data["content"]:
            if block["type"] == "tool-call":
                self.stored.setdefault(block["call_id"], dict(block))

    def differences(self) -> Iterator[Odd]:
        """Compare the calls that were streamed with those that were stored."""
        yield from self.odd
        for (attempt, call_id), live in self.streamed.items():
            stored = self.stored.get(call_id)
            where = f"attempt {attempt}"
            if stored is None:
                yield Odd(where, f"call {call_id}", live["name"], None, "only-streamed")
                continue
            if live["name"] != stored["name"]:
                yield Odd(where, f"name of {call_id}", live["name"], stored["name"])
            arguments = [decoded(each["arguments"]) for each in (live, stored)]
            if not same(*arguments):
                yield Odd(where, f"arguments of {call_id}", *arguments)

    def compare(self, row: Row) -> Iterator[Odd]:
        """Compare with what a listing says."""
        streamed = {
            call_id: call
            for (_, call_id), call in self.streamed.items()
            if call_id not in self.stored
        }
        stored = [_call(call_id, call) for call_id, call in self.stored.items()]
        calls = [*stored, *(_call(call_id, call) for call_id, call in streamed.items())]
        outer = [[call for call in each if not call.parent_call_id] for each in (calls, stored)]
        countings = [
            Counting("", calls),
            Counting("nested", outer[0]),
            Counting("only-streamed", outer[1]),
        ]
        yield from compare_calls(row, countings)
        finish = f"turn/end={'|'.join(self._turns)}"
        if self._finishes:
            finish += f" finish={'|'.join(self._finishes)}"
        if (listed := "|".join(row.finish)) not in ("", finish):
            yield Odd("", "finish", listed, finish)


def log(path: str, data: bytes) -> Log:
    """Import a log and read what it says."""
    found = Log()
    try:
        for operation in IMPORTERS["dsh-session"](data.splitlines(), name=path):
            found.take(operation)
    except ImportFault as fault:
        found.odd.append(Odd(f"line {fault.line}", fault.field, fault.expected, "not imported"))
    return found


def _call(call_id: str, data: Mapping[str, Any]) -> Call:
    arguments = decoded(data["arguments"])
    is_ready = isinstance(arguments, dict)
    return Call(
        call_id,
        data["name"],
        ready=is_ready,
        arguments=arguments if is_ready else None,
        arguments_text=str(data["arguments"]),
        parent_call_id=data.get("parent_call_id"),
    )
