"""AG-UI, made into recordings: the events of runs, and the requests that began them.

Text, reasoning and arguments become deltas of an attempt as they come; a message and its calls are
settled when another message, a result or the end of the run follows. Here lives what a file holds
and to which conversation an event belongs: a subagent's is one of its own. Not here: what an event
says (`ag_ui_events`), messages (`ag_ui_history`).

The events are those of https://docs.ag-ui.com/concepts/events, with the older THINKING_* ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from assembler.plugins import Importer, Sample
from definitions.importers.ag_ui_events import Thread
from definitions.importers.errors import ImportFault
from definitions.importers.frames import frames, known
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, text_block
from definitions.providers.reading import array, mapping, text

__all__ = ["AG_UI", "ag_ui"]

Record = Mapping[str, Any]

_FAMILIES = {
    "RUN": ("threadId", "runId", "message"),
    "TEXT": ("messageId",),
    "TOOL": ("toolCallId",),
    "REASONING": ("messageId", "entityId"),
    "THINKING": ("type",),
    "STEP": ("stepName",),
    "STATE": ("snapshot", "delta"),
    "MESSAGES": ("messages",),
    "ACTIVITY": ("messageId",),
    "SUBAGENT": ("subagentRunId",),
    "RAW": ("event",),
    "CUSTOM": ("name",),
}
"""The first word of an event's type, and the fields of which it has one."""


def ag_ui(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn events or a request into a recording, the header first. Holds the file.

    A document may hold one run, or runs by name; they follow each other in one conversation.
    """
    found, other = known(frames(lines, name, "delta"), _is_known)
    if other:
        raise ImportFault(name, other, "type", "an event of AG-UI, or a request to run an agent")
    runs = _Runs(name)
    yield runs.main.transcript.header(name, "Imported from AG-UI.")
    for number, (_, told) in enumerate(found, 1):
        value = mapping(told)
        if _is_request(value):
            yield from runs.main.at(f"event-{number}").request(value)
        elif named := _named_runs(value):
            for run, events in named.items():
                for at, event in enumerate(events, 1):
                    yield from runs.write(f"{run}-{at}", event)
        else:
            yield from runs.write(f"event-{number}", value or {"value": told})
    yield from runs.finish()


class _Runs:
    """The conversations of a file: the main one, and one for each subagent."""

    def __init__(self, name: str) -> None:
        self.main = Thread()
        self._file = name
        self._agents: dict[str, Thread] = {}
        self._callers: dict[str, tuple[Thread, str]] = {}
        """Subagents that no call of the parent's stands for, with the call that does."""
        self._used: set[str] = set()

    def write(self, record: str, event: Record) -> Iterator[Operation]:
        """Write an event into the conversation that it belongs to."""
        time = milliseconds(event.get("timestamp"))
        agent = text(event.get("subagentRunId"))
        kind = text(event.get("type"))
        if kind == "SUBAGENT_STARTED" and agent:
            yield from self._started(record, time, agent, event)
        elif kind in ("SUBAGENT_FINISHED", "SUBAGENT_ERROR") and agent in self._agents:
            yield from self._ended(record, time, agent, event)
        else:
            yield from self._agents.get(agent, self.main).at(record, time).write(event)

    def _started(
        self, record: str, time: int | None, agent: str, event: Record
    ) -> Iterator[Operation]:
        outer = text(event.get("parentSubagentRunId"))
        parent = self._agents.get(outer, self.main).at(record, time)
        yield from parent.answer_over()
        call_id = text(event.get("parentToolCallId"))
        if not parent.transcript.has_call(call_id):
            call_id = agent
            yield from parent.transcript.call(call_id, text(event.get("name")), "{}")
            self._callers[agent] = (parent, call_id)
        name = parent.transcript.known(call_id)
        name = agent if name in self._used else name
        self._used.add(name)
        thread = self._agents[agent] = Thread(name).at(record, time)
        yield thread.transcript.header(self._file, "Imported from AG-UI: a subagent's run.")
        yield thread.transcript.kept("ag-ui/SUBAGENT_STARTED", event)

    def _ended(
        self, record: str, time: int | None, agent: str, event: Record
    ) -> Iterator[Operation]:
        thread = self._agents[agent].at(record, time)
        failed = text(event.get("message")) if event["type"] == "SUBAGENT_ERROR" else None
        yield from thread.ended(failed, event)
        if agent in self._callers:
            parent, call_id = self._callers.pop(agent)
            error = None if failed is None else {"name": "error", "message": failed}
            result = event.get("result")
            said = [text_block(result)] if isinstance(result, str) else []
            yield parent.at(record, time).transcript.result(call_id, said, error=error)

    def finish(self) -> Iterator[Operation]:
        """Say of each conversation that the file is over."""
        for thread in (*self._agents.values(), self.main):
            yield thread.transcript.finish()


def _is_event(value: Record) -> bool:
    kind = text(value.get("type"))
    fields = _FAMILIES.get(kind.partition("_")[0], ()) if kind.isupper() else ()
    return any(field in value for field in fields)


def _is_request(value: Record) -> bool:
    is_named = isinstance(value.get("threadId"), str) and isinstance(value.get("runId"), str)
    return is_named and "type" not in value and isinstance(value.get("messages"), list)


def _named_runs(value: Record) -> dict[str, list[Record]]:
    """Read a document of runs by their names; empty when it is something else."""
    if not all(isinstance(run, list) for run in value.values()):
        return {}
    found = {
        key: [mapping(each) or {"value": each} for each in array(run)] for key, run in value.items()
    }
    return found if any(map(_is_event, chain.from_iterable(found.values()))) else {}


def _is_known(value: Record) -> bool:
    return _is_event(value) or _is_request(value) or bool(_named_runs(value))


def _recognises(sample: Sample) -> bool:
    return bool(sample.records) and _is_known(sample.records[0])


AG_UI = Importer("events and requests of AG-UI", ag_ui, _recognises)
