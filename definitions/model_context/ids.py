"""Call ids as a provider takes them: its own where it gave one, else ours, else made of ours.

Not here: the ids of a running answer (`definitions.ids`).
"""

from __future__ import annotations

from hashlib import blake2b
from re import Pattern

from definitions.model_context.turns import Call

__all__ = ["SentIds"]

_DIGEST_BYTES = 12


class SentIds:
    """The ids of one request. `allowed` matches a whole id; no two calls get the same one.

    The same conversation gets the same ids, so that a provider's cache finds its prefix again.
    """

    __slots__ = ("_allowed", "_by_call", "_used")

    def __init__(self, allowed: Pattern[str]) -> None:
        self._allowed = allowed
        self._used: set[str] = set()
        self._by_call: dict[str, str] = {}

    def of(self, call: Call, *, own: bool) -> str:
        """Give the id to send; `own`: the provider of the call is the one that gets it back."""
        known = self._by_call.get(call.call_id)
        if known is None:
            theirs = call.provider_call_id if own else None
            known = self._by_call[call.call_id] = self._choose(theirs, call.call_id)
            self._used.add(known)
        return known

    def find(self, call_id: str) -> str | None:
        """Give the id that a call was sent with."""
        return self._by_call.get(call_id)

    def forget_used(self) -> None:
        """Ids may be used again from here on: for providers that number their calls anew in each
        answer, and get their own numbers back."""
        self._used.clear()

    def _choose(self, theirs: str | None, ours: str) -> str:
        for each in (theirs, ours):
            if each and each not in self._used and self._allowed.fullmatch(each):
                return each
        place = 0
        while True:
            told = f"{place}:{ours}" if place else ours
            digest = blake2b(told.encode(), digest_size=_DIGEST_BYTES).hexdigest()
            if f"call_{digest}" not in self._used:
                return f"call_{digest}"
            place += 1
