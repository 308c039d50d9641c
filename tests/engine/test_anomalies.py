"""Anomalies: a finding is entered once, an incident whenever it happens; the newest are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Context, Match, Scope
from assembler.engine.errors import DefinitionError
from tests.engine.support import Toy, event


def notes(context: Context, scope: Scope) -> Sequence[tuple[str, int]]:
    return [("odd", match.position) for match in context.matches if match.data.get("odd")]


def stale(assembler: Assembler, times: int) -> None:
    """Say `times` something that lies below the window, which is an incident."""
    for seq in range(1, times + 1):
        assembler.append(event(seq))


def test_the_newest_are_kept_and_all_are_counted() -> None:
    assembler = Assembler([Toy()], anomalies_max=3)
    assembler.append(event(10))
    stale(assembler, 5)
    assert [odd.position >> 32 for odd in assembler.anomalies] == [3, 4, 5]
    assert len(assembler.anomalies) == 3
    assert assembler.anomalies.counts == {"stale-event": 5}
    assert assembler.anomalies.total == 5
    assert assembler.statistics()["anomalies"] == {"stale-event": 5}


def test_a_thousand_are_kept_unless_told_otherwise() -> None:
    assembler = Assembler([Toy()])
    assembler.append(event(2_000))
    stale(assembler, 1_001)
    assert (len(assembler.anomalies), assembler.anomalies.total) == (1_000, 1_001)


def test_none_are_kept_of_a_conversation_without_any() -> None:
    log = Assembler([Toy()]).anomalies
    assert (list(log), len(log), log.counts, log.total) == ([], 0, {}, 0)


def test_a_finding_is_entered_once_however_often_it_is_found() -> None:
    assembler = Assembler([Toy(notes=notes)])
    assembler.append(event(1, odd=True))
    for seq in range(2, 5):
        assembler.append(event(seq, "toy/more", odd=seq == 3))
        assembler.flush()
    assembler.load([])
    assembler.flush()
    assert assembler.findings() == []
    assembler.load([event(1, odd=True)])
    assembler.flush()
    assert [odd.to_json() for odd in assembler.anomalies] == [
        {"kind": "odd", "key": "toy:x", "position": [seq, 0]} for seq in (1, 3)
    ]
    assert assembler.anomalies.counts == {"odd": 2}


def test_an_operation_that_raises_enters_nothing() -> None:
    def update(state: Any, match: Match) -> Any:
        if match.data.get("bad"):
            raise ValueError
        return state

    assembler = Assembler([Toy(notes=notes, update=update)], strict=True, anomalies_max=2)
    assembler.append(event(5, odd=True))
    stale(assembler, 2)
    assembler.flush()
    before = [*assembler.anomalies], assembler.anomalies.counts
    with pytest.raises(DefinitionError):
        assembler.append(event(6, "toy/more", bad=True))
    assert ([*assembler.anomalies], assembler.anomalies.counts) == before
    assembler.append(event(6, "toy/more"))
    assembler.flush()
    assert ([*assembler.anomalies], assembler.anomalies.counts) == before
    stale(assembler, 1)
    assert assembler.anomalies.counts == {"odd": 1, "stale-event": 3}
    assert len(assembler.anomalies) == 2
