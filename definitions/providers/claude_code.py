"""Claude Code's `stream-json`: the frames of one answer, among all that the program prints.

https://docs.anthropic.com/en/docs/claude-code/sdk ; facts as in `claude-agent-sdk` 0.2.189. Each
finished block of a message comes in a frame of its own, with the message's id and usage repeated;
with partial messages asked for, the model's own events come before it, and the frame says nothing
new. What a subagent says (`parent_tool_use_id`) is no part of the answer. Not here: what the events
of a message mean (`message_events`); calls, results and permissions, which are not the model's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from definitions.providers.adapter import Adapter
from definitions.providers.message_events import MessageEvents
from definitions.providers.reading import array, is_object, mapping, text

__all__ = ["ClaudeCode"]


class ClaudeCode(Adapter):
    """Reads the frames of one answer: the first message of the main conversation among them.

    It is whole when its events or its `stop_reason` say so, when something came of it (a result of
    a call, another message), or when the program says that it is through.
    """

    provider = "claude_code"

    def __init__(self, **envelope: Any) -> None:
        super().__init__(**envelope)
        self._events = MessageEvents(self.answer)
        self._message: str | None = None
        self._is_streamed = False
        self._is_over = False
        self._has_stopped = False
        self._blocks = 0
        self._calls: set[str] = set()

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        kind = text(chunk.get("type"))
        if kind == "error" or (not kind and is_object(chunk.get("error"))):
            self._events.take(chunk, event)
        if self._is_over or chunk.get("parent_tool_use_id"):
            return
        if kind == "stream_event":
            self._on_event(mapping(chunk, "event"))
        elif kind == "assistant":
            self._on_message(chunk, mapping(chunk, "message"))
        elif kind == "user":
            self._on_user(mapping(chunk, "message"))
        elif kind == "result":
            self._on_result(chunk)

    def _on_event(self, event: Mapping[str, Any]) -> None:
        if event.get("type") == "message_start":
            told = text(mapping(event, "message").get("id"))
            if self._message not in (None, told):
                self._end()
                return
            self._message, self._is_streamed = told, True
        self._events.take(event, None)
        self._is_over = event.get("type") == "message_stop"

    def _on_message(self, frame: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        told = text(message.get("id"))
        if self._message not in (None, told):
            self._end()
            return
        if frame.get("error"):
            parts = map(mapping, array(message.get("content")))
            self._fail(text(frame["error"]), "".join(text(part.get("text")) for part in parts))
            return
        blocks = map(mapping, array(message.get("content")))
        self._calls |= {text(each.get("id")) for each in blocks if each.get("type") == "tool_use"}
        if not self._is_streamed:
            self._say(told, message)

    def _say(self, told: str, message: Mapping[str, Any]) -> None:
        if self._message is None:
            begun = {name: each for name, each in message.items() if name != "content"}
            self._events.take({"type": "message_start", "message": begun}, None)
        self._message = told
        for block in array(message.get("content")):
            if is_object(block):
                place = {"index": self._blocks}
                self._blocks += 1
                start = {"type": "content_block_start", **place, "content_block": block}
                self._events.take(start, None)
                self._events.take({"type": "content_block_stop", **place}, None)
        delta = {"stop_reason": message.get("stop_reason")}
        self._has_stopped = self._has_stopped or bool(delta["stop_reason"])
        usage = message.get("usage")
        self._events.take({"type": "message_delta", "delta": delta, "usage": usage}, None)

    def _on_user(self, message: Mapping[str, Any]) -> None:
        """What came of one of its calls says that the answer was whole."""
        for block in map(mapping, array(message.get("content"))):
            if block.get("type") == "tool_result" and block.get("tool_use_id") in self._calls:
                self._end()
                return

    def _on_result(self, frame: Mapping[str, Any]) -> None:
        """The program is through: so was the answer, unless its own events broke off."""
        subtype = text(frame.get("subtype"))
        if frame.get("is_error") is True or subtype.startswith("error"):
            said = [text(frame.get("result")), *map(text, array(frame.get("errors")))]
            name = subtype if subtype.startswith("error") else "error"
            self._fail(name, "; ".join(filter(None, said)))
        elif self._message is not None and not self._is_streamed:
            self._end()

    def close(self) -> None:
        if self._has_stopped and not self._is_over:
            self._end()

    def _fail(self, name: str, said: str) -> None:
        self._events.take({"type": "error", "error": {"type": name, "message": said}}, None)
        self._is_over = True

    def _end(self) -> None:
        self._events.take({"type": "message_stop"}, None)
        self._is_over = True
