"""Event streams of OpenHands, made into recordings: actions, and what was observed of them.

An action of the agent carries the whole answer of the model that made it; several may carry the
same. Not here: how that answer is spelled (`chat_messages`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from assembler.plugins import Importer, Sample
from definitions.importers.chat_messages import (
    Block,
    answer_blocks,
    content_blocks,
    stop_of,
    usage_of,
)
from definitions.importers.errors import ImportFault
from definitions.importers.frames import frames, known
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript, arguments_text, text_block
from definitions.providers.reading import array, mapping, text

__all__ = ["OPENHANDS", "openhands"]

Record = Mapping[str, Any]

_LAST = frozenset({"finish", "reject"})
"""Actions that end the work; nothing is observed of them."""
_SETTINGS = frozenset({"change_agent_state", "recall", "null", "start", "pause", "resume"})
_ENDS = {
    "awaiting_user_input": "completed",
    "finished": "completed",
    "rejected": "completed",
    "stopped": "cancelled",
    "error": "error",
}
_SOURCES = ("agent", "user", "environment")


def openhands(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn the events of one session into a recording, the header first. O(size)."""
    found, other = known(frames(lines, name), _is_event)
    if other:
        raise ImportFault(name, other, "action", "an event of OpenHands: an action or what came")
    session = _Session()
    yield session.transcript.header(name, "Imported from the events of a session of OpenHands.")
    for number, (_, told) in enumerate(found, 1):
        event = mapping(told)
        session.transcript.at(f"event-{number}", milliseconds(event.get("timestamp")))
        yield from session.write(event or {"value": told})
    yield session.transcript.finish()


class _Session:
    """What later events refer to: answers that were written, and the calls that actions made."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self._answers: set[str] = set()
        self._calls: dict[str, str] = {}

    def write(self, event: Record) -> Iterator[Operation]:
        action, observation = text(event.get("action")), text(event.get("observation"))
        if action:
            write = self._ACTIONS.get(action, _Session._action)
            yield from (_Session._kept if action in _SETTINGS else write)(self, event)
        elif observation == "agent_state_changed":
            yield from self._state(event)
        elif observation and observation not in _SETTINGS:
            yield from self._observed(event)
        else:
            yield from self._kept(event)

    def _kept(self, event: Record) -> Iterator[Operation]:
        kind = text(event.get("action")) or text(event.get("observation")) or "odd"
        yield self.transcript.kept(f"openhands/{kind}", _without_answer(event))

    # -- actions -----------------------------------------------------------------------------

    def _message(self, event: Record) -> Iterator[Operation]:
        args = mapping(event.get("args"))
        blocks = content_blocks(args.get("content", event.get("message")))
        for url in array(args.get("image_urls")):
            blocks.append({"type": "file", "media_type": "image/*", "url": url})
        more = _beside(event, "content", "image_urls", "thought")
        if event.get("source") == "user":
            yield from self.transcript.user(blocks, more=more)
        elif event.get("source") == "agent":
            yield from self._answer(event, blocks, more)
            if args.get("wait_for_response") is True:
                yield from self.transcript.end_turn()
        else:
            source = {"kind": text(event.get("source")) or "odd"}
            yield self.transcript.message(blocks, source=source, more=more)

    def _system(self, event: Record) -> Iterator[Operation]:
        blocks = content_blocks(mapping(event.get("args")).get("content"))
        more = _beside(event, "content")
        yield self.transcript.message(blocks, source={"kind": "system"}, more=more)

    def _action(self, event: Record) -> Iterator[Operation]:
        """Write a call: told with the answer that made it, or by itself."""
        args, told = mapping(event.get("args")), mapping(event.get("tool_call_metadata"))
        call_id = text(told.get("tool_call_id")) or f"action-{event.get('id')}"
        response = mapping(told.get("model_response"))
        self._calls[str(event.get("id"))] = call_id
        if self._is_new(response, call_id):
            thought = text(args.get("thought"))
            arguments = {key: each for key, each in args.items() if key != "thought"}
            block = {"call_id": call_id, "name": text(told.get("function_name") or event["action"])}
            own = {"type": "tool-call", **block, "arguments": arguments_text(arguments)}
            blocks = [text_block(thought)] if thought else []
            yield from self._answer(event, [*blocks, own], _beside(event))
        else:
            yield from self._kept(event)
        if text(event.get("action")) in _LAST:
            said = text(event.get("message"))
            content = [text_block(said)] if said else []
            yield self.transcript.result(call_id, content)
            yield from self.transcript.end_turn()

    def _is_new(self, response: Record, call_id: str) -> bool:
        """Whether the answer that made a call was not written yet, with this call in it."""
        return text(response.get("id")) not in self._answers or not self.transcript.has_call(
            call_id
        )

    def _answer(
        self, event: Record, own: list[Block], more: Mapping[str, Any]
    ) -> Iterator[Operation]:
        """Write the answer that an action came from; `own`: what the action itself says of it."""
        response = mapping(mapping(event.get("tool_call_metadata")).get("model_response"))
        choice = next(map(mapping, array(response.get("choices"))), mapping(None))
        told = answer_blocks(mapping(choice.get("message")), f"call-{event.get('id')}")
        ours = [each["call_id"] for each in own if each["type"] == "tool-call"]
        theirs = [each["call_id"] for each in told if each["type"] == "tool-call"]
        is_told = bool(told) and set(ours) <= set(theirs)
        blocks = told if is_told and text(response.get("id")) not in self._answers else own
        self._answers.add(text(response.get("id")))
        yield from self.transcript.answer(
            blocks,
            message_id=text(response.get("id")) or None,
            stop_reason=stop_of(choice.get("finish_reason"), blocks),
            usage=usage_of(response.get("usage")),
            more={**more, **({"model": response["model"]} if "model" in response else {})},
        )

    def _condensed(self, event: Record) -> Iterator[Operation]:
        """Write that the history was shortened."""
        args, name = mapping(event.get("args")), f"condensation-{event.get('id')}"
        told = {"compaction_id": name}
        summary = text(args.get("summary"))
        yield self.transcript.event("compaction/start", {**_beside(event), **told})
        if summary:
            yield self.transcript.event("compaction/summary", {**told, "text": summary})
        yield self.transcript.event("compaction/end", told)

    # -- observations ------------------------------------------------------------------------

    def _observed(self, event: Record) -> Iterator[Operation]:
        told = mapping(event.get("tool_call_metadata"))
        call_id = text(told.get("tool_call_id")) or self._calls.get(str(event.get("cause")), "")
        blocks = content_blocks(event.get("content"))
        if not self.transcript.has_call(call_id):
            more = _beside(event)
            source = {"kind": text(event.get("observation"))}
            yield self.transcript.message(blocks, source=source, more=more)
            return
        used = ("content", "tool_call_metadata", "timestamp")
        meta = {key: each for key, each in event.items() if key not in used}
        yield self.transcript.result(
            call_id, blocks, is_error=_has_failed(event), more={"meta": meta}
        )

    def _state(self, event: Record) -> Iterator[Operation]:
        yield from self._kept(event)
        extras = mapping(event.get("extras"))
        state = text(extras.get("agent_state"))
        if state in _ENDS and self.transcript.is_in_turn:
            message = text(extras.get("reason")) or text(event.get("content")) or state
            error = {"name": state, "message": message} if state == "error" else None
            yield from self.transcript.end_turn(_ENDS[state], error)

    _ACTIONS: ClassVar[Mapping[str, Callable[[Any, Record], Iterator[Operation]]]] = {
        "message": _message,
        "system": _system,
        "condensation": _condensed,
    }


def _has_failed(event: Record) -> bool:
    """Whether a call failed; a command that still runs (exit code -1) did not."""
    extras = mapping(event.get("extras"))
    code = mapping(extras.get("metadata")).get("exit_code", extras.get("exit_code"))
    if isinstance(code, int):
        return code > 0
    return event.get("observation") == "error" or event.get("success") is False


def _beside(event: Record, *said: str) -> dict[str, Any]:
    """Whatever an event says beside its content; the answer in it is written."""
    args = {key: each for key, each in mapping(event.get("args")).items() if key not in said}
    rest = {key: each for key, each in _without_answer(event).items() if key != "args"}
    return {"openhands": {**rest, **({"args": args} if args else {})}}


def _without_answer(event: Record) -> dict[str, Any]:
    told = dict(event)
    if isinstance(told.get("tool_call_metadata"), dict):
        metadata = dict(told["tool_call_metadata"])
        metadata.pop("model_response", None)
        told["tool_call_metadata"] = metadata
    return told


def _is_event(event: Record) -> bool:
    is_named = any(isinstance(event.get(key), str) for key in ("action", "observation"))
    return is_named and event.get("source") in _SOURCES and "timestamp" in event


def _recognises(sample: Sample) -> bool:
    return bool(sample.records) and _is_event(sample.records[0])


OPENHANDS = Importer("events of a session of OpenHands", openhands, _recognises)
