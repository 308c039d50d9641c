"""How an event of an old version is read: by a chain of functions, one for each step.

Not here: when it is done (`base`, at every way out of a store), and what an event means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from assembler.engine.errors import InputError
from assembler.engine.events import Event, json_kind, need_text

__all__ = ["Chains", "Upcasters"]

Upcasters = Mapping[str, Sequence[Callable[[Any], Any]]]
"""By type: `[v1_to_v2, v2_to_v3]`. Each takes the (frozen) `data` of one version and gives that of
the next, as any mapping of JSON values. It must not look at anything else, so that an event reads
the same every time."""


class Chains:
    """The upcasters of a store, checked. False when there are none."""

    def __init__(self, upcasters: Upcasters) -> None:
        if not isinstance(upcasters, Mapping):
            raise InputError(f"upcasters: expected a mapping, got {json_kind(upcasters)}")
        self._steps = {name: _steps(name, steps) for name, steps in upcasters.items()}

    def __bool__(self) -> bool:
        return bool(self._steps)

    def upcast(self, event: Event) -> Event:
        """`event` in the newest version that its chain leads to; itself when it is not older.

        Raises what an upcaster raises. O(1) for an event that is not old.
        """
        steps = self._steps.get(event.type)
        if steps is None or event.v > len(steps):
            return event
        data = event.data
        for step in steps[event.v - 1 :]:
            data = step(data)
        return replace(event, data=data, v=len(steps) + 1)


def _steps(name: str, steps: object) -> tuple[Callable[[Any], Any], ...]:
    need_text("upcasters", name)
    if isinstance(steps, (str, bytes)) or not isinstance(steps, Sequence):
        raise InputError(f"upcasters[{name!r:.80}]: expected a sequence, got {json_kind(steps)}")
    for at, step in enumerate(steps):
        if not callable(step):
            raise InputError(f"upcasters[{name!r:.80}][{at}]: expected a function")
    return tuple(steps)
