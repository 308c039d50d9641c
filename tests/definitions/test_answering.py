"""What follows when an answer ends: events, settlement, calls that are handed over."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from assembler.codec import plain
from assembler.engine.events import Event, Outcome
from definitions.answering import (
    CallIdsInUse,
    Ending,
    GivenUp,
    call_draft,
    ended,
    given_up,
    result_draft,
)
from definitions.providers import Response, adapter

TEXT = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}}


def call(index: int, kind: str = "tool_use", text: str = "{}") -> list[dict[str, Any]]:
    block = {"type": kind, "id": f"u{index}", "name": "look", "input": {}}
    piece = {"type": "input_json_delta", "partial_json": text}
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        {"type": "content_block_delta", "index": index, "delta": piece},
        {"type": "content_block_stop", "index": index},
    ]


def response(*chunks: dict[str, Any], reason: str | None = "tool_use") -> Response:
    reads = adapter("anthropic", conversation="c1", attempt="a1")
    for chunk in chunks:
        reads.feed(chunk)
    if reason:
        reads.feed({"type": "message_delta", "delta": {"stop_reason": reason}})
        reads.feed({"type": "message_stop"})
    return reads.finish()


ANSWER = [
    TEXT,
    *call(1, "server_tool_use"),
    *call(2),
    *call(3, text="{"),
    {
        "type": "content_block_start",
        "index": 4,
        "content_block": {"type": "mcp_tool_result", "tool_use_id": "u1", "content": "ok"},
    },
]


def drafts(ending: Ending) -> list[tuple[str, Any]]:
    return [(draft.type, plain(draft.data)) for draft in ending.drafts]


def test_a_whole_response_is_a_message_and_its_ready_calls_are_handed_over() -> None:
    ending = ended(response(*ANSWER), 2, 3)
    message, made, result = drafts(ending)
    assert message[0] == "assistant/message"
    assert (message[1]["turn"], message[1]["step"]) == (2, 3)
    assert message[1]["stop_reason"] == message[1]["stop_detail"] == "tool_use"
    assert message[1]["message_id"].startswith("message_")
    assert [block["type"] for block in message[1]["content"]] == [
        "text",
        "tool-call",
        "tool-call",
        "tool-call",
        "provider",
    ]
    assert "interrupted" not in message[1]
    assert "usage" not in message[1]
    assert made == (
        "tool/call",
        {
            "turn": 2,
            "step": 3,
            "call_id": "u1",
            "name": "look",
            "arguments": "{}",
            "provider_call_id": "u1",
            "ran_by": "provider",
        },
    )
    assert result == (
        "tool/result",
        {"call_id": "u1", "content": [{"type": "text", "text": "ok"}]},
    )
    assert ending.outcome is Outcome.COMPLETED
    assert [each.call_id for each in ending.handed_over] == ["u2"]
    assert [each.call_id for each in ending.calls] == ["u1", "u2", "u3"]
    assert [(odd.kind, odd.call_id) for odd in ending.incidents] == [("unparsed-arguments", "u3")]


@pytest.mark.parametrize(
    ("reason", "why"), [("max_tokens", "length"), ("refusal", "content-filter")]
)
def test_a_cut_response_is_a_message_and_nothing_runs(reason: str, why: str) -> None:
    ending = ended(response(*ANSWER, reason=reason), 1, 1)
    assert ending.drafts[0].type == "assistant/message"
    assert (ending.outcome, ending.why, ending.handed_over) == (Outcome.COMPLETED, why, ())
    assert {each.why for each in ending.calls} == {why}


def test_what_is_not_whole_is_given_up_and_what_people_read_stays() -> None:
    ending = ended(response(*ANSWER, reason=None), 1, 1)
    ((kind, message),) = drafts(ending)
    assert kind == "assistant/message"
    assert message["content"] == [{"type": "text", "text": "Hi"}]
    assert (message["interrupted"], message["stop_reason"]) == (True, "error")
    assert (ending.outcome, ending.why) == (Outcome.FAILED, "no-terminal")
    assert ending.handed_over == ()
    assert {each.why for each in ending.calls} == {"no-terminal"}


@pytest.mark.parametrize("reason", get_args(GivenUp))
@pytest.mark.parametrize("whole", [True, False])
def test_a_given_up_attempt_hands_nothing_over(reason: GivenUp, whole: bool) -> None:
    ending = given_up(response(*ANSWER, reason="tool_use" if whole else None), reason, 1, 1)
    assert ending.handed_over == ()
    assert [each.ready for each in ending.calls] == [False] * 3
    assert all(each.why and each.arguments is None for each in ending.calls)
    stays = reason in ("cancel", "error")
    assert [draft.type for draft in ending.drafts] == ["assistant/message"] * stays
    expected = {
        "retry": Outcome.ABANDONED,
        "fallback": Outcome.ABANDONED,
        "cancel": Outcome.INTERRUPTED,
        "error": Outcome.FAILED,
    }
    assert ending.outcome is expected[reason]


def test_an_answer_of_which_nobody_read_anything_leaves_no_message() -> None:
    blank = {**TEXT, "content_block": {"type": "text", "text": " \n"}}
    assert given_up(response(blank, *call(1), reason=None), "cancel", 1, 1).drafts == ()


def test_what_it_cost_and_who_said_it_stand_in_the_message() -> None:
    start = {"id": "m1", "model": "toy-1", "content": [], "usage": {"output_tokens": 3}}
    ending = ended(response({"type": "message_start", "message": start}, TEXT), 1, 1)
    ((_, message),) = drafts(ending)
    assert message["usage"] == {"output_tokens": 3, "raw": {"output_tokens": 3}}
    assert message["provider"] == {"name": "anthropic", "message_id": "m1", "model": "toy-1"}


def test_a_call_is_taken_over_and_has_a_result() -> None:
    (taken,) = ended(response(*call(2)), 1, 1).handed_over
    draft = call_draft(taken, 4, 5)
    assert (draft.type, plain(draft.data)) == (
        "tool/call",
        {
            "turn": 4,
            "step": 5,
            "call_id": "u2",
            "name": "look",
            "arguments": "{}",
            "provider_call_id": "u2",
        },
    )
    good, bad = result_draft("u2", ()), result_draft("u2", (), is_error=True, error={"name": "E"})
    assert plain(good.data) == {"call_id": "u2", "content": []}
    assert plain(bad.data) == {
        "call_id": "u2",
        "content": [],
        "is_error": True,
        "error": {"name": "E"},
    }


def test_ids_in_use_are_those_of_the_log_and_of_attempts_that_were_not_given_up() -> None:
    block = {"type": "tool-call", "call_id": "k1", "name": "look", "arguments": "{}"}
    message = Event(1, "assistant/message", {"content": [block, {"type": "text", "text": "k9"}]})
    odd = [
        Event(2, "assistant/message", {"content": "k8"}),
        Event(3, "assistant/message", {"content": [{"type": "tool-call"}, 7]}),
        Event(4, "tool/call", {}),
    ]
    ids = CallIdsInUse([message, *odd, Event(5, "tool/call", {"call_id": "k2"})])
    ids.claim("a1", "k3")
    ids.claim("a2", "k4")
    mine, others = ids.outside("a1"), ids.outside("a2")
    everything = ["k1", "k2", "k3", "k4", "k8", "k9", ""]
    assert [each for each in everything if each in mine] == ["k1", "k2", "k4"]
    assert [each for each in everything if each in others] == ["k1", "k2", "k3"]
    ids.give_up("a1")
    assert [each for each in everything if each in others] == ["k1", "k2"]
    ids.claim("a3", "k2")
    ids.give_up("a3")
    assert "k2" in others
    for number, kind in enumerate(("llm/retry", "llm/fallback")):
        ids.claim("a4", "k5")
        ids.learn(Event(number, kind, {"attempt": "a5"}))
        ids.learn(Event(number, kind, {"attempt": ""}))
        assert "k5" in others
        assert "k1" in others
        ids.learn(Event(number, kind, {"attempt": "a4"}))
        assert "k5" not in others


def test_a_call_of_the_provider_that_broke_off_never_ran() -> None:
    unclosed, result = call(1, "server_tool_use", text="{")[:-1], ANSWER[-1]
    broken = response(*unclosed, reason="max_tokens")
    assert [draft.type for draft in ended(broken, 1, 1).drafts] == ["assistant/message"]
    closed = response(*call(1, "server_tool_use"), reason="max_tokens")
    assert [draft.type for draft in ended(closed, 1, 1).drafts][1:] == ["tool/call"]
    answered = response(*unclosed, result, reason="max_tokens")
    kinds = [draft.type for draft in ended(answered, 1, 1).drafts]
    assert kinds[1:] == ["tool/call", "tool/result"]
