"""Call ids: one stable, non-empty name for one call of one conversation.

Providers break that: ids are missing, empty, or `call_0` again in every answer. Here live the ids
of one attempt and how new ones are minted. Not here: which piece of a stream belongs to which call
(the adapters know), nor who keeps the ids of a whole conversation (the driver tells).
"""

from __future__ import annotations

from collections.abc import Container
from hashlib import blake2b
from json import dumps

__all__ = ["CallIds", "minted"]

_DIGEST_BYTES = 12


def minted(conversation: str, attempt: str, place: int | str) -> str:
    """Make an id out of conversation, attempt and place alone: replayed, it is the same again.

    `place` counts the calls of the answer from 0, or says what else is named (`message`).
    """
    told = dumps([conversation, attempt, place]).encode()
    kind = "call" if isinstance(place, int) else place
    return f"{kind}_{blake2b(told, digest_size=_DIGEST_BYTES).hexdigest()}"


class CallIds:
    """The ids of the calls of one attempt.

    `in_use` answers, with `in`, whether an id belongs to a call of the conversation outside this
    attempt; ids of attempts that were given up are free again. It is asked once for each call.
    """

    __slots__ = ("_attempt", "_by_hint", "_conversation", "_given", "_in_use")

    def __init__(
        self, conversation: str = "", attempt: str = "", in_use: Container[str] = ()
    ) -> None:
        self._conversation = conversation
        self._attempt = attempt
        self._in_use = in_use
        self._by_hint: dict[str, str] = {}
        self._given: dict[str, int | str] = {}
        """Each id that was given, and the place of who has it."""

    def claim(self, hint: str | None, place: int) -> str:
        """Give the id of the call at `place`: the provider's own when it has one that is new.

        The first call with a hint answers to it from then on (`find`).
        """
        if not hint or hint in self._by_hint:
            return self.mint(place)
        is_taken = hint in self._given or hint in self._in_use
        call_id = self._by_hint[hint] = self.mint(place) if is_taken else hint
        self._given[call_id] = place
        return call_id

    def mint(self, place: int | str) -> str:
        """Give an id of our own, at one place always the same: another one only where a provider
        said just that id for another call of the answer."""
        call_id = minted(self._conversation, self._attempt, place)
        while self._given.setdefault(call_id, place) != place:
            call_id = minted(self._conversation, self._attempt, call_id)
        return call_id

    def alias(self, hint: str, call_id: str) -> None:
        """Let another name of the provider (an item's id) lead to a call; the first one stays."""
        self._by_hint.setdefault(hint, call_id)

    def find(self, hint: str) -> str | None:
        """Give the call of this answer that the provider calls so."""
        return self._by_hint.get(hint)
