"""Claude Code's frames: one answer out of all that the program prints."""

from __future__ import annotations

from typing import Any

import pytest

from definitions.providers import ClaudeCode, Response
from tests.definitions.providers.examples import CLAUDE_CODE, CLAUDE_CODE_PARTIAL

Chunk = dict[str, Any]


def frame(*content: Chunk, message_id: str = "m1", **more: Any) -> Chunk:
    message = {"id": message_id, "content": list(content), "usage": {"output_tokens": 7}}
    stop = {"stop_reason": more.pop("stop", None)}
    return {"type": "assistant", "message": {**message, **stop}, **more}


def use(call_id: str, **arguments: Any) -> Chunk:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": arguments}


def said(text: str) -> Chunk:
    return {"type": "text", "text": text}


def result(call_id: str, **more: Any) -> Chunk:
    content = [{"type": "tool_result", "tool_use_id": call_id, "content": "ok"}]
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


DONE: Chunk = {"type": "result", "subtype": "success", "is_error": False}


def read(*frames: Chunk) -> Response:
    adapter = ClaudeCode()
    for each in frames:
        adapter.feed(each)
    return adapter.finish()


def test_frames_of_one_message_are_one_answer_with_its_usage_once() -> None:
    response = read(frame(said("I ")), frame(use("c1", at=1)), frame(use("c2")), result("c1"))
    assert [block["type"] for block in response.content] == ["text", "tool-call", "tool-call"]
    assert [(call.call_id, call.arguments, call.ready) for call in response.calls] == [
        ("c1", {"at": 1}, True),
        ("c2", {}, True),
    ]
    assert response.usage is not None
    assert response.usage["output_tokens"] == 7


def test_each_finished_call_is_a_hint_at_once() -> None:
    adapter = ClaudeCode()
    adapter.feed(frame(use("c1", at=1)))
    assert [(hint.call_id, hint.arguments) for hint in adapter.hints()] == [("c1", {"at": 1})]
    assert adapter.hints() == []


@pytest.mark.parametrize(
    "end",
    [
        DONE,
        result("c1"),
        frame(said("next"), message_id="m2"),
        frame(stop="tool_use"),
        {
            "type": "stream_event",
            "event": {"type": "message_start", "message": {"id": "m2", "content": []}},
        },
    ],
)
def test_what_says_that_an_answer_is_whole(end: Chunk) -> None:
    response = read(frame(said("a")), frame(use("c1")), end)
    assert (response.whole, response.why) == (True, None)
    assert [block["type"] for block in response.content] == ["text", "tool-call"]


@pytest.mark.parametrize(
    "other",
    [
        {"type": "system", "subtype": "status"},
        {"type": "user", "message": {"role": "user", "content": "hello"}},
        {"type": "control_request", "request": {"subtype": "can_use_tool"}},
        result("c9", parent_tool_use_id="c1"),
        result("of another answer"),
        frame(said("of another"), parent_tool_use_id="c1", message_id="m9"),
        {"type": "stream_event", "parent_tool_use_id": "c1", "event": {"type": "message_stop"}},
    ],
)
def test_what_says_nothing_of_the_answer(other: Chunk) -> None:
    response = read(other, frame(said("a")), other)
    assert (response.why, len(response.content)) == ("no-terminal", 1)


def test_what_was_streamed_is_not_said_again_by_its_frames() -> None:
    streamed = read(*CLAUDE_CODE_PARTIAL)
    frames = [frame(said("again"), message_id="msg_1"), frame(use("call_1"), message_id="msg_1")]
    assert read(*CLAUDE_CODE_PARTIAL[:-2], *frames, *CLAUDE_CODE_PARTIAL[-2:]) == streamed


def test_a_stream_that_breaks_off_is_not_made_whole_by_the_end_of_the_program() -> None:
    assert read(*CLAUDE_CODE_PARTIAL[:-2], DONE).why is not None


@pytest.mark.parametrize(
    "failed",
    [
        frame(said("Overloaded"), error="overloaded", message_id="m1"),
        {"type": "result", "subtype": "error_during_execution", "is_error": True},
        {"type": "result", "subtype": "error_max_turns"},
    ],
)
def test_an_error_fails_the_answer(failed: Chunk) -> None:
    response = read(frame(use("c1")), failed)
    assert response.why == "stream-error"
    assert [call.ready for call in response.calls] == [False]


def test_an_error_says_what_the_program_said() -> None:
    failed = {"type": "result", "subtype": "success", "is_error": True, "result": "Credit low"}
    error = read(frame(said("a")), failed).error
    assert error is not None
    assert error["message"] == "Credit low"


def test_behind_its_end_nothing_is_taken() -> None:
    assert read(*CLAUDE_CODE, frame(said("more"), message_id="msg_1")) == read(*CLAUDE_CODE)
