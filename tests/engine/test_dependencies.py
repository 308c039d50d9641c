"""What `place`, `notes` and `build` read: exactly the readers are made again, each once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Context, Match, Node, Scope
from tests.engine.support import Toy, delta, event, same_as_fresh, shown

Read = Callable[[Scope], Any]


def reader(read: Read, kind: str = "toy", **methods: Any) -> Toy:
    """Shows what `read` gives."""

    def build(context: Context, scope: Scope) -> Node:
        return Node(kind, context.id, {"read": read(scope)})

    return Toy(kind, build=build, **methods)


def source(**methods: Any) -> Toy:
    """Publishes the newest `v` on its step, and nothing on its turn."""

    def place(context: Context, scope: Scope) -> Any:
        return None if scope.step is None or context.state is None else context.state[-1]

    return Toy("src", None, **{"place": place, **methods})


def totals() -> Toy:
    """Publishes on its turn what its steps add up to."""

    def place(context: Context, scope: Scope) -> Any:
        if scope.step is None:
            return sum(scope.step_values("src").values())
        return context.state[-1]

    return Toy("src", None, place=place)


class Bench:
    """Readers `a` (step 1.1), `b` (step 1.2), `c` (step 2.1), `s` (no turn); then src events."""

    def __init__(self, read: Read, src: Toy | None = None, has_more: bool = False) -> None:
        self.src = src or source()
        self.toy = reader(read)
        self.definitions = [self.toy, self.src]
        self.assembler = Assembler(self.definitions)
        self.seq = 4
        self.assembler.load(
            [
                event(1, id="s"),
                event(2, id="a", turn=1, step=1),
                event(3, id="b", turn=1, step=2),
                event(4, id="c", turn=2, step=1),
            ],
            has_more,
        )
        self.assembler.flush()
        self.clear()

    def clear(self) -> None:
        for toy in self.definitions:
            toy.calls.clear()

    def append(self, type_: str = "src", /, **data: Any) -> None:
        self.seq += 1
        self.assembler.append(event(self.seq, type_, **data))

    @property
    def built(self) -> str:
        """The readers that were built since this was last read, by name."""
        self.assembler.flush()
        found = "".join(sorted(self.toy.asked("build")))
        same_as_fresh(self.assembler, self.definitions)
        self.clear()
        return found

    def read(self, id_: str) -> Any:
        return shown(self.assembler)[id_]["read"]


def of_step(scope: Scope) -> Any:
    return dict(scope.step_values("src"))


def of_turn(scope: Scope) -> Any:
    return dict(scope.turn_values("src"))


# --- values of steps


def test_a_value_of_a_step_is_read_by_those_of_the_step_alone() -> None:
    bench = Bench(of_step)
    bench.append(id="one", turn=1, step=1, v=5)
    assert bench.built == "a"
    assert bench.read("a") == {"one": 5}
    assert bench.read("b") == bench.read("c") == bench.read("s") == {}


def test_values_come_in_anchor_order_then_by_key() -> None:
    bench = Bench(of_step)
    bench.append(id="z", turn=1, step=1, v=1)
    bench.append(id="m", turn=1, step=1, v=2)
    for attempt, id_ in (("q", "b"), ("p", "c"), ("r", "a")):
        bench.assembler.emit(delta(0, "src-piece", attempt=attempt, id=id_, after=5, v=3))
    assert list(bench.read("a")) == ["z", "a", "b", "c", "m"]


def test_a_value_that_stays_equal_makes_nobody_again() -> None:
    bench = Bench(of_step)
    bench.append(id="one", turn=1, step=1, v=5)
    assert bench.built == "a"
    bench.append("src/more", id="one", v=5)
    assert bench.built == ""
    bench.append("src/more", id="one", v=6)
    assert bench.built == "a"


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), (0, False)])
def test_a_value_of_another_type_is_another_value(old: Any, new: Any) -> None:
    bench = Bench(of_step)
    bench.append(id="one", turn=1, step=1, v=old)
    assert bench.built == "a"
    bench.append("src/more", id="one", v=new)
    assert bench.built == "a"
    assert type(bench.read("a")["one"]) is type(new)


def test_a_value_that_cannot_be_compared_is_another_value() -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise TypeError

        __hash__ = None  # type: ignore[assignment]

    src = source(place=lambda _context, scope: Odd() if scope.step else None)
    bench = Bench(lambda scope: len(scope.step_values("src")), src)
    bench.append(id="one", turn=1, step=1)
    bench.append("src/more", id="one")
    assert bench.built == "a"


def test_several_changes_before_a_flush_make_each_reader_once() -> None:
    bench = Bench(of_step)
    for v in (1, 2, 3):
        bench.append(id=f"one{v}", turn=1, step=1, v=v)
        bench.append("src/more", id=f"one{v}", v=v * 10)
    assert bench.built == "a"


def test_a_value_goes_with_its_context() -> None:
    bench = Bench(of_step)
    bench.assembler.emit(delta(0, "src-piece", id="live", after=4, v=7))
    assert bench.built == "a"
    assert bench.read("a") == {"live": 7}
    bench.assembler.settle("a", "failed")
    assert bench.built == "a"
    assert bench.read("a") == {}


def test_a_value_moves_with_its_context() -> None:
    bench = Bench(of_step)
    bench.append(id="one", turn=1, step=2, v=5)
    assert bench.built == "b"
    bench.assembler.emit(delta(0, "src-piece", id="one", after=4, v=5))  # in step 1.1, earlier
    assert bench.built == "ab"
    assert (bench.read("a"), bench.read("b")) == ({"one": 5}, {})


def test_a_value_appears_when_a_page_says_where_it_belongs() -> None:
    toy, src = reader(of_step), source()
    assembler = Assembler([toy, src])
    assembler.load([event(3, "src", id="one", v=5), event(4, turn=1, step=1)], True)
    assert shown(assembler)["x"] == {"read": {}}
    assembler.prepend([event(2, "step/start", turn=1, step=1)], True)
    assert shown(assembler)["x"] == {"read": {"one": 5}}
    same_as_fresh(assembler, [toy, src])


def test_a_failed_context_publishes_nothing() -> None:
    src = source(update=lambda state, match: (*state, 1 / match.data["v"]))
    bench = Bench(of_step, src)
    bench.append(id="one", turn=1, step=1, v=5)
    assert bench.read("a") == {"one": 5}
    bench.append("src/more", id="one", v=0)
    assert bench.read("a") == {}


def test_without_a_step_the_values_of_all_steps_are_read() -> None:
    bench = Bench(of_step)
    bench.append("toy", id="t", turn=1)
    bench.append(id="one", turn=1, step=2, v=1)
    bench.append(id="two", turn=1, step=1, v=2)
    bench.append(id="far", turn=2, step=1, v=3)
    assert bench.read("t") == {"one": 1, "two": 2}
    bench.clear()
    bench.append(id="three", turn=1, step=9, v=3)
    assert bench.built == "t"


# --- values of turns


def test_a_value_of_a_turn_is_read_by_those_of_the_turn_alone() -> None:
    bench = Bench(of_turn, totals())
    bench.append(id="one", turn=1, step=1, v=5)
    assert bench.built == "ab"
    assert bench.read("a") == bench.read("b") == {"one": 5}
    assert bench.read("c") == {}


def test_step_values_come_first_then_turn_values_then_nodes() -> None:
    bench = Bench(of_turn, totals())
    for v in (1, 2, 3):
        bench.append(id=f"s{v}", turn=1, step=v, v=v)
    assert bench.built == "ab"
    assert bench.read("a") == {"s1": 6, "s2": 6, "s3": 6}
    assert bench.src.asked("place") == []
    bench.append("src/more", id="s1", v=10)
    bench.assembler.flush()
    # Once for its step; then once for its turn each, of which all three read the steps.
    assert sorted(bench.src.asked("place")) == ["s1", "s1", "s2", "s3"]
    assert sorted(bench.toy.asked("build")) == ["a", "b"]
    assert bench.read("a") == {"s1": 15, "s2": 15, "s3": 15}


def test_place_for_a_step_reads_no_values_and_for_a_turn_no_values_of_turns() -> None:
    seen: dict[Any, tuple[int, int]] = {}

    def place(_context: Context, scope: Scope) -> Any:
        seen[scope.step] = len(scope.step_values("src")), len(scope.turn_values("src"))
        return 1

    bench = Bench(of_turn, Toy("src", None, place=place))
    bench.append(id="one", turn=1, step=1)
    bench.append(id="two", turn=1, step=2)
    bench.assembler.flush()
    assert seen == {1: (0, 0), 2: (0, 0), None: (2, 0)}
    seen.clear()
    bench.append("src/more", id="one")  # asked again, when there is a value on its step
    bench.assembler.flush()
    assert seen[1] == (0, 0)


@pytest.mark.parametrize(
    ("place", "asked"), [({"turn": 1, "step": 1}, 2), ({"turn": 1}, 1), ({}, 0)]
)
def test_place_is_asked_only_where_there_is_a_place(place: dict[str, int], asked: int) -> None:
    src = source()
    assembler = Assembler([src])
    assembler.append(event(1, "src", v=1, **place))
    assembler.flush()
    assert len(src.asked("place")) == asked


# --- other Contexts


def test_another_context_is_read_whatever_becomes_of_it() -> None:
    bench = Bench(lambda scope: scope.other("src", "one"))
    assert bench.read("a") is None
    bench.clear()
    bench.append(id="one", v=1)
    assert bench.built == "abcs"
    assert bench.read("a") == [1]
    bench.append("src/more", id="one", v=2)
    assert bench.built == "abcs"
    bench.append(id="two", v=2)
    assert bench.built == ""
    bench.append("other")
    assert bench.built == ""


def test_another_context_that_goes_is_read_as_nothing() -> None:
    bench = Bench(lambda scope: scope.other("src", "live"))
    bench.assembler.emit(delta(0, "src-piece", id="live", after=4, v=7))
    assert bench.built == "abcs"
    assert bench.read("a") == [7]
    bench.clear()
    bench.assembler.settle("a", "failed")
    assert bench.built == "abcs"
    assert bench.read("a") is None


def test_a_state_that_stays_the_same_object_makes_nobody_again() -> None:
    bench = Bench(lambda scope: scope.other("src", "one"), source(update=lambda state, _: state))
    bench.append(id="one", v=1)
    assert bench.built == "abcs"
    bench.append("src/more", id="one", v=2)
    assert bench.built == ""


def test_unstarted_gives_the_matches_until_there_is_a_start() -> None:
    bench = Bench(
        lambda scope: [match.data["v"] for match in scope.unstarted("src", "one")], has_more=True
    )
    assert bench.read("a") == []
    bench.clear()
    for v in (1, 2):
        bench.append("src/more", id="one", v=v)
        assert bench.built == "abcs"
    assert bench.read("a") == [1, 2]
    bench.clear()
    bench.append(id="one", v=3)
    assert bench.built == "abcs"
    assert bench.read("a") == []


def test_whether_another_has_started_is_read_again_when_that_changes_alone() -> None:
    bench = Bench(lambda scope: scope.has("src", "one"), has_more=True)
    bench.append("src/more", id="one", v=1)
    assert (bench.built, bench.read("a")) == ("", False)
    bench.append(id="one", v=2)
    assert (bench.built, bench.read("a")) == ("abcs", True)
    bench.append("src/more", id="one", v=3)
    bench.append(id="one", v=4)
    assert bench.built == ""


def test_that_another_has_gone_is_read_again() -> None:
    bench = Bench(lambda scope: scope.has("src", "live"))
    bench.assembler.emit(delta(0, "src-piece", id="live", after=4))
    assert (bench.built, bench.read("a")) == ("abcs", True)
    bench.clear()
    bench.assembler.settle("a", "failed")
    assert (bench.built, bench.read("a")) == ("abcs", False)


def test_the_status_of_the_turn_of_another_is_read_again_when_it_changes() -> None:
    bench = Bench(lambda scope: str(scope.turn_status_of("src", "one")), has_more=True)
    assert bench.read("a") == "None"
    bench.clear()
    bench.append(id="other", turn=3, step=1)
    assert bench.built == ""
    bench.assembler.load([*bench.assembler.events[:4], event(5, "src", id="one", turn=3)], True)
    bench.assembler.flush()
    bench.clear()
    bench.seq = 5
    assert bench.read("a") == "Status.OPEN"
    bench.append("step/start", turn=3, step=1)
    assert bench.built == ""
    bench.append("turn/end", turn=3)
    assert (bench.built, bench.read("a")) == ("abcs", "Status.CLOSED")


def test_the_turn_of_another_is_read_again_when_a_page_says_it() -> None:
    toys = [reader(lambda scope: str(scope.turn_status_of("src", "one"))), source()]
    assembler = Assembler(toys)
    assembler.load([event(3, id="a", turn=9, step=1), event(4, "src", id="one")], True)
    assert shown(assembler) == {"a": {"read": "None"}}
    assembler.prepend([event(2, "turn/start", turn=1)], True)
    assert shown(assembler) == {"a": {"read": "Status.OPEN"}}
    same_as_fresh(assembler, toys)


def test_what_nobody_has_reads_as_nothing() -> None:
    def read(scope: Scope) -> Any:
        return [
            scope.other("none", "x"),
            scope.has("none", "x"),
            scope.turn_status_of("none", "x"),
            len(scope.unstarted("none", "x")),
            len(scope.step_values("none")),
            len(scope.turn_values("none")),
        ]

    bench = Bench(read)
    assert bench.read("a") == bench.read("s") == [None, False, None, 0, 0, 0]


# --- liveness and the beginning of the log


def test_liveness_makes_those_that_read_it_again() -> None:
    bench = Bench(lambda scope: scope.live if scope.step == 1 else "not read")
    assert bench.read("a") is None
    for live in (True, False, None):
        bench.clear()
        bench.assembler.liveness(live)
        assert bench.built == "ac"
        assert bench.read("a") is live
        bench.clear()
        bench.assembler.liveness(live)
        assert bench.built == ""


def test_the_beginning_of_the_log_makes_those_that_read_it_again() -> None:
    toy = reader(lambda scope: scope.complete if scope.step == 1 else None)
    assembler = Assembler([toy])
    assembler.load([event(5, id="a", turn=1, step=1), event(6, id="b", turn=1, step=2)], True)
    assert shown(assembler) == {"a": {"read": False}, "b": {"read": None}}
    toy.calls.clear()
    assembler.prepend([], False)
    assert shown(assembler)["a"] == {"read": True}
    assert toy.asked("build") == ["a"]
    toy.calls.clear()
    assembler.prepend([event(4, "other")], False)
    assembler.flush()
    assert toy.asked("build") == []


def test_the_first_event_of_an_emptied_or_new_window_can_say_that_more_is_older() -> None:
    toy = reader(lambda scope: scope.complete)
    assembler = Assembler([toy])
    assembler.emit(delta())
    assert shown(assembler)["x"] == {"read": True}
    assembler.append(event(5, "other"))
    assert shown(assembler)["x"] == {"read": False}


# --- notes and place read too


def test_notes_are_asked_again_when_what_they_read_changes() -> None:
    def notes(context: Context, scope: Scope) -> Any:
        return [("odd", context.matches[0].position)] if scope.other("src", "one") else []

    toy, src = Toy(notes=notes), source()
    assembler = Assembler([toy, src])
    assembler.append(event(1))
    assembler.flush()
    assert assembler.findings() == []
    assembler.append(event(2, "src", id="one", v=1))
    assembler.flush()
    assert [odd.to_json() for odd in assembler.findings()] == [
        {"kind": "odd", "key": "toy:x", "position": [1, 0]}
    ]
    assembler.flush()
    assert assembler.anomalies.counts == {"odd": 1}


def test_place_is_asked_again_when_what_it_reads_changes() -> None:
    src = source(place=lambda _context, scope: str(scope.live) if scope.step else None)
    bench = Bench(of_step, src)
    bench.append(id="one", turn=1, step=1)
    assert bench.read("a") == {"one": "None"}
    bench.clear()
    bench.assembler.liveness(True)
    bench.assembler.flush()
    assert bench.src.asked("place") == ["one"]  # for its step; for its turn it read nothing
    assert bench.toy.asked("build") == ["a"]
    assert bench.read("a") == {"one": "True"}


def test_one_that_stops_reading_is_left_alone() -> None:
    bench = Bench(lambda scope: scope.live is not True and scope.other("src", "one"))
    bench.assembler.liveness(True)
    assert bench.built == "abcs"
    bench.append(id="one", v=1)
    assert bench.built == ""
    bench.assembler.liveness(None)
    assert bench.built == "abcs"
    assert bench.read("a") == [1]


def test_a_reader_that_goes_is_not_asked_again() -> None:
    bench = Bench(lambda scope: scope.live)
    bench.assembler.emit(delta(0, id="live", after=4))
    assert bench.built == "live"
    bench.assembler.settle("a", "failed")
    assert bench.built == ""
    bench.assembler.liveness(True)
    assert bench.built == "abcs"


# --- the identity of Nodes


def test_an_unchanged_node_is_the_same_object_over_flushes_and_loads() -> None:
    bench = Bench(of_step)
    nodes = {node.id: node for node in bench.assembler.view().nodes}
    bench.append(id="one", turn=1, step=1, v=1)
    bench.append("other")
    bench.assembler.liveness(True)
    bench.assembler.flush()
    bench.assembler.flush()
    for id_ in "bcs":
        assert bench.assembler.view()[f"toy:{id_}"] is nodes[id_]
    assert bench.assembler.view()["toy:a"] is not nodes["a"]

    nodes = {node.id: node for node in bench.assembler.view().nodes}
    bench.assembler.load(bench.assembler.events, False)
    assert bench.assembler.flush()["chat"].ops == ()
    assert all(bench.assembler.view()[f"toy:{id_}"] is node for id_, node in nodes.items())


def test_an_equal_result_keeps_the_old_object() -> None:
    bench = Bench(lambda scope: scope.live is None or "known")
    bench.assembler.liveness(True)
    bench.assembler.flush()
    node = bench.assembler.view()["toy:a"]
    bench.clear()
    bench.assembler.liveness(False)
    assert bench.assembler.flush()["chat"].ops == ()
    assert sorted(bench.toy.asked("build")) == ["a", "b", "c", "s"]
    assert bench.assembler.view()["toy:a"] is node


def test_a_flush_without_a_change_asks_nobody() -> None:
    bench = Bench(of_step)
    bench.assembler.flush()
    assert bench.toy.calls == bench.src.calls == []


def test_only_what_changed_is_built() -> None:
    bench = Bench(lambda _scope: None)
    bench.append("toy/more", id="b")
    assert bench.built == "b"
    bench.append("toy", id="new")
    assert bench.built == "new"


def test_a_match_that_leaves_the_state_as_it_is_builds_nothing() -> None:
    built: list[Any] = []

    def build(context: Context, _scope: Scope) -> Node:
        built.append(context.state)
        return Node("toy", context.id, {"v": context.state})

    toy = Toy(update=lambda state, _match: state)
    toy.build = build  # type: ignore[method-assign]  # its own looks at all Matches
    assembler = Assembler([toy])
    assembler.load([event(1, v=1), event(2, "toy/more", v=2)])
    assembler.flush()
    assert built == [(1,)]
    toy.calls.clear()
    assembler.append(event(3, "toy/more", v=3))
    assembler.emit(delta(0, "toy-more", after=3, v=4))
    assembler.flush()
    assembler.emit(delta(1, "toy-more", after=3, v=5))
    assembler.flush()
    assert (len(built), len(toy.asked("update"))) == (1, 3)


def test_a_view_that_is_not_active_builds_nothing() -> None:
    toy = Toy(target="other")
    assembler = Assembler([toy])
    assembler.append(event(1))
    assembler.flush()
    assert toy.asked("build") == []
    assert toy.asked("start") == ["x"]


def test_a_definition_that_reads_all_matches_is_built_at_each_of_them() -> None:
    def update(state: Any, _match: Match) -> Any:
        return state

    counting = Toy(update=update, build=lambda c, _scope: Node("toy", c.id, {"n": len(c.matches)}))
    assembler = Assembler([counting])
    assembler.append(event(1))
    for seq in (2, 3):
        assembler.append(event(seq, "toy/more"))
        assert shown(assembler)["x"] == {"n": seq}
