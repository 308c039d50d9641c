"""Faulty deliveries by seed, and `check_convergence` over all that may be given to it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from assembler import Assembler, Delta, Event
from assembler.testing import (
    FAULTS,
    CheckFailed,
    Conversation,
    Operation,
    check_convergence,
    conversations,
    delivery,
)
from tests.convergence.careless import DELTAS, EVENTS, Parcel
from tests.convergence.support import Bench

STEP = {"turn": 1, "step": 1}


def label(ordinal: int, text: str) -> Delta:
    data = {"parcel": "p1", "text": text}
    return Delta("a", 1, 1, "parcel-label", data, ordinal=ordinal, after=2, index=ordinal + 1)


TALK = Conversation.of(
    Event(1, "turn/start", {"turn": 1}),
    Event(2, "step/start", STEP),
    label(0, "for "),
    label(1, "you "),
    ("liveness", True),
    label(2, "alone"),
    Event(3, "parcel/packed", {"parcel": "p1", "weight": 3}),
    ("settle", "a", "completed"),
    Event(4, "step/end", STEP),
    Event(5, "parcel/moved", {"parcel": "p1", "to": "van"}),
    Event(6, "turn/end", {"turn": 1}),
)


def test_a_conversation_by_hand_is_what_happened() -> None:
    assert [event.seq for event in TALK.log] == [1, 2, 3, 4, 5, 6]
    assert "".join(delta.data["text"] for delta in TALK.deltas) == "for you alone"
    with pytest.raises(TypeError, match="expected an Event, a Delta or a tuple"):
        Conversation.of({"seq": 1})  # type: ignore[arg-type]


def test_the_same_seed_is_the_same_delivery() -> None:
    assert delivery(TALK, 7) == delivery(TALK, 7)
    assert len({delivery(TALK, seed) for seed in range(20)}) == 20


def test_without_faults_it_is_as_it_happened() -> None:
    assert delivery(TALK, 7, faults=()) == TALK.script


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_happens_and_does_no_harm(fault: str) -> None:
    odd = 0
    for seed in range(8):
        history = delivery(TALK, seed, faults=[fault])
        odd += history != TALK.script
        bench = Bench(lambda: [Parcel()], ("chat",))
        for operation in history:
            bench.perform(operation)
        bench.check(identity=False)
    assert odd > 4


def all_of(fault: str) -> list[Operation]:
    return [each for seed in range(30) for each in delivery(TALK, seed, faults=[fault])]


@pytest.mark.parametrize(
    ("fault", "call"),
    [
        ("lost", "load"),
        ("paged", "prepend"),
        ("evicted", "evict"),
        ("resynced", "load"),
        ("reconnected", "load"),
        ("settled", "settle"),
    ],
)
def test_a_fault_calls_what_it_says(fault: str, call: str) -> None:
    wanted = [each for each in all_of(fault) if each.call == call]
    assert len(wanted) > len([each for each in TALK.script if each.call == call]) * 30


def test_an_attempt_is_told_anew_under_another_name() -> None:
    told = [each.arguments[0] for each in all_of("retold") if each.call == "emit"]
    again = [delta for delta in told if delta.attempt == "a-again-1"]
    assert {delta.number for delta in again} == {1, 2}


def test_a_reconnect_brings_all_that_was_said_again() -> None:
    told = [each for each in all_of("reconnected") if each.call == "emit"]
    assert len(told) > len(TALK.deltas) * 30


def test_deltas_overtake_each_other() -> None:
    orders = set()
    for seed in range(30):
        history = delivery(TALK, seed, faults=["overtaken"])
        orders.add(tuple(each.arguments[0].ordinal for each in history if each.call == "emit"))
    assert (1, 0, 2) in orders


def test_a_fault_that_nobody_knows_is_named() -> None:
    with pytest.raises(ValueError, match="no fault 'rain'; known are repeated, late"):
        delivery(TALK, 1, faults=["rain"])
    with pytest.raises(TypeError, match="expected a Conversation"):
        delivery(TALK.log, 1)  # type: ignore[arg-type]


# --- check_convergence


class Meddling(Parcel):
    """It tells how many items any of its kind has matched, where no watch is kept."""

    class Count:
        total = 0

    def match(self, item: Any) -> Any:
        self.Count.total += 1
        return super().match(item)

    def shown(self, state: Any, scope: Any) -> Any:
        return {"total": self.Count.total}


GIVEN = {
    "a strategy": conversations(EVENTS, DELTAS, turns=1, moments=4),
    "one": TALK,
    "some": [TALK, Conversation.of(*TALK.log)],
    "a log": TALK.log,
    "one history": delivery(TALK, 3),
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_it_takes_all_that_is_a_conversation(given: Any) -> None:
    check_convergence(Parcel(), given, max_examples=5)
    with pytest.raises(CheckFailed) as caught:
        check_convergence(Meddling(), given, max_examples=5)
    assert caught.value.problem == "differs"


@pytest.mark.parametrize("given", [3, [], "log", [TALK, 3], None])
def test_what_is_none_is_said_in_one_line(given: Any) -> None:
    with pytest.raises(TypeError, match="expected a strategy of Conversations") as caught:
        check_convergence(Parcel(), given)
    assert "\n" not in str(caught.value)


def test_the_history_is_small_and_begins_at_one() -> None:
    with pytest.raises(CheckFailed) as caught:
        check_convergence(Meddling(), TALK)
    history = caught.value.history
    assert len(history) == 1
    assert history[0].perform(Assembler([Parcel()])) is None


class Memory:
    """What an author hides in an object that says nothing about itself."""

    streamed = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Memory)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "Memory()"


class Recalling(Parcel):
    """It shows whether it ever saw a delta: right while it is held, wrong after a reload."""

    def __init__(self) -> None:
        self.memory = Memory()

    def match(self, item: Any) -> Any:
        self.memory.streamed = self.memory.streamed or isinstance(item, Delta)
        return super().match(item)

    def shown(self, state: Any, scope: Any) -> Any:
        return {"streamed": self.memory.streamed}


def test_live_with_all_given_up_is_compared_with_a_reload() -> None:
    packed = Event(3, "parcel/packed", {"parcel": "p1", "weight": 3})
    held = Conversation.of(*TALK.log[:2], packed, replace(label(0, "for "), after=3))
    with pytest.raises(CheckFailed) as caught:
        check_convergence(Recalling(), held, max_examples=1)
    assert caught.value.details[1:] == (("live", "True"), ("reloaded", "False"))
    with pytest.raises(CheckFailed):
        check_convergence(Recalling(), caught.value.history)


class Early(Parcel):
    """It shows what happened before it, as far as that is loaded: live and paged differ only in
    the middle, so that every way of arriving is right."""

    def shown(self, state: Any, scope: Any) -> Any:
        return {"complete": scope.complete}


def test_what_depends_on_the_window_alone_is_fine() -> None:
    check_convergence(Early(), TALK, max_examples=10)
