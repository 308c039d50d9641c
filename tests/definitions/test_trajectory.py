"""What the view of steps shows."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from assembler.engine.assembler import Assembler
from assembler.engine.events import Delta, Event
from definitions import catalog
from tests.convergence.support import Bench
from tests.definitions.bench import data_of, every_way, keys_of, live
from tests.definitions.support import delta, event

STEP = {"turn": 1, "step": 1}
OPENED = (event(1, "turn/start", turn=1), event(2, "step/start", **STEP))
ERROR = {"name": "AUTH", "message": "no key"}


def message(seq: int, **data: Any) -> Event:
    told = {"message_id": f"m{seq}", "content": [], "stop_reason": "end_turn", **data}
    return event(seq, "assistant/message", **{**STEP, **told})


def call(seq: int, call_id: str, **data: Any) -> Event:
    told = {"call_id": call_id, "name": "ls", "arguments": "{}", **data}
    return event(seq, "tool/call", **{**STEP, **told})


def result(seq: int, call_id: str) -> Event:
    return event(seq, "tool/result", call_id=call_id, content=[])


def retry(seq: int, attempt: str, number: int | None = None, **data: Any) -> Event:
    numbered = {} if number is None else {"number": number}
    told = {"retry_id": f"r{seq}", "attempt": attempt, "reason": "busy", **numbered, **data}
    return event(seq, "llm/retry", **STEP, **told)


def says(index: int, attempt: str = "a1", number: int = 1, after: int = 2) -> Delta:
    """The first delta of an attempt."""
    made = delta(1, "text", attempt, after, block=0, text="x")
    return replace(made, index=index, number=number)


def step(side: Bench | Assembler, id_: str = "1.1") -> Any:
    return data_of(side, f"step:{id_}", "trajectory")


def outcomes(side: Bench | Assembler) -> list[tuple[int, str | None]]:
    return [(each["number"], each["outcome"]) for each in step(side)["attempts"]]


def test_a_step_from_its_start_to_its_end() -> None:
    bench = live(*OPENED)
    opened = {
        "status": "running",
        "error": None,
        "started": 2_000,
        "ended": None,
        "request": dict.fromkeys(("provider", "model", "message_id", "stop_reason", "stop_detail")),
        "usage": None,
        "attempts": [],
        "calls": [],
        "events": [2, 2],
    }
    assert step(bench) == opened
    assert bench.assembler.view("trajectory")["step:1.1"].anchor == (2, 0)

    bench.do("emit", says(1))
    bench.check()
    attempt = {"number": 1, "outcome": None, "reason": None, "model": None}
    assert step(bench) == {**opened, "attempts": [attempt]}

    used = {"input_tokens": 5, "raw": {"in": 5}}
    source = {"kind": "model", "provider": "acme", "model": "large"}
    told = {"stop_reason": "tool_use", "stop_detail": "tools", "usage": used, "source": source}
    events = [message(3, **told), call(4, "c1"), result(5, "c1"), event(6, "step/end", **STEP)]
    for each in events:
        bench.do("append", each)
        bench.check()
    settled = {
        "status": "settled",
        "error": None,
        "started": 2_000,
        "ended": 6_000,
        "request": {
            "provider": "acme",
            "model": "large",
            "message_id": "m3",
            "stop_reason": "tool_use",
            "stop_detail": "tools",
        },
        "usage": {**used, "lost": None},
        "attempts": [{**attempt, "outcome": "completed"}],
        "calls": ["c1"],
        "events": [2, 6],
    }
    assert step(bench) == settled
    assert step(every_way([*OPENED, *events])) == settled
    assert keys_of(bench, "trajectory") == ["step:1.1"]
    assert "step:1.1" not in keys_of(bench)


def test_text_that_grows_says_nothing_of_its_step() -> None:
    assembler = Assembler(catalog(), ("trajectory",))
    for each in OPENED:
        assembler.append(each)
    first = says(1)
    assembler.emit(first)
    assembler.flush()
    node = assembler.view("trajectory")["step:1.1"]
    assembler.emit(replace(first, ordinal=1, index=2))
    assert not assembler.flush()["trajectory"]
    assert assembler.view("trajectory")["step:1.1"] is node


def test_attempts_that_were_given_up() -> None:
    lost = {"input_tokens": 5}
    bench = live(*OPENED, says(1), retry(3, "a1", 1, usage=lost))
    given_up = {"number": 1, "outcome": "retry", "reason": "busy", "model": None}
    assert step(bench)["attempts"] == [given_up]
    assert step(bench)["usage"] == {"lost": lost}
    assert step(bench)["events"] == [2, 3]

    bench.do("emit", says(2, "a2", 2, after=3))
    bench.check()
    assert outcomes(bench) == [(1, "retry"), (2, None)]

    models = {"from_model": "small", "to_model": "large"}
    bench.do("append", event(4, "llm/fallback", **STEP, attempt="a2", reason="no", **models))
    bench.check()
    fallen = {"number": 2, "outcome": "fallback", "reason": "no", "model": "small"}
    assert step(bench)["attempts"] == [given_up, fallen]
    assert step(bench)["request"]["model"] == "large"

    bench.do("append", message(5, model="larger", usage={"output_tokens": 1}))
    bench.check()
    assert outcomes(bench) == [(1, "retry"), (2, "fallback"), (3, "completed")]
    assert step(bench)["request"]["model"] == "larger"
    assert step(bench)["usage"] == {"output_tokens": 1, "lost": lost}


def test_attempts_have_the_numbers_that_are_told() -> None:
    told = live(*OPENED, retry(3, "a1"), retry(4, "a3", 3), retry(5, "a4"), message(6))
    assert [number for number, _ in outcomes(told)] == [1, 3, 4, 5]

    # The second one gave the first one up, and no event says so: soon nobody knows of it.
    silent = live(*OPENED, says(1), says(2, "a2", 2), message(3))
    assert outcomes(silent) == [(2, "completed")]
    silent.do("append", event(4, "step/end", **STEP))
    silent.check()
    assert outcomes(silent) == [(1, "completed")]


def test_usage_while_an_answer_is_being_written() -> None:
    told = delta(2, "usage", after=2, usage={"output_tokens": 2})
    bench = live(*OPENED, says(1), told)
    assert step(bench)["usage"] == {"output_tokens": 2, "lost": None}
    bench.do("settle", "a1", "failed")
    bench.check()
    assert step(bench)["usage"] is None
    assert step(bench)["attempts"] == []


def test_what_an_attempt_left_before_it_was_given_up_is_no_attempt_more() -> None:
    left = message(3, interrupted=True)
    assert outcomes(live(*OPENED, left)) == [(1, "interrupted")]
    assert outcomes(live(*OPENED, left, retry(4, "a1", 1))) == [(1, "retry")]
    assert outcomes(live(*OPENED, retry(3, "a1", 1), message(4, interrupted=True))) == [
        (1, "retry"),
        (2, "interrupted"),
    ]
    assert outcomes(live(*OPENED, message(3), retry(4, "a1", 1))) == [
        (1, "retry"),
        (2, "completed"),
    ]


def test_calls_stand_in_the_order_in_which_they_were_dispatched() -> None:
    def piece(index: int, call_id: str) -> Delta:
        told = {"block": index, "call_id": call_id, "name": "ls", "arguments": "{}"}
        return delta(index, "tool-call", after=2, **told)

    bench = live(*OPENED, piece(1, "c1"), piece(2, "c2"), piece(3, "c3"))
    assert step(bench)["calls"] == []
    for each, last in ((call(3, "c2"), 3), (call(4, "c1"), 4), (result(5, "c1"), 5)):
        bench.do("append", each)
        bench.check()
        assert step(bench)["events"] == [2, last]
    assert step(bench)["calls"] == ["c2", "c1"]
    bench.do("append", event(6, "step/end", **STEP))
    bench.check()
    assert step(bench)["calls"] == ["c2", "c1"]
    bench.do("append", result(7, "c2"))  # a job in the background
    bench.check()
    assert step(bench)["events"] == [2, 7]


@pytest.mark.parametrize(
    ("closer", "ended"),
    [
        (event(3, "step/end", **STEP), 3_000),
        (event(3, "step/start", turn=1, step=2), 3_000),
        (event(3, "turn/end", turn=1, reason="cancelled"), 3_000),
        (event(3, "turn/start", turn=2), 3_000),
        (event(3, "step/end", turn=1, step=2), None),
    ],
)
def test_whatever_closes_a_step_ends_it(closer: Event, ended: int | None) -> None:
    bench = every_way([*OPENED, closer])
    assert (step(bench)["status"], step(bench)["ended"]) == ("interrupted", ended)
    assert step(bench)["attempts"] == []


def test_the_first_that_closed_a_step_counts() -> None:
    closers = [
        event(3, "step/start", turn=1, step=2),
        event(4, "turn/end", turn=1, reason="interrupted"),
        event(5, "turn/start", turn=2),
    ]
    assert step(every_way([*OPENED, *closers]))["ended"] == 3_000
    assert step(every_way([*OPENED, *closers]), "1.2")["ended"] == 4_000
    again = [event(3, "step/end", **STEP), event(4, "step/start", **STEP)]
    bench = every_way([*OPENED, *again, event(5, "step/end", **STEP)])
    assert (step(bench)["started"], step(bench)["ended"]) == (2_000, 3_000)


def test_a_step_that_nobody_works_on() -> None:
    bench = live(*OPENED, says(1), ("liveness", False))
    assert (step(bench)["status"], outcomes(bench)) == ("interrupted", [(1, "interrupted")])
    assert step(bench)["ended"] is None
    bench.do("liveness", True)
    bench.check()
    assert (step(bench)["status"], outcomes(bench)) == ("running", [(1, None)])
    bench.do("append", message(3))
    bench.do("append", event(4, "step/end", **STEP))
    bench.do("liveness", False)
    bench.check()
    assert (step(bench)["status"], outcomes(bench)) == ("settled", [(1, "completed")])


def test_a_step_that_was_stopped() -> None:
    stopped = [*OPENED, message(3, interrupted=True), event(4, "step/end", **STEP)]
    assert step(every_way(stopped))["status"] == "interrupted"
    assert step(live(*stopped[:3]))["status"] == "running"


def test_the_last_step_of_a_turn_that_failed() -> None:
    ended = event(4, "turn/end", turn=1, reason="error", error=ERROR)
    bench = every_way([*OPENED, event(3, "step/end", **STEP), ended])
    assert (step(bench)["status"], step(bench)["error"]) == ("failed", ERROR)

    cut = [*OPENED, message(3, interrupted=True), ended]
    assert step(every_way(cut))["status"] == "failed"
    whole = [*OPENED, message(3), ended]
    assert (step(every_way(whole))["status"], step(live(*whole))["error"]) == ("settled", None)
    untold = [*OPENED, event(3, "turn/end", turn=1, reason="error")]
    assert (step(every_way(untold))["status"], step(live(*untold))["error"]) == ("failed", None)

    two = every_way([*OPENED, event(3, "step/start", turn=1, step=2), ended])
    assert (step(two)["status"], step(two)["error"]) == ("interrupted", None)
    assert (step(two, "1.2")["status"], step(two, "1.2")["error"]) == ("failed", ERROR)


def test_steps_whose_numbers_skip() -> None:
    events = (
        *OPENED,
        event(3, "step/start", turn=1, step=4),
        event(4, "turn/end", turn=1, reason="error", error=ERROR),
    )
    bench = every_way(events)
    first, last = step(bench, "1.1"), step(bench, "1.4")
    assert (first["status"], first["error"]) == ("interrupted", None)
    assert first["ended"] == last["started"] == events[2].time
    assert (last["status"], last["error"]) == ("failed", ERROR)


def test_a_step_that_only_payloads_name() -> None:
    bench = every_way([call(1, "c1"), result(2, "c1")])
    assert step(bench)["status"] == "running"
    assert (step(bench)["calls"], step(bench)["events"]) == (["c1"], [1, 2])
    assert (step(bench)["started"], step(bench)["ended"]) == (None, None)
    assert keys_of(every_way([event(1, "tool/result", call_id="c1")]), "trajectory") == []
    spoken = live(says(1, after=0))
    assert (step(spoken)["events"], outcomes(spoken)) == (None, [(1, None)])
    assert keys_of(live(says(1, after=0), ("settle", "a1", "failed")), "trajectory") == []


def test_a_window_that_begins_within_a_step() -> None:
    log = [*OPENED, message(3), call(4, "c1"), result(5, "c1"), event(6, "step/end", **STEP)]
    bench = Bench(catalog, ("chat", "trajectory"))
    bench.do("load", log[5:], True)
    bench.check()
    # Its message may be on an older page, so that nobody can say how it ended.
    assert (step(bench)["status"], step(bench)["ended"]) == (None, 6_000)
    assert step(bench)["attempts"] == []
    bench.do("prepend", log[3:5], True)
    bench.check()
    assert (step(bench)["calls"], step(bench)["events"]) == (["c1"], [4, 6])
    bench.do("prepend", log[2:3], True)
    bench.check()
    assert (step(bench)["status"], step(bench)["started"]) == ("settled", None)
    bench.do("prepend", log[:2], False)
    bench.check()
    assert (step(bench)["started"], step(bench)["events"]) == (2_000, [2, 6])


def test_odd_payloads() -> None:
    odd = message(3, source=7, model=1, usage=[1], message_id=None, stop_reason=None)
    given_up = event(4, "llm/retry", **STEP, attempt=1, number="x", reason={"code": 5}, usage=2)
    bench = every_way([*OPENED, odd, given_up])
    assert step(bench)["request"]["model"] is None
    assert step(bench)["usage"] is None
    reason = {"number": 1, "outcome": "retry", "reason": {"code": 5}, "model": None}
    assert step(bench)["attempts"][0] == reason


def test_a_model_that_the_message_names_itself_is_the_one() -> None:
    source = {"kind": "model", "provider": "acme", "model": "large"}
    for named, model in (({}, "large"), ({"model": "larger"}, "larger")):
        request = step(live(*OPENED, message(3, source=source, **named)))["request"]
        assert (request["provider"], request["model"]) == ("acme", model)
