"""Which Definition gets which item: the catalog, checked and compiled once.

Here lives what is fixed for the life of an Assembler. Not here: what the Definitions made of the
items (`contexts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from assembler.engine.definition import (
    UNNAMED,
    Cadence,
    Context,
    Definition,
    GroupDefinition,
    Match,
)
from assembler.engine.errors import DefinitionError
from assembler.engine.events import Event
from assembler.engine.timeline import BOUNDARIES

__all__ = ["Registry", "Spec"]


def _own(definition: Definition, name: str) -> Any:
    """The method `name` if the author wrote one, else None: what nobody wrote costs nothing."""
    written = getattr(type(definition), name) is not getattr(Definition, name)
    return getattr(definition, name) if written or name in vars(definition) else None


def _check(definition: Definition) -> None:
    """`DefinitionError` for what an author forgot or mistook, with what to write instead."""
    name = type(definition).__name__
    if not isinstance(getattr(definition, "kind", None), str):
        raise DefinitionError(f'{name} has no kind; write `kind = "…"` in its class')
    for field in ("takes", "names", "shows"):
        value = getattr(definition, field)
        if isinstance(value, str) or not isinstance(value, (set, frozenset)):
            raise DefinitionError(
                f"{name}.{field}: expected a frozenset of texts, got {value!r}; write "
                f'`{field} = frozenset({{"…"}})`'
            )
    for method in ("match", "start"):
        if getattr(type(definition), method) is getattr(Definition, method) and method not in vars(
            definition
        ):
            raise DefinitionError(f"{name} has no {method}; every Definition says that itself")


class Spec:
    """One Definition, compiled: its methods looked up, and which of them its author wrote."""

    __slots__ = (
        "anchor",
        "build",
        "cadence",
        "definition",
        "extend",
        "kind",
        "match",
        "notes",
        "place",
        "retires",
        "shows",
        "start",
        "target",
        "update",
    )

    def __init__(self, definition: Definition) -> None:
        _check(definition)
        self.definition = definition
        self.kind = definition.kind
        self.target = definition.target
        self.shows = definition.shows or frozenset((definition.kind,))
        self.match = definition.match
        self.start = definition.start
        self.update = definition.update
        self.build = definition.build
        self.extend: Callable[[Any, Sequence[Match]], Any] | None = _own(definition, "extend")
        self.anchor: Callable[[Context], Match] | None = _own(definition, "anchor")
        self.place: Callable[..., Any] | None = _own(definition, "place")
        self.notes: Callable[..., Any] | None = _own(definition, "notes")
        self.cadence: Callable[[Match], Cadence] | None = _own(definition, "cadence")
        self.retires: Callable[[Event], str | None] | None = _own(definition, "retires")


_REGISTRIES_MAX = 64
# By the identity of the Definitions, which a Registry keeps alive. Nothing but memory and the
# time to make an Assembler depends on it.
_registries: dict[tuple[int, ...], Registry] = {}


def _listed(definitions: Iterable[Definition | GroupDefinition]) -> tuple[Any, ...]:
    if not isinstance(definitions, Iterable):
        raise DefinitionError(
            f"definitions: expected a list of Definitions, got {definitions!r} (`catalog()` gives "
            "one; a single Definition goes into a list)"
        )
    return tuple(definitions)


class Registry:
    """The Definitions of one Assembler by the types they take."""

    @classmethod
    def of(cls, definitions: Iterable[Definition | GroupDefinition]) -> Registry:
        """The Registry of these very Definitions: many conversations share one."""
        catalog = _listed(definitions)
        key = tuple(map(id, catalog))
        found = _registries.get(key)
        if found is None:
            found = cls(catalog)
            if len(_registries) >= _REGISTRIES_MAX:
                del _registries[next(iter(_registries))]
            _registries[key] = found
        return found

    def __init__(self, definitions: Iterable[Definition | GroupDefinition]) -> None:
        self.catalog = _listed(definitions)
        self.specs: list[Spec] = []
        self.groups: dict[str, list[GroupDefinition]] = {}
        for definition in self.catalog:
            if isinstance(definition, GroupDefinition):
                self.groups.setdefault(definition.target, []).append(definition)
            elif isinstance(definition, Definition):
                self.specs.append(Spec(definition))
            else:
                raise DefinitionError(
                    f"{definition!r} is no instance of a Definition or a GroupDefinition"
                )
        self.kinds = {spec.kind: spec for spec in self.specs}
        self._check()
        self.by_type: dict[str, tuple[Spec, ...]] = {}
        for spec in self.specs:
            for name in spec.definition.takes - {UNNAMED}:
                self.by_type[name] = (*self.by_type.get(name, ()), spec)
        self._unnamed = tuple(s for s in self.specs if UNNAMED in s.definition.takes)
        self._named = frozenset(BOUNDARIES).union(
            *((s.definition.takes - {UNNAMED}) | s.definition.names for s in self.specs)
        )

    def of_event(self, name: str) -> tuple[Spec, ...]:
        """The Definitions that an event of this type reaches. O(1)."""
        found = self.by_type.get(name)
        if found is not None:
            return found
        return () if name in self._named else self._unnamed

    def _check(self) -> None:
        if len(self.kinds) != len(self.specs):
            kinds = [spec.kind for spec in self.specs]
            twice = next(kind for kind in kinds if kinds.count(kind) > 1)
            raise DefinitionError(f"two Definitions have the kind {twice!r}; kinds are unique")
        for groups in self.groups.values():
            kinds = [group.kind for group in groups]
            if len(set(kinds)) != len(kinds):
                raise DefinitionError("two Group Definitions of one target have one kind")
        owners: dict[tuple[str, str], str] = {}
        for spec in self.specs:
            if ":" in spec.kind:
                raise DefinitionError(f"the kind {spec.kind!r} holds a ':', which ends a kind")
            if spec.target is None:
                continue
            for kind in spec.shows | {spec.kind}:
                owner = owners.setdefault((spec.target, kind), spec.kind)
                if owner != spec.kind:
                    raise DefinitionError(
                        f"{owner!r} and {spec.kind!r} both show Nodes of kind {kind!r} on "
                        f"{spec.target!r}; set `shows` so that each kind has one Definition"
                    )
