"""Bedrock: the stream of `ConverseStream`, or the whole answer of `Converse`.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html . An event
is an object with one field, its name (as the SDKs give it), or its fields with the name as `type`,
or as the name that an event stream gave it. Text and reasoning mostly have no `contentBlockStart`;
the usage comes behind `messageStop` or in front of it. Not here: AWS's binary frames, which an SDK
takes apart; models that are called by `InvokeModel` (their own formats).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from definitions.providers.adapter import Adapter
from definitions.providers.blocks import Block, CallBlock, RawBlock, TextBlock
from definitions.providers.reading import array, is_object, mapping, natural, plain, text

__all__ = ["Bedrock"]

_STOP_REASONS = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
_FAILURES = frozenset({"malformed_model_output", "malformed_tool_use"})
_EXCEPTION = "Exception"
"""Ends the name of an event that says that the stream failed."""
_RAN_BY_PROVIDER = "server_tool_use"
_USAGE = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_tokens": "cacheReadInputTokens",
    "cache_write_tokens": "cacheWriteInputTokens",
}
_BYTES_DEPTH_MAX = 8
"""So deep the bytes of an SDK's object are looked for."""

_OnEvent = Callable[["Bedrock", Mapping[str, Any]], None]
_OnPart = Callable[["Bedrock", Any, Any], None]


class Bedrock(Adapter):
    """Reads `messageStart` … `messageStop` and `metadata`, or one whole answer."""

    provider = "bedrock"

    def __init__(self, **envelope: Any) -> None:
        super().__init__(**envelope)
        self._open: dict[Any, Block] = {}
        self._results: dict[Any, dict[str, Any]] = {}

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        named = text(chunk.get("type")) or event or ""
        if named in self._EVENTS:
            self._EVENTS[named](self, chunk)
        elif is_object(mapping(chunk, "output").get("message")):
            self._on_whole(chunk)
        elif named.endswith(_EXCEPTION):
            self._on_exception(named, chunk)
        else:
            self._take_keyed(chunk)

    def _take_keyed(self, chunk: Mapping[str, Any]) -> None:
        for name, told in chunk.items():
            if name in self._EVENTS:
                self._EVENTS[name](self, mapping(told))
            elif name == "error" and told:
                self.answer.fail(told)
            elif name.endswith(_EXCEPTION):
                self._on_exception(name, told)

    def close(self) -> None:
        for index in list(self._results):
            self._end_result(index)

    # -- events ----------------------------------------------------------------------------

    def _on_message_start(self, _told: Mapping[str, Any]) -> None:
        self._open = {}
        self.answer.goes_on()

    def _on_block_start(self, told: Mapping[str, Any]) -> None:
        index = _index(told)
        start = mapping(told, "start")
        self._open.pop(index, None)
        if is_object(start.get("toolUse")):
            self._begin_call(index, start["toolUse"])
        elif is_object(start.get("toolResult")):
            self.answer.goes_on()
            self._results[index] = {**start["toolResult"], "content": []}
        elif start:
            self._open[index] = self.answer.keep(_kept(start))

    def _on_block_delta(self, told: Mapping[str, Any]) -> None:
        index = _index(told)
        delta = mapping(told, "delta")
        for name, value in delta.items():
            handler = self._DELTAS.get(name)
            if handler is not None:
                handler(self, index, value)
            else:
                self._keep_delta(index, {name: value})

    def _on_block_stop(self, told: Mapping[str, Any]) -> None:
        index = _index(told)
        self._end_result(index)
        block = self._open.get(index)
        if block is not None:
            self.answer.close(block)

    def _on_message_stop(self, told: Mapping[str, Any]) -> None:
        reason = text(told.get("stopReason"))
        if reason in _FAILURES:
            self.answer.fail({"code": reason})
            return
        self.answer.stop(_STOP_REASONS.get(reason, "other"), reason)
        self.answer.end()

    def _on_metadata(self, told: Mapping[str, Any]) -> None:
        router = mapping(told, "trace", "promptRouter")
        self.answer.name(model=text(router.get("invokedModelId")))
        usage = mapping(told, "usage")
        if usage:
            counts = {ours: natural(usage.get(theirs)) for ours, theirs in _USAGE.items()}
            self.answer.count(counts, usage)

    def _on_exception(self, name: str, told: object) -> None:
        self.answer.fail({**mapping(told), "code": name})

    def _on_whole(self, told: Mapping[str, Any]) -> None:
        self.answer.name(message_id=text(mapping(told, "ResponseMetadata").get("RequestId")))
        for place, block in enumerate(array(mapping(told, "output", "message").get("content"))):
            for name, value in mapping(block).items():
                self._on_content(place, name, value)
            self._on_block_stop({"contentBlockIndex": place})
        self._on_metadata(told)
        self._on_message_stop(told)

    def _on_content(self, index: int, name: str, value: object) -> None:
        """Take a block of an answer that was not streamed."""
        told = mapping(value)
        if name == "text":
            self._on_text(index, value)
        elif name == "toolUse":
            self.answer.argue_whole(self._begin_call(index, told), told.get("input"))
        elif name == "toolResult":
            self._results[index] = dict(told)
        elif name == "reasoningContent":
            self._on_reasoning(index, told.get("reasoningText") or told)
        elif name == "citationsContent":
            for part in array(told.get("content")):
                self._on_text(index, mapping(part).get("text"))
            for citation in array(told.get("citations")):
                self._on_citation(index, citation)
        else:
            self._open[index] = self.answer.keep(_kept({name: value}))

    # -- blocks ----------------------------------------------------------------------------

    def _begin_call(self, index: Any, told: Mapping[str, Any]) -> CallBlock:
        by_provider = told.get("type") == _RAN_BY_PROVIDER
        call = self._open[index] = self.answer.open_call(
            hint=told.get("toolUseId"),
            name=told.get("name"),
            ran_by="provider" if by_provider else "host",
        )
        return call

    def _end_result(self, index: Any) -> None:
        """Take the result of a tool that the provider ran, now that all of it is there."""
        told = self._results.pop(index, None)
        if told is None:
            return
        shown = [_shown(mapping(part)) for part in array(told.get("content"))]
        hint, is_error = told.get("toolUseId"), told.get("status") == "error"
        block = self.answer.keep_result(hint, _kept(told), plain(shown), is_error=is_error)
        self.answer.close(block)

    def _text_at(self, index: Any, type: str) -> TextBlock:
        """Give the text at a place: nothing but its first piece says that it begins."""
        block = self._open.get(index)
        if not (isinstance(block, TextBlock) and block.type == type):
            block = self._open[index] = self.answer.open_text(type)
        return block

    # -- deltas ----------------------------------------------------------------------------

    def _on_text(self, index: Any, value: Any) -> None:
        if isinstance(value, str):
            self.answer.say(self._text_at(index, "text"), value)

    def _on_reasoning(self, index: Any, value: Any) -> None:
        told = mapping(value)
        if isinstance(told.get("text"), str):
            self.answer.say(self._text_at(index, "reasoning"), told["text"])
        signature = text(told.get("signature"))
        if signature:
            extra = self._text_at(index, "reasoning").extra
            extra["signature"] = extra.get("signature", "") + signature
        if told.get("redactedContent"):
            redacted = {"redactedContent": told["redactedContent"]}
            self._keep_delta(index, {"reasoningContent": redacted})

    def _on_input(self, index: Any, value: Any) -> None:
        if not is_object(value):
            return
        block = self._open.get(index)
        call = block if isinstance(block, CallBlock) else self._begin_call(index, {})
        self.answer.argue(call, value.get("input"))

    def _on_citation(self, index: Any, value: Any) -> None:
        if is_object(value):
            extra = self._text_at(index, "text").extra
            extra.setdefault("citations", []).append(plain(value))

    def _on_result(self, index: Any, value: Any) -> None:
        if index in self._results:
            self._results[index]["content"].extend(array(value))

    def _keep_delta(self, index: Any, delta: Mapping[str, Any]) -> None:
        """Keep what we do not model: pictures, reasoning that nobody may read."""
        block = self._open.get(index)
        if not isinstance(block, RawBlock):
            block = self._open[index] = self.answer.keep({})
        block.deltas.append(plain(_kept(delta)))

    _EVENTS: ClassVar[Mapping[str, _OnEvent]] = {
        "messageStart": _on_message_start,
        "contentBlockStart": _on_block_start,
        "contentBlockDelta": _on_block_delta,
        "contentBlockStop": _on_block_stop,
        "messageStop": _on_message_stop,
        "metadata": _on_metadata,
    }
    _DELTAS: ClassVar[Mapping[str, _OnPart]] = {
        "text": _on_text,
        "reasoningContent": _on_reasoning,
        "toolUse": _on_input,
        "citation": _on_citation,
        "toolResult": _on_result,
    }


def _index(told: Mapping[str, Any]) -> Any:
    """Give the index of a block; none at all is a place of its own."""
    index = told.get("contentBlockIndex")
    return index if type(index) in (int, str) else None


def _shown(part: Mapping[str, Any]) -> dict[str, Any]:
    """Give a part of a tool's result as a block of ours."""
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    return {"type": "json", "value": _kept(part.get("json", part))}


def _kept(value: Any, depth: int = _BYTES_DEPTH_MAX) -> Any:
    """Give a value as the wire has it: an SDK makes bytes of what is base64 there."""
    if isinstance(value, (bytes, bytearray)):
        return b64encode(value).decode()
    if depth and is_object(value):
        return {name: _kept(each, depth - 1) for name, each in value.items()}
    if depth and isinstance(value, (list, tuple)):
        return [_kept(each, depth - 1) for each in value]
    return value
