"""Ways to deliver a conversation badly: any way that a network, a pager or a restart may find.

`delivery` gives one of them by its seed, without Hypothesis; `strategies.operations` draws them.
Both are one `Courier` that asks somebody what comes next. Not here: making up conversations
(`strategies`), and what must hold afterwards (`convergence`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from assembler.testing.scripts import OUTCOMES, Conversation, Operation

__all__ = ["FAULTS", "WRONGS", "Chooser", "Courier", "delivery"]

T = TypeVar("T")

FAULTS = (
    "repeated",  # an operation comes a second time
    "late",  # a delta or settlement is held back, and comes later, or never
    "overtaken",  # the one after the next comes first
    "lost",  # an event is lost, the one behind it is refused, a page may repair it
    "paged",  # an older page of any size, with or without overlap
    "evicted",  # the oldest events are forgotten
    "resynced",  # the window is loaded anew, from anywhere on
    "reconnected",  # likewise, and all that attempts have said comes again from the beginning
    "refetched",  # all that one attempt has said comes again
    "retold",  # all that one attempt has said comes as a new attempt
    "settled",  # an attempt ends that has not ended, or has not begun
    "liveness",  # somebody works on it, nobody does, it is not known
)
"""What may go wrong on the way, by name."""

WRONGS = ("other-content", "hole", "beyond", "contradiction")
"""What a correct sender never does, and what must be refused."""


class Chooser(Protocol):
    """Who decides what comes next."""

    def number(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""

    def among(self, options: Sequence[T]) -> T:
        """One of several."""


class _Dice:
    """Decides by a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - faults to be replayed, not secrets

    def number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def among(self, options: Sequence[T]) -> T:
        return self._random.choice(options)


def delivery(
    conversation: Conversation, seed: int, *, faults: Collection[str] = FAULTS
) -> tuple[Operation, ...]:
    """One faulty delivery of a conversation: the same for the same conversation and `seed`.

    `faults` are the names of what may go wrong (`FAULTS`, all of them by default); with none it
    is the conversation as it happened. Some operations are meant to be refused (an append behind
    a lost one): do them with `Operation.perform`, which returns the error instead of raising it.
    `ValueError` for a fault that nobody knows.

        for operation in delivery(conversation, seed=7):
            operation.perform(assembler)
    """
    if not isinstance(conversation, Conversation):
        raise TypeError(f"delivery: expected a Conversation, got {conversation!r:.80}")
    named = (faults,) if isinstance(faults, str) else tuple(faults)
    for name in named:
        if name not in FAULTS + WRONGS:
            raise ValueError(f"delivery: no fault {name!r}; known are {', '.join(FAULTS)}")
    return Courier(_Dice(seed), conversation, named).deliver()


class Courier:
    """Delivers a conversation badly; what goes wrong next, `choose` says."""

    def __init__(self, choose: Chooser, conversation: Conversation, faults: Sequence[str]) -> None:
        self.choose = choose
        self.script = conversation.script
        self.log = conversation.log
        self.at = 0
        self.known = 0  # how many events have happened so far
        self.first = 1  # about where the window begins: a guess is good enough
        self.done: list[Operation] = []
        self.late: list[Operation] = []
        self.retold = 0
        ahead = max(8 * len(faults) // len(FAULTS), 2)
        self.moves: list[Callable[[], None]] = [self.forward] * ahead
        for fault in faults:
            self.moves += self._moves(fault)
        self.joins = "resynced" in faults

    def _moves(self, fault: str) -> Sequence[Callable[[], None]]:
        moves: dict[str, Sequence[Callable[[], None]]] = {
            "repeated": [self.again],
            "late": [self.hold_back, self.release],
            "overtaken": [self.overtake],
            "lost": [self.lose],
            "paged": [self.page],
            "evicted": [self.evict],
            "resynced": [self.resync],
            "reconnected": [self.reconnect],
            "refetched": [self.fetch_again],
            "retold": [self.tell_anew],
            "settled": [self.settle],
            "liveness": [self.liveness],
            "other-content": [self.other_content],
            "hole": [self.hole],
            "beyond": [self.beyond],
            "contradiction": [self.contradiction],
        }
        return moves[fault]

    def deliver(self) -> tuple[Operation, ...]:
        """All of the conversation, and a little more."""
        if self.joins and self.choose.number(0, 1):
            self.join()
        while self.at < len(self.script):
            self.choose.among(self.moves)()
        for _ in range(self.choose.number(0, 6)):
            self.choose.among(self.moves)()
        return tuple(self.done)

    def join(self) -> None:
        """Begin in the middle."""
        self.skip_to(self.choose.number(0, len(self.script)))
        self.resync()

    def skip_to(self, at: int) -> None:
        skipped = self.script[self.at : at]
        self.known += sum(1 for each in skipped if each.call == "append")
        self.at = max(at, self.at)

    def add(self, call: str, *arguments: Any) -> None:
        self.done.append(Operation(call, arguments))

    # --- as it should be, more or less

    def forward(self) -> None:
        if self.at < len(self.script):
            self.done.append(self.script[self.at])
            self.skip_to(self.at + 1)

    def again(self) -> None:
        if self.done:
            self.done.append(self.choose.among(self.done))

    def hold_back(self) -> None:
        """What comes next is late: a delta or a settlement; events have an order of their own."""
        if self.at < len(self.script) and self.script[self.at].call != "append":
            self.late.append(self.script[self.at])
            self.skip_to(self.at + 1)

    def release(self) -> None:
        self.done += self.late
        self.late = []

    def overtake(self) -> None:
        """The one after the next comes first."""
        self.hold_back()
        self.forward()
        self.release()

    def lose(self) -> None:
        """The next event is lost, the one behind it is refused, and a page repairs it."""
        self.skip_to(min(self.at + 1, len(self.script)))
        self.forward()
        self.choose.among((self.resync, self.forward))()

    def page(self) -> None:
        size = self.choose.number(0, 5)
        last = min(self.first - 1 + self.choose.among((0, 0, 0, 1, 3)), self.known)
        first = max(last - size + 1, 1)
        self.add("prepend", self.log[first - 1 : last], first > 1)
        self.first = min(self.first, first)

    def evict(self) -> None:
        self.first = self.choose.number(1, self.known + 1)
        self.add("evict", self.first)

    def resync(self) -> None:
        self.first = self.choose.number(1, self.known + 1)
        self.add("load", self.log[self.first - 1 : self.known], self.first > 1)

    def liveness(self) -> None:
        self.add("liveness", self.choose.among((True, False, None)))

    # --- attempts

    def said(self) -> dict[str, list[Operation]]:
        """What each attempt has said so far, whether it arrived or not."""
        said: dict[str, list[Operation]] = {}
        for each in self.script[: self.at]:
            if each.call == "emit":
                said.setdefault(each.arguments[0].attempt, []).append(each)
        return said

    def reconnect(self) -> None:
        self.resync()
        for told in self.said().values():
            self.done += told

    def fetch_again(self) -> None:
        said = self.said()
        if said:
            self.done += said[self.choose.among(sorted(said))]

    def tell_anew(self) -> None:
        """The same words of a new attempt, which replaces the old one or stands beside it."""
        said = self.said()
        if not said:
            return
        name = self.choose.among(sorted(said))
        self.retold += 1
        more = self.choose.among((1, 1, 0))
        for each in said[name]:
            (delta,) = each.arguments
            number = delta.number + more if delta.number else 0
            told = replace(delta, attempt=f"{name}-again-{self.retold}", number=number)
            self.add("emit", told)

    def settle(self) -> None:
        names = [each.arguments[0].attempt for each in self.script if each.call == "emit"]
        if names:
            self.add("settle", self.choose.among(names), self.choose.among(OUTCOMES))

    # --- as it should never be

    def other_content(self) -> None:
        if self.known:
            event = self.choose.among(self.log[: self.known])
            self.add("append", replace(event, time=event.time + 1))

    def hole(self) -> None:
        if self.known > 2:  # noqa: PLR2004 - a hole needs two sides
            gone = self.choose.number(2, self.known - 1)
            holed = tuple(event for event in self.log[: self.known] if event.seq != gone)
            self.add(self.choose.among(("load", "prepend")), holed, False)

    def beyond(self) -> None:
        if self.known < len(self.log):
            self.add("append", self.choose.among(self.log[self.known :]))

    def contradiction(self) -> None:
        """An attempt changes its place, its number, or goes back."""
        spoken = [each.arguments[0] for each in self.done if each.call == "emit"]
        if spoken:
            delta = self.choose.among(spoken)
            changes: tuple[dict[str, int], ...] = (
                {"step": delta.step + 1},
                {"number": delta.number + 1},
                {},
            )
            change = {**self.choose.among(changes), "ordinal": delta.ordinal + 1}
            self.add("emit", replace(delta, **change))
