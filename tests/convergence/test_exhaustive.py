"""All histories of small conversations, up to a bound: every interleaving, every way of paging.

Channels are delivered each in its own order, but how they interleave is up to the network: the
log, each attempt, each settlement. The oracle says what every one of them must show. With
`--hypothesis-profile deep` the conversations are bigger (minutes); the number of histories is
printed (`-s`, or the summary of a failure) and has a minimum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import settings

from assembler.engine.assembler import Assembler
from assembler.engine.events import Delta, Event
from assembler.testing import Operation, Oracle, compare
from tests.convergence.support import INCIDENTS, VIEWS
from tests.convergence.toys import toys

IS_DEEP = settings.get_current_profile_name() == "deep"

Channel = tuple[Operation, ...]


def log(*described: tuple[str, dict[str, Any]]) -> list[Event]:
    return [Event(seq, type_, data, time=seq) for seq, (type_, data) in enumerate(described, 1)]


def appends(events: Sequence[Event]) -> Channel:
    return tuple(Operation("append", (event,)) for event in events)


def says(name: str, *types: str, after: int = 2, number: int = 1, first: int = 1) -> Channel:
    """What an attempt of turn 1, step 1 says: types, with the job or the text they speak of."""
    deltas = []
    for ordinal, described in enumerate(types):
        type_, _, job = described.partition(" ")
        data = {"job": job or "j", "text": name, "measure": job or "m", "mark": job or "k"}
        index = first + ordinal
        at = {"turn": 1, "step": 1, "after": after, "index": index, "ordinal": ordinal}
        deltas.append(Delta(name, type=type_, data=data, number=number, **at))
    return tuple(Operation("emit", (delta,)) for delta in deltas)


def settles(name: str, outcome: str) -> Channel:
    return (Operation("settle", (name, outcome)),)


STEP = {"turn": 1, "step": 1}
START = [("turn/start", {"turn": 1}), ("step/start", STEP)]
END = [("step/end", STEP), ("turn/end", {"turn": 1})]

# Each is small by itself; the number of its interleavings is not.
CONVERSATIONS: dict[str, list[Channel]] = {
    "a call, its result and its closing": [
        appends(log(*START, ("job/open", {"job": "j"}), ("job/result", {"job": "j"}), *END)),
        says("a", "job-piece j", "job-piece j", "speech-piece"),
        settles("a", "completed"),
    ],
    "two attempts of one number, two calls": [
        appends(log(*START, ("job/open", {"job": "j"}), ("watch", {"watch": "w", "job": "k"}))),
        says("a", "job-piece j", "job-piece k"),
        says("b", "job-piece k", "job-piece j", first=2),
    ],
    "a retry by number": [
        appends(log(*START, ("measure", {"measure": "m", **STEP}), *END[:1])),
        says("a", "job-piece j", "measure-piece m"),
        says("b", "job-piece j", "measure-piece m", number=2, first=5),
    ],
    "a retry by name, told ahead or not": [
        appends(log(*START, ("drop", {"attempt": "a", **STEP}), ("job/open", {"job": "j"}))),
        says("a", "job-piece j", "mark-piece"),
        says("b", "job-piece j", number=2, first=5),
        settles("a", "failed"),
    ],
    "a side stream and a result": [
        appends(log(*START, ("job/open", {"job": "j"}), ("job/result", {"job": "j"}), *END[:1])),
        says("s", "job-print j", "job-print j", number=0, after=3),
        says("a", "speech-piece", "speech-note"),
    ],
    "settled twice": [
        appends(log(*START, ("entry", {"entry": "e"}), *END[:1])),
        says("a", "mark-piece", "job-piece j", "job-piece j"),
        settles("a", "completed"),
        settles("a", "interrupted"),
    ],
    "two attempts, a retry, a result, a side stream": [
        appends(log(*START, ("job/open", {"job": "j"}), ("job/result", {"job": "j"}), *END[:1])),
        says("a", "job-piece j", "speech-piece"),
        says("b", "job-piece j", number=2, first=4),
        says("s", "job-print j", number=0, first=6),
        settles("a", "failed"),
    ],
}

DEEP_CONVERSATIONS: dict[str, list[Channel]] = {
    "two calls of two attempts, closed by the next turn": [
        appends(log(*START, ("job/open", {"job": "j"}), ("turn/start", {"turn": 2}))),
        says("a", "job-piece j", "job-piece k", "speech-piece"),
        says("b", "job-piece k", "measure-piece", "mark-piece", first=2),
        settles("b", "completed"),
    ],
}


def interleavings(channels: Sequence[Channel]) -> Iterator[tuple[Operation, ...]]:
    """All merges of the channels that keep the order of each."""
    if not any(channels):
        yield ()
    for nth, channel in enumerate(channels):
        if channel:
            rest = [*channels[:nth], channel[1:], *channels[nth + 1 :]]
            for tail in interleavings(rest):
                yield (channel[0], *tail)


class Answers:
    """What the oracle shows for facts that came up before: the same facts, the same answer."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], Oracle] = {}
        self.looked_at: set[tuple[int, ...]] = set()
        """Beginnings of histories, by identity: what came up before is not compared again."""
        self.kept: list[Sequence[Operation]] = []

    def of(self, oracle: Oracle) -> Oracle:
        deltas = sorted(oracle.deltas, key=lambda delta: (delta.position, delta.attempt))
        said = tuple((delta.attempt, delta.ordinal) for delta in deltas)
        seqs = tuple(event.seq for event in oracle.events)
        facts = (seqs, oracle.has_more, said)
        if facts not in self.known:
            answer = self.known[facts] = Oracle(toys(), VIEWS)
            answer.load(oracle.events, oracle.has_more)
            for delta in deltas:
                answer.emit(delta)
            assert answer.deltas == deltas
        return self.known[facts]


def run(history: Sequence[Operation], answers: Answers) -> None:
    """One history: looked at after every step, and by another that looks at the end alone."""
    looking, blind = Assembler(toys(), VIEWS), Assembler(toys(), VIEWS)
    oracle = Oracle(toys(), VIEWS)
    answers.kept.append(history)  # an identity must not be given away again
    beginning: tuple[int, ...] = ()
    for operation in history:
        refused = operation.perform(oracle)
        assert operation.perform(looking) is refused is operation.perform(blind)
        looking.flush()
        beginning = (*beginning, id(operation))
        if beginning not in answers.looked_at:
            answers.looked_at.add(beginning)
            compare(looking, answers.of(oracle))
    blind.flush()
    compare(blind, answers.of(oracle))
    assert looking.audit() == [] == blind.audit()
    incidents = [odd for odd in looking.anomalies if odd.kind in INCIDENTS]
    assert incidents == oracle.incidents


def run_all(histories: Iterator[tuple[Operation, ...]]) -> int:
    """Try every one of them; how many there were."""
    answers, tried = Answers(), 0
    for history in histories:
        try:
            run(history, answers)
        except AssertionError as error:
            raise AssertionError(f"{error}\nafter:\n  " + "\n  ".join(map(str, history))) from None
        tried += 1
    return tried


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_all_interleavings(name: str) -> None:
    tried = run_all(interleavings(CONVERSATIONS[name]))
    print(f"\n{name}: {tried} histories")
    assert tried >= 400


@pytest.mark.skipif(not IS_DEEP, reason="minutes: --hypothesis-profile deep")
@pytest.mark.parametrize("name", DEEP_CONVERSATIONS)
def test_all_interleavings_of_bigger_ones(name: str) -> None:
    tried = run_all(interleavings(DEEP_CONVERSATIONS[name]))
    print(f"\n{name}: {tried} histories")
    assert tried >= 40_000


# --- pages

PAGED = log(
    ("entry", {"entry": "e1", "text": "a"}),
    *START,
    ("job/open", {"job": "j"}),
    ("measure", {"measure": "m"}),
    *END[:1],
    ("job/result", {"job": "j", "value": 1}),
    ("entry", {"entry": "e2", "text": "b"}),
    ("turn/end", {"turn": 1}),
    ("watch", {"watch": "w", "job": "j"}),
    ("turn/start", {"turn": 2}),
)


def cuts(length: int) -> Iterator[tuple[int, ...]]:
    """All ways to cut a log into pages: the boundaries, newest first."""
    for bits in range(1 << (length - 1)):
        yield tuple(at for at in range(length - 1, 0, -1) if bits >> (at - 1) & 1)


def paged(at: Sequence[int], *, overlap: int = 0) -> tuple[Operation, ...]:
    """A load of the newest page, then the older ones."""
    edges = [len(PAGED), *at, 0]
    operations = []
    for last, first in zip(edges, edges[1:], strict=False):
        page = tuple(PAGED[first : min(last + overlap, len(PAGED))])
        call = "load" if last == len(PAGED) else "prepend"
        operations.append(Operation(call, (page, first > 0)))
    return tuple(operations)


def test_all_page_cuts() -> None:
    answers, tried = Answers(), 0
    for overlap in (0, 1, 3):
        for cut in cuts(len(PAGED)):
            run(paged(cut, overlap=overlap), answers)
            tried += 1
    print(f"\nall page cuts: {tried} histories")
    assert tried == 3 * 1024


def test_all_page_cuts_with_an_attempt_that_is_held() -> None:
    """The page that closes its step retires it; before that it stays, whatever is loaded."""
    answers, tried = Answers(), 0
    channel = says("a", "job-piece j", "speech-piece", after=4)
    for cut in cuts(len(PAGED)):
        if len(cut) <= (10 if IS_DEEP else 3):
            pages = paged(cut)
            for at in range(len(pages) + 1):
                run((*pages[:at], *channel, *pages[at:]), answers)
                tried += 1
    print(f"\npages with an attempt: {tried} histories")
    assert tried >= 700


def test_all_evictions_and_pages_again() -> None:
    answers, tried = Answers(), 0
    for before in range(1, len(PAGED) + 2):
        for size in range(1, len(PAGED) + 1):
            operations = [Operation("load", (tuple(PAGED), False)), Operation("evict", (before,))]
            oracle = Oracle(toys())
            for operation in operations:
                operation.perform(oracle)
            first = oracle.window.first or len(PAGED) + 1
            for last in range(first - 1, 0, -size):
                page = tuple(PAGED[max(last - size, 0) : last])
                operations.append(Operation("prepend", (page, last > size)))
            run(operations, answers)
            tried += 1
    print(f"\nevictions: {tried} histories")
    assert tried == 132
