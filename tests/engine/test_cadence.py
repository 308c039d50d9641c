"""Each operation returns the most urgent of what it changed."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import FRAME, NONE, NOW, Cadence, Context, Match, Node, Scope
from tests.engine.support import Toy, delta, event

URGENCY = {"none": NONE, "frame": FRAME, "now": NOW}


def as_it_says(match: Match) -> Cadence:
    return URGENCY[match.data["how"]]


def quiet(kind: str = "toy", **methods: Any) -> Toy:
    return Toy(kind, **{"cadence": as_it_says, **methods})


def reading(name: str) -> Toy:
    def build(context: Context, scope: Scope) -> Node:
        return Node("toy", context.id, {"read": str(getattr(scope, name))})

    return quiet(build=build)


def test_they_are_ordered() -> None:
    assert NONE < FRAME < NOW


@pytest.mark.parametrize("how", URGENCY)
def test_an_item_is_as_urgent_as_its_definition_says(how: str) -> None:
    assembler = Assembler([quiet()])
    assert assembler.append(event(1, how=how)) is URGENCY[how]
    assert assembler.append(event(2, "toy/more", how=how)) is URGENCY[how]
    for ordinal in range(3):
        assert assembler.emit(delta(ordinal, after=2, how=how)) is URGENCY[how]


def test_without_a_word_it_is_now() -> None:
    assembler = Assembler([Toy()])
    assert assembler.append(event(1)) is NOW
    assert [assembler.emit(delta(ordinal, after=1)) for ordinal in range(3)] == [NOW] * 3


def test_of_several_definitions_the_most_urgent_counts() -> None:
    pair = [Toy(kind, takes={"both"}, cadence=lambda _match, to=to: to) for kind, to in HOW]
    for order in (pair, pair[::-1]):
        assert Assembler(order).append(event(1, "both")) is FRAME


HOW = (("a", NONE), ("b", FRAME))


@pytest.mark.parametrize("what", ["toy", "other", "toy-piece"])
def test_what_nobody_takes_is_not_urgent(what: str) -> None:
    assembler = Assembler([quiet(match=lambda _item: None)])
    if what == "toy-piece":
        assert assembler.emit(delta(how="now")) is NONE
    else:
        assert assembler.append(event(1, what, how="now")) is NONE


def test_what_is_not_taken_is_not_urgent() -> None:
    assembler = Assembler([Toy()])
    assembler.append(event(3))
    assembler.emit(delta(after=3))
    assert assembler.append(event(3)) is NONE  # a repeat
    assert assembler.append(event(2)) is NONE  # stale
    assert assembler.emit(delta(after=3)) is NONE  # a repeat
    assert assembler.emit(delta(5, after=3)) is NONE  # torn
    assembler.settle("a", "failed")
    assert assembler.emit(delta(1, after=3)) is NONE  # late


@pytest.mark.parametrize(
    ("reads", "urgent"), [("turn_status", NOW), ("step_status", NOW), ("live", NONE)]
)
def test_a_boundary_is_urgent_when_somebody_read_what_it_changes(
    reads: str, urgent: Cadence
) -> None:
    assembler = Assembler([reading(reads)])
    assembler.append(event(1, turn=1, step=1, how="none"))
    assembler.flush()
    assert assembler.append(event(2, "turn/end", turn=1)) is urgent
    assembler.flush()
    assert assembler.append(event(3, "turn/end", turn=1)) is NONE


@pytest.mark.parametrize("reads", ["turn_status", "step_status"])
def test_a_boundary_of_which_nobody_read_is_not_urgent(reads: str) -> None:
    assembler = Assembler([reading(reads)])
    assembler.append(event(1, turn=2, step=2, how="none"))
    assembler.flush()
    assert assembler.append(event(2, "step/end", turn=1, step=9)) is NONE
    assert assembler.append(event(3, "turn/start", turn=2)) is (
        NOW if reads == "turn_status" else NONE
    )
    assembler.flush()
    assert assembler.append(event(4, "step/start", turn=2, step=1)) is NONE
    assert assembler.append(event(5, "step/end", turn=2, step=1)) is NONE


def test_an_end_that_retires_deltas_is_urgent() -> None:
    assembler = Assembler([quiet()])
    assembler.append(event(1, "turn/start", turn=1))
    assembler.emit(delta(after=1, how="none"))
    assert assembler.append(event(2, "step/end", turn=1, step=1)) is NOW


def test_an_event_that_gives_an_attempt_up_is_urgent_when_it_is_held() -> None:
    drop = quiet("drop", retires=lambda given: given.data["name"])
    assembler = Assembler([quiet(), drop])
    place = {"turn": 1, "step": 1}
    assert assembler.append(event(1, "drop", name="b", how="none", **place)) is NONE
    assembler.emit(delta(after=1, how="none"))
    assert assembler.append(event(2, "drop", name="a", how="none", **place)) is NOW


def test_liveness_is_urgent_when_it_changes() -> None:
    assembler = Assembler([reading("live")])
    assembler.append(event(1, how="none"))
    assembler.flush()
    assert assembler.liveness(None) is NONE
    assert assembler.liveness(True) is NOW
    assert assembler.liveness(True) is NONE


def test_a_page_is_urgent_when_it_brings_something() -> None:
    assembler = Assembler([reading("complete")])
    assembler.load([event(4, how="none"), event(5, "other")], True)
    assembler.flush()
    assert assembler.prepend([event(3, how="none")], True) is NOW
    assert assembler.prepend([event(3, how="none")], True) is NONE
    assert assembler.prepend([], True) is NONE
    assert assembler.prepend([], False) is NOW
    assert assembler.prepend([], False) is NONE


def test_the_first_event_is_urgent_when_it_says_that_more_is_older() -> None:
    assembler = Assembler([reading("complete")])
    assembler.emit(delta(how="none"))
    assembler.flush()
    assert assembler.append(event(5, "other")) is NOW


def test_a_load_and_an_eviction_are_urgent() -> None:
    assembler = Assembler([quiet()])
    assert assembler.load([event(1, how="none"), event(2, "other")]) is NOW
    assert assembler.evict(1) is NONE
    assert assembler.evict(2) is NOW


def test_cadence_never_delays_what_is_shown() -> None:
    assembler = Assembler([quiet()])
    assembler.append(event(1, how="none", v=1))
    assert assembler.state("toy", "x") == (1,)
    assert assembler.flush()["chat"]


def test_a_word_that_is_no_cadence_is_urgent_and_found() -> None:
    words = iter([NONE, NONE, 0, NONE])
    assembler = Assembler([Toy(cadence=lambda _match: next(words))])
    said = [assembler.emit(delta(0)), assembler.emit(delta(1))]
    assembler.flush()
    assert (said, assembler.findings()) == ([NONE, NONE], [])
    words = iter([0, 0, NONE])  # asked twice at most
    assert assembler.emit(delta(2)) is NOW
    assembler.flush()
    assert [odd.key for odd in assembler.findings()] == ["toy:x"]
