"""Answers of models as conversations: one stream, and the exchanges of a tool loop."""

from __future__ import annotations

import json
from typing import Any

import pytest

from definitions.importers import ImportFault
from definitions.importers.model_answers import EXCHANGE, MODEL_STREAM
from definitions.importers.requests import Prompt, Returned, said_last

Json = dict[str, Any]

TEXT = {"type": "text", "text": "look"}


def chunk(delta: Json, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "r", "choices": [choice]}).encode() + b"\n\n"


def call(call_id: str, arguments: str) -> Json:
    return {
        "index": 0,
        "id": call_id,
        "type": "function",
        "function": {"name": "look", "arguments": arguments},
    }


CALLING = chunk({"tool_calls": [call("c1", '{"at": 1}')]}) + chunk({}, "tool_calls")
SAYING = chunk({"content": "Seen"}) + chunk({"content": " it"}) + chunk({}, "stop")
DONE = b"data: [DONE]\n\n"


def exchanged(*lines: Json) -> list[Json]:
    return list(EXCHANGE([json.dumps(line).encode() for line in lines], name="loop.jsonl"))


def line(messages: list[Json], response: bytes) -> Json:
    return {"request": {"messages": messages}, "response": response.decode()}


def types(operations: list[Json]) -> list[str]:
    return [
        operation["event"]["type"]
        if operation.get("op") == "append"
        else operation.get("outcome") or f"~{operation.get('type', operation.get('op', 'header'))}"
        for operation in operations
    ]


def data(operations: list[Json], kind: str) -> list[Json]:
    events = [operation["event"] for operation in operations if operation.get("op") == "append"]
    return [event["data"] for event in events if event["type"] == kind]


def test_one_answer_is_a_turn_with_a_step() -> None:
    operations = list(MODEL_STREAM([SAYING + DONE], name="a/b.sse"))
    assert operations[0]["title"] == "b.sse"
    found = [
        kind for kind in types(operations) if kind not in ("~text", "~block-start", "~block-end")
    ]
    assert found == [
        "~header",
        "turn/start",
        "step/start",
        "assistant/message",
        "completed",
        "step/end",
        "turn/end",
        "~liveness",
    ]
    assert data(operations, "assistant/message")[0]["content"] == [
        {"type": "text", "text": "Seen it"}
    ]


def test_a_call_of_the_last_answer_waits() -> None:
    operations = list(MODEL_STREAM([CALLING + DONE], name="x"))
    assert data(operations, "tool/call")[0]["arguments"] == '{"at": 1}'
    assert data(operations, "turn/end") == []


def test_an_answer_that_broke_off_ends_its_turn_with_an_error() -> None:
    operations = list(MODEL_STREAM([chunk({"content": "See"})], name="x"))
    assert data(operations, "turn/end") == [
        {
            "turn": 1,
            "reason": "error",
            "error": {"name": "no-terminal", "message": "the answer did not come whole"},
        }
    ]


def test_a_loop_has_its_prompts_and_results() -> None:
    user = {"role": "user", "content": "Where?"}
    said = {"role": "assistant", "tool_calls": [call("c1", '{"at": 1}')]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "here"}
    operations = exchanged(
        line([{"role": "system", "content": "Be kind"}, user], CALLING + DONE),
        line([user, said, result], SAYING + DONE),
    )
    assert [each["content"] for each in data(operations, "user/message")] == [
        [{"type": "text", "text": "Where?"}]
    ]
    assert data(operations, "tool/result") == [
        {"call_id": "c1", "content": [{"type": "text", "text": "here"}]}
    ]
    assert [each["turn"] for each in data(operations, "step/start")] == [1, 1]
    assert [each["reason"] for each in data(operations, "turn/end")] == ["completed"]


def test_a_result_without_an_id_is_the_next_call_s() -> None:
    user = {"role": "user", "content": "Where?"}
    said = {"role": "assistant", "tool_calls": [call("", '{"at": 1}')]}
    operations = exchanged(
        line([user], CALLING + DONE),
        line([user, said, {"role": "tool", "content": "here"}], SAYING),
        line([user, said, {"role": "tool", "content": "nobody's"}], SAYING),
    )
    assert [each["call_id"] for each in data(operations, "tool/result")] == ["c1"]


def test_an_answer_that_nobody_reads_is_kept() -> None:
    odd = {"request": {"messages": []}, "response": "who knows", "format": "new"}
    assert data(exchanged(odd), "exchange/response") == [odd]


def test_half_characters_of_an_answer_that_nobody_reads_are_mended() -> None:
    told = json.dumps({"request": {}, "response": "x", "note": "\ud83d"}).encode()
    (kept,) = data(list(EXCHANGE([told], name="e.jsonl")), "exchange/response")
    assert kept["note"] == "\ufffd"


def test_a_result_before_an_answer_that_was_not_recorded_is_kept() -> None:
    asked = {"role": "user", "content": "Look"}
    called = {"role": "assistant", "tool_calls": [call("c1", '{"at": 1}')]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "a tree"}
    between = [{"role": "assistant", "content": "A tree."}, {"role": "user", "content": "And?"}]
    marked = {**asked, "cache_control": {"type": "ephemeral"}}
    operations = exchanged(line([asked], CALLING), line([marked, called, result, *between], SAYING))
    (told,) = data(operations, "tool/result")
    assert told["call_id"] == "c1"
    said = [each["content"][0]["text"] for each in data(operations, "user/message")]
    assert said == ["Look", "And?"]


def test_what_a_search_found_is_its_result_and_what_the_provider_found_is_nobodys() -> None:
    found = {"type": "tool_search_output", "call_id": "c1", "tools": [{"name": "rate"}]}
    said = said_last({"input": [{**found, "execution": "client"}]})
    assert said == [Returned("c1", [{"type": "json", "value": {"name": "rate"}}])]
    assert said_last({"input": [{**found, "execution": "server"}]}) == []


def test_what_is_no_exchange_is_one_line() -> None:
    with pytest.raises(ImportFault, match=r"^loop\.jsonl:1: request: expected what a client sent"):
        exchanged({"response": "x"})
    with pytest.raises(ImportFault, match=r"^x:1: line: expected an answer in one of "):
        list(MODEL_STREAM([b"nothing"], name="x"))


# What the client said, however a provider spells it


def test_only_what_was_said_behind_the_last_answer_counts() -> None:
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": [{"type": "text", "text": "two"}, {"type": "odd"}]},
    ]
    assert said_last({"messages": messages}) == [
        Prompt([{"type": "text", "text": "two"}, {"type": "json", "value": {"type": "odd"}}])
    ]


RESULTS = {
    "messages of blocks": {
        "messages": [
            {"role": "assistant", "content": []},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "and"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": [TEXT],
                        "is_error": True,
                    },
                ],
            },
        ]
    },
    "contents": {
        "contents": [
            {"role": "model", "parts": []},
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "c1", "response": {"output": "look"}}},
                    {"text": "and"},
                ],
            },
        ]
    },
    "items": {
        "input": [
            {"type": "function_call", "call_id": "c1"},
            {"type": "function_call_output", "call_id": "c1", "output": "look"},
            {"role": "user", "content": [{"type": "input_text", "text": "and"}]},
        ]
    },
    "converse": {
        "messages": [
            {"role": "assistant", "content": []},
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "c1", "content": [{"text": "look"}]}},
                    {"text": "and"},
                ],
            },
        ]
    },
}


@pytest.mark.parametrize("spelled", RESULTS)
def test_results_come_before_what_is_said_beside_them(spelled: str) -> None:
    is_error = spelled == "messages of blocks"
    assert said_last(RESULTS[spelled]) == [
        Returned("c1", [TEXT], is_error),
        Prompt([{"type": "text", "text": "and"}]),
    ]


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            {"type": "image_url", "image_url": {"url": "u"}},
            {"type": "file", "media_type": "image/*", "url": "u"},
        ),
        (
            {"type": "image", "source": {"media_type": "image/png", "data": "d"}},
            {"type": "file", "media_type": "image/png", "data": "d"},
        ),
        (
            {"inlineData": {"mimeType": "image/png", "data": "d"}},
            {"type": "file", "media_type": "image/png", "data": "d"},
        ),
        ("plain", {"type": "text", "text": "plain"}),
        (7, {"type": "json", "value": 7}),
    ],
)
def test_parts_of_a_prompt(part: Any, block: Json) -> None:
    found = said_last({"input": [{"role": "user", "content": [TEXT, part]}]})
    expected = {"type": "json", "value": {}} if not isinstance(part, dict) else block
    assert found == [Prompt([TEXT, expected])]


@pytest.mark.parametrize("request_", [{}, {"messages": 1}, {"messages": [1, None]}, {"input": "x"}])
def test_odd_requests_say_what_they_can(request_: Json) -> None:
    assert said_last(request_) in ([], [Prompt([{"type": "text", "text": "x"}])])


def test_an_answer_without_an_end_may_go_on() -> None:
    """So a store waits for it: the whole answer would come under the same ids."""
    begun = chunk({"content": "See"})
    tails = [
        each.get("tail")
        for each in MODEL_STREAM([begun], name="x")
        if each.get("op") == "append" and each["event"]["type"] not in ("turn/start", "step/start")
    ]
    assert tails == ["unfinished"] * 3
    assert not any("tail" in each for each in MODEL_STREAM([SAYING + DONE], name="x"))


def test_a_last_exchange_that_is_still_being_written_is_left_out() -> None:
    line = json.dumps({"request": {"messages": []}, "response": ""}) + "\n"
    assert list(EXCHANGE([line, line[:20]], name="x")) == list(EXCHANGE([line], name="x"))
