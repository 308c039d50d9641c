"""What was seen of one Definition: its problems, and what it may read while it is asked.

Here live the `Witness` that is told, and `Lent`, a Reader or Scope for one call. Not here: what is
looked for (`careful`, `watching`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assembler.engine.events import Item
from assembler.testing.failures import Problem
from assembler.testing.portraits import Portrait, Told, portrait

__all__ = ["Lent", "Witness", "short"]

_HELD_MAX = 200
"""So many States of one history are looked at again; what changes one changes a new one too."""


class Witness:
    """What was seen of one Definition in one history: problems, and what to look at again."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.problems: list[Problem] = []
        self.held: list[tuple[Any, Portrait, str]] = []
        self.answers: list[tuple[Item, Any]] = []
        self.joined = 0
        self.starts: list[tuple[str, Item]] = []
        self.shown = 0

    def tell(self, name: str, details: Sequence[tuple[str, Any]] = (), /, **words: Any) -> None:
        """Note a problem; `details` are pairs of a label and a value."""
        told = tuple((label, short(value)) for label, value in details)
        self.problems.append(Problem(name, self.kind, words, told))

    def hold(self, state: Any, method: str) -> None:
        """Look at this State again, later."""
        if len(self.held) < _HELD_MAX:
            self.held.append((state, portrait(state), method))

    def look_again(self) -> None:
        """Find a State given out earlier that has changed."""
        for state, before, method in self.held:
            if portrait(state) != before:
                seen = [(f"`{method}` gave", Told(before)), ("now", state)]
                self.tell("changed-earlier-state", seen, method=method)
                return


def short(value: Any) -> str:
    """A value in a few lines at most."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception as error:  # one too deep, or a `__repr__` of theirs
        text = f"<a {type(value).__name__}, whose repr raises {type(error).__name__}>"
    return text if len(text) <= 400 else f"{text[:400]}…"  # noqa: PLR2004 - a few lines


class Lent:
    """A Reader or Scope for one call: what it gave is looked at again, and it ends with it."""

    def __init__(self, lender: Any, name: str, method: str, witness: Witness) -> None:
        self._lender = lender
        self._name = name
        self._method = method
        self._witness = witness
        self._gave: list[tuple[Any, Portrait]] = []
        self._over = False

    def __getattr__(self, name: str) -> Any:
        if self._over:
            reader = f"`{self._name}.{name}`"
            self._witness.tell("late-read", reader=reader, method=self._method)
        found = getattr(self._lender, name)
        if not callable(found):
            return found

        def ask(*arguments: Any, **named: Any) -> Any:
            given = found(*arguments, **named)
            self._gave.append((given, portrait(given)))
            return given

        return ask

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lent) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"<the {self._name} of one call>"

    def end(self) -> tuple[Any, Portrait] | None:
        """It is over; what it gave and what has changed since."""
        self._over = True
        for given, before in self._gave:
            if portrait(given) != before:
                return given, before
        return None
