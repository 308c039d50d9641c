"""Records of a session log that speak of the conversation as a whole.

Here live the brackets of turns and steps, titles, compactions and commands: one function for each
type. Not here: messages (`dsh_messages`), calls (`dsh_calls`), chunks (`dsh_chunks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from definitions.importers.dsh_log import Log, Operation, Record, kept
from definitions.importers.dsh_values import content_of, place_of, reason_of, usage_of
from definitions.importers.reading import Data, Fields

__all__ = ["RECORDS"]

_FAILED_COMMAND = ("error", "failure")


def _turn_start(log: Log, record: Record) -> Iterator[Operation]:
    yield from log.close((record.data.integer("turn"), 0))
    yield from kept(log, record)


def _step_start(log: Log, record: Record) -> Iterator[Operation]:
    yield from log.close(place_of(record.data))
    yield from kept(log, record)


def _step_end(log: Log, record: Record) -> Iterator[Operation]:
    turn, step = place_of(record.data)
    yield from log.close((turn, step + 1))
    yield from kept(log, record)


def _turn_end(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    turn = data.integer("turn")
    yield from log.close((turn + 1, 0))
    yield log.event("turn/end", {"turn": turn, **reason_of(data)}, data.rest("reason"))


def _title(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    about = log.translated(data, "messageSeqs", "message_seqs")
    told = {"title": data.fragment("title"), **about}
    yield log.event("conversation/title", told, data.rest("messageSeqs"))


def _compaction(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    told = {"compaction_id": data.text("compactionId"), **usage_of(data)}
    yield log.event(record.type, told, data.rest("compactionId"))


def _summary(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    rest = data.rest("compactionId", "summary", "shadowedRange", "shadowedSeqs")
    if rest.get("rawOutput") == data.values.get("summary"):
        rest.pop("rawOutput", None)  # the summary is what the model wrote, unchanged
    told = {"compaction_id": data.text("compactionId"), **_summary_text(data), **usage_of(data)}
    shadowed = _shadowed(log, data) | log.translated(data, "shadowedSeqs", "shadowed_seqs")
    yield log.event("compaction/summary", {**told, **shadowed}, rest)


def _summary_text(data: Fields) -> Data:
    """Join the summary to one text; blocks that are no text are kept beside it."""
    blocks = content_of(data, "summary")
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    more = {"summary": data.values["summary"]} if len(texts) < len(blocks) else {}
    return {"text": "".join(texts), **more}


def _shadowed(log: Log, data: Fields) -> Data:
    if "shadowedRange" not in data.values:
        return {}
    end = log.seqs([data.inner("shadowedRange").integer("end")])
    if end is None:
        return {"shadowedRange": data.values["shadowedRange"]}
    return {"before_seq": end[0] + 1}


def _command_run(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    command_id, name = data.text("commandId"), data.text("name")
    log.commands[command_id] = name
    told = {"command_id": command_id, "name": name}
    if "args" in data.values:
        # The blank between the name and its arguments belongs to neither.
        told["arguments"] = data.fragment("args").removeprefix(" ")
    yield log.event("command/run", told, data.rest("commandId", "args"))


def _command_done(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    command_id = data.text("commandId")
    name = log.commands.get(command_id)
    told = {
        "command_id": command_id,
        **({} if name is None else {"name": name}),
        **({"output": data.fragment("text")} if "text" in data.values else {}),
        **({"is_error": True} if data.values.get("kind") in _FAILED_COMMAND else {}),
    }
    yield log.event("command/done", told, data.rest("commandId", "text"))


RECORDS: Mapping[str, Callable[[Log, Record], Iterator[Operation]]] = {
    "turn/start": _turn_start,
    "step/start": _step_start,
    "step/end": _step_end,
    "turn/end": _turn_end,
    "session/title": _title,
    "compaction/start": _compaction,
    "compaction/summary": _summary,
    "compaction/end": _compaction,
    "command/run": _command_run,
    "command/done": _command_done,
}
