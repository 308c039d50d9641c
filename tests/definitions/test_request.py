"""The model call of one step."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from assembler.engine.definition import FRAME, NONE, START
from assembler.engine.events import Event
from definitions.request import Request
from definitions.shared import RequestState, StepMark, StepUsage
from tests.definitions.support import Surroundings, delta, event, matched, seen

REQUEST = Request()
STEP = {"turn": 1, "step": 1}


def gives_up(seq: int, attempt: str | None, type_: str = "llm/retry", **data: Any) -> Event:
    named = {} if attempt is None else {"attempt": attempt}
    return event(seq, type_, **STEP, **named, **data)


def message(seq: int, **data: Any) -> Event:
    return event(seq, "assistant/message", **STEP, **data)


def state(*items: Any) -> RequestState:
    made: RequestState = seen(REQUEST, *items).state
    return made


def placed(*items: Any, **facts: Any) -> Any:
    return REQUEST.place(seen(REQUEST, *items), Surroundings(**facts))


def test_the_first_delta_of_an_attempt_is_enough() -> None:
    first = delta(1, "text", text="a")
    for type_ in ("text", "reasoning", "tool-call", "block-start", "block-end", "usage"):
        assert REQUEST.match(replace(first, type=type_)) == ("1.1", START)
        assert type_ in REQUEST.takes
    assert REQUEST.match(delta(2, "text", text="b")) is None
    assert REQUEST.match(replace(first, number=0)) is None
    assert REQUEST.match(event(3, "llm/retry", attempt="a1")) is None
    assert REQUEST.match(message(3)) == ("1.1", START)
    assert REQUEST.cadence(matched(REQUEST, [first])[0]) is NONE


def test_whatever_names_a_step_may_be_the_first_that_is_known_of_it() -> None:
    for type_ in ("step/start", "step/end", "tool/call"):
        named = event(3, type_, **STEP)
        assert REQUEST.match(named) == ("1.1", START)
        assert type_ in REQUEST.takes
        assert REQUEST.cadence(matched(REQUEST, [named])[0]) is FRAME
        assert REQUEST.match(event(3, type_, turn=1)) is None


def test_the_highest_number_that_is_held_spoke() -> None:
    first = delta(1, "text", "a1")
    second = replace(delta(1, "text", "a2", 3), number=2)
    assert state(first).spoke == 1
    assert state(first, second).spoke == state(second).spoke == 2
    assert state(second, delta(1, "text", "a1", 5)).spoke == 2
    assert state(message(3)).spoke == 0


def test_an_attempt_is_given_up_once() -> None:
    used = {"input_tokens": 5}
    twice = state(gives_up(3, "a1"), gives_up(4, "a1", "llm/fallback", usage=used))
    assert [(given.attempt, given.at >> 32) for given in twice.given_up] == [("a1", 3)]
    again = (gives_up(3, "a1", usage=used), gives_up(4, "a1", usage=used), gives_up(5, "a2"))
    assert placed(*again) == StepUsage(None, (used,))  # type: ignore[arg-type]
    assert placed(gives_up(3, "a1"), gives_up(4, "a1", usage=used)).lost == (used,)
    assert len(state(gives_up(3, None), gives_up(4, None)).given_up) == 2


def test_the_message_that_counts() -> None:
    cut, whole = message(3, interrupted=True, id=1), message(4, id=2)
    assert state(cut, whole).message == whole.data
    assert state(whole, message(5, id=3)).message == whole.data
    assert state(cut, message(5, interrupted=True)).message == cut.data
    assert state(cut, whole).message_at >> 32 == 4


def test_it_publishes_usage_on_its_step_and_its_number_on_its_turn() -> None:
    used = {"input_tokens": 5, "output_tokens": 2}
    assert placed(message(3, usage=used)) == StepUsage(used)  # type: ignore[arg-type]
    begun = event(2, "step/start", **STEP)
    assert placed(begun, message(3, usage=used), step=None) == StepMark(1, begun.time)
    assert placed(message(3, usage=used), step=None) == StepMark(1)
    assert placed(message(3)) is None
    assert placed(message(3, usage=7)) is None
    assert placed(delta(1, "text", text="a")) is None
