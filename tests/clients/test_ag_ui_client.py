"""`@ag-ui/client` takes every event that we send, its verifier on, and shows what our view shows.

Needs Node and `npm ci --prefix tests/clients`; skips without them. The client is unmodified:
`HttpAgent`, against a server on loopback. Not here: which events are right
(`tests/definitions/protocols`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from definitions.protocols import AgUi, Frame
from tests.clients.conversations import (
    OURS,
    Told,
    all_told,
    ask_client,
    calls_of,
    made_up,
    node_command,
    texts_of,
    ways,
)
from tests.definitions.protocols.ag_ui_client import Agent
from tests.definitions.protocols.stories import (
    STEP_END,
    Story,
    answers,
    asks,
    call,
    ends,
    result,
)

QUIET = "TOOL_CALL_END: No message found containing tool call"
"""What the client notes when a call that was given up is closed; see decision 0017."""


@pytest.fixture(scope="module")
def node() -> str:
    return node_command("@ag-ui/client")


def read_by_client(node: str, scripts: Iterable[Iterable[Iterable[Frame]]]) -> list[Any]:
    """What the agents have that were answered with these streams."""
    streams = [
        ["".join(AgUi.sse(frame).decode() for frame in frames) for frames in script]
        for script in scripts
    ]
    return ask_client(node, "ag_ui_client.mjs", streams)


def calls_shown(messages: list[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """The same of the client's messages as `calls_of` of a view."""
    results = {each["toolCallId"]: each for each in messages if each["role"] == "tool"}
    calls = {}
    for message in messages:
        for each in message.get("toolCalls", ()):
            answer = results.get(each["id"])
            outcome = answer and answer["metadata"]["outcome"]
            said = answer["content"] if answer else ""
            function = each["function"]
            calls[each["id"]] = (function["name"], function["arguments"], outcome, said)
    assert results.keys() <= calls.keys()
    return calls


def check(each: Told, way: str, got: Any) -> None:
    place = f"{each.name}, {way}"
    assert not got["errors"], f"{place}: {got['errors']}"
    assert all(said.startswith(QUIET) for said in got["noted"]), f"{place}: {got['noted']}"
    ours, theirs = calls_of(each.last, each.hidden), calls_shown(got["messages"])
    if each.is_whole or way == "reload":
        assert theirs.keys() == ours.keys(), place
    for call_id in theirs.keys() & ours.keys():
        name, arguments, outcome, said = ours[call_id]
        shown = theirs[call_id]
        assert shown[0] == name, place
        if arguments is not None:
            assert json.loads(shown[1]) == arguments, place
        if shown[2] == "unsettled":  # its last frame; what comes behind it is for a reload
            assert outcome == "unsettled" or way != "reload", place
        elif outcome != "unsettled":  # its turn goes on: it may still come
            assert (shown[2], shown[3]) == (outcome, said), place
    if each.is_whole or way == "reload":
        said = [m for m in got["messages"] if m["role"] in ("assistant", "reasoning")]
        texts = [message["content"] for message in said if message.get("content")]
        assert sorted(texts) == sorted(texts_of(each.last)), place


def check_all(node: str, files: list[Path]) -> int:
    every = [
        (each, way, script)
        for each in all_told(files)
        for way, script in ways(each, lambda each=each: AgUi(hidden=each.hidden, echo=True))
    ]
    assert every
    answers = read_by_client(node, [script for _, _, script in every])
    assert len(answers) == len(every)
    for (each, way, _), got in zip(every, answers, strict=True):
        check(each, way, got)
    return len(every)


START = {"type": "RUN_STARTED", "threadId": "conversation", "runId": "1"}
END = {"type": "RUN_FINISHED", "threadId": "conversation", "runId": "1"}


def test_it_shows_what_our_recordings_show(node: str) -> None:
    assert check_all(node, OURS) > len(OURS)


def test_it_shows_what_recordings_of_others_show(node: str, shared: Path) -> None:
    assert check_all(node, sorted((shared / "cases").glob("*.jsonl"))) > 0


def test_it_takes_made_up_conversations_and_shows_what_our_copy_of_it_does(node: str) -> None:
    every = made_up(lambda hidden: AgUi(hidden=hidden, echo=True), max_examples=15)
    for frames, got in zip(every, read_by_client(node, [[each] for each in every]), strict=True):
        assert not got["errors"]
        assert all(said.startswith(QUIET) for said in got["noted"])
        copy = Agent()
        for frame in frames:
            copy.take(frame)
        assert calls_shown(got["messages"]) == calls_shown(copy.messages)
        texts = {each["id"]: each["content"] for each in got["messages"] if each.get("content")}
        assert texts == {
            each["id"]: each["content"] for each in copy.messages if each.get("content")
        }


def test_a_call_that_is_merely_closed_stays_and_is_owed(node: str) -> None:
    """Why we take calls back by a snapshot, with a result before it and the end behind it."""
    story = Story(AgUi)
    opened = [START, *story.prepares()]
    closed = {"type": "TOOL_CALL_END", "toolCallId": "c1"}
    answered = {
        "type": "TOOL_CALL_RESULT",
        "messageId": "r",
        "toolCallId": "c1",
        "content": "withdrawn",
        "metadata": {"outcome": "failed"},
    }
    withdrawn = story.settles("abandoned")
    open_, left, failed, ours = read_by_client(
        node,
        [
            [[*opened, END]],
            [[*opened, closed, END]],
            [[*opened, closed, answered, END]],
            [[*opened, *withdrawn, END]],
        ],
    )
    assert "tool calls are still active" in open_["errors"][0]
    assert list(calls_shown(left["messages"])) == ["c1"]
    assert left["ended"] == [["call", "c1"], ["success", ["c1"]]]
    assert calls_shown(failed["messages"])["c1"][2] == "failed"
    assert (ours["messages"], ours["errors"]) == ([], [])
    assert ours["ended"] == [["success", []]]


def test_it_asks_for_leave_and_goes_on(node: str) -> None:
    story = Story(AgUi)
    begun = story.reload()
    asked = story.happens(call(), asks(path="/a"))
    story.happens(answers("allow"))
    story.encoder = AgUi()
    again = story.encoder.feed(story.assembler.view().snapshot())
    rest = story.happens(result(), STEP_END, ends())
    waits, done = read_by_client(node, [[[*begun, *asked]], [[*begun, *asked], [*again, *rest]]])
    assert [each["toolCallId"] for each in waits["interrupts"]] == ["c1"]
    assert waits["ended"][-1][0] == "interrupt"
    assert (done["interrupts"], done["errors"]) == ([], [])
    assert calls_shown(done["messages"])["c1"][2:] == ("succeeded", "A")


def test_it_ends_with_the_error_of_a_turn_and_keeps_what_it_has(node: str) -> None:
    story = Story(AgUi)
    frames = [
        *story.reload(),
        *story.happens(call(), result()),
        *story.happens(ends("error", error={"name": "x", "message": "too much"})),
    ]
    (got,) = read_by_client(node, [[frames]])
    assert got["ended"][-1] == ["error", "too much"]
    assert list(calls_shown(got["messages"])) == ["c1"]


def test_what_is_wrong_is_refused(node: str) -> None:
    """So that the tests above can fail."""
    (got,) = read_by_client(node, [[[START, {"type": "TOOL_CALL_END", "toolCallId": "c1"}]]])
    assert "No active tool call" in got["errors"][0]
