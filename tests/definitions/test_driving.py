"""The backend's lines of recordings: what they do, and which of them are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assembler.recordings import check
from assembler.recordings.checking import Report

OPENING: list[dict[str, Any]] = [
    {"op": "append", "event": {"type": "turn/start", "data": {"turn": 1}}},
    {"op": "append", "event": {"type": "step/start", "data": {"turn": 1, "step": 1}}},
]
BEGIN = {"op": "attempt", "attempt": "a1", "turn": 1, "step": 1, "provider": "anthropic"}
FINISH = {"op": "finish", "attempt": "a1"}


def chunk(data: Any, attempt: str = "a1") -> dict[str, Any]:
    return {"op": "chunk", "attempt": attempt, "data": data}


def call(text: str = "{}", id: str = "u1", attempt: str = "a1") -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": id, "name": "look", "input": json.loads(text)}
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    return [chunk(start, attempt), chunk({"type": "content_block_stop", "index": 0}, attempt)]


def end(attempt: str = "a1", reason: str = "tool_use") -> list[dict[str, Any]]:
    stop = {"type": "message_delta", "delta": {"stop_reason": reason}}
    return [
        chunk(stop, attempt),
        chunk({"type": "message_stop"}, attempt),
        {"op": "finish", "attempt": attempt},
    ]


@pytest.fixture
def told(tmp_path: Path) -> Any:
    def run(*lines: dict[str, Any]) -> Report:
        path = tmp_path / "one.jsonl"
        every = [{"recording": 1, "title": "t"}, *OPENING, *lines]
        path.write_text("".join(json.dumps(line) + "\n" for line in every))
        (report,) = check(path).reports
        return report

    return run


def holds(report: Report) -> bool:
    assert report.outcome in ("passed", "failed"), report.reason
    return report.outcome == "passed"


def test_what_is_expected_of_calls_can_fail(told: Any) -> None:
    sound = {"call_id": "u1", "name": "look", "ready": True, "arguments": {}}
    lines = [BEGIN, *call(), *end()]
    assert holds(told(*lines, {"op": "expect", "calls": [sound]}))
    for odd in ({"ready": False}, {"why": "length"}, {"call_id": "u2"}, {"arguments": {"a": 1}}):
        assert not holds(told(*lines, {"op": "expect", "calls": [{**sound, **odd}]})), odd
    assert not holds(told(*lines, {"op": "expect", "calls": []}))
    assert not holds(told(*lines, {"op": "expect", "calls": [sound, sound]}))


def test_what_is_expected_of_preparing_can_fail(told: Any) -> None:
    lines = [BEGIN, *call(), *end()]
    assert holds(told(*lines, {"op": "expect", "prepared": {"u1": 1, "u2": None}}))
    for at in (None, 2, 1.0):
        assert not holds(told(*lines, {"op": "expect", "prepared": {"u1": at}})), at


def test_a_mark_stands_for_one_id(told: Any) -> None:
    lines = [BEGIN, *call(id=""), *call(id=""), *end()]
    for calls, expected in (("@1 @2", True), ("@2 @1", True), ("@1 @1", False)):
        wanted = [{"call_id": mark, "name": "look"} for mark in calls.split()]
        assert holds(told(*lines, {"op": "expect", "calls": wanted})) is expected
    assert not holds(told(*lines, {"op": "expect", "calls": [{"call_id": ""}, {}]}))


def test_an_id_of_an_answer_that_stands_is_not_given_again(told: Any) -> None:
    step = {"turn": 1, "step": 1}
    lines = [
        *[BEGIN, *call(), *end()],
        {"op": "append", "event": {"type": "step/end", "data": step}},
        *[{**BEGIN, "attempt": "a2", "step": 2}, *call('{"a":1}', attempt="a2"), *end("a2")],
    ]
    assert holds(told(*lines, {"op": "expect", "calls": [{"call_id": "@1"}]}))
    assert not holds(told(*lines, {"op": "expect", "calls": [{"call_id": "u1"}]}))


@pytest.mark.parametrize("reason", ["retry", "fallback", "cancel", "error"])
def test_an_id_of_an_attempt_that_was_given_up_is_free_again(told: Any, reason: str) -> None:
    text = {
        "type": "content_block_start",
        "index": 9,
        "content_block": {"type": "text", "text": "a"},
    }
    lines = [
        *[BEGIN, chunk(text), *call(), {"op": "abandon", "attempt": "a1", "reason": reason}],
        *[{**BEGIN, "attempt": "a2", "number": 2}, *call(attempt="a2"), *end("a2")],
    ]
    assert holds(told(*lines, {"op": "expect", "calls": [{"call_id": "u1", "ready": True}]}))


def test_an_id_of_an_earlier_try_is_free_and_of_a_side_stream_not(told: Any) -> None:
    for number, expected in ((1, "u1"), (0, "@1")):
        lines = [
            *[{**BEGIN, "number": number}, *call()],
            *[{**BEGIN, "attempt": "a2", "number": 2}, *call(attempt="a2"), *end("a2")],
        ]
        assert holds(told(*lines, {"op": "expect", "calls": [{"call_id": expected}]}))


def test_an_id_of_an_attempt_side_by_side_is_in_use(told: Any) -> None:
    lines = [BEGIN, *call(), {**BEGIN, "attempt": "a2"}, *call(attempt="a2"), *end("a2")]
    assert holds(told(*lines, {"op": "expect", "calls": [{"call_id": "@1"}]}))


def test_a_call_of_the_host_runs_only_when_it_was_handed_over(told: Any) -> None:
    dispatch = {"op": "dispatch", "call_id": "u1"}
    assert holds(told(BEGIN, *call(), *end(), dispatch))
    for lines in (
        [BEGIN, *call(), dispatch],
        [BEGIN, *call(), FINISH, dispatch],
        [BEGIN, *call(), *end(reason="max_tokens"), dispatch],
        [BEGIN, *call(), *end(), dispatch, dispatch],
    ):
        report = told(*lines)
        assert report.outcome == "unreadable"
        assert "dispatch.call_id: expected a call that was handed over" in (report.reason or "")


@pytest.mark.parametrize("last", [FINISH, {"op": "abandon", "attempt": "a1", "reason": "retry"}])
def test_what_is_given_up_takes_its_rows_with_it(told: Any, last: dict[str, Any]) -> None:
    shown = {"op": "expect", "node": "tool:u1", "is": {"data": {"stage": "preparing"}}}
    assert holds(told(BEGIN, *call(), shown, last, {"op": "expect", "absent": ["tool:u1"]}))
    whole = [BEGIN, *call(), *end()]
    assert holds(told(*whole, shown))


def test_an_answer_that_stands_keeps_its_rows_until_its_step_closes(told: Any) -> None:
    close = {"op": "append", "event": {"type": "step/end", "data": {"turn": 1, "step": 1}}}
    shown = {"op": "expect", "node": "tool:u1", "is": {"data": {"stage": "preparing"}}}
    lines = [BEGIN, *call(), *end(), shown, close, {"op": "expect", "absent": ["tool:u1"]}]
    assert holds(told(*lines))


REFUSED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a chunk of nobody": ([chunk({})], "chunk.attempt: expected one that began"),
    "a chunk behind the end": ([BEGIN, FINISH, chunk({})], "chunk.attempt: expected one that"),
    "two attempts of one name": ([BEGIN, BEGIN], "attempt.attempt: expected a new name"),
    "an ended name again": ([BEGIN, FINISH, BEGIN], "attempt.attempt: expected a new name"),
    "two kinds of data": (
        [BEGIN, {**chunk({}), "sse": ""}],
        "chunk.data: expected exactly one of data, sse, hex, got 2",
    ),
    "no data": ([BEGIN, {"op": "chunk", "attempt": "a1"}], "got 0 of them"),
    "no hex": ([BEGIN, {"op": "chunk", "attempt": "a1", "hex": "0x"}], "chunk.hex: expected pairs"),
    "a reason": (
        [BEGIN, {"op": "abandon", "attempt": "a1", "reason": "boredom"}],
        "abandon.reason: expected one of retry, fallback, cancel, error, got 'boredom'",
    ),
    "no page": ([{"op": "reconnect", "page": 0}], "reconnect.page: expected at least 1, got 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_lines_that_cannot_be_meant_are_refused_with_their_place(told: Any, name: str) -> None:
    lines, said = REFUSED[name]
    report = told(*lines)
    assert report.outcome == "unreadable"
    assert f"one.jsonl:{3 + len(lines)}: " in (report.reason or "")
    assert said in (report.reason or "")


def test_a_provider_without_an_adapter_is_skipped_never_passed(told: Any) -> None:
    report = told({**BEGIN, "provider": "abacus"})
    assert (report.outcome, report.reason) == ("skipped", "needs adapter (line 4)")


def test_what_an_adapter_found_odd_is_told_once(told: Any) -> None:
    broken = {"type": "content_block_delta", "index": 0}
    piece = {**broken, "delta": {"type": "input_json_delta", "partial_json": "{"}}
    first, last = call()
    odd = [{"kind": "unparsed-arguments", "key": "tool:u1"}]
    lines = [BEGIN, first, chunk(piece), last, *end(), {"op": "expect", "anomalies": odd}]
    assert holds(told(*lines, {"op": "expect", "anomalies": []}))


def test_what_was_odd_before_is_no_news_behind_a_reconnect(told: Any) -> None:
    result = {"op": "result", "call_id": "u7", "content": []}
    odd = [{"kind": "unmatched-result", "key": "tool:u7"}]
    none = {"op": "expect", "anomalies": []}
    assert holds(told(result, {"op": "expect", "anomalies": odd}, none))
    again = [result, {"op": "expect", "anomalies": odd}, {"op": "reconnect", "page": 50}, none]
    assert holds(told(*again))


def test_a_reconnect_reads_only_its_page(told: Any) -> None:
    content = [{"type": "text", "text": "x"}]
    said = [
        {
            "op": "append",
            "event": {"type": "user/message", "data": {"message_id": name, "content": content}},
        }
        for name in ("m1", "m2")
    ]
    lines = [*said, {"op": "reconnect", "page": 1}]
    assert holds(told(*lines, {"op": "expect", "nodes": [{"key": "user:m2"}]}))
    assert holds(told(*lines, {"op": "converges"}))


@pytest.mark.parametrize("data", [5, 1.5, True, [1], [{"type": "ping"}, 7]])
def test_a_chunk_that_no_provider_can_have_sent_is_refused(told: Any, data: Any) -> None:
    report = told(BEGIN, chunk(data))
    assert "data: expected a chunk, an object" in str(report.reason)


def test_a_mark_longer_than_any_number_is_a_call_id_like_others(told: Any) -> None:
    report = told({"op": "dispatch", "call_id": "@" + "9" * 5_000})
    assert "call_id: expected a call that was handed over" in str(report.reason)


def test_what_ends_well_after_a_later_try_began_is_given_up(told: Any) -> None:
    again = {**BEGIN, "attempt": "a2", "number": 2}
    withdrawn = {"call_id": "u1", "ready": False, "why": "stream-error"}
    lines = [BEGIN, *call(), again, *end(), {"op": "expect", "calls": [withdrawn]}]
    sound = {"call_id": "u1", "ready": True}
    lines += [*call(attempt="a2"), *end("a2"), {"op": "expect", "calls": [sound]}]
    assert holds(told(*lines, {"op": "dispatch", "call_id": "u1"}))
    assert not holds(told(*lines[:7], {"op": "expect", "calls": [sound]}))
