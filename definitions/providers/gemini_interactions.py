"""Gemini Interactions: the stream of one interaction, or a whole one.

https://ai.google.dev/api/interactions-api ; field names as in the SDK `google-genai` 3.6. A step
begins, its deltas come, it stops. Steps that we do not model are kept as they came, with their
deltas. Not here: `generateContent` (`gemini`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from definitions.providers.adapter import Adapter
from definitions.providers.blocks import Block, CallBlock, RawBlock, TextBlock, blocks_of
from definitions.providers.reading import array, is_object, mapping, natural, plain, text

__all__ = ["GeminiInteractions"]

_STOP_REASONS = {
    "completed": "end_turn",
    "requires_action": "tool_use",
    "requires_continuation": "pause",
    "incomplete": "length",
}
_FAILURES = frozenset({"failed", "cancelled", "budget_exceeded"})
_USAGE = {
    "cache_read_tokens": "total_cached_tokens",
    "reasoning_tokens": "total_thought_tokens",
}
_HOST_CALL, _CALL, _RESULT = "function_call", "_call", "_result"

_OnEvent = Callable[["GeminiInteractions", Mapping[str, Any]], None]
_OnDelta = Callable[["GeminiInteractions", "Step", Mapping[str, Any]], None]


class Step:
    """One step: what was said of it, and the newest block that it has."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = dict(raw)
        self.type = text(raw.get("type"))
        self.block: Block | None = None


class GeminiInteractions(Adapter):
    """Reads `interaction.created` … `interaction.completed`, or one whole interaction."""

    provider = "gemini_interactions"

    def __init__(self, **envelope: Any) -> None:
        super().__init__(**envelope)
        self._steps: dict[int | None, Step] = {}

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        kind = text(chunk.get("event_type")) or event or ""
        handler = self._EVENTS.get(kind)
        if handler is not None:
            handler(self, chunk)
        elif chunk.get("object") == "interaction":
            self._on_whole(chunk)
        elif is_object(chunk.get("error")):
            self._on_error(chunk)

    # -- events ----------------------------------------------------------------------------

    def _on_created(self, chunk: Mapping[str, Any]) -> None:
        interaction = mapping(chunk, "interaction")
        self.answer.name(message_id=interaction.get("id"), model=interaction.get("model"))

    def _on_status(self, chunk: Mapping[str, Any]) -> None:
        if text(chunk.get("status")) in _FAILURES:
            self.answer.fail({"code": text(chunk.get("status"))})

    def _on_completed(self, chunk: Mapping[str, Any]) -> None:
        interaction = mapping(chunk, "interaction")
        self._on_created(chunk)
        self._count(mapping(interaction, "usage"))
        status = text(interaction.get("status"))
        if status in _FAILURES:
            errors = [*array(interaction.get("errors"))]
            self.answer.fail(errors[0] if errors else {"code": status})
        elif status in _STOP_REASONS:
            self.answer.stop(_STOP_REASONS[status], status)
            self.answer.end()

    def _on_whole(self, interaction: Mapping[str, Any]) -> None:
        for step in array(interaction.get("steps")):
            if is_object(step) and step.get("type") != "user_input":
                self._close(self._begin(step))
        self._on_completed({"interaction": interaction})

    def _on_error(self, chunk: Mapping[str, Any]) -> None:
        self.answer.fail(chunk.get("error"))

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Thoughts are counted beside the answer, and what tools read beside the prompt."""
        if not usage:
            return
        told = {name: natural(value) for name, value in usage.items()}
        counts = {ours: told.get(theirs) for ours, theirs in _USAGE.items()}
        for name, parts in (
            ("input_tokens", ("total_input_tokens", "total_tool_use_tokens")),
            ("output_tokens", ("total_output_tokens", "total_thought_tokens")),
        ):
            known = [number for number in map(told.get, parts) if number is not None]
            counts[name] = sum(known) if known else None
        self.answer.count(counts, usage)

    def _on_step_start(self, chunk: Mapping[str, Any]) -> None:
        step = mapping(chunk, "step")
        self._steps.pop(natural(chunk.get("index")), None)
        if step:
            self._steps[natural(chunk.get("index"))] = self._begin(step)

    def _on_step_delta(self, chunk: Mapping[str, Any]) -> None:
        delta = mapping(chunk, "delta")
        kind = text(delta.get("type"))
        step = self._steps.get(natural(chunk.get("index")))
        if step is None:  # its start was lost
            if kind not in self._OPENED_BY:
                return
            step = self._begin({"type": self._OPENED_BY[kind]})
            self._steps[natural(chunk.get("index"))] = step
        handler = self._DELTAS.get(kind)
        if handler is not None:
            handler(self, step, delta)
        elif kind == step.type:
            step.raw |= delta
        elif isinstance(step.block, RawBlock):
            step.block.deltas.append(plain(delta))

    def _on_step_stop(self, chunk: Mapping[str, Any]) -> None:
        step = self._steps.pop(natural(chunk.get("index")), None)
        if step is not None:
            self._close(step)

    # -- steps -----------------------------------------------------------------------------

    def _begin(self, raw: Mapping[str, Any]) -> Step:
        step = Step(raw)
        if step.type == "thought":
            step.block = self.answer.open_text("reasoning")
            for content in array(raw.get("summary")):
                self._on_summary(step, {"content": content})
            self._on_signature(step, raw)
        elif step.type == "model_output":
            for content in array(raw.get("content")):
                if is_object(content):
                    self._on_content(step, content)
            if is_object(raw.get("error")):
                self.answer.fail(raw["error"])
        elif step.type.endswith(_CALL):
            self._begin_call(step)
        elif not step.type.endswith(_RESULT):
            step.block = self.answer.keep(raw)
        return step

    def _begin_call(self, step: Step) -> None:
        is_host = step.type == _HOST_CALL
        name = text(step.raw.get("name")) or ("" if is_host else step.type.removesuffix(_CALL))
        step.block = self.answer.open_call(
            hint=step.raw.get("id"), name=name, ran_by="host" if is_host else "provider"
        )

    def _close(self, step: Step) -> None:
        block = step.block
        if isinstance(block, CallBlock):
            if step.raw.get("arguments"):  # `{}` stands there before the pieces come
                self.answer.argue_whole(block, step.raw["arguments"])
            told = ("id", "name", "arguments")
            block.extra["raw"] = plain(
                {name: step.raw[name] for name in step.raw if name not in told}
            )
        elif step.type.endswith(_RESULT):
            result = step.raw.get("result")
            shown = blocks_of(result if isinstance(result, (str, list, tuple)) else [result])
            is_error = step.raw.get("is_error") is True
            hint = step.raw.get("call_id")
            block = self.answer.keep_result(hint, step.raw, shown, is_error=is_error)
        if block is not None:
            self.answer.close(block)

    # -- deltas ----------------------------------------------------------------------------

    def _on_summary(self, step: Step, delta: Mapping[str, Any]) -> None:
        if isinstance(step.block, TextBlock):
            self.answer.say(step.block, mapping(delta, "content").get("text"))

    def _on_signature(self, step: Step, delta: Mapping[str, Any]) -> None:
        signature = text(delta.get("signature"))
        if isinstance(step.block, TextBlock) and signature:
            step.block.extra["signature"] = step.block.extra.get("signature", "") + signature

    def _on_arguments(self, step: Step, delta: Mapping[str, Any]) -> None:
        if isinstance(step.block, CallBlock):
            self.answer.argue(step.block, delta.get("arguments"))

    def _on_text(self, step: Step, delta: Mapping[str, Any]) -> None:
        if step.type == "model_output" and text(delta.get("text")):
            self.answer.say(self._text_of(step), delta["text"])

    def _on_citations(self, step: Step, delta: Mapping[str, Any]) -> None:
        citations = [plain(each) for each in array(delta.get("annotations"))]
        if step.type == "model_output" and citations:
            self._text_of(step).extra.setdefault("citations", []).extend(citations)

    def _text_of(self, step: Step) -> TextBlock:
        if not isinstance(step.block, TextBlock):
            step.block = self.answer.open_text()
        return step.block

    def _on_file(self, step: Step, delta: Mapping[str, Any]) -> None:
        """Take a picture, a sound, a document of the answer."""
        if step.type == "model_output":
            if isinstance(step.block, TextBlock):
                self.answer.close(step.block)
            place = {"data": delta.get("data"), "url": delta.get("uri")}
            step.block = self.answer.attach(delta.get("mime_type"), **place)

    def _on_content(self, step: Step, content: Mapping[str, Any]) -> None:
        """Take a content of a step that stands there whole."""
        handler = self._DELTAS.get(text(content.get("type")))
        if handler is not None:
            handler(self, step, content)
            self._on_citations(step, content)
        else:
            self.answer.close(self.answer.keep(content))

    _EVENTS: ClassVar[Mapping[str, _OnEvent]] = {
        "interaction.created": _on_created,
        "interaction.status_update": _on_status,
        "interaction.completed": _on_completed,
        "step.start": _on_step_start,
        "step.delta": _on_step_delta,
        "step.stop": _on_step_stop,
        "error": _on_error,
    }
    _DELTAS: ClassVar[Mapping[str, _OnDelta]] = {
        "text": _on_text,
        "text_annotation_delta": _on_citations,
        "thought_summary": _on_summary,
        "thought_signature": _on_signature,
        "arguments_delta": _on_arguments,
        "image": _on_file,
        "audio": _on_file,
        "video": _on_file,
        "document": _on_file,
    }
    # What a delta says of a step whose start nobody sent.
    _OPENED_BY: ClassVar[Mapping[str, str]] = {
        "text": "model_output",
        "thought_summary": "thought",
        "arguments_delta": _HOST_CALL,
    }
