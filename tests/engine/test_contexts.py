"""Contexts: in which order Matches are folded, and by which calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Match
from tests.engine.support import Toy, delta, event, same_as_fresh


def extend(state: tuple[Any, ...], matches: Sequence[Match]) -> tuple[Any, ...]:
    return (*state, *(match.data.get("v") for match in matches))


def test_a_run_of_updates_is_folded_at_once_behind_the_state_so_far() -> None:
    toy = Toy(extend=extend)
    assembler = Assembler([toy])
    assembler.load([event(seq, "toy/more" if seq > 1 else "toy", v=seq) for seq in range(1, 6)])
    assert assembler.state("toy", "x") == (1, 2, 3, 4, 5)
    assert (toy.asked("extend"), toy.asked("update")) == (["x+x+x+x"], [])
    for ordinal in range(2):
        assembler.emit(delta(ordinal, "toy-more", after=5, v=ordinal))
    assert assembler.state("toy", "x") == (1, 2, 3, 4, 5, 0, 1)
    assert (toy.asked("extend"), toy.asked("update")) == (["x+x"], [])
    assembler.append(event(6, "toy/more", v=6))
    assert assembler.state("toy", "x") == (1, 2, 3, 4, 5, 0, 1, 6)
    assert (toy.asked("extend"), toy.asked("update")) == ([], ["x"])


@pytest.mark.parametrize("size", [2, 40])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_matches_are_folded_in_position_order_however_they_came(
    order: tuple[int, ...], size: int
) -> None:
    """Deltas of three attempts, each of them between those of the others."""
    toys = [Toy()]
    assembler = Assembler(toys)
    assembler.append(event(1, v="start"))
    for attempt in order:
        for ordinal in range(size):
            place = {"after": 1, "index": 3 * ordinal + attempt + 1, "attempt": "abc"[attempt]}
            assembler.emit(delta(ordinal, "toy-more", **place, v=3 * ordinal + attempt))
    assert assembler.state("toy", "x") == ("start", *range(3 * size))
    same_as_fresh(assembler, toys)
    assembler.settle("b", "failed")
    assert assembler.state("toy", "x") == ("start", *(n for n in range(3 * size) if n % 3 != 1))
    same_as_fresh(assembler, toys)


def test_equal_positions_of_two_attempts_are_folded_by_name() -> None:
    for order in ("ab", "ba"):
        assembler = Assembler([Toy()])
        assembler.append(event(1, v="start"))
        for attempt in order:
            assembler.emit(delta(0, "toy-more", after=1, index=1, attempt=attempt, v=attempt))
        assert assembler.state("toy", "x") == ("start", "a", "b")
        same_as_fresh(assembler, [Toy()])


@pytest.mark.parametrize("size", [1, 7, 8, 9, 20])
def test_events_that_go_and_come_again_are_where_they_were(size: int) -> None:
    toys = [Toy()]
    log = [event(seq, "toy/more" if seq > 1 else "toy", v=seq) for seq in range(1, size + 2)]
    assembler = Assembler(toys)
    for each in log:
        assembler.append(each)
    everything = tuple(range(1, size + 2))
    assert assembler.state("toy", "x") == everything
    assembler.evict(size + 1)
    assert assembler.state("toy", "x") is None
    same_as_fresh(assembler, toys)
    assembler.emit(delta(0, after=size + 1, v="live"))
    assert assembler.state("toy", "x") == ("live", size + 1)  # the earliest start that is left
    assembler.prepend(log[:size], False)
    assert assembler.state("toy", "x") == (*everything, "live")
    same_as_fresh(assembler, toys)


def test_a_context_says_what_it_is() -> None:
    assembler = Assembler([Toy()])
    assembler.append(event(1))
    (context,) = assembler.contexts("toy")
    assert repr(context) == "<Context toy:x of 1 matches>"
