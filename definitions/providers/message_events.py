"""The events of an Anthropic message, said to an `Answer`.

https://docs.anthropic.com/en/api/messages-streaming ; field names as in the SDK `anthropic` 2.14.
One small handler for each type of event, block and delta; what has none is kept as it came (blocks
and what belongs to them) or says nothing (events). Not here: how blocks and calls add up
(`answer`), formats that carry these events (`anthropic`, `claude_code`).

A response may hold several messages one behind the other (a fallback, code execution that calls
tools): they are one answer. Block indices start again with each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from definitions.providers.answer import Answer
from definitions.providers.blocks import Block, CallBlock, RawBlock, TextBlock, blocks_of
from definitions.providers.outcome import RanBy
from definitions.providers.reading import array, is_object, mapping, natural, plain, text
from definitions.providers.witnesses import as_text

__all__ = ["MessageEvents"]

_STOP_REASONS = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "refusal": "refusal",
}
_CALL, _RAN_BY_PROVIDER, _RESULT = "tool_use", "_tool_use", "_tool_result"
_MODELLED = frozenset({"id", "name", "input"})
_USAGE = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
}

_OnEvent = Callable[["MessageEvents", Mapping[str, Any]], None]
_OnBlock = Callable[["MessageEvents", Mapping[str, Any]], Block]
_OnDelta = Callable[["MessageEvents", Block, Mapping[str, Any]], None]


class MessageEvents:
    """Reads `message_start` … `message_stop`, or one whole message that was not streamed."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self._open: dict[Any, Block] = {}
        self._inputs: dict[int, str | None] = {}
        self._usage: dict[str, Any] = {}

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        """Take one event; `event` is its type when it does not say so itself."""
        kind = chunk.get("type")
        handler = self._EVENTS.get((isinstance(kind, str) and kind) or event or "")
        if handler is not None:
            handler(self, chunk)
        elif is_object(chunk.get("error")):
            self._on_error(chunk)

    # -- events ----------------------------------------------------------------------------

    def _on_message_start(self, chunk: Mapping[str, Any]) -> None:
        self._read_message(mapping(chunk, "message"))

    def _on_message(self, chunk: Mapping[str, Any]) -> None:
        self._read_message(chunk)
        self.answer.end()

    def _read_message(self, message: Mapping[str, Any]) -> None:
        self._open = {}
        self.answer.goes_on()
        self.answer.name(message_id=message.get("id"), model=message.get("model"))
        self._count(message.get("usage"))
        for block in array(message.get("content")):
            if is_object(block):
                self._close(self._begin(block))
        self._stop(message)

    def _on_block_start(self, chunk: Mapping[str, Any]) -> None:
        block = mapping(chunk, "content_block")
        self._open.pop(_index(chunk), None)
        if block:
            self._open[_index(chunk)] = self._begin(block)

    def _on_block_delta(self, chunk: Mapping[str, Any]) -> None:
        delta = mapping(chunk, "delta")
        kind = text(delta.get("type"))
        index = _index(chunk)
        block = self._open.get(index)
        if block is None:  # its start was lost, or never sent
            if kind not in self._OPENED_BY:
                return
            block = self._open[index] = self._begin(self._OPENED_BY[kind])
        handler = self._DELTAS.get(kind)
        if handler is not None:
            handler(self, block, delta)
        elif isinstance(block, RawBlock):
            block.deltas.append(plain(delta))

    def _on_block_stop(self, chunk: Mapping[str, Any]) -> None:
        block = self._open.get(_index(chunk))
        if block is not None:
            self._close(block)

    def _on_message_delta(self, chunk: Mapping[str, Any]) -> None:
        delta = mapping(chunk, "delta")
        self._stop(delta)
        self.answer.name(container=delta.get("container"))
        self._count(chunk.get("usage"))

    def _on_message_stop(self, _chunk: Mapping[str, Any]) -> None:
        self.answer.end()

    def _on_error(self, chunk: Mapping[str, Any]) -> None:
        self.answer.fail(chunk.get("error"))

    def _stop(self, told: Mapping[str, Any]) -> None:
        reason = text(told.get("stop_reason"))
        if reason:
            self.answer.stop(_STOP_REASONS.get(reason, "other"), reason)

    def _count(self, usage: object) -> None:
        """Take cumulative counts: what a later event does not name stays."""
        if not is_object(usage) or not usage:
            return
        self._usage |= {text(name): plain(told) for name, told in usage.items() if told is not None}
        told = {ours: natural(self._usage.get(theirs)) for ours, theirs in _USAGE.items()}
        details = mapping(self._usage, "output_tokens_details")
        told["reasoning_tokens"] = natural(details.get("thinking_tokens"))
        self.answer.count(told, self._usage)

    # -- blocks ----------------------------------------------------------------------------

    def _begin(self, block: Mapping[str, Any]) -> Block:
        kind = text(block.get("type"))
        opener = self._BLOCKS.get(kind)
        if opener is not None:
            return opener(self, block)
        if kind == _CALL or kind.endswith(_RAN_BY_PROVIDER):
            return self._begin_call(block, "host" if kind == _CALL else "provider")
        if kind.endswith(_RESULT) and text(block.get("tool_use_id")):
            return self._begin_result(block)
        return self.answer.keep(block)

    def _begin_text(self, block: Mapping[str, Any]) -> Block:
        opened = self.answer.open_text()
        self.answer.say(opened, block.get("text"))
        for citation in array(block.get("citations")):
            _cite(opened, citation)
        return opened

    def _begin_thinking(self, block: Mapping[str, Any]) -> Block:
        opened = self.answer.open_text("reasoning")
        self.answer.say(opened, block.get("thinking"))
        _sign(opened, block.get("signature"))
        return opened

    def _begin_call(self, block: Mapping[str, Any], ran_by: RanBy) -> Block:
        call = self.answer.open_call(
            hint=block.get("id"),
            name=block.get("name"),
            parent=mapping(block, "caller").get("tool_id"),
            ran_by=ran_by,
        )
        more = {name: value for name, value in block.items() if name not in _MODELLED}
        if ran_by == "provider" or more.keys() != {"type"}:
            call.extra["raw"] = plain(more)
        # `{}` stands there before the pieces come, and says nothing (from PHP it is `[]`).
        if block.get("input") not in (None, {}, [], ""):
            self._inputs[call.number] = as_text(block["input"])
        return call

    def _begin_result(self, block: Mapping[str, Any]) -> Block:
        content = block.get("content")
        code = text(mapping(content).get("type"))
        is_error = block.get("is_error") is True or code.endswith("_error")
        shown = blocks_of([content] if is_object(content) else content)
        hint = block.get("tool_use_id")
        return self.answer.keep_result(hint, block, shown, is_error=is_error)

    def _close(self, block: Block) -> None:
        if isinstance(block, CallBlock):
            # Beside pieces it is one more witness; alone it is all there is.
            self.answer.argue_whole(block, self._inputs.pop(block.number, None))
        self.answer.close(block)

    # -- deltas ----------------------------------------------------------------------------

    def _on_text(self, block: Block, delta: Mapping[str, Any]) -> None:
        if isinstance(block, TextBlock):
            self.answer.say(block, delta.get("text"))

    def _on_thinking(self, block: Block, delta: Mapping[str, Any]) -> None:
        if isinstance(block, TextBlock):
            self.answer.say(block, delta.get("thinking"))

    def _on_signature(self, block: Block, delta: Mapping[str, Any]) -> None:
        _sign(block, delta.get("signature"))

    def _on_citation(self, block: Block, delta: Mapping[str, Any]) -> None:
        _cite(block, delta.get("citation"))

    def _on_input(self, block: Block, delta: Mapping[str, Any]) -> None:
        if isinstance(block, CallBlock):
            self.answer.argue(block, delta.get("partial_json"))

    def _on_compaction(self, block: Block, delta: Mapping[str, Any]) -> None:
        """A summary comes in pieces; what else its deltas name is the newest."""
        if not isinstance(block, RawBlock):
            return
        for name, value in delta.items():
            if name == "content" and isinstance(value, str):
                block.grow(name, value)
            elif name != "type" and value is not None:
                block.raw[text(name)] = plain(value)

    _EVENTS: ClassVar[Mapping[str, _OnEvent]] = {
        "message_start": _on_message_start,
        "content_block_start": _on_block_start,
        "content_block_delta": _on_block_delta,
        "content_block_stop": _on_block_stop,
        "message_delta": _on_message_delta,
        "message_stop": _on_message_stop,
        "message": _on_message,
        "error": _on_error,
    }
    _BLOCKS: ClassVar[Mapping[str, _OnBlock]] = {
        "text": _begin_text,
        "thinking": _begin_thinking,
    }
    _DELTAS: ClassVar[Mapping[str, _OnDelta]] = {
        "text_delta": _on_text,
        "thinking_delta": _on_thinking,
        "signature_delta": _on_signature,
        "citations_delta": _on_citation,
        "input_json_delta": _on_input,
        "compaction_delta": _on_compaction,
    }
    # What a delta says of a block whose start nobody sent.
    _OPENED_BY: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "text_delta": {"type": "text"},
        "thinking_delta": {"type": "thinking"},
        "input_json_delta": {"type": "tool_use"},
    }


def _index(chunk: Mapping[str, Any]) -> Any:
    """Give the index of a block; none at all is a place of its own."""
    index = chunk.get("index")
    return index if type(index) in (int, str) else None


def _sign(block: Block, value: object) -> None:
    """Add to a signature, which may come in pieces."""
    if isinstance(block, TextBlock) and text(value):
        block.extra["signature"] = block.extra.get("signature", "") + text(value)


def _cite(block: Block, value: object) -> None:
    if isinstance(block, TextBlock) and value is not None:
        block.extra.setdefault("citations", []).append(plain(value))
