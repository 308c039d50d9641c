"""What the events of AG-UI say, in one conversation.

Here lives one function for each type of event, and where an answer ends: nothing says so, but
another message, a result and the end of the run follow it. Not here: which conversation an event
belongs to (`ag_ui`), messages that were told whole (`ag_ui_history`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from definitions.importers.ag_ui_history import (
    History,
    content_blocks,
    name_of,
    outcome_of,
    ran_by,
)
from definitions.importers.halves import mended
from definitions.importers.streaming import Streamed
from definitions.importers.transcript import Operation, Transcript, arguments_text, text_block
from definitions.providers.reading import array, mapping, natural, text

__all__ = ["Thread"]

Record = Mapping[str, Any]
Write = Callable[[Any, Record], Iterator[Operation]]

_SAID = ("type", "delta", "timestamp", "messageId", "toolCallId", "toolCallName", "subagentRunId")
_THINKING = "thinking"
_ENDS = ("RUN_FINISHED", "RUN_ERROR")
_USAGE = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cachedInputTokens": "cache_read_tokens",
    "reasoningTokens": "reasoning_tokens",
}


class Thread:
    """One conversation, and what its later events refer to."""

    def __init__(self, conversation: str | None = None) -> None:
        self.transcript = Transcript(conversation)
        self._answer = Streamed(self.transcript)
        self._history = History(self.transcript)
        self._others: dict[str, tuple[str, list[str]]] = {}
        """Open messages of others than the model: their role and texts."""
        self._chunked: tuple[str, str] | None = None
        """The type and id of what is told in chunks: any other event ends it."""
        self._is_cut = False
        """Whether the last answer was cut by a limit, which ends its turn."""
        self._asked: set[str] = set()
        self._decided: set[str] = set()
        self._run = ""
        self._is_answering = False
        """Whether a run is open, and the model said something in it."""

    def at(self, record: str, time: int | None = None) -> Thread:
        """Turn to the next event."""
        self.transcript.at(record, time)
        return self

    def write(self, event: Record) -> Iterator[Operation]:
        kind = text(event.get("type"))
        told = text(event.get("messageId")) or text(event.get("toolCallId"))
        if self._chunked and not (kind == self._chunked[0] and told in ("", self._chunked[1])):
            yield from self._chunks_over()
        yield from self._TYPES.get(kind, Thread._kept)(self, event)
        self._is_answering = kind not in _ENDS and (self._is_answering or self._answer.is_begun)

    def _kept(self, event: Record) -> Iterator[Operation]:
        yield self.transcript.kept(f"ag-ui/{text(event.get('type')) or 'odd'}", mended(event))

    def request(self, request: Record) -> Iterator[Operation]:
        """Write what a client knows and wants: the messages, and answers to interrupts."""
        about = {key: each for key, each in request.items() if key not in ("messages", "resume")}
        yield self.transcript.kept("ag-ui/request", about)
        yield from self._messages(request["messages"])
        for each in array(request.get("resume")):
            yield from self._resumed(mapping(each) or {"value": each})

    def _resumed(self, resume: Record) -> Iterator[Operation]:
        payload = mapping(resume.get("payload"))
        call_id = text(mapping(payload.get("toolCall")).get("callId"))
        if not call_id or not isinstance(payload.get("approved"), bool):
            yield self.transcript.kept("ag-ui/resume", resume)
            return
        decision = "allow" if payload["approved"] else "deny"
        told = {"call_id": self.transcript.known(call_id), "decision": decision}
        request_id = text(resume.get("interruptId"))
        rest = {"resume": resume}
        yield self.transcript.event("permission/answer", {**rest, **told, "request_id": request_id})

    def _messages(self, messages: object) -> Iterator[Operation]:
        new = self._history.new(messages)
        notes = [each for each in new if each.get("role") == "activity"]
        yield from self._history.write(notes)
        new = [each for each in new if each.get("role") != "activity"]
        if new:
            yield from self.answer_over()
            yield from self._history.write(new)

    # -- where answers end -------------------------------------------------------------------

    def answer_over(
        self, stop_reason: str | None = None, usage: Mapping[str, Any] | None = None
    ) -> Iterator[Operation]:
        """End the open answer, if one is."""
        yield from self._chunks_over()
        yield from self._answer.end(stop_reason, usage)

    def ended(self, failed: str | None, event: Record) -> Iterator[Operation]:
        """End the run of a subagent; `failed` says why it did, if it did."""
        yield from self.answer_over(None if failed is None else self._stop("error"))
        yield from self._kept(event)
        error = None if failed is None else {"name": "error", "message": failed}
        yield from self.transcript.end_turn("completed" if error is None else "error", error)

    def _stop(self, stop: str) -> str:
        """Why the open answer stops, when its run does for that reason."""
        is_cut = self._answer.is_growing() or self._answer.says("tool-call")
        return stop if is_cut else "end_turn"

    def _next(self, kind: str, message_id: str) -> Iterator[Operation]:
        """End the open answer when a part of that kind, of that message, is not of it."""
        answer = self._answer
        if answer.is_begun and not answer.is_growing():
            others = bool(answer.message_ids) and message_id not in answer.message_ids
            is_other = {
                "text": others or (not answer.message_ids and answer.says("tool-call")),
                "tool-call": others and bool(message_id),
                "reasoning": answer.says("text", "tool-call"),
            }
            if is_other[kind]:
                yield from self.answer_over()

    # -- parts -------------------------------------------------------------------------------

    def _text_start(self, event: Record) -> Iterator[Operation]:
        message_id, role = text(event.get("messageId")), text(event.get("role")) or "assistant"
        self._history.said.add(message_id)
        if role != "assistant":
            self._others[message_id] = (role, [])
            return
        if self._answer.grows(f"text:{message_id}"):  # told once more, to a client that came now
            yield from self._kept(event)
            return
        yield from self._next("text", message_id)
        yield from self._answer.begin(f"text:{message_id}", "text", _beside(event))
        self._answer.message_ids.add(message_id)

    def _text_content(self, event: Record) -> Iterator[Operation]:
        message_id, said = text(event.get("messageId")), _fragment(event)
        if message_id in self._others:
            self._others[message_id][1].append(said)
            return
        key = f"text:{message_id}"
        if not self._answer.has(key):
            yield from self._text_start({"messageId": message_id})
        yield from self._answer.grow(key, said, _beside(event))

    def _text_end(self, event: Record) -> Iterator[Operation]:
        message_id = text(event.get("messageId"))
        if message_id in self._others:
            role, texts = self._others.pop(message_id)
            yield from self._said_by(role, message_id, mended("".join(texts)))
        elif self._answer.has(f"text:{message_id}"):
            yield from self._answer.end_part(f"text:{message_id}", _beside(event))
        else:
            yield from self._kept(event)

    def _said_by(self, role: str, message_id: str, said: str) -> Iterator[Operation]:
        blocks = [text_block(said)]
        if role == "user" and self._is_answering and message_id:
            yield from self.answer_over()
            queue = {"queue": "next-step", "added": [message_id], "claimed": [message_id]}
            yield self.transcript.event("inbox/spliced", queue)
            yield self.transcript.message(blocks, message_id=message_id)
        elif role == "user":
            yield from self.answer_over()
            self._history.running.clear()
            yield from self.transcript.user(blocks, message_id=message_id)
        else:
            yield self.transcript.message(blocks, message_id=message_id, source={"kind": role})

    def _reasoning_start(self, event: Record) -> Iterator[Operation]:
        message_id = text(event.get("messageId")) or _THINKING
        if self._answer.grows(f"reasoning:{message_id}"):
            yield from self._kept(event)
            return
        self._history.said.add(f"reasoning:{message_id}")
        yield from self._next("reasoning", message_id)
        yield from self._answer.begin(f"reasoning:{message_id}", "reasoning", _beside(event))

    def _reasoning_content(self, event: Record) -> Iterator[Operation]:
        key = f"reasoning:{text(event.get('messageId')) or _THINKING}"
        if not self._answer.has(key):
            yield from self._reasoning_start({"messageId": event.get("messageId")})
        yield from self._answer.grow(key, _fragment(event), _beside(event))

    def _reasoning_end(self, event: Record) -> Iterator[Operation]:
        key = f"reasoning:{text(event.get('messageId')) or _THINKING}"
        if self._answer.has(key):
            yield from self._answer.end_part(key, _beside(event))
        else:
            yield from self._kept(event)

    def _thinking_end(self, event: Record) -> Iterator[Operation]:
        """End what was thought without a message of its own; else its message has ended."""
        if self._answer.has(f"reasoning:{_THINKING}") and self._answer.is_growing():
            yield from self._reasoning_end(event)
        else:
            yield from self._kept(event)

    def _encrypted(self, event: Record) -> Iterator[Operation]:
        entity, value = text(event.get("entityId")), event.get("encryptedValue")
        is_call = event.get("subtype") == "tool-call"
        keys = (entity,) if is_call else (f"reasoning:{entity}", f"text:{entity}")
        key = next(filter(self._answer.has, keys), None)
        if key is not None:
            self._answer.mark(key, signature=value)
        yield from self._kept(event)

    # -- calls -------------------------------------------------------------------------------

    def _call_start(self, event: Record) -> Iterator[Operation]:
        call_id, parent = text(event.get("toolCallId")), text(event.get("parentMessageId"))
        is_told = self._answer.grows(call_id) or not self._answer.has(call_id)
        if call_id in self._history.running and is_told:
            # Told once more: it was interrupted, or a client came in the middle.
            yield from self._kept(event)
            return
        yield from self._next("tool-call", parent)
        block = {"name": text(event.get("toolCallName")), **ran_by(event)}
        yield from self._answer.begin(call_id, "tool-call", _beside(event), **block)
        if parent:
            self._answer.message_ids.add(parent)
        self._history.running[call_id] = None

    def _call_content(self, event: Record) -> Iterator[Operation]:
        call_id = text(event.get("toolCallId"))
        if self._answer.has(call_id):
            yield from self._answer.grow(call_id, _fragment(event), _beside(event))
        else:
            yield from self._kept(event)

    def _call_end(self, event: Record) -> Iterator[Operation]:
        call_id = text(event.get("toolCallId"))
        if self._answer.has(call_id):
            yield from self._answer.end_part(call_id, _beside(event))
        else:
            yield from self._kept(event)

    def _result(self, event: Record) -> Iterator[Operation]:
        """Write a result behind its answer: at once, unless another part of that still grows."""
        call_id = text(event.get("toolCallId"))
        used = ("type", "timestamp", "toolCallId", "content", "error", "subagentRunId")
        meta = {key: each for key, each in event.items() if key not in used}
        blocks = content_blocks(event.get("content"))
        self._history.said.add(text(event.get("messageId")))
        is_open = self._answer.has(call_id)
        if is_open and outcome_of(event) == "withdrawn":
            self._answer.withdraw(call_id)
            self._history.running.pop(call_id, None)
            yield from self._kept(event)
            return

        def write() -> Iterator[Operation]:
            yield from self.transcript.begin_turn()
            yield self._history.result(call_id, blocks, event, meta)

        if is_open and (self._answer.is_growing() or self._answer.is_of_provider(call_id)):
            self._answer.after(call_id, write)
            return
        if outcome_of(event) != "unsettled":  # nothing came of it: the answer may go on
            yield from self.answer_over()
        yield from write()

    # -- chunks ------------------------------------------------------------------------------

    def _chunk(self, event: Record) -> Iterator[Operation]:
        """Take a part told in chunks, which have no beginning and no end."""
        kind = text(event.get("type"))
        start, content, _ = self._CHUNKS[kind]
        field = "toolCallId" if kind == "TOOL_CALL_CHUNK" else "messageId"
        told = text(event.get(field)) or (self._chunked[1] if self._chunked else "")
        whole = {**event, field: told}
        if self._chunked is None and not self._is_told(kind, told):
            yield from start(self, {key: each for key, each in whole.items() if key != "delta"})
            self._chunked = (kind, told)
        if event.get("delta") is not None:
            yield from content(self, whole)

    def _is_told(self, kind: str, told: str) -> bool:
        """Whether that part has a beginning, and so will have an end."""
        prefix = {"TEXT_MESSAGE_CHUNK": "text:", "REASONING_MESSAGE_CHUNK": "reasoning:"}
        return told in self._others or self._answer.has(prefix.get(kind, "") + told)

    def _chunks_over(self) -> Iterator[Operation]:
        if self._chunked is not None:
            kind, told = self._chunked
            self._chunked = None
            yield from self._CHUNKS[kind][2](self, {"messageId": told, "toolCallId": told})

    # -- runs --------------------------------------------------------------------------------

    def _run_started(self, event: Record) -> Iterator[Operation]:
        """Note a run; its turn begins with what is said in it, unless it goes on."""
        run, self._run = self._run, text(event.get("runId"))
        self._is_answering = run == self._run and self.transcript.is_in_turn
        asked = mapping(event.get("input"))
        rest = {key: each for key, each in asked.items() if key != "messages"}
        yield from self._kept({**event, "input": rest} if "input" in event else event)
        yield from self._messages(asked.get("messages"))

    def _run_finished(self, event: Record) -> Iterator[Operation]:
        """Close the turn, unless somebody else has a call to run or a question to answer."""
        outcome = mapping(event.get("outcome"))
        is_cancelled = outcome.get("type") == "cancelled"
        # An answer that ended by itself, with no call to wait for, would have ended the run too.
        stop = "cancelled" if is_cancelled else None
        yield from self.answer_over(stop, _usage(event.get("usage")))
        yield from self._kept(event)
        interrupts = [mapping(each) for each in array(outcome.get("interrupts"))]
        for interrupt in interrupts:
            yield from self._interrupt(interrupt)
        if is_cancelled:
            self._history.running.clear()
            yield from self.transcript.end_turn("cancelled")
        elif not self._history.running and not interrupts:
            yield from self.transcript.end_turn("limit" if self._is_cut else "completed")
        self._is_cut = False

    def _interrupt(self, interrupt: Record) -> Iterator[Operation]:
        yield from self.transcript.begin_turn()
        call_id = text(interrupt.get("toolCallId"))
        if not call_id:
            yield self.transcript.kept("ag-ui/interrupt", interrupt)
            return
        rest = {key: each for key, each in interrupt.items() if key not in ("id", "toolCallId")}
        given = mapping(interrupt.get("metadata")).get("input")
        yield from self._ask(text(interrupt.get("id")), call_id, given, rest)

    def _ask(
        self, request_id: str, call_id: str, given: object, rest: Record
    ) -> Iterator[Operation]:
        """Write a question, once: it is told as it is asked, and when the run waits for it."""
        if request_id and request_id in self._asked:
            return
        self._asked.add(request_id)
        told = {"call_id": self.transcript.known(call_id), "request_id": request_id}
        shown = given if isinstance(given, dict) else {}
        yield self.transcript.event("permission/request", {**rest, **told, "input": shown})

    def _custom(self, event: Record) -> Iterator[Operation]:
        """Take a permission, as our own encoder tells it; of others nothing is known."""
        value = mapping(event.get("value"))
        request_id, call_id = text(value.get("id")), text(value.get("toolCallId"))
        if event.get("name") != "permission" or not request_id or not call_id:
            yield from self._kept(event)
            return
        yield from self.answer_over()
        yield from self.transcript.begin_turn()
        yield from self._ask(request_id, call_id, value.get("input"), {})
        decision = value.get("decision")
        if decision in ("allow", "deny") and request_id not in self._decided:
            self._decided.add(request_id)
            told = {"call_id": self.transcript.known(call_id), "decision": decision}
            yield self.transcript.event("permission/answer", {**told, "request_id": request_id})

    def _activity(self, event: Record) -> Iterator[Operation]:
        """Take a limit that cut the answer, as our own encoder tells it; others are kept."""
        stop = mapping(event.get("content")).get("stop_reason")
        if event.get("activityType") == "turn-limit" and stop == "length":
            yield from self.answer_over("length")
            self._is_cut = True
        yield from self._kept(event)

    def _run_error(self, event: Record) -> Iterator[Operation]:
        yield from self.answer_over(self._stop("error"), _usage(event.get("usage")))
        yield from self._kept(event)
        self._history.running.clear()
        yield from self.transcript.begin_turn()
        error = {"name": text(event.get("code")) or "error", "message": text(event.get("message"))}
        yield from self.transcript.end_turn("error", error)

    def _snapshot(self, event: Record) -> Iterator[Operation]:
        """Put messages in the place of all: what an open answer said and is not among them went."""
        rest = {key: each for key, each in event.items() if key != "messages"}
        yield from self._kept(rest)
        if isinstance(event.get("messages"), list):
            yield from self._retold([mapping(each) for each in event["messages"]])
        yield from self._messages(event.get("messages"))

    def _retold(self, messages: list[Record]) -> Iterator[Operation]:
        """Say the open answer as a snapshot has it; thoughts stay where it has none at all."""
        before, said = self._answer.keys(), _texts(messages)
        if not any(key.startswith("reasoning:") for key in said):
            said |= self._answer.texts("reasoning")
        ids = {*self._answer.message_ids}
        yield from self._answer.retell(said)
        for key in set(before).difference(self._answer.keys()):
            self._history.running.pop(key, None)
            self._history.said.discard(key.removeprefix("text:"))
        self._history.said -= ids - self._answer.message_ids

    _CHUNKS: ClassVar[Mapping[str, tuple[Write, Write, Write]]] = {
        "TEXT_MESSAGE_CHUNK": (_text_start, _text_content, _text_end),
        "TOOL_CALL_CHUNK": (_call_start, _call_content, _call_end),
        "REASONING_MESSAGE_CHUNK": (
            _reasoning_start,
            _reasoning_content,
            _reasoning_end,
        ),
    }

    _TYPES: ClassVar[Mapping[str, Write]] = {
        **dict.fromkeys(_CHUNKS, _chunk),
        "RUN_STARTED": _run_started,
        "RUN_FINISHED": _run_finished,
        "RUN_ERROR": _run_error,
        "TEXT_MESSAGE_START": _text_start,
        "TEXT_MESSAGE_CONTENT": _text_content,
        "TEXT_MESSAGE_END": _text_end,
        "TOOL_CALL_START": _call_start,
        "TOOL_CALL_ARGS": _call_content,
        "TOOL_CALL_END": _call_end,
        "TOOL_CALL_RESULT": _result,
        "REASONING_MESSAGE_START": _reasoning_start,
        "REASONING_MESSAGE_CONTENT": _reasoning_content,
        "REASONING_MESSAGE_END": _reasoning_end,
        "REASONING_ENCRYPTED_VALUE": _encrypted,
        "THINKING_TEXT_MESSAGE_START": _reasoning_start,
        "THINKING_TEXT_MESSAGE_CONTENT": _reasoning_content,
        "THINKING_TEXT_MESSAGE_END": _reasoning_end,
        "THINKING_CONTENT": _reasoning_content,
        "THINKING_END": _thinking_end,
        "MESSAGES_SNAPSHOT": _snapshot,
        "CUSTOM": _custom,
        "ACTIVITY_SNAPSHOT": _activity,
    }


def _texts(messages: list[Record]) -> dict[str, str]:
    """The texts, thoughts and arguments of messages, by the keys of their parts."""
    found: dict[str, str] = {}
    for message in messages:
        if message.get("role") in ("assistant", "reasoning"):
            blocks = content_blocks(message.get("content"))
            prefix = "" if message.get("role") == "reasoning" else "text:"
            found[prefix + name_of(message)] = "".join(text(each.get("text")) for each in blocks)
        for call in map(mapping, array(message.get("toolCalls"))):
            called = mapping(call.get("function"))
            found[text(call.get("id"))] = arguments_text(called.get("arguments"))
    return found


def _fragment(event: Record) -> str:
    """The piece of text as it came: half a character waits for its other half."""
    delta = event.get("delta")
    return delta if isinstance(delta, str) else ""


def _beside(event: Record) -> dict[str, Any]:
    return {key: each for key, each in event.items() if key not in _SAID}


def _usage(told: object) -> dict[str, Any] | None:
    """Add up what the models of a run used, if it says so."""
    raw = [mapping(each) for each in array(told)]
    if not raw:
        return None
    used: dict[str, Any] = {}
    for theirs, ours in _USAGE.items():
        counts = [count for each in raw if (count := natural(each.get(theirs))) is not None]
        used |= {ours: sum(counts)} if counts else {}
    return used | {"raw": told}
