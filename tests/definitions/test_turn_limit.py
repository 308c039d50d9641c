"""An answer that was cut because it became too long."""

from __future__ import annotations

from typing import Any

from assembler.engine.definition import START
from assembler.engine.events import Event
from definitions.request import Request
from definitions.shared import RequestState
from definitions.turn_limit import TurnLimit
from tests.definitions.bench import data_of, every_way, keys_of, live
from tests.definitions.support import Surroundings, delta, event, seen, shown

TURN_LIMIT = TurnLimit()
STEP = {"turn": 1, "step": 1}
OPEN = [event(1, "turn/start", turn=1), event(2, "step/start", **STEP)]


def message(seq: int, stop_reason: Any = "length", **data: Any) -> Event:
    content = [{"type": "text", "text": "x"}]
    told = {**STEP, "content": content, "stop_reason": stop_reason, **data}
    return event(seq, "assistant/message", **told)


def limit(*messages: Event) -> Any:
    cut = [each for each in messages if TURN_LIMIT.match(each)]
    return shown(TURN_LIMIT, *cut, others=[(Request(), messages)])


def test_it_is_about_a_message_that_was_cut_by_length() -> None:
    assert TURN_LIMIT.match(message(3)) == ("1.1", START)
    for stop_reason in ("end_turn", "tool_use", "content_filter", None, 3):
        assert TURN_LIMIT.match(message(3, stop_reason)) is None
    assert TURN_LIMIT.match(message(3, step=None)) is None
    assert TURN_LIMIT.match(delta(1, "x", stop_reason="length")) is None  # type: ignore[arg-type]


def test_the_message_that_counts_decides() -> None:
    cut, whole = message(3), message(4, "end_turn")
    assert limit(cut) == {"stop_reason": "length"}
    assert limit(cut, whole) == limit(cut)
    assert limit(message(3, "end_turn"), message(4)) is None
    assert limit(message(3, interrupted=True), whole) is None


def test_without_a_cut_message_or_what_its_step_came_to_nothing_is_shown() -> None:
    assert TURN_LIMIT.build(seen(TURN_LIMIT, message(3)), Surroundings()) is None
    request = Surroundings({("request", ""): RequestState(message=message(3).data)})
    assert TURN_LIMIT.build(seen(TURN_LIMIT), request) is None


def test_it_stands_behind_its_answer() -> None:
    bench = live(*OPEN, delta(1, "text", after=2, block=0, text="x"), message(3))
    assert keys_of(bench) == ["assistant:1.1", "turn-limit:1.1"]
    end = event(4, "turn/end", turn=1, reason="limit")
    bench = every_way([*OPEN, message(3), end])
    assert keys_of(bench) == ["assistant:1.1", "turn-limit:1.1", "turn-tail:1"]
    node = bench.assembler.view("chat")["turn-limit:1.1"]
    assert (node.anchor, node.turn, node.step) == ((3, 0), 1, 1)
    assert data_of(bench, "turn-limit:1.1") == {"stop_reason": "length"}
