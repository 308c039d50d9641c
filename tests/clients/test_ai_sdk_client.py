"""The AI SDK takes every chunk that we send, and shows what our view shows.

Needs Node and `npm ci --prefix tests/clients`; skips without them. The client is unmodified: the
engine of `useChat`, its `DefaultChatTransport` and `readUIMessageStream`, against a server on
loopback. Not here: which chunks are right (`tests/definitions/protocols`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from definitions.protocols import AiSdk, Frame, ui_messages
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

Script = list[tuple[str, list[Frame]]]


@pytest.fixture(scope="module")
def node() -> str:
    return node_command("ai")


def read_by_client(node: str, scripts: Iterable[Script]) -> list[Any]:
    """What the clients have that were answered with these streams."""
    asked = [[[how, sse(how, frames)] for how, frames in script] for script in scripts]
    return ask_client(node, "ai_sdk_client.mjs", asked)


def sse(how: str, frames: list[Frame]) -> Any:
    """The body of a response; none when there is nothing to resume."""
    if how == "begin":
        return frames
    if how == "resume" and not frames:
        return ""
    return (b"".join(map(AiSdk.sse, frames)) + AiSdk.DONE).decode()


def responses(frames: list[Frame]) -> Iterator[list[Frame]]:
    """A server answers each turn with a response of its own."""
    said: list[Frame] = []
    turn = None
    for frame in frames:
        if frame["type"] == "start":
            if turn not in (None, frame["messageId"]):
                yield said
                said = []
            turn = frame["messageId"]
        said.append(frame)
    if said:
        yield said


def script_of(way: str, connections: list[list[Frame]]) -> Script:
    if way == "reload":
        return [("read", connections[0])]
    script: Script = []
    for number, frames in enumerate(connections):
        for at, response in enumerate(responses(frames)):
            script.append(("resume" if number and not at else "send", response))
    return script


def parts_shown(messages: list[dict[str, Any]], kinds: tuple[str, ...]) -> list[dict[str, Any]]:
    parts = [part for each in messages if each["role"] == "assistant" for part in each["parts"]]
    return [part for part in parts if part["type"].startswith(kinds)]


OUTCOMES = {"output-available": "succeeded", "output-error": "failed", "output-denied": "failed"}


def calls_shown(messages: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    parts = parts_shown(messages, ("tool-", "dynamic-tool"))
    calls = {part["toolCallId"]: part for part in parts}
    assert len(calls) == len(parts), "a call is there twice"
    return calls


def check(each: Told, way: str, script: Script, got: Any) -> None:
    place = f"{each.name}, {way}"
    told = [
        frame["errorText"] for _, frames in script for frame in frames if frame["type"] == "error"
    ]
    assert got["errors"] == [f"Error: {text}" for text in told], place
    ours, theirs = calls_of(each.last, each.hidden), calls_shown(got["messages"])
    if each.is_whole or way == "reload":
        assert theirs.keys() == ours.keys(), place
    for call_id in theirs.keys() & ours.keys():
        name, arguments, outcome, said = ours[call_id]
        part = theirs[call_id]
        assert part["type"] == f"tool-{name}", place
        if arguments is not None:
            assert part["input"] == arguments, place
        if part.get("toolMetadata", {}).get("unsettled"):
            # its last frame; what comes behind it is for a reload
            assert outcome == "unsettled" or way != "reload", place
        elif outcome != "unsettled":  # its turn goes on: it may still come
            assert OUTCOMES.get(part["state"]) == outcome, place
            if outcome == "failed" and said and "errorText" in part:
                assert part["errorText"] == said, place
            if outcome == "succeeded" and isinstance(part["output"], str):
                assert part["output"] == said, place
    if each.is_whole or way == "reload":
        texts = [part["text"] for part in parts_shown(got["messages"], ("text", "reasoning"))]
        assert sorted(texts) == sorted(texts_of(each.last)), place


def check_all(node: str, files: list[Path]) -> int:
    every = [
        (each, way, script_of(way, connections))
        for each in all_told(files)
        for way, connections in ways(
            each,
            lambda each=each: AiSdk(hidden=each.hidden),
            lambda each=each: AiSdk(hidden=each.hidden, tells="newest"),
        )
    ]
    assert every
    answers = read_by_client(node, [script for _, _, script in every])
    assert len(answers) == len(every)
    for (each, way, script), got in zip(every, answers, strict=True):
        check(each, way, script, got)
    return len(every)


def test_it_shows_what_our_recordings_show(node: str) -> None:
    assert check_all(node, OURS) > len(OURS)


def test_it_shows_what_recordings_of_others_show(node: str, shared: Path) -> None:
    assert check_all(node, sorted((shared / "cases").glob("*.jsonl"))) > 0


def test_a_chat_begins_with_the_messages_that_a_reader_of_the_stream_has(
    node: str, shared: Path
) -> None:
    every = all_told([*OURS, *sorted((shared / "cases").glob("*.jsonl"))])
    scripts: list[Script] = []
    for each in every:
        for view in (each.last, each.snapshots[-1][len(each.snapshots[-1]) // 2]):
            begun = ui_messages(view, hidden=each.hidden)
            if not begun:  # of no messages the client says that they are none
                continue
            newest = AiSdk(hidden=each.hidden, tells="newest").feed(view)
            again = [("resume", newest)] if newest else []
            scripts += [
                [("read", AiSdk(hidden=each.hidden).feed(view))],
                [("begin", begun)],
                [("begin", begun), *again],
            ]
    answers = read_by_client(node, scripts)
    for read, begun, resumed in zip(answers[::3], answers[1::3], answers[2::3], strict=True):
        assert (begun["errors"], resumed["errors"]) == ([], [])
        said = [each for each in begun["messages"] if each["role"] == "assistant"]
        assert settled(said) == settled(read["messages"])
        assert settled(resumed["messages"]) == settled(begun["messages"])


def settled(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages that say something, without a step at their end: it comes with what is in it.

    Without inputs that are not complete either: the client has a reading of its own of half JSON.
    """
    cut = []
    for each in messages:
        parts = [
            {key: part[key] for key in part if key != "input" or "rawInput" not in part}
            for part in each["parts"]
        ]
        while parts and parts[-1]["type"] == "step-start":
            parts.pop()
        cut += [{**each, "parts": parts}] if parts else []
    return cut


STATES = {
    "tool-input-start": "input-streaming",
    "tool-input-available": "input-available",
    "tool-approval-request": "approval-requested",
    "tool-approval-response": "approval-responded",
    "tool-output-available": "output-available",
    "tool-output-error": "output-error",
    "tool-output-denied": "output-denied",
    "tool-input-error": "output-error",
}


def test_it_takes_made_up_conversations_and_shows_what_our_copy_of_it_does(node: str) -> None:
    every = made_up(lambda hidden: AiSdk(hidden=hidden), max_examples=15)
    answers = read_by_client(node, [[("read", frames)] for frames in every])
    for frames, got in zip(every, answers, strict=True):
        assert not got["errors"]
        copy = Reader()
        for frame in frames:
            copy.take(frame)
        calls = calls_shown(got["messages"])
        assert {name: (part["state"], part.get("output")) for name, part in calls.items()} == {
            name: (STATES[part["state"]], part.get("output")) for name, part in copy.calls.items()
        }
        shown = [part["text"] for part in parts_shown(got["messages"], ("text", "reasoning"))]
        known = [part for parts in copy.messages.values() for part in parts]
        assert sorted(shown) == sorted(
            part["text"] for part in known if part["type"] in ("text", "reasoning")
        )


def test_without_a_reset_a_withdrawn_call_is_prepared_for_ever(node: str) -> None:
    """Why a step is told again when something of it was given up."""
    story = Story(AiSdk)
    begun = [*story.reload(), *story.prepares()]
    reset = story.settles("abandoned")
    end = [{"type": "finish-step"}, {"type": "finish"}]
    error = {"type": "tool-output-error", "toolCallId": "c1", "errorText": "withdrawn"}
    left, failed, ours = read_by_client(
        node,
        [
            [("send", [*begun, *end])],
            [("send", [*begun, error, *end])],
            [("send", [*begun, *reset, *end])],
        ],
    )
    assert calls_shown(failed["messages"])["c1"]["state"] == "output-error"
    assert calls_shown(left["messages"])["c1"]["state"] == "input-streaming"
    assert (calls_shown(ours["messages"]), ours["errors"]) == ({}, [])
    assert ours["called"] == []


def test_a_chat_comes_back_in_the_middle_of_an_attempt(node: str) -> None:
    story = Story(AiSdk)
    begun = [*story.reload(), *story.says("text", text="a"), *story.prepares(block=1)]
    story.encoder = AiSdk(tells="newest")
    again = story.encoder.feed(story.assembler.view().snapshot())
    more = [*story.prepares(arguments='"/a"}', block=1), *story.happens(message("a"), call())]
    rest = story.happens(result(), STEP_END, ends())
    script: Script = [("send", begun), ("resume", [*again, *more, *rest]), ("resume", [])]
    (got,) = read_by_client(node, [script])
    assert got["states"] == [
        ["POST /chat", "ready"],
        ["GET /chat/c/stream", "ready"],
        ["GET /chat/c/stream", "ready"],
    ]
    assert got["errors"] == []
    assert [each["id"] for each in got["messages"][1:]] == ["turn-1"]
    assert calls_shown(got["messages"])["c1"]["output"] == "A"
    assert [part["text"] for part in parts_shown(got["messages"], ("text",))] == ["a"]


def test_a_chat_allows_a_call_and_goes_on(node: str) -> None:
    story = Story(AiSdk)
    asked = [*story.reload(), *story.happens(call(), asks(path="/a"))]
    story.encoder = AiSdk(tells="nothing")
    assert story.encoder.feed(story.assembler.view().snapshot()) == []
    rest = [*story.happens(answers("allow")), *story.happens(result(), STEP_END, ends())]
    waits, done = read_by_client(node, [[("send", asked)], [("send", asked), ("approve", rest)]])
    assert calls_shown(waits["messages"])["c1"]["state"] == "approval-requested"
    part = calls_shown(done["messages"])["c1"]
    assert (part["state"], part["output"], done["errors"]) == ("output-available", "A", [])
    assert part["approval"]["approved"] is True
    assert done["states"][-1] == ["POST /chat", "ready"]


def test_what_is_wrong_is_refused(node: str) -> None:
    """So that the tests above can fail."""
    start = {"type": "start", "messageId": "turn-1"}
    wrong = {"type": "tool-output-available", "toolCallId": "c1", "output": 1}
    unknown = {"type": "tool-prepared", "toolCallId": "c1"}
    first, second = read_by_client(node, [[("send", [start, wrong])], [("send", [start, unknown])]])
    assert "No tool invocation found" in first["errors"][0]
    assert second["errors"]
