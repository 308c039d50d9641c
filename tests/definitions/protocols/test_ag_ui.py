"""What an AG-UI client is sent, event by event."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

import pytest

from assembler import Assembler
from assembler.engine.definition import Node
from assembler.engine.patches import Patch, Snapshot
from definitions import catalog
from definitions.protocols import AgUi, Frame
from definitions.testing import check_encoder
from tests.definitions.protocols.ag_ui_client import Agent
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


def told(frames: list[Frame]) -> list[tuple[str, Any]]:
    """Each event by its type and the first that it says."""
    first = ("delta", "stepName", "toolCallId", "messageId", "runId", "value")
    return [
        (frame["type"], next((frame[key] for key in first if key in frame), None))
        for frame in frames
    ]


def kinds(frames: list[Frame]) -> list[str]:
    return [frame["type"] for frame in frames]


def messages(frames: list[Frame]) -> list[dict[str, Any]]:
    return [frame for frame in frames if frame["type"] == "MESSAGES_SNAPSHOT"][-1]["messages"]


# --- a turn


def test_a_turn_is_a_run_and_a_step_a_step() -> None:
    story = Story(AgUi)
    assert told(story.happens()) == []
    assert told(story.reload()) == [("RUN_STARTED", "1"), ("STEP_STARTED", "1.1")]
    assert told(story.happens(STEP_END)) == [("STEP_FINISHED", "1.1")]
    assert story.happens(ends()) == [
        {
            "type": "RUN_FINISHED",
            "threadId": "conversation",
            "runId": "1",
            "outcome": {"type": "success"},
        }
    ]
    assert told(story.happens(("turn/start", {"turn": 2}))) == [("RUN_STARTED", "2")]


def test_turns_and_steps_may_count_from_nought() -> None:
    story = Story(AgUi)
    story.assembler, story.encoder, story.facts = Assembler(catalog()), AgUi(), 0
    place = {"turn": 0, "step": 0}
    frames = story.happens(("turn/start", {"turn": 0}), ("step/start", place), call(**place))
    assert kinds(frames)[:3] == ["RUN_STARTED", "STEP_STARTED", "TOOL_CALL_START"]
    assert kinds(story.happens(("turn/end", {"turn": 0}))) == [
        "TOOL_CALL_RESULT",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ]


def test_the_end_of_a_turn_is_told_once() -> None:
    story = Story(AgUi)
    story.says("text", text="a")
    story.happens(message("a", interrupted=True), STEP_END)
    assert kinds(story.happens(ends("error", error={"message": "x"})))[-1] == "RUN_ERROR"
    late = message("b", message_id="late")
    assert kinds(story.happens(late)) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]


@pytest.mark.parametrize("reason", ["cancelled", "interrupted"])
def test_a_turn_that_was_given_up_is_cancelled(reason: str) -> None:
    story = Story(AgUi)
    assert story.happens(ends(reason))[-1]["outcome"] == {"type": "cancelled"}


def test_a_turn_that_a_later_one_closes_is_cancelled() -> None:
    story = Story(AgUi)
    frames = story.happens(("turn/start", {"turn": 2}))
    assert kinds(frames) == ["STEP_FINISHED", "RUN_FINISHED", "RUN_STARTED"]
    assert frames[1]["outcome"] == {"type": "cancelled"}


def test_an_error_ends_a_run_and_is_no_news_on_a_reload() -> None:
    story = Story(AgUi)
    frames = story.happens(ends("error", error={"name": "Overloaded", "message": "too much"}))
    assert frames[-1] == {"type": "RUN_ERROR", "message": "too much", "code": "Overloaded"}
    assert kinds(story.happens(("turn/start", {"turn": 2}))) == ["RUN_STARTED"]


def test_the_first_run_may_be_named_by_the_client() -> None:
    story = Story(AgUi, thread_id="t9", run_id="r9")
    story.happens(ends())
    frames = story.reload(thread_id="t9", run_id="r9")
    assert frames == []
    frames = story.happens(("turn/start", {"turn": 2}))
    assert frames == [{"type": "RUN_STARTED", "threadId": "t9", "runId": "2"}]


# --- calls


def test_a_call_is_prepared_runs_and_ends() -> None:
    story = Story(AgUi)
    assert story.prepares() == [
        {
            "type": "TOOL_CALL_START",
            "toolCallId": "c1",
            "toolCallName": "read",
            "parentMessageId": "1.1",
        },
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"path":'},
    ]
    assert told(story.prepares(arguments='"/a"}')) == [("TOOL_CALL_ARGS", '"/a"}')]
    assert story.happens(message()) == []
    assert story.settles("completed") == []
    assert told(story.happens(call())) == [("TOOL_CALL_END", "c1")]
    assert story.happens(result()) == [
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "result:c1",
            "toolCallId": "c1",
            "role": "tool",
            "content": "A",
            "metadata": {"outcome": "succeeded"},
        }
    ]


def test_arguments_that_are_spelled_otherwise_are_not_sent_again() -> None:
    story = Story(AgUi)
    story.prepares(arguments='{ "path": "/a" }')
    assert told(story.happens(call())) == [("TOOL_CALL_END", "c1")]


def test_other_arguments_take_the_place_of_those_that_were_shown() -> None:
    story = Story(AgUi)
    story.prepares(arguments='{"path":"/b')
    frames = story.happens(call())
    assert kinds(frames) == ["MESSAGES_SNAPSHOT", "TOOL_CALL_END"]
    assert messages(frames)[0]["toolCalls"][0]["function"]["arguments"] == '{"path":"/a"}'


@pytest.mark.parametrize("outcome", ["failed", "interrupted", "abandoned"])
def test_a_preparation_that_was_given_up_goes(outcome: str) -> None:
    story = Story(AgUi)
    story.prepares("c1")
    story.prepares("c2", block=1)
    frames = story.settles(outcome)
    assert told(frames) == [
        ("TOOL_CALL_RESULT", "c1"),
        ("TOOL_CALL_RESULT", "c2"),
        ("MESSAGES_SNAPSHOT", None),
        ("TOOL_CALL_END", "c1"),
        ("TOOL_CALL_END", "c2"),
    ]
    assert frames[0]["metadata"] == {"outcome": "withdrawn"}
    assert messages(frames) == []


def test_what_stays_is_kept_when_something_goes() -> None:
    story = Story(AgUi)
    story.happens(
        ("user/message", {"message_id": "m1", "content": [{"type": "text", "text": "hi"}]})
    )
    story.happens(call("c0"), result("c0"))
    story.prepares("c1")
    frames = story.settles("abandoned")
    assert [each["id"] for each in messages(frames)] == ["m1", "1.1", "result:c0"]


def test_a_failure_says_so() -> None:
    story = Story(AgUi)
    frames = story.happens(call(), result(is_error=True, error={"name": "denied"}))
    assert frames[-1]["metadata"] == {"outcome": "failed", "error": {"name": "denied"}}


def test_a_call_without_a_result_is_unsettled_when_its_turn_closes() -> None:
    story = Story(AgUi)
    story.happens(call())
    frames = story.happens(STEP_END, ends())
    assert kinds(frames) == ["TOOL_CALL_RESULT", "STEP_FINISHED", "RUN_FINISHED"]
    assert frames[0]["metadata"] == {"outcome": "unsettled"}
    assert story.happens(result()) == []


def test_calls_made_inside_a_call_are_in_a_message_of_their_own() -> None:
    story = Story(AgUi)
    frames = story.happens(call(), call("c2", parent_call_id="c1"))
    assert [f["parentMessageId"] for f in frames if "parentMessageId" in f] == ["1.1", "in:c1"]
    assert frames[3]["metadata"] == {"parentToolCallId": "c1"}


def test_what_the_backend_attached_is_in_the_metadata() -> None:
    story = Story(AgUi, meta=lambda node: {"from": node.id})
    assert story.prepares()[0]["metadata"] == {"from": "c1"}


def test_a_hidden_tool_makes_no_event_on_any_path() -> None:
    story = Story(AgUi, hidden=["read"])
    assert story.prepares() == []
    assert story.happens(call()) == []
    assert story.happens(asks(path="/a")) == []
    assert told(story.reload(hidden=["read"])) == [("RUN_STARTED", "1"), ("STEP_STARTED", "1.1")]
    assert story.happens(call("c2", name="bash", parent_call_id="c1"))[0] == {
        "type": "TOOL_CALL_START",
        "toolCallId": "c2",
        "toolCallName": "bash",
        "parentMessageId": "1.1",
    }
    assert story.happens(result()) == []


# --- what waits


def test_when_everything_waits_the_run_is_interrupted_and_goes_on() -> None:
    story = Story(AgUi)
    story.happens(call("c1"), call("c2"))
    assert kinds(story.happens(asks(path="/a"))) == ["CUSTOM"]  # c2 runs
    frames = story.happens(result("c2"))
    assert kinds(frames) == ["TOOL_CALL_RESULT", "STEP_FINISHED", "RUN_FINISHED"]
    interrupt = frames[-1]["outcome"]["interrupts"][0]
    assert interrupt == {
        "id": "q1@c1",
        "reason": "tool_call",
        "toolCallId": "c1",
        "metadata": {"toolName": "read", "input": {"path": "/a"}},
    }
    assert kinds(story.reload())[-1] == "RUN_FINISHED"
    frames = story.happens(answers("allow"))
    assert kinds(frames) == ["RUN_STARTED", "STEP_STARTED", "CUSTOM"]
    assert frames[-1]["value"]["decision"] == "allow"
    assert kinds(story.happens(result())) == ["TOOL_CALL_RESULT"]


def test_a_turn_that_ends_while_it_waits_is_told() -> None:
    story = Story(AgUi)
    story.happens(call(), asks(path="/a"))
    frames = story.happens(ends("cancelled"))
    assert kinds(frames) == ["RUN_STARTED", "TOOL_CALL_RESULT", "RUN_FINISHED"]
    assert frames[-1]["outcome"] == {"type": "cancelled"}


# --- texts


def test_text_and_reasoning_come_as_they_grow() -> None:
    story = Story(AgUi)
    assert told(story.says("reasoning", text="so")) == [
        ("REASONING_START", "1.1.0"),
        ("REASONING_MESSAGE_START", "1.1.0"),
        ("REASONING_MESSAGE_CONTENT", "so"),
    ]
    assert told(story.says("text", block=1, text="a")) == [
        ("REASONING_MESSAGE_END", "1.1.0"),
        ("REASONING_END", "1.1.0"),
        ("TEXT_MESSAGE_START", "1.1"),
        ("TEXT_MESSAGE_CONTENT", "a"),
    ]
    assert told(story.says("text", block=1, text="b")) == [("TEXT_MESSAGE_CONTENT", "b")]


def test_text_that_was_given_up_goes_and_reasoning_is_emptied() -> None:
    story = Story(AgUi)
    story.says("reasoning", text="so")
    story.says("text", block=1, text="a")
    frames = story.settles("abandoned")
    assert kinds(frames) == ["TEXT_MESSAGE_END", "MESSAGES_SNAPSHOT"]
    assert messages(frames) == [{"id": "1.1.0", "role": "reasoning", "content": ""}]


def test_a_client_in_the_middle_gets_everything_and_goes_on() -> None:
    story = Story(AgUi)
    story.says("text", text="a")
    story.prepares(block=1)
    frames = story.reload()
    assert kinds(frames) == [
        "RUN_STARTED",
        "MESSAGES_SNAPSHOT",
        "STEP_STARTED",
        "TEXT_MESSAGE_START",
        "TOOL_CALL_START",
    ]
    assert messages(frames)[0]["content"] == "a"
    again = story.encoder.feed(story.assembler.view().snapshot())
    assert kinds(again) == ["MESSAGES_SNAPSHOT"]
    assert told(story.says("text", text="b")) == [("TEXT_MESSAGE_CONTENT", "b")]


def test_persons_are_told_on_a_reload_and_with_echo() -> None:
    said = ("user/message", {"message_id": "m1", "content": [{"type": "text", "text": "hi"}]})
    assert Story(AgUi).happens(said) == []
    story = Story(AgUi, echo=True)
    assert [frame.get("role") for frame in story.happens(said)] == ["user", None, None]
    assert messages(story.reload()) == [{"id": "m1", "role": "user", "content": "hi"}]


def test_files_of_persons_are_parts() -> None:
    story = Story(AgUi)
    url = "https://example.org/a"
    blocks = [
        {"type": "text", "text": "see"},
        {"type": "file", "media_type": "image/png", "url": url},
        {"type": "file", "media_type": "application/pdf", "data": "aa"},
        {"type": "file", "media_type": "application/pdf"},
    ]
    story.happens(("user/message", {"message_id": "m1", "content": blocks}))
    assert messages(story.reload())[0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "url", "value": url, "mimeType": "image/png"}},
        {
            "type": "document",
            "source": {"type": "data", "value": "aa", "mimeType": "application/pdf"},
        },
    ]


def test_a_retry_is_an_activity() -> None:
    story = Story(AgUi)
    story.says("text", text="a")
    data = {"turn": 1, "step": 1, "retry_id": "r1", "attempt": "a1", "number": 1, "reason": "busy"}
    story.happens(("llm/retry", data))
    activity = messages(story.reload())[0]
    assert (activity["activityType"], activity["content"]["status"]) == ("retry", "waiting")


# --- all of it


def test_one_story_whenever_the_client_came() -> None:
    check_encoder(lambda hidden: AgUi(hidden=hidden, echo=True), Agent)


class TakesNothingBack(AgUi):
    def _was_told(self, node: Node) -> bool:
        return False


class SpeaksOn(AgUi):
    """Tells what comes behind the last frame."""

    def _tell_call(self, node: Node) -> None:
        told = self._calls.get(node.id)
        if told is not None:
            told.is_over = False
        super()._tell_call(node)


class LeavesThemOpen(AgUi):
    """Ends what is unsettled only after a reload."""

    def _tell_call(self, node: Node) -> None:
        if not self._shown.is_unsettled(node):
            super()._tell_call(node)


class FiltersNothing(AgUi):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "hidden": ()})


class ReloadsSilently(AgUi):
    def feed(self, update: Snapshot | Patch) -> list[Frame]:
        frames = super().feed(update)
        if isinstance(update, Patch):
            return frames
        return [frame for frame in frames if frame["type"] != "MESSAGES_SNAPSHOT"]


class SaysTextTwice(AgUi):
    def _tell_answer(self, node: Node) -> None:
        for name in self._of_node.get(node.key, ()):
            self._texts[name].text = ""
        super()._tell_answer(node)


class NeverEnds(AgUi):
    def _close_call(self, call_id: str, call: Any) -> None:
        pass


class SendsTuples(AgUi):
    def feed(self, update: Snapshot | Patch) -> list[Frame]:
        return [
            {**frame, "messages": tuple(frame["messages"])} if "messages" in frame else frame
            for frame in super().feed(update)
        ]


@pytest.mark.parametrize(
    "broken",
    [
        TakesNothingBack,
        SpeaksOn,
        LeavesThemOpen,
        FiltersNothing,
        ReloadsSilently,
        SaysTextTwice,
        NeverEnds,
        SendsTuples,
    ],
)
def test_a_seeded_fault_is_found(broken: type[AgUi]) -> None:
    with pytest.raises(AssertionError):
        check_encoder(lambda hidden: broken(hidden=hidden, echo=True), Agent, smallest=False)


def test_an_event_is_sent_as_one_line() -> None:
    assert AgUi.sse({"type": "RUN_STARTED"}) == b'data: {"type":"RUN_STARTED"}\n\n'


def test_it_is_found_by_its_name() -> None:
    names = {entry.name: entry.value for entry in entry_points(group="assembler.protocols")}
    assert names["ag-ui"] == "definitions.protocols.ag_ui:AgUi"


def test_who_said_something_is_told_what_follows_and_all_of_what_is_open() -> None:
    story = Story(AgUi)
    story.reload()
    story.happens(call())
    story.encoder = AgUi()
    story.encoder.respond(asked=True)
    frames = story.encoder.feed(story.assembler.view().snapshot())
    assert frames[0]["type"] == "RUN_STARTED"
    assert not any(map(AgUi.is_last, frames))
    assert AgUi.is_last(story.happens(result(), STEP_END, ends())[-1])
    story.encoder = AgUi()
    story.encoder.respond(asked=True)
    assert story.encoder.feed(story.assembler.view().snapshot()) == []


def test_reasoning_in_whose_place_a_text_comes_is_that_text() -> None:
    story, agent = Story(AgUi), Agent()
    frames = [
        *story.reload(),
        *story.says("text", text="a"),
        *story.says("reasoning", block=1, text="r"),
    ]
    frames += story.happens(message("a", "b"))
    for frame in frames:
        agent.take(frame)
    shown = [each["content"] for each in agent.messages if each.get("content")]
    assert shown == ["a", "b"]
