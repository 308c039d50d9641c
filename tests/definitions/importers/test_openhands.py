"""OpenHands: the events of a session, and the requests that it logs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assembler.plugins import Sample
from definitions.importers import ImportFault
from definitions.importers.openhands import OPENHANDS
from definitions.importers.openhands_log import OPENHANDS_LOG

Json = dict[str, Any]

MADE = "2025-01-02T03:04:05"
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}


def event(number: int, source: str = "agent", **fields: Any) -> Json:
    return {"id": number, "timestamp": MADE, "source": source, **fields}


def response(said: str, *calls: str) -> Json:
    told = [{"id": each, "function": {"name": "look", "arguments": "{}"}} for each in calls]
    message = {"role": "assistant", "content": said, "tool_calls": told}
    reason = "tool_calls" if calls else "stop"
    return {
        "id": "r1",
        "model": "m",
        "choices": [{"finish_reason": reason, "message": message}],
        "usage": USAGE,
    }


def made_by(call_id: str, answer: Json, name: str = "look") -> Json:
    return {"tool_call_id": call_id, "function_name": name, "model_response": answer}


def session(*told: Any) -> list[Json]:
    return list(OPENHANDS([json.dumps(list(told), indent=1)], name="s.json"))


def logged(**fields: Any) -> list[Json]:
    return list(OPENHANDS_LOG([json.dumps(fields)], name="l.json"))


def events(operations: list[Json], kind: str) -> list[Json]:
    return [
        each["event"]["data"]
        for each in operations
        if each.get("op") == "append" and each["event"]["type"] == kind
    ]


def reasons(operations: list[Json]) -> list[str]:
    return [each["reason"] for each in events(operations, "turn/end")]


PROMPT = event(0, "user", action="message", args={"content": "Go", "image_urls": ["data:x"]})


def test_an_answer_that_made_several_actions_is_one() -> None:
    both = response("I look twice.", "c1", "c2")
    operations = session(
        PROMPT,
        event(1, action="run", args={}, tool_call_metadata=made_by("c1", both)),
        event(2, action="run", args={}, tool_call_metadata=made_by("c2", both)),
        event(3, observation="run", content="one", cause=1),
        event(4, observation="run", content="two", cause=2),
    )
    (message,) = events(operations, "assistant/message")
    assert [block["type"] for block in message["content"]] == ["text", "tool-call", "tool-call"]
    assert message["model"] == "m"
    assert message["usage"] | {"raw": 0} == {
        "input_tokens": 5,
        "output_tokens": 2,
        "cache_read_tokens": 3,
        "raw": 0,
    }
    assert [each["call_id"] for each in events(operations, "tool/call")] == ["c1", "c2"]
    told = [
        (each["call_id"], each["content"][0]["text"]) for each in events(operations, "tool/result")
    ]
    assert told == [("c1", "one"), ("c2", "two")]
    assert len(events(operations, "openhands/run")) == 1


def test_a_prompt_may_have_images_and_says_when() -> None:
    operations = session(PROMPT)
    (message,) = events(operations, "user/message")
    file = {"type": "file", "media_type": "image/*", "url": "data:x"}
    assert message["content"] == [{"type": "text", "text": "Go"}, file]
    assert "source" not in message
    assert {each["event"]["time"] for each in operations[1:-1]} == {1735787045000}


def test_an_action_without_an_answer_is_a_call_of_its_own() -> None:
    operations = session(
        PROMPT,
        event(1, action="run", args={"command": "ls", "thought": "I look."}),
        event(2, observation="run", content="a", cause=1),
    )
    (call,) = events(operations, "tool/call")
    assert (call["name"], call["arguments"]) == ("run", '{"command":"ls"}')
    assert events(operations, "tool/result")[0]["call_id"] == call["call_id"]
    assert events(operations, "assistant/message")[0]["content"][0]["text"] == "I look."


@pytest.mark.parametrize(
    ("fields", "failed"),
    [
        ({"extras": {"metadata": {"exit_code": 0}}}, None),
        ({"extras": {"metadata": {"exit_code": 2}}}, True),
        ({"extras": {"metadata": {"exit_code": -1}}, "success": False}, None),
        ({"observation": "error"}, True),
    ],
)
def test_whether_a_call_failed(fields: Json, failed: bool | None) -> None:
    seen = event(2, **{"observation": "run", "content": "x", "cause": 1, **fields})
    operations = session(PROMPT, event(1, action="run", args={}), seen)
    assert events(operations, "tool/result")[0].get("is_error") is failed


def test_the_work_ends_with_what_the_agent_said() -> None:
    done = event(1, action="finish", args={}, message="All done.")
    operations = session(PROMPT, done | {"tool_call_metadata": made_by("c", response("", "c"))})
    assert events(operations, "tool/result")[0]["content"][0]["text"] == "All done."
    assert reasons(operations) == ["completed"]


def test_a_state_may_end_the_turn() -> None:
    def at(state: str) -> Json:
        return event(
            2, "environment", observation="agent_state_changed", extras={"agent_state": state}
        )

    assert reasons(session(PROMPT, at("running"))) == []
    assert reasons(session(PROMPT, at("stopped"))) == ["cancelled"]
    failed = session(PROMPT, at("error"))
    assert events(failed, "turn/end")[0]["error"] == {"name": "error", "message": "error"}
    asked = event(1, action="message", args={"content": "Which?", "wait_for_response": True})
    assert reasons(session(PROMPT, asked)) == ["completed"]


def test_what_has_no_counterpart_is_kept() -> None:
    operations = session(PROMPT, event(1, action="recall", args={"query": "q"}), 3)
    assert events(operations, "openhands/recall")[0]["args"] == {"query": "q"}
    assert events(operations, "openhands/odd") == [{"value": 3}]


def test_a_history_that_was_shortened() -> None:
    operations = session(PROMPT, event(1, action="condensation", args={"summary": "So far."}))
    assert events(operations, "compaction/summary")[0]["text"] == "So far."
    assert len(events(operations, "compaction/end")) == 1


def test_a_session_in_lines_grows_at_its_end() -> None:
    told = [PROMPT, event(1, action="run", args={}), event(2, observation="run", cause=1)]
    lines = [json.dumps(each) + "\n" for each in told]
    whole = list(OPENHANDS(lines, name="s"))[:-1]
    for count in range(1, len(lines)):
        said = list(OPENHANDS([*lines[:count], '{"id": 9'], name="s"))[:-1]
        assert said == whole[: len(said)]


CALL = {"id": "c1", "function": {"name": "look", "arguments": "{}"}}
SAID = [
    {"role": "system", "content": "Be an agent."},
    {"role": "user", "content": [{"type": "text", "text": "Go"}]},
    {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "seen"},
]


def test_a_request_is_its_history_and_the_answer() -> None:
    told = response("Done.")
    operations = logged(messages=SAID, response=told, latency_sec=1.5, timestamp=1_700_000_000.5)
    assert [each.get("source") for each in events(operations, "user/message")] == [
        {"kind": "system"},
        None,
    ]
    assert events(operations, "tool/result")[0]["content"][0]["text"] == "seen"
    assert events(operations, "assistant/message")[-1]["usage"]["output_tokens"] == 2
    assert reasons(operations) == ["completed"]
    assert operations[-2]["event"]["time"] == 1_700_000_000_500
    assert events(operations, "openhands-llm-log/request")[0]["latency_sec"] == 1.5


def test_messages_with_calls_are_read_where_the_model_got_texts() -> None:
    told = response("I look again.", "c2")
    told["choices"][0]["finish_reason"] = "stop"
    text = [{"role": "user", "content": "RESULT of [look]: seen"}]
    operations = logged(messages=text, raw_messages=SAID, response=told, latency_sec=1)
    assert [each["call_id"] for each in events(operations, "tool/call")] == ["c1", "c2"]
    assert reasons(operations) == []
    assert events(operations, "openhands-llm-log/request")[0]["messages"] == text


def test_an_answer_that_was_cut_hands_over_nothing() -> None:
    told = response("I", "c2")
    told["choices"][0]["finish_reason"] = "length"
    operations = logged(messages=SAID[:2], response=told, latency_sec=1)
    assert events(operations, "assistant/message")[0]["stop_reason"] == "length"
    assert events(operations, "tool/call") == []


def test_other_files_are_refused_in_one_line() -> None:
    with pytest.raises(ImportFault, match=r"^s.json:1: action: expected an event of OpenHands"):
        session({"id": 1})
    with pytest.raises(ImportFault, match=r"^l.json:1: messages: expected what was sent"):
        logged(response={})
    with pytest.raises(ImportFault, match=r"^f:2: line: expected a JSON value; the text ends"):
        list(OPENHANDS(['[\n{"id": 0'], name="f"))


def test_they_are_known_by_their_fields() -> None:
    assert OPENHANDS.recognises(Sample(([PROMPT],)))
    assert not OPENHANDS.recognises(Sample(([event(1, "x", action="y")],)))
    log = {"messages": [], "response": {"choices": []}, "latency_sec": 1}
    assert OPENHANDS_LOG.recognises(Sample((log,)))
    assert not OPENHANDS_LOG.recognises(Sample(({**log, "response": {}},)))
