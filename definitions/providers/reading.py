"""Reading what providers send: a field of the wrong type is a field that is not there.

Tolerant readers of decoded JSON, and text that never ends in half a character. Nothing here raises
for any value. Not here: bytes (`framing`), and what a field means (the adapters).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from assembler.engine.errors import AssemblerError
from assembler.engine.values import INT_BITS_MAX, Json, freeze

__all__ = ["Halves", "array", "is_object", "mapping", "natural", "plain", "text", "whole"]

_RAW_DEPTH_MAX = 150
"""How deep what we keep unread may be: the message around it has levels of its own."""

_NOTHING: Mapping[str, Any] = {}


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether it is a JSON object."""
    # A dict is asked for first: the question for a Mapping costs ten times as much.
    return type(value) is dict or (value is not None and isinstance(value, Mapping))


def mapping(value: object, *path: str) -> Mapping[str, Any]:
    """Give the object at the end of a path of fields; an empty one when there is none."""
    for name in path:
        if type(value) is dict:  # as in `is_object`, without the call
            value = value.get(name)
        else:
            value = value.get(name) if is_object(value) else None
    return value if type(value) is dict or is_object(value) else _NOTHING


def array(value: object) -> Iterable[Any]:
    """Give the elements of an array; none when it is something else."""
    return value if isinstance(value, (list, tuple)) else ()


def text(value: object) -> str:
    """Give a text, its surrogates made whole; empty when it is something else."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else whole(value)


def natural(value: object) -> int | None:
    """Give a number that counts something; None when it is something else."""
    return value if type(value) is int and 0 <= value < 1 << 53 else None


def whole(value: str) -> str:
    """Join halves of surrogate pairs; a half that stays alone becomes U+FFFD."""
    try:
        value.encode()  # several times quicker than to search it
    except UnicodeEncodeError:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


class Halves:
    """A text that comes in fragments: half a surrogate pair at the end waits for the other half."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def take(self, fragment: str) -> str:
        """Give what can be shown now."""
        if not self._held and fragment.isascii():
            return fragment
        value = self._held + fragment
        self._held = value[-1:] if "\ud800" <= value[-1:] <= "\udbff" else ""
        return whole(value[:-1] if self._held else value)

    def rest(self) -> str:
        """Nothing follows: give what waited."""
        held, self._held = self._held, ""
        return whole(held)


def plain(value: Any) -> Json:
    """Freeze what we keep unread. What JSON or UTF-8 cannot carry is replaced, and nothing else.

    A lone surrogate becomes U+FFFD, a number that is none null, an endless one its digits as text;
    what is deeper than 150 levels becomes null. Linear in the value.
    """
    try:
        return freeze(value, _RAW_DEPTH_MAX)
    except AssemblerError:
        return freeze(_mended(value, _RAW_DEPTH_MAX), _RAW_DEPTH_MAX)


def _mended(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= INT_BITS_MAX else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth <= 1:
        return None
    if isinstance(value, Mapping):
        return {whole(str(key)): _mended(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mended(item, depth - 1) for item in value]
    return None
