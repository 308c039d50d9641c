"""What an editor is sent, frame by frame."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any

import pytest

from assembler import Assembler, Delta, Event, Text, merge
from assembler.engine.values import DEPTH_MAX, freeze_object
from definitions import catalog
from definitions.families import CATEGORIES, FAMILIES
from definitions.protocols import Acp, send_each
from definitions.protocols.acp_words import kind_of, title_of
from definitions.testing import check_encoder
from tests.definitions.protocols.acp_client import Editor, accepted
from tests.definitions.protocols.broken import BROKEN

TURN = ("turn/start", {"turn": 1})
STEP = ("step/start", {"turn": 1, "step": 1})
PREPARING = {"phase": "preparing", "toolName": "read"}


class Story:
    """A conversation of one turn, and what the editor that watches it is sent."""

    def __init__(self, **options: Any) -> None:
        self.assembler = Assembler(catalog(), strict=True)
        self.acp = Acp(**options)
        self.facts = 0
        self.ordinals: dict[str, int] = {}
        self.happens(TURN, STEP)

    def happens(self, *facts: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
        """These events in one flush; gives the frames."""
        for type_, data in facts:
            self.facts += 1
            self.assembler.append(Event(self.facts, type_, data, time=self.facts))
        return self.flush()

    def says(self, type_: str, attempt: str = "a1", number: int = 1, **data: Any) -> Any:
        """A delta and a flush."""
        ordinal = self.ordinals.get(attempt, 0)
        self.ordinals[attempt] = ordinal + 1
        place = {"ordinal": ordinal, "after": self.facts, "index": sum(self.ordinals.values())}
        data = {"block": 0, **data}
        self.assembler.emit(Delta(attempt, 1, 1, type_, data, number=number, **place))
        return self.flush()

    def prepares(
        self, call: str = "c1", name: str = "read", attempt: str = "a1", **more: Any
    ) -> Any:
        piece = {"call_id": call, "name": name, "arguments": '{"path":"/se'}
        return self.says("tool-call", attempt, **piece, **more)

    def settles(self, outcome: str, attempt: str = "a1") -> list[dict[str, Any]]:
        self.assembler.settle(attempt, outcome)
        return self.flush()

    def flush(self) -> list[dict[str, Any]]:
        return checked(self.acp.feed(self.assembler.flush()["chat"]))

    def reload(self, **options: Any) -> list[dict[str, Any]]:
        """What a new editor is sent."""
        return checked(Acp(**options).feed(self.assembler.view().snapshot()))


def checked(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for frame in frames:
        accepted(frame)
    return frames


def call(call_id: str = "c1", name: str = "read", **more: Any) -> tuple[str, dict[str, Any]]:
    arguments = more.pop("arguments", '{"path":"/a"}')
    place = {"turn": 1, "step": 1}
    return "tool/call", {**place, "call_id": call_id, "name": name, "arguments": arguments, **more}


def result(call_id: str = "c1", text: str = "A", **more: Any) -> tuple[str, dict[str, Any]]:
    return "tool/result", {"call_id": call_id, "content": [{"type": "text", "text": text}], **more}


def asks(call_id: str = "c1", **input_: Any) -> tuple[str, dict[str, Any]]:
    return "permission/request", {"call_id": call_id, "request_id": "q1", "input": input_}


def answers(decision: str, call_id: str = "c1", **more: Any) -> tuple[str, dict[str, Any]]:
    data = {"call_id": call_id, "request_id": "q1", "decision": decision, **more}
    return "permission/answer", data


def message(*texts: str, **more: Any) -> tuple[str, dict[str, Any]]:
    blocks = [{"type": "text", "text": text} for text in texts]
    return "assistant/message", {"turn": 1, "step": 1, "message_id": "a", "content": blocks, **more}


END = ("turn/end", {"turn": 1, "reason": "cancelled"})
STEP_END = ("step/end", {"turn": 1, "step": 1})


def statuses(frames: Sequence[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(f["sessionUpdate"], f["toolCallId"], f["status"]) for f in frames]


def texts(frames: Sequence[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(f["sessionUpdate"], f["messageId"], f["content"]["text"]) for f in frames]


def untitled(frames: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Frames without their titles, which are what rows say (see below)."""
    return [{key: frame[key] for key in frame if key != "title"} for frame in frames]


# --- one call


def test_a_call_is_prepared_runs_and_ends() -> None:
    story = Story()
    assert untitled(story.prepares()) == [
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "c1",
            "kind": "read",
            "status": "pending",
            "rawInput": {},
            "_meta": PREPARING,
        }
    ]
    assert story.says("tool-call", call_id="c1", arguments='cret"}') == []
    assert untitled(story.happens(call())) == [
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c1",
            "status": "in_progress",
            "rawInput": {"path": "/a"},
            "locations": [{"path": "/a"}],
            "_meta": {"toolName": "read"},
        }
    ]
    assert story.says("tool-output", "out", 0, call_id="c1", text="...") == []
    assert story.happens(result()) == [
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c1",
            "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "A"}}],
            "_meta": {"toolName": "read"},
        }
    ]
    assert story.happens(STEP_END, END) == []


def test_the_announcement_carries_nothing_of_the_arguments() -> None:
    story = Story()
    for name in ("read", "bash", "skill", "present_files", "mcp__x__y"):
        assert "/se" not in json.dumps(story.prepares(name, name))
        assert "/se" not in json.dumps(story.reload())


def test_a_call_that_was_never_announced_begins_in_progress() -> None:
    story = Story()
    assert statuses(story.happens(call())) == [("tool_call", "c1", "in_progress")]
    assert statuses(story.happens(result(is_error=True, error={"name": "oops"}))) == [
        ("tool_call_update", "c1", "failed")
    ]
    assert statuses(story.reload()) == [
        ("tool_call", "c1", "in_progress"),
        ("tool_call_update", "c1", "failed"),
    ]


def test_a_preparation_that_comes_and_runs_in_one_flush_says_both() -> None:
    story = Story()
    story.prepares()
    assert statuses(story.happens(call(), result())) == [
        ("tool_call_update", "c1", "in_progress"),
        ("tool_call_update", "c1", "completed"),
    ]


def test_it_says_with_which_input_it_runs_also_when_there_is_none() -> None:
    story = Story()
    story.prepares()
    (frame,) = story.happens(call(arguments="{}"))
    assert frame["rawInput"] == {}


def test_the_title_is_that_of_the_row() -> None:
    story = Story()
    (announced,) = story.prepares()
    (runs,) = story.happens(call())
    row = story.assembler.view()["tool:c1"].data["row"]
    assert announced["title"] == title_of("read", row, complete=False)
    assert runs["title"] == title_of("read", row, complete=True) != announced["title"]


def test_arguments_that_are_no_object_are_sent_as_they_are() -> None:
    story = Story()
    (frame,) = story.happens(call(arguments="{oops"))
    assert frame["rawInput"] == "{oops"


def test_a_name_that_grows_is_told() -> None:
    story = Story()
    story.prepares(name="read")
    (frame,) = story.says("tool-call", call_id="c1", name="bash", arguments="")
    assert frame["sessionUpdate"] == "tool_call_update"
    assert (frame["kind"], frame["status"]) == ("execute", "pending")
    assert frame["_meta"] == {"phase": "preparing", "toolName": "bash"}
    assert "rawInput" not in frame  # as it was


def test_arguments_as_deep_as_an_event_may_be_are_sent() -> None:
    story = Story()
    deep = '{"a":' * (DEPTH_MAX - 1) + "{}" + "}" * (DEPTH_MAX - 1)
    (frame,) = story.happens(call(arguments=deep))
    assert frame["rawInput"] == json.loads(deep)


# --- what is given up


@pytest.mark.parametrize("outcome", ["failed", "interrupted", "abandoned"])
def test_each_preparation_is_withdrawn_by_itself(outcome: str) -> None:
    story = Story()
    story.prepares("c1")
    story.prepares("c2")
    assert story.settles(outcome) == [
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": name,
            "status": "failed",
            "content": [],
            "_meta": {**PREPARING, "preparationDiscarded": True},
        }
        for name in ("c1", "c2")
    ]
    assert story.happens(STEP_END, END) == []


def test_withdrawals_come_before_what_is_new_in_the_same_flush() -> None:
    story = Story()
    story.prepares("c2")
    story.assembler.settle("a1", "abandoned")
    assert statuses(story.prepares("c1", attempt="a2", number=2)) == [
        ("tool_call_update", "c2", "failed"),
        ("tool_call", "c1", "pending"),
    ]


@pytest.mark.parametrize("merged", [False, True])
def test_an_id_that_comes_again_is_announced_anew(merged: bool) -> None:
    story = Story()
    story.prepares(name="bash")
    story.assembler.settle("a1", "abandoned")
    patch = story.assembler.flush()["chat"] if merged else None
    if patch is None:
        frames = story.prepares(attempt="a2", number=2)
    else:
        data = {"block": 0, "call_id": "c1", "name": "read", "arguments": ""}
        story.assembler.emit(Delta("a2", 1, 1, "tool-call", data, number=2, after=2, index=9))
        frames = story.acp.feed(merge(patch, story.assembler.flush()["chat"]))
    assert [frame["_meta"]["toolName"] for frame in frames] == ["bash", "read"]
    assert statuses(frames) == [
        ("tool_call_update", "c1", "failed"),
        ("tool_call", "c1", "pending"),
    ]


def test_a_dispatched_call_is_no_preparation_any_more() -> None:
    story = Story()
    story.prepares()
    story.happens(call())
    assert story.settles("failed") == []


def test_a_call_without_a_result_fails_when_its_turn_closes() -> None:
    story = Story()
    story.happens(call())
    assert story.happens(STEP_END) == []  # it may go on behind its step
    ended = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c1",
        "status": "failed",
        "_meta": {"unsettled": True, "toolName": "read"},
    }
    assert story.happens(END) == [ended]
    assert story.reload()[-1] == ended
    assert story.happens(result()) == []


def test_a_background_result_in_the_same_turn_counts() -> None:
    story = Story()
    story.happens(call(), STEP_END)
    assert statuses(story.happens(result())) == [("tool_call_update", "c1", "completed")]


def test_a_new_turn_closes_the_one_before() -> None:
    story = Story()
    story.happens(call())
    frames = story.happens(("turn/start", {"turn": 2}))
    assert statuses(frames) == [("tool_call_update", "c1", "failed")]
    assert frames[0]["_meta"]["unsettled"]


def test_nobody_there_is_no_end() -> None:
    story = Story()
    story.happens(call())
    story.assembler.liveness(False)
    assert story.flush() == []


def test_nothing_comes_behind_a_last_frame() -> None:
    story = Story()
    story.happens(call(), result(synthetic=True, is_error=True))
    assert story.happens(result(text="the real one")) == []
    assert story.says("tool-output", "out", 0, call_id="c1", text="more") == []
    assert story.happens(asks(path="/b"), STEP_END, END) == []


# --- permissions


def test_a_call_that_waits_stays_pending_with_its_whole_input() -> None:
    story = Story()
    story.prepares()
    frames = story.happens(call(), asks(path="/a"))
    assert statuses(frames) == [("tool_call_update", "c1", "pending")]
    assert frames[0]["rawInput"] == {"path": "/a"}
    assert "phase" not in frames[0]["_meta"]
    (allowed,) = story.happens(answers("allow", updated_input={"path": "/b"}))
    assert (allowed["status"], allowed["rawInput"]) == ("in_progress", {"path": "/b"})
    assert allowed["locations"] == [{"path": "/b"}]


def test_a_call_that_waits_begins_pending() -> None:
    story = Story()
    frames = story.happens(call(), asks(path="/a"))
    assert statuses(frames) == [("tool_call", "c1", "pending")]
    assert frames[0]["rawInput"] == {"path": "/a"}
    assert statuses(story.reload()) == statuses(frames)


def test_a_question_before_the_dispatch_tells_what_is_asked() -> None:
    story = Story()
    story.prepares()
    (frame,) = story.happens(asks(path="/a"))
    assert (frame["status"], frame["rawInput"]) == ("pending", {"path": "/a"})
    assert story.happens(answers("allow")) == []
    assert statuses(story.happens(call())) == [("tool_call_update", "c1", "in_progress")]


def test_of_two_questions_the_newer_one_is_told() -> None:
    story = Story()
    story.prepares()
    story.happens(asks(path="/b"))
    type_, data = asks(path="/a")
    assert untitled(story.happens((type_, {**data, "request_id": "p2"}))) == [
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c1",
            "status": "pending",
            "rawInput": {"path": "/a"},
            "_meta": PREPARING,
        }
    ]


def test_what_was_refused_never_runs() -> None:
    story = Story()
    story.prepares()
    story.happens(call(), asks(path="/a"))
    assert story.happens(answers("deny")) == []
    denied = {"name": "denied", "message": "no"}
    frames = story.happens(result(is_error=True, error=denied))
    assert statuses(frames) == [("tool_call_update", "c1", "failed")]
    assert frames[0]["rawOutput"] == {"error": denied}
    assert "in_progress" not in json.dumps(story.reload())


# --- hidden tools


def test_a_hidden_tool_makes_no_frame_on_any_path() -> None:
    story = Story(hidden=["TodoWrite"])
    sent = story.prepares(name="TodoWrite")
    sent += story.settles("abandoned")
    sent += story.prepares(name="TodoWrite", attempt="a2", number=2)
    sent += story.happens(call(name="TodoWrite"), asks(path="/a"))
    sent += story.happens(answers("allow"))
    sent += story.reload(hidden=["TodoWrite"])
    sent += story.happens(result())
    sent += story.happens(call("c2", "TodoWrite"), STEP_END)
    sent += story.happens(END)
    sent += story.reload(hidden=["TodoWrite"])
    assert sent == []


def test_a_name_that_turns_out_to_be_hidden_takes_its_card_back() -> None:
    story = Story(hidden=["TodoWrite"])
    story.prepares(name="Todo")
    (frame,) = story.says("tool-call", call_id="c1", name="TodoWrite", arguments="")
    assert frame["_meta"] == {
        "phase": "preparing",
        "preparationDiscarded": True,
        "toolName": "Todo",
    }
    assert story.happens(call(name="TodoWrite"), result()) == []


def test_a_result_without_its_call_is_silent() -> None:
    """It may be that of a hidden tool."""
    assembler = Assembler(catalog())
    acp = Acp(hidden=["TodoWrite"])
    type_, data = result()
    assembler.load([Event(9, type_, data)], has_more=True)
    assert acp.feed(assembler.flush()["chat"]) == []


# --- messages


def test_text_comes_as_it_grows_and_not_again() -> None:
    story = Story()
    frames = story.says("reasoning", text="Hm")
    frames += story.says("text", block=1, text="Hel")
    frames += story.says("text", block=1, text="lo")
    assert texts(frames) == [
        ("agent_thought_chunk", "1.1.0", "Hm"),
        ("agent_message_chunk", "1.1.1", "Hel"),
        ("agent_message_chunk", "1.1.1", "lo"),
    ]
    assert texts(story.reload()) == [
        ("agent_thought_chunk", "1.1.0", "Hm"),
        ("agent_message_chunk", "1.1.1", "Hello"),
    ]
    blocks = [{"type": "reasoning", "text": "Hm", "signature": "s"}]
    blocks += [{"type": "text", "text": "Hello"}]
    type_, data = message()
    assert story.happens((type_, {**data, "content": blocks})) == []
    assert story.settles("completed") == []


def test_what_comes_in_the_place_of_text_is_another_message() -> None:
    story = Story()
    story.says("text", text="Once")
    assert story.settles("abandoned") == []
    assert texts(story.says("text", "a2", 2, text="No")) == [
        ("agent_message_chunk", "1.1.0~2", "No")
    ]
    assert texts(story.says("text", "a2", 2, text=".")) == [("agent_message_chunk", "1.1.0~2", ".")]


def test_text_that_begins_as_the_one_that_was_given_up_goes_on() -> None:
    story = Story()
    story.says("text", text="Let me")
    story.settles("abandoned")
    assert texts(story.says("text", "a2", 2, text="Let me look")) == [
        ("agent_message_chunk", "1.1.0", " look")
    ]


def test_a_block_that_is_no_text_is_told_once() -> None:
    story = Story()
    text, block = {"type": "text", "text": "x"}, {"type": "json", "value": 1}
    story.says("text", text="x")
    (frame,) = story.says("block-end", block=1, value=block)
    assert (frame["messageId"], frame["content"]["text"]) == ("1.1.1", "1")
    type_, data = message()
    interrupted = {**data, "content": [text, dict(block)], "interrupted": True}
    assert story.happens((type_, interrupted)) == []
    (other,) = story.happens((type_, {**data, "content": [text, {**block, "value": 2}]}))
    assert (other["messageId"], other["content"]["text"]) == ("1.1.1~2", "2")


USER = ("user/message", {"message_id": "m1", "content": [{"type": "text", "text": "Hi"}]})


def test_what_a_person_said_is_told_on_a_reload_alone() -> None:
    story = Story()
    assert story.happens(USER) == []
    assert texts(story.reload()) == [("user_message_chunk", "m1", "Hi")]
    assert story.acp.feed(story.assembler.view().snapshot()) == []


def test_each_message_is_told() -> None:
    story = Story()
    story.happens(USER, ("user/message", {**USER[1], "message_id": "m2"}))
    type_, data = message("one")
    story.happens((type_, data), STEP_END, (type_, {**data, "step": 2}))
    said = [(kind, name) for kind, name, _ in texts(story.reload())]
    user, agent = "user_message_chunk", "agent_message_chunk"
    assert said == [(user, "m1"), (user, "m2"), (agent, "1.1.0"), (agent, "1.2.0")]


def test_with_echo_what_a_person_said_is_told_at_once() -> None:
    assert texts(Story(echo=True).happens(USER)) == [("user_message_chunk", "m1", "Hi")]


def test_context_is_not_said_by_anybody() -> None:
    type_, data = USER
    assert Story(echo=True).happens((type_, {**data, "source": {"kind": "file"}})) == []


# --- what is attached, and what is in it


def test_what_the_backend_attached_stays() -> None:
    given = {"provenance": {"server": "x"}, "claudeCode": {"parentToolUseId": "p"}}
    story = Story(meta=lambda node: given if node.id == "c1" else {})
    ours = {**given, "parentToolCallId": "p"}
    (frame,) = story.prepares(parent_call_id="p")
    assert frame["_meta"] == {**ours, **PREPARING}
    (frame,) = story.settles("abandoned")
    assert frame["_meta"] == {**ours, **PREPARING, "preparationDiscarded": True}
    for frame in story.happens(call(parent_call_id="p"), result()):
        assert frame["_meta"] == {**ours, "toolName": "read"}
    assert given == {"provenance": {"server": "x"}, "claudeCode": {"parentToolUseId": "p"}}


def test_content_is_said_in_the_words_of_acp() -> None:
    pdf = {"uri": "attachment:a.pdf", "blob": "aa", "mimeType": "application/pdf"}
    odd = {"uri": "attachment:application/octet-stream", "blob": "aa"}
    page = {"uri": "https://example.org/a.html", "name": "a.html", "mimeType": "text/html"}
    said = [
        ({"type": "text", "text": "a"}, {"type": "text", "text": "a"}),
        ({"type": "reasoning", "text": "b"}, {"type": "text", "text": "b"}),
        ({"type": "json", "value": {"n": 1}}, {"type": "text", "text": '{"n":1}'}),
        (file("image/png"), {"type": "image", "data": "aa", "mimeType": "image/png"}),
        (file("audio/wav"), {"type": "audio", "data": "aa", "mimeType": "audio/wav"}),
        (file("application/pdf", name="a.pdf"), {"type": "resource", "resource": pdf}),
        (
            file(None),
            {"type": "resource", "resource": {**odd, "mimeType": "application/octet-stream"}},
        ),
        (file("text/html", url=page["uri"]), {"type": "resource_link", **page}),
        (
            file("text/html", url="x:", name="n"),
            {"type": "resource_link", **page, "uri": "x:", "name": "n"},
        ),
        (file("text/html", url="/"), {"type": "resource_link", **page, "uri": "/", "name": "/"}),
        (
            file("text/html", url="x/", name=1),
            {"type": "resource_link", **page, "uri": "x/", "name": "x"},
        ),
        ({"type": "file"}, None),
        ({**file("image/png"), "type": "vendor"}, None),
        ({"type": "provider", "provider": "x", "raw": {}}, None),
        ({"type": "text", "text": ""}, None),
        ({"type": "text", "text": 1}, None),
        ("odd", None),
    ]
    story = Story()
    story.happens(call())
    content = [block for block, _ in said]
    (frame,) = story.happens(("tool/result", {"call_id": "c1", "content": content}))
    assert frame["content"] == [
        {"type": "content", "content": words} for _, words in said if words is not None
    ]


def file(media_type: str | None, **more: Any) -> dict[str, Any]:
    return {"type": "file", "media_type": media_type, "data": "aa", **more}


@pytest.mark.parametrize(
    ("values", "error", "expected"),
    [
        ([], None, None),
        ([{"n": 1}], None, {"n": 1}),
        ([1, 2], None, [1, 2]),
        ([], {"name": "x"}, {"error": {"name": "x"}}),
        ([1], {"name": "x"}, {"error": {"name": "x"}, "value": 1}),
    ],
)
def test_raw_output_is_what_content_does_not_say(values: Any, error: Any, expected: Any) -> None:
    story = Story()
    story.happens(call())
    content = [{"type": "json", "value": value} for value in values]
    content += [{"type": "text", "text": "and text"}]
    data = {"call_id": "c1", "content": content, "error": error}
    (frame,) = story.happens(("tool/result", data))
    assert frame.get("rawOutput") == expected


@pytest.mark.parametrize(
    ("cwd", "arguments", "expected"),
    [
        (None, {"path": "a.py"}, None),
        ("/repo", {"path": "./a.py", "line": 3}, [{"path": "/repo/a.py", "line": 3}]),
        ("/repo/", {"file_path": "b/a.py"}, [{"path": "/repo/b/a.py"}]),
        (None, {"path": "C:\\a.py", "offset": True}, [{"path": "C:\\a.py"}]),
        (None, {"path": "\\\\host\\a.py", "line": 0}, [{"path": "\\\\host\\a.py", "line": 0}]),
        (None, {"path": "C:/a.py", "line": -1}, [{"path": "C:/a.py"}]),
        (None, {"path": "", "file": "/a"}, [{"path": "/a"}]),
        (None, {"query": "x"}, None),
    ],
)
def test_locations_are_absolute(cwd: str | None, arguments: Any, expected: Any) -> None:
    (frame,) = Story(cwd=cwd).happens(call(arguments=json.dumps(arguments)))
    assert frame.get("locations") == expected


def test_what_is_edited_has_a_place_and_what_is_run_has_none() -> None:
    story = Story()
    (edits, runs) = story.happens(call("c1", "write"), call("c2", "bash"))
    assert edits["locations"] == [{"path": "/a"}]
    assert "locations" not in runs


def test_a_place_that_no_longer_holds_is_taken_back() -> None:
    story = Story()
    story.happens(call(), asks(path="/a"))
    (frame,) = story.happens(answers("allow", updated_input={"text": "x"}))
    assert frame["locations"] == []


def test_every_category_has_a_kind() -> None:
    kinds = {family.category: kind_of(family.tools[0]) for family in FAMILIES if family.tools}
    assert kinds.keys() == CATEGORIES
    assert kinds == {
        "read": "read",
        "read-image": "read",
        "write": "edit",
        "edit": "edit",
        "search": "search",
        "command": "execute",
        "code": "execute",
        "web-search": "fetch",
        "web-fetch": "fetch",
        "subagent": "think",
        "plan": "think",
        "question": "other",
        "tool": "other",
    }


def test_a_title_is_what_the_row_says() -> None:
    row = freeze_object({"title": "Read", "summary": Text("a.py")})
    assert title_of("read", row, complete=True) == "Read a.py"
    assert title_of("read", row, complete=False) == "Read"
    assert title_of("read", None, complete=True) == "read"
    generic = freeze_object({"title": "Tool", "summary": "frob x"})
    assert title_of("frob", generic, complete=True) == "frob x"
    assert title_of("frob", generic, complete=False) == "frob"


# --- reload, reconnect, pages


def test_a_reload_in_the_middle_goes_on_where_it_is() -> None:
    story = Story()
    story.says("text", text="Let me")
    story.prepares()
    later = Acp()
    first = checked(later.feed(story.assembler.view().snapshot()))
    assert texts(first[:1]) == [("agent_message_chunk", "1.1.0", "Let me")]
    assert statuses(first[1:]) == [("tool_call", "c1", "pending")]
    story.acp = later
    assert texts(story.says("text", text=" look")) == [("agent_message_chunk", "1.1.0", " look")]
    assert statuses(story.settles("failed")) == [("tool_call_update", "c1", "failed")]


def test_a_snapshot_in_between_brings_what_was_missed() -> None:
    story = Story()
    story.says("text", text="Let me")
    story.prepares("c1")
    story.prepares("c2")
    for type_, data in (call("c2"), USER):
        story.facts += 1
        story.assembler.append(Event(story.facts, type_, data, time=1))
    story.assembler.settle("a1", "abandoned")
    missed, again = story.assembler.flush()["chat"], Assembler(catalog())
    assert missed
    again.load([Event(1, *TURN), Event(2, *STEP), Event(3, *call("c2")), Event(4, *USER)])
    again.flush()
    frames = checked(story.acp.feed(again.view().snapshot()))
    assert statuses(frames[:2]) == [
        ("tool_call_update", "c1", "failed"),
        ("tool_call_update", "c2", "in_progress"),
    ]
    assert frames[2:] == []  # what was typed meanwhile, its client has


def test_an_older_page_is_not_told_behind_what_is_newer() -> None:
    log = [Event(1, *TURN), Event(2, *STEP), Event(3, *message("old")), Event(4, *call())]
    log += [Event(5, *result()), Event(6, *call("c2")), Event(7, *USER)]
    assembler, acp = Assembler(catalog()), Acp()
    assembler.load(log[6:], has_more=True)
    assert texts(acp.feed(assembler.flush()["chat"])) == []
    assembler.prepend(log[:6], has_more=False)
    frames = checked(acp.feed(assembler.flush()["chat"]))
    assert statuses(frames) == [("tool_call", "c2", "in_progress")]  # it still runs
    assembler.append(Event(8, *result("c2")))
    frames = checked(acp.feed(assembler.flush()["chat"]))
    assert statuses(frames) == [("tool_call_update", "c2", "completed")]


def test_a_call_out_of_sight_still_ends() -> None:
    story = Story()
    story.happens(call())
    story.assembler.load([Event(9, "turn/start", {"turn": 1})], has_more=True)
    assert story.flush() == []
    story.facts = 9
    assert statuses(story.happens(result())) == [("tool_call_update", "c1", "completed")]


def test_a_call_out_of_sight_fails_with_its_turn() -> None:
    story = Story()
    story.happens(call())
    story.assembler.load([Event(9, "turn/start", {"turn": 1})], has_more=True)
    story.flush()
    story.facts = 9
    (frame,) = story.happens(END)
    assert (frame["status"], frame["_meta"]["unsettled"]) == ("failed", True)


def test_what_is_being_said_is_told_also_when_a_page_comes_with_it() -> None:
    assembler, acp = Assembler(catalog()), Acp()
    log = [Event(1, *TURN), Event(2, *STEP), Event(3, *USER), Event(4, "vendor/note", {})]
    assembler.load(log[3:], has_more=True)
    acp.feed(assembler.flush()["chat"])
    assembler.emit(Delta("a1", 1, 1, "text", {"block": 0, "text": "Hm"}, after=2, index=1))
    assembler.prepend(log[:3], has_more=False)
    frames = checked(acp.feed(assembler.flush()["chat"]))
    assert texts(frames) == [("agent_message_chunk", "1.1.0", "Hm")]


def test_frames_of_one_flush_stand_in_the_order_of_the_view() -> None:
    story = Story()
    story.prepares("c2")
    story.prepares("c1", attempt="a2")
    story.happens(call("c1"), call("c2"), STEP_END)
    story.settles("completed")
    story.settles("completed", "a2")
    keys = [node.id for node in story.assembler.view() if node.kind == "tool"]
    assert [name for _, name, _ in statuses(story.happens(END))] == keys == ["c1", "c2"]


def test_what_came_and_went_between_two_patches_is_not_told() -> None:
    story = Story()
    data = {"block": 0, "call_id": "c1", "name": "read", "arguments": ""}
    story.assembler.emit(Delta("a1", 1, 1, "tool-call", data, after=2, index=1))
    came = story.assembler.flush()["chat"]
    story.assembler.settle("a1", "abandoned")
    assert story.acp.feed(merge(came, story.assembler.flush()["chat"])) == []


def test_a_preparation_that_went_and_ran_between_two_patches_runs() -> None:
    story = Story()
    story.prepares()
    story.assembler.settle("a1", "abandoned")
    went = story.assembler.flush()["chat"]
    story.assembler.append(Event(3, *call()))
    frames = checked(story.acp.feed(merge(went, story.assembler.flush()["chat"])))
    assert statuses(frames) == [("tool_call_update", "c1", "in_progress")]


def test_one_story_whenever_the_editor_came() -> None:
    check_encoder(lambda hidden: Acp(hidden=hidden, echo=True), Editor)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_seeded_fault_is_found(broken: type[Acp]) -> None:
    with pytest.raises(AssertionError):
        check_encoder(lambda hidden: broken(hidden=hidden, echo=True), Editor, smallest=False)


# --- sending


def test_a_notification_is_json_rpc() -> None:
    assert Acp.notification("s1", {"sessionUpdate": "x"}) == {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": "s1", "update": {"sessionUpdate": "x"}},
    }


def test_a_send_that_fails_does_not_stop_the_others() -> None:
    sent = []

    async def send(frame: dict[str, Any]) -> None:
        sent.append(frame["n"])
        if frame["n"] == 1:
            raise ConnectionError("gone")

    failures = asyncio.run(send_each([{"n": n} for n in range(3)], send))
    assert sent == [0, 1, 2]
    assert [type(failure) for failure in failures] == [ConnectionError]


def test_it_is_found_by_its_name() -> None:
    (entry,) = entry_points(group="assembler.protocols", name="acp")
    assert entry.load() is Acp
