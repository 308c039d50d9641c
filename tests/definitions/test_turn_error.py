"""The error that ended a turn."""

from __future__ import annotations

from typing import Any

from assembler.engine.definition import START
from assembler.engine.events import Event
from definitions.turn_error import TurnError
from tests.definitions.support import Surroundings, event, seen, shown

TURN_ERROR = TurnError()
OUT = {"name": "ProviderError", "message": "out of credit"}


def end(seq: int = 6, **data: Any) -> Event:
    return event(seq, "turn/end", **{"turn": 1, "reason": "error", "error": OUT, **data})


def test_it_shows_at_an_end_by_error_alone() -> None:
    assert TURN_ERROR.match(end()) == ("1", START)
    for reason in ("completed", "cancelled", "limit", "interrupted", None):
        assert TURN_ERROR.match(end(reason=reason)) is None
    for turn in (None, "1", True):
        assert TURN_ERROR.match(end(turn=turn)) is None


def test_it_says_what_went_wrong() -> None:
    assert shown(TURN_ERROR, end()) == {"error": OUT}
    assert shown(TURN_ERROR, end(error=None)) == {"error": None}
    assert shown(TURN_ERROR, end(), end(7, error=None)) == {"error": OUT}
    node = TURN_ERROR.build(seen(TURN_ERROR, end()), Surroundings())
    assert node is not None
    assert (node.kind, node.id) == ("turn-error", "1")
