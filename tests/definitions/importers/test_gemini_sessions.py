"""Sessions of Gemini CLI and of Qwen Code: messages in parts, calls with what came of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from definitions.importers import ImportFault
from definitions.importers.gemini_cli import GEMINI_CLI
from definitions.importers.qwen_code import QWEN_CODE

Json = dict[str, Any]


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


def session(*messages: Any) -> list[Json]:
    document = {"sessionId": "s", "projectHash": "p", "messages": list(messages)}
    return list(GEMINI_CLI([json.dumps(document, indent=1).encode()], name="s.json"))


def record(kind: str, *parts: Json, **fields: Any) -> Json:
    return {
        "type": kind,
        "uuid": "u",
        "parentUuid": None,
        "message": {"parts": list(parts)},
    } | fields


def lines(*records: Any) -> list[Json]:
    return list(QWEN_CODE([json.dumps(each).encode() + b"\n" for each in records], name="q.jsonl"))


def test_an_answer_has_thoughts_text_calls_and_results() -> None:
    response = {"functionResponse": {"id": "c1", "response": {"output": "seen"}}}
    done = {
        "id": "c1",
        "name": "look",
        "args": {"at": 1},
        "status": "success",
        "result": [response],
    }
    failed = {"name": "look", "status": "error", "resultDisplay": "no"}
    waiting = {"id": "c3", "name": "look", "status": "executing"}
    operations = session(
        {"type": "user", "content": "Go"},
        {
            "type": "gemini",
            "content": "I look.",
            "thoughts": [{"subject": "Plan", "description": "Look"}],
            "toolCalls": [done, failed, waiting],
            "tokens": {"input": 5, "output": 2},
        },
        {"type": "gemini", "content": "Done."},
        {"type": "info", "content": "x"},
        "odd",
    )
    first = events(operations, "assistant/message")[0]
    assert [block["type"] for block in first["content"]] == [
        "reasoning",
        "text",
        "tool-call",
        "tool-call",
        "tool-call",
    ]
    assert first["content"][0]["text"] == "Plan\nLook"
    assert first["usage"]["output_tokens"] == 2
    results = events(operations, "tool/result")
    assert [(each["call_id"], each.get("is_error")) for each in results] == [
        ("c1", None),
        ("call-2.1", True),
    ]
    assert said(operations, "tool/result") == ["seen", "no"]
    assert [each["reason"] for each in events(operations, "turn/end")] == ["completed"]
    assert len(events(operations, "gemini-cli/info") + events(operations, "gemini-cli/odd")) == 2


def test_an_error_ends_the_turn_and_a_cut_document_is_one_line() -> None:
    operations = session({"type": "user", "content": "Go"}, {"type": "error", "content": "Quota"})
    assert events(operations, "turn/end")[0]["error"] == {"name": "error", "message": "Quota"}
    with pytest.raises(ImportFault, match=r"^s:2: line: expected a JSON value; the text ends"):
        list(GEMINI_CLI([b'{\n"sessionId": "s'], name="s"))


def test_lines_of_parts() -> None:
    call = {"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a"}}}
    response = {"functionResponse": {"id": "c1", "response": {"error": "no"}}}
    operations = lines(
        record("user", {"text": "hook\nGo"}, systemPayload={"displayText": "Go"}),
        record(
            "assistant",
            {"text": "Hm", "thought": True},
            call,
            usageMetadata={"promptTokenCount": 4},
        ),
        record("user", {"text": "Faster"}, subtype="mid_turn_user_message"),
        record("tool_result", response, toolCallResult={"callId": "c1"}),
        record("assistant", {"text": "No."}),
        record("user", {"text": "Note"}, subtype="notification"),
        record("system", subtype="custom_title", systemPayload={"customTitle": "Reading"}),
        record("system", subtype="rewind"),
        3,
    )
    assert said(operations) == ["Go", "Faster", "Note"]
    assert events(operations, "user/message")[2]["source"] == {"kind": "notification"}
    assert len(events(operations, "inbox/spliced")) == 1
    assert events(operations, "tool/result")[0]["is_error"] is True
    assert events(operations, "assistant/message")[0]["usage"]["input_tokens"] == 4
    assert events(operations, "conversation/title") == [{"title": "Reading"}]
    assert [each["name"] for each in events(operations, "command/run")] == ["rewind"]
    assert events(operations, "qwen-code/odd") == [{"value": 3}]


def test_records_that_were_glued_together() -> None:
    glued = json.dumps(record("user", {"text": "a"})) + json.dumps(record("user", {"text": "b"}))
    assert said(list(QWEN_CODE([glued.encode() + b"\n"], name="q"))) == ["a", "b"]
    half = list(QWEN_CODE([glued.encode() + b"\n", b'{"type": "us'], name="q"))
    assert said(half) == ["a", "b"]
    with pytest.raises(ImportFault, match=r"^q:2: line: expected a JSON value"):
        list(QWEN_CODE([b"{}\n", b'{"type": \n', b"{}\n"], name="q"))
