"""Transcripts of Claude Code, made into recordings: one file, or one as a sync server kept it.

Here lives which record goes to which conversation: the main one, or that of a subagent whose
records stand inline (`isSidechain`), which is named by the call that started it; its calls stand in
the main one as well, as children of that call. What a record says is in `claude_code_records`. Not
here: the stream that Claude Code prints while it works.

A subagent is known by its prompt, which its call carries, and then by `parentUuid`. Of what was
rewound both ways stay, in the order of the file.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assembler.plugins import Importer, Sample
from definitions.importers.claude_code_records import Chat
from definitions.importers.reading import document, values
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation
from definitions.providers.reading import array, mapping, text

__all__ = ["CLAUDE_CODE", "CLAUDE_CODE_WRAPPED", "claude_code", "claude_code_wrapped"]

Record = Mapping[str, Any]

_ABOUT = "Imported from a transcript of Claude Code."
_THROUGH_MAX = 16
"""So many subagents that have their result may still say something."""
_CONVERSATION = frozenset({"user", "assistant"})


def claude_code(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one transcript into the operations of a recording, the header first.

    O(size); memory: ids, the message at hand, and the prompts of subagents that still run.
    """
    yield from _Session(name).read(values(lines, name))


def claude_code_wrapped(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn a list of records as a sync server kept them, sorted by when they were written."""
    found = [_unwrapped(mapping(each)) for each in array(document(lines, name))]
    found.sort(key=lambda record: milliseconds(record.get("timestamp")) or 0)
    yield from _Session(name).read(enumerate(found, 1))


def _unwrapped(kept: Record) -> dict[str, Any]:
    content = mapping(mapping(kept.get("content")).get("content"))
    if content.get("type") == "output":
        return {"timestamp": kept.get("createdAt"), **mapping(content.get("data"))}
    said = text(content.get("text"))
    return {
        "type": "user",
        "uuid": text(kept.get("id")),
        "timestamp": kept.get("createdAt"),
        "message": {"role": "user", "content": said},
    }


class _Session:
    """One file: its conversations, and whose a record is."""

    def __init__(self, name: str) -> None:
        self._main = Chat()
        self._header = self._main.transcript.header(name, _ABOUT)
        self._beside: dict[str, Chat] = {}
        self._prompts: dict[str, list[str]] = {}
        """The calls that start subagents, by their prompt, until their first record came."""
        self._prompt_of: dict[str, str] = {}
        """The same, the other way round."""
        self._chains: dict[str, str] = {}
        """The call of the subagent that a record is of, by the record's uuid."""
        self._links: dict[str, list[str]] = {}
        """The uuids of the records of a subagent that still runs, by its call."""
        self._through: OrderedDict[str, list[str]] = OrderedDict()
        """The same of the last ones that are through: their last words may come behind that."""

    def read(self, records: Iterable[tuple[int, Any]]) -> Iterator[Operation]:
        yield self._header
        for number, record in records:
            self._main.number = number
            yield from self._take(record)
        for chat in (self._main, *self._beside.values()):
            yield from chat.rest()
            yield chat.transcript.finish()

    def _take(self, record: Any) -> Iterator[Operation]:
        if not isinstance(record, dict):
            yield from self._main.odd(record)
            return
        call_id = self._subagent_of(record)
        if call_id is None:
            yield from self._main.take(record)
        else:
            yield from self._take_beside(call_id, record)
        yield from self._learn_prompts(record)

    def _take_beside(self, call_id: str, record: Record) -> Iterator[Operation]:
        chat = self._beside.get(call_id)
        if chat is None:
            chat = self._beside[call_id] = Chat(call_id)
            yield chat.transcript.header(call_id, f"What the subagent of {call_id} said.")
        chat.number = self._main.number
        yield from chat.take(record)
        yield from self._main.child(call_id, record)

    def _subagent_of(self, record: Record) -> str | None:
        """The call whose subagent wrote a record; None: it is of the main conversation."""
        if record.get("isSidechain") is not True or text(record.get("type")) not in _CONVERSATION:
            return None
        told = text(record.get("parent_tool_use_id")) or self._chains.get(
            text(record.get("parentUuid"))
        )
        if not told:
            waiting = self._prompts.get(_said(record), [])
            told = waiting[0] if waiting else None
            self._has_come(told or "")
        if told and (uuid := text(record.get("uuid"))):
            self._chains[uuid] = told
            links = self._through if told in self._through else self._links
            links.setdefault(told, []).append(uuid)
        return told or None

    def _has_come(self, call_id: str) -> None:
        """Nobody waits for the first record of that call's subagent any more."""
        prompt = self._prompt_of.pop(call_id, None)
        if prompt is not None:
            self._prompts[prompt].remove(call_id)
            if not self._prompts[prompt]:
                del self._prompts[prompt]

    def _learn_prompts(self, record: Record) -> Iterator[Operation]:
        for block in map(mapping, array(mapping(record.get("message")).get("content"))):
            if block.get("type") == "tool_use":
                prompt = text(mapping(block.get("input")).get("prompt"))
                call_id = text(block.get("id"))
                if prompt and call_id and call_id not in self._prompt_of:
                    self._prompt_of[call_id] = prompt
                    self._prompts.setdefault(prompt, []).append(call_id)
            elif block.get("type") == "tool_result":
                yield from self._forget(text(block.get("tool_use_id")))

    def _forget(self, call_id: str) -> Iterator[Operation]:
        """A subagent is through: its records are let go of, some subagents later."""
        self._has_come(call_id)
        links = self._links.pop(call_id, [])
        if links:
            self._through.setdefault(call_id, []).extend(links)
        while len(self._through) > _THROUGH_MAX:
            for uuid in self._through.popitem(last=False)[1]:
                self._chains.pop(uuid, None)
        if call_id in self._beside:
            yield from self._beside[call_id].through()


def _said(record: Record) -> str:
    content = mapping(record.get("message")).get("content")
    if isinstance(content, str):
        return content
    return "".join(text(mapping(block).get("text")) for block in array(content))


def _recognises(sample: Sample) -> bool:
    """Whether a record of the beginning is one of a conversation, under Claude Code's names."""
    return any(map(_is_record, sample.records))


def _is_record(record: Any) -> bool:
    kind = text(record.get("type"))
    if kind in _CONVERSATION:
        named = "parentUuid" in record and "uuid" in record and "message" in record
        return named and "isSidechain" in record
    return (kind == "summary" and "leafUuid" in record) or (
        kind == "file-history-snapshot" and "messageId" in record
    )


def _recognises_wrapped(sample: Sample) -> bool:
    first = sample.records[0] if sample.records else {}
    content = mapping(first.get("content"))
    return "localId" in first and isinstance(content.get("content"), dict) and "role" in content


CLAUDE_CODE = Importer("transcripts of Claude Code", claude_code, _recognises)
CLAUDE_CODE_WRAPPED = Importer(
    "transcripts of Claude Code as a sync server keeps them",
    claude_code_wrapped,
    _recognises_wrapped,
)
