"""`audit()`: quiet after ordinary use, and not when something inside is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.contexts import Entry
from assembler.engine.definition import Context, Match, Node, Reader, Scope
from assembler.engine.window import Loaded
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


def outrun_the_events(assembler: Assembler) -> None:
    assembler._derived.facts.timeline._closers.insert(0, (5, (7, 7)))


def grow_old(assembler: Assembler) -> None:
    assembler._attempts.steps[0, 0] = assembler._attempts.steps[1, 2]


def hold_on_to_what_is_gone(assembler: Assembler) -> None:
    gone = Entry(entry(assembler).spec, "gone", "toy:gone")
    gone.gone = True
    attempt(assembler).entries[gone] = None


def keep_an_unloaded_event(assembler: Assembler) -> None:
    assembler._window.loaded[8] = Loaded(event(8, id="b", turn=1, step=2), entry(assembler))


UNHELD = "toy:live: a delta of a is not held"
OTHERWISE = "toy:b: it is held although it is gone, or under another id"
DISORDER = "toy:b: its matches are not in order, or one is there twice"
FAULTS = {
    lose_an_event: ["window: it is not contiguous"],
    claim_older_history: ["window: something is said to be older than event 1"],
    mix_up_matches: [DISORDER, "toy:b: its start is not the earliest one"],
    hold_a_match_twice: [DISORDER, "toy:b: settled, but 2 of 3 are folded"],
    lose_all_matches: ["toy:b: it has no matches"],
    mistake_the_start: [
        "toy:b: its start is not the earliest one",
        "toy:b: a State without a start",
    ],
    count_as_gone: [OTHERWISE],
    keep_under_another_id: [OTHERWISE],
    forget_what_is_stale: ["toy:b: stale in one place and not in the other"],
    fold_too_little: ["toy:b: settled, but 1 of 2 are folded"],
    misplace_a_context: [
        "toy:b: it stands at 1.7, not Location(turn=1, step=2, resolved=True)",
    ],
    lose_a_delta: ["attempt a: its ordinals are no prefix"],
    mix_up_deltas: [
        "attempt a: its ordinals are no prefix",
        "attempt a: its positions do not rise",
    ],
    hold_in_a_closed_step: [
        "attempt a: held in a closed step",
        "attempts: a closed step is remembered",
    ],
    grow_old: ["attempts: a closed step is remembered"],
    lose_an_attempt: [UNHELD] * 3,
    lose_the_contexts_of_an_attempt: [UNHELD] * 3,
    forget_the_attempts_of_a_step: ["attempt a: its step does not know it"],
    hold_a_delta_that_no_attempt_has: ["toy:live: ordinal 2 of a is not held"],
    hold_on_to_what_is_gone: ["attempt a: it holds on to toy:gone, which is gone"],
    keep_an_unloaded_event: [
        "toy:b: event 8 is not loaded",
        "event 8: toy:b does not hold it",
    ],
    own_by_another: ["toy:b: event 8 does not know it", "event 8: toy:a does not hold it"],
    own_by_nobody: ["toy:b: event 8 does not know it"],
    open_a_closed_step: ["timeline: a closed place counts as open"],
    raise_the_floor: ["timeline: the closers do not fall"],
    outrun_the_events: [
        "timeline: its floor is not that of the loaded events",
        "timeline: a closed place counts as open",
    ],
    lose_a_boundary: ["timeline: its boundaries are not those that are loaded"],
    lose_a_node: ["view chat: its order is not that of its Nodes"],
    lose_a_place: ["view chat: its order is not that of its Nodes"],
    show_what_nobody_has: ["view chat: it shows ['toy:b'] without a Context, or not"],
    forget_a_start_that_is_looked_at: [
        "predecessors: the starts of toy are not those that hold",
    ],
    forget_who_looks_back: ["predecessors: who asks for toy is not known"],
    forget_who_reads: ["dependencies: readers and what they read differ"],
    lose_a_value: ["places: values and who published them differ"],
    lose_a_finding: ["toy:early: its findings are not kept"],
}
GROUP_FAULTS = [show_another_content, lose_a_group, forget_who_is_in_a_group]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_it_says_what_is_wrong_inside(fault: Callable[[Assembler], None]) -> None:
    assembler = used()
    fault(assembler)
    assert assembler.audit() == FAULTS[fault]


@pytest.mark.parametrize("fault", GROUP_FAULTS, ids=lambda fault: fault.__name__)
def test_it_says_what_is_wrong_with_groups(fault: Callable[[Assembler], None]) -> None:
    assembler = used()
    fault(assembler)
    found = assembler.audit()
    assert found
    assert all(each.startswith("groups of band: ") for each in found)


@pytest.mark.parametrize("broken", [0, 1])
def test_it_looks_at_every_kind_of_group(broken: int) -> None:
    class Other(Band):
        kind = "other"

    assembler = Assembler([Toy(build=build), Band(), Other()])
    assembler.append(event(1))
    assembler.flush()
    assert assembler.audit() == []
    assembler.view()._groupings[broken].groups.clear()
    found = assembler.audit()
    assert found
    assert all(each.startswith(f"groups of {['band', 'other'][broken]}: ") for each in found)
