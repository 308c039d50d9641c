"""Goals of what is shown: flushing and grouping beside many Nodes, and the bytes that are sent.

Not here: the goals of folding, loading and memory (`goals`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from assembler.engine.assembler import Assembler
from assembler.engine.events import Event
from tests.benchmarks.contenders import CATALOG
from tests.benchmarks.measure import Prepare, Row, Run, interleaved

__all__ = ["GROUP", "GROUPS", "appending", "changing", "grouping"]

GROUPS, GROUP = 8, 1_000_000
"""How many calls are in one turn, and so in one group: few of many turns, or all of one."""

_TIMES = 200


def _calls(nodes: int, a_turn: int) -> Iterator[Event]:
    """Settled calls, `a_turn` of them in each turn; the last turn is open."""
    seq = count(1)
    for number in range(nodes):
        turn = number // a_turn + 1
        if number % a_turn == 0:
            yield Event(next(seq), "turn/start", {"turn": turn})
            yield Event(next(seq), "step/start", {"turn": turn, "step": 1})
        yield from _call(seq, turn, number)


def _call(seq: Iterator[int], turn: int, number: int) -> Iterator[Event]:
    call = {"call_id": f"c{number}", "name": "read", "arguments": '{"path":"a"}'}
    yield Event(next(seq), "tool/call", {"turn": turn, "step": 1, **call})
    yield Event(next(seq), "tool/result", {"call_id": f"c{number}", "content": []})


def _loaded(nodes: int, a_turn: int) -> tuple[Assembler, Iterator[int], int]:
    assembler = Assembler(CATALOG)
    events = list(_calls(nodes, a_turn))
    assembler.load(events)
    assembler.flush()
    return assembler, count(len(events) + 1), events[-2].data["turn"]


def appending(nodes: int, a_turn: int) -> Prepare:
    """Calls that begin and end behind `nodes` others, each flushed: one Node more, then changed."""
    assembler, seq, turn = _loaded(nodes, a_turn)
    number = count(nodes)

    def run() -> None:
        for _ in range(_TIMES):
            for event in _call(seq, turn, next(number)):
                assembler.append(event)
                assembler.flush()

    return lambda: run


def changing(nodes: int, a_turn: int) -> Prepare:
    """One Node in the middle of `nodes` that changes again and again: its question, its answer."""
    assembler, seq, _ = _loaded(nodes, a_turn)
    call, number = f"c{nodes // 2}", count()

    def run() -> None:
        for _ in range(_TIMES):
            request = {"call_id": call, "request_id": f"r{next(number)}", "input": {}}
            for type_, more in (("request", {}), ("answer", {"decision": "allow"})):
                assembler.append(Event(next(seq), f"permission/{type_}", {**request, **more}))
                assembler.flush()

    return lambda: run


def grouping(sizes: Any) -> list[Row]:
    rows = []
    ways: dict[str, Callable[[int, int], Prepare]] = {"appended": appending, "changed": changing}
    for what, way in ways.items():
        for said, a_turn in (("groups of 8", GROUPS), ("one group", GROUP)):
            contenders: dict[str, Callable[[], Run]] = {
                "many": way(sizes.others, a_turn),
                "few": way(sizes.few_others, a_turn),
            }
            times = interleaved(contenders, max(3, sizes.rounds * 2))
            label = f"a Node {what} and flushed, {sizes.others:,} over {sizes.few_others:,}, {said}"
            rows.append(times.row("11", label, "many", "few", 1.3))
    return rows
