"""Rollouts of Codex: items become answers, calls and results; the program's events end turns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from definitions.importers.codex import CODEX

Json = dict[str, Any]

CALL: Json = {
    "type": "function_call",
    "call_id": "c1",
    "name": "shell",
    "arguments": '{"command":["ls"]}',
}
OUTPUT: Json = {"type": "function_call_output", "call_id": "c1", "output": "a.txt"}
SAYS: Json = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "One file."}],
}


def item(**payload: Any) -> Json:
    return {"timestamp": "2025-10-30T10:00:00Z", "type": "response_item", "payload": payload}


def event(kind: str, **payload: Any) -> Json:
    return {"type": "event_msg", "payload": {"type": kind, **payload}}


def user(text: str) -> Json:
    return item(type="message", role="user", content=[{"type": "input_text", "text": text}])


def imported(*records: Any) -> list[Json]:
    return list(CODEX([json.dumps(each).encode() + b"\n" for each in records], name="r.jsonl"))


def events(operations: list[Json], kind: str) -> list[Json]:
    return [
        operation["event"]["data"]
        for operation in operations
        if operation.get("op") == "append" and operation["event"]["type"] == kind
    ]


def said(operations: list[Json], kind: str = "user/message") -> list[str]:
    return [
        "".join(block.get("text", "") for block in each["content"])
        for each in events(operations, kind)
    ]


def test_items_until_something_else_are_one_answer() -> None:
    reasoning = item(type="reasoning", summary=[{"type": "summary_text", "text": "Look."}])
    counted = event("token_count", info={"last_token_usage": {"input_tokens": 9}})
    operations = imported(
        {"type": "session_meta", "payload": {"id": "s"}},
        user("List"),
        reasoning,
        item(**CALL),
        counted,
        item(**OUTPUT),
        item(**SAYS),
        event("task_complete"),
    )
    first, second = events(operations, "assistant/message")
    assert [block["type"] for block in first["content"]] == ["reasoning", "tool-call"]
    assert first["usage"]["input_tokens"] == 9
    assert events(operations, "tool/call")[0]["arguments"] == '{"command":["ls"]}'
    assert events(operations, "tool/result")[0] == {
        "call_id": "c1",
        "content": [{"type": "text", "text": "a.txt"}],
    }
    assert second["content"] == [{"type": "text", "text": "One file."}]
    assert [each["reason"] for each in events(operations, "turn/end")] == ["completed"]


def test_what_the_program_says_once_more_is_no_second_prompt() -> None:
    operations = imported(
        user("<environment_context>x</environment_context>"),
        user("Go"),
        event("user_message", message="Go"),
        item(**SAYS),
        event("agent_message", message="One file."),
    )
    assert said(operations) == ["<environment_context>x</environment_context>", "Go"]
    assert events(operations, "user/message")[0]["source"] == {"kind": "environment"}
    assert said(operations, "assistant/message") == ["One file."]


@pytest.mark.parametrize(
    ("ended", "reason"),
    [("turn_aborted", "cancelled"), ("task_complete", "completed"), ("error", "error")],
)
def test_how_a_turn_ends(ended: str, reason: str) -> None:
    operations = imported(user("Go"), event(ended, message="no"))
    assert events(operations, "turn/end")[0]["reason"] == reason


def test_calls_without_an_id_and_those_that_the_provider_ran() -> None:
    search = {"type": "web_search_call", "status": "completed", "action": {"query": "x"}}
    operations = imported(
        user("Go"),
        item(**search),
        {"type": "function_call", "function": {"name": "look"}, "arguments": {"at": 1}},
        {"type": "function_result", "result": "seen"},
    )
    calls = events(operations, "tool/call")
    assert [(each["name"], each.get("ran_by")) for each in calls] == [
        ("web_search", "provider"),
        ("look", None),
    ]
    assert [each["call_id"] for each in events(operations, "tool/result")] == [
        each["call_id"] for each in calls
    ]


def test_the_shape_before_envelopes_titles_compaction_and_the_rest() -> None:
    operations = imported(
        {"created_at": "2025-09-10T12:00:00Z", "role": "user", "message": "Hello"},
        event("thread_name_updated", thread_name="Greeting"),
        {"type": "compacted", "payload": {"message": "Said hello"}},
        [1],
    )
    assert said(operations) == ["Hello"]
    assert events(operations, "conversation/title") == [{"title": "Greeting"}]
    assert events(operations, "compaction/summary")[0]["text"] == "Said hello"
    assert events(operations, "codex/odd") == [{"value": [1]}]


@pytest.mark.parametrize(("last", "tail"), [(SAYS, "read"), (CALL, "unfinished")])
def test_an_answer_at_the_end_of_the_file_may_go_on(last: Json, tail: str) -> None:
    operations = imported(user("Go"), item(**last))
    assert {operation.get("tail") for operation in operations[3:-1]} == {tail}
    assert operations[-1] == {"op": "liveness", "live": False}
