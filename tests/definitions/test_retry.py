"""Attempts that are given up, and what follows them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from assembler.engine.definition import START
from assembler.engine.events import Delta, Event
from definitions.request import Request
from definitions.retry import Retry
from tests.definitions.bench import data_of, every_way, keys_of, live
from tests.definitions.support import Surroundings, delta, event, seen, shown

RETRY = Retry()
REQUEST = Request()
STEP = {"turn": 1, "step": 1}
OPEN = [event(1, "turn/start", turn=1), event(2, "step/start", **STEP)]


def retry(seq: int, attempt: str, number: int, name: str = "r1", **data: Any) -> Event:
    told = {"retry_id": name, "attempt": attempt, "number": number, "reason": "busy", **data}
    return event(seq, "llm/retry", **STEP, **told)


def says(attempt: str, number: int, after: int = 3, type_: str = "text") -> Delta:
    said = delta(1, type_, attempt, after, block=0, text="x", call_id="c1", name="ls", arguments="")
    return replace(said, number=number, index=number)


def message(seq: int, **data: Any) -> Event:
    content = [{"type": "text", "text": "x"}]
    return event(seq, "assistant/message", **STEP, content=content, **data)


def status(*items: Any, **facts: Any) -> Any:
    mine = [item for item in items if item.type == "llm/retry"]
    made = shown(RETRY, *mine, others=[(REQUEST, items)], **facts)
    assert made is not None
    return made["status"]


def test_a_retry_and_a_fallback_give_an_attempt_up() -> None:
    for type_ in RETRY.takes:
        assert RETRY.retires(event(3, type_, turn=1, step=1, attempt="a1")) == "a1"
        assert RETRY.retires(event(3, type_, turn=1, step=1)) is None
        assert RETRY.retires(event(3, type_, attempt=1)) is None
    assert RETRY.takes == {"llm/retry", "llm/fallback"}


def test_a_retry_alone_has_a_row() -> None:
    assert RETRY.match(retry(3, "a1", 1)) == ("r1", START)
    assert RETRY.match(event(3, "llm/retry", attempt="a1")) is None
    assert RETRY.match(event(3, "llm/fallback", retry_id="r1", attempt="a1")) is None
    assert RETRY.match(delta(1, "llm/retry", retry_id="r1")) is None  # type: ignore[arg-type]


def test_it_shows_each_attempt_that_was_given_up() -> None:
    first = retry(3, "a1", 1, delay_ms=500)
    assert shown(RETRY, first) == {
        "attempts": [{"number": 1, "reason": "busy", "delay_ms": 500, "state": "waiting"}],
        "status": "waiting",
    }
    both = shown(RETRY, first, retry(4, "a2", 2), retry(5, "a2", 2))
    assert both == {
        "attempts": [
            {"number": 1, "reason": "busy", "delay_ms": 500, "state": "done"},
            {"number": 2, "reason": "busy", "delay_ms": None, "state": "waiting"},
        ],
        "status": "waiting",
    }


def test_attempts_of_one_number_are_told_apart_by_name() -> None:
    both = shown(RETRY, retry(3, "a1", 1), retry(4, "b1", 1), retry(5, "a1", 1))
    assert both is not None
    assert [given["number"] for given in both["attempts"]] == [1, 1]


def test_a_number_that_is_none_is_below_all_others() -> None:
    for odd in (None, "2", True):
        given = retry(3, "a1", odd)  # type: ignore[arg-type]
        made = shown(RETRY, given)
        assert made is not None
        assert made["attempts"][0]["number"] is None
        assert status(given) == "waiting"
        assert status(given, says("a2", 1)) == "running"


def test_a_retry_that_names_no_step_waits_and_asks_nobody() -> None:
    given = event(3, "llm/retry", retry_id="r1", attempt="a1", number=1)
    scope = Surroundings()
    node = RETRY.build(seen(RETRY, given), scope)
    assert node is not None
    assert node.data["status"] == "waiting"
    assert not any(read.startswith("request:") for read in scope.read)


@pytest.mark.parametrize("type_", ["text", "reasoning", "tool-call", "block-start", "usage"])
def test_it_runs_when_an_attempt_of_a_higher_number_speaks(type_: str) -> None:
    given = retry(3, "a1", 1)
    assert status(given, says("a2", 2, type_=type_)) == "running"
    assert status(given, says("b", 1, type_=type_)) == "waiting"
    assert status(given, says("side", 0, type_=type_)) == "waiting"


def test_it_is_done_at_the_message_or_another_retry() -> None:
    given = retry(3, "a1", 1)
    assert status(given, says("a2", 2), message(4)) == "done"
    assert status(given, message(4, interrupted=True)) == "done"
    other = event(4, "llm/fallback", **STEP, attempt="a2")
    assert status(given, other) == "done"
    same = event(4, "llm/fallback", **STEP, attempt="a1")
    assert status(given, same) == "waiting"
    # What was stored of the attempt that is given up is no answer yet.
    assert status(message(3, interrupted=True), retry(4, "a1", 1)) == "waiting"
    assert status(message(3), retry(4, "a1", 1)) == "done"


def test_it_is_cancelled_when_nothing_can_follow() -> None:
    given = retry(3, "a1", 1)
    assert status(given, closed=True) == "cancelled"
    assert status(given, says("a2", 2), closed=True) == "cancelled"
    assert status(given, live=False) == "cancelled"
    assert status(given, message(4), closed=True, live=False) == "done"


def test_an_ordinary_retry_from_its_first_word_to_the_reload() -> None:
    bench = live(*OPEN, says("a1", 1, 2), retry(3, "a1", 1))
    seen = [data_of(bench, "retry:r1")["status"]]
    assert keys_of(bench) == ["retry:r1"]
    for call, item in [
        ("emit", says("a2", 2)),
        ("settle", ("a2", "failed")),
        ("append", retry(4, "a2", 2, "r2")),
        ("emit", says("a3", 3, 4)),
        ("append", message(5)),
        ("append", event(6, "step/end", **STEP)),
    ]:
        bench.do(call, *(item if isinstance(item, tuple) else (item,)))
        bench.check()
        seen.append(data_of(bench, "retry:r1")["status"])
    assert seen == ["waiting", "running", "waiting", "done", "done", "done", "done"]
    assert data_of(bench, "retry:r2")["status"] == "done"
    assert keys_of(bench) == ["retry:r1", "retry:r2", "assistant:1.1"]


def test_every_way_to_arrive_says_the_same() -> None:
    end = [event(6, "step/end", **STEP), event(7, "turn/end", turn=1, reason="completed")]
    done = every_way([*OPEN, retry(3, "a1", 1), retry(4, "a2", 2), message(5), *end])
    assert data_of(done, "retry:r1")["status"] == "done"
    cut = every_way([*OPEN, retry(3, "a1", 1), event(4, "turn/end", turn=1, reason="cancelled")])
    assert data_of(cut, "retry:r1")["attempts"][0]["state"] == "cancelled"
