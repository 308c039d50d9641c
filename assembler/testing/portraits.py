"""Portraits: what a value is, down to its leaves, kept so that a later change of it shows.

Two values have equal portraits when nobody can tell them apart: types, fields, elements, texts.
Not here: who is portrayed and when (`watching`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from inspect import isroutine
from types import CellType, CoroutineType, FunctionType, GeneratorType, ModuleType
from typing import Any

from msgspec import Struct

from assembler.engine.values import Object, Text

__all__ = ["Portrait", "Told", "holds", "portrait"]

Portrait = Any
"""Nested tuples of types and leaves: hashable, and holding nothing that can change."""

_LEAVES = frozenset((bool, int, float, str, bytes, type(None), complex))
_ONE_OF_A_KIND = (type, ModuleType)
_UNDER_WAY = (GeneratorType, CoroutineType)


def portrait(value: Any) -> Portrait:
    """The portrait of `value`. O(size).

    Looked into are containers, Structs, attrs classes, dataclasses, and other objects by their
    attributes; an object that writes an `__eq__` and a `__repr__` of its own is taken at its word.
    A function is its code and what it encloses. What has neither attributes nor a word of its own
    is the same only as itself.
    """
    try:
        return _portrait(value, ())
    except RecursionError:  # deeper than any Node may be, which `freeze_object` says in words
        return type(value), "deeper"


def _portrait(value: Any, above: tuple[int, ...]) -> Portrait:
    kind = type(value)
    if kind in _LEAVES:
        return (kind, value) if value == value else (kind, "nan")  # noqa: PLR0124 - NaN is not itself
    if isinstance(value, enum.Enum):
        return kind, value.name
    if isinstance(value, _UNDER_WAY):
        return kind, value.__name__
    if isinstance(value, _ONE_OF_A_KIND) or (isroutine(value) and kind is not FunctionType):
        return kind, id(value)
    if id(value) in above:
        return "itself", above.index(id(value))
    return kind, _inside(value, kind, (*above, id(value)))


def _inside(value: Any, kind: type[Any], above: tuple[int, ...]) -> Portrait:
    """What of a value that is no leaf makes it what it is."""
    if kind is Text:
        return str(value)
    if kind is FunctionType:
        return id(value.__code__), _portrait(_enclosed(value), above)
    if isinstance(value, (Object, Mapping)) and not _says_itself(kind):
        return tuple((_portrait(k, above), _portrait(value[k], above)) for k in value)
    if isinstance(value, (list, tuple)):
        return tuple([_portrait(item, above) for item in value])
    if isinstance(value, (set, frozenset)):
        return frozenset(_portrait(item, above) for item in value)
    if isinstance(value, bytearray):
        return bytes(value)
    names = tuple(_attributes(value))
    if _says_itself(kind) or not (names or hasattr(value, "__dict__")):
        return repr(value) if _writes(kind, "__repr__") else id(value)
    return tuple((name, _portrait(getattr(value, name), above)) for name in names)


def _enclosed(function: FunctionType) -> tuple[Any, ...]:
    """What a function holds on to beside its code."""
    cells = function.__closure__ or ()
    return function.__defaults__, *(cell.cell_contents for cell in cells if _is_full(cell))


def _is_full(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty one raises
    except ValueError:
        return False
    return True


def _says_itself(kind: type[Any]) -> bool:
    """Whether a class that is no mere record of fields says itself what it is."""
    if kind is Object or issubclass(kind, Struct) or hasattr(kind, "__dataclass_fields__"):
        return False
    if kind is dict or hasattr(kind, "__attrs_attrs__"):
        return False
    written = _writes(kind, "__eq__") and _writes(kind, "__repr__")
    return written and not issubclass(kind, dict)


def _writes(kind: type[Any], method: str) -> bool:
    return getattr(kind, method) is not getattr(object, method)


def _attributes(value: Any) -> Iterator[str]:
    kind = type(value)
    if isinstance(value, Struct):
        yield from kind.__struct_fields__
        return
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is not None:
        yield from fields
        return
    attributes = getattr(kind, "__attrs_attrs__", None)
    if attributes is not None:
        yield from (attribute.name for attribute in attributes)
        return
    yield from getattr(value, "__dict__", ())
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                yield name


class Told:
    """Prints a portrait as the value it is of, more or less."""

    def __init__(self, taken: Portrait) -> None:
        self.taken = taken

    def __repr__(self) -> str:
        kind, what = self.taken if len(self.taken) == 2 else ("itself", "…")  # noqa: PLR2004
        name = getattr(kind, "__name__", str(kind))
        if isinstance(what, frozenset):
            return "{" + ", ".join(sorted(repr(Told(each)) for each in what)) + "}"
        if not isinstance(what, tuple):
            return repr(what) if isinstance(kind, type) else str(what)
        if kind in {list, tuple}:
            inner = ", ".join(repr(Told(each)) for each in what)
            return f"[{inner}]" if kind is list else f"({inner})"
        if what and isinstance(what[0][0], tuple):
            pairs = ", ".join(f"{Told(key)!r}: {Told(each)!r}" for key, each in what)
            return f"{{{pairs}}}"
        return f"{name}({', '.join(f'{key}={Told(each)!r}' for key, each in what)})"


def holds(taken: Portrait, kind: type[Any]) -> bool:
    """Whether something of this class is anywhere in a portrait."""
    if isinstance(taken, (tuple, frozenset)):
        return any(each is kind or holds(each, kind) for each in taken)
    return False
