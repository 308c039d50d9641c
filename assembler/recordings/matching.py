"""Where an expected JSON value and a real one differ, with the path to the place.

Two questions: is one value contained in another (`missing_from`), and where are two values not
the same (`first_difference`). Not here: what is compared with what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from assembler.codec import encode, plain
from assembler.engine.values import same

__all__ = ["Difference", "first_difference", "missing_from", "short"]

ANY = "@any"
"""As a pattern: it is there, and not null."""
ABSENT = "@absent"
"""As a pattern: it is not there."""

_SHORT_MAX = 160


class _Nothing:
    """What stands for a value that is not there."""

    def __repr__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()


class Difference(Struct, frozen=True):
    """At `path`, one value was expected and another one found."""

    path: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.path}: expected {short(self.expected)}, got {short(self.got)}"

    def to_json(self) -> dict[str, Any]:
        """Its wire form, with both values whole."""
        return {"path": self.path, "expected": _said(self.expected), "got": _said(self.got)}


def _said(value: Any) -> Any:
    return repr(value) if isinstance(value, _Nothing) else plain(value)


def short(value: Any) -> str:
    """`value` as JSON, cut in its middle when it is long."""
    if isinstance(value, _Nothing):
        return repr(value)
    # A text of many megabytes is cut before it is written, not after.
    text = encode(_clipped(value)).decode()
    if len(text) <= _SHORT_MAX:
        return text
    half = _SHORT_MAX // 2
    return f"{text[:half]} … {text[-half:]}"


def _clipped(value: Any) -> Any:
    text = str(value) if type(value).__name__ == "Text" else value
    if isinstance(text, str) and len(text) > 2 * _SHORT_MAX:
        return text[:_SHORT_MAX] + text[-_SHORT_MAX:]
    return text


def missing_from(value: Any, pattern: Any, path: str = "") -> Iterator[Difference]:
    """Every place where `value` does not hold what `pattern` asks for.

    Objects by subset (but `{}` matches only an empty one), lists by length and element, the rest
    by the one JSON equality; `"@any"` what is there and not null, `"@absent"` what is not there.
    """
    if pattern == ANY:
        if value is _NOTHING or value is None:
            yield Difference(path, pattern, value)
    elif pattern == ABSENT:
        if value is not _NOTHING:
            yield Difference(path, pattern, value)
    elif isinstance(pattern, Mapping) and isinstance(value, Mapping) and pattern:
        for key, wanted in pattern.items():
            yield from missing_from(value.get(key, _NOTHING), wanted, _below(path, key))
    elif _is_list(pattern) and _is_list(value):
        yield from _missing_from_list(value, pattern, path)
    elif value is _NOTHING or not same(pattern, value):
        yield Difference(path, pattern, value)


def _missing_from_list(
    value: Sequence[Any], pattern: Sequence[Any], path: str
) -> Iterator[Difference]:
    if len(value) != len(pattern):
        yield Difference(path, _outline(pattern), _outline(value))
        return
    for place, (item, wanted) in enumerate(zip(value, pattern, strict=True)):
        yield from missing_from(item, wanted, f"{path}[{place}]")


def _outline(items: Sequence[Any]) -> list[Any]:
    """A list in short: keys where its items have them, so that people see which one is too much."""
    return [item.get("key", item) if isinstance(item, Mapping) else item for item in items]


def first_difference(left: Any, right: Any, path: str = "") -> Difference | None:
    """The first place where two JSON values are not the same; None when they are."""
    if same(left, right):
        return None
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in [*left, *(key for key in right if key not in left)]:
            ours, theirs = left.get(key, _NOTHING), right.get(key, _NOTHING)
            if ours is _NOTHING or theirs is _NOTHING:
                return Difference(_below(path, key), ours, theirs)
            found = first_difference(ours, theirs, _below(path, key))
            if found:
                return found
    if _is_list(left) and _is_list(right) and len(left) == len(right):
        for place, (ours, theirs) in enumerate(zip(left, right, strict=True)):
            found = first_difference(ours, theirs, f"{path}[{place}]")
            if found:
                return found
    return Difference(path, left, right)


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))
