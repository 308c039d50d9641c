"""What a client of the AI SDK is sent, chunk by chunk."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

import pytest

from assembler import Assembler
from assembler.engine.definition import Node
from assembler.engine.patches import Patch, Snapshot
from definitions import catalog
from definitions.protocols import AiSdk, Frame, ui_messages
from definitions.testing import check_encoder
from tests.definitions.protocols.ai_sdk_client import Reader
from tests.definitions.protocols.stories import (
    STEP_END,
    Story,
    answers,
    asks,
    call,
    ends,
    message,
    result,
)


def kinds(frames: list[Frame]) -> list[str]:
    return [frame["type"] for frame in frames]


# --- a turn


def test_a_turn_is_a_message_and_a_step_a_step() -> None:
    story = Story(AiSdk)
    assert story.reload() == [{"type": "start", "messageId": "turn-1"}, {"type": "start-step"}]
    assert kinds(story.happens(STEP_END)) == ["finish-step"]
    assert story.happens(ends()) == [{"type": "finish", "finishReason": "stop"}]
    again = story.happens(("turn/start", {"turn": 2}))
    assert again == [{"type": "start", "messageId": "turn-2"}]


def test_turns_and_steps_may_count_from_nought() -> None:
    story = Story(AiSdk)
    story.assembler, story.encoder, story.facts = Assembler(catalog()), AiSdk(), 0
    place = {"turn": 0, "step": 0}
    frames = story.happens(("turn/start", {"turn": 0}), ("step/start", place), call(**place))
    assert kinds(frames) == ["start", "start-step", "tool-input-available"]
    assert kinds(story.reload()) == kinds(frames)
    assert kinds(story.reload(tells="newest")) == kinds(frames)
    assert kinds(story.happens(("turn/end", {"turn": 0})))[0] == "tool-output-error"


def test_the_end_of_a_turn_is_told_once() -> None:
    story = Story(AiSdk)
    story.happens(message("a"))
    assert kinds(story.happens(ends("error", error={"message": "x"})))[-2:] == ["error", "finish"]
    again = message("b", message_id="late", interrupted=False)
    assert "error" not in kinds(story.happens(again))


@pytest.mark.parametrize(
    ("stop_reason", "expected"),
    [
        ("end_turn", "stop"),
        ("length", "length"),
        ("refusal", "content-filter"),
        ("tool_use", "tool-calls"),
        ("pause", "other"),
    ],
)
def test_a_message_says_why_it_ended(stop_reason: str, expected: str) -> None:
    story = Story(AiSdk)
    story.happens(message("a", stop_reason=stop_reason), STEP_END)
    assert story.happens(ends())[-1] == {"type": "finish", "finishReason": expected}


@pytest.mark.parametrize("reason", ["cancelled", "interrupted"])
def test_a_turn_that_was_given_up_is_aborted_and_on_a_reload_finished(reason: str) -> None:
    story = Story(AiSdk)
    story.says("text", text="a")
    story.happens(message("a", interrupted=True), STEP_END)
    assert story.happens(ends(reason)) == [{"type": "abort", "reason": reason}]
    assert story.reload()[-1] == {"type": "finish", "finishReason": "interrupted"}


def test_an_error_is_told_once() -> None:
    story = Story(AiSdk)
    story.happens(message("a"), STEP_END)
    frames = story.happens(ends("error", error={"name": "x", "message": "too much"}))
    assert frames == [
        {"type": "error", "errorText": "too much"},
        {"type": "finish", "finishReason": "error"},
    ]
    assert story.reload()[-1] == {"type": "finish", "finishReason": "error"}
    assert "error" not in kinds(story.reload())


def test_a_client_may_be_told_the_newest_turn_or_nothing() -> None:
    story = Story(AiSdk)
    story.happens(message("a"), STEP_END, ends())
    second = ("turn/start", {"turn": 2})
    story.happens(second, ("step/start", {"turn": 2, "step": 1}))
    told = [frame for frame in story.reload() if frame["type"] == "start"]
    assert [frame["messageId"] for frame in told] == ["turn-1", "turn-2"]
    newest = story.reload(tells="newest")
    assert newest == [{"type": "start", "messageId": "turn-2"}, {"type": "start-step"}]
    assert story.reload(tells="nothing") == []


def test_the_newest_turn_is_told_also_when_it_is_over() -> None:
    story = Story(AiSdk)
    story.happens(message("a"), STEP_END, ends())
    assert kinds(story.reload(tells="newest"))[-1] == "finish"


# --- calls


def test_a_call_is_prepared_runs_and_ends() -> None:
    story = Story(AiSdk)
    assert story.prepares() == [
        {"type": "tool-input-start", "toolCallId": "c1", "toolName": "read"},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"path":'},
    ]
    assert kinds(story.prepares(arguments='"/a"}')) == ["tool-input-delta"]
    story.happens(message())
    story.settles("completed")
    assert story.happens(call()) == [
        {
            "type": "tool-input-available",
            "toolCallId": "c1",
            "input": {"path": "/a"},
            "toolName": "read",
        }
    ]
    assert story.happens(result()) == [
        {"type": "tool-output-available", "toolCallId": "c1", "output": "A"}
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([], ""),
        ([{"type": "json", "value": {"a": 1}}], {"a": 1}),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        (
            [{"type": "text", "text": "a"}, {"type": "json", "value": 1}],
            [{"type": "text", "text": "a"}, {"type": "json", "value": 1}],
        ),
    ],
)
def test_an_output_is_a_text_a_value_or_the_blocks(content: Any, expected: Any) -> None:
    story = Story(AiSdk)
    frames = story.happens(call(), ("tool/result", {"call_id": "c1", "content": content}))
    assert frames[-1]["output"] == expected


def test_a_failure_says_what_the_tool_said() -> None:
    story = Story(AiSdk)
    frames = story.happens(call(), result(text="no such file", is_error=True))
    assert frames[-1] == {
        "type": "tool-output-error",
        "toolCallId": "c1",
        "errorText": "no such file",
    }


def test_input_that_is_no_object_fails_as_input() -> None:
    story = Story(AiSdk)
    frames = story.happens(call(arguments="no object"))
    assert frames[-1]["input"] == "no object"
    frames = story.happens(result(is_error=True, text="bad"))
    assert (frames[0]["type"], frames[0]["input"]) == ("tool-input-error", "no object")


def test_a_call_without_a_result_is_unsettled_when_its_turn_closes() -> None:
    story = Story(AiSdk)
    story.happens(call())
    frames = story.happens(STEP_END, ends())
    assert frames[0] == {
        "type": "tool-output-error",
        "toolCallId": "c1",
        "errorText": "unsettled",
        "toolMetadata": {"unsettled": True},
    }
    assert story.happens(result()) == []


@pytest.mark.parametrize("outcome", ["failed", "interrupted", "abandoned"])
def test_what_was_given_up_goes_with_its_step_and_the_rest_comes_again(outcome: str) -> None:
    story = Story(AiSdk)
    story.happens(call("c0"), result("c0"))
    story.says("reasoning", text="so")
    story.prepares("c1", block=1)
    story.prepares("c2", block=2)
    frames = story.settles(outcome)
    assert kinds(frames) == ["reset-step", "tool-input-available", "tool-output-available"]


def test_a_call_of_a_step_that_is_past_is_not_told_again() -> None:
    story = Story(AiSdk)
    story.happens(call("c0"), STEP_END, ("step/start", {"turn": 1, "step": 2}))
    assert kinds(story.happens(result("c0"))) == ["tool-output-available"]
    story.prepares(attempt="a2", step=2)
    assert kinds(story.settles("abandoned", "a2")) == ["reset-step"]


def test_other_arguments_take_the_place_of_those_that_were_shown() -> None:
    story = Story(AiSdk)
    story.prepares(arguments='{"path":"/b')
    frames = story.happens(call())
    assert (kinds(frames), frames[0]["input"]) == (["tool-input-available"], {"path": "/a"})


def test_calls_made_inside_a_call_name_it() -> None:
    story = Story(AiSdk)
    frames = story.happens(call(), call("c2", parent_call_id="c1"))
    assert frames[1]["toolMetadata"] == {"parentToolCallId": "c1"}


def test_what_the_backend_attached_and_knows() -> None:
    story = Story(AiSdk, meta=lambda node: {"from": node.id}, dynamic=True)
    frames = story.happens(call(ran_by="provider"), result())
    assert frames[0] == {
        "type": "tool-input-available",
        "toolCallId": "c1",
        "input": {"path": "/a"},
        "toolName": "read",
        "dynamic": True,
        "providerExecuted": True,
        "toolMetadata": {"from": "c1"},
    }
    assert frames[1]["providerExecuted"]


def test_a_hidden_tool_makes_no_chunk_on_any_path() -> None:
    story = Story(AiSdk, hidden=["read"])
    assert story.prepares() == []
    assert story.happens(call()) == []
    assert story.happens(asks(path="/a")) == []
    assert kinds(story.reload(hidden=["read"])) == ["start", "start-step"]
    frames = story.happens(call("c2", name="bash", parent_call_id="c1"))
    assert "toolMetadata" not in frames[0]
    assert story.happens(result()) == []


# --- what waits


def test_when_everything_waits_the_message_finishes_and_goes_on() -> None:
    story = Story(AiSdk)
    story.happens(call("c1"), call("c2"))
    frames = story.happens(asks(path="/a"))  # c2 runs
    assert frames == [{"type": "tool-approval-request", "approvalId": "q1@c1", "toolCallId": "c1"}]
    frames = story.happens(result("c2"))
    assert kinds(frames) == ["tool-output-available", "finish-step", "finish"]
    story.encoder = AiSdk(tells="nothing")
    assert story.encoder.feed(story.assembler.view().snapshot()) == []
    frames = story.happens(answers("allow", updated_input={"path": "/b"}))
    assert kinds(frames) == [
        "start",
        "tool-input-available",
        "tool-approval-request",
        "tool-approval-response",
    ]
    assert (frames[0]["messageId"], frames[1]["input"]) == ("turn-1", {"path": "/b"})
    assert kinds(story.happens(result("c1"))) == ["tool-output-available"]


def test_what_was_denied_says_so() -> None:
    story = Story(AiSdk)
    story.happens(call(), asks(path="/a"))
    frames = story.happens(answers("deny"), result(is_error=True, error={"name": "denied"}))
    assert kinds(frames) == ["start", "tool-approval-response", "tool-output-denied"]
    assert frames[1]["approved"] is False


def test_a_question_before_the_dispatch_shows_what_is_asked() -> None:
    story = Story(AiSdk)
    story.prepares()
    frames = story.happens(asks(path="/q"))
    assert kinds(frames) == ["tool-input-available", "tool-approval-request"]
    assert story.prepares(arguments='"/a"}') == []
    frames = story.happens(call())
    assert frames[0]["input"] == {"path": "/a"}


# --- texts and the rest


def test_text_and_reasoning_come_as_they_grow() -> None:
    story = Story(AiSdk)
    assert story.says("reasoning", text="so") == [
        {"type": "reasoning-start", "id": "1.1.0"},
        {"type": "reasoning-delta", "id": "1.1.0", "delta": "so"},
    ]
    assert kinds(story.says("text", block=1, text="a")) == [
        "reasoning-end",
        "text-start",
        "text-delta",
    ]
    assert kinds(story.says("text", block=1, text="b")) == ["text-delta"]
    assert kinds(story.happens(message("ab"))) == [
        "reset-step",
        "text-start",
        "text-delta",
        "text-end",
    ]


def test_a_client_in_the_middle_gets_everything_and_goes_on() -> None:
    story = Story(AiSdk)
    story.says("text", text="a")
    story.prepares(block=1)
    story.encoder = AiSdk()
    assert kinds(story.encoder.feed(story.assembler.view().snapshot())) == [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "tool-input-start",
        "tool-input-delta",
    ]
    assert kinds(story.says("text", text="b")) == ["text-delta"]


def test_what_a_person_says_meanwhile_is_a_steering_message() -> None:
    story = Story(AiSdk)
    said = [{"type": "text", "text": "hi"}]
    data = {"message_id": "m1", "content": said}
    story.happens(("user/message", data))
    queue = {"queue": "next-step", "added": ["m1"], "claimed": ["m1"]}
    assert story.happens(("inbox/spliced", queue)) == [
        {"type": "steering-message", "id": "m1", "parts": said}
    ]
    assert story.happens(("inbox/spliced", queue)) == []


def test_a_retry_is_a_part_of_its_own_that_changes() -> None:
    story = Story(AiSdk)
    story.says("text", text="a")
    data = {"turn": 1, "step": 1, "retry_id": "r1", "attempt": "a1", "number": 1, "reason": "busy"}
    frames = story.happens(("llm/retry", data))
    assert kinds(frames) == ["reset-step", "data-retry"]
    assert frames[1]["id"] == "retry:r1"
    frames = story.says("text", "a2", 2, text="b")
    assert frames[0]["data"]["status"] == "running"


def test_a_file_is_a_part() -> None:
    story = Story(AiSdk)
    block = {"type": "file", "media_type": "image/png", "data": "aa"}
    data = {
        "turn": 1,
        "step": 1,
        "message_id": "a",
        "content": [block, {"type": "text", "text": "b"}],
    }
    frames = story.happens(("assistant/message", data))
    assert frames[0] == {
        "type": "file",
        "url": "data:image/png;base64,aa",
        "mediaType": "image/png",
    }


def test_a_chat_begins_with_what_persons_and_the_model_said() -> None:
    story = Story(AiSdk)
    file = {"type": "file", "media_type": "image/png", "url": "https://example.org/a"}
    said = [{"type": "text", "text": "hi"}, file]
    story.happens(("user/message", {"message_id": "m1", "content": said}))
    story.says("reasoning", text="so")
    story.happens(call(), call("c2"), asks(path="/a"), result("c2", is_error=True))
    story.prepares("c3", block=1)
    person, model = ui_messages(story.assembler.view().snapshot())
    assert person == {
        "id": "m1",
        "role": "user",
        "parts": [
            {"type": "text", "text": "hi"},
            {"type": "file", "url": "https://example.org/a", "mediaType": "image/png"},
        ],
    }
    assert (model["id"], model["role"]) == ("turn-1", "assistant")
    states = [(part["type"], part.get("state")) for part in model["parts"]]
    assert states == [
        ("step-start", None),
        ("reasoning", "streaming"),
        ("tool-read", "approval-requested"),
        ("tool-read", "output-error"),
        ("tool-read", "input-streaming"),
    ]
    assert model["parts"][2]["approval"] == {"id": "q1@c1"}
    assert model["parts"][4]["rawInput"] == '{"path":'


def test_messages_that_a_chat_begins_with_hide_and_are_typed_as_the_stream() -> None:
    story = Story(AiSdk)
    story.happens(call())
    view = story.assembler.view().snapshot()
    assert ui_messages(view, dynamic=True)[0]["parts"][1]["type"] == "dynamic-tool"
    assert ui_messages(view, hidden=["read"])[0]["parts"] == [{"type": "step-start"}]


# --- all of it


def test_one_story_whenever_the_client_came() -> None:
    check_encoder(lambda hidden: AiSdk(hidden=hidden), Reader)


class TakesNothingBack(AiSdk):
    def _reset(self, changed: list[Node]) -> list[Node]:
        return changed


class ForgetsTheRest(AiSdk):
    """Does not tell again what a reset took away."""

    def _reset(self, changed: list[Node]) -> list[Node]:
        left = super()._reset(changed)
        known = {node.key for node in changed}
        return [node for node in left if node.key in known]


class SpeaksOn(AiSdk):
    """Tells what comes behind the last frame."""

    def _tell_call(self, node: Node) -> None:
        told = self._calls.get(node.id)
        if told is not None:
            told.is_over = False
        super()._tell_call(node)


class LeavesThemOpen(AiSdk):
    """Ends what is unsettled only after a reload."""

    def _tell_call(self, node: Node) -> None:
        if not self._shown.is_unsettled(node):
            super()._tell_call(node)


class FiltersNothing(AiSdk):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "hidden": ()})


class ReloadsSilently(AiSdk):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "tells": "nothing"})


class SaysTextTwice(AiSdk):
    def _tell_answer(self, node: Node) -> None:
        for name in self._of_node.get(node.key, ()):
            self._texts[name].text = ""
        super()._tell_answer(node)


class NeverEnds(AiSdk):
    def _close_text(self, name: str, text: Any) -> None:
        pass


class SendsTuples(AiSdk):
    def feed(self, update: Snapshot | Patch) -> list[Frame]:
        return [
            {**frame, "output": (frame["output"],)} if "output" in frame else frame
            for frame in super().feed(update)
        ]


@pytest.mark.parametrize(
    "broken",
    [
        TakesNothingBack,
        ForgetsTheRest,
        SpeaksOn,
        LeavesThemOpen,
        FiltersNothing,
        ReloadsSilently,
        SaysTextTwice,
        NeverEnds,
        SendsTuples,
    ],
)
def test_a_seeded_fault_is_found(broken: type[AiSdk]) -> None:
    with pytest.raises((AssertionError, KeyError)):
        check_encoder(lambda hidden: broken(hidden=hidden), Reader, smallest=False)


def test_a_chunk_is_sent_as_one_line() -> None:
    assert AiSdk.sse({"type": "start-step"}) == b'data: {"type":"start-step"}\n\n'
    assert AiSdk.DONE == b"data: [DONE]\n\n"
    assert AiSdk.HEADERS["x-vercel-ai-ui-message-stream"] == "v1"


def test_it_is_found_by_its_name() -> None:
    names = {entry.name: entry.value for entry in entry_points(group="assembler.protocols")}
    assert names["ai-sdk"] == "definitions.protocols.ai_sdk:AiSdk"


def test_who_said_something_is_told_what_follows_and_all_of_what_is_open() -> None:
    story = Story(AiSdk)
    story.reload()
    story.happens(call())
    story.encoder = AiSdk()
    story.encoder.respond(asked=True)
    frames = story.encoder.feed(story.assembler.view().snapshot())
    assert frames[0]["type"] == "start"
    assert not any(map(AiSdk.is_last, frames))
    assert AiSdk.is_last(story.happens(result(), STEP_END, ends())[-1])
    story.encoder = AiSdk()
    story.encoder.respond(asked=True)
    assert story.encoder.feed(story.assembler.view().snapshot()) == []
