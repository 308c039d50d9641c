"""How a turn went."""

from __future__ import annotations

from typing import Any

import pytest

from assembler.engine.assembler import Assembler
from assembler.engine.definition import START
from assembler.engine.events import Event, Position
from definitions import catalog
from definitions.shared import CallSummary
from definitions.tool import Tool
from definitions.turn_tail import TurnTail
from tests.definitions.bench import data_of, every_way, keys_of, live
from tests.definitions.support import Surroundings, delta, event, seen, shown

TAIL = TurnTail()


class Log(list[Event]):
    """Events that are numbered as they come."""

    def add(self, type_: str, **data: Any) -> Log:
        self.append(event(len(self) + 1, type_, **data))
        return self

    def message(self, step: int, usage: Any = None, **data: Any) -> Log:
        told = {} if usage is None else {"usage": usage}
        return self.add("assistant/message", turn=1, step=step, content=[], **told, **data)

    def call(self, step: int, call_id: str, name: str, arguments: str = "{}", **data: Any) -> Log:
        told = {"call_id": call_id, "name": name, "arguments": arguments, **data}
        return self.add("tool/call", turn=1, step=step, **told)

    def result(self, call_id: str, **data: Any) -> Log:
        return self.add("tool/result", call_id=call_id, content=[], **data)

    def end(self, reason: str = "completed") -> Log:
        return self.add("turn/end", turn=1, reason=reason)


def begun() -> Log:
    return Log().add("turn/start", turn=1).add("step/start", turn=1, step=1)


def tail(log: Log) -> Any:
    return data_of(live(("load", log, False)), "turn-tail:1")


def test_a_turn_is_named_by_its_number() -> None:
    for type_ in TAIL.takes:
        assert TAIL.match(event(1, type_, turn=1)) == ("1", START)
        assert TAIL.match(event(1, type_, turn="1")) is None
        assert TAIL.match(delta(1, type_, turn=1)) is None  # type: ignore[arg-type]


def test_it_shows_at_the_end_and_reads_nothing_before() -> None:
    start = event(3, "turn/start", turn=1)
    scope = Surroundings()
    assert TAIL.build(seen(TAIL, start), scope) is None
    assert scope.read == []
    end = event(8, "turn/end", turn=1, reason="cancelled")
    assert TAIL.anchor(seen(TAIL, start, end)).item is end
    assert shown(TAIL, start, end) == {
        "status": "cancelled",
        "duration_ms": 5_000,
        "usage": None,
        "calls": {},
        "failed": 0,
        "files": [],
    }


def test_the_first_start_and_the_first_end_count() -> None:
    start, again = event(3, "turn/start", turn=1), event(4, "turn/start", turn=1)
    end = event(8, "turn/end", turn=1, reason="cancelled")
    other = event(9, "turn/end", turn=1, reason="error")
    assert shown(TAIL, start, again, end, other) == shown(TAIL, start, end)


@pytest.mark.parametrize(("begins", "ends", "lasts"), [(5, 8, 3), (8, 8, 0), (8, 5, 0)])
def test_a_turn_never_lasts_less_than_nothing(begins: int, ends: int, lasts: int) -> None:
    start = Event(1, "turn/start", {"turn": 1}, time=begins)
    end = Event(2, "turn/end", {"turn": 1, "reason": "completed"}, time=ends)
    made = shown(TAIL, start, end)
    assert made is not None
    assert made["duration_ms"] == lasts


def test_without_its_start_it_adds_up_nothing() -> None:
    end = event(8, "turn/end", turn=1, reason="error")
    unknown = dict.fromkeys(("duration_ms", "usage", "calls", "failed", "files"))
    scope = Surroundings(complete=False)
    assert TAIL.build(seen(TAIL, end), scope) is not None
    assert scope.read == ["complete"]
    assert shown(TAIL, end, complete=False) == {"status": "error", **unknown}
    again = event(9, "turn/end", turn=1, reason="completed")
    assert shown(TAIL, end, again, complete=False) == {"status": "error", **unknown}
    # The log has no beginning of this turn: what is there is all of it.
    whole = shown(TAIL, end)
    assert whole is not None
    assert (whole["calls"], whole["duration_ms"]) == ({}, None)


@pytest.mark.parametrize("reason", ["completed", "cancelled", "error", "limit", "interrupted"])
def test_its_status_is_the_reason_of_its_end(reason: str) -> None:
    assert tail(begun().end(reason))["status"] == reason


def test_usage_is_that_of_each_step_once() -> None:
    log = begun()
    log.message(1, {"input_tokens": 10, "output_tokens": 4, "raw": {"x": 1}})
    log.message(1, {"input_tokens": 99})
    log.message(2, {"input_tokens": 7, "reasoning_tokens": 2, "cache_read_tokens": True}).end()
    assert tail(log)["usage"] == {
        "input_tokens": 17,
        "output_tokens": 4,
        "reasoning_tokens": 2,
        "lost": None,
    }


def test_what_retries_and_fallbacks_carry_is_lost() -> None:
    log, place = begun(), {"turn": 1, "step": 1}
    retry = {**place, "retry_id": "r1", "attempt": "a1", "usage": {"input_tokens": 5}}
    log.add("llm/retry", **retry, number=1).add("llm/fallback", **retry)
    log.add("llm/fallback", **place, attempt="a2", usage={"input_tokens": 2, "output_tokens": 1})
    assert tail(Log(log).end())["usage"] == {"lost": {"input_tokens": 7, "output_tokens": 1}}
    log.message(1, {"input_tokens": 10}).end()
    assert tail(log)["usage"] == {
        "input_tokens": 10,
        "lost": {"input_tokens": 7, "output_tokens": 1},
    }


def test_calls_are_counted_by_name_and_failures_apart() -> None:
    log = begun().call(1, "c1", "ls").call(1, "c2", "ls").call(2, "c3", "bash")
    log.result("c1").result("c2", is_error=True).result("other", is_error=True)
    log.call(2, "c4", "bash", parent_call_id="c3").end()
    made = tail(log)
    assert (made["calls"], made["failed"]) == ({"ls": 2, "bash": 2}, 1)


def test_files_are_those_that_were_written() -> None:
    log = begun()
    log.call(1, "c1", "write", '{"path": "a.txt"}').result("c1")
    log.call(1, "c2", "edit_file", '{"file_path": "b.txt"}').result("c2")
    log.call(1, "c3", "write", '{"path": "a.txt"}').result("c3")
    log.call(1, "c4", "write", '{"path": "failed.txt"}').result("c4", is_error=True)
    log.call(1, "c5", "write", '{"path": "running.txt"}')
    log.call(1, "c6", "read", '{"path": "read.txt"}').result("c6")
    log.call(1, "c7", "write", '{"path": 7}').result("c7")
    log.call(1, "c9", "write", '{"path": "c.txt", "filename": "c"}').result("c9")
    log.add("permission/request", call_id="c8", request_id="1", input={"path": "asked.txt"})
    answer = {"decision": "allow", "updated_input": {"path": "answered.txt"}}
    log.call(1, "c8", "write", '{"path": "asked.txt"}')
    log.add("permission/answer", call_id="c8", request_id="1", **answer).result("c8").end()
    assert tail(log)["files"] == ["a.txt", "b.txt", "c.txt", "answered.txt"]


def test_a_call_publishes_on_its_step_alone() -> None:
    call = event(3, "tool/call", turn=1, step=1, call_id="c1", name="ls", arguments="{}")
    dispatched = seen(Tool(), call)
    placed = Tool().place(dispatched, Surroundings())
    assert placed == CallSummary("ls", at=Position(3 << 32))
    assert Tool().place(dispatched, Surroundings(step=None)) is None
    piece = delta(1, "tool-call", call_id="c1", name="ls", arguments="{}")
    assert Tool().place(seen(Tool(), piece), Surroundings()) is None


def test_every_way_to_arrive_says_the_same() -> None:
    log = begun().message(1, {"input_tokens": 10}).call(1, "c1", "write", '{"path": "a"}')
    log.result("c1").add("step/end", turn=1, step=1).call(2, "c2", "ls").end()
    log.result("c2", is_error=True)
    bench = every_way(log)
    assert data_of(bench, "turn-tail:1") == {
        "status": "completed",
        "duration_ms": 7_000,
        "usage": {"input_tokens": 10, "lost": None},
        "calls": {"write": 1, "ls": 1},
        "failed": 1,
        "files": ["a"],
    }
    assert keys_of(bench)[-1] == "turn-tail:1"
    assert bench.assembler.view("chat")["turn-tail:1"].anchor == (8, 0)


def test_calls_of_a_running_turn_cost_no_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    build = TurnTail.build
    monkeypatch.setattr(
        TurnTail, "build", lambda *given: built.append(given[1].id) or build(*given)
    )
    assembler = Assembler(catalog())
    log = begun()
    for at in range(50):
        log.call(1, f"c{at}", "ls").result(f"c{at}")
    for each in log:
        assembler.append(each)
        assembler.flush()
    assert len(built) == 1
    for each in Log(log).end()[-1:]:
        assembler.append(each)
    assembler.flush()
    assert len(built) == 2
    assert data_of(assembler, "turn-tail:1")["calls"] == {"ls": 50}
