"""Trajectories of SWE-agent: prompts, steps with calls and without, how a run ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assembler.plugins import Sample
from definitions.importers import ImportFault
from definitions.importers.swe_agent import SWE_AGENT

Json = dict[str, Any]

PROMPTS: list[Json] = [
    {"role": "system", "content": "You are an agent."},
    {"role": "user", "content": "An example.", "is_demo": True},
    {"role": "user", "content": "Mend it."},
]


def answer(thought: str, action: str = "", **more: Any) -> Json:
    return {"role": "assistant", "content": thought, "thought": thought, "action": action, **more}


def step(thought: str, action: str, observation: str, **more: Any) -> Json:
    return {"thought": thought, "action": action, "observation": observation, **more}


def run(*steps: Json, history: list[Json], status: str | None = None, **info: Any) -> list[Json]:
    document = {
        "trajectory": list(steps),
        "history": [*PROMPTS, *history],
        "info": {"exit_status": status, **info},
    }
    return list(SWE_AGENT(json.dumps(document, indent=1).splitlines(keepends=True), name="r.traj"))


def events(operations: list[Json], kind: str) -> list[Json]:
    return [
        each["event"]["data"]
        for each in operations
        if each.get("op") == "append" and each["event"]["type"] == kind
    ]


def test_only_the_task_is_a_prompt() -> None:
    messages = events(run(history=[]), "user/message")
    assert [each.get("source") for each in messages] == [
        {"kind": "system"},
        {"kind": "demonstration"},
        None,
    ]


def test_an_action_without_a_call_is_a_line_for_the_shell() -> None:
    operations = run(
        step("I look.", "open a.py\n", "1: x", state="{}"),
        history=[answer("I look.", "open a.py\n"), {"role": "user", "content": "1: x\n(cwd)"}],
    )
    (call,) = events(operations, "tool/call")
    assert (call["name"], call["arguments"]) == ("bash", '{"command":"open a.py"}')
    (result,) = events(operations, "tool/result")
    assert result["content"] == [{"type": "text", "text": "1: x"}]
    assert result["meta"] == {"shown": ["1: x\n(cwd)"]}
    assert events(operations, "swe-agent/step") == [{"state": "{}"}]


def test_a_call_of_the_model_is_that_call_and_its_result_is_whole() -> None:
    called = {"id": "c1", "function": {"name": "open", "arguments": '{"path": "a.py"}'}}
    shortened = {"role": "tool", "content": "Old output: omitted", "tool_call_ids": ["c1"]}
    operations = run(
        step("I look.", "open a.py", "all of it"),
        history=[answer("I look.", "open a.py", tool_calls=[called]), shortened],
    )
    (message,) = events(operations, "assistant/message")
    assert [block["type"] for block in message["content"]] == ["text", "tool-call"]
    (call,) = events(operations, "tool/call")
    assert (call["call_id"], call["name"]) == ("c1", "open")
    assert events(operations, "tool/result")[0]["content"][0]["text"] == "all of it"


def test_a_step_without_an_action_tells_what_the_environment_said() -> None:
    operations = run(step("Hm.", "", "Give an action."), history=[answer("Hm.")])
    assert events(operations, "tool/call") == []
    assert events(operations, "user/message")[-1]["source"] == {"kind": "environment"}


@pytest.mark.parametrize(
    ("status", "reasons"),
    [
        ("submitted", ["completed"]),
        ("submitted (exit_cost)", ["completed"]),
        ("exit_cost", ["limit"]),
        ("exit_format", ["error"]),
        (None, []),
    ],
)
def test_a_run_ends_as_its_status_says(status: str | None, reasons: list[str]) -> None:
    operations = run(step("Done.", "submit", "ok"), history=[answer("Done.")], status=status)
    assert [each["reason"] for each in events(operations, "turn/end")] == reasons
    assert operations[-1] == {"op": "liveness", "live": False}


def test_what_the_run_used_stands_at_its_last_answer() -> None:
    stats = {"tokens_sent": 7, "tokens_received": 2}
    operations = run(
        *(step(said, "ls", "x") for said in "ab"),
        history=[answer("a"), answer("b")],
        model_stats=stats,
    )
    used = [each.get("usage") for each in events(operations, "assistant/message")]
    assert used == [None, {"input_tokens": 7, "output_tokens": 2, "raw": stats}]


def test_an_answer_behind_the_last_step_runs_nothing() -> None:
    operations = run(step("a", "ls", "x"), history=[answer("a", "ls"), answer("b", "rm x")])
    assert len(events(operations, "assistant/message")) == 2
    assert len(events(operations, "tool/call")) == 1


def test_another_document_is_refused_in_one_line() -> None:
    with pytest.raises(ImportFault, match=r"^f:1: trajectory: expected the steps of a run"):
        list(SWE_AGENT(["{}"], name="f"))
    with pytest.raises(ImportFault, match=r"^f:1: line: expected a JSON value; the text ends"):
        list(SWE_AGENT(['{"trajectory": ['], name="f"))


def test_it_is_known_by_its_steps_and_its_history() -> None:
    whole = {"trajectory": [step("a", "b", "c")], "history": []}
    assert SWE_AGENT.recognises(Sample((whole,)))
    assert not SWE_AGENT.recognises(Sample(({"trajectory": [{}], "history": []},)))
    assert not SWE_AGENT.recognises(Sample((whole, whole)))
