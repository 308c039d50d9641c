"""Anomalies: a finding is entered once, an incident whenever it happens; the newest are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Context, Match, Reader, Scope
from assembler.engine.errors import DefinitionError
from tests.engine.support import Toy, delta, event


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


def refuse_bad(item: Any) -> Any:
    if item.data.get("bad"):
        raise ValueError
    return Toy.match(Toy(), item)


GOES: dict[str, Callable[[Assembler], Any]] = {
    "settle": lambda assembler: assembler.settle("a", "failed"),
    "a higher number": lambda assembler: assembler.emit(
        delta(attempt="b", number=2, after=5, index=9, id="y")
    ),
    "the step closes": lambda assembler: assembler.append(
        event(6, "step/end", turn=1, step=1, id="y")
    ),
}


@pytest.mark.parametrize("what", ["odd", "bad"])
@pytest.mark.parametrize("way", GOES)
def test_a_finding_goes_with_its_delta(way: str, what: str) -> None:
    assembler = Assembler([Toy(notes=notes, match=refuse_bad)])
    assembler.load([event(5, id="other", v=1)], True)
    assembler.emit(delta(after=5, **{what: True}))
    assembler.emit(delta(1, after=5))
    assembler.flush()
    kind, key = {"odd": ("odd", "toy:x"), "bad": ("definition-error", "toy:")}[what]
    assert [(odd.kind, odd.key) for odd in assembler.findings()] == [(kind, key)]
    GOES[way](assembler)
    assembler.flush()
    assert assembler.findings() == []
    assert assembler.anomalies.counts == {kind: 1}


@pytest.mark.parametrize("what", ["odd", "bad"])
def test_a_finding_goes_with_its_event_and_comes_back_with_it(what: str) -> None:
    assembler = Assembler([Toy(notes=notes, match=refuse_bad)])
    page = [event(1, **{what: True}), event(2, id="y"), event(3, id="z", odd=True)]
    assembler.load(page)
    assembler.flush()
    found = assembler.findings()
    assert [odd.position >> 32 for odd in found] == [1, 3]
    assembler.evict(2)
    assembler.flush()
    assert assembler.findings() == found[1:]
    assembler.prepend(page[:1], False)
    assembler.flush()
    assert assembler.findings() == found
    assert assembler.anomalies.total == 2


def test_how_many_are_kept_stays_after_an_operation_that_raises() -> None:
    def start(match: Match, _reader: Reader) -> Any:
        return 1 / match.data["v"]

    assembler = Assembler([Toy(start=start)], strict=True, anomalies_max=2)
    with pytest.raises(DefinitionError):
        assembler.append(event(5, v=0))
    assembler.append(event(5, v=1))
    stale(assembler, 3)
    assert len(assembler.anomalies) == 2
