"""The messages to send back to the model, from the same Contexts that the views show.

A backend keeps one history, not two: `model_context(assembler, "anthropic")` gives what goes into
the request. Each format is one file, and none knows another; all read the same repaired list of
turns (`history`). Not here: the system prompt, tools and settings of a request, and sending it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from assembler.engine.assembler import Assembler
from assembler.engine.errors import InputError
from definitions.model_context.anthropic import anthropic_messages
from definitions.model_context.gemini import gemini_contents
from definitions.model_context.history import IncompleteHistoryError, turns_of
from definitions.model_context.openai_chat import openai_chat_messages
from definitions.model_context.openai_responses import openai_responses_input
from definitions.model_context.turns import Turn

__all__ = ["FORMATS", "IncompleteHistoryError", "model_context"]

FORMATS: Mapping[str, Callable[[list[Turn]], list[dict[str, Any]]]] = MappingProxyType(
    {
        "anthropic": anthropic_messages,
        "openai_chat": openai_chat_messages,
        "openai_responses": openai_responses_input,
        "gemini": gemini_contents,
    }
)
"""By the names of the adapters that read their answers."""


def model_context(assembler: Assembler, format: str) -> list[dict[str, Any]]:
    """Give the history of a conversation as plain JSON that a provider's API takes.

    `format` is one of `anthropic` (`messages`), `openai_chat` (`messages`), `openai_responses`
    (`input`), `gemini` (`contents` of the REST API). Durable facts alone: every call has its result
    directly behind it, or a sentence in its place; what a compaction summarised is its summary.
    What a provider signed goes back to that provider alone.

    Raises `InputError` for another format, `IncompleteHistoryError` when the window does not reach
    back far enough. O(loaded).
    """
    spell = FORMATS.get(format)
    if spell is None:
        raise InputError(f"format: expected one of {', '.join(FORMATS)}, got {format!r}")
    return spell(turns_of(assembler))
