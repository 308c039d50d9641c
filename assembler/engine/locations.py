"""Turn and step: where an item belongs, and whether that place is still open.

Values only. How they are found is `timeline`.
"""

from __future__ import annotations

import enum

from msgspec import Struct

__all__ = ["SESSION", "TURN_END", "UNRESOLVED", "Floor", "Location", "Status"]

TURN_END = 1 << 62
"""A step behind every step: `(turn, TURN_END)` closed means that the whole turn is closed."""

Floor = tuple[int, int]
"""The highest `(turn, step)` known closed; everything at or below it is closed too."""


class Status(enum.Enum):
    """Whether a turn or step is known to go on, known to be over, or neither."""

    OPEN = "open"
    CLOSED = "closed"
    UNKNOWN = "unknown"


class Location(Struct, frozen=True, gc=False):
    """Where an item belongs.

    `turn` and `step` are numbers or None. `resolved` is False while older history that is not
    loaded decides it. No turn and resolved: the conversation itself.
    """

    turn: int | None
    step: int | None
    resolved: bool = True

    @property
    def kind(self) -> str:
        """One of `session`, `turn`, `step`, `unresolved`."""
        if not self.resolved:
            return "unresolved"
        if self.turn is None:
            return "session"
        return "turn" if self.step is None else "step"


SESSION = Location(None, None)
UNRESOLVED = Location(None, None, resolved=False)
