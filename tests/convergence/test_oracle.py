"""The oracle alone, on examples small enough to be checked by reading.

A bug of the oracle is a bug like any other. Not here: the engine.
"""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.definition import Anomaly
from assembler.engine.errors import ConflictError, GapError, InputError
from assembler.engine.events import Delta, Event, position
from assembler.engine.locations import SESSION, UNRESOLVED, Location
from assembler.testing import Oracle, compare
from tests.convergence.toys import Job, Rest, Run, toys


def log(*described: tuple[str, dict[str, Any]]) -> list[Event]:
    return [Event(seq, type_, data) for seq, (type_, data) in enumerate(described, 1)]


STEP = log(
    ("turn/start", {"turn": 1}),
    ("step/start", {"turn": 1, "step": 1}),
    ("job/open", {"job": "j"}),
    ("step/end", {"turn": 1, "step": 1}),
    ("job/result", {"job": "j", "value": 7}),
    ("turn/end", {"turn": 1}),
    ("watch", {"watch": "w"}),
)


def piece(ordinal: int, attempt: str = "a", text: str = "x", **fields: Any) -> Delta:
    place = {"turn": 1, "step": 1, "after": 2, "index": ordinal + 1} | fields
    data = {"job": "j", "text": text}
    return Delta(attempt, type="job-piece", data=data, ordinal=ordinal, **place)


def jobs() -> Oracle:
    return Oracle([Job(), Rest(), Run()])


def test_the_bracket_says_where_an_event_belongs() -> None:
    oracle = Oracle(toys())
    oracle.load(STEP, False)
    assert oracle.contexts("job")[0].location == Location(1, 1)
    assert oracle.contexts("watch")[0].location == SESSION
    oracle.load(STEP[2:], True)
    assert oracle.contexts("job")[0].location == UNRESOLVED
    oracle.load(STEP[4:], True)
    assert oracle.contexts("job")[0].location == UNRESOLVED


def test_deltas_start_and_go_and_the_remaining_matches_are_folded() -> None:
    oracle = jobs()
    oracle.load(STEP[:2])
    for ordinal in range(3):
        oracle.emit(piece(ordinal))
    assert str(oracle.state("job", "j").pieces) == "xxx"
    oracle.append(STEP[2])
    node = oracle.view("chat").nodes[0]
    assert (node.anchor, node.data["stage"]) == ((2, 1), "start")
    oracle.append(STEP[3])
    assert not oracle.deltas
    assert str(oracle.state("job", "j").pieces) == ""
    assert oracle.view("chat").nodes[0].anchor == (3, 0)
    assert [group.members for group in oracle.view("chat").groups] == [("job:j",)]


def test_a_match_before_the_start_is_kept_and_noted() -> None:
    oracle = jobs()
    oracle.load(log(("job/result", {"job": "j", "value": 1}), ("job/open", {"job": "j"})))
    assert oracle.state("job", "j").result == 1
    assert oracle.findings() == [Anomaly("early-update", "job:j", position(1, 0))]


def test_gaps_conflicts_and_stale_events() -> None:
    oracle = jobs()
    oracle.load(STEP[2:5], True)
    with pytest.raises(GapError) as gap:
        oracle.append(STEP[6])
    assert (gap.value.first, gap.value.last) == (6, 6)
    with pytest.raises(GapError) as gap:
        oracle.prepend(STEP[:1], False)
    assert (gap.value.first, gap.value.last) == (2, 2)
    with pytest.raises(ConflictError):
        oracle.append(Event(4, "other"))
    with pytest.raises(InputError):
        oracle.append(Event(0, "other"))
    oracle.append(STEP[0])
    oracle.append(STEP[3])
    assert oracle.incidents == [Anomaly("stale-event", "event:1", position(1, 0))]
    oracle.prepend(STEP[:4], True)
    assert oracle.window == (1, 5, False)


def test_an_emptied_window_remembers_its_end() -> None:
    oracle = jobs()
    oracle.load(STEP)
    oracle.evict(100)
    assert oracle.window == (None, None, True)
    with pytest.raises(GapError):
        oracle.append(Event(9, "x"))
    oracle.append(Event(8, "x"))
    assert oracle.window == (8, 8, True)


def test_eviction_stops_at_an_open_step() -> None:
    oracle = jobs()
    oracle.load(STEP[:3])
    oracle.evict(100)
    assert oracle.window == (2, 3, True)


def test_torn_attempts_heal_and_numbers_compete() -> None:
    oracle = jobs()
    oracle.load(STEP[:2])
    oracle.emit(piece(0))
    oracle.emit(piece(2))
    oracle.emit(piece(3))
    assert [odd.kind for odd in oracle.incidents] == ["torn-attempt"]
    for ordinal in range(1, 4):
        oracle.emit(piece(ordinal, text=str(ordinal)))
    assert str(oracle.state("job", "j").pieces) == "x123"
    oracle.emit(piece(0, "b", number=2, index=9))
    assert [delta.attempt for delta in oracle.deltas] == ["b"]
    oracle.emit(piece(4))
    assert [odd.kind for odd in oracle.incidents] == ["torn-attempt", "late-delta"]
    with pytest.raises(ConflictError):
        oracle.emit(piece(1, "b", number=3, index=10))
    with pytest.raises(ConflictError):
        oracle.emit(piece(1, "b", number=2, index=9))


def test_a_settlement_told_ahead() -> None:
    oracle = jobs()
    oracle.load(STEP[:2])
    oracle.settle("a", "failed")
    oracle.emit(piece(0))
    assert not oracle.deltas
    oracle.settle("b", "completed")
    oracle.emit(piece(0, "b"))
    assert oracle.deltas
    oracle.settle("b", "abandoned")
    assert not oracle.deltas
    assert oracle.state("job", "j") is None


def test_the_oracle_agrees_with_itself_whatever_the_page_size() -> None:
    whole = Oracle(toys(), ("chat", "trajectory"))
    whole.load(STEP)
    for size in range(1, 8):
        paged = Oracle(toys(), ("chat", "trajectory"))
        paged.load(STEP[-1:], True)
        for last in range(len(STEP) - 1, 0, -size):
            paged.prepend(STEP[max(last - size, 0) : last], last > size)
        compare(paged, whole)


def test_compare_says_what_differs() -> None:
    left, right = jobs(), jobs()
    left.load(STEP)
    right.load([*STEP[:4], Event(5, "job/result", {"job": "j", "value": 8}), *STEP[5:]])
    with pytest.raises(AssertionError, match="State of job:j"):
        compare(left, right)
