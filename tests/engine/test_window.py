"""The window: gaps, conflicts, repeats, pages, `has_more`, and what evicting leaves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import NONE
from assembler.engine.errors import AssemblerError, ConflictError, GapError
from assembler.engine.events import Event, same_event
from tests.engine.support import Toy, delta, event, everything, same_as_fresh


def page(first: int, last: int) -> list[Event]:
    return [event(seq, v=seq) for seq in range(first, last + 1)]


def loaded(first: int, last: int, has_more: bool = True) -> Assembler:
    assembler = Assembler([Toy()])
    assembler.load(page(first, last), has_more)
    assembler.flush()
    return assembler


def window(assembler: Assembler) -> tuple[int | None, int | None, bool]:
    view = assembler.window
    assert [each.seq for each in assembler.events] == (
        [] if view.first is None else list(range(view.first, (view.last or 0) + 1))
    )
    return view.first, view.last, view.has_more


def raises_and_changes_nothing(
    assembler: Assembler, error: type[AssemblerError], call: str, *arguments: Any
) -> AssemblerError:
    before = everything(assembler)
    with pytest.raises(error) as caught:
        getattr(assembler, call)(*arguments)
    assert everything(assembler) == before
    assert not assembler.flush()["chat"]
    return caught.value


# --- append


@pytest.mark.parametrize("seq", [1, 5])
def test_the_first_event_may_have_any_seq(seq: int) -> None:
    assembler = Assembler([Toy()])
    assembler.append(event(seq))
    assert window(assembler) == (seq, seq, seq != 1)


def test_a_new_window_is_empty_and_nothing_is_older() -> None:
    assert window(Assembler([])) == (None, None, False)


@pytest.mark.parametrize(("seq", "missing"), [(7, (6, 6)), (20, (6, 19))])
def test_append_beyond_the_end_names_what_is_missing(seq: int, missing: tuple[int, int]) -> None:
    error = raises_and_changes_nothing(loaded(3, 5), GapError, "append", event(seq))
    assert isinstance(error, GapError)
    assert (error.first, error.last) == missing


def test_a_repeat_changes_nothing() -> None:
    assembler = loaded(3, 5)
    before = everything(assembler)
    for each in page(3, 5):
        assert assembler.append(each) is NONE
    assert assembler.append(Event(5, "toy", {"v": 5, "id": "x"}, time=50)) is NONE
    assert everything(assembler) == before
    assert not assembler.flush()["chat"]


@pytest.mark.parametrize(
    "other",
    [
        event(4, v=5),
        event(4, v=4.0),
        event(4, "toy/more", v=4),
        Event(4, "toy", {"id": "x", "v": 4}, time=41),
        Event(4, "toy", {"id": "x", "v": 4}, time=40, id="w"),
        Event(4, "toy", {"id": "x", "v": 4}, time=40, v=2),
    ],
    ids=repr,
)
def test_another_content_of_a_loaded_seq_is_a_conflict(other: Event) -> None:
    error = raises_and_changes_nothing(loaded(3, 5), ConflictError, "append", other)
    assert isinstance(error, ConflictError)
    assert error.actual is other
    assert isinstance(error.expected, Event)
    assert same_event(error.expected, page(4, 4)[0])


def test_an_event_below_the_window_is_ignored_and_noted_each_time() -> None:
    assembler = loaded(3, 5)
    for _ in range(2):
        assert assembler.append(event(2, v="who knows")) is NONE
    assert [odd.to_json() for odd in assembler.anomalies] == [
        {"kind": "stale-event", "key": "event:2", "position": [2, 0]}
    ] * 2
    assert assembler.findings() == []
    assert window(assembler) == (3, 5, True)


# --- load


@pytest.mark.parametrize(
    ("seqs", "error"),
    [
        ([1, 3], GapError),
        ([1, 2, 5, 6], GapError),
        ([1, 1], ConflictError),
        ([2, 1], ConflictError),
        ([1, 2, 3, 2], ConflictError),
    ],
)
def test_a_page_with_a_hole_or_out_of_order_is_refused(
    seqs: list[int], error: type[AssemblerError]
) -> None:
    bad = [event(seq) for seq in seqs]
    raises_and_changes_nothing(loaded(3, 5), error, "load", bad, False)
    raises_and_changes_nothing(loaded(7, 9), error, "prepend", bad, False)


def test_a_load_replaces_the_window() -> None:
    assembler = loaded(3, 5)
    assembler.load(page(8, 9), False)
    assert window(assembler) == (8, 9, False)
    same_as_fresh(assembler, [Toy()])


@pytest.mark.parametrize(
    ("first", "has_more", "expected"),
    [(1, True, False), (1, False, False), (2, True, True), (2, False, False)],
)
def test_nothing_is_older_than_event_1(first: int, has_more: bool, expected: bool) -> None:
    assert window(loaded(first, 3, has_more)) == (first, 3, expected)


def test_an_empty_load_empties_the_window_and_forgets_its_end() -> None:
    assembler = loaded(3, 5)
    assembler.load([], False)
    assert window(assembler) == (None, None, False)
    assembler.append(event(40))
    assert window(assembler) == (40, 40, True)


# --- prepend


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ([(page(3, 5), True)], (3, 8, True)),
        ([(page(3, 5), False)], (3, 8, False)),
        ([(page(1, 5), True)], (1, 8, False)),
        ([(page(5, 5), True), (page(3, 4), False)], (3, 8, False)),
        ([(page(4, 7), True)], (4, 8, True)),  # it overlaps
        ([(page(5, 9), True)], (5, 8, True)),  # what lies behind the end is ignored
        ([(page(6, 8), False)], (6, 8, False)),  # it reaches the first event
        ([(page(7, 8), False)], (6, 8, True)),  # it does not
        ([(page(7, 9), False)], (6, 8, True)),
        ([(page(12, 14), False)], (6, 8, True)),  # the end is append's business
        ([([], False)], (6, 8, False)),
        ([([], False), ([], True)], (6, 8, True)),
    ],
)
def test_pages_before_the_window(
    pages: list[tuple[list[Event], bool]], expected: tuple[int, int, bool]
) -> None:
    assembler = loaded(6, 8)
    for events, has_more in pages:
        assembler.prepend(events, has_more)
    assert window(assembler) == expected
    same_as_fresh(assembler, [Toy()])


@pytest.mark.parametrize(("last", "missing"), [(4, (5, 5)), (2, (3, 5))])
def test_a_page_that_ends_too_early_names_what_is_missing(
    last: int, missing: tuple[int, int]
) -> None:
    error = raises_and_changes_nothing(loaded(6, 8), GapError, "prepend", page(1, last), False)
    assert isinstance(error, GapError)
    assert (error.first, error.last) == missing


@pytest.mark.parametrize("at", [6, 7, 8])
def test_a_page_that_disagrees_where_it_overlaps_is_a_conflict(at: int) -> None:
    events = [event(seq, v="another") if seq == at else event(seq, v=seq) for seq in range(4, 9)]
    raises_and_changes_nothing(loaded(6, 8), ConflictError, "prepend", events, False)


def test_the_same_page_again_changes_nothing() -> None:
    assembler = loaded(6, 8)
    assembler.prepend(page(3, 5), True)
    assembler.flush()
    before = everything(assembler)
    assembler.prepend(page(3, 5), True)
    assembler.prepend(page(3, 8), True)
    assert everything(assembler) == before
    assert not assembler.flush()["chat"]


def test_an_empty_page_about_event_1_says_nothing_new() -> None:
    assembler = loaded(1, 3)
    assembler.prepend([], True)
    assert window(assembler) == (1, 3, False)


def test_a_page_for_an_empty_window_is_a_load() -> None:
    assembler = Assembler([Toy()])
    assembler.prepend(page(3, 5), True)
    assert window(assembler) == (3, 5, True)
    assembler.append(event(6))
    same_as_fresh(assembler, [Toy()])


def test_an_empty_page_for_an_empty_window_only_says_whether_older_events_exist() -> None:
    assembler = Assembler([Toy()])
    assembler.prepend([], True)
    assert window(assembler) == (None, None, True)


# --- evict


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (3, (3, 8, True)),
        (1, (3, 8, True)),
        (-5, (3, 8, True)),
        (4, (4, 8, True)),
        (8, (8, 8, True)),
        (9, (None, None, True)),
        (10**30, (None, None, True)),
    ],
)
def test_evicting_forgets_what_is_older(before: int, expected: tuple[Any, Any, bool]) -> None:
    assembler = loaded(3, 8)
    assembler.evict(before)
    assert window(assembler) == expected
    same_as_fresh(assembler, [Toy()])


def test_older_events_exist_once_some_were_evicted() -> None:
    assembler = loaded(1, 3)
    assembler.evict(1)
    assert window(assembler) == (1, 3, False)
    assembler.evict(2)
    assert window(assembler) == (2, 3, True)


def test_an_emptied_window_remembers_its_end() -> None:
    assembler = loaded(3, 8)
    assembler.evict(100)
    assembler.flush()
    raises_and_changes_nothing(assembler, GapError, "append", event(10))
    assert assembler.append(event(8, v="whatever")) is NONE  # below: it cannot be compared
    assert [odd.kind for odd in assembler.anomalies] == ["stale-event"]
    assembler.append(event(9))
    assert window(assembler) == (9, 9, True)
    same_as_fresh(assembler, [Toy()])


def test_a_page_gives_an_emptied_window_its_own_end() -> None:
    assembler = loaded(3, 8)
    assembler.evict(100)
    assembler.prepend(page(5, 6), True)
    assert window(assembler) == (5, 6, True)
    assembler.append(event(7))
    assert window(assembler) == (5, 7, True)


def test_evicting_an_empty_window_is_harmless() -> None:
    assembler = loaded(3, 8)
    for _ in range(2):
        assembler.evict(100)
    assert window(assembler) == (None, None, True)
    new = Assembler([])
    new.evict(100)
    assert window(new) == (None, None, False)


def opened(*events: Event) -> Assembler:
    assembler = Assembler([Toy()])
    for each in events:
        assembler.append(each)
    assembler.flush()
    return assembler


START = (event(1, "turn/start", turn=1), event(2, "step/start", turn=1, step=1))


@pytest.mark.parametrize(
    ("rest", "first"),
    [
        ([event(3), event(4)], 2),  # the step's own start belongs to it
        ([event(3), event(4, "step/end", turn=1, step=1), event(5)], None),
        ([event(3), event(4, "step/start", turn=1, step=2), event(5)], 4),
        ([event(3), event(4, "turn/end", turn=1)], None),
        ([event(3), event(4, "turn/start", turn=2)], None),
    ],
)
def test_evicting_stops_at_the_first_event_of_an_open_step(
    rest: Iterable[Event], first: int | None
) -> None:
    assembler = opened(*START, *rest)
    assembler.evict(100)
    assert window(assembler)[0] == first
    same_as_fresh(assembler, [Toy()])


def test_an_event_that_names_an_open_step_stops_it_wherever_it_stands() -> None:
    assembler = opened(event(1), event(2, turn=7, step=1), event(3))
    assembler.evict(100)
    assert window(assembler) == (2, 3, True)


def test_a_turn_without_a_step_does_not_stop_it() -> None:
    assembler = opened(event(1, "turn/start", turn=1), event(2), event(3))
    assembler.evict(3)
    assert window(assembler) == (3, 3, True)


def test_held_deltas_outlive_the_window() -> None:
    assembler = loaded(3, 8)
    assembler.emit(delta(id="y", after=8))
    assembler.evict(100)
    assembler.load([], False)
    assembler.flush()
    assert [node.id for node in assembler.view().nodes] == ["y"]
    same_as_fresh(assembler, [Toy()])
