"""A transcript of another program: imported, and compared with what a listing says of its calls.

Which importer reads a file, its content says. Whether every way of arriving shows the same is not
asked here (`assembler verify`), nor what a session log streamed (`logs`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from assembler.plugins import Digest, Odd, Sample
from definitions.digesting.bodies import body
from definitions.digesting.listing import Row
from definitions.importers import IMPORTERS, ImportFault

__all__ = ["importer_of", "transcript"]

_READ_ELSEWHERE = frozenset({"dsh-session", "exchange", "model-stream"})
"""Importers of what is looked at more closely: in `logs`, `exchanges` and `answers`."""
_SAMPLE_VALUES = 20
_NO_ID = "None"
_CALLS = "tool_calls"
_SPELLED = ("tool_use", "toolCall", "function_call")


class _Call(Struct):
    """What is known of a call: its name, and which ways there are to know of it."""

    name: str
    title: str = ""
    is_beside: bool = False
    is_streamed: bool = False
    is_child: bool = False
    was_asked: bool = False
    ran_by_provider: bool = False


class _Read:
    """What the operations of an importer say."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(answers=0, calls=0)
        self.calls: dict[str, _Call] = {}
        self.ids: dict[str, list[str]] = {}
        """Our ids by the file's; several where the file uses one again."""

    def take(self, operation: Mapping[str, Any]) -> None:
        if operation.get("op") == "append":
            event = operation["event"]
            self._event(event["type"], event["data"], "conversation" in operation)
        elif operation.get("op") == "delta" and operation.get("type") == "tool-call":
            call = self._call(operation["data"], "conversation" in operation)
            call.is_streamed = True

    def _event(self, kind: str, data: Mapping[str, Any], is_beside: bool) -> None:
        if kind == "assistant/message":
            self.counts["answers"] += 1
            for block in data["content"]:
                if block.get("type") == "tool-call":
                    self._call(block, is_beside)
        elif kind == "tool/call":
            self._call(data, is_beside)
        elif kind == "permission/request" and data["call_id"] in self.calls:
            self.calls[data["call_id"]].was_asked = True

    def _call(self, data: Mapping[str, Any], is_beside: bool) -> _Call:
        call_id = data["call_id"]
        theirs = data.get("provider_call_id") or call_id
        if call_id not in self.calls:
            self.ids.setdefault(str(theirs), []).append(call_id)
        known = self.calls.setdefault(call_id, _Call("", is_beside=is_beside))
        known.name = data.get("name") or known.name
        known.is_child |= "parent_call_id" in data
        known.ran_by_provider |= data.get("ran_by") == "provider"
        known.title = str(data.get("title") or known.title)
        return known


def importer_of(values: Sequence[Any]) -> str | None:
    """Give the name of the importer that knows a file which begins with these values."""
    sample = Sample(tuple(values[:_SAMPLE_VALUES]))
    names = (name for name in IMPORTERS if name not in _READ_ELSEWHERE)
    return next((name for name in names if IMPORTERS[name].recognises(sample)), None)


def transcript(name: str, path: str, data: bytes, row: Row | None) -> Digest:
    """Import a file by the importer of that name, and compare it with its listing."""
    found, odd = _Read(), []
    try:
        for operation in IMPORTERS[name](data.splitlines(keepends=True), name=path):
            found.take(operation)
    except ImportFault as fault:
        odd.append(Odd(f"line {fault.line}", fault.field, fault.expected, "not imported"))
    found.counts["calls"] = len(found.calls)
    if row is not None and not odd:
        odd += _compare(found, row, data)
    return Digest(name, counts=dict(found.counts), odd=tuple(odd))


def _compare(found: _Read, row: Row, data: bytes) -> Iterator[Odd]:
    """Compare how many calls there are, and those that the listing names."""
    total = len(found.calls)
    if row.count not in (None, total):
        yield Odd("", "calls", row.count, total, _counting(found, row, data))
    for call_id, name in row.named:
        calls = [found.calls[each] for each in found.ids.get(call_id, ())]
        names = [each.name for each in calls]
        if not calls and (call_id == _NO_ID or call_id.isdecimal()):
            yield Odd("", "id of a call", call_id, "one of its own", "minted")
        elif not calls:
            yield Odd("", "call", call_id, None)
        elif name not in (*names, _NO_ID):
            yield Odd("", f"name of {call_id}", name, names[0], _naming(call_id, name, calls, data))


def _naming(call_id: str, name: str, calls: Sequence[_Call], data: bytes) -> str:
    """Give the word for why the listing calls a call otherwise."""
    if any(name == each.title for each in calls):
        return "title"
    if any(name == f"{each.name}_call" for each in calls):
        return "item-type"
    of_call = (each for each in _objects(data) if call_id in each.values())
    return "first-title" if any(each.get("title") == name for each in of_call) else ""


def _counting(found: _Read, row: Row, data: bytes) -> str:
    """Give the word for another way of counting that comes to the listing's number."""
    calls, total, tellings = found.calls.values(), len(found.calls), _tellings(data)
    ways = {
        "beside": sum(not call.is_beside for call in calls),
        "nested": sum(not call.is_child for call in calls),
        "only-asked": sum(not call.was_asked for call in calls),
        "same-id": len(found.ids),
        "ran-by-provider": sum(not call.ran_by_provider for call in calls),
        "told-whole": sum(call.is_streamed for call in calls) or total,
        "told-again": max(tellings, total),
        "without-id": sum(call_id.encode() in data for call_id in found.calls),
        "own-words": total if tellings or _has_calls(data) else 0,
    }
    insides = "insides" if row.takes_insides and not row.count else ""
    return next((kind for kind, count in ways.items() if count == row.count), insides)


def _tellings(data: bytes) -> int:
    """Count the calls in all lists that are named as those of an answer, wherever they stand."""
    told = (each.get(_CALLS) for each in _objects(data))
    return sum(len(calls) for calls in told if isinstance(calls, list))


def _has_calls(data: bytes) -> bool:
    """Whether there is a call that is spelled as several formats do."""
    return any(each.get("type") in _SPELLED for each in _objects(data))


def _objects(data: bytes) -> Iterator[Mapping[str, Any]]:
    """Give every object of a file, also those inside of others."""
    waiting = list[Any](body(data).chunks)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
