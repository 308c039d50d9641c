"""Session logs of DeepSeek Harness, made into recordings.

Here lives what the two dialects of that log say in our words: durable records become events in
file order, chunks (packed or single) become deltas of attempts behind the last event, and the end
of a stream becomes a `settle`. Not here: opening files, and what an operation does.

What is not ours to name is kept:

- a type without a counterpart keeps its name and its data unchanged; those of them that are not
  worth a row in a chat are `QUIET_TYPES`;
- a field without a counterpart keeps its name beside ours, a block its whole content as `provider`;
- a chunk type without a counterpart becomes a delta of its own type, as does `finish`, whose
  failure may be told nowhere else.

Nothing is added that the log does not say: a stream without a message stays a stream.

Numbers: the log counts its records, chunks included, from 0; ours count events alone, from 1. What
refers to a record by number is translated and then has a name of ours (`message_seqs`). Times: a
record may have one; else the clock stands still between what the log does say, which is when the
session was made and how far apart packed chunks came. A log that says neither has no times.

A subagent's log is a conversation of its own.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from attrs import Factory, define, frozen

from definitions.importers.errors import ImportFault

__all__ = ["QUIET_TYPES", "dsh_session"]

QUIET_TYPES = frozenset(
    {
        # what was sent to the model, and with which settings
        "request/header",
        "request/context",
        "session/title-llm-request",
        # the log about itself
        "session",
        "session/end-seed",
        "subagent/descriptor",
        # settings: the command that changed them has a row
        "approval/policy",
        "permission/preset",
        "sandbox/mode",
        # what runs around a call or a retry that has a row
        "hook/invoked",
        "hook/result",
        "llm/retry-started",
        "tool-workflow/run-start",
        "tool-workflow/agent-start",
        "tool-workflow/agent-end",
        "tool-workflow/run-end",
    }
)
"""The types that keep their own name and are not worth a row in a chat."""

Operation: TypeAlias = dict[str, Any]
_Data: TypeAlias = dict[str, Any]
_Place: TypeAlias = tuple[int, int]  # turn, step

_TEXT = "a text that is not empty"
_OBJECT = "a JSON object"
_CUT = "a JSON object; the text ends inside of one"

_STOPS = {
    "stop": "end_turn",
    "tool-calls": "tool_use",
    "length": "length",
    "content-filter": "content_filter",
    "refusal": "refusal",
    "pause": "pause",
    "aborted": "cancelled",
    "cancelled": "cancelled",
    "error": "error",
}
_OUTCOMES = {"error": "failed", "aborted": "interrupted", "cancelled": "interrupted"}
_REASONS = {
    "completed": "completed",
    "aborted": "cancelled",
    "cancelled": "cancelled",
    "error": "error",
    "limit": "limit",
    "max-steps": "limit",
    "interrupted": "interrupted",
}
_USAGE = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadTokens": "cache_read_tokens",
    "cacheWriteTokens": "cache_write_tokens",
    "reasoningTokens": "reasoning_tokens",
}
# A repair wrote the result, because the process that ran the tool was gone.
_REPAIRED = ("TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED")
_FAILED_COMMAND = ("error", "failure")
# What stands beside the data of a record and is read from there.
_ENVELOPE = ("type", "data", "seq", "time", "seq0", "time0", "surfaceOp", "sourceEventSeqs")


def dsh_session(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one session log into the operations of a recording, the header first. O(size).

    `name` is what an error and the title call the log. What cannot be read raises `ImportFault`;
    the operations before it were yielded, so write nothing before the last one is there.
    """
    records = _records(lines, name)
    first = next(records, None)
    if first is None or first.type != "session":
        got = ... if first is None else first.type
        line = 1 if first is None else first.envelope.line
        raise ImportFault(name, line, "type", '"session", which begins a session log', got)
    yield {
        "recording": 1,
        "title": name.rsplit("/", 1)[-1],
        "about": "Imported from a session log of DeepSeek Harness.",
    }
    log = _Log()
    yield from log.take(first)
    for record in records:
        yield from log.take(record)
    yield from log.settle_finished()


# Reading: lines to records whose fields say where they are from.


@frozen
class _Fields:
    """An object of the log, and where it stands."""

    values: _Data
    path: str
    file: str
    line: int

    def fault(self, key: str, expected: str) -> ImportFault:
        got = self.values.get(key, ...)
        return ImportFault(self.file, self.line, f"{self.path}{key}", expected, got)

    def integer(self, key: str) -> int:
        value = self.values.get(key)
        if type(value) is not int:
            raise self.fault(key, "an integer")
        return value

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str) or not value:
            raise self.fault(key, _TEXT)
        return value

    def fragment(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self.fault(key, "a text")
        return value

    def place(self) -> _Place:
        return self.integer("turn"), self.integer("step")

    def inner(self, key: str) -> _Fields:
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise self.fault(key, _OBJECT)
        return _Fields(value, f"{self.path}{key}.", self.file, self.line)

    def each(self, key: str) -> list[_Fields]:
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.fault(key, "a list of JSON objects")
        return [
            _Fields(item, f"{self.path}{key}.{at}.", self.file, self.line)
            for at, item in enumerate(value)
        ]

    def texts(self, key: str) -> list[str]:
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.fault(key, "a list of texts")
        return value

    def integers(self, key: str) -> list[int]:
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            raise self.fault(key, "a list of integers")
        return value

    def rest(self, *taken: str) -> _Data:
        """Whatever has no counterpart; it keeps its name."""
        return {key: value for key, value in self.values.items() if key not in taken}


@frozen
class _Record:
    """One line of the log."""

    type: str
    data: _Fields
    envelope: _Fields
    halves: bool  # may hold half a surrogate pair


def _records(lines: Iterable[bytes | str], name: str) -> Iterator[_Record]:
    for number, line in enumerate(lines, 1):
        text = _decoded(line, name, number)
        if text:
            yield _record(_parsed(text, name, number), text)


def _decoded(line: bytes | str, name: str, number: int) -> str:
    if isinstance(line, bytes):
        try:
            line = line.decode()
        except UnicodeDecodeError:
            raise ImportFault(name, number, "line", "UTF-8") from None
    return line.removeprefix("\ufeff").strip()


def _parsed(text: str, name: str, number: int) -> _Fields:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as fault:
        cut = fault.pos >= len(text) or fault.msg.startswith("Unterminated")
        expected = _CUT if cut else f"{_OBJECT} ({fault.msg} at column {fault.pos + 1})"
        raise ImportFault(name, number, "line", expected) from None
    except (ValueError, RecursionError):
        raise ImportFault(name, number, "line", _OBJECT) from None
    if not isinstance(value, dict):
        raise ImportFault(name, number, "line", _OBJECT, value)
    return _Fields(value, "", name, number)


def _no_constant(word: str) -> None:
    """Refuse NaN and Infinity: Python reads them, JSON does not know them."""
    raise ValueError(word)


def _record(envelope: _Fields, text: str) -> _Record:
    kind = envelope.text("type")
    if kind == "session":  # the only one whose fields stand beside its type
        data = _Fields(envelope.rest("type"), "", envelope.file, envelope.line)
    elif "data" in envelope.values:
        data = envelope.inner("data")
    else:
        data = _Fields({}, "data.", envelope.file, envelope.line)
    return _Record(kind, data, envelope, _SURROGATE_ESCAPE.search(text) is not None)


# Half characters: JSON can say half a surrogate pair, UTF-8 cannot.

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_OPEN_HALF = re.compile("[\ud800-\udbff]$")


def _joined(text: str) -> str:
    """Join the halves that belong together; one alone is U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return _joined(value) if _SURROGATE.search(value) else value
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_mended(item) for item in value]
    return value


# Values: content, arguments, usage.


def _content(holder: _Fields, key: str = "content") -> list[_Data]:
    if isinstance(holder.values.get(key), str):
        return [{"type": "text", "text": holder.values[key]}]
    return [_block(block) for block in holder.each(key)]


def _block(block: _Fields) -> _Data:
    kind = block.values.get("type")
    make = _BLOCKS.get(kind) if isinstance(kind, str) else None
    made = None if make is None else make(block)
    return made or {"type": "provider", "provider": "dsh", "raw": block.values}


def _text_block(block: _Fields) -> _Data:
    return {**block.values, "text": block.fragment("text")}


def _call_block(block: _Fields) -> _Data:
    return {
        "type": "tool-call",
        "call_id": block.text("id"),
        "name": block.text("name"),
        "arguments": _arguments(block.values.get("arguments")),
        **block.rest("type", "id", "name", "arguments"),
    }


def _file_block(block: _Fields) -> _Data | None:
    """Make a file, or None: what only names an attachment has nothing to load it from."""
    media_type = block.values.get("mediaType")
    source: _Data = {key: block.values[key] for key in ("url", "data") if key in block.values}
    if not isinstance(media_type, str) or len(source) != 1:
        return None
    return {"type": "file", "media_type": media_type, **source, **block.rest("type", "mediaType")}


_BLOCKS: Mapping[str, Callable[[_Fields], _Data | None]] = {
    "text": _text_block,
    "reasoning": _text_block,
    "tool-call": _call_block,
    "image": _file_block,
    "file": _file_block,
}


def _arguments(value: Any) -> str:
    """Arguments as JSON text: calls of a model have it, calls of a program have the value."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _input(arguments: str) -> _Data:
    try:
        value = json.loads(arguments, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _usage(holder: _Fields) -> _Data:
    """Name the usage as we do, if there is one."""
    if holder.values.get("usage") is None:
        return {}
    raw = holder.inner("usage").values
    named = {ours: raw[theirs] for theirs, ours in _USAGE.items() if theirs in raw}
    return {"usage": {**named, "raw": raw}}


def _error(error: Mapping[str, Any]) -> _Data:
    code = error.get("code")
    return {"name": code if isinstance(code, str) else "Error", "message": "", **error}


# The log as it has been read so far.


@define
class _Attempt:
    """One stream of a step."""

    name: str
    number: int
    place: _Place
    finish: str | None = None
    settled: bool = False
    usage: _Data = Factory(dict)
    names: _Data = Factory(dict)  # call id -> the name told last
    halves: dict[int, str] = Factory(dict)  # block -> the half character at its end

    def outcome(self) -> str:
        """How it ended, as far as its stream says; one that just stops was interrupted."""
        if self.finish is None:
            return "interrupted"
        return _OUTCOMES.get(self.finish, "completed")

    def whole(self, block: int, text: str) -> str:
        """Keep the half character at the end of a fragment back for the next one."""
        text = self.halves.pop(block, "") + text
        half = _OPEN_HALF.search(text)
        if half is not None:
            self.halves[block] = half.group()
            text = text[: half.start()]
        return _joined(text) if _SURROGATE.search(text) else text


@frozen
class _Call:
    place: _Place | None
    name: str
    arguments: str


@define
class _Log:
    """What later records refer to."""

    seq: int = 0
    now: int | None = None
    number: int = -1  # of the record at hand, as the log counts
    beside: _Data = Factory(dict)  # what that record has beside its data
    numbers: dict[int, int] = Factory(dict)  # number in the log -> seq
    attempts: dict[_Place, _Attempt] = Factory(dict)
    tries: dict[_Place, int] = Factory(dict)
    calls: dict[str, _Call] = Factory(dict)
    asked: dict[str, str] = Factory(dict)  # request id -> call id
    commands: dict[str, str] = Factory(dict)
    queues: dict[str, list[str]] = Factory(lambda: defaultdict(list))
    arriving: dict[str, list[str]] = Factory(lambda: defaultdict(list))
    used: dict[str, int] = Factory(dict)  # message id -> how often

    def take(self, record: _Record) -> Iterator[Operation]:
        """Say one record in operations."""
        self._count(record)
        handle = _HANDLERS.get(record.type, _kept)
        for operation in handle(self, record):
            yield _mended(operation) if record.halves else operation

    def _count(self, record: _Record) -> None:
        if record.type == "session":  # has no number, and its fields beside its type
            made = record.data.values.get("createdAt")
        else:
            values = record.envelope.values
            self.beside = record.envelope.rest(*_ENVELOPE)
            told = values.get("seq", values.get("seq0"))
            self.number = told if type(told) is int else self.number + 1
            made = values.get("time", values.get("time0"))
        if type(made) is int and made > 0:  # 0: the time was taken out
            self.now = made

    def event(self, kind: str, told: _Data, rest: _Data | None = None) -> Operation:
        """Append an event: what we call by our names, and the rest of the source beside it."""
        self.seq += 1
        self.numbers[self.number] = self.seq
        data = _beside(told, {**self.beside, **(rest or {})})
        event = {"seq": self.seq, "type": kind, **self._time(), "data": data}
        return {"op": "append", "event": event}

    def delta(self, attempt: _Attempt, kind: str, told: _Data, rest: _Data) -> Operation:
        turn, step = attempt.place
        where = {"attempt": attempt.name, "number": attempt.number, "turn": turn, "step": step}
        data = _beside(told, rest)
        return {"op": "delta", **where, **self._time(), "type": kind, "data": data}

    def _time(self) -> dict[str, int]:
        return {} if self.now is None else {"time": self.now}

    def settle(self, attempt: _Attempt, outcome: str) -> Iterator[Operation]:
        if not attempt.settled:
            attempt.settled = True
            yield {"op": "settle", "attempt": attempt.name, "outcome": outcome}

    def settle_finished(self) -> Iterator[Operation]:
        """Settle, at the end of the log, what ended; the rest may still be running."""
        for attempt in self.attempts.values():
            if attempt.finish is not None:
                yield from self.settle(attempt, attempt.outcome())

    def close(self, before: _Place) -> Iterator[Operation]:
        """Settle and forget what belongs to the steps before that one."""
        for place in [place for place in self.attempts if place < before]:
            attempt = self.attempts.pop(place)
            yield from self.settle(attempt, attempt.outcome())

    def begin(self, place: _Place) -> _Attempt:
        """Count the next attempt of a step."""
        number = self.tries[place] = self.tries.get(place, 0) + 1
        turn, step = place
        return _Attempt(f"{turn}.{step}.{number}", number, place)

    def streaming(self, place: _Place) -> Iterator[Operation]:
        """Have an attempt that still takes chunks: one that finished is followed by another."""
        attempt = self.attempts.get(place)
        if attempt is None or attempt.finish is not None or attempt.settled:
            if attempt is not None:
                yield from self.settle(attempt, attempt.outcome())
            self.attempts[place] = self.begin(place)

    def message_id(self, told: Any) -> dict[str, str]:
        """Name a message uniquely: an older log has no ids, a neutralised one repeats them."""
        if not isinstance(told, str) or not told:
            return {"message_id": self._unique(f"message-{self.seq + 1}")}
        mine = self._unique(told)
        return {"message_id": mine} if mine == told else _renamed(mine, told)

    def _unique(self, told: str) -> str:
        count = self.used[told] = self.used.get(told, 0) + 1
        return told if count == 1 else f"{told}#{count}"

    def arrives(self, told: str) -> str:
        """Name a message that goes to a queue: the same again when it only changes its place."""
        waiting = {name for queue in self.queues.values() for name in queue}
        for mine in self.arriving[told]:
            if mine not in waiting:
                return mine
        self.arriving[told].append(self._unique(told))
        return self.arriving[told][-1]

    def arrived(self, told: Any) -> dict[str, str]:
        """Name the message of a user: what it was called in its queue, if it was in one."""
        if isinstance(told, str) and self.arriving.get(told):
            mine = self.arriving[told].pop(0)
            return {"message_id": mine} if mine == told else _renamed(mine, told)
        return self.message_id(told)

    def seqs(self, numbers: list[int]) -> list[int] | None:
        """Translate numbers of the log, or None when one of them is no event here."""
        found = [self.numbers[number] for number in numbers if number in self.numbers]
        return found if len(found) == len(numbers) else None


def _beside(told: _Data, rest: _Data) -> _Data:
    """Put the rest behind what was told; of one name the told one wins."""
    return {**told, **rest, **told}


def _renamed(mine: str, told: str) -> dict[str, str]:
    return {"message_id": mine, "source_message_id": told}


# Records: one function for each type.


def _kept(log: _Log, record: _Record) -> Iterator[Operation]:
    yield log.event(record.type, record.data.values)


def _turn_start(log: _Log, record: _Record) -> Iterator[Operation]:
    yield from log.close((record.data.integer("turn"), 0))
    yield from _kept(log, record)


def _step_start(log: _Log, record: _Record) -> Iterator[Operation]:
    yield from log.close(record.data.place())
    yield from _kept(log, record)


def _step_end(log: _Log, record: _Record) -> Iterator[Operation]:
    turn, step = record.data.place()
    yield from log.close((turn, step + 1))
    yield from _kept(log, record)


def _turn_end(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    turn = data.integer("turn")
    yield from log.close((turn + 1, 0))
    yield log.event("turn/end", {"turn": turn, **_reason(data)}, data.rest("reason"))


def _reason(data: _Fields) -> _Data:
    reason = data.inner("reason")
    kind = reason.text("kind")
    error = reason.inner("error").values if reason.values.get("error") is not None else None
    word = _REASONS.get(kind, "interrupted" if error is None else "error")
    told = {"reason": word}
    more = {} if error is None else {"error": _error(error)}
    if word != kind or reason.rest("kind", "error"):
        more["reason_detail"] = reason.values
    return {**told, **more}


def _title(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    about = _translated(log, data, "messageSeqs", "message_seqs")
    told = {"title": data.fragment("title"), **about}
    yield log.event("conversation/title", told, data.rest("messageSeqs"))


def _translated(log: _Log, holder: _Fields, key: str, ours: str) -> _Data:
    """Say references to records in our numbers; what cannot be found stays as it was told."""
    if key not in holder.values:
        return {}
    seqs = log.seqs(holder.integers(key))
    return {key: holder.values[key]} if seqs is None else {ours: seqs}


def _user_message(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    told = {**log.arrived(data.values.get("id")), "content": _content(data)}
    rest = data.rest("id", *_implied(data, "user")) | _surface(log, record.envelope)
    yield log.event("user/message", told, rest)


def _implied(data: _Fields, role: str) -> tuple[str, ...]:
    """Leave out a role that the type of the event says already."""
    return ("role",) if data.values.get("role") == role else ()


def _surface(log: _Log, envelope: _Fields) -> _Data:
    """Say what a message takes the place of; that it is appended goes without saying."""
    if not isinstance(envelope.values.get("surfaceOp"), dict):
        return {}
    surface = envelope.inner("surfaceOp")
    seqs = log.seqs([surface.integer("start"), surface.integer("end")])
    if seqs is None:
        return {"surfaceOp": surface.values}
    told = {**surface.values, "start": seqs[0], "end": seqs[1]}
    return {"surface": told, **_translated(log, envelope, "sourceEventSeqs", "source_seqs")}


def _spliced(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    name = data.text("target")
    queue = log.queues[name]
    start = data.integer("start")
    count = data.integer("removedCount") if "removedCount" in data.values else 0
    claimed = queue[start : start + count]
    del queue[start : start + count]
    messages = [_waiting(log, message) for message in data.each("inserted")]
    added = [message["message_id"] for message in messages]
    queue[start:start] = added
    rest = data.rest("target", "removedCount", "inserted")
    if len(claimed) != count:  # the log begins behind what filled the queue
        rest["removedCount"] = count
    if messages:  # kept here as well: one that is never claimed has no event of its own
        rest["messages"] = messages
    yield log.event("inbox/spliced", {"queue": name, "added": added, "claimed": claimed}, rest)


def _waiting(log: _Log, message: _Fields) -> _Data:
    told = message.values.get("id")
    known = isinstance(told, str) and told
    mine = log.arrives(str(told)) if known else log.message_id(None)["message_id"]
    name = {"message_id": mine} if mine == told or not known else _renamed(mine, str(told))
    rest = message.rest("id", *_implied(message, "user"))
    return _beside({**name, "content": _content(message)}, rest)


def _assistant_message(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    place = data.place()
    # The older dialect has the message's fields in the data itself.
    message = data.inner("message") if "message" in data.values else data
    content = _content(message)
    attempt = log.attempts.get(place)
    interrupted = data.values.get("interrupted") is True
    told = {
        "turn": place[0],
        "step": place[1],
        **log.message_id(message.values.get("id")),
        "content": content,
        **_stop(attempt, content, interrupted=interrupted),
        **_usage(data),
        **({"interrupted": True} if interrupted else {}),
    }
    rest = data.rest("message", "interrupted", "id", *_implied(data, "assistant"))
    if message is not data:
        rest |= message.rest("id", *_implied(message, "assistant"))
    yield log.event("assistant/message", told, rest)
    if attempt is not None:
        # A message that is there and whole says that its stream was, whatever the stream says.
        whole = "completed" if attempt.finish is None else attempt.outcome()
        yield from log.settle(attempt, "interrupted" if interrupted else whole)


def _stop(attempt: _Attempt | None, content: list[_Data], *, interrupted: bool) -> dict[str, str]:
    if attempt is not None and attempt.finish is not None:
        word = _STOPS.get(attempt.finish, "other")
        return {"stop_reason": word, "stop_detail": attempt.finish}
    if interrupted:
        return {"stop_reason": "cancelled"}
    calls = any(block["type"] == "tool-call" for block in content)
    return {"stop_reason": "tool_use" if calls else "end_turn"}


def _retry(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    place = data.place()
    # A request that failed before its first chunk was an attempt as well.
    known = place in log.attempts
    attempt = log.attempts.pop(place) if known else log.begin(place)
    told = {
        "turn": place[0],
        "step": place[1],
        "retry_id": data.text("retryId"),
        "attempt": attempt.name,
        "number": attempt.number,
        "reason": _failure(data.values.get("failure")),
        **({"delay_ms": data.integer("delayMs")} if "delayMs" in data.values else {}),
        **attempt.usage,
    }
    if known:
        yield from log.settle(attempt, "abandoned")
    yield log.event("llm/retry", told, data.rest("retryId", "delayMs"))


def _failure(failure: Any) -> str:
    """Say in one text why a request failed; the whole of it stands beside that."""
    told = [failure.get("message"), failure.get("code")] if isinstance(failure, dict) else []
    return next((text for text in told if isinstance(text, str) and text), "failed")


def _tool_call(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    call = _Call(data.place(), data.text("name"), _arguments(data.values.get("arguments")))
    yield _called(log, data.text("callId"), call, data.rest("callId"))


def _called(log: _Log, call_id: str, call: _Call, rest: _Data) -> Operation:
    log.calls[call_id] = call
    where = {} if call.place is None else {"turn": call.place[0], "step": call.place[1]}
    told = {"call_id": call_id, "name": call.name, "arguments": call.arguments}
    return log.event("tool/call", {**where, **told}, rest)


def _tool_result(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    if "message" not in data.values:  # the older dialect
        yield _returned(log, data, data.text("callId"), data.rest("callId"))
        return
    message = data.inner("message")
    # The source of the message names the call once more.
    about = message.rest("id", "content", "source", *_implied(message, "user"))
    rest = data.rest("message") | about | log.message_id(message.values.get("id"))
    key = "content"
    results = message.each(key)
    if not results:
        raise message.fault(key, "at least one tool-result block")
    for result in results:
        beside = result.rest("type", "toolCallId")
        yield _returned(log, result, result.text("toolCallId"), {**beside, **rest})


def _returned(log: _Log, result: _Fields, call_id: str, rest: _Data) -> Operation:
    error = rest.get("error")
    repaired = isinstance(error, dict) and error.get("code") in _REPAIRED
    failed = rest.pop("isError", None) is True
    told = {
        "call_id": call_id,
        "content": _content(result),
        **({"is_error": True} if failed else {}),
        **({"synthetic": True} if repaired else {}),
    }
    return log.event("tool/result", told, rest)


def _dispatch_start(log: _Log, record: _Record) -> Iterator[Operation]:
    yield _dispatched(log, record.data)


def _dispatched(log: _Log, data: _Fields) -> Operation:
    """Append a call that a program made: it belongs to the step of the outermost one."""
    parent = data.text("parentCallId")
    root = data.text("rootCallId") if "rootCallId" in data.values else parent
    outer = log.calls.get(root) or log.calls.get(parent)
    place = None if outer is None else outer.place
    call = _Call(place, data.text("name"), _arguments(data.values.get("arguments")))
    rest = data.rest("subCallId", "parentCallId", "isError", "content")
    return _called(log, data.text("subCallId"), call, {"parent_call_id": parent, **rest})


def _dispatch(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    call_id = data.text("subCallId")
    parent = data.text("parentCallId")
    if call_id not in log.calls and "name" in data.values and "arguments" in data.values:
        # Without a start the record itself is the evidence of the call, and says all of it.
        yield _dispatched(log, data)
    rest = data.rest("subCallId", "parentCallId", "arguments")
    call = log.calls.get(call_id)
    arguments = _arguments(data.values.get("arguments"))
    if call is None or call.arguments != arguments:
        rest["arguments"] = arguments
    yield _returned(log, data, call_id, {"parent_call_id": parent, **rest})


def _asked(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    request_id, call_id = data.text("id"), data.values.get("callId")
    if not isinstance(call_id, str):  # asks about something that is no call
        yield from _kept(log, record)
        return
    log.asked[request_id] = call_id
    call = log.calls.get(call_id)
    asked = {"call_id": call_id, "request_id": request_id}
    what = {"input": {} if call is None else _input(call.arguments)}
    yield log.event("permission/request", {**asked, **what}, data.rest("id", "callId"))


def _decided(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    request_id = data.text("id")
    call_id = log.asked.get(request_id, data.values.get("callId"))
    if not isinstance(call_id, str):
        yield from _kept(log, record)
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


def _compaction(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    told = {"compaction_id": data.text("compactionId"), **_usage(data)}
    yield log.event(record.type, told, data.rest("compactionId"))


def _summary(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    rest = data.rest("compactionId", "summary", "shadowedRange", "shadowedSeqs")
    if rest.get("rawOutput") == data.values.get("summary"):
        rest.pop("rawOutput", None)  # the summary is what the model wrote, unchanged
    told = {"compaction_id": data.text("compactionId"), **_summary_text(data), **_usage(data)}
    shadowed = _shadowed(log, data) | _translated(log, data, "shadowedSeqs", "shadowed_seqs")
    yield log.event("compaction/summary", {**told, **shadowed}, rest)


def _summary_text(data: _Fields) -> _Data:
    """Join the summary to one text; blocks that are no text are kept beside it."""
    blocks = _content(data, "summary")
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    more = {"summary": data.values["summary"]} if len(texts) < len(blocks) else {}
    return {"text": "".join(texts), **more}


def _shadowed(log: _Log, data: _Fields) -> _Data:
    if "shadowedRange" not in data.values:
        return {}
    end = log.seqs([data.inner("shadowedRange").integer("end")])
    if end is None:
        return {"shadowedRange": data.values["shadowedRange"]}
    return {"before_seq": end[0] + 1}


def _command_run(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    command_id, name = data.text("commandId"), data.text("name")
    log.commands[command_id] = name
    told = {"command_id": command_id, "name": name}
    if "args" in data.values:
        # The blank between the name and its arguments belongs to neither.
        told["arguments"] = data.fragment("args").removeprefix(" ")
    yield log.event("command/run", told, data.rest("commandId", "args"))


def _command_done(log: _Log, record: _Record) -> Iterator[Operation]:
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


# Chunks: one function for each type.


def _chunk(log: _Log, record: _Record) -> Iterator[Operation]:
    data = record.data
    chunk = data.inner("chunk")
    place = data.place()
    yield from log.streaming(place)
    handle = _CHUNKS.get(chunk.text("type"), _other_chunk)
    yield from handle(log, log.attempts[place], chunk)


def _other_chunk(log: _Log, attempt: _Attempt, chunk: _Fields) -> Iterator[Operation]:
    yield log.delta(attempt, chunk.text("type"), {}, chunk.rest("type"))


def _block_start(log: _Log, attempt: _Attempt, chunk: _Fields) -> Iterator[Operation]:
    told = {"block": chunk.integer("index"), "block_type": chunk.text("blockType")}
    yield log.delta(attempt, "block-start", told, chunk.rest("type", "index", "blockType"))


def _fragment(log: _Log, attempt: _Attempt, chunk: _Fields) -> Iterator[Operation]:
    block = chunk.integer("index")
    kind = chunk.text("type").removesuffix("-delta")
    text = attempt.whole(block, chunk.fragment("text"))
    yield log.delta(attempt, kind, {"block": block, "text": text}, chunk.rest("type", "index"))


def _call_fragment(log: _Log, attempt: _Attempt, chunk: _Fields) -> Iterator[Operation]:
    block = chunk.integer("index")
    text = attempt.whole(block, chunk.fragment("argumentsDelta"))
    rest = chunk.rest("type", "index", "id", "name", "argumentsDelta")
    call_id = chunk.text("id")
    told = _announced(attempt, block, call_id, chunk.values.get("name"))
    yield log.delta(attempt, "tool-call", {**told, "arguments": text}, rest)


def _announced(attempt: _Attempt, block: int, call_id: str, name: Any) -> _Data:
    """Name the call of a fragment; what the tool is called is told once, and when it changes."""
    named = {}
    if isinstance(name, str) and name and attempt.names.get(call_id) != name:
        named["name"] = name
    attempt.names[call_id] = named.get("name", attempt.names.get(call_id))
    return {"block": block, "call_id": call_id, **named}


def _block_end(log: _Log, attempt: _Attempt, chunk: _Fields) -> Iterator[Operation]:
    block = chunk.integer("index")
    value = _block(chunk.inner("block"))
    attempt.halves.pop(block, None)
    if value["type"] == "tool-call" and value["call_id"] not in attempt.names:
        # The end of a block starts nothing, and this call was not told before.
        told = _announced(attempt, block, value["call_id"], value["name"])
        yield log.delta(attempt, "tool-call", {**told, "arguments": value["arguments"]}, {})
    told = {"block": block, "value": value}
    yield log.delta(attempt, "block-end", told, chunk.rest("type", "index"))


def _usage_chunk(log: _Log, attempt: _Attempt, chunk: _Fields) -> Iterator[Operation]:
    attempt.usage = _usage(chunk)
    yield log.delta(attempt, "usage", attempt.usage, chunk.rest("type"))


def _finish(log: _Log, attempt: _Attempt, chunk: _Fields) -> Iterator[Operation]:
    attempt.finish = chunk.inner("reason").text("kind")
    yield log.delta(attempt, "finish", {}, chunk.rest("type"))
    # The answer of a stream that came to its end takes the place of its deltas: they stay until
    # it is there. A failed one has none.
    if attempt.outcome() == "failed":
        yield from log.settle(attempt, "failed")


def _packed(log: _Log, record: _Record) -> Iterator[Operation]:
    """Unpack one record into the chunks that it stands for; `dt` is what lies between them."""
    data = record.data
    key, kind, fragment = _PACKED[record.type]
    place = data.place()
    yield from log.streaming(place)
    texts = data.texts(key)
    if not texts:
        raise data.fault(key, "at least one text")
    times = _times(log.now, data.integers("dt"), len(texts))
    handle = _CHUNKS[kind]
    same = {"type": kind, **data.rest("turn", "step", "dt", key)}
    for text, log.now in zip(texts, times, strict=True):
        chunk = _Fields({**same, fragment: text}, data.path, data.file, data.line)
        yield from handle(log, log.attempts[place], chunk)
    log.number += len(texts) - 1


def _times(now: int | None, between: list[int], count: int) -> list[int | None]:
    if now is None:
        return [None] * count
    gaps = [*between, *[0] * count][: count - 1]
    times: list[int | None] = [now]
    for gap in gaps:
        now += gap
        times.append(now)
    return times


_CHUNKS: Mapping[str, Callable[[_Log, _Attempt, _Fields], Iterator[Operation]]] = {
    "block-start": _block_start,
    "text-delta": _fragment,
    "reasoning-delta": _fragment,
    "tool-call-delta": _call_fragment,
    "block-end": _block_end,
    "usage": _usage_chunk,
    "finish": _finish,
}

# type -> the field of its texts, the chunk that each of them is, and where that chunk has it
_PACKED: Mapping[str, tuple[str, str, str]] = {
    "text-chunks": ("texts", "text-delta", "text"),
    "reasoning-chunks": ("texts", "reasoning-delta", "text"),
    "tool-call-chunks": ("args", "tool-call-delta", "argumentsDelta"),
}

_HANDLERS: Mapping[str, Callable[[_Log, _Record], Iterator[Operation]]] = {
    "turn/start": _turn_start,
    "step/start": _step_start,
    "step/end": _step_end,
    "turn/end": _turn_end,
    "session/title": _title,
    "user/message": _user_message,
    "agent/inbox/spliced": _spliced,
    "assistant/chunk": _chunk,
    "text-chunks": _packed,
    "reasoning-chunks": _packed,
    "tool-call-chunks": _packed,
    "assistant/message": _assistant_message,
    "llm/retry": _retry,
    "tool/call": _tool_call,
    "tool/result": _tool_result,
    "tool/code-dispatch-start": _dispatch_start,
    "tool/code-dispatch": _dispatch,
    "approval/asked": _asked,
    "approval/decided": _decided,
    "compaction/start": _compaction,
    "compaction/summary": _summary,
    "compaction/end": _compaction,
    "command/run": _command_run,
    "command/done": _command_done,
}
