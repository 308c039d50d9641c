"""The expectations of recordings that speak of what clients were sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assembler import Assembler
from assembler.recordings import Report, Run, check, read
from definitions import catalog

TURN = {"op": "append", "event": {"type": "turn/start", "data": {"turn": 1}}}
STEP = {"op": "append", "event": {"type": "step/start", "data": {"turn": 1, "step": 1}}}
GIVEN_UP = {"op": "settle", "attempt": "a1", "outcome": "abandoned"}


def prepares(call_id: str, name: str) -> dict[str, Any]:
    data = {"block": call_id, "call_id": call_id, "name": name, "arguments": "{"}
    return {
        "op": "delta",
        "attempt": "a1",
        "turn": 1,
        "step": 1,
        "type": "tool-call",
        "data": data,
    }


def expects(*frames: dict[str, Any]) -> dict[str, Any]:
    return {"op": "expect", "acp": list(frames)}


def written(path: Path, *lines: dict[str, Any], **header: Any) -> str:
    lines = ({"recording": 1, **header}, *lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return str(path)


def report(path: Path, *lines: dict[str, Any], **header: Any) -> Report:
    (found,) = check(written(path, *lines, **header)).reports
    return found


def test_frames_are_those_since_the_last_line_that_asked(tmp_path: Path) -> None:
    lines = [
        *(TURN, STEP, expects(), prepares("c1", "read"), prepares("c2", "bash")),
        expects({"toolCallId": "c1", "status": "pending"}, {"toolCallId": "c2"}),
        *(expects(), GIVEN_UP),
        expects({"toolCallId": "c1", "status": "failed"}, {"toolCallId": "c2"}),
    ]
    assert report(tmp_path / "a.jsonl", *lines).outcome == "passed"


def test_a_difference_says_where_it_is(tmp_path: Path) -> None:
    lines = [TURN, STEP, prepares("c1", "read"), expects({"toolCallId": "c1", "status": "failed"})]
    found = report(tmp_path / "a.jsonl", *lines)
    assert found.outcome == "failed"
    assert [(each.line, each.difference.path) for each in found.failures] == [(5, "acp.[0].status")]


def test_hidden_tools_are_those_of_the_header(tmp_path: Path) -> None:
    lines = [TURN, STEP, prepares("c1", "TodoWrite"), prepares("c2", "read")]
    lines += [expects({"toolCallId": "c2"})]
    assert report(tmp_path / "a.jsonl", *lines, hidden_tools=["TodoWrite"]).outcome == "passed"


def test_a_new_assembler_is_a_client_that_comes_back(tmp_path: Path) -> None:
    lines = [TURN, STEP, prepares("c1", "read"), expects({"toolCallId": "c1"})]
    run = Run(read(written(tmp_path / "a.jsonl", *lines)), catalog())
    for operation in run.recording.operations[:3]:
        run.do(operation)
    expectation = run.plugged.expectations["acp"]
    assert expectation(run, [{"sessionUpdate": "tool_call", "toolCallId": "c1"}]) == []
    run.assembler = again = Assembler(catalog())
    again.load(run.facts().events)
    run.attempts.clear()
    for operation in run.recording.operations[2:3]:
        run.do(operation)
    assert expectation(run, [{"sessionUpdate": "tool_call", "toolCallId": "c1"}]) == []


def test_other_protocols_are_watched_beside_it(tmp_path: Path) -> None:
    lines = [
        *(TURN, STEP),
        {"op": "expect", "ag_ui": [{"type": "RUN_STARTED"}, {"type": "STEP_STARTED"}]},
        {"op": "expect", "ai_sdk": [{"type": "start"}, {"type": "start-step"}]},
        *(prepares("c1", "read"), GIVEN_UP),
        {
            "op": "expect",
            "ag_ui": [
                {"type": "TOOL_CALL_START", "toolCallId": "c1"},
                {"type": "TOOL_CALL_ARGS", "delta": "{"},
                {"type": "TOOL_CALL_RESULT", "metadata": {"outcome": "withdrawn"}},
                {"type": "MESSAGES_SNAPSHOT", "messages": []},
                {"type": "TOOL_CALL_END"},
            ],
            "ai_sdk": [
                {"type": "tool-input-start", "toolCallId": "c1"},
                {"type": "tool-input-delta"},
                {"type": "reset-step"},
            ],
            "acp": [{"status": "pending"}, {"status": "failed"}],
        },
    ]
    assert report(tmp_path / "a.jsonl", *lines).outcome == "passed"
    lines[-1]["ai_sdk"].pop()
    found = report(tmp_path / "a.jsonl", *lines)
    assert [each.difference.path for each in found.failures] == ["ai_sdk."]
