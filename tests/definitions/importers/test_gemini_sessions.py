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


def test_answers_in_parts_and_turns_that_a_person_stopped() -> None:
    operations = session(
        {"type": "user", "content": "Go", "displayContent": "go"},
        {"type": "model", "parts": [{"text": "Hm", "thought": True}, {"text": "Done."}]},
        {"type": "user", "content": "More"},
        {"type": "info", "content": "Request cancelled."},
    )
    assert events(operations, "assistant/message")[0]["content"] == [
        {"type": "reasoning", "text": "Hm"},
        {"type": "text", "text": "Done."},
    ]
    assert events(operations, "user/message")[0]["displayContent"] == "go"
    ends = [each["reason"] for each in events(operations, "turn/end")]
    assert ends == ["completed", "cancelled"]


def test_what_is_said_of_a_call_besides_stands_with_its_result() -> None:
    call = {"id": "c1", "name": "look", "status": "success", "displayName": "Look"}
    operations = session({"type": "gemini", "content": "", "toolCalls": [call]})
    (answer,) = events(operations, "assistant/message")
    assert [block["type"] for block in answer["content"]] == ["tool-call"]
    (result,) = events(operations, "tool/result")
    assert result["meta"] == {"status": "success", "displayName": "Look"}


def test_what_the_model_was_told_beside_a_prompt_is_not_lost() -> None:
    told = {"text": "<context>hook</context>"}
    operations = lines(
        record("user", {"text": "Go"}, told, systemPayload={"displayText": "Go", "hook": "h"}),
        record("user", {"text": "On"}, systemPayload={"displayText": "On"}),
    )
    first, second = events(operations, "user/message")
    assert first["parts"] == [{"text": "Go"}, told]
    assert first["systemPayload"] == {"hook": "h"}
    assert "parts" not in second
    assert "systemPayload" not in second


def test_commands_compressions_and_rewinds_of_qwen() -> None:
    payload = {"compressedHistory": [{"role": "user", "parts": [{"text": "Read a."}]}]}
    typed = {"phase": "invocation", "rawCommand": "/model fast"}
    shown = {"phase": "result", "rawCommand": "/model fast"}
    operations = lines(
        record("user", {"text": "Go"}),
        record("system", subtype="rewind", systemPayload={"targetUuid": "u"}),
        record("system", subtype="slash_command", systemPayload=typed),
        record("system", subtype="slash_command", systemPayload=shown),
        record("system", subtype="chat_compression", systemPayload=payload),
    )
    rewind, command = events(operations, "command/run")
    assert (rewind["name"], rewind["to"]) == ("rewind", "u")
    assert (command["name"], command["arguments"]) == ("model", "fast")
    assert len(events(operations, "command/done")) == 2
    assert events(operations, "turn/end") == [{"turn": 1, "reason": "cancelled"}]
    assert events(operations, "compaction/summary")[0]["text"] == "Read a."
    assert len(events(operations, "compaction/end")) == 1
