"""The contract of every live backend: what goes on in a conversation, told between Sessions.

A Session takes a Seat at its conversation and tells there what it emits and settles, and that
somebody works there; it hears what the others tell. Here stands what is the same wherever it goes
through: who hears what, once, and what the end of an owner means. Not here: how it gets from one to
the other (`memory`, `nats`), and what a Session makes of it (`session`).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Protocol, Self

from msgspec import Struct

from assembler.engine.errors import AssemblerError
from assembler.engine.events import Delta, Outcome
from assembler.engine.locations import Floor

__all__ = [
    "Claimed",
    "Ended",
    "Hears",
    "Live",
    "LiveError",
    "Record",
    "Released",
    "Said",
    "Seat",
    "process_of",
]

_log = logging.getLogger("assembler.live")


class LiveError(AssemblerError):
    """The live backend cannot do it: it is closed, or its server cannot be reached."""


# -- what is told ------------------------------------------------------------------------


class Said(Struct, frozen=True, tag="said", gc=False):
    """One delta of an attempt of `owner`."""

    owner: str
    delta: Delta


class Ended(Struct, frozen=True, tag="ended", gc=False):
    """How an attempt ended, as `owner` says: its own, or one whose owner is gone."""

    owner: str
    attempt: str
    turn: int
    step: int
    number: int
    outcome: Outcome


class Claimed(Struct, frozen=True, tag="claimed", gc=False):
    """`owner` works on the conversation."""

    owner: str


class Released(Struct, frozen=True, tag="released", gc=False):
    """`owner` does so no more, as `by` says: itself, or one who saw it go."""

    owner: str
    by: str


Record = Said | Ended | Claimed | Released


def process_of(owner: str) -> str:
    """The process that an owner lives and dies with."""
    return owner.rpartition(".")[0]


class Hears(Protocol):
    """What a Seat tells. Each call must be quick; what it raises is logged."""

    def delta(self, delta: Delta) -> None:
        """Another one's delta, each once and in the order of its attempt."""

    def ended(self, ended: Ended) -> None:
        """How an attempt ended, once; of an own one: others have given it up."""

    def elsewhere(self) -> None:
        """`Seat.elsewhere` is another one, or may be about to be."""

    def stored(self, seq: int) -> None:
        """Events up to `seq` are stored; 0: it is not known how many."""


# -- a place at a conversation -----------------------------------------------------------


class _Known(Struct):
    """What a Seat remembers of one attempt until its step closes."""

    owner: str
    turn: int
    step: int
    number: int
    next: int = 0
    """The ordinal that comes next."""
    outcome: Outcome | None = None

    @property
    def given_up(self) -> bool:
        return self.outcome is not None and self.outcome is not Outcome.COMPLETED


class Seat(ABC):
    """One Session at one conversation. Made by `Live.join`.

    What it is told goes to all others who follow the conversation, in order, and is held for
    those who come later until its step closes. No call but `claimed`, `fence` and `leave` waits.
    For one event loop.
    """

    def __init__(self, conversation: str, owner: str, hears: Hears) -> None:
        self.conversation = conversation
        self.owner = owner
        self._hears = hears
        self._known: dict[str, _Known] = {}
        self._claims: set[str] = set()
        self._claiming = False
        self._left = False

    # -- telling -------------------------------------------------------------------------

    def emit(self, delta: Delta) -> None:
        """Tell a delta of an attempt of this Session."""
        if self._left:
            return
        known = self._known.get(delta.attempt)
        if known is None:
            known = self._known[delta.attempt] = _Known(
                self.owner, delta.turn, delta.step, delta.number
            )
        if not known.given_up:
            known.next = delta.ordinal + 1
            self._tell_attempt(Said(self.owner, delta))

    def settle(self, attempt: str, turn: int, step: int, number: int, outcome: Outcome) -> None:
        """Tell how an attempt ended. All but `completed` forget its deltas everywhere."""
        if self._left:
            return
        known = self._known.get(attempt)
        if known is None:
            if outcome is Outcome.COMPLETED:
                return  # nobody has seen anything of it
            known = self._known[attempt] = _Known(self.owner, turn, step, number)
        if known.given_up or known.outcome is outcome:
            return
        known.outcome = outcome
        self._tell_attempt(Ended(self.owner, attempt, turn, step, number, outcome))

    def claim(self, *, busy: bool) -> None:
        """Tell whether somebody works through this Session."""
        if self._left or busy == self._claiming:
            return
        self._claiming = busy
        if busy:
            self._tell_claim(Claimed(self.owner))
        else:
            self._tell_claim(Released(self.owner, self.owner))

    def retire(self, floor: Floor, *, wrote: bool) -> None:
        """All up to `floor` is closed: nothing of it is held for others any more. Whose
        they are, and whoever wrote the event that closed it (`wrote`), see to that."""
        over = [name for name, each in self._known.items() if (each.turn, each.step) <= floor]
        forgotten = [name for name in over if wrote or self._known[name].owner == self.owner]
        for name in over:
            del self._known[name]
        if forgotten and not self._left:
            self._forget(forgotten)

    @abstractmethod
    def stored(self, seq: int) -> None:
        """Tell that events up to `seq` are stored. A notice: one that is lost does no harm."""

    @abstractmethod
    async def claimed(self) -> None:
        """Wait until a claim that was told is held, and so is found by whoever comes now. It gives
        up waiting, with a line in the log, when the backend cannot be reached."""

    @abstractmethod
    async def fence(self) -> None:
        """Wait until all that is held now has been heard here."""

    @abstractmethod
    async def leave(self) -> None:
        """Hear no more, and claim nothing. A second time changes nothing."""

    @property
    @abstractmethod
    def is_connected(self) -> bool:
        """Whether what others tell can be heard now."""

    @property
    def elsewhere(self) -> bool | None:
        """Whether others work on the conversation; None: not known."""
        if self._claims:
            return True
        return False if self.is_connected else None

    # -- hearing -------------------------------------------------------------------------

    def take(self, records: Iterable[Record]) -> None:
        """Hear some, at once: what is given up within them is not heard at all."""
        told = list(records)
        gone = {
            each.attempt
            for each in told
            if type(each) is Ended and each.outcome is not Outcome.COMPLETED
        }
        for record in told:
            if type(record) is Said:
                if record.delta.attempt not in gone:
                    self._take_delta(record)
            elif type(record) is Ended:
                self._take_end(record)
            elif type(record) is Claimed or type(record) is Released:
                self._take_claim(record)

    def _take_delta(self, said: Said) -> None:
        delta = said.delta
        if self._left or said.owner == self.owner:
            return
        known = self._known.get(delta.attempt)
        if known is None:
            known = self._known[delta.attempt] = _Known(
                said.owner, delta.turn, delta.step, delta.number
            )
        if delta.ordinal < known.next or known.given_up:
            return
        if delta.ordinal == known.next:
            known.next += 1
        self._hear(lambda: self._hears.delta(delta))

    def _take_end(self, ended: Ended) -> None:
        if self._left or ended.owner == self.owner:
            return
        known = self._known.get(ended.attempt)
        if known is None:
            known = self._known[ended.attempt] = _Known(
                ended.owner, ended.turn, ended.step, ended.number
            )
        if known.given_up or known.outcome is ended.outcome:
            return
        known.outcome = ended.outcome
        self._hear(lambda: self._hears.ended(ended))

    def _take_claim(self, record: Claimed | Released) -> None:
        if self._left:
            return
        if record.owner == self.owner:
            if type(record) is Released and record.by != self.owner and self._claiming:
                self._tell_claim(Claimed(self.owner))  # who was taken for dead is not
            return
        before = record.owner in self._claims
        if type(record) is Claimed:
            self._claims.add(record.owner)
        else:
            self._claims.discard(record.owner)
        if before != (record.owner in self._claims):
            self._hear(self._hears.elsewhere)

    def owners(self) -> set[str]:
        """The other processes of which something is held here that dies with them."""
        live = {each.owner for each in self._known.values() if each.outcome is None}
        return {process_of(owner) for owner in (live | self._claims) - {self.owner}}

    def lose(self, process: str) -> None:
        """A process is gone: what it had going is withdrawn, here once, and for all who come."""
        if self._left:
            return
        for name, each in tuple(self._known.items()):
            if each.outcome is None and process_of(each.owner) == process:
                self._lose_attempt(name, each)
        for owner in [each for each in self._claims if process_of(each) == process]:
            self._claims.discard(owner)
            self._tell_claim(Released(owner, self.owner))
            self._hear(self._hears.elsewhere)

    def _lose_attempt(self, name: str, known: _Known) -> None:
        known.outcome = Outcome.INTERRUPTED
        known.owner = self.owner  # who says that it ended sees to it that it is forgotten
        ended = Ended(self.owner, name, known.turn, known.step, known.number, known.outcome)
        self._hear(lambda: self._hears.ended(ended))
        self._tell_attempt(ended)

    def withdraw(self, delta: Delta) -> None:
        """What is held of an attempt is of an owner who is gone, and was not heard here: its end
        is told in his place."""
        name = delta.attempt
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = _Known(self.owner, delta.turn, delta.step, delta.number)
        if known.outcome is None:
            self._lose_attempt(name, known)

    def _hear(self, tell: Any) -> None:
        try:
            tell()
        except Exception as error:  # whose words may hold contents
            _log.error("a live record was not taken: %s", type(error).__name__)

    # -- what a backend implements -------------------------------------------------------

    @abstractmethod
    def _tell_attempt(self, record: Said | Ended) -> None:
        """To all others, behind all that was told of its attempt; and held. Of one that is given
        up, its end alone is held."""

    @abstractmethod
    def _tell_claim(self, record: Claimed | Released) -> None:
        """To all others; held while it is a claim."""

    @abstractmethod
    def _forget(self, attempts: Iterable[str]) -> None:
        """Hold nothing of these attempts any more."""


# -- the backend -------------------------------------------------------------------------


class Live(ABC):
    """Tells between the Sessions of many conversations, in one process or in several.

    An async context manager; leaving closes it. Everything that one Live has going ends with it:
    when it is closed, or its process dies, its attempts are withdrawn everywhere.
    """

    @abstractmethod
    async def open(self) -> None:
        """Get ready; `LiveError` when it cannot. A second time changes nothing."""

    @abstractmethod
    async def join(self, conversation: str, hears: Hears) -> Seat:
        """Take a seat. When it returns, all that is held has been heard: attempts that go on,
        whole and in order, and completed ones whose step is open; never one that was given up.
        What is told from then on follows, without loss or repeat. Raises `LiveError`."""

    @abstractmethod
    async def close(self) -> None:
        """Leave every seat, and end all that goes on here. A second time changes nothing."""

    @abstractmethod
    def statistics(self) -> dict[str, Any]:
        """Counts for an operator, as plain JSON values."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
