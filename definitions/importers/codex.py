"""Rollouts of Codex, made into recordings: what went to the model and what came back, item by item.

Here lives which record says what; how its items are spelled is in `codex_items`. The program's own
events (`event_msg`) tell most of it once more: of them only what no item says is read, how a turn
ended and what the conversation is called. Not here: what Codex prints while it works.

An answer is written item by item, so it is whole only when something else comes: a result, a
prompt, the count of its tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assembler.plugins import Importer, Sample
from definitions.importers.codex_items import (
    Block,
    Outcome,
    answer_block,
    blocks_of,
    is_answer,
    is_result,
    outcome_of,
    provided,
    rest_of,
    source_of,
    usage_of,
)
from definitions.importers.reading import values
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript
from definitions.providers.reading import mapping, text

__all__ = ["CODEX", "codex"]

Record = Mapping[str, Any]

_ITEMS = frozenset({"message", "reasoning", "function_call", "function_result", "world_state"})
"""Types of items that an old rollout writes without an envelope."""
_ENDS = {"turn_aborted": "cancelled", "task_complete": "completed", "turn.completed": "completed"}


def codex(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one rollout into the operations of a recording, the header first. O(size)."""
    rollout = _Rollout()
    yield rollout.transcript.header(name, "Imported from a rollout of Codex.")
    for number, record in values(lines, name):
        yield from rollout.take(number, record)
    for operation in rollout.flush():
        yield {**operation, "tail": rollout.tail}
    yield rollout.transcript.finish()


class _Rollout:
    """One file. `tail` says what its end leaves of the answer at hand."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.tail = "read"
        self._answer: list[tuple[Block, Outcome | None]] = []
        """The blocks of the answer at hand, with what the provider's calls among them gave."""
        self._began: tuple[str, int | None] = ("", None)
        self._last_call = ""
        self._number = 0
        self._model = ""

    def take(self, number: int, record: Any) -> Iterator[Operation]:
        self._number = number
        told = mapping(record)
        time = milliseconds(told.get("timestamp", told.get("created_at")))
        kind, item = text(told.get("type")), mapping(told.get("payload"))
        if kind in _ITEMS or (not kind and "role" in told):
            kind, item = "response_item", told
        if kind == "response_item" and is_answer(item):
            self._hear(number, time, item)
            return
        usage = usage_of(item) if item.get("type") == "token_count" else None
        yield from self.flush(usage)
        self.transcript.at(str(number), time)
        if kind == "response_item":
            yield from self._item(item)
        elif kind == "event_msg":
            yield from self._event(item)
        elif kind == "compacted":
            yield from self._compacted(number, item)
        else:
            self._model = text(item.get("model")) or self._model
            kept = told or {"value": record}
            yield self.transcript.kept(f"codex/{kind or 'odd'}", kept)

    # -- answers -----------------------------------------------------------------------------

    def _hear(self, number: int, time: int | None, item: Record) -> None:
        """Take the next item of an answer."""
        if not self._answer:
            self._began = (str(number), time)
        block = answer_block(item, f"call-{number}")
        self._last_call = block.get("call_id", self._last_call)
        self._answer.append((block, provided(block, item)))

    def flush(self, usage: Block | None = None) -> Iterator[Operation]:
        """Write the answer at hand, now that it is whole."""
        told, self._answer = self._answer, []
        if not told:
            return
        blocks = [block for block, _ in told]
        self.tail = "read" if blocks[-1]["type"] == "text" else "unfinished"
        self.transcript.at(*self._began)
        more = {"model": self._model} if self._model else {}
        yield from self.transcript.answer(blocks, usage=usage, more=more)
        for block, outcome in told:
            if outcome is not None:
                yield self._result(block["call_id"], outcome)

    # -- all else ----------------------------------------------------------------------------

    def _item(self, item: Record) -> Iterator[Operation]:
        if is_result(item):
            call_id = text(item.get("call_id")) or self._last_call
            yield self._result(call_id, outcome_of(item))
        elif item.get("role") == "user":
            blocks = blocks_of(item.get("content", item.get("message")))
            source = source_of(blocks)
            if source is None:
                yield from self.transcript.user(blocks, more=rest_of(item))
            else:
                yield self.transcript.message(blocks, source=source, more=rest_of(item))
        elif item.get("type") == "agent_message":
            source = {"kind": "agent", "name": text(item.get("author"))}
            blocks = blocks_of(item.get("content"))
            yield self.transcript.message(blocks, source=source, more=rest_of(item))
        else:
            yield self.transcript.kept(f"codex/{text(item.get('type')) or 'item'}", item)

    def _result(self, call_id: str, outcome: Outcome) -> Operation:
        meta = {"meta": dict(outcome.meta)} if outcome.meta else {}
        return self.transcript.result(
            call_id, outcome.content, is_error=outcome.is_error, more=meta
        )

    def _event(self, item: Record) -> Iterator[Operation]:
        kind = text(item.get("type"))
        title = text(item.get("thread_name"))
        if kind == "thread_name_updated" and title:
            yield self.transcript.event("conversation/title", {"title": title})
        else:
            yield self.transcript.kept(f"codex/{kind or 'event'}", item)
        if kind == "thread_rolled_back":
            yield from self._rolled_back()
        elif kind == "error" or item.get("error"):
            message = text(item.get("message")) or text(mapping(item.get("error")).get("message"))
            yield from self.transcript.end_turn("error", {"name": "error", "message": message})
        elif kind in _ENDS:
            yield from self.transcript.end_turn(_ENDS[kind])

    def _rolled_back(self) -> Iterator[Operation]:
        """Say that turns were taken back; they stay, as they were said."""
        yield from self.transcript.end_turn("cancelled")
        told = {"command_id": f"rewind-{self._number}"}
        yield self.transcript.event("command/run", {**told, "name": "rewind"})
        yield self.transcript.event("command/done", told)

    def _compacted(self, number: int, item: Record) -> Iterator[Operation]:
        compaction: dict[str, Any] = {"compaction_id": f"compaction-{number}"}
        yield self.transcript.event("compaction/start", {**item, **compaction})
        said = text(item.get("message"))  # empty: the model alone can read it
        yield self.transcript.event("compaction/summary", {**compaction, "text": said})
        yield self.transcript.event("compaction/end", compaction)


def _recognises(sample: Sample) -> bool:
    """Whether a file begins with the session's data, or with items as Codex writes them."""
    for record in sample.records:
        payload = record.get("payload")
        if isinstance(payload, dict) and record.get("type") in ("session_meta", "response_item"):
            return True
        if "created_at" in record and isinstance(record.get("message"), str) and "role" in record:
            return True
    return False


CODEX = Importer("rollouts of Codex", codex, _recognises)
