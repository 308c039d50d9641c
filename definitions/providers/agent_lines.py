"""What an agent prints, one JSON value a line: bytes or text cut anywhere -> decoded values.

Not here: what a value means (each agent's adapter), streams of model answers (`framing`).
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

__all__ = ["AgentLines"]


class AgentLines:
    """The values of one stream, in order. Memory: the line at hand."""

    def __init__(self) -> None:
        self._held: list[bytes] = []

    def take(self, given: object) -> list[Any]:
        """Give the values that are whole now.

        Takes bytes or text, cut anywhere; a whole object needs no line break behind it. A value
        that is decoded already is given as it is. A line that is no JSON is given as its text.
        """
        if isinstance(given, str):
            given = given.encode("utf-8", "surrogatepass")
        if not isinstance(given, (bytes, bytearray, memoryview)):
            return list(given) if isinstance(given, (list, tuple)) else [given]
        *lines, rest = bytes(given).split(b"\n")
        found = []
        for line in lines:
            found += _values(b"".join([*self._held, line]))
            self._held = []
        if rest:
            found += self._alone(rest)
        return found

    def rest(self) -> list[Any]:
        """Nothing follows: give what the last line holds."""
        held, self._held = b"".join(self._held), []
        return _values(held)

    def _alone(self, rest: bytes) -> list[Any]:
        """Take what has no line break yet: many give lines without it."""
        if not self._held and rest[:1] == b"{" and rest.rstrip()[-1:] == b"}":
            value = _decoded(rest)
            if isinstance(value, dict):
                return [value]
        self._held.append(rest)
        return []


def _values(line: bytes) -> list[Any]:
    return [_decoded(line)] if line.strip() else []


def _decoded(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        said = line.decode("utf-8", "replace")
    try:
        return json.loads(said)
    except (ValueError, RecursionError):
        return said.strip()
