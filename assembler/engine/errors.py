"""The error tree: one class for each mistake that a caller can make.

Every error of the library is an `AssemblerError`. What is odd but survivable is an anomaly
(`definition.Anomaly`), never an error.
"""

from __future__ import annotations

__all__ = [
    "AssemblerError",
    "ConflictError",
    "DefinitionError",
    "GapError",
    "InputError",
    "LimitError",
    "RecordingError",
]


class AssemblerError(Exception):
    """Anything that this library raises on purpose."""


class InputError(AssemblerError, ValueError):
    """What was given in is no event, delta, page or JSON value; the message names the field."""


class LimitError(AssemblerError, ValueError):
    """A named limit was reached; the message names it."""


class GapError(AssemblerError):
    """Events `first` to `last` are missing; nothing was taken. Fetch them and try again."""

    def __init__(self, first: int, last: int) -> None:
        missing = f"event {first} is" if first == last else f"events {first} to {last} are"
        super().__init__(f"{missing} missing")
        self.first = first
        self.last = last


class ConflictError(AssemblerError):
    """What was given contradicts what is held, or another writer was quicker.

    `expected` and `actual` are the two values that disagree (for a store: sequence numbers).
    """

    def __init__(self, message: str, expected: object = None, actual: object = None) -> None:
        super().__init__(message)
        self.expected = expected
        self.actual = actual


class DefinitionError(AssemblerError):
    """A Definition broke its contract, or raised under `strict=True` (see `__cause__`)."""


class RecordingError(AssemblerError, ValueError):
    """A recording cannot be read: one line that names the file, the line, the field."""
