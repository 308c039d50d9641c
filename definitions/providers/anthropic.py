"""Anthropic Messages: the stream of one response, as the API sends it or as its SDK gives it.

Not here: what its events mean (`message_events`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from definitions.providers.adapter import Adapter
from definitions.providers.message_events import MessageEvents

__all__ = ["Anthropic"]


class Anthropic(Adapter):
    """Reads a Messages stream, or one whole message."""

    provider = "anthropic"

    def __init__(self, **envelope: Any) -> None:
        super().__init__(**envelope)
        self._events = MessageEvents(self.answer)

    def take(self, chunk: Mapping[str, Any], event: str | None) -> None:
        self._events.take(chunk, event)
