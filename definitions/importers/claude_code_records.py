"""What the records of a Claude Code transcript say, in one conversation.

Here lives one function for each kind of record, and how the records of one message come together:
Claude Code writes a record for each block, and results of calls may stand between them. Not here:
which conversation a record belongs to (`claude_code`), how blocks are spelled
(`claude_code_blocks`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from attrs import Factory, define

from definitions.importers.claude_code_blocks import (
    Block,
    answer_block,
    command_of,
    error_of,
    output_of,
    prompt_blocks,
    result_of,
    stop_of,
    usage_of,
)
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript, arguments_text
from definitions.providers.reading import array, mapping, text

__all__ = ["Chat"]

Record = Mapping[str, Any]

_INTERRUPTED = "[Request interrupted by user"
_MESSAGES_MAX = 1_000
"""Of so many messages it is known what they said, so that a copy is no second one."""
_UUID_CHARS = 8
_BESIDE_A_MESSAGE = frozenset({"progress", "queue-operation", "file-history-snapshot"})
"""Records that stand between those of one message and say nothing of it."""


@define
class _Message:
    """The answer that its records are still telling."""

    id: str
    record: str
    time: int | None
    model: Any = None
    blocks: list[Block] = Factory(list)
    usage: Any = None
    stop: str = ""
    waiting: list[tuple[str, int | None, Record, Record]] = Factory(list)
    """Results that came meanwhile: the record's name and time, the block, and the record."""


class Chat:
    """One conversation of a transcript. `number` is the line of the record at hand."""

    def __init__(self, conversation: str | None = None) -> None:
        self.transcript = Transcript(conversation)
        self.number = 0
        self._message: _Message | None = None
        self._told: OrderedDict[str, frozenset[int]] = OrderedDict()
        """The prints of the blocks of the last messages."""
        self._copies: set[int] = set()
        """The prints of all records of users."""
        self._answered: set[str] = set()
        """The uuids that a prompt of a person follows: another one behind them is a rewind."""
        self._command: str | None = None
        self._compaction: str | None = None
        self._last_call = ""

    # -- one record --------------------------------------------------------------------------

    def take(self, record: Record) -> Iterator[Operation]:
        """Write what one record says."""
        kind, message = record.get("type"), record.get("message")
        if kind == "assistant" and isinstance(message, dict):
            yield from self._assistant(record, message)
        elif kind == "user" and isinstance(message, dict):
            yield from self._user(record, message)
        elif text(kind) in _BESIDE_A_MESSAGE:
            self._at(record)
            yield self._keep(record)
        else:
            yield from self._flush()
            self._at(record)
            yield from self._other(record)

    def odd(self, value: Any) -> Iterator[Operation]:
        """Keep what is no record at all."""
        yield from self._flush()
        self.transcript.at(f"{self.number}")
        yield self.transcript.kept("claude-code/odd", {"value": value})

    def rest(self) -> Iterator[Operation]:
        """Write what the end of the file leaves unfinished: a longer one may say more of it.

        A message that does not end with a text is surely not the whole of it.
        """
        message = self._message
        is_read = message is None or (message.blocks or [{}])[-1].get("type") == "text"
        for operation in self._flush():
            yield {**operation, "tail": "read" if is_read else "unfinished"}

    def through(self) -> Iterator[Operation]:
        """Write what is still told, as nothing more of it comes, and let go of it."""
        yield from self._flush()
        self._told.clear()

    def child(self, call_id: str, record: Record) -> Iterator[Operation]:
        """Write the calls of a subagent, and their results, as those of the call it works for."""
        yield from self._flush()
        self._at(record)
        for block in map(mapping, array(mapping(record.get("message")).get("content"))):
            if block.get("type") == "tool_use" and not self.transcript.has_call(_id(block)):
                made = arguments_text(block.get("input"))
                yield from self.transcript.call(
                    _id(block), text(block.get("name")), made, parent=call_id
                )
            elif block.get("type") == "tool_result":
                yield self._result(block, record)

    def _at(self, record: Record) -> None:
        uuid = text(record.get("uuid"))[:_UUID_CHARS]
        self.transcript.at(
            f"{self.number}-{uuid}" if uuid else f"{self.number}",
            milliseconds(record.get("timestamp")),
        )

    def _keep(self, record: Record, kind: str | None = None) -> Operation:
        named = kind or text(record.get("type")) or "record"
        return self.transcript.kept(f"claude-code/{named}", record)

    # -- answers -----------------------------------------------------------------------------

    def _assistant(self, record: Record, message: Record) -> Iterator[Operation]:
        if record.get("isApiErrorMessage") is True:
            yield from self._flush()
            self._at(record)
            yield self._keep(record, "error")
            yield from self.transcript.end_turn("error", error_of(record, message))
            return
        message_id = text(message.get("id")) or f"record-{self.number}"
        blocks = [answer_block(mapping(each), self._name) for each in _content(message)]
        if self._message is None or self._message.id != message_id:
            yield from self._flush()
            told = self._told.get(message_id)
            if told is not None:
                blocks = [block for block in blocks if _print(block) not in told]
                if not blocks:  # the same message once more, under another uuid
                    return
            self._at(record)
            name = f"{self.number}-{text(record.get('uuid'))[:_UUID_CHARS]}"
            self._message = _Message(message_id, name, milliseconds(record.get("timestamp")))
        mine = self._message
        mine.blocks += [block for block in blocks if block not in mine.blocks]
        mine.usage = message.get("usage") or mine.usage
        mine.stop = text(message.get("stop_reason")) or mine.stop
        mine.model = message.get("model") or mine.model
        if record.get("isAbortedMidStream") is True:
            mine.stop = "aborted"

    def _name(self, block: Record) -> str:
        """Name a call; one without an id gets one of its place."""
        self._last_call = _id(block) or f"call-{self.number}"
        return self._last_call

    def _flush(self) -> Iterator[Operation]:
        """Write the answer that was being told, its calls, and the results that came meanwhile."""
        message, self._message = self._message, None
        if message is None:
            return
        before = self._told.pop(message.id, None)
        self._told[message.id] = (before or frozenset()).union(map(_print, message.blocks))
        if len(self._told) > _MESSAGES_MAX:
            self._told.popitem(last=False)
        self.transcript.at(message.record, message.time)
        yield from self._ended_command()
        more = {} if message.model is None else {"model": message.model}
        if message.stop:
            more["stop_detail"] = message.stop
        yield from self.transcript.answer(
            message.blocks,
            message_id=message.id,
            stop_reason=stop_of(message.stop),
            usage=None if before is not None else usage_of(message.usage),  # each says all of it
            more=more,
        )
        for name, time, block, record in message.waiting:
            self.transcript.at(name, time)
            yield self._result(block, record)

    # -- users -------------------------------------------------------------------------------

    def _user(self, record: Record, message: Record) -> Iterator[Operation]:
        copy = _print([record.get("uuid"), message])
        if record.get("uuid") and copy in self._copies:  # a resumed session repeats its history
            return
        self._copies.add(copy)
        content = _content(message)
        results = [mapping(each) for each in content if _is_result(each)]
        others = [each for each in content if not _is_result(each)]
        if results:
            yield from self._results(results, record)
        if others:
            yield from self._flush()
            if not results:
                self._at(record)
            yield from self._said(record, others)
        elif not results:
            yield from self._flush()
            self._at(record)
            yield self._keep(record, "odd")

    def _results(self, results: Sequence[Record], record: Record) -> Iterator[Operation]:
        waits = self._message
        self._at(record)
        for at, block in enumerate(results):
            uuid = text(record.get("uuid"))[:_UUID_CHARS]
            name = f"{self.number}-{uuid}-{at}"
            if waits is not None:
                time = milliseconds(record.get("timestamp"))
                waits.waiting.append((name, time, block, record))
            else:
                yield self._result(block, record)

    def _result(self, block: Record, record: Record) -> Operation:
        return self.transcript.result(
            text(block.get("tool_use_id")) or self._last_call,
            result_of(block),
            is_error=block.get("is_error") is True,
            more=_meta(record, block),
        )

    def _said(self, record: Record, content: Sequence[Any]) -> Iterator[Operation]:
        blocks = prompt_blocks(content)
        said = "".join(block.get("text", "") for block in blocks)
        if record.get("isCompactSummary") is True:
            yield from self._compacted(said)
        elif said.startswith(_INTERRUPTED):
            yield self._keep(record, "interrupted")
            yield from self.transcript.end_turn("cancelled")
        elif (command := command_of(said)) is not None:
            yield from self._ran(*command)
        elif (output := output_of(said)) is not None:
            yield from self._printed(*output)
        elif record.get("isMeta") is True or said.startswith("Caveat: "):
            yield self._keep(record, "meta")
        else:
            source = _source(record)
            if source is None:
                yield from self._rewound(text(record.get("parentUuid")))
            yield from self.transcript.user(
                blocks, message_id=text(record.get("uuid")) or None, source=source
            )

    def _rewound(self, parent: str) -> Iterator[Operation]:
        """Mark where a person went back and said something else; what was said there stays."""
        if parent and parent in self._answered:
            yield from self._ended_command()
            yield from self.transcript.end_turn()
            told = {"command_id": f"rewind-{self.number}"}
            yield self.transcript.event("command/run", {**told, "name": "rewind", "to": parent})
            yield self.transcript.event("command/done", told)
        self._answered.add(parent)

    def _ran(self, name: str, arguments: str) -> Iterator[Operation]:
        yield from self._ended_command()
        self._command = f"command-{self.number}"
        told = {"command_id": self._command, "name": name}
        yield self.transcript.event(
            "command/run", told | ({"arguments": arguments} if arguments else {})
        )

    def _ended_command(self) -> Iterator[Operation]:
        """A command that printed nothing is done when something else comes."""
        command, self._command = self._command, None
        if command is not None:
            yield self.transcript.event("command/done", {"command_id": command})

    def _printed(self, output: str, is_error: bool) -> Iterator[Operation]:
        command, self._command = self._command, None
        if command is None:
            command = f"command-{self.number}"
            yield self.transcript.event("command/run", {"command_id": command, "name": "command"})
        told: dict[str, Any] = {"command_id": command, "output": output}
        yield self.transcript.event("command/done", told | ({"is_error": True} if is_error else {}))

    # -- all else ----------------------------------------------------------------------------

    def _other(self, record: Record) -> Iterator[Operation]:
        kind, subtype = record.get("type"), record.get("subtype")
        title = _title(record)
        if title:
            told = {"title": title, "source": text(kind)}
            yield self.transcript.event("conversation/title", {**record, **told})
        elif kind == "system" and subtype == "compact_boundary":
            yield from self._boundary(record)
        elif kind == "system":
            yield self._keep(record, text(subtype) or "system")
            if subtype == "turn_duration":
                yield from self.transcript.end_turn()
        elif kind == "attachment" and _steers(record):
            yield from self._steered(record)
        else:
            yield self._keep(record)

    def _boundary(self, record: Record) -> Iterator[Operation]:
        yield from self.transcript.end_turn()
        self._compaction = f"compaction-{self.number}"
        told = {"compaction_id": self._compaction, "metadata": record.get("compactMetadata")}
        yield self.transcript.event("compaction/start", told)

    def _compacted(self, summary: str) -> Iterator[Operation]:
        compaction = self._compaction or f"compaction-{self.number}"
        if self._compaction is None:
            yield from self.transcript.end_turn()
            yield self.transcript.event("compaction/start", {"compaction_id": compaction})
        self._compaction = None
        told = {"compaction_id": compaction, "text": summary}
        yield self.transcript.event("compaction/summary", told)
        yield self.transcript.event("compaction/end", {"compaction_id": compaction})

    def _steered(self, record: Record) -> Iterator[Operation]:
        """Write what the user said while the model worked: it was taken between two steps."""
        prompt = mapping(record.get("attachment")).get("prompt")
        message_id = f"steering-{self.number}"
        queue = {"queue": "next-step", "added": [message_id], "claimed": [message_id]}
        yield self.transcript.event("inbox/spliced", queue)
        blocks = prompt_blocks([{"type": "text", "text": prompt}] if _is_text(prompt) else prompt)
        yield self.transcript.message(blocks, message_id=message_id)


def _content(message: Record) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(array(content))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _id(block: Record) -> str:
    return text(block.get("id"))


def _meta(record: Record, block: Record) -> dict[str, Any]:
    """Keep what the program knows of a result beside what the model was told."""
    told = record.get("toolUseResult")
    is_known = told is None or told == block.get("content")
    return {} if is_known else {"meta": {"tool_use_result": told}}


def _print(value: Any) -> int:
    """Tell values apart in eight bytes, that their contents need not be held."""
    return hash(msgspec.json.encode(value))


def _title(record: Record) -> str:
    fields = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle"}
    return text(record.get(fields.get(text(record.get("type")), "")))


def _steers(record: Record) -> bool:
    attachment = mapping(record.get("attachment"))
    prompt = attachment.get("prompt")
    says = bool(prompt) and isinstance(prompt, (str, list))
    return attachment.get("type") == "queued_command" and says


def _source(record: Record) -> dict[str, Any] | None:
    """Say who wrote a prompt, when no person did."""
    kind = text(mapping(record.get("origin")).get("kind"))
    return None if kind in ("", "cli", "user", "human") else {"kind": kind}
