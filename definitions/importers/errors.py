"""What an importer raises when it cannot read a file.

Here lives the one error of all importers. Not here: what each format looks like.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["ImportFault"]

_LONGEST = 60


class ImportFault(ValueError):  # noqa: N818 - a fault of the file, not of this library
    """A file is not what its importer reads: one line with the file, the line and the field.

    `line` counts from 1. `got` is what was there instead, shortened in the message; leave it out
    where it says nothing.
    """

    def __init__(self, file: str, line: int, field: str, expected: str, got: Any = ...) -> None:
        found = "" if got is ... else f", got {_shown(got)}"
        super().__init__(f"{file}:{line}: {field}: expected {expected}{found}")
        self.file = file
        self.line = line
        self.field = field
        self.expected = expected


def _shown(value: Any) -> str:
    """Show a value on one line: JSON has no raw line end, and a long text is cut."""
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
