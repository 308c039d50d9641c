"""UI message streams of the AI SDK: parts, steps, approvals, calls that are told again."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from assembler.plugins import Sample
from definitions.importers import ImportFault
from definitions.importers.ui_message_stream import UI_MESSAGE_STREAM

Json = dict[str, Any]


def chunk(kind: str, **fields: Any) -> Json:
    return {"type": kind, **fields}


def text(part: str, *said: str, kind: str = "text", **more: Any) -> list[Json]:
    return [
        chunk(f"{kind}-start", id=part),
        *(chunk(f"{kind}-delta", id=part, delta=each) for each in said),
        chunk(f"{kind}-end", id=part, **more),
    ]


def call(call_id: str, *said: str, **more: Any) -> list[Json]:
    named = {"toolCallId": call_id, "toolName": "look"}
    return [
        chunk("tool-input-start", **named, **more),
        *(chunk("tool-input-delta", toolCallId=call_id, inputTextDelta=each) for each in said),
        chunk("tool-input-available", **named, input={"at": 1}, **more),
    ]


def output(call_id: str, value: Any = "seen", **more: Any) -> Json:
    return chunk("tool-output-available", toolCallId=call_id, output=value, **more)


START, STEP, STEP_END, END = (chunk(k) for k in ("start", "start-step", "finish-step", "finish"))


def imported(*told: Any) -> list[Json]:
    return list(UI_MESSAGE_STREAM([json.dumps(list(told), indent=1)], name="s.json"))


def events(operations: list[Json], kind: str) -> list[Json]:
    return [
        each["event"]["data"]
        for each in operations
        if each.get("op") == "append" and each["event"]["type"] == kind
    ]


def said(operations: list[Json]) -> list[list[str]]:
    return [
        [block.get("text") or block.get("call_id") or block["type"] for block in each["content"]]
        for each in events(operations, "assistant/message")
    ]


def ends(operations: list[Json]) -> list[str]:
    return [each["reason"] for each in events(operations, "turn/end")]


def told(operations: list[Json]) -> list[str]:
    return [
        each["event"]["type"] if each["op"] == "append" else each.get("outcome", each.get("type"))
        for each in operations[1:-1]
        if not str(each.get("event", {}).get("type")).startswith("ui-message-stream/")
    ]


def test_a_step_is_streamed_then_settled_then_what_came_of_its_calls() -> None:
    begun = [START, STEP, *text("0", "I ", "look."), *call("c", "{"), output("c")]
    assert "assistant/message" not in told(imported(*begun))
    assert told(imported(*begun, STEP_END))[-1] == "tool/result"
    whole = imported(
        *(START, STEP, *text("0", "I ", "look."), *call("c", "{"), output("c"), STEP_END),
        *(STEP, *text("0", "Done."), STEP_END, END),
    )
    assert told(whole)[:14] == [
        *("turn/start", "step/start", "block-start", "text", "text", "block-end"),
        *("tool-call", "tool-call", "block-end"),
        *("assistant/message", "completed", "tool/call", "tool/result", "step/end"),
    ]
    assert said(whole) == [["I look.", "c"], ["Done."]]
    assert events(whole, "tool/call")[0]["arguments"] == '{"at":1}'
    assert ends(whole) == ["completed"]


def test_thoughts_files_and_sources_are_parts() -> None:
    sealed = {"providerMetadata": {"p": {"signature": "x"}}}
    operations = imported(
        *(START, STEP, *text("r", "Hm", kind="reasoning", **sealed)),
        chunk("file", url="data:x", mediaType="image/png"),
        chunk("source-url", sourceId="s", url="u"),
        *(STEP_END, END),
    )
    thought, file, source = events(operations, "assistant/message")[0]["content"]
    assert thought == {"type": "reasoning", "text": "Hm", **sealed}
    assert file == {"type": "file", "media_type": "image/png", "url": "data:x"}
    assert source["raw"]["sourceId"] == "s"


def test_a_call_waits_for_somebody_to_allow_it() -> None:
    asks = chunk("tool-approval-request", approvalId="a", toolCallId="c")
    first = [START, STEP, *call("c", '{"at": 1}')[:-1], asks, STEP_END, END]
    operations = imported(*first)
    assert told(operations)[-2:] == ["tool/call", "permission/request"]
    assert events(operations, "permission/request")[0]["request_id"] == "a"
    assert ends(operations) == []

    allows = chunk("tool-approval-response", approvalId="a", approved=True)
    again = [START, *call("c"), allows, STEP, output("c"), STEP_END]
    both = imported(*first, *again, STEP, *text("t", "Done."), STEP_END, END)
    assert len(events(both, "tool/call")) == len(events(both, "tool/result")) == 1
    assert events(both, "permission/answer")[0]["decision"] == "allow"
    assert ends(both) == ["completed"]


def test_a_call_that_was_denied_or_failed() -> None:
    operations = imported(
        *(START, STEP, *call("c1"), *call("c2")),
        chunk("tool-output-denied", toolCallId="c1"),
        chunk("tool-output-error", toolCallId="c2", errorText="no"),
        chunk("tool-input-error", toolCallId="c3", toolName="look", input="{", errorText="odd"),
        *(STEP_END, END),
    )
    failed = [
        (each["is_error"], each["error"]["message"]) for each in events(operations, "tool/result")
    ]
    assert failed == [(True, "denied"), (True, "no"), (True, "odd")]
    assert events(operations, "tool/result")[0]["error"]["name"] == "denied"


def test_what_the_provider_ran_and_what_is_preliminary() -> None:
    operations = imported(
        *(START, STEP, *call("c", providerExecuted=True)),
        output("c", {"n": 1}, preliminary=True),
        output("c", {"n": 2}),
        *(STEP_END, END),
    )
    assert events(operations, "tool/call")[0]["ran_by"] == "provider"
    unended = call("d", '{"at": 1}', providerExecuted=True)[:-1]
    searched = imported(START, STEP, *unended, output("d"), STEP_END, END)
    assert events(searched, "tool/call")[0]["ran_by"] == "provider"
    (result,) = events(operations, "tool/result")
    assert result["content"] == [{"type": "json", "value": {"n": 2}}]


def test_an_id_that_is_used_again_is_another_call() -> None:
    step = [STEP, *call("c"), output("c"), STEP_END]
    operations = imported(START, *step, *step, END)
    ids = [each["call_id"] for each in events(operations, "tool/call")]
    assert len(set(ids)) == 2
    assert [each["call_id"] for each in events(operations, "tool/result")] == ids


@pytest.mark.parametrize(
    ("last", "stop", "reason"),
    [
        (chunk("abort"), "cancelled", "cancelled"),
        (chunk("error", errorText="no"), "error", "error"),
        (chunk("finish", finishReason="length"), "length", "limit"),
        (chunk("finish", finishReason="error"), "error", "error"),
    ],
)
def test_an_answer_that_was_cut_runs_nothing(last: Json, stop: str, reason: str) -> None:
    for between in ([], [STEP_END]):
        operations = imported(START, STEP, *text("0", "a"), *call("c"), *between, last)
        assert events(operations, "assistant/message")[0]["stop_reason"] == stop
        assert events(operations, "tool/call") == []
        assert ends(operations) == [reason]


def test_what_came_of_a_call_stays_when_its_answer_is_cut() -> None:
    operations = imported(START, STEP, *call("c"), output("c"), *call("d"), chunk("abort"))
    assert [each["call_id"] for each in events(operations, "tool/call")] == ["c"]
    assert [each["call_id"] for each in events(operations, "tool/result")] == ["c"]


def test_a_step_may_begin_anew() -> None:
    operations = imported(
        *(START, STEP, *text("0", "Wrong"), *call("c"), chunk("reset-step")),
        *(*text("0", "Right"), STEP_END, END),
    )
    assert said(operations) == [["Right"]]
    assert [each["outcome"] for each in operations if each.get("op") == "settle"] == [
        "abandoned",
        "completed",
    ]
    assert {each["number"] for each in operations if each.get("op") == "delta"} == {1, 2}
    assert ends(operations) == ["completed"]


def test_what_was_said_meanwhile_and_what_is_kept() -> None:
    steering = chunk("steering-message", id="s", parts=[{"type": "text", "text": "Faster"}])
    data = chunk("data-weather", data={"c": 3})
    operations = imported(START, STEP, *text("0", "a"), steering, data, 3, STEP_END, END)
    assert events(operations, "user/message")[0]["content"][0]["text"] == "Faster"
    assert events(operations, "inbox/spliced")[0]["queue"] == "next-step"
    assert events(operations, "ui-message-stream/data-weather") == [data]
    assert events(operations, "ui-message-stream/odd") == [{"value": 3}]


def test_a_stream_that_goes_on_says_the_same_and_more() -> None:
    stream = [START, STEP, *text("0", "\ud83d", "\ude00"), *call("c", "{"), output("c"), STEP_END]
    stream += [STEP, *text("0", "b"), STEP_END, END]
    lines = [f"data: {json.dumps(each)}\n\n" for each in stream]
    split = [
        [part + "\n" for line in lines[:n] for part in line.split("\n")[:-1]]
        for n in range(1, len(lines) + 1)
    ]
    found = [list(UI_MESSAGE_STREAM([*cut, "data: {"], name="x"))[:-1] for cut in split]
    assert all(longer[: len(shorter)] == shorter for shorter, longer in pairwise(found))
    assert said(found[-1]) == [["\U0001f600", "c"], ["b"]]


def test_other_files_are_refused_and_unknown() -> None:
    with pytest.raises(ImportFault, match=r"^s.json:1: type: expected a chunk"):
        imported({"kind": "x"})
    assert UI_MESSAGE_STREAM.recognises(Sample(([START, STEP],)))
    assert UI_MESSAGE_STREAM.recognises(Sample((text("0")[0],)))
    assert not UI_MESSAGE_STREAM.recognises(Sample((START,)))
    assert not UI_MESSAGE_STREAM.recognises(Sample((chunk("text-start"),)))


def test_an_error_is_said_once_though_the_end_says_it_again() -> None:
    found = imported(
        {"type": "start-step"},
        {"type": "error", "errorText": "no credit"},
        {"type": "finish", "finishReason": "error"},
    )
    assert [each["error"]["message"] for each in events(found, "turn/end")] == ["no credit"]
