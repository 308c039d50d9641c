"""Gemini: the stream of `generateContent`, as the API, Vertex AI or their SDK gives it.

https://ai.google.dev/api/generate-content ; field names as in the SDK `google-genai` 3.6. A chunk
holds parts of one candidate; blocks have no ends, and a call mostly has no id. What no part of the
table reads is kept as it came. Not here: arguments at JSON paths (`value_paths`), the Interactions
API (`gemini_interactions`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from definitions.providers.adapter import Adapter
from definitions.providers.blocks import CallBlock, RawBlock, TextBlock, blocks_of
from definitions.providers.reading import array, is_object, mapping, natural, plain, text
from definitions.providers.value_paths import ValuePaths

__all__ = ["Gemini"]

_STOP_REASONS = {
    "STOP": "end_turn",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
}
"""All others (`MALFORMED_FUNCTION_CALL`, `UNEXPECTED_TOOL_CALL`, `OTHER`, …) are failures."""

_SOURCES = ("groundingMetadata", "citationMetadata", "urlContextMetadata")
_SOURCES_ALL = frozenset(_SOURCES)
_SIGNATURE = "thoughtSignature"

_OnPart = Callable[["Gemini", Mapping[str, Any]], None]


class Gemini(Adapter):
    """Reads a stream of chunks; one chunk may be the whole response."""

    provider = "gemini"

    def __init__(self, **envelope: Any) -> None:
        super().__init__(**envelope)
        self._usage: dict[str, Any] = {}
        self._call: CallBlock | None = None
        self._paths: ValuePaths | None = None
        self._ran: CallBlock | None = None
        self._sources: RawBlock | None = None
        self._reason = ""

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        if is_object(chunk.get("error")):
            self.answer.fail(chunk["error"])
        self.answer.name(message_id=chunk.get("responseId"), model=chunk.get("modelVersion"))
        for candidate in array(chunk.get("candidates")):
            if is_object(candidate) and natural(candidate.get("index")) in (None, 0):
                self._on_candidate(candidate)
        self._count(mapping(chunk, "usageMetadata"))
        blocked = text(mapping(chunk, "promptFeedback").get("blockReason"))
        if blocked:
            self.answer.stop("content_filter", blocked)
            self.answer.end()

    def _on_candidate(self, candidate: Mapping[str, Any]) -> None:
        for part in array(mapping(candidate, "content").get("parts")):
            if is_object(part):
                self._on_part(part)
        comes_late = self._keep_sources(candidate)
        reason = text(candidate.get("finishReason"))
        if reason or comes_late:
            self._stop(reason or self._reason, candidate.get("finishMessage"))

    def _stop(self, reason: str, message: object) -> None:
        self._reason = reason
        ours = _STOP_REASONS.get(reason)
        if ours is None:
            self.answer.fail({"code": reason, "message": text(message)})
            return
        self.answer.stop(ours, reason)
        self.answer.end()

    def _keep_sources(self, candidate: Mapping[str, Any]) -> bool:
        """Keep what the answer rests on: the last of each kind. Says whether it was at its end."""
        if _SOURCES_ALL.isdisjoint(candidate):
            return False
        told = {name: candidate[name] for name in _SOURCES if is_object(candidate.get(name))}
        if not told:
            return False
        if self._sources is not None:
            self._sources.raw.update({name: plain(value) for name, value in told.items()})
            return False
        was_over = self.answer.ended
        self._sources = self.answer.keep(told)
        return was_over

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Take cumulative counts: what a later chunk does not name stays.

        Thoughts are counted beside the answer, and what tools read beside the prompt.
        """
        if not usage:
            return
        self._usage |= {text(name): plain(told) for name, told in usage.items() if told is not None}
        told = {name: natural(value) for name, value in self._usage.items()}
        counts = {
            "input_tokens": _sum(told, "promptTokenCount", "toolUsePromptTokenCount"),
            "output_tokens": _sum(told, "candidatesTokenCount", "thoughtsTokenCount"),
            "cache_read_tokens": told.get("cachedContentTokenCount"),
            "reasoning_tokens": told.get("thoughtsTokenCount"),
        }
        self.answer.count(counts, self._usage)

    # -- parts -----------------------------------------------------------------------------

    def _on_part(self, part: Mapping[str, Any]) -> None:
        told = [field for field in part if field in self._PARTS and part[field] is not None]
        if told:
            first = told[0] if len(told) == 1 else next(filter(told.__contains__, self._PARTS))
            self._PARTS[first](self, part)
        elif part.keys() - {_SIGNATURE, "thought"}:
            self.answer.close(self.answer.keep(part))
        else:
            self._on_text(part)

    def _on_text(self, part: Mapping[str, Any]) -> None:
        """Add text; with a signature its block ends. One that has no text signs what was said."""
        kind = "reasoning" if part.get("thought") is True else "text"
        self.answer.flow(part.get("text"), kind)
        signature = text(part.get(_SIGNATURE))
        if not signature:
            return
        last = self.answer.blocks[-1] if self.answer.blocks else None
        if not (isinstance(last, TextBlock) and last.type == kind and not last.closed):
            last = self.answer.open_text(kind)
        last.extra["signature"] = signature
        self.answer.close(last)

    def _on_call(self, part: Mapping[str, Any]) -> None:
        told = part["functionCall"]
        call = self._call_of(told) if is_object(told) else self._call
        if call is None:
            return
        if not is_object(told):  # a piece of it that nobody can read
            self._write({"partialArgs": None}, call)
            return
        _sign(call, part)
        if told.get("args") not in (None, {}, ""):
            self.answer.argue_whole(call, told["args"])
        if "partialArgs" in told:
            self._write(told, call)
        if told.get("willContinue") is not True:
            self._close_call(call)

    def _write(self, told: Mapping[str, Any], call: CallBlock) -> None:
        values = told.get("partialArgs")
        self._paths = self._paths or ValuePaths()
        for value in values if isinstance(values, (list, tuple)) else [values]:
            self.answer.argue(call, self._paths.take(value if is_object(value) else {}))

    def _call_of(self, told: Mapping[str, Any]) -> CallBlock:
        """Find the call that this is a piece of, or begin it.

        Pieces that follow have neither id nor name, or the id of the call.
        """
        hint, name = text(told.get("id")), text(told.get("name"))
        if self._call is not None and (hint == self._call.hint if hint else not name):
            return self._call
        self._call, self._paths = self.answer.open_call(hint=hint, name=name), None
        return self._call

    def _close_call(self, call: CallBlock) -> None:
        paths, self._call, self._paths = self._paths, None, None
        if paths is not None:
            self.answer.argue(call, paths.rest())
            if paths.is_broken:
                return  # nobody knows what its arguments are: it stays open
            if not paths.is_in_order:
                self.answer.argue_instead(call, paths.value)
        self.answer.close(call)

    def _on_code(self, part: Mapping[str, Any]) -> None:
        told = mapping(part, "executableCode")
        arguments = {name: told[name] for name in ("language", "code") if name in told}
        self._run(part, told.get("id"), "code_execution", arguments)

    def _on_code_result(self, part: Mapping[str, Any]) -> None:
        told = mapping(part, "codeExecutionResult")
        is_error = text(told.get("outcome")) not in ("", "OUTCOME_OK")
        self._result(part, told.get("id"), told.get("output") or "", is_error=is_error)

    def _on_tool(self, part: Mapping[str, Any]) -> None:
        told = mapping(part, "toolCall")
        name = text(told.get("toolType")).lower() or "tool"
        self._run(part, told.get("id"), name, told.get("args"))

    def _on_tool_result(self, part: Mapping[str, Any]) -> None:
        told = mapping(part, "toolResponse")
        response = told.get("response")
        self._result(part, told.get("id"), [] if response is None else [response], is_error=False)

    def _run(self, part: Mapping[str, Any], hint: object, name: str, arguments: object) -> None:
        """Take a call that the provider runs."""
        call = self._ran = self.answer.open_call(hint=hint, name=name, ran_by="provider")
        self.answer.own_id(call)
        self.answer.argue_whole(call, arguments)
        _sign(call, part)
        self.answer.close(call)

    def _result(
        self, part: Mapping[str, Any], hint: object, content: object, *, is_error: bool
    ) -> None:
        asked, self._ran = self._ran, None
        named = text(hint) or (asked and (asked.id or asked.hint))
        if named:
            shown = blocks_of(content)
            self.answer.close(self.answer.keep_result(named, part, shown, is_error=is_error))
        else:
            self.answer.close(self.answer.keep(part))

    def _on_data(self, part: Mapping[str, Any]) -> None:
        told = mapping(part, "inlineData")
        self._attach(part, told.get("mimeType"), data=told.get("data"))

    def _on_file(self, part: Mapping[str, Any]) -> None:
        told = mapping(part, "fileData")
        self._attach(part, told.get("mimeType"), url=told.get("fileUri"))

    def _attach(self, part: Mapping[str, Any], media_type: object, **place: object) -> None:
        if part.get("thought") is True or not all(map(text, place.values())):
            self.answer.close(self.answer.keep(part))
        else:
            self.answer.attach(media_type, **place, signature=part.get(_SIGNATURE))

    _PARTS: ClassVar[Mapping[str, _OnPart]] = {
        "functionCall": _on_call,
        "executableCode": _on_code,
        "codeExecutionResult": _on_code_result,
        "toolCall": _on_tool,
        "toolResponse": _on_tool_result,
        "inlineData": _on_data,
        "fileData": _on_file,
        "text": _on_text,
    }


def _sign(call: CallBlock, part: Mapping[str, Any]) -> None:
    signature = text(part.get(_SIGNATURE))
    if signature:
        call.extra["signature"] = signature


def _sum(counts: Mapping[str, int | None], *names: str) -> int | None:
    known = [number for number in map(counts.get, names) if number is not None]
    return sum(known) if known else None
