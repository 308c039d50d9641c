"""What Codex writes down of its terminal while it works, made into recordings, piece by piece.

Answers come in pieces, so these recordings are live ones. What was sent to the model is seldom
said in this log; then a prompt is what the keys say (`codex_tui_keys`). What the program tells
itself, such as that it draws, is kept without a row. Not here: rollouts (`codex`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assembler.plugins import Importer, Sample
from definitions.importers.codex_items import Block, usage_of
from definitions.importers.codex_tui_answers import Answer
from definitions.importers.codex_tui_calls import BEGINS, ENDS, asked, begun
from definitions.importers.codex_tui_keys import Typed
from definitions.importers.reading import values
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript, text_block
from definitions.providers.reading import array, mapping, text

__all__ = ["CODEX_TUI", "codex_tui_log"]

Record = Mapping[str, Any]

_ANSWERS = frozenset({"agent_message", "agent_reasoning", "agent_reasoning_raw_content"})
"""Events that tell a block of an answer; with `_delta` behind it, a piece of one."""
_TEXTS = ("message", "text", "delta")
_ENDS = {
    "task_complete": "completed",
    "turn_aborted": "cancelled",
    "shutdown_complete": "cancelled",
}
_ALLOWED = ("approved", "approved_for_session")


def codex_tui_log(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one log into the operations of a recording, the header first. O(size)."""
    log = _Log()
    yield log.transcript.header(name, "Imported from what Codex showed in its terminal.")
    for number, record in values(lines, name):
        yield from log.take(number, record)
    if log.answer is not None and log.answer.is_whole:
        for operation in log.flush():
            yield {**operation, "tail": "unfinished"}
    yield log.transcript.finish()


class _Log:
    """One file. `answer` is the one whose message is not written yet."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.answer: Answer | None = None
        self._typed = Typed()
        self._has_prompt = False
        self._number = 0
        self._time: int | None = None
        self._running: set[str] = set()
        self._waiting: list[tuple[str, str]] = []
        """What waits for a person's leave: call and request."""

    def take(self, number: int, record: Any) -> Iterator[Operation]:
        told = mapping(record)
        self._number, self._time = number, milliseconds(told.get("ts"))
        self.transcript.at(str(number), self._time)
        kind, payload = text(told.get("kind")), mapping(told.get("payload"))
        if kind == "codex_event":
            yield from self._event(mapping(payload.get("msg")), told)
            return
        yield self.transcript.kept(f"codex/{kind or 'odd'}", told or {"value": record})
        if kind == "key_event":
            self._typed.press(text(told.get("event")))
        elif kind == "paste":
            self._typed.paste(text(told.get("text")))
        elif kind == "slash_command":
            yield from self._command(text(told.get("command")))
        elif kind == "op":
            yield from self._sent(payload)

    # -- what the person does ----------------------------------------------------------------

    def _sent(self, operation: Record) -> Iterator[Operation]:
        kind = text(operation.get("type"))
        if kind in ("user_input", "user_turn"):
            self._typed.take_sent()
            yield from self._prompt([_input(item) for item in array(operation.get("items"))])
        elif kind in ("exec_approval", "patch_approval") and self._waiting:
            yield from self._answered(text(operation.get("decision")))

    def _prompt(self, blocks: list[Block]) -> Iterator[Operation]:
        """Write what was sent: it opens a turn, or goes to the one that runs."""
        self._has_prompt = True
        if not self.transcript.is_in_turn:
            yield from self.transcript.user(blocks)
            return
        message_id = f"steering-{self._number}"
        queue = {"queue": "next-step", "added": [message_id], "claimed": [message_id]}
        yield self.transcript.event("inbox/spliced", queue)
        yield self.transcript.message(blocks, message_id=message_id)

    def _told_prompt(self, blocks: list[Block]) -> Iterator[Operation]:
        """Write what opened the turn that runs, told late."""
        self._has_prompt = True
        yield from self.transcript.begin_turn()
        yield self.transcript.message(blocks)

    def _answered(self, decision: str) -> Iterator[Operation]:
        call_id, request_id = self._waiting.pop(0)
        may = decision in _ALLOWED
        named = {"call_id": call_id, "request_id": request_id}
        remember = {"remember": True} if decision == "approved_for_session" else {}
        told = {**named, "decision": "allow" if may else "deny", **remember}
        yield self.transcript.event("permission/answer", told)
        if not may:
            yield self.transcript.result(call_id, [], error={"name": "denied", "message": decision})

    def _command(self, name: str) -> Iterator[Operation]:
        self._typed.take_sent()
        told = {"command_id": f"command-{self._number}"}
        yield self.transcript.event("command/run", {**told, "name": name.lower()})
        yield self.transcript.event("command/done", told)

    # -- what the agent does -----------------------------------------------------------------

    def _event(self, event: Record, record: Record) -> Iterator[Operation]:
        kind = text(event.get("type"))
        label = kind.removesuffix("_delta")
        if label in _ANSWERS:
            yield from self._say(label, kind == label, event)
        elif kind == "agent_reasoning_section_break" and self.answer is not None:
            self.answer.close()
        elif kind == "token_count":
            yield self.transcript.kept(f"codex/{kind}", record)
            self._count(event)
        else:
            yield from self._other(kind, event, record)

    def _other(self, kind: str, event: Record, record: Record) -> Iterator[Operation]:
        if kind in BEGINS:
            yield from self._begin(event)
        if kind in ENDS:
            yield from self._end(event)
        yield from self._turn(kind, event)
        if kind not in BEGINS and kind not in ENDS:
            yield self.transcript.kept(f"codex/{kind or 'event'}", record)

    def _turn(self, kind: str, event: Record) -> Iterator[Operation]:
        if kind == "task_started":
            yield from self._started()
        elif kind == "user_message" and not self._has_prompt:
            yield from self._told_prompt([text_block(text(event.get("message")))])
        elif kind in _ENDS:
            reason = _ENDS[kind]
            yield from self.flush("end_turn" if reason == "completed" else reason)
            yield from self._end_turn(reason)
        elif kind == "error":
            yield from self.flush("error")
            error = {"name": "error", "message": text(event.get("message"))}
            yield from self._end_turn("error", error)

    def _started(self) -> Iterator[Operation]:
        typed = self._typed.take_sent()
        if typed and not self.transcript.is_in_turn:
            yield from self._prompt([text_block(typed)])
        yield from self.transcript.begin_turn()

    def _end_turn(self, reason: str, error: Record | None = None) -> Iterator[Operation]:
        yield from self.transcript.end_turn(reason, error)
        self._has_prompt = False
        self._waiting.clear()

    # -- answers -----------------------------------------------------------------------------

    def _say(self, label: str, is_whole: bool, event: Record) -> Iterator[Operation]:
        """Say more of the answer that still grows, or of another, in a step of its own."""
        said = next((text(event[key]) for key in _TEXTS if key in event), "")
        answer = self.answer
        if answer is None or answer.is_whole:
            yield from self.flush()
            yield from self.transcript.begin_step()
            answer = self.answer = Answer(self.transcript, str(self._number))
        if is_whole:
            yield from answer.whole(label, said, self._time)
        else:
            yield answer.piece(label, said, self._time)

    def flush(self, stop_reason: str = "end_turn") -> Iterator[Operation]:
        """Write the answer at hand, now that no more of it comes."""
        answer, self.answer = self.answer, None
        if answer is not None:
            yield from answer.message("end_turn" if answer.is_whole else stop_reason)
            self.transcript.at(f"{self._number}-then", self._time)

    def _count(self, event: Record) -> None:
        """Note what the answer at hand cost; it is told behind its text."""
        if self.answer is not None:
            self.answer.usage = usage_of(event)

    # -- calls -------------------------------------------------------------------------------

    def _begin(self, event: Record) -> Iterator[Operation]:
        told = text(event.get("call_id")) or f"call-{self._number}"
        yield from self.flush("tool_use")
        if told not in self._running:  # what waited for leave has begun already
            self._running.add(told)
            name, arguments, more = begun(event)
            yield from self.transcript.call(told, name, arguments, more=more)
        if asked(event):
            call_id, request_id = self.transcript.known(told), f"approval-{self._number}"
            self._waiting.append((call_id, request_id))
            named = {"call_id": call_id, "request_id": request_id}
            yield self.transcript.event("permission/request", {**named, "input": {}})

    def _end(self, event: Record) -> Iterator[Operation]:
        told = text(event.get("call_id")) or f"call-{self._number}"
        self._running.discard(told)
        outcome = ENDS[text(event.get("type"))](event)
        more = {"meta": outcome.meta} if outcome.meta else {}
        yield self.transcript.result(told, outcome.content, is_error=outcome.is_error, more=more)


def _input(item: object) -> Block:
    said = mapping(item)
    if isinstance(said.get("text"), str):
        return text_block(text(said["text"]))
    url = said.get("image_url")
    if isinstance(url, str):
        return {"type": "file", "media_type": "image/*", "url": url}
    return {"type": "provider", "provider": "openai", "raw": item}


def _recognises(sample: Sample) -> bool:
    """Whether records say which way they went between Codex and its terminal."""
    return any(
        record.get("dir") in ("meta", "to_tui", "from_tui") and isinstance(record.get("kind"), str)
        for record in sample.records
    )


CODEX_TUI = Importer("logs of what Codex showed in its terminal", codex_tui_log, _recognises)
