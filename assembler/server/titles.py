"""What a conversation is called in a list, by its own events.

Not here: which events say so (the catalog's business), where they come from (`files`, `stored`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["Opening", "Titles"]

Opening = Callable[[str, Mapping[str, Any]], str | None]
"""`opening(type, data)` of an event: the words that a conversation without a title is known by,
if this event has them. The first one that does counts."""

Told = Iterable[tuple[str, Mapping[str, Any]]]


class Titles:
    """`types` are those of events whose `title` is what a conversation is called, `opening` finds
    what it is known by without one."""

    def __init__(self, types: Iterable[str] = (), opening: Opening | None = None) -> None:
        self.types = tuple(types)
        self._opening = opening

    @property
    def has_opening(self) -> bool:
        return self._opening is not None

    def given(self, events: Told) -> str | None:
        """The title that the last of the events gives; None: none does."""
        title = None
        for kind, data in events:
            said = data.get("title") if kind in self.types else None
            title = said if isinstance(said, str) and said else title
        return title

    def opened(self, events: Told) -> str | None:
        """The words by which a conversation is known that begins with these events."""
        if self._opening is None:
            return None
        found = (self._opening(kind, data) for kind, data in events)
        return next((words for words in found if words), None)
