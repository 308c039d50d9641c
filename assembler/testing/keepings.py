"""What a Definition keeps that could change: its attributes, and what its methods reach outside.

Not here: when it is looked at (`watching`), and what a State holds (`portraits`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from types import CodeType, FunctionType
from typing import Any

from assembler.engine.definition import Definition, GroupDefinition
from assembler.testing.portraits import Portrait, portrait
from assembler.testing.trespass import watch_for_trespass

__all__ = ["Keepings"]

_CONTAINERS = (dict, list, set, bytearray, deque)
_BASES = frozenset((Definition, GroupDefinition, object))


class Keepings:
    """The attributes of one Definition, and the containers of its class and its module.

    Reached are module-level containers that its methods name, and those that functions of the
    same module name which these call. Only whether their own elements are others is looked at.
    What a `cached_property` of the Definition gives is kept from the beginning.
    """

    def __init__(self, definition: Any) -> None:
        self._definition = definition
        _fill_caches(definition)
        self._shared = dict(_containers(type(definition)))

    def now(self) -> Portrait:
        """What is kept now: compare it with a later one. O(size)."""
        shared = tuple((name, _elements(each)) for name, each in self._shared.items())
        return portrait(vars(self._definition)), shared

    def changed(self, before: Portrait, now: Portrait) -> str:
        """Which of it are others, as the author names them."""
        was = {name[1]: each for name, each in before[0][1]}
        names = [f"`self.{name[1]}`" for name, each in now[0][1] if was.get(name[1]) != each]
        names += [
            f"`{name}`"
            for (name, old), (_, new) in zip(before[1], now[1], strict=True)
            if old != new
        ]
        return ", ".join(names) or "an attribute is gone"


def _fill_caches(definition: Any) -> None:
    """Ask each `cached_property` once, so that asking it later changes nothing; one that asks what
    it must not stays empty, and is found when it is filled."""
    kind = type(definition)
    names = {name for each in kind.__mro__ for name in vars(each)}
    for name in sorted(names - vars(definition).keys()):
        if isinstance(getattr(kind, name, None), cached_property):
            with suppress(Exception):
                _, asked = watch_for_trespass(partial(getattr, definition, name))
                if asked is not None:
                    vars(definition).pop(name)


def _elements(container: Any) -> Portrait:
    if isinstance(container, dict):
        return tuple(map(id, container)), tuple(map(id, container.values()))
    return bytes(container) if isinstance(container, bytearray) else tuple(map(id, container))


def _containers(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    for each in kind.__mro__:
        if each in _BASES:
            continue
        for name, value in vars(each).items():
            if isinstance(value, _CONTAINERS):
                yield f"{each.__name__}.{name}", value
            function = getattr(value, "__func__", value)
            if isinstance(function, FunctionType):
                yield from _globals(function, set())


def _globals(function: FunctionType, seen: set[Any]) -> Iterator[tuple[str, Any]]:
    """The module-level containers that a function and those it calls reach by name."""
    seen.add(function)
    for value in (*(function.__defaults__ or ()), *_enclosed(function)):
        if isinstance(value, _CONTAINERS):
            yield f"a default or a variable around `{function.__name__}`", value
    for name in _names(function.__code__):
        value = function.__globals__.get(name)
        if isinstance(value, _CONTAINERS):
            yield name, value
        elif isinstance(value, FunctionType) and value.__module__ == function.__module__:
            yield from () if value in seen else _globals(value, seen)


def _enclosed(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # an empty one
            yield cell.cell_contents


def _names(code: CodeType) -> Iterable[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
