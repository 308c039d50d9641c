"""Sessions of Kimi Code: steps that are told part by part, prompts that come twice, states."""

from __future__ import annotations

import json
from typing import Any

import pytest

from definitions.importers.kimi import KIMI

Json = dict[str, Any]

FIRST = {"type": "metadata", "protocol_version": "1", "created_at": 1_767_812_640_000}


def imported(*records: Json) -> list[Json]:
    lines = [json.dumps(each).encode() + b"\n" for each in (FIRST, *records)]
    return list(KIMI(lines, name="wire.jsonl"))


def events(operations: list[Json], kind: str) -> list[Json]:
    return [
        operation["event"]["data"]
        for operation in operations
        if operation.get("op") == "append" and operation["event"]["type"] == kind
    ]


def kinds(operations: list[Json]) -> list[str]:
    found = [each["event"]["type"] for each in operations if each.get("op") == "append"]
    return [each for each in found if not each.startswith("kimi/")]


def parts(said: str) -> list[Json]:
    return [{"type": "text", "text": said}]


def loop(kind: str, **fields: Any) -> Json:
    return {"type": "context.append_loop_event", "event": {"type": kind, **fields}}


def prompt(said: str = "Go", **fields: Any) -> Json:
    return {"type": "turn.prompt", "input": parts(said), **fields}


def context(said: str, **fields: Any) -> Json:
    message = {"role": "user", "content": parts(said), **fields}
    return {"type": "context.append_message", "message": message}


BEGIN = loop("step.begin", uuid="s1", turnId="0", step=1)
SAID = loop("content.part", part={"type": "text", "text": "So"})
CALL = loop("tool.call", toolCallId="c1", name="Bash", args={"at": 1}, display="d")
RESULT = loop("tool.result", toolCallId="c1", result={"output": "a", "isError": True, "note": 1})
END = loop("step.end", finishReason="tool_use", usage={"inputOther": 3, "output": 2})


def test_a_step_is_written_when_it_ends_with_what_came_of_its_calls_behind_it() -> None:
    operations = imported(prompt(), context("Go"), BEGIN, SAID, CALL, RESULT, END)
    assert kinds(operations) == [
        "turn/start",
        "user/message",
        "step/start",
        "assistant/message",
        "tool/call",
        "tool/result",
        "step/end",
    ]
    (answer,) = events(operations, "assistant/message")
    assert (answer["message_id"], answer["stop_reason"]) == ("s1", "tool_use")
    assert answer["usage"]["input_tokens"] == 3
    (call,) = events(operations, "tool/call")
    assert (call["arguments"], call["meta"]) == ('{"at":1}', {"display": "d"})
    (result,) = events(operations, "tool/result")
    assert (result["is_error"], result["meta"]) == (True, {"note": 1})


@pytest.mark.parametrize(("reason", "end"), [("end_turn", "completed"), ("length", "limit")])
def test_an_answer_without_calls_ends_the_turn(reason: str, end: str) -> None:
    operations = imported(prompt(), BEGIN, SAID, loop("step.end", finishReason=reason))
    assert events(operations, "turn/end") == [{"turn": 1, "reason": end}]


def test_a_step_without_an_end_is_cancelled_but_its_calls_were_made() -> None:
    operations = imported(prompt(), BEGIN, SAID, CALL, prompt("Else"), BEGIN, SAID, prompt("Third"))
    first, second = events(operations, "assistant/message")
    assert (first["stop_reason"], second["stop_reason"]) == ("tool_use", "cancelled")
    assert len(events(operations, "tool/call")) == 1
    ends = [each["reason"] for each in events(operations, "turn/end")]
    assert ends == ["interrupted", "interrupted"]
    assert not [each for each in operations if "tail" in each]


def test_a_step_that_the_file_leaves_open_may_go_on() -> None:
    tails = [each["tail"] for each in imported(prompt(), BEGIN, SAID) if "tail" in each]
    assert tails == ["unfinished", "unfinished"]
    assert not [each for each in imported(prompt(), BEGIN, SAID, END) if "tail" in each]


def test_what_a_person_says_meanwhile_waits_until_the_context_takes_it() -> None:
    steer = {"type": "turn.steer", "input": parts("Wait")}
    operations = imported(prompt(), context("Go"), steer, context("Wait"))
    assert [each["content"] for each in events(operations, "user/message")] == [
        parts("Go"),
        parts("Wait"),
    ]
    added, claimed = events(operations, "inbox/spliced")
    assert added["added"] == claimed["claimed"] == ["steer-4"]


def test_messages_that_no_prompt_said() -> None:
    told = context("Told", origin={"kind": "system_reminder"})
    operations = imported(context("First"), told)
    first, second = events(operations, "user/message")
    assert "source" not in first
    assert second["source"] == {"kind": "system_reminder"}
    assert len(events(operations, "turn/start")) == 1


def test_leave_that_was_asked_and_given() -> None:
    approved = {
        "type": "permission.record_approval_result",
        "toolCallId": "c1",
        "result": {"decision": "approved", "scope": "session"},
    }
    denied = {**approved, "result": {"decision": "rejected"}}
    operations = imported(prompt(), BEGIN, CALL, approved, denied, END)
    first, second = events(operations, "permission/answer")
    assert (first["decision"], first["remember"]) == ("allow", True)
    assert (second["decision"], "remember" in second) == ("deny", False)
    asked = [each["request_id"] for each in events(operations, "permission/request")]
    assert asked == [first["request_id"], second["request_id"]]


def test_turns_that_were_cancelled_or_ended() -> None:
    operations = imported(
        prompt(),
        {"type": "turn.cancel"},
        prompt("Else"),
        {"type": "turn.ended", "turnId": 0, "reason": "completed"},
        {"type": "turn.ended", "turnId": 1, "reason": "failed"},
    )
    ends = [each["reason"] for each in events(operations, "turn/end")]
    assert ends == ["cancelled", "error"]


def test_compactions() -> None:
    operations = imported(
        {"type": "full_compaction.begin"},
        {"type": "context.apply_compaction", "summary": "Short"},
        {"type": "full_compaction.complete"},
        {"type": "context.apply_compaction", "summary": "Alone"},
    )
    assert [each["text"] for each in events(operations, "compaction/summary")] == ["Short", "Alone"]
    starts = [each["compaction_id"] for each in events(operations, "compaction/start")]
    assert starts == ["compaction-2", "compaction-5"]
    assert events(operations, "compaction/end") == [{"compaction_id": "compaction-2"}]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_state_says_what_to_call_a_conversation(indent: int | None) -> None:
    state = {"title": "Going", "isCustomTitle": False, "agents": {}, "workDir": "/p"}
    lines = json.dumps(state, indent=indent).encode().splitlines(keepends=True)
    operations = list(KIMI(lines, name="state.json"))
    assert events(operations, "conversation/title") == [{"title": "Going"}]
    assert events(operations, "kimi/state") == [state]
