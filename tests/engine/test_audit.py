"""`audit()`: quiet after ordinary use, and not when something inside is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.contexts import Entry
from assembler.engine.definition import Context, Match, Node, Reader, Scope
from tests.engine.support import Band, Toy, delta, event


def start(match: Match, reader: Reader) -> Any:
    return (match.data.get("v"), reader.previous("toy"))


def place(context: Context, scope: Scope) -> Any:
    return context.id if scope.step else None


def build(context: Context, scope: Scope) -> Node:
    read = [scope.closed, scope.live, *scope.step_values("toy").values()]
    return Node("toy", context.id, {"band": 1, "read": read})


def used() -> Assembler:
    """An Assembler that has everything: two open steps, held deltas, groups, values, findings."""
    assembler = Assembler([Toy(start=start, place=place, build=build), Band()])
    assembler.load(
        [
            event(1, "turn/start", turn=1),
            event(2, "step/start", turn=1, step=1),
            event(3, id="a", turn=1, step=1),
            event(4, "step/end", turn=1, step=1),
            event(5, "step/start", turn=1, step=2),
            event(6, "toy/more", id="early"),
            event(7, id="early", turn=1, step=2),
            event(8, id="b", turn=1, step=2),
            event(9, "toy/more", id="b", v=1),
        ]
    )
    for ordinal in range(3):
        assembler.emit(delta(ordinal, "toy-piece", id="live", step=2, after=9))
    assembler.flush()
    return assembler


@pytest.mark.parametrize("flushed", [True, False])
@pytest.mark.parametrize(
    "operation",
    [
        lambda _assembler: None,
        lambda assembler: assembler.append(event(10, id="c")),
        lambda assembler: assembler.append(event(10, "turn/end", turn=1)),
        lambda assembler: assembler.emit(delta(3, id="live", step=2, after=9)),
        lambda assembler: assembler.settle("a", "failed"),
        lambda assembler: assembler.evict(100),
        lambda assembler: assembler.load([]),
        lambda assembler: assembler.load(assembler.events[3:], True),
        lambda assembler: assembler.liveness(False),
        lambda assembler: assembler.activate("trajectory"),
        lambda assembler: assembler.deactivate("chat"),
    ],
)
def test_it_is_quiet_after_ordinary_use(
    operation: Callable[[Assembler], Any], flushed: bool
) -> None:
    assembler = used()
    operation(assembler)
    if flushed:
        assembler.flush()
    assert assembler.audit() == []


def test_it_is_quiet_at_the_beginning() -> None:
    assert Assembler([]).audit() == []


def test_it_changes_nothing_and_asks_nobody_to_fold() -> None:
    toy = Toy()
    assembler = Assembler([toy])
    assembler.append(event(1))
    assembler.audit()
    assert toy.asked("start") == toy.asked("build") == []


def test_it_enters_no_anomalies_of_its_own() -> None:
    class Raising(Band):
        def joins(self, node: Node) -> Any:
            raise ValueError(node.key)

    assembler = Assembler([Toy(), Raising()])
    assembler.append(event(1))
    assembler.flush()
    before = list(assembler.anomalies)
    assert assembler.audit() == []
    assert list(assembler.anomalies) == before


# --- seeded faults


def entry(assembler: Assembler, id_: str = "b") -> Entry:
    found: Entry = assembler._derived.tables["toy"][id_]
    return found


def attempt(assembler: Assembler) -> Any:
    return assembler._attempts.held["a"]


def lose_an_event(assembler: Assembler) -> None:
    del assembler._window.loaded[5]


def claim_older_history(assembler: Assembler) -> None:
    assembler._window.has_more = True


def mix_up_matches(assembler: Assembler) -> None:
    entry(assembler).matches = entry(assembler).matches[::-1]


def hold_a_match_twice(assembler: Assembler) -> None:
    entry(assembler).matches = (*entry(assembler).matches, entry(assembler).matches[-1])


def lose_all_matches(assembler: Assembler) -> None:
    entry(assembler).matches = ()


def mistake_the_start(assembler: Assembler) -> None:
    entry(assembler).start_at = None


def count_as_gone(assembler: Assembler) -> None:
    entry(assembler).gone = True


def keep_under_another_id(assembler: Assembler) -> None:
    table = assembler._derived.tables["toy"]
    table["elsewhere"] = table.pop("b")


def forget_what_is_stale(assembler: Assembler) -> None:
    entry(assembler).stale = True


def fold_too_little(assembler: Assembler) -> None:
    entry(assembler).folded -= 1


def misplace_a_context(assembler: Assembler) -> None:
    entry(assembler).step = 7


def lose_a_delta(assembler: Assembler) -> None:
    del attempt(assembler).deltas[1]


def mix_up_deltas(assembler: Assembler) -> None:
    attempt(assembler).deltas.reverse()


def hold_in_a_closed_step(assembler: Assembler) -> None:
    assembler._attempts.floor = (9, 9)


def lose_an_attempt(assembler: Assembler) -> None:
    del assembler._attempts.held["a"]


def lose_the_contexts_of_an_attempt(assembler: Assembler) -> None:
    attempt(assembler).entries = {}


def forget_the_attempts_of_a_step(assembler: Assembler) -> None:
    assembler._attempts.steps.clear()


def hold_a_delta_that_no_attempt_has(assembler: Assembler) -> None:
    attempt(assembler).deltas.pop()


def own_by_another(assembler: Assembler) -> None:
    assembler._window.loaded[8].owners = entry(assembler, "a")


def own_by_nobody(assembler: Assembler) -> None:
    assembler._window.loaded[8].owners = None


def open_a_closed_step(assembler: Assembler) -> None:
    assembler._derived.facts.timeline._open.add((1, 1))


def raise_the_floor(assembler: Assembler) -> None:
    assembler._derived.facts.timeline._closers.append((5, (7, 7)))


def lose_a_boundary(assembler: Assembler) -> None:
    assembler._derived.facts.timeline._seqs.remove(5)


def lose_a_node(assembler: Assembler) -> None:
    view = assembler.view()
    del view._nodes["toy:b"]


def lose_a_place(assembler: Assembler) -> None:
    del assembler.view()._order[1]


def show_what_nobody_has(assembler: Assembler) -> None:
    entry(assembler).node_key = None


def show_another_content(assembler: Assembler) -> None:
    view = assembler.view()
    old = view._nodes["toy:b"]
    view._nodes["toy:b"] = Node("toy", "b", {"band": 2}).placed(old.position, old.turn, old.step)


def lose_a_group(assembler: Assembler) -> None:
    assembler.view()._groupings[0].groups.clear()


def forget_who_is_in_a_group(assembler: Assembler) -> None:
    assembler.view()._groupings[0]._asked.clear()


def forget_a_start_that_is_looked_at(assembler: Assembler) -> None:
    assembler._derived.predecessors._starts["toy"].pop(0)


def forget_who_looks_back(assembler: Assembler) -> None:
    assembler._derived.predecessors._askers["toy"].clear()


def forget_who_reads(assembler: Assembler) -> None:
    for readers in assembler._derived.dependencies._readers:
        readers.clear()


def lose_a_value(assembler: Assembler) -> None:
    assembler._derived.facts.places._values.clear()


def lose_a_finding(assembler: Assembler) -> None:
    assembler._derived.findings._held.clear()


FAULTS = [
    lose_an_event,
    claim_older_history,
    mix_up_matches,
    hold_a_match_twice,
    lose_all_matches,
    mistake_the_start,
    count_as_gone,
    keep_under_another_id,
    forget_what_is_stale,
    fold_too_little,
    misplace_a_context,
    lose_a_delta,
    mix_up_deltas,
    hold_in_a_closed_step,
    lose_an_attempt,
    lose_the_contexts_of_an_attempt,
    forget_the_attempts_of_a_step,
    hold_a_delta_that_no_attempt_has,
    own_by_another,
    own_by_nobody,
    open_a_closed_step,
    raise_the_floor,
    lose_a_boundary,
    lose_a_node,
    lose_a_place,
    show_what_nobody_has,
    show_another_content,
    lose_a_group,
    forget_who_is_in_a_group,
    forget_a_start_that_is_looked_at,
    forget_who_looks_back,
    forget_who_reads,
    lose_a_value,
    lose_a_finding,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_it_finds_what_is_wrong_inside(fault: Callable[[Assembler], None]) -> None:
    assembler = used()
    fault(assembler)
    found = assembler.audit()
    assert found
    assert all(type(each) is str and each for each in found)
