"""Ollama's own chat format: JSON lines, each a piece of the message.

https://docs.ollama.com/api/chat . Calls come whole, with arguments as an object, each in one chunk.
Not here: Ollama's compatible endpoint (`openai_chat`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from definitions.providers.adapter import Adapter
from definitions.providers.reading import array, mapping, natural, text

__all__ = ["Ollama"]

_STOP_REASONS = {"stop": "end_turn", "length": "length"}
_COUNTS = {"input_tokens": "prompt_eval_count", "output_tokens": "eval_count"}
_NO_USAGE = frozenset({"message", "model", "created_at", "done", "done_reason"})


class Ollama(Adapter):
    """Reads a stream of `/api/chat`, or one whole answer. `done` ends it, and says why."""

    provider = "ollama"

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        self.answer.name(model=text(chunk.get("model")))
        message = mapping(chunk, "message")
        self.answer.flow(message.get("thinking"), "reasoning")
        self.answer.flow(message.get("content"))
        for entry in array(message.get("tool_calls")):
            self._on_call(mapping(entry))
        if chunk.get("done") is True:
            self._on_done(chunk)
        if chunk.get("error"):
            self.answer.fail(chunk["error"])

    def _on_call(self, entry: Mapping[str, Any]) -> None:
        called = mapping(entry, "function")
        call = self.answer.open_call(hint=entry.get("id"), name=called.get("name"))
        self.answer.argue_whole(call, called.get("arguments"))
        self.answer.close(call)

    def _on_done(self, chunk: Mapping[str, Any]) -> None:
        reason = text(chunk.get("done_reason")) or "stop"  # old servers give none
        counts = {ours: natural(chunk.get(theirs)) for ours, theirs in _COUNTS.items()}
        self.answer.count(
            counts, {name: told for name, told in chunk.items() if name not in _NO_USAGE}
        )
        self.answer.stop(_STOP_REASONS.get(reason, "other"), reason)
        self.answer.end()
