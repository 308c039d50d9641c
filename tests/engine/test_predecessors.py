"""Looking back: exactly those whose answer changes start again, earliest first, each once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import START, Match, Reader
from assembler.engine.events import Event
from tests.engine.support import Toy, delta, event, same_as_fresh


def looking(kind: str = "p") -> Callable[[Match, Reader], Any]:
    """A `start` that keeps what it saw."""

    def start(match: Match, reader: Reader) -> Any:
        return (reader.previous(kind), match.data.get("v"))

    return start


def raising(state: Any, match: Match) -> Any:
    if match.data.get("boom"):
        raise ValueError
    return (*state, match.data.get("v"))


class Bench:
    """`p` are looked back at, toys look; counted from here on."""

    def __init__(self, *events: Event, has_more: bool = False, **methods: Any) -> None:
        self.p = Toy("p", None, update=raising)
        self.toy = Toy(**{"start": looking(), **methods})
        self.assembler = Assembler([self.toy, self.p])
        self.assembler.load(events, has_more)
        self.assembler.flush()
        self.toy.calls.clear()
        self.p.calls.clear()

    @property
    def restarted(self) -> str:
        """The toys that started again since this was last read."""
        self.assembler.flush()
        found = "".join(self.toy.asked("start"))
        same_as_fresh(self.assembler, [self.toy, self.p])
        self.toy.calls.clear()
        self.p.calls.clear()
        return found

    def saw(self, id_: str) -> Any:
        return self.assembler.state("toy", id_)[0]


#   2: a   3: p1   4: b   5: p2   6: c   7: d
EVENTS = (
    event(2, id="a"),
    event(3, "p", id="p1", v=1),
    event(4, id="b"),
    event(5, "p", id="p2", v=2),
    event(6, id="c"),
    event(7, id="d"),
)


@pytest.fixture
def bench() -> Bench:
    return Bench(*EVENTS, has_more=True)


def test_it_sees_the_nearest_that_started_before_and_its_state(bench: Bench) -> None:
    assert bench.saw("a") is None
    assert bench.saw("b") == ("p1", (1,))
    assert bench.saw("c") == bench.saw("d") == ("p2", (2,))


def test_a_page_restarts_only_those_that_had_none_nearer(bench: Bench) -> None:
    bench.assembler.prepend([event(1, "p", id="p0", v=0)], False)
    assert bench.restarted == "a"
    assert bench.saw("a") == ("p0", (0,))


def test_a_page_without_a_predecessor_restarts_nobody(bench: Bench) -> None:
    bench.assembler.prepend([event(1, "other")], False)
    assert bench.restarted == ""


def test_a_later_one_restarts_nobody(bench: Bench) -> None:
    bench.assembler.append(event(8, "p", id="p3"))
    assert bench.restarted == ""


@pytest.mark.parametrize(("id_", "expected"), [("p1", "b"), ("p2", "cd")])
def test_a_change_of_state_restarts_those_that_look_at_it(
    bench: Bench, id_: str, expected: str
) -> None:
    bench.assembler.append(event(8, "p/more", id=id_, v=9))
    assert bench.restarted == expected
    assert bench.saw(expected[0])[1][-1] == 9


def test_several_changes_before_a_flush_restart_each_once(bench: Bench) -> None:
    for seq, id_ in enumerate(("p2", "p1", "p2"), 8):
        bench.assembler.append(event(seq, "p/more", id=id_, v=seq))
    assert bench.restarted == "bcd"
    bench.assembler.append(event(11, "other"))
    assert bench.restarted == ""


def test_a_state_that_comes_out_equal_restarts_nobody() -> None:
    keeps = Toy("p", None, update=lambda state, _match: state)
    equal = Toy("p", None, update=lambda state, _match: (*state, 1)[:-1])
    for p in (keeps, equal):
        toy = Toy(start=looking())
        assembler = Assembler([toy, p])
        assembler.load([event(1, "p", v=1), event(2)])
        assembler.flush()
        toy.calls.clear()
        assembler.append(event(3, "p/more"))
        assembler.flush()
        assert toy.asked("start") == []


def test_an_earlier_start_with_an_equal_state_restarts_nobody() -> None:
    # The order of its Matches changes, what they add up to does not.
    p = Toy(
        "p",
        None,
        start=lambda match, _reader: frozenset({match.data["v"]}),
        update=lambda state, match: state | {match.data["v"]},
    )
    toy = Toy(start=looking())
    assembler = Assembler([toy, p])
    assembler.load([event(2, "p", v=1), event(3, "p", v=2), event(4)], True)
    assembler.flush()
    toy.calls.clear()
    assembler.prepend([event(1, "p", v=2)], False)
    assembler.flush()
    assert toy.asked("start") == []
    assert assembler.state("toy", "x")[0] == ("x", frozenset({1, 2}))
    same_as_fresh(assembler, [toy, p])


# --- retirement


def test_one_that_comes_in_between_and_goes_again(bench: Bench) -> None:
    bench.assembler.emit(delta(0, "p-piece", id="live", after=4, v=5))
    assert bench.restarted == ""  # p2 is nearer to c and d
    bench.assembler.emit(delta(1, "p-piece", id="nearer", after=5, index=2, v=6))
    assert bench.restarted == "cd"
    assert bench.saw("c") == ("nearer", (6,))
    bench.assembler.settle("a", "failed")
    assert bench.restarted == "cd"
    assert bench.saw("c") == ("p2", (2,))


def test_one_that_loses_its_earliest_start_moves_behind_its_asker() -> None:
    bench = Bench(event(2, "p", id="p0", v=0), event(3, id="a"), event(4, "p", id="p1", v=1))
    bench.assembler.emit(delta(0, "p-piece", id="p1", after=2, v=9))
    assert bench.restarted == "a"
    assert bench.saw("a") == ("p1", (9, 1))
    bench.assembler.settle("a", "failed")
    assert bench.restarted == "a"
    assert bench.saw("a") == ("p0", (0,))


def test_evicting_the_predecessor_restarts_those_that_looked_at_it(bench: Bench) -> None:
    bench.assembler.evict(4)
    assert bench.restarted == "b"
    assert bench.saw("b") is None


# --- failure and recovery


def test_a_failed_predecessor_is_passed_over_and_comes_back(bench: Bench) -> None:
    bench.assembler.emit(delta(0, "p-more", id="p2", after=7, boom=1))
    assert bench.restarted == "cd"
    assert bench.saw("c") == ("p1", (1,))
    bench.assembler.settle("a", "failed")
    assert bench.restarted == "cd"
    assert bench.saw("c") == ("p2", (2,))


def test_one_that_fails_from_the_beginning_restarts_nobody() -> None:
    p, toy = Toy("p", None, start=lambda match, _reader: 1 / match.data["v"]), Toy(start=looking())
    assembler = Assembler([toy, p])
    assembler.load([event(2)], True)
    assembler.flush()
    toy.calls.clear()
    assembler.prepend([event(1, "p", v=0)], False)
    assembler.flush()
    assert toy.asked("start") == []


def test_an_asker_that_failed_asks_again() -> None:
    def start(_match: Match, reader: Reader) -> Any:
        found = reader.previous("p")
        return (1 / (found[1][-1] if found else 0), None)

    bench = Bench(event(2, id="a"), has_more=True, start=start)
    assert bench.assembler.state("toy", "a") is None
    bench.assembler.prepend([event(1, "p", id="p0", v=4)], False)
    assert bench.restarted == "a"
    assert bench.saw("a") == 0.25


# --- chains


def chain(*events: Event, has_more: bool = False) -> Bench:
    """Toys that number themselves by the toy before them."""

    def start(match: Match, reader: Reader) -> Any:
        before = reader.previous("toy")
        return (before[1][0] + 1 if before else 0, match.data.get("v"))

    def update(state: Any, match: Match) -> Any:
        return (match.data.get("n", state[0]), match.data.get("v"))

    return Bench(*events, has_more=has_more, start=start, update=update)


ROW = tuple(event(seq, id=id_) for seq, id_ in enumerate("abcd", 2))


def test_a_change_runs_down_the_chain_earliest_first_each_once() -> None:
    bench = chain(*ROW, has_more=True)
    bench.assembler.prepend([event(1, id="z")], False)
    assert bench.restarted == "zabcd"
    assert [bench.saw(id_) for id_ in "zabcd"] == [0, 1, 2, 3, 4]


def test_two_changes_in_one_chain_restart_each_once() -> None:
    bench = chain(*ROW)
    bench.assembler.append(event(6, "toy/more", id="c", n=50))
    bench.assembler.append(event(7, "toy/more", id="a", n=10))
    assert bench.restarted == "bcd"
    assert [bench.saw(id_) for id_ in "abcd"] == [10, 11, 50, 51]


def test_the_chain_stops_where_the_answer_stays_the_same() -> None:
    bench = chain(*ROW, event(6, "toy/more", id="b", n=7))
    bench.assembler.append(event(7, "toy/more", id="a", n=10))
    # b starts again, is set to 7 again and equals what it was: c need not ask.
    assert bench.restarted == "b"
    assert [bench.saw(id_) for id_ in "abcd"] == [10, 7, 8, 9]


def test_a_load_folds_each_once() -> None:
    bench = chain()
    bench.assembler.load(ROW)
    assert bench.restarted == "abcd"


def test_a_retirement_in_the_middle_of_a_chain() -> None:
    bench = chain(*ROW)
    bench.assembler.emit(delta(0, id="live", after=3))
    assert bench.restarted == "livecd"
    bench.assembler.settle("a", "failed")
    assert bench.restarted == "cd"


# --- what else may be asked


def test_the_beginning_of_the_log_restarts_those_that_asked_for_it() -> None:
    def start(match: Match, reader: Reader) -> Any:
        return (reader.complete if match.data.get("asks") else None, None)

    bench = Bench(event(2, id="a", asks=1), event(3, id="b"), has_more=True, start=start)
    assert bench.saw("a") is False
    bench.assembler.prepend([], False)
    assert bench.restarted == "a"
    assert bench.saw("a") is True
    bench.assembler.prepend([], False)
    assert bench.restarted == ""
    bench.assembler.prepend([], True)
    assert bench.restarted == "a"


def test_strictly_before_means_not_of_the_same_item() -> None:
    toy = Toy(start=looking(), takes={"both"})
    p = Toy("p", None, takes={"both"})
    assembler = Assembler([p, toy])
    assembler.load([event(1, "both", id="x"), event(2, "both", id="y")])
    assert assembler.state("toy", "x")[0] is None
    assert assembler.state("toy", "y")[0] == ("x", (None,))


def test_a_context_is_never_its_own_predecessor() -> None:
    bench = chain(event(1, id="a"), event(2, id="a"))
    assert bench.saw("a") == 0


def test_one_without_a_start_is_no_predecessor(bench: Bench) -> None:
    bench.assembler.prepend([event(1, "p/more", id="p0")], False)
    assert bench.restarted == ""
    assert bench.saw("a") is None


def test_a_kind_that_nobody_has_gives_nothing() -> None:
    bench = Bench(event(1, id="a"), start=looking("nobody"))
    assert bench.saw("a") is None


def test_an_asker_that_moves_asks_from_its_new_place(bench: Bench) -> None:
    bench.assembler.emit(delta(0, id="d", after=3))
    assert bench.restarted == "d"
    assert bench.saw("d") == ("p1", (1,))
    bench.assembler.append(event(8, "p/more", id="p2", v=9))
    assert bench.restarted == "c"
    bench.assembler.settle("a", "failed")
    assert bench.restarted == "d"
    assert bench.saw("d") == ("p2", (2, 9))


def test_one_that_no_longer_asks_is_left_alone() -> None:
    def start(match: Match, reader: Reader) -> Any:
        return (reader.previous("p") if match.durable else None, None)

    bench = Bench(event(1, "p", id="p1"), event(2, id="a"), start=start)
    bench.assembler.emit(delta(0, id="a", after=1))
    assert bench.restarted == "a"  # it starts with the delta now, and asks nobody
    bench.assembler.append(event(3, "p/more", id="p1"))
    assert bench.restarted == ""


def test_two_kinds_are_watched_apart() -> None:
    def start(_match: Match, reader: Reader) -> Any:
        return (reader.previous("p"), reader.previous("q"))

    p, q, toy = Toy("p", None), Toy("q", None), Toy(start=start)
    assembler = Assembler([toy, p, q])
    assembler.load([event(1, "p", id="p"), event(2, "q", id="q"), event(3)])
    toy.calls.clear()
    for seq, kind in ((4, "p"), (5, "q")):
        assembler.append(event(seq, f"{kind}/more", id=kind))
        assembler.flush()
        assert toy.asked("start") == ["x"]
    same_as_fresh(assembler, [toy, p, q])


def test_a_reader_that_was_kept_gives_nothing_and_watches_nothing(bench: Bench) -> None:
    kept: list[Reader] = []

    def start(_match: Match, reader: Reader) -> Any:
        kept.append(reader)
        return (None, None)

    bench = Bench(*EVENTS, start=start)
    assert kept[-1].previous("p") is None
    bench.assembler.append(event(8, "p/more", id="p2"))
    assert bench.restarted == ""


def test_nobody_is_asked_by_an_append_that_concerns_nobody(bench: Bench) -> None:
    bench.assembler.append(event(8, id="e"))
    assert bench.restarted == "e"
    bench.assembler.append(event(9, "toy/more", id="b"))
    assert bench.restarted == ""


@pytest.mark.parametrize("id_", ["", "1", "A", "x", "\U0010fffe"])
def test_what_starts_with_the_same_event_is_not_before(id_: str) -> None:
    def match(item: Event) -> Any:
        return id_ or "empty", START

    p = Toy("p", None, takes={"toy"}, match=match)
    for toys in ([Toy(start=looking()), p], [p, Toy(start=looking())]):
        assembler = Assembler(toys)
        assembler.append(event(1))
        assert assembler.state("toy", "x")[0] is None
        assembler.append(event(2, id="y"))
        assert assembler.state("toy", "y")[0][0] == (id_ or "empty")
        same_as_fresh(assembler, toys)


def test_a_start_that_asks_whether_older_history_exists_starts_again_only_then() -> None:
    def start(match: Match, reader: Reader) -> Any:
        return (reader.complete,)

    toy = Toy(start=start)
    assembler = Assembler([toy])
    assembler.load([event(2), event(3, "toy/more")], True)
    assert assembler.state("toy", "x") == (False, None)
    toy.calls.clear()
    assembler.append(event(4, "toy/more"))
    assembler.emit(delta(0, "toy-more", after=4))
    assert assembler.state("toy", "x") == (False, None, None, None)
    assert toy.asked("start") == []
    assembler.prepend([], False)
    assert assembler.state("toy", "x") == (True, None, None, None)
    assert toy.asked("start") == ["x"]


def test_nothing_is_remembered_of_askers_that_are_gone() -> None:
    toy = Toy(start=lambda _match, reader: (reader.complete, reader.previous("toy")))
    assembler = Assembler([toy])
    assembler.emit(delta(0, id="a"))
    assembler.emit(delta(1, id="b"))
    assembler.flush()
    assembler.settle("a", "failed")
    assembler.flush()
    predecessors = assembler._derived.predecessors
    assert not predecessors.ask_complete
    assert not any(predecessors._asked.values())
