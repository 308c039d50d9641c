"""A call of an author's method, done twice, with a look around both.

Are both answers the same, are the arguments as they were, does the Definition keep what it kept,
did it ask what it must not (`trespass`)? Not here: which methods there are (`watching`,
`watching_groups`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from assembler.testing.keepings import Keepings
from assembler.testing.portraits import Portrait, Told, portrait
from assembler.testing.trespass import watch_for_trespass
from assembler.testing.witnesses import Lent, Witness, short

__all__ = ["Careful"]

T = TypeVar("T")


class Careful:
    """What stands in the place of a Definition, whichever its kind."""

    def __init__(self, definition: Any, witness: Witness) -> None:
        self.definition = definition
        self.witness = witness
        self._keepings = Keepings(definition)

    def twice(
        self,
        method: str,
        given: Sequence[tuple[str, Any]],
        call: Callable[..., T],
        lender: Any = None,
    ) -> T:
        """What `call` gives, done twice; `given` are its arguments with their labels.

        With a `lender` the call gets a Reader or Scope, a new one each time.
        """
        before = [portrait(value) for _, value in given]
        own = self._keepings.now()
        known = len(self.witness.problems)

        def once() -> T:
            if lender is None:
                return call()
            lent = Lent(lender, "reader" if method == "start" else "scope", method, self.witness)
            try:
                return call(lent)
            finally:
                changed = lent.end()
                if changed is not None:
                    seen = [("it was", Told(changed[1])), ("now", changed[0])]
                    self.witness.tell("changed-other", seen, method=method)

        first = self.safely(method, given, once)
        taken = portrait(first)
        self._look_around(method, given, before, own)
        if len(self.witness.problems) > known:
            return first
        second, asked = self.safely(method, given, lambda: watch_for_trespass(once))
        if asked is not None:
            self.witness.tell(asked[0], given, method=method, asked=asked[1])
        elif portrait(second) != taken:
            seen = [*given, ("first", Told(taken)), ("then", second)]
            self.witness.tell("impure", seen, method=method)
        else:
            self._look_around(method, given, before, own)
        return first

    def safely(self, method: str, given: Sequence[tuple[str, Any]], call: Callable[[], T]) -> T:
        try:
            return call()
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            stateless = any(label == "state" and value is None for label, value in given)
            name = "raised-without-state" if stateless else "raised"
            self.witness.tell(name, given, method=method, error=words)
            raise

    def _look_around(
        self,
        method: str,
        given: Sequence[tuple[str, Any]],
        before: Sequence[Portrait],
        own: Portrait,
    ) -> None:
        """Find an argument that has changed, or something that the Definition keeps."""
        now = self._keepings.now()
        if now != own:
            kept = self._keepings.changed(own, now)
            self.witness.tell("changed-itself", given, method=method, kept=kept)
            return
        for (label, value), old in zip(given, before, strict=True):
            if portrait(value) != old:
                name = "changed-item" if label in {"item", "match"} else "changed-state"
                seen = [("it was", Told(old)), ("now", value)]
                self.witness.tell(name, seen, method=method)
                return

    def wrong(self, method: str, given: Any, expected: str) -> None:
        self.witness.tell("wrong-kind", method=method, given=short(given), expected=expected)
