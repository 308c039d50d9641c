"""Turns and steps: where things belong, what is open, and what a boundary makes again."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Context, Node, Scope
from assembler.engine.events import Event
from assembler.engine.locations import Location
from tests.engine.support import Toy, delta, event, same_as_fresh, wire

SESSION = Location(None, None)
UNRESOLVED = Location(None, None, resolved=False)


def build(context: Context, scope: Scope) -> Node:
    data = {
        "turn": scope.turn_status.value,
        "step": scope.step_status.value,
        "closed": scope.closed,
        "complete": scope.complete,
    }
    return Node("toy", context.id, data)


def of(*events: Event, has_more: bool = False, toy: Toy | None = None) -> Assembler:
    """An Assembler of these events; toy `x` is the one that a test looks at."""
    assembler = Assembler([toy or Toy(build=build)])
    assembler.load(events, has_more)
    assembler.flush()
    return assembler


def numbered(*events: tuple[Any, ...], first: int = 1) -> list[Event]:
    """`("turn/start", 1)`, `("step/end", 1, 2)`, `("toy",)`, as events in a row."""
    made = []
    for seq, (name, *place) in enumerate(events, first):
        made.append(event(seq, name, **dict(zip(("turn", "step"), place, strict=False))))
    return made


T1, S11, E11, E1 = ("turn/start", 1), ("step/start", 1, 1), ("step/end", 1, 1), ("turn/end", 1)
T2, S12 = ("turn/start", 2), ("step/start", 1, 2)
TOY = ("toy",)


def place(assembler: Assembler) -> Location | None:
    return assembler.location("toy", "x")


def data(assembler: Assembler) -> dict[str, Any]:
    assembler.flush()
    node: dict[str, Any] = assembler.view()["toy:x"].to_json()["data"]
    return node


# --- Locations


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([TOY], SESSION),
        ([T1, TOY], Location(1, None)),
        ([T1, S11, TOY], Location(1, 1)),
        ([T1, S11, E11, TOY], Location(1, None)),
        ([T1, S11, E11, S12, TOY], Location(1, 2)),
        ([T1, S11, E11, E1, TOY], SESSION),
        ([T1, S11, E1, TOY], SESSION),
        ([T1, S11, T2, TOY], Location(2, None)),
        ([TOY, T1], SESSION),
        # explicit coordinates win over the bracket
        ([T1, S11, ("toy", 3, 2)], Location(3, 2)),
        ([T1, S11, ("toy", 3)], Location(3, None)),
        ([("toy", 3, 2)], Location(3, 2)),
        # what is no number is no coordinate
        ([T1, S11, ("toy", "3", 2)], Location(1, 1)),
        ([T1, S11, ("toy", True, 2)], Location(1, 1)),
        ([T1, S11, ("toy", 3, "2")], Location(3, None)),
        ([T1, S11, ("toy", 3, True)], Location(3, None)),
        # what is no number is no boundary
        ([T1, S11, ("turn/end", "1"), TOY], Location(1, 1)),
        ([T1, ("step/start", 1), TOY], Location(1, None)),
        ([T1, S11, ("step/end", 1, "1"), TOY], Location(1, 1)),
        ([("turn/start",), TOY], SESSION),
    ],
)
@pytest.mark.parametrize("way", ["load", "append", "pages"])
def test_where_an_event_belongs(
    events: list[tuple[Any, ...]], expected: Location, way: str
) -> None:
    toy, made = Toy(), numbered(*events)
    assembler = Assembler([toy])
    if way == "load":
        assembler.load(made)
    elif way == "append":
        for each in made:
            assembler.append(each)
    else:
        for each in reversed(made):
            assembler.prepend([each], each.seq > 1)
    assert place(assembler) == expected
    same_as_fresh(assembler, [toy])


@pytest.mark.parametrize(
    ("location", "kind"),
    [
        (SESSION, "session"),
        (UNRESOLVED, "unresolved"),
        (Location(1, None), "turn"),
        (Location(1, 1), "step"),
    ],
)
def test_the_four_kinds_of_location(location: Location, kind: str) -> None:
    assert location.kind == kind


def test_a_delta_belongs_to_its_turn_and_step() -> None:
    assembler = of(*numbered(T1, S11))
    assembler.emit(delta(turn=4, step=7, after=2))
    assert place(assembler) == Location(4, 7)


def test_a_context_belongs_where_its_start_does_else_where_its_first_match_does() -> None:
    assembler = of(*numbered(T1, S11, ("toy/more",), E11, ("toy/more",)))
    assert place(assembler) == Location(1, 1)
    assembler.append(event(6, "step/start", turn=1, step=2))
    assembler.append(event(7))
    assert place(assembler) == Location(1, 2)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ([T1, S11], Location(1, 1)),
        ([T1, S11, E11], Location(1, None)),
        ([T1, E1], SESSION),
        ([("other",), ("other",)], UNRESOLVED),
    ],
)
def test_a_page_resolves_what_was_not_known(
    page: list[tuple[Any, ...]], expected: Location
) -> None:
    assembler = of(event(10), event(11, "toy/more"), has_more=True)
    assert place(assembler) == UNRESOLVED
    assembler.prepend(numbered(*page, first=10 - len(page)), True)
    assert place(assembler) == expected
    same_as_fresh(assembler, [Toy(build=build)])


def test_the_beginning_of_the_log_resolves_too() -> None:
    assembler = of(event(10), has_more=True)
    assembler.prepend([], False)
    assert place(assembler) == SESSION
    assembler.prepend([], True)
    assert place(assembler) == UNRESOLVED


def test_evicting_the_bracket_leaves_it_unresolved_again() -> None:
    assembler = of(*numbered(T1, TOY, ("other",)))
    assembler.evict(2)
    assert place(assembler) == UNRESOLVED
    same_as_fresh(assembler, [Toy(build=build)])


# --- statuses


@pytest.mark.parametrize(
    ("events", "has_more", "turn", "step"),
    [
        ([T1, S11, TOY], False, "open", "open"),
        ([T1, S11, TOY], True, "open", "open"),
        ([S11, TOY], True, "unknown", "open"),
        ([S11, TOY], False, "open", "open"),
        ([("toy", 1, 1)], True, "unknown", "unknown"),
        ([("toy", 1, 1)], False, "open", "open"),
        ([T1, S11, TOY, E11], False, "open", "closed"),
        ([T1, S11, TOY, E1], False, "closed", "closed"),
        ([TOY, T1, S11], True, "unknown", "unknown"),
        ([("toy", 1, 1), E11], True, "unknown", "closed"),
        ([("toy", 1, 1), E1], True, "closed", "closed"),
        # they close in order: whatever closes one closes every earlier one
        ([("toy", 1, 1), S12], True, "unknown", "closed"),
        ([("toy", 1, 1), ("step/end", 1, 3)], True, "unknown", "closed"),
        ([("toy", 1, 1), T2], True, "closed", "closed"),
        ([("toy", 1, 1), ("turn/start", 9)], True, "closed", "closed"),
        ([("toy", 1, 1), ("turn/end", 9)], True, "closed", "closed"),
        ([("toy", 1, 1), ("step/end", 9, 1)], True, "closed", "closed"),
        ([("toy", 1, 1), ("step/start", 9, 1)], True, "closed", "closed"),
        # and closed stays closed
        ([T1, S11, TOY, E11, S11], False, "open", "closed"),
        ([T1, S11, TOY, E1, T1, S11], False, "closed", "closed"),
        # a later one does not close itself, nor what comes behind it
        ([("toy", 1, 2), S12], False, "open", "open"),
        ([("toy", 1, 2), E11], False, "open", "open"),
        ([("toy", 2, 1), E1], False, "open", "open"),
    ],
)
def test_open_closed_unknown(
    events: list[tuple[Any, ...]], has_more: bool, turn: str, step: str
) -> None:
    made = numbered(*events, first=5)
    want = {"turn": turn, "step": step, "closed": step == "closed", "complete": not has_more}
    assert data(of(*made, has_more=has_more)) == want

    live = Assembler([Toy(build=build)])
    live.load(made[:1], has_more)
    for each in made[1:]:
        live.append(each)
        live.flush()
    assert data(live) == want


def test_without_a_step_closed_is_the_turns() -> None:
    assembler = of(*numbered(T1, TOY))
    assert data(assembler) == {
        "turn": "open",
        "step": "open",
        "closed": False,
        "complete": True,
    }
    assembler.append(event(3, "turn/end", turn=1))
    assert data(assembler)["closed"] is True


def test_the_conversation_itself_never_closes() -> None:
    assembler = of(*numbered(TOY, T1, E1))
    assert data(assembler) == {
        "turn": "open",
        "step": "open",
        "closed": False,
        "complete": True,
    }


def test_a_page_that_closes_acts_like_any_other() -> None:
    # A page can bring the end of a step whose item names it and came later.
    assembler = of(event(10, turn=1, step=1), has_more=True)
    assert data(assembler)["step"] == "unknown"
    assembler.prepend(numbered(E11, first=9), True)
    assert data(assembler)["step"] == "closed"
    same_as_fresh(assembler, [Toy(build=build)])


def test_evicting_what_closed_a_step_shows_it_as_a_load_would() -> None:
    assembler = of(*numbered(E11, ("toy", 1, 1)))
    assert data(assembler)["step"] == "closed"
    assembler.evict(2)
    assert data(assembler)["step"] == "unknown"
    same_as_fresh(assembler, [Toy(build=build)])


# --- `open` of the snapshot


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([TOY], None),
        ([T1], {"turn": 1, "step": None, "since": 10}),
        ([T1, S11], {"turn": 1, "step": 1, "since": 10}),
        ([T1, S11, E11], {"turn": 1, "step": None, "since": 10}),
        ([T1, S11, S12], {"turn": 1, "step": 2, "since": 10}),
        ([T1, S11, E1], None),
        ([T1, S11, T2], {"turn": 2, "step": None, "since": 30}),
        ([S11], {"turn": 1, "step": 1, "since": 10}),
        ([TOY, S11, T1], {"turn": 1, "step": 1, "since": 30}),
        ([("toy", 1, 1)], None),  # no start is loaded: since when is not known
        ([T1, T1], {"turn": 1, "step": None, "since": 10}),
        ([E1, T1], None),
    ],
)
def test_the_snapshot_says_what_is_open(events: list[tuple[Any, ...]], expected: Any) -> None:
    made = numbered(*events)
    assert wire(of(*made))["open"] == expected
    live = Assembler([Toy()])
    for each in made:
        live.append(each)
    live.flush()
    assert wire(live)["open"] == expected


def test_a_patch_says_when_what_is_open_changed() -> None:
    assembler = of(*numbered(T1, S11))
    assembler.append(event(3))
    assert "open" not in assembler.flush()["chat"].to_json()
    assembler.append(event(4, "turn/end", turn=1))
    assert assembler.flush()["chat"].to_json()["open"] is None


def test_open_goes_with_the_events_that_say_so() -> None:
    assembler = of(*numbered(T1, ("other",), ("other",)))
    assembler.evict(2)
    assembler.flush()
    assert wire(assembler)["open"] is None
    assembler.prepend(numbered(T1), False)
    assembler.flush()
    assert wire(assembler)["open"] == {"turn": 1, "step": None, "since": 10}


# --- what is made again


def reading(name: str) -> Toy:
    def read(context: Context, scope: Scope) -> Node:
        value = getattr(scope, name) if name else None
        return Node("toy", context.id, {"read": str(value)})

    return Toy(build=read)


BUILT_BY = {
    # a boundary: for a toy of step 1.1 and one of step 1.2, both open, who is built again
    ("step/end", 1, 1): {"step_status": "a", "closed": "a", "turn_status": "", "": ""},
    ("step/end", 1, 2): {"step_status": "ab", "closed": "ab", "turn_status": "", "": ""},
    ("step/start", 1, 3): {"step_status": "ab", "closed": "ab", "turn_status": "", "": ""},
    ("turn/end", 1): {"step_status": "ab", "closed": "ab", "turn_status": "ab", "": ""},
    ("turn/start", 2): {"step_status": "ab", "closed": "ab", "turn_status": "ab", "": ""},
    ("step/start", 0, 5): {"step_status": "", "closed": "", "turn_status": "", "": ""},
    ("toy/none", 1, 1): {"step_status": "", "closed": "", "turn_status": "", "": ""},
}


@pytest.mark.parametrize("reads", ["step_status", "closed", "turn_status", ""])
@pytest.mark.parametrize("boundary", BUILT_BY, ids=str)
def test_a_boundary_builds_exactly_the_nodes_that_read_it(
    boundary: tuple[Any, ...], reads: str
) -> None:
    toy = reading(reads)
    assembler = of(
        event(1, "turn/start", turn=1),
        event(2, turn=1, step=1, id="a"),
        event(3, turn=1, step=2, id="b"),
        event(4, "turn/start", turn=0),
        toy=toy,
    )
    toy.calls.clear()
    assembler.append(numbered(boundary, first=5)[0])
    assembler.flush()
    assert "".join(sorted(toy.asked("build"))) == BUILT_BY[boundary][reads]
    assert toy.asked("start") == toy.asked("update") == []  # a boundary never refolds


def test_what_is_closed_is_not_built_again_by_later_boundaries() -> None:
    toy = reading("closed")
    assembler = of(*numbered(T1, S11, TOY, E1), toy=toy)
    toy.calls.clear()
    for seq, turn in ((5, 2), (6, 3), (7, 4)):
        assembler.append(event(seq, "turn/start", turn=turn))
        assembler.flush()
    assert toy.asked("build") == []


def test_a_page_of_boundaries_builds_only_what_it_changes() -> None:
    toy = reading("step_status")
    events = [event(10, turn=1, step=1, id="a"), event(11, turn=2, step=1, id="b")]
    assembler = of(*events, has_more=True, toy=toy)
    toy.calls.clear()
    assembler.prepend(numbered(("turn/end", 1), first=9), True)
    assembler.flush()
    assert toy.asked("build") == ["a"]


def test_a_page_folds_nothing_that_is_placed_already() -> None:
    toy = Toy()
    assembler = of(*numbered(T1, S11, TOY, first=10), has_more=True, toy=toy)
    toy.calls.clear()
    assembler.prepend(numbered(("turn/start", 0), ("turn/end", 0), first=8), True)
    assembler.flush()
    assert toy.calls == []


def test_an_end_that_is_forgotten_closes_nothing_any_more() -> None:
    toys = [Toy()]
    assembler = Assembler(toys)
    assembler.load(
        [
            event(1, "turn/end", turn=5),
            event(2, "turn/start", turn=1),
            event(3, "step/start", turn=1, step=2),
            event(4),
        ]
    )
    assembler.flush()
    assert wire(assembler)["open"] is None
    assembler.evict(2)
    assembler.flush()
    assert wire(assembler)["open"] == {"turn": 1, "step": 2, "since": 20}
    same_as_fresh(assembler, toys)


def test_a_turn_that_started_again_is_open_since_its_first_start_that_is_loaded() -> None:
    toys = [Toy()]
    assembler = Assembler(toys)
    log = [event(seq, "turn/start", turn=1) for seq in range(1, 5)]
    assembler.load([*log, event(5)])
    for first in range(1, 5):
        assembler.evict(first)
        assembler.flush()
        assert wire(assembler)["open"] == {"turn": 1, "step": None, "since": first * 10}
        same_as_fresh(assembler, toys)
    assembler.evict(5)
    assembler.flush()
    assert wire(assembler)["open"] is None
    assembler.prepend(log, False)
    assembler.flush()
    assert wire(assembler)["open"] == {"turn": 1, "step": None, "since": 10}
    same_as_fresh(assembler, toys)


@pytest.mark.parametrize("turn", [1 - 2**53, 2**53 - 1, -(2**53), 2**53, 2**70])
@pytest.mark.parametrize("named", ["turn", "step"])
def test_turns_and_steps_that_no_client_can_read_are_none(named: str, turn: int) -> None:
    toys = [Toy()]
    assembler = Assembler(toys)
    place = {"turn": 1, "step": 1, named: turn}
    assembler.append(event(1, **place))
    found = assembler.location("toy", "x")
    assert found is not None
    if abs(turn) < 2**53:
        assert (found.turn, found.step) == (place["turn"], place["step"])
    else:
        assert (found.turn, found.step) == ((None, None) if named == "turn" else (1, None))
    same_as_fresh(assembler, toys)
