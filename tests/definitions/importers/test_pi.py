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


def entry(kind: str, own: str, parent: str | None, **fields: Any) -> Json:
    return {"type": kind, "id": own, "parentId": parent, **fields}


def said(own: str, parent: str | None, role: str, *content: Json, **fields: Any) -> Json:
    return message(role, *content, **fields) | {"id": own, "parentId": parent}


def test_a_record_behind_an_earlier_one_is_a_rewind_and_both_ways_stay() -> None:
    operations = imported(
        {"type": "session", "id": "s", "cwd": "/p"},
        said("a", None, "user", text("Go")),
        said("b", "a", "assistant", CALL, stopReason="toolUse"),
        said("c", "a", "assistant", text("Other"), stopReason="stop"),
        said("d", "c", "user", text("On")),
        entry("branch_summary", "e", None, fromId="d", summary="Went on."),
    )
    runs = events(operations, "command/run")
    assert [(each["name"], each["to"]) for each in runs] == [("rewind", "a"), ("rewind", None)]
    assert len(events(operations, "assistant/message")) == 2
    reasons = [each["reason"] for each in events(operations, "turn/end")]
    assert reasons == ["cancelled", "completed", "cancelled"]
    left = events(operations, "user/message")[-1]
    assert left["content"] == [text("Went on.")]
    assert left["source"] == {"kind": "branch-summary"}


def test_compactions_titles_and_what_extensions_tell_the_model() -> None:
    operations = imported(
        entry("compaction", "a", None, summary="Read a.", tokensBefore=9),
        entry("session_info", "b", "a", name="Reading"),
        entry("session_info", "c", "b"),
        entry("custom_message", "d", "c", customType="notes", content="Mind", display=True),
        said("e", "d", "custom", text("this"), customType="notes"),
    )
    assert events(operations, "compaction/start")[0]["tokensBefore"] == 9
    assert events(operations, "compaction/summary")[0]["text"] == "Read a."
    assert len(events(operations, "compaction/end")) == 1
    assert events(operations, "conversation/title") == [{"title": "Reading"}]
    assert len(events(operations, "pi/session_info")) == 1
    first, second = events(operations, "user/message")
    assert (first["content"], first["display"]) == ([text("Mind")], True)
    assert first["source"] == second["source"] == {"kind": "notes"}


@pytest.mark.parametrize(
    ("ended", "failed"),
    [({"exitCode": 0}, False), ({"exitCode": 1}, True), ({"cancelled": True}, True)],
)
def test_what_a_person_ran_is_a_command(ended: Json, failed: bool) -> None:
    operations = imported(message("bashExecution", command="ls", output="a", **ended))
    (run,) = events(operations, "command/run")
    (done,) = events(operations, "command/done")
    assert (run["name"], run["arguments"], done["output"]) == ("bash", "ls", "a")
    assert done.get("is_error", False) is failed


def test_what_has_no_counterpart_keeps_its_name() -> None:
    operations = imported(
        message("user", text("Go"), origin="queue"),
        message("assistant", {**CALL, "note": "n"}, stopReason="toolUse", api="x", model="m"),
    )
    assert events(operations, "user/message")[0]["origin"] == "queue"
    (answer,) = events(operations, "assistant/message")
    assert (answer["api"], answer["model"], answer["stop_detail"]) == ("x", "m", "toolUse")
    assert answer["content"][0]["note"] == "n"
