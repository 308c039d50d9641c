"""What can be asked of an Assembler about its facts, and about what is behind a Node."""

from __future__ import annotations

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Context, Node, Scope
from tests.engine.support import Toy, delta, event


def test_events_and_deltas_are_looked_up_one_by_one() -> None:
    assembler = Assembler([Toy()])
    first, second = event(1, "step/start", turn=1, step=1), event(2, id="a", v=1)
    assembler.append(first)
    assembler.append(second)
    piece = delta(0, attempt="try", id="b", v=2)
    assembler.emit(piece)
    assert assembler.event(1) is first
    assert assembler.event(3) is None
    assert assembler.held == {"try": 1}
    assert assembler.delta("try", 0) == piece
    with pytest.raises(LookupError):
        assembler.delta("another", 0)
    assembler.settle("try", "failed")
    assert assembler.held == {}


def test_the_context_behind_a_node_is_found_under_whatever_name_it_shows() -> None:
    def renamed(context: Context, scope: Scope) -> Node:
        return Node("shown", context.id, {})

    strange = Toy("odd", build=renamed)
    strange.shows = frozenset({"shown"})
    assembler = Assembler([Toy("plain"), strange])
    assembler.append(event(1, "plain", id="a", v=1))
    assembler.append(event(2, "odd", id="a", v=1))
    assembler.flush()
    plain, odd = (assembler.behind("chat", key) for key in ("plain:a", "shown:a"))
    assert plain is not None
    assert odd is not None
    assert (plain.key, odd.key) == ("plain:a", "odd:a")
    assert [match.item.seq for match in odd.matches] == [2]
    assert assembler.behind("chat", "odd:a") is None
    assert assembler.view("chat").rest == (
        assembler.view("chat").snapshot().window,
        None,
        None,
    )
