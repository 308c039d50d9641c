"""Attempts: which deltas are taken, which are dropped and noted, and when they go."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import FRAME, NONE, NOW
from assembler.engine.errors import ConflictError
from assembler.engine.events import Delta, Event, Outcome
from tests.engine.support import Toy, delta, event, everything, same_as_fresh, shown

ENDINGS = [outcome for outcome in Outcome if outcome is not Outcome.COMPLETED]


def give_up(item: Event) -> Any:
    return item.data.get("gives_up")


def toys() -> list[Toy]:
    return [Toy(), Toy("drop", None, takes={"drop"}, retires=give_up, match=lambda _item: None)]


class Bench:
    """An Assembler in an open step 1.1, with its next live counter and next seq."""

    def __init__(self, **options: Any) -> None:
        self.assembler = Assembler(toys(), **options)
        self.index = 0
        self.seq = 0
        self.append("turn/start", turn=1)
        self.append("step/start", turn=1, step=1)

    def append(self, type_: str = "toy", /, **data: Any) -> None:
        self.seq += 1
        self.assembler.append(event(self.seq, type_, **data))

    def say(self, attempt: str = "a", ordinal: int = 0, /, **fields: Any) -> Any:
        """The next delta; about a Context named as its attempt."""
        self.index += 1
        fields = {"id": attempt, "after": self.seq, "index": self.index, **fields}
        return self.assembler.emit(delta(ordinal, attempt=attempt, **fields))

    @property
    def held(self) -> str:
        """The attempts of the held deltas, one letter each, in position order."""
        found = "".join(each.attempt for each in self.assembler.deltas)
        same_as_fresh(self.assembler, toys())
        return found

    @property
    def incidents(self) -> list[str]:
        return [f"{odd.kind} {odd.key}" for odd in self.assembler.anomalies]


@pytest.fixture
def bench() -> Bench:
    return Bench()


# --- ordinals


def test_ordinals_come_in_order(bench: Bench) -> None:
    for ordinal in range(4):
        bench.say("a", ordinal, v=ordinal)
    assert shown(bench.assembler)["a"] == {"v": [0, 1, 2, 3]}
    assert (bench.held, bench.incidents) == ("aaaa", [])


@pytest.mark.parametrize("again", [0, 1, 2])
def test_an_ordinal_that_comes_again_is_ignored_whatever_it_carries(
    bench: Bench, again: int
) -> None:
    for ordinal in range(3):
        bench.say("a", ordinal)
    bench.assembler.flush()
    before = everything(bench.assembler)
    assert bench.say("a", again) is NONE
    assert bench.say("a", again, turn=7, step=9, number=3, v="another") is NONE
    assert everything(bench.assembler) == before


def test_a_skip_tears_the_attempt_once_and_its_text_gets_no_hole(bench: Bench) -> None:
    bench.say("a", 0, v="one")
    for ordinal in (2, 3, 5):
        assert bench.say("a", ordinal, v="lost") is NONE
    assert shown(bench.assembler)["a"] == {"v": ["one"]}
    assert bench.incidents == ["torn-attempt a"]
    assert bench.assembler.statistics()["torn"] == ["a"]


def test_deltas_sent_again_from_the_missing_one_on_heal_it(bench: Bench) -> None:
    for ordinal in (0, 2, 1, 2, 3):
        bench.say("a", ordinal, v=ordinal)
    assert shown(bench.assembler)["a"] == {"v": [0, 1, 2, 3]}
    assert bench.incidents == ["torn-attempt a"]
    assert bench.assembler.statistics()["torn"] == []


def test_it_can_tear_again_and_that_is_another_incident(bench: Bench) -> None:
    for ordinal in (0, 2, 1, 3, 2, 4, 3):
        bench.say("a", ordinal)
    assert bench.incidents == ["torn-attempt a"] * 3
    assert bench.held == "aaaa"


def test_an_attempt_that_begins_with_a_skip_is_torn_and_holds_nothing(bench: Bench) -> None:
    bench.say("a", 2)
    assert (bench.held, bench.incidents) == ("", ["torn-attempt a"])
    bench.say("a", 0)
    assert bench.held == "a"


def test_a_torn_attempt_has_spoken_with_its_number(bench: Bench) -> None:
    bench.say("a", 0, number=1)
    bench.say("b", 5, number=2)
    assert bench.held == ""
    assert bench.incidents == ["torn-attempt b"]


@pytest.mark.parametrize("field", ["turn", "step", "number"])
@pytest.mark.parametrize("ordinal", [1, 4])
def test_an_attempt_never_changes_its_place(bench: Bench, field: str, ordinal: int) -> None:
    bench.say("a", 0, number=2)
    bench.assembler.flush()
    before = everything(bench.assembler)
    place = {"turn": 1, "step": 1, "number": 2}
    with pytest.raises(ConflictError):
        bench.say("a", ordinal, **{**place, field: place[field] + 1})
    assert everything(bench.assembler) == before


@pytest.mark.parametrize(("after", "index"), [(2, 5), (2, 4), (1, 9)])
def test_positions_of_an_attempt_rise(bench: Bench, after: int, index: int) -> None:
    bench.say("a", 0, after=2, index=5)
    with pytest.raises(ConflictError):
        bench.say("a", 1, after=after, index=index)
    bench.say("a", 1, after=2, index=6)
    assert bench.held == "aa"


def test_two_attempts_may_share_a_position_and_stand_by_name(bench: Bench) -> None:
    bench.say("b", 0, index=1, id="x", v="b")
    bench.say("a", 0, index=1, id="x", v="a")
    assert bench.held == "ab"
    assert shown(bench.assembler)["x"] == {"v": ["a", "b"]}


def test_deltas_of_two_attempts_may_come_out_of_position_order(bench: Bench) -> None:
    bench.say("a", 0, index=5, id="x", v="late")
    bench.say("b", 0, index=2, id="x", v="early")
    assert shown(bench.assembler)["x"] == {"v": ["early", "late"]}
    assert bench.held == "ba"


# --- numbers


def test_a_higher_number_gives_up_the_lower_ones_of_its_step(bench: Bench) -> None:
    bench.say("a", 0, number=1)
    bench.say("b", 0, number=1)
    bench.say("z", 0, number=1, step=2)
    assert bench.held == "abz"
    bench.say("c", 0, number=3)
    assert bench.held == "zc"
    assert [*shown(bench.assembler)] == ["z", "c"]


def test_a_lower_number_comes_late(bench: Bench) -> None:
    bench.say("c", 0, number=3)
    for name, number in (("a", 1), ("b", 2)):
        assert bench.say(name, 0, number=number) is NONE
    assert (bench.held, bench.incidents) == ("c", ["late-delta a", "late-delta b"])


def test_two_attempts_with_one_number_stand_side_by_side(bench: Bench) -> None:
    bench.say("a", 0, number=2)
    bench.say("b", 0, number=2)
    bench.say("a", 1, number=2)
    assert (bench.held, bench.incidents) == ("aba", [])


def test_a_side_stream_neither_retires_nor_is_retired_by_a_number(bench: Bench) -> None:
    bench.say("a", 0, number=1)
    bench.say("s", 0, number=0)
    assert bench.held == "as"
    bench.say("b", 0, number=2)
    bench.say("s", 1, number=0)
    bench.say("t", 0, number=0)
    assert (bench.held, bench.incidents) == ("sbst", [])


# --- settlements


@pytest.mark.parametrize("outcome", ENDINGS)
@pytest.mark.parametrize("completed_first", [False, True])
def test_any_other_outcome_than_completed_gives_it_up(
    bench: Bench, outcome: Outcome, completed_first: bool
) -> None:
    bench.say("a", 0)
    bench.say("b", 0)
    if completed_first:
        bench.assembler.settle("a", Outcome.COMPLETED)
        assert bench.held == "ab"
    bench.assembler.settle("a", outcome)
    assert bench.held == "b"
    assert [*shown(bench.assembler)] == ["b"]


def test_completed_keeps_the_deltas_until_their_step_closes(bench: Bench) -> None:
    bench.say("a", 0)
    bench.assembler.settle("a", "completed")
    bench.append("other")
    assert bench.held == "a"
    bench.say("a", 1)  # the rest may still be on its way
    assert bench.held == "aa"
    bench.append("step/end", turn=1, step=1)
    assert bench.held == ""


@pytest.mark.parametrize("outcome", list(Outcome))
def test_nothing_revives_an_attempt(bench: Bench, outcome: Outcome) -> None:
    bench.say("a", 0)
    bench.assembler.settle("a", "failed")
    bench.assembler.settle("a", outcome)
    for ordinal in (0, 1):
        assert bench.say("a", ordinal) is NONE
    assert bench.incidents == ["late-delta a"] * 2  # one for each delta
    assert bench.held == ""


def test_a_late_delta_is_noted_where_it_would_have_stood(bench: Bench) -> None:
    bench.say("a", 0)
    bench.assembler.settle("a", "failed")
    bench.say("a", 1, after=2, index=7)
    assert [odd.to_json() for odd in bench.assembler.anomalies] == [
        {"kind": "late-delta", "key": "a", "position": [2, 7]}
    ]


@pytest.mark.parametrize("outcome", ENDINGS)
def test_a_settlement_told_ahead_waits_for_its_attempt(bench: Bench, outcome: Outcome) -> None:
    bench.assembler.settle("a", outcome)
    assert bench.say("a", 0) is NONE
    assert bench.say("a", 1) is NONE
    assert (bench.held, bench.incidents) == ("", ["late-delta a"] * 2)


def test_a_completion_told_ahead_lets_it_come(bench: Bench) -> None:
    bench.assembler.settle("a", "completed")
    for ordinal in (0, 1):
        bench.say("a", ordinal)
    assert bench.held == "aa"
    bench.assembler.settle("a", "failed")
    assert bench.held == ""


def test_a_completion_told_ahead_may_be_followed_by_another_outcome(bench: Bench) -> None:
    for outcome in ("completed", "failed", "completed"):
        bench.assembler.settle("a", outcome)
    bench.say("a", 0)
    assert bench.incidents == ["late-delta a"]


def test_a_settlement_told_ahead_lasts_until_the_newest_turn_has_closed(bench: Bench) -> None:
    bench.assembler.settle("a", "failed")
    bench.append("step/end", turn=1, step=1)
    bench.say("a", 0, step=2)
    assert bench.incidents == ["late-delta a"]
    bench.append("turn/end", turn=1)
    bench.assembler.settle("b", "failed")  # turn 1 is closed: it waits for the next one
    bench.append("turn/start", turn=2)
    bench.say("b", 0, turn=2)
    assert bench.incidents == ["late-delta a", "late-delta b"]
    bench.assembler.settle("c", "failed")
    bench.append("turn/start", turn=3)
    bench.say("c", 0, turn=3)
    assert (bench.held, bench.incidents[2:]) == ("c", [])


def test_told_when_the_newest_turn_is_closed_it_lasts_for_the_next_one(bench: Bench) -> None:
    bench.append("turn/end", turn=1)
    for name in "bc":
        bench.assembler.settle(name, "failed")
    bench.append("turn/start", turn=2)
    bench.append("step/end", turn=2, step=1)
    bench.say("b", 0, turn=2, step=2)
    assert bench.incidents == ["late-delta b"]
    bench.append("turn/start", turn=3)
    bench.say("c", 0, turn=3)
    assert (bench.held, bench.incidents[1:]) == ("c", [])


def test_an_attempt_that_speaks_of_several_takes_all_of_it_back(bench: Bench) -> None:
    for name in "xyz":
        bench.append(id=name, v=name)
    for ordinal, name in enumerate("xyzxzyx"):
        bench.say("a", ordinal, id=name, v=ordinal)
    assert shown(bench.assembler)["y"] == {"v": ["y", 1, 5]}
    assert bench.held == "aaaaaaa"
    bench.assembler.settle("a", "failed")
    assert shown(bench.assembler) == {name: {"v": [name]} for name in "xyz"}
    assert bench.held == ""


@pytest.mark.parametrize("way", ["append", "page", "load", "delta"])
def test_a_settlement_told_before_any_turn_waits_for_the_first_one_known(way: str) -> None:
    assembler = Assembler(toys())
    assembler.load([event(5, "other")], True)
    assembler.settle("a", "failed")
    if way == "append":
        assembler.append(event(6, "other", turn=3))
    elif way == "page":
        assembler.prepend([event(4, "other", turn=3)], True)
    elif way == "load":
        assembler.load([event(5, "other", turn=3)], True)
    else:
        assembler.emit(delta(attempt="b", turn=3))
    assembler.append(event((assembler.window.last or 0) + 1, "turn/start", turn=4))
    assembler.emit(delta(turn=4, index=9))
    assert [each.attempt for each in assembler.deltas] == ["a"]  # turn 3 has closed since
    assert list(assembler.anomalies) == []


def test_a_settlement_is_remembered_also_where_its_attempt_was_seen_in_another_turn(
    bench: Bench,
) -> None:
    # Its first sight makes it an attempt that was given up in that step.
    bench.assembler.settle("a", "failed")
    bench.say("a", 0, turn=2)
    bench.append("turn/end", turn=1)
    bench.say("a", 0, turn=2)
    assert (bench.held, bench.incidents) == ("", ["late-delta a"] * 2)


# --- what closes


@pytest.mark.parametrize(
    ("type_", "place", "held"),
    [
        ("step/end", {"turn": 1, "step": 1}, "bc"),
        ("step/start", {"turn": 1, "step": 2}, "bc"),
        ("step/start", {"turn": 1, "step": 3}, "c"),
        ("step/end", {"turn": 1, "step": 2}, "c"),
        ("turn/end", {"turn": 1}, "c"),
        ("turn/start", {"turn": 2}, "c"),
        ("turn/start", {"turn": 3}, ""),
        ("step/end", {"turn": 2, "step": 1}, ""),
        ("turn/end", {"turn": 1, "step": 9}, "c"),
        ("step/end", {"turn": 1}, "abc"),
        ("turn/start", {"turn": 1}, "abc"),
    ],
)
@pytest.mark.parametrize("way", ["append", "page", "load"])
def test_whatever_closes_a_step_retires_its_attempts_settled_or_not(
    type_: str, place: dict[str, int], held: str, way: str
) -> None:
    assembler = Assembler(toys())
    assembler.load([event(5, "other")], True)
    for index, (name, turn, step) in enumerate((("a", 1, 1), ("b", 1, 2), ("c", 2, 1)), 1):
        assembler.emit(delta(attempt=name, turn=turn, step=step, id=name, after=5, index=index))
    assembler.settle("a", "completed")
    assembler.flush()
    if way == "append":
        assembler.append(event(6, type_, **place))
    elif way == "page":
        assembler.prepend([event(4, type_, **place)], True)
    else:
        assembler.load([event(1, type_, **place)], False)
    assert "".join(each.attempt for each in assembler.deltas) == held
    assert "".join(shown(assembler)) == held
    same_as_fresh(assembler, toys())


def test_closed_stays_closed_for_deltas_whatever_is_loaded(bench: Bench) -> None:
    bench.append("step/end", turn=1, step=1)
    bench.append("other")
    bench.assembler.evict(100)
    bench.assembler.load([], False)
    for step, turn in ((1, 1), (0, 1), (9, 0)):
        bench.say(f"{turn}.{step}", 0, turn=turn, step=step)
    assert bench.held == ""
    assert [odd.kind for odd in bench.assembler.anomalies] == ["late-delta"] * 3
    bench.say("b", 0, step=2)
    assert [each.attempt for each in bench.assembler.deltas] == ["b"]


def test_a_retired_context_with_durable_evidence_stays(bench: Bench) -> None:
    bench.say("a", 0, id="x", v="live")
    bench.append(id="x", v="durable")
    assert shown(bench.assembler)["x"] == {"v": ["live", "durable"]}
    bench.assembler.settle("a", "failed")
    assert shown(bench.assembler)["x"] == {"v": ["durable"]}
    assert bench.assembler.view()["toy:x"].anchor == (3, 0)


# --- giving up by name


def test_an_event_gives_an_attempt_up_by_name(bench: Bench) -> None:
    bench.say("a", 0)
    bench.say("b", 0)
    bench.append("drop", gives_up="a", turn=1, step=1)
    assert bench.held == "b"
    bench.say("a", 1)
    assert bench.incidents == ["late-delta a"]


def test_a_name_given_up_before_its_attempt_was_seen_stays_given_up(bench: Bench) -> None:
    bench.append("drop", gives_up="a", turn=1, step=1)
    bench.say("a", 0)
    assert (bench.held, bench.incidents) == ("", ["late-delta a"])


@pytest.mark.parametrize("event_first", [False, True])
def test_a_name_is_given_up_in_the_step_that_the_event_names_alone(
    bench: Bench, event_first: bool
) -> None:
    if event_first:
        bench.append("drop", gives_up="a", turn=1, step=1)
    bench.say("a", 0, turn=1, step=2)
    if not event_first:
        bench.append("drop", gives_up="a", turn=1, step=1)
    assert (bench.held, bench.incidents) == ("a", [])


@pytest.mark.parametrize("place", [{}, {"turn": 1}])
def test_an_event_that_names_no_step_gives_nothing_up(bench: Bench, place: dict[str, int]) -> None:
    bench.say("a", 0)
    bench.append("drop", gives_up="a", **place)
    assert (bench.held, bench.incidents) == ("a", [])


@pytest.mark.parametrize("way", ["page", "load"])
def test_what_gives_up_acts_whenever_it_is_learned(way: str) -> None:
    assembler = Assembler(toys())
    assembler.load([event(5, "other")], True)
    assembler.emit(delta(after=5))
    drop = event(4, "drop", gives_up="a", turn=1, step=1)
    if way == "page":
        assembler.prepend([drop], True)
    else:
        assembler.load([drop], True)
    assert assembler.deltas == []
    assembler.load([], False)  # and it is remembered without the event
    assembler.emit(delta(after=5))
    assert assembler.deltas == []


def test_a_conflict_of_an_attempt_says_what_disagrees(bench: Bench) -> None:
    bench.say("a", 0)
    with pytest.raises(ConflictError) as caught:
        bench.say("a", 1, step=2, number=3)
    assert str(caught.value) == (
        "attempt 'a' is number 1 of turn 1, step 1, and cannot become number 3 of 1, 2"
    )
    assert (caught.value.expected, caught.value.actual) == ((1, 1, 1), (1, 2, 3))
    with pytest.raises(ConflictError) as caught:
        bench.say("a", 1, after=2, index=1)
    assert str(caught.value) == (
        "ordinal 1 of attempt 'a' stands at or before the ordinal before it"
    )
    assert bench.held == "a"


# --- the memory is bounded


def memory(assembler: Assembler) -> tuple[int, int, int]:
    attempts = assembler._attempts
    return len(attempts.held), len(attempts.steps), len(attempts.ahead)


def test_nothing_is_remembered_of_closed_steps(bench: Bench) -> None:
    for turn in range(1, 6):
        for step in (1, 2):
            bench.append("step/start", turn=turn, step=step)
            for number, name in enumerate("abc", 1):
                bench.say(f"{name}{turn}{step}", 0, turn=turn, step=step, number=number)
            bench.assembler.settle(f"c{turn}{step}", "failed")
            bench.append("drop", gives_up=f"d{turn}{step}", turn=turn, step=step)
            bench.assembler.settle(f"e{turn}{step}", "failed")
            bench.append("step/end", turn=turn, step=step)
        bench.append("turn/end", turn=turn)
        assert memory(bench.assembler) == (0, 0, 0)


def test_what_speaks_of_closed_steps_leaves_nothing_behind(bench: Bench) -> None:
    bench.append("turn/end", turn=1)
    bench.say("a", 0)
    bench.append("drop", gives_up="b", turn=1, step=1)
    assert memory(bench.assembler) == (0, 0, 0)


def test_settlements_told_ahead_are_bounded_and_the_oldest_goes() -> None:
    bench = Bench(settled_ahead_max=3)
    for name in "abcde":
        bench.assembler.settle(name, "failed")
    assert memory(bench.assembler)[2] == 3
    for name in "abcde":
        bench.say(name, 0)
    assert bench.incidents == [f"late-delta {name}" for name in "cde"]
    assert [each.attempt for each in bench.assembler.deltas] == ["a", "b"]


def test_an_attempt_that_has_come_is_remembered_ahead_no_more() -> None:
    bench = Bench(settled_ahead_max=2)
    bench.assembler.settle("x", "failed")
    for name in "abc":
        bench.assembler.settle(name, "completed")
        bench.say(name, 0)
    assert memory(bench.assembler)[2] == 1
    bench.say("x", 0)
    assert bench.incidents == ["late-delta x"]


def test_a_settlement_of_what_is_given_up_is_not_remembered_ahead(bench: Bench) -> None:
    bench.say("a", 0)
    for _ in range(3):
        bench.assembler.settle("a", "failed")
    assert memory(bench.assembler)[2] == 0


# --- what the operations say


def test_the_cadence_of_endings(bench: Bench) -> None:
    assert bench.assembler.settle("nobody", "failed") is NONE
    bench.say("a", 0)
    assert bench.assembler.settle("a", "completed") is NONE
    assert bench.assembler.settle("a", "failed") is NOW


def test_a_number_that_beats_another_is_seen_now() -> None:
    quiet = Toy(cadence=lambda _match: FRAME)
    assembler = Assembler([quiet])
    assert assembler.emit(delta(attempt="a")) is FRAME
    assert assembler.emit(delta(attempt="b", number=2, index=2)) is NOW


def test_a_delta_that_no_definition_takes_is_held_all_the_same() -> None:
    assembler = Assembler(toys())
    assembler.emit(Delta("a", 1, 1, "nobody-takes", {"id": "x"}))
    assembler.emit(delta(1))
    assert [each.ordinal for each in assembler.deltas] == [0, 1]
    same_as_fresh(assembler, toys())
