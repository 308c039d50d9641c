"""Asking the Definitions about one item, before anything is changed.

`match`, `cadence` and `retires` are called here and nowhere else. A Definition that raises does
not take the item, and that is a finding; under `strict` it raises.
"""

from __future__ import annotations

from msgspec import Struct

from assembler.engine.contexts import blame
from assembler.engine.definition import NONE, NOW, Cadence, Match, Role
from assembler.engine.errors import AssemblerError
from assembler.engine.events import Delta, Event, Position, position
from assembler.engine.registry import Registry, Spec
from assembler.engine.values import freeze

__all__ = ["Fault", "Guard", "Inquiry", "Plan"]

Fault = tuple[str, Position]
"""A finding about one item: the key it is about, and where."""


class Plan(Struct, gc=False, eq=False):
    """What the Definitions said about one item."""

    matched: tuple[tuple[Spec, str, Match], ...] = ()
    faults: tuple[Fault, ...] = ()
    retired: tuple[str, ...] = ()
    cadence: Cadence = NONE


NOTHING = Plan()
"""What is said of an item that nobody takes. Never changed."""


class Guard:
    """Whether a Definition is being asked: it must not call the Assembler that is asking it."""

    __slots__ = ("busy",)

    def __init__(self) -> None:
        self.busy = False

    def __enter__(self) -> None:
        self.check()
        self.busy = True

    def __exit__(self, *_: object) -> None:
        self.busy = False

    def check(self) -> None:
        """Raise when a Definition is being asked."""
        if self.busy:
            raise AssemblerError("a Definition calls the Assembler that is asking it")


class Inquiry:
    """Asks the Definitions of one catalog. O(definitions that take the type)."""

    __slots__ = ("_guard", "_registry", "_strict")

    def __init__(self, registry: Registry, guard: Guard, *, strict: bool) -> None:
        self._guard = guard
        self._registry = registry
        self._strict = strict

    def event(self, event: Event) -> Plan:
        """Whose event this is, and which attempts it gives up."""
        specs = self._registry.of_event(event.type)
        if not specs:
            return NOTHING
        plan = Plan()
        place = position(event.seq, 0)
        with self._guard:
            for spec in specs:
                self._ask_match(spec, event, place, plan)
                if spec.retires is not None:
                    self._ask_retires(spec, event, place, plan)
        return plan

    def delta(self, delta: Delta) -> Plan:
        """Whose delta this is."""
        plan = Plan()
        place = delta.position
        with self._guard:
            for spec in self._registry.by_type.get(delta.type, ()):
                self._ask_match(spec, delta, place, plan)
        return plan

    def _ask_match(self, spec: Spec, item: Event | Delta, place: Position, plan: Plan) -> None:
        try:
            took = spec.match(item)
            if took is None:
                return
            if type(took) is not tuple or len(took) != 2:  # noqa: PLR2004 - a pair
                raise TypeError(f"match gives (text, Role) or None, not {took!r}")  # noqa: TRY301
            ident, role = took
            if type(ident) is not str or type(role) is not Role:
                raise TypeError(f"match gives (text, Role) or None, not {took!r}")  # noqa: TRY301
            freeze(ident)
        except Exception as error:
            self._fault(error, spec, "match", f"{spec.kind}:", place, plan)
            return
        match = Match(place, item, role)
        plan.matched = (*plan.matched, (spec, ident, match))
        if spec.cadence is None:
            plan.cadence = NOW
            return
        try:
            cadence = spec.cadence(match)
            if type(cadence) is not Cadence:
                raise TypeError(f"cadence gives a Cadence, not {cadence!r}")  # noqa: TRY301
        except Exception as error:
            cadence = NOW
            self._fault(error, spec, "cadence", f"{spec.kind}:{ident}", place, plan)
        plan.cadence = max(plan.cadence, cadence)

    def _ask_retires(self, spec: Spec, event: Event, place: Position, plan: Plan) -> None:
        try:
            name = spec.retires(event) if spec.retires is not None else None
            if name is not None and type(name) is not str:
                raise TypeError(f"retires gives a text or None, not {name!r}")  # noqa: TRY301
        except Exception as error:
            self._fault(error, spec, "retires", f"{spec.kind}:", place, plan)
            return
        if name:
            plan.retired = (*plan.retired, name)

    def _fault(
        self,
        error: Exception,
        spec: Spec,
        site: str,
        key: str,
        place: Position,
        plan: Plan,
    ) -> None:
        if self._strict:
            raise blame(error, spec, site, key) from error
        plan.faults = (*plan.faults, (key, place))
