"""Events that nobody knows."""

from __future__ import annotations

from assembler.engine.definition import START, UNNAMED
from definitions.events import VOCABULARY
from definitions.fallback import Fallback
from definitions.quiet import QUIET_TYPES
from tests.definitions.support import Surroundings, delta, event, seen, shown

FALLBACK = Fallback(quiet=frozenset({"vendor/tick"}))


def test_it_takes_events_whose_type_nobody_names() -> None:
    assert FALLBACK.takes == {UNNAMED}
    assert FALLBACK.names == VOCABULARY
    assert FALLBACK.match(event(3, "vendor/note")) == ("3", START)
    assert FALLBACK.match(delta(1, "vendor/note")) is None  # type: ignore[arg-type]


def test_quiet_types_have_no_row() -> None:
    assert FALLBACK.match(event(3, "vendor/tick")) is None
    assert Fallback().match(event(3, "vendor/tick")) is not None
    assert not QUIET_TYPES & VOCABULARY


def test_it_shows_the_event_as_it_is() -> None:
    data = {"mood": "good", "parts": [1, {"deep": None}]}
    assert shown(FALLBACK, event(3, "vendor/note", **data)) == {"type": "vendor/note", "data": data}


def test_its_row_is_named_by_its_event() -> None:
    node = FALLBACK.build(seen(FALLBACK, event(3, "vendor/note")), Surroundings())
    assert node is not None
    assert (node.kind, node.id) == ("unknown", "3")
