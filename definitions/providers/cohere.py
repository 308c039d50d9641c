"""Cohere: the stream of its chat API (v2), or one whole answer.

https://docs.cohere.com/reference/chat-stream . Contents and calls are counted apart, each with an
index of its own. The plan that a model makes before it calls tools is reasoning. What a text rests
on comes beside it, or when its content has ended. Not here: version 1 of the API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from definitions.providers.adapter import Adapter
from definitions.providers.blocks import CallBlock, RawBlock, TextBlock
from definitions.providers.reading import array, is_object, mapping, natural, plain, text

__all__ = ["Cohere"]

_STOP_REASONS = {
    "COMPLETE": "end_turn",
    "STOP_SEQUENCE": "end_turn",
    "TOOL_CALL": "tool_use",
    "MAX_TOKENS": "length",
    "ERROR_LIMIT": "length",
    "ERROR_TOXIC": "content_filter",
}
_FAILURES = frozenset({"ERROR", "TIMEOUT"})
_TYPES = {"text": "text", "thinking": "reasoning"}
"""A content's type, which is the field of its text as well -> the type of our block."""

_OnEvent = Callable[["Cohere", Mapping[str, Any], Mapping[str, Any]], None]
_Content = TextBlock | RawBlock


class Cohere(Adapter):
    """Reads `message-start` … `message-end`, or one whole answer."""

    provider = "cohere"

    def __init__(self, **envelope: Any) -> None:
        super().__init__(**envelope)
        self._contents: dict[int | None, _Content] = {}
        self._calls: dict[int | None, CallBlock] = {}
        self._text: TextBlock | None = None

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        handler = self._EVENTS.get(text(chunk.get("type")) or event or "")
        if handler is not None:
            handler(self, chunk, mapping(chunk, "delta", "message"))
        elif is_object(chunk.get("message")):
            self._on_whole(chunk, chunk["message"])
        elif chunk.get("error"):
            self.answer.fail(chunk["error"])
        elif event == "error":
            self.answer.fail(chunk)

    def close(self) -> None:
        self._end_contents()

    # -- events ----------------------------------------------------------------------------

    def _on_message_start(self, chunk: Mapping[str, Any], _message: Mapping[str, Any]) -> None:
        self._end_contents()
        self._calls = {}
        self.answer.goes_on()
        self.answer.name(message_id=chunk.get("id"))

    def _on_content_start(self, chunk: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        self._contents[natural(chunk.get("index"))] = self._begin(mapping(message, "content"))

    def _on_content_delta(self, chunk: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        index, told = natural(chunk.get("index")), mapping(message, "content")
        block = self._contents.get(index)
        if block is None:
            self._on_content_start(chunk, message)  # its start was lost
        elif isinstance(block, TextBlock):
            self._say(index, block, told)
        else:
            block.deltas.append(plain(told))

    def _on_content_end(self, chunk: Mapping[str, Any], _message: Mapping[str, Any]) -> None:
        """A content ends. A text is left open, for what it rests on may follow."""
        block = self._contents.get(natural(chunk.get("index")))
        if block is not None and block is not self._text:
            self.answer.close(block)

    def _on_plan(self, _chunk: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        self.answer.flow(message.get("tool_plan"), "reasoning")

    def _on_call_start(self, chunk: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        told = _one(message.get("tool_calls"))
        if told:
            self._calls[natural(chunk.get("index"))] = self._begin_call(told)

    def _on_call_delta(self, chunk: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        call = self._calls.get(natural(chunk.get("index")))
        if call is None:
            self._on_call_start(chunk, message)  # its start was lost
        else:
            called = mapping(_one(message.get("tool_calls")), "function")
            self.answer.argue(call, called.get("arguments"))

    def _on_call_end(self, chunk: Mapping[str, Any], _message: Mapping[str, Any]) -> None:
        call = self._calls.get(natural(chunk.get("index")))
        if call is not None:
            self.answer.close(call)

    def _on_citation(self, _chunk: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        self._cite(_one(message.get("citations")))

    def _on_message_end(self, chunk: Mapping[str, Any], _message: Mapping[str, Any]) -> None:
        self._stop(mapping(chunk, "delta"))

    def _on_whole(self, chunk: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        self.answer.name(message_id=chunk.get("id"))
        self.answer.flow(message.get("tool_plan"), "reasoning")
        for place, content in enumerate(array(message.get("content"))):
            self._contents[place] = self._begin(mapping(content))
        for citation in array(message.get("citations")):
            self._cite(mapping(citation))
        self._end_contents()
        for call in array(message.get("tool_calls")):
            if is_object(call):
                self.answer.close(self._begin_call(call))
        self._stop(chunk)

    # -- what they have in common ----------------------------------------------------------

    def _begin(self, content: Mapping[str, Any]) -> _Content:
        kind = text(content.get("type")) or ("thinking" if "thinking" in content else "text")
        if kind not in _TYPES:
            return self.answer.keep(content)
        block = self.answer.open_text(_TYPES[kind])
        if kind == "text":
            self._text = block
        self.answer.say(block, content.get(kind))
        return block

    def _say(self, index: int | None, block: TextBlock, told: Mapping[str, Any]) -> None:
        """Add to a content; a piece of another type begins another one at its place."""
        for field, kind in _TYPES.items():
            if not text(told.get(field)):
                continue
            if block.type != kind:
                self._contents[index] = self._begin({"type": field, field: told[field]})
            else:
                self.answer.say(block, told[field])

    def _begin_call(self, told: Mapping[str, Any]) -> CallBlock:
        called = mapping(told, "function")
        call = self.answer.open_call(hint=told.get("id"), name=called.get("name"))
        self.answer.argue(call, called.get("arguments"))
        return call

    def _cite(self, citation: Mapping[str, Any]) -> None:
        named = self._contents.get(natural(citation.get("content_index")))
        block = named if isinstance(named, TextBlock) and named.type == "text" else self._text
        if block is not None and not block.closed and citation:
            block.extra.setdefault("citations", []).append(plain(citation))

    def _end_contents(self) -> None:
        for block in self._contents.values():
            self.answer.close(block)
        self._contents, self._text = {}, None

    def _stop(self, told: Mapping[str, Any]) -> None:
        self._end_contents()
        self._count(mapping(told, "usage"))
        reason = text(told.get("finish_reason"))
        if reason in _FAILURES or told.get("error"):
            self.answer.fail({"code": reason, "message": text(told.get("error"))})
        elif reason:
            self.answer.stop(_STOP_REASONS.get(reason, "other"), reason)
            self.answer.end()

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Take what the model read and wrote; where that is not told, what is to be paid."""
        if not usage:
            return
        tokens = mapping(usage, "tokens") or mapping(usage, "billed_units")
        counts = {name: natural(tokens.get(name)) for name in ("input_tokens", "output_tokens")}
        counts["cache_read_tokens"] = natural(usage.get("cached_tokens"))
        self.answer.count(counts, usage)

    _EVENTS: ClassVar[Mapping[str, _OnEvent]] = {
        "message-start": _on_message_start,
        "content-start": _on_content_start,
        "content-delta": _on_content_delta,
        "content-end": _on_content_end,
        "tool-plan-delta": _on_plan,
        "tool-call-start": _on_call_start,
        "tool-call-delta": _on_call_delta,
        "tool-call-end": _on_call_end,
        "citation-start": _on_citation,
        "message-end": _on_message_end,
    }


def _one(told: object) -> Mapping[str, Any]:
    """Give what an event tells of one call or citation; some servers put it into a list."""
    return next(iter(map(mapping, array(told))), mapping(told))
