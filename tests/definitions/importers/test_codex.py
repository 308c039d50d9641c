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


@pytest.mark.parametrize(
    ("told", "arguments"),
    [
        ({"type": "custom_tool_call", "input": "*** Begin"}, {"input": "*** Begin"}),
        ({"type": "custom_tool_call", "input": '{"command":["ls"]}'}, {"command": ["ls"]}),
        ({"type": "local_shell_call", "action": {"command": ["ls"]}}, {"command": ["ls"]}),
        ({"type": "function_call", "summary": "Testing"}, {}),
        ({"type": "function_call", "arguments": None}, {}),
        ({"type": "function_call", "arguments": ""}, {}),
        ({"type": "function_call", "arguments": "no json"}, None),
    ],
)
def test_arguments_are_an_object_whatever_a_call_has(told: Json, arguments: Json | None) -> None:
    operations = imported(user("Go"), item(call_id="c1", name="x", **told), item(**OUTPUT))
    said = events(operations, "tool/call")[0]["arguments"]
    assert said == "no json" if arguments is None else json.loads(said) == arguments


@pytest.mark.parametrize(
    ("output", "said", "failed"),
    [
        ("a.txt", "a.txt", False),
        ('{"output":"no","metadata":{"exit_code":1}}', "no", True),
        ('{"output":"yes","metadata":{"exit_code":0}}', "yes", False),
        ('{"output":"mine"}', '{"output":"mine"}', False),
        ({"content": "no", "success": False}, "no", True),
        ([{"type": "input_text", "text": "seen"}], "seen", False),
        ("Exit code: 2\nOutput:\nno", "Exit code: 2\nOutput:\nno", True),
        ("Exit code: 0\nOutput:\n", "Exit code: 0\nOutput:\n", False),
        ("Wall time: 1 s\nProcess exited with code 1\nno", None, True),
    ],
)
def test_what_came_of_a_call_and_whether_it_failed(output: Any, said: str, failed: bool) -> None:
    operations = imported(user("Go"), item(**CALL), item(**OUTPUT | {"output": output}))
    (result,) = events(operations, "tool/result")
    assert result["content"][0]["text"] == (said or output)
    assert result.get("is_error", False) is failed


def test_what_an_item_says_besides_stands_beside() -> None:
    operations = imported(
        {"type": "turn_context", "payload": {"model": "m1"}},
        user("Go"),
        item(**CALL, namespace="n", id="f1"),
        item(**OUTPUT, id="o1"),
        item(**SAYS, phase="final"),
        event("task_complete"),
    )
    call, answer = events(operations, "assistant/message")
    assert call["content"][0]["item"] == {"namespace": "n", "id": "f1"}
    assert answer["content"][0]["item"] == {"phase": "final"}
    assert answer["model"] == "m1"
    assert events(operations, "tool/result")[0]["meta"] == {"item": {"id": "o1"}}


def test_a_picture_the_provider_made_and_a_message_of_another_agent() -> None:
    operations = imported(
        user("Draw"),
        item(type="image_generation_call", id="g1", revised_prompt="A cat", result="AAAA"),
        item(type="agent_message", author="scout", content=[{"type": "input_text", "text": "Hi"}]),
    )
    assert events(operations, "tool/call")[0]["arguments"] == '{"prompt":"A cat"}'
    picture = {"type": "file", "media_type": "image/png", "data": "AAAA"}
    assert events(operations, "tool/result")[0]["content"] == [picture]
    assert events(operations, "user/message")[1]["source"] == {"kind": "agent", "name": "scout"}


def test_turns_that_were_taken_back_and_those_that_ended_in_an_error() -> None:
    operations = imported(
        user("Go"),
        event("thread_rolled_back", num_turns=1),
        user("Go on"),
        event("task_complete", error={"message": "no"}),
    )
    assert [each["name"] for each in events(operations, "command/run")] == ["rewind"]
    cancelled, failed = events(operations, "turn/end")
    assert cancelled["reason"] == "cancelled"
    assert failed["error"] == {"name": "error", "message": "no"}


def test_a_compaction_that_the_model_alone_can_read_is_none_that_failed() -> None:
    operations = imported(user("Go"), {"type": "compacted", "payload": {"message": ""}})
    assert [each["text"] for each in events(operations, "compaction/summary")] == [""]
