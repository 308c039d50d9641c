"""Attempts that are given up by name, in favour of another try or another model.

For now only that: `retires` tells the engine which attempt an `llm/retry` or `llm/fallback` gives
up. Nothing matches and nothing is shown; the Node of kind `retry` comes with later work.
"""

from __future__ import annotations

from assembler.engine.definition import Definition, Role
from assembler.engine.events import Event
from definitions.events import named

__all__ = ["Retry"]


class Retry(Definition):
    """Gives up attempts; shows nothing yet."""

    kind = "retry"
    takes = frozenset({"llm/retry", "llm/fallback"})

    def match(self, item: Event) -> tuple[str, Role] | None:
        """Take nothing: a Context would only wait for a Node that does not exist yet."""
        return None

    def retires(self, event: Event) -> str | None:
        return named(event.data, "attempt")
