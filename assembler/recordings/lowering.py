"""A recording as the engine's own operations: what plugged-in lines did, said by what came of it.

Whatever a line of a backend led to (events, deltas, ends of attempts) is written out with all its
fields, so that nothing has to be known about who wrote it. Not here: what such lines do (plugged
in), and files.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assembler import codec
from assembler.engine.events import Delta, Event, Outcome
from assembler.recordings.expecting import is_expectation
from assembler.recordings.format import Fields, Operation, Recording
from assembler.recordings.running import Definitions, Run

__all__ = ["HOLDS", "Lowering"]

_AS_THEY_ARE = frozenset({"evict", "reconnect"})
HOLDS = "converges"
"""The one expectation that holds whatever is said."""


class Lowering(Run):
    """A Run that writes down what it does: `lines`, as plain dicts. Expectations are left out."""

    def __init__(self, recording: Recording, definitions: Definitions) -> None:
        super().__init__(recording, definitions, views=["chat"])
        self.lines: list[dict[str, Any]] = []

    def all(self, operations: Iterable[Operation]) -> list[dict[str, Any]]:
        """Does the operations; gives what came of them."""
        for operation in operations:
            if operation.name == HOLDS:
                self._say(HOLDS)
            elif not is_expectation(operation):
                self.do(operation)
        return self.lines

    def apply(self, fields: Fields) -> None:
        super().apply(fields)
        if fields["op"] in _AS_THEY_ARE:
            self.lines.append(codec.plain(fields))

    def load(self, events: Iterable[Fields], *, has_more: bool) -> None:
        page = [self._event(event) for event in events]
        super().load(map(codec.plain, page), has_more=has_more)
        self._say("load", events=page, has_more=has_more)

    def prepend(self, events: Iterable[Fields], *, has_more: bool) -> None:
        page = [self._event(event) for event in events]
        super().prepend(map(codec.plain, page), has_more=has_more)
        self._say("prepend", events=page, has_more=has_more)

    def append(self, event: Fields) -> Event:
        taken = super().append(event)
        self._say("append", event=taken)
        return taken

    def emit(self, fields: Fields) -> Delta:
        taken = super().emit(fields)
        self._say("delta", **codec.plain(taken))
        return taken

    def settle(self, attempt: str, outcome: Outcome) -> None:
        super().settle(attempt, outcome)
        self._say("settle", attempt=attempt, outcome=outcome.value)

    def set_liveness(self, *, live: bool | None) -> None:
        super().set_liveness(live=live)
        self._say("liveness", live=live)

    def _say(self, op: str, **fields: Any) -> None:
        self.lines.append({"op": op, **codec.plain(fields)})
