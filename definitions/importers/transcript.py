"""The conversation that an importer writes: turns, steps, messages, calls, results, in order.

Here lives what the transcripts of agents have in common, whatever a record is called there: a
prompt opens a turn, each answer of a model is a step, an answer that was whole hands over its
calls, and everything has a number, an id and a time. Not here: reading lines (`reading`), and what
a format calls anything.

What is written depends on the records so far alone, so a longer file says the same and more: that
makes a second import harmless. Nothing is ended because a file ends; its last operation says that
nobody works on it any more.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

__all__ = ["Operation", "Transcript", "arguments_text", "text_block"]

Operation: TypeAlias = dict[str, Any]
Block: TypeAlias = dict[str, Any]

_NOT_WHOLE = frozenset({"length", "content_filter", "refusal", "cancelled", "error"})
"""Answers that stopped for one of these hand over none of their calls."""


_written = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def text_block(text: str) -> Block:
    """Say a text as a block of content."""
    return {"type": "text", "text": text}


def arguments_text(value: Any) -> str:
    """Say arguments as JSON text: some formats have the text, some the value, some nothing."""
    if isinstance(value, str):
        return value
    return "" if value is None else _written(value)


def _was_interrupted(stop: str, blocks: Sequence[Block]) -> bool:
    """Whether an answer was stopped while it came, and has no calls, which would say so."""
    return stop == "cancelled" and not any(block["type"] == "tool-call" for block in blocks)


class Transcript:
    """Writes one conversation. Memory: the ids of its messages and calls, no contents.

    `conversation` names the one beside the main one that is written, such as that of a subagent
    whose text stands inline: its operations say so in `conversation`.
    """

    def __init__(self, conversation: str | None = None) -> None:
        self.turn = 0
        self.step = 0
        self.is_in_turn = False
        self.is_in_step = False
        self._beside = {} if conversation is None else {"conversation": conversation}
        self._seq = 0
        self._time: int | None = None
        self._record = ""
        self._events_of_record = 0
        self._used: dict[str, int] = {}
        self._calls: dict[str, str] = {}
        self._places: dict[str, tuple[int, int]] = {}

    # -- the record at hand ------------------------------------------------------------------

    def header(self, title: str, about: str) -> Operation:
        """Say the first line of the recording: what it shows, and where it comes from."""
        return {"recording": 1, "title": title.rsplit("/", 1)[-1], "about": about, **self._beside}

    def at(self, record: str, time: int | None = None) -> None:
        """Turn to the next record: its unique name in the file, and when it was written.

        The name makes the ids of its events, so it must be the same at a second import.
        """
        self._record, self._events_of_record = record, 0
        if time is not None:
            self._time = time

    def event(self, kind: str, data: Mapping[str, Any]) -> Operation:
        """Append an event of the record at hand."""
        self._seq += 1
        self._events_of_record += 1
        time = {} if self._time is None else {"time": self._time}
        name = f"{self._record}/{self._events_of_record}"
        event = {"seq": self._seq, "type": kind, **time, "data": dict(data), "id": name}
        return {"op": "append", "event": event, **self._beside}

    def kept(self, kind: str, data: Mapping[str, Any]) -> Operation:
        """Append a record that has no counterpart, unchanged; `kind` is `format/its type`."""
        return self.event(kind, data)

    def finish(self) -> Operation:
        """Say that the file ends here: nobody works on it, whatever is still open in it."""
        return {"op": "liveness", "live": False, **self._beside}

    # -- turns and steps ---------------------------------------------------------------------

    def user(
        self,
        content: Sequence[Block],
        *,
        message_id: str | None = None,
        source: Mapping[str, Any] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Iterator[Operation]:
        """Write a prompt: it ends the turn that is open and opens the next one."""
        yield from self.end_turn()
        yield from self.begin_turn()
        yield self.message(content, message_id=message_id, source=source, more=more)

    def message(
        self,
        content: Sequence[Block],
        *,
        message_id: str | None = None,
        source: Mapping[str, Any] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Operation:
        """Write a message to the model where the conversation stands, without opening anything.

        `source` says who sent it when no person did (`{"kind": …}`): it shows as context.
        """
        told = {**(more or {}), "message_id": self._unique(message_id), "content": list(content)}
        return self.event("user/message", told | ({} if source is None else {"source": source}))

    def begin_turn(self) -> Iterator[Operation]:
        """Open a turn when none is open."""
        if not self.is_in_turn:
            self.turn, self.step, self.is_in_turn = self.turn + 1, 0, True
            yield self.event("turn/start", {"turn": self.turn})

    def end_turn(
        self, reason: str = "completed", error: Mapping[str, Any] | None = None
    ) -> Iterator[Operation]:
        """Close the turn that is open, if one is, and its step before it."""
        if self.is_in_turn:
            yield from self.end_step()
            self.is_in_turn = False
            told: dict[str, Any] = {"turn": self.turn, "reason": reason}
            yield self.event("turn/end", told | ({} if error is None else {"error": error}))

    def begin_step(self) -> Iterator[Operation]:
        """Open the next step, in a turn, behind the one that is open."""
        yield from self.begin_turn()
        yield from self.end_step()
        self.step, self.is_in_step = self.step + 1, True
        yield self.event("step/start", self._place())

    def end_step(self) -> Iterator[Operation]:
        """Close the step that is open, if one is."""
        if self.is_in_step:
            self.is_in_step = False
            yield self.event("step/end", self._place())

    def answer(
        self,
        content: Sequence[Block],
        *,
        message_id: str | None = None,
        stop_reason: str | None = None,
        usage: Mapping[str, Any] | None = None,
        more: Mapping[str, Any] | None = None,
        hands_over: bool = True,
    ) -> Iterator[Operation]:
        """Write a whole answer of a model as a step of its own, and hand over its calls.

        `tool-call` blocks carry the id that the transcript says; where it was used before, the
        call gets one of its own. An answer that was cut, or `hands_over` false, hands over none.
        """
        yield from self.begin_step()
        blocks = [self._named(block) for block in content]
        calls = [block for block in blocks if block["type"] == "tool-call"]
        stop = stop_reason or ("tool_use" if calls else "end_turn")
        yield self._said(blocks, stop, message_id, usage, more)
        if hands_over and stop not in _NOT_WHOLE:
            for block in calls:
                yield self._handed_over(block)

    def _said(
        self,
        blocks: Sequence[Block],
        stop: str,
        message_id: str | None,
        usage: Mapping[str, Any] | None,
        more: Mapping[str, Any] | None,
    ) -> Operation:
        return self.event(
            "assistant/message",
            {
                **(more or {}),
                **self._place(),
                "message_id": self._unique(message_id),
                "content": list(blocks),
                "stop_reason": stop,
                **({"interrupted": True} if _was_interrupted(stop, blocks) else {}),
                **({} if usage is None else {"usage": usage}),
            },
        )

    # -- an answer that was streamed ---------------------------------------------------------

    def delta(self, number: int, kind: str, data: Mapping[str, Any]) -> Operation:
        """Write a piece of an answer, in the open step, of that try (from 1)."""
        where = {"attempt": self._attempt(number), "number": number, **self._place()}
        time = {} if self._time is None else {"time": self._time}
        return {"op": "delta", **where, **time, "type": kind, "data": dict(data), **self._beside}

    def streamed(
        self,
        number: int,
        blocks: Sequence[Block],
        ready: Container[str],
        stop_reason: str,
        *,
        message_id: str | None = None,
        usage: Mapping[str, Any] | None = None,
    ) -> Iterator[Operation]:
        """Write how an answer ended whose pieces were written, and hand over its calls in `ready`.

        The calls in `blocks` have the ids of `new_call`.
        """
        yield self._said(blocks, stop_reason, message_id, usage, None)
        yield self.settle(number, "completed")
        for block in blocks:
            if block["type"] == "tool-call" and block["call_id"] in ready:
                yield self._handed_over(block)

    def settle(self, number: int, outcome: str) -> Operation:
        """Say that no more pieces of that try come, and what it came to."""
        return {
            "op": "settle",
            "attempt": self._attempt(number),
            "outcome": outcome,
            **self._beside,
        }

    def new_call(self, told: str) -> dict[str, str]:
        """Name a call whose pieces begin: its id, and the transcript's where that is another."""
        named = self._named({"call_id": told})
        return {key: str(named[key]) for key in ("call_id", "provider_call_id") if key in named}

    def release(self, told: str) -> None:
        """Forget a call of a try that was given up: the next one may tell it under the same id."""
        count = self._used.get(f"call:{told}", 0) - 1
        if count < 0 or told not in self._calls:
            return
        self._used[f"call:{told}"] = count
        if count:
            self._calls[told] = told if count == 1 else f"{told}#{count}"
        else:
            del self._calls[told]

    def _attempt(self, number: int) -> str:
        return f"{self.turn}.{self.step}.{number}"

    # -- calls -------------------------------------------------------------------------------

    def call(
        self,
        call_id: str,
        name: str,
        arguments: str,
        *,
        parent: str | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Iterator[Operation]:
        """Write a call that no answer told: in the open step, or its parent's for a child."""
        if parent is None and not self.is_in_step:
            yield from self.begin_step()
        block = self._named({"call_id": call_id, "name": name, "arguments": arguments})
        yield self._handed_over({**(more or {}), **block}, parent)

    def result(
        self,
        call_id: str,
        content: Sequence[Block],
        *,
        is_error: bool = False,
        error: Mapping[str, Any] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Operation:
        """Write what came of the last call of that id."""
        told: dict[str, Any] = {"call_id": self.known(call_id), "content": list(content)}
        told |= {"is_error": True} if is_error or error is not None else {}
        told |= {} if error is None else {"error": error}
        return self.event("tool/result", {**(more or {}), **told})

    def known(self, call_id: str) -> str:
        """Name the last call of that id as it is named here."""
        return self._calls.get(call_id, call_id)

    def has_call(self, call_id: str) -> bool:
        """Whether a call of that id was seen."""
        return call_id in self._calls

    def _handed_over(self, block: Block, parent: str | None = None) -> Operation:
        told = {key: value for key, value in block.items() if key != "type"}
        outer = None if parent is None else self.known(parent)
        place = self._places.get(outer or "", (self.turn, self.step))
        self._places[told["call_id"]] = place
        where = {"turn": place[0], "step": place[1]}
        child = {} if outer is None else {"parent_call_id": outer}
        return self.event("tool/call", {**where, **told, **child})

    def _named(self, block: Block) -> Block:
        """Give a call its id; the transcript's stays beside it where that was used before."""
        if block.get("type", "tool-call") != "tool-call":
            return block
        told = block["call_id"]
        mine = self._calls[told] = self._unique(told, "call")
        return block if mine == told else {**block, "call_id": mine, "provider_call_id": told}

    def _unique(self, told: str | None, what: str = "message") -> str:
        name = told or f"{what}-{self._seq + 1}"
        count = self._used[f"{what}:{name}"] = self._used.get(f"{what}:{name}", 0) + 1
        return name if count == 1 else f"{name}#{count}"

    def _place(self) -> dict[str, int]:
        return {"turn": self.turn, "step": self.step}
