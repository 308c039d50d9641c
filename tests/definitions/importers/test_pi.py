"""Sessions of pi: messages with their roles, and what became of answers that were stopped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from definitions.importers.pi import PI

Json = dict[str, Any]

CALL: Json = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a"}}


def message(role: str, *content: Json, **fields: Any) -> Json:
    return {"type": "message", "message": {"role": role, "content": list(content), **fields}}


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def imported(*records: Any) -> list[Json]:
    return list(PI([json.dumps(each).encode() + b"\n" for each in records], name="s.jsonl"))


def events(operations: list[Json], kind: str) -> list[Json]:
    return [
        operation["event"]["data"]
        for operation in operations
        if operation.get("op") == "append" and operation["event"]["type"] == kind
    ]


def test_a_turn_with_a_call() -> None:
    thinking = {"type": "thinking", "thinking": "Hm", "thinkingSignature": "s"}
    operations = imported(
        {"type": "session", "cwd": "/p"},
        message("user", text("Read a")),
        message("assistant", thinking, CALL, stopReason="toolUse", usage={"input": 3}),
        message("toolResult", text("no"), toolCallId="c1", isError=True, details={"code": 2}),
        message("assistant", text("Gone."), stopReason="stop"),
    )
    first = events(operations, "assistant/message")[0]
    assert first["content"][0] == {"type": "reasoning", "text": "Hm", "signature": "s"}
    assert first["usage"] == {"input_tokens": 3, "raw": {"input": 3}}
    assert events(operations, "tool/call")[0]["arguments"] == '{"path":"a"}'
    assert events(operations, "tool/result") == [
        {
            "call_id": "c1",
            "content": [text("no")],
            "is_error": True,
            "meta": {"details": {"code": 2}},
        }
    ]
    assert events(operations, "turn/end") == [{"turn": 1, "reason": "completed"}]
    assert events(operations, "pi/session") == [{"type": "session", "cwd": "/p"}]


@pytest.mark.parametrize(
    ("stop", "reason"), [("aborted", "cancelled"), ("error", "error"), ("length", None)]
)
def test_calls_of_an_answer_that_was_cut_never_ran(stop: str, reason: str | None) -> None:
    operations = imported(
        message("user", text("Go")), message("assistant", CALL, stopReason=stop, errorMessage="no")
    )
    assert events(operations, "tool/call") == []
    ends = [each["reason"] for each in events(operations, "turn/end")]
    assert ends == ([] if reason is None else [reason])


def test_odd_records_are_kept() -> None:
    operations = imported(7, {"type": "model_change"}, message("system", text("x")))
    assert len(events(operations, "pi/odd") + events(operations, "pi/model_change")) == 2
    assert len(events(operations, "pi/message")) == 1
