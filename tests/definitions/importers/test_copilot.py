"""Sessions of Copilot: the main conversation and its subagents, whose calls stand in both."""

from __future__ import annotations

import json
from typing import Any

import pytest

from definitions.importers.copilot import COPILOT

Json = dict[str, Any]


def event(kind: str, **data: Any) -> Json:
    return {"type": kind, "id": "", "timestamp": "2026-01-02T03:04:05Z", "parentId": None} | {
        "data": data
    }


def imported(*records: Json) -> list[Json]:
    named = [{**each, "id": f"e{at}"} for at, each in enumerate(records, 1)]
    return list(COPILOT([json.dumps(each).encode() + b"\n" for each in named], name="s.jsonl"))


def events(operations: list[Json], kind: str, conversation: str | None = None) -> list[Json]:
    return [
        operation["event"]["data"]
        for operation in operations
        if operation.get("op") == "append" and operation["event"]["type"] == kind
        if operation.get("conversation") == conversation
    ]


def asks(*call_ids: str, **fields: Any) -> Json:
    requests = [
        {"toolCallId": each, "name": "shell", "arguments": {"at": 1}, "type": "function"}
        for each in call_ids
    ]
    return event("assistant.message", content="So", toolRequests=requests, **fields)


def done(call_id: str, **fields: Any) -> Json:
    result = {"content": "a", "detailedContent": "more"}
    data = {"toolCallId": call_id, "success": True, "result": result, **fields}
    return event("tool.execution_complete", **data)


def test_a_turn_goes_on_until_an_answer_has_no_calls() -> None:
    operations = imported(
        event("session.start", version=1),
        event("user.message", content="Go"),
        event("assistant.reasoning", content="Hm"),
        asks("c1", messageId="m1", outputTokens=3, reasoningOpaque="o"),
        event("tool.execution_start", toolCallId="c1", toolName="shell", arguments={"at": 1}),
        done("c1"),
        event("assistant.turn_end"),
        event("assistant.message", content="Done", messageId="m2"),
        event("assistant.turn_end"),
    )
    first, last = events(operations, "assistant/message")
    assert first["content"][0] == {"type": "reasoning", "text": "Hm", "signature": "o"}
    assert first["usage"] == {"output_tokens": 3, "raw": {"outputTokens": 3}}
    assert last["content"] == [{"type": "text", "text": "Done"}]
    (call,) = events(operations, "tool/call")
    assert (call["call_id"], call["name"], call["arguments"]) == ("c1", "shell", '{"at":1}')
    (result,) = events(operations, "tool/result")
    assert result["meta"] == {"detailedContent": "more"}
    assert events(operations, "turn/end") == [{"turn": 1, "reason": "completed"}]


def test_a_thought_that_comes_before_its_answer_and_in_it_is_said_once() -> None:
    operations = imported(
        event("user.message", content="Go"),
        event("assistant.reasoning", content="Hm"),
        event("assistant.message", content="So", reasoningText="Hm"),
        event("assistant.reasoning", content="Hm"),
    )
    (answer,) = events(operations, "assistant/message")
    assert [block["type"] for block in answer["content"]] == ["reasoning", "text"]
    assert len(events(operations, "copilot/assistant.reasoning")) == 1


def test_a_thought_without_an_answer_is_written_at_the_end_and_may_go_on() -> None:
    operations = imported(
        event("user.message", content="Go"), event("assistant.reasoning", content="Hm")
    )
    (answer,) = events(operations, "assistant/message")
    assert answer["content"] == [{"type": "reasoning", "text": "Hm"}]
    assert {each.get("tail") for each in operations} == {None, "unfinished"}


def test_the_calls_of_a_subagent_stand_in_both_conversations() -> None:
    operations = imported(
        event("user.message", content="Go"),
        asks("task"),
        asks("inner", parentToolCallId="task"),
        done("inner", parentToolCallId="task", success=False),
        event("subagent.completed", toolCallId="task"),
        done("task"),
    )
    calls = events(operations, "tool/call")
    assert [(each["call_id"], each.get("parent_call_id")) for each in calls] == [
        ("task", None),
        ("inner", "task"),
    ]
    assert [each["call_id"] for each in events(operations, "tool/call", "task")] == ["inner"]
    (failed, _) = events(operations, "tool/result")
    assert failed["is_error"] is True
    assert events(operations, "turn/end", "task") == [{"turn": 1, "reason": "completed"}]
    headers = [each.get("conversation") for each in operations if "recording" in each]
    assert headers == [None, "task"]


def test_a_call_that_no_answer_told_is_written_when_it_starts() -> None:
    start = event("tool.execution_start", toolCallId="c1", toolName="view", arguments={})
    operations = imported(event("user.message", content="Go"), start)
    assert [each["name"] for each in events(operations, "tool/call")] == ["view"]


@pytest.mark.parametrize(
    ("kind", "data", "end"),
    [
        ("abort", {"reason": "user"}, {"reason": "cancelled"}),
        (
            "session.error",
            {"errorType": "quota", "message": "no"},
            {"reason": "error", "error": {"name": "quota", "message": "no"}},
        ),
    ],
)
def test_what_ends_a_turn_early(kind: str, data: Json, end: Json) -> None:
    operations = imported(event("user.message", content="Go"), event(kind, **data))
    assert events(operations, "turn/end") == [{"turn": 1, **end}]


def test_compactions_titles_and_words_of_the_program() -> None:
    operations = imported(
        event("system.message", content="Be brief."),
        event("user.message", content="Go", source="hook"),
        event("session.title_changed", title="Going"),
        event("session.compaction_start"),
        event("session.compaction_complete", summaryContent="Short", tokens=3),
        event("session.compaction_complete", summaryContent="Alone"),
    )
    sources = [each["source"]["kind"] for each in events(operations, "user/message")]
    assert sources == ["system", "hook"]
    assert events(operations, "conversation/title") == [{"title": "Going"}]
    starts = [each["compaction_id"] for each in events(operations, "compaction/start")]
    assert len(set(starts)) == 2
    assert starts == [each["compaction_id"] for each in events(operations, "compaction/end")]
    assert [each["text"] for each in events(operations, "compaction/summary")] == ["Short", "Alone"]
